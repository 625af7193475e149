"""MetricAllocator: the counts of RMM's statistics adaptor, and of reallocations as oxc counts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allocators import Arena, Block, BumpAlloc, Counters, Layout, MetricAllocator, MisuseError, PageAlloc, StackAlloc
from allocators.collections import ByteBuffer
from allocators.testing import Failures, Instrumented

TEN = Layout(10, 1)


def six(counters: Counters) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Current, peak and total of bytes, and of blocks."""
    return (
        (counters.current_bytes, counters.peak_bytes, counters.total_bytes),
        (counters.current_blocks, counters.peak_blocks, counters.total_blocks),
    )


def test_frames_count_from_zero_and_add_up_when_they_end() -> None:
    metric = MetricAllocator(PageAlloc())
    ten = [metric.allocate(TEN) for _ in range(10)]
    assert six(metric.push_counters()) == ((100, 100, 100), (10, 10, 10))
    b1 = metric.allocate(TEN)
    assert six(metric.push_counters()) == ((10, 10, 10), (1, 1, 1))
    metric.deallocate(b1, TEN)
    assert six(metric.pop_counters()) == ((-10, 0, 0), (-1, 0, 0))
    b1 = metric.allocate(TEN)
    assert six(metric.push_counters()) == ((10, 10, 20), (1, 1, 2))
    b2 = metric.allocate(TEN)
    assert six(metric.pop_counters()) == ((10, 10, 10), (1, 1, 1))
    assert six(metric.pop_counters()) == ((20, 20, 30), (2, 2, 3))
    metric.deallocate(b1, TEN)
    metric.deallocate(b2, TEN)
    assert six(metric.counters) == ((100, 120, 130), (10, 12, 13))
    for block in ten:
        metric.deallocate(block, TEN)
    with pytest.raises(IndexError):
        metric.pop_counters()
    assert (metric.live_bytes, metric.live_blocks) == (0, 0)


def test_one_metric_on_another_counts_its_own_part() -> None:
    layout = Layout(1000, 1)
    outer = MetricAllocator(PageAlloc())
    blocks = [outer.allocate(layout) for _ in range(10)]
    for block in blocks[::2]:
        outer.deallocate(block, layout)
    assert six(outer.counters) == ((5000, 10000, 10000), (5, 10, 10))
    inner = MetricAllocator(outer)
    more = [inner.allocate(layout) for _ in range(2)]
    assert six(inner.counters) == ((2000, 2000, 2000), (2, 2, 2))
    assert six(outer.counters) == ((7000, 10000, 12000), (7, 10, 12))
    for block in more:
        inner.deallocate(block, layout)
    for block in blocks[1::2]:
        outer.deallocate(block, layout)
    assert six(inner.counters) == ((0, 2000, 2000), (0, 2, 2))
    assert six(outer.counters) == ((0, 10000, 12000), (0, 10, 12))


def test_a_shrink_is_a_resize_and_no_free() -> None:
    metric = MetricAllocator(PageAlloc())
    block = metric.allocate(Layout(100, 1))
    block = metric.shrink(block, Layout(100, 1), Layout(40, 1))
    assert six(metric.counters) == ((40, 100, 100), (1, 1, 1))
    metric.deallocate(block, Layout(40, 1))
    counters = metric.counters
    assert six(counters) == ((0, 100, 100), (0, 1, 1))
    assert (counters.frees, counters.resizes) == (1, 1)


def test_a_grow_counts_the_growth_in_place_or_not() -> None:
    for parent in (BumpAlloc(PageAlloc()), Arena(PageAlloc()), PageAlloc(), Instrumented()):
        metric = MetricAllocator(parent)
        block = metric.allocate(Layout(4, 1))
        neighbour = metric.allocate(Layout(1, 1))
        block = metric.grow(block, Layout(4, 1), Layout(7, 1))
        assert six(metric.counters) == ((8, 8, 8), (2, 2, 2)), parent
        assert (metric.counters.resizes, metric.counters.frees) == (1, 0)
        metric.deallocate(block, Layout(7, 1))
        metric.deallocate(neighbour, Layout(1, 1))
        assert six(metric.counters) == ((0, 8, 8), (0, 2, 2))


def test_every_way_to_allocate_counts_one() -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    metric.allocate(TEN)
    metric.allocate_zeroed(TEN)
    metric.allocate(Layout(0, 16))
    assert metric.counters.total_blocks == 3
    buffer: ByteBuffer[MetricAllocator[Arena[PageAlloc]]] = ByteBuffer(metric)
    for _time in range(2):
        buffer.write(b"")
    assert metric.counters.total_blocks == 3
    buffer.write(b"x")
    assert metric.counters.total_blocks == 4


