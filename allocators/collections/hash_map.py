"""HashMap: unsigned 64-bit keys to unsigned 64-bit values.

Layout: a Table of two columns, keys and values, without gaps, and `Slots` with the numbers of its rows. A deletion
moves up the numbers after it in the slots, so there are no tombstones. Entries are in insertion order until one is
deleted: the last one then takes its place.

Costs: 16 bytes an entry and 8 to 16 for its slots, plus the spare capacity of a doubling table. A lookup usually reads
two or three slots and one key: some 10 ns for compiled callers of `get_i64`. `keys` and `values` are views, not copies.

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
from allocators.memory import load_u32, load_u64, number, store_u32, store_u64, word
from allocators.protocol import Allocator
from allocators.uncopyable import Uncopyable

A = TypeVar("A", bound=Allocator, covariant=True)

#: Entries are numbered in 32 bits.
_MOST_ENTRIES: Final = (1 << 32) - 2


@mypyc_attr(native_class=True)
class HashMap(Closing, Generic[A]):
    """A map whose keys and values are ints from 0 to 2**64 - 1, or objects with `__index__`.

    Once the memory of entries or slots has been revoked, by the end of a scope or by a reset, everything but `close`,
    `capacity` and `repr` raises `MisuseError`. `allocators.block` says what becomes of views that were taken before.
    """

    __slots__ = ("_entries", "_keys", "_slots", "_values", "allocator")

    def __init__(self, allocator: A, capacity: SupportsIndex = 0) -> None:
        self.allocator: Final[A] = allocator
        self._entries: Final[Table[A]] = Table(allocator, "QQ")
        self._keys: Final = self._entries.cells[0]
        self._values: Final = self._entries.cells[1]
        self._slots: Slots = Slots(allocator)
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
        # Raises if the slots are revoked.
        len(self._slots)
        return len(self._entries)

    @property
    def capacity(self) -> int:
        """How many entries fit before the map grows."""
        return min((self._slots.mask + 1) // 2, self._entries.capacity)

    def _find(self, key: i64) -> i64:
        """The slot that holds a key (a word), or else the free one where it belongs; -1 while there are no slots.

        Raises `MisuseError` if memory has been revoked, so the pointers are good until other code can run.
        """
        mask = self._slots.mask
        if mask < 0:
            # Raises if there were entries once, and they have been revoked.
            len(self)
            return -1
        if self._slots.cells.storage.block.region.memory is None:
            raise self._slots.cells.storage.unusable()
        if self._keys.storage.block.region.memory is None:
            raise self._keys.storage.unusable()
        numbers = self._slots.cells.pointer
        keys = self._keys.pointer
        slot = _hash(key) & mask
        taken = load_u32(numbers, slot)
        while taken != 0:
            if taken > self._keys.storage.length:
                raise _overwritten()
            if load_u64(keys, taken - 1) == key:
                return slot
            slot = (slot + 1) & mask
            taken = load_u32(numbers, slot)
        return slot

    def _entry(self, key: i64) -> i64:
        """The number of a key's entry, or -1."""
        slot = self._find(key)
        # No conditional expressions of -1 and an i64: mypyc makes objects of both.
        if slot < 0:
            return -1
        return load_u32(self._slots.cells.pointer, slot) - 1

    def _entry_of(self, key: SupportsIndex) -> i64:
        """The number of a key's entry, or -1; no number that is not a key has one."""
        try:
            as_word = word(key)
        except ValueError:
            self.check_open()
            return -1
        return self._entry(as_word)

    def __contains__(self, key: SupportsIndex) -> bool:
        return self._entry_of(key) >= 0

    def get(self, key: SupportsIndex, default: Any = None) -> Any:
        """The value of a key, or `default` if it has none."""
        entry = self._entry_of(key)
        return default if entry < 0 else number(load_u64(self._values.pointer, entry))

    def get_i64(self, key: i64, default: i64) -> i64:
        """`get` for compiled callers: key, value and default from 0 to 2**63 - 1, or OverflowError."""
        if key < 0:
            raise OverflowError(f"a key is not negative: {key}")
        entry = self._entry(key)
        if entry < 0:
            return default
        return self._values[entry]

    def set_i64(self, key: i64, value: i64) -> None:
        """`set` for compiled callers. Raises ValueError if one of them is negative."""
        if key < 0 or value < 0:
            raise ValueError(f"keys and values are not negative: {key}, {value}")
        self._set(key, value)

    def __getitem__(self, key: SupportsIndex) -> Any:
        """The value of a key; KeyError if it has none."""
        entry = self._entry_of(key)
        if entry < 0:
            raise KeyError(key)
        return number(load_u64(self._values.pointer, entry))

    def set(self, key: SupportsIndex, value: SupportsIndex) -> None:
        """Give a key a value. Raises ValueError if one of them is not from 0 to 2**64 - 1.

        If it raises, `AllocError` included, nothing has changed.
        """
        self._set(word(key), word(value))

    def _set(self, key: i64, value: i64) -> None:
        slot = self._find(key)
        if slot >= 0:
            entry = load_u32(self._slots.cells.pointer, slot) - 1
            if entry >= 0:
                store_u64(self._values.pointer, entry, value)
                return
            count = self._keys.storage.length
            if count < self._entries.capacity and self._slots.has_room(count + 1):
                self._entries.add()
                store_u64(self._keys.pointer, count, key)
                store_u64(self._values.pointer, count, value)
                store_u32(self._slots.cells.pointer, slot, count + 1)
                return
        self.reserve(1)
        # From the start: the allocator may have used the map itself.
        self._set(key, value)

    def __setitem__(self, key: SupportsIndex, value: SupportsIndex) -> None:
        self._set(word(key), word(value))

    def setdefault(self, key: SupportsIndex, value: SupportsIndex) -> Any:
        """The value of a key, which is set to this one if it has none."""
        as_word = word(key)
        new = word(value)
        entry = self._entry(as_word)
        if entry < 0:
            self._set(as_word, new)
            return number(new)
        return number(load_u64(self._values.pointer, entry))

    def update(self, items: Iterable[tuple[SupportsIndex, SupportsIndex]]) -> None:
        """Set many keys, in order."""
        for key, value in items:
            self.set(key, value)

    def delete(self, key: SupportsIndex) -> None:
        """Delete a key; KeyError if it is not in the map."""
        plain: Any = plain_int(key)
        if self._entry_of(plain) < 0:
            raise KeyError(key)
        self._delete(word(plain))

    def _delete(self, key: i64) -> None:
        """Delete a key that is in the map."""
        slot = self._find(key)
        entry = load_u32(self._slots.cells.pointer, slot) - 1
        self._free_slot(slot)
        last = self._keys.storage.length - 1
        if entry != last:
            moved = load_u64(self._keys.pointer, last)
            slot = self._find(moved)
            store_u32(self._slots.cells.pointer, slot, entry + 1)
            store_u64(self._keys.pointer, entry, moved)
            store_u64(self._values.pointer, entry, load_u64(self._values.pointer, last))
        self._entries.truncate(last)

    def __delitem__(self, key: SupportsIndex) -> None:
        self.delete(key)

    def _free_slot(self, slot: i64) -> None:
        """Free a slot, and move up the numbers after it that would no longer be found."""
        mask = self._slots.mask
        numbers = self._slots.cells.pointer
        keys = self._keys.pointer
        free = slot
        at = (slot + 1) & mask
        taken = load_u32(numbers, at)
        while taken != 0:
            if taken > self._keys.storage.length:
                raise _overwritten()
            home = _hash(load_u64(keys, taken - 1)) & mask
            # It may move up if its home is not between the free slot and itself.
            if (at - home) & mask >= (at - free) & mask:
                store_u32(numbers, free, taken)
                free = at
            at = (at + 1) & mask
            taken = load_u32(numbers, at)
        store_u32(numbers, free, 0)

    def pop(self, key: SupportsIndex, *default: Any) -> Any:
        """Delete a key and return its value; `default` if it is not in the map, KeyError without one."""
        if len(default) > 1:
            raise TypeError(f"pop takes at most one default, not {len(default)}")
        plain: Any = plain_int(key)
        entry = self._entry_of(plain)
        if entry < 0:
            if default:
                return default[0]
            raise KeyError(key)
        value = number(load_u64(self._values.pointer, entry))
        self._delete(word(plain))
        return value

    def reserve(self, additional: SupportsIndex) -> None:
        """Make room for `additional` more entries, at least doubling what must grow.

        Raises `LayoutError` for more than 2**32 - 2 entries, and `AllocError` if the allocator refuses; no entry has
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
        """Replace the slots by new ones for `count` entries."""
        slots: Slots = Slots(self.allocator)
        try:
            slots.make(count)
            # Not before now: the allocator may have used the map itself.
            self._slots.check_open()
            if not slots.has_room(len(self._entries)):
                raise MisuseError("the allocator of a map has added to it while it grew")
            self._entries.check_open()
            entry: i64 = 0
            while entry < self._keys.storage.length:
                slots.add(_hash(load_u64(self._keys.pointer, entry)), entry)
                entry += 1
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
        """The keys. Once entries have been added or deleted, the next one raises RuntimeError."""
        return _Entries(self, False)

    def items(self) -> Iterator[tuple[int, int]]:
        """The entries as (key, value). Once entries have been added or deleted, the next one raises RuntimeError."""
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
    """Iterates over a map by the number of the entry."""

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


def _overwritten() -> MisuseError:
    return MisuseError("the slots of the map have been overwritten, perhaps through a view of another block")


def _hash(key: i64) -> i64:
    return mix(key & 0xFFFFFFFF, (key >> 32) & 0xFFFFFFFF)
