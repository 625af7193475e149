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
from typing import Final, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, check_grow, check_shrink, unfit
from allocators.block import DANGLING, Block, Region, empty_region, released, zero
from allocators.layout import MAX_SIZE, Layout
from allocators.protocol import Allocator, AllocError, LayoutError, MisuseError
from allocators.reset import NEWEST, ResetPolicy, kept_bytes
from allocators.scope import Checkpoint, Keys, Scope
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


@mypyc_attr(native_class=True)
class Chunk:
    """One chunk: the parent's block, and the footer in it."""

    __slots__ = ("block", "fixed", "footer", "footer_address", "layout", "previous", "start")

    def __init__(self, block: Block, layout: Layout, start: i64, end: i64, previous: Chunk | None, fixed: bool) -> None:
        self.block: Final = block
        self.layout: Final = layout
        #: First data byte.
        self.start: Final[i64] = start
        #: First byte behind the data.
        self.footer_address: Final[i64] = end - FOOTER_SIZE
        self.previous = previous
        self.fixed: Final = fixed
        offset = self.footer_address - block.address
        footer = block.view[offset : offset + FOOTER_SIZE].cast("q")
        footer[_BLOCK_ADDRESS] = block.address
        footer[_BLOCK_SIZE] = layout.size
        footer[_BLOCK_ALIGN] = layout.align
        footer[_PREVIOUS] = 0 if previous is None else previous.footer_address
        footer[_CURSOR] = self.footer_address
        footer[_FIXED] = fixed
        self.footer: Final = footer

    @property
    def data_size(self) -> int:
        """Bytes that the chunk can hold."""
        return self.footer_address - self.start

    def key(self) -> Region:
        """A fresh region over the data, to hand out blocks through."""
        offset = self.start - self.block.address
        return Region(self.start, self.data_size, self.block.view[offset : offset + self.data_size])


