"""BinningAllocator: routes each request by size to the allocator of a bin, or to the parent.

A request goes to the smallest bin that holds both its size and its alignment. By default the bins are pools of
power-of-two sizes over the parent: small blocks are freed in any order and reused without fragmentation, and large ones
go to the parent, as in RMM's binning resource.

A block belongs to the bin of its layout. A resize within a bin is forwarded to the bin; across bins the block moves.
Blocks have exactly the requested size, so the layout that frees a block identifies its bin.

Costs: a search through the bins, some ten comparisons. Up to half of a pool's slot is wasted, a quarter on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index as plain_int
from typing import Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, check_grow, check_shrink, close_all, owned_by
from allocators.block import Block
from allocators.errors import MisuseError
from allocators.layout import Layout, number_text
from allocators.pool import PoolAllocator
from allocators.protocol import Allocator
from allocators.reset import ResetPolicy
from allocators.scope import (
    Checkpoint,
    Scope,
    check_reset,
    checkpoint_all,
    refused,
    reset_all,
    reset_through,
    restore_all,
)
from allocators.sizes import size_text

A = TypeVar("A", bound=Allocator)

SMALLEST: Final = 16
LARGEST: Final = 1024


@mypyc_attr(native_class=True)
class BinningAllocator(BaseAllocator, Generic[A]):
    """Serves requests up to `largest` bytes from pools, in powers of two from `smallest` on, and others from `parent`.

    `bins` replaces the pools with custom allocators, keyed by the largest size that each serves. For resets and scopes
    to work, none of them may allocate from `parent`. `close` closes them.
    """

    __slots__ = ("_allocators", "_bins", "_largest", "_parent", "_pools", "_sizes", "_smallest", "_up")

    def __init__(
        self,
        parent: A,
        *,
        smallest: SupportsIndex = SMALLEST,
        largest: SupportsIndex = LARGEST,
        bins: Mapping[int, Allocator] | None = None,
    ) -> None:
        self._parent: Final[A] = parent
        self._up: Final = as_base(parent)
        self._smallest: Final = plain_int(smallest)
        self._largest: Final = plain_int(largest)
        self._pools: list[PoolAllocator[A]] = []
        self._allocators: list[Allocator] = []
        #: The largest size that each bin serves, in ascending order, and the bins as `BaseAllocator`s.
        self._sizes: list[int] = []
        self._bins: list[BaseAllocator] = []
        if bins is None:
            for size in _powers_of_two(self._smallest, self._largest):
                pool = PoolAllocator(parent, size, size)
                self._pools.append(pool)
                self._add(size, pool)
        else:
            for size in sorted(bins):
                self._add(size, bins[size])

    def _add(self, size: int, allocator: Allocator) -> None:
        if size < 1:
            raise MisuseError(f"a bin must serve at least one byte, not {size}")
        self._sizes.append(size)
        self._allocators.append(allocator)
        self._bins.append(as_base(allocator))

    @property
    def parent(self) -> A:
        return self._parent

    @property
    def bins(self) -> dict[int, Allocator]:
        """The bins by the largest size that each serves."""
        return dict(zip(self._sizes, self._allocators, strict=True))

    def _route(self, layout: Layout) -> BaseAllocator:
        needed: i64 = layout.size
        if needed == 0:
            return self._up
        if layout.align > needed:
            needed = layout.align
        for index in range(len(self._sizes)):
            if needed <= self._sizes[index]:
                return self._bins[index]
        return self._up

    def allocate(self, layout: Layout) -> Block:
        size = layout.size
        block = self._route(layout).allocate(layout)
        return block if block.size == size else Block(block.address, size, block.region)

    def allocate_zeroed(self, layout: Layout) -> Block:
        size = layout.size
        block = self._route(layout).allocate_zeroed(layout)
        return block if block.size == size else Block(block.address, size, block.region)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._route(layout).deallocate(block, layout)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        owner = self._route(old)
        if owner is not self._route(new):
            return self._move(block, old, new, old.size)
        grown = owner.grow(block, old, new)
        return grown if grown.size == new.size else Block(grown.address, new.size, grown.region)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        owner = self._route(old)
        if owner is not self._route(new):
            return self._replace(block, self.allocate_zeroed(new), old, new, old.size)
        grown = owner.grow_zeroed(block, old, new)
        return grown if grown.size == new.size else Block(grown.address, new.size, grown.region)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        owner = self._route(old)
        if owner is not self._route(new):
            return self._move(block, old, new, new.size)
        shrunk = owner.shrink(block, old, new)
        return shrunk if shrunk.size == new.size else Block(shrunk.address, new.size, shrunk.region)

    def owns(self, block: Block) -> bool:
        return any([owned_by(allocator, block) for allocator in [*self._allocators, self._parent]])

    def reset(self, policy: ResetPolicy | None = None) -> None:
        """Reset the parent, with a policy if given, and all bins."""
        if not self._pools:
            reset_all([self._parent, *self._allocators], policy)
            return
        try:
            reset_through(self._parent, policy)
        except BaseException as error:
            if not refused(error):
                self._forget()
            raise
        self._forget()

    def _forget(self) -> None:
        for pool in self._pools:
            pool.forget()

    def _check_reset(self) -> None:
        check_reset(self._parent)
        if not self._pools:
            for allocator in self._allocators:
                check_reset(allocator)

    def checkpoint(self) -> Checkpoint:
        """Save the state of bins and parent for `restore`. `MisuseError` if one of them has no checkpoints."""
        return checkpoint_all(self, [*self._allocators, self._parent])

    def restore(self, point: Checkpoint) -> None:
        """Return all of them to a checkpoint and revoke the blocks allocated since."""
        restore_all(self, [*self._allocators, self._parent], point)

    def scope(self) -> Scope[Self]:
        """A `with` block that restores the state at its start when it ends."""
        return Scope(self)

    def close(self) -> None:
        """Close the bins, then the parent."""
        close_all([*self._allocators, self._parent])

    def __repr__(self) -> str:
        options = ""
        if not self._pools:
            options = f", bins={self.bins!r}"
        else:
            if self._smallest != SMALLEST:
                options += f", smallest={size_text(self._smallest)}"
            if self._largest != LARGEST:
                options += f", largest={size_text(self._largest)}"
        return f"binning({self._parent!r}{options})"


def _powers_of_two(smallest: int, largest: int) -> list[int]:
    if smallest < 1 or smallest & (smallest - 1) or largest < smallest or largest & (largest - 1):
        sizes_text = f"{number_text(smallest)} to {number_text(largest)}"
        raise MisuseError(f"bins go from one power of two up to another, not from {sizes_text}")
    sizes = [smallest]
    while sizes[-1] < largest:
        sizes.append(2 * sizes[-1])
    return sizes
