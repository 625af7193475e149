"""tailcall: a call whose result is returned at once becomes a tail call, of whatever function.

    %v1:Int = Call f1(%v0)
    ret %v1                  =>  tail f1(%v0)

`entry` keeps its calls: it runs once, and backtraces begin with it.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from garden.ir import ir as op
from garden.ir.blocks import unlink
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts


def tailcall(ir: Ir[Allocator], counts: Counts) -> i64:
    """Make tail calls; return how many."""
    count = 0
    entry = ir.function_count - 1
    for block in range(1, ir.block_count):
        if ir.block_function[block] and ir.block_function[block] != entry:
            ret: i64 = ir.block_last[block]
            if ir.op[ret] == op.RET:
                call = _before(ir, block, ret)
                if ir.op[call] == op.CALL and ir.a[ret] in (0, call):
                    if counts.uses_are_known:
                        counts.uses()[ir.a[ret]] -= 1
                    ir.op[ret] = op.TAIL
                    ir.a[ret] = ir.a[call]
                    ir.b[ret] = ir.b[call]
                    ir.pos[ret] = ir.pos[call]
                    unlink(ir, block, call)
                    count += 1
    return count


def _before(ir: Ir[Allocator], block: i64, last: i64) -> i64:
    """The instruction before the last one of a block, 0 if there is none."""
    ops = ir.op
    nexts = ir.next
    before = 0
    inst: i64 = ir.block_first[block]
    while inst != last:
        if ops[inst] != op.NOP:
            before = inst
        inst = nexts[inst]
    return before
