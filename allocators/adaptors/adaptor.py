"""Adaptor: an allocator that forwards to a parent. What all of them share, whatever they add.

`Adaptor` passes on what an allocator may offer beside the six methods: `owns`, pages, checkpoints, `reset`, `close`.
One that keeps an account of blocks overrides the three hooks, to learn that the parent has dropped blocks wholesale.
`CountingAdaptor` does so for the sum of all blocks, with a `Ledger`; `records.RecordingAdaptor` for each of them. The
six methods, and `resize_in_place`, are theirs.

An account changes only after the parent has done its part, so that a parent that raises leaves it as it was.
"""

from __future__ import annotations

from typing import Final, Generic, Self, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, as_pages, close_parent, owned_by
from allocators.block import Block, Region
from allocators.layout import Layout
from allocators.protocol import Access, Allocator, MisuseError
from allocators.reset import ResetPolicy
from allocators.scope import Checkpoint, Ledger, Scope, checkpoint_through, reset_through, restore_through

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class Adaptor(BaseAllocator, Generic[A]):
    """Forwards to `parent` everything but the six methods."""

    __slots__ = ("_parent", "_up")

    def __init__(self, parent: A) -> None:
        self._parent: Final[A] = parent
        #: The same, for calls.
        self._up: Final = as_base(parent)

    @property
    def parent(self) -> A:
        return self._parent

    def owns(self, block: Block) -> bool:
        return owned_by(self._parent, block)

    @property
    def page_size(self) -> int:
        """Bytes in a page of the parent; AttributeError where it does not hand out whole pages."""
        try:
            return as_pages(self._parent).page_size
        except MisuseError as error:
            # As if there were no such attribute: so an adaptor is one of `Pages` where its parent is.
            raise AttributeError(str(error)) from None

    def protect(self, block: Block, access: Access, offset: int = 0, size: int | None = None) -> None:
        """Forwarded to a parent that hands out whole pages; `MisuseError` for any other."""
        as_pages(self._parent).protect(block, access, offset, size)

    def _checkpoint_number(self) -> int:
        """Hook: a checkpoint is about to be taken; returns what `_restored` shall be given."""
        return 0

    def _checkpointed(self) -> None:
        """Hook: the parent has taken a checkpoint."""

    def _restored(self, number: int) -> None:
        """Hook: the parent went back to a checkpoint, and blocks allocated since are gone."""

    def _reset(self) -> None:
        """Hook: the parent was reset, and all blocks are gone."""

    def reset(self, policy: ResetPolicy | None = None) -> None:
        """Reset the parent, by a policy if one is given; every live block is gone then."""
        reset_through(self._parent, policy)
        self._reset()

    def checkpoint(self) -> Checkpoint:
        """Remember the parent's state, for `restore`."""
        point = checkpoint_through(self, self._parent, self._checkpoint_number())
        self._checkpointed()
        return point

    def restore(self, point: Checkpoint) -> None:
        """Take the parent back to a checkpoint; blocks allocated since are gone then."""
        restore_through(self, self._parent, point)
        self._restored(point.count)

    def scope(self) -> Scope[Self]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Close the parent. What was counted stays to be read: a block that is still live was never given back."""
        close_parent(self._parent)


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class CountingAdaptor(Adaptor[A], Generic[A]):
    """Counts the live blocks and their bytes: those that were asked for, whatever the parent hands out.

    It hands out exactly the requested sizes, so the layout that fits a block is one only, and the sums are exact.
    """

    __slots__ = ("_ledger", "_live_blocks", "_live_bytes")

    def __init__(self, parent: A) -> None:
        super().__init__(parent)
        self._live_bytes: i64 = 0
        self._live_blocks: i64 = 0
        self._ledger: Ledger[Region] = Ledger()

    @property
    def live_bytes(self) -> int:
        """Bytes in use."""
        return self._live_bytes

    @property
    def live_blocks(self) -> int:
        """Blocks in use."""
        return self._live_blocks

    def _added(self, block: Block, size: i64) -> Block:
        """The parent has allocated a block for `size` bytes: count it, and return it with that size."""
        self._live_bytes += size
        self._live_blocks += 1
        if self._ledger.open:
            self._ledger.added(block.region, size)
        return block if block.size == size else Block(block.address, size, block.region)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """As the parent does it: grow or shrink without moving, or return None and change nothing."""
        region = block.region
        resized = self._up.resize_in_place(block, old, new)
        return None if resized is None else self._resized(region, resized, old, new)

    def _check_counted(self, block: Block, layout: Layout) -> None:
        """Raise `MisuseError` for a block that cannot be among those counted."""
        if self._live_blocks == 0 or layout.size > self._live_bytes:
            raise MisuseError(f"{block!r} was not allocated through {self!r}")

    def _removed(self, region: Region, size: i64) -> None:
        """The parent has taken back a block that was in `region`."""
        self._live_bytes -= size
        self._live_blocks -= 1
        if self._ledger.open:
            self._ledger.removed(region, size)

    def _resized(self, region: Region, block: Block, old: Layout, new: Layout) -> Block:
        """The parent has made `block` of one in `region`: count, and return it with the new size."""
        self._live_bytes += new.size - old.size
        if self._ledger.open:
            self._ledger.resized(region, old.size, block.region, new.size)
        return block if block.size == new.size else Block(block.address, new.size, block.region)

    def _dropped(self, blocks: int, size: int) -> None:
        """The parent has dropped live blocks at once. Overridden by those who count more."""
        self._live_bytes -= size
        self._live_blocks -= blocks

    def _checkpoint_number(self) -> int:
        return self._ledger.depth

    def _checkpointed(self) -> None:
        self._ledger.begin()

    def _restored(self, number: int) -> None:
        blocks, size = self._ledger.end(number)
        self._dropped(blocks, size)

    def _reset(self) -> None:
        self._ledger.clear()
        self._dropped(self._live_blocks, self._live_bytes)
