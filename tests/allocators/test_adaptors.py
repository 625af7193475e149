"""What every adaptor promises beside the contract of allocators, whatever else it does."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    BinningAllocator,
    Block,
    BumpAlloc,
    CallSiteAllocator,
    DebugAllocator,
    FailingAllocator,
    FallbackAllocator,
    Layout,
    LimitAllocator,
    LockedAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    RetryAllocator,
    StackAlloc,
    TracemallocAllocator,
    TracingAllocator,
)
from allocators.testing import Failures, Instrumented
from tests.support.allocator_factories import each

#: Those that have one parent and hand out its blocks.
ADAPTORS: dict[str, Callable[[Any], Any]] = {
    "metric": MetricAllocator,
    "limit": lambda parent: LimitAllocator(parent, 1 << 24),
    "fail": FailingAllocator,
    "debug": DebugAllocator,
    "debug without quarantine": lambda parent: DebugAllocator(parent, quarantine=0, canary=0, depth=0),
    "debug with little of all": lambda parent: DebugAllocator(parent, quarantine=2000, canary=3, depth=1),
    "tracing": TracingAllocator,
    "call sites": CallSiteAllocator,
    "tracemalloc": TracemallocAllocator,
    "locked": LockedAllocator,
    "retry": lambda parent: RetryAllocator(parent, lambda layout: False),
}

#: Those that have several, or memory of their own that they cut up.
COMPOUND: dict[str, Callable[[Any], Any]] = {
    "pool": lambda parent: PoolAllocator(parent, 64, 64),
    "fallback from a pool": lambda parent: FallbackAllocator(PoolAllocator(parent, 64, 64), parent),
    "fallback from an arena": lambda parent: FallbackAllocator(
        Arena(LimitAllocator(PageAlloc(), 1 << 14)), BumpAlloc(parent)
    ),
    "binning": BinningAllocator,
    "binning over an arena": lambda parent: BinningAllocator(Arena(parent)),
    "binning into arenas": lambda parent: BinningAllocator(
        Arena(parent), bins={100: BumpAlloc(PageAlloc()), 2000: Arena(PageAlloc())}
    ),
}


@each(ADAPTORS)
def test_a_parent_that_raises_leaves_the_account_as_it_was(make: Callable[[Any], Any]) -> None:
    parent = _Breakable()
    adaptor = make(parent)
    layout = Layout(2_000_000, 8)
    block = adaptor.allocate(layout)
    live = getattr(adaptor, "live_blocks", None)
    parent.broken = True
    with pytest.raises(RuntimeError):
        adaptor.deallocate(block, layout)
    assert not block.released
    assert getattr(adaptor, "live_blocks", None) == live
    parent.broken = False
    adaptor.deallocate(block, layout)
    assert block.released
    assert parent.inner.live_blocks == 0


class _Breakable:
    """Pages, and a switch that makes giving them back fail. Without a base class, as any allocator may be."""

    def __init__(self) -> None:
        self.inner = PageAlloc()
        self.broken = False

    def allocate(self, layout: Layout) -> Block:
        return self.inner.allocate(layout)

    def allocate_zeroed(self, layout: Layout) -> Block:
        return self.inner.allocate_zeroed(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if self.broken:
            raise RuntimeError("broken")
        self.inner.deallocate(block, layout)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        return self.inner.grow(block, old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        return self.inner.grow_zeroed(block, old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        return self.inner.shrink(block, old, new)


@each(ADAPTORS | COMPOUND)
def test_sizes_near_the_end_of_the_address_space_are_refused(make: Callable[[Any], Any]) -> None:
    """oxc #21745, Zig #25371: the address of the end overflowed."""
    allocator = make(Instrumented())
    block = allocator.allocate(Layout(8, 8))
    block.view[:8] = b"contents"
    for align in (1, 8, 16, 4096):
        for below in (0, 1, 7, 15, 16, 47, 48, 63, 64, 128):
            huge = Layout(sys.maxsize - (align - 1) - below, align)
            with pytest.raises(AllocError):
                allocator.allocate(huge)
            with pytest.raises(AllocError):
                allocator.grow(block, Layout(8, 8), huge)
    assert bytes(block.view[:8]) == b"contents"
    after = allocator.allocate(Layout(8, 8))
    after.view[:8] = bytes(8)
    assert bytes(block.view[:8]) == b"contents"


