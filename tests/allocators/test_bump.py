"""BumpAlloc: the semantics of a fixed buffer and of an upward arena, in chunks of any parent."""

from __future__ import annotations

import pytest

from allocators import AllocError, BumpAlloc, Layout, LayoutError, PageAlloc, StackAlloc
from allocators.testing import Failures, Instrumented


def one_chunk(size: int) -> BumpAlloc[PageAlloc]:
    return BumpAlloc(PageAlloc(), first_chunk=size, largest_chunk=size)


def test_padding_before_a_block_does_not_come_back_with_it() -> None:
    bump = one_chunk(64)
    first = bump.allocate(Layout(1, 1))
    second = bump.allocate(Layout(8, 16))
    assert (second.address - first.address, bump.used_bytes) == (16, 24)
    bump.deallocate(second, Layout(8, 16))
    assert bump.used_bytes == 16
    bump.deallocate(first, Layout(1, 1))
    assert bump.used_bytes == 16


def test_freeing_the_oldest_first_recovers_only_the_newest() -> None:
    bump = one_chunk(16)
    used = []
    for _round in range(2):
        six = bump.allocate(Layout(6, 1))
        two = bump.allocate(Layout(2, 1))
        bump.deallocate(six, Layout(6, 1))
        bump.deallocate(two, Layout(2, 1))
        used.append(bump.used_bytes)
    assert used == [6, 12]
    assert bump.chunk_capacity == 4


def test_resizing_in_place_reaches_the_end_of_the_chunk_and_no_further() -> None:
    bump = one_chunk(64)
    older = bump.allocate(Layout(10, 1))
    newest = bump.allocate(Layout(10, 1))
    shrunk = bump.resize_in_place(older, Layout(10, 1), Layout(5, 1))
    assert shrunk is not None
    assert bump.used_bytes == 20
    assert bump.resize_in_place(shrunk, Layout(5, 1), Layout(10, 1)) is None
    grown = bump.resize_in_place(newest, Layout(10, 1), Layout(54, 1))
    assert grown is not None
    assert bump.resize_in_place(grown, Layout(54, 1), Layout(55, 1)) is None
    assert not shrunk.released
    assert not grown.released


def test_the_newest_block_grows_and_shrinks_without_moving() -> None:
    bump = BumpAlloc(PageAlloc())
    block = bump.allocate(Layout(100, 8))
    address = block.address
    for old, new in ((100, 1000), (1000, 50), (50, 60_000)):
        resize = bump.grow if new > old else bump.shrink
        block = resize(block, Layout(old, 8), Layout(new, 8))
        assert (block.address, bump.used_bytes) == (address, new)


def test_chunks_double_up_to_a_limit() -> None:
    bump = BumpAlloc(PageAlloc(), first_chunk=1024, largest_chunk=4096)
    sizes = []
    for _chunk in range(5):
        before = bump.allocated_bytes
        bump.allocate(Layout(bump.chunk_capacity + 1, 1))
        sizes.append(bump.allocated_bytes - before)
    assert sizes == [1024, 2048, 4096, 4096, 4096]


def test_the_first_chunk_is_64_kib() -> None:
    bump = BumpAlloc(PageAlloc())
    bump.allocate(Layout(1, 1))
    assert bump.allocated_bytes == 64 * 1024


def test_a_large_block_has_its_own_chunk_which_goes_when_it_is_freed() -> None:
    parent = Instrumented()
    bump = BumpAlloc(parent, first_chunk=256, largest_chunk=256)
    bump.allocate(Layout(8, 8))
    large = bump.allocate(Layout(10_000, 8))
    assert parent.live_blocks == 2
    bump.deallocate(large, Layout(10_000, 8))
    assert parent.live_blocks == 1
    assert bump.allocate(Layout(8, 8)).address % 8 == 0
    assert bump.allocated_bytes == 256


def test_a_large_block_that_has_shrunk_grows_again_inside_its_chunk() -> None:
    parent = Instrumented()
    bump = BumpAlloc(parent, first_chunk=256, largest_chunk=256)
    block = bump.allocate(Layout(1000, 8))
    block.view[:] = b"x" * 1000
    address = block.address
    block = bump.shrink(block, Layout(1000, 8), Layout(300, 8))
    assert bump.waste().dead == 700
    block = bump.grow(block, Layout(300, 8), Layout(900, 8))
    assert block.address == address
    assert bytes(block.view[:300]) == b"x" * 300
    assert bump.waste().live == 900
    block = bump.grow(block, Layout(900, 8), Layout(2000, 8))
    assert bytes(block.view[:300]) == b"x" * 300
    bump.deallocate(block, Layout(2000, 8))
    assert parent.live_blocks == 0


