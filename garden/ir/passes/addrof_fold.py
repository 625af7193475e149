"""addrof_fold: what is read or written through an address inside an object uses the object itself.

    %v1:Record<x: Int> = AddrOf %v0+8
    %v2:Int = Load %v1+16             =>  %v1:Int = Load %v0+24

Any number of uses fold; the address goes when none is left.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from garden.common import MAX_IMM
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts


def addrof_fold(ir: Ir[Allocator], counts: Counts) -> i64:
    """Add the offsets of addresses to those of their uses; return how many."""
    ops = ir.op
    nexts = ir.next
    count = 0
    for function in range(1, ir.function_count):
        block: i64 = ir.function_first[function]
        while block:
            inst: i64 = ir.block_first[block]
            while inst:
                opcode: i64 = ops[inst]
                if opcode in (op.LOAD, op.ADDROF, op.STORE):
                    base = ir.b if opcode == op.STORE else ir.a
                    address: i64 = base[inst]
                    if ops[address] == op.ADDROF:
                        offset: i64 = ir.imm[inst] + ir.imm[address]
                        if offset <= MAX_IMM:
                            base[inst] = ir.a[address]
                            ir.imm[inst] = offset
                            count += 1
                inst = nexts[inst]
            block = ir.block_next[block]
    if count:
        counts.forget_uses()
    return count
