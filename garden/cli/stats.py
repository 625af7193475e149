"""The table of `--alloc-stats`: what each stage took from its allocator."""

from __future__ import annotations

from allocators import MetricAllocator
from allocators.report.table import table
from garden.pipeline import StageAllocators

_COLUMNS = ("stage", "allocs", "frees", "resizes", "bytes", "peak", "live")


def stats_table(allocators: StageAllocators) -> str:
    """One row per stage, scratch last. Bytes are the total requested, the peak, and those still live."""
    rows: list[tuple[str, ...]] = [_COLUMNS]
    for stage, allocator in allocators.items():
        if isinstance(allocator, MetricAllocator):
            counters = allocator.counters
            figures = (
                counters.total_blocks,
                counters.frees,
                counters.resizes,
                counters.total_bytes,
                counters.peak_bytes,
                counters.current_bytes,
            )
            rows.append((stage, *[str(figure) for figure in figures]))
    return table(rows) + "\n"
