"""Arena: oxc's chunked arena, to the byte.

Layout: chunks from any parent allocator, each with a 48-byte footer at its end:

    start ... free ... cursor ... allocated ... | footer

The cursor moves *down*: a block takes `size` bytes and then rounds its address down to its alignment, but at least to
the arena's `min_align`. The footer holds six words: address, size and alignment of the chunk's block, the address of
the previous chunk's footer or 0, the cursor where the chunk was retired, and whether the chunk is of fixed size.
Cursor and start of the current chunk are cached as plain attributes of the arena, so an allocation touches no chunk;
native code keeps the same pair in registers.

Chunks: the first offers 16320 bytes, each later one twice the data of the one before, or what the request needs; where
the parent refuses, half as much is tried, down to 16320 or the request.

Costs: an allocation is a subtraction, a mask and a comparison. `deallocate` gives back only the newest block, `grow`
and `shrink` stay in place only for it; every other freed byte comes back at `reset`, which keeps the newest chunk, or
what its policy says.

Not for: blocks that grow while others are allocated. Each growth leaves the old copy behind; a buffer that is
doubled by 4799 reallocations in turn with others can take thousands of times its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as plain_int
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, check_grow, check_shrink, unfit
from allocators.block import DANGLING, Block, Lease, Region, empty_lease, foreign, lease_of, released, zero
from allocators.chunk import Chunk, Departures, Run, revoked
from allocators.errors import AllocError, LayoutError, MisuseError, caused_by
from allocators.layout import MAX_SIZE, Layout, number_text
from allocators.memory import Pointer, pointer, store_i64
from allocators.protocol import Allocator
from allocators.reset import NEWEST, ResetPolicy, kept_bytes
from allocators.scope import Checkpoint, LeaseCheckpoint, Leases, Scope
from allocators.sizes import size_text
from allocators.waste import Waste

A = TypeVar("A", bound=Allocator)

CHUNK_ALIGN: Final = 16
FOOTER_SIZE: Final = 48
#: What a chunk's size leaves free so that the footer and a malloc header fit in a power of two, or in whole pages.
OVERHEAD: Final = FOOTER_SIZE + 16
PAGE: Final = 4096
#: Data bytes of a default first chunk, and the least that a later chunk is reduced to when the parent refuses.
FIRST_CHUNK: Final = 16384 - OVERHEAD

# Words of a footer.
_BLOCK_ADDRESS: Final = 0
_BLOCK_SIZE: Final = 1
_BLOCK_ALIGN: Final = 2
_PREVIOUS: Final = 3
_CURSOR: Final = 4
_FIXED: Final = 5

_WHOLE: Final = slice(None)
#: What an arena without a place has as its lease.
_ENDED: Final = Lease(0, 0, None)


@mypyc_attr(native_class=True)
class _ArenaChunk(Chunk):
    """One chunk: the parent's block, and the footer in it."""

    __slots__ = ("_words", "fixed", "footer")

    def __init__(self, block: Block, layout: Layout, fixed: bool) -> None:
        super().__init__(block, layout, layout.size - FOOTER_SIZE)
        self.cursor = block.address + self.size
        self.fixed: Final = fixed
        offset: int = self.size
        footer = block.view[offset : offset + FOOTER_SIZE].cast("q")
        if footer.nbytes != FOOTER_SIZE:
            raise MisuseError(f"the parent has returned {block!r} for {layout!r}")
        self.footer: Final = footer
        self._words: Final[Pointer] = pointer(footer)
        store_i64(self._words, _BLOCK_ADDRESS, block.address)
        store_i64(self._words, _BLOCK_SIZE, layout.size)
        store_i64(self._words, _BLOCK_ALIGN, layout.align)
        store_i64(self._words, _FIXED, int(fixed))
        self.write_footer()

    def write_footer(self) -> None:
        if not self.revoked:
            previous = self.previous
            store_i64(self._words, _PREVIOUS, 0)
            if previous is not None:
                store_i64(self._words, _PREVIOUS, previous.start + previous.size)
            store_i64(self._words, _CURSOR, self.cursor)

    def give_back(self, parent: BaseAllocator) -> None:
        self.footer.release()
        if not self.fixed:
            super().give_back(parent)


@mypyc_attr(native_class=True)
class ArenaCheckpoint(LeaseCheckpoint):
    """The chunk that was current, and the cursor in it."""

    __slots__ = ("chunk", "cursor")

    def __init__(self, arena: object, lease: Lease) -> None:
        super().__init__(arena, lease)
        self.chunk: Chunk | None = None
        self.cursor: i64 = 0


