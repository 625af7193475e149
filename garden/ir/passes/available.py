"""Available: which values a block has computed so far, by what computes them.

Layout: a table of entries, a key of four numbers and a value each, and an open-addressing table of entry numbers, at
most half full, probed linearly. A slot counts only while the entry that it names names the slot, so forgetting all
entries at the start of a block takes no time (Briggs and Torczon, *An Efficient Representation for Sparse Sets*).

Costs: one probe most often; 32 bytes an entry, and 8 to 16 for the slots.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec

_FIRST_SLOTS: Final = 64


@mypyc_attr(native_class=True)
class Available:
    """A map from four numbers to a value: `head`, `a`, `b` of 32 bits, `imm` a signed word."""

    __slots__ = ("_entries", "_mask", "_slots")

    def __init__(self, scratch: Allocator) -> None:
        self._entries: Table[Allocator] = Table(scratch, "IIIqII")
        self._slots: Vec[Allocator] = Vec(scratch, "I")
        self._mask: i64 = -1

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def get(self, head: int, a: int, b: int, imm: int) -> int:
        """The value of a key, 0 where it has none."""
        if self._mask < 0:
            return 0
        entry = self._entry(self._find(head, a, b, imm))
        return 0 if entry < 0 else int(self._entries.columns[4][entry])

    def set(self, head: int, a: int, b: int, imm: int, value: int) -> None:
        """Give a key a value."""
        if 2 * (len(self._entries) + 1) > self._mask + 1:
            self._grow()
        slot = self._find(head, a, b, imm)
        entry = self._entry(slot)
        if entry >= 0:
            self._entries.columns[4][entry] = value
        else:
            self._slots.data[slot] = self._entries.append(head, a, b, imm, value, slot)

    def _entry(self, slot: int) -> int:
        """The entry that a slot names, -1 where it is free."""
        entry: int = self._slots.data[slot]
        return entry if entry < len(self._entries) and self._entries.columns[5][entry] == slot else -1

    def _find(self, head: int, a: int, b: int, imm: int) -> int:
        """The slot that names the entry of a key, or the free one where it belongs."""
        mask: int = self._mask
        count = len(self._entries)
        slots = self._slots.data
        heads, left, right, imms, _values, owners = self._entries.columns
        slot = _hash(head, a, b, imm) & mask
        while True:
            entry: int = slots[slot]
            if entry >= count or owners[entry] != slot:
                return slot
            if left[entry] == a and right[entry] == b and heads[entry] == head and imms[entry] == imm:
                return slot
            slot = (slot + 1) & mask

    def _grow(self) -> None:
        size = max(_FIRST_SLOTS, 2 * (self._mask + 1))
        self._slots.fill(0, size - len(self._slots))
        self._mask = size - 1
        slots = self._slots.data
        heads, left, right, imms, _values, owners = self._entries.columns
        count = len(self._entries)
        for entry in range(count):
            owners[entry] = size
        for entry in range(count):
            slot = _hash(heads[entry], left[entry], right[entry], imms[entry]) & self._mask
            while slots[slot] < count and owners[slots[slot]] == slot:
                slot = (slot + 1) & self._mask
            slots[slot] = entry
            owners[entry] = slot

    def close(self) -> None:
        self._slots.close()
        self._entries.close()


def _hash(head: int, a: int, b: int, imm: int) -> int:
    # The factors are small, so that the sum of products fits a machine word.
    mixed = head * 0x1F35D + a * 0x9E379 + b * 0x85EBD + (imm & 0xFFFFFFFF) * 0xC2B2B
    return mixed ^ mixed >> 15
