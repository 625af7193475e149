"""Reports: what a metric has counted, as text and as JSON."""

from __future__ import annotations

import json

from allocators import (
    Arena,
    BumpAlloc,
    FallbackAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    PageAlloc,
    StackAlloc,
)
from allocators.chain import chain


def example() -> MetricAllocator[Arena[PageAlloc]]:
    metric = MetricAllocator(Arena(PageAlloc()))
    big = metric.allocate(Layout(1000, 8))
    metric.allocate(Layout(600, 8))
    one = metric.allocate(Layout(1, 1))
    metric.allocate(Layout(300, 8))
    big = metric.grow(big, Layout(1000, 8), Layout(33_000, 8))
    for block, layout in ((one, Layout(1, 1)), (big, Layout(33_000, 8))):
        metric.deallocate(block, layout)
    return metric


def test_the_report_is_plain_text() -> None:
    metric = example()
    report = metric.report()
    lines = report.splitlines()
    assert lines[0] == "metric(arena(page))"
    assert lines[2:6] == [
        "        current    peak   total",
        "bytes       900  33,901  33,901",
        "blocks        2       4       4",
        "2 frees, 1 resizes, 0 failures",
    ]
    assert lines[7:11] == [
        "size up to  blocks",
        "1                1  ####################",
        "512              1  ####################",
        "1,024            2  ########################################",
    ]
    waste = metric.parent.waste()
    assert lines[12] == f"where the {waste.total:,} bytes of arena(page) are"
    shown = {line.split()[0]: line for line in lines[13:]}
    assert list(shown) == ["live", "dead", "padding", "tail", "abandoned", "overhead", "slack"]
    for name, size in waste.as_dict().items():
        if name != "total":
            assert shown[name].split()[1:] == [f"{size:,}", f"{100 * size / waste.total:.1f}", "%"]
    assert report.endswith("\n")
    assert report.isascii()


def test_the_report_of_an_unused_metric_has_no_histogram() -> None:
    report = MetricAllocator(StackAlloc(bytearray(64))).report()
    assert "size up to" not in report
    assert "bytes         0     0      0" in report


def test_json_has_the_same_figures() -> None:
    metric = example()
    figures = json.loads(metric.report_json())
    assert figures == metric.figures()
    assert list(figures) == ["allocator", "counters", "histogram", "waste"]
    assert figures["counters"] == metric.counters.as_dict()
    assert figures["waste"] == [{"allocator": "arena(page)", **metric.parent.waste().as_dict()}]


def test_every_allocator_below_shows_its_waste() -> None:
    metric = MetricAllocator(FallbackAllocator(Arena(PageAlloc()), LimitAllocator(BumpAlloc(PageAlloc()), 1000)))
    metric.allocate(Layout(8, 8))
    wastes = metric.figures()["waste"]
    assert [waste["allocator"] for waste in wastes] == ["arena(page)", "bump(page)"]  # type: ignore[attr-defined]


def test_the_chain_goes_down_from_parent_to_parent() -> None:
    pages = PageAlloc()
    stack = StackAlloc(bytearray(64))
    arena = Arena(pages)
    fallback = FallbackAllocator(stack, arena)
    metric = MetricAllocator(fallback)
    assert chain(metric) == [metric, fallback, stack, arena, pages]
    assert chain(object())[1:] == []
