from __future__ import annotations

import ctypes
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    BaseAllocator,
    Block,
    CorruptionError,
    DebugAllocator,
    DoubleFreeError,
    Layout,
    LeakError,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
)
from allocators.adaptors.debug import FREED, UNDEFINED
from allocators.testing import Failures, Instrumented


def write(address: int, *values: int) -> None:
    """Write bytes where a wild pointer points."""
    ctypes.memmove(address, bytes(values), len(values))


def allocate_here(debug: DebugAllocator[Any], layout: Layout) -> Block:
    return debug.allocate(layout)


def free_here(debug: DebugAllocator[Any], block: Block, layout: Layout) -> None:
    debug.deallocate(block, layout)


def test_a_double_free_names_both_the_allocation_and_the_first_free() -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(24, 8)
    block = allocate_here(debug, layout)
    free_here(debug, block, layout)
    with pytest.raises(DoubleFreeError) as caught:
        debug.deallocate(block, layout)
    message = str(caught.value)
    assert f"24 bytes aligned to 8 at {block.address:#x}" in message
    allocated, freed = message.split("freed at\n")
    assert "in allocate_here" in allocated
    assert "in free_here" in freed
    assert __file__ in freed
    debug.close()


@pytest.mark.parametrize("method", ["grow", "grow_zeroed", "shrink"])
def test_resizing_a_freed_block_is_a_use_after_free(method: str) -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(24, 8)
    block = debug.allocate(layout)
    debug.deallocate(block, layout)
    with pytest.raises(DoubleFreeError, match="after it was freed"):
        getattr(debug, method)(block, layout, layout)
    debug.close()


def test_a_copy_of_the_block_is_caught_too() -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(24, 8)
    block = debug.allocate(layout)
    copy = Block(block.address, block.size, block.region)
    debug.deallocate(block, layout)
    assert copy.released
    with pytest.raises(DoubleFreeError):
        debug.deallocate(copy, layout)
    debug.close()


def test_a_double_free_is_caught_after_the_block_left_the_quarantine() -> None:
    debug = DebugAllocator(PageAlloc(), quarantine=0)
    layout = Layout(24, 8)
    block = debug.allocate(layout)
    debug.deallocate(block, layout)
    debug.allocate(layout)
    with pytest.raises(DoubleFreeError, match="no record of it"):
        debug.deallocate(block, layout)
    assert debug.live_blocks == 1


def test_a_stale_block_does_not_free_what_lives_at_its_address_now() -> None:
    debug = DebugAllocator(Arena(PageAlloc()), quarantine=0)
    layout = Layout(24, 8)
    stale = debug.allocate(layout)
    debug.deallocate(stale, layout)
    fresh = debug.allocate(layout)
    assert fresh.address == stale.address
    with pytest.raises(DoubleFreeError):
        debug.deallocate(stale, layout)
    assert not fresh.released
    debug.deallocate(fresh, layout)
    debug.close()


@pytest.mark.parametrize(("size", "align"), [(8, 8), (16, 4), (17, 8), (0, 8), (16, 16)])
def test_a_free_with_the_wrong_layout_names_both_and_changes_nothing(size: int, align: int) -> None:
    """Zig #7573: a free of half the size went unnoticed."""
    debug = DebugAllocator(PageAlloc())
    layout = Layout(16, 8)
    block = allocate_here(debug, layout)
    with pytest.raises(MisuseError) as caught:
        debug.deallocate(block, Layout(size, align))
    message = str(caught.value)
    assert f"{size} bytes aligned to {align}" in message
    assert "16 bytes aligned to 8" in message
    assert "in allocate_here" in message
    assert debug.live_blocks == 1
    block.view[:] = b"still mine, yes!"
    debug.deallocate(block, layout)
    debug.close()


@pytest.mark.parametrize("method", ["grow", "grow_zeroed", "shrink"])
def test_a_resize_with_the_wrong_layout_changes_nothing(method: str) -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(16, 8)
    block = debug.allocate(layout)
    for wrong in (Layout(8, 8), Layout(16, 4)):
        with pytest.raises(MisuseError, match="16 bytes aligned to 8"):
            getattr(debug, method)(block, wrong, wrong)
    assert not block.released
    debug.deallocate(block, layout)
    debug.close()


