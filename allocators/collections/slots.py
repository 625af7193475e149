"""Slots: finds numbers 0, 1, 2, ... by a hash, for tables that hold the keys; and `mix`, which makes hashes.

Layout: open addressing with linear probing. A power of two of slots, at most half of them full; each holds a number
+ 1, or 0 if it is free. Only the table can compare keys, so it probes:

    slot = slots.first(hashed)
    number = slots.at(slot)
    while number >= 0 and keys[number] != key:
        slot = slots.after(slot)
        number = slots.at(slot)

Then `number` has the key, or is -1 and `slot` is where the key belongs. A table that grows adds its numbers to new
slots and drops the old ones. To remove the number that was added last, free its slot; to remove any other, move up the
numbers after it that would no longer be found.

Costs: 8 to 16 bytes per number; usually two or three probes. Slots come zeroed from the allocator, so making many of
them over fresh pages touches none.

Not for: hashes that many keys share. A hash must depend on the whole key, and on a secret, as those of `mix` and
Python's hashes of bytes do.
"""

from __future__ import annotations

from typing import Final

from allocators._mypyc import i64, mypyc_attr
from allocators.collections.vec import Vec
from allocators.memory import load_u32, store_u32
from allocators.protocol import Allocator

_FEWEST: Final = 16


def _factor(index: int) -> int:
    """An odd number from 2**29 to 2**30, different in every process unless PYTHONHASHSEED is set."""
    return hash(b"allocators.collections.slots %d" % index) & 0x1FFFFFFF | 0x20000001


_A: Final[i64] = _factor(0)
_B: Final[i64] = _factor(1)
_C: Final[i64] = _factor(2)
_D: Final[i64] = _factor(3)


def mix(low: i64, high: i64) -> i64:
    """A hash from 0 to 2**63 - 1 of two numbers from 0 to 2**32 - 1; its low bits depend on all of theirs."""
    # 32 bits times 30 bits, and the sum of two such products, stay below 2**63.
    once = low * _A + high * _B
    once ^= once >> 31
    twice = (once & 0xFFFFFFFF) * _C + (once >> 32) * _D
    return twice ^ twice >> 32


def size_for(count: i64) -> i64:
    """The number of slots for `count` numbers."""
    size: i64 = _FEWEST
    while size < 2 * count:
        size *= 2
    return size


@mypyc_attr(native_class=True)
class Slots:
    """Where numbers are by their hashes. `mask` is the number of slots less 1, -1 while there is no memory.

    `cells` are the numbers + 1, for tables that probe without a call per slot.
    """

    __slots__ = ("_numbers", "cells", "mask")

    def __init__(self, allocator: Allocator) -> None:
        self._numbers: Final[Vec[Allocator]] = Vec(allocator, "I")
        self.cells: Final = self._numbers.cells
        self.mask: i64 = -1

    def make(self, count: i64) -> None:
        """Allocate memory for `count` numbers. There must be none yet."""
        size = size_for(count)
        self._numbers.fill_zero(size)
        self.mask = size - 1

    def __len__(self) -> int:
        return len(self._numbers)

    def has_room(self, count: i64) -> bool:
        """Whether `count` numbers fit."""
        return 2 * count <= self.mask + 1

    def first(self, hashed: i64) -> i64:
        """The slot to look at first for a hash. There must be memory."""
        return hashed & self.mask

    def after(self, slot: i64) -> i64:
        """The slot to look at next."""
        return (slot + 1) & self.mask

    def at(self, slot: i64) -> i64:
        """The number in a slot, -1 if it is free."""
        return self.cells[slot] - 1

    def put(self, slot: i64, number: i64) -> None:
        """Overwrite a slot; with -1, free it."""
        self.cells[slot] = number + 1

    def add(self, hashed: i64, number: i64) -> i64:
        """Put a number that is not there yet into the first free slot for its hash, and return that slot."""
        self._numbers.check_open()
        slot = hashed & self.mask
        while load_u32(self.cells.pointer, slot) != 0:
            slot = (slot + 1) & self.mask
        store_u32(self.cells.pointer, slot, number + 1)
        return slot

    def clear(self) -> None:
        """Free all slots."""
        count = len(self._numbers)
        self._numbers.clear()
        self._numbers.fill(0, count)

    def check_open(self) -> None:
        """Raise `MisuseError` once the slots are closed, or their memory has been revoked."""
        self._numbers.check_open()

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        try:
            self._numbers.close()
        finally:
            self.mask = -1
