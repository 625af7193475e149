"""Assembler: appends instructions to a program's code.

Words and positions are written straight into the memory of `Code`, which is longer than the program until `finish`.
Neighbouring pushes and pops are packed as they come, unless a jump may lead between them.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from garden.bytecode import ops as bytecode
from garden.bytecode.code import Code

_FIRST_WORDS: Final = 256


@mypyc_attr(native_class=True)
class Assembler:
    """`pc` is where the next instruction goes, `position` the byte offset in the source that it comes from."""

    __slots__ = ("_label", "_limit", "_positions", "_words", "code", "pc", "position")

    def __init__(self, code: Code[Allocator]) -> None:
        self.code: Final = code
        self.pc: i64 = 0
        self.position: i64 = 0
        self._limit: i64 = 0
        self._label: i64 = 0
        self._words = code.words.items
        self._positions = code.positions.items

    def emit(self, op: i64, a: i64, b: i64, c: i64, imm: i64) -> None:
        self.emit_word(imm << 32 | c << 24 | b << 16 | a << 8 | op)

    def emit_word(self, word: i64) -> None:
        pc = self.pc
        if pc == self._limit:
            self._grow()
        self._words[pc] = word
        self._positions[pc] = self.position
        self.pc = pc + 1

    def _grow(self) -> None:
        more = max(len(self.code.words), _FIRST_WORDS)
        self.code.words.fill(bytecode.NOP, more)
        self.code.positions.fill(0, more)
        self._limit = len(self.code.words)
        self._words = self.code.words.items
        self._positions = self.code.positions.items

    def label(self) -> i64:
        """The pc of the next instruction, as the target of jumps."""
        self._label = self.pc
        return self.pc

    def set_target(self, pc: i64, target: i64) -> i64:
        """Let the jump at `pc` lead to `target`; return what its target was."""
        word: i64 = self._words[pc]
        self._words[pc] = target << 32 | word & 0xFFFFFFFF
        return word >> 32

    def move(self, target: i64, source: i64) -> None:
        self.emit_word(source << 16 | target << 8 | bytecode.MOV)

    def push(self, register: i64) -> None:
        self._pack(bytecode.PUSH, bytecode.PUSH2, register)

    def pop(self, register: i64) -> None:
        self._pack(bytecode.POP, bytecode.POP2, register)

    def _pack(self, single: i64, double: i64, register: i64) -> None:
        """Append to a push or pop of one or two registers that stands right before, or emit a new one."""
        last = self.pc - 1
        if last >= self._label:
            word: i64 = self._words[last]
            op = word & 0xFF
            if op == single:
                self._words[last] = word + 1 | register << 16
                return
            if op == double:
                self._words[last] = word + 1 | register << 24
                return
        self.emit_word(register << 8 | single)

    def finish(self) -> None:
        """Cut the code off after the last instruction."""
        self.code.words.truncate(self.pc)
        self.code.positions.truncate(self.pc)
