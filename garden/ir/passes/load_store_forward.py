"""load_store_forward: what a block has stored or loaded is not loaded again.

    Store %v1+8, %v0             Store %v1+8, %v0
    %v2:Int = Load %v1+8     =>  ret %v0
    ret %v2

Rests on what garden programs are: a record or an array is written only by the block that has allocated it, before
anybody else can look, so calls change nothing that is already there. A store through a fresh object leaves other fresh
objects alone, but not what was loaded through an address of unknown origin; a store through such an address makes
everything uncertain.
"""

from __future__ import annotations

from allocators import Allocator
from allocators.collections import Vec
from garden.ir.blocks import make_noop, unlink_noops
from garden.ir.ir import ALLOC, LOAD, STORE, Ir
from garden.ir.operands import replace_uses
from garden.ir.passes.available import Available


def load_store_forward(ir: Ir[Allocator], scratch: Allocator) -> int:
    """Replace loads by what is known to be there; return how many."""
    replacement: Vec[Allocator] = Vec(scratch, "I")
    available = Available(scratch)
    try:
        replacement.fill(0, ir.value_count)
        count = 0
        for block in range(1, ir.block_count):
            if ir.block_function[block]:
                available.clear()
                count += _scan(ir, block, replacement.data, available)
        if count:
            replace_uses(ir, replacement.data)
            unlink_noops(ir)
        return count
    finally:
        available.close()
        replacement.close()


def _scan(ir: Ir[Allocator], block: int, replacement: memoryview, available: Available) -> int:
    op = ir.op
    nexts = ir.next
    count = 0
    # How often what was known of fresh objects, and of all others, has become uncertain: part of the keys.
    fresh = 0
    other = 0
    inst: int = ir.block_first[block]
    while inst:
        opcode: int = op[inst]
        if opcode == STORE:
            base: int = ir.b[inst]
            base = replacement[base] or base
            other += 1
            if op[base] != ALLOC:
                fresh += 1
            value: int = ir.a[inst]
            available.set(fresh if op[base] == ALLOC else other, base, 0, ir.imm[inst], replacement[value] or value)
        elif opcode == LOAD:
            base = ir.a[inst]
            base = replacement[base] or base
            epoch = fresh if op[base] == ALLOC else other
            known = available.get(epoch, base, 0, ir.imm[inst])
            if known and ir.type[known] == ir.type[inst]:
                replacement[inst] = known
                make_noop(ir, inst)
                count += 1
            else:
                available.set(epoch, base, 0, ir.imm[inst], inst)
        inst = nexts[inst]
    return count
