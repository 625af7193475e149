"""Whatever the passes do to a program, it computes the same, traps at the same place, and logs the same."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from allocators import Allocator, Arena, MetricAllocator, PageAlloc
from garden.ir.ir import Ir
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.passes import PASSES, optimise
from garden.ir.passes.counts import Counts
from garden.ir.printer import print_ir
from garden.ir.verifier import verify
from garden.semantics import word_of
from garden.types.types import BOOL, DOUBLE, INT
from tests.support.ir_evaluator import Evaluator, OutOfFuel
from tests.support.ir_generator import DOUBLES, INTS, TEXTS, Generator
from tests.support.rewriter import PACKAGES, check_counts, lines, with_entry

Outcome = list[tuple[object, ...]]

slow = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def arguments_for(ir: Ir[Allocator], function: int, random: Random) -> list[int]:
    words = []
    for value in ir.list_at(ir.block_params[ir.function_first[function]]):
        type = ir.type[value]
        if type == INT:
            words.append(random.choice(INTS))
        elif type == BOOL:
            words.append(random.randint(0, 1))
        elif type == DOUBLE:
            words.append(word_of(float(random.choice(DOUBLES))))
        else:
            words.append(ir.checked.ast.symbols.intern(random.choice(TEXTS).encode()))
    return words


def outcomes(ir: Ir[Allocator], seed: int) -> Outcome:
    """How a few calls of each function end."""
    random = Random(seed)
    found = []
    for function in range(1, ir.function_count - 1):
        for _ in range(3):
            found.append(Evaluator(ir).run(function, arguments_for(ir, function, random)))
    return found


def compare_while(text: str, change: Callable[[Ir[Allocator], MetricAllocator[Arena[PageAlloc]]], object]) -> None:
    """Check that a program does the same before a change and after it, and that all memory comes back."""
    memory = MetricAllocator(Arena(PageAlloc()))
    scratch = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(text, memory, PACKAGES)
    try:
        assert verify(ir, scratch) == []
        try:
            expected = outcomes(ir, 1)
            change(ir, scratch)
            found = outcomes(ir, 1)
        except OutOfFuel:
            assume(False)
        note(print_ir(ir))
        assert found == expected
        assert scratch.live_blocks == 0
    finally:
        close_parsed(ir)
    assert memory.live_blocks == 0


@slow
@given(st.randoms(use_true_random=False))
def test_passes_in_any_order_change_nothing_that_a_program_does(random: Random) -> None:
    text = with_entry(Generator(random).program())
    note(text)
    passes = list(PASSES) * 2
    random.shuffle(passes)

    def change(ir: Ir[Allocator], scratch: MetricAllocator[Arena[PageAlloc]]) -> None:
        expected = outcomes(ir, 2)
        counts = Counts(ir, scratch)
        for name, run in passes:
            run(ir, counts)
            assert verify(ir, scratch) == [], name
            assert outcomes(ir, 2) == expected, name
            check_counts(ir, counts)
        counts.close()

    compare_while(text, change)


@slow
@given(st.randoms(use_true_random=False))
def test_the_pipeline_changes_nothing_that_a_program_does(random: Random) -> None:
    text = with_entry(Generator(random).program())
    note(text)
    compare_while(text, lambda ir, scratch: optimise(ir, scratch, verify=True))


@slow
@given(st.randoms(use_true_random=False))
def test_the_printed_form_of_an_optimised_program_reads_back(random: Random) -> None:
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(with_entry(Generator(random).program()), memory, PACKAGES)
    optimise(ir, memory)
    text = print_ir(ir)
    again = parse_ir(text, memory, PACKAGES)
    assert print_ir(again) == text
    assert lines(text)
    close_parsed(again)
    close_parsed(ir)
    assert memory.live_blocks == 0
