"""Vec: a growable array of one machine type.

Layout: one block of `capacity` items, read and written through a memoryview that is cast once and cached. Doubles when
full, from at least 8 items; an empty Vec has no block.

Costs: in compiled code `append` and reading an item are some 30 ns each; slices move by memcpy, so prefer `extend` and
slice assignment for bulk work. Growing over an arena abandons the old block unless it is the newest one.
"""

from __future__ import annotations

import importlib
import mmap
from array import array
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, overload

from allocators._mypyc import i64, mypyc_attr
from allocators.block import DANGLING
from allocators.collections.storage import Storage, release_view
from allocators.layout import ITEM_SIZES, Layout
from allocators.protocol import Allocator, LayoutError, MisuseError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

A = TypeVar("A", bound=Allocator, covariant=True)

_FIRST_CAPACITY: Final = 8
#: So many items are as fast to copy one by one as all at once.
_FEW: Final = 16


@mypyc_attr(native_class=True)
class Vec(Generic[A]):
    """Items of one `struct` format: 'B' 'b' 'H' 'h' 'I' 'i' 'Q' 'q' 'f' or 'd'.

    `data` views the whole capacity: hot code indexes it directly. It is replaced, and the old one released, whenever
    the Vec grows, shrinks or closes.
    """

    __slots__ = ("_length", "_storage", "capacity", "data", "format")

    def __init__(self, allocator: A, format: str, capacity: int = 0) -> None:
        if format not in ITEM_SIZES:
            raise LayoutError(f"unknown item format {format!r}, want one of {' '.join(ITEM_SIZES)}")
        self.format: Final = format
        self._storage: Storage[A] = Storage(allocator)
        self._length: i64 = 0
        self.capacity: i64 = 0
        self.data = self._storage.view(format)
        if capacity:
            self._set_capacity(capacity)

    @property
    def allocator(self) -> A:
        return self._storage.allocator

    @property
    def address(self) -> int:
        """The address of the first item; of no use once the Vec grows, shrinks or closes."""
        block = self._storage.block
        return DANGLING if block is None else block.address

    def __len__(self) -> int:
        return self._length

    def _set_capacity(self, capacity: int) -> None:
        layout = Layout.array(self.format, capacity)
        release_view(self.data)
        try:
            self._storage.resize(layout)
            self.capacity = capacity
        finally:
            self.data = self._storage.view(self.format)

    def reserve(self, additional: int) -> None:
        """Make room for `additional` items behind the last one, at least doubling if it must grow.

        On `AllocError` nothing has changed, here and wherever the Vec must grow.
        """
        if additional < 0:
            raise MisuseError(f"cannot reserve room for {additional} items")
        needed = self._length + additional
        if needed > self.capacity:
            self._set_capacity(max(needed, 2 * self.capacity, _FIRST_CAPACITY))

    def append(self, item: int | float) -> None:
        """Add one item. Raises ValueError or TypeError where the format cannot hold it."""
        length = self._length
        if length == self.capacity:
            self.reserve(1)
        self.data[length] = item  # type: ignore[assignment]
        self._length = length + 1

    def pop(self, index: int = -1) -> Any:
        """Take out and return one item, by default the last; IndexError where there is none."""
        if index == -1:
            length = self._length - 1
            if length < 0:
                raise IndexError("pop from an empty Vec")
            # The compiler takes the items of a plain memoryview for ints, and ours may be floats.
            data: memoryview[Any] = self.data
            item = data[length]
            self._length = length
            return item
        item = self[index]
        del self[index]
        return item

    def extend(self, items: ReadableBuffer | Iterable[float]) -> None:
        """Add many items: a buffer of this format (or of bytes for 'B') by one copy, anything else one by one.

        Where an item does not fit, nothing is added.
        """
        self._splice(self._length, items)

    def extend_from(self, source: Vec[Any], start: int = 0) -> None:
        """Append what another Vec has from `start` on, few items one by one: several times as fast as `extend` then.

        Raises ValueError or TypeError where the format cannot hold an item; nothing is added then.
        """
        if start < 0:
            raise MisuseError(f"start must not be negative: {start}")
        length: i64 = self._length
        count: i64 = source._length - start
        if count > _FEW:
            self.extend(source[start:])
        elif count > 0:
            self.reserve(count)
            items: memoryview[Any] = source.data
            target: memoryview[Any] = self.data
            for index in range(count):
                target[length + index] = items[start + index]
            self._length = length + count

    def insert(self, index: int, item: int | float) -> None:
        """Insert before `index`, with the meaning of `list.insert`."""
        self.insert_all(index, (item,))

    def insert_all(self, index: int, items: ReadableBuffer | Iterable[float]) -> None:
        """Insert many items before `index`. Where one does not fit, none is inserted."""
        if index < 0:
            index = max(index + self._length, 0)
        self._splice(min(index, self._length), items)

    def _splice(self, at: int, items: ReadableBuffer | Iterable[float]) -> None:
        self.check_open()
        source = as_items(items, self.format)
        count = len(source)
        if count == 0:
            return
        if self._may_move(source, at, count):
            source = memoryview(bytes(source)).cast(self.format)  # type: ignore[call-overload]
        self.reserve(count)
        if at < self._length:
            self.data[at + count : self._length + count] = self.data[at : self._length]
        self.data[at : at + count] = source
        self._length += count

    def _may_move(self, source: memoryview, at: int, count: int) -> bool:
        """Whether some bytes of `source` may be our own, and go elsewhere before they are copied."""
        if at == self._length and self._length + count <= self.capacity:
            return False
        # These are what they are; anything else, such as a numpy array, may itself be looking at our bytes.
        return source.obj is self.data.obj or not isinstance(source.obj, (bytes, bytearray, array, mmap.mmap))

    def check_open(self) -> None:
        """Raise `MisuseError` once the Vec is closed."""
        if self._storage.closed:
            raise MisuseError("the container is closed")

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> memoryview: ...
    def __getitem__(self, index: int | slice) -> Any:
        """One item, or a view of several without a copy."""
        if isinstance(index, slice):
            return self.view[index]
        data: memoryview[Any] = self.data
        return data[self._check_index(index)]

    @overload
    def __setitem__(self, index: int, item: int | float) -> None: ...
    @overload
    def __setitem__(self, index: slice, item: ReadableBuffer | Iterable[float]) -> None: ...
    def __setitem__(self, index: int | slice, item: Any) -> None:
        """Overwrite one item, or several with as many."""
        if isinstance(index, slice):
            place = self.view[index]
            source = as_items(item, self.format)
            if len(source) != len(place):
                raise ValueError(f"{len(source)} items cannot take the place of {len(place)}")
            place[:] = source
        else:
            self.data[self._check_index(index)] = item

    def __delitem__(self, index: int | slice) -> None:
        """Take out one item, or several in a row; what is behind them moves up."""
        if isinstance(index, slice):
            start, end, step = index.indices(self._length)
            if step != 1:
                raise MisuseError("only items in a row can be taken out of a Vec at once")
        else:
            start = self._check_index(index)
            end = start + 1
        if end > start:
            left = self._length - (end - start)
            self.data[start:left] = self.data[end : self._length]
            self._length = left

    def _check_index(self, index: int) -> int:
        length: int = self._length
        if index < 0:
            index += length
        if not 0 <= index < length:
            raise IndexError(f"index {index} is outside a Vec of {length} items")
        return index

    def __iter__(self) -> Iterator[Any]:
        """The items in order, as a list does it: those that are added meanwhile included. `view` is faster."""
        self.check_open()
        return _Items(self)

    def fill(self, item: int | float, count: int) -> None:
        """Append `count` copies of one item."""
        if count < 0:
            raise MisuseError(f"count must not be negative: {count}")
        if count == 0:
            return
        as_items((item,), self.format)
        self.reserve(count)
        start: int = self._length
        self.data[start] = item  # type: ignore[assignment]
        done = 1
        while done < count:
            step = min(done, count - done)
            self.data[start + done : start + done + step] = self.data[start : start + step]
            done += step
        self._length += count

    def copy(self) -> Vec[A]:
        """A Vec of its own with the same items, over the same allocator, with no spare capacity."""
        self.check_open()
        copy: Vec[A] = Vec(self.allocator, self.format, self._length)
        copy.extend(self.view)
        return copy

    def truncate(self, length: int) -> None:
        """Keep the first `length` items and the capacity."""
        if not 0 <= length <= self._length:
            raise IndexError(f"cannot truncate a Vec of {self._length} items to {length}")
        self._length = length

    def clear(self) -> None:
        """Drop all items, keep the capacity."""
        self._length = 0

    def shrink_to_fit(self) -> None:
        """Give back the capacity behind the last item."""
        if self.capacity > self._length:
            self._set_capacity(self._length)

    @property
    def view(self) -> memoryview:
        """The items, without a copy; stale once the Vec grows, shrinks or closes."""
        self.check_open()
        return self.data[: self._length]

    def numpy(self) -> Any:
        """The items as a numpy array, without a copy. Needs numpy."""
        return importlib.import_module("numpy").asarray(self.view)

    def close(self) -> None:
        """Give the memory back; closing twice is harmless."""
        release_view(self.data)
        self._storage.close()
        self._length = 0
        self.capacity = 0
        self.data = self._storage.view(self.format)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Vec of {self._length} {self.format!r} items, capacity {self.capacity}>"


