"""Words of bytecode for tests."""

from __future__ import annotations


def encode_imm16(op: int, a: int, value: int, target: int) -> int:
    """The word of a jump that compares a register with an immediate from -32768 to 32767."""
    return target << 32 | (value & 0xFFFF) << 16 | a << 8 | op
