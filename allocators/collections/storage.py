"""Storage, the one block behind a container; and Cells, typed access to the items of one format in it.

Storage says how the block is resized and given back, and whether the container may be used: while
`block.region.memory` is not None, one comparison an access. A container fails once a scope or a reset has revoked its
block, once it is closed, and also while an operation of several steps is under way, for callbacks and finalisers that
come in meanwhile. `unusable` tells these apart.

Cells check the index and the block, and then access memory by `allocators.memory`: one machine operation in compiled
code, some 2 ns with the checks. A container keeps its cells for good, so that whoever reads a container in a loop holds
on to the cells and not to a view. Everything in this module is internal to the two packages.

Each cells have a view of their items. It is released before the block is resized or freed, so an allocator that moves
or unmaps pages sees no exports, and a stale view raises instead of reading old bytes. `allocators.block` says what
becomes of views.
"""

from __future__ import annotations

from operator import index as plain_int
from types import FunctionType
from typing import Any, Final, SupportsIndex

from allocators._mypyc import i64, mypyc_attr
from allocators.block import DANGLING, RELEASED, Block, empty_region
from allocators.errors import LayoutError, MisuseError
from allocators.layout import ITEM_SIZES, MAX_SIZE, Layout, number_text
from allocators.memory import (
    KINDS,
    Pointer,
    load_float,
    load_int,
    load_item,
    pointer,
    store_float,
    store_int,
    store_item,
)
from allocators.uncopyable import Uncopyable

FIRST_CAPACITY: Final = 8

#: The block of an empty container, which nothing revokes, and that of one which may not be used.
_NO_BLOCK: Final = Block(DANGLING, 0, empty_region())
_ENDED: Final = Block(DANGLING, 0, RELEASED)
_NO_BYTES: Final = Layout(0, 1)


@mypyc_attr(native_class=True)
class Storage(Uncopyable):
    """At most one block of an allocator. Zero bytes are no block: an empty container never touches its allocator.

    `length` is the number of items, or rows; the block has room for `capacity`. `held` is the block during an operation
    of several steps; `block` is then one that has ended, which keeps everybody else out.
    """

    # Not generic: mypyc gives generic classes a __dict__, and does not know which attributes they always have.
    __slots__ = ("allocator", "block", "capacity", "closed", "held", "layout", "length")

    def __init__(self, allocator: Any) -> None:
        #: What the container was given, for its `allocator`.
        self.allocator: Final[Any] = allocator
        self.block = _NO_BLOCK
        self.held: Block | None = None
        self.layout = _NO_BYTES
        self.length: i64 = 0
        self.capacity: i64 = 0
        self.closed = False

    def unusable(self) -> MisuseError:
        """The error for using a container whose block has ended, or that has none any more."""
        if self.closed:
            return MisuseError("the container is closed")
        if self.held is not None:
            return MisuseError("the container is in the middle of another operation")
        return MisuseError("the memory of the container has been revoked by a scope, a reset or its allocator's close")

    def check(self) -> None:
        """Raise `MisuseError` unless the container may be used."""
        if self.block.region.memory is None:
            raise self.unusable()

    def check_not_held(self) -> None:
        """Raise `MisuseError` in the middle of another operation: a container cannot be closed then."""
        if self.held is not None:
            raise self.unusable()

    def hold(self) -> None:
        """Keep everybody else out until `let_go`. Raises `MisuseError` as `check` does."""
        block = self.block
        if block.region.memory is None:
            raise self.unusable()
        self.held = block
        self.block = _ENDED

    def let_go(self) -> None:
        """End what `hold` has begun."""
        block = self.held
        if block is not None:
            self.block = block
            self.held = None

    def resize(self, layout: Layout, zeroed: bool = False) -> None:
        """Make the held block fit `layout`, keeping the common prefix. If the allocator raises, nothing has changed.

        With `zeroed`, a container without a block gets one that is all zero.

        If the allocator returns a block that is too small or read-only, it is given back, the container is empty, and
        this raises `MisuseError` or TypeError.
        """
        block = self.held
        if block is None:
            raise MisuseError("only a held block can be resized")
        before = self.layout
        try:
            if layout.size == 0:
                if before.size > 0:
                    self.allocator.deallocate(block, before)
                block = _NO_BLOCK
            elif before.size == 0:
                block = self.allocator.allocate_zeroed(layout) if zeroed else self.allocator.allocate(layout)
            elif layout.size >= before.size:
                block = self.allocator.grow(block, before, layout)
            else:
                block = self.allocator.shrink(block, before, layout)
            self.layout = layout
        except BaseException:
            if layout.size == 0 and block.region.memory is None:
                # It has been freed, whatever else has gone wrong.
                block = _NO_BLOCK
                self.layout = layout
            raise
        finally:
            self.held = block
        if layout.size > 0 and block.region.memory is not None:
            view = block.view
            if view.nbytes < layout.size or view.readonly:
                self.held = _NO_BLOCK
                self.layout = _NO_BYTES
                self.length = 0
                misfit = f"{self.allocator!r} has returned {block!r} for {layout!r}"
                readonly = view.readonly
                self.allocator.deallocate(block, layout)
                if readonly:
                    raise TypeError("cannot modify read-only memory")
                raise MisuseError(misfit)

    def view(self, format: str) -> memoryview:
        """A fresh view of the requested bytes, as items of one machine type; an empty one without a block."""
        block = self.block if self.held is None else self.held
        if block.region.memory is None:
            return memoryview(bytearray()).cast(format)  # type: ignore[call-overload,no-any-return]
        return block.view[: self.layout.size].cast(format)  # type: ignore[call-overload,no-any-return]

    def close(self) -> None:
        """Give the block back, unless a scope or a reset has ended it already; closing twice is harmless."""
        block = self.block
        layout = self.layout
        self.closed = True
        self.block = _ENDED
        self.layout = _NO_BYTES
        self.length = 0
        self.capacity = 0
        if layout.size > 0 and block.region.memory is not None:
            self.allocator.deallocate(block, layout)