@each(ADAPTORS | COMPOUND)
def test_live_blocks_of_no_bytes_may_share_an_address(make: Callable[[Any], Any]) -> None:
    """rmm #2312: a map by address lost all but one of them."""
    parent = Instrumented()
    allocator = make(parent)
    layout = Layout(0, 1)
    blocks = [allocator.allocate(layout) for _ in range(3)]
    left = [getattr(allocator, "live_blocks", None)]
    for block in blocks:
        assert len(block.view) == 0
        allocator.deallocate(block, layout)
        left.append(getattr(allocator, "live_blocks", None))
        with pytest.raises(MisuseError):
            allocator.deallocate(block, layout)
    if isinstance(allocator, (PoolAllocator, LockedAllocator, RetryAllocator, FallbackAllocator, BinningAllocator)):
        # They keep no account of blocks, or none of those without bytes.
        assert set(left) <= {None, 0}
    else:
        assert left == [3, 2, 1, 0]
    allocator.close()
    assert parent.live_blocks == 0


ACCOUNTING = {
    name: make for name, make in ADAPTORS.items() if name not in ("locked", "retry") and "without" not in name
}


@each(ACCOUNTING)
def test_a_block_of_the_parent_is_refused_and_nothing_becomes_negative(make: Callable[[Any], Any]) -> None:
    """rmm #2404: an unsigned counter wrapped."""
    parent = PageAlloc()
    adaptor = make(parent)
    layout = Layout(100, 8)
    foreign = parent.allocate(layout)
    with pytest.raises(MisuseError):
        adaptor.deallocate(foreign, layout)
    assert adaptor.live_blocks == 0
    assert not foreign.released
    parent.deallocate(foreign, layout)


@each({"debug": DebugAllocator, "tracing": TracingAllocator, "call sites": CallSiteAllocator})
def test_freeing_through_another_adaptor_over_the_same_parent_is_refused(make: Callable[[Any], Any]) -> None:
    """pytorch #146431: a block was freed by another allocator's free."""
    parent = PageAlloc()
    one = make(parent)
    other = make(parent)
    layout = Layout(100, 8)
    block = one.allocate(layout)
    other.allocate(layout)
    with pytest.raises(MisuseError):
        other.deallocate(block, layout)
    assert (one.live_blocks, other.live_blocks) == (1, 1)
    one.deallocate(block, layout)
    assert one.live_blocks == 0


IN_PLACE = {name: make for name, make in ADAPTORS.items() if not name.startswith("debug")}


@each(IN_PLACE | {"fallback": lambda parent: FallbackAllocator(parent, PageAlloc())})
def test_blocks_are_resized_in_place_where_the_parent_can(make: Callable[[Any], Any]) -> None:
    adaptor = make(BumpAlloc(PageAlloc()))
    below = adaptor.allocate(Layout(100, 8))
    block = adaptor.allocate(Layout(100, 8))
    block.view[:] = bytes(range(100))
    grown = adaptor.resize_in_place(block, Layout(100, 8), Layout(200, 8))
    assert (grown.address, grown.size) == (block.address, 200)
    assert block.released
    assert bytes(grown.view[:100]) == bytes(range(100))
    shrunk = adaptor.resize_in_place(grown, Layout(200, 8), Layout(50, 8))
    assert (shrunk.address, shrunk.size) == (block.address, 50)
    # Something is above it.
    assert adaptor.resize_in_place(below, Layout(100, 8), Layout(101, 8)) is None
    assert not below.released
    with pytest.raises(MisuseError):
        adaptor.resize_in_place(grown, Layout(200, 8), Layout(10, 8))
    adaptor.deallocate(shrunk, Layout(50, 8))
    adaptor.deallocate(below, Layout(100, 8))


