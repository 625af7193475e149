"""Generated programs do on every engine and at every level, and with few registers, what the evaluator says.

With GARDEN_LONG=1 in the environment these are 40,000 programs, other ones each time.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from hypothesis import HealthCheck, assume, event, given, note, settings
from hypothesis import strategies as st

from allocators import Arena, PageAlloc
from garden.bytecode.ops import REGISTERS
from garden.bytecode.regalloc import FEWEST_REGISTERS
from garden.diagnostics import Diagnostic
from garden.syntax.parser import Parser
from tests.support.annotations import LEVELS
from tests.support.ast_evaluator import Evaluator, OutOfSteps, Trapped
from tests.support.engines import ENGINES, OF_BYTECODE
from tests.support.program import Program
from tests.support.program_generator import generate

LONG = os.environ.get("GARDEN_LONG") == "1"
MAX_STEPS = 20_000


@st.composite
def programs(draw: st.DrawFn) -> str:
    """The text of a well-typed program that ends."""
    return generate(lambda count: draw(st.integers(0, count - 1)))


def evaluate(program: Program) -> tuple[str, str]:
    """What a program writes, and its trap with line and column if it has one, as the evaluator sees it."""
    diagnostics: list[Diagnostic] = []
    with Arena(PageAlloc()) as memory:
        ast = Parser(memory, memory, diagnostics).parse(program.source)
        try:
            assert not diagnostics, diagnostics[0].render(program.source)
            evaluator = Evaluator(ast, MAX_STEPS)
            try:
                evaluator.run()
            except Trapped as trap:
                return evaluator.output, described(program, trap.code, trap.offset)
            return evaluator.output, ""
        finally:
            ast.close()


def described(program: Program, code: str, offset: int) -> str:
    line, column = program.source.position(offset)
    return f"{code} at {line}:{column}"


def check(text: str, registers: int) -> str:
    """Compare all with the evaluator, and return how the program ends: with a trap, or empty."""
    program = Program("generated", text)
    expected = evaluate(program)
    for engine in ENGINES:
        scarce = [(1, registers)] if engine in OF_BYTECODE else []
        for level, available in [*[(level, REGISTERS) for level in LEVELS], *scarce]:
            diagnostics, outcome = program.run(engine, level, registers=available)
            assert outcome is not None, diagnostics[0].render(program.source)
            trap = outcome.trap
            got = outcome.output, "" if trap is None else described(program, trap.code, trap.offset)
            assert got == expected, f"{engine} at -O{level} with {available} registers:\n{text}"
    return expected[1]


@given(programs(), st.integers(FEWEST_REGISTERS, 12))
@settings(
    max_examples=20_000 if LONG else 30,
    deadline=None,
    derandomize=not LONG,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
def test_a_generated_program_means_the_same_everywhere(text: str, registers: int) -> None:
    note(text)
    try:
        trap = check(text, registers)
    except OutOfSteps:
        assume(False)
    event(f"ends with {trap[:5] or 'its last item'}")


@pytest.mark.parametrize("part", range(4))
def test_a_random_program_means_the_same_everywhere(part: int) -> None:
    """The choices of Hypothesis lead to small programs, which shrink well; these ones are large."""
    first = time.time_ns() if LONG else 0
    for index in range(part, 20_000 if LONG else 40, 4):
        choices = random.Random(first + index)
        try:
            check(generate(choices.randrange), choices.randint(FEWEST_REGISTERS, 12))
        except OutOfSteps:
            continue