@mypyc_attr(native_class=True)
class Cells(Uncopyable):
    """The items of one format in the block of a container, by index from 0 up to the length of the container.

    Each access raises IndexError outside that range (negative indices included) and `MisuseError` if the container may
    not be used. `view` shows the whole capacity.

    `cells[index]` is for integer formats: it raises OverflowError or ValueError for what a signed 64-bit
    integer or the format cannot hold; `get_f64` and `set_f64` are for 'f' and 'd'. The wrong ones raise TypeError.
    """

    __slots__ = ("_float", "format", "high", "kind", "low", "pointer", "size", "storage", "view")

    def __init__(self, storage: Storage, format: str) -> None:
        self.storage: Final = storage
        self.format: Final = format
        size = ITEM_SIZES[format]
        #: Bytes per item.
        self.size: Final[i64] = size
        self.kind: Final[i64] = KINDS.index(format)
        self._float: Final = format in "fd"
        #: The ints that fit; none where `low` is greater, for floats.
        low, high = (1, 0) if format in "fd" else _bounds(format, size)
        self.low: Final[i64] = low
        self.high: Final[i64] = high
        self.view: memoryview[Any] = storage.view(format)
        #: For this package only, after the checks that `__getitem__` makes.
        self.pointer: Pointer = pointer(self.view)

    def look(self, view: memoryview[Any]) -> None:
        """Access these items from now on; the container must be held."""
        self.view = view
        self.pointer = pointer(view)

    def __getitem__(self, index: i64) -> i64:
        """An item of an integer format."""
        if index < 0 or index >= self.storage.length:
            raise self._outside(index)
        if self.storage.block.region.memory is None:
            raise self.storage.unusable()
        item = load_int(self.kind, self.pointer, index)
        if item < self.low or item > self.high:
            raise self._no_i64(index)
        return item

    def __setitem__(self, index: i64, item: i64) -> None:
        """Overwrite an item of an integer format."""
        if index < 0 or index >= self.storage.length:
            raise self._outside(index)
        if item < self.low or item > self.high:
            raise self.unfit(item)
        if self.storage.block.region.memory is None:
            raise self.storage.unusable()
        store_int(self.kind, self.pointer, index, item)

    def get_f64(self, index: i64) -> float:
        """An item of a float format."""
        if index < 0 or index >= self.storage.length:
            raise self._outside(index)
        if not self._float:
            raise TypeError(f"items of format {self.format!r} are no floats")
        if self.storage.block.region.memory is None:
            raise self.storage.unusable()
        return load_float(self.kind, self.pointer, index)

    def set_f64(self, index: i64, item: float) -> None:
        """Overwrite an item of a float format."""
        if index < 0 or index >= self.storage.length:
            raise self._outside(index)
        if not self._float:
            raise TypeError(f"items of format {self.format!r} are no floats")
        if self.storage.block.region.memory is None:
            raise self.storage.unusable()
        store_float(self.kind, self.pointer, index, item)

    def get(self, index: i64) -> Any:
        """An item of any format."""
        if index < 0 or index >= self.storage.length:
            raise self._outside(index)
        if self.storage.block.region.memory is None:
            raise self.storage.unusable()
        return load_item(self.kind, self.pointer, index)

    def set(self, index: i64, item: Any) -> None:
        """Overwrite an item of any format by an int or a float. Raises ValueError or TypeError if it does not fit.

        Runs no code of the caller: other objects raise TypeError.
        """
        if index < 0 or index >= self.storage.length:
            raise self._outside(index)
        if self.storage.block.region.memory is None:
            raise self.storage.unusable()
        store_item(self.kind, self.pointer, index, item)

    def _outside(self, index: int) -> IndexError:
        return IndexError(f"index {index} is outside a container of {self.storage.length} items")

    def _no_i64(self, index: i64) -> Exception:
        if self._float:
            return TypeError(f"items of format {self.format!r} are no ints")
        item = load_item(self.kind, self.pointer, index)
        return OverflowError(f"the item {item} exceeds 2**63 - 1")

    def unfit(self, item: int) -> Exception:
        """The error for an int that is not from `low` to `high`."""
        if self._float:
            return TypeError(f"items of format {self.format!r} are no ints")
        return ValueError(f"{item} does not fit format {self.format!r}")


