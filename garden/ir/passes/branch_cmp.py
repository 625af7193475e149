"""branch_cmp: a comparison that only the branch of its block uses becomes part of the branch.

    %v1:Bool = IEq %v0, 0
    br %v1, b1, b2           =>  br_imm IEq %v0, 0, b1, b2

A branch on an Int cast to Bool compares it with 0.
"""

from __future__ import annotations

from allocators import Allocator
from garden.ir.blocks import make_noop, unlink_noops
from garden.ir.ir import (
    BRANCH,
    BRANCH_CMP,
    BRANCH_CMP_IMM,
    DLE,
    DLT,
    IEQ,
    IEQ_IMM,
    IGT_IMM,
    ILE,
    ILT,
    ILT_IMM,
    INE,
    INE_IMM,
    INT_TO_BOOL,
    SEQ,
    SNE,
    Ir,
)
from garden.ir.operands import count_uses


def branch_cmp(ir: Ir[Allocator], scratch: Allocator) -> int:
    """Fuse comparisons with branches; return how many."""
    counted = count_uses(ir, scratch)
    try:
        uses = counted.data
        count = 0
        for block in range(1, ir.block_count):
            branch: int = ir.block_last[block] if ir.block_function[block] else 0
            if ir.op[branch] == BRANCH:
                condition: int = ir.a[branch]
                if uses[condition] == 1 and _stands_in(ir, condition, block) and _fuse(ir, branch, condition):
                    count += 1
        if count:
            unlink_noops(ir)
        return count
    finally:
        counted.close()


def _stands_in(ir: Ir[Allocator], value: int, block: int) -> bool:
    nexts = ir.next
    inst: int = ir.block_first[block]
    while inst and inst != value:
        inst = nexts[inst]
    return inst != 0


def _fuse(ir: Ir[Allocator], branch: int, condition: int) -> bool:
    op: int = ir.op[condition]
    if op in (ILT_IMM, IGT_IMM, IEQ_IMM, INE_IMM):
        ir.op[branch] = BRANCH_CMP_IMM
        ir.b[branch] = op
        ir.imm[branch] = ir.imm[condition]
    elif op == INT_TO_BOOL:
        ir.op[branch] = BRANCH_CMP_IMM
        ir.b[branch] = INE_IMM
        ir.imm[branch] = 0
    elif op in (ILT, ILE, IEQ, INE, DLT, DLE, SEQ, SNE):
        ir.op[branch] = BRANCH_CMP
        ir.b[branch] = ir.b[condition]
        ir.imm[branch] = op
    else:
        return False
    ir.a[branch] = ir.a[condition]
    make_noop(ir, condition)
    return True
