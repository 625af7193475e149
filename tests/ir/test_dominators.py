"""Dominators, against their definition."""

from __future__ import annotations

from random import Random

import pytest

from allocators import Allocator, Arena, MetricAllocator, PageAlloc
from garden.ir.dominators import Dominators
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.ir.parser import close_parsed, parse_ir


def random_graph(random: Random, count: int) -> str:
    """A function of `count` blocks with random edges to later ones; some cannot be reached."""
    blocks = []
    for number in range(count):
        kind = random.random()
        yes, no = (random.randrange(number + 1, max(count, number + 2)) for _ in range(2))
        if kind < 0.15 or number == count - 1:
            blocks.append("ret")
        else:
            blocks.append(f"jmp b{yes}" if kind < 0.5 else f"br %v0, b{yes}, b{no}")
    body = "\n".join([f"b{number}:\n{end}" for number, end in enumerate(blocks) if number])
    return f"fn f1(%v0) {{\nb0(%v0:Bool):\n{blocks[0]}\n{body}\n}}"


def reachable(ir: Ir[Allocator], without: int) -> set[int]:
    """The blocks that there is a path to which does not lead through one of them."""
    first = ir.function_first[1]
    found = set() if first == without else {first}
    pending = list(found)
    while pending:
        terminator = ir.block_last[pending.pop()]
        for index in range(edge_count(ir, terminator)):
            target = ir.pool.data[edge_at(ir, terminator, index) + 1]
            if target != without and target not in found:
                found.add(target)
                pending.append(target)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_block_dominates_what_cannot_be_reached_without_it(seed: int) -> None:
    random = Random(seed)
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(random_graph(random, random.randint(2, 14)), memory)
    dominators = Dominators(ir, memory)
    blocks = range(1, ir.block_count)
    everything = reachable(ir, 0)
    assert {block for block in blocks if dominators.reachable(block)} == everything
    for above in everything:
        dominated = everything - reachable(ir, above)
        assert {block for block in everything if dominators.dominates(above, block)} == dominated
    dominators.close()
    close_parsed(ir)
    assert memory.live_blocks == 0
