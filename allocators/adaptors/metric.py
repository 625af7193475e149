"""MetricAllocator: forwards to a parent and counts.

The counters are those of RMM: current, peak and total bytes and blocks; also frees, resizes and failures, and a
histogram of request sizes by power of two. A grow is one resize and adds only the growth to the total, even if the
block moves; a shrink adds nothing.

Frames: `push_counters` starts a frame at zero, and `pop_counters` ends it and adds it to the enclosing frame, so that
measurements nest. Counters of inner frames can go negative, since they include frees of older blocks.

Costs: a second call and about ten additions and comparisons. Memory: only the counters.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import CountingAdaptor
from allocators.block import Block, Region
from allocators.chain import chain
from allocators.layout import Layout
from allocators.protocol import Allocator
from allocators.report.as_html import as_html
from allocators.report.as_json import as_json
from allocators.report.as_text import as_text

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class Counters:
    """One frame of counters; names ending in `_bytes` count bytes, the others blocks or calls."""

    __slots__ = (
        "current_blocks",
        "current_bytes",
        "failures",
        "frees",
        "peak_blocks",
        "peak_bytes",
        "resizes",
        "total_blocks",
        "total_bytes",
    )

    def __init__(self) -> None:
        self.current_bytes: i64 = 0
        self.current_blocks: i64 = 0
        self.peak_bytes: i64 = 0
        self.peak_blocks: i64 = 0
        self.total_bytes: i64 = 0
        self.total_blocks: i64 = 0
        self.frees: i64 = 0
        self.resizes: i64 = 0
        self.failures: i64 = 0

    def copy(self) -> Counters:
        """A snapshot of the counters."""
        copy = Counters()
        copy.absorb(self)
        return copy

    def absorb(self, inner: Counters) -> None:
        """Add a frame that has ended inside this one."""
        peak_bytes = self.current_bytes + inner.peak_bytes
        if peak_bytes > self.peak_bytes:
            self.peak_bytes = peak_bytes
        peak_blocks = self.current_blocks + inner.peak_blocks
        if peak_blocks > self.peak_blocks:
            self.peak_blocks = peak_blocks
        self.current_bytes += inner.current_bytes
        self.current_blocks += inner.current_blocks
        self.total_bytes += inner.total_bytes
        self.total_blocks += inner.total_blocks
        self.frees += inner.frees
        self.resizes += inner.resizes
        self.failures += inner.failures

    def as_dict(self) -> dict[str, int]:
        """The figures by name, for JSON."""
        return {
            "current_bytes": self.current_bytes,
            "current_blocks": self.current_blocks,
            "peak_bytes": self.peak_bytes,
            "peak_blocks": self.peak_blocks,
            "total_bytes": self.total_bytes,
            "total_blocks": self.total_blocks,
            "frees": self.frees,
            "resizes": self.resizes,
            "failures": self.failures,
        }

    def __repr__(self) -> str:
        return f"<Counters {' '.join([f'{name}={value}' for name, value in self.as_dict().items()])}>"


@mypyc_attr(native_class=True)
class MetricAllocator(CountingAdaptor[A], Generic[A]):
    """Counts the operations of `parent`, and hands out exactly the requested sizes.

    `live_bytes` and `live_blocks` include blocks from all frames.
    """

    __slots__ = ("_frames", "_histogram", "_run", "_run_size", "_top")

    def __init__(self, parent: A) -> None:
        super().__init__(parent)
        self._top = Counters()
        self._frames: list[Counters] = [self._top]
        self._histogram: list[int] = [0] * 65
        # A run of allocations of one size; entered into the histogram when the size changes or the histogram is read.
        self._run_size: i64 = 0
        self._run: i64 = 0

    @property
    def counters(self) -> Counters:
        """A snapshot of the counters of the innermost frame."""
        return self._top.copy()

    @property
    def histogram(self) -> dict[int, int]:
        """Number of allocations by size class: the smallest power of two, or 0, that the size does not exceed."""
        self._start_run(self._run_size)
        return {(1 << index) >> 1: count for index, count in enumerate(self._histogram) if count}

    def figures(self) -> dict[str, object]:
        """All figures, for `report`, `report_json` and `report_html`.

        `allocator` is the spec, `counters` those of the innermost frame, `histogram` a list of size classes, and
        `waste` the split of each allocator below that reports one, nearest first.
        """
        wastes: list[dict[str, object]] = []
        for allocator in chain(self._parent):
            waste = getattr(allocator, "waste", None)
            if waste is not None:
                wastes.append({"allocator": repr(allocator), **waste().as_dict()})
        return {
            "allocator": repr(self),
            "counters": self._top.as_dict(),
            "histogram": [{"up_to": size, "blocks": count} for size, count in self.histogram.items()],
            "waste": wastes,
        }

    def report(self) -> str:
        """Counters, size histogram, and the waste of the allocators below, as text tables."""
        return as_text(self.figures())

    def report_json(self) -> str:
        """The same figures as one JSON object."""
        return as_json(self.figures())

    def report_html(self) -> str:
        """The same figures as one self-contained HTML page."""
        return as_html(self.figures())

    @property
    def frames(self) -> int:
        """Number of counter frames, including the outermost."""
        return len(self._frames)

    def push_counters(self) -> Counters:
        """Begin a frame at zero; returns a snapshot of the enclosing frame."""
        before = self._top.copy()
        self._top = Counters()
        self._frames.append(self._top)
        return before

    def pop_counters(self) -> Counters:
        """End the innermost frame, add it to the enclosing one, and return it. IndexError for the outermost."""
        if len(self._frames) == 1:
            raise IndexError("no counter frame to pop")
        popped = self._frames.pop()
        self._top = self._frames[-1]
        self._top.absorb(popped)
        return popped

    def allocate(self, layout: Layout) -> Block:
        try:
            block = self._up.allocate(layout)
        except MemoryError:
            self._top.failures += 1
            raise
        return self._count(block, layout)

    def allocate_zeroed(self, layout: Layout) -> Block:
        try:
            block = self._up.allocate_zeroed(layout)
        except MemoryError:
            self._top.failures += 1
            raise
        return self._count(block, layout)

    def _count(self, block: Block, layout: Layout) -> Block:
        # Inlined `_added`: one call less on the hot path.
        size = layout.size
        top = self._top
        current = top.current_bytes + size
        top.current_bytes = current
        if current > top.peak_bytes:
            top.peak_bytes = current
        blocks = top.current_blocks + 1
        top.current_blocks = blocks
        if blocks > top.peak_blocks:
            top.peak_blocks = blocks
        top.total_bytes += size
        top.total_blocks += 1
        self._live_bytes += size
        self._live_blocks += 1
        # A loop, since a signal handler may have begun another run.
        while size != self._run_size:
            self._start_run(size)
        self._run += 1
        if self._ledger.open:
            self._ledger.added(block.region, size)
        return block if block.size == size else Block(block.address, size, block.region)

    def _start_run(self, size: i64) -> None:
        """Add the finished run to the histogram and begin one of another size."""
        ended_size = self._run_size
        ended = self._run
        self._run_size = size
        self._run = 0
        self._histogram[size_class(ended_size)] += ended

    def deallocate(self, block: Block, layout: Layout) -> None:
        size = layout.size
        if size != block.size or self._live_blocks == 0 or size > self._live_bytes:
            raise self._uncounted(block, layout)
        region = block.region
        page: dict[Region, tuple[int, int]] | None = None
        if self._ledger.open:
            page = self._ledger.removed(region, size)
        self._live_bytes -= size
        self._live_blocks -= 1
        try:
            self._up.deallocate(block, layout)
        except BaseException as error:
            if not self._not_removed(error, block, region, page):
                self._removed(size)
            raise
        top = self._top
        top.current_bytes -= size
        top.current_blocks -= 1
        top.frees += 1

    def _removed(self, size: i64) -> None:
        top = self._top
        top.current_bytes -= size
        top.current_blocks -= 1
        top.frees += 1

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        self._check_resize(block, old)
        region = block.region
        try:
            grown = self._up.grow(block, old, new)
        except BaseException as error:
            self._failed(error, block, region, old)
            raise
        return self._resized(region, grown, old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        self._check_resize(block, old)
        region = block.region
        try:
            grown = self._up.grow_zeroed(block, old, new)
        except BaseException as error:
            self._failed(error, block, region, old)
            raise
        return self._resized(region, grown, old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        self._check_resize(block, old)
        region = block.region
        try:
            shrunk = self._up.shrink(block, old, new)
        except BaseException as error:
            self._failed(error, block, region, old)
            raise
        return self._resized(region, shrunk, old, new)

    def _failed(self, error: BaseException, block: Block, region: Region, old: Layout) -> None:
        self._not_resized(block, region, old)
        if isinstance(error, MemoryError):
            self._top.failures += 1

    def _resized(self, region: Region, block: Block, old: Layout, new: Layout) -> Block:
        growth = new.size - old.size
        top = self._top
        top.current_bytes += growth
        if growth > 0:
            top.total_bytes += growth
            if top.current_bytes > top.peak_bytes:
                top.peak_bytes = top.current_bytes
        top.resizes += 1
        return super()._resized(region, block, old, new)

    def _lost(self, blocks: int, size: int) -> None:
        """Blocks that the parent drops in bulk count as frees."""
        top = self._top
        top.current_bytes -= size
        top.current_blocks -= blocks
        top.frees += blocks

    def __repr__(self) -> str:
        return f"metric({self._parent!r})"


def size_class(size: int) -> int:
    """The histogram class of a size: 0 for 0, else 1 + the exponent of the smallest power of two that is no less."""
    return (size - 1).bit_length() + 1 if size else 0
