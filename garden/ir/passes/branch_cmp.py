"""branch_cmp: a comparison that only the branch of its block uses becomes part of the branch.

    %v1:Bool = IEq %v0, 0
    br %v1, b1, b2           =>  br_imm IEq %v0, 0, b1, b2

A branch on an Int cast to Bool compares it with 0.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64
from garden.ir import ir as op
from garden.ir.blocks import unlink
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts


def _may_fuse(opcode: i64) -> bool:
    return opcode in (
        op.ILT,
        op.ILE,
        op.IEQ,
        op.INE,
        op.DLT,
        op.DLE,
        op.SEQ,
        op.SNE,
        op.ILT_IMM,
        op.IGT_IMM,
        op.IEQ_IMM,
        op.INE_IMM,
        op.INT_TO_BOOL,
    )


_MAY_FUSE: Final = bytes([_may_fuse(opcode) for opcode in range(max(op.OPS) + 1)])


def branch_cmp(ir: Ir[Allocator], counts: Counts) -> i64:
    """Fuse comparisons with branches; return how many."""
    uses = counts.uses()
    ops = ir.op
    count = 0
    for block in range(1, ir.block_count):
        branch: i64 = ir.block_last[block] if ir.block_function[block] else 0
        if ops[branch] == op.BRANCH:
            condition: i64 = ir.a[branch]
            if uses[condition] == 1 and _MAY_FUSE[ops[condition]] and unlink(ir, block, condition):
                _fuse(ir, branch, condition)
                uses[condition] = 0
                count += 1
    return count


def _fuse(ir: Ir[Allocator], branch: i64, condition: i64) -> None:
    opcode: i64 = ir.op[condition]
    if opcode in (op.ILT_IMM, op.IGT_IMM, op.IEQ_IMM, op.INE_IMM):
        ir.op[branch] = op.BRANCH_CMP_IMM
        ir.b[branch] = opcode
        ir.imm[branch] = ir.imm[condition]
    elif opcode == op.INT_TO_BOOL:
        ir.op[branch] = op.BRANCH_CMP_IMM
        ir.b[branch] = op.INE_IMM
        ir.imm[branch] = 0
    else:
        ir.op[branch] = op.BRANCH_CMP
        ir.b[branch] = ir.b[condition]
        ir.imm[branch] = opcode
    ir.a[branch] = ir.a[condition]
