"""A call in the middle of an operation, out of a callback or a signal handler, and an exception there, lose nothing."""

from __future__ import annotations

import dis
import itertools
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    BaseAllocator,
    Block,
    CallbackAllocator,
    CallSiteAllocator,
    DebugAllocator,
    FailingAllocator,
    Layout,
    LeakError,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    TracemallocAllocator,
    TracingAllocator,
)
from allocators.adaptors import debug
from allocators.testing import Instrumented
from allocators.trace import call_sites, records, tracing
from allocators.trace.format import read_trace

COUNTING: dict[str, Callable[[Any], Any]] = {
    "metric": MetricAllocator,
    "limit": lambda parent: LimitAllocator(parent, 1 << 20),
    "fail": FailingAllocator,
    "tracing": TracingAllocator,
    "call sites": CallSiteAllocator,
    "tracemalloc": TracemallocAllocator,
    "debug": DebugAllocator,
}
each_adaptor = pytest.mark.parametrize("make", list(COUNTING.values()), ids=list(COUNTING))


class Calling(Instrumented):
    """Calls a function before each deallocation, and then does it, or raises what the function raises."""

    def __init__(self) -> None:
        super().__init__()
        self.on_deallocate: Callable[[], object] | None = None
        self.after = False

    def deallocate(self, block: Block, layout: Layout) -> None:
        call = self.on_deallocate
        self.on_deallocate = None
        if call is not None and not self.after:
            call()
        super().deallocate(block, layout)
        if call is not None and self.after:
            call()


def raise_an_error() -> None:
    raise RuntimeError("no")


@each_adaptor
def test_a_callback_in_the_middle_of_a_free_uses_the_same_allocator(make: Callable[[Any], Any]) -> None:
    parent = Calling()
    adaptor = make(parent)
    layout = Layout(24, 8)
    first, second, third = (adaptor.allocate(layout) for _index in range(3))
    kept: list[Block] = []

    def use() -> None:
        adaptor.deallocate(second, layout)
        kept.append(adaptor.allocate(layout))

    parent.on_deallocate = use
    adaptor.deallocate(first, layout)
    if isinstance(adaptor, DebugAllocator):
        # What was freed has been in quarantine up to now.
        parent.on_deallocate = use
        with suppress(MisuseError):
            adaptor.close()
        assert parent.live_blocks == 0
        return
    assert adaptor.live_blocks == 2
    adaptor.deallocate(third, layout)
    adaptor.deallocate(kept.pop(), layout)
    assert (adaptor.live_blocks, parent.live_blocks) == (0, 0)


@each_adaptor
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("method", ["deallocate", "grow", "shrink"])
def test_a_parent_that_raises_has_ended_the_block_or_not(make: Callable[[Any], Any], method: str, after: bool) -> None:
    parent = Calling()
    parent.after = after
    adaptor = DebugAllocator(parent, quarantine=0) if make is DebugAllocator else make(parent)
    layout = Layout(24, 8)
    other = adaptor.allocate(layout)
    block = adaptor.allocate(layout)
    if method != "deallocate" and make is not DebugAllocator:
        # A parent that raises when it has moved the block.
        moving = Calling.deallocate

        def resize(method: str, block: Block, old: Layout, new: Layout, kept: int) -> Block:
            moved = Instrumented.allocate(parent, new)
            try:
                moving(parent, block, old)
            except RuntimeError:
                Instrumented.deallocate(parent, moved, new)
                raise
            return moved

        parent._resize = resize  # type: ignore[method-assign]
    parent.on_deallocate = raise_an_error
    layouts = [layout] if method == "deallocate" else [layout, Layout(48 if method == "grow" else 8, 8)]
    with pytest.raises(RuntimeError):
        getattr(adaptor, method)(block, *layouts)
    assert block.released == after
    assert adaptor.live_blocks == (1 if after else 2)
    if not after:
        adaptor.deallocate(block, layout)
    adaptor.deallocate(other, layout)
    assert (adaptor.live_blocks, parent.live_blocks) == (0, 0)


