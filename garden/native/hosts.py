"""Host functions in machine code: which function of the runtime stands for a call.

The runtime (`runtime.garden`) has no types but Int, Double and Bool, all else being words. Where a parameter or a
result of its function is another one of these than the call has, the caller converts: a Double member of an array comes
out of `arr_get` as an Int, and is that Double's bits.
"""

from __future__ import annotations

from typing import Final

from garden.types.host import HostFunction

#: Functions that look into what an array or an option has inside, where a record is its own address and all else is
#: loaded; for records there is another function of the name and `_RECORD`.
_INSIDE: Final = ("arr_get", "opt_some", "opt_unwrap", "opt_or")
_RECORD: Final = "_record"


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
            return name + _RECORD, (inside.size,) if name == "arr_get" else ()
    return name, ()
