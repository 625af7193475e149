"""ret_inline: a jump to a block that only returns is a return.

b1:                      b1:
    jmp b3(%v1)              ret %v1
b2:                  =>  b2:
    jmp b3(%v2)              ret %v2
b3(%v3:Int):
    ret %v3
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from garden.ir import ir as op
from garden.ir.blocks import first_real
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts
from garden.ir.passes.unreachable import unreachable


def ret_inline(ir: Ir[Allocator], counts: Counts) -> i64:
    """Turn jumps into returns; return how many."""
    count = 0
    # The join of an inner match comes before that of an outer one.
    for block in range(ir.block_count - 1, 0, -1):
        jump: i64 = ir.block_last[block] if ir.block_function[block] else 0
        if ir.op[jump] == op.JUMP:
            edge: i64 = ir.c[jump]
            target: i64 = ir.pool.items[edge + 1]
            ret = first_real(ir, target)
            if ir.op[ret] == op.RET:
                ir.op[jump] = op.RET
                ir.a[jump] = _argument(ir, edge, ir.block_params[target], ir.a[ret])
                ir.c[jump] = 0
                count += 1
    if count:
        counts.forget_uses()
        counts.forget_predecessors()
        unreachable(ir, counts)
    return count


def _argument(ir: Ir[Allocator], edge: i64, parameters: i64, value: i64) -> i64:
    """What an edge gives for `value`, if that is one of the parameters, else the value itself."""
    pool = ir.pool.items
    for position in range(1, pool[parameters] + 1):
        if pool[parameters + position] == value:
            argument: i64 = pool[edge + 1 + position]
            return argument
    return value
