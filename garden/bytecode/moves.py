"""ParallelMoves: moves between registers that happen all at once, as a sequence of single ones.

After Boissinot, Darte, Rastello, Dupont de Dinechin and Guillon, *Revisiting Out-of-SSA Translation*: a move is emitted
as soon as its target is not needed any more, and whoever reads the same source later reads the copy. What remains is
cycles, each of which goes through the scratch register. So every move costs one instruction, and every cycle that
nothing else reads from one more.
"""

from __future__ import annotations

from allocators._mypyc import i64, mypyc_attr
from garden.bytecode.assembler import Assembler
from garden.bytecode.ops import REGISTERS
from garden.bytecode.register_sets import only


@mypyc_attr(native_class=True)
class ParallelMoves:
    """A set of moves. Each target is added once; a source may be read often; nothing is moved to itself."""

    __slots__ = ("_location", "_read", "_sources", "_targets", "count")

    def __init__(self) -> None:
        # By register: where its value is to come from, -1 if it is no target; and where the value is now that it had
        # before.
        self._sources = [-1] * REGISTERS
        self._location = [0] * REGISTERS
        self._targets = [0] * REGISTERS
        self._read: i64 = 0  # the set of registers that are sources
        self.count: i64 = 0

    def add(self, target: i64, source: i64) -> None:
        self._sources[target] = source
        self._read |= only(source)
        self._location[source] = source
        self._targets[self.count] = target
        self.count += 1

    def clear(self) -> None:
        """Forget all moves."""
        for index in range(self.count):
            self._sources[self._targets[index]] = -1
        self._read = 0
        self.count = 0

    def emit(self, assembler: Assembler, scratch: i64) -> None:
        """Emit all moves, which then are forgotten."""
        for index in range(self.count):
            target: i64 = self._targets[index]
            if self._sources[target] >= 0 and not self._read & only(target):
                self._emit_chain(assembler, target)
        for index in range(self.count):
            target = self._targets[index]
            if self._sources[target] >= 0:
                assembler.move(scratch, target)
                self._location[target] = scratch
                self._emit_chain(assembler, target)
        self.count = 0

    def _emit_chain(self, assembler: Assembler, target: i64) -> None:
        """Emit the move to a register that is not needed, then the one to its source, and so on."""
        while True:
            source: i64 = self._sources[target]
            location: i64 = self._location[source]
            assembler.move(target, location)
            self._sources[target] = -1
            self._read &= ~only(source)
            self._location[source] = target
            if location != source or self._sources[source] < 0:
                return
            target = source
