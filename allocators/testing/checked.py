"""Checked: an allocator compared with a model of it after every call.

The model is independent of any implementation: a list of the live blocks and the bytes that each must hold, in plain
Python objects, and the counts that follow from it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

from allocators.adaptors.metric import Counters
from allocators.block import Block, address_of
from allocators.errors import AllocError, MisuseError
from allocators.layout import Layout
from allocators.protocol import Allocator, Resettable, Scoped
from allocators.scope import Checkpoint
from allocators.testing.errors import ConformanceError, Interruption
from allocators.uncopyable import Uncopyable

# 251 is prime, so bytes shifted by any power of two differ.
_PATTERN: Final = bytes(range(251))


def pattern(number: int, size: int) -> bytes:
    """Bytes that differ from block to block and from position to position."""
    start = number * 7 % 251
    return (_PATTERN * (size // 251 + 2))[start : start + size]


def is_zero(view: memoryview) -> bool:
    """Whether every byte is zero."""
    return not bytes(view).strip(b"\0")


class Held:
    """One live block, as the model sees it.

    `layout` is the last request, `contents` the bytes that the block must hold. `made` and `resized` are the numbers of
    open checkpoints when it was allocated and last resized.
    """

    __slots__ = ("block", "contents", "layout", "made", "number", "resized")

    def __init__(self, number: int, block: Block, layout: Layout, made: int) -> None:
        self.number = number
        self.block = block
        self.layout = layout
        self.contents = b""
        self.made = made
        self.resized = made

    @property
    def name(self) -> str:
        return f"b{self.number}"


class Checked(Uncopyable):
    """Calls `allocator`, and raises `ConformanceError` as soon as it breaks the contract.

    After each call it compares the contents of `sample` live blocks with the model, or of all if `sample` is None.
    `record`: keep the list of calls for the error message.
    """

    def __init__(self, allocator: Allocator, *, sample: int | None = None, record: bool = True) -> None:
        self.allocator: Final[Any] = allocator
        self.live: dict[int, Held] = {}
        self.operations: list[str] = []
        self.points: list[Checkpoint] = []
        self._record = record
        self._sample = sample
        self._next = 0
        self._next_sample = 0
        # Live blocks that have bytes, ordered by address, each as (start, end, number).
        self._extents: list[tuple[int, int, int]] = []
        self._expected = _Expected()
        self._counts = isinstance(self._counters(), Counters) and not any(self._counters().as_dict().values())
        self.can_scope = isinstance(allocator, Scoped) and self._offers(
            lambda: allocator.restore(allocator.checkpoint())
        )
        self.can_reset = isinstance(allocator, Resettable) and self._offers(allocator.reset)

    def _counters(self) -> Any:
        return getattr(self.allocator, "counters", None)

    def _offers(self, trial: Callable[[], object]) -> bool:
        """Whether an optional operation works; adaptors have every method, and refuse if their parent lacks it."""
        try:
            trial()
        except MisuseError:
            return False
        return True

    def fail(self, promise: str) -> ConformanceError:
        """The error for a broken promise."""
        return ConformanceError(f"{self.allocator!r}: {promise}", self.operations)

    def _log(self, operation: str) -> None:
        if self._record:
            self.operations.append(operation)

    def _call(self, method: str, *arguments: object) -> Any:
        """Call the allocator; an exception that the contract does not allow is a broken promise."""
        try:
            return getattr(self.allocator, method)(*arguments)
        except (MemoryError, ConformanceError):
            raise
        except Exception as error:
            raise self.fail(f"{method} raised {type(error).__name__}: {error}") from error

    def _complete(self, method: str, *arguments: object) -> None:
        """Call an operation that frees blocks in bulk: it must complete even if the parent raises."""
        try:
            self._call(method, *arguments)
        except Interruption:
            self._log("  # interrupted")

    def allocate(self, size: int, align: int = 8, *, zeroed: bool = False) -> Held | None:
        """Allocate a block and fill it; None if the allocator refuses."""
        layout = Layout(size, align)
        method = "allocate_zeroed" if zeroed else "allocate"
        held_name = f"b{self._next}"
        self._log(f"{held_name} = allocator.{method}({layout!r})")
        try:
            block = self._call(method, layout)
        except MemoryError as error:
            self._refused(error)
            return None
        held = Held(self._next, block, layout, len(self.points))
        self._next += 1
        self._check_block(held, method)
        if zeroed and not is_zero(block.view):
            raise self.fail(f"allocate_zeroed returned a block with a byte that is not zero: {held_name}")
        self._enter(held)
        self._expected.allocated(size)
        self.check()
        return held

    def _refused(self, error: MemoryError) -> None:
        if not isinstance(error, AllocError):
            raise self.fail(f"a request was refused with {error!r}, want an AllocError") from error
        self._log("  # AllocError")
        self._expected.failures += 1
        self.check()

    def _check_block(self, held: Held, method: str) -> None:
        """Check what must hold for any block that an allocator returns."""
        block = held.block
        layout = held.layout
        name = held.name
        if not isinstance(block, Block):
            raise self.fail(f"{method} returned {block!r}, want a Block")
        if block.size < layout.size:
            raise self.fail(f"{method} returned {block.size} bytes for {name}, want at least {layout.size}")
        if block.address <= 0 or block.address & (layout.align - 1):
            raise self.fail(f"{method} returned {name} at {block.address:#x}, which is not aligned to {layout.align}")
        if block.released:
            raise self.fail(f"{method} returned {name} released")
        region = block.region
        end = region.address + region.size
        if block.size and not region.address <= block.address <= end - block.size:
            raise self.fail(f"{name} is not inside its region: {block!r}, {region!r}")
        view = block.view
        if view.nbytes != block.size or view.format != "B" or view.readonly:
            raise self.fail(f"the view of {name} is not that of {block.size} writable bytes: {view!r}")
        if block.size == 0:
            return
        if address_of(view) != block.address:
            raise self.fail(f"the view of {name} is of other memory than its address: {block!r}")
        index = bisect_left(self._extents, (block.address,))
        for start, end, number in self._extents[max(index - 1, 0) : index + 1]:
            if start < block.address + block.size and block.address < end:
                raise self.fail(f"{name} overlaps b{number}: {block!r}, {self.live[number].block!r}")

    def _enter(self, held: Held) -> None:
        """Add a block to the model, and fill it."""
        block = held.block
        held.contents = pattern(held.number, block.size)
        block.view[:] = held.contents
        self.live[held.number] = held
        self._place(held)

    def _place(self, held: Held) -> None:
        address = held.block.address
        if held.block.size:
            extent = (address, address + held.block.size, held.number)
            self._extents.insert(bisect_left(self._extents, extent), extent)

    def _remove(self, held: Held) -> None:
        """Take a block out of the model."""
        del self.live[held.number]
        self._displace(held)

    def _displace(self, held: Held) -> None:
        block = held.block
        if block.size:
            extent = (block.address, block.address + block.size, held.number)
            del self._extents[bisect_left(self._extents, extent)]

    def _old_layout(self, held: Held) -> Layout:
        """A layout that fits a block: alternately the requested size and the returned size."""
        return held.layout if held.number % 2 else Layout(held.block.size, held.layout.align)

    def deallocate(self, held: Held) -> None:
        """Free a block."""
        self._check_contents(held)
        block = held.block
        layout = self._old_layout(held)
        self._log(f"allocator.deallocate({held.name}, {layout!r})")
        self._call("deallocate", block, layout)
        self._remove(held)
        self._expected.freed(held.layout.size)
        self._check_ended(held.name, block)
        self.check()

    def _check_ended(self, name: str, block: Block) -> None:
        """Check that a block that has ended raises on use."""
        if not block.released:
            raise self.fail(f"{name} has ended, but is not released")
        try:
            block.view  # noqa: B018
        except MisuseError:
            return
        raise self.fail(f"{name} has ended, but its view can still be had")

    def resize(self, held: Held, size: int, align: int, *, zeroed: bool = False) -> bool:
        """Grow (with `grow_zeroed` if `zeroed`) or shrink a block; False if the allocator refuses."""
        if size > held.layout.size:
            return self._resize(held, "grow_zeroed" if zeroed else "grow", Layout(size, align))
        return self._resize(held, "shrink", Layout(size, align))

    def grow(self, held: Held, size: int, align: int, *, zeroed: bool = False) -> bool:
        """Grow a block, possibly by 0 bytes; False if the allocator refuses."""
        return self._resize(held, "grow_zeroed" if zeroed else "grow", Layout(size, align))

    def shrink(self, held: Held, size: int, align: int) -> bool:
        """Shrink a block, possibly by 0 bytes; False if the allocator refuses."""
        return self._resize(held, "shrink", Layout(size, align))

    def resize_in_place(self, held: Held, size: int, align: int) -> bool:
        """Resize a block in place; False if the allocator refuses or does not support it."""
        if getattr(self.allocator, "resize_in_place", None) is None:
            return False
        return self._resize(held, "resize_in_place", Layout(size, align))

    def _resize(self, held: Held, method: str, new: Layout) -> bool:
        self._check_contents(held)
        old = self._old_layout(held)
        # A caller that uses the whole returned size passes it when resizing.
        if (method == "shrink" and new.size > old.size) or (method.startswith("grow") and new.size < old.size):
            old = held.layout
        before = held.block
        self._log(f"{held.name} = allocator.{method}({held.name}, {old!r}, {new!r})")
        try:
            block = self._call(method, before, old, new)
        except MemoryError as error:
            self._refused(error)
            self._check_contents(held)
            return False
        if block is None:
            self._log("  # None")
            if before.released:
                raise self.fail(f"resize_in_place said no, but {held.name} has ended")
            self.check()
            return False
        self._displace(held)
        growth = new.size - held.layout.size
        held.block = block
        held.layout = new
        self._check_block(held, method)
        if block is before:
            raise self.fail(f"{method} returned the block that it was given, which has ended")
        if method == "resize_in_place" and block.address != before.address:
            raise self.fail(f"resize_in_place has moved {held.name}")
        self._check_ended(f"the old {held.name}", before)
        self._check_kept(held, method, old)
        held.resized = len(self.points)
        self._place(held)
        held.contents = pattern(held.number, block.size)
        block.view[:] = held.contents
        self._expected.resized(growth)
        self.check()
        return True

    def _check_kept(self, held: Held, method: str, old: Layout) -> None:
        view = held.block.view
        kept = min(old.size, held.layout.size)
        if bytes(view[:kept]) != held.contents[:kept]:
            raise self.fail(f"{method} did not keep the first {kept} bytes of {held.name}")
        if method == "grow_zeroed" and not is_zero(view[old.size :]):
            raise self.fail(f"grow_zeroed left a byte of {held.name} behind the first {old.size} that is not zero")

    def misuse(self, block: Block, layout: Layout) -> None:
        """Check that every use of an ended block raises `MisuseError` and changes nothing."""
        calls: list[tuple[str, tuple[object, ...]]] = [
            ("deallocate", (block, layout)),
            ("grow", (block, layout, Layout(layout.size + 8, layout.align))),
            ("grow_zeroed", (block, layout, Layout(layout.size + 8, layout.align))),
            ("shrink", (block, layout, Layout(layout.size // 2, layout.align))),
        ]
        if hasattr(self.allocator, "resize_in_place"):
            calls.append(("resize_in_place", (block, layout, Layout(layout.size // 2, layout.align))))
        for method, arguments in calls:
            self._log(f"allocator.{method} of a block that has ended")
            try:
                getattr(self.allocator, method)(*arguments)
            except MisuseError:
                self.check()
            else:
                raise self.fail(f"{method} of a block that has ended did not raise MisuseError")

    def reset(self) -> None:
        """Reset the allocator: every block must be revoked."""
        self._log("allocator.reset()")
        self._complete("reset")
        self.points.clear()
        for held in list(self.live.values()):
            self._drop(held, "a reset")
        self.check()

    def _drop(self, held: Held, cause: str) -> None:
        """Remove a block that the allocator must have revoked."""
        self._remove(held)
        self._expected.freed(held.layout.size)
        self._check_ended(f"{held.name}, by {cause},", held.block)

    def checkpoint(self) -> None:
        """Take a checkpoint."""
        self._log("points.append(allocator.checkpoint())")
        self.points.append(self._call("checkpoint"))
        self.check()

    def restore(self, number: int) -> None:
        """Restore an open checkpoint, numbered from the oldest: blocks made since must be revoked.

        An older block that was resized since may or may not be revoked.
        """
        self._log(f"allocator.restore(points[{number}])")
        point = self.points[number]
        self._complete("restore", point)
        for held in list(self.live.values()):
            if held.made > number or (held.resized > number and held.block.released):
                self._drop(held, "a restore")
        for held in self.live.values():
            held.resized = min(held.resized, number)
        used = self.points[number:]
        del self.points[number:]
        self.check()
        self._check_used_up(used)
        fresh = self.allocator.checkpoint()
        self._check_used_up(used)
        self.allocator.restore(fresh)
        self.check()

    def _check_used_up(self, points: list[Checkpoint]) -> None:
        """Check that a checkpoint which was restored, or is newer than a restored one, is refused."""
        for point in points:
            try:
                self.allocator.restore(point)
            except MisuseError:
                self.check()
            else:
                raise self.fail("a checkpoint could be restored twice")

    def free_all(self) -> None:
        """Free every block, newest first."""
        for held in sorted(self.live.values(), key=lambda held: held.number, reverse=True):
            self.deallocate(held)

    def check(self) -> None:
        """Compare contents and counters with the model."""
        if self._sample is None:
            for held in self.live.values():
                self._check_contents(held)
        else:
            self._check_sample(self._sample)
        if self._counts:
            self._check_counters()

    def check_all(self) -> None:
        """Compare the contents of every live block."""
        for held in self.live.values():
            self._check_contents(held)

    def _check_sample(self, count: int) -> None:
        extents = self._extents
        for _index in range(min(count, len(extents))):
            self._next_sample = (self._next_sample + 1) % len(extents)
            self._check_contents(self.live[extents[self._next_sample][2]])

    def _check_contents(self, held: Held) -> None:
        if held.block.released:
            raise self.fail(f"{held.name} is live, but has been released")
        # A copy, since memoryviews are compared item by item.
        if bytes(held.block.view) != held.contents:
            raise self.fail(f"the contents of {held.name} have changed")

    def _check_counters(self) -> None:
        counted = self._counters().as_dict()
        expected = self._expected.as_dict()
        if counted != expected:
            wrong = [
                f"{name} is {counted[name]}, want {want}" for name, want in expected.items() if counted[name] != want
            ]
            raise self.fail(f"the counters are wrong: {', '.join(wrong)}")


class _Expected:
    """The counters that a MetricAllocator must show."""

    def __init__(self) -> None:
        self.current_bytes = 0
        self.current_blocks = 0
        self.peak_bytes = 0
        self.peak_blocks = 0
        self.total_bytes = 0
        self.total_blocks = 0
        self.frees = 0
        self.resizes = 0
        self.failures = 0

    def allocated(self, size: int) -> None:
        self.total_blocks += 1
        self.total_bytes += size
        self._change(size, 1)

    def freed(self, size: int) -> None:
        self.frees += 1
        self._change(-size, -1)

    def resized(self, growth: int) -> None:
        self.resizes += 1
        self.total_bytes += max(growth, 0)
        self._change(growth, 0)

    def _change(self, size: int, blocks: int) -> None:
        self.current_bytes += size
        self.current_blocks += blocks
        self.peak_bytes = max(self.peak_bytes, self.current_bytes)
        self.peak_blocks = max(self.peak_blocks, self.current_blocks)

    def as_dict(self) -> dict[str, int]:
        return dict(vars(self))
