"""Public bug reports against other allocators, each as a test of ours.

The names in parentheses say where the bug was: bumpalo, Zig, oxc, bump-scope, RMM, Odin, zprof, PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    BumpAlloc,
    Layout,
    LayoutError,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    Region,
    StackAlloc,
)
from allocators.collections import Vec
from allocators.testing import Instrumented
from tests.support.allocator_factories import FIVE, OVER_A_PARENT, each

Make = Callable[[], Any]


@each(FIVE)
def test_growing_copies_the_old_size_and_not_the_new(make: Make) -> None:
    """bumpalo #69: a grown block began with its neighbour's bytes."""
    allocator = make()
    first = allocator.allocate(Layout(8, 1))
    first.view[:8] = b"\xaa" * 8
    second = allocator.allocate(Layout(8, 1))
    second.view[:8] = b"\xbb" * 8
    grown = allocator.grow_zeroed(first, Layout(8, 1), Layout(32, 1))
    assert bytes(grown.view[:32]) == b"\xaa" * 8 + bytes(24)
    assert bytes(second.view[:8]) == b"\xbb" * 8


def test_growing_at_the_very_edge_of_the_memory_reads_nothing_beyond() -> None:
    """bumpalo #69: the copy ran over the end of the buffer."""
    whole = Region.of(bytearray(272))
    edge = whole.part(whole.address + (-whole.address % 16), 256)
    for allocator in (Arena.over(edge, PageAlloc()), StackAlloc(edge)):
        layout = Layout(100, 1)
        block = allocator.allocate(layout)
        block.view[:] = b"e" * 100
        with pytest.raises(AllocError):
            allocator.grow(block, layout, Layout(1000, 1))
        assert bytes(block.view) == b"e" * 100


@pytest.mark.parametrize("min_align", [1, 2, 4, 8, 16])
def test_every_shrink_up_to_40_bytes_keeps_the_prefix(min_align: int) -> None:
    """bumpalo PR #232: the bytes were moved over themselves."""
    text = bytes(range(1, 41))
    with Arena(PageAlloc(), min_align=min_align) as arena:
        for old in range(41):
            for new in range(old + 1):
                block = arena.allocate(Layout(old, 1))
                block.view[:] = text[:old]
                block = arena.shrink(block, Layout(old, 1), Layout(new, 1))
                assert bytes(block.view) == text[:new], (old, new)
                arena.reset()


@each(FIVE)
def test_shrinking_five_to_three_keeps_three(make: Make) -> None:
    """bumpalo PR #232: half of five was rounded down."""
    allocator = make()
    block = allocator.allocate(Layout(5, 1))
    block.view[:5] = b"abcde"
    assert bytes(allocator.shrink(block, Layout(5, 1), Layout(3, 1)).view[:3]) == b"abc"


@each(OVER_A_PARENT)
def test_memory_goes_back_with_the_layout_that_it_came_with(make: Callable[[Any], Any]) -> None:
    """bumpalo #19: chunks were freed with the default layout."""
    parent = Instrumented()
    allocator = make(parent)
    blocks = [(allocator.allocate(layout), layout) for layout in (Layout(1024, 32), Layout(1, 1), Layout(70_000, 64))]
    for block, layout in reversed(blocks):
        allocator.deallocate(block, layout)
    allocator.close()
    given = [(call.address, call.new) for call in parent.calls if call.new is not None]
    returned = [(call.address, call.old) for call in parent.calls if call.method == "deallocate"]
    assert sorted(given, key=repr) == sorted(returned, key=repr)
    assert parent.live_blocks == 0


@pytest.mark.parametrize("make", [Arena, BumpAlloc])
def test_what_a_reset_keeps_is_counted_as_before(make: Callable[[Any], Any]) -> None:
    """bumpalo #274: after a reset the footer was counted too."""
    allocator = make(PageAlloc())
    allocator.allocate(Layout(8, 8))
    before = allocator.allocated_bytes
    allocator.reset()
    assert allocator.allocated_bytes == before


