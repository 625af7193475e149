"""BumpAlloc: bumps up through chunks from any parent allocator.

Layout: chunks of 64 KiB, doubling up to 16 MiB, without headers. A request larger than the next chunk would be gets a
chunk of its own, which goes back to the parent as soon as its block is freed; the current chunk stays current.

Costs: an allocation is an addition, a mask and a comparison. Only the newest block is freed, grown or shrunk in place;
everything else comes back at `reset`, which keeps the newest chunk, or what its policy says.

Compared with `Arena`: growing the newest block never moves its bytes, since it grows upwards; there are no footers, and
no minimum alignment. Not for: many long-lived blocks that are freed one by one.
"""

from __future__ import annotations

from operator import index as plain_int
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, check_grow, check_shrink, unfit
from allocators.block import DANGLING, Block, Lease, empty_lease, foreign, lease_of, released
from allocators.chunk import Chunk, Departures, Run, revoked
from allocators.errors import AllocError, LayoutError, caused_by
from allocators.layout import Layout, number_text
from allocators.protocol import Allocator
from allocators.reset import NEWEST, ResetPolicy, kept_bytes
from allocators.scope import Checkpoint, LeaseCheckpoint, Leases, Scope
from allocators.sizes import size_text
from allocators.waste import Waste

A = TypeVar("A", bound=Allocator)

FIRST_CHUNK: Final = 64 * 1024
LARGEST_CHUNK: Final = 16 * 1024 * 1024
_CHUNK_LIMIT: Final = 1 << 62
_CHUNK_ALIGN: Final = 16


@mypyc_attr(native_class=True)
class _Large(Chunk):
    """A chunk of its own for one block; `serial` tells which checkpoints are older."""

    __slots__ = ("lease", "serial")

    def __init__(self, block: Block, layout: Layout) -> None:
        super().__init__(block, layout, layout.size)
        self.serial: i64 = 0
        self.lease: Final = self.new_lease()
        self.lease.taken = layout.size


@mypyc_attr(native_class=True)
class BumpCheckpoint(LeaseCheckpoint):
    """The chunk that was current, the cursor in it, and the serial of the next large block."""

    __slots__ = ("chunk", "cursor", "serial")

    def __init__(self, bump: object, lease: Lease) -> None:
        super().__init__(bump, lease)
        self.chunk: Chunk | None = None
        self.cursor: i64 = 0
        self.serial: i64 = 0