def test_a_block_of_another_allocator_and_an_address_inside_a_block_are_refused() -> None:
    parent = PageAlloc()
    debug = DebugAllocator(parent)
    layout = Layout(16, 8)
    foreign = parent.allocate(layout)
    block = debug.allocate(layout)
    with pytest.raises(MisuseError, match="was not allocated by"):
        debug.deallocate(foreign, layout)
    inside = Block(block.address + 8, 8, block.region)
    with pytest.raises(MisuseError, match="lies inside block 0, 16 bytes"):
        debug.deallocate(inside, Layout(8, 8))
    forged = Block(block.address, 16, foreign.region)
    with pytest.raises(MisuseError, match="at its address now lives block 0"):
        debug.deallocate(forged, layout)
    debug.deallocate(block, layout)
    debug.close()


@pytest.mark.parametrize("size", [1, 8, 24, 4096])
@pytest.mark.parametrize("distance", [1, 7, 16])
def test_a_byte_behind_a_block_is_found_when_it_is_freed(size: int, distance: int) -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(size, 8)
    block = allocate_here(debug, layout)
    write(block.address + size - 1 + distance, 0x42)
    with pytest.raises(CorruptionError) as caught:
        debug.deallocate(block, layout)
    message = str(caught.value)
    assert f"byte 0x42 was written {distance} past the end" in message
    assert f"{size} bytes aligned to 8 at {block.address:#x}" in message
    assert "in allocate_here" in message
    assert not block.released


@pytest.mark.parametrize("align", [1, 8, 64, 8192])
@pytest.mark.parametrize("distance", [1, 9, 16])
def test_a_byte_before_a_block_is_found_when_it_is_freed(align: int, distance: int) -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(24, align)
    block = debug.allocate(layout)
    assert block.address % align == 0
    write(block.address - distance, 0x42)
    with pytest.raises(CorruptionError, match=f"byte 0x42 was written {distance} before the start"):
        debug.deallocate(block, layout)


def test_stray_bytes_are_found_by_growing_shrinking_and_checking() -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(24, 8)
    block = debug.allocate(layout)
    debug.check()
    write(block.address + 24, 0)
    for use in (
        lambda: debug.grow(block, layout, Layout(48, 8)),
        lambda: debug.shrink(block, layout, Layout(8, 8)),
        debug.check,
    ):
        with pytest.raises(CorruptionError):
            use()
    assert debug.live_blocks == 1


def test_a_write_after_free_is_found_by_checking_and_by_closing() -> None:
    debug = DebugAllocator(PageAlloc())
    layout = Layout(24, 8)
    block = allocate_here(debug, layout)
    view = block.view
    free_here(debug, block, layout)
    assert bytes(view) == bytes([FREED]) * 24
    debug.check()
    view[5] = 0x42
    with pytest.raises(CorruptionError) as caught:
        debug.check()
    message = str(caught.value)
    assert "byte 0x42 was written at offset 5 after the free" in message
    assert "in allocate_here" in message
    assert "in free_here" in message
    with pytest.raises(CorruptionError, match="offset 5"):
        debug.close()
    debug.close()


def test_a_write_after_free_is_found_when_the_block_leaves_the_quarantine() -> None:
    parent = Instrumented()
    debug = DebugAllocator(parent, quarantine=4096)
    layout = Layout(1000, 8)
    blocks = [debug.allocate(layout) for _ in range(4)]
    view = blocks[0].view
    debug.deallocate(blocks[0], layout)
    view[999] = 0
    debug.deallocate(blocks[1], layout)
    debug.deallocate(blocks[2], layout)
    live = debug.live_blocks
    with pytest.raises(CorruptionError, match="offset 999 after the free of block 0"):
        debug.deallocate(blocks[3], layout)
    # The free that found it has not happened, and the spoilt block has left.
    assert debug.live_blocks == live
    debug.deallocate(blocks[3], layout)
    debug.close()
    assert parent.live_blocks == 0


def test_a_resize_that_finds_a_write_after_free_has_not_happened() -> None:
    debug = DebugAllocator(Instrumented(), quarantine=2500)
    layout = Layout(1000, 8)
    first = debug.allocate(layout)
    second = debug.allocate(layout)
    third = debug.allocate(layout)
    view = first.view
    debug.deallocate(first, layout)
    view[0] = 1
    debug.deallocate(second, layout)
    with pytest.raises(CorruptionError):
        debug.grow(third, layout, Layout(1001, 8))
    assert not third.released
    assert debug.live_blocks == 1
    debug.grow(third, layout, Layout(1001, 8))
    assert third.released


