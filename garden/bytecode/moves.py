"""ParallelMoves: moves between registers that happen all at once, as a sequence of single ones.

A move is emitted as soon as nobody reads its target any more. What remains is cycles, each of which goes through the
scratch register. So every move costs one instruction, and every cycle one more.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from garden.bytecode.assembler import Assembler
from garden.bytecode.ops import REGISTERS


@mypyc_attr(native_class=True)
class ParallelMoves:
    """A set of moves. Each target is added once; a source may be read often; nothing is moved to itself."""

    __slots__ = ("_readers", "_sources", "_targets", "count")

    def __init__(self) -> None:
        # By register; -1 for one that is no target.
        self._sources = [-1] * REGISTERS
        self._readers = [0] * REGISTERS
        self._targets = [0] * REGISTERS
        self.count: i64 = 0

    def add(self, target: int, source: int) -> None:
        self._sources[target] = source
        self._readers[source] += 1
        self._targets[self.count] = target
        self.count += 1

    def clear(self) -> None:
        """Forget all moves."""
        for index in range(self.count):
            target = self._targets[index]
            self._readers[self._sources[target]] = 0
            self._sources[target] = -1
        self.count = 0

    def emit(self, assembler: Assembler[Allocator], scratch: int) -> None:
        """Emit all moves, which then are forgotten."""
        sources = self._sources
        readers = self._readers
        targets = self._targets
        for index in range(self.count):
            target = targets[index]
            while sources[target] >= 0 and readers[target] == 0:
                source = sources[target]
                assembler.move(target, source)
                sources[target] = -1
                readers[source] -= 1
                target = source
        for index in range(self.count):
            target = targets[index]
            if sources[target] < 0:
                continue
            assembler.move(scratch, target)
            hole = target
            while sources[hole] != target:
                source = sources[hole]
                assembler.move(hole, source)
                sources[hole] = -1
                readers[source] = 0
                hole = source
            assembler.move(hole, scratch)
            sources[hole] = -1
            readers[target] = 0
        self.count = 0
