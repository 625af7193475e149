"""Which bytecode instruction an IR instruction or comparison becomes: tables by IR opcode, 0 if there is none."""

from __future__ import annotations

from typing import Final

from garden.bytecode import ops as bytecode
from garden.ir import ir as op


def _by_opcode(pairs: dict[int, int]) -> bytes:
    return bytes([pairs.get(opcode, 0) for opcode in range(max(op.OPS) + 1)])


#: For instructions that are one in bytecode, with the same operands.
DIRECT: Final = _by_opcode(
    {
        op.IADD: bytecode.IADD,
        op.ISUB: bytecode.ISUB,
        op.IMUL: bytecode.IMUL,
        op.IDIV: bytecode.IDIV,
        op.IMOD: bytecode.IMOD,
        op.ILT: bytecode.ILT,
        op.ILE: bytecode.ILE,
        op.IEQ: bytecode.IEQ,
        op.INE: bytecode.INE,
        op.DADD: bytecode.DADD,
        op.DSUB: bytecode.DSUB,
        op.DMUL: bytecode.DMUL,
        op.DDIV: bytecode.DDIV,
        op.DLT: bytecode.DLT,
        op.DLE: bytecode.DLE,
        op.SEQ: bytecode.IEQ,
        op.SNE: bytecode.INE,
        op.INEG: bytecode.INEG,
        op.DNEG: bytecode.DNEG,
        op.IADD_IMM: bytecode.IADD_IMM,
        op.ISUB_IMM: bytecode.ISUB_IMM,
        op.IMUL_IMM: bytecode.IMUL_IMM,
        op.IDIV_IMM: bytecode.IDIV_IMM,
        op.IMOD_IMM: bytecode.IMOD_IMM,
        op.ILT_IMM: bytecode.ILT_IMM,
        op.IGT_IMM: bytecode.IGT_IMM,
        op.IEQ_IMM: bytecode.IEQ_IMM,
        op.INE_IMM: bytecode.INE_IMM,
        op.INT_TO_DOUBLE: bytecode.CAST_TO_DOUBLE,
        op.DOUBLE_TO_INT: bytecode.CAST_TO_INT,
        op.INT_TO_BOOL: bytecode.CAST_TO_BOOL,
        op.LOAD: bytecode.LOAD,
        op.ADDROF: bytecode.ADDROF,
    }
)

#: For comparisons: the jump that is taken where it holds.
JUMPS: Final = _by_opcode(
    {
        op.ILT: bytecode.JMPLT,
        op.ILE: bytecode.JMPLE,
        op.IEQ: bytecode.JMPEQ,
        op.INE: bytecode.JMPNE,
        op.SEQ: bytecode.JMPEQ,
        op.SNE: bytecode.JMPNE,
        op.DLT: bytecode.JMPDLT,
        op.DLE: bytecode.JMPDLE,
        op.ILT_IMM: bytecode.JMPLT_IMM,
        op.IGT_IMM: bytecode.JMPGT_IMM,
        op.IEQ_IMM: bytecode.JMPEQ_IMM,
        op.INE_IMM: bytecode.JMPNE_IMM,
    }
)

#: For comparisons: the jump that is taken where it does not hold, with the operands the other way round if `SWAPPED`.
INVERSE_JUMPS: Final = _by_opcode(
    {
        op.ILT: bytecode.JMPLE,
        op.ILE: bytecode.JMPLT,
        op.IEQ: bytecode.JMPNE,
        op.INE: bytecode.JMPEQ,
        op.SEQ: bytecode.JMPNE,
        op.SNE: bytecode.JMPEQ,
        op.DLT: bytecode.JMPDNLT,
        op.DLE: bytecode.JMPDNLE,
        op.ILT_IMM: bytecode.JMPGE_IMM,
        op.IGT_IMM: bytecode.JMPLE_IMM,
        op.IEQ_IMM: bytecode.JMPNE_IMM,
        op.INE_IMM: bytecode.JMPEQ_IMM,
    }
)
SWAPPED: Final = _by_opcode({op.ILT: 1, op.ILE: 1})

#: For comparisons with an immediate that does not fit the jump: the same of two registers, operands in order if
#: `IN_ORDER`.
OF_REGISTERS: Final = _by_opcode({op.ILT_IMM: op.ILT, op.IGT_IMM: op.ILT, op.IEQ_IMM: op.IEQ, op.INE_IMM: op.INE})
IN_ORDER: Final = _by_opcode({op.ILT_IMM: 1, op.IEQ_IMM: 1, op.INE_IMM: 1})
