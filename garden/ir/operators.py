"""Operators: the opcode of each binary operator and each cast, by the types of the operands."""

from __future__ import annotations

from typing import Final

from garden.ir import ir as op
from garden.syntax.tokens import EQ, GE, GT, LE, LT, MINUS, NE, PERCENT, PLUS, SLASH, STAR
from garden.types.types import BOOL, DOUBLE, INT, STR

#: By the type of the operands, then the operator. `>` and `>=` are `<` and `<=` with their operands swapped.
BINARY: Final[dict[int, dict[int, int]]] = {
    INT: {
        PLUS: op.IADD,
        MINUS: op.ISUB,
        STAR: op.IMUL,
        SLASH: op.IDIV,
        PERCENT: op.IMOD,
        LT: op.ILT,
        GT: op.ILT,
        LE: op.ILE,
        GE: op.ILE,
        EQ: op.IEQ,
        NE: op.INE,
    },
    DOUBLE: {
        PLUS: op.DADD,
        MINUS: op.DSUB,
        STAR: op.DMUL,
        SLASH: op.DDIV,
        LT: op.DLT,
        GT: op.DLT,
        LE: op.DLE,
        GE: op.DLE,
    },
    BOOL: {EQ: op.IEQ, NE: op.INE},
    STR: {EQ: op.SEQ, NE: op.SNE},
}

#: By the type of the operand, then that of the result.
CASTS: Final[dict[int, dict[int, int]]] = {
    INT: {DOUBLE: op.INT_TO_DOUBLE, BOOL: op.INT_TO_BOOL},
    DOUBLE: {INT: op.DOUBLE_TO_INT},
    BOOL: {INT: op.BOOL_TO_INT},
}


def is_swapped(operator: int) -> bool:
    """Whether the opcode of an operator takes the right operand first."""
    return operator in (GT, GE)
