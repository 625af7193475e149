"""TracemallocAllocator: shows the blocks of any allocator to Python's own `tracemalloc`.

    tracemalloc.start(10)
    allocator = TracemallocAllocator(Arena(PageAlloc()))
    ...
    snapshot = tracemalloc.take_snapshot()
    blocks = snapshot.filter_traces([tracemalloc.DomainFilter(True, TRACEMALLOC_DOMAIN)])
    for line in blocks.statistics("traceback"): ...

The blocks have their own domain, so nothing that Python counts itself is counted twice. Their tracebacks end in this
module, so start tracemalloc with several frames. Blocks allocated while tracing is off do not appear, nor do those of
size zero, which have no bytes and may share an address.

Costs: about a microsecond per operation, plus tracemalloc's time for the traceback.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import ctypes
from typing import Final, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.layout import Layout
from allocators.protocol import Allocator
from allocators.trace.records import Record, RecordingAdaptor

A = TypeVar("A", bound=Allocator)

#: The tracemalloc domain of the blocks; Python's own is 0.
TRACEMALLOC_DOMAIN: Final = 0xA110C

_TRACK: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_size_t)
_UNTRACK: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_size_t)


@mypyc_attr(native_class=True)
class TracemallocAllocator(RecordingAdaptor[A], Generic[A]):
    """Forwards to `parent`, and reports each block to tracemalloc.

    Raises AttributeError if Python has no tracemalloc.
    """

    __slots__ = ("_track", "_untrack")

    def __init__(self, parent: A) -> None:
        super().__init__(parent)
        self._track: Final = _TRACK(("PyTraceMalloc_Track", ctypes.pythonapi))
        self._untrack: Final = _UNTRACK(("PyTraceMalloc_Untrack", ctypes.pythonapi))

    def _allocated(self, kind: str, record: Record, layout: Layout) -> None:
        if record.size:
            self._track(TRACEMALLOC_DOMAIN, record.address, record.size)

    def _freed(self, record: Record) -> None:
        if record.size:
            self._untrack(TRACEMALLOC_DOMAIN, record.address)

    def _resized(self, kind: str, record: Record, address: i64, old: Layout, new: Layout) -> None:
        if old.size and (address != record.address or new.size == 0):
            self._untrack(TRACEMALLOC_DOMAIN, address)
        if new.size:
            self._track(TRACEMALLOC_DOMAIN, record.address, new.size)

    def _gone(self, records: list[Record]) -> None:
        for record in records:
            self._freed(record)

    def close(self) -> None:
        """Close the parent, and remove blocks that are still live from tracemalloc."""
        try:
            super().close()
        finally:
            self._gone(self._records.clear())

    def __repr__(self) -> str:
        return f"tracemalloc({self._parent!r})"
