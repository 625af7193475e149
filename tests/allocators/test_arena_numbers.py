"""The arena does what oxc's does, to the byte: the numbers were taken from runs of that."""

from __future__ import annotations

import ctypes

import pytest

from allocators import AllocError, Arena, Block, Layout, LayoutError, MisuseError, PageAlloc, Region
from allocators.collections import Vec
from allocators.testing import Failures, Instrumented


def arena(**options: object) -> Arena[PageAlloc]:
    return Arena(PageAlloc(), **options)  # type: ignore[arg-type]


def allocate(arena: Arena[PageAlloc], *requests: tuple[int, int]) -> list[Block]:
    return [arena.allocate(Layout(size, align)) for size, align in requests]


def test_chunks_double_from_the_first_on() -> None:
    subject = arena()
    sizes = []
    for _chunk in range(10):
        before = subject.allocated_bytes
        subject.allocate(Layout(subject.chunk_capacity + 1, 1))
        sizes.append(subject.allocated_bytes - before)
    assert sizes == [16320, 32704, 65472, 131008, 262080, 524224, 1048512, 2097088, 4194240, 8388544]


@pytest.mark.parametrize(
    ("capacity", "allocated"),
    [
        (0, 0),
        (1, 64),
        (64, 64),
        (65, 192),
        (192, 192),
        (193, 448),
        (448, 448),
        (449, 960),
        (960, 960),
        (961, 1984),
        (1984, 1984),
        (1985, 4032),
        (4032, 4032),
        (4033, 8128),
        (8128, 8128),
        (8129, 12224),
        (16320, 16320),
        (16321, 20416),
        (65536, 69568),
        (1000000, 1003456),
    ],
)
def test_a_capacity_is_rounded_so_that_footer_and_malloc_header_fit(capacity: int, allocated: int) -> None:
    assert arena(capacity=capacity).allocated_bytes == allocated


def test_the_second_chunk_is_a_default_one_even_after_a_small_first() -> None:
    subject = arena(capacity=8)
    sizes: list[int] = []
    for _chunk in range(3):
        sizes.append(subject.allocated_bytes - sum(sizes))
        subject.allocate(Layout(subject.chunk_capacity + 1, 1))
    assert sizes == [64, 16320, 32704]


def test_the_parent_is_asked_for_the_data_and_a_footer_of_48_bytes() -> None:
    parent = Instrumented()
    Arena(parent, capacity=16320)
    Arena(parent).allocate(Layout(1, 64))
    assert [call.new for call in parent.calls] == [Layout(16368, 16), Layout(16368, 64)]


def test_rounding_down_can_save_padding() -> None:
    subject = arena()
    allocate(subject, (8, 16))
    assert subject.used_bytes == 16
    subject = arena()
    allocate(subject, (8, 8), (8, 16))
    assert subject.used_bytes == 16


def test_newest_first_frees_move_the_cursor_and_padding_stays() -> None:
    subject = arena()
    used = []
    blocks = []
    for size, align in ((1, 1), (1, 1), (8, 8)):
        blocks.append(subject.allocate(Layout(size, align)))
        used.append(subject.used_bytes)
    subject.deallocate(blocks[2], Layout(8, 8))
    used.append(subject.used_bytes)
    subject.deallocate(blocks[1], Layout(1, 1))
    used.append(subject.used_bytes)
    assert used == [1, 2, 16, 8, 8]
    subject.allocate(Layout(16320, 1))
    assert (subject.allocated_bytes, subject.used_bytes, subject.chunk_capacity) == (49024, 16328, 16384)
    subject.reset()
    assert (subject.allocated_bytes, subject.used_bytes) == (32704, 0)
    subject.allocate(Layout(1, 1))
    assert (subject.used_bytes, subject.chunk_capacity) == (1, 32703)


def test_zero_sizes_can_consume_padding() -> None:
    subject = arena()
    used = []
    for size, align in ((8, 16), (8, 16), (0, 16), (1, 1), (0, 16)):
        block = subject.allocate(Layout(size, align))
        if size == 1:
            one = block
        used.append(subject.used_bytes)
    subject.deallocate(one, Layout(1, 1))
    used.append(subject.used_bytes)
    assert used == [16, 32, 32, 33, 48, 48]


