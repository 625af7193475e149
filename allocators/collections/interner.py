"""Interner: maps distinct byte strings to dense ids 0, 1, 2, ... and back.

Layout: all bytes end to end in one ByteBuffer; for each id the offset of its end, and its hash; `Slots` with the ids.

Costs: the hash of the bytes, which Python keeps in the object, and usually one comparison. Besides the bytes, 12 bytes
per id and 8 to 16 for the slots. Nothing is ever removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as plain_int
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.closing import Closing
from allocators.collections.byte_buffer import ByteBuffer
from allocators.collections.slots import Slots
from allocators.collections.vec import Vec
from allocators.errors import MisuseError
from allocators.layout import number_text
from allocators.memory import equal_bytes, load_bytes, load_i64, load_u32
from allocators.protocol import Allocator

A = TypeVar("A", bound=Allocator, covariant=True)

#: Ids that fit at first.
_FIRST: Final = 16
#: Offsets have 32 bits.
_MOST_BYTES: Final = (1 << 32) - 1


@mypyc_attr(native_class=True)
class Interner(Closing, Generic[A]):
    """Gives each distinct byte string the next id, for good.

    Once memory of it has been revoked, by the end of a scope or by a reset, everything but `close` and `repr` raises
    `MisuseError`.
    """

    __slots__ = ("_bytes", "_end_cells", "_ends", "_hash_cells", "_hashes", "_slots", "_text_cells", "allocator")

    def __init__(self, allocator: A) -> None:
        self.allocator: Final[A] = allocator
        self._bytes: Final[ByteBuffer[A]] = ByteBuffer(allocator)
        self._ends: Final[Vec[A]] = Vec(allocator, "I")
        self._hashes: Final[Vec[A]] = Vec(allocator, "q")
        self._slots: Slots = Slots(allocator)
        #: The same memory, with fewer steps to it.
        self._text_cells: Final = self._bytes.vec.cells
        self._end_cells: Final = self._ends.cells
        self._hash_cells: Final = self._hashes.cells

    def __len__(self) -> int:
        self._check_revoked()
        return len(self._ends)

    def _check_revoked(self) -> None:
        """Raise `MisuseError` if any part has been revoked; a closed interner is only empty."""
        len(self._bytes)
        len(self._ends)
        len(self._hashes)
        len(self._slots)

    def intern(self, text: bytes) -> int:
        """The id of `text`, a new one if it has none yet. On `AllocError` nothing has changed."""
        hashed: i64 = hash(text)
        slot = self._find(text, hashed)
        if slot >= 0:
            taken = load_u32(self._slots.cells.pointer, slot)
            if taken != 0:
                return taken - 1
        if len(self._bytes) + len(text) > _MOST_BYTES:
            raise MisuseError(f"an interner holds at most {_MOST_BYTES} bytes")
        if not self._slots.has_room(len(self._ends) + 1):
            self._rehash()
            # The allocator may have used the interner itself.
            return self.intern(text)
        self._ends.reserve(1)
        self._hashes.reserve(1)
        self._bytes.reserve(len(text))
        slot = self._find(text, hashed)
        new_id = len(self._ends)
        found = self._slots.at(slot)
        if found >= 0:
            return found
        self._bytes.write(text)
        self._ends.append_i64(len(self._bytes))
        self._hashes.append_i64(hashed)
        self._slots.put(slot, new_id)
        return new_id

    def find(self, text: bytes) -> int:
        """The id of `text`, or -1 if it has none."""
        slot = self._find(text, hash(text))
        if slot < 0:
            return -1
        return load_u32(self._slots.cells.pointer, slot) - 1

    def _find(self, text: bytes, hashed: i64) -> i64:
        """The slot that holds `text`, or the free one where it belongs; -1 while there are none.

        Raises `MisuseError` if memory has been revoked, so the pointers are good until other code can run.
        """
        mask = self._slots.mask
        if mask < 0:
            # Raises if there was memory once, and it has been revoked.
            self._check_revoked()
            return -1
        if (
            self._slots.cells.storage.block.region.memory is None
            or self._text_cells.storage.block.region.memory is None
            or self._end_cells.storage.block.region.memory is None
            or self._hash_cells.storage.block.region.memory is None
        ):
            self._check_revoked()
        numbers = self._slots.cells.pointer
        hashes = self._hash_cells.pointer
        slot = hashed & mask
        taken = load_u32(numbers, slot)
        while taken != 0:
            if taken > self._hash_cells.storage.length:
                raise _overwritten()
            if load_i64(hashes, taken - 1) == hashed and self._is(taken - 1, text):
                return slot
            slot = (slot + 1) & mask
            taken = load_u32(numbers, slot)
        return slot

    def _is(self, id: i64, text: bytes) -> bool:
        """Whether an id, which there is, belongs to these bytes."""
        start: i64 = 0
        if id > 0:
            start = load_u32(self._end_cells.pointer, id - 1)
        end = load_u32(self._end_cells.pointer, id)
        if end > self._text_cells.storage.length:
            raise _overwritten()
        return end - start == len(text) and equal_bytes(self._text_cells.pointer, start, text)

    def _rehash(self) -> None:
        slots: Slots = Slots(self.allocator)
        try:
            slots.make(max(_FIRST, self._slots.mask + 1))
            self._slots.check_open()
            if not slots.has_room(len(self._ends)):
                raise MisuseError("the allocator of an interner has added to it while it grew")
            self._hashes.check_open()
            new_id: i64 = 0
            while new_id < self._hash_cells.storage.length:
                slots.add(load_i64(self._hash_cells.pointer, new_id), new_id)
                new_id += 1
        except BaseException:
            slots.close()
            raise
        before = self._slots
        self._slots = slots
        before.close()

    def __contains__(self, text: bytes) -> bool:
        return self.find(text) >= 0

    def lookup(self, id: SupportsIndex) -> bytes:
        """The byte string of an id; IndexError if there is none."""
        number: int = id if isinstance(id, int) else plain_int(id)
        if not 0 <= number < len(self._ends):
            raise IndexError(f"no byte string has id {number_text(number)}; there are {len(self._ends)}")
        start: i64 = 0
        if number > 0:
            start = self._end_cells[number - 1]
        end = self._end_cells[number]
        if start > end or end > len(self._bytes):
            raise _overwritten()
        return load_bytes(self._text_cells.pointer, start, end - start)

    def __iter__(self) -> Iterator[bytes]:
        """The byte strings in the order of their ids."""
        return map(self.lookup, range(len(self)))

    def clear(self) -> None:
        """Forget all byte strings, keep the capacity."""
        self._check_revoked()
        self._bytes.clear()
        self._ends.clear()
        self._hashes.clear()
        self._slots.clear()

    def shrink_to_fit(self) -> None:
        """Give back the capacity that the byte strings do not need."""
        self._check_revoked()
        self._bytes.vec.shrink_to_fit()
        self._ends.shrink_to_fit()
        self._hashes.shrink_to_fit()

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        try:
            self._slots.close()
        finally:
            try:
                self._hashes.close()
            finally:
                try:
                    self._ends.close()
                finally:
                    self._bytes.close()

    def __repr__(self) -> str:
        return f"<Interner of {self._ends._storage.length} byte strings>"


def _overwritten() -> MisuseError:
    return MisuseError("the memory of the interner has been overwritten, perhaps through a view of another block")
