"""Become: the process of the `garden` command becomes the program that it is to run.

In the plain case, when nobody asks for figures, limits or colour, there is nothing that Python is needed for once a
program is compiled. So the command makes an executable of it (`garden.native.executable.aot`), keeps that in the
cache, and lets the system replace the process by it: number, files and environment stay, and Python is gone, with all
that it takes to start a machine in it. What the program writes, says of a trap, and exits with is the same either way.

It is only for a process of the command. Whoever calls `garden.cli.main.main` gets the exit code.
"""

from __future__ import annotations

import os
import sys

from garden.cli.report import color
from garden.native.cache import digest
from garden.native.fingerprint import fingerprint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from garden.native.cache import Cache
    from garden.source import Source

#: Of `memfd_create`, since Linux 6.3: what is in the file may be executed.
_MFD_EXEC: Final = 0x10


def executable_key(source: Source, target: str, level: int) -> bytes:
    """The key in the cache of the executable of a program."""
    name = source.name.encode(errors="surrogateescape")
    return digest(b"executable", target.encode(), str(level).encode(), fingerprint(), name, source.text)


def can_become() -> bool:
    """Whether the system can do it, and nobody would miss colours, which executables do not have."""
    return hasattr(os, "memfd_create") and os.execve in os.supports_fd and not color()


def become_kept(cache: Cache, key: bytes) -> None:
    """Become the executable that the cache has under a key. Returns where it has none, or the system refuses."""
    executable = cache.load(key)
    if executable is not None:
        become(executable)


def become(executable: bytes) -> None:
    """Become an executable, given as the bytes of its file. Returns where the system refuses."""
    try:
        file = _in_memory(executable)
    except OSError:
        return
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        os.execve(file, ["garden"], os.environ)
    except OSError:
        os.close(file)


def _in_memory(data: bytes) -> int:
    """The descriptor of a file that is nowhere but in memory, and closed by whoever it becomes."""
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
