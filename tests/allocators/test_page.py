"""PageAlloc: runs of whole pages from the operating system."""

from __future__ import annotations

import ctypes
import sys

import pytest

from allocators import Access, AllocError, Block, Layout, MetricAllocator, MisuseError, PageAlloc

PAGE = PageAlloc().page_size


needs_maps = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how pages are protected")


def access(block: Block, pages: int) -> list[str]:
    """What the system lets be done with each page of a block, as `/proc/self/maps` spells it."""
    ranges = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            bounds, mode = line.split()[:2]
            start, end = bounds.split("-")
            ranges.append((int(start, 16), int(end, 16), mode[:3]))
    places = [block.address + number * PAGE for number in range(pages)]
    return [next(mode for start, end, mode in ranges if start <= place < end) for place in places]


def test_a_block_covers_whole_pages_and_is_zero() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(1, 1))
    assert (block.size, block.address % PAGE) == (PAGE, 0)
    assert not any(block.view)
    pages.deallocate(block, Layout(1, 1))
    assert (pages.allocated_bytes, pages.live_blocks) == (0, 0)


@pytest.mark.parametrize("exponent", [13, 16, 21, 24])
def test_an_alignment_beyond_a_page_is_kept_through_every_resize(exponent: int) -> None:
    pages = PageAlloc()
    align = 1 << exponent
    layout = Layout(500, align)
    block = pages.allocate(layout)
    for size in (100, 5000, 10, 20_000):
        new = Layout(size, align)
        resize = pages.grow if size >= layout.size else pages.shrink
        block = resize(block, layout, new)
        layout = new
        assert block.address % align == 0
    pages.deallocate(block, layout)
    assert pages.allocated_bytes == 0


def test_halving_a_block_of_huge_alignment_keeps_its_bytes() -> None:
    pages = PageAlloc()
    layout = Layout(2 * PAGE + 50, 1 << 20)
    block = pages.allocate(layout)
    block.view[0] = 0x12
    block.view[60] = 0x34
    block = pages.shrink(block, layout, Layout(PAGE + 25, PAGE // 2))
    assert (block.view[0], block.view[60]) == (0x12, 0x34)


def test_growing_moves_page_table_entries_and_keeps_the_bytes() -> None:
    pages = PageAlloc()
    layout = Layout(64 << 20, 8)
    block = pages.allocate(layout)
    block.view[-1] = 7
    block = pages.grow(block, layout, Layout(256 << 20, 8))
    assert block.view[(64 << 20) - 1] == 7
    assert pages.allocated_bytes == 256 << 20
    block = pages.shrink(block, Layout(256 << 20, 8), Layout(1, 8))
    assert pages.allocated_bytes == PAGE


def test_memory_does_not_vanish_under_a_view() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(10, 1))
    view = block.view
    view[0] = 9
    grown = pages.grow(block, Layout(10, 1), Layout(1 << 20, 1))
    assert (view[0], grown.view[0]) == (9, 9)
    pages.deallocate(grown, Layout(1 << 20, 1))
    assert view[0] == 9


def test_an_address_can_be_used_by_ctypes() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(16, 8))
    ctypes.c_int64.from_address(block.address).value = -5
    assert block.cast("q")[0] == -5


def test_bytes_that_a_metric_has_cut_off_are_zeroed_when_they_come_back() -> None:
    metric = MetricAllocator(PageAlloc())
    block = metric.allocate(Layout(3000, 8))
    block.view[:] = b"x" * 3000
    block = metric.shrink(block, Layout(3000, 8), Layout(100, 8))
    block = metric.grow_zeroed(block, Layout(100, 8), Layout(3000, 8))
    assert bytes(block.view) == b"x" * 100 + bytes(2900)


def test_pages_are_never_writable_and_executable_at_once() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(10, 1))
    view = block.view
    with pytest.raises(MisuseError):
        pages.protect(block, "rx")
    view[0] = 0xC3
    view.release()
    pages.protect(block, "rx")
    assert block.view.readonly
    assert block.view[0] == 0xC3
    with pytest.raises(TypeError):
        block.view[0] = 1
    pages.protect(block, "rw")
    block.view[0] = 1
    with pytest.raises(MisuseError):
        pages.protect(block, "rwx")  # type: ignore[arg-type]
    pages.protect(block, "r")
    pages.deallocate(block, Layout(10, 1))
    assert pages.allocated_bytes == 0


