"""Mapping: maps and protects pages of the operating system. `PageAlloc` is the allocator on top.

Loads `ctypes` only to protect pages, since every `garden` command maps some.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import mmap
import sys
from typing import Final

from allocators.address import address_of_buffer

PAGE_SIZE: Final[int] = mmap.PAGESIZE

# Python's default for anonymous mappings is MAP_SHARED, which grows without growing its backing file: touching a new
# page then kills the process.
_FLAGS: Final[int] = 0 if sys.platform == "win32" else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS

#: How pages may be accessed: see `allocators.protocol.Access`.
PROTECTIONS: Final[dict[str, int]] = (
    {}
    if sys.platform == "win32"
    else {
        "r": mmap.PROT_READ,
        "rw": mmap.PROT_READ | mmap.PROT_WRITE,
        "rx": mmap.PROT_READ | mmap.PROT_EXEC,
    }
)


def map_pages(size: int) -> mmap.mmap:
    """Map `size` fresh zeroed private bytes. Raises OSError, OverflowError or ValueError if the OS refuses."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=_FLAGS)


def address_of_pages(mapping: mmap.mmap) -> int:
    """The address of the first byte."""
    return address_of_buffer(mapping)


def protect_pages(address: int, size: int, protection: int) -> None:
    """Allow only the accesses in `protection`, a value of `PROTECTIONS`. Raises OSError if the OS refuses."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), protection) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mprotect of {size} bytes at {address:#x} failed with errno {error}")