def test_a_large_request_gets_a_chunk_of_its_size() -> None:
    subject = arena()
    seen = []
    for size in (10, 1048576, 10):
        subject.allocate(Layout(size, 1))
        seen.append((subject.allocated_bytes, subject.used_bytes))
    assert seen == [(16320, 10), (1068928, 1048586), (1068928, 1048596)]
    assert subject.chunk_capacity == 4022


def test_a_minimum_alignment_of_8_is_kept_by_every_operation() -> None:
    subject = arena(min_align=8)
    used = []

    def note(block: Block) -> Block:
        used.append(subject.used_bytes)
        return block

    block = note(subject.allocate(Layout(5, 1)))
    block = note(subject.grow(block, Layout(5, 1), Layout(12, 1)))
    subject.deallocate(note(block), Layout(12, 1))
    used[-1] = subject.used_bytes
    note(subject.allocate(Layout(3, 1)))
    block = note(subject.allocate(Layout(5, 1)))
    subject.deallocate(block, Layout(5, 1))
    used.append(subject.used_bytes)
    assert subject.cursor % 8 == 0
    note(subject.allocate(Layout(8, 8)))
    assert used == [8, 24, 8, 16, 24, 16, 24]


def test_growing_from_the_rounded_end_loses_nothing() -> None:
    subject = arena(min_align=8, rounded_grow=True)
    block = subject.allocate(Layout(5, 1))
    block.view[:] = b"abcde"
    block = subject.grow(block, Layout(5, 1), Layout(12, 1))
    assert subject.used_bytes == 16
    assert bytes(block.view[:5]) == b"abcde"
    subject.deallocate(block, Layout(12, 1))
    assert subject.used_bytes == 0


def test_a_minimum_alignment_of_16_rounds_small_blocks_up() -> None:
    subject = arena(min_align=16)
    used = []
    for size in (1, 3, 5):
        subject.allocate(Layout(size, 1))
        used.append(subject.used_bytes)
    assert used == [16, 32, 48]


@pytest.mark.parametrize("min_align", [0, 3, 32, -1])
def test_other_minimum_alignments_are_refused(min_align: int) -> None:
    with pytest.raises(LayoutError):
        arena(min_align=min_align)


def test_a_shrink_moves_only_where_at_least_half_comes_free() -> None:
    subject = arena()
    block = subject.allocate(Layout(100, 1))
    address = block.address
    block = subject.shrink(block, Layout(100, 1), Layout(51, 1))
    assert (block.address, subject.used_bytes) == (address, 100)
    block = subject.shrink(block, Layout(51, 1), Layout(25, 1))
    assert (block.address, subject.used_bytes) == (address + 26, 74)
    subject.deallocate(block, Layout(25, 1))
    assert subject.used_bytes == 49
    block = subject.allocate(Layout(100, 1))
    address = block.address
    block = subject.shrink(block, Layout(100, 1), Layout(50, 1))
    assert block.address == address + 50


def test_the_newest_block_grows_down_and_an_older_one_is_copied() -> None:
    subject = arena()
    block = subject.allocate(Layout(10, 1))
    address = block.address
    block = subject.grow(block, Layout(10, 1), Layout(11, 1))
    assert (block.address, subject.used_bytes) == (address - 1, 11)
    block = subject.grow(block, Layout(11, 1), Layout(22, 8))
    assert subject.used_bytes > 33
    assert block.address % 8 == 0
    other = subject.allocate(Layout(1, 1))
    grown = subject.grow(block, Layout(22, 8), Layout(23, 8))
    assert grown.address < other.address


