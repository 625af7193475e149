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
from operator import index as plain_int
from typing import Final, Generic, Self, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, check_grow, check_shrink, unfit
from allocators.block import Block, Lease, Region, dangling, empty_lease, released
from allocators.chunk import Chunk, Departures, NoFinalisers, Run, revoked
from allocators.errors import AllocError, MisuseError, caused_by
from allocators.layout import Layout, number_text
from allocators.protocol import Allocator
from allocators.reset import ALL, ResetPolicy, kept_bytes
from allocators.scope import Checkpoint, LeaseCheckpoint, Leases, Ledger, Scope
from allocators.sizes import size_text

A = TypeVar("A", bound=Allocator)

_FIRST_SLOTS: Final = 16
_LARGEST_SLAB: Final = 1 << 20


@mypyc_attr(native_class=True)
class _Slab(Chunk):
    """A block of the parent, cut into slots that are handed out through `lease`."""

    __slots__ = ("aside", "depth", "end", "fresh", "lease", "slots")

    def __init__(self, block: Block, layout: Layout, slots: int) -> None:
        super().__init__(block, layout, layout.size)
        self.slots: Final = slots
        #: Number of checkpoints that were open when the slab was made.
        self.depth = 0
        self.end: Final[i64] = block.address + layout.size
        #: The first slot that was never handed out.
        self.fresh: i64 = block.address
        self.lease = self.new_lease()
        #: The leases that later checkpoints have put aside, the oldest first.
        self.aside: list[Lease] = []


@mypyc_attr(native_class=True)
class PoolCheckpoint(LeaseCheckpoint):
    """How many slabs there were; the lease is that of blocks of size zero."""

    __slots__ = ("slabs",)

    def __init__(self, pool: object, lease: Lease, slabs: int) -> None:
        super().__init__(pool, lease)
        self.slabs: Final = slabs


