"""opt: optional values.

These functions work on words: an option is 0 or the address of its value. A record is its own address, so `some` of a
record is free; every other value gets a cell of one word.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from garden.host import HostFunction, Package, declare
from garden.traps import NO_VALUE, trap
from garden.types.types import Bool, Option, Slot, Type
from garden.vm.runtime import Runtime

_T: Final = Slot("T")


@declare("opt", "some", ("value", _T), result=Option(_T), words=True, native="opt_some")
def some(machine: Runtime[Allocator], function: HostFunction, value: int) -> int:
    """An option with a value."""
    if function.parameters[0][1].name == "Record":
        return value
    cell = machine.heap.alloc(8)
    machine.heap.store(cell, value)
    return cell


@declare("opt", "none", ("like", _T), result=Option(_T), pure=True, words=True, native="opt_none")
def none(machine: Runtime[Allocator], function: HostFunction, like: int) -> int:
    """An empty option for values of the type of `like`."""
    return 0


@declare("opt", "is_some", ("option", Option(_T)), result=Bool, pure=True, words=True, native="opt_is_some")
def is_some(machine: Runtime[Allocator], function: HostFunction, option: int) -> int:
    """Whether the option has a value."""
    return 0 if option == 0 else 1


@declare("opt", "is_none", ("option", Option(_T)), result=Bool, pure=True, words=True, native="opt_is_none")
def is_none(machine: Runtime[Allocator], function: HostFunction, option: int) -> int:
    """Whether the option has no value."""
    return 1 if option == 0 else 0


@declare("opt", "unwrap", ("option", Option(_T)), result=_T, words=True, native="opt_unwrap")
def unwrap(machine: Runtime[Allocator], function: HostFunction, option: int) -> int:
    """The value of the option. Traps if it is empty."""
    if option == 0:
        raise trap(NO_VALUE)
    return _value(machine, function.result, option)


@declare("opt", "or", ("option", Option(_T)), ("otherwise", _T), result=_T, pure=True, words=True, native="opt_or")
def or_(machine: Runtime[Allocator], function: HostFunction, option: int, otherwise: int) -> int:
    """The value of the option, or `otherwise` if it is empty."""
    return otherwise if option == 0 else _value(machine, function.result, option)


def _value(machine: Runtime[Allocator], type: Type, option: int) -> int:
    return option if type.name == "Record" else machine.heap.load(option)


OPT: Final = Package("opt", "Values that may be missing.", [some, none, is_some, is_none, unwrap, or_])
