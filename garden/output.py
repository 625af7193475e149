"""Output: what a program writes, kept back until there is enough of it to be worth handing on. Loads nothing else."""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

#: Bytes of output that are kept back before they are written.
BUFFER_BYTES: Final = 1 << 13


def write_stdout(data: bytes) -> None:
    """Write UTF-8 to the standard output that Python has at the moment. OSError where that is impossible."""
    stdout = sys.stdout
    if stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    binary = getattr(stdout, "buffer", None)
    if binary is None:
        stdout.write(data.decode())
    else:
        # What Python code has printed so far comes first.
        stdout.flush()
        binary.write(data)
    stdout.flush()


class Output:
    """The output of one program. `write` is given whole pieces of it, as UTF-8."""

    __slots__ = ("_buffer", "_write")

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write: Final = write
        self._buffer = bytearray()

    def add(self, data: bytes) -> None:
        """Add UTF-8 to the output."""
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand on what has been written so far. Where that fails, it is lost."""
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._write(data)

    def discard(self) -> None:
        """Forget what has been written and not yet handed on."""
        self._buffer.clear()