def test_the_quarantine_is_bounded_and_gives_back_what_it_was_given() -> None:
    parent = MetricAllocator(Instrumented())
    debug = DebugAllocator(parent, quarantine=10_000)
    layout = Layout(1000, 64)
    for _ in range(50):
        debug.deallocate(debug.allocate(layout), layout)
        assert parent.live_bytes <= 10_000
    large = Layout(20_000, 64)
    debug.deallocate(debug.allocate(large), large)
    assert parent.live_bytes <= 10_000
    for _ in range(1000):
        debug.deallocate(debug.allocate(Layout(0, 1)), Layout(0, 1))
    assert parent.live_blocks <= 10_000 // 256 + 1
    debug.close()
    assert parent.live_blocks == 0


def test_an_address_is_not_handed_out_again_while_it_is_in_quarantine() -> None:
    debug = DebugAllocator(Arena(PageAlloc()))
    layout = Layout(24, 8)
    addresses = set()
    for _ in range(100):
        block = debug.allocate(layout)
        addresses.add(block.address)
        debug.deallocate(block, layout)
    assert len(addresses) == 100


def test_resizing_always_moves_and_the_old_place_is_watched() -> None:
    debug = DebugAllocator(Arena(PageAlloc()))
    layout = Layout(24, 8)
    block = debug.allocate(layout)
    block.view[:] = bytes(range(24))
    view = block.view
    grown = debug.grow(block, layout, Layout(25, 8))
    assert grown.address != block.address
    assert bytes(grown.view) == bytes([*range(24), UNDEFINED])
    view[0] = 1
    with pytest.raises(CorruptionError, match="after the free"):
        debug.check()


def test_fresh_bytes_are_marked_unless_they_are_zeroed() -> None:
    debug = DebugAllocator(PageAlloc())
    assert set(debug.allocate(Layout(100_000, 8)).view) == {UNDEFINED}
    assert set(debug.allocate_zeroed(Layout(100_000, 8)).view) == {0}
    block = debug.allocate_zeroed(Layout(10, 1))
    grown = debug.grow_zeroed(block, Layout(10, 1), Layout(20, 1))
    assert set(grown.view) == {0}


def test_leaks_are_raised_with_their_stacks_after_all_memory_is_back() -> None:
    parent = Instrumented()
    debug = DebugAllocator(parent)
    kept = allocate_here(debug, Layout(100, 8))
    debug.deallocate(debug.allocate(Layout(8, 8)), Layout(8, 8))
    debug.allocate(Layout(50, 2))
    assert [record.layout.size for record in debug.leaks()] == [100, 50]
    with pytest.raises(LeakError) as caught:
        debug.close()
    message = str(caught.value)
    assert "2 blocks were never freed, 150 bytes in all" in message
    assert f"100 bytes aligned to 8 at {kept.address:#x}" in message
    assert "in allocate_here" in message
    assert parent.live_blocks == 0
    assert kept.released
    assert [record.number for record in debug.leaks()] == [0, 2]
    debug.close()


def test_leaks_can_be_read_instead_of_raised() -> None:
    debug = DebugAllocator(PageAlloc(), raise_leaks=False)
    debug.allocate(Layout(100, 8))
    debug.close()
    (leak,) = debug.leaks()
    assert leak.layout == Layout(100, 8)
    assert "in test_leaks_can_be_read_instead_of_raised" in leak.report()


def test_only_the_others_leak_after_a_whole_group_in_the_middle_was_freed() -> None:
    """Zig #22892: closing crashed after all blocks of a middle bucket had been freed."""
    debug = DebugAllocator(PageAlloc(), raise_leaks=False)
    layout = Layout(512, 8)
    groups = [[debug.allocate(layout) for _ in range(8)] for _ in range(3)]
    for block in groups[1]:
        debug.deallocate(block, layout)
    debug.close()
    assert [record.address for record in debug.leaks()] == [block.address for block in groups[0] + groups[2]]


def test_an_exception_in_the_block_is_not_hidden_by_its_leaks() -> None:
    parent = PageAlloc()

    def fail() -> None:
        with DebugAllocator(parent) as debug:
            debug.allocate(Layout(100, 8))
            raise KeyError("mine")

    with pytest.raises(KeyError) as caught:
        fail()
    assert "1 block was never freed, 100 bytes in all" in caught.value.__notes__[0]
    assert parent.live_blocks == 0
    with pytest.raises(LeakError), DebugAllocator(parent) as debug:
        debug.allocate(Layout(100, 8))


def test_corruption_and_leaks_are_reported_together() -> None:
    debug = DebugAllocator(PageAlloc())
    block = debug.allocate(Layout(100, 8))
    write(block.address - 1, 0)
    with pytest.raises(CorruptionError) as caught:
        debug.close()
    assert "1 before the start of block 0" in str(caught.value)
    assert "1 block was never freed, 100 bytes in all" in str(caught.value)