@needs_maps
def test_a_part_of_a_block_is_sealed_and_the_rest_stays_writable() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(4 * PAGE, 1))
    pages.protect(block, "rx", PAGE, PAGE)
    pages.protect(block, "r", 3 * PAGE)
    assert access(block, 4) == ["rw-", "r-x", "rw-", "r--"]
    assert block.view.readonly
    ctypes.c_char.from_address(block.address + 2 * PAGE).value = b"x"
    assert block.view[2 * PAGE] == ord("x")
    pages.protect(block, "rw", PAGE, PAGE)
    assert access(block, 4) == ["rw-", "rw-", "rw-", "r--"]
    assert block.view.readonly
    pages.protect(block, "rw", 2 * PAGE)
    assert not block.view.readonly
    block.view[-1] = 1
    pages.deallocate(block, Layout(4 * PAGE, 1))
    assert (pages.allocated_bytes, pages.live_blocks) == (0, 0)


@needs_maps
def test_all_of_a_block_is_protected_whatever_its_parts_were() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(3 * PAGE, 4 * PAGE))
    pages.protect(block, "rx", 0, PAGE)
    pages.protect(block, "r")
    assert access(block, 3) == ["r--"] * 3
    pages.protect(block, "rw", 0, 3 * PAGE)
    assert access(block, 3) == ["rw-"] * 3
    assert not block.view.readonly


@needs_maps
@pytest.mark.parametrize(
    ("offset", "size"),
    [
        (1, None),
        (0, 1),
        (PAGE // 2, PAGE // 2),
        (-PAGE, None),
        (0, -PAGE),
        (2 * PAGE, -PAGE),
        (0, 3 * PAGE),
        (3 * PAGE, 0),
    ],
)
def test_a_part_is_whole_pages_inside_the_block(offset: int, size: int | None) -> None:
    pages = PageAlloc()
    pages.allocate(Layout(2 * PAGE, 1))
    block = pages.allocate(Layout(2 * PAGE - 1, 1))
    with pytest.raises(MisuseError, match=f"bytes {offset} to .* are not whole pages"):
        pages.protect(block, "rx", offset, size)
    assert access(block, 2) == ["rw-", "rw-"]
    block.view[0] = 1


def test_no_page_is_sealed_under_a_view_of_another_page() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(2 * PAGE, 1))
    view = block.view[:PAGE]
    with pytest.raises(MisuseError):
        pages.protect(block, "rx", PAGE)
    view[0] = 1
    block.view[PAGE] = 2
    view.release()
    pages.protect(block, "rx", PAGE, 0)
    assert not block.view.readonly


@needs_maps
def test_a_block_of_which_a_part_is_sealed_grows_into_a_writable_one() -> None:
    pages = PageAlloc()
    layout = Layout(2 * PAGE, 1)
    block = pages.allocate(layout)
    block.view[:] = bytes([3]) * (2 * PAGE)
    pages.protect(block, "rx", 0, PAGE)
    block = pages.grow(block, layout, Layout(3 * PAGE, 1))
    assert (bytes(block.view[: 2 * PAGE]), block.view.readonly) == (bytes([3]) * (2 * PAGE), False)
    assert access(block, 3) == ["rw-"] * 3


def test_a_protected_block_grows_into_a_writable_one() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(10, 1))
    block.view[0] = 3
    pages.protect(block, "rx")
    grown = pages.grow(block, Layout(10, 1), Layout(2 * PAGE, 1))
    assert (grown.view[0], grown.view.readonly) == (3, False)


@pytest.mark.parametrize("method", ["grow", "grow_zeroed", "shrink"])
@pytest.mark.parametrize("access", ["r", "rx"])
def test_a_protected_block_that_stays_can_be_written_too(method: str, access: Access) -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(100, 1))
    block.view[:] = bytes([3]) * PAGE
    pages.protect(block, access)
    view = block.view
    size = 50 if method == "shrink" else 200
    resized = getattr(pages, method)(block, Layout(100, 1), Layout(size, 1))
    assert (block.released, resized.address, pages.live_blocks) == (True, block.address, 1)
    assert bytes(view[:50]) == bytes([3]) * 50
    resized.view[:] = bytes(PAGE)
    if method == "grow_zeroed":
        assert not any(view[100:])
    pages.deallocate(resized, Layout(size, 1))
    assert (pages.live_blocks, pages.allocated_bytes) == (0, 0)


