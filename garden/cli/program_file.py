"""ProgramFile: the source of the program to run, read only once, since a pipe can be read only once."""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Final

from garden.source import MAX_SOURCE_BYTES, Source

if TYPE_CHECKING:
    from collections.abc import Callable

#: The least number of bytes to read at once.
_PIECE: Final = 1 << 16
#: And the most: beyond the size of the file memory would be wasted.
_LARGE_PIECE: Final = 1 << 24


class ReadError(Exception):
    """A program cannot be read; the message says which and why."""


class ProgramFile:
    """The text of a program, and the identity of its file."""

    __slots__ = ("_identity", "source")

    def __init__(self, source: Source, identity: tuple[int, int] | None) -> None:
        self.source: Final = source
        self._identity: Final = identity

    def is_at(self, path: str) -> bool:
        """Whether a path leads to the file that was read, by identity."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return False
        return (status.st_dev, status.st_ino) == self._identity


def read_program(file: str) -> ProgramFile:
    """Read a file, or standard input for `-`, to its end. Raises `ReadError`."""
    name = "<stdin>" if file == "-" else file
    try:
        return _read_stdin(name) if file == "-" else _read_file(name)
    except OSError as error:
        raise ReadError(f"cannot read {name}: {error.strerror or error}") from error
    except MemoryError as error:
        raise ReadError(f"cannot read {name}: out of memory") from error
    except ValueError as error:
        raise ReadError(f"cannot read {name}: {error}") from error


def _read_file(name: str) -> ProgramFile:
    file = os.open(name, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        return _program(name, file, lambda size: os.read(file, size))
    finally:
        os.close(file)


def _read_stdin(name: str) -> ProgramFile:
    stdin = sys.stdin
    if stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        file = stdin.fileno()
    except (AttributeError, OSError):
        # Another file took its place.
        file = -1
    return _program(name, file, stdin.buffer.read)


def _program(name: str, file: int, read: Callable[[int], bytes | None]) -> ProgramFile:
    identity = None
    size = 0
    if file >= 0:
        status = os.fstat(file)
        identity = (status.st_dev, status.st_ino)
        size = status.st_size
    return ProgramFile(Source(name, _read_all(file, size, read)), identity)


def _read_all(file: int, size: int, read: Callable[[int], bytes | None]) -> bytes:
    """All bytes to the end; about `size` are expected."""
    if size > MAX_SOURCE_BYTES:
        raise ValueError(f"a program may have at most {MAX_SOURCE_BYTES} bytes, this one has {size}")
    pieces = []
    count = 0
    while True:
        try:
            piece = read(min(max(size + 1 - count, _PIECE), _LARGE_PIECE))
        except BlockingIOError:
            piece = None
        if piece is None:
            _wait(file)
        elif piece:
            pieces.append(piece)
            count += len(piece)
            # Some files have no end and no size.
            if count > MAX_SOURCE_BYTES:
                raise ValueError(f"a program may have at most {MAX_SOURCE_BYTES} bytes")
        else:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _wait(file: int) -> None:
    """Wait until the file is readable."""
    import select

    poll = select.poll()
    poll.register(file, select.POLLIN)
    poll.poll()
