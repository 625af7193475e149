"""Reports failures on standard error, and chooses the exit code. Loads the renderer only when it is needed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from allocators.errors import AllocError
from garden.errors import CompileError, EngineError, Trap
from garden.output import ReaderGone, write_stderr

if TYPE_CHECKING:
    from collections.abc import Callable

    from garden.source import Source

#: The exit code of a shell for a program that SIGPIPE ended.
_READER_HAS_GONE: Final = 128 + 13


class UsageError(Exception):
    """The command line is invalid."""


def size_of(text: str) -> int:
    """The bytes that an option says. Raises `UsageError`."""
    from allocators.sizes import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise UsageError(str(error)) from None


def guarded(action: Callable[[], int], source: Source, stage: Callable[[], str]) -> int:
    """Run an action on a program; returns the exit code. `stage` names the stage that ran out of memory."""
    try:
        return action()
    except UsageError as error:
        return fail(str(error), 2)
    except CompileError as error:
        for diagnostic in error.diagnostics:
            say(diagnostic.render(source, color=color()))
    except Trap as trap:
        _say_trap(trap, source)
    except EngineError as error:
        return fail(str(error), 1)
    except AllocError as error:
        return fail(f"out of memory in stage {stage()}: {error}", 1)
    return 1


def _say_trap(trap: Trap, source: Source) -> None:
    if trap.offset < 0:
        fail(f"{trap.code}: {trap.message}", 1)
        return
    from garden.diagnostics import Diagnostic

    say(Diagnostic(trap.code, trap.message, trap.offset, 0).render(source, color=color()))
    if trap.backtrace:
        say("at:")
        for depth, name in enumerate(trap.backtrace):
            say(f"  {depth}: {name}")


def fail(message: str, status: int) -> int:
    """Report an error, and return the exit code."""
    say(f"garden: {message}")
    return status


def output_failed(error: OSError) -> int:
    """Report that output cannot be written, unless its reader went away, and return the exit code."""
    if isinstance(error, ReaderGone):
        return _READER_HAS_GONE
    return fail(f"cannot write the output: error {error.errno}: {error.strerror}", 1)


def say(line: str) -> None:
    """Write a line to standard error."""
    write_stderr(f"{line}\n".encode(errors="backslashreplace"))


def color() -> bool:
    """Whether reports are coloured."""
    return sys.stderr is not None and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