def test_failures_are_counted_and_change_nothing_else() -> None:
    failures = Failures()
    metric = MetricAllocator(failures.allocator())
    block = metric.allocate(TEN)
    before = six(metric.counters)
    failures.refuse(None)
    attempts: tuple[Callable[[], Block], ...] = (
        lambda: metric.allocate(TEN),
        lambda: metric.allocate_zeroed(TEN),
        lambda: metric.grow(block, TEN, Layout(20, 1)),
        lambda: metric.grow_zeroed(block, TEN, Layout(20, 1)),
        lambda: metric.shrink(block, TEN, Layout(5, 1)),
    )
    for attempt in attempts:
        with pytest.raises(MemoryError):
            attempt()
    assert six(metric.counters) == before
    assert metric.counters.failures == 5


def test_a_block_from_elsewhere_cannot_make_the_counts_negative() -> None:
    pages = PageAlloc()
    metric = MetricAllocator(pages)
    foreign = pages.allocate(TEN)
    with pytest.raises(MisuseError):
        metric.deallocate(foreign, TEN)
    assert six(metric.counters) == ((0, 0, 0), (0, 0, 0))
    assert not foreign.released


def test_zero_sizes_count_as_blocks_of_no_bytes_even_at_one_address() -> None:
    metric = MetricAllocator(Instrumented())
    blocks = [metric.allocate(Layout(0, 1)) for _ in range(3)]
    assert len({block.address for block in blocks}) == 1
    seen = [metric.live_blocks]
    for block in blocks:
        metric.deallocate(block, Layout(0, 1))
        seen.append(metric.live_blocks)
    assert seen == [3, 2, 1, 0]
    assert metric.live_bytes == 0


def test_it_hands_out_exactly_what_was_asked_for() -> None:
    metric = MetricAllocator(PageAlloc())
    block = metric.allocate(TEN)
    assert block.size == 10
    block = metric.grow(block, TEN, Layout(5000, 1))
    assert block.size == 5000
    assert metric.shrink(block, Layout(5000, 1), Layout(1, 1)).size == 1


def test_the_histogram_counts_by_the_next_power_of_two() -> None:
    metric = MetricAllocator(PageAlloc())
    for size in (0, 1, 2, 3, 4, 5, 8, 9, 4096, 4097):
        metric.allocate(Layout(size, 1))
    assert metric.histogram == {0: 1, 1: 1, 2: 1, 4: 2, 8: 2, 16: 1, 4096: 1, 8192: 1}


def test_what_a_scope_or_a_reset_drops_counts_as_freed() -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    metric.allocate(TEN)
    with metric.scope():
        metric.allocate(Layout(100, 1))
        metric.deallocate(metric.allocate(TEN), TEN)
        assert metric.live_bytes == 110
    assert six(metric.counters) == ((10, 120, 120), (1, 3, 3))
    assert metric.counters.frees == 2
    metric.reset()
    assert six(metric.counters)[0] == (0, 120, 120)
    assert metric.counters.frees == 3


@pytest.mark.parametrize("parent", [Arena(PageAlloc()), BumpAlloc(PageAlloc()), StackAlloc(bytearray(1024))])
def test_an_older_block_freed_in_a_scope_differs_from_a_newer_at_its_address(parent: object) -> None:
    metric: MetricAllocator[object] = MetricAllocator(parent)  # type: ignore[type-var]
    older = metric.allocate(Layout(0, 1))
    with metric.scope():
        newer = metric.allocate(Layout(0, 1))
        assert older.address == newer.address
        filled = metric.allocate(Layout(8, 1))
        metric.deallocate(older, Layout(0, 1))
        metric.deallocate(filled, Layout(8, 1))
    assert (metric.live_blocks, metric.live_bytes) == (0, 0)
    assert metric.counters.frees == 3


def test_a_metric_refuses_what_its_parent_cannot_do() -> None:
    metric = MetricAllocator(PageAlloc())
    for attempt in (metric.checkpoint, metric.reset):
        with pytest.raises(MisuseError):
            attempt()
    block: Block = MetricAllocator(Arena(PageAlloc())).allocate(TEN)
    with pytest.raises(MisuseError):
        MetricAllocator(Arena(PageAlloc())).protect(block, "r")
