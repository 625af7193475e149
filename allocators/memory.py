"""Loads and stores of memory: single machine operations in compiled modules, memoryviews in Python.

A `Pointer` is where items of one machine type start. `pointer(view)` makes one from a view of these items. In compiled
code it is their address, and the functions below are C from `memory.h`, inlined where they are called (`memory_ops`).
In Python it is the view itself, so Python checks each index and each value, and the memory stays alive. The rules:

* Compiled code checks nothing. The caller knows that the view is alive, that the index is inside it, that the function
  fits its format, and that the value fits the item. Only the containers and allocators of this package can know that;
  everybody else calls their methods.
* No arithmetic with pointers, and no comparison. Indices count items of the view, not bytes.

Items of 'Q' are words, the same 64 bits as `i64`: negative from 2**63 on in compiled code, never in Python. `word` and
`number` convert; equality, `&` and `>>` with a mask behind it work on words of either flavour.
"""
# Not compiled: compiled modules have C in place of it.

from __future__ import annotations

from operator import getitem, setitem
from operator import index as plain_int
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from allocators._mypyc import i64

    Pointer: TypeAlias = i64

    def pointer(view: memoryview[Any]) -> Pointer:
        """A pointer to the items of a view. Raises TypeError if it is read-only."""

    def load_item(kind: i64, items: Pointer, index: i64) -> Any:
        """An item as a Python number. `kind` is the place of its format in `KINDS`."""

    def store_item(kind: i64, items: Pointer, index: i64, item: Any) -> None:
        """Store an int or a float. Raises ValueError or TypeError, as a memoryview does, if the format cannot hold it.

        Other objects raise TypeError, so no code of the caller runs.
        """

    def index_in(index: Any, length: i64) -> i64:
        """An int as an index from 0 on; negative ones count from the end. -1 if it is outside, or no int."""

    def load_int(kind: i64, items: Pointer, index: i64) -> i64:
        """An item of an integer format; of 'Q', a word."""

    def store_int(kind: i64, items: Pointer, index: i64, item: i64) -> None:
        """Store an int that fits the format; for 'Q', a word."""

    def load_float(kind: i64, items: Pointer, index: i64) -> float:
        """An item of format 'f' or 'd'."""

    def store_float(kind: i64, items: Pointer, index: i64, item: float) -> None:
        """Store a float in format 'd', or one that fits format 'f'."""

    def load_u8(items: Pointer, index: i64) -> i64: ...
    def store_u8(items: Pointer, index: i64, item: i64) -> None: ...
    def load_u16(items: Pointer, index: i64) -> i64: ...
    def store_u16(items: Pointer, index: i64, item: i64) -> None: ...
    def load_u32(items: Pointer, index: i64) -> i64: ...
    def store_u32(items: Pointer, index: i64, item: i64) -> None: ...
    def load_i32(items: Pointer, index: i64) -> i64: ...
    def store_i32(items: Pointer, index: i64, item: i64) -> None: ...
    def load_i64(items: Pointer, index: i64) -> i64: ...
    def store_i64(items: Pointer, index: i64, item: i64) -> None: ...
    def load_u64(items: Pointer, index: i64) -> i64: ...
    def store_u64(items: Pointer, index: i64, item: i64) -> None: ...
    def load_f32(items: Pointer, index: i64) -> float: ...
    def store_f32(items: Pointer, index: i64, item: float) -> None: ...
    def load_f64(items: Pointer, index: i64) -> float: ...
    def store_f64(items: Pointer, index: i64, item: float) -> None: ...

    def move(size: i64, target: Pointer, to: i64, source: Pointer, start: i64, count: i64) -> None:
        """Copy `count` items of `size` bytes each, which may overlap."""

    def repeat(size: i64, items: Pointer, index: i64, count: i64) -> None:
        """Copy one item of `size` bytes over those after it, so that there are `count` of it."""

    def load_bytes(items: Pointer, index: i64, count: i64) -> bytes:
        """A copy of `count` bytes, from items of format 'B'."""

    def store_bytes(items: Pointer, index: i64, text: bytes) -> None:
        """Store bytes in items of format 'B'."""

    def equal_bytes(items: Pointer, index: i64, text: bytes) -> bool:
        """Whether the items of format 'B' from `index` on are these bytes."""

    def word(number: Any) -> i64:
        """An int, or the `__index__` of another object, as a word; ValueError if it is not from 0 to 2**64 - 1."""

    def number(word: i64) -> Any:
        """A word as an int."""

else:
    Pointer = object

    def pointer(view):
        if view.readonly:
            raise TypeError("cannot modify read-only memory")
        return view

    def index_in(index, length):
        if not isinstance(index, int):
            return -1
        if index < 0:
            index += length
        return index if 0 <= index < length else -1

    def load_item(_kind, items, index):
        return items[index]

    def store_item(_kind, items, index, item):
        items[index] = item

    load_int = load_float = load_item
    store_int = store_float = store_item
    load_u8 = load_u16 = load_u32 = load_i32 = load_i64 = load_u64 = load_f32 = load_f64 = getitem
    store_u8 = store_u16 = store_u32 = store_i32 = store_i64 = store_u64 = store_f32 = store_f64 = setitem

    def move(_size, target, to, source, start, count):
        target[to : to + count] = source[start : start + count]

    def repeat(_size, items, index, count):
        done = 1
        while done < count:
            step = min(done, count - done)
            items[index + done : index + done + step] = items[index : index + step]
            done += step

    def load_bytes(items, index, count):
        return bytes(items[index : index + count])

    def store_bytes(items, index, text):
        items[index : index + len(text)] = text

    def equal_bytes(items, index, text):
        return items[index : index + len(text)] == text

    def word(number):
        plain = plain_int(number)
        if not 0 <= plain < 1 << 64:
            raise ValueError("a number from 0 to 2**64 - 1 is needed")
        return plain

    def number(word):
        return word


#: The formats of items. Their place here is their kind.
KINDS = "BbHhIiqQfd"
