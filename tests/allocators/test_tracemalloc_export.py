from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from allocators import TRACEMALLOC_DOMAIN, Arena, BumpAlloc, Layout, PageAlloc, TracemallocAllocator


@pytest.fixture
def _tracing() -> Iterator[None]:
    tracemalloc.start(16)
    yield
    tracemalloc.stop()


def traced() -> list[int]:
    """The sizes of our blocks in a snapshot, in rising order."""
    snapshot = tracemalloc.take_snapshot()
    ours = snapshot.filter_traces([tracemalloc.DomainFilter(True, TRACEMALLOC_DOMAIN)])
    return sorted(trace.size for trace in ours.traces)


pytestmark = pytest.mark.usefixtures("_tracing")


def test_blocks_appear_while_they_are_live() -> None:
    allocator = TracemallocAllocator(PageAlloc())
    blocks = [allocator.allocate(Layout(size, 8)) for size in (100, 300, 200)]
    assert traced() == [100, 200, 300]
    allocator.deallocate(blocks[1], Layout(300, 8))
    assert traced() == [100, 200]
    allocator.close()
    assert traced() == []


@pytest.mark.parametrize("make", [BumpAlloc, Arena])
def test_a_resized_block_appears_once_with_its_new_size(make: type[Arena[PageAlloc]]) -> None:
    allocator = TracemallocAllocator(make(PageAlloc()))
    block = allocator.allocate(Layout(100, 8))
    block = allocator.grow(block, Layout(100, 8), Layout(150, 8))
    assert traced() == [150]
    allocator.allocate_zeroed(Layout(1, 1))
    block = allocator.grow_zeroed(block, Layout(150, 8), Layout(400, 8))
    assert traced() == [1, 400]
    block = allocator.shrink(block, Layout(400, 8), Layout(50, 8))
    assert traced() == [1, 50]
    block = allocator.shrink(block, Layout(50, 8), Layout(0, 8))
    assert traced() == [1]
    block = allocator.grow(block, Layout(0, 8), Layout(60, 8))
    assert traced() == [1, 60]


def test_a_block_of_no_bytes_does_not_hide_the_one_at_its_address() -> None:
    allocator = TracemallocAllocator(BumpAlloc(PageAlloc()))
    empty = allocator.allocate(Layout(0, 1))
    block = allocator.allocate(Layout(8, 1))
    second = allocator.allocate(Layout(0, 1))
    allocator.deallocate(second, Layout(0, 1))
    allocator.deallocate(empty, Layout(0, 1))
    assert traced() == [8]
    allocator.deallocate(block, Layout(8, 1))
    assert traced() == []


def test_what_a_scope_or_a_reset_drops_disappears() -> None:
    allocator = TracemallocAllocator(Arena(PageAlloc()))
    allocator.allocate(Layout(100, 8))
    with allocator.scope():
        allocator.allocate(Layout(200, 8))
        assert traced() == [100, 200]
    assert traced() == [100]
    allocator.reset()
    assert traced() == []


def test_the_traceback_leads_to_the_caller() -> None:
    allocator = TracemallocAllocator(PageAlloc())

    def allocate_here() -> None:
        allocator.allocate(Layout(12_345, 8))

    allocate_here()
    snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, TRACEMALLOC_DOMAIN)])
    (statistic,) = snapshot.statistics("traceback")
    assert statistic.size == 12_345
    lines = [frame.lineno for frame in statistic.traceback if frame.filename == __file__]
    first = allocate_here.__code__.co_firstlineno
    assert first + 1 in lines
    assert first + 3 in lines


def test_our_bytes_count_in_the_traced_memory() -> None:
    allocator = TracemallocAllocator(PageAlloc())
    before, _ = tracemalloc.get_traced_memory()
    block = allocator.allocate(Layout(50_000_000, 8))
    assert tracemalloc.get_traced_memory()[0] - before >= 50_000_000
    allocator.deallocate(block, Layout(50_000_000, 8))
    assert tracemalloc.get_traced_memory()[0] - before < 1_000_000


def test_it_does_no_harm_while_nothing_is_traced() -> None:
    allocator = TracemallocAllocator(PageAlloc())
    early = allocator.allocate(Layout(100, 8))
    tracemalloc.stop()
    block = allocator.allocate(Layout(200, 8))
    tracemalloc.start()
    assert traced() == []
    allocator.deallocate(block, Layout(200, 8))
    allocator.deallocate(early, Layout(100, 8))
    assert traced() == []
