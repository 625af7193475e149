"""CallSiteAllocator: which lines of a program allocate how much.

A block always belongs to the line that allocated it, and later growth adds to that line's total. Lines inside this
package are skipped, so the growth of a Vec is charged to the line that appends to it. Compiled callers have no frames;
their allocations are charged to the Python code that called them.

Costs: a microsecond per operation, for walking the stack, and a record of each live block.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.metric import Counters
from allocators.layout import Layout
from allocators.protocol import Allocator
from allocators.report.table import table
from allocators.trace.call_stack import CallStack
from allocators.trace.records import Record, RecordingAdaptor

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class CallSiteAllocator(RecordingAdaptor[A], Generic[A]):
    """Counts the operations of `parent` by call site."""

    __slots__ = ("_sites",)

    def __init__(self, parent: A) -> None:
        super().__init__(parent)
        self._sites: dict[str, Counters] = {}

    def _here(self) -> Counters:
        return self._sites.setdefault(CallStack.here(1).site(), Counters())

    def _allocated(self, kind: str, record: Record, layout: Layout) -> None:
        counters = self._here()
        record.tag = counters
        counters.total_blocks += 1
        counters.total_bytes += layout.size
        _change(counters, 1, layout.size)

    def _freed(self, record: Record) -> None:
        counters: Counters = record.tag
        counters.frees += 1
        _change(counters, -1, -record.size)

    def _resized(self, kind: str, record: Record, address: i64, old: Layout, new: Layout) -> None:
        counters: Counters = record.tag
        growth = new.size - old.size
        if growth > 0:
            counters.total_bytes += growth
        counters.resizes += 1
        _change(counters, 0, growth)

    def _refused(self, kind: str, layout: Layout) -> None:
        self._here().failures += 1

    def _gone(self, records: list[Record]) -> None:
        for record in records:
            self._freed(record)

    @property
    def sites(self) -> dict[str, Counters]:
        """A snapshot of the counters of each call site, by its name: file:line(function)."""
        return {site: counters.copy() for site, counters in list(self._sites.items())}

    def report(self) -> str:
        """The call sites as an aligned table, most total bytes first."""
        sites = sorted(self.sites.items(), key=_most_bytes_first)
        if not sites:
            return "No data: nothing has been allocated."
        rows = [["call site", *_COLUMNS]]
        for site, counters in sites:
            figures = counters.as_dict()
            rows.append([site, *[f"{figures[column]:,}" for column in _COLUMNS]])
        return table(rows)

    def __repr__(self) -> str:
        return f"call_sites({self._parent!r})"


_COLUMNS: Final = ("total_bytes", "peak_bytes", "current_bytes", "total_blocks", "current_blocks")


def _change(counters: Counters, blocks: int, size: int) -> None:
    counters.current_blocks += blocks
    if counters.current_blocks > counters.peak_blocks:
        counters.peak_blocks = counters.current_blocks
    counters.current_bytes += size
    if counters.current_bytes > counters.peak_bytes:
        counters.peak_bytes = counters.current_bytes


def _most_bytes_first(site: tuple[str, Counters]) -> tuple[int, str]:
    return (-site[1].total_bytes, site[0])
