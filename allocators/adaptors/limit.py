"""LimitAllocator: the bytes in use never exceed a limit.

It counts requested bytes, not what the parent uses for them: a block of 4 bytes counts 4. Growing counts only the
difference, even if the parent has to move the block. Memory that the parent holds beyond its blocks is not counted: to
limit the chunks of an arena, put the limit below it, `Arena(LimitAllocator(parent, limit))`.

Costs: a comparison and two additions on top of the parent's.
"""

from __future__ import annotations

from operator import index as plain_int
from typing import Generic, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import CountingAdaptor
from allocators.base import check_grow, check_resize
from allocators.block import Block
from allocators.errors import AllocError, LayoutError
from allocators.layout import MAX_SIZE, Layout, number_text
from allocators.protocol import Allocator
from allocators.sizes import size_text

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class LimitAllocator(CountingAdaptor[A], Generic[A]):
    """Allows at most `limit` bytes in use; `AllocError`, with both figures, for a request beyond that."""

    __slots__ = ("_claimed", "_limit")

    def __init__(self, parent: A, limit: SupportsIndex) -> None:
        super().__init__(parent)
        self._limit: i64 = _checked(limit)
        #: Bytes of requests in progress: the parent may call back and make more requests here.
        self._claimed: i64 = 0

    @property
    def limit(self) -> int:
        """Maximum bytes in use.

        It can be set below the bytes in use: then requests fail until enough has been freed.
        """
        return self._limit

    @limit.setter
    def limit(self, limit: SupportsIndex) -> None:
        self._limit = _checked(limit)

    @property
    def remaining_bytes(self) -> int:
        """Bytes that can still be allocated."""
        return max(self._limit - self._live_bytes - self._claimed, 0)

    def _claim(self, growth: i64, layout: Layout) -> None:
        """Reserve bytes for a request before the parent serves it."""
        if growth > self._limit - self._live_bytes - self._claimed and growth > 0:
            raise AllocError("limit", layout, limit=self._limit, in_use=self._live_bytes + self._claimed)
        self._claimed += growth

    def allocate(self, layout: Layout) -> Block:
        size = layout.size
        self._claim(size, layout)
        try:
            block = self._up.allocate(layout)
        finally:
            self._claimed -= size
        return self._added(block, size)

    def allocate_zeroed(self, layout: Layout) -> Block:
        size = layout.size
        self._claim(size, layout)
        try:
            block = self._up.allocate_zeroed(layout)
        finally:
            self._claimed -= size
        return self._added(block, size)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        self._check_resize(block, old)
        growth = new.size - old.size
        self._claim(growth, new)
        region = block.region
        try:
            grown = self._up.grow(block, old, new)
        except BaseException:
            self._not_resized(block, region, old)
            raise
        finally:
            self._claimed -= growth
        return self._resized(region, grown, old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        self._check_resize(block, old)
        growth = new.size - old.size
        self._claim(growth, new)
        region = block.region
        try:
            grown = self._up.grow_zeroed(block, old, new)
        except BaseException:
            self._not_resized(block, region, old)
            raise
        finally:
            self._claimed -= growth
        return self._resized(region, grown, old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        self._check_resize(block, old)
        region = block.region
        try:
            shrunk = self._up.shrink(block, old, new)
        except BaseException:
            self._not_resized(block, region, old)
            raise
        return self._resized(region, shrunk, old, new)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Forward to the parent; also returns None for a size that would exceed the limit."""
        check_resize(block, old, new)
        growth = new.size - old.size
        if growth <= 0:
            return super().resize_in_place(block, old, new)
        if growth > self.remaining_bytes:
            return None
        self._claimed += growth
        try:
            return super().resize_in_place(block, old, new)
        finally:
            self._claimed -= growth

    def __repr__(self) -> str:
        return f"limit({size_text(self._limit)}, {self._parent!r})"


def _checked(limit: SupportsIndex) -> int:
    bytes_in_use = plain_int(limit)
    if not 0 <= bytes_in_use <= MAX_SIZE:
        raise LayoutError(f"a limit must lie between 0 and 2**63 - 1, not be {number_text(bytes_in_use)}")
    return bytes_in_use