@each(ADAPTORS)
def test_a_parent_that_cannot_resize_in_place_says_no(make: Callable[[Any], Any]) -> None:
    adaptor = make(_Breakable())
    block = adaptor.allocate(Layout(100, 8))
    assert adaptor.resize_in_place(block, Layout(100, 8), Layout(50, 8)) is None
    assert adaptor.resize_in_place(block, Layout(100, 8), Layout(200, 8)) is None
    adaptor.deallocate(block, Layout(100, 8))


def test_resizing_in_place_is_counted_limited_failed_and_recorded() -> None:
    metric = MetricAllocator(BumpAlloc(PageAlloc()))
    limit = LimitAllocator(metric, 150)
    tracing = TracingAllocator(limit)
    failing = FailingAllocator(tracing, resize_fail_index=3)
    block = failing.allocate(Layout(100, 8))
    # Requests 0 to 2 are not failed.
    block = failing.resize_in_place(block, Layout(100, 8), Layout(150, 8))
    assert failing.resize_in_place(block, Layout(150, 8), Layout(151, 8)) is None
    block = failing.resize_in_place(block, Layout(150, 8), Layout(60, 8))
    assert failing.resize_in_place(block, Layout(60, 8), Layout(50, 8)) is None
    assert (failing.failures, failing.resizes, failing.resize_index) == (1, 2, 4)
    assert (limit.live_bytes, metric.live_bytes) == (60, 60)
    counters = metric.counters
    assert (counters.resizes, counters.peak_bytes, counters.total_bytes, counters.failures) == (2, 150, 150, 0)
    assert tracing.trace.text().splitlines()[1:] == ["a 0 100 8", "g 0 150 8", "s 0 60 8"]


def test_a_block_of_no_bytes_never_stays_with_the_first_of_two() -> None:
    fallback = FallbackAllocator(BumpAlloc(PageAlloc()), PageAlloc())
    block = fallback.allocate(Layout(8, 8))
    assert fallback.resize_in_place(block, Layout(8, 8), Layout(0, 8)) is None
    empty = fallback.shrink(block, Layout(8, 8), Layout(0, 8))
    fallback.deallocate(empty, Layout(0, 8))


@each(ADAPTORS)
def test_scopes_and_resets_go_through_to_the_parent(make: Callable[[Any], Any]) -> None:
    arena = Arena(PageAlloc())
    adaptor = make(arena)
    layout = Layout(100, 4)
    kept = adaptor.allocate(layout)
    before = arena.used_bytes
    with adaptor.scope() as inner:
        assert inner is adaptor
        dropped = adaptor.allocate(layout)
        with adaptor.scope():
            adaptor.allocate(layout)
    assert dropped.released
    assert not kept.released
    assert arena.used_bytes == before
    assert getattr(adaptor, "live_blocks", 1) == 1
    adaptor.reset()
    assert kept.released
    assert arena.used_bytes == 0
    assert getattr(adaptor, "live_blocks", 0) == 0
    adaptor.close()
    assert arena.allocated_bytes == 0


@each(ADAPTORS)
def test_a_parent_without_scopes_resets_or_pages_makes_them_misuse(make: Callable[[Any], Any]) -> None:
    adaptor = make(PageAlloc())
    block = adaptor.allocate(Layout(10, 1))
    for use in (adaptor.checkpoint, adaptor.reset):
        with pytest.raises(MisuseError):
            use()
    over_an_arena = make(Arena(PageAlloc()))
    with pytest.raises(MisuseError):
        over_an_arena.protect(over_an_arena.allocate(Layout(10, 1)), "r")
    assert getattr(adaptor, "live_blocks", 1) == 1
    adaptor.deallocate(block, Layout(10, 1))


@pytest.mark.skipif(sys.platform == "win32", reason="pages cannot be protected there")
@each(ADAPTORS)
def test_pages_are_protected_through_it(make: Callable[[Any], Any]) -> None:
    adaptor = make(PageAlloc())
    assert adaptor.page_size == PageAlloc().page_size
    layout = Layout(100, 16)
    block = adaptor.allocate(layout)
    adaptor.protect(block, "rx")
    assert block.view.readonly
    adaptor.protect(block, "rw")
    block.view[0] = 1
    adaptor.protect(block, "r")
    adaptor.deallocate(block, layout)
    adaptor.close()


