"""The order of blocks, and what their ranks say about which block leads to which."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from allocators import Allocator, PageAlloc
from garden.ir import ir as op
from garden.ir.builder import Builder
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.ir.order import BlockOrder
from garden.types.types import INT
from tests.support.bytecode_generator import Generator, empty_program


def targets(ir: Ir[Any], block: int) -> list[int]:
    row = ir.block_last[block]
    return [ir.pool.data[edge_at(ir, row, index) + 1] for index in range(edge_count(ir, row))]


def reached(ir: Ir[Any], first: int) -> dict[int, set[int]]:
    """By block that can be reached: the blocks that it leads to."""
    found: dict[int, set[int]] = {}
    pending = [first]
    while pending:
        block = pending[-1]
        missing = [target for target in targets(ir, block) if target not in found]
        if missing:
            pending.extend(missing)
        else:
            pending.pop()
            found[block] = set()
            for target in targets(ir, block):
                found[block] |= {target, *found[target]}
    return found


def dominator(ir: Ir[Any], first: int, block: int, leads_to: dict[int, set[int]]) -> int:
    """The last block that every path to `block` leads through, found by taking blocks away one by one."""
    closest = first
    for other in leads_to:
        if other in (first, block) or block not in leads_to[other]:
            continue
        pending = [first]
        seen = {other}
        while pending:
            at = pending.pop()
            if at not in seen:
                seen.add(at)
                pending.extend(targets(ir, at))
        if block not in seen and other in leads_to[closest]:
            closest = other
    return closest


def nested(joins: bool) -> Ir[Allocator]:
    """A match of three arms, the middle one a match again, that meet behind it or not."""
    ir = empty_program(PageAlloc())
    ir.add_function(0, 3, 0, 0)
    blocks = [ir.add_block(1) for _ in range(8)]
    subject = Builder(ir, blocks[0]).const(INT, 1, 0)

    def edge(index: int) -> int:
        return ir.add_list([blocks[index]])

    def branch(index: int, yes: int, no: int) -> None:
        row = ir.add(op.BRANCH_CMP_IMM, 0, 0, a=subject, b=op.IEQ_IMM, c=edge(yes), d=edge(no))
        ir.append(blocks[index], row)

    branch(0, 1, 2)
    branch(2, 3, 6)
    branch(3, 4, 5)
    for index in (1, 4, 5, 6):
        if joins:
            Builder(ir, blocks[index]).jump(edge(7), 0)
        else:
            Builder(ir, blocks[index]).ret(subject, 0)
    Builder(ir, blocks[7]).ret(subject, 0)
    return ir


def analyse(ir: Ir[Any]) -> BlockOrder:
    order = BlockOrder(ir, PageAlloc())
    order.prepare()
    order.analyse(1)
    order.rank()
    return order


@pytest.mark.parametrize("joins", [False, True])
def test_nested_matches_stand_as_in_the_source(joins: bool) -> None:
    ir = nested(joins)
    order = analyse(ir)
    assert list(order.blocks) == [1, 2, 3, 4, 5, 6, 7, 8] if joins else [1, 2, 3, 4, 5, 6, 7]
    assert [order.dominators.data[block] for block in order.blocks] == [0, 1, 1, 3, 4, 4, 3, 1][: len(order.blocks)]
    order.close()


@pytest.mark.parametrize("joins", [False, True])
def test_in_nested_matches_ranks_say_exactly_what_leads_where(joins: bool) -> None:
    ir = nested(joins)
    order = analyse(ir)
    leads_to = reached(ir, ir.function_first[1])
    blocks = list(order.blocks)
    for place, block in enumerate(blocks):
        for later in blocks[place + 1 :]:
            assert (order.ranks.data[block] < order.ranks.data[later]) == (later in leads_to[block])
    order.close()


@pytest.mark.parametrize("seed", range(25))
def test_any_control_flow_is_ordered_soundly(bytecode: Any, seed: int) -> None:
    ir = bytecode.keep(empty_program(bytecode.memory))
    Generator(Random(seed), ir, most_parameters=2, size=30).program(1)
    order = BlockOrder(ir, bytecode.scratch)
    try:
        order.prepare()
        order.analyse(1)
        order.rank()
        first = ir.function_first[1]
        leads_to = reached(ir, first)
        blocks = list(order.blocks)
        assert sorted(blocks) == sorted(leads_to)
        place = {block: index for index, block in enumerate(blocks)}
        for block in blocks:
            for target in leads_to[block]:
                assert place[block] < place[target]
                assert order.ranks.data[block] < order.ranks.data[target]
            assert order.predecessors.data[block] == sum([targets(ir, other).count(block) for other in blocks])
            if block != first:
                assert order.dominators.data[block] == dominator(ir, first, block, leads_to)
        # What a block dominates follows it at once.
        for block in blocks:
            below = [other for other in blocks if _is_below(order, other, block)]
            assert [place[other] for other in below] == list(range(place[block], place[block] + len(below)))
    finally:
        order.close()


def _is_below(order: BlockOrder, block: int, above: int) -> bool:
    while block and block != above:
        block = order.dominators.data[block]
    return block == above