@each(FIVE)
def test_a_larger_alignment_is_honoured_by_grow_and_shrink(make: Make) -> None:
    """bumpalo #143, #144, Zig #2312: the block stayed where it was."""
    for size, new_size in ((16, 32), (16, 8), (16, 16)):
        allocator = make()
        allocator.allocate(Layout(1, 1))
        block = allocator.allocate(Layout(16, 1))
        block.view[:16] = bytes(range(16))
        resize = allocator.grow if new_size >= size else allocator.shrink
        resized = resize(block, Layout(16, 1), Layout(new_size, 64))
        assert resized.address % 64 == 0
        kept = min(size, new_size)
        assert bytes(resized.view[:kept]) == bytes(range(kept))


@each(FIVE)
def test_growing_from_nothing_gives_the_new_size(make: Make) -> None:
    """bumpalo #323: the old layout of zero bytes was allocated."""
    allocator = make()
    block = allocator.allocate(Layout(0, 1))
    block = allocator.grow(block, Layout(0, 1), Layout(64, 1))
    block.view[:64] = b"a" * 64
    neighbour = allocator.allocate(Layout(64, 1))
    neighbour.view[:64] = b"b" * 64
    assert bytes(block.view[:64]) == b"a" * 64


def test_growing_from_nothing_uses_just_the_new_size() -> None:
    """bumpalo #323."""
    arena = Arena(PageAlloc())
    block = arena.allocate(Layout(0, 1))
    arena.grow(block, Layout(0, 1), Layout(64, 1))
    assert arena.used_bytes == 64


def test_room_is_reserved_behind_the_length_and_not_behind_the_capacity() -> None:
    """bumpalo #330, #335."""
    metric = MetricAllocator(PageAlloc())
    vec: Vec[MetricAllocator[PageAlloc]] = Vec(metric, "q", 10)
    vec.extend(range(5))
    vec.reserve(5)
    assert (vec.capacity, metric.counters.resizes) == (10, 0)
    vec.reserve(6)
    assert vec.capacity >= 11


@each(FIVE)
def test_sizes_near_the_end_of_the_address_space_are_refused(make: Make) -> None:
    """oxc #21745, Zig #25371: address and size overflowed when they were added."""
    allocator = make()
    block = allocator.allocate(Layout(16, 8))
    block.view[:16] = b"0123456789abcdef"
    aligns = [1 << exponent for exponent in range(13)]
    for below in range(129):
        for align in aligns:
            size = sys.maxsize - below
            if size > (1 << 63) - align:
                with pytest.raises(LayoutError):
                    Layout(size, align)
                continue
            with pytest.raises(AllocError):
                allocator.allocate(Layout(size, align))
    for resize in (allocator.grow, allocator.grow_zeroed):
        with pytest.raises(AllocError):
            resize(block, Layout(16, 8), Layout(sys.maxsize - 7, 8))
    assert bytes(block.view[:16]) == b"0123456789abcdef"
    other = allocator.allocate(Layout(8, 8))
    assert other.address % 8 == 0


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 1, 1 << 64, 1 << 100, -1, -(1 << 63), -(1 << 64)])
@pytest.mark.parametrize("align", [1, 8, 4096])
def test_no_allocator_ever_sees_a_size_that_is_none(size: int, align: int) -> None:
    with pytest.raises(LayoutError):
        Layout(size, align)


@pytest.mark.parametrize("align", [0, -1, -8, 3, 6, 255, 768, (1 << 62) + 1, 1 << 63, 1 << 64])
def test_no_allocator_ever_sees_an_alignment_that_is_none(align: int) -> None:
    for size in (0, 8):
        with pytest.raises(LayoutError):
            Layout(size, align)


def test_a_layout_takes_ints_only() -> None:
    for size, align in ((1.5, 8), ("8", 8), (8, None)):
        with pytest.raises(TypeError):
            Layout(size, align)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [(1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1])
def test_sizes_around_31_and_32_bits_are_exact(size: int) -> None:
    """Pages cost nothing until they are touched; where there is no room for them, nothing else must happen."""
    pages = PageAlloc()
    for allocator in (pages, Arena(pages), BumpAlloc(pages), MetricAllocator(pages)):
        try:
            block = allocator.allocate(Layout(size, 8))
        except AllocError:
            continue
        assert block.size >= size
        block.view[size - 1] = 7
        assert block.view[size - 1] == 7
        allocator.deallocate(block, Layout(size, 8))
        allocator.close()
    assert pages.allocated_bytes == 0
    with pytest.raises(AllocError):
        StackAlloc(bytearray(64)).allocate(Layout(size, 8))


