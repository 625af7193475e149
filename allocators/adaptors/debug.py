"""DebugAllocator: detects misuse of memory and reports the call stacks behind it.

Layout: each block lies inside a larger block of the parent,

    canary ... | the block | canary

with a known pattern on both sides; the front canary is rounded up to the alignment. Fresh bytes are 0xAA, unless
zeroed. A freed block is filled with 0x55 and kept in *quarantine*, so that its address is not reused while stale
pointers may exist; the quarantine is a queue of bounded size, and a block that leaves it goes to the parent. Grow and
shrink always move the block, so use of the old address is always detected. Every block is handed out through its own
lease, so any copy of a freed `Block` raises on use.

What is detected, and when:

* double free, and grow or shrink of a freed block: immediately, as `DoubleFreeError` with the stacks of the allocation
  and of the first free while the block is in quarantine;
* a wrong size or alignment, an address inside a block, a block of another allocator: immediately, as `MisuseError`;
* writes just before or past the end of a block: when it is freed or resized, in `check`, and at the end of a scope, a
  reset or `close`, as `CorruptionError`;
* writes after the free: when the block leaves the quarantine, and at the same points, as `CorruptionError`;
* leaks: in `close`, as `LeakError`, after all memory has been freed. Blocks that a scope or a reset ends do not leak.

An operation that raises has changed nothing but the quarantine, except that the end of a scope and a reset complete
first and then raise. This includes exceptions from signal handlers, such as KeyboardInterrupt, at any point; but an
operation interrupted just before it returns is not undone, and a block that never reached its caller is a leak.

Costs: microseconds per block, mostly for the stacks; some dozen bytes around each block, and the quarantine.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections import OrderedDict
from operator import index as plain_int
from types import TracebackType
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import Adaptor
from allocators.base import as_pages, check_grow, check_shrink, close_parent, part_end
from allocators.block import RELEASED, Block, Lease, Region
from allocators.errors import AllocError, CorruptionError, DoubleFreeError, LayoutError, LeakError, MisuseError
from allocators.layout import Layout, number_text
from allocators.protocol import Access, Allocator
from allocators.reset import ResetPolicy
from allocators.scope import (
    Checkpoint,
    check_reset,
    checkpoint_through,
    number_of,
    refused,
    reset_through,
    restore_through,
)
from allocators.trace.call_stack import CallStack
from allocators.uncopyable import Uncopyable

A = TypeVar("A", bound=Allocator)

#: The fill bytes of fresh and freed memory, as in Zig.
UNDEFINED: Final = 0xAA
FREED: Final = 0x55

#: Not one repeated byte: overruns often write runs of one byte.
_CANARY: Final = bytes.fromhex("c3 5a 96 e1 3c a7 69 1e d2 4b 87 f0 2d b4 78 0f")
_STEP: Final = 1 << 16
_UNDEFINED_BYTES: Final = bytes([UNDEFINED]) * _STEP
_FREED_BYTES: Final = bytes([FREED]) * _STEP
_CANARY_BYTES: Final = _CANARY * (_STEP // len(_CANARY))

#: The minimum that a block counts for in quarantine: about the size of its record.
_RECORD_SIZE: Final = 256


class BlockRecord(Uncopyable):
    """What is known about one block.

    `number` counts the allocations from 0. `allocated` and `freed` are call stacks; `freed` is None while the block
    is live.
    """

    __slots__ = (
        "_front",
        "_lease",
        "_leaving",
        "_outer",
        "_outer_layout",
        "_poisoned",
        "address",
        "allocated",
        "freed",
        "layout",
        "number",
    )

    def __init__(self, layout: Layout, outer: Block, outer_layout: Layout, front: int, allocated: CallStack) -> None:
        self.number = -1
        self.layout: Final = layout
        self.address: Final = outer.address + front
        self.allocated: Final = allocated
        self.freed: CallStack | None = None
        #: Whether it has been filled with `FREED`.
        self._poisoned = False
        self._outer: Final = outer
        self._outer_layout: Final = outer_layout
        self._front: Final = front
        #: Whether the parent is currently freeing it.
        self._leaving = False
        self._lease: Final = self._make_lease()

    def _make_lease(self) -> Lease:
        """The lease through which the block is handed out; it ends with the parent's block."""
        whole = self._outer.region
        return whole.lease(self.address if self.layout.size else whole.address, self.layout.size)

    def _stray_write(self) -> str:
        """Describes a changed byte around the block, or in it if it was poisoned; empty if there is none."""
        size = self.layout.size
        memory = self._outer.view
        begin = self._front
        end = begin + size
        wrong = _first_difference(memory[:begin], _CANARY_BYTES)
        if wrong >= 0:
            return f"byte {memory[wrong]:#04x} was written {begin - wrong} before the start of {self}"
        behind = memory[end : self._outer_layout.size]
        wrong = _first_difference(behind, _CANARY_BYTES)
        if wrong >= 0:
            return f"byte {behind[wrong]:#04x} was written {wrong + 1} past the end of {self}"
        if self._poisoned:
            wrong = _first_difference(memory[begin:end], _FREED_BYTES)
            if wrong >= 0:
                return f"byte {memory[begin + wrong]:#04x} was written at offset {wrong} after the free of {self}"
        return ""

    def report(self) -> str:
        """The block and its stacks as text."""
        lines = [f"{self}, allocated at", *self.allocated.lines()]
        if self.freed is not None:
            lines.append("freed at")
            lines += self.freed.lines()
        return "\n".join(lines)

    def __str__(self) -> str:
        layout = self.layout
        return f"block {self.number}, {layout.size} bytes aligned to {layout.align} at {self.address:#x}"

    def __repr__(self) -> str:
        return f"<BlockRecord {self}>"


