"""merge_blocks: a block that only one jump leads to continues the block of that jump.

b0:                          b0:
    %v1:Int = IAdd %v0, 1        %v1:Int = IAdd %v0, 1
    jmp b1               =>      ret %v1
b1:
    ret %v1
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections.storage import Cells
from garden.ir import ir as op
from garden.ir.blocks import make_noop, unlink_blocks, unlink_noops
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts


def merge_blocks(ir: Ir[Allocator], counts: Counts) -> i64:
    """Append blocks without parameters to their only predecessor; return how many."""
    predecessors = counts.predecessors()
    count = 0
    for block in range(1, ir.block_count):
        if ir.block_function[block]:
            count += _extend(ir, block, predecessors)
    if count:
        unlink_noops(ir)
        unlink_blocks(ir)
    return count


def _extend(ir: Ir[Allocator], block: i64, predecessors: Cells) -> i64:
    count = 0
    while True:
        jump: i64 = ir.block_last[block]
        if ir.op[jump] != op.JUMP:
            return count
        target: i64 = ir.pool.items[ir.c[jump] + 1]
        if predecessors[target] != 1 or ir.block_params[target]:
            return count
        make_noop(ir, jump)
        ir.next[jump] = ir.block_first[target]
        ir.block_last[block] = ir.block_last[target]
        ir.block_function[target] = 0
        ir.block_first[target] = 0
        ir.block_last[target] = 0
        predecessors[target] = 0
        count += 1
