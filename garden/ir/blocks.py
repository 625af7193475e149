"""Blocks: predecessors, order and removal of blocks, and the removal of instructions.

Lists of blocks and of instructions are singly linked, so a pass only marks what it removes: a block by function 0, an
instruction by `NOP`. `unlink_blocks` and `unlink_noops` take what is marked out of the lists, all at once.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count


def count_predecessors(ir: Ir[Allocator], scratch: Allocator) -> Vec[Allocator]:
    """How many edges lead to each block, and one more to the first of a function: a Vec 'I' that the caller closes."""
    counts: Vec[Allocator] = Vec(scratch, "I")
    try:
        counts.fill(0, ir.block_count)
        data = counts.items
        pool = ir.pool.items
        for function in range(1, ir.function_count):
            data[ir.function_first[function]] += 1
        for block in range(1, ir.block_count):
            terminator: i64 = ir.block_last[block] if ir.block_function[block] else 0
            for index in range(edge_count(ir, terminator)):
                data[pool[edge_at(ir, terminator, index) + 1]] += 1
    except BaseException:
        counts.close()
        raise
    return counts


def postorder(ir: Ir[Allocator], function: i64, order: Vec[Allocator], visited: Cells, pending: Vec[Allocator]) -> None:
    """Append to `order` the reachable blocks of a function, each after all that it leads to.

    `order` is a Vec 'I'. `visited` has a byte for each block, 0 for all of this function, 1 afterwards for those
    reached. `pending` is an empty Vec 'i' for the search.
    """
    pool = ir.pool.items
    pending.append_i64(ir.function_first[function])
    while len(pending):
        block: i64 = pending.pop_i64()
        if block < 0:
            order.append_i64(-block)
        elif not visited[block]:
            visited[block] = 1
            # Met again when all that it leads to is done.
            pending.append_i64(-block)
            terminator: i64 = ir.block_last[block]
            for index in range(edge_count(ir, terminator) - 1, -1, -1):
                target: i64 = pool[edge_at(ir, terminator, index) + 1]
                if not visited[target]:
                    pending.append_i64(target)


def unlink_blocks(ir: Ir[Allocator]) -> None:
    """Take the blocks of function 0 out of every layout."""
    alive = ir.block_function
    nexts = ir.block_next
    for function in range(1, ir.function_count):
        last = 0
        block: i64 = ir.function_first[function]
        while block:
            after: i64 = nexts[block]
            if alive[block]:
                if last:
                    nexts[last] = block
                else:
                    ir.function_first[function] = block
                last = block
            else:
                nexts[block] = 0
            block = after
        if last:
            nexts[last] = 0
        ir.function_last[function] = last


def unlink_noops(ir: Ir[Allocator]) -> None:
    """Take every `NOP` out of its block."""
    ops = ir.op
    nexts = ir.next
    for block in range(1, ir.block_count):
        inst: i64 = ir.block_first[block] if ir.block_function[block] else 0
        last = 0
        gap = False
        while inst:
            if ops[inst] == op.NOP:
                gap = True
            else:
                if gap:
                    link(ir, block, last, inst)
                    gap = False
                last = inst
            inst = nexts[inst]
        if gap and last:
            nexts[last] = 0
            ir.block_last[block] = last


def link(ir: Ir[Allocator], block: i64, before: i64, inst: i64) -> None:
    """Let an instruction follow another one of a block, or be its first where that is 0."""
    if before:
        ir.next[before] = inst
    else:
        ir.block_first[block] = inst


def unlink(ir: Ir[Allocator], block: i64, inst: i64) -> bool:
    """Take an instruction, not the last, out of a block; whether it stood there. Takes time for what is before it."""
    nexts = ir.next
    before = 0
    other: i64 = ir.block_first[block]
    while other and other != inst:
        before = other
        other = nexts[other]
    if other == 0:
        return False
    link(ir, block, before, nexts[inst])
    return True


def make_noop(ir: Ir[Allocator], inst: i64) -> None:
    """Turn an instruction whose result is never used into `NOP`."""
    ir.op[inst] = op.NOP
    ir.type[inst] = 0
    ir.a[inst] = 0
    ir.b[inst] = 0
    ir.c[inst] = 0
    ir.d[inst] = 0
    ir.imm[inst] = 0


def first_real(ir: Ir[Allocator], block: i64) -> i64:
    """The first instruction of a block that is no `NOP`."""
    inst: i64 = ir.block_first[block]
    while ir.op[inst] == op.NOP:
        inst = ir.next[inst]
    return inst
