"""Adaptor: an allocator that forwards to a parent. What all of them share, whatever they add.

`Adaptor` passes on what an allocator may offer beside the six methods: `owns`, pages, checkpoints, `reset`, `close`.
One that keeps an account of blocks overrides the hooks, to learn that the parent has dropped blocks wholesale.
`CountingAdaptor` does so for the sum of all blocks, with a `Ledger`; `records.RecordingAdaptor` for each of them. The
six methods, and `resize_in_place`, are theirs.

A parent may call out while it works: to a callback, or to a finaliser, which use this allocator in turn. So a block is
in the account only while nothing is being done to it. It enters when the parent has returned it, and leaves before the
parent gets it back; where the parent raises, and the block has not ended, it returns to its place. The same goes for
all the blocks that a restore or a reset drops.
"""

from __future__ import annotations

from typing import Any, Final, Generic, Self, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, as_pages, close_parent, owned_by
from allocators.block import Block, Region, released
from allocators.errors import MisuseError
from allocators.layout import Layout
from allocators.protocol import Access, Allocator
from allocators.reset import ResetPolicy
from allocators.scope import (
    Checkpoint,
    Ledger,
    Scope,
    check_reset,
    checkpoint_through,
    in_all,
    refused,
    reset_through,
    restore_through,
)

A = TypeVar("A", bound=Allocator)

