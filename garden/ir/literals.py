"""Number literals: the words that they stand for, if they fit one."""

from __future__ import annotations

from typing import Final

from garden.semantics import MAX_INT, MIN_INT, word_of

_MAX_DIGITS: Final = len(str(MAX_INT))


def int_literal(text: bytes, negative: bool) -> int:
    """The Int that decimal digits stand for, negated if `negative`. Raises OverflowError outside 64 bits."""
    digits = text.lstrip(b"0")
    # The length is looked at first because Python refuses to read thousands of digits.
    if len(digits) <= _MAX_DIGITS:
        value = int(digits or b"0")
        if negative:
            value = -value
        if MIN_INT <= value <= MAX_INT:
            return value
    raise OverflowError("this integer does not fit in 64 bits")


def double_literal(text: bytes, negative: bool) -> int:
    """The word of the Double that a literal stands for, negated if `negative`.

    Raises OverflowError where it rounds to infinity.
    """
    value = float(text)
    if value == float("inf"):
        raise OverflowError("this number does not fit in a Double")
    return word_of(-value if negative else value)