@each(FIVE)
def test_a_fresh_allocator_serves_nothing_aligned(make: Make) -> None:
    """oxc #18186: reading nothing at the dangling address of an empty arena crashed."""
    allocator = make()
    for align in (1, 16, 4096):
        block = allocator.allocate(Layout(0, align))
        assert block.address > 0
        assert block.address % align == 0
        assert len(block.view[:0]) == 0
        block = allocator.grow(block, Layout(0, align), Layout(8, align))
        block.view[:8] = bytes(8)
        allocator.deallocate(block, Layout(8, align))
        allocator.deallocate(allocator.allocate(Layout(0, align)), Layout(0, align))


def test_nothing_is_a_block_of_no_bytes_to_a_metric() -> None:
    """oxc #18186."""
    metric = MetricAllocator(Arena(PageAlloc()))
    metric.allocate(Layout(0, 16))
    assert (metric.live_blocks, metric.live_bytes) == (1, 0)


def test_freeing_keeps_the_minimum_alignment() -> None:
    """bump-scope #92: the cursor came to stand at an odd address."""
    arena = Arena(PageAlloc(), min_align=8)
    three = arena.allocate(Layout(3, 1))
    three.view[:] = b"abc"
    arena.deallocate(arena.allocate(Layout(5, 1)), Layout(5, 1))
    assert arena.cursor % 8 == 0
    eight = arena.allocate(Layout(8, 8))
    eight.view[:] = b"x" * 8
    assert bytes(three.view) == b"abc"


@pytest.mark.parametrize("make", [Arena, BumpAlloc])
def test_an_empty_allocator_can_be_reset_and_revokes_its_empty_blocks(make: Callable[[Any], Any]) -> None:
    """Zig #16009: retaining an empty arena failed."""
    parent = Instrumented()
    allocator = make(parent)
    block = allocator.allocate(Layout(0, 1))
    allocator.reset()
    assert block.released
    assert parent.failures.requests == 0
    allocator.allocate(Layout(8, 8))


def test_growing_the_newest_block_counts_the_difference() -> None:
    """Odin #4898: total_used was not updated, and the peak charged the alignment."""
    bump = BumpAlloc(PageAlloc())
    metric = MetricAllocator(bump)
    block = metric.allocate(Layout(4, 8))
    block = metric.grow(block, Layout(4, 8), Layout(7, 8))
    assert (bump.used_bytes, metric.counters.peak_bytes) == (7, 7)
    metric.deallocate(block, Layout(7, 8))
    assert (bump.used_bytes, metric.counters.current_bytes, metric.counters.peak_bytes) == (0, 0, 7)


def test_a_block_freed_through_another_allocator_is_refused() -> None:
    """PyTorch #146431: a block was freed by the free function of another pool."""
    first, second = PageAlloc(), PageAlloc()
    block = first.allocate(Layout(8, 8))
    with pytest.raises(MisuseError):
        second.deallocate(block, Layout(8, 8))
    with pytest.raises(MisuseError):
        MetricAllocator(second).deallocate(block, Layout(8, 8))
    assert not block.released
    first.deallocate(block, Layout(8, 8))


@each(FIVE)
def test_growing_and_shrinking_the_wrong_way_is_refused(make: Make) -> None:
    allocator = make()
    block = allocator.allocate(Layout(16, 8))
    with pytest.raises(MisuseError):
        allocator.grow(block, Layout(16, 8), Layout(8, 8))
    with pytest.raises(MisuseError):
        allocator.shrink(block, Layout(16, 8), Layout(17, 8))
    beyond = Layout(block.size + 1, 8)
    with pytest.raises(MisuseError):
        allocator.grow(block, beyond, Layout(block.size + 2, 8))
    with pytest.raises(MisuseError):
        allocator.shrink(block, beyond, Layout(1, 8))
    assert not block.released