@pytest.mark.skipif(sys.platform == "win32", reason="pages cannot be protected there")
@each(ADAPTORS | {"fallback": lambda parent: FallbackAllocator(LimitAllocator(PageAlloc(), 1), parent)})
def test_part_of_a_block_is_protected_through_it(make: Callable[[Any], Any]) -> None:
    adaptor = make(PageAlloc())
    page = adaptor.page_size
    layout = Layout(3 * page, page)
    block = adaptor.allocate(layout)
    for offset, size in ((0, 1), (2 * page, 2 * page), (4 * page, None), (-page, page)):
        with pytest.raises(MisuseError):
            adaptor.protect(block, "rx", offset, size)
    block.view[:] = bytes([5]) * (3 * page)
    adaptor.protect(block, "rx", 0, page)
    adaptor.protect(block, "r", 2 * page)
    assert block.view.readonly
    # The page between is still writable: this would end the process otherwise.
    for place in (page, 2 * page - 1):
        ctypes.c_char.from_address(block.address + place).value = b"x"
    assert block.view[page : page + 2] == b"x\x05"
    adaptor.protect(block, "rw")
    block.view[0] = 1
    adaptor.protect(block, "rx", page, page)
    adaptor.deallocate(block, layout)
    adaptor.close()


@each(ADAPTORS | COMPOUND)
def test_it_owns_its_blocks_and_no_others(make: Callable[[Any], Any]) -> None:
    adaptor = make(Arena(PageAlloc()))
    block = adaptor.allocate(Layout(40, 8))
    foreign = PageAlloc().allocate(Layout(40, 8))
    assert adaptor.owns(block)
    assert not adaptor.owns(foreign)


@each(ADAPTORS)
def test_a_checkpoint_of_another_allocator_is_refused(make: Callable[[Any], Any]) -> None:
    arena = Arena(PageAlloc())
    adaptor = make(arena)
    block = adaptor.allocate(Layout(8, 8))
    with pytest.raises(MisuseError):
        adaptor.restore(arena.checkpoint())
    with pytest.raises(MisuseError):
        adaptor.restore(make(arena).checkpoint())
    assert not block.released


@each(ADAPTORS | COMPOUND)
def test_no_refusal_of_the_parent_changes_anything(make: Callable[[Any], Any]) -> None:
    """Each request of a little program is refused in turn; what it has is intact, and all of it comes back."""
    layout = Layout(40, 8)
    larger = Layout(5000, 16)
    index = 0
    while True:
        failures = Failures(fail_at=index, times=1)
        parent = failures.allocator()
        allocator = make(parent)
        blocks: list[tuple[Block, Layout]] = []
        for number in range(4):
            with suppress(AllocError):
                block = allocator.allocate(layout)
                block.view[:40] = bytes([number]) * 40
                blocks.append((block, layout))
        for number, (block, old) in enumerate(blocks):
            first = block.view[0]
            with suppress(AllocError):
                blocks[number] = (allocator.grow(block, old, larger), larger)
            assert bytes(blocks[number][0].view[:40]) == bytes([first]) * 40
        for block, current in reversed(blocks):
            allocator.deallocate(block, current)
        allocator.close()
        assert parent.live_blocks == 0
        if not failures.refused:
            break
        index += 1
    assert index > 0


def test_a_stack_in_front_of_it_all() -> None:
    allocator = MetricAllocator(DebugAllocator(FallbackAllocator(StackAlloc(bytearray(512)), Arena(PageAlloc()))))
    layout = Layout(100, 8)
    blocks = [allocator.allocate(layout) for _ in range(20)]
    for number, block in enumerate(blocks):
        block.view[:] = bytes([number]) * 100
    for number, block in enumerate(blocks):
        assert bytes(block.view) == bytes([number]) * 100
        allocator.deallocate(block, layout)
    allocator.close()
    assert allocator.live_blocks == 0
