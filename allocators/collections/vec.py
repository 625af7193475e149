"""Vec: a growable array of one machine type.

Layout: one block of `capacity` items. Doubles when full, from at least 8 items; an empty Vec has no block.

Costs: compiled callers read, write or append an item in 2 to 3 ns by `cells[index]`, `append_i64` and
the like; from Python it takes less than with `array.array`. Slices move by memcpy. Growing over an arena abandons the
old block unless it is the newest one.
"""

from __future__ import annotations

import importlib
import mmap
from array import array
from collections.abc import Iterable, Iterator
from operator import index as plain_int
from typing import TYPE_CHECKING, Any, Final, Generic, Self, SupportsFloat, SupportsIndex, TypeVar, overload

from allocators._mypyc import i64, mypyc_attr
from allocators.block import DANGLING
from allocators.closing import Closing
from allocators.collections.storage import Cells, Storage, as_count, needed, plain_slice, release_view, typed
from allocators.errors import LayoutError, MisuseError, caused_by
from allocators.layout import ITEM_SIZES, MAX_SIZE, items_layout, number_text
from allocators.memory import index_in, load_item, move, repeat, store_bytes, store_float, store_int, store_item
from allocators.protocol import Allocator
from allocators.uncopyable import Uncopyable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Vec(Closing, Generic[A]):
    """Items of one `struct` format: 'B' 'b' 'H' 'h' 'I' 'i' 'Q' 'q' 'f' or 'd'.

    An item is any object with `__index__`, for floats also `__float__`. One that does not fit raises ValueError or
    TypeError.

    Once the memory has been revoked, by the end of a scope or by a reset, everything but `close`, `capacity` and `repr`
    raises `MisuseError`. `allocators.block` says what becomes of views that were taken before.

    `cells` is typed access to the items, for compiled callers.
    """

    __slots__ = ("_float", "_storage", "cells", "format")

    def __init__(self, allocator: A, format: str, capacity: SupportsIndex = 0) -> None:
        if format not in ITEM_SIZES:
            raise LayoutError(f"unknown item format {format!r}, want one of {' '.join(ITEM_SIZES)}")
        self.format: Final = format
        self._float: Final = format in "fd"
        self._storage: Final = Storage(allocator)
        self.cells: Final = Cells(self._storage, format)
        items = plain_int(capacity)
        if items:
            self._set_capacity(items)

    @property
    def allocator(self) -> A:
        allocator: A = self._storage.allocator
        return allocator

    @property
    def capacity(self) -> int:
        """How many items fit before the Vec must grow."""
        return self._storage.capacity

    @property
    def data(self) -> memoryview:
        """A view of the whole capacity: the items, and the undefined ones after them.

        It is replaced, and the old one released, whenever the Vec grows, shrinks or closes.
        """
        if self._storage.block.region.memory is None:
            return self._no_data()
        return self.cells.view

    @property
    def items(self) -> Cells:
        """`data` for hot code that reads and writes ints: `Cells` in the compiled flavour."""
        if self._storage.block.region.memory is None:
            self._no_data()
        return typed(self.cells)

    def _no_data(self) -> memoryview:
        if not self._storage.closed:
            raise self._storage.unusable()
        return self.cells.view

    @property
    def address(self) -> int:
        """The address of the first item; of no use once the Vec grows, shrinks or closes."""
        if self._storage.closed:
            return DANGLING
        self._storage.check()
        return self._storage.block.address

    def __len__(self) -> int:
        if self._storage.block.region.memory is None and not self._storage.closed:
            raise self._storage.unusable()
        return self._storage.length

    def _set_capacity(self, capacity: int, zeroed: bool = False) -> None:
        item_size = ITEM_SIZES[self.format]
        layout = items_layout(capacity, item_size, item_size)
        storage = self._storage
        storage.hold()
        release_view(self.cells.view)
        try:
            storage.resize(layout, zeroed)
        finally:
            self.cells.look(storage.view(self.format))
            if storage.layout is layout:
                self._storage.capacity = capacity
            elif storage.layout.size == 0:
                self._storage.capacity = 0
            storage.let_go()

    def reserve(self, additional: SupportsIndex) -> None:
        """Make room for `additional` more items, at least doubling the capacity if it is too small.

        Raises `AllocError` if the allocator refuses, and `LayoutError` if no memory could be that large. Nothing has
        changed then, here and wherever a Vec grows.
        """
        count = as_count(additional, "the number of items to reserve room for")
        self._storage.check()
        capacity = needed(self._storage.length, count, self._storage.capacity)
        if capacity > self._storage.capacity:
            self._set_capacity(capacity)

    def _plain(self, item: SupportsIndex | SupportsFloat) -> Any:
        """An item as an int or a float; converting it may run the caller's code."""
        if self._float:
            if isinstance(item, float):
                return item
        elif isinstance(item, int):
            return item
        return as_item(item, self.format)

    def append(self, item: SupportsIndex | SupportsFloat) -> None:
        """Add one item. Raises ValueError or TypeError if the format cannot hold it."""
        plain: Any = item
        if self._float or not isinstance(item, int):
            plain = self._plain(item)
        while self._storage.length == self._storage.capacity:
            self.reserve(1)
        if self._storage.block.region.memory is None:
            raise self._storage.unusable()
        length = self._storage.length
        store_item(self.cells.kind, self.cells.pointer, length, plain)
        self._storage.length = length + 1

    def append_i64(self, item: i64) -> None:
        """Add one item to a Vec of an integer format."""
        if item < self.cells.low or item > self.cells.high:
            raise self.cells.unfit(item)
        length = self._storage.length
        if length == self._storage.capacity:
            self.reserve(1)
            # The allocator may have used the Vec itself.
            self.append_i64(item)
            return
        if self._storage.block.region.memory is None:
            raise self._storage.unusable()
        store_int(self.cells.kind, self.cells.pointer, length, item)
        self._storage.length = length + 1

    def append_f64(self, item: float) -> None:
        """Add one item to a Vec of 'f' or 'd'."""
        if not self._float:
            raise TypeError(f"items of format {self.format!r} are no floats")
        length = self._storage.length
        if length == self._storage.capacity:
            self.reserve(1)
            # The allocator may have used the Vec itself.
            self.append_f64(item)
            return
        if self._storage.block.region.memory is None:
            raise self._storage.unusable()
        store_float(self.cells.kind, self.cells.pointer, length, item)
        self._storage.length = length + 1

    def pop_i64(self) -> i64:
        """Remove and return the last item of a Vec of an integer format; IndexError if there is none."""
        last = self._storage.length - 1
        item = self.cells[last]
        self._storage.length = last
        return item

    def pop(self, index: SupportsIndex = -1) -> Any:
        """Remove and return one item, by default the last; IndexError if there is none."""
        place: int = index if isinstance(index, int) else plain_int(index)
        storage = self._storage
        if storage.block.region.memory is None and not storage.closed:
            raise storage.unusable()
        if place == -1:
            if storage.length == 0:
                raise IndexError("pop from an empty Vec")
            item = load_item(self.cells.kind, self.cells.pointer, storage.length - 1)
            storage.length -= 1
            return item
        place = self._place(place)
        item = self.cells.get(place)
        self._take_out(place, place + 1)
        return item

    def extend(self, items: ReadableBuffer | Iterable[SupportsIndex | SupportsFloat]) -> None:
        """Add many items: a buffer of this format (or bytes for 'B') by one copy, anything else item by item.

        If an item does not fit, nothing is added.
        """
        self._splice(MAX_SIZE, items)

    def extend_bytes(self, text: bytes) -> int:
        """Append bytes to a Vec of 'B', and return where they start."""
        if self.format != "B":
            raise TypeError(f"items of format {self.format!r} are no bytes")
        self._storage.check()
        count = len(text)
        if count == 0:
            return self._storage.length
        self.reserve(count)
        # Not before now: the allocator may have used the Vec itself.
        start: int = self._storage.length
        if count > self._storage.capacity - start:
            raise MisuseError("the allocator of a Vec has added to it while it grew")
        self._storage.check()
        store_bytes(self.cells.pointer, start, text)
        self._storage.length = start + count
        return start

    def extend_from(self, source: Vec[Any], start: SupportsIndex = 0) -> None:
        """Append the items of another Vec from `start` on, by one copy if both have the same format.

        Raises ValueError or TypeError, and adds nothing, if the format cannot hold an item.
        """
        first: int = as_count(start, "start")
        count: int = len(source) - first
        self._storage.check()
        if count <= 0:
            return
        if source.format != self.format:
            self.extend(source[first:])
            return
        self.reserve(count)
        # Not before now: the allocator may have used either of the two.
        length: int = self._storage.length
        if first + count > len(source) or length + count > self._storage.capacity:
            raise MisuseError("the allocator of a Vec has changed what is to be copied")
        self._storage.check()
        move(self.cells.size, self.cells.pointer, length, source.cells.pointer, first, count)
        self._storage.length = length + count

    def insert(self, index: SupportsIndex, item: SupportsIndex | SupportsFloat) -> None:
        """Insert before `index`, with the meaning of `list.insert`."""
        self.insert_all(index, (item,))

    def insert_all(self, index: SupportsIndex, items: ReadableBuffer | Iterable[SupportsIndex | SupportsFloat]) -> None:
        """Insert many items before `index`, or none if one does not fit."""
        self._splice(plain_int(index), items)

    def _splice(self, index: int, items: ReadableBuffer | Iterable[SupportsIndex | SupportsFloat]) -> None:
        self.check_open()
        source = as_items(items, self.format)
        self.check_open()
        count = len(source)
        if count == 0:
            return
        # Not before now: what gives the items may have changed the Vec.
        length: int = self._storage.length
        at = max(index + length, 0) if index < 0 else min(index, length)
        if self._may_move(source, at, count):
            source = memoryview(bytes(source)).cast(self.format)  # type: ignore[call-overload]
        self.reserve(count)
        self._storage.hold()
        try:
            data = self.cells.view
            if at < length:
                data[at + count : length + count] = data[at:length]
            data[at : at + count] = source
            self._storage.length = length + count
        finally:
            self._storage.let_go()

    def _may_move(self, source: memoryview, at: int, count: int) -> bool:
        """Whether some bytes of `source` may be our own, and go elsewhere before they are copied."""
        if at == self._storage.length and self._storage.length + count <= self._storage.capacity:
            return False
        # These are what they are; anything else, such as a numpy array, may itself be looking at our bytes.
        return source.obj is self.cells.view.obj or not isinstance(source.obj, (bytes, bytearray, array, mmap.mmap))

    def check_open(self) -> None:
        """Raise `MisuseError` once the Vec is closed, or its memory has been revoked."""
        self._storage.check()

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> memoryview: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        """One item, or a view of several without a copy."""
        at = index_in(index, self._storage.length)
        if at < 0:
            if isinstance(index, slice):
                items = plain_slice(index)
                return self.view[items]
            at = self._place(index)
        if self._storage.block.region.memory is None:
            raise self._storage.unusable()
        return load_item(self.cells.kind, self.cells.pointer, at)

    @overload
    def __setitem__(self, index: SupportsIndex, item: SupportsIndex | SupportsFloat) -> None: ...
    @overload
    def __setitem__(self, index: slice, item: ReadableBuffer | Iterable[SupportsIndex | SupportsFloat]) -> None: ...
    def __setitem__(self, index: SupportsIndex | slice, item: Any) -> None:
        """Overwrite one item, or several by as many."""
        if not isinstance(index, int) and isinstance(index, slice):
            items = plain_slice(index)
            source = as_items(item, self.format)
            place = self.view[items]
            if len(source) != len(place):
                raise ValueError(f"{len(source)} items cannot take the place of {len(place)}")
            place[:] = source
            return
        if self._float or not isinstance(item, int):
            item = self._plain(item)
        # The argument has been asked for its value: it may have changed the Vec.
        at = index_in(index, self._storage.length)
        if at < 0:
            at = self._place(index)
        if self._storage.block.region.memory is None:
            raise self._storage.unusable()
        store_item(self.cells.kind, self.cells.pointer, at, item)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        """Remove one item, or several in a row; those after them move up."""
        if isinstance(index, slice):
            start, end, step = plain_slice(index).indices(self._storage.length)
            if step != 1:
                raise MisuseError("only items in a row can be taken out of a Vec at once")
        else:
            start = self._place(index)
            end = start + 1
        self._take_out(start, end)

    def _take_out(self, start: int, end: int) -> None:
        """Remove the items from `start` up to `end`."""
        self._storage.hold()
        try:
            if end > start:
                length: int = self._storage.length
                left = length - (end - start)
                self.cells.view[start:left] = self.cells.view[end:length]
                self._storage.length = left
        finally:
            self._storage.let_go()

    def _place(self, index: SupportsIndex) -> int:
        """An index, from 0 on; IndexError if there is no such item."""
        place: int = index if isinstance(index, int) else plain_int(index)
        length: int = self._storage.length
        if place < 0:
            place += length
        if not 0 <= place < length:
            raise IndexError(f"index {number_text(place)} is outside a Vec of {length} items")
        return place

    def __iter__(self) -> Iterator[Any]:
        """The items in order, including those that are added meanwhile, as with a list. `view` is faster."""
        self.check_open()
        return _Items(self)

    def fill(self, item: SupportsIndex | SupportsFloat, count: SupportsIndex) -> None:
        """Append `count` copies of one item."""
        copies = as_count(count, "count")
        plain = self._plain(item)
        self.check_open()
        if copies == 0:
            # What does not fit is an error all the same.
            as_items((plain,), self.format)
            return
        self.reserve(copies)
        storage = self._storage
        start: int = storage.length
        if copies > self._storage.capacity - start:
            raise MisuseError("the allocator of a Vec has added to it while it grew")
        self.check_open()
        store_item(self.cells.kind, self.cells.pointer, start, plain)
        repeat(self.cells.size, self.cells.pointer, start, copies)
        storage.length = start + copies

    def fill_zero(self, count: int) -> None:
        """Append zeros. The first block of a Vec comes zeroed from the allocator, so fresh pages stay untouched."""
        self.check_open()
        if self._storage.capacity == 0 and count > 0:
            self._set_capacity(count, zeroed=True)
            if self._storage.capacity >= count and self._storage.length == 0:
                self._storage.length = count
                return
        self.fill(0, count)

    def copy(self) -> Vec[A]:
        """A new Vec with the same items, over the same allocator, without spare capacity."""
        self.check_open()
        copy: Vec[A] = Vec(self.allocator, self.format, self._storage.length)
        try:
            copy.extend(self.view)
        except BaseException:
            copy.close()
            raise
        return copy

    def truncate(self, length: SupportsIndex) -> None:
        """Keep the first `length` items and the capacity."""
        left: int = length if isinstance(length, int) else plain_int(length)
        self.check_open()
        present: int = self._storage.length
        if not 0 <= left <= present:
            raise IndexError(f"cannot truncate a Vec of {present} items to {number_text(left)}")
        self._storage.length = left

    def clear(self) -> None:
        """Drop all items, keep the capacity."""
        self.check_open()
        self._storage.length = 0

    def shrink_to_fit(self) -> None:
        """Give back the capacity beyond the last item."""
        self.check_open()
        if self._storage.capacity > self._storage.length:
            self._set_capacity(self._storage.length)

    @property
    def view(self) -> memoryview:
        """The items, without a copy; stale once the Vec grows, shrinks or closes, or its memory is revoked."""
        self.check_open()
        return self.cells.view[: self._storage.length]

    def numpy(self) -> Any:
        """The items as a numpy array, without a copy. Needs numpy."""
        return importlib.import_module("numpy").asarray(self.view)

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        self._storage.check_not_held()
        release_view(self.cells.view)
        try:
            self._storage.close()
        finally:
            self.cells.look(self._storage.view(self.format))

    def __repr__(self) -> str:
        return f"<Vec of {self._storage.length} {self.format!r} items, capacity {self._storage.capacity}>"