@pytest.mark.parametrize("method", ["grow", "grow_zeroed"])
def test_a_protected_block_that_cannot_grow_stays_as_it_is(method: str) -> None:
    pages = PageAlloc()
    layout = Layout(2 * PAGE, 1)
    block = pages.allocate(layout)
    block.view[:] = bytes([3]) * (2 * PAGE)
    pages.protect(block, "r", 0, PAGE)
    with pytest.raises(AllocError):
        getattr(pages, method)(block, layout, Layout(1 << 60, 1))
    assert (block.released, block.view.readonly, block.view[-1]) == (False, True, 3)
    assert (pages.live_blocks, pages.allocated_bytes) == (1, 2 * PAGE)
    pages.deallocate(block, layout)


def test_a_block_moves_where_the_system_does_not_let_it_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(10, 1))
    block.view[0] = 3
    pages.protect(block, "r")

    def refuse(address: int, size: int, protection: int) -> None:
        raise OSError("refused")

    monkeypatch.setattr("allocators.page.protect_pages", refuse)
    grown = pages.grow(block, Layout(10, 1), Layout(20, 1))
    assert (grown.view[0], grown.view.readonly, block.released, pages.live_blocks) == (3, False, True, 1)


def test_a_layout_that_is_larger_than_the_block_is_refused() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(10, 1))
    for use in (pages.deallocate, lambda block, layout: pages.grow(block, layout, layout)):
        with pytest.raises(MisuseError):
            use(block, Layout(2 * PAGE, 1))
    assert (block.released, pages.live_blocks) == (False, 1)


def test_blocks_of_another_allocator_are_refused() -> None:
    pages = PageAlloc()
    foreign = PageAlloc().allocate(Layout(1, 1))
    for use in (pages.grow, pages.grow_zeroed):
        with pytest.raises(MisuseError):
            use(foreign, Layout(1, 1), Layout(2 * PAGE, 1))
    with pytest.raises(MisuseError):
        pages.shrink(foreign, Layout(PAGE, 1), Layout(1, 1))
    with pytest.raises(MisuseError):
        pages.deallocate(foreign, Layout(1, 1))
    assert not pages.owns(foreign)
    assert not foreign.released


def test_the_waste_is_the_rest_of_last_pages_and_what_alignment_costs() -> None:
    pages = PageAlloc()
    small = pages.allocate(Layout(10, 8))
    large = pages.allocate(Layout(PAGE + 1, 4 * PAGE))
    waste = pages.waste()
    assert waste.live == 10 + PAGE + 1
    assert waste.slack == PAGE - 10 + PAGE - 1
    assert waste.padding == 3 * PAGE
    assert waste.total == pages.allocated_bytes == 6 * PAGE
    small = pages.grow(small, Layout(10, 8), Layout(100, 8))
    assert pages.waste().live == 100 + PAGE + 1
    small = pages.grow(small, Layout(100, 8), Layout(3 * PAGE, 8))
    assert pages.waste().live == 4 * PAGE + 1
    small = pages.shrink(small, Layout(3 * PAGE, 8), Layout(7, 8))
    assert pages.waste().live == 7 + PAGE + 1
    pages.deallocate(small, Layout(7, 8))
    pages.deallocate(large, Layout(PAGE + 1, 4 * PAGE))
    assert pages.waste().total == 0


def test_closing_unmaps_what_is_live() -> None:
    with PageAlloc() as pages:
        blocks = [pages.allocate(Layout(size, 8)) for size in (1, 5000, 0)]
    assert pages.allocated_bytes == 0
    assert [block.released for block in blocks[:2]] == [True, True]


def test_what_the_system_refuses_is_an_allocation_error() -> None:
    pages = PageAlloc()
    block = pages.allocate(Layout(1, 1))
    for layout in (Layout(1 << 50, 1), Layout(1, 1 << 62), Layout((1 << 63) - 1, 1)):
        with pytest.raises(AllocError) as caught:
            pages.allocate(layout)
        assert (caught.value.size, caught.value.align, caught.value.in_use) == (layout.size, layout.align, PAGE)
        with pytest.raises(AllocError):
            pages.grow(block, Layout(1, 1), layout)
        assert not block.released
    assert pages.allocated_bytes == PAGE
