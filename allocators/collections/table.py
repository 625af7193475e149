"""Table: rows kept as parallel columns in one block, as Zig's MultiArrayList.

Layout: one block; each column is a run of `capacity` items of its own machine type, one after the other. The capacity
is a multiple of 8, so every column starts 8-aligned. Doubles when full, from at least 8 rows.

Costs: a row takes the sum of its item sizes, no padding between rows; reading one column walks memory densely. Adding a
row costs one counter and one view write per column, about 30 ns each in compiled code.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.collections.storage import Storage, release_view
from allocators.collections.vec import as_items
from allocators.layout import ITEM_SIZES, Layout
from allocators.protocol import Allocator, LayoutError, MisuseError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

A = TypeVar("A", bound=Allocator, covariant=True)

_FIRST_CAPACITY: Final = 8


@mypyc_attr(native_class=True)
class Table(Generic[A]):
    """Rows of fixed columns; `formats` has one `struct` format character per column, such as "BIIq".

    `columns` holds one view of the whole capacity per column: hot code indexes them directly. The list is replaced,
    and the old views released, whenever the table grows, shrinks or closes; `capacity` changes then too.
    """

    __slots__ = ("_length", "_row_size", "_storage", "capacity", "columns", "formats")

    def __init__(self, allocator: A, formats: str, capacity: int = 0) -> None:
        if not formats:
            raise LayoutError("a table needs at least one column")
        row_size = 0
        for format in formats:
            if format not in ITEM_SIZES:
                raise LayoutError(f"unknown item format {format!r}, want one of {' '.join(ITEM_SIZES)}")
            row_size += ITEM_SIZES[format]
        self.formats: Final = formats
        self._row_size: Final[i64] = row_size
        self._storage: Storage[A] = Storage(allocator)
        self._length: i64 = 0
        self.capacity: i64 = 0
        self.columns = self._views()
        if capacity:
            self._set_capacity(capacity)

    @property
    def allocator(self) -> A:
        return self._storage.allocator

    def __len__(self) -> int:
        return self._length

    def _views(self) -> list[memoryview]:
        memory = self._storage.view("B")
        columns = []
        start = 0
        capacity: int = self.capacity
        for format in self.formats:
            end = start + ITEM_SIZES[format] * capacity
            columns.append(memory[start:end].cast(format))  # type: ignore[call-overload]
            start = end
        return columns

    def _set_capacity(self, rows: int) -> None:
        """Resize to `rows`, rounded up to 8, and move every column to its new place."""
        capacity = (rows + 7) & -8
        before: int = self.capacity
        layout = Layout(self._row_size * capacity, 8)
        if capacity < before:
            self._move_columns(before, capacity)
        self._release_views()
        try:
            self._storage.resize(layout)
            self.capacity = capacity
            if capacity > before:
                self._move_columns(before, capacity)
        except MemoryError:
            if capacity < before:
                self._move_columns(capacity, before)
            raise
        finally:
            self.columns = self._views()

    def _move_columns(self, before: int, after: int) -> None:
        """Move each column from where it starts at one capacity to where it starts at another.

        Upwards the last column goes first, downwards the first, so that none is overwritten before it has moved.
        """
        kept: int = self._length
        memory = self._storage.view("B")
        offset_before = 0
        offset_after = 0
        moves = []
        for format in self.formats:
            size = ITEM_SIZES[format]
            moves.append((offset_before, offset_after, kept * size))
            offset_before += before * size
            offset_after += after * size
        if after > before:
            moves.reverse()
        for source, target, count in moves:
            memory[target : target + count] = memory[source : source + count]

    def _release_views(self) -> None:
        for column in self.columns:
            release_view(column)

    def reserve(self, additional: int) -> None:
        """Make room for `additional` rows behind the last one, at least doubling if it must grow.

        On `AllocError` nothing has changed, here and wherever the table must grow.
        """
        if additional < 0:
            raise MisuseError(f"cannot reserve room for {additional} rows")
        needed = self._length + additional
        if needed > self.capacity:
            self._set_capacity(max(needed, 2 * self.capacity, _FIRST_CAPACITY))

    def add(self) -> int:
        """Add a row whose items are yet undefined, and return its index."""
        row = self._length
        if row == self.capacity:
            self.reserve(1)
        self._length = row + 1
        return row

    def append(self, *items: int | float) -> int:
        """Add a row and return its index. Raises ValueError where the items do not fit; no row is added then."""
        if len(items) != len(self.formats):
            raise ValueError(f"a row has {len(self.formats)} items, not {len(items)}")
        if self._length == self.capacity:
            self.reserve(1)
        row = self._length
        columns = self.columns
        for index in range(len(columns)):
            columns[index][row] = items[index]  # type: ignore[assignment]
        self._length = row + 1
        return row

    def extend(self, *columns: ReadableBuffer | Iterable[float]) -> None:
        """Add many rows, given as columns of one length: buffers by one copy each, anything else item by item.

        Raises ValueError where lengths differ or an item does not fit; nothing is added then.
        """
        if len(columns) != len(self.formats):
            raise ValueError(f"a row has {len(self.formats)} items, not {len(columns)}")
        sources: list[memoryview] = []
        for column, format in zip(columns, self.formats, strict=True):
            # A copy: a column may be a view of our own bytes, which can move.
            copy = bytes(as_items(column, format))
            sources.append(memoryview(copy).cast(format))  # type: ignore[call-overload]
        count = len(sources[0])
        if any([len(source) != count for source in sources]):
            raise ValueError(f"the columns differ in length: {', '.join([str(len(source)) for source in sources])}")
        self.reserve(count)
        start: int = self._length
        for target, source in zip(self.columns, sources, strict=True):
            target[start : start + count] = source
        self._length += count

    def insert(self, row: int, *items: int | float) -> None:
        """Insert a row before `row`, with the meaning of `list.insert`."""
        length = self.append(*items)
        if row < 0:
            row = max(row + length, 0)
        row = min(row, length)
        for column in self._any_columns():
            item = column[length]
            column[row + 1 : length + 1] = column[row:length]
            column[row] = item

    def fill(self, count: int, *items: int | float) -> int:
        """Add `count` equal rows and return the index of the first."""
        if count < 0:
            raise MisuseError(f"count must not be negative: {count}")
        start: int = self._length
        if count == 0:
            return start
        self.reserve(count)
        self.append(*items)
        for column in self.columns:
            done = 1
            while done < count:
                step = min(done, count - done)
                column[start + done : start + done + step] = column[start : start + step]
                done += step
        self._length = start + count
        return start

    def __getitem__(self, row: int) -> tuple[Any, ...]:
        """All items of one row."""
        row = self._check_row(row)
        return tuple([column[row] for column in self._any_columns()])

    def __setitem__(self, row: int, items: Sequence[int | float]) -> None:
        """Overwrite one row. Raises ValueError where the items do not fit; the row is as it was then."""
        before = self[row]
        if len(items) != len(before):
            raise ValueError(f"a row has {len(before)} items, not {len(items)}")
        row = self._check_row(row)
        try:
            for column, item in zip(self.columns, items, strict=True):
                column[row] = item  # type: ignore[assignment]
        except (TypeError, ValueError):
            for column, item in zip(self._any_columns(), before, strict=True):
                column[row] = item
            raise

    def __delitem__(self, row: int) -> None:
        """Take out one row; those behind it move up."""
        row = self._check_row(row)
        length: int = self._length
        for column in self.columns:
            column[row : length - 1] = column[row + 1 : length]
        self._length = length - 1

    def _any_columns(self) -> list[memoryview[Any]]:
        # The compiler takes the items of a plain memoryview for ints, and ours may be floats.
        columns: list[Any] = self.columns
        return columns

    def _check_row(self, row: int) -> int:
        length: int = self._length
        if row < 0:
            row += length
        if not 0 <= row < length:
            raise IndexError(f"row {row} is outside a table of {length} rows")
        return row

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as they are now; the table must not grow or shrink meanwhile."""
        return zip(*[self.column(index) for index in range(len(self.formats))], strict=True)

    def pop(self) -> tuple[Any, ...]:
        """Take off and return the last row; IndexError when empty."""
        items = self[-1]
        self._length -= 1
        return items

    def column(self, index: int) -> memoryview:
        """The items of one column, without a copy; stale once the table grows, shrinks or closes."""
        if self._storage.closed:
            raise MisuseError("the container is closed")
        return self.columns[index][: self._length]

    def numpy(self, index: int) -> Any:
        """One column as a numpy array, without a copy. Needs numpy."""
        return importlib.import_module("numpy").asarray(self.column(index))

    def truncate(self, length: int) -> None:
        """Keep the first `length` rows and the capacity."""
        if not 0 <= length <= self._length:
            raise IndexError(f"cannot truncate a table of {self._length} rows to {length}")
        self._length = length

    def clear(self) -> None:
        """Drop all rows, keep the capacity."""
        self._length = 0

    def shrink_to_fit(self) -> None:
        """Give back the capacity behind the last row."""
        if self.capacity > (self._length + 7) & -8:
            self._set_capacity(self._length)

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        self._release_views()
        self._storage.close()
        self._length = 0
        self.capacity = 0
        self.columns = self._views()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Table of {self._length} rows {self.formats!r}, capacity {self.capacity}>"
