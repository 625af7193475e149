"""branch_cmp: a comparison that only the branch of its block uses becomes part of the branch.

    %v1:Bool = IEq %v0, 0
    br %v1, b1, b2           =>  br_imm IEq %v0, 0, b1, b2

A branch on an Int cast to Bool compares it with 0.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from garden.ir.blocks import unlink
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
    OPS,
    SEQ,
    SNE,
    Ir,
)
from garden.ir.passes.counts import Counts


def _may_fuse(op: int) -> bool:
    return op in (ILT, ILE, IEQ, INE, DLT, DLE, SEQ, SNE, ILT_IMM, IGT_IMM, IEQ_IMM, INE_IMM, INT_TO_BOOL)


_MAY_FUSE: Final = bytes([_may_fuse(op) for op in range(max(OPS) + 1)])


def branch_cmp(ir: Ir[Allocator], counts: Counts) -> int:
    """Fuse comparisons with branches; return how many."""
    uses = counts.uses()
    op = ir.op
    count = 0
    for block in range(1, ir.block_count):
        branch: int = ir.block_last[block] if ir.block_function[block] else 0
        if op[branch] == BRANCH:
            condition: int = ir.a[branch]
            if uses[condition] == 1 and _MAY_FUSE[op[condition]] and unlink(ir, block, condition):
                _fuse(ir, branch, condition)
                uses[condition] = 0
                count += 1
    return count


def _fuse(ir: Ir[Allocator], branch: int, condition: int) -> None:
    op: int = ir.op[condition]
    if op in (ILT_IMM, IGT_IMM, IEQ_IMM, INE_IMM):
        ir.op[branch] = BRANCH_CMP_IMM
        ir.b[branch] = op
        ir.imm[branch] = ir.imm[condition]
    elif op == INT_TO_BOOL:
        ir.op[branch] = BRANCH_CMP_IMM
        ir.b[branch] = INE_IMM
        ir.imm[branch] = 0
    else:
        ir.op[branch] = BRANCH_CMP
        ir.b[branch] = ir.b[condition]
        ir.imm[branch] = op
    ir.a[branch] = ir.a[condition]
