"""StackAlloc: last in, first out, in a buffer that the caller owns.

Layout: one cursor that moves up through the buffer. A block takes its size rounded up to 16, from a 16-aligned cursor,
so that blocks freed in reverse order leave the cursor exactly where it was; padding for a larger alignment comes back
with its block.

Second face, for a machine's spill stack: `push` and `pop` of 8-byte signed words, exact, one capacity check a group.
Blocks and words mix, as long as the order is last in, first out: words never reach into a block.

Order: only the topmost block grows in place or gives memory back at once. Freeing a block below the top gives back
nothing yet; its bytes come back when all above it has gone. With `strict` it is refused instead, and so is growing it;
the error names the block that must go first.

Scopes: what was on the stack at a checkpoint stays where it is until that is restored: words cannot be popped, and the
bytes of a block that is freed meanwhile come back with the scope.

Costs: a few instructions an operation, and a small record per live block beside the buffer. A block below the top is
found by bisection.

Not for: blocks that die in any other order than last in, first out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from operator import index as plain_int
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, check_grow, check_shrink
from allocators.block import Block, Lease, Region, dangling, empty_lease, released
from allocators.errors import AllocError, MisuseError, caused_by
from allocators.layout import Layout, number_text
from allocators.memory import KINDS, Pointer, load_i64, pointer, store_i64, store_item
from allocators.reset import ResetPolicy
from allocators.scope import Checkpoint, LeaseCheckpoint, Leases, Scope
from allocators.sizes import size_text
from allocators.waste import Waste

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

WORD_SIZE: Final = 8
_GRAIN: Final = 16
_WORD: Final[i64] = KINDS.index("q")


@mypyc_attr(native_class=True, acyclic=True, free_list_len=1)
class _Extent:
    """A block on the stack: where the cursor was before it, its address, its size, and the cursor after it.

    `given_up`: bytes by which it has shrunk below others, whose room has not come back.
    """

    __slots__ = ("address", "before", "end", "freed", "given_up", "size")

    def __init__(self, before: i64, address: i64, size: i64, end: i64) -> None:
        self.before: Final[i64] = before
        self.address: Final[i64] = address
        self.size: Final[i64] = size
        self.end: Final[i64] = end
        self.given_up: i64 = 0
        self.freed = False


@mypyc_attr(native_class=True)
class StackCheckpoint(LeaseCheckpoint):
    """The cursor, and the number of extents."""

    __slots__ = ("cursor", "extents")

    def __init__(self, stack: object, lease: Lease, cursor: i64, extents: int) -> None:
        super().__init__(stack, lease)
        self.cursor: Final[i64] = cursor
        self.extents: Final = extents


@mypyc_attr(native_class=True)
class StackAlloc(BaseAllocator):
    """A stack of blocks and words in `buffer`: a Region, or any writable buffer that the caller owns.

    Never allocates anything itself; when the buffer is full, `AllocError`.
    """

    __slots__ = (
        "_cursor",
        "_end",
        "_extents",
        "_floor",
        "_items",
        "_lease",
        "_leases",
        "_owns_whole",
        "_points",
        "_start",
        "_strict",
        "_whole",
        "_words",
    )

    def __init__(self, buffer: Region | WriteableBuffer, *, strict: bool = False) -> None:
        whole = buffer if isinstance(buffer, Region) else Region.of(buffer)
        start: i64 = (whole.address + _GRAIN - 1) & -_GRAIN
        end: i64 = (whole.address + whole.size) & -WORD_SIZE
        if end < start:
            end = start
        self._whole = whole
        self._owns_whole: Final = not isinstance(buffer, Region)
        self._strict: Final = strict
        self._start: Final[i64] = start
        self._end: i64 = end
        self._cursor: i64 = start
        #: Words are never popped below this: the end of the topmost block, or the cursor of the last open checkpoint.
        self._floor: i64 = start
        self._extents: list[_Extent] = []
        self._leases = Leases()
        #: Open checkpoints, each at the index of its lease.
        self._points: list[StackCheckpoint] = []
        self._lease = _lease(whole, start, end)
        self._words: Final = self._lease.view.cast("q")
        self._items: Final[Pointer] = pointer(self._words)

    @property
    def capacity(self) -> int:
        """Bytes that the stack can hold: those of the buffer from its first 16-aligned address on, in whole words."""
        return self._end - self._start

    @property
    def used_bytes(self) -> int:
        """Bytes below the cursor, padding included."""
        return self._cursor - self._start

    @property
    def depth(self) -> int:
        """The same, in words of 8 bytes."""
        return (self._cursor - self._start) >> 3

    def push(self, word: SupportsIndex) -> None:
        """Push one signed 64-bit word; ValueError where it does not fit, `AllocError` where the stack is full."""
        # Before anything else: asking for its value may run the caller's code, which may use this stack.
        plain: Any = word
        if not isinstance(word, int):
            plain = plain_int(word)
        cursor = self._cursor
        if cursor == self._end:
            raise self._full(Layout(WORD_SIZE, WORD_SIZE))
        if self._whole.memory is None:
            raise _revoked()
        store_item(_WORD, self._items, (cursor - self._start) >> 3, plain)
        self._cursor = cursor + WORD_SIZE

    def push_i64(self, word: i64) -> None:
        """`push` for compiled callers."""
        cursor = self._cursor
        if cursor == self._end:
            raise self._full(Layout(WORD_SIZE, WORD_SIZE))
        if self._whole.memory is None:
            raise _revoked()
        store_i64(self._items, (cursor - self._start) >> 3, word)
        self._cursor = cursor + WORD_SIZE

    def pop_i64(self) -> i64:
        """`pop` for compiled callers."""
        cursor = self._cursor - WORD_SIZE
        if cursor < self._floor:
            raise IndexError("pop from a stack without words on top")
        if self._whole.memory is None:
            raise _revoked()
        self._cursor = cursor
        return load_i64(self._items, (cursor - self._start) >> 3)

    def pop(self) -> int:
        """Take off and return the topmost word; IndexError where a block or nothing is below the cursor."""
        cursor = self._cursor - WORD_SIZE
        if cursor < self._floor:
            raise IndexError("pop from a stack without words on top")
        if self._whole.memory is None:
            raise _revoked()
        word = load_i64(self._items, (cursor - self._start) >> 3)
        self._cursor = cursor
        return word

    def push_all(self, words: Iterable[SupportsIndex]) -> None:
        """Push words in order, the last on top; all or none. Raises as `push` does."""
        try:
            # A copy, made before anything else: the words may be the caller's code, which may use this stack.
            packed = array("q", [plain_int(word) for word in words])
        except OverflowError as error:
            raise caused_by(ValueError(f"a word does not fit 64 bits: {error}"), None)
        count: i64 = len(packed)
        cursor = self._cursor
        if count > (self._end - cursor) >> 3:
            raise self._full(Layout(count * WORD_SIZE, WORD_SIZE))
        if self._whole.memory is None:
            raise _revoked()
        index: i64 = (cursor - self._start) >> 3
        self._words[index : index + count] = memoryview(packed)
        self._cursor = cursor + count * WORD_SIZE

    def pop_all(self, count: SupportsIndex) -> list[int]:
        """Take off `count` words and return them, the topmost first; all or none."""
        wanted = plain_int(count)
        depth: int = (self._cursor - self._start) >> 3
        on_top: int = (self._cursor - self._floor) >> 3
        if not 0 <= wanted <= on_top:
            raise IndexError(f"pop of {number_text(wanted)} words from a stack with {on_top} on top")
        if self._whole.memory is None:
            raise _revoked()
        words: list[int] = self._words[depth - wanted : depth].tolist()
        words.reverse()
        self._cursor -= wanted * WORD_SIZE
        return words

    def peek(self, below: SupportsIndex = 0) -> int:
        """The word `below` words under the topmost one, left where it is."""
        return int(self._words[self._index(below)])

    def poke(self, below: SupportsIndex, word: SupportsIndex) -> None:
        """Overwrite the word `below` words under the topmost one."""
        plain = plain_int(word)
        self._words[self._index(below)] = plain

    def _index(self, below: SupportsIndex) -> int:
        under = plain_int(below)
        depth: int = (self._cursor - self._start) >> 3
        if not 0 <= under < depth:
            raise IndexError(f"no word {number_text(under)} below the top of a stack of {depth} words")
        if self._whole.memory is None:
            raise _revoked()
        return depth - 1 - under

    # For machine code, which pushes and pops by itself.

    @property
    def cursor(self) -> int:
        """The address of the next free byte."""
        return self._cursor

    @property
    def end(self) -> int:
        """The address after the last word of the buffer."""
        return self._end

    def resume(self, cursor: int) -> None:
        """Continue from where machine code has got to, which has popped no more than the words on top.

        Raises `MisuseError` for any other place.
        """
        lowest: int = self._floor
        end: int = self._end
        if not lowest <= cursor <= end or cursor & (WORD_SIZE - 1):
            raise MisuseError(f"a stack cannot go on from {number_text(cursor)}, only from {lowest} up to {end}")
        self._cursor = cursor

    def allocate(self, layout: Layout) -> Block:
        if layout.size == 0:
            return self._empty(layout)
        self._settle()
        before = self._cursor
        align: i64 = layout.align
        if align < _GRAIN:
            align = _GRAIN
        # Subtractions only: addresses and sizes stay below 2**63, their sums may not.
        address: i64 = before + (-before & (align - 1))
        if address < before or address > self._end or layout.size > self._end - address:
            raise self._full(layout)
        if self._whole.memory is None:
            raise _revoked()
        end = self._end_of(address, layout.size)
        self._extents.append(_Extent(before, address, layout.size, end))
        self._cursor = end
        self._floor = end
        return Block(address, layout.size, self._lease)

    def _end_of(self, address: i64, size: i64) -> i64:
        """Where a block ends: rounded up to 16, but not beyond a buffer whose size is no multiple of it."""
        if size > self._end - address - (_GRAIN - 1):
            return self._end
        return address + ((size + _GRAIN - 1) & -_GRAIN)

    def _empty(self, layout: Layout) -> Block:
        """A block of size zero, which takes no room, but is revoked like all others."""
        return Block(dangling(layout.align).address, 0, self._lease)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.region.memory is None:
            raise released(block)
        if block.size == 0 and layout.size == 0:
            block.release()
            return
        top = self._top()
        if top is None or top.address != block.address or self._cursor != top.end:
            if self._strict:
                self._check_order(block)
            top = self._find(block)
        top.freed = True
        block.release()
        self._settle()

    def _top(self) -> _Extent | None:
        return self._extents[-1] if self._extents else None

    def _find(self, block: Block) -> _Extent:
        extents = self._extents
        low = 0
        high = len(extents)
        while low < high:
            middle = (low + high) // 2
            if extents[middle].address < block.address:
                low = middle + 1
            else:
                high = middle
        if low == len(extents) or extents[low].address != block.address or extents[low].freed:
            raise MisuseError(f"{block!r} is not on this stack")
        return extents[low]

    def _check_order(self, block: Block) -> None:
        """Raise `MisuseError` unless nothing live is above a block."""
        found = self._find(block)
        if self._cursor != self._extents[-1].end:
            raise MisuseError(f"{(self._cursor - self._extents[-1].end) >> 3} words must be popped before {block!r}")
        for extent in reversed(self._extents):
            if extent is found:
                return
            if not extent.freed:
                raise MisuseError(f"the block at {extent.address:#x} must be freed before {block!r}")

    def _settle(self) -> None:
        """Take off blocks that have been freed, where nothing is above them any more, down to the last checkpoint."""
        extents = self._extents
        kept: int = self._points[-1].extents if self._points else 0
        while len(extents) > kept:
            top = extents[-1]
            if not top.freed or self._cursor != top.end:
                return
            extents.pop()
            self._cursor = top.before
            self._set_floor()

    def _set_floor(self) -> None:
        floor = self._extents[-1].end if self._extents else self._start
        if self._points and self._points[-1].cursor > floor:
            floor = self._points[-1].cursor
        self._floor = floor

    def _full(self, layout: Layout) -> AllocError:
        return AllocError("stack", layout, limit=self._end - self._start, in_use=self._cursor - self._start)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        return self._resize(block, old, new, old.size)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        return self._resize(block, old, new, new.size)

    def _resize(self, block: Block, old: Layout, new: Layout, kept: int) -> Block:
        top = self._top()
        if top is not None and new.size > 0 and self._is_on_top(block, top):
            address: i64 = top.before + (-top.before & (max(new.align, _GRAIN) - 1))
            if block.address & (new.align - 1) == 0:
                address = block.address
            if address < self._end and new.size <= self._end - address:
                return self._resize_top(block, top, address, new, kept)
            raise self._full(new)
        if new.size <= old.size and new.size > 0 and block.address & (new.align - 1) == 0:
            region = block.region
            extent = self._find(block)
            extent.given_up = extent.size - new.size
            block.release()
            return Block(block.address, new.size, region)
        if self._strict and block.size > 0 and new.size > 0:
            # The new block would lie above the old one, which then could not be freed.
            self._check_order(block)
            raise MisuseError(f"{block!r} is from before a checkpoint, and cannot grow in its scope")
        return self._move(block, old, new, kept)

    def _is_on_top(self, block: Block, top: _Extent) -> bool:
        """Whether a block is the topmost one, with no words above it, and not from before a checkpoint."""
        return top.address == block.address and self._cursor == top.end and block.region is self._lease

    def _resize_top(self, block: Block, top: _Extent, address: i64, new: Layout, kept: int) -> Block:
        """Move the end of the topmost block, and for its alignment perhaps its start."""
        if address != block.address:
            memory = self._lease.view
            target = address - self._start
            source = block.address - self._start
            memory[target : target + kept] = memory[source : source + kept]
        end = self._end_of(address, new.size)
        self._extents[-1] = _Extent(top.before, address, new.size, end)
        self._cursor = end
        self._floor = end
        block.release()
        return Block(address, new.size, self._lease)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Grow or shrink without moving, or return None and change nothing."""
        if block.region.memory is None:
            raise released(block)
        if block.address & (new.align - 1) or new.size == 0:
            return None
        if new.size <= old.size:
            return self.shrink(block, old, new)
        top = self._top()
        if top is None or not self._is_on_top(block, top) or new.size > self._end - block.address:
            return None
        return self.grow(block, old, new)

    def waste(self) -> Waste:
        """Where every byte of the capacity is. Words count as live."""
        live: int = self._cursor - self._start
        dead = 0
        padding = 0
        for extent in self._extents:
            room: int = extent.end - extent.before
            lost: int = room if extent.freed else extent.given_up
            dead += lost
            padding += 0 if extent.freed else room - extent.size
        return Waste(
            live=live - dead - padding,
            dead=dead,
            padding=padding,
            tail=self._end - self._cursor,
            abandoned=0,
            overhead=0,
            slack=0,
        )

    def owns(self, block: Block) -> bool:
        return self._start <= block.address < self._end

    def reset(self, policy: ResetPolicy | None = None) -> None:
        """Drop everything; blocks handed out so far are revoked. The buffer stays, whatever a policy says."""
        fresh = _lease(self._whole, self._start, self._end)
        self._drop_all()
        self._lease = fresh

    def _drop_all(self) -> None:
        self._extents.clear()
        self._points.clear()
        self._cursor = self._start
        self._floor = self._start
        self._leases.close()
        self._lease.close()

    def checkpoint(self) -> Checkpoint:
        """Remember what is on the stack now, for `restore`."""
        self._settle()
        fresh = _lease(self._whole, self._start, self._end)
        point = StackCheckpoint(self, self._lease, self._cursor, len(self._extents))
        self._leases.put_aside(point)
        self._points.append(point)
        self._floor = self._cursor
        self._lease = fresh
        return point

    def restore(self, point: Checkpoint) -> None:
        """Drop everything above a checkpoint, and revoke the blocks that were made since.

        Raises `MisuseError` where a reset or an earlier restore has gone back further already.
        """
        closing = self._leases.cut(self, point)
        assert isinstance(point, StackCheckpoint)
        closing[0] = self._lease
        self._lease = point.lease
        for lease in closing:
            lease.close()
        del self._points[point.index :]
        del self._extents[point.extents :]
        self._cursor = point.cursor
        self._set_floor()
        self._settle()

    def scope(self) -> Scope[StackAlloc]:
        """A `with` block that ends by restoring the state at its start."""
        return Scope(self)

    def close(self) -> None:
        """Let go of the buffer; blocks handed out so far are revoked. Closing twice is harmless."""
        self._drop_all()
        self._end = self._start
        try:
            self._words.release()
        except BufferError:
            pass
        if self._owns_whole:
            self._whole.close()

    def __repr__(self) -> str:
        strict = ", strict=true" if self._strict else ""
        return f"stack({size_text(self._end - self._start)}{strict})"


def _revoked() -> MisuseError:
    return MisuseError("the memory under the stack has been released")


def _lease(whole: Region, start: i64, end: i64) -> Lease:
    return whole.lease(start, end - start) if end > start else empty_lease()
