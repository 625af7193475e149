"""What is a value can be copied and pickled; what owns memory refuses."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    ArenaPool,
    BinningAllocator,
    BumpAlloc,
    CallbackAllocator,
    CallSiteAllocator,
    CorruptionError,
    Counters,
    DebugAllocator,
    DoubleFreeError,
    FailingAllocator,
    FallbackAllocator,
    Layout,
    LayoutError,
    LeakError,
    LimitAllocator,
    LockedAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    ProfilerRecords,
    Region,
    ResetPolicy,
    RetryAllocator,
    SpecError,
    StackAlloc,
    Trace,
    TracemallocAllocator,
    TracingAllocator,
    Waste,
    parse_spec,
    profile,
    reset,
)
from allocators.base import BaseAllocator
from allocators.collections import ByteBuffer, HashMap, Interner, Table, Vec
from allocators.errors import TraceError
from allocators.testing import ConformanceError
from allocators.testing.errors import LeakedBlocks
from allocators.testing.instrumented import Call, Failures
from allocators.trace.format import Operation, read_trace

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


def spec_error() -> SpecError:
    with pytest.raises(SpecError) as caught:
        parse_spec("arena(pgae)")
    return caught.value


def trace_error() -> TraceError:
    with pytest.raises(TraceError) as caught:
        list(read_trace(["allocators trace 1", "a x"], name="here"))
    return caught.value


def alloc_error() -> AllocError:
    with pytest.raises(AllocError) as caught:
        LimitAllocator(PageAlloc(), 100).allocate(Layout(101, 16))
    return caught.value


ERRORS = [
    alloc_error(),
    spec_error(),
    trace_error(),
    LayoutError("a"),
    MisuseError("b"),
    DoubleFreeError("c"),
    CorruptionError("d"),
    LeakError("e"),
    ConformanceError("a promise", ["a.allocate()"]),
    LeakedBlocks("another", ["a.close()"]),
]


@each_way
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_of_an_error_says_the_same(error: Exception, way: Callable[[Any], Any]) -> None:
    twin = way(error)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert twin.args == error.args
    assert vars(twin) == vars(error)


@each_way
def test_a_copy_of_an_error_keeps_its_notes(way: Callable[[Any], Any]) -> None:
    error = alloc_error()
    error.add_note("in the third round")
    assert way(error).__notes__ == ["in the third round"]


class Hungry(AllocError):
    """An error of somebody else's, with a constructor of its own."""

    def __init__(self, meal: str) -> None:
        self.meal = meal
        super().__init__("kitchen", Layout(3, 1))


@each_way
def test_an_error_derived_from_ours_can_be_copied(way: Callable[[Any], Any]) -> None:
    twin = way(Hungry("lunch"))
    assert (type(twin), twin.meal, twin.size) == (Hungry, "lunch", 3)
    assert str(twin) == str(Hungry("lunch"))


#: What another process evaluates; it cannot import this module.
ALLOCATE = "(a := __import__('allocators')).LimitAllocator(a.PageAlloc(), 64).allocate(a.Layout(65, 16))"
PARSE_SPEC = "__import__('allocators').parse_spec('arena(pgae)')"
READ_TRACE = (
    "list(__import__('allocators.trace.format').trace.format.read_trace(('allocators trace 1', 'a x'), name='here'))"
)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_a_process_pool_hands_errors_and_layouts_through(pool: ProcessPoolExecutor) -> None:
    with pytest.raises(AllocError) as caught:
        pool.submit(eval, ALLOCATE).result(60)
    assert (caught.value.size, caught.value.align, caught.value.limit) == (65, 16, 64)
    with pytest.raises(SpecError) as wrong_spec:
        pool.submit(eval, PARSE_SPEC).result(60)
    assert str(wrong_spec.value) == str(spec_error())
    with pytest.raises(TraceError) as wrong_trace:
        pool.submit(eval, READ_TRACE).result(60)
    assert str(wrong_trace.value) == str(trace_error())
    # The pool is not broken.
    assert pool.submit(eval, "layout", {"layout": Layout(64, 32)}).result(60) == Layout(64, 32)


def test_an_allocator_sent_to_a_process_pool_is_a_type_error(pool: ProcessPoolExecutor) -> None:
    with Arena(PageAlloc()) as arena, pytest.raises(TypeError, match="cannot copy or pickle 'Arena'"):
        pool.submit(repr, arena).result(60)
    with pytest.raises(TypeError, match="cannot copy or pickle 'Arena'"):
        pool.submit(eval, "__import__('allocators').parse_spec('arena(page)')").result(60)


class Half(ResetPolicy):
    """A policy of somebody else's."""

    def __init__(self) -> None:
        super().__init__(2)
        self.share = 2

    def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
        return capacity // self.share


