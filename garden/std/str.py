"""str: text. Lengths and indices are in bytes of UTF-8."""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from garden.host import HostFunction, Package, declare
from garden.std.text import bool_text, double_text
from garden.traps import (
    INDEX_OUTSIDE_STR,
    NEGATIVE_REPEAT,
    REPEAT_TOO_LONG,
    SLICE_INSIDE_CHARACTER,
    SLICE_OUTSIDE_STR,
    trap,
)
from garden.types.types import Bool, Double, Int, Str
from garden.vm.heap import MAX_STR_BYTES
from garden.vm.runtime import Runtime


@declare("str", "contains", ("hay", Str), ("needle", Str), result=Bool, pure=True, native="str_contains")
def contains(hay: str, needle: str) -> bool:
    """Whether `hay` contains `needle`. Every text contains the empty one."""
    return needle in hay


@declare("str", "repeat", ("text", Str), ("count", Int), result=Str, pure=True, native="str_repeat")
def repeat(text: str, count: int) -> str:
    """The text repeated `count` times. Traps if `count` is negative."""
    if count < 0:
        raise trap(NEGATIVE_REPEAT, count)
    if len(text.encode()) * count > MAX_STR_BYTES:
        raise trap(REPEAT_TOO_LONG, MAX_STR_BYTES)
    return text * count


@declare("str", "concat", ("left", Str), ("right", Str), result=Str, pure=True, native="str_concat")
def concat(left: str, right: str) -> str:
    """`left`, then `right`."""
    return left + right


@declare("str", "len", ("text", Str), result=Int, pure=True, words=True, native="str_len")
def length(machine: Runtime[Allocator], function: HostFunction, text: int) -> int:
    """The number of bytes."""
    return machine.heap.str_length(text)


@declare("str", "get", ("text", Str), ("index", Int), result=Int, words=True, native="str_get")
def get(machine: Runtime[Allocator], function: HostFunction, text: int, index: int) -> int:
    """The byte at an index, counted from 0. Traps if the index is out of range."""
    count = machine.heap.str_length(text)
    if not 0 <= index < count:
        raise trap(INDEX_OUTSIDE_STR, index, count)
    return machine.heap.str_bytes(text, index, index + 1)[0]


@declare("str", "slice", ("text", Str), ("start", Int), ("end", Int), result=Str, words=True, native="str_slice")
def slice_(machine: Runtime[Allocator], function: HostFunction, text: int, start: int, end: int) -> int:
    """The bytes from `start` up to but not including `end`. Traps if they are out of range or split a character."""
    heap = machine.heap
    count = heap.str_length(text)
    if not 0 <= start <= end <= count:
        raise trap(SLICE_OUTSIDE_STR, start, end, count)
    for index in (start, end):
        # The second and later bytes of a character are 10xxxxxx.
        if index < count and heap.str_bytes(text, index, index + 1)[0] & 0xC0 == 0x80:
            raise trap(SLICE_INSIDE_CHARACTER, index)
    return heap.intern(heap.str_bytes(text, start, end))


@declare("str", "from", ("n", Int), result=Str, pure=True, native="str_from_int")
def from_int(n: int) -> str:
    """The number in decimal."""
    return f"{n}"


@declare("str", "from", ("x", Double), result=Str, pure=True, native="str_from_double")
def from_double(x: float) -> str:
    """The shortest decimal that reads back as this number, without exponent; whole numbers have no point."""
    return double_text(x)


@declare("str", "from", ("truth", Bool), result=Str, pure=True, native="str_from_bool")
def from_bool(truth: bool) -> str:
    """`true` or `false`."""
    return bool_text(truth)


STR: Final = Package(
    "str",
    "Text. Lengths and indices are in bytes of UTF-8.",
    [contains, repeat, concat, length, get, slice_, from_int, from_double, from_bool],
)
