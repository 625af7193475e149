from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    Block,
    CallbackAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    RetryAllocator,
)
from allocators.block import address_of


class Buffers:
    """Two callbacks over one kind of buffer, which check that each buffer comes back as it was given."""

    def __init__(self, make: Any = bytearray) -> None:
        self.make = make
        self.given: list[tuple[Any, Layout]] = []

    def allocate(self, layout: Layout) -> Any:
        memory = self.make(layout.size)
        self.given.append((memory, layout))
        return memory

    def free(self, memory: Any, layout: Layout) -> None:
        index = [id(given) for given, _ in self.given].index(id(memory))
        assert self.given.pop(index)[1] == layout


@pytest.mark.parametrize(
    "make",
    [bytearray, lambda size: mmap.mmap(-1, size), lambda size: array.array("B", bytes(size))],
    ids=["bytearray", "mmap", "array"],
)
def test_buffers_of_any_kind_will_do_and_come_back(make: Any) -> None:
    buffers = Buffers(make)
    allocator = CallbackAllocator(buffers.allocate, buffers.free)
    block = allocator.allocate(Layout(100, 8))
    block.view[:] = bytes(range(100))
    assert bytes(memoryview(buffers.given[0][0])[:100]) == bytes(range(100))
    assert block.address == address_of(memoryview(buffers.given[0][0]))
    block = allocator.grow(block, Layout(100, 8), Layout(200, 8))
    assert bytes(block.view[:100]) == bytes(range(100))
    assert allocator.live_blocks == len(buffers.given) == 1
    allocator.deallocate(block, Layout(200, 8))
    assert buffers.given == []


def test_the_buffer_has_no_exports_when_it_comes_back() -> None:
    def free(memory: bytearray, layout: Layout) -> None:
        memory.clear()

    allocator = CallbackAllocator(lambda layout: bytearray(layout.size), free)
    block = allocator.allocate(Layout(100, 8))
    view = block.view
    view.release()
    allocator.deallocate(block, Layout(100, 8))


def test_addresses_will_do_too() -> None:
    kept: dict[int, ctypes.Array[ctypes.c_char]] = {}

    def allocate(layout: Layout) -> int:
        memory = ctypes.create_string_buffer(layout.size + 16)
        address = (ctypes.addressof(memory) + 15) & -16
        kept[address] = memory
        return address

    allocator = CallbackAllocator(allocate, lambda address, layout: kept.pop(address))
    block = allocator.allocate(Layout(100, 16))
    assert list(kept) == [block.address]
    block.view[:3] = b"abc"
    assert ctypes.string_at(block.address, 3) == b"abc"
    assert len(block.view) == 100
    allocator.deallocate(block, Layout(100, 16))
    assert kept == {}


@pytest.mark.parametrize("align", [1, 16])
def test_larger_alignments_are_cut_out_of_more_memory(align: int) -> None:
    buffers = Buffers()
    allocator = CallbackAllocator(buffers.allocate, buffers.free, align=align)
    for wanted in (1, 2, 16, 64, 4096):
        layout = Layout(100, wanted)
        block = allocator.allocate(layout)
        assert block.address % wanted == 0
        request = buffers.given[-1][1]
        if wanted <= align:
            assert request == layout
        else:
            assert request == Layout(100 + wanted - align, align)
        block.view[:] = bytes(100)
        allocator.deallocate(block, layout)
    assert buffers.given == []


@pytest.mark.parametrize("refusal", [lambda layout: None, lambda layout: 0])
def test_none_and_null_mean_that_there_is_no_memory(refusal: Any) -> None:
    allocator = CallbackAllocator(refusal, lambda memory, layout: None)
    with pytest.raises(AllocError, match="no memory"):
        allocator.allocate(Layout(100, 8))


def test_a_memory_error_of_the_callback_becomes_an_alloc_error() -> None:
    def allocate(layout: Layout) -> bytearray:
        raise MemoryError("swap is full")

    allocator = CallbackAllocator(allocate, lambda memory, layout: None)
    with pytest.raises(AllocError, match="swap is full") as caught:
        allocator.allocate(Layout(100, 8))
    assert caught.value.size == 100


@pytest.mark.parametrize(
    "memory", [bytes(100), bytearray(99), memoryview(bytearray(200))[::2]], ids=["ro", "short", "gaps"]
)
def test_a_buffer_that_cannot_serve_is_given_back_and_refused(memory: Any) -> None:
    given_back = []
    allocator = CallbackAllocator(lambda layout: memory, lambda memory, layout: given_back.append(memory))
    with pytest.raises(MisuseError):
        allocator.allocate(Layout(100, 8))
    assert len(given_back) == 1
    assert given_back[0] is memory
    assert allocator.live_blocks == 0


def test_an_address_that_is_not_aligned_is_refused() -> None:
    allocator = CallbackAllocator(lambda layout: 0x1001, lambda memory, layout: None)
    with pytest.raises(MisuseError, match="0x1001"):
        allocator.allocate(Layout(8, 8))