@mypyc_attr(native_class=True)
class _Items:
    """Goes through a Vec by index, so that it may grow and move meanwhile."""

    __slots__ = ("_next", "_vec")

    def __init__(self, vec: Vec[Any]) -> None:
        self._vec: Final = vec
        self._next: i64 = 0

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        index = self._next
        if index >= self._vec._length:
            raise StopIteration
        self._next = index + 1
        data: memoryview[Any] = self._vec.data
        return data[index]


def as_items(items: ReadableBuffer | Iterable[float], format: str) -> memoryview:
    """Any buffer or iterable as a contiguous view of one format, without a copy where that is possible.

    Raises ValueError or TypeError where an item does not fit the format.
    """
    try:
        view = memoryview(items)  # type: ignore[arg-type]
    except TypeError:
        values: Any = items
    else:
        if view.ndim == 1 and view.c_contiguous and _SAME_FORMAT.get(view.format, view.format) == format:
            return view if view.format == format else view.cast("B").cast(format)  # type: ignore[call-overload]
        values = view.tolist()
    try:
        return memoryview(array(format, list(values)))
    except OverflowError as error:
        raise ValueError(f"an item does not fit format {format!r}: {error}") from None


# What C calls a long is what we call 'q' where it has eight bytes.
_SAME_FORMAT: Final = {"l": "q", "L": "Q"} if array("l").itemsize == 8 else {"l": "i", "L": "I"}
