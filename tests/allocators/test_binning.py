from __future__ import annotations

from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    BinningAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    StackAlloc,
    reset,
)
from allocators.testing import Instrumented


def metered() -> tuple[dict[int, MetricAllocator[Any]], BinningAllocator[Any]]:
    """Bins of 10, 100 and 1000 bytes, and all else, each counted; the last under 0."""
    bins = {size: MetricAllocator(PageAlloc()) for size in (10, 100, 1000)}
    binning = BinningAllocator(MetricAllocator(PageAlloc()), bins=bins)
    return {**bins, 0: binning.parent}, binning


def live(bins: dict[int, MetricAllocator[Any]]) -> dict[int, int]:
    """Live bytes of those that have any."""
    return {size: metric.live_bytes for size, metric in bins.items() if metric.live_bytes}


@pytest.mark.parametrize(
    ("size", "align", "bin"),
    [
        (1, 1, 10),
        (10, 1, 10),
        (11, 1, 100),
        (100, 1, 100),
        (101, 1, 1000),
        (1000, 1, 1000),
        (1001, 1, 0),
        (1, 16, 100),
        (1, 4096, 0),
    ],
)
def test_a_request_goes_to_the_smallest_bin_that_is_as_large(size: int, align: int, bin: int) -> None:
    bins, binning = metered()
    layout = Layout(size, align)
    block = binning.allocate(layout)
    assert live(bins) == {bin: size}
    zeroed = binning.allocate_zeroed(layout)
    assert live(bins) == {bin: 2 * size}
    assert block.size == zeroed.size == size
    binning.deallocate(block, layout)
    binning.deallocate(zeroed, layout)
    assert live(bins) == {}


def test_resizing_within_a_bin_is_up_to_it_and_across_bins_the_block_moves() -> None:
    bins, binning = metered()
    block = binning.allocate(Layout(20, 1))
    block.view[:] = bytes(range(20))
    block = binning.grow(block, Layout(20, 1), Layout(90, 1))
    assert (live(bins), bins[100].counters.resizes) == ({100: 90}, 1)
    block = binning.grow_zeroed(block, Layout(90, 1), Layout(2000, 1))
    assert live(bins) == {0: 2000}
    assert bytes(block.view[:20]) == bytes(range(20))
    assert bytes(block.view[90:]) == bytes(1910)
    block = binning.grow_zeroed(block, Layout(2000, 1), Layout(3000, 1))
    assert (live(bins), bins[0].counters.resizes) == ({0: 3000}, 1)
    block = binning.shrink(block, Layout(3000, 1), Layout(15, 1))
    assert (live(bins), bytes(block.view)) == ({100: 15}, bytes(range(15)))
    block = binning.shrink(block, Layout(15, 1), Layout(12, 1))
    assert (live(bins), bins[100].counters.resizes) == ({100: 12}, 2)
    block = binning.shrink(block, Layout(12, 1), Layout(0, 1))
    assert live(bins) == {}
    block = binning.grow(block, Layout(0, 1), Layout(5, 1))
    assert live(bins) == {10: 5}
    binning.deallocate(block, Layout(5, 1))


def test_its_bins_are_pools_of_powers_of_two_unless_they_are_given() -> None:
    binning = BinningAllocator(PageAlloc(), smallest=8, largest=64)
    assert list(binning.bins) == [8, 16, 32, 64]
    for size, bin in binning.bins.items():
        assert isinstance(bin, PoolAllocator)
        assert (bin.slot_size, bin.slot_align) == (size, size)
    assert list(BinningAllocator(PageAlloc()).bins) == [16, 32, 64, 128, 256, 512, 1024]


def test_small_blocks_are_reused_in_any_order_over_an_arena_that_could_not() -> None:
    arena = Arena(PageAlloc())
    binning = BinningAllocator(arena)
    layout = Layout(40, 8)
    first = [binning.allocate(layout) for _ in range(10)]
    used = arena.used_bytes
    for block in first:
        binning.deallocate(block, layout)
    for _ in range(10):
        binning.allocate(layout)
    assert arena.used_bytes == used


def test_a_full_bin_refuses() -> None:
    binning = BinningAllocator(PageAlloc(), bins={64: LimitAllocator(PageAlloc(), 100)})
    binning.allocate(Layout(60, 1))
    with pytest.raises(AllocError):
        binning.allocate(Layout(60, 1))
    binning.allocate(Layout(65, 1))


@pytest.mark.parametrize(
    "options", [{"smallest": 0}, {"smallest": 12}, {"largest": 100}, {"smallest": 64, "largest": 32}], ids=str
)
def test_bins_that_are_no_powers_of_two_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(MisuseError):
        BinningAllocator(PageAlloc(), **options)
    with pytest.raises(MisuseError):
        BinningAllocator(PageAlloc(), bins={0: PageAlloc()})


def test_a_reset_drops_all_and_the_pools_start_anew() -> None:
    parent = Instrumented()
    arena = Arena(parent)
    binning = BinningAllocator(arena)
    for _ in range(3):
        blocks = [binning.allocate(Layout(size, 8)) for size in (10, 100, 1000, 5000) for _ in range(5)]
        binning.reset(reset.ALL)
        assert all(block.released for block in blocks)
        assert arena.used_bytes == 0
    binning.close()
    assert parent.live_blocks == 0


def test_a_scope_takes_all_bins_back() -> None:
    parent = Instrumented()
    binning = BinningAllocator(Arena(parent))
    sizes = (10, 100, 1000, 5000)
    kept = [binning.allocate(Layout(size, 8)) for size in sizes]
    with binning.scope():
        inner = [binning.allocate(Layout(size, 8)) for size in sizes for _ in range(50)]
        binning.deallocate(kept[0], Layout(10, 8))
    assert all(block.released for block in inner)
    assert [block.released for block in kept] == [True, False, False, False]
    for block, size in zip(kept[1:], sizes[1:], strict=True):
        binning.deallocate(block, Layout(size, 8))
    binning.close()
    assert parent.live_blocks == 0


def test_a_bin_without_checkpoints_refuses_one_and_leaves_none_open() -> None:
    stack = StackAlloc(bytearray(1000))
    metric = MetricAllocator(Arena(PageAlloc()))
    binning = BinningAllocator(PageAlloc(), bins={10: stack, 100: metric})
    block = binning.allocate(Layout(50, 1))
    with pytest.raises(MisuseError):
        binning.checkpoint()
    grown = binning.grow(block, Layout(50, 1), Layout(60, 1))
    assert metric.live_bytes == 60
    binning.deallocate(grown, Layout(60, 1))
    binning.close()