@mypyc_attr(native_class=True)
class DebugAllocator(Adaptor[A], Generic[A]):
    """Checks every use of the blocks of `parent`.

    `depth`: frames to keep of each stack; 0 for none. `canary`: bytes on each side of a block. `quarantine`: bytes of
    freed blocks to hold back; 0 for none. `raise_leaks`: whether `close` raises `LeakError` for live blocks; `leaks()`
    lists them either way.

    If an exception leaves its `with` block, it adds its findings to that exception as a note instead of raising, so as
    not to hide the original error.
    """

    __slots__ = ("_canary", "_depth", "_kept", "_leaked", "_live", "_next", "_quarantine", "_quarantine_size", "_raise")

    def __init__(
        self,
        parent: A,
        *,
        depth: SupportsIndex = 8,
        canary: SupportsIndex = 16,
        quarantine: SupportsIndex = 1 << 20,
        raise_leaks: bool = True,
    ) -> None:
        super().__init__(parent)
        numbers = [plain_int(depth), plain_int(canary), plain_int(quarantine)]
        if min(numbers) < 0:
            texts = ", ".join([number_text(number) for number in numbers])
            raise MisuseError(f"depth, canary and quarantine must not be negative: {texts}")
        self._depth: Final = numbers[0]
        self._canary: Final = numbers[1]
        self._quarantine_size: Final = numbers[2]
        self._raise: Final = raise_leaks
        #: By lease, in the order of allocation.
        self._live: dict[Region, BlockRecord] = {}
        #: Freed blocks that are held back from the parent, by lease, oldest first, and the bytes they count for.
        self._quarantine: OrderedDict[Region, BlockRecord] = OrderedDict()
        self._kept: i64 = 0
        self._leaked: list[BlockRecord] = []
        self._next: i64 = 0

    @property
    def live_blocks(self) -> int:
        """Number of live blocks."""
        return len(self._live)

    def leaks(self) -> list[BlockRecord]:
        """The live blocks, oldest first; after `close`, those that were live then."""
        return [*self._leaked, *self._live.values()]

    def allocate(self, layout: Layout) -> Block:
        return self._allocate(layout, False)

    def allocate_zeroed(self, layout: Layout) -> Block:
        return self._allocate(layout, True)

    def _allocate(self, layout: Layout, zeroed: bool) -> Block:
        size: int = layout.size
        front = (self._canary + layout.align - 1) & -layout.align if size else 0
        behind = self._canary if size else 0
        try:
            outer_layout = Layout(front + size + behind, layout.align)
        except LayoutError:
            raise AllocError("debug", layout, reason="no room for canaries") from None
        outer = self._allocate_outer(outer_layout, layout, zeroed)
        try:
            memory = outer.view
            _fill(memory[:front], _CANARY_BYTES)
            _fill(memory[front + size : front + size + behind], _CANARY_BYTES)
            if not zeroed:
                _fill(memory[front : front + size], _UNDEFINED_BYTES)
            record = BlockRecord(layout, outer, outer_layout, front, CallStack.here(self._depth))
            block = Block(record.address, size, record._lease)
        except BaseException:
            self._up.deallocate(outer, outer_layout)
            raise
        # No call in between, so that signal handlers cannot disturb the order of the numbers.
        record.number = self._next
        self._next += 1
        self._live[record._lease] = record
        return block

    def _allocate_outer(self, outer: Layout, layout: Layout, zeroed: bool) -> Block:
        try:
            return self._ask(outer, zeroed)
        except MemoryError as error:
            if not self._quarantine:
                raise self._refused(error, layout) from error
        # Emptying the quarantine may free enough memory.
        self._evict(0)
        try:
            return self._ask(outer, zeroed)
        except MemoryError as error:
            raise self._refused(error, layout) from error

    def _ask(self, outer: Layout, zeroed: bool) -> Block:
        return self._up.allocate_zeroed(outer) if zeroed else self._up.allocate(outer)

    def _refused(self, error: MemoryError, layout: Layout) -> AllocError:
        if isinstance(error, AllocError):
            return AllocError("debug", layout, limit=error.limit, in_use=error.in_use, reason=str(error))
        return AllocError("debug", layout, reason=str(error))

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._free(block, self._checked(block, layout, "freed"))

    def _checked(self, block: Block, layout: Layout, done: str) -> BlockRecord:
        """The record of a block that may be freed or resized with a layout; raises for any misuse."""
        record = self._find(block, done)
        if layout != record.layout:
            raise MisuseError(f"{done} as {layout.size} bytes aligned to {layout.align}, but it is {record.report()}")
        problem = record._stray_write()
        if problem:
            raise CorruptionError(f"{problem}\n{record.report()}")
        return record

    def _find(self, block: Block, done: str) -> BlockRecord:
        record = self._live.get(block.region)
        if record is not None:
            if block.address != record.address:
                raise MisuseError(f"{block!r} is {done}, but it lies inside {record.report()}")
            if record._leaving:
                raise DoubleFreeError(f"{done} while it is being freed: {record.report()}")
            if record._outer.released:
                self._forget_revoked()
                raise MisuseError(f"{done} after the parent had dropped its memory: {record.report()}")
            return record
        for freed in reversed(self._quarantine.values()):
            if freed.address == block.address and block.released:
                raise DoubleFreeError(f"{done} after it was freed: {freed.report()}")
        if block.released:
            raise DoubleFreeError(f"{block!r} is {done} after it has ended; there is no record of it any more")
        for other in self._live.values():
            if other.address <= block.address < other.address + other.layout.size:
                raise MisuseError(f"{block!r} is {done}, but at its address now lives {other.report()}")
        raise MisuseError(f"{block!r} is {done}, but was not allocated by {self!r}")

    def _make_room(self, record: BlockRecord) -> None:
        """Evict older blocks from the quarantine before `record` is freed."""
        size = _quarantined_size(record)
        if size <= self._quarantine_size:
            self._evict(self._quarantine_size - size)

    def _free(self, block: Block, record: BlockRecord) -> None:
        """End a live block; it goes to the quarantine unless it is too large."""
        self._make_room(record)
        freed = CallStack.here(self._depth)
        kept = _quarantined_size(record)
        memory = record._lease.view
        if kept <= self._quarantine_size and not memory.readonly:
            self._end(block, record, freed, kept)
            _fill(memory, _FREED_BYTES)
            record._poisoned = True
            return
        try:
            self._give_back(record)
        finally:
            if record._outer.released:
                self._end(block, record, freed, 0)

    def _end(self, block: Block, record: BlockRecord, freed: CallStack, kept: int) -> None:
        """Mark a live block as freed, and put it into quarantine if `kept` is not 0."""
        # No calls, so that no signal handler sees a partial change.
        lease = record._lease
        if kept:
            self._quarantine[lease] = record
            self._kept += kept
        if lease in self._live:
            del self._live[lease]
        record.freed = freed
        lease.memory = None
        block.region = RELEASED

    def _give_back(self, record: BlockRecord) -> None:
        """Free the parent's block, unless it has been freed or is being freed."""
        if record._leaving or record._outer.released:
            return
        record._leaving = True
        try:
            self._up.deallocate(record._outer, record._outer_layout)
        finally:
            record._leaving = False

    def _evict(self, kept: int) -> None:
        """Free the oldest blocks in quarantine until it holds at most `kept` bytes."""
        problems: list[str] = []
        while self._quarantine and self._kept > kept:
            record = next(iter(self._quarantine.values()))
            if record._leaving:
                # Called from within its deallocation.
                break
            _note(problems, record)
            try:
                self._give_back(record)
            finally:
                if record._outer.released:
                    self._leave(record)
        _raise_corruption(problems)

    def _leave(self, record: BlockRecord) -> None:
        """Remove a block from the quarantine."""
        size = _quarantined_size(record)
        if record._lease in self._quarantine:
            del self._quarantine[record._lease]
            self._kept -= size

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._resize(block, old, new, False)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._resize(block, old, new, True)

    def _resize(self, block: Block, old: Layout, new: Layout, zeroed: bool) -> Block:
        record = self._checked(block, old, "grown")
        check_grow(block, old, new)
        self._make_room(record)
        return self._replace(block, self._allocate(new, zeroed), old, new, old.size)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        record = self._checked(block, old, "shrunk")
        check_shrink(block, old, new)
        self._make_room(record)
        return self._replace(block, self._allocate(new, False), old, new, new.size)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Always returns None, since every resize moves the block."""
        self._checked(block, old, "resized")
        return None

    def owns(self, block: Block) -> bool:
        """Whether the block is live here, or shares its address with a block that is live or in quarantine."""
        if block.region in self._live:
            return True
        return any([record.address == block.address for record in [*self._live.values(), *self._quarantine.values()]])

    def protect(
        self, block: Block, access: Access, offset: SupportsIndex = 0, size: SupportsIndex | None = None
    ) -> None:
        """Set the access to pages, as in `Pages`; a range requires a block that was allocated with page alignment.

        Without a range, pages that hold only canaries are included.
        """
        record = self._find(block, "protected")
        pages = as_pages(self._parent)
        first = plain_int(offset)
        count = None if size is None else plain_int(size)
        outer_offset = 0
        if first != 0 or count is not None:
            count = part_end(record.layout.size, pages.page_size, first, count) - first
            outer_offset = record._front + first
        record._lease.let_go()
        try:
            pages.protect(record._outer, access, outer_offset, count)
        finally:
            record._outer.region.renew(record._lease)

    def check(self) -> None:
        """Look for stray writes around live blocks and in the quarantine; `CorruptionError` lists them all."""
        _raise_corruption(self._problems(0))

    def _problems(self, number: i64) -> list[str]:
        """Stray writes in and around the blocks numbered `number` and above."""
        self._forget_revoked()
        problems: list[str] = []
        for record in reversed(list(self._live.values())):
            if record.number < number:
                break
            _note(problems, record)
        for record in list(self._quarantine.values()):
            if record.number >= number:
                _note(problems, record)
        return problems

    def _forget_revoked(self) -> None:
        """Forget the blocks that the parent has dropped without this allocator, as by a direct reset."""
        for record in [*self._live.values(), *self._quarantine.values()]:
            if record._outer.released:
                self._forget(record)

    def _drop(self, number: int, end: int) -> None:
        """Forget the blocks numbered from `number` up to `end`, which the parent has dropped."""
        for record in reversed(list(self._live.values())):
            if record.number < number:
                break
            if record.number < end or record._outer.released:
                self._forget(record)
        for record in list(self._quarantine.values()):
            if number <= record.number < end or record._outer.released:
                self._forget(record)

    def _forget(self, record: BlockRecord) -> None:
        self._leave(record)
        if record._lease in self._live:
            del self._live[record._lease]
        record._lease.close()

    def checkpoint(self) -> Checkpoint:
        return checkpoint_through(self, self._parent, self._next)

    def restore(self, point: Checkpoint) -> None:
        number = number_of(self, point)
        problems = self._problems(number)
        end = self._next
        try:
            restore_through(self, self._parent, point)
        except BaseException as error:
            if not refused(error):
                self._drop(number, end)
            raise
        self._drop(number, end)
        _raise_corruption(problems)

    def reset(self, policy: ResetPolicy | None = None) -> None:
        check_reset(self._parent)
        problems = self._problems(0)
        end = self._next
        try:
            reset_through(self._parent, policy)
        except BaseException as error:
            if not refused(error):
                self._drop(0, end)
            raise
        self._drop(0, end)
        _raise_corruption(problems)

    def close(self) -> None:
        """Free everything and close the parent, then raise for what was found.

        An error from the parent takes precedence, then `CorruptionError` for stray writes, then `LeakError` for live
        blocks, if `raise_leaks` is set. Closing twice is harmless.
        """
        problems = self._problems(0)
        leaked = list(self._live.values())
        first: BaseException | None = None
        for record in [*reversed(self._quarantine.values()), *reversed(leaked)]:
            try:
                self._give_back(record)
            except BaseException as error:
                first = first or error
            if record._lease in self._live:
                self._leaked.append(record)
            self._forget(record)
        self._leaked.sort(key=_number)
        try:
            close_parent(self._parent)
        except BaseException as error:
            first = first or error
        if first is not None:
            raise first
        if leaked and (self._raise or problems):
            size = sum([record.layout.size for record in leaked])
            blocks = "1 block was" if len(leaked) == 1 else f"{len(leaked)} blocks were"
            found = f"{blocks} never freed, {size} bytes in all:"
            message = "\n".join([found, *[record.report() for record in leaked]])
            if not problems:
                raise LeakError(message)
            problems.append(message)
        _raise_corruption(problems)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except (CorruptionError, LeakError) as found:
            error.add_note(str(found))

    def __repr__(self) -> str:
        options = ""
        for name, value, default in (
            ("depth", self._depth, 8),
            ("canary", self._canary, 16),
            ("quarantine", self._quarantine_size, 1 << 20),
            ("raise_leaks", self._raise, True),
        ):
            if value != default:
                options += f", {name}={str(value).lower()}"
        return f"debug({self._parent!r}{options})"


def _quarantined_size(record: BlockRecord) -> int:
    return max(record._outer_layout.size, _RECORD_SIZE)


def _number(record: BlockRecord) -> int:
    return record.number


def _note(problems: list[str], record: BlockRecord) -> None:
    problem = record._stray_write()
    if problem:
        problems.append(f"{problem}\n{record.report()}")


def _raise_corruption(problems: list[str]) -> None:
    if problems:
        raise CorruptionError("\n".join(problems))


def _fill(view: memoryview, pattern: bytes) -> None:
    """Fill a view with repetitions of a 64 KiB pattern."""
    size = len(view)
    start = 0
    while start < size:
        step = min(size - start, _STEP)
        view[start : start + step] = pattern[:step] if step < _STEP else pattern
        start += step


def _first_difference(view: memoryview, pattern: bytes) -> int:
    """Index of the first byte that differs from what `_fill` writes, or -1."""
    size = len(view)
    start = 0
    while start < size:
        step = min(size - start, _STEP)
        piece = bytes(view[start : start + step])
        if piece != pattern[:step]:
            for index in range(step):
                if piece[index] != pattern[index]:
                    return start + index
        start += step
    return -1
