"""imm_fold: a constant that is used once becomes part of the instruction that uses it.

    %v1:Int = 7                  %v1:Bool = IGt %v0, 7
    %v2:Bool = ILt %v1, %v0  =>

Immediates stand on the right and have 32 bits, so a constant on the left must be one of an operation that can be
turned round. There is no `<=` with an immediate: `x <= 7` is `x < 8`.
"""

from __future__ import annotations

from allocators import Allocator
from garden.common import MAX_IMM, MIN_IMM
from garden.ir.blocks import unlink_noops
from garden.ir.ir import (
    CONST,
    IADD,
    IADD_IMM,
    IDIV,
    IEQ,
    IEQ_IMM,
    IGT_IMM,
    ILE,
    ILT,
    ILT_IMM,
    IMOD,
    INE,
    INE_IMM,
    ISUB,
    NOP,
    Ir,
)
from garden.ir.passes.counts import Counts
from garden.types.types import INT


def imm_fold(ir: Ir[Allocator], counts: Counts) -> int:
    """Make constants immediates; return how many."""
    uses = counts.uses()
    op = ir.op
    nexts = ir.next
    count = 0
    for block in range(1, ir.block_count):
        inst: int = ir.block_first[block] if ir.block_function[block] else 0
        while inst:
            opcode: int = op[inst]
            if IADD <= opcode <= INE:
                a: int = ir.a[inst]
                b: int = ir.b[inst]
                if op[b] == CONST and uses[b] == 1 and ir.type[b] == INT:
                    if _fold(ir, inst, _on_right(opcode), a, b, 1 if opcode == ILE else 0):
                        uses[b] = 0
                        count += 1
                elif (
                    op[a] == CONST
                    and uses[a] == 1
                    and ir.type[a] == INT
                    and _fold(ir, inst, _on_left(opcode), b, a, -1 if opcode == ILE else 0)
                ):
                    uses[a] = 0
                    count += 1
            inst = nexts[inst]
    if count:
        unlink_noops(ir)
    return count


def _on_right(op: int) -> int:
    """The opcode with the right operand as immediate."""
    if op <= IMOD:
        return op - IADD + IADD_IMM
    if op in (ILT, ILE):
        return ILT_IMM
    return IEQ_IMM if op == IEQ else INE_IMM


def _on_left(op: int) -> int:
    """The opcode with the left operand as immediate, 0 where there is none."""
    if op in (ISUB, IDIV, IMOD):
        return 0
    return IGT_IMM if op in (ILT, ILE) else _on_right(op)


def _fold(ir: Ir[Allocator], inst: int, op: int, value: int, constant: int, adjust: int) -> bool:
    imm: int = ir.imm[constant] + adjust
    if op == 0 or not MIN_IMM <= imm <= MAX_IMM:
        return False
    ir.op[inst] = op
    ir.a[inst] = value
    ir.b[inst] = 0
    ir.imm[inst] = imm
    ir.op[constant] = NOP
    return True
