"""Common: numbers and names that several parts must agree on."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

#: Bytes of a word: an Int, a Double, an address, an instruction.
WORD_SIZE: Final = 8

#: The immediates of instructions, and of those jumps whose target takes the 32 bits.
MIN_IMM: Final = -(1 << 31)
MAX_IMM: Final = (1 << 31) - 1
MIN_IMM16: Final = -(1 << 15)
MAX_IMM16: Final = (1 << 15) - 1

#: Where the heap, and its table of strings, are while they have no memory: not at 0, though zero bytes need none.
NOWHERE: Final = 16

#: What can run a program. `auto` is the first of the others that can.
ENGINES: Final = ("auto", "jit", "interpreter", "reference")