def test_blocks_that_outgrow_their_chunk_are_copied_whole() -> None:
    subject = arena()
    first = subject.allocate(Layout(12000, 4))
    first.view[:] = b"\x11" * 12000
    second = subject.allocate(Layout(1000, 4))
    second.view[:] = b"\x22" * 1000
    third = subject.allocate(Layout(12000, 4))
    third.view[:] = b"\x33" * 12000
    third = subject.grow(third, Layout(12000, 4), Layout(24000, 4))
    third = subject.grow(third, Layout(24000, 4), Layout(48000, 4))
    assert bytes(third.view[:12000]) == b"\x33" * 12000
    assert bytes(first.view) == b"\x11" * 12000
    assert bytes(second.view) == b"\x22" * 1000


def test_used_bytes_count_padding_and_dead_copies() -> None:
    subject = arena()
    allocate(subject, (1, 1), (1, 1), (8, 8))
    assert subject.used_bytes == 16
    subject = arena()
    block = subject.allocate(Layout(16, 8))
    subject.allocate(Layout(8, 8))
    subject.grow(block, Layout(16, 8), Layout(32, 8))
    assert subject.used_bytes == 56


def test_a_reset_keeps_the_newest_chunk() -> None:
    subject = arena()
    seen = []
    for sizes in ((1,), (64, 64, 16320), (32640,)):
        allocate(subject, *[(size, 1) for size in sizes])
        seen.append(subject.allocated_bytes)
    subject.reset()
    assert [*seen, subject.allocated_bytes] == [16320, 49024, 114496, 65472]
    assert len(list(subject.chunks())) == 1
    block = subject.allocate(Layout(16, 16))
    assert block.address + 16 == subject.start + 65472


def test_a_steady_load_asks_the_parent_for_nothing_after_some_rounds() -> None:
    parent = Instrumented()
    subject = Arena(parent)
    requests = []
    for _round in range(6):
        for size in range(0, 40_000, 100):
            subject.allocate(Layout(size % 300, 8))
        subject.reset()
        requests.append(parent.failures.requests)
    assert requests[2] == requests[-1]


def test_a_block_lies_between_chunk_and_footer() -> None:
    sizes = [*range(1, 20_000, 97), 4031, 4032, 4033, 4034, 8127, 8128, 8129, 8130, 16319, 16320, 16321, 16322]
    for size in sizes:
        parent = Instrumented()
        subject = Arena(parent)
        block = subject.allocate(Layout(size, 1))
        block.view[0] = 1
        block.view[size - 1] = 2
        assert subject.start <= block.address
        assert block.address + size <= subject.start + subject.allocated_bytes
        subject.close()
        assert parent.live_blocks == 0


@pytest.mark.parametrize("capacity", [0, 1, 8, 11, 4096, 74565])
def test_any_capacity_serves_what_was_asked_for_without_another_chunk(capacity: int) -> None:
    parent = Instrumented()
    subject = Arena(parent, capacity=capacity)
    before = parent.failures.requests
    for _byte in range(capacity):
        subject.allocate(Layout(1, 1))
    assert parent.failures.requests == before


def test_a_capacity_beyond_all_memory_is_an_error() -> None:
    for capacity in ((1 << 63) - 1, (1 << 63) - 64):
        with pytest.raises(AllocError):
            arena(capacity=capacity)
    for capacity in (1 << 63, -1):
        with pytest.raises(LayoutError):
            arena(capacity=capacity)


