"""Parallel moves do what happening all at once would do, in as few instructions as can be."""

from __future__ import annotations

from random import Random

import pytest

from allocators import PageAlloc
from allocators.collections import Interner
from garden.bytecode import ops
from garden.bytecode.assembler import Assembler
from garden.bytecode.code import Code
from garden.bytecode.moves import ParallelMoves
from garden.bytecode.ops import a_of, b_of, op_of
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.tokens import Tokens
from garden.types.program import CheckedProgram

SCRATCH = 63


def sequence(moves: dict[int, int]) -> list[tuple[int, int]]:
    """The single moves, target and source, that are emitted for some by target."""
    allocator = PageAlloc()
    ast = Ast(allocator, Source("test", b""), Interner(allocator), Tokens(allocator))
    checked = CheckedProgram(allocator, ast)
    code = Code(allocator, checked)
    assembler = Assembler(code)
    parallel = ParallelMoves()
    for target, source in moves.items():
        parallel.add(target, source)
    parallel.emit(assembler, SCRATCH)
    assert parallel.count == 0
    assembler.finish()
    words = list(code.words)
    for thing in (code, checked, ast):
        thing.close()
    assert all([op_of(word) == ops.MOV for word in words])
    return [(a_of(word), b_of(word)) for word in words]


def cycles(moves: dict[int, int]) -> int:
    """How many groups of registers only change places."""
    found = 0
    left = dict(moves)
    for start in moves:
        ring = []
        at = start
        while at in left and at not in ring:
            ring.append(at)
            at = left[at]
        if ring and at == start and all([list(moves.values()).count(register) == 1 for register in ring]):
            found += 1
            for register in ring:
                del left[register]
    return found


def check(moves: dict[int, int]) -> None:
    registers = list(range(64))
    emitted = sequence(moves)
    for target, source in emitted:
        registers[target] = registers[source]
    for register in range(SCRATCH):
        assert registers[register] == moves.get(register, register)
    assert len(emitted) == len(moves) + cycles(moves)


@pytest.mark.parametrize(
    "moves",
    [
        {},
        {0: 1},
        {0: 1, 1: 2},
        {1: 0, 2: 1},
        {0: 1, 1: 0},
        {0: 1, 1: 2, 2: 0},
        {0: 1, 1: 0, 2: 3, 3: 2},
        {0: 1, 1: 0, 2: 0},
        {0: 5, 1: 5, 2: 5},
    ],
)
def test_moves_happen_all_at_once(moves: dict[int, int]) -> None:
    check(moves)


@pytest.mark.parametrize("seed", range(100))
def test_random_moves_happen_all_at_once(seed: int) -> None:
    random = Random(seed)
    span = random.choice((4, 8, 63))
    targets = random.sample(range(span), random.randint(1, span))
    if random.random() < 0.5:
        sources = random.sample(targets, len(targets))
    else:
        sources = [random.randrange(span) for _ in targets]
    check({target: source for target, source in zip(targets, sources, strict=True) if target != source})