@mypyc_attr(native_class=True)
class Arena(BaseAllocator, Generic[A]):
    """Blocks from chunks of `parent`, freed all at once.

    `min_align`, a power of two up to 16: every block's address is a multiple of it. `capacity`: data bytes of a first
    chunk to allocate right away; 0 waits for the first request. `rounded_grow`: grow the newest block from its end, so
    that bytes which rounding to `min_align` had added are used; oxc leaves them behind.
    """

    __slots__ = (
        "_away",
        "_capacity",
        "_chunk",
        "_cursor",
        "_fixed_size",
        "_lease",
        "_leases",
        "_lowest",
        "_min_align",
        "_parent",
        "_peak",
        "_peaks",
        "_retired",
        "_rounded_grow",
        "_start",
        "_up",
    )

    def __init__(
        self, parent: A, *, min_align: SupportsIndex = 1, capacity: SupportsIndex = 0, rounded_grow: bool = False
    ) -> None:
        least = plain_int(min_align)
        first = plain_int(capacity)
        if least not in (1, 2, 4, 8, 16):
            raise LayoutError(f"min_align must be 1, 2, 4, 8 or 16, not {number_text(least)}")
        if first < 0:
            raise LayoutError(f"capacity must not be negative: {number_text(first)}")
        self._parent: Final[A] = parent
        #: The same, for calls.
        self._up: Final = as_base(parent)
        self._min_align: Final[i64] = least
        self._rounded_grow: Final = rounded_grow
        self._capacity: Final = first
        #: Bytes of the region of a fixed arena, else 0.
        self._fixed_size: i64 = 0
        self._cursor: i64 = DANGLING
        self._start: i64 = DANGLING
        #: The cursor's lowest place in the current chunk, apart from where it is; and the most bytes in use at once
        #: before the current chunk was made current.
        self._lowest: i64 = DANGLING
        self._peak: i64 = 0
        self._peaks: list[int] = []
        self._lease = empty_lease()
        self._leases = Leases()
        self._away: Final = Departures(self._up)
        self._chunk: Chunk | None = None
        #: Whether another arena has taken this one's place.
        self._retired = False
        if first:
            whole = Layout(first, 1)
            refusal = self._add_chunk(first, CHUNK_ALIGN, first)
            if refusal is not None:
                raise self._exhausted(whole, refusal)

    @staticmethod
    def over(region: Region, parent: A, *, min_align: SupportsIndex = 1) -> Arena[A]:
        """An arena of fixed size in memory that the caller owns; when that is full, `AllocError`.

        The region must start 16-aligned, with a size that is a multiple of 16 and at least 48, or `MisuseError`. The
        arena never asks `parent` for anything, and closing it leaves the region to its owner.
        """
        if region.address % CHUNK_ALIGN or region.size % CHUNK_ALIGN or region.size < FOOTER_SIZE:
            raise MisuseError(
                f"a fixed arena needs a 16-aligned region of a multiple of 16 and at least 48 bytes, not {region!r}"
            )
        arena = Arena(parent, min_align=min_align)
        arena._fixed_size = region.size
        block = Block(region.address, region.size, region)
        arena._enter(_ArenaChunk(block, Layout(region.size, CHUNK_ALIGN), True))
        return arena

    @property
    def parent(self) -> A:
        return self._parent

    @property
    def min_align(self) -> int:
        return self._min_align

    @property
    def cursor(self) -> int:
        """Address of the newest block in the current chunk, or where its data ends."""
        return self._cursor

    @property
    def start(self) -> int:
        """Address of the first data byte of the current chunk: the cursor never goes below it."""
        return self._start

    def take(self, cursor: int) -> None:
        """Tell the arena that native code has allocated down to `cursor` in the current chunk."""
        if not self._start <= cursor <= self._cursor or cursor & (self._min_align - 1):
            raise MisuseError(f"cursor {cursor:#x} is not between start {self._start:#x} and {self._cursor:#x}")
        self._lease.taken += self._cursor - cursor
        self._cursor = cursor

    def allocate(self, layout: Layout) -> Block:
        size = layout.size
        align: i64 = layout.align
        if align < self._min_align:
            align = self._min_align
        lease = self._lease
        if lease.memory is None:
            raise self._unusable()
        address = (self._cursor - size) & -align
        if address < self._start:
            address = self._allocate_in_new_chunk(layout, align)
            lease = self._lease
        self._cursor = address
        lease.taken += size
        return Block(address, size, lease)

    def _unusable(self) -> MisuseError:
        if self._retired:
            return MisuseError("the arena has been given back to its pool")
        return revoked(self)

    def _allocate_in_new_chunk(self, layout: Layout, align: i64) -> i64:
        """Add a chunk that fits the request; returns the block's address in it."""
        size: int = layout.size
        least = max(size, FIRST_CHUNK)
        while True:
            if self._fixed_size:
                raise self._exhausted(layout)
            chunk = self._chunk
            wanted = least if chunk is None else max(2 * chunk.size, least)
            refusal = self._add_chunk(size, max(align, CHUNK_ALIGN), wanted)
            while refusal is not None:
                wanted //= 2
                if wanted < least:
                    raise self._exhausted(layout, refusal)
                refusal = self._add_chunk(size, max(align, CHUNK_ALIGN), wanted)
            address = (self._cursor - layout.size) & -align
            # Whatever ran meanwhile may have filled the chunk already.
            if address >= self._start:
                return address

    def _add_chunk(self, needed: int, align: int, wanted: int) -> MemoryError | None:
        """Make a fresh chunk of about `wanted` data bytes the current one; returns the parent's refusal, if any.

        It fits a request of `needed` bytes at `align`, which is at least that of chunks.
        """
        return self._add_chunk_of(chunk_size(max(wanted, (needed + align - 1) & -align)), align)

    def _add_chunk_of(self, size: int, align: int) -> MemoryError | None:
        """Make a fresh chunk of `size` bytes, footer and all, the current one; returns the parent's refusal, if any."""
        if size > MAX_SIZE - (align - 1):
            return MemoryError(f"no chunk has {size} bytes")
        layout = Layout(size, align)
        try:
            block = self._up.allocate(layout)
        except MemoryError as refusal:
            return refusal
        try:
            if self._retired:
                raise self._unusable()
            self._enter(_ArenaChunk(block, layout, False))
        except BaseException:
            if not self._has(block):
                self._up.deallocate(block, layout)
            raise
        return None

    def _has(self, block: Block) -> bool:
        """Whether a block of the parent is that of a chunk."""
        chunk = self._chunk
        while chunk is not None and chunk.block is not block:
            chunk = chunk.previous
        return chunk is not None

    def _enter(self, chunk: _ArenaChunk) -> None:
        """Make a fresh chunk the current one."""
        lease = chunk.new_lease()
        aside = [lease]
        peak = self.peak_bytes
        # From here on nothing else runs.
        self._peak = peak
        current = self._chunk
        if current is not None:
            current.cursor = self._cursor
        # That of an arena without chunks, too: there can be blocks of size zero.
        aside[0] = self._lease
        self._leases.aside += aside
        chunk.previous = current
        self._chunk = chunk
        self._lease = lease
        self._start = chunk.start
        self._cursor = chunk.cursor & -self._min_align
        self._lowest = self._cursor
        chunk.write_footer()
        if isinstance(current, _ArenaChunk):
            current.write_footer()

    def _exhausted(self, layout: Layout, refusal: MemoryError | None = None) -> AllocError:
        limit = self.allocated_bytes if self._fixed_size else None
        reason = "" if refusal is None else f"the parent refuses: {refusal}"
        error = AllocError("arena", layout, limit=limit, in_use=self.used_bytes, reason=reason)
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
        if block.address == self._cursor:
            if self._cursor < self._lowest:
                self._lowest = self._cursor
            self._cursor = (self._cursor + size + self._min_align - 1) & -self._min_align
            region.taken -= size
        else:
            region.dead += size
        block.release()

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        # An older block must not grow inside a scope: what it took would be handed out again after it.
        if block.address == self._cursor and old.align >= new.align and block.region is self._lease:
            align = old.align
            if align < self._min_align:
                align = self._min_align
            top = block.address + old.size
            if self._rounded_grow:
                top = (top + self._min_align - 1) & -self._min_align
            else:
                # oxc counts the new size rounded up, the old one not.
                top -= -new.size & (self._min_align - 1)
            address = (top - new.size) & -align
            if address >= self._start:
                grown = self._slide(block, address, new.size, old.size)
                if grown is not None:
                    lease = lease_of(block)
                    lease.taken += new.size - old.size
                    block.release()
                    return grown
        return self._move(block, old, new, old.size)

    def _slide(self, block: Block, address: i64, size: i64, kept: i64) -> Block | None:
        """The newest block at another address of its chunk, with its first `kept` bytes; the ranges may overlap.

        None where a finaliser has used the arena meanwhile.
        """
        region = block.region
        slid = Block(address, size, region)
        memory = region.view
        source = block.address - region.address
        target = address - region.address
        bytes_kept = memory[source : source + kept]
        room = memory[target : target + kept]
        # From here on nothing else runs.
        if self._cursor != block.address or region.memory is None:
            return None
        if kept > 0 and source != target:
            room[_WHOLE] = bytes_kept
        self._cursor = address
        return slid

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        grown = self.grow(block, old, new)
        zero(grown, old.size, new.size)
        return grown

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        address = block.address
        lease = lease_of(block)
        if new.align > old.align:
            if address & (new.align - 1):
                return self._move(block, old, new, new.size)
        elif address == self._cursor:
            align = new.align
            if align < self._min_align:
                align = self._min_align
            delta = (old.size - new.size) & -align
            # At least half, so that the bytes kept never overlap the place they came from.
            if delta >= (old.size + 1) // 2:
                shrunk = self._slide(block, address + delta, new.size, new.size)
                if shrunk is not None:
                    if address < self._lowest:
                        self._lowest = address
                    lease.taken -= delta
                    lease.dead += old.size - new.size - delta
                    block.release()
                    return shrunk
        lease.dead += old.size - new.size
        block.release()
        return Block(address, new.size, lease)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Shrink without moving, or return None and change nothing: a block that grows downwards always moves."""
        lease = lease_of(block)
        if new.size > old.size or block.address & (new.align - 1):
            return None
        check_shrink(block, old, new)
        lease.dead += old.size - new.size
        block.release()
        return Block(block.address, new.size, lease)

    def owns(self, block: Block) -> bool:
        chunk = self._chunk
        while chunk is not None:
            if chunk.start <= block.address <= chunk.start + chunk.size:
                return not chunk.revoked
            chunk = chunk.previous
        return False

    def reset(self, policy: ResetPolicy = NEWEST) -> bool:
        """Revoke all blocks, and keep as much memory as the policy says: by default the newest chunk.

        If the policy wants another capacity than that chunk's, the arena gives back all of them, and asks the parent
        for one of that size, rounded down to 16 bytes. False if the parent refuses: the arena is empty then, and can
        be used. A chunk of fixed size always stays.
        """
        if self._retired:
            raise self._unusable()
        newest = self._chunk_to_keep()
        size: int = 0 if newest is None else newest.size
        kept = kept_bytes(policy, self.allocated_bytes, size, self.peak_bytes, self._peaks)
        kept &= -CHUNK_ALIGN
        refusal: MemoryError | None = None
        if self._fixed_size or kept == size:
            error = self._clear(True)
        else:
            error = self._clear(False)
            if kept > 0:
                refusal = self._add_chunk_of(kept + FOOTER_SIZE, CHUNK_ALIGN)
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
        self._peak = 0
        if kept is None:
            self._start = DANGLING
            self._cursor = DANGLING
        else:
            runs[0].chunk = kept.previous
            kept.previous = None
            self._start = kept.start
            self._cursor = (kept.start + kept.size) & -self._min_align
        self._lowest = self._cursor
        self._away.leases += closing
        self._away.runs += runs
        if isinstance(kept, _ArenaChunk):
            kept.write_footer()
        return self._away.finish()

    def _finish(self) -> None:
        """Let go of what an operation has taken out of the arena."""
        error = self._away.finish()
        if error is not None:
            raise error

    def checkpoint(self) -> Checkpoint:
        """Remember the present state, for `restore`."""
        if self._lease.memory is None:
            raise self._unusable()
        point = ArenaCheckpoint(self, self._lease)
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
        aside[0] = self._lease
        self._leases.aside += aside
        self._lease = fresh
        return point

    def restore(self, point: Checkpoint) -> None:
        """Go back to a checkpoint: chunks added since go to the parent, blocks made since are revoked.

        Raises `MisuseError` where a reset or an earlier restore has gone back further already.
        """
        peak = self.peak_bytes
        closing = self._leases.cut(self, point)
        # From here on nothing else runs.
        assert isinstance(point, ArenaCheckpoint)
        closing[0] = self._lease
        self._peak = peak
        chunk = point.chunk
        # The newest of the older blocks may have been freed inside the scope, and the cursor be above the checkpoint.
        if chunk is not self._chunk or self._cursor < point.cursor:
            self._cursor = point.cursor
        newest = self._chunk
        self._chunk = chunk
        self._lease = point.lease
        self._start = DANGLING if chunk is None else chunk.start
        self._lowest = self._cursor
        self._away.leases += closing
        if newest is not chunk:
            self._away.runs.append(Run(newest, chunk))
        self._finish()

    def scope(self) -> Scope[Arena[A]]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Give back all chunks and revoke all blocks.

        The arena is empty then, and can be used again; one of fixed size has no memory any more.
        """
        if self._retired:
            return
        error = self._clear(False)
        if error is not None:
            raise error

    def _succeed(self) -> Arena[A]:
        """After a reset: a fresh arena with this one's chunk and options, which itself raises from now on."""
        successor = Arena(self._parent, min_align=self._min_align, rounded_grow=self._rounded_grow)
        empty = successor._lease
        # From here on nothing else runs.
        successor._chunk = self._chunk
        successor._lease = self._lease
        successor._start = self._start
        successor._cursor = self._cursor
        successor._lowest = self._lowest
        successor._peaks = self._peaks
        self._retired = True
        self._chunk = None
        self._lease = _ENDED
        self._start = DANGLING
        self._cursor = DANGLING
        self._lowest = DANGLING
        empty.close()
        return successor

    @property
    def chunk_capacity(self) -> int:
        """Bytes left in the current chunk, alignment not considered."""
        return self._cursor - self._start

    @property
    def allocated_bytes(self) -> int:
        """Data bytes of all chunks."""
        total = 0
        chunk = self._chunk
        while chunk is not None:
            total += chunk.size
            chunk = chunk.previous
        return total

    @property
    def used_bytes(self) -> int:
        """Bytes between cursor and footer in all chunks: live and dead blocks and padding."""
        total: int = 0
        chunk = self._chunk
        if chunk is not None:
            total = chunk.start + chunk.size - self._cursor
            chunk = chunk.previous
        while chunk is not None:
            total += chunk.start + chunk.size - chunk.cursor
            chunk = chunk.previous
        return total

    @property
    def peak_bytes(self) -> int:
        """The most bytes in use at once since the last reset: as `used_bytes`, at the time when that was largest."""
        peak: int = self._peak
        used = self.used_bytes
        if self._lowest < self._cursor:
            used += self._cursor - self._lowest
        return max(peak, used)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Address and size of the used part of each chunk, newest first; in a chunk the newest block comes first."""
        chunk = self._chunk
        cursor: int = self._cursor
        while chunk is not None:
            yield cursor, chunk.start + chunk.size - cursor
            chunk = chunk.previous
            if chunk is not None:
                cursor = chunk.cursor

    def waste(self) -> Waste:
        """Where every byte that the parent gave has gone."""
        taken, dead = self._leases.taken_and_dead(self._lease)
        total = 0
        slack = 0
        footers = 0
        chunk = self._chunk
        while chunk is not None:
            total += chunk.block.size
            slack += chunk.block.size - chunk.layout.size
            footers += FOOTER_SIZE
            chunk = chunk.previous
        used = self.used_bytes
        tail = self.chunk_capacity
        abandoned = self.allocated_bytes - used - tail
        return Waste.of(total, taken - dead, dead, used, tail=tail, abandoned=abandoned, overhead=footers, slack=slack)

    def __repr__(self) -> str:
        options = ""
        if self._min_align != 1:
            options += f", min_align={self._min_align}"
        if self._fixed_size:
            return f"fixed({size_text(self._fixed_size)}{options})"
        if self._capacity:
            options += f", capacity={size_text(self._capacity)}"
        if self._rounded_grow:
            options += ", rounded_grow=true"
        return f"arena({self._parent!r}{options})"


def chunk_size(data_size: int) -> int:
    """Bytes to ask the parent for so that a chunk holds at least `data_size` bytes, footer included."""
    if data_size < PAGE:
        total = 1 << (data_size + OVERHEAD - 1).bit_length()
    else:
        total = (data_size + OVERHEAD + PAGE - 1) & -PAGE
    return total - OVERHEAD + FOOTER_SIZE
