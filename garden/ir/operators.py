"""Operators: the opcode of each binary operator and each cast, by the types of the operands."""

from __future__ import annotations

from typing import Final

from garden.ir.ir import (
    BOOL_TO_INT,
    DADD,
    DDIV,
    DLE,
    DLT,
    DMUL,
    DOUBLE_TO_INT,
    DSUB,
    IADD,
    IDIV,
    IEQ,
    ILE,
    ILT,
    IMOD,
    IMUL,
    INE,
    INT_TO_BOOL,
    INT_TO_DOUBLE,
    ISUB,
    SEQ,
    SNE,
)
from garden.syntax.tokens import EQ, GE, GT, LE, LT, MINUS, NE, PERCENT, PLUS, SLASH, STAR
from garden.types.types import BOOL, DOUBLE, INT, STR

#: By the type of the operands, then the operator. `>` and `>=` are `<` and `<=` with their operands swapped.
BINARY: Final[dict[int, dict[int, int]]] = {
    INT: {
        PLUS: IADD,
        MINUS: ISUB,
        STAR: IMUL,
        SLASH: IDIV,
        PERCENT: IMOD,
        LT: ILT,
        GT: ILT,
        LE: ILE,
        GE: ILE,
        EQ: IEQ,
        NE: INE,
    },
    DOUBLE: {PLUS: DADD, MINUS: DSUB, STAR: DMUL, SLASH: DDIV, LT: DLT, GT: DLT, LE: DLE, GE: DLE},
    BOOL: {EQ: IEQ, NE: INE},
    STR: {EQ: SEQ, NE: SNE},
}

#: By the type of the operand, then that of the result.
CASTS: Final[dict[int, dict[int, int]]] = {
    INT: {DOUBLE: INT_TO_DOUBLE, BOOL: INT_TO_BOOL},
    DOUBLE: {INT: DOUBLE_TO_INT},
    BOOL: {INT: BOOL_TO_INT},
}


def is_swapped(operator: int) -> bool:
    """Whether the opcode of an operator takes the right operand first."""
    return operator in (GT, GE)
