"""Sizes in bytes as people write them: `64K` is 65536, `2M` is 2097152."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

_SUFFIXES: Final = "KMGT"
#: Python refuses to parse thousands of digits.
_MOST_DIGITS: Final = 100


def parse_size(text: str) -> int:
    """Parse decimal digits and an optional K, M, G or T, each 1024 times the one before, as a number of bytes.

    Raises ValueError for anything else, and for more than 100 digits.
    """
    digits = text
    shift = 0
    if text and text[-1].upper() in _SUFFIXES:
        digits = text[:-1]
        shift = 10 * (_SUFFIXES.index(text[-1].upper()) + 1)
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"want a number of bytes such as 4096, 64K or 2M, not {text!r}")
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"no memory has a number of bytes with {len(digits)} digits")
    return int(digits) << shift


def size_text(size: int) -> str:
    """The shortest form of a size that `parse_size` reads back as the same number."""
    suffix = ""
    for letter in _SUFFIXES:
        if size == 0 or size & 1023:
            break
        size >>= 10
        suffix = letter
    return f"{size}{suffix}"
