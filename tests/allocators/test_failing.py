from __future__ import annotations

from typing import Any

import pytest

from allocators import AllocError, Arena, Block, FailingAllocator, Layout, MisuseError, PageAlloc
from allocators.collections import Vec

SMALL = Layout(16, 8)
LARGE = Layout(32, 8)


def outcomes(allocator: FailingAllocator[Any], steps: str) -> str:
    """Do steps and tell which failed, by an exclamation mark.

    a and z allocate, g, G and s grow or shrink the newest block, f frees the oldest.
    """
    blocks: list[Block] = []
    told = ""
    for step in steps:
        try:
            if step == "a":
                blocks.append(allocator.allocate(SMALL))
            elif step == "z":
                blocks.append(allocator.allocate_zeroed(SMALL))
            elif step == "f":
                allocator.deallocate(blocks.pop(0), SMALL)
            else:
                resize = {"g": allocator.grow, "G": allocator.grow_zeroed, "s": allocator.shrink}[step]
                blocks[-1] = resize(blocks[-1], SMALL, SMALL)
            told += step
        except AllocError:
            told += "!"
    return told


def test_it_fails_at_an_index_and_ever_after() -> None:
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=0), "aaa") == "!!!"
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=2), "aazga") == "aa!!!"
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=3), "aGsaf") == "aGs!f"


def test_growing_and_shrinking_count_as_requests_too() -> None:
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=1), "ag") == "a!"
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=1), "aG") == "a!"
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=1), "as") == "a!"


def test_resizes_have_an_index_of_their_own() -> None:
    assert outcomes(FailingAllocator(PageAlloc(), resize_fail_index=1), "agaagsaG") == "agaa!!a!"


def test_every_nth_request_fails() -> None:
    assert outcomes(FailingAllocator(PageAlloc(), every=3), "aaaaaaagg") == "aa!aa!ag!"
    assert outcomes(FailingAllocator(PageAlloc(), every=1), "aa") == "!!"


def test_a_predicate_decides_by_index_and_layout() -> None:
    def fails(index: int, layout: Layout) -> bool:
        return index == 1 or layout.size > 100

    failing = FailingAllocator(PageAlloc(), when=fails)
    assert outcomes(failing, "aaa") == "a!a"
    with pytest.raises(AllocError):
        failing.allocate(Layout(101, 1))


def test_the_number_of_failures_can_be_bounded() -> None:
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=1, times=1), "aaaa") == "a!aa"
    assert outcomes(FailingAllocator(PageAlloc(), every=2, times=2), "aaaaaa") == "a!a!aa"
    assert outcomes(FailingAllocator(PageAlloc(), fail_index=0, times=0), "aa") == "aa"


def test_an_arena_that_tries_again_with_less_does_not_get_away_with_it() -> None:
    arena = Arena(FailingAllocator(PageAlloc(), fail_index=1))
    arena.allocate(Layout(16_000, 1))
    with pytest.raises(AllocError):
        arena.allocate(Layout(16_000, 1))


def test_its_fields_are_those_of_zig() -> None:
    failing = FailingAllocator(PageAlloc(), fail_index=6)
    block = failing.allocate(Layout(100, 8))
    failing.deallocate(failing.allocate_zeroed(Layout(10, 1)), Layout(10, 1))
    block = failing.grow(block, Layout(100, 8), Layout(150, 8))
    block = failing.shrink(block, Layout(150, 8), Layout(40, 8))
    assert (failing.alloc_index, failing.resize_index, failing.index) == (2, 2, 4)
    assert (failing.allocations, failing.deallocations, failing.resizes) == (2, 1, 2)
    assert (failing.allocated_bytes, failing.freed_bytes) == (160, 120)
    assert (failing.live_blocks, failing.live_bytes) == (1, 40)
    assert (failing.failures, failing.has_induced_failure, failing.stack) == (0, False, None)
    failing.deallocate(block, Layout(40, 8))
    assert failing.allocated_bytes == failing.freed_bytes == 160
    assert failing.allocations == failing.deallocations


def test_it_tells_where_the_first_failure_was() -> None:
    failing = FailingAllocator(PageAlloc(), fail_index=0)

    def here() -> None:
        with pytest.raises(AllocError, match="failed on purpose at index 0") as caught:
            failing.allocate(Layout(100, 16))
        assert (caught.value.size, caught.value.align) == (100, 16)

    here()
    with pytest.raises(AllocError, match="index 1"):
        failing.allocate(Layout(1, 1))
    assert failing.failures == 2
    assert failing.has_induced_failure
    assert failing.stack is not None
    assert "here" in failing.stack.site()
    assert __file__ in failing.stack.site()


def test_a_failure_changes_nothing() -> None:
    failing = FailingAllocator(PageAlloc(), fail_index=1)
    block = failing.allocate(SMALL)
    block.view[:16] = bytes(range(16))
    for resize in (failing.grow, failing.grow_zeroed):
        with pytest.raises(AllocError):
            resize(block, SMALL, LARGE)
    with pytest.raises(AllocError):
        failing.shrink(block, SMALL, Layout(8, 8))
    assert bytes(block.view[:16]) == bytes(range(16))
    assert (failing.allocated_bytes, failing.freed_bytes, failing.resizes) == (16, 0, 0)
    failing.deallocate(block, SMALL)


def test_a_failure_of_the_parent_is_not_induced() -> None:
    failing = FailingAllocator(FailingAllocator(PageAlloc(), fail_index=0))
    with pytest.raises(AllocError):
        failing.allocate(SMALL)
    assert (failing.failures, failing.allocations, failing.alloc_index) == (0, 0, 1)


def test_misuse_is_told_before_a_failure_is_induced() -> None:
    failing = FailingAllocator(PageAlloc(), fail_index=1)
    block = failing.allocate(SMALL)
    failing.deallocate(block, SMALL)
    for method in ("grow", "grow_zeroed", "shrink"):
        with pytest.raises(MisuseError):
            getattr(failing, method)(block, SMALL, SMALL)
    assert failing.failures == 0


def test_a_container_survives_the_failure_of_any_request() -> None:
    index = 0
    while True:
        failing = FailingAllocator(PageAlloc(), fail_index=index)
        with Vec(failing, "q") as vec:
            done = 0
            try:
                for number in range(2000):
                    vec.append(number)
                    done += 1
                vec.truncate(10)
                done = 10
                vec.shrink_to_fit()
            except AllocError:
                assert failing.has_induced_failure
            assert list(vec) == list(range(done))
        assert failing.allocated_bytes == failing.freed_bytes
        if not failing.has_induced_failure:
            break
        index += 1
    assert index > 5


def test_what_a_scope_drops_counts_as_freed() -> None:
    failing = FailingAllocator(Arena(PageAlloc()))
    with failing.scope():
        failing.allocate(SMALL)
    failing.allocate(LARGE)
    failing.reset()
    assert (failing.allocated_bytes, failing.freed_bytes, failing.deallocations) == (48, 48, 2)


@pytest.mark.parametrize(
    "options", [{"fail_index": -1}, {"resize_fail_index": -1}, {"every": 0}, {"times": -1}], ids=str
)
def test_options_that_make_no_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(MisuseError, match="must be at least"):
        FailingAllocator(PageAlloc(), **options)
