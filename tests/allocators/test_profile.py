from __future__ import annotations

from collections.abc import Callable

import pytest

from allocators import (
    AllocError,
    Arena,
    Block,
    CallSiteAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    ProfilerRecords,
    profile,
)
from allocators.collections import Vec

TEN = Layout(10, 1)


def figures(records: ProfilerRecords, name: str) -> tuple[int, int, int]:
    record = records[name]
    return (record.num_calls, record.memory_total, record.memory_peak)


def name_of(function: Callable[..., object]) -> str:
    code = function.__wrapped__.__code__  # type: ignore[attr-defined]
    return f"{code.co_filename}:{code.co_firstlineno}({function.__qualname__})"


def test_a_function_that_keeps_one_of_two_blocks() -> None:
    """RMM's numbers."""
    metric = MetricAllocator(PageAlloc())
    records = ProfilerRecords()

    @profile(metric, records)
    def two() -> Block:
        first = metric.allocate(TEN)
        second = metric.allocate(TEN)
        metric.deallocate(first, TEN)
        return second

    two()
    two()
    assert figures(records, name_of(two)) == (2, 40, 20)


def test_an_inner_function_counts_for_itself_and_for_the_outer_one() -> None:
    """RMM's numbers."""
    metric = MetricAllocator(PageAlloc())
    records = ProfilerRecords()

    @profile(metric, records, "inner")
    def inner(first: Block) -> Block:
        second = metric.allocate(TEN)
        metric.deallocate(first, TEN)
        return second

    @profile(metric, records)
    def outer() -> Block:
        return inner(metric.allocate(TEN))

    for _ in range(3):
        metric.deallocate(outer(), TEN)
    assert figures(records, name_of(outer)) == (3, 60, 20)
    assert figures(records, "inner") == (3, 30, 10)
    assert metric.frames == 1


def test_many_blocks_at_once() -> None:
    metric = MetricAllocator(PageAlloc())
    records = ProfilerRecords()
    with profile(metric, records, "many"):
        for _ in range(100):
            metric.allocate(Layout(112, 1))
    assert figures(records, "many") == (1, 11_200, 11_200)


def test_a_block_that_only_frees_takes_nothing() -> None:
    metric = MetricAllocator(PageAlloc())
    records = ProfilerRecords()
    with profile(metric, records, "both"):
        blocks = [metric.allocate(Layout(112, 1)) for _ in range(2)]
        with profile(metric, records, "frees"):
            for block in blocks:
                metric.deallocate(block, Layout(112, 1))
    assert figures(records, "both") == (1, 224, 224)
    assert figures(records, "frees") == (1, 0, 0)


def test_a_recursive_function_counts_each_call() -> None:
    metric = MetricAllocator(PageAlloc())
    records = ProfilerRecords()

    @profile(metric, records, "down")
    def down(depth: int) -> None:
        metric.allocate(TEN)
        if depth:
            down(depth - 1)

    down(3)
    assert figures(records, "down") == (4, 10 + 20 + 30 + 40, 40)


def test_the_decorated_function_is_called_as_before() -> None:
    metric = MetricAllocator(PageAlloc())

    @profile(metric, ProfilerRecords())
    def add(left: int, *, right: int = 5) -> int:
        """Adds."""
        return left + right

    assert add(1) == 6
    assert add(1, right=2) == 3
    assert (add.__name__, add.__doc__) == ("add", "Adds.")


def test_an_exception_passes_and_what_came_before_it_is_recorded() -> None:
    metric = MetricAllocator(LimitAllocator(PageAlloc(), 15))
    records = ProfilerRecords()

    @profile(metric, records, "fails")
    def fails() -> None:
        metric.allocate(TEN)
        metric.allocate(TEN)

    with pytest.raises(AllocError):
        fails()
    assert figures(records, "fails") == (1, 10, 10)
    assert metric.frames == 1


def test_a_block_of_code_needs_a_name() -> None:
    with pytest.raises(MisuseError, match="needs a name"), profile(MetricAllocator(PageAlloc()), ProfilerRecords()):
        pass


