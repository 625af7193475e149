"""Reports: what a metric has counted, as text and as JSON."""

from __future__ import annotations

import json
from xml.etree import ElementTree

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
from allocators.report import as_html


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
    shown = {line.split()[0]: line for line in lines[13:20]}
    assert list(shown) == ["live", "dead", "padding", "tail", "abandoned", "overhead", "slack"]
    for name, size in waste.as_dict().items():
        if name != "total":
            assert shown[name].split()[1:] == [f"{size:,}", f"{100 * size / waste.total:.1f}", "%"]
    assert lines[21] == f"where the {metric.parent.parent.allocated_bytes:,} bytes of page are"
    assert report.endswith("\n")
    assert report.isascii()


def test_the_report_of_an_unused_metric_has_no_histogram() -> None:
    metric = MetricAllocator(StackAlloc(bytearray(64)))
    assert "size up to" not in metric.report()
    assert "bytes         0     0      0" in metric.report()
    assert "by size" not in metric.report_html()


def test_json_has_the_same_figures() -> None:
    metric = example()
    figures = json.loads(metric.report_json())
    assert figures == metric.figures()
    assert list(figures) == ["allocator", "counters", "histogram", "waste"]
    assert figures["counters"] == metric.counters.as_dict()
    below = (metric.parent, metric.parent.parent)
    assert figures["waste"] == [{"allocator": repr(allocator), **allocator.waste().as_dict()} for allocator in below]


def texts(page: str) -> list[str]:
    """What a page shows, piece by piece. Raises where it is not well-formed."""
    root = ElementTree.fromstring(page)
    body = root.find("{http://www.w3.org/1999/xhtml}body")
    assert body is not None
    return [text.strip() for text in body.itertext() if text.strip()]


def test_the_page_is_well_formed_and_has_the_same_figures() -> None:
    metric = example()
    page = metric.report_html()
    shown = texts(page)
    assert shown[0] == "metric(arena(page))"
    # The text has bars, the page one heading more.
    words = [word for word in metric.report().split() if not word.startswith("#")]
    shown.remove("Blocks by size")
    assert " ".join(shown).replace("Where", "where").split() == words


def test_the_page_needs_nothing_beside_itself() -> None:
    page = example().report_html()
    for outside in ("<script", "<link", "<img", "src=", "href=", "url(", "@import"):
        assert outside not in page
    assert page.count("http") == page.count("http://www.w3.org/1999/xhtml") == 1


def test_names_are_escaped_on_the_page() -> None:
    name = 'evil("<script>&\'")'
    figures = example().figures()
    figures["allocator"] = name
    figures["waste"] = [{**example().figures()["waste"][0], "allocator": name}]  # type: ignore[index]
    page = as_html(figures)
    assert "<script" not in page
    assert texts(page)[0] == name
    assert any(name in text for text in texts(page)[1:])


def test_every_allocator_below_shows_its_waste() -> None:
    metric = MetricAllocator(FallbackAllocator(Arena(PageAlloc()), LimitAllocator(BumpAlloc(PageAlloc()), 1000)))
    metric.allocate(Layout(8, 8))
    wastes = metric.figures()["waste"]
    assert [waste["allocator"] for waste in wastes] == ["arena(page)", "page", "bump(page)", "page"]  # type: ignore[attr-defined]


def test_the_chain_goes_down_from_parent_to_parent() -> None:
    pages = PageAlloc()
    stack = StackAlloc(bytearray(64))
    arena = Arena(pages)
    fallback = FallbackAllocator(stack, arena)
    metric = MetricAllocator(fallback)
    assert chain(metric) == [metric, fallback, stack, arena, pages]
    assert chain(object())[1:] == []
