"""LimitAllocator: the bytes in use never exceed a limit.

Counts what was asked for, not what the parent takes for it: a block of 4 bytes counts 4. Growing counts the difference
only, whether or not the parent has to move the block. Memory that the parent holds beyond its blocks is not counted:
to limit the chunks of an arena, put the limit below it, `Arena(LimitAllocator(parent, limit))`.

Costs: a comparison and two additions beside the parent's own.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import CountingAdaptor
from allocators.base import check_grow, check_resize
from allocators.block import Block
from allocators.layout import MAX_SIZE, Layout
from allocators.protocol import Allocator, AllocError, LayoutError
from allocators.sizes import size_text

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class LimitAllocator(CountingAdaptor[A], Generic[A]):
    """At most `limit` bytes of `parent`; `AllocError`, with both figures, for what would exceed it."""

    __slots__ = ("_limit",)

    def __init__(self, parent: A, limit: int) -> None:
        super().__init__(parent)
        self._limit: i64 = _checked(limit)

    @property
    def limit(self) -> int:
        """Bytes that may be in use.

        It can be set, also to less than is in use: then nothing is served until enough has been given back.
        """
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._limit = _checked(limit)

    @property
    def remaining_bytes(self) -> int:
        """Bytes that can still be allocated."""
        return max(self._limit - self._live_bytes, 0)

    def _check(self, growth: i64, layout: Layout) -> None:
        if growth > 0 and growth > self._limit - self._live_bytes:
            raise AllocError("limit", layout, limit=self._limit, in_use=self._live_bytes)

    def allocate(self, layout: Layout) -> Block:
        self._check(layout.size, layout)
        return self._added(self._up.allocate(layout), layout.size)

    def allocate_zeroed(self, layout: Layout) -> Block:
        self._check(layout.size, layout)
        return self._added(self._up.allocate_zeroed(layout), layout.size)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._check_counted(block, layout)
        region = block.region
        self._up.deallocate(block, layout)
        self._removed(region, layout.size)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        self._check(new.size - old.size, new)
        region = block.region
        return self._resized(region, self._up.grow(block, old, new), old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        self._check(new.size - old.size, new)
        region = block.region
        return self._resized(region, self._up.grow_zeroed(block, old, new), old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        region = block.region
        return self._resized(region, self._up.shrink(block, old, new), old, new)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """As the parent does it, and None too for what would exceed the limit."""
        check_resize(block, old, new)
        if new.size - old.size > max(self._limit - self._live_bytes, 0):
            return None
        return super().resize_in_place(block, old, new)

    def __repr__(self) -> str:
        return f"limit({size_text(self._limit)}, {self._parent!r})"


def _checked(limit: int) -> int:
    if not 0 <= limit <= MAX_SIZE:
        raise LayoutError(f"a limit must lie between 0 and 2**63 - 1, not be {limit}")
    return limit
