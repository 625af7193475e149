"""Uncopyable: for objects that stand for something which there is once.

Two allocators that hand out the same addresses, or two containers that free the same block, are never intended.
So what owns memory, or points at what does, refuses `copy.copy`, `copy.deepcopy` and `pickle` alike. What is only a
value (a layout, an error, a frame of counters) can be copied and pickled.
"""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

from allocators._mypyc import mypyc_attr


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True, acyclic=True)
class Uncopyable:
    """Inherit from it, and copying or pickling an instance raises TypeError."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        # What `copy` and `pickle` ask of every object.
        raise TypeError(f"cannot copy or pickle {type(self).__name__!r}: it is bound to memory or code of this process")
