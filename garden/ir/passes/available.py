"""Available: which values have been computed on the way to a block, by what computes them; and the order of blocks that
makes this easy to keep.

A block that only one edge leads to knows all that the block before it knew. So blocks are visited as trees, each from a
root that several edges lead to (or none), and what a subtree has added is forgotten when the next one begins.

Layout: a table of entries, a key of four numbers and a value each, and an open-addressing table of entry numbers, at
most half full, probed linearly. A slot counts only while the entry that it names names the slot, so that forgetting the
last entries takes no time (Briggs and Torczon, *An Efficient Representation for Sparse Sets*). Where an entry stands
depends on none that came later, so what is left can still be found.

Costs: one probe most often; 36 bytes an entry, and 8 to 16 for the slots.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.ir.passes.counts import Counts

_FIRST_SLOTS: Final = 64


@mypyc_attr(native_class=True)
class Available:
    """A map from four numbers to a value: `head` and `imm` are words, `a` and `b` have 32 bits. `head` is below 2**62.

    Entries are never changed, only forgotten, the last one first.
    """

    __slots__ = ("_a", "_b", "_entries", "_heads", "_imms", "_mask", "_owners", "_slots", "_values")

    def __init__(self, scratch: Allocator) -> None:
        self._entries: Table[Allocator] = Table(scratch, "qIIqII")
        self._read_columns()
        self._slots: Vec[Allocator] = Vec(scratch, "I")
        self._mask: i64 = -1

    def _read_columns(self) -> None:
        self._heads, self._a, self._b, self._imms, self._values, self._owners = self._entries.columns

    def __len__(self) -> int:
        return len(self._entries)

    def forget(self, length: int) -> None:
        """Keep the first `length` entries."""
        self._entries.truncate(length)

    def get(self, head: int, a: int, b: int, imm: int) -> int:
        """The value of a key, 0 where it has none."""
        if self._mask < 0:
            return 0
        slot = self._find(head, a, b, imm)
        entry: int = self._slots.data[slot]
        return int(self._values[entry]) if self._names(slot, entry) else 0

    def add(self, head: int, a: int, b: int, imm: int, value: int) -> int:
        """Give a value to a key, unless it has one; return that value then, else 0."""
        if 2 * (len(self._entries) + 1) > self._mask + 1:
            self._grow()
        slot = self._find(head, a, b, imm)
        entry: int = self._slots.data[slot]
        if self._names(slot, entry):
            return int(self._values[entry])
        if len(self._entries) == self._entries.capacity:
            self._entries.reserve(1)
            self._read_columns()
        entry = self._entries.add()
        self._heads[entry] = head
        self._a[entry] = a
        self._b[entry] = b
        self._imms[entry] = imm
        self._values[entry] = value
        self._owners[entry] = slot
        self._slots.data[slot] = entry
        return 0

    def _names(self, slot: int, entry: int) -> bool:
        return entry < len(self._entries) and bool(self._owners[entry] == slot)

    def _find(self, head: int, a: int, b: int, imm: int) -> int:
        """The slot that names the entry of a key, or the free one where it belongs."""
        mask: int = self._mask
        count = len(self._entries)
        slots = self._slots.data
        slot = _hash(head, a, b, imm) & mask
        while True:
            entry: int = slots[slot]
            if entry >= count or self._owners[entry] != slot:
                return slot
            if self._a[entry] == a and self._b[entry] == b and self._heads[entry] == head and self._imms[entry] == imm:
                return slot
            slot = (slot + 1) & mask

    def _grow(self) -> None:
        size = max(_FIRST_SLOTS, 2 * (self._mask + 1))
        self._slots.fill(0, size - len(self._slots))
        self._mask = size - 1
        slots = self._slots.data
        owners = self._owners
        count = len(self._entries)
        for entry in range(count):
            owners[entry] = size
        for entry in range(count):
            slot = _hash(self._heads[entry], self._a[entry], self._b[entry], self._imms[entry]) & self._mask
            while slots[slot] < count and owners[slots[slot]] == slot:
                slot = (slot + 1) & self._mask
            slots[slot] = entry
            owners[entry] = slot

    def close(self) -> None:
        self._slots.close()
        self._entries.close()


def _hash(head: int, a: int, b: int, imm: int) -> int:
    # The factors are small, so that the sum of products fits a machine word.
    mixed = (head & 0xFFFFFFFF) * 0x1F35D + (head >> 32) * 0x3C6EF + a * 0x9E379 + b * 0x85EBD
    mixed += (imm & 0xFFFFFFFF) * 0xC2B2B
    return mixed ^ mixed >> 15


@mypyc_attr(native_class=True)
class Trees:
    """The blocks in trees, parents first: `while trees.advance()` each in turn is `block`.

    `mark`, `first` and `second` are what the parent has left with `descend`, 0 for a root.
    """

    __slots__ = ("_pending", "_predecessors", "_root", "block", "first", "ir", "mark", "second")

    def __init__(self, ir: Ir[Allocator], counts: Counts) -> None:
        self.ir: Final = ir
        self._pending: Vec[Allocator] = Vec(counts.scratch, "q")
        self._predecessors = counts.predecessors()
        self._root = 0
        self.block = 0
        self.mark = 0
        self.first = 0
        self.second = 0

    def advance(self) -> bool:
        """Go on to the next block; whether there is one."""
        pending = self._pending
        if len(pending):
            self.second = pending.pop()
            self.first = pending.pop()
            self.mark = pending.pop()
            self.block = pending.pop()
            return True
        count = self.ir.block_count
        self.mark = 0
        self.first = 0
        self.second = 0
        while self._root + 1 < count:
            self._root += 1
            if self.ir.block_function[self._root] and not self._has_parent(self._root):
                self.block = self._root
                return True
        return False

    def _has_parent(self, block: int) -> bool:
        """Whether one edge leads to a block, and it is not the first of its function."""
        if self._predecessors[block] != 1:
            return False
        return bool(self.ir.function_first[self.ir.block_function[block]] != block)

    def descend(self, mark: int, first: int, second: int) -> None:
        """Visit next the blocks that only `block` leads to."""
        ir = self.ir
        pool = ir.pool.data
        terminator: int = ir.block_last[self.block]
        for index in range(edge_count(ir, terminator) - 1, -1, -1):
            target: int = pool[edge_at(ir, terminator, index) + 1]
            if self._has_parent(target):
                for word in (target, mark, first, second):
                    self._pending.append(word)

    def close(self) -> None:
        self._pending.close()