@mypyc_attr(native_class=True)
class BumpAlloc(BaseAllocator, Generic[A]):
    """Blocks from chunks of `parent`. `first_chunk` and `largest_chunk` are in bytes."""

    __slots__ = (
        "_away",
        "_chunk",
        "_cursor",
        "_end",
        "_first_chunk",
        "_highest",
        "_large",
        "_large_bytes",
        "_largest_chunk",
        "_lease",
        "_leases",
        "_parent",
        "_peak",
        "_peaks",
        "_serial",
        "_start",
        "_up",
    )

    def __init__(
        self, parent: A, *, first_chunk: SupportsIndex = FIRST_CHUNK, largest_chunk: SupportsIndex = LARGEST_CHUNK
    ) -> None:
        first = plain_int(first_chunk)
        largest = plain_int(largest_chunk)
        if not 0 < first <= largest <= _CHUNK_LIMIT:
            sizes = f"{number_text(first)} to {number_text(largest)}"
            raise LayoutError(f"chunks must go from 1 byte up to 2**62, not from {sizes}")
        self._parent: Final[A] = parent
        #: The same, for calls.
        self._up: Final = as_base(parent)
        self._away: Final = Departures(self._up)
        self._first_chunk: Final = first
        self._largest_chunk: Final = largest
        # First byte of the current chunk, where the next block goes, and the byte after the chunk.
        self._start: i64 = DANGLING
        self._cursor: i64 = DANGLING
        self._end: i64 = DANGLING
        #: The cursor's highest place in the current chunk, apart from where it is; and the most bytes in use at once
        #: before a chunk was made current or a large block freed.
        self._highest: i64 = DANGLING
        self._peak: i64 = 0
        self._peaks: list[int] = []
        self._chunk: Chunk | None = None
        self._lease = empty_lease()
        self._leases = Leases()
        self._large: dict[int, _Large] = {}
        self._large_bytes: i64 = 0
        self._serial: i64 = 0

    @property
    def parent(self) -> A:
        return self._parent

    def allocate(self, layout: Layout) -> Block:
        align: i64 = layout.align
        size = layout.size
        lease = self._lease
        if lease.memory is None:
            raise revoked(self)
        address = (self._cursor + align - 1) & -align
        if address > self._end or size > self._end - address:
            return self._allocate_in_new_chunk(layout)
        self._cursor = address + size
        lease.taken += size
        return Block(address, size, lease)

    def _allocate_in_new_chunk(self, layout: Layout) -> Block:
        size: int = layout.size
        align = max(layout.align, _CHUNK_ALIGN)
        chunk = self._chunk
        wanted = self._first_chunk
        if chunk is not None:
            # A reset can have kept a chunk of more than the largest size.
            wanted = min(max(2 * chunk.size, wanted), self._largest_chunk)
        if size > wanted:
            return self._allocate_large(layout)
        refusal = self._add_chunk_of(Layout(wanted, align))
        while refusal is not None:
            if wanted <= max(size, 1):
                raise self._exhausted(layout, refusal)
            wanted = max(wanted // 2, size, 1)
            refusal = self._add_chunk_of(Layout(wanted, align))
        # Whatever ran meanwhile may have filled the chunk already.
        return self.allocate(layout)

    def _add_chunk_of(self, layout: Layout) -> MemoryError | None:
        """Make a fresh chunk the current one; returns the parent's refusal, if any."""
        try:
            block = self._up.allocate(layout)
        except MemoryError as refusal:
            return refusal
        try:
            self._enter(Chunk(block, layout, layout.size))
        except BaseException:
            if not self._has(block):
                self._up.deallocate(block, layout)
            raise
        return None

    def _has(self, block: Block) -> bool:
        """Whether a block of the parent is that of a chunk, or of a large block."""
        chunk = self._chunk
        while chunk is not None and chunk.block is not block:
            chunk = chunk.previous
        if chunk is None:
            chunk = self._large.get(block.address)
        return chunk is not None and chunk.block is block

    def _enter(self, fresh: Chunk) -> None:
        """Make a fresh chunk the current one."""
        lease = fresh.new_lease()
        aside = [lease]
        peak = self.peak_bytes
        # From here on nothing else runs.
        self._peak = peak
        current = self._chunk
        if current is not None:
            current.cursor = self._cursor
        # That of an allocator without chunks, too: there can be blocks of size zero.
        aside[0] = self._lease
        self._leases.aside += aside
        fresh.previous = current
        self._chunk = fresh
        self._lease = lease
        self._start = fresh.start
        self._cursor = fresh.start
        self._highest = fresh.start
        self._end = fresh.start + fresh.size

    def _allocate_large(self, layout: Layout) -> Block:
        try:
            block = self._up.allocate(layout)
        except MemoryError as refusal:
            raise self._exhausted(layout, refusal)
        return self._adopt_large(block, layout)

    def _adopt_large(self, block: Block, layout: Layout) -> Block:
        try:
            large = _Large(block, layout)
            whole = Block(block.address, layout.size, large.lease)
            # From here on nothing else runs.
            large.serial = self._serial
            self._serial += 1
            self._large[large.start] = large
            self._large_bytes += large.size
        except BaseException:
            if not self._has(block):
                self._up.deallocate(block, layout)
            raise
        return whole

    def _exhausted(self, layout: Layout, refusal: MemoryError) -> AllocError:
        error = AllocError("bump", layout, in_use=self.used_bytes, reason=f"the parent refuses: {refusal}")
        return caused_by(error, refusal)

    def deallocate(self, block: Block, layout: Layout) -> None:
        region = block.region
        if region.memory is None:
            raise released(block)
        if not isinstance(region, Lease):
            raise foreign(block)
        size = layout.size
        if size > block.size:
            raise unfit(block, layout)
        # A chunk before the current one may end right where this one starts.
        if block.address + size == self._cursor and block.address >= self._start:
            if self._cursor > self._highest:
                self._highest = self._cursor
            self._cursor = block.address
            region.taken -= size
        elif self._is_large(block):
            block.release()
            self._let_go(self._large[block.address])
            self._finish()
        else:
            region.dead += size
        block.release()

    def _let_go(self, large: _Large) -> None:
        """Forget a large block, which ends, and leave its memory for `_finish`."""
        runs = [Run()]
        closing = [large.lease]
        peak = self.peak_bytes
        # From here on nothing else runs.
        if self._large.get(large.start) is large:
            self._peak = peak
            del self._large[large.start]
            self._large_bytes -= large.size
            runs[0].chunk = large
            self._away.leases += closing
            self._away.runs += runs

    def _finish(self) -> None:
        """Let go of what an operation has taken out of the allocator."""
        error = self._away.finish()
        if error is not None:
            raise error

    def _is_large(self, block: Block) -> bool:
        large = self._large.get(block.address) if self._large else None
        return large is not None and large.lease is block.region

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        grown = self._grow_in_place(block, old, new)
        if grown is not None:
            return grown
        if self._is_large(block):
            large = self._large[block.address]
            if new.size > large.size:
                return self._grow_large(block, large, new)
        return self._move(block, old, new, old.size)

    def _grow_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Grow where the block is aligned, and its chunk has room after it; else None."""
        address = block.address
        if address & (new.align - 1):
            return None
        lease = lease_of(block)
        if lease is self._lease:
            # Only the newest, and never one from before a checkpoint: what that took would be handed out again after
            # the scope.
            if address + old.size != self._cursor or new.size > self._end - address:
                return None
            self._cursor = address + new.size
            lease.taken += new.size - old.size
        elif self._is_large(block) and new.size <= lease.size:
            # It has been larger before.
            lease.dead -= new.size - old.size
        else:
            return None
        block.release()
        return Block(address, new.size, lease)

    def _grow_large(self, block: Block, large: _Large, new: Layout) -> Block:
        """Grow a block together with its own chunk, which the parent may do without copying."""
        # The parent can move the pages only while no view exports them.
        lease = large.lease
        lease.let_go()
        try:
            resized = self._up.grow(large.block, large.layout, new)
        except BaseException as error:
            if not large.revoked:
                large.block.region.renew(lease)
            if isinstance(error, MemoryError):
                raise self._exhausted(new, error)
            raise
        lease.close()
        if self._large.get(large.start) is large:
            del self._large[large.start]
            self._large_bytes -= large.size
        block.release()
        return self._adopt_large(resized, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        # A block of size zero needs no chunk.
        if block.address & (new.align - 1) or (new.size == 0 and self._is_large(block)):
            return self._move(block, old, new, new.size)
        return self._shrink_in_place(block, old, new)

    def _shrink_in_place(self, block: Block, old: Layout, new: Layout) -> Block:
        address = block.address
        lease = lease_of(block)
        if address + old.size == self._cursor and address >= self._start:
            if self._cursor > self._highest:
                self._highest = self._cursor
            self._cursor = address + new.size
            lease.taken -= old.size - new.size
        else:
            lease.dead += old.size - new.size
        block.release()
        return Block(address, new.size, lease)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Grow or shrink without moving, or return None and change nothing."""
        if new.size >= old.size:
            check_grow(block, old, new)
            return self._grow_in_place(block, old, new)
        check_shrink(block, old, new)
        if block.address & (new.align - 1) or (new.size == 0 and self._is_large(block)):
            return None
        return self._shrink_in_place(block, old, new)

    def owns(self, block: Block) -> bool:
        chunk = self._chunk
        while chunk is not None:
            end = chunk.start + chunk.size
            # Only a block without bytes can start at the end of a chunk; any other is in the mapping after it.
            if chunk.start <= block.address < end or (block.address == end and block.size == 0):
                return not chunk.revoked
            chunk = chunk.previous
        return self._is_large(block)

    def reset(self, policy: ResetPolicy = NEWEST) -> bool:
        """Revoke all blocks, and keep as much memory as the policy says: by default the newest chunk.

        If the policy wants another capacity than that chunk's, all are given back, and the parent is asked for one of
        that size. False where the parent refuses: the allocator is empty then, and can be used. Chunks of their own for
        large blocks always go, but they count for what the policy calls the capacity.
        """
        newest = self._chunk_to_keep()
        size: int = 0 if newest is None else newest.size
        kept = kept_bytes(policy, self.allocated_bytes, size, self.peak_bytes, self._peaks)
        refusal: MemoryError | None = None
        if kept == size:
            error = self._clear(True)
        else:
            error = self._clear(False)
            if kept > 0:
                refusal = self._add_chunk_of(Layout(kept, _CHUNK_ALIGN))
        if error is not None:
            raise error
        return refusal is None

    def _chunk_to_keep(self) -> Chunk | None:
        """The newest chunk, unless there is none or the parent has revoked it."""
        chunk = self._chunk
        return None if chunk is None or chunk.revoked else chunk

    def _clear(self, keep: bool) -> BaseException | None:
        """Revoke all blocks, and give back all chunks but one to `keep`; returns what the parent raised first."""
        runs = [Run()]
        closing = [self._lease]
        none: list[Lease] = []
        serial = self._serial
        while True:
            kept = self._chunk_to_keep() if keep else None
            fresh = empty_lease() if kept is None else kept.new_lease()
            # From here on nothing else runs, but a finaliser may have done so before.
            if kept is None or kept is self._chunk:
                break
        closing[0] = self._lease
        closing += self._leases.aside
        self._leases.aside = none
        runs[0].chunk = self._chunk
        self._chunk = kept
        self._lease = fresh
        if kept is None:
            self._start = DANGLING
            self._end = DANGLING
        else:
            runs[0].chunk = kept.previous
            kept.previous = None
            self._start = kept.start
            self._end = kept.start + kept.size
        self._cursor = self._start
        self._highest = self._start
        self._away.leases += closing
        self._away.runs += runs
        self._drop_large(0, serial)
        self._peak = 0
        return self._away.finish()

    def _drop_large(self, first: i64, end: i64) -> None:
        """Forget the large blocks with serials from `first` up to `end`; the newest are given back first."""
        if not self._large:
            return
        for large in list(self._large.values()):
            if first <= large.serial < end:
                self._let_go(large)

    def checkpoint(self) -> Checkpoint:
        """Remember the present state, for `restore`."""
        if self._lease.memory is None:
            raise revoked(self)
        point = BumpCheckpoint(self, self._lease)
        aside = [self._lease]
        while True:
            chunk = self._chunk
            fresh = empty_lease() if chunk is None else chunk.new_lease()
            # From here on nothing else runs, but a finaliser may have done so before.
            if chunk is self._chunk:
                break
        point.lease = self._lease
        point.index = len(self._leases.aside)
        point.chunk = chunk
        point.cursor = self._cursor
        point.serial = self._serial
        aside[0] = self._lease
        self._leases.aside += aside
        self._lease = fresh
        return point

    def restore(self, point: Checkpoint) -> None:
        """Go back to a checkpoint: chunks added since go to the parent, blocks made since are revoked.

        Raises `MisuseError` where a reset or an earlier restore has gone back further already.
        """
        peak = self.peak_bytes
        serial = self._serial
        closing = self._leases.cut(self, point)
        # From here on nothing else runs.
        assert isinstance(point, BumpCheckpoint)
        closing[0] = self._lease
        self._peak = peak
        chunk = point.chunk
        # The newest of the older blocks may have been freed inside the scope, and the cursor be below the checkpoint.
        if chunk is not self._chunk or self._cursor > point.cursor:
            self._cursor = point.cursor
        newest = self._chunk
        self._chunk = chunk
        self._lease = point.lease
        self._highest = self._cursor
        self._start = DANGLING if chunk is None else chunk.start
        self._end = DANGLING if chunk is None else chunk.start + chunk.size
        self._away.leases += closing
        if newest is not chunk:
            self._away.runs.append(Run(newest, chunk))
        self._drop_large(point.serial, serial)
        self._finish()

    def scope(self) -> Scope[BumpAlloc[A]]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Give back all chunks and revoke all blocks. The allocator is empty then, and can be used again."""
        error = self._clear(False)
        if error is not None:
            raise error

    @property
    def chunk_capacity(self) -> int:
        """Bytes left in the current chunk, alignment not considered."""
        return self._end - self._cursor

    @property
    def allocated_bytes(self) -> int:
        """Bytes asked of the parent for all chunks."""
        total: int = 0
        chunk = self._chunk
        while chunk is not None:
            total += chunk.size
            chunk = chunk.previous
        return total + self._large_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes below the cursors of all chunks: live and dead blocks and padding."""
        total: int = 0
        chunk = self._chunk
        if chunk is not None:
            total = self._cursor - chunk.start
            chunk = chunk.previous
        while chunk is not None:
            total += chunk.cursor - chunk.start
            chunk = chunk.previous
        return total + self._large_bytes

    @property
    def peak_bytes(self) -> int:
        """The most bytes in use at once since the last reset: as `used_bytes`, at the time when that was largest."""
        peak: int = self._peak
        used = self.used_bytes
        if self._highest > self._cursor:
            used += self._highest - self._cursor
        return max(peak, used)

    def waste(self) -> Waste:
        """Where every byte that the parent gave has gone."""
        taken, dead = self._leases.taken_and_dead(self._lease)
        total = 0
        chunk = self._chunk
        while chunk is not None:
            total += chunk.block.size
            chunk = chunk.previous
        for large in self._large.values():
            total += large.block.size
            taken += large.lease.taken
            dead += large.lease.dead
        used = self.used_bytes
        tail = self.chunk_capacity
        allocated = self.allocated_bytes
        return Waste.of(
            total,
            taken - dead,
            dead,
            used,
            tail=tail,
            abandoned=allocated - used - tail,
            overhead=0,
            slack=total - allocated,
        )

    def __repr__(self) -> str:
        options = ""
        if self._first_chunk != FIRST_CHUNK:
            options += f", first_chunk={size_text(self._first_chunk)}"
        if self._largest_chunk != LARGEST_CHUNK:
            options += f", largest_chunk={size_text(self._largest_chunk)}"
        return f"bump({self._parent!r}{options})"
