"""FallbackAllocator: allocates from a first allocator, and from a second when the first refuses.

For example, a small fast stack in a fixed buffer first, and a second allocator that always has room. `first.owns`
decides which of the two frees or resizes a block. A block that the first cannot grow moves to the second; none moves
back.

Blocks of size zero belong to the second, since their address does not tell who owns them.

Costs: one call of `first.owns` for each free and resize.
"""

from __future__ import annotations

from operator import index as plain_int
from typing import Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.base import BaseAllocator, as_base, as_pages, check_grow, check_shrink, close_all, owned_by
from allocators.block import Block
from allocators.layout import Layout
from allocators.protocol import Access, Allocator
from allocators.reset import ResetPolicy
from allocators.scope import Checkpoint, Scope, check_reset, checkpoint_all, reset_all, restore_all

A = TypeVar("A", bound=Allocator)
B = TypeVar("B", bound=Allocator)


@mypyc_attr(native_class=True)
class FallbackAllocator(BaseAllocator, Generic[A, B]):
    """Allocates from `first`, which must have `owns`, else from `second`."""

    __slots__ = ("_first", "_first_up", "_second", "_second_up")

    def __init__(self, first: A, second: B) -> None:
        self._first: Final[A] = first
        self._second: Final[B] = second
        #: The same, as `BaseAllocator`s: what calls go through.
        self._first_up: Final = as_base(first)
        self._second_up: Final = as_base(second)

    @property
    def first(self) -> A:
        return self._first

    @property
    def second(self) -> B:
        return self._second

    def allocate(self, layout: Layout) -> Block:
        if layout.size == 0:
            return self._second_up.allocate(layout)
        try:
            return self._first_up.allocate(layout)
        except MemoryError:
            return self._second_up.allocate(layout)

    def allocate_zeroed(self, layout: Layout) -> Block:
        if layout.size == 0:
            return self._second_up.allocate(layout)
        try:
            return self._first_up.allocate_zeroed(layout)
        except MemoryError:
            return self._second_up.allocate_zeroed(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.size == 0:
            self._second_up.deallocate(block, layout)
        elif owned_by(self._first, block):
            self._first_up.deallocate(block, layout)
        else:
            self._second_up.deallocate(block, layout)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        if block.size == 0:
            check_grow(block, old, new)
            return self._move(block, old, new, 0)
        if not owned_by(self._first, block):
            return self._second_up.grow(block, old, new)
        try:
            return self._first_up.grow(block, old, new)
        except MemoryError:
            return self._replace(block, self._second_up.allocate(new), old, new, old.size)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        if block.size == 0:
            check_grow(block, old, new)
            return self._replace(block, self.allocate_zeroed(new), old, new, 0)
        if not owned_by(self._first, block):
            return self._second_up.grow_zeroed(block, old, new)
        try:
            return self._first_up.grow_zeroed(block, old, new)
        except MemoryError:
            return self._replace(block, self._second_up.allocate_zeroed(new), old, new, old.size)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        if new.size == 0:
            check_shrink(block, old, new)
            return self._move(block, old, new, 0)
        if not owned_by(self._first, block):
            return self._second_up.shrink(block, old, new)
        try:
            return self._first_up.shrink(block, old, new)
        except MemoryError:
            return self._replace(block, self._second_up.allocate(new), old, new, new.size)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Forward to the allocator that owns the block."""
        if block.size == 0 or not owned_by(self._first, block):
            return self._second_up.resize_in_place(block, old, new)
        if new.size == 0:
            # A block of size zero belongs to the second.
            check_shrink(block, old, new)
            return None
        return self._first_up.resize_in_place(block, old, new)

    def owns(self, block: Block) -> bool:
        return owned_by(self._first, block) or owned_by(self._second, block)

    @property
    def page_size(self) -> int:
        """Bytes in a page, the larger of both; `MisuseError` if one does not hand out whole pages."""
        return max(as_pages(self._first).page_size, as_pages(self._second).page_size)

    def protect(
        self, block: Block, access: Access, offset: SupportsIndex = 0, size: SupportsIndex | None = None
    ) -> None:
        """Forward to the allocator that owns the block; `MisuseError` if it does not hand out whole pages."""
        owner: Allocator = self._first if owned_by(self._first, block) else self._second
        count = None if size is None else plain_int(size)
        as_pages(owner).protect(block, access, plain_int(offset), count)

    def reset(self, policy: ResetPolicy | None = None) -> None:
        """Reset both, with a policy if given. If one cannot be reset, neither is: `MisuseError`."""
        reset_all([self._first, self._second], policy)

    def _check_reset(self) -> None:
        check_reset(self._first)
        check_reset(self._second)

    def checkpoint(self) -> Checkpoint:
        """Save the state of both for `restore`. `MisuseError` if one has no checkpoints."""
        return checkpoint_all(self, [self._first, self._second])

    def restore(self, point: Checkpoint) -> None:
        """Return both to a checkpoint and revoke the blocks allocated since."""
        restore_all(self, [self._first, self._second], point)

    def scope(self) -> Scope[Self]:
        """A `with` block that restores the state at its start when it ends."""
        return Scope(self)

    def close(self) -> None:
        """Close both."""
        close_all([self._first, self._second])

    def __repr__(self) -> str:
        return f"fallback({self._first!r}, {self._second!r})"