def typed(cells: Cells) -> Cells:
    """The cells or, in the pure flavour, their current view: whichever hot code indexes faster.

    The view is stale once the container grows, so get these anew then.
    """
    return cells if _COMPILED else cells.view  # type: ignore[return-value]


#: Compiled functions are no Python functions.
_COMPILED: Final = not isinstance(typed, FunctionType)


def _bounds(format: str, size: int) -> tuple[int, int]:
    """The least and the greatest item of an integer format, as far as 64 bits with a sign can hold them."""
    bits = 8 * size
    if format.islower():
        return -1 << (bits - 1), (1 << (bits - 1)) - 1
    return 0, (1 << min(bits, 63)) - 1


def release_view(view: memoryview) -> None:
    """Release a cached view, unless something such as a numpy array looks at the bytes through it."""
    try:
        view.release()
    except BufferError:
        pass


def as_count(number: SupportsIndex, what: str) -> int:
    """An argument that counts something, as a plain int; `MisuseError` if it is negative."""
    count = number if isinstance(number, int) else plain_int(number)
    if count < 0:
        raise MisuseError(f"{what} must not be negative: {number_text(count)}")
    return count


def needed(length: int, additional: int, capacity: int) -> int:
    """The capacity that holds `additional` more items than `length`: the present one, or at least twice as much.

    Raises `LayoutError` if no memory could be that large.
    """
    if additional > MAX_SIZE - length:
        raise LayoutError(f"{length} items and {number_text(additional)} more exceed 2**63 - 1")
    wanted = length + additional
    if wanted <= capacity:
        return capacity
    return max(wanted, 2 * capacity, FIRST_CAPACITY)


def plain_slice(items: slice) -> slice:
    """A slice of plain ints; converting them may run the caller's code, so do it before anything else."""
    return slice(_bound(items.start), _bound(items.stop), _bound(items.step))


def _bound(bound: SupportsIndex | None) -> int | None:
    return None if bound is None else plain_int(bound)
