"""Interner: distinct byte strings to dense ids 0, 1, 2, ... and back.

Layout: all bytes end to end in one ByteBuffer; for each id the offset of its end, and its hash; an open-addressing
table of ids + 1 (0 is a free slot) of a power of two, at most half full, probed linearly.

Costs: one hash of the bytes and, most often, one comparison; 12 bytes an id, and 8 to 16 for the table, beside the
bytes. Nothing is ever removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as plain_int
from types import TracebackType
from typing import Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.collections.byte_buffer import ByteBuffer
from allocators.collections.vec import Vec
from allocators.layout import number_text
from allocators.protocol import Allocator, MisuseError

A = TypeVar("A", bound=Allocator, covariant=True)

_FIRST_SLOTS: Final = 32
#: Offsets have 32 bits.
_MOST_BYTES: Final = (1 << 32) - 1


@mypyc_attr(native_class=True)
class Interner(Generic[A]):
    """Each distinct byte string gets the next id, for good.

    Once memory of it has been revoked, by the end of a scope or by a reset, everything but `close` and `repr` raises
    `MisuseError`.
    """

    __slots__ = ("_bytes", "_ends", "_hashes", "_mask", "_slots", "allocator")

    def __init__(self, allocator: A) -> None:
        self.allocator: Final[A] = allocator
        self._bytes: ByteBuffer[A] = ByteBuffer(allocator)
        self._ends: Vec[A] = Vec(allocator, "I")
        self._hashes: Vec[A] = Vec(allocator, "q")
        self._slots: Vec[A] = Vec(allocator, "I")
        self._mask: i64 = -1

    def __len__(self) -> int:
        self._check_revoked()
        return len(self._ends)

    def _check_revoked(self) -> None:
        """Raise `MisuseError` where any part has been revoked; a closed interner is only empty."""
        len(self._bytes)
        len(self._ends)
        len(self._hashes)
        len(self._slots)

    def intern(self, text: bytes) -> int:
        """The id of `text`, a new one where it has none yet. On `AllocError` nothing has changed."""
        hashed = hash(text)
        slot = self._find(text, hashed)
        if slot >= 0:
            found: int = self._slots.data[slot]
            if found:
                return found - 1
        if len(self._bytes) + len(text) > _MOST_BYTES:
            raise MisuseError(f"an interner holds at most {_MOST_BYTES} bytes")
        if 2 * (len(self._ends) + 1) > self._mask + 1:
            self._rehash()
            # The allocator may have used the interner itself.
            return self.intern(text)
        self._ends.reserve(1)
        self._hashes.reserve(1)
        self._bytes.reserve(len(text))
        slot = self._find(text, hashed)
        new_id = len(self._ends)
        if self._slots.data[slot]:
            return int(self._slots.data[slot]) - 1
        self._bytes.write(text)
        self._ends.append(len(self._bytes))
        self._hashes.append(hashed)
        self._slots.data[slot] = new_id + 1
        return new_id

    def find(self, text: bytes) -> int:
        """The id of `text`, or -1 where it has none."""
        slot = self._find(text, hash(text))
        return -1 if slot < 0 else int(self._slots.data[slot]) - 1

    def _find(self, text: bytes, hashed: int) -> int:
        """The slot that holds `text`, or the free one where it belongs; -1 while there is no table."""
        mask: int = self._mask
        if mask < 0:
            # Raises where there was memory once, and it has been revoked.
            self._check_revoked()
            return -1
        slots = self._slots.data
        hashes = self._hashes.data
        ends = self._ends.data
        texts = self._bytes.vec.data
        slot = hashed & mask
        while True:
            found: int = slots[slot]
            if found == 0:
                return slot
            if hashes[found - 1] == hashed:
                start: int = ends[found - 2] if found > 1 else 0
                if texts[start : ends[found - 1]] == text:
                    return slot
            slot = (slot + 1) & mask

    def _rehash(self) -> None:
        size = max(_FIRST_SLOTS, 2 * (self._mask + 1))
        slots: Vec[A] = Vec(self.allocator, "I")
        try:
            slots.fill(0, size)
            self._slots.check_open()
            mask = size - 1
            data = slots.data
            for new_id, hashed in enumerate(self._hashes.view):
                slot = hashed & mask
                while data[slot]:
                    slot = (slot + 1) & mask
                data[slot] = new_id + 1
        except BaseException:
            slots.close()
            raise
        before = self._slots
        self._slots = slots
        self._mask = mask
        before.close()

    def __contains__(self, text: bytes) -> bool:
        return self.find(text) >= 0

    def lookup(self, id: SupportsIndex) -> bytes:
        """The byte string of an id; IndexError where there is none."""
        number: int = id if isinstance(id, int) else plain_int(id)
        if not 0 <= number < len(self._ends):
            raise IndexError(f"no byte string has id {number_text(number)}; there are {len(self._ends)}")
        ends = self._ends.data
        start: int = ends[number - 1] if number else 0
        return bytes(self._bytes.vec.data[start : ends[number]])

    def __iter__(self) -> Iterator[bytes]:
        """The byte strings in the order of their ids."""
        return map(self.lookup, range(len(self)))

    def clear(self) -> None:
        """Forget all byte strings, keep the capacity."""
        self._check_revoked()
        self._bytes.clear()
        self._ends.clear()
        self._hashes.clear()
        slots = len(self._slots)
        self._slots.clear()
        if slots:
            self._slots.fill(0, slots)

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
                    self._mask = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Interner of {self._ends._length} byte strings>"
