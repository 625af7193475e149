"""TracingAllocator: records every operation, to read, compare, or replay on another allocator.

The text format is that of `allocators.trace.format`: one line per operation, blocks numbered in order of allocation. It
contains requests and not addresses, so two runs of a program have the same trace.

In memory the record is a `Trace`, a table in allocator memory of 38 bytes per operation, which also has addresses,
times and threads, and can be written as a CSV log of RMM. With a `file`, lines are written there immediately and
nothing is kept.

Costs: about two microseconds per operation.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Generic, TextIO, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import ALL_BLOCKS
from allocators.closing import Closing
from allocators.collections.table import Table
from allocators.errors import MisuseError
from allocators.layout import Layout
from allocators.page import PageAlloc
from allocators.protocol import Allocator
from allocators.reset import ResetPolicy
from allocators.scope import Checkpoint
from allocators.trace.format import (
    CHECKPOINT,
    DEALLOCATE,
    FAILURE,
    HEADER,
    NO_ID,
    RESET,
    RESTORE,
)
from allocators.trace.records import Record, RecordingAdaptor

A = TypeVar("A", bound=Allocator)

# Columns of a trace: letter of the operation, exponent of the alignment, id of the block (for a restore, number of the
# checkpoint), size in bytes, address, wall-clock time in nanoseconds, thread.
_FORMATS: Final = "BBiqqqq"
#: Added to the letter of an operation that was refused.
_REFUSED: Final = 0x80
#: A block dropped by a reset or the end of a scope; not in the text, where the line of the reset or restore implies it.
_GONE: Final = "d"

_RMM_HEADER: Final = "Thread,Time,Action,Pointer,Size,Stream"


#: Letter of an operation, exponent of the alignment, id, size, address, time, thread: see above.
Row = tuple[int, int, int, int, int, int, int]


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class _Log(Closing):
    """Records operations in order, including those of signal handlers and finalisers during another one."""

    __slots__ = ("_pending", "_writing")

    def __init__(self) -> None:
        #: Recorded and not yet written.
        self._pending: deque[Row] = deque()
        self._writing = False

    def reserve(self, rows: int) -> None:
        """Make room for `rows` operations, so that recording them cannot fail."""

    def note(self, kind: str, id: int, layout: Layout | None, address: int, refused: bool = False) -> None:
        """Record an operation. `kind` is its letter in the text."""
        size = 0
        align = 1
        if layout is not None:
            size = layout.size
            align = layout.align
        letter = ord(kind) + (_REFUSED if refused else 0)
        self._pending.append((letter, align.bit_length() - 1, id, size, address, time.time_ns(), threading.get_ident()))
        self._write_all()

    def _write_all(self) -> None:
        """Write what is pending, unless an interrupted call is doing so."""
        if self._writing:
            return
        self._writing = True
        try:
            while self._pending and self._write(self._pending[0]):
                self._pending.popleft()
        finally:
            self._writing = False

    def _write(self, row: Row) -> bool:
        """Write a row; False if that must wait."""
        raise NotImplementedError


@mypyc_attr(native_class=True)
class _Lines(_Log):
    """Writes the text to a file."""

    __slots__ = ("_file",)

    def __init__(self, file: TextIO) -> None:
        super().__init__()
        self._file: Final = file
        file.write(HEADER + "\n")

    def _write(self, row: Row) -> bool:
        line = _line(row[0], row[2], row[3], 1 << row[1])
        if line:
            try:
                self._file.write(line + "\n")
            except BaseException:
                # The file may have part of it, so it is not written again.
                self._pending.popleft()
                raise
        return True


@mypyc_attr(native_class=True)
class Trace(_Log):
    """The operations that a `TracingAllocator` has seen, in order.

    `allocator` holds the record itself; by default a new `PageAlloc`.
    """

    __slots__ = ("_rows",)

    def __init__(self, allocator: Allocator | None = None) -> None:
        super().__init__()
        self._rows: Table[Allocator] = Table(PageAlloc() if allocator is None else allocator, _FORMATS)

    def reserve(self, rows: int) -> None:
        """Make room for `rows` operations, so that recording them cannot fail."""
        self._rows.reserve(rows + len(self._pending))

    def _write(self, row: Row) -> bool:
        rows = len(self._rows)
        try:
            self._rows.append(*row)
        except MemoryError:
            # A nested operation has used the reserved row. The next `reserve` raises.
            return False
        except BaseException:
            if len(self._rows) > rows:
                self._pending.popleft()
            raise
        return True

    def lines(self) -> Iterator[str]:
        """The trace in the own text format, line by line."""
        yield HEADER
        kinds, aligns, ids, sizes, *_rest = self._columns()
        for row in range(len(kinds)):
            line = _line(kinds[row], ids[row], sizes[row], 1 << aligns[row])
            if line:
                yield line

    def text(self) -> str:
        """The same as one text."""
        return _joined(self.lines())

    def rmm_lines(self) -> Iterator[str]:
        """The trace as RMM's logging adaptor writes it, line by line.

        RMM has no resize: a block that moved is allocated at its new address and then freed at the old one; one that
        did not move is freed and allocated again. Blocks dropped in bulk are freed one by one.
        """
        yield _RMM_HEADER
        kinds, _aligns, ids, sizes, addresses, times, threads = self._columns()
        live: dict[int, tuple[int, int]] = {}
        for row in range(len(kinds)):
            kind = kinds[row]
            stamp = f"{threads[row]},{_clock(times[row])}"
            id = ids[row]
            here = (addresses[row], sizes[row])
            if kind >= _REFUSED:
                yield _rmm_line(stamp, "allocate failure", here)
                continue
            letter = chr(kind)
            if letter in (DEALLOCATE, _GONE):
                yield _rmm_line(stamp, "free", live.pop(id))
            elif letter not in (RESET, CHECKPOINT, RESTORE):
                before = live.get(id)
                live[id] = here
                if before is not None and before[0] == here[0]:
                    yield _rmm_line(stamp, "free", before)
                yield _rmm_line(stamp, "allocate", here)
                if before is not None and before[0] != here[0]:
                    yield _rmm_line(stamp, "free", before)

    def rmm_csv(self) -> str:
        """The same as one text."""
        return _joined(self.rmm_lines())

    def _columns(self) -> list[memoryview]:
        self._write_all()
        return [self._rows.column(index) for index in range(len(_FORMATS))]

    def close(self) -> None:
        """Free the memory of the record; closing twice is harmless."""
        self._rows.close()

    def __repr__(self) -> str:
        return f"<Trace of {len(self._rows)} rows>"


@mypyc_attr(native_class=True)
class TracingAllocator(RecordingAdaptor[A], Generic[A]):
    """Records the operations of `parent` in `trace` (by default a new one), or line by line in `file`.

    `close` leaves trace and file readable. An error in writing the file is raised after the operation is complete.
    """

    __slots__ = ("_log", "_next", "_trace")

    def __init__(self, parent: A, *, file: TextIO | None = None, trace: Trace | None = None) -> None:
        super().__init__(parent)
        if file is not None and trace is not None:
            raise MisuseError("a trace goes either to a file or to memory")
        self._trace: Final = Trace() if trace is None and file is None else trace
        self._log: Final[_Log] = _Lines(file) if file is not None else self.trace
        self._next: i64 = 0

    @property
    def trace(self) -> Trace:
        """The record in memory. Raises `MisuseError` if the trace goes to a file."""
        trace = self._trace
        if trace is None:
            raise MisuseError("the trace is in a file")
        return trace

    def _prepare(self) -> None:
        self._log.reserve(1)

    def _allocated(self, kind: str, record: Record, layout: Layout) -> None:
        record.number = self._next
        self._next += 1
        self._log.note(kind, record.number, layout, record.address)

    def _freed(self, record: Record) -> None:
        self._log.note(DEALLOCATE, record.number, None, record.address)

    def _resized(self, kind: str, record: Record, address: i64, old: Layout, new: Layout) -> None:
        self._log.note(kind, record.number, new, record.address)

    def _refused(self, kind: str, layout: Layout) -> None:
        self._log.note(kind, NO_ID, layout, 0, True)

    def _gone(self, records: list[Record]) -> None:
        for record in records:
            self._log.note(_GONE, record.number, None, record.address)

    def checkpoint(self) -> Checkpoint:
        self._log.reserve(1)
        return super().checkpoint()

    def _checkpointed(self) -> None:
        super()._checkpointed()
        self._log.note(CHECKPOINT, NO_ID, None, 0)

    def restore(self, point: Checkpoint) -> None:
        self._log.reserve(len(self._records) + 1)
        super().restore(point)

    def _dropped(self, blocks: Any, number: int) -> None:
        super()._dropped(blocks, number)
        if number == ALL_BLOCKS:
            self._log.note(RESET, NO_ID, None, 0)
        else:
            self._log.note(RESTORE, number, None, 0)

    def reset(self, policy: ResetPolicy | None = None) -> None:
        self._log.reserve(len(self._records) + 1)
        super().reset(policy)

    def __repr__(self) -> str:
        return f"tracing({self._parent!r})"


def _line(kind: int, id: int, size: int, align: int) -> str:
    """A line of the own text format; empty for operations that it omits."""
    if kind >= _REFUSED:
        return f"{FAILURE} {chr(kind - _REFUSED)} {size} {align}"
    letter = chr(kind)
    if letter == _GONE:
        return ""
    if letter in (RESET, CHECKPOINT):
        return letter
    if letter in (DEALLOCATE, RESTORE):
        return f"{letter} {id}"
    return f"{letter} {id} {size} {align}"


def _rmm_line(stamp: str, action: str, place: tuple[int, int]) -> str:
    return f"{stamp},{action},{place[0]:#x},{place[1]},0x0"


def _clock(nanoseconds: int) -> str:
    """Local time of day, to the microsecond."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{time.strftime('%H:%M:%S', time.localtime(seconds))}.{rest // 1000:06d}"


def _joined(lines: Iterator[str]) -> str:
    return "".join([f"{line}\n" for line in lines])