def test_a_large_block_grows_by_remapping_where_the_parent_can() -> None:
    pages = PageAlloc()
    bump = BumpAlloc(pages)
    block = bump.allocate(Layout(64 << 20, 8))
    block.view[:5] = b"start"
    block = bump.grow(block, Layout(64 << 20, 8), Layout(96 << 20, 8))
    assert bytes(block.view[:5]) == b"start"
    assert pages.allocated_bytes == 96 << 20
    bump.close()
    assert pages.allocated_bytes == 0


def test_a_large_block_that_cannot_grow_stays_usable() -> None:
    failures = Failures()
    bump = BumpAlloc(failures.allocator(), first_chunk=256, largest_chunk=256)
    block = bump.allocate(Layout(1000, 8))
    block.view[:] = b"x" * 1000
    failures.refuse()
    with pytest.raises(AllocError):
        bump.grow(block, Layout(1000, 8), Layout(2000, 8))
    assert bytes(block.view) == b"x" * 1000
    block = bump.grow(block, Layout(1000, 8), Layout(2000, 8))
    assert bytes(block.view[:1000]) == b"x" * 1000


def test_freeing_the_last_block_of_a_chunk_leaves_the_chunk_behind_it_alone() -> None:
    # The chunks of a bump over a stack have nothing between them.
    bump = BumpAlloc(StackAlloc(bytearray(1 << 14)), first_chunk=256, largest_chunk=256)
    last = bump.allocate(Layout(256, 16))
    block = bump.allocate(Layout(16, 16))
    assert block.address == last.address + 256
    bump.deallocate(block, Layout(16, 16))
    bump.deallocate(last, Layout(256, 16))
    fresh = bump.allocate(Layout(200, 16))
    assert fresh.address == block.address
    fresh.view[:] = b"y" * 200


def test_where_the_parent_refuses_half_as_much_is_tried() -> None:
    failures = Failures()
    bump = BumpAlloc(failures.allocator(), first_chunk=4096)
    failures.refuse(2)
    bump.allocate(Layout(100, 8))
    assert bump.allocated_bytes == 1024
    failures.refuse(None)
    for layout in (Layout(2000, 8), Layout(0, 1 << 40), Layout(1, 1 << 40)):
        with pytest.raises(AllocError):
            bump.allocate(layout)
    assert bump.allocated_bytes == 1024


@pytest.mark.parametrize(("first", "largest"), [(0, 64), (-1, 64), (64, 32), (64, (1 << 62) + 1)])
def test_chunk_sizes_that_make_no_sense_are_refused(first: int, largest: int) -> None:
    with pytest.raises(LayoutError):
        BumpAlloc(PageAlloc(), first_chunk=first, largest_chunk=largest)


def test_a_first_chunk_that_no_machine_has_shrinks_to_what_there_is() -> None:
    bump = BumpAlloc(Instrumented(), first_chunk=1 << 62, largest_chunk=1 << 62)
    bump.allocate(Layout(1 << 20, 4096))
    assert 1 << 20 <= bump.allocated_bytes <= 1 << 28


def test_a_reset_keeps_the_newest_chunk_and_no_large_block() -> None:
    parent = Instrumented()
    bump = BumpAlloc(parent, first_chunk=1024, largest_chunk=4096)
    blocks = [bump.allocate(Layout(size, 8)) for size in (1000, 1000, 10_000)]
    bump.reset()
    assert all(block.released for block in blocks)
    assert (parent.live_blocks, bump.allocated_bytes, bump.used_bytes) == (1, 2048, 0)


def test_the_waste_tells_live_from_dead_from_lost() -> None:
    bump = BumpAlloc(PageAlloc(), first_chunk=4096, largest_chunk=4096)
    blocks = [bump.allocate(Layout(size, 16)) for size in (100, 100, 1000, 3000, 10_000)]
    bump.deallocate(blocks[0], Layout(100, 16))
    waste = bump.waste()
    assert waste.live == 14_100
    assert waste.dead == 100
    assert waste.padding == 12 + 12
    assert waste.abandoned == 4096 - 1224
    assert waste.tail == 4096 - 3000
    # PageAlloc gives whole pages.
    assert waste.slack == 12_288 - 10_000
    assert waste.total == 4096 + 4096 + 12_288
