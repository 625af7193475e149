"""PoolAllocator: blocks of one size, freed in any order and reused last in, first out.

Layout: slabs of slots from any parent, the first of 16, each later one twice as many up to 1 MiB; where the parent
refuses, half as many are tried, down to one, so that a limit below can be used up to the last slot. A slot is the size
rounded up to the alignment. Freed slots are listed beside the memory, not in it, and the slot that was freed last is
handed out first, while it is still in the cache. As Zig's MemoryPool and RMM's fixed-size resource.

A smaller request gets a whole slot too, and grows in it without moving. A larger one, or one of a larger alignment, is
refused with `AllocError`: put a `FallbackAllocator` or a `BinningAllocator` around the pool.

Costs: an allocation takes an item off a list, a free adds one. A slab goes back to the parent only at the end of the
scope that it was made in, and by `reset` and `close`. A checkpoint takes time for each slab.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, Generic, Self, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, check_grow, check_shrink, unfit
from allocators.block import Block, Region, dangling, empty_region, released
from allocators.layout import Layout
from allocators.protocol import Allocator, AllocError, MisuseError
from allocators.reset import ALL, ResetPolicy, kept_bytes
from allocators.scope import Checkpoint, Keys, Ledger, Scope
from allocators.sizes import size_text

A = TypeVar("A", bound=Allocator)

_FIRST_SLOTS: Final = 16
_LARGEST_SLAB: Final = 1 << 20


@mypyc_attr(native_class=True)
class _Slab:
    """A block of the parent, cut into slots that are handed out through `key`."""

    __slots__ = ("aside", "block", "depth", "end", "fresh", "key", "layout", "slots")

    def __init__(self, block: Block, layout: Layout, slots: int, depth: int) -> None:
        self.block: Final = block
        self.layout: Final = layout
        self.slots: Final = slots
        #: Number of checkpoints that were open when the slab was made.
        self.depth: Final = depth
        self.end: Final[i64] = block.address + layout.size
        #: The first slot that was never handed out.
        self.fresh: i64 = block.address
        self.key = self.make_key()
        #: The keys that later checkpoints have put aside, the oldest first.
        self.aside: list[Region] = []

    def make_key(self) -> Region:
        return self.block.region.part(self.block.address, self.layout.size)


@mypyc_attr(native_class=True)
class PoolAllocator(BaseAllocator, Generic[A]):
    """Blocks of `size` bytes aligned to `align`, from slabs of `parent`.

    `capacity`: how many slots to allocate right away. `growable`: whether there may ever be more than those.
    """

    __slots__ = (
        "_align",
        "_current",
        "_empty",
        "_free",
        "_growable",
        "_keys",
        "_ledger",
        "_live",
        "_parent",
        "_peaks",
        "_size",
        "_slab_of",
        "_slabs",
        "_stride",
        "_up",
    )

    def __init__(self, parent: A, size: int, align: int = 8, *, capacity: int = 0, growable: bool = True) -> None:
        slot = Layout(size, align)
        if size < 1:
            raise MisuseError(f"slots must have at least one byte, not {size}")
        if capacity < 0:
            raise MisuseError(f"capacity must not be negative: {capacity}")
        self._parent: Final[A] = parent
        self._up: Final = as_base(parent)
        self._size: Final[i64] = slot.size
        self._align: Final[i64] = slot.align
        self._stride: Final[i64] = (slot.size + slot.align - 1) & -slot.align
        self._growable: Final = growable
        self._slabs: list[_Slab] = []
        self._slab_of: dict[Region, _Slab] = {}
        #: The slab whose fresh slots are handed out; those before it have none left.
        self._current: i64 = 0
        #: Slots that were handed out and have been freed, the newest last.
        self._free: list[tuple[int, _Slab]] = []
        self._live: i64 = 0
        self._keys = Keys()
        #: What blocks of size zero, which take no slot, are handed out through.
        self._empty = empty_region()
        self._ledger: Ledger[int] = Ledger()
        self._peaks: list[int] = []
        if capacity:
            self._add_slab(capacity, slot)

    @property
    def parent(self) -> A:
        return self._parent

    @property
    def slot_size(self) -> int:
        """Bytes of each block."""
        return self._size

    @property
    def slot_align(self) -> int:
        """Alignment of each block."""
        return self._align

    @property
    def capacity(self) -> int:
        """Number of slots in all slabs."""
        return sum([slab.slots for slab in self._slabs])

    @property
    def live_blocks(self) -> int:
        """Number of slots in use."""
        return self._live

    @property
    def allocated_bytes(self) -> int:
        """Bytes asked of the parent for all slabs."""
        total: int = 0
        for slab in self._slabs:
            total += slab.layout.size
        return total

    def allocate(self, layout: Layout) -> Block:
        if layout.size == 0:
            return Block(dangling(layout.align).address, 0, self._empty)
        if layout.size > self._size or layout.align > self._align:
            raise self._unfit(layout)
        if self._free:
            address, slab = self._free.pop()
        else:
            slab = self._slab_with_room(layout)
            address = slab.fresh
            slab.fresh += self._stride
        self._live += 1
        if self._ledger.open:
            self._ledger.added(address, self._stride)
        return Block(address, self._size, slab.key)

    def _unfit(self, layout: Layout) -> AllocError:
        return AllocError("pool", layout, reason=f"slots have {self._size} bytes aligned to {self._align}")

    def _slab_with_room(self, layout: Layout) -> _Slab:
        while self._current < len(self._slabs):
            slab = self._slabs[self._current]
            if slab.fresh < slab.end:
                return slab
            self._current += 1
        slots = 2 * self._slabs[-1].slots if self._slabs else _FIRST_SLOTS
        slots = min(slots, max(_LARGEST_SLAB // self._stride, 1))
        if not self._growable:
            raise AllocError("pool", layout, limit=self.allocated_bytes, in_use=self._live * self._stride)
        while True:
            try:
                return self._add_slab(slots, layout)
            except AllocError:
                if slots == 1:
                    raise
                slots //= 2

    def _add_slab(self, slots: int, layout: Layout) -> _Slab:
        """Make a slab of so many slots the current one, for a request of `layout`."""
        stride: int = self._stride
        whole = Layout(slots * stride, self._align)
        try:
            block = self._up.allocate(whole)
        except MemoryError:
            in_use = self._live * self._stride
            raise AllocError("pool", layout, in_use=in_use, reason="the parent refuses") from None
        slab = _Slab(block, whole, slots, self._ledger.depth)
        self._current = len(self._slabs)
        self._slabs.append(slab)
        self._slab_of[slab.key] = slab
        return slab

    def deallocate(self, block: Block, layout: Layout) -> None:
        slab = self._slab_of.get(block.region)
        if slab is None:
            self._check_empty(block)
        elif layout.size > block.size:
            raise unfit(block, layout)
        else:
            self._free.append((block.address, slab))
            self._live -= 1
            if self._ledger.open:
                self._ledger.removed(block.address, self._stride)
        block.release()

    def _check_empty(self, block: Block) -> None:
        """Raise unless a block of no slab is a live one of size zero."""
        if block.region.memory is None:
            raise released(block)
        if block.size > 0:
            raise MisuseError(f"{block!r} was not allocated by {self!r}")

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        return self._resize(block, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        return self._resize(block, new)

    def _resize(self, block: Block, new: Layout) -> Block:
        if block.region not in self._slab_of:
            self._check_empty(block)
            resized = self.allocate(new)
        elif new.size > self._size or block.address & (new.align - 1):
            raise self._unfit(new)
        else:
            resized = Block(block.address, self._size, block.region)
        block.release()
        return resized

    def owns(self, block: Block) -> bool:
        if block.region in self._slab_of:
            return True
        address = block.address
        return any([slab.block.address <= address < slab.end for slab in self._slabs])

    def reset(self, policy: ResetPolicy = ALL) -> bool:
        """Revoke all blocks. Of the slabs, the newest stay that are no more than the policy keeps; by default all.

        A slab is kept as it is or given back, so this never asks the parent for memory, and always returns True.
        """
        capacity = self.allocated_bytes
        newest: int = self._slabs[-1].layout.size if self._slabs else 0
        # A fresh slot is handed out only when all others are in use.
        peak: int = 0
        for slab in self._slabs:
            peak += slab.fresh - slab.block.address
        kept = kept_bytes(policy, capacity, newest, peak, self._peaks)
        for slab in reversed(self._drop_slabs()):
            size: int = slab.layout.size
            if size <= kept:
                kept -= size
                fresh = _Slab(slab.block, slab.layout, slab.slots, 0)
                self._slabs.append(fresh)
                self._slab_of[fresh.key] = fresh
            else:
                kept = 0
                self._up.deallocate(slab.block, slab.layout)
        # The largest, which is the newest, is in front now, and filled first.
        return True

    def _close_keys(self, slabs: list[_Slab]) -> None:
        """Revoke the blocks of slabs."""
        for slab in slabs:
            slab.key.close()
            del self._slab_of[slab.key]
            for key in slab.aside:
                key.close()
                del self._slab_of[key]

    def checkpoint(self) -> Checkpoint:
        """Remember which slots are in use, for `restore`."""
        for slab in self._slabs:
            slab.aside.append(slab.key)
            slab.key = slab.make_key()
            self._slab_of[slab.key] = slab
        empty = self._empty
        self._empty = empty_region()
        self._ledger.begin()
        return Checkpoint(self, empty, index=self._keys.put_aside(empty), count=len(self._slabs))

    def restore(self, point: Checkpoint) -> None:
        """Go back to a checkpoint: slabs added since go to the parent, blocks made since are revoked.

        Raises `MisuseError` where a reset or an earlier restore has gone back further already.
        """
        self._keys.check(self, point)
        self._empty.close()
        self._empty = self._keys.take_up(point)
        number: int = point.index
        count: int = point.count
        gone = self._slabs[count:]
        del self._slabs[count:]
        self._close_keys(gone)
        for slab in self._slabs:
            self._take_up(slab, number - slab.depth)
        # What is left in the surviving slabs of the scope's blocks is free now.
        addresses = self._ledger.since(number)
        self._live -= len(addresses)
        self._ledger.end(number)
        gone_slabs = set(gone)
        self._free = [(address, slab) for address, slab in self._free if slab not in gone_slabs]
        slabs = sorted(self._slabs, key=_start)
        starts = [_start(slab) for slab in slabs]
        for address in sorted(addresses, reverse=True):
            index = bisect_right(starts, address) - 1
            if index >= 0 and address < slabs[index].end:
                self._free.append((address, slabs[index]))
        if self._current >= len(self._slabs):
            self._current = max(len(self._slabs) - 1, 0)
        for slab in reversed(gone):
            self._up.deallocate(slab.block, slab.layout)

    def _take_up(self, slab: _Slab, index: int) -> None:
        """Close the keys of a slab made since it put one aside, and go on with that."""
        for key in [slab.key, *slab.aside[index + 1 :]]:
            key.close()
            del self._slab_of[key]
        slab.key = slab.aside[index]
        del slab.aside[index:]

    def scope(self) -> Scope[Self]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Give back all slabs and revoke all blocks. The pool is empty then, and can be used again if it can grow."""
        for slab in reversed(self._drop_slabs()):
            self._up.deallocate(slab.block, slab.layout)

    def forget(self) -> None:
        """Become empty after the parent has dropped all its blocks, and the slabs with them."""
        self._drop_slabs()

    def _drop_slabs(self) -> list[_Slab]:
        """Revoke all blocks and checkpoints and let go of the slabs."""
        slabs = self._slabs
        self._slabs = []
        self._close_keys(slabs)
        self._keys.close()
        self._empty.close()
        self._empty = empty_region()
        self._ledger.clear()
        self._free.clear()
        self._live = 0
        self._current = 0
        return slabs

    def __repr__(self) -> str:
        options = "" if self._align == 8 else f", align={self._align}"
        if not self._growable:
            options += f", capacity={self.capacity}, growable=false"
        return f"pool({size_text(self._size)}, {self._parent!r}{options})"


def _start(slab: _Slab) -> int:
    return slab.block.address
