"""arr: arrays. Functions work on words, so reading a member takes constant time."""

from __future__ import annotations

from array import array
from typing import Final

from allocators import Allocator
from garden.host import HostFunction, Package, declare
from garden.semantics import double_of, word_of, wrap
from garden.traps import INDEX_OUTSIDE_ARRAY, trap
from garden.types.types import Array, Double, Int, Slot
from garden.vm.runtime import Runtime

_T: Final = Slot("T")
#: Members written or added at once.
_STEP: Final = 1 << 12
#: More words than any memory has, yet their size in bytes, length included, fits an Int.
_MOST: Final = (1 << 60) - 2


@declare("arr", "len", ("array", Array(_T)), result=Int, pure=True, words=True, native="arr_len")
def length(machine: Runtime[Allocator], function: HostFunction, array: int) -> int:
    """The number of members."""
    return machine.heap.load(array)


@declare("arr", "get", ("array", Array(_T)), ("index", Int), result=_T, words=True, native="arr_get")
def get(machine: Runtime[Allocator], function: HostFunction, array: int, index: int) -> int:
    """The member at an index, counted from 0. Traps if the index is out of range."""
    count = machine.heap.load(array)
    if not 0 <= index < count:
        raise trap(INDEX_OUTSIDE_ARRAY, index, count)
    member = function.result
    address = array + 8 + index * member.size
    return address if member.name == "Record" else machine.heap.load(address)


@declare("arr", "range", ("start", Int), ("end", Int), result=Array(Int), words=True, native="arr_range")
def range_(machine: Runtime[Allocator], function: HostFunction, start: int, end: int) -> int:
    """The numbers from `start` up to but not including `end`; empty if `end` is not above `start`."""
    count = min(max(end - start, 0), _MOST)
    address = machine.heap.alloc(8 + 8 * count)
    machine.heap.store(address, count)
    members = machine.heap.words(address + 8, count)
    for done in range(0, count, _STEP):
        until = min(done + _STEP, count)
        members[done:until] = memoryview(array("q", range(start + done, start + until)))
    return address


@declare("arr", "sum", ("array", Array(Int)), result=Int, pure=True, words=True, native="arr_sum_int")
def sum_int(machine: Runtime[Allocator], function: HostFunction, array: int) -> int:
    """The sum of all members; wraps as `+` does."""
    return wrap(sum(machine.heap.words(array + 8, machine.heap.load(array))))


@declare("arr", "sum", ("array", Array(Double)), result=Double, pure=True, words=True, native="arr_sum_double")
def sum_double(machine: Runtime[Allocator], function: HostFunction, array: int) -> int:
    """The sum of all members, from first to last."""
    total = 0.0
    # Not `sum`: newer Pythons compensate for rounding, garden's `+` does not.
    for word in machine.heap.words(array + 8, machine.heap.load(array)):
        total += double_of(word)
    return word_of(total)


ARR: Final = Package("arr", "Arrays.", [length, get, range_, sum_int, sum_double])
