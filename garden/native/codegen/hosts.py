"""Host functions in machine code: which function of the runtime stands for a call.

The runtime (`runtime.garden`) has no types but Int, Double and Bool, all else being words. Where a parameter or a
result of its function is another one of these than the call has, the caller converts: a Double member of an array comes
out of `arr_get` as an Int, and is that Double's bits.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from garden.host import HostFunction

#: Functions that look into what an array or an option has inside, where a record is its own address and all else is
#: loaded; for records there is another function of the name and `_RECORD`.
_INSIDE: Final = ("arr_get", "opt_some", "opt_unwrap", "opt_or")
_RECORD: Final = "_record"
#: Of these, the ones that are given the size of the record.
_SIZED: Final = ("arr_get",)
#: Begins the names of the interpreter's adapters: that of a function of the runtime ends with its name, and the one for
#: functions of Python with nothing.
ADAPTER: Final = "adapter."


def native_call(function: HostFunction) -> tuple[str, tuple[int, ...]] | None:
    """The function of the runtime that a call of `function` calls, and the words that it is given behind the arguments.

    The types of `function` are those of the call. None where only Python has it.
    """
    name = function.native
    if not name:
        return None
    if name in _INSIDE:
        inside = function.parameters[0][1] if name == "opt_some" else function.result
        if inside.name == "Record":
            return name + _RECORD, (inside.size,) if name in _SIZED else ()
    return name, ()


def python_name(function: HostFunction) -> str:
    """What tells a host function from all others: its package and signature."""
    return f"{function.package}.{function}"


def python_hosts(hosts: list[HostFunction]) -> dict[int, str]:
    """The host functions that only Python has, by index."""
    return {index: python_name(function) for index, function in enumerate(hosts) if native_call(function) is None}


def runtime_functions() -> dict[str, int]:
    """All functions of the runtime that stand for calls, and how many words each is given behind the arguments."""
    from garden.std import STANDARD

    names = {function.native: 0 for package in STANDARD.values() for function in package.functions if function.native}
    return names | {name + _RECORD: 1 if name in _SIZED else 0 for name in _INSIDE}
