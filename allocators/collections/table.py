"""Table: rows kept as parallel columns in one block, as Zig's MultiArrayList.

Layout: one block; each column is a run of `capacity` items of its machine type, one column after the other. The
capacity is a multiple of 8, so every column starts 8-aligned. Doubles when full, from at least 8 rows.

Costs: a row takes the sum of its item sizes, no padding between rows; reading one column walks memory densely. Compiled
callers read and write an item by `cells` in 2 to 3 ns.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from operator import index as plain_int
from typing import TYPE_CHECKING, Any, Final, Generic, Self, SupportsFloat, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.closing import Closing
from allocators.collections.storage import Cells, Storage, as_count, needed, release_view, typed
from allocators.collections.vec import as_item, as_items
from allocators.errors import LayoutError, MisuseError
from allocators.layout import ITEM_SIZES, items_layout, number_text
from allocators.memory import load_item, move, repeat, store_item
from allocators.protocol import Allocator

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Table(Closing, Generic[A]):
    """Rows of fixed columns; `formats` has one `struct` format character per column, such as "BIIq".

    An item is any object with `__index__`, for floats also `__float__`. One that does not fit raises ValueError or
    TypeError.

    Once the memory has been revoked, by the end of a scope or by a reset, everything but `close`, `capacity` and `repr`
    raises `MisuseError`. `allocators.block` says what becomes of views that were taken before.

    `cells` has typed access to the items of each column, for compiled callers.
    """

    __slots__ = ("_columns", "_plain_ints", "_row_size", "_storage", "cells", "formats")

    def __init__(self, allocator: A, formats: str, capacity: SupportsIndex = 0) -> None:
        if not formats:
            raise LayoutError("a table needs at least one column")
        row_size = 0
        for format in formats:
            if format not in ITEM_SIZES:
                raise LayoutError(f"unknown item format {format!r}, want one of {' '.join(ITEM_SIZES)}")
            row_size += ITEM_SIZES[format]
        self.formats: Final = formats
        #: Whether a plain int can be written to every column as it is.
        self._plain_ints: Final = "f" not in formats and "d" not in formats
        self._row_size: Final = row_size
        self._storage: Final = Storage(allocator)
        self.cells: Final = [Cells(self._storage, format) for format in formats]
        self._columns = [cells.view for cells in self.cells]
        rows = as_count(capacity, "capacity")
        if rows:
            self._set_capacity(rows)

    @property
    def allocator(self) -> A:
        allocator: A = self._storage.allocator
        return allocator

    @property
    def capacity(self) -> int:
        """How many rows fit before the table must grow."""
        return self._storage.capacity

    @property
    def columns(self) -> list[memoryview]:
        """A view of the whole capacity for each column, which hot code indexes directly.

        The list is replaced, and the old views released, whenever the table grows, shrinks or closes; `capacity`
        changes then too.
        """
        if self._storage.block.region.memory is None:
            return self._no_columns()
        return self._columns

    @property
    def typed_columns(self) -> list[Cells]:
        """`columns` for hot code that reads and writes ints: `Cells` in the compiled flavour."""
        if self._storage.block.region.memory is None:
            self._no_columns()
        return [typed(cells) for cells in self.cells]

    def _no_columns(self) -> list[memoryview]:
        if not self._storage.closed:
            raise self._storage.unusable()
        return self._columns

    def check_open(self) -> None:
        """Raise `MisuseError` once the table is closed, or its memory has been revoked."""
        self._storage.check()

    def __len__(self) -> int:
        if self._storage.block.region.memory is None and not self._storage.closed:
            raise self._storage.unusable()
        return self._storage.length

    def _look(self) -> None:
        """Find the columns in the block that there is now. The table must be held or closed."""
        memory = self._storage.view("B")
        columns = []
        start = 0
        capacity: int = self._storage.capacity if memory.nbytes else 0
        for cells in self.cells:
            end = start + ITEM_SIZES[cells.format] * capacity
            column = memory[start:end].cast(cells.format)  # type: ignore[call-overload]
            cells.look(column)
            columns.append(column)
            start = end
        self._columns = columns

    def _set_capacity(self, rows: int) -> None:
        """Resize to `rows`, rounded up to 8, and move every column to its new place."""
        capacity = (rows + 7) & -8
        before: int = self._storage.capacity
        layout = items_layout(capacity, self._row_size, 8)
        storage = self._storage
        storage.hold()
        if capacity < before:
            self._move_columns(before, capacity)
        self._release_views()
        try:
            storage.resize(layout)
        finally:
            if storage.layout is layout:
                self._storage.capacity = capacity
                if capacity > before:
                    self._move_columns(before, capacity)
            elif storage.layout.size == 0:
                self._storage.capacity = 0
            elif capacity < before:
                self._move_columns(capacity, before)
            self._look()
            storage.let_go()

    def _move_columns(self, before: int, after: int) -> None:
        """Move each column from its start at one capacity to its start at another.

        Upwards the last column goes first, downwards the first, so that none is overwritten before it has moved.
        """
        kept: int = self._storage.length
        memory = self._storage.view("B")
        if memory.nbytes == 0:
            # The parent has revoked the block in the meantime.
            return
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
        for column in self._columns:
            release_view(column)

    def reserve(self, additional: SupportsIndex) -> None:
        """Make room for `additional` more rows, at least doubling the capacity if it is too small.

        Raises `AllocError` if the allocator refuses, and `LayoutError` if no memory could be that large. Nothing has
        changed then, here and wherever a table grows.
        """
        count = as_count(additional, "the number of rows to reserve room for")
        self._storage.check()
        capacity = needed(self._storage.length, count, self._storage.capacity)
        if capacity > self._storage.capacity:
            self._set_capacity(capacity)

    def add(self) -> int:
        """Add a row of undefined items, and return its index."""
        row = self._new_row()
        self._storage.length = row + 1
        return row

    def _new_row(self) -> i64:
        """The index of the next row; there is room for it. Raises `MisuseError` if the table may not be used."""
        while self._storage.length == self._storage.capacity:
            self.reserve(1)
        if self._storage.block.region.memory is None:
            raise self._storage.unusable()
        return self._storage.length

    def _plain(self, items: Sequence[SupportsIndex | SupportsFloat]) -> list[Any]:
        """The items of a row as plain numbers: asking for them may run the caller's code."""
        if len(items) != len(self.formats):
            raise ValueError(f"a row has {len(self.formats)} items, not {len(items)}")
        return [as_item(item, format) for item, format in zip(items, self.formats, strict=True)]

    def append(self, *items: SupportsIndex | SupportsFloat) -> int:
        """Add a row and return its index. Raises ValueError, and adds none, if an item does not fit."""
        count = len(items)
        if count != len(self.formats):
            raise ValueError(f"a row has {len(self.formats)} items, not {count}")
        plain = self._plain_ints
        for index in range(count):
            if not isinstance(items[index], int):
                plain = False
        row_items: Any = items if plain else self._plain(items)
        row = self._new_row()
        for index in range(count):
            cells = self.cells[index]
            store_item(cells.kind, cells.pointer, row, row_items[index])
        self._storage.length = row + 1
        return row

    def extend(self, *columns: ReadableBuffer | Iterable[SupportsIndex | SupportsFloat]) -> None:
        """Add many rows, given as columns of one length: buffers by one copy each, anything else item by item.

        Raises ValueError, and adds nothing, if the lengths differ or an item does not fit.
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
        self._storage.hold()
        try:
            start: int = self._storage.length
            for target, source in zip(self._columns, sources, strict=True):
                target[start : start + count] = source
            self._storage.length = start + count
        finally:
            self._storage.let_go()

    def insert(self, row: SupportsIndex, *items: SupportsIndex | SupportsFloat) -> None:
        """Insert a row before `row`, with the meaning of `list.insert`."""
        place: int = plain_int(row)
        last = self.append(*items)
        self._storage.hold()
        try:
            place = max(place + last, 0) if place < 0 else min(place, last)
            for cells in self.cells:
                item = load_item(cells.kind, cells.pointer, last)
                move(cells.size, cells.pointer, place + 1, cells.pointer, place, last - place)
                store_item(cells.kind, cells.pointer, place, item)
        finally:
            self._storage.let_go()

    def fill(self, count: SupportsIndex, *items: SupportsIndex | SupportsFloat) -> int:
        """Add `count` equal rows and return the index of the first."""
        copies = as_count(count, "count")
        row_items = self._plain(items)
        self._storage.check()
        if copies == 0:
            return self._storage.length
        self.reserve(copies)
        start: int = self._storage.length
        if copies > self._storage.capacity - start:
            raise MisuseError("the allocator of a table has added to it while it grew")
        self._storage.check()
        for cells, item in zip(self.cells, row_items, strict=True):
            store_item(cells.kind, cells.pointer, start, item)
            repeat(cells.size, cells.pointer, start, copies)
        self._storage.length = start + copies
        return start

    def __getitem__(self, row: SupportsIndex) -> tuple[Any, ...]:
        """All items of one row."""
        place = self._place(row)
        self._storage.check()
        return tuple([cells.get(place) for cells in self.cells])

    def __setitem__(self, row: SupportsIndex, items: Sequence[SupportsIndex | SupportsFloat]) -> None:
        """Overwrite one row. Raises ValueError, and changes nothing, if an item does not fit."""
        row_items = self._plain(tuple(items))
        place = self._place(row)
        self._storage.check()
        for cells, item in zip(self.cells, row_items, strict=True):
            cells.set(place, item)

    def __delitem__(self, row: SupportsIndex) -> None:
        """Remove one row; those after it move up."""
        place = self._place(row)
        self._storage.hold()
        try:
            length: int = self._storage.length
            for cells in self.cells:
                move(cells.size, cells.pointer, place, cells.pointer, place + 1, length - 1 - place)
            self._storage.length = length - 1
        finally:
            self._storage.let_go()

    def _place(self, row: SupportsIndex) -> int:
        """The number of a row, from 0 on; IndexError if there is no such row."""
        place: int = row if isinstance(row, int) else plain_int(row)
        length: int = self._storage.length
        if place < 0:
            place += length
        if not 0 <= place < length:
            raise IndexError(f"row {number_text(place)} is outside a table of {length} rows")
        return place

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows in order, including those that are added meanwhile, as with a list."""
        self._storage.check()
        return _Rows(self)

    def pop(self) -> tuple[Any, ...]:
        """Remove and return the last row; IndexError if there is none."""
        items = self[-1]
        self._storage.length -= 1
        return items

    def column(self, index: SupportsIndex) -> memoryview:
        """The items of one column, without a copy.

        Stale once the table grows, shrinks or closes, or its memory is revoked.
        """
        self._storage.check()
        return self._columns[index][: self._storage.length]

    def numpy(self, index: SupportsIndex) -> Any:
        """One column as a numpy array, without a copy. Needs numpy."""
        return importlib.import_module("numpy").asarray(self.column(index))

    def truncate(self, length: SupportsIndex) -> None:
        """Keep the first `length` rows and the capacity."""
        left: int = length if isinstance(length, int) else plain_int(length)
        self._storage.check()
        present: int = self._storage.length
        if not 0 <= left <= present:
            raise IndexError(f"cannot truncate a table of {present} rows to {number_text(left)}")
        self._storage.length = left

    def clear(self) -> None:
        """Drop all rows, keep the capacity."""
        self._storage.check()
        self._storage.length = 0

    def shrink_to_fit(self) -> None:
        """Give back the capacity beyond the last row."""
        self._storage.check()
        if self._storage.capacity > (self._storage.length + 7) & -8:
            self._set_capacity(self._storage.length)

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        self._storage.check_not_held()
        self._release_views()
        try:
            self._storage.close()
        finally:
            self._look()

    def __repr__(self) -> str:
        return f"<Table of {self._storage.length} rows {self.formats!r}, capacity {self._storage.capacity}>"


@mypyc_attr(native_class=True)
class _Rows:
    """Iterates over a table by the number of the row, so that it may grow and move meanwhile."""

    __slots__ = ("_next", "_table")

    def __init__(self, table: Table[Any]) -> None:
        self._table: Final = table
        self._next: i64 = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self._next
        if row >= len(self._table):
            raise StopIteration
        self._next = row + 1
        return self._table[row]