def test_where_the_parent_refuses_half_as_much_is_tried() -> None:
    failures = Failures()
    subject = Arena(failures.allocator())
    subject.allocate(Layout(60_000, 1))
    failures.refuse(2)
    subject.allocate(Layout(10_000, 1))
    asked = 2 * 61376
    assert subject.allocated_bytes - 61376 in range(asked // 4, asked // 4 + 4096)
    failures.refuse(None)
    used = subject.used_bytes
    with pytest.raises(AllocError) as caught:
        subject.allocate(Layout(40_000, 1))
    assert caught.value.size == 40_000
    assert caught.value.in_use == used
    failures.allow()
    subject.allocate(Layout(40_000, 1))


def test_forced_chunks_and_large_alignments() -> None:
    subject = arena()
    blocks = allocate(subject, (100_001, 1), (100_003, 1), (4096, 64), (1, 4096))
    assert blocks[2].address % 64 == 0
    assert blocks[3].address % 4096 == 0
    assert [block.size for block in blocks] == [100_001, 100_003, 4096, 1]


@pytest.mark.parametrize("align", [2, 4, 8, 16, 32, 64])
def test_a_thousand_blocks_of_each_alignment(align: int) -> None:
    subject = arena()
    for number in range(1024):
        assert subject.allocate(Layout(align, align)).address % align == 0, number


def test_the_capacity_of_the_chunk_shrinks_as_one_allocates() -> None:
    subject = arena(capacity=64)
    seen = [subject.chunk_capacity]
    for _step in range(4):
        subject.allocate(Layout(16, 16))
        seen.append(subject.chunk_capacity)
    assert seen == [64, 48, 32, 16, 0]


def test_a_chunk_is_read_as_one_array_newest_first() -> None:
    subject = arena()
    count = 131_072
    for number in range(0, count, 64):
        block = subject.allocate(Layout(8 * 64, 8))
        block.cast("Q")[:] = memoryview(bytes(block.size)).cast("Q")
        block.cast("Q")[0] = number
    assert sum(size for _address, size in subject.chunks()) == 8 * count
    first = next(iter(subject.chunks()))
    assert first[0] == block.address


def test_a_region_of_the_caller_is_filled_and_never_outgrown() -> None:
    buffer = bytearray(16 * 20 + 16)
    whole = Region.of(buffer)
    offset = -whole.address % 16
    region = whole.part(whole.address + offset, 16 * 20)
    parent = Instrumented()
    subject = Arena.over(region, parent)
    assert subject.allocated_bytes == 16 * 20 - 48
    blocks = [subject.allocate(Layout(16, 16)) for _ in range(17)]
    with pytest.raises(AllocError) as caught:
        subject.allocate(Layout(1, 1))
    assert caught.value.limit == 16 * 17
    blocks[0].view[:] = b"A" * 16
    assert b"A" * 16 in buffer
    subject.reset()
    assert subject.used_bytes == 0
    subject.allocate(Layout(272, 16))
    subject.close()
    with pytest.raises(AllocError):
        subject.allocate(Layout(1, 1))
    assert parent.failures.requests == 0
    assert not region.closed


@pytest.mark.parametrize(("offset", "size"), [(8, 64), (0, 56), (0, 32), (0, 0)])
def test_a_region_that_cannot_hold_a_footer_is_refused(offset: int, size: int) -> None:
    whole = Region.of(bytearray(256))
    start = whole.address + (-whole.address % 16) + offset
    with pytest.raises(MisuseError):
        Arena.over(whole.part(start, size), PageAlloc())


def test_what_native_code_takes_counts_as_live() -> None:
    subject = arena(min_align=8)
    subject.allocate(Layout(8, 8))
    subject.take(subject.cursor - 64)
    assert subject.used_bytes == 72
    assert subject.waste().live == 72
    for cursor in (subject.cursor + 8, subject.cursor - 4, subject.start - 8):
        with pytest.raises(MisuseError):
            subject.take(cursor)


def test_the_footers_of_the_chunks_are_linked_in_memory() -> None:
    subject = arena()
    subject.allocate(Layout(16_000, 8))
    subject.allocate(Layout(16_000, 8))
    footers = [address + size for address, size in subject.chunks()]
    newest = words_at(footers[0])
    oldest = words_at(footers[1])
    assert newest[:3] == [subject.start, 32704 + 48, 16]
    assert newest[3] == footers[1]
    assert oldest[3] == 0
    assert oldest[4] == footers[1] - 16_000
    assert newest[5] == oldest[5] == 0


def words_at(address: int) -> list[int]:
    return list((ctypes.c_int64 * 6).from_address(address))


def test_a_vec_doubles_and_leaves_its_old_copies_behind() -> None:
    subject = arena()
    vec: Vec[Arena[PageAlloc]] = Vec(subject, "q")
    vec.reserve(2)
    subject.allocate(Layout(8, 8))
    vec.fill(0, 9)
    assert subject.waste().dead == 64
    assert subject.waste().live == 8 + 128