def test_frames_left_behind_inside_are_told() -> None:
    metric = MetricAllocator(PageAlloc())
    with pytest.raises(MisuseError, match="frames of counters"), profile(metric, ProfilerRecords(), "unbalanced"):
        metric.push_counters()


def test_the_report_is_an_aligned_table_in_the_wanted_order() -> None:
    metric = MetricAllocator(PageAlloc())
    records = ProfilerRecords()
    assert "No data" in records.report()
    assert len(records) == 0
    for name, size, calls in (("often", 10, 20), ("large", 100_000, 1)):
        for _ in range(calls):
            with profile(metric, records, name):
                metric.allocate(Layout(size, 1))
    assert records.report() == (
        "name   num_calls  memory_peak  memory_total\n"
        "large          1      100,000       100,000\n"
        "often         20           10           200"
    )
    assert records.report("num_calls").splitlines()[1].startswith("often")
    assert records.report("memory_total").splitlines()[1].startswith("large")
    with pytest.raises(MisuseError, match="unknown order"):
        records.report("name")  # type: ignore[arg-type]


def allocate_three(allocator: CallSiteAllocator[Arena[PageAlloc]]) -> list[Block]:
    return [allocator.allocate(Layout(100, 8)) for _ in range(3)]


def test_blocks_are_counted_by_the_line_that_allocated_them() -> None:
    sites = CallSiteAllocator(Arena(PageAlloc()))
    blocks = allocate_three(sites)
    sites.deallocate(blocks.pop(), Layout(100, 8))
    grown = sites.grow(blocks.pop(), Layout(100, 8), Layout(150, 8))
    sites.allocate(Layout(7, 1))
    by_line = {name.rpartition("(")[2]: counters for name, counters in sites.sites.items()}
    assert len(by_line) == 2
    three = next(counters for name, counters in by_line.items() if "allocate_three" in name)
    assert (three.current_bytes, three.peak_bytes, three.total_bytes) == (250, 300, 350)
    assert (three.current_blocks, three.peak_blocks, three.total_blocks) == (2, 3, 3)
    assert (three.frees, three.resizes) == (1, 1)
    shrunk = sites.shrink(grown, Layout(150, 8), Layout(50, 8))
    sites.deallocate(shrunk, Layout(50, 8))
    assert sites.live_blocks == 2
    sites.reset()
    assert all(counters.current_bytes == counters.current_blocks == 0 for counters in sites.sites.values())


def test_a_site_is_a_line_and_containers_are_charged_to_who_uses_them() -> None:
    sites = CallSiteAllocator(PageAlloc())
    with Vec(sites, "q") as vec:
        for number in range(100):
            vec.append(number)
        (site,) = sites.sites
        assert site.startswith(f"{__file__}:")
        assert site.endswith("(test_a_site_is_a_line_and_containers_are_charged_to_who_uses_them)")
        assert sites.sites[site].current_bytes == 8 * 128


def test_failures_are_counted_by_site_and_a_scope_frees() -> None:
    sites = CallSiteAllocator(LimitAllocator(Arena(PageAlloc()), 100))
    with sites.scope():
        sites.allocate(Layout(60, 1))
        with pytest.raises(AllocError):
            sites.allocate(Layout(60, 1))
    assert sorted((counters.total_bytes, counters.failures) for counters in sites.sites.values()) == [(0, 1), (60, 0)]
    assert [counters.current_bytes for counters in sites.sites.values()] == [0, 0]


def test_the_site_report_lists_the_largest_first() -> None:
    sites = CallSiteAllocator(PageAlloc())
    assert "No data" in sites.report()
    sites.allocate(Layout(5, 1))
    sites.allocate(Layout(5000, 1))
    heading, first, second = sites.report().splitlines()
    assert heading.split() == [
        "call",
        "site",
        "total_bytes",
        "peak_bytes",
        "current_bytes",
        "total_blocks",
        "current_blocks",
    ]
    assert first.split()[1:] == ["5,000", "5,000", "5,000", "1", "1"]
    assert second.split()[1:] == ["5", "5", "5", "1", "1"]
