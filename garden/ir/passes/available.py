"""Available: the values computed on every path to a block, by what computes them; and the order of blocks that
makes this easy to keep.

A block that only one edge leads to knows all that the block before it knew. So blocks are visited as trees, each from a
root that several edges lead to (or none), and what a subtree has added is forgotten when the next one begins.

Layout: a table of entries, a key of four numbers and a value each, and slots by their hashes. The last entry can be
forgotten by freeing its slot, so each entry knows that.

Costs: two or three probes; 36 bytes an entry, and 8 to 16 for the slots. Forgetting an entry costs less than adding it.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec
from allocators.collections.slots import Slots, mix
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.ir.passes.counts import Counts

#: Entries that there is room for at first.
_FIRST: Final = 32


@mypyc_attr(native_class=True)
class Available:
    """A map from four numbers to a value: `head` and `imm` are words, `a` and `b` have 32 bits.

    Entries are never changed, only forgotten, the last one first.
    """

    __slots__ = ("_a", "_b", "_entries", "_heads", "_imms", "_scratch", "_slots", "_used", "_values")

    def __init__(self, scratch: Allocator) -> None:
        self._scratch: Final = scratch
        self._entries: Table[Allocator] = Table(scratch, "qIIqII")
        self._read_columns()
        self._slots: Slots = Slots(scratch)

    def _read_columns(self) -> None:
        self._heads, self._a, self._b, self._imms, self._values, self._used = self._entries.typed_columns

    def __len__(self) -> int:
        return len(self._entries)

    def forget(self, length: i64) -> None:
        """Keep the first `length` entries."""
        # Backwards, so that each is the last one.
        for entry in range(len(self._entries) - 1, length - 1, -1):
            self._slots.put(self._used[entry], -1)
        self._entries.truncate(length)

    def get(self, head: i64, a: i64, b: i64, imm: i64) -> i64:
        """The value of a key, 0 where it has none."""
        if self._slots.mask < 0:
            return 0
        entry = self._slots.at(self._find(head, a, b, imm))
        return 0 if entry < 0 else int(self._values[entry])

    def add(self, head: i64, a: i64, b: i64, imm: i64, value: i64) -> i64:
        """Give a value to a key, unless it has one; return that value then, else 0."""
        entry: i64 = len(self._entries)
        if not self._slots.has_room(entry + 1):
            self._grow()
        slot = self._find(head, a, b, imm)
        found = self._slots.at(slot)
        if found >= 0:
            return int(self._values[found])
        if entry == self._entries.capacity:
            self._entries.reserve(1)
            self._read_columns()
        self._entries.add()
        self._heads[entry] = head
        self._a[entry] = a
        self._b[entry] = b
        self._imms[entry] = imm
        self._values[entry] = value
        self._used[entry] = slot
        self._slots.put(slot, entry)
        return 0

    def _find(self, head: i64, a: i64, b: i64, imm: i64) -> i64:
        """The slot of a key, or the free one where it belongs."""
        slots = self._slots
        slot = slots.first(hash_of(head, a, b, imm))
        entry = slots.at(slot)
        while entry >= 0 and not (
            self._a[entry] == a and self._b[entry] == b and self._heads[entry] == head and self._imms[entry] == imm
        ):
            slot = slots.after(slot)
            entry = slots.at(slot)
        return slot

    def _grow(self) -> None:
        slots = Slots(self._scratch)
        try:
            count = len(self._entries)
            slots.make(max(2 * count, _FIRST))
            # In order, so that the last one can still be forgotten first.
            for entry in range(count):
                hashed = hash_of(self._heads[entry], self._a[entry], self._b[entry], self._imms[entry])
                self._used[entry] = slots.add(hashed, entry)
        except BaseException:
            slots.close()
            raise
        before = self._slots
        self._slots = slots
        before.close()

    def close(self) -> None:
        self._slots.close()
        self._entries.close()


def hash_of(head: i64, a: i64, b: i64, imm: i64) -> i64:
    """The hash of a key."""
    operands = mix(a, b)
    return mix(
        mix(head & 0xFFFFFFFF, head >> 32 & 0xFFFFFFFF) >> 31,
        mix((imm ^ operands) & 0xFFFFFFFF, (imm ^ operands) >> 32 & 0xFFFFFFFF) >> 31,
    )


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
        """Move to the next block; whether there is one."""
        pending = self._pending
        if len(pending):
            self.second = pending.pop_i64()
            self.first = pending.pop_i64()
            self.mark = pending.pop_i64()
            self.block = pending.pop_i64()
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

    def _has_parent(self, block: i64) -> bool:
        """Whether one edge leads to a block, and it is not the first of its function."""
        if self._predecessors[block] != 1:
            return False
        return bool(self.ir.function_first[self.ir.block_function[block]] != block)

    def descend(self, mark: i64, first: i64, second: i64) -> None:
        """Visit next the blocks that only `block` leads to."""
        ir = self.ir
        pool = ir.pool.items
        terminator: i64 = ir.block_last[self.block]
        for index in range(edge_count(ir, terminator) - 1, -1, -1):
            target: i64 = pool[edge_at(ir, terminator, index) + 1]
            if self._has_parent(target):
                for word in (target, mark, first, second):
                    self._pending.append_i64(word)

    def close(self) -> None:
        self._pending.close()
