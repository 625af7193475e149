"""Storage: the one block behind a container, and how it is resized and given back.

A container caches views of its block. They are released before the block is resized or freed, so that an allocator
which moves or unmaps pages sees nobody looking, and so that a stale view raises rather than reading old bytes.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.block import Block
from allocators.layout import Layout
from allocators.protocol import Allocator, MisuseError

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Storage(Generic[A]):
    """At most one block of an allocator. Zero bytes are no block: an empty container never touches its allocator."""

    __slots__ = ("allocator", "block", "closed", "layout")

    def __init__(self, allocator: A) -> None:
        self.allocator = allocator
        self.block: Block | None = None
        self.layout = Layout(0, 1)
        self.closed = False

    def resize(self, layout: Layout) -> None:
        """Make the block fit `layout`, keeping the common prefix. On `AllocError` nothing has changed."""
        if self.closed:
            raise MisuseError("the container is closed")
        block = self.block
        if layout.size == 0:
            if block is not None:
                self.allocator.deallocate(block, self.layout)
            self.block = None
        elif block is None:
            self.block = self.allocator.allocate(layout)
        elif layout.size >= self.layout.size:
            self.block = self.allocator.grow(block, self.layout, layout)
        else:
            self.block = self.allocator.shrink(block, self.layout, layout)
        self.layout = layout

    def view(self, format: str) -> memoryview:
        """A fresh view of the bytes that were asked for, as items of one machine type."""
        block = self.block
        if block is None:
            return memoryview(bytearray()).cast(format)  # type: ignore[call-overload,no-any-return]
        return block.view[: self.layout.size].cast(format)  # type: ignore[call-overload,no-any-return]

    def close(self) -> None:
        """Give the block back, unless a scope or a reset has ended it already; closing twice is harmless."""
        if self.closed:
            return
        block = self.block
        if block is not None and not block.released:
            self.allocator.deallocate(block, self.layout)
        self.block = None
        self.layout = Layout(0, 1)
        self.closed = True


def release_view(view: memoryview) -> None:
    """Release a cached view, or leave it to whoever looks at the bytes through it (a numpy array, say)."""
    try:
        view.release()
    except BufferError:
        pass
