"""StackAlloc: last in, first out, in a buffer that the caller owns.

Layout: one cursor that moves up through the buffer. A block takes its size rounded up to 16, from a 16-aligned cursor,
so that blocks freed in reverse order leave the cursor exactly where it was; padding for a larger alignment comes back
with its block.

Second face, for a machine's spill stack: `push` and `pop` of 8-byte signed words, exact, one capacity check a group.
Blocks and words mix, as long as the order is last in, first out: words never reach into a block.

Order: only the topmost block grows in place or gives memory back at once. Freeing a block below the top gives back
nothing yet; its bytes come back when all above it has gone. With `strict` it is refused instead, and the error names
the block that must go first.

Costs: a few instructions an operation, and a small record per live block beside the buffer.

Not for: blocks that die in any other order than last in, first out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, SupportsIndex

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, check_grow, check_shrink
from allocators.block import Block, Region, dangling, released
from allocators.layout import Layout
from allocators.protocol import AllocError, MisuseError
from allocators.scope import Checkpoint, Keys, Scope

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

WORD_SIZE: Final = 8
_GRAIN: Final = 16


@mypyc_attr(native_class=True, acyclic=True)
class _Extent:
    """A block on the stack: where the cursor was before it, its address, and the cursor behind it."""

    __slots__ = ("address", "before", "end", "freed")

    def __init__(self, before: i64, address: i64, end: i64) -> None:
        self.before: Final[i64] = before
        self.address: Final[i64] = address
        self.end: i64 = end
        self.freed = False


@mypyc_attr(native_class=True)
class StackAlloc(BaseAllocator):
    """A stack of blocks and words in `buffer`: a Region, or any writable buffer that the caller owns.

    Never allocates anything itself; when the buffer is full, `AllocError`.
    """

    __slots__ = ("_cursor", "_end", "_extents", "_floor", "_keys", "_region", "_start", "_strict", "_whole", "_words")

    def __init__(self, buffer: Region | WriteableBuffer, *, strict: bool = False) -> None:
        whole = buffer if isinstance(buffer, Region) else Region.of(buffer)
        start: i64 = (whole.address + _GRAIN - 1) & -_GRAIN
        end: i64 = (whole.address + whole.size) & -WORD_SIZE
        if end < start:
            end = start
        self._whole = whole
        self._strict: Final = strict
        self._start: Final[i64] = start
        self._end: i64 = end
        self._cursor: i64 = start
        #: Words are never popped below this: the end of the topmost block.
        self._floor: i64 = start
        self._extents: list[_Extent] = []
        self._keys = Keys()
        self._region = _part(whole, start, end)
        self._words: Final = self._region.view.cast("q")

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
        """The same in words of 8 bytes."""
        return (self._cursor - self._start) >> 3

    def push(self, word: SupportsIndex) -> None:
        """Push one signed 64-bit word; ValueError where it does not fit, `AllocError` where the stack is full."""
        cursor = self._cursor
        if cursor == self._end:
            raise self._full(Layout(WORD_SIZE, WORD_SIZE))
        self._words[(cursor - self._start) >> 3] = word  # type: ignore[call-overload]
        self._cursor = cursor + WORD_SIZE

    def pop(self) -> int:
        """Take off and return the topmost word; IndexError where a block or nothing is below the cursor."""
        cursor = self._cursor - WORD_SIZE
        if cursor < self._floor:
            raise IndexError("pop from a stack without words on top")
        word: int = self._words[(cursor - self._start) >> 3]
        self._cursor = cursor
        return word

    def push_all(self, words: Sequence[SupportsIndex]) -> None:
        """Push words in order, the last on top; all or none."""
        cursor = self._cursor
        size: i64 = len(words) * WORD_SIZE
        if size > self._end - cursor:
            raise self._full(Layout(size, WORD_SIZE))
        index: i64 = (cursor - self._start) >> 3
        for word in words:
            self._words[index] = word  # type: ignore[call-overload]
            index += 1
        self._cursor = cursor + size

    def pop_all(self, count: int) -> list[int]:
        """Take off `count` words and return them, the topmost first; all or none."""
        depth: i64 = (self._cursor - self._start) >> 3
        if count < 0 or count > (self._cursor - self._floor) >> 3:
            raise IndexError(f"pop of {count} words from a stack with {(self._cursor - self._floor) >> 3} on top")
        words: list[int] = self._words[depth - count : depth].tolist()
        words.reverse()
        self._cursor -= count * WORD_SIZE
        return words

    def peek(self, below: int = 0) -> int:
        """The word `below` words under the topmost one, left where it is."""
        return int(self._words[self._index(below)])

    def poke(self, below: int, word: int) -> None:
        """Overwrite the word `below` words under the topmost one."""
        self._words[self._index(below)] = word

    def _index(self, below: int) -> int:
        depth: int = (self._cursor - self._start) >> 3
        if not 0 <= below < depth:
            raise IndexError(f"no word {below} below the top of a stack of {depth} words")
        return depth - 1 - below

    def allocate(self, layout: Layout) -> Block:
        if layout.size == 0:
            return dangling(layout.align)
        self._settle()
        before = self._cursor
        align: i64 = layout.align
        if align < _GRAIN:
            align = _GRAIN
        # Subtractions only: addresses and sizes stay below 2**63, their sums may not.
        address: i64 = before + (-before & (align - 1))
        if address < before or address > self._end or layout.size > self._end - address:
            raise self._full(layout)
        end = self._end_of(address, layout.size)
        self._extents.append(_Extent(before, address, end))
        self._cursor = end
        self._floor = end
        return Block(address, layout.size, self._region)

    def _end_of(self, address: i64, size: i64) -> i64:
        """Where a block ends: rounded up to 16, but not beyond a buffer whose size is no multiple of it."""
        if size > self._end - address - (_GRAIN - 1):
            return self._end
        return address + ((size + _GRAIN - 1) & -_GRAIN)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.region.memory is None:
            raise released(block)
        if layout.size == 0 and block.size == 0:
            block.release()
            return
        top = self._top()
        if top is not None and top.address == block.address and self._cursor == top.end:
            self._extents.pop()
            self._cursor = top.before
            self._floor = self._extents[-1].end if self._extents else self._start
            self._settle()
        elif self._strict:
            raise self._out_of_order(block, top)
        else:
            self._find(block).freed = True
        block.release()

    def _top(self) -> _Extent | None:
        return self._extents[-1] if self._extents else None

    def _find(self, block: Block) -> _Extent:
        for extent in reversed(self._extents):
            if extent.address == block.address and not extent.freed:
                return extent
        raise MisuseError(f"{block!r} is not on this stack")

    def _out_of_order(self, block: Block, top: _Extent | None) -> MisuseError:
        if top is None or self._find(block) is top:
            return MisuseError(f"{(self._cursor - self._floor) >> 3} words must be popped before {block!r}")
        return MisuseError(f"the block at {top.address:#x} must be freed before {block!r}")

    def _settle(self) -> None:
        """Take blocks off that were freed below the top, once nothing is above them any more."""
        while self._extents:
            top = self._extents[-1]
            if not top.freed or self._cursor != top.end:
                return
            self._extents.pop()
            self._cursor = top.before
            self._floor = self._extents[-1].end if self._extents else self._start

    def _full(self, layout: Layout) -> AllocError:
        return AllocError("stack", layout, limit=self._end - self._start, in_use=self._cursor - self._start)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        top = self._top()
        if top is None or not self._can_grow(block, top, new):
            return self._move(block, old, new, old.size)
        end = self._end_of(block.address, new.size)
        if end > top.end:
            top.end = end
            self._cursor = end
            self._floor = end
        block.release()
        return Block(block.address, new.size, self._region)

    def _can_grow(self, block: Block, top: _Extent, new: Layout) -> bool:
        """Whether a block can grow in place: on top, aligned, with room, and not from before a checkpoint.

        What an older block took inside a scope would be handed out again after it.
        """
        return (
            top.address == block.address
            and self._cursor == top.end
            and block.region is self._region
            and not block.address & (new.align - 1)
            and new.size <= self._end - block.address
        )

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        if new.size == 0 or block.address & (new.align - 1):
            return self._move(block, old, new, new.size)
        top = self._top()
        if top is not None and top.address == block.address and self._cursor == top.end:
            end = self._end_of(block.address, new.size)
            top.end = end
            self._cursor = end
            self._floor = end
        region = block.region
        block.release()
        return Block(block.address, new.size, region)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Grow or shrink without moving, or return None and change nothing."""
        if new.size < old.size:
            return None if block.address & (new.align - 1) or new.size == 0 else self.shrink(block, old, new)
        top = self._top()
        return self.grow(block, old, new) if top is not None and self._can_grow(block, top, new) else None

    def owns(self, block: Block) -> bool:
        return self._start <= block.address < self._end

    def reset(self) -> None:
        """Drop everything; blocks handed out so far are revoked."""
        self._drop_all()
        self._region = _part(self._whole, self._start, self._end)

    def _drop_all(self) -> None:
        self._extents.clear()
        self._cursor = self._start
        self._floor = self._start
        self._keys.close()
        self._region.close()

    def checkpoint(self) -> Checkpoint:
        """Remember what is on the stack now, for `restore`."""
        self._settle()
        key = self._region
        fresh = _part(self._whole, self._start, self._end)
        point = Checkpoint(
            self,
            key,
            index=self._keys.put_aside(key),
            cursor=self._cursor,
            count=len(self._extents),
            mark=self._top(),
        )
        self._region = fresh
        return point

    def restore(self, point: Checkpoint) -> None:
        """Drop everything above a checkpoint, and revoke the blocks that were made since.

        Raises `MisuseError` where a block below it has been freed since.
        """
        self._keys.check(self, point)
        count: int = point.count
        if count > len(self._extents) or (count and self._extents[count - 1] is not point.mark):
            raise MisuseError("the stack has shrunk below this checkpoint already")
        self._region.close()
        self._region = self._keys.take_up(point)
        del self._extents[count:]
        self._cursor = point.cursor
        self._floor = self._extents[-1].end if self._extents else self._start

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

    def __repr__(self) -> str:
        return f"stack({self._end - self._start})"


def _part(whole: Region, start: i64, end: i64) -> Region:
    return whole.part(start, end - start) if end > start else Region(start, 0, memoryview(bytearray()))
