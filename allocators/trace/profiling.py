"""profile: measures what functions and `with` blocks allocate from a `MetricAllocator`, by name.

    records = ProfilerRecords()

    @profile(metric, records)
    def parse(source): ...

    with profile(metric, records, "emit"):
        ...

    print(records.report())

Each call is a frame of counters, so a record covers what was allocated inside it, including inner profiled calls: the
number of calls, the total bytes, and the largest peak of any call. The semantics are those of RMM's profiler.

Costs: a frame of counters and a lock for each profiled call; nothing else gets slower.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.adaptors.metric import Counters, MetricAllocator
from allocators.errors import MisuseError
from allocators.fork import fork_safe_lock
from allocators.report.table import table
from allocators.uncopyable import Uncopyable

F = TypeVar("F", bound=Callable[..., Any])

Order = Literal["num_calls", "memory_peak", "memory_total"]


@mypyc_attr(native_class=True)
class ProfilerRecord:
    """The figures of one name: number of calls, total bytes and peak bytes."""

    __slots__ = ("memory_peak", "memory_total", "num_calls")

    def __init__(self) -> None:
        self.num_calls = 0
        self.memory_total = 0
        self.memory_peak = 0

    def __repr__(self) -> str:
        return (
            f"<ProfilerRecord num_calls={self.num_calls} memory_total={self.memory_total}"
            f" memory_peak={self.memory_peak}>"
        )


@mypyc_attr(native_class=True)
class ProfilerRecords:
    """Records by name. Threads may add to them concurrently."""

    __slots__ = ("_lock", "_records")

    def __init__(self) -> None:
        # Reentrant, since a signal handler may call a profiled function.
        self._lock: Final = fork_safe_lock()
        self._records: dict[str, ProfilerRecord] = {}

    def add(self, name: str, counters: Counters) -> None:
        """Add one call, from its frame of counters."""
        with self._lock:
            record = self._records.get(name)
            if record is None:
                record = ProfilerRecord()
                self._records[name] = record
            record.num_calls += 1
            record.memory_total += counters.total_bytes
            record.memory_peak = max(record.memory_peak, counters.peak_bytes)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, name: str) -> ProfilerRecord:
        return self._records[name]

    @property
    def records(self) -> dict[str, ProfilerRecord]:
        """The records by name."""
        with self._lock:
            return dict(self._records)

    def __reduce__(self) -> tuple[Callable[[dict[str, ProfilerRecord]], ProfilerRecords], tuple[Any, ...]]:
        # Without the lock, and with records of its own: those of a copy must not go on counting with the original.
        with self._lock:
            return _of_records, ({name: copy.copy(record) for name, record in self._records.items()},)

    def report(self, order: Order = "memory_peak") -> str:
        """The records as an aligned table, largest first. Raises `MisuseError` for an unknown order."""
        if order not in _COLUMNS:
            raise MisuseError(f"unknown order {order!r}, want one of {', '.join(_COLUMNS)}")
        figures: list[tuple[str, tuple[int, int, int]]] = []
        for name, record in self.records.items():
            figures.append((name, (record.num_calls, record.memory_peak, record.memory_total)))
        if not figures:
            return "No data: nothing has been profiled."
        by = _COLUMNS.index(order)
        figures.sort(key=lambda row: (-row[1][by], row[0]))
        rows = [["name", *_COLUMNS]]
        for name, numbers in figures:
            rows.append([name, *[f"{number:,}" for number in numbers]])
        return table(rows)

    def __repr__(self) -> str:
        return f"<ProfilerRecords of {len(self._records)} names>"


def _of_records(records: dict[str, ProfilerRecord]) -> ProfilerRecords:
    made = ProfilerRecords()
    made._records.update(records)
    return made


_COLUMNS: Final = ("num_calls", "memory_peak", "memory_total")


class profile(Uncopyable):  # noqa: N801 - it is used like a function.
    """Records what is allocated through `metric` in a `with` block, or in each call of the decorated function.

    A `with` block without a `name` raises `MisuseError`; the default name of a function is file:line(function). A call
    that raises is recorded too. Raises `MisuseError` at the end if the block has pushed frames of counters without
    popping them, or popped frames that it did not push.
    """

    def __init__(self, metric: MetricAllocator[Any], records: ProfilerRecords, name: str = "") -> None:
        self._metric: Final = metric
        self._records: Final = records
        self._name: Final = name
        self._depths: list[int] = []

    def __call__(self, function: F) -> F:
        name = self._name or _name_of(function)
        metric = self._metric
        records = self._records

        @functools.wraps(function)
        def profiled(*arguments: Any, **options: Any) -> Any:
            with profile(metric, records, name):
                return function(*arguments, **options)

        return profiled  # type: ignore[return-value]

    def __enter__(self) -> Self:
        if not self._name:
            raise MisuseError("a profiled block needs a name")
        self._metric.push_counters()
        self._depths.append(self._metric.frames)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        depth = self._depths.pop()
        if self._metric.frames != depth:
            raise MisuseError(
                f"{self._metric.frames} frames of counters are open at the end of {self._name}, not {depth}"
            )
        self._records.add(self._name, self._metric.pop_counters())


def _name_of(function: Callable[..., Any]) -> str:
    """file:line(function), or module:function if it has no source."""
    inner: Any = function
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    code = getattr(inner, "__code__", None)
    qualified = getattr(function, "__qualname__", repr(function))
    if code is None:
        return f"{getattr(function, '__module__', '?')}:{qualified}"
    return f"{code.co_filename}:{code.co_firstlineno}({qualified})"