@mypyc_attr(native_class=True)
class _Items(Uncopyable):
    """Iterates over a Vec by index, so that it may grow and move meanwhile."""

    __slots__ = ("_next", "_vec")

    def __init__(self, vec: Vec[Any]) -> None:
        self._vec: Final = vec
        self._next: i64 = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        index = self._next
        if index >= len(self._vec):
            raise StopIteration
        self._next = index + 1
        return self._vec.cells.get(index)


def as_items(items: ReadableBuffer | Iterable[SupportsIndex | SupportsFloat], format: str) -> memoryview:
    """Any buffer or iterable as a contiguous view of one format, without a copy if possible.

    Raises ValueError or TypeError if an item does not fit the format.
    """
    try:
        view = memoryview(items)  # type: ignore[arg-type]
    except TypeError:
        values: Any = items
    else:
        if view.ndim == 1 and view.c_contiguous and _SAME_FORMAT.get(view.format, view.format) == format:
            return view if view.format == format else view.cast("B").cast(format)  # type: ignore[call-overload]
        try:
            values = view.tolist()
        except NotImplementedError:
            # Python reads only numbers in the machine's own order; numpy gives those of other orders one by one.
            values = items
    try:
        return memoryview(array(format, list(values)))
    except OverflowError as error:
        raise caused_by(ValueError(f"an item does not fit format {format!r}: {error}"), None)


def as_item(item: SupportsIndex | SupportsFloat, format: str) -> Any:
    """One item as a plain number, as `as_items`."""
    # The compiler takes the items of a plain memoryview for ints.
    items: Any = as_items((item,), format)
    return items[0]


# C's long is our 'q' if it has eight bytes.
_SAME_FORMAT: Final = {"l": "q", "L": "Q"} if array("l").itemsize == 8 else {"l": "i", "L": "I"}
