"""unreachable: removes blocks that no path from the first block of their function leads to.

b0:                          b0:
    jmp b2                       jmp b1
b1:                      =>  b1:
    ret %v0                      ret %v1
b2:
    ret %v1
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.ir.blocks import unlink_blocks
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.ir.passes.counts import Counts


def unreachable(ir: Ir[Allocator], counts: Counts) -> i64:
    """Remove unreachable blocks; return how many."""
    reached: Vec[Allocator] = Vec(counts.scratch, "B")
    pending: Vec[Allocator] = Vec(counts.scratch, "I")
    try:
        reached.fill(0, ir.block_count)
        _reach(ir, reached.items, pending)
        return _remove(ir, reached.items, counts)
    finally:
        pending.close()
        reached.close()


def _reach(ir: Ir[Allocator], reached: Cells, pending: Vec[Allocator]) -> None:
    pool = ir.pool.items
    for function in range(1, ir.function_count):
        first: i64 = ir.function_first[function]
        reached[first] = 1
        pending.append_i64(first)
        while len(pending):
            terminator: i64 = ir.block_last[pending.pop_i64()]
            for index in range(edge_count(ir, terminator)):
                target: i64 = pool[edge_at(ir, terminator, index) + 1]
                if not reached[target]:
                    reached[target] = 1
                    pending.append_i64(target)


def _remove(ir: Ir[Allocator], reached: Cells, counts: Counts) -> i64:
    count = 0
    for block in range(1, ir.block_count):
        if ir.block_function[block] and not reached[block]:
            counts.leave_out(block)
            ir.block_function[block] = 0
            ir.block_first[block] = 0
            ir.block_last[block] = 0
            ir.block_params[block] = 0
            count += 1
    if count:
        unlink_blocks(ir)
    return count
