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

from allocators._mypyc import i64
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


# Compiled, this is arithmetic of the processor, whose results wrap by themselves. It must be: Python looks for signals
# while it multiplies large ints, and compiled code takes the exception of a handler there for a lack of memory.


def iadd(left: i64, right: i64) -> int:
    """The sum of two Ints."""
    return wrap(left + right)


def isub(left: i64, right: i64) -> int:
    """The difference of two Ints."""
    return wrap(left - right)


def imul(left: i64, right: i64) -> int:
    """The product of two Ints."""
    return wrap(left * right)


def ineg(value: i64) -> int:
    """The negation of an Int."""
    return wrap(-value)


def idiv(dividend: i64, divisor: i64) -> int:
    """Int division. Raises `Trap` where the divisor is 0."""
    if divisor == 0:
        raise trap(DIVISION_BY_ZERO)
    if divisor == -1:
        # Of the smallest Int, the quotient is none.
        return ineg(dividend)
    quotient = dividend // divisor
    if (dividend < 0) != (divisor < 0) and quotient * divisor != dividend:
        # Python rounds down.
        quotient += 1
    return quotient


def imod(dividend: i64, divisor: i64) -> int:
    """Int remainder. Raises `Trap` where the divisor is 0."""
    if divisor == 0:
        raise trap(DIVISION_BY_ZERO)
    remainder = dividend % divisor
    if remainder != 0 and (dividend < 0) != (divisor < 0):
        # Python gives it the divisor's sign.
        remainder -= divisor
    return remainder


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
