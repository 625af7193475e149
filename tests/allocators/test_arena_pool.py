from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from allocators import (
    AllocError,
    ArenaPool,
    Block,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    TakenArena,
    reset,
)
from allocators.testing import Failures, Instrumented


def test_the_arena_given_back_last_is_taken_first_with_its_chunk() -> None:
    pool = ArenaPool(PageAlloc())
    first, second = pool.take(), pool.take()
    arenas = (first.arena, second.arena)
    for arena in arenas:
        arena.allocate(Layout(10_000, 8))
    starts = [arena.start for arena in arenas]
    first.give_back()
    second.give_back()
    assert (pool.idle, pool.taken) == (2, 0)
    third = pool.take()
    assert third.arena.start == starts[1]
    assert third.arena.allocated_bytes == 16_320
    assert (pool.idle, pool.taken) == (1, 1)


def test_giving_back_revokes_every_block() -> None:
    pool = ArenaPool(PageAlloc())
    with pool.take() as arena:
        block = arena.allocate(Layout(100, 8))
        block.view[:3] = b"abc"
    assert block.released
    with pool.take() as again:
        assert again.used_bytes == 0


def test_an_arena_that_was_given_back_is_of_no_use() -> None:
    metric = MetricAllocator(PageAlloc())
    pool = ArenaPool(metric)
    with pool.take() as arena:
        arena.allocate(Layout(100, 8))
    uses: list[Callable[[], object]] = [
        lambda: arena.allocate(Layout(8, 8)),
        lambda: arena.allocate(Layout(0, 1)),
        lambda: arena.allocate(Layout(100_000, 8)),
        arena.checkpoint,
        arena.reset,
    ]
    with pool.take() as again:
        block = again.allocate(Layout(100, 8))
        for use in uses:
            with pytest.raises(MisuseError, match="given back to its pool"):
                use()
        arena.close()
        assert not block.released
        assert (arena.allocated_bytes, arena.used_bytes) == (0, 0)
    pool.close()
    assert metric.live_blocks == 0


def test_a_taken_arena_that_is_dropped_goes_back() -> None:
    pool = ArenaPool(PageAlloc(), most=1)
    taken = pool.take()
    block = taken.arena.allocate(Layout(100, 8))
    del taken
    gc.collect()
    assert block.released
    assert (pool.idle, pool.taken) == (1, 0)
    with pool.take(timeout=5):
        pass


def test_dropping_a_taken_arena_wakes_whoever_waits() -> None:
    pool = ArenaPool(PageAlloc(), most=1)
    taken = [pool.take()]
    served = []
    thread = threading.Thread(target=lambda: served.append(pool.take(timeout=30)))
    thread.start()
    taken.clear()
    gc.collect()
    thread.join()
    assert len(served) == 1


class Stop(BaseException):
    """As KeyboardInterrupt is one."""


class Unwilling(Instrumented):
    """Raises instead of taking blocks back, as often as it is told."""

    refusals = 0

    def deallocate(self, block: Block, layout: Layout) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Stop
        super().deallocate(block, layout)


def test_an_arena_is_back_whatever_its_reset_raises() -> None:
    class Broken(reset.ResetPolicy):
        def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
            raise KeyError

    parent = Unwilling()
    for policy, error in ((Broken(), MisuseError), (reset.NONE, Stop)):
        pool = ArenaPool(parent, policy=policy, most=1)
        taken = pool.take()
        block = taken.arena.allocate(Layout(100, 8))
        taken.arena.allocate(Layout(100_000, 8))
        parent.refusals = 1 if error is Stop else 0
        with pytest.raises(error):
            taken.give_back()
        assert block.released
        assert (pool.idle, pool.taken) == (1, 0)
        taken = pool.take(timeout=5)
        taken.arena.allocate(Layout(100, 8))
        with pytest.raises(MisuseError) if error is MisuseError else nullcontext():
            taken.give_back()
        pool.close()
    assert parent.live_blocks == 1