def test_what_a_scope_or_a_reset_ends_is_no_leak() -> None:
    parent = Instrumented()
    debug = DebugAllocator(Arena(parent))
    layout = Layout(100, 8)
    with debug.scope():
        debug.allocate(layout)
        freed = debug.allocate(layout)
        debug.deallocate(freed, layout)
    assert debug.leaks() == []
    debug.allocate(layout)
    debug.reset()
    assert debug.leaks() == []
    debug.check()
    debug.close()
    assert parent.live_blocks == 0


def test_a_block_from_before_a_scope_stays_in_quarantine_after_it() -> None:
    debug = DebugAllocator(Arena(PageAlloc()))
    layout = Layout(100, 8)
    old = debug.allocate(layout)
    view = old.view
    with debug.scope():
        debug.deallocate(old, layout)
        inner = debug.allocate(layout)
    with pytest.raises(DoubleFreeError, match="after it was freed"):
        debug.deallocate(old, layout)
    with pytest.raises(DoubleFreeError, match="no record"):
        debug.deallocate(inner, layout)
    view[0] = 1
    with pytest.raises(CorruptionError):
        debug.check()


@pytest.mark.parametrize("end", ["scope", "reset"])
def test_stray_bytes_are_found_at_the_end_of_a_scope_and_by_a_reset(end: str) -> None:
    arena = Arena(PageAlloc())
    debug = DebugAllocator(arena)
    point = debug.checkpoint()
    block = debug.allocate(Layout(24, 8))
    write(block.address + 24, 1)
    with pytest.raises(CorruptionError, match="1 past the end of block 0"):
        debug.restore(point) if end == "scope" else debug.reset()
    assert arena.used_bytes == 0
    assert debug.live_blocks == 0
    debug.check()


def test_a_full_parent_gets_the_quarantine_back_before_a_request_fails() -> None:
    parent = LimitAllocator(PageAlloc(), 2000)
    debug = DebugAllocator(parent, canary=0)
    layout = Layout(1000, 8)
    debug.deallocate(debug.allocate(layout), layout)
    first = debug.allocate(layout)
    second = debug.allocate(layout)
    with pytest.raises(AllocError) as caught:
        debug.allocate(layout)
    assert (caught.value.size, caught.value.limit, caught.value.in_use) == (1000, 2000, 2000)
    debug.deallocate(first, layout)
    debug.deallocate(second, layout)
    debug.close()


def test_failing_to_grow_leaves_the_block_live() -> None:
    failures = Failures()
    debug = DebugAllocator(failures.allocator())
    layout = Layout(24, 8)
    block = debug.allocate(layout)
    block.view[:] = bytes(range(24))
    failures.refuse(None)
    for method in ("grow", "grow_zeroed"):
        with pytest.raises(AllocError):
            getattr(debug, method)(block, layout, Layout(48, 8))
    assert bytes(block.view) == bytes(range(24))
    failures.allow()
    debug.deallocate(block, layout)
    debug.close()


def test_the_depth_of_the_stacks_can_be_chosen() -> None:
    def depth_of(depth: int) -> int:
        debug = DebugAllocator(PageAlloc(), depth=depth, raise_leaks=False)
        debug.allocate(Layout(8, 8))
        return len(debug.leaks()[0].allocated.frames)

    assert [depth_of(depth) for depth in (0, 1, 3)] == [0, 1, 3]


def test_a_parent_of_anyones_making_gets_back_what_it_gave() -> None:
    class Simple(BaseAllocator):
        def __init__(self) -> None:
            self.pages = PageAlloc()
            self.given: list[tuple[int, Layout]] = []

        def allocate(self, layout: Layout) -> Block:
            block = self.pages.allocate(layout)
            self.given.append((block.address, layout))
            return block

        def deallocate(self, block: Block, layout: Layout) -> None:
            self.given.remove((block.address, layout))
            self.pages.deallocate(block, layout)

    parent = Simple()
    debug = DebugAllocator(parent)
    for size in (0, 1, 8, 100):
        for align in (1, 8, 64):
            debug.deallocate(debug.allocate(Layout(size, align)), Layout(size, align))
    debug.close()
    assert parent.given == []


def test_negative_options_are_refused() -> None:
    for make in (
        lambda: DebugAllocator(PageAlloc(), depth=-1),
        lambda: DebugAllocator(PageAlloc(), canary=-1),
        lambda: DebugAllocator(PageAlloc(), quarantine=-1),
    ):
        with pytest.raises(MisuseError):
            make()
