"""imm_fold: a constant that is used once becomes part of the instruction that uses it.

    %v1:Int = 7                  %v1:Bool = IGt %v0, 7
    %v2:Bool = ILt %v1, %v0  =>

Immediates stand on the right and have 32 bits, so a constant on the left must be one of an operation that can be
turned round. There is no `<=` with an immediate: `x <= 7` is `x < 8`.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from garden.common import MAX_IMM, MIN_IMM
from garden.ir import ir as op
from garden.ir.blocks import unlink_noops
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts
from garden.types.types import INT


def imm_fold(ir: Ir[Allocator], counts: Counts) -> i64:
    """Make constants immediates; return how many."""
    uses = counts.uses()
    ops = ir.op
    nexts = ir.next
    count = 0
    for block in range(1, ir.block_count):
        inst: i64 = ir.block_first[block] if ir.block_function[block] else 0
        while inst:
            opcode: i64 = ops[inst]
            if op.IADD <= opcode <= op.INE:
                a: i64 = ir.a[inst]
                b: i64 = ir.b[inst]
                if ops[b] == op.CONST and uses[b] == 1 and ir.type[b] == INT:
                    if _fold(ir, inst, _on_right(opcode), a, b, 1 if opcode == op.ILE else 0):
                        uses[b] = 0
                        count += 1
                elif (
                    ops[a] == op.CONST
                    and uses[a] == 1
                    and ir.type[a] == INT
                    and _fold(ir, inst, _on_left(opcode), b, a, -1 if opcode == op.ILE else 0)
                ):
                    uses[a] = 0
                    count += 1
            inst = nexts[inst]
    if count:
        unlink_noops(ir)
    return count


def _on_right(opcode: i64) -> i64:
    """The opcode with the right operand as immediate."""
    if opcode <= op.IMOD:
        return opcode - op.IADD + op.IADD_IMM
    if opcode in (op.ILT, op.ILE):
        return op.ILT_IMM
    return op.IEQ_IMM if opcode == op.IEQ else op.INE_IMM


def _on_left(opcode: i64) -> i64:
    """The opcode with the left operand as immediate, 0 if there is none."""
    if opcode in (op.ISUB, op.IDIV, op.IMOD):
        return 0
    return op.IGT_IMM if opcode in (op.ILT, op.ILE) else _on_right(opcode)


def _fold(ir: Ir[Allocator], inst: i64, opcode: i64, value: i64, constant: i64, adjust: i64) -> bool:
    imm: i64 = ir.imm[constant] + adjust
    if opcode == 0 or not MIN_IMM <= imm <= MAX_IMM:
        return False
    ir.op[inst] = opcode
    ir.a[inst] = value
    ir.b[inst] = 0
    ir.imm[inst] = imm
    ir.op[constant] = op.NOP
    return True