#: In place of the number of a checkpoint: all blocks.
ALL_BLOCKS: Final = -1


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
        """Hook: a checkpoint is about to be taken; returns its number, for `_detach`."""
        return 0

    def _checkpointed(self) -> None:
        """Hook: the parent has taken a checkpoint."""

    def _detach(self, number: int) -> object:
        """Hook: take the blocks made since a checkpoint out of the account, or all of them for `ALL_BLOCKS`."""
        return None

    def _attach(self, blocks: Any) -> None:
        """Hook: put back what `_detach` has taken out: the parent has refused."""

    def _dropped(self, blocks: Any, number: int) -> None:
        """Hook: the parent has dropped what `_detach` has taken out for that number."""

    def _check_reset(self) -> None:
        check_reset(self._parent)

    def reset(self, policy: ResetPolicy | None = None) -> None:
        """Reset the parent, by a policy if one is given; every live block is gone then."""
        check_reset(self._parent)
        blocks = self._detach(ALL_BLOCKS)
        try:
            reset_through(self._parent, policy)
        except BaseException as error:
            self._settle(blocks, ALL_BLOCKS, error)
            raise
        self._dropped(blocks, ALL_BLOCKS)

    def _settle(self, blocks: object, number: int, error: BaseException) -> None:
        """The parent has raised: it has either refused, or done everything and then complained."""
        if refused(error):
            self._attach(blocks)
        else:
            self._dropped(blocks, number)

    def checkpoint(self) -> Checkpoint:
        """Remember the parent's state, for `restore`."""
        point = checkpoint_through(self, self._parent, self._checkpoint_number())
        self._checkpointed()
        return point

    def restore(self, point: Checkpoint) -> None:
        """Take the parent back to a checkpoint; blocks allocated since are gone then."""
        if point.allocator is not self:
            raise MisuseError("the checkpoint is of another allocator")
        number: int = point.count
        blocks = self._detach(number)
        try:
            restore_through(self, self._parent, point)
        except BaseException as error:
            self._settle(blocks, number, error)
            raise
        self._dropped(blocks, number)

    def scope(self) -> Scope[Self]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Close the parent. What was counted stays to be read: a block that is still live was never given back."""
        close_parent(self._parent)


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class CountingAdaptor(Adaptor[A], Generic[A]):
    """Counts the live blocks and their bytes: those that were asked for, whatever the parent hands out.

    It hands out exactly the requested sizes, so the layout that fits a block has just the block's size; any other is a
    `MisuseError`. That is as much as sums can tell. A block that somebody else has from the same parent, and gives back
    here, is counted as if it were from here, and in the end a rightful one is refused. Recording adaptors and
    `DebugAllocator` know each of their blocks, and refuse all others.
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
        self._check_resize(block, old)
        region = block.region
        try:
            resized = self._up.resize_in_place(block, old, new)
        except BaseException:
            self._not_resized(block, region, old)
            raise
        return None if resized is None else self._resized(region, resized, old, new)

    def _uncounted(self, block: Block, layout: Layout) -> MisuseError:
        """The error for a block that cannot be among those counted."""
        if block.region.memory is None:
            return released(block)
        if layout.size != block.size:
            return MisuseError(f"a layout of {layout.size} bytes does not fit {block!r}, which has another size")
        return MisuseError(f"{block!r} was not allocated through {self!r}")

    def deallocate(self, block: Block, layout: Layout) -> None:
        # Written once more in `MetricAllocator`, to the same effect: it is its hot path.
        size = layout.size
        if size != block.size or self._live_blocks == 0 or size > self._live_bytes:
            raise self._uncounted(block, layout)
        region = block.region
        page = self._ledger.removed(region, size) if self._ledger.open else None
        self._live_bytes -= size
        self._live_blocks -= 1
        try:
            self._up.deallocate(block, layout)
        except BaseException as error:
            if not self._not_removed(error, block, region, page):
                self._removed(size)
            raise
        self._removed(size)

    def _not_removed(
        self, error: BaseException, block: Block, region: Region, page: dict[Region, tuple[int, int]] | None
    ) -> bool:
        """The parent has raised instead of taking a block back: count it again, unless it has ended all the same."""
        if block.region is not region or (region.memory is None and not refused(error)):
            return False
        self._live_bytes += block.size
        self._live_blocks += 1
        self._ledger.put_back(page, region, block.size)
        return True

    def _removed(self, size: i64) -> None:
        """Hook: a block has been given back."""

    def _check_resize(self, block: Block, old: Layout) -> None:
        if old.size != block.size or self._live_blocks == 0 or old.size > self._live_bytes:
            raise self._uncounted(block, old)

    def _not_resized(self, block: Block, region: Region, old: Layout) -> None:
        """The parent has raised instead of resizing a block: it is gone if the parent has ended it all the same."""
        if block.region is not region:
            self._live_bytes -= old.size
            self._live_blocks -= 1
            if self._ledger.open:
                self._ledger.removed(region, old.size)
            self._removed(old.size)

    def _resized(self, region: Region, block: Block, old: Layout, new: Layout) -> Block:
        """The parent has made `block` of one in `region`: count, and return it with the new size."""
        self._live_bytes += new.size - old.size
        if self._ledger.open:
            self._ledger.resized(region, old.size, block.region, new.size)
        return block if block.size == new.size else Block(block.address, new.size, block.region)

    def _lost(self, blocks: int, size: int) -> None:
        """Hook: the parent has dropped live blocks at once, of so many bytes."""

    def _checkpoint_number(self) -> int:
        return self._ledger.depth

    def _checkpointed(self) -> None:
        self._ledger.begin()

    def _detach(self, number: int) -> object:
        pages = self._ledger.detach(max(number, 0))
        blocks: int = self._live_blocks
        size: int = self._live_bytes
        if number != ALL_BLOCKS:
            blocks, size = in_all(pages)
        self._live_blocks -= blocks
        self._live_bytes -= size
        return _Detached(pages, blocks, size)

    def _attach(self, blocks: Any) -> None:
        detached: _Detached = blocks
        self._ledger.attach(detached.pages)
        self._live_blocks += detached.blocks
        self._live_bytes += detached.size

    def _dropped(self, blocks: Any, number: int) -> None:
        detached: _Detached = blocks
        self._lost(detached.blocks, detached.size)


@mypyc_attr(native_class=True)
class _Detached:
    """What a restore or a reset is about to drop: pages of the ledger, and the number and size of the blocks."""

    __slots__ = ("blocks", "pages", "size")

    def __init__(self, pages: list[dict[Region, tuple[int, int]]], blocks: int, size: int) -> None:
        self.pages: Final = pages
        self.blocks: Final = blocks
        self.size: Final = size
