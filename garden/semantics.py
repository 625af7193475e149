"""What garden's arithmetic means, written once: constant folding, the reference machine and the tests all use this.

A value is a 64-bit word. Ints are Python ints from `MIN_INT` to `MAX_INT`, Doubles are floats, Bools 0 or 1;
`double_of` and `word_of` go between a Double and its word, which is the signed number of the same bits.

| operation | meaning |
| --- | --- |
| Int `+ - *`, negation | two's complement, wraps |
| Int `/ %` | towards zero, remainder with the dividend's sign; `MIN_INT / -1` is `MIN_INT`, `MIN_INT % -1` is 0 |
| division by zero, of Int or Double | a trap |
| other Double operations | IEEE 754; every comparison with a NaN is false |
| Double negation | flips the sign bit |
| Double to Int | towards zero, saturates, NaN gives 0 |
| Int to Bool | whether it is not 0 |
"""

from __future__ import annotations

import struct
from typing import Final

from garden.traps import DIVISION_BY_ZERO, trap

MIN_INT: Final = -(1 << 63)
MAX_INT: Final = (1 << 63) - 1

_MODULUS: Final = 1 << 64
_WORD: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
# 2**63 is a Double, MAX_INT is not.
_ABOVE_INT: Final = 9223372036854775808.0


def wrap(value: int) -> int:
    """The Int that any integer is modulo 2**64."""
    if MIN_INT <= value <= MAX_INT:
        return value
    value %= _MODULUS
    return value - _MODULUS if value > MAX_INT else value


def idiv(dividend: int, divisor: int) -> int:
    """Int division. Raises `Trap` where the divisor is 0."""
    if divisor == 0:
        raise trap(DIVISION_BY_ZERO)
    quotient = abs(dividend) // abs(divisor)
    return wrap(-quotient if (dividend < 0) != (divisor < 0) else quotient)


def imod(dividend: int, divisor: int) -> int:
    """Int remainder. Raises `Trap` where the divisor is 0."""
    if divisor == 0:
        raise trap(DIVISION_BY_ZERO)
    remainder = abs(dividend) % abs(divisor)
    return -remainder if dividend < 0 else remainder


def ddiv(dividend: float, divisor: float) -> float:
    """Double division. Raises `Trap` where the divisor is 0.0 or -0.0."""
    if divisor == 0.0:
        raise trap(DIVISION_BY_ZERO)
    return dividend / divisor


def double_to_int(value: float) -> int:
    """The cast of a Double to Int."""
    if value != value:
        return 0
    if value >= _ABOVE_INT:
        return MAX_INT
    if value <= -_ABOVE_INT:
        return MIN_INT
    return int(value)


def double_of(word: int) -> float:
    """The Double that a word holds."""
    value: float = _DOUBLE.unpack(_WORD.pack(word))[0]
    return value


def word_of(value: float) -> int:
    """The word that holds a Double."""
    word: int = _WORD.unpack(_DOUBLE.pack(value))[0]
    return word
