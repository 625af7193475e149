"""Superinstructions: that they are found where they are, and do what their instructions do, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

import pytest

from allocators import Arena, Block, Layout, PageAlloc
from allocators.adaptors.adaptor import Adaptor
from allocators.collections import Interner
from allocators.stack import StackAlloc
from garden.bytecode import ops
from garden.bytecode.code import Code
from garden.bytecode.ops import encode
from garden.bytecode.superinstructions import (
    CODES,
    FIRST,
    SUPERINSTRUCTIONS,
    Run,
    is_conditional,
    leaves,
    parse,
    preference,
)
from garden.errors import Trap
from garden.host import HostFunction
from garden.native.cache import Cache
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine, interpreter_object
from garden.native.run.jit import externals
from garden.native.target import host_target
from garden.run_options import RunOptions
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.tokens import Tokens
from garden.types.program import CheckedProgram
from garden.types.types import Int
from garden.vm.heap import FIRST_CHUNK
from garden.vm.machine import ReferenceMachine
from tests.support.encoding import encode_imm16

pytestmark = pytest.mark.skipif(host_target() is None, reason="there is no native code for this system")

RUNS: Final = [parse(text) for text in SUPERINSTRUCTIONS]
#: Few of them, so that instructions often have the same ones.
REGISTERS: Final = 5
CONSTANTS: Final = (4609434218613702656, -7, 3, 0, 0, -2, 3, 77, 10, 11, 12)
TABLE: Final = 4
#: Always has the address of `MEMORY_BYTES` bytes. The words in their first half are that address, too.
MEMORY: Final = 15
MEMORY_BYTES: Final = 64
#: The operands that are addresses, as their places in a word.
ADDRESSES: Final = {ops.LOAD: (2,), ops.STORE: (1,), ops.COPY: (1, 2)}


def random_word(code: int, target: int) -> int:
    """An instruction with operands that it can be executed with."""
    entry = ops.OPS[code]
    fields = [
        random.randrange(REGISTERS) if kind in (ops.SOURCE, ops.DEST) else 1 if kind == ops.COUNT else 0
        for kind in (entry.a, entry.b, entry.c)
    ]
    imm = {
        ops.TARGET: target,
        ops.IMM: random.choice([0, 1, -1, 2, 3, 1000, -(1 << 31)]),
        ops.CONSTANT: TABLE if code in (ops.LOOKUP, ops.SWITCH) else random.randrange(3),
        ops.SLOT: random.randrange(3),
        ops.HOST: 0,
    }.get(entry.imm, 2 if code == ops.DROP else 0)
    if code in ADDRESSES:
        # What is loaded may be an address, and what is stored may not.
        half = MEMORY_BYTES // 2
        imm = {
            ops.LOAD: random.choice([0, half - 8, half, MEMORY_BYTES - 8]),
            ops.STORE: random.choice([half, MEMORY_BYTES - 8]),
            ops.COPY: half,
        }[code]
    if entry.b == ops.IMM16:
        return encode_imm16(code, fields[0], random.choice([0, 1, 2, -1]), imm)
    return encode(code, fields[0], fields[1], fields[2], imm)


def begins(words: list[int], start: int, run: Run) -> bool:
    """Whether a run begins at a word, by what `superinstructions` says of how runs are written."""
    if start + len(run) > len(words):
        return False
    # The words that have last written a register on the way to each word of the run.
    writers: list[dict[int, int] | None] = [{}] + [None] * len(run)
    for index, step in enumerate(run):
        word = words[start + index]
        if word & 0xFF != step.code:
            return False
        entry = ops.OPS[step.code]
        known = dict(writers[index] or {})
        for place, (kind, back) in enumerate(zip((entry.a, entry.b, entry.c), step.back, strict=True), 1):
            register = word >> 8 * place & 0xFF
            if back and (kind != ops.SOURCE or known.get(register) != (index - back) * 4 + 1):
                return False
        for place, kind in enumerate((entry.a, entry.b, entry.c), 1):
            if kind == ops.DEST:
                known[word >> 8 * place & 0xFF] = index * 4 + place
        if step.skip:
            if word >> 32 != start + index + step.skip:
                return False
            writers[index + step.skip] = dict(known)
        if not leaves(step.code):
            writers[index + 1] = known
    return True


def best(words: list[int], start: int) -> int:
    """The code that a word should have."""
    fitting = [(preference(run), code) for code, run in enumerate(RUNS, FIRST) if begins(words, start, run)]
    return max(fitting)[1] if fitting else words[start] & 0xFF


class SameMemory(Adaptor[Arena[PageAlloc]]):
    """Gives the heaps of machines the same memory, one after the other: so addresses of theirs can be compared."""

    def __init__(self, parent: Arena[PageAlloc]) -> None:
        super().__init__(parent)
        self.chunk = parent.allocate(Layout(FIRST_CHUNK, 8))

    def allocate(self, layout: Layout) -> Block:
        if layout.size != FIRST_CHUNK:
            return self.parent.allocate(layout)
        self.chunk.view[:FIRST_CHUNK] = bytes(FIRST_CHUNK)
        return self.chunk

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block is not self.chunk:
            self.parent.deallocate(block, layout)


class Bench:
    """Makes machines of words. A function 1 begins at the first of them and has ten parameters."""

    def __init__(self) -> None:
        self.allocator = SameMemory(Arena(PageAlloc()))
        symbols: Interner[Any] = Interner(self.allocator)
        symbols.intern(b"")
        ast = Ast(self.allocator, Source("test", b""), symbols, Tokens(self.allocator))
        self.checked: CheckedProgram[Any] = CheckedProgram(self.allocator, ast)
        self.checked.hosts.append(HostFunction("test", "add", (("n", Int),), Int, lambda n: (n + 5) % 100))
        target = host_target()
        assert target is not None
        self.object = interpreter_object(target, Cache())

    def code(self, words: list[int]) -> Code[Any]:
        code: Code[Any] = Code(self.allocator, self.checked)
        code.words.extend(words)
        code.constants.extend(CONSTANTS)
        code.positions.extend(range(len(words)))
        code.functions.append(0, 0, len(words), 10)
        return code

    def machine(self, code: Code[Any], **options: Any) -> InterpreterMachine:
        return InterpreterMachine(
            code, Image(self.object, PageAlloc(), externals()), self.allocator, RunOptions(**options)
        )


@pytest.fixture
def bench() -> Iterator[Bench]:
    random.seed(1)
    bench = Bench()
    yield bench
    bench.allocator.close()


def test_every_run_is_another_one() -> None:
    assert len(set(RUNS)) == len(RUNS)
    assert len(set(SUPERINSTRUCTIONS)) == len(SUPERINSTRUCTIONS) <= CODES - FIRST


@pytest.mark.parametrize("text", ["", "  "])
def test_no_instructions_are_an_empty_run(text: str) -> None:
    assert parse(text) == ()


@pytest.mark.parametrize("text", ["add", "iadd+", "iadd(d=1)", "mov;ret", "jmplt+12 ret"])
def test_what_is_no_instruction_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no instruction"):
        parse(text)


@pytest.mark.parametrize("text", SUPERINSTRUCTIONS)
def test_there_is_one_way_to_every_word_of_a_run(text: str) -> None:
    run = parse(text)
    assert len(run) > 1
    ways = [0] * (len(run) + 1)
    ways[0] = 1
    for index, step in enumerate(run):
        if step.skip:
            assert is_conditional(step.code)
            ways[index + step.skip] += 1
        if not leaves(step.code):
            ways[index + 1] += 1
    assert ways[:-1] == [1] * len(run)
    assert ways[-1] <= 1


def before(run: Run) -> list[int]:
    """Words that make the memory, and push what is popped; that is an address where the run may take it for one."""
    words = [encode(ops.ALLOC, MEMORY, imm=MEMORY_BYTES)]
    for index in range(MEMORY_BYTES // 8):
        value = MEMORY if index < MEMORY_BYTES // 16 else 5 + index
        words.append(encode(ops.STORE, MEMORY, value, imm=8 * index))
    known = any([step.back[place - 1] for step in run for place in ADDRESSES.get(step.code, ())])
    pushed = [MEMORY] * 6 if known else [5, 6, 7, 8, 9, 5]
    return [*words, encode(ops.PUSH3, *pushed[:3]), encode(ops.PUSH3, *pushed[3:])]


def planted(run: Run) -> tuple[list[int], int]:
    """Words that are a run, and where it begins. Then come a HALT, and places to jump to, which tell that control was
    there."""
    words = before(run)
    start = len(words)
    end = start + len(run)
    for step in run:
        target = len(words) + step.skip if step.skip else random.choice([end + 1, end + 3])
        word = random_word(step.code, target)
        registers = dict.fromkeys(ADDRESSES.get(step.code, ()), MEMORY)
        registers |= {place: words[-back] >> 8 & 0xFF for place, back in enumerate(step.back, 1) if back}
        for place, register in registers.items():
            word = word & ~(0xFF << 8 * place) | register << 8 * place
        words.append(word)
    words.append(encode(ops.HALT))
    for mark in (20, 21):
        words += [encode(ops.LOAD_IMM, mark, imm=1), encode(ops.RET)]
    return words, start


def outcome(machine: Any, arguments: list[int]) -> tuple[object, list[int]]:
    """What a call of function 1 returns or traps with, and the registers then."""
    try:
        result: object = machine.call(1, arguments)
    except Trap as trap:
        result = trap.code, trap.message, trap.offset
    return result, list(machine.registers)


@pytest.mark.parametrize("run", RUNS, ids=SUPERINSTRUCTIONS)
def test_a_superinstruction_does_what_its_instructions_do(bench: Bench, run: Run) -> None:
    done = 0
    while done < 20:
        words, start = planted(run)
        if not begins(words, start, run):
            continue
        done += 1
        code = bench.code(words)
        arguments = [random.choice([0, 1, 2, 3, -1, 4609434218613702656, 1 << 62]) for _ in range(10)]
        stacks = [StackAlloc(bytearray(128)), StackAlloc(bytearray(128))]
        with ReferenceMachine(code, bench.allocator, RunOptions(spill=stacks[0])) as machine:
            expected = outcome(machine, arguments)
            memory = bytes(bench.allocator.chunk.view)
        with bench.machine(code, spill=stacks[1]) as native:
            assert [word & 0xFF for word in code.words.view] == [best(words, pc) for pc in range(len(words))]
            assert outcome(native, arguments) == expected, (words, arguments)
            assert bytes(bench.allocator.chunk.view) == memory
        assert stacks[0].pop_all(stacks[0].depth) == stacks[1].pop_all(stacks[1].depth)
        assert code.words.view.tolist() == words


def test_superinstructions_are_found_in_any_code_and_taken_back(bench: Bench) -> None:
    beginnings = [run[0].code for run in RUNS]
    for _ in range(20):
        words: list[int] = []
        while len(words) < 200:
            run = random.choice(RUNS)
            codes = [step.code for step in run] if random.random() < 0.7 else random.choices(beginnings, k=3)
            words += [random_word(code, len(words) + random.randrange(6)) for code in codes]
        code = bench.code(words)
        first = bench.machine(code)
        # What is fused already is read as what it was.
        second = bench.machine(code)
        assert [word & 0xFF for word in code.words.view] == [best(words, pc) for pc in range(len(words))]
        first.close()
        assert code.words.view.tolist() == words
        second.close()
        assert code.words.view.tolist() == words


def test_no_run_is_found_that_would_end_behind_the_code(bench: Bench) -> None:
    words = [encode(ops.IADD_IMM, 0, 0, imm=1), encode(ops.MOV, 1, 0)]
    code = bench.code(words)
    with bench.machine(code):
        assert code.words.view.tolist() == words
