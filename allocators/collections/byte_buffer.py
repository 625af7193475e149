"""ByteBuffer: growable bytes, a Vec of 'B' that speaks in bytes."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.collections.vec import Vec
from allocators.protocol import Allocator

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class ByteBuffer(Generic[A]):
    """Bytes that grow at the end. `vec` is the Vec behind them, for everything else that a Vec can do."""

    __slots__ = ("vec",)

    def __init__(self, allocator: A, capacity: int = 0) -> None:
        self.vec: Vec[A] = Vec(allocator, "B", capacity)

    def __len__(self) -> int:
        return len(self.vec)

    def write(self, data: ReadableBuffer) -> int:
        """Append bytes and return where they start."""
        start = len(self.vec)
        self.vec.extend(data)
        return start

    def write_byte(self, byte: int) -> None:
        """Append one byte. Raises ValueError outside 0..255."""
        self.vec.append(byte)

    @property
    def view(self) -> memoryview:
        """The bytes, without a copy; stale once the buffer grows, shrinks or closes."""
        return self.vec.view

    def slice(self, start: int, end: int) -> bytes:
        """A copy of the bytes from `start` up to `end`."""
        return bytes(self.vec.view[start:end])

    def __bytes__(self) -> bytes:
        return bytes(self.vec.view)

    def truncate(self, length: int) -> None:
        """Keep the first `length` bytes and the capacity."""
        self.vec.truncate(length)

    def clear(self) -> None:
        """Drop all bytes, keep the capacity."""
        self.vec.clear()

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        self.vec.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ByteBuffer of {len(self)} bytes>"
