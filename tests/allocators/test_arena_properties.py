"""What must be true of an arena whatever it is asked for: the properties that oxc's own tests check."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from allocators import Arena, Block, Layout, PageAlloc
from tests.support.allocator_factories import EXAMPLES

SIZES = st.lists(st.integers(0, 3000), max_size=60)
ALIGNMENTS = st.sampled_from((1, 2, 4, 8, 16))


def overlap(blocks: list[Block]) -> bool:
    spans = sorted((block.address, block.address + block.size) for block in blocks if block.size)
    return any(end > start for (_, end), (start, _) in pairwise(spans))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.binary(max_size=5000), max_size=30))
def test_what_is_written_is_read_back(values: list[bytes]) -> None:
    with Arena(PageAlloc()) as arena:
        blocks = []
        for value in values:
            block = arena.allocate(Layout(len(value), 1))
            block.view[:] = value
            blocks.append(block)
        assert [bytes(block.view) for block in blocks] == values


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.integers(1, 50_000), max_size=20))
def test_large_blocks_never_overlap(sizes: list[int]) -> None:
    with Arena(PageAlloc()) as arena:
        assert not overlap([arena.allocate(Layout(size, 8)) for size in sizes])


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.sampled_from((1, 2, 4)), st.sampled_from((1, 8))), max_size=200))
def test_mixed_blocks_are_where_the_chunks_say(requests: list[tuple[int, int]]) -> None:
    with Arena(PageAlloc(), capacity=513) as arena:
        blocks = [arena.allocate(Layout(count * item, item)) for count, item in requests]
        assert not overlap(blocks)
        chunks = list(arena.chunks())
        for block in blocks:
            assert sum(a <= block.address and block.address + block.size <= a + size for a, size in chunks) == 1


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.integers(0, 100), max_size=100), ALIGNMENTS)
def test_sizes_that_are_multiples_of_their_alignment_need_no_padding(counts: list[int], align: int) -> None:
    with Arena(PageAlloc(), capacity=513) as arena:
        sizes = [count % 10 * align for count in counts]
        blocks = [arena.allocate(Layout(size, align)) for size in sizes]
        assert all(block.address % align == 0 for block in blocks)
        assert sum(size for _address, size in arena.chunks()) == sum(sizes)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=100))
def test_filled_blocks_stay_as_they_were(lengths: list[int]) -> None:
    with Arena(PageAlloc(), capacity=64) as arena:
        blocks = []
        for number, length in enumerate(lengths):
            block = arena.allocate(Layout(length % 100, 1))
            block.view[:] = bytes([number]) * block.size
            blocks.append(block)
        assert [bytes(block.view) for block in blocks] == [bytes([n]) * b.size for n, b in enumerate(blocks)]
        assert not overlap(blocks)


@settings(max_examples=EXAMPLES, deadline=None)
@given(SIZES, ALIGNMENTS)
def test_allocated_bytes_are_zero_only_where_nothing_was_asked_for(sizes: list[int], align: int) -> None:
    with Arena(PageAlloc()) as arena:
        for size in sizes:
            arena.allocate(Layout(size, align))
        assert (arena.allocated_bytes == 0) == (sum(sizes) == 0)
        assert arena.allocated_bytes >= sum(sizes)


@settings(max_examples=EXAMPLES, deadline=None)
@given(SIZES)
def test_used_bytes_are_the_sum_of_the_sizes_without_alignment(sizes: list[int]) -> None:
    with Arena(PageAlloc()) as arena:
        for size in sizes:
            arena.allocate(Layout(size, 1))
        assert arena.used_bytes == sum(sizes) == sum(size for _address, size in arena.chunks())
        assert arena.used_bytes <= arena.allocated_bytes
        arena.reset()
        assert arena.used_bytes == 0


@settings(max_examples=EXAMPLES, deadline=None)
@given(SIZES, ALIGNMENTS, st.integers(0, 4))
def test_the_waste_adds_up(sizes: list[int], align: int, exponent: int) -> None:
    with Arena(PageAlloc(), min_align=1 << exponent) as arena:
        blocks = [arena.allocate(Layout(size, align)) for size in sizes]
        for block in blocks[::2]:
            arena.deallocate(block, Layout(block.size, align))
        waste = arena.waste()
        assert waste.live == sum(block.size for block in blocks[1::2])
        assert waste.live + waste.dead + waste.padding == arena.used_bytes
        assert waste.tail == arena.chunk_capacity
        assert waste.total == sum(value for name, value in waste.as_dict().items() if name != "total")
        assert min(waste.as_dict().values()) >= 0
