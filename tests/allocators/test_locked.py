from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from allocators import (
    Arena,
    ArenaPool,
    Layout,
    LockedAllocator,
    MetricAllocator,
    PageAlloc,
    PoolAllocator,
    ProfilerRecords,
)


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Lets threads get in each other's way."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in so many threads, and raise what any of them raises."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("make", [lambda: PoolAllocator(PageAlloc(), 64, 64), lambda: Arena(PageAlloc()), PageAlloc])
def test_threads_can_share_it(make: Callable[[], object]) -> None:
    metric = MetricAllocator(make())  # type: ignore[type-var]
    locked = LockedAllocator(metric)
    layout = Layout(40, 8)

    def work(number: int) -> None:
        mine = bytes([number]) * 40
        for _ in range(30):
            blocks = [locked.allocate(layout) for _ in range(5)]
            for block in blocks:
                block.view[:40] = mine
            for block in blocks:
                assert bytes(block.view[:40]) == mine
            blocks[0] = locked.shrink(locked.grow(blocks[0], layout, Layout(64, 8)), Layout(64, 8), layout)
            assert bytes(blocks[0].view[:40]) == mine
            for block in blocks:
                locked.deallocate(block, layout)

    in_threads(4, work)
    counters = metric.counters
    assert (counters.current_bytes, counters.current_blocks) == (0, 0)
    assert (counters.total_blocks, counters.frees, counters.resizes) == (600, 600, 240)
    locked.close()


def test_several_operations_are_one_step_while_the_lock_is_held() -> None:
    locked = LockedAllocator(Arena(PageAlloc()))

    def work(number: int) -> None:
        for _ in range(20):
            with locked.lock, locked.scope():
                first = locked.allocate(Layout(8, 8))
                second = locked.allocate(Layout(8, 8))
                assert first.address - second.address == 8
                assert locked.parent.used_bytes == 16

    in_threads(3, work)
    assert locked.parent.used_bytes == 0


def test_a_pool_hands_each_arena_to_one_thread_at_a_time() -> None:
    metric = MetricAllocator(PageAlloc())
    pool = ArenaPool(metric, most=2)
    users: dict[int, int] = {}

    def work(number: int) -> None:
        for _ in range(20):
            with pool.take() as arena:
                assert users.setdefault(id(arena), number) == number
                assert arena.used_bytes == 0
                block = arena.allocate(Layout(100, 1))
                block.view[:] = bytes([number]) * 100
                arena.allocate(Layout(20_000, 8))
                assert bytes(block.view) == bytes([number]) * 100
                del users[id(arena)]
            assert block.released

    in_threads(4, work)
    assert pool.taken == 0
    assert pool.idle <= 2
    pool.close()
    assert metric.live_blocks == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_can_use_what_other_threads_were_using_at_the_fork() -> None:
    inner = LockedAllocator(Arena(PageAlloc()))
    locked = LockedAllocator(inner)
    records = ProfilerRecords()
    metric = MetricAllocator(PageAlloc())
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            locked.deallocate(locked.allocate(Layout(8, 8)), Layout(8, 8))
            inner.deallocate(inner.allocate(Layout(8, 8)), Layout(8, 8))
            records.add("work", metric.counters)

    threads = [threading.Thread(target=work, daemon=True) for _number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _round in range(20):
            child = os.fork()
            if child == 0:
                # Whatever happens here must end here; an alarm ends what would wait for ever.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(10)
                try:
                    locked.deallocate(locked.allocate(Layout(8, 8)), Layout(8, 8))
                    records.add("child", metric.counters)
                    os._exit(0)
                finally:
                    os._exit(1)
            _child, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            locked.deallocate(locked.allocate(Layout(8, 8)), Layout(8, 8))
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_operation_of_another_thread() -> None:
    locked = LockedAllocator(Arena(PageAlloc()))
    held = threading.Event()
    done = threading.Event()

    def work() -> None:
        with locked.lock:
            held.set()
            time.sleep(0.05)
            done.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert held.wait(10)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)
        try:
            locked.allocate(Layout(8, 8))
            os._exit(0 if done.is_set() else 2)
        finally:
            os._exit(1)
    thread.join(10)
    _child, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
