"""Code: what the emitter makes and the machines run, all in memory of one allocator.

`words`: Vec 'q', the instructions. `constants`: Vec 'q', wide constants and tables. `positions`: Vec 'I', for each pc
the byte offset in the source. `strings`: Vec 'Q', the constant strings one after the other, each laid out as the heap
lays out a Str: a word of length (low 32 bits) and hash (high 32 bits), then the bytes, padded with zeros to a word.
Constants refer to them by address, so `strings` is never resized. `functions`: a table "IIII": name symbol, first pc,
end pc, parameter count; row 0 is unused, rows are those of the IR, and the last one is `entry`, which has no name.
`entry` is the pc where a run starts: the two words there belong to no function; they call `entry` and halt.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Table, Vec
from allocators.uncopyable import Uncopyable
from garden.types.program import CheckedProgram

A = TypeVar("A", bound=Allocator, covariant=True)

#: The columns of `Code.functions`.
FUNCTION_NAME: Final = 0
FUNCTION_FIRST: Final = 1
FUNCTION_END: Final = 2
FUNCTION_PARAMETERS: Final = 3


@mypyc_attr(native_class=True)
class Code(Uncopyable, Generic[A]):
    """A program in bytecode, beside the checked program that it comes from (and does not own)."""

    __slots__ = ("checked", "constants", "entry", "functions", "positions", "strings", "words")

    def __init__(self, allocator: A, checked: CheckedProgram[Allocator]) -> None:
        self.checked: Final = checked
        self.words: Vec[A] = Vec(allocator, "q")
        self.constants: Vec[A] = Vec(allocator, "q")
        self.positions: Vec[A] = Vec(allocator, "I")
        self.strings: Vec[A] = Vec(allocator, "Q")
        self.functions: Table[A] = Table(allocator, "IIII")
        self.entry = 0
        try:
            self.functions.append(0, 0, 0, 0)
        except MemoryError:
            self.close()
            raise

    def close(self) -> None:
        self.functions.close()
        self.strings.close()
        self.positions.close()
        self.constants.close()
        self.words.close()
