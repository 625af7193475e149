"""Adaptor: the base of allocators that forward to a parent.

`Adaptor` forwards the optional operations: `owns`, pages, checkpoints, `reset`, `close`. Subclasses implement the six
methods and `resize_in_place`. A subclass that tracks blocks overrides the hooks to learn when the parent drops blocks
in bulk: `CountingAdaptor` tracks their number and total size, with a `Ledger`; `records.RecordingAdaptor` tracks each
block.

A parent may run a callback or a finaliser, which may in turn use this allocator. So a block is tracked only while no
operation on it is in progress. It is added after the parent has returned it and removed before the parent gets it back;
if the parent raises and the block has not ended, it is put back. The same holds for all blocks that a restore or a
reset drops.
"""

from __future__ import annotations

from operator import index as plain_int
from typing import Any, Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, as_pages, close_parent, owned_by
from allocators.block import Block, Region, released
from allocators.errors import MisuseError, caused_by
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
    number_of,
    refused,
    reset_through,
    restore_through,
)

A = TypeVar("A", bound=Allocator)

#: Stands for all blocks in place of a checkpoint number.
ALL_BLOCKS: Final = -1


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class Adaptor(BaseAllocator, Generic[A]):
    """Forwards everything except the six methods to `parent`."""

    __slots__ = ("_parent", "_up")

    def __init__(self, parent: A) -> None:
        self._parent: Final[A] = parent
        #: The same, as a `BaseAllocator`: what calls go through.
        self._up: Final = as_base(parent)

    @property
    def parent(self) -> A:
        return self._parent

    def owns(self, block: Block) -> bool:
        return owned_by(self._parent, block)

    @property
    def page_size(self) -> int:
        """Bytes in a page of the parent; AttributeError if it does not hand out whole pages."""
        try:
            return as_pages(self._parent).page_size
        except MisuseError as error:
            # As if the attribute were missing, so that an adaptor satisfies `Pages` only if its parent does.
            raise caused_by(AttributeError(str(error)), None)

    def protect(
        self, block: Block, access: Access, offset: SupportsIndex = 0, size: SupportsIndex | None = None
    ) -> None:
        """Forward to the parent; `MisuseError` if it does not hand out whole pages."""
        count = None if size is None else plain_int(size)
        as_pages(self._parent).protect(block, access, plain_int(offset), count)

    def _checkpoint_number(self) -> int:
        """Hook: a checkpoint is about to be taken; returns its number, for `_detach`."""
        return 0

    def _checkpointed(self) -> None:
        """Hook: the parent has taken a checkpoint."""

    def _detach(self, number: int) -> object:
        """Hook: stop tracking the blocks allocated since a checkpoint, or all for `ALL_BLOCKS`, and return them."""
        return None

    def _attach(self, blocks: Any) -> None:
        """Hook: the parent has refused; track the blocks from `_detach` again."""

    def _dropped(self, blocks: Any, number: int) -> None:
        """Hook: the parent has dropped the blocks from `_detach`, which was called with this number."""

    def _check_reset(self) -> None:
        check_reset(self._parent)

    def reset(self, policy: ResetPolicy | None = None) -> None:
        """Reset the parent, with a policy if given, which ends every live block."""
        check_reset(self._parent)
        blocks = self._detach(ALL_BLOCKS)
        try:
            reset_through(self._parent, policy)
        except BaseException as error:
            self._settle(blocks, ALL_BLOCKS, error)
            raise
        self._dropped(blocks, ALL_BLOCKS)

    def _settle(self, blocks: object, number: int, error: BaseException) -> None:
        """The parent has raised: it has either refused, or completed the operation and then raised."""
        if refused(error):
            self._attach(blocks)
        else:
            self._dropped(blocks, number)

    def checkpoint(self) -> Checkpoint:
        """Save the parent's state for `restore`."""
        point = checkpoint_through(self, self._parent, self._checkpoint_number())
        self._checkpointed()
        return point

    def restore(self, point: Checkpoint) -> None:
        """Return the parent to a checkpoint, which ends the blocks allocated since."""
        number = number_of(self, point)
        blocks = self._detach(number)
        try:
            restore_through(self, self._parent, point)
        except BaseException as error:
            self._settle(blocks, number, error)
            raise
        self._dropped(blocks, number)

    def scope(self) -> Scope[Self]:
        """A `with` block that restores the state at its start when it ends."""
        return Scope(self)

    def close(self) -> None:
        """Close the parent. The counts remain readable: a block that is still live was never freed."""
        close_parent(self._parent)


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class CountingAdaptor(Adaptor[A], Generic[A]):
    """Counts the live blocks and their requested bytes.

    It hands out exactly the requested sizes, so a layout fits a block only if it has the block's size; any other is a
    `MisuseError`. Totals cannot detect more: a block that was allocated directly from the parent and is freed here is
    counted as this allocator's own, and a later valid free may be refused. Recording adaptors and `DebugAllocator` know
    each of their blocks and refuse all others.
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
        """Count a block that the parent has allocated for `size` bytes, and return it with that size."""
        self._live_bytes += size
        self._live_blocks += 1
        if self._ledger.open:
            self._ledger.added(block.region, size)
        return block if block.size == size else Block(block.address, size, block.region)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Forward to the parent: grow or shrink without moving, or return None and change nothing."""
        self._check_resize(block, old)
        region = block.region
        try:
            resized = self._up.resize_in_place(block, old, new)
        except BaseException:
            self._not_resized(block, region, old)
            raise
        return None if resized is None else self._resized(region, resized, old, new)

    def _uncounted(self, block: Block, layout: Layout) -> MisuseError:
        """The error for a block that cannot be one of those counted."""
        if block.region.memory is None:
            return released(block)
        if layout.size != block.size:
            return MisuseError(f"a layout of {layout.size} bytes does not fit {block!r}, which has another size")
        return MisuseError(f"{block!r} was not allocated through {self!r}")

    def deallocate(self, block: Block, layout: Layout) -> None:
        # `MetricAllocator` repeats this inline on its hot path.
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
        """The parent has raised while freeing a block: count the block again unless it has ended."""
        if block.region is not region or (region.memory is None and not refused(error)):
            return False
        self._live_bytes += block.size
        self._live_blocks += 1
        self._ledger.put_back(page, region, block.size)
        return True

    def _removed(self, size: i64) -> None:
        """Hook: a block has been freed."""

    def _check_resize(self, block: Block, old: Layout) -> None:
        if old.size != block.size or self._live_blocks == 0 or old.size > self._live_bytes:
            raise self._uncounted(block, old)

    def _not_resized(self, block: Block, region: Region, old: Layout) -> None:
        """The parent has raised while resizing a block: stop counting the block if it has ended."""
        if block.region is not region:
            self._live_bytes -= old.size
            self._live_blocks -= 1
            if self._ledger.open:
                self._ledger.removed(region, old.size)
            self._removed(old.size)

    def _resized(self, region: Region, block: Block, old: Layout, new: Layout) -> Block:
        """The parent has resized a block in `region` to `block`: count it, and return it with the new size."""
        self._live_bytes += new.size - old.size
        if self._ledger.open:
            self._ledger.resized(region, old.size, block.region, new.size)
        return block if block.size == new.size else Block(block.address, new.size, block.region)

    def _lost(self, blocks: int, size: int) -> None:
        """Hook: the parent has dropped `blocks` live blocks of `size` bytes in total."""

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
    """The blocks that a restore or a reset is about to drop: ledger pages, number and total size."""

    __slots__ = ("blocks", "pages", "size")

    def __init__(self, pages: list[dict[Region, tuple[int, int]]], blocks: int, size: int) -> None:
        self.pages: Final = pages
        self.blocks: Final = blocks
        self.size: Final = size