def test_a_callback_that_fails_to_free_leaves_the_block_live() -> None:
    buffers = Buffers()
    broken = True

    def free(memory: Any, layout: Layout) -> None:
        if broken:
            raise OSError("device is busy")
        buffers.free(memory, layout)

    allocator = CallbackAllocator(buffers.allocate, free)
    block = allocator.allocate(Layout(100, 64))
    block.view[:3] = b"abc"
    with pytest.raises(OSError, match="busy"):
        allocator.deallocate(block, Layout(100, 64))
    assert bytes(block.view[:3]) == b"abc"
    assert allocator.live_blocks == 1
    broken = False
    allocator.deallocate(block, Layout(100, 64))
    assert buffers.given == []


def test_foreign_blocks_and_double_frees_are_refused() -> None:
    buffers = Buffers()
    allocator = CallbackAllocator(buffers.allocate, buffers.free)
    other = CallbackAllocator(buffers.allocate, buffers.free)
    block = allocator.allocate(Layout(100, 8))
    assert allocator.owns(block)
    assert not other.owns(block)
    with pytest.raises(MisuseError):
        other.deallocate(block, Layout(100, 8))
    allocator.deallocate(block, Layout(100, 8))
    with pytest.raises(MisuseError):
        allocator.deallocate(block, Layout(100, 8))


def test_closing_gives_everything_back() -> None:
    buffers = Buffers()
    with CallbackAllocator(buffers.allocate, buffers.free) as allocator:
        arena = Arena(allocator)
        arena.allocate(Layout(100, 8))
        block = allocator.allocate(Layout(10, 1))
    assert buffers.given == []
    assert block.released


def test_nothing_never_reaches_the_callbacks() -> None:
    def fail(*_: object) -> Any:
        raise AssertionError

    allocator = CallbackAllocator(fail, fail)
    allocator.deallocate(allocator.allocate(Layout(0, 64)), Layout(0, 64))


def test_a_request_is_tried_again_for_as_long_as_the_callback_says() -> None:
    limited = LimitAllocator(PageAlloc(), 100)
    asked: list[Layout] = []

    def raise_the_limit(layout: Layout) -> bool:
        asked.append(layout)
        limited.limit += 100
        return True

    retry = RetryAllocator(limited, raise_the_limit)
    block = retry.allocate(Layout(350, 8))
    assert asked == [Layout(350, 8)] * 3
    block = retry.grow(block, Layout(350, 8), Layout(450, 8))
    block = retry.grow_zeroed(block, Layout(450, 8), Layout(550, 8))
    assert asked[3:] == [Layout(450, 8), Layout(550, 8)]
    retry.allocate_zeroed(Layout(100, 1))
    assert limited.limit == 700


def test_the_failure_passes_when_the_callback_gives_up() -> None:
    limited = LimitAllocator(PageAlloc(), 100)
    retry = RetryAllocator(limited, lambda layout: False)
    block = retry.allocate(Layout(100, 8))
    for use in (
        lambda: retry.allocate(Layout(1, 1)),
        lambda: retry.allocate_zeroed(Layout(1, 1)),
        lambda: retry.grow(block, Layout(100, 8), Layout(101, 8)),
        lambda: retry.grow_zeroed(block, Layout(100, 8), Layout(101, 8)),
    ):
        with pytest.raises(AllocError) as caught:
            use()
        assert caught.value.limit == 100
    assert not block.released


def test_a_callback_may_free_blocks_through_the_same_allocator() -> None:
    metric = MetricAllocator(LimitAllocator(PageAlloc(), 1000))
    cache: list[Block] = []

    def empty_the_cache(layout: Layout) -> bool:
        if not cache:
            return False
        retry.deallocate(cache.pop(), Layout(300, 8))
        return True

    retry = RetryAllocator(metric, empty_the_cache)
    cache += [retry.allocate(Layout(300, 8)) for _ in range(3)]
    retry.allocate(Layout(700, 8))
    assert len(cache) == 1
    with pytest.raises(AllocError):
        retry.allocate(Layout(1001, 8))
    assert cache == []


def test_an_exception_of_the_callback_passes() -> None:
    def fail(layout: Layout) -> bool:
        raise KeyError("mine")

    retry = RetryAllocator(LimitAllocator(PageAlloc(), 0), fail)
    with pytest.raises(KeyError, match="mine"):
        retry.allocate(Layout(1, 1))


def test_without_a_callback_garbage_is_collected_before_one_more_try() -> None:
    class Cycle:
        """Garbage that holds memory until it is collected."""

        def __init__(self, allocator: LimitAllocator[PageAlloc]) -> None:
            self.me = self
            self.allocator = allocator
            self.block = allocator.allocate(Layout(100, 8))

        def __del__(self) -> None:
            self.allocator.deallocate(self.block, Layout(100, 8))

    limited = LimitAllocator(PageAlloc(), 100)
    retry = RetryAllocator(limited)
    Cycle(limited)
    retry.allocate(Layout(50, 8))
    assert limited.live_bytes == 50
    with pytest.raises(AllocError):
        retry.allocate(Layout(51, 8))
