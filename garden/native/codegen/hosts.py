"""Host functions in machine code: maps calls of host functions to functions of the runtime.

The runtime (`runtime.garden`) has only the types Int, Double and Bool; everything else is a word. If its function has
another of these types than the call, the caller converts: `arr_get` returns a Double member of an array as an Int, with
the bits of the Double.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from garden.host import HostFunction

#: Functions that read the content of an array or an option. Everything is loaded except records, which are their own
#: address, so that there is a second function for records, whose name ends with `_RECORD`.
_INSIDE: Final = ("arr_get", "opt_some", "opt_unwrap", "opt_or")
_RECORD: Final = "_record"
#: Those of them that take the size of the record.
_SIZED: Final = ("arr_get",)
#: Prefix of the names of the interpreter's adapters, followed by the name of the runtime function, or by nothing for
#: the adapter of functions in Python.
ADAPTER: Final = "adapter."


def native_call(function: HostFunction) -> tuple[str, tuple[int, ...]] | None:
    """The runtime function for a call of `function`, and the words that it gets after the arguments.

    The types of `function` are those of the call. None if only Python implements it.
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
    """A unique name of a host function: its package and signature."""
    return f"{function.package}.{function}"


def python_hosts(hosts: list[HostFunction]) -> dict[int, str]:
    """The host functions that only Python implements, by index."""
    return {index: python_name(function) for index, function in enumerate(hosts) if native_call(function) is None}


def runtime_functions() -> dict[str, int]:
    """All runtime functions for calls, and how many words each gets after the arguments."""
    from garden.std import STANDARD

    names = {function.native: 0 for package in STANDARD.values() for function in package.functions if function.native}
    return names | {name + _RECORD: 1 if name in _SIZED else 0 for name in _INSIDE}