def test_an_arena_that_was_given_back_cannot_be_reached_through_its_guard() -> None:
    pool = ArenaPool(PageAlloc())
    taken = pool.take()
    taken.give_back()
    taken.give_back()
    assert pool.idle == 1
    with pytest.raises(MisuseError):
        _ = taken.arena
    with pytest.raises(MisuseError), taken:
        pass


def test_an_exception_gives_the_arena_back_too() -> None:
    pool = ArenaPool(PageAlloc())
    with pytest.raises(KeyError), pool.take():
        raise KeyError
    assert (pool.idle, pool.taken) == (1, 0)


def test_the_policy_bounds_what_idle_arenas_keep() -> None:
    """upb #547: every arena of the pool had come to hold the largest request."""
    for policy, most in ((reset.NONE, 0), (reset.limit(5000), 5000), (reset.recent_peak(), 1 << 16)):
        metric = MetricAllocator(PageAlloc())
        pool = ArenaPool(metric, policy=policy)
        for size in (1_000_000, 100, 100):
            with pool.take() as arena:
                arena.allocate(Layout(size, 8))
        assert metric.live_bytes <= most + 48


def test_arenas_are_made_with_the_given_options() -> None:
    pool = ArenaPool(PageAlloc(), min_align=8, capacity=100_000)
    with pool.take() as arena:
        assert arena.min_align == 8
        assert arena.allocated_bytes >= 100_000


def test_no_more_arenas_than_wanted_and_taking_waits() -> None:
    pool = ArenaPool(PageAlloc(), most=1)
    taken = pool.take()
    with pytest.raises(TimeoutError):
        pool.take(timeout=0.01)
    seen: list[TakenArena[PageAlloc]] = []
    thread = threading.Thread(target=lambda: seen.append(pool.take(timeout=30)))
    thread.start()
    taken.give_back()
    thread.join()
    assert (pool.idle, pool.taken) == (0, 1)
    assert not seen[0].arena.used_bytes


def test_closing_wakes_those_who_wait() -> None:
    pool = ArenaPool(PageAlloc(), most=1)
    taken = pool.take()
    refused = []

    def wait() -> None:
        with pytest.raises(MisuseError):
            pool.take(timeout=30)
        refused.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    pool.close()
    thread.join()
    assert refused == [True]
    taken.give_back()


def test_closing_gives_back_idle_arenas_and_later_those_that_are_taken() -> None:
    metric = MetricAllocator(PageAlloc())
    with ArenaPool(metric) as pool:
        idle, taken = pool.take(), pool.take()
        for each in (idle, taken):
            each.arena.allocate(Layout(100, 8))
        idle.give_back()
    assert metric.live_blocks == 1
    taken.arena.allocate(Layout(100, 8))
    taken.give_back()
    assert metric.live_blocks == 0
    assert (pool.idle, pool.taken) == (0, 0)
    with pytest.raises(MisuseError):
        pool.take()
    pool.close()


def test_an_arena_that_cannot_be_made_is_not_counted() -> None:
    limited = LimitAllocator(PageAlloc(), 50_000)
    pool = ArenaPool(limited, capacity=40_000, most=2)
    taken = pool.take()
    with pytest.raises(AllocError):
        pool.take()
    assert pool.taken == 1
    limited.limit = 1 << 20
    pool.take()
    taken.give_back()


def test_a_reset_that_the_parent_refuses_keeps_the_arena() -> None:
    failures = Failures()
    parent = failures.allocator()
    pool = ArenaPool(parent, policy=reset.ALL)
    with pool.take() as arena:
        for _ in range(30):
            arena.allocate(Layout(1000, 8))
        failures.refuse()
    assert parent.live_blocks == 0
    with pool.take() as again:
        again.allocate(Layout(100, 8))
    assert pool.idle == 1


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(MisuseError):
        ArenaPool(PageAlloc(), most=0)
