"""const_fold: operations on constants become constants, branches on constants become jumps.

    %v0:Int = 2                  %v0:Int = 2
    %v1:Int = 5                  %v1:Int = 5
    %v2:Int = IMul %v0, %v1  =>  %v2:Int = 10

In layout order, so that what is folded folds what follows. The constants stay, `dce` removes them; arms that nothing
leads to any more go. What traps stays, and so does what gives a NaN, whose bits are the machine's choice. Calls of pure
host functions: see `host_fold`.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import A_VALUE, OPERANDS
from garden.ir.passes.counts import Counts
from garden.ir.passes.host_fold import fold_host_call
from garden.ir.passes.unreachable import unreachable
from garden.semantics import ddiv, double_of, double_to_int, iadd, idiv, imod, imul, ineg, isub, word_of
from garden.types.types import STR


def _may_fold(opcode: int) -> bool:
    return opcode in op.OPS and (opcode == op.SYS or (opcode > op.CONST_STR and OPERANDS[opcode] & A_VALUE != 0))


_MAY_FOLD: Final = bytes([_may_fold(opcode) for opcode in range(max(op.OPS) + 1)])


def const_fold(ir: Ir[Allocator], counts: Counts) -> int:
    """Fold instructions and branches on constants; return how many."""
    ops = ir.op
    a = ir.a
    nexts = ir.next
    count = 0
    jumps = 0
    for function in range(1, ir.function_count):
        block: int = ir.function_first[function]
        while block:
            inst: int = ir.block_first[block]
            while inst:
                opcode: int = ops[inst]
                if _MAY_FOLD[opcode]:
                    if opcode == op.SYS:
                        if fold_host_call(ir, inst):
                            count += 1
                    else:
                        known: int = ops[a[inst]]
                        if (known == op.CONST and _fold(ir, inst, opcode)) or (
                            known == op.CONST_STR and _fold_str(ir, inst, opcode)
                        ):
                            count += 1
                            if opcode >= op.FIRST_TERMINATOR:
                                jumps += 1
                inst = nexts[inst]
            block = ir.block_next[block]
    if count:
        counts.forget_uses()
    if jumps:
        counts.forget_predecessors()
        unreachable(ir, counts)
    return count


def _fold(ir: Ir[Allocator], inst: int, opcode: int) -> bool:
    """Fold an instruction whose operand a is a constant that is no Str."""
    left: int = ir.imm[ir.a[inst]]
    if op.IADD <= opcode <= op.DLE:
        right: int = ir.b[inst]
        return ir.op[right] == op.CONST and _fold_binary(ir, inst, opcode, left, ir.imm[right])
    if op.IADD_IMM <= opcode <= op.INE_IMM:
        return _fold_immediate(ir, inst, opcode, left, ir.imm[inst])
    if opcode == op.BRANCH:
        _set_jump(ir, inst, ir.c[inst] if left else ir.d[inst])
    elif opcode == op.BRANCH_CMP:
        right = ir.b[inst]
        if ir.op[right] != op.CONST:
            return False
        _set_jump(ir, inst, ir.c[inst] if compare(ir.imm[inst], left, ir.imm[right]) else ir.d[inst])
    elif opcode == op.BRANCH_CMP_IMM:
        _set_jump(ir, inst, ir.c[inst] if compare_imm(ir.b[inst], left, ir.imm[inst]) else ir.d[inst])
    elif opcode == op.SWITCH:
        _set_jump(ir, inst, _find(ir.list_at(ir.b[inst]), left))
    elif opcode == op.LOOKUP:
        _set_lookup(ir, inst, left)
    elif opcode == op.INEG:
        _set_constant(ir, inst, ineg(left))
    elif opcode == op.DNEG:
        _set_constant(ir, inst, word_of(-double_of(left)))
    elif opcode == op.INT_TO_DOUBLE:
        _set_constant(ir, inst, word_of(float(left)))
    elif opcode == op.DOUBLE_TO_INT:
        _set_constant(ir, inst, double_to_int(double_of(left)))
    elif opcode == op.INT_TO_BOOL:
        _set_constant(ir, inst, 1 if left else 0)
    elif opcode == op.BOOL_TO_INT:
        _set_constant(ir, inst, left)
    else:
        return False
    return True


def _fold_str(ir: Ir[Allocator], inst: int, opcode: int) -> bool:
    """Fold an instruction whose operand a is a constant Str. Equal texts are one symbol."""
    symbol: int = ir.imm[ir.a[inst]]
    if opcode == op.SWITCH:
        _set_jump(ir, inst, _find(ir.list_at(ir.b[inst]), symbol))
        return True
    if opcode == op.LOOKUP:
        _set_lookup(ir, inst, symbol)
        return True
    other: int = ir.b[inst]
    if opcode in (op.SEQ, op.SNE) and ir.op[other] == op.CONST_STR:
        _set_constant(ir, inst, 1 if compare(opcode, symbol, ir.imm[other]) else 0)
        return True
    if opcode == op.BRANCH_CMP and ir.op[other] == op.CONST_STR:
        _set_jump(ir, inst, ir.c[inst] if compare(ir.imm[inst], symbol, ir.imm[other]) else ir.d[inst])
        return True
    return False


def _fold_binary(ir: Ir[Allocator], inst: int, opcode: int, left: int, right: int) -> bool:
    if op.DADD <= opcode <= op.DDIV:
        dividend = double_of(left)
        divisor = double_of(right)
        if opcode == op.DDIV and divisor == 0.0:
            return False
        result = _double(opcode, dividend, divisor)
        if result != result:
            return False
        _set_constant(ir, inst, word_of(result))
    elif opcode <= op.IMOD:
        if opcode in (op.IDIV, op.IMOD) and right == 0:
            return False
        _set_constant(ir, inst, _int(opcode, left, right))
    else:
        _set_constant(ir, inst, 1 if compare(opcode, left, right) else 0)
    return True


def _fold_immediate(ir: Ir[Allocator], inst: int, opcode: int, left: int, right: int) -> bool:
    binary = opcode - op.IADD_IMM + op.IADD
    if binary <= op.IMOD:
        return _fold_binary(ir, inst, binary, left, right)
    _set_constant(ir, inst, 1 if compare_imm(opcode, left, right) else 0)
    return True


def _int(opcode: int, left: int, right: int) -> int:
    if opcode == op.IADD:
        return iadd(left, right)
    if opcode == op.ISUB:
        return isub(left, right)
    if opcode == op.IMUL:
        return imul(left, right)
    if opcode == op.IDIV:
        return idiv(left, right)
    return imod(left, right)


def _double(opcode: int, left: float, right: float) -> float:
    if opcode == op.DADD:
        return left + right
    if opcode == op.DSUB:
        return left - right
    if opcode == op.DMUL:
        return left * right
    return ddiv(left, right)


def compare(opcode: int, left: int, right: int) -> bool:
    """The comparison of two words by one of the opcodes that `BRANCH_CMP` may have."""
    if opcode == op.ILT:
        return left < right
    if opcode == op.ILE:
        return left <= right
    if opcode in (op.IEQ, op.SEQ):
        return left == right
    if opcode in (op.INE, op.SNE):
        return left != right
    if opcode == op.DLT:
        return double_of(left) < double_of(right)
    return double_of(left) <= double_of(right)


def compare_imm(opcode: int, left: int, right: int) -> bool:
    """The comparison of a word with an immediate by one of the opcodes that `BRANCH_CMP_IMM` may have."""
    if opcode == op.IEQ_IMM:
        return left == right
    if opcode == op.INE_IMM:
        return left != right
    return left > right if opcode == op.IGT_IMM else left < right


def _find(cases: memoryview, key: int) -> int:
    """What a switch or lookup list has for a key."""
    for index in range(1, len(cases), 2):
        if cases[index] == key:
            return cases[index + 1]
    return cases[0]


def _set_constant(ir: Ir[Allocator], inst: int, word: int) -> None:
    ir.op[inst] = op.CONST
    ir.a[inst] = 0
    ir.b[inst] = 0
    ir.imm[inst] = word


def _set_lookup(ir: Ir[Allocator], inst: int, key: int) -> None:
    _set_constant(ir, inst, _find(ir.list_at(ir.b[inst]), key))
    if ir.type[inst] == STR:
        ir.op[inst] = op.CONST_STR


def _set_jump(ir: Ir[Allocator], inst: int, edge: int) -> None:
    ir.op[inst] = op.JUMP
    ir.a[inst] = 0
    ir.b[inst] = 0
    ir.c[inst] = edge
    ir.d[inst] = 0
    ir.imm[inst] = 0
