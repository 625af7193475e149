"""Replay: runs the operations of a trace on an allocator and counts the results.

The bytes of blocks are neither written nor read, so only the allocator is measured. A request that the allocator
refuses is counted, and later operations on that block are skipped.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from allocators.adaptors.metric import MetricAllocator
from allocators.block import Block
from allocators.chain import chain
from allocators.errors import MisuseError
from allocators.layout import Layout
from allocators.protocol import Allocator
from allocators.scope import Checkpoint
from allocators.trace.format import (
    ALLOCATE,
    ALLOCATE_ZEROED,
    CHECKPOINT,
    DEALLOCATE,
    FAILURE,
    GROW_ZEROED,
    RESET,
    RESTORE,
    Operation,
)


class Replay:
    """One replay and its figures so far."""

    def __init__(self, allocator: Allocator, *, min_align: int = 1) -> None:
        #: Counts the operations; the given allocator itself if it is a MetricAllocator.
        self.metric: Final[MetricAllocator[Any]] = (
            allocator if isinstance(allocator, MetricAllocator) else MetricAllocator(allocator)
        )
        self._min_align = min_align
        self._used_bytes = _used_bytes_of(self.metric)
        self._live: dict[int, tuple[Block, Layout]] = {}
        self._points: list[Checkpoint] = []
        #: Operations done.
        self.operations = 0
        #: Resizes that moved the block, or left it in place.
        self.moved = 0
        self.stayed = 0
        #: Requests that this allocator refused, and operations skipped because of that.
        self.refused = 0
        self.skipped = 0
        #: Requests that were refused when the trace was recorded.
        self.refused_in_trace = 0
        #: Peak bytes of chunks in use, including padding and dead blocks; None if the allocator cannot tell.
        self.most_used: int | None = None if self._used_bytes is None else 0
        self.seconds = 0.0

    def run(self, operations: Iterable[Operation]) -> None:
        """Run all operations. `MisuseError` for one that this allocator does not support, such as a checkpoint."""
        start = time.perf_counter()
        for operation in operations:
            try:
                self._do(operation)
            except MisuseError as error:
                raise MisuseError(f"operation {self.operations}, {operation!r}: {error}") from error
            self.operations += 1
            if self._used_bytes is not None and operation.kind != DEALLOCATE:
                self.most_used = max(self.most_used or 0, self._used_bytes())
        self.seconds += time.perf_counter() - start

    def _do(self, operation: Operation) -> None:
        kind = operation.kind
        if kind == DEALLOCATE:
            held = self._live.pop(operation.id, None)
            if held is None or held[0].released:
                self.skipped += 1
            else:
                self.metric.deallocate(*held)
        elif kind in (ALLOCATE, ALLOCATE_ZEROED):
            self._allocate(operation)
        elif kind == FAILURE:
            self.refused_in_trace += 1
        elif kind == CHECKPOINT:
            self._points.append(self.metric.checkpoint())
        elif kind == RESTORE:
            self.metric.restore(self._points[operation.id])
            del self._points[operation.id :]
            self._forget_released()
        elif kind == RESET:
            self.metric.reset()
            self._points.clear()
            self._live.clear()
        else:
            self._resize(operation)

    def _allocate(self, operation: Operation) -> None:
        layout = self._layout(operation)
        try:
            if operation.kind == ALLOCATE_ZEROED:
                block = self.metric.allocate_zeroed(layout)
            else:
                block = self.metric.allocate(layout)
        except MemoryError:
            self.refused += 1
        else:
            self._live[operation.id] = (block, layout)

    def _layout(self, operation: Operation) -> Layout:
        layout = operation.layout
        return layout if layout.align >= self._min_align else Layout(layout.size, self._min_align)

    def _resize(self, operation: Operation) -> None:
        held = self._live.get(operation.id)
        if held is None or held[0].released:
            self.skipped += 1
            return
        block, old = held
        new = self._layout(operation)
        try:
            if new.size <= old.size:
                resized = self.metric.shrink(block, old, new)
            elif operation.kind == GROW_ZEROED:
                resized = self.metric.grow_zeroed(block, old, new)
            else:
                resized = self.metric.grow(block, old, new)
        except MemoryError:
            self.refused += 1
            return
        if resized.address == block.address:
            self.stayed += 1
        else:
            self.moved += 1
        self._live[operation.id] = (resized, new)

    def _forget_released(self) -> None:
        self._live = {id: held for id, held in self._live.items() if not held[0].released}

    def figures(self) -> dict[str, object]:
        """All figures, for JSON: those of the metric, and `replay`."""
        return {
            **self.metric.figures(),
            "replay": {
                "operations": self.operations,
                "seconds": self.seconds,
                "moved": self.moved,
                "stayed": self.stayed,
                "refused": self.refused,
                "skipped": self.skipped,
                "refused_in_trace": self.refused_in_trace,
                "most_used": self.most_used,
            },
        }

    def summary(self) -> str:
        """The figures of the replay as text, without those of the metric."""
        lines = [f"{self.operations:,} operations in {self.seconds:.3f} s"]
        if self.moved or self.stayed:
            lines.append(f"{self.moved:,} resized blocks moved, {self.stayed:,} stayed")
        if self.refused or self.skipped:
            lines.append(f"{self.refused:,} requests refused, and {self.skipped:,} operations left out for that")
        if self.refused_in_trace:
            lines.append(f"{self.refused_in_trace:,} requests had been refused when the trace was recorded")
        if self.most_used is not None:
            lines.append(f"at most {self.most_used:,} bytes of chunks in use, dead blocks and padding included")
        return "\n".join(lines)


def _used_bytes_of(metric: MetricAllocator[Any]) -> Callable[[], int] | None:
    """A function that reads `used_bytes` of the nearest allocator below that has it; None if none has."""
    for allocator in chain(metric):
        if hasattr(allocator, "used_bytes"):
            # The default argument binds the allocator of this iteration.
            return lambda chunked=allocator: int(chunked.used_bytes)  # type: ignore[misc]
    return None
