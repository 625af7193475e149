"""Sets of registers that can hold values: one word, with a bit for each register."""

from __future__ import annotations

from typing import Final

from allocators._mypyc import i64
from garden.bytecode.ops import REGISTERS

#: The last register that can hold a value; the one after it is scratch.
LAST_REGISTER: Final = REGISTERS - 2

_LAST: Final[i64] = LAST_REGISTER
_ONLY_LAST: Final[i64] = 1 << LAST_REGISTER
#: By byte: the place of its lowest bit.
_LOWEST: Final = bytes([8, *[(byte & -byte).bit_length() - 1 for byte in range(1, 256)]])


def only(register: i64) -> i64:
    """The set of one register, at most `LAST_REGISTER`."""
    # Not `1 << register`: a C compiler takes a small literal for 32 bits.
    return _ONLY_LAST >> (_LAST - register)


def lowest(registers: i64) -> i64:
    """The lowest register of a set that is not empty."""
    register: i64 = 0
    while registers & 0xFF == 0:
        registers >>= 8
        register += 8
    return register + _LOWEST[registers & 0xFF]
