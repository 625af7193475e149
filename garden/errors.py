"""The errors of garden, except `UsageError` of the command, for an invalid command line."""
# Not compiled: mypyc does not compile exceptions well.

from __future__ import annotations

from typing import TYPE_CHECKING

from allocators.errors import Portable

if TYPE_CHECKING:
    from garden.diagnostics import Diagnostic
    from garden.source import Source

#: Diagnostics in the message of a `CompileError`.
MAX_SHOWN = 100


class GardenError(Portable, Exception):
    """Base of all errors for an invalid program or a failed run."""


class CompileError(GardenError):
    """The program is invalid. `diagnostics` has all errors in source order; the message shows the first `MAX_SHOWN`."""

    def __init__(self, source: Source, diagnostics: list[Diagnostic]) -> None:
        self.source = source
        self.diagnostics = diagnostics
        shown = [diagnostic.render(source) for diagnostic in diagnostics[:MAX_SHOWN]]
        if len(diagnostics) > MAX_SHOWN:
            shown.append(f"and {len(diagnostics) - MAX_SHOWN} more")
        super().__init__("\n".join(shown))


class ImageError(GardenError):
    """An object file cannot be loaded: it is damaged, for another machine, or has undefined symbols."""


class EngineError(GardenError):
    """An engine is not available: machine code is not supported on this system, or llvmlite is missing."""


class Trap(GardenError):
    """A run cannot continue: `code` is one of the T codes.

    `offset` is the byte offset in the source, -1 if unknown; `backtrace` has the names of the active functions, entry
    first, if requested. Host functions raise it with code and message only; the machine adds the rest.
    """

    def __init__(self, code: str, message: str, offset: int = -1, backtrace: tuple[str, ...] = ()) -> None:
        self.code = code
        self.message = message
        self.offset = offset
        self.backtrace = backtrace
        super().__init__(f"{code}: {message}")
