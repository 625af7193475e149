"""HashMap: unsigned 64-bit keys to unsigned 64-bit values.

Layout: the entries are a Table of two columns, keys and values, without gaps; a table of slots holds the number of an
entry + 1, or 0 where it is free. Its length is a power of two, it is at most half full and probed linearly, and a
deletion moves what is behind it up, so there are no tombstones. Entries are in the order of insertion until one is
deleted: the last one then takes its place.

Costs: 16 bytes an entry and 8 to 16 for its slots, plus the spare capacity of a doubling table. A lookup reads two or
three slots and most often one key, about 200 ns in compiled code. `keys` and `values` are views, without a copy.

Not for: keys that somebody chooses to make it slow, or keys of other kinds; an `Interner` maps bytes to numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index as plain_int
from types import TracebackType
from typing import Any, Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.collections.storage import as_count
from allocators.collections.table import Table
from allocators.collections.vec import Vec
from allocators.layout import number_text
from allocators.protocol import Allocator, LayoutError

A = TypeVar("A", bound=Allocator, covariant=True)

_FIRST_SLOTS: Final = 16
#: Entries are numbered in 32 bits.
_MOST_ENTRIES: Final = (1 << 32) - 2

# Two odd numbers of 30 bits without much structure: each half of a key times one of them, and their sum, stay below
# 2**63.
_LOW_FACTOR: Final = 0x3C6EF35F
_HIGH_FACTOR: Final = 0x2545F491


@mypyc_attr(native_class=True)
class HashMap(Generic[A]):
    """A map whose keys and values are ints from 0 to 2**64 - 1, or what has `__index__`.

    Once the memory of entries or slots has been revoked, by the end of a scope or by a reset, everything but `close`,
    `capacity` and `repr` raises `MisuseError`; what is true of views that were taken before says `allocators.block`.
    """

    __slots__ = ("_entries", "_mask", "_slots", "allocator")

    def __init__(self, allocator: A, capacity: SupportsIndex = 0) -> None:
        self.allocator: Final[A] = allocator
        self._entries: Table[A] = Table(allocator, "QQ")
        self._slots: Vec[A] = Vec(allocator, "I")
        self._mask: i64 = -1
        entries = plain_int(capacity)
        if entries:
            try:
                self.reserve(entries)
            except BaseException:
                self.close()
                raise

    def check_open(self) -> None:
        """Raise `MisuseError` once the map is closed, or its memory has been revoked."""
        self._entries.check_open()
        self._slots.check_open()

    def __len__(self) -> int:
        # Raises where the slots are revoked.
        len(self._slots)
        return len(self._entries)

    @property
    def capacity(self) -> int:
        """How many entries fit before the map must grow."""
        return min((self._mask + 1) // 2, self._entries.capacity)

    def _find(self, key: int) -> int:
        """The slot that holds a key, or else the free one where it belongs; -1 while there are no slots."""
        mask = self._mask
        if mask < 0:
            # Raises where there were entries once, and they have been revoked.
            len(self)
            return -1
        slots = self._slots.data
        keys = self._entries.columns[0]
        slot = _hash(key) & mask
        while True:
            entry: int = slots[slot]
            if entry == 0 or keys[entry - 1] == key:
                return slot
            slot = (slot + 1) & mask

    def _entry(self, key: int) -> int:
        """The number of a key's entry, or -1."""
        slot = self._find(key)
        return -1 if slot < 0 else int(self._slots.data[slot]) - 1

    def __contains__(self, key: SupportsIndex) -> bool:
        return self._entry(_plain(key)) >= 0

    def get(self, key: SupportsIndex, default: Any = None) -> Any:
        """The value of a key, or `default` where it has none."""
        entry = self._entry(_plain(key))
        return default if entry < 0 else self._entries.columns[1][entry]

    def __getitem__(self, key: SupportsIndex) -> int:
        """The value of a key; KeyError where it has none."""
        entry = self._entry(_plain(key))
        if entry < 0:
            raise KeyError(key)
        value: int = self._entries.columns[1][entry]
        return value

    def set(self, key: SupportsIndex, value: SupportsIndex) -> None:
        """Give a key a value. Raises ValueError where one of them is not from 0 to 2**64 - 1.

        Where it raises, `AllocError` included, nothing has changed.
        """
        self._set(_plain(key), _plain(value))

    def _set(self, key: int, value: int) -> None:
        slot = self._find(key)
        if slot >= 0:
            entry: int = self._slots.data[slot]
            if entry:
                self._entries.columns[1][entry - 1] = value
                return
        count = len(self._entries)
        if count == self._entries.capacity or 2 * (count + 1) > self._mask + 1:
            self.reserve(1)
            # The allocator may have used the map itself.
            self._set(key, value)
            return
        self._entries.append(key, value)
        self._slots.data[slot] = count + 1

    def __setitem__(self, key: SupportsIndex, value: SupportsIndex) -> None:
        self._set(_plain(key), _plain(value))

    def setdefault(self, key: SupportsIndex, value: SupportsIndex) -> int:
        """The value of a key, which is given this one if it has none."""
        plain = _plain(key)
        plain_value = _plain(value)
        entry = self._entry(plain)
        if entry < 0:
            self._set(plain, plain_value)
            return plain_value
        present: int = self._entries.columns[1][entry]
        return present

    def update(self, items: Iterable[tuple[SupportsIndex, SupportsIndex]]) -> None:
        """Set many keys, in order."""
        for key, value in items:
            self.set(key, value)

    def delete(self, key: SupportsIndex) -> None:
        """Delete a key; KeyError where it is not in the map."""
        self._delete(_plain(key))

    def _delete(self, key: int) -> None:
        slot = self._find(key)
        entry = -1 if slot < 0 else int(self._slots.data[slot]) - 1
        if entry < 0:
            raise KeyError(key)
        self._free_slot(slot)
        last = len(self._entries) - 1
        if entry != last:
            keys, values = self._entries.columns
            self._slots.data[self._find(keys[last])] = entry + 1
            keys[entry] = keys[last]
            values[entry] = values[last]
        self._entries.truncate(last)

    def __delitem__(self, key: SupportsIndex) -> None:
        self._delete(_plain(key))

    def _free_slot(self, slot: int) -> None:
        """Empty a slot, and move up those behind it that would not be found any more."""
        mask = self._mask
        slots = self._slots.data
        keys = self._entries.columns[0]
        free: i64 = slot
        at: i64 = slot
        while True:
            at = (at + 1) & mask
            entry: int = slots[at]
            if entry == 0:
                break
            home = _hash(keys[entry - 1]) & mask
            # It may move up if its home is not between the free slot and itself.
            if (at - home) & mask >= (at - free) & mask:
                slots[free] = entry
                free = at
        slots[free] = 0

    def pop(self, key: SupportsIndex, *default: Any) -> Any:
        """Delete a key and return its value; `default` where it is not in the map, KeyError without one."""
        if len(default) > 1:
            raise TypeError(f"pop takes at most one default, not {len(default)}")
        plain = _plain(key)
        entry = self._entry(plain)
        if entry < 0:
            if default:
                return default[0]
            raise KeyError(key)
        value = self._entries.columns[1][entry]
        self._delete(plain)
        return value

    def reserve(self, additional: SupportsIndex) -> None:
        """Make room for `additional` more entries, at least doubling what must grow.

        Raises `LayoutError` for more than 2**32 - 2 entries, and `AllocError` where the allocator refuses; no entry has
        changed then.
        """
        count = as_count(additional, "the number of entries to reserve room for")
        self.check_open()
        length = len(self._entries)
        if count > _MOST_ENTRIES - length:
            raise LayoutError(
                f"a map holds at most {_MOST_ENTRIES} entries, not {length} and {number_text(count)} more"
            )
        self._entries.reserve(count)
        needed = length + count
        if 2 * needed > self._mask + 1:
            size = _FIRST_SLOTS
            while size < 2 * needed:
                size *= 2
            self._rehash(size)

    def _rehash(self, size: int) -> None:
        """Replace the slots by `size` others."""
        slots: Vec[A] = Vec(self.allocator, "I")
        try:
            slots.fill(0, size)
            # Not before now: the allocator may have used the map itself.
            self._slots.check_open()
            mask: i64 = size - 1
            data = slots.data
            for entry, key in enumerate(self._entries.column(0)):
                slot = _hash(key) & mask
                while data[slot]:
                    slot = (slot + 1) & mask
                data[slot] = entry + 1
        except BaseException:
            slots.close()
            raise
        before = self._slots
        self._slots = slots
        self._mask = mask
        before.close()

    def shrink_to_fit(self) -> None:
        """Give back the memory that the entries do not need."""
        self.check_open()
        size = _FIRST_SLOTS
        while size < 2 * len(self):
            size *= 2
        if len(self) == 0:
            self._slots.clear()
            self._mask = -1
            self._slots.shrink_to_fit()
        elif size <= self._mask:
            self._rehash(size)
        self._entries.shrink_to_fit()

    def clear(self) -> None:
        """Delete all entries, keep the capacity."""
        self.check_open()
        self._entries.clear()
        count = len(self._slots)
        self._slots.clear()
        self._slots.fill(0, count)

    @property
    def keys(self) -> memoryview:
        """The keys, without a copy; stale once the map changes."""
        self.check_open()
        return self._entries.column(0)

    @property
    def values(self) -> memoryview:
        """The values, in the order of the keys; stale once the map changes."""
        self.check_open()
        return self._entries.column(1)

    def numpy(self) -> tuple[Any, Any]:
        """Keys and values as numpy arrays, without a copy. Needs numpy."""
        self.check_open()
        return self._entries.numpy(0), self._entries.numpy(1)

    def __iter__(self) -> Iterator[int]:
        """The keys. RuntimeError at the next one once entries have come or gone."""
        return _Entries(self, False)

    def items(self) -> Iterator[tuple[int, int]]:
        """The entries as (key, value). RuntimeError at the next one once entries have come or gone."""
        return _Entries(self, True)

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        try:
            self._slots.close()
        finally:
            self._entries.close()
            self._mask = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<HashMap of {self._entries._length} entries, capacity {self.capacity}>"


@mypyc_attr(native_class=True)
class _Entries:
    """Goes through a map by the number of the entry."""

    __slots__ = ("_items", "_length", "_map", "_next")

    def __init__(self, map: HashMap[Any], items: bool) -> None:
        map.check_open()
        self._map: Final = map
        self._items: Final = items
        self._length: Final = len(map)
        self._next: i64 = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        self._map.check_open()
        if len(self._map) != self._length:
            raise RuntimeError("the map has changed its size during iteration")
        index = self._next
        if index >= self._length:
            raise StopIteration
        self._next = index + 1
        entries = self._map._entries
        return entries[index] if self._items else entries.columns[0][index]


def _plain(number: SupportsIndex) -> int:
    """A key or a value as a plain int: asking for it may run the caller's code."""
    return number if isinstance(number, int) else plain_int(number)


def _hash(key: int) -> i64:
    """A number from 0 to 2**63 - 1 that depends on all bits of a key, in its low bits too."""
    low: i64 = key & 0xFFFFFFFF
    high: i64 = (key >> 32) & 0xFFFFFFFF
    mixed = low * _LOW_FACTOR + high * _HIGH_FACTOR
    return mixed ^ (mixed >> 32)
