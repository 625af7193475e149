"""Output: writes bytes to standard output and standard error, and buffers the output of a program.

`docs/how-to/run-a-program.md` says what all engines and executables do with the standard streams. Executables do it in
garden (`garden/native/executable/host.garden`).
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes of output to buffer before writing.
BUFFER_BYTES: Final = 1 << 13


class OutputError(OSError):
    """Standard output cannot be written."""


class ReaderGone(OutputError, BrokenPipeError):
    """Standard output is a pipe or socket whose reader is gone."""


def write_stdout(data: bytes) -> None:
    """Write all of some UTF-8 to Python's current standard output, and flush.

    Waits while a non-blocking file is full. Raises `OutputError` if writing fails.
    """
    try:
        _write(sys.stdout, data)
    except (OSError, ValueError) as error:
        raise _output_error(error) from error


def flush_stdout() -> None:
    """Flush what Python code has printed so far. Raises `OutputError`."""
    try:
        if sys.stdout is not None:
            _flush(sys.stdout)
    except (OSError, ValueError) as error:
        raise _output_error(error) from error


def write_stderr(data: bytes) -> None:
    """Write UTF-8 to standard error, as `write_stdout` does. Output that cannot be written is lost."""
    try:
        _write(sys.stderr, data)
    except (OSError, ValueError):
        pass


def stdout_is_terminal() -> bool:
    """Whether standard output is a terminal."""
    try:
        return sys.stdout is not None and sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False


def _output_error(error: OSError | ValueError) -> OutputError:
    # Python raises ValueError for a closed file object.
    number = (error.errno or errno.EIO) if isinstance(error, OSError) else errno.EBADF
    kind = ReaderGone if number == errno.EPIPE else OutputError
    return kind(number, os.strerror(number))


def _write(stream: Any, data: bytes) -> None:
    if stream is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    binary = getattr(stream, "buffer", None)
    if binary is None:
        stream.write(data.decode(errors="backslashreplace"))
    else:
        # Earlier prints of Python code come first.
        _flush(stream)
        left = memoryview(data)
        while left:
            try:
                written = binary.write(left)
            except BlockingIOError as error:
                left = left[error.characters_written :]
                _wait(binary)
                continue
            if written is None:
                # A raw file is full for now.
                _wait(binary)
            else:
                left = left[written:]
    _flush(stream)


def _flush(stream: Any) -> None:
    while True:
        try:
            stream.flush()
            return
        except BlockingIOError:
            _wait(stream)


def _wait(stream: Any) -> None:
    """Wait until a non-blocking file is writable or has failed."""
    import select

    poll = select.poll()
    poll.register(stream.fileno(), select.POLLOUT)
    poll.poll()


class Output:
    """The output of one program. `write` gets whole pieces of it, as UTF-8."""

    __slots__ = ("_buffer", "_write", "unbuffered")

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write: Final = write
        self._buffer = bytearray()
        #: Whether output is unbuffered, for a terminal.
        self.unbuffered = False

    def begin(self) -> None:
        """Begin a run."""
        self.unbuffered = self._write is write_stdout and stdout_is_terminal()

    def add(self, data: bytes) -> None:
        """Add UTF-8 to the output."""
        self._buffer += data
        if self.unbuffered or len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered output. If that fails, it is lost."""
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._write(data)

    def discard(self) -> None:
        """Discard the buffered output."""
        self._buffer.clear()
