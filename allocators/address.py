"""Address: where a buffer is.

By the two names of `_ctypes` that this takes: `ctypes` itself is not loaded, which takes some 2 ms, unless more of it
is used.
"""
# Not compiled: metaclasses of C types are not for mypyc.

from __future__ import annotations

from _ctypes import _SimpleCData, addressof
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class _Byte(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "c"


def address_of_buffer(buffer: WriteableBuffer) -> int:
    """The address of the first byte of a writable, contiguous buffer, which has one.

    Raises BufferError, TypeError or ValueError for another one.
    """
    return addressof(_Byte.from_buffer(buffer))
