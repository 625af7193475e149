"""Become: replace the process of the `garden` command by the program.

A plain run, without figures or limits, needs no Python once the program is compiled. So the command builds an
executable (`garden.native.executable.aot`), caches it, and lets the system replace the process by it: process number,
files and environment stay, and the cost of starting a machine inside Python is gone. Output, trap messages and exit
code are the same either way.

Only a process of the command is replaced. A caller of `garden.cli.main.main` gets the exit code.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from garden.native.cache import digest
from garden.native.fingerprint import fingerprint

if TYPE_CHECKING:
    from garden.native.cache import Cache
    from garden.source import Source

#: A flag of `memfd_create` since Linux 6.3: the file may be executed.
_MFD_EXEC: Final = 0x10


def executable_key(source: Source, target: str, level: int) -> bytes:
    """The cache key of a program's executable. `docs/internals/native.md` describes it for other readers."""
    # The bytes of the command line, whatever the locale is.
    name = os.fsencode(source.name)
    return digest(b"executable", target.encode(), str(level).encode(), fingerprint(), name, source.text)


def can_become() -> bool:
    """Whether the system supports this."""
    return hasattr(os, "memfd_create") and os.execve in os.supports_fd


def become_kept(cache: Cache, key: bytes) -> None:
    """Become the executable cached under a key. Returns if there is none or the system refuses."""
    file = cache.open_program(key)
    if file is not None:
        _execute(file)
        # The file system of the cache may allow no execution, where a copy in memory can be executed.
        become(_content(file))
        os.close(file)


def become(executable: bytes) -> None:
    """Become an executable, given as the bytes of its file. Returns if the system refuses."""
    try:
        file = _in_memory(executable)
    except OSError:
        return
    _execute(file)
    os.close(file)


def _execute(file: int) -> None:
    """Become the executable of a descriptor. Returns if the system refuses."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        os.execve(file, ["garden"], os.environ)
    except OSError:
        pass


def _content(file: int) -> bytes:
    """All bytes of a regular file; nothing where it cannot be read."""
    try:
        return os.pread(file, os.fstat(file).st_size, 0)
    except OSError:
        return b""


def _in_memory(data: bytes) -> int:
    """The descriptor of an in-memory file that is closed on exec."""
    try:
        file = os.memfd_create("garden", os.MFD_CLOEXEC | _MFD_EXEC)
    except OSError:
        file = os.memfd_create("garden", os.MFD_CLOEXEC)
    try:
        written = 0
        while written < len(data):
            written += os.write(file, data[written:])
    except OSError:
        os.close(file)
        raise
    return file
