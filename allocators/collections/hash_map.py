"""HashMap: unsigned 64-bit keys to unsigned 64-bit values.

Layout: the entries are a Table of two columns, keys and values, without gaps, whose numbers stand in `Slots`. A
deletion moves up what is behind it in the slots, so there are no tombstones. Entries are in the order of insertion
until one is deleted: the last one then takes its place.

Costs: 16 bytes an entry and 8 to 16 for its slots, plus the spare capacity of a doubling table. A lookup reads two or
three slots and most often one key, about 200 ns in compiled code. `keys` and `values` are views, without a copy.

Not for: keys of other kinds; an `Interner` maps bytes to numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import index as plain_int
from typing import Any, Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.closing import Closing
from allocators.collections.slots import Slots, mix, size_for
from allocators.collections.storage import as_count
from allocators.collections.table import Table
from allocators.errors import LayoutError, MisuseError
from allocators.layout import number_text
from allocators.protocol import Allocator
from allocators.uncopyable import Uncopyable

A = TypeVar("A", bound=Allocator, covariant=True)

#: Entries are numbered in 32 bits.
_MOST_ENTRIES: Final = (1 << 32) - 2


@mypyc_attr(native_class=True)
class HashMap(Closing, Generic[A]):
    """A map whose keys and values are ints from 0 to 2**64 - 1, or what has `__index__`.

    Once the memory of entries or slots has been revoked, by the end of a scope or by a reset, everything but `close`,
    `capacity` and `repr` raises `MisuseError`; what is true of views that were taken before says `allocators.block`.
    """

    __slots__ = ("_entries", "_slots", "allocator")

    def __init__(self, allocator: A, capacity: SupportsIndex = 0) -> None:
        self.allocator: Final[A] = allocator
        self._entries: Table[A] = Table(allocator, "QQ")
        self._slots: Slots[A] = Slots(allocator)
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
        return min((self._slots.mask + 1) // 2, self._entries.capacity)

    def _find(self, key: int) -> i64:
        """The slot that holds a key, or else the free one where it belongs; -1 while there are no slots."""
        slots = self._slots
        if slots.mask < 0:
            # Raises where there were entries once, and they have been revoked.
            len(self)
            return -1
        keys = self._entries.columns[0]
        slot = slots.first(_hash(key))
        entry = slots.at(slot)
        while entry >= 0 and keys[entry] != key:
            slot = slots.after(slot)
            entry = slots.at(slot)
        return slot

    def _entry(self, key: int) -> i64:
        """The number of a key's entry, or -1."""
        slot = self._find(key)
        return -1 if slot < 0 else self._slots.at(slot)

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
            entry = self._slots.at(slot)
            if entry >= 0:
                self._entries.columns[1][entry] = value
                return
        count = len(self._entries)
        if count == self._entries.capacity or not self._slots.has_room(count + 1):
            self.reserve(1)
            # The allocator may have used the map itself.
            self._set(key, value)
            return
        self._entries.append(key, value)
        self._slots.put(slot, count)

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
        entry: i64 = -1 if slot < 0 else self._slots.at(slot)
        if entry < 0:
            raise KeyError(key)
        self._free_slot(slot)
        last = len(self._entries) - 1
        if entry != last:
            keys, values = self._entries.columns
            self._slots.put(self._find(keys[last]), entry)
            keys[entry] = keys[last]
            values[entry] = values[last]
        self._entries.truncate(last)

    def __delitem__(self, key: SupportsIndex) -> None:
        self._delete(_plain(key))

    def _free_slot(self, slot: i64) -> None:
        """Empty a slot, and move up those behind it that would not be found any more."""
        slots = self._slots
        mask = slots.mask
        keys = self._entries.columns[0]
        free = slot
        at = slots.after(slot)
        entry = slots.at(at)
        while entry >= 0:
            home = slots.first(_hash(keys[entry]))
            # It may move up if its home is not between the free slot and itself.
            if (at - home) & mask >= (at - free) & mask:
                slots.put(free, entry)
                free = at
            at = slots.after(at)
            entry = slots.at(at)
        slots.put(free, -1)

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
        if not self._slots.has_room(needed):
            self._rehash(needed)

    def _rehash(self, count: int) -> None:
        """Replace the slots by others for `count` entries."""
        slots: Slots[A] = Slots(self.allocator)
        try:
            slots.make(count)
            # Not before now: the allocator may have used the map itself.
            self._slots.check_open()
            if not slots.has_room(len(self._entries)):
                raise MisuseError("the allocator of a map has added to it while it grew")
            for entry, key in enumerate(self._entries.column(0)):
                slots.add(_hash(key), entry)
        except BaseException:
            slots.close()
            raise
        before = self._slots
        self._slots = slots
        before.close()

    def shrink_to_fit(self) -> None:
        """Give back the memory that the entries do not need."""
        self.check_open()
        if len(self) == 0:
            before = self._slots
            self._slots = Slots(self.allocator)
            before.close()
        elif size_for(len(self)) <= self._slots.mask:
            self._rehash(len(self))
        self._entries.shrink_to_fit()

    def clear(self) -> None:
        """Delete all entries, keep the capacity."""
        self.check_open()
        self._entries.clear()
        self._slots.clear()

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

    def __repr__(self) -> str:
        return f"<HashMap of {self._entries._storage.length} entries, capacity {self.capacity}>"


@mypyc_attr(native_class=True)
class _Entries(Uncopyable):
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
    return mix(key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF)