@mypyc_attr(native_class=True)
class PoolAllocator(BaseAllocator, Generic[A]):
    """Blocks of `size` bytes aligned to `align`, from slabs of `parent`.

    `capacity`: how many slots to allocate right away. `growable`: whether there may ever be more than those.
    """

    __slots__ = (
        "_align",
        "_away",
        "_capacity",
        "_current",
        "_empty",
        "_free",
        "_growable",
        "_leases",
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

    def __init__(
        self,
        parent: A,
        size: SupportsIndex,
        align: SupportsIndex = 8,
        *,
        capacity: SupportsIndex = 0,
        growable: bool = True,
    ) -> None:
        slot = Layout(size, align)
        slots = plain_int(capacity)
        if slot.size < 1:
            raise MisuseError("slots must have at least one byte, not 0")
        if slots < 0:
            raise MisuseError(f"capacity must not be negative: {number_text(slots)}")
        self._parent: Final[A] = parent
        self._up: Final = as_base(parent)
        self._away: Final = Departures(self._up)
        self._size: Final[i64] = slot.size
        self._align: Final[i64] = slot.align
        self._stride: Final[i64] = (slot.size + slot.align - 1) & -slot.align
        self._capacity: Final = slots
        self._growable: Final = growable
        self._slabs: list[_Slab] = []
        self._slab_of: dict[Region, _Slab] = {}
        #: The slab whose fresh slots are handed out; those before it have none left.
        self._current: i64 = 0
        #: Slots that were handed out and have been freed, the newest last.
        self._free: list[tuple[int, _Slab]] = []
        self._live: i64 = 0
        self._leases = Leases()
        #: What blocks of size zero, which take no slot, are handed out through.
        self._empty = empty_lease()
        self._ledger: Ledger[int] = Ledger()
        self._peaks: list[int] = []
        if capacity:
            refusal = self._add_slab(slots)
            if refusal is not None:
                raise self._exhausted(slot, refusal)

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
            if slab.lease.memory is None:
                raise revoked(self)
        else:
            slab = self._slab_with_room(layout)
            address = slab.fresh
            slab.fresh += self._stride
        self._live += 1
        if self._ledger.open:
            self._ledger.added(address, self._stride)
        return Block(address, self._size, slab.lease)

    def _unfit(self, layout: Layout) -> AllocError:
        return AllocError("pool", layout, reason=f"slots have {self._size} bytes aligned to {self._align}")

    def _slab_with_room(self, layout: Layout) -> _Slab:
        while True:
            while self._current < len(self._slabs):
                slab = self._slabs[self._current]
                if slab.lease.memory is None:
                    raise revoked(self)
                if slab.fresh < slab.end:
                    return slab
                self._current += 1
            if not self._growable:
                raise AllocError("pool", layout, limit=self.allocated_bytes, in_use=self._live * self._stride)
            slots = 2 * self._slabs[-1].slots if self._slabs else _FIRST_SLOTS
            slots = min(slots, max(_LARGEST_SLAB // self._stride, 1))
            refusal = self._add_slab(slots)
            while refusal is not None:
                if slots == 1:
                    raise self._exhausted(layout, refusal)
                slots //= 2
                refusal = self._add_slab(slots)

    def _add_slab(self, slots: int) -> MemoryError | None:
        """Add a slab of `slots` slots; returns the parent's refusal, if any."""
        stride: int = self._stride
        whole = Layout(slots * stride, self._align)
        try:
            block = self._up.allocate(whole)
        except MemoryError as refusal:
            return refusal
        try:
            with NoFinalisers():
                slab = _Slab(block, whole, slots)
                slab.depth = self._ledger.depth
                self._slabs.append(slab)
                self._slab_of[slab.lease] = slab
        except BaseException:
            if not any([slab.block is block for slab in self._slabs]):
                self._up.deallocate(block, whole)
            raise
        return None

    def _exhausted(self, layout: Layout, refusal: MemoryError) -> AllocError:
        in_use = self._live * self._stride
        error = AllocError("pool", layout, in_use=in_use, reason=f"the parent refuses: {refusal}")
        return caused_by(error, refusal)

    def deallocate(self, block: Block, layout: Layout) -> None:
        region = block.region
        slab = self._slab_of.get(region)
        if slab is None:
            self._check_empty(block)
        elif layout.size > block.size:
            raise unfit(block, layout)
        else:
            slot = (block.address, slab)
            # After the last call out: a finaliser may have ended the block.
            if region.memory is None:
                raise released(block)
            self._free.append(slot)
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
            return block.region.memory is not None
        address = block.address
        return any([slab.start <= address < slab.end and not slab.revoked for slab in self._slabs])

    def reset(self, policy: ResetPolicy = ALL) -> bool:
        """Revoke all blocks. The newest slabs stay, up to what the policy keeps; by default all.

        A slab is kept as it is or given back, so this never asks the parent for memory, and always returns True.
        """
        capacity = self.allocated_bytes
        newest: int = self._slabs[-1].size if self._slabs else 0
        # A fresh slot is handed out only when all others are in use.
        peak: int = 0
        for slab in self._slabs:
            peak += slab.fresh - slab.start
        kept = kept_bytes(policy, capacity, newest, peak, self._peaks)
        with NoFinalisers():
            staying: list[_Slab] = []
            runs: list[Run] = []
            for slab in reversed(self._slabs):
                size: int = slab.size
                if size <= kept and not slab.revoked:
                    kept -= size
                    staying.append(_Slab(slab.block, slab.layout, slab.slots))
                else:
                    kept = 0
                    runs.append(Run(slab))
            self._drop_slabs()
            # The largest, which is the newest, is in front now, and filled first.
            for slab in staying:
                self._slabs.append(slab)
                self._slab_of[slab.lease] = slab
            runs.reverse()
            self._away.runs += runs
        self._finish()
        return True

    def _end_all(self, slabs: list[_Slab]) -> None:
        """Revoke the blocks of slabs."""
        for slab in slabs:
            self._end(slab.lease)
            for lease in slab.aside:
                self._end(lease)

    def _end(self, lease: Lease) -> None:
        self._away.leases.append(lease)
        del self._slab_of[lease]

    def _finish(self) -> None:
        """Let go of what an operation has taken out of the pool."""
        error = self._away.finish()
        if error is not None:
            raise error

    def checkpoint(self) -> Checkpoint:
        """Remember which slots are in use, for `restore`."""
        with NoFinalisers():
            if any([slab.revoked for slab in self._slabs]):
                raise revoked(self)
            for slab in self._slabs:
                fresh = slab.new_lease()
                slab.aside.append(slab.lease)
                slab.lease = fresh
                self._slab_of[fresh] = slab
            point = PoolCheckpoint(self, self._empty, len(self._slabs))
            self._leases.put_aside(point)
            self._empty = empty_lease()
            self._ledger.begin()
            return point

    def restore(self, point: Checkpoint) -> None:
        """Go back to a checkpoint: slabs added since go to the parent, blocks made since are revoked.

        Raises `MisuseError` where a reset or an earlier restore has gone back further already.
        """
        with NoFinalisers():
            closing = self._leases.cut(self, point)
            assert isinstance(point, PoolCheckpoint)
            closing[0] = self._empty
            self._away.leases += closing
            self._empty = point.lease
            number: int = point.index
            gone = self._slabs[point.slabs :]
            del self._slabs[point.slabs :]
            self._end_all(gone)
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
            self._away.runs += [Run(slab) for slab in gone]
        self._finish()

    def _take_up(self, slab: _Slab, index: int) -> None:
        """End the leases of a slab made since it put one aside, and continue with that."""
        for lease in [slab.lease, *slab.aside[index + 1 :]]:
            self._end(lease)
        slab.lease = slab.aside[index]
        del slab.aside[index:]

    def scope(self) -> Scope[Self]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Give back all slabs and revoke all blocks. The pool is empty then, and can be used again if it can grow."""
        with NoFinalisers():
            runs = [Run(slab) for slab in self._slabs]
            self._drop_slabs()
            self._away.runs += runs
        self._finish()

    def forget(self) -> None:
        """Become empty after the parent has dropped all its blocks, and the slabs with them."""
        with NoFinalisers():
            self._drop_slabs()
        self._finish()

    def _drop_slabs(self) -> None:
        """Revoke all blocks and checkpoints and let go of the slabs."""
        slabs = self._slabs
        self._slabs = []
        self._end_all(slabs)
        self._leases.close()
        self._empty.close()
        self._empty = empty_lease()
        self._ledger.clear()
        self._free.clear()
        self._live = 0
        self._current = 0

    def __repr__(self) -> str:
        options = "" if self._align == 8 else f", align={self._align}"
        if self._capacity:
            options += f", capacity={self._capacity}"
        if not self._growable:
            options += ", growable=false"
        return f"pool({size_text(self._size)}, {self._parent!r}{options})"


def _start(slab: _Slab) -> int:
    return slab.start