@mypyc_attr(native_class=True)
class Arena(BaseAllocator, Generic[A]):
    """Blocks from chunks of `parent`, freed all at once.

    `min_align`, a power of two up to 16: every block's address is a multiple of it. `capacity`: data bytes of a first
    chunk to allocate right away; 0 waits for the first request. `rounded_grow`: grow the newest block from its end, so
    that bytes which rounding to `min_align` had added are used; oxc leaves them behind.
    """

    __slots__ = (
        "_capacity",
        "_chunk",
        "_cursor",
        "_fixed_size",
        "_key",
        "_keys",
        "_lowest",
        "_min_align",
        "_parent",
        "_peak",
        "_peaks",
        "_rounded_grow",
        "_start",
    )

    def __init__(self, parent: A, *, min_align: int = 1, capacity: int = 0, rounded_grow: bool = False) -> None:
        if min_align not in (1, 2, 4, 8, 16):
            raise LayoutError(f"min_align must be 1, 2, 4, 8 or 16, not {min_align}")
        if capacity < 0:
            raise LayoutError(f"capacity must not be negative: {capacity}")
        self._parent: Final[A] = parent
        self._min_align: Final[i64] = min_align
        self._rounded_grow: Final = rounded_grow
        self._capacity: Final = capacity
        #: Bytes of the region of a fixed arena, else 0.
        self._fixed_size: i64 = 0
        self._cursor: i64 = DANGLING
        self._start: i64 = DANGLING
        #: The cursor's lowest place in the current chunk, apart from where it is; and the most bytes in use at once
        #: before the current chunk was made current.
        self._lowest: i64 = DANGLING
        self._peak: i64 = 0
        self._peaks: list[int] = []
        self._key = empty_region()
        self._keys = Keys()
        self._chunk: Chunk | None = None
        if capacity and not self._add_chunk(capacity, CHUNK_ALIGN, capacity):
            raise self._exhausted(Layout(capacity, 1))

    @staticmethod
    def over(region: Region, parent: A, *, min_align: int = 1) -> Arena[A]:
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
        end = region.address + region.size
        arena._enter(Chunk(block, Layout(region.size, CHUNK_ALIGN), region.address, end, None, True))
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
        self._key.taken += self._cursor - cursor
        self._cursor = cursor

    def allocate(self, layout: Layout) -> Block:
        align: i64 = layout.align
        if align < self._min_align:
            align = self._min_align
        address = (self._cursor - layout.size) & -align
        if address < self._start:
            address = self._allocate_in_new_chunk(layout, align)
        self._cursor = address
        key = self._key
        key.taken += layout.size
        return Block(address, layout.size, key)

    def _allocate_in_new_chunk(self, layout: Layout, align: i64) -> i64:
        """Add a chunk that fits the request; returns the block's address in it."""
        chunk = self._chunk
        wanted: int = FIRST_CHUNK
        if self._fixed_size:
            raise self._exhausted(layout)
        if chunk is not None:
            wanted = max(2 * chunk.data_size, wanted)
        size: int = layout.size
        wanted = max(wanted, size)
        least = max(size, FIRST_CHUNK)
        while not self._add_chunk(size, max(align, CHUNK_ALIGN), wanted):
            wanted //= 2
            if wanted < least:
                raise self._exhausted(layout)
        return (self._cursor - layout.size) & -align

    def _add_chunk(self, needed: int, align: int, wanted: int) -> bool:
        """Make a fresh chunk of about `wanted` data bytes the current one; False where the parent refuses.

        It fits a request of `needed` bytes at `align`, which is at least that of chunks.
        """
        return self._add_chunk_of(chunk_size(max(wanted, (needed + align - 1) & -align)), align)

    def _add_chunk_of(self, size: int, align: int) -> bool:
        """Make a fresh chunk of `size` bytes, footer included, the current one; False where the parent refuses."""
        if size > MAX_SIZE - (align - 1):
            return False
        layout = Layout(size, align)
        try:
            block = self._parent.allocate(layout)
        except MemoryError:
            return False
        self._enter(Chunk(block, layout, block.address, block.address + size, self._chunk, False))
        return True

    def _enter(self, chunk: Chunk) -> None:
        self._peak = self.peak_bytes
        current = self._chunk
        if current is not None:
            current.footer[_CURSOR] = self._cursor
            self._keys.put_aside(self._key)
        self._chunk = chunk
        self._key = chunk.key()
        self._start = chunk.start
        self._cursor = chunk.footer_address & -self._min_align
        self._lowest = self._cursor

    def _exhausted(self, layout: Layout) -> AllocError:
        fixed = self._fixed_size > 0
        limit = self.allocated_bytes if fixed else None
        return AllocError(
            "arena", layout, limit=limit, in_use=self.used_bytes, reason="" if fixed else "the parent refuses"
        )

    def deallocate(self, block: Block, layout: Layout) -> None:
        region = block.region
        if region.memory is None:
            raise released(block)
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
        if block.address == self._cursor and old.align >= new.align and block.region is self._key:
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
                self._slide(block.address, address, old.size)
                self._cursor = address
                region = block.region
                region.taken += new.size - old.size
                block.release()
                return Block(address, new.size, region)
        return self._move(block, old, new, old.size)

    def _slide(self, source: i64, target: i64, size: i64) -> None:
        """Move bytes inside the current chunk; the ranges may overlap."""
        if size > 0 and source != target:
            memory = self._key.view
            base = self._key.address
            memory[target - base : target - base + size] = memory[source - base : source - base + size]

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        grown = self.grow(block, old, new)
        zero(grown, old.size, new.size)
        return grown

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        address = block.address
        region = block.region
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
                self._slide(address, address + delta, new.size)
                if address < self._lowest:
                    self._lowest = address
                address += delta
                self._cursor = address
                region.taken -= delta
                region.dead -= delta
        region.dead += old.size - new.size
        block.release()
        return Block(address, new.size, region)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Shrink without moving, or return None and change nothing: a block that grows downwards always moves."""
        region = block.region
        if region.memory is None:
            raise released(block)
        if new.size > old.size or block.address & (new.align - 1):
            return None
        check_shrink(block, old, new)
        region.dead += old.size - new.size
        block.release()
        return Block(block.address, new.size, region)

    def owns(self, block: Block) -> bool:
        chunk = self._chunk
        while chunk is not None:
            if chunk.start <= block.address <= chunk.footer_address:
                return True
            chunk = chunk.previous
        return False

    def reset(self, policy: ResetPolicy = NEWEST) -> bool:
        """Revoke all blocks, and keep as much memory as the policy says: by default the newest chunk.

        Where the policy wants anything else than that chunk, the arena gives back all of them, and asks the parent for
        one of that size, rounded down to 16 bytes. False where the parent refuses: the arena is empty then, and can be
        used. A chunk of fixed size always stays.
        """
        chunk = self._chunk
        newest: int = 0 if chunk is None else chunk.data_size
        kept = kept_bytes(policy, self.allocated_bytes, newest, self.peak_bytes, self._peaks)
        kept &= -CHUNK_ALIGN
        if kept != newest and not self._fixed_size:
            self.close()
            return kept == 0 or self._add_chunk_of(kept + FOOTER_SIZE, CHUNK_ALIGN)
        self._peak = 0
        self._keys.close()
        self._key.close()
        if chunk is None:
            self._key = empty_region()
            return True
        self._give_back(chunk.previous, None)
        chunk.previous = None
        chunk.footer[_PREVIOUS] = 0
        self._key = chunk.key()
        self._cursor = chunk.footer_address & -self._min_align
        self._lowest = self._cursor
        return True

    def _give_back(self, chunk: Chunk | None, until: Chunk | None) -> None:
        """Return chunks to the parent, newest first, up to and without `until`."""
        while chunk is not None and chunk is not until:
            previous = chunk.previous
            chunk.footer.release()
            if not chunk.fixed:
                self._parent.deallocate(chunk.block, chunk.layout)
            chunk = previous

    def checkpoint(self) -> Checkpoint:
        """Remember the present state, for `restore`."""
        chunk = self._chunk
        key = self._key
        fresh = empty_region() if chunk is None else chunk.key()
        point = Checkpoint(self, key, index=self._keys.put_aside(key), cursor=self._cursor)
        self._key = fresh
        return point

    def restore(self, point: Checkpoint) -> None:
        """Go back to a checkpoint: chunks added since go to the parent, blocks made since are revoked.

        Raises `MisuseError` where a reset or an earlier restore has gone back further already.
        """
        self._keys.check(self, point)
        self._peak = self.peak_bytes
        self._key.close()
        key = self._keys.take_up(point)
        chunk = self._chunk
        while chunk is not None and chunk.start != key.address:
            chunk = chunk.previous
        # The newest of the older blocks may have been freed inside the scope, and the cursor be above the checkpoint.
        cursor = point.cursor
        if chunk is self._chunk and self._cursor > cursor:
            cursor = self._cursor
        self._give_back(self._chunk, chunk)
        self._chunk = chunk
        self._key = key
        self._start = DANGLING if chunk is None else chunk.start
        self._cursor = cursor
        self._lowest = cursor

    def scope(self) -> Scope[Arena[A]]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Give back all chunks and revoke all blocks.

        The arena is empty then, and can be used again; one of fixed size has no memory any more.
        """
        self._keys.close()
        self._key.close()
        chunk = self._chunk
        self._chunk = None
        self._key = empty_region()
        self._cursor = DANGLING
        self._start = DANGLING
        self._lowest = DANGLING
        self._peak = 0
        self._give_back(chunk, None)

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
            total += chunk.data_size
            chunk = chunk.previous
        return total

    @property
    def used_bytes(self) -> int:
        """Bytes between cursor and footer in all chunks: live and dead blocks and padding."""
        total = 0
        for _address, size in self.chunks():
            total += size
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
            yield cursor, chunk.footer_address - cursor
            chunk = chunk.previous
            if chunk is not None:
                cursor = chunk.footer[_CURSOR]

    def waste(self) -> Waste:
        """Where every byte that the parent gave has gone."""
        taken, dead = self._keys.taken_and_dead(self._key)
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
