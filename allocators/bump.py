"""BumpAlloc: bumps up through chunks from any parent allocator.

Layout: chunks of 64 KiB, doubling up to 16 MiB, without headers. A request larger than the next chunk would be gets a
chunk of its own, which goes back to the parent as soon as its block is freed; the current chunk stays current.

Costs: an allocation is an addition, a mask and a comparison. Only the newest block is freed, grown or shrunk in place;
everything else comes back at `reset`, which keeps the newest chunk, or what its policy says.

Compared with `Arena`: growing the newest block never moves its bytes, since it grows upwards; there are no footers, and
no minimum alignment. Not for: many long-lived blocks that are freed one by one.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, check_grow, check_shrink, unfit
from allocators.block import DANGLING, Block, Region, empty_region, released
from allocators.layout import Layout
from allocators.protocol import Allocator, AllocError, LayoutError
from allocators.reset import NEWEST, ResetPolicy, kept_bytes
from allocators.scope import Checkpoint, Keys, Scope
from allocators.sizes import size_text
from allocators.waste import Waste

A = TypeVar("A", bound=Allocator)

FIRST_CHUNK: Final = 64 * 1024
LARGEST_CHUNK: Final = 16 * 1024 * 1024
_CHUNK_LIMIT: Final = 1 << 62
_CHUNK_ALIGN: Final = 16


@mypyc_attr(native_class=True)
class _Chunk:
    """A block of the parent, and how far it was filled when the next chunk took over."""

    __slots__ = ("block", "filled", "layout", "previous")

    def __init__(self, block: Block, layout: Layout, previous: _Chunk | None) -> None:
        self.block: Final = block
        self.layout: Final = layout
        self.previous = previous
        self.filled: i64 = 0

    def key(self) -> Region:
        """A fresh region to hand out blocks through."""
        return self.block.region.part(self.block.address, self.layout.size)


@mypyc_attr(native_class=True)
class _Large:
    """A chunk of its own for one block; `serial` tells which checkpoints are older."""

    __slots__ = ("block", "key", "layout", "serial")

    def __init__(self, block: Block, layout: Layout, serial: i64) -> None:
        self.block: Final = block
        self.layout: Final = layout
        self.serial: Final[i64] = serial
        self.key: Final = block.region.part(block.address, layout.size)
        self.key.taken = layout.size

    def reopen(self) -> None:
        """Open the key again, after it was closed in vain."""
        self.key.memory = self.block.region.part(self.block.address, self.layout.size).view


@mypyc_attr(native_class=True)
class BumpAlloc(BaseAllocator, Generic[A]):
    """Blocks from chunks of `parent`. `first_chunk` and `largest_chunk` are in bytes."""

    __slots__ = (
        "_chunk",
        "_cursor",
        "_end",
        "_first_chunk",
        "_highest",
        "_key",
        "_keys",
        "_large",
        "_large_bytes",
        "_largest_chunk",
        "_parent",
        "_peak",
        "_peaks",
        "_serial",
        "_start",
    )

    def __init__(self, parent: A, *, first_chunk: int = FIRST_CHUNK, largest_chunk: int = LARGEST_CHUNK) -> None:
        if not 0 < first_chunk <= largest_chunk <= _CHUNK_LIMIT:
            raise LayoutError(f"chunks must go from 1 byte up to 2**62, not from {first_chunk} to {largest_chunk}")
        self._parent: Final[A] = parent
        self._first_chunk: Final = first_chunk
        self._largest_chunk: Final = largest_chunk
        # First byte of the current chunk, where the next block goes, and the byte behind the chunk.
        self._start: i64 = DANGLING
        self._cursor: i64 = DANGLING
        self._end: i64 = DANGLING
        #: The cursor's highest place in the current chunk, apart from where it is; and the most bytes in use at once
        #: before a chunk was made current or a large block freed.
        self._highest: i64 = DANGLING
        self._peak: i64 = 0
        self._peaks: list[int] = []
        self._chunk: _Chunk | None = None
        self._key = empty_region()
        self._keys = Keys()
        self._large: dict[int, _Large] = {}
        self._large_bytes: i64 = 0
        self._serial: i64 = 0

    @property
    def parent(self) -> A:
        return self._parent

    def allocate(self, layout: Layout) -> Block:
        align: i64 = layout.align
        size = layout.size
        address = (self._cursor + align - 1) & -align
        if address > self._end or size > self._end - address:
            return self._allocate_in_new_chunk(layout)
        self._cursor = address + size
        key = self._key
        key.taken += size
        return Block(address, size, key)

    def _allocate_in_new_chunk(self, layout: Layout) -> Block:
        size: int = layout.size
        align = max(layout.align, _CHUNK_ALIGN)
        chunk = self._chunk
        wanted = self._first_chunk
        if chunk is not None:
            # A reset can have kept a chunk of more than the largest size.
            wanted = min(max(2 * chunk.layout.size, wanted), self._largest_chunk)
        if size > wanted:
            return self._allocate_large(layout)
        while True:
            request = Layout(wanted, align)
            try:
                block = self._parent.allocate(request)
                break
            except MemoryError:
                if wanted <= max(size, 1):
                    raise self._exhausted(layout) from None
                wanted = max(wanted // 2, size, 1)
        self._enter(_Chunk(block, request, chunk))
        self._key.taken = size
        self._cursor = block.address + size
        return Block(block.address, size, self._key)

    def _enter(self, fresh: _Chunk) -> None:
        """Make a fresh chunk the current one."""
        self._peak = self.peak_bytes
        chunk = self._chunk
        if chunk is not None:
            chunk.filled = self._cursor - chunk.block.address
            self._keys.put_aside(self._key)
        self._chunk = fresh
        self._key = fresh.key()
        self._start = fresh.block.address
        self._cursor = self._start
        self._highest = self._start
        self._end = self._start + fresh.layout.size

    def _allocate_large(self, layout: Layout) -> Block:
        try:
            block = self._parent.allocate(layout)
        except MemoryError:
            raise self._exhausted(layout) from None
        return self._adopt_large(block, layout)

    def _adopt_large(self, block: Block, layout: Layout) -> Block:
        large = _Large(block, layout, self._serial)
        self._serial += 1
        self._large[block.address] = large
        self._large_bytes += layout.size
        return Block(block.address, layout.size, large.key)

    def _exhausted(self, layout: Layout) -> AllocError:
        return AllocError("bump", layout, in_use=self.used_bytes, reason="the parent refuses")

    def deallocate(self, block: Block, layout: Layout) -> None:
        region = block.region
        if region.memory is None:
            raise released(block)
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
            large = self._large[block.address]
            self._let_go(large)
            self._parent.deallocate(large.block, large.layout)
        else:
            region.dead += size
        block.release()

    def _let_go(self, large: _Large) -> None:
        """Forget a large block, which ends."""
        self._peak = self.peak_bytes
        large.key.close()
        del self._large[large.block.address]
        self._large_bytes -= large.layout.size

    def _is_large(self, block: Block) -> bool:
        large = self._large.get(block.address) if self._large else None
        return large is not None and large.key is block.region

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        grown = self._grow_in_place(block, old, new)
        if grown is not None:
            return grown
        if self._is_large(block):
            large = self._large[block.address]
            if new.size > large.layout.size:
                return self._grow_large(block, large, new)
        return self._move(block, old, new, old.size)

    def _grow_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Grow where the block is aligned, and its chunk has room behind it; else None."""
        address = block.address
        if address & (new.align - 1):
            return None
        region = block.region
        if region is self._key:
            # Only the newest, and never one from before a checkpoint: what that took would be handed out again after
            # the scope.
            if address + old.size != self._cursor or new.size > self._end - address:
                return None
            self._cursor = address + new.size
            region.taken += new.size - old.size
        elif self._is_large(block) and new.size <= region.size:
            # It has been larger before.
            region.dead -= new.size - old.size
        else:
            return None
        block.release()
        return Block(address, new.size, region)

    def _grow_large(self, block: Block, large: _Large, new: Layout) -> Block:
        """Grow a block together with its own chunk, which the parent may do without copying."""
        # The parent can move the pages only while nobody looks at them.
        large.key.close()
        address = block.address
        try:
            resized = self._parent.grow(large.block, large.layout, new)
        except MemoryError:
            large.reopen()
            raise self._exhausted(new) from None
        del self._large[address]
        self._large_bytes -= large.layout.size
        block.release()
        return self._adopt_large(resized, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        # A block of size zero has no use for a chunk of its own.
        if block.address & (new.align - 1) or (new.size == 0 and self._is_large(block)):
            return self._move(block, old, new, new.size)
        return self._shrink_in_place(block, old, new)

    def _shrink_in_place(self, block: Block, old: Layout, new: Layout) -> Block:
        address = block.address
        region = block.region
        if address + old.size == self._cursor and address >= self._start:
            if self._cursor > self._highest:
                self._highest = self._cursor
            self._cursor = address + new.size
            region.taken -= old.size - new.size
        else:
            region.dead += old.size - new.size
        block.release()
        return Block(address, new.size, region)

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
            end = chunk.block.address + chunk.layout.size
            # Only a block without bytes can start at the end of a chunk; any other is in the mapping behind it.
            if chunk.block.address <= block.address < end or (block.address == end and block.size == 0):
                return True
            chunk = chunk.previous
        return self._is_large(block)

    def reset(self, policy: ResetPolicy = NEWEST) -> bool:
        """Revoke all blocks, and keep as much memory as the policy says: by default the newest chunk.

        Where the policy wants anything else than that chunk, all are given back, and the parent is asked for one of
        that size. False where the parent refuses: the allocator is empty then, and can be used. Chunks of their own for
        large blocks always go, but they count for what the policy calls the capacity.
        """
        chunk = self._chunk
        newest: int = 0 if chunk is None else chunk.layout.size
        kept = kept_bytes(policy, self.allocated_bytes, newest, self.peak_bytes, self._peaks)
        if kept != newest:
            self.close()
            return kept == 0 or self._add_chunk_of(kept)
        self._keys.close()
        self._key.close()
        self._free_large(0)
        self._peak = 0
        if chunk is None:
            self._key = empty_region()
            return True
        self._give_back(chunk.previous, None)
        chunk.previous = None
        self._key = chunk.key()
        self._cursor = self._start
        self._highest = self._start
        return True

    def _add_chunk_of(self, size: int) -> bool:
        """Make a fresh chunk of `size` bytes the current one; False where the parent refuses."""
        layout = Layout(size, _CHUNK_ALIGN)
        try:
            block = self._parent.allocate(layout)
        except MemoryError:
            return False
        self._enter(_Chunk(block, layout, self._chunk))
        return True

    def _give_back(self, chunk: _Chunk | None, until: _Chunk | None) -> None:
        """Return chunks to the parent, newest first, up to and without `until`."""
        while chunk is not None and chunk is not until:
            self._parent.deallocate(chunk.block, chunk.layout)
            chunk = chunk.previous

    def _free_large(self, serial: i64) -> None:
        """Return large blocks made since `serial`, newest first."""
        for large in reversed(list(self._large.values())):
            if large.serial >= serial:
                self._let_go(large)
                self._parent.deallocate(large.block, large.layout)

    def checkpoint(self) -> Checkpoint:
        """Remember the present state, for `restore`."""
        chunk = self._chunk
        key = self._key
        fresh = empty_region() if chunk is None else chunk.key()
        index = self._keys.put_aside(key)
        point = Checkpoint(self, key, index=index, cursor=self._cursor, count=self._serial)
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
        self._free_large(point.count)
        chunk = self._chunk
        while chunk is not None and chunk.block.address != key.address:
            chunk = chunk.previous
        # The newest of the older blocks may have been freed inside the scope, and the cursor be below the checkpoint.
        cursor = point.cursor
        if chunk is self._chunk and self._cursor < cursor:
            cursor = self._cursor
        self._give_back(self._chunk, chunk)
        self._chunk = chunk
        self._key = key
        self._cursor = cursor
        self._highest = cursor
        self._start = DANGLING if chunk is None else chunk.block.address
        self._end = DANGLING if chunk is None else chunk.block.address + chunk.layout.size

    def scope(self) -> Scope[BumpAlloc[A]]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Give back all chunks and revoke all blocks. The allocator is empty then, and can be used again."""
        self._keys.close()
        self._key.close()
        self._free_large(0)
        chunk = self._chunk
        self._chunk = None
        self._key = empty_region()
        self._start = DANGLING
        self._cursor = DANGLING
        self._highest = DANGLING
        self._end = DANGLING
        self._peak = 0
        self._give_back(chunk, None)

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
            total += chunk.layout.size
            chunk = chunk.previous
        return total + self._large_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes below the cursors of all chunks: live and dead blocks and padding."""
        total: int = 0
        chunk = self._chunk
        if chunk is not None:
            total = self._cursor - chunk.block.address
            chunk = chunk.previous
        while chunk is not None:
            total += chunk.filled
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
        taken, dead = self._keys.taken_and_dead(self._key)
        total = 0
        chunk = self._chunk
        while chunk is not None:
            total += chunk.block.size
            chunk = chunk.previous
        for large in self._large.values():
            total += large.block.size
            taken += large.key.taken
            dead += large.key.dead
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