class Resetting(BaseAllocator):
    """An arena that calls a function before it takes a block back."""

    def __init__(self) -> None:
        self._arena = Arena(PageAlloc())
        self.on_deallocate: Callable[[], object] | None = None

    def allocate(self, layout: Layout) -> Block:
        return self._arena.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        call = self.on_deallocate
        self.on_deallocate = None
        if call is not None:
            call()
        else:
            self._arena.deallocate(block, layout)

    def reset(self) -> None:
        self._arena.reset()


@each_adaptor
def test_a_reset_in_the_middle_of_a_free_is_counted_once(make: Callable[[Any], Any]) -> None:
    parent = Resetting()
    adaptor = DebugAllocator(parent, quarantine=0) if make is DebugAllocator else make(parent)
    layout = Layout(24, 8)
    blocks = [adaptor.allocate(layout) for _index in range(3)]
    parent.on_deallocate = adaptor.reset
    adaptor.deallocate(blocks[0], layout)
    assert adaptor.live_blocks == 0
    for block in blocks:
        with pytest.raises(MisuseError):
            adaptor.deallocate(block, layout)
    adaptor.deallocate(adaptor.allocate(layout), layout)
    assert adaptor.live_blocks == 0


@pytest.mark.parametrize("make", [MetricAllocator, FailingAllocator, lambda parent: LimitAllocator(parent, 1 << 20)])
def test_a_layout_of_another_size_than_the_block_is_refused(make: Callable[[Any], Any]) -> None:
    adaptor = make(Arena(PageAlloc()))
    block, other = adaptor.allocate(Layout(24, 8)), adaptor.allocate(Layout(8, 8))
    for size in (0, 8, 23, 25):
        with pytest.raises(MisuseError):
            adaptor.deallocate(block, Layout(size, 8))
        for method, new in (("grow", 100), ("grow_zeroed", 100), ("shrink", 0), ("resize_in_place", 4)):
            with pytest.raises(MisuseError):
                getattr(adaptor, method)(block, Layout(size, 8), Layout(new, 8))
    assert (adaptor.live_blocks, adaptor.live_bytes, block.released) == (2, 32, False)
    adaptor.deallocate(other, Layout(8, 8))
    adaptor.deallocate(block, Layout(24, 8))


def test_a_limit_holds_for_requests_in_the_middle_of_a_request() -> None:
    limit: LimitAllocator[Any]
    inner: list[Block] = []

    def memory(layout: Layout) -> bytearray:
        if layout.size == 60:
            with pytest.raises(AllocError):
                limit.allocate(Layout(50, 8))
            inner.append(limit.allocate(Layout(40, 8)))
        return bytearray(layout.size)

    limit = LimitAllocator(CallbackAllocator(memory, lambda memory, layout: None, align=1), 100)
    block = limit.allocate(Layout(60, 1))
    assert (limit.live_bytes, limit.remaining_bytes) == (100, 0)
    limit.deallocate(block, Layout(60, 1))
    limit.deallocate(inner[0], Layout(40, 8))
    assert limit.remaining_bytes == 100


def test_functions_that_decide_on_failures_may_make_requests() -> None:
    failing: FailingAllocator[Any]

    def when(index: int, layout: Layout) -> bool:
        if layout.size == 60:
            with pytest.raises(AllocError):
                failing.allocate(Layout(8, 8))
        return True

    failing = FailingAllocator(Arena(PageAlloc()), when=when, times=1)
    failing.allocate(Layout(60, 8))
    assert (failing.failures, failing.alloc_index, failing.live_blocks) == (1, 2, 1)


def test_the_function_that_frees_memory_may_close_the_allocator() -> None:
    freed: list[int] = []

    def free(memory: bytearray, layout: Layout) -> None:
        freed.append(layout.size)
        allocator.close()

    allocator = CallbackAllocator(lambda layout: bytearray(layout.size), free, align=1)
    blocks = [allocator.allocate(Layout(size, 1)) for size in (1, 2, 3)]
    allocator.deallocate(blocks[1], Layout(2, 1))
    assert sorted(freed) == [1, 2, 3]
    assert all(block.released for block in blocks)


def test_closing_gives_back_all_but_what_the_function_refuses() -> None:
    refuse = {2}

    def free(memory: bytearray, layout: Layout) -> None:
        if layout.size in refuse:
            raise RuntimeError("no")

    allocator = CallbackAllocator(lambda layout: bytearray(layout.size), free, align=1)
    blocks = [allocator.allocate(Layout(size, 1)) for size in (1, 2, 3)]
    with pytest.raises(RuntimeError):
        allocator.close()
    assert [block.released for block in blocks] == [True, False, True]
    refuse.clear()
    allocator.close()
    assert allocator.live_blocks == 0


