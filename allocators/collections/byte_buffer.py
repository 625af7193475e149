"""ByteBuffer: growable bytes, a Vec of 'B' with the interface of bytes."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from operator import index as plain_int
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, overload

from allocators._mypyc import mypyc_attr
from allocators.closing import Closing
from allocators.collections.vec import Vec, as_items
from allocators.protocol import Allocator

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class ByteBuffer(Closing, Generic[A]):
    """Bytes that grow. `vec` is the Vec that holds them, with all else that a Vec can do."""

    __slots__ = ("vec",)

    def __init__(self, allocator: A, capacity: SupportsIndex = 0) -> None:
        self.vec: Vec[A] = Vec(allocator, "B", capacity)

    def __len__(self) -> int:
        return len(self.vec)

    def write(self, data: ReadableBuffer) -> int:
        """Append bytes and return where they start."""
        if isinstance(data, bytes):
            return self.vec.extend_bytes(data)
        source = as_items(data, "B")
        start = len(self.vec)
        self.vec.extend(source)
        return start

    def write_byte(self, byte: SupportsIndex) -> None:
        """Append one byte. Raises ValueError outside 0..255."""
        self.vec.append(byte)

    @property
    def view(self) -> memoryview:
        """The bytes, without a copy; stale once the buffer grows, shrinks or closes, or its memory is revoked."""
        return self.vec.view

    def slice(self, start: SupportsIndex, end: SupportsIndex) -> bytes:
        """A copy of the bytes from `start` up to `end`."""
        first = plain_int(start)
        behind = plain_int(end)
        return bytes(self.vec.view[first:behind])

    def __bytes__(self) -> bytes:
        return bytes(self.vec.view)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: builtins.slice) -> memoryview: ...
    def __getitem__(self, index: SupportsIndex | builtins.slice) -> Any:
        """One byte, or a view of several without a copy."""
        return self.vec[index]

    @overload
    def __setitem__(self, index: SupportsIndex, item: SupportsIndex) -> None: ...
    @overload
    def __setitem__(self, index: builtins.slice, item: ReadableBuffer) -> None: ...
    def __setitem__(self, index: SupportsIndex | builtins.slice, item: Any) -> None:
        """Overwrite one byte, or several by as many."""
        self.vec[index] = item

    def __delitem__(self, index: SupportsIndex | builtins.slice) -> None:
        """Remove one byte, or several in a row."""
        del self.vec[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self.vec)

    def insert(self, index: SupportsIndex, data: ReadableBuffer) -> None:
        """Insert bytes before `index`."""
        self.vec.insert_all(index, data)

    def fill(self, byte: SupportsIndex, count: SupportsIndex) -> None:
        """Append one byte `count` times."""
        self.vec.fill(byte, count)

    def numpy(self) -> Any:
        """The bytes as a numpy array, without a copy. Needs numpy."""
        return self.vec.numpy()

    def reserve(self, additional: SupportsIndex) -> None:
        """Make room for `additional` more bytes."""
        self.vec.reserve(additional)

    def shrink_to_fit(self) -> None:
        """Give back the capacity beyond the last byte."""
        self.vec.shrink_to_fit()

    def truncate(self, length: SupportsIndex) -> None:
        """Keep the first `length` bytes and the capacity."""
        self.vec.truncate(length)

    def clear(self) -> None:
        """Drop all bytes, keep the capacity."""
        self.vec.clear()

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        self.vec.close()

    def __repr__(self) -> str:
        return f"<ByteBuffer of {self.vec._storage.length} bytes>"
