"""Reset policies, on arenas that bump down and up."""

from __future__ import annotations

from typing import Any

import pytest

from allocators import Arena, BumpAlloc, Layout, MetricAllocator, MisuseError, PageAlloc, ResetPolicy, reset
from allocators.testing import Failures, Instrumented

BOTH = pytest.mark.parametrize("make", [Arena, BumpAlloc])


def rounds(allocator: Any, policy: ResetPolicy, *sizes: int) -> list[int]:
    """Allocate so much in blocks of 1000 bytes, reset, and tell the capacity; once for each size."""
    capacities = []
    for size in sizes:
        for _ in range(size // 1000):
            allocator.allocate(Layout(1000, 8))
        assert allocator.reset(policy) is True
        assert allocator.used_bytes == 0
        capacities.append(allocator.allocated_bytes)
    return capacities


def test_the_default_keeps_the_newest_chunk() -> None:
    arena = Arena(Instrumented())
    assert rounds(arena, reset.NEWEST, 60_000, 0, 60_000, 100_000) == [65_472, 65_472, 65_472, 131_008]
    for block in [arena.allocate(Layout(1, 1))]:
        assert arena.reset()
        assert block.released
    assert arena.allocated_bytes == 131_008


def test_all_merges_the_chunks_into_one_that_holds_as_much() -> None:
    parent = Instrumented()
    arena = Arena(parent)
    whole = 16_320 + 32_704 + 65_472
    assert rounds(arena, reset.ALL, 60_000) == [whole]
    assert parent.live_blocks == 1
    calls = len(parent.calls)
    assert rounds(arena, reset.ALL, 100_000, 5_000, 114_000) == [whole] * 3
    assert len(parent.calls) == calls
    bump = BumpAlloc(parent, first_chunk=10_000, largest_chunk=20_000)
    assert rounds(bump, reset.ALL, 60_000, 60_000) == [70_000, 70_000]


def test_all_holds_large_blocks_with_chunks_of_their_own_too() -> None:
    bump = BumpAlloc(Instrumented(), first_chunk=1000)
    bump.allocate(Layout(500, 1))
    bump.allocate(Layout(50_000, 16))
    assert bump.reset(reset.ALL)
    assert bump.allocated_bytes == 51_000
    bump.allocate(Layout(50_000, 16))
    assert bump.allocated_bytes == 51_000


@BOTH
def test_a_limit_keeps_that_much_at_most(make: Any) -> None:
    parent = Instrumented()
    allocator = make(parent)
    assert rounds(allocator, reset.limit(1 << 30), 200_000)[0] >= 200_000
    assert rounds(allocator, reset.limit(1000), 0) == [992 if make is Arena else 1000]
    assert parent.live_blocks == 1
    calls = len(parent.calls)
    assert rounds(allocator, reset.limit(992), 0) == [992]
    assert (len(parent.calls) == calls) == (make is Arena)


@BOTH
@pytest.mark.parametrize("policy", [reset.NONE, reset.limit(0)], ids=repr)
def test_a_limit_of_nothing_frees_all(make: Any, policy: ResetPolicy) -> None:
    """Zig #16009: a limit of 0 kept memory."""
    parent = Instrumented()
    allocator = make(parent)
    assert rounds(allocator, policy, 100_000, 0, 3_000) == [0, 0, 0]
    assert parent.live_blocks == 0


@BOTH
@pytest.mark.parametrize(
    "policy", [reset.NEWEST, reset.ALL, reset.NONE, reset.limit(5000), reset.recent_peak()], ids=repr
)
def test_resetting_what_is_empty_succeeds(make: Any, policy: ResetPolicy) -> None:
    """Zig #16009: retaining the capacity of an empty arena failed."""
    parent = Instrumented()
    allocator = make(parent)
    assert allocator.reset(policy) is True
    assert parent.calls == []
    assert allocator.allocated_bytes == 0


@BOTH
@pytest.mark.parametrize("policy", [reset.ALL, reset.limit(20_000), reset.recent_peak()], ids=repr)
def test_an_allocator_refused_its_kept_chunk_is_empty_and_usable(make: Any, policy: ResetPolicy) -> None:
    failures = Failures()
    parent = failures.allocator()
    allocator = make(parent)
    blocks = [allocator.allocate(Layout(50_000, 8)) for _ in range(4)]
    failures.refuse()
    assert allocator.reset(policy) is False
    assert all(block.released for block in blocks)
    assert parent.live_blocks == 0
    assert (allocator.allocated_bytes, allocator.used_bytes) == (0, 0)
    allocator.allocate(Layout(100, 8)).view[:100] = bytes(100)
    assert allocator.reset(policy) is True
    allocator.close()
    assert parent.live_blocks == 0


@BOTH
def test_the_recent_peak_lets_go_of_one_large_round(make: Any) -> None:
    """dvui #322: a large image, once, kept its memory for the life of the program."""
    allocator = make(Instrumented())
    policy = reset.recent_peak()
    large, first, second, third = rounds(allocator, policy, 400_000, 40_000, 40_000, 40_000)
    assert large >= 400_000
    assert 40_000 <= first <= 61_000
    assert first == second == third


@BOTH
def test_the_recent_peak_of_several_rounds_waits_that_long(make: Any) -> None:
    allocator = make(Instrumented())
    capacities = rounds(allocator, reset.recent_peak(3), 400_000, 40_000, 40_000, 40_000, 40_000)
    assert capacities[0] == capacities[1] == capacities[2] >= 400_000
    assert capacities[3] == capacities[4] <= 61_000


@BOTH
def test_rounds_that_differ_a_little_need_nothing_from_the_parent(make: Any) -> None:
    parent = Instrumented()
    allocator = make(parent)
    policy = reset.recent_peak(4)
    rounds(allocator, policy, 40_000, 40_000, 44_000, 40_000, 40_000)
    calls = len(parent.calls)
    rounds(allocator, policy, 44_000, 37_000, 44_000, 40_000, 38_000)
    assert len(parent.calls) == calls


@BOTH
@pytest.mark.parametrize("freed", ["one by one", "by a scope"])
def test_the_peak_counts_what_was_freed_before_the_reset(make: Any, freed: str) -> None:
    """dvui #322 again: with the use at the reset alone, such a frame had all its memory freed and fetched each time."""
    parent = Instrumented()
    allocator = make(parent)
    policy = reset.recent_peak(least=0)
    layout = Layout(1000, 8)
    for number in range(6):
        if number == 3:
            calls = len(parent.calls)
        if freed == "by a scope" and number > 0:
            with allocator.scope():
                for _ in range(40):
                    allocator.allocate(layout)
        else:
            blocks = [allocator.allocate(layout) for _ in range(40)]
            for block in reversed(blocks):
                allocator.deallocate(block, layout)
        assert allocator.peak_bytes >= 40_000
        allocator.reset(policy)
        assert allocator.peak_bytes == 0
    assert 40_000 <= allocator.allocated_bytes <= 61_000
    assert len(parent.calls) == calls


def test_the_peak_is_exact_while_there_is_one_chunk() -> None:
    for allocator in (Arena(PageAlloc(), capacity=16_000), BumpAlloc(PageAlloc())):
        first = allocator.allocate(Layout(100, 1))
        second = allocator.allocate(Layout(60, 1))
        second = allocator.shrink(second, Layout(60, 1), Layout(10, 1))
        allocator.deallocate(second, Layout(10, 1))
        assert (allocator.used_bytes, allocator.peak_bytes) == (100, 160)
        third = allocator.allocate(Layout(50, 1))
        assert allocator.peak_bytes == 160
        third = allocator.grow(third, Layout(50, 1), Layout(70, 1))
        assert allocator.peak_bytes == 170
        allocator.deallocate(third, Layout(70, 1))
        allocator.deallocate(first, Layout(100, 1))
        assert (allocator.used_bytes, allocator.peak_bytes) == (0, 170)


def test_a_large_block_that_was_freed_counts_for_the_peak() -> None:
    bump = BumpAlloc(Instrumented(), first_chunk=1000)
    bump.allocate(Layout(100, 1))
    large = bump.allocate(Layout(9000, 1))
    large = bump.grow(large, Layout(9000, 1), Layout(10_000, 1))
    bump.deallocate(large, Layout(10_000, 1))
    assert (bump.used_bytes, bump.peak_bytes) == (100, 10_100)


def test_a_chunk_of_fixed_size_survives_every_policy() -> None:
    page = PageAlloc().allocate(Layout(2048, 16))
    arena = Arena.over(page.region.part(page.address, 2048), PageAlloc())
    for policy in (reset.NEWEST, reset.ALL, reset.NONE, reset.limit(10), reset.recent_peak()):
        block = arena.allocate(Layout(1000, 1))
        assert arena.reset(policy)
        assert block.released
        assert arena.allocated_bytes == 2000


def test_a_policy_of_ones_own() -> None:
    class Half(ResetPolicy):
        def __init__(self) -> None:
            super().__init__(rounds=2)
            self.seen: list[tuple[int, int, list[int]]] = []

        def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
            self.seen.append((capacity, newest, list(peaks)))
            return capacity // 2

    policy = Half()
    arena = Arena(Instrumented(), capacity=16_320)
    arena.allocate(Layout(1000, 8))
    arena.reset(policy)
    arena.allocate(Layout(2000, 8))
    arena.reset(policy)
    arena.reset(policy)
    assert policy.seen == [
        (16_320, 16_320, [1000]),
        (8160, 8160, [1000, 2000]),
        (4080, 4080, [2000, 0]),
    ]


def test_an_adaptor_passes_the_policy_on() -> None:
    arena = Arena(PageAlloc())
    metric = MetricAllocator(arena)
    metric.allocate(Layout(1000, 8))
    metric.reset(reset.NONE)
    assert (arena.allocated_bytes, metric.live_blocks) == (0, 0)


def test_policies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(MisuseError):
        reset.limit(-1)
    with pytest.raises(MisuseError):
        reset.recent_peak(0)
    arena = Arena(PageAlloc())
    block = arena.allocate(Layout(8, 8))
    with pytest.raises(MisuseError, match="must define kept"):
        arena.reset(ResetPolicy())
    assert not block.released


def test_blocks_of_one_round_are_revoked_by_every_policy() -> None:
    for policy in (reset.NEWEST, reset.ALL, reset.NONE, reset.limit(5000), reset.recent_peak()):
        for allocator in (Arena(PageAlloc()), BumpAlloc(PageAlloc())):
            point = allocator.checkpoint()
            block = allocator.allocate(Layout(100_000, 8))
            allocator.reset(policy)
            assert block.released
            with pytest.raises(MisuseError):
                allocator.restore(point)