def test_a_debug_allocator_over_a_parent_that_was_reset_goes_on() -> None:
    arena = Arena(PageAlloc())
    allocator = DebugAllocator(arena)
    layout = Layout(24, 8)
    live = allocator.allocate(layout)
    allocator.deallocate(allocator.allocate(layout), layout)
    arena.reset()
    allocator.check()
    with pytest.raises(MisuseError):
        allocator.deallocate(live, layout)
    fresh = allocator.allocate(layout)
    assert allocator.live_blocks == 1
    allocator.deallocate(fresh, layout)
    allocator.close()
    allocator.close()


#: The code that signal handlers can interrupt, in both flavours.
INTERPRETED = {module.__file__ for module in (debug, records, tracing, call_sites)}


class At:
    """Calls a function once, at the moment of a number among those where signal handlers run in interpreted code.

    These are the beginning of a function, the end of each call, and each turn of a loop.
    """

    def __init__(self, number: int, call: Callable[[], object]) -> None:
        self.left = number
        self.call = call
        self.called = False
        self.last: dict[FrameType, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code.co_filename not in INTERPRETED:
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            last = self.last.get(frame, "")
            self.last[frame] = dis.opname[code.co_code[frame.f_lasti]]
            if last.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
                self.left -= 1
                if self.left < 0 and not self.called:
                    self.called = True
                    sys.settrace(None)
                    self.call()
        return self

    def __enter__(self) -> At:
        self.before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *_error: object) -> None:
        sys.settrace(self.before)


def test_an_interrupt_at_any_moment_leaves_a_debug_allocator_whole() -> None:
    for number in itertools.count():
        parent = Instrumented()
        allocator = DebugAllocator(parent, depth=0, quarantine=600)
        layout = Layout(24, 8)
        blocks = [allocator.allocate(layout) for _index in range(4)]
        contents = [bytes([index]) * 24 for index in range(4)]
        for block, content in zip(blocks, contents, strict=True):
            block.view[:] = content
        at = At(number, raise_keyboard_interrupt)
        try:
            with at:
                allocator.allocate(layout)
                for block in blocks[:3]:
                    allocator.deallocate(block, layout)
                allocator.grow(blocks[3], layout, Layout(48, 8))
        except KeyboardInterrupt:
            pass
        allocator.check()
        for block, content in zip(blocks, contents, strict=True):
            if not block.released:
                assert bytes(block.view) == content
                allocator.deallocate(block, layout)
        with suppress(LeakError):
            allocator.close()
        # One more is the block that the parent was just handing over.
        assert parent.live_blocks <= 1, number
        if not at.called:
            break


def raise_keyboard_interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("make", [TracingAllocator, CallSiteAllocator])
def test_what_a_signal_handler_does_at_any_moment_is_recorded(make: Callable[[Any], Any]) -> None:
    layout = Layout(24, 8)
    empty = Layout(0, 8)
    for number in itertools.count():
        allocator = make(Arena(PageAlloc()))
        older = [allocator.allocate(empty) for _index in range(3)]

        def handle(allocator: Any = allocator, older: list[Block] = older) -> None:
            allocator.deallocate(older.pop(), empty)
            older.append(allocator.allocate(empty))
            allocator.deallocate(allocator.allocate(layout), layout)

        at = At(number, handle)
        with at:
            block = allocator.allocate(layout)
            more = allocator.allocate(empty)
            block = allocator.grow(block, layout, Layout(48, 8))
            allocator.deallocate(more, empty)
            allocator.deallocate(block, Layout(48, 8))
        for each in older:
            allocator.deallocate(each, empty)
        assert allocator.live_blocks == 0, number
        if isinstance(allocator, TracingAllocator):
            operations = list(read_trace(allocator.trace.lines()))
            assert len(operations) == (15 if at.called else 11), number
            allocator.trace.close()
        else:
            assert sum(counters.current_blocks for counters in allocator.sites.values()) == 0
        if not at.called:
            break