@each_way
def test_a_copy_of_a_value_is_as_the_value(way: Callable[[Any], Any]) -> None:
    layout = way(Layout(3, 4))
    assert layout == Layout(3, 4)
    assert hash(layout) == hash(Layout(3, 4))
    with Arena(PageAlloc()) as arena:
        arena.allocate(Layout(100))
        waste = arena.waste()
    assert way(waste).as_dict() == waste.as_dict()
    assert type(way(waste)) is Waste
    operation = way(Operation("a", 3, Layout(8)))
    assert (operation.kind, operation.id, operation.layout) == ("a", 3, Layout(8))
    call = way(Call("grow", 16, Layout(1), Layout(2)))
    assert repr(call) == repr(Call("grow", 16, Layout(1), Layout(2)))


@each_way
def test_a_copy_of_counters_counts_on_its_own(way: Callable[[Any], Any]) -> None:
    with MetricAllocator(PageAlloc()) as metric:
        metric.allocate(Layout(100))
        counters: Counters = metric.counters
        twin = way(counters)
        assert twin.as_dict() == counters.as_dict()
        counters.absorb(metric.counters)
    assert (twin.total_bytes, counters.total_bytes) == (100, 200)


@each_way
def test_a_copy_of_profiler_records_counts_on_its_own(way: Callable[[Any], Any]) -> None:
    records = ProfilerRecords()
    metric = MetricAllocator(PageAlloc())
    with profile(metric, records, "a"):
        metric.allocate(Layout(100))
    twin = way(records)
    assert twin.report() == records.report()
    assert repr(way(records["a"])) == repr(records["a"])
    with profile(metric, twin, "a"):
        pass
    assert (twin["a"].num_calls, records["a"].num_calls) == (2, 1)
    metric.close()


@each_way
def test_a_copy_of_a_reset_policy_keeps_the_same(way: Callable[[Any], Any]) -> None:
    assert way(reset.NEWEST) is reset.NEWEST
    assert way(reset.ALL) is reset.ALL
    for policy in (reset.NONE, reset.limit(1000), reset.recent_peak(3, least=50), Half()):
        twin = way(policy)
        assert twin.rounds == policy.rounds
        assert twin.kept(4000, 100, [200, 300]) == policy.kept(4000, 100, [200, 300])
        with Arena(PageAlloc()) as arena:
            arena.allocate(Layout(100))
            assert arena.reset(twin)


class Simple(BaseAllocator):
    """An allocator of somebody else's."""

    def __init__(self) -> None:
        self.pages = PageAlloc()


def live_things() -> list[Any]:
    """One of everything that owns memory or points at what does."""
    pages = PageAlloc()
    arena = Arena(pages)
    pool = ArenaPool(pages)
    debug = DebugAllocator(pages, raise_leaks=False)
    debug.allocate(Layout(8))
    vec = Vec(arena, "q")
    vec.append(1)
    entries = HashMap(arena)
    entries[1] = 1
    return [
        arena,
        pages,
        pool,
        pool.take(),
        debug,
        debug.leaks()[0],
        BumpAlloc(pages),
        StackAlloc(bytearray(100)),
        PoolAllocator(pages, 32),
        BinningAllocator(pages),
        CallbackAllocator(lambda layout: None, lambda memory, layout: None),
        CallSiteAllocator(pages),
        FailingAllocator(pages),
        FallbackAllocator(arena, pages),
        LimitAllocator(pages, 100),
        LockedAllocator(pages),
        MetricAllocator(pages),
        RetryAllocator(pages),
        TracemallocAllocator(pages),
        TracingAllocator(pages),
        Simple(),
        arena.allocate(Layout(8)),
        arena.allocate(Layout(0)),
        Region.of(bytearray(8)),
        arena.checkpoint(),
        arena.scope(),
        vec,
        iter(vec),
        Table(arena, "qd"),
        ByteBuffer(arena),
        entries,
        iter(entries),
        Interner(arena),
        Trace(),
        profile(MetricAllocator(pages), ProfilerRecords(), "a"),
        Failures(),
        Failures().allocator(),
    ]


@each_way
def test_what_owns_memory_refuses_to_be_copied(way: Callable[[Any], Any]) -> None:
    for thing in live_things():
        with pytest.raises(TypeError, match=rf"^cannot copy or pickle '{type(thing).__name__}': "):
            way(thing)


@each_way
def test_a_list_that_holds_an_allocator_refuses_as_well(way: Callable[[Any], Any]) -> None:
    if way is copy.copy:
        # A second list of the same allocators.
        with Arena(PageAlloc()) as arena:
            assert copy.copy([arena])[0] is arena
        return
    with Arena(PageAlloc()) as arena, pytest.raises(TypeError, match="'Arena'"):
        way([Layout(1), arena])
