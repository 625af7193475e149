"""The errors of this package, all of them; what its checks of other allocators raise is in `allocators.testing`."""
# Not compiled: mypyc does not compile exceptions well.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from allocators.layout import Layout

    E = TypeVar("E", bound=BaseException)


class Portable:
    """For exceptions whose constructor takes more than the message: copied and pickled by message and attributes.

    Python rebuilds an exception from its `args`, which such a constructor cannot take.
    """

    args: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """An exception with these `args`, without its constructor; its attributes come after."""
    return kind.__new__(kind, *args)


def caused_by(error: E, cause: BaseException | None) -> E:
    """The error with its cause, for `raise caused_by(error, cause)`: compiled modules ignore `raise ... from`."""
    error.__cause__ = cause
    return error


class LayoutError(ValueError):
    """A size or an alignment that no allocation can have."""


class MisuseError(ValueError):
    """A call broke the contract: for example, with a released or foreign block, or a layout that does not fit.

    Nothing has changed unless `done` is set: then a restore, a reset or a close completed before it raised.
    """

    done = False


class DoubleFreeError(MisuseError):
    """A block was freed, grown or shrunk after it had ended."""


class CorruptionError(MisuseError):
    """A write outside any live block: before or past the end of a block, or after it was freed."""


class LeakError(MisuseError):
    """Blocks were still live when their allocator was closed."""


class AllocError(Portable, MemoryError):
    """An allocator could not serve a request; nothing has changed.

    `size` and `align` are the requested bytes; `limit` and `in_use` are the allocator's own figures in bytes, or None
    if it has none. `allocator` is the allocator's name.
    """

    def __init__(
        self, allocator: str, layout: Layout, *, limit: int | None = None, in_use: int | None = None, reason: str = ""
    ) -> None:
        self.allocator = allocator
        self.size: int = layout.size
        self.align: int = layout.align
        self.limit = limit
        self.in_use = in_use
        self.reason = reason
        message = f"{allocator}: cannot allocate {self.size} bytes aligned to {self.align}"
        details = []
        if reason:
            details.append(reason)
        if limit is not None:
            details.append(f"limit {limit} bytes")
        if in_use is not None:
            details.append(f"in use {in_use} bytes")
        super().__init__(f"{message} ({', '.join(details)})" if details else message)


class SpecError(Portable, ValueError):
    """A malformed spec. `at` and `length` locate the offending characters in `spec`."""

    def __init__(self, message: str, spec: str, at: int, length: int) -> None:
        self.message = message
        self.spec = spec
        self.at = at
        self.length = length
        # Any white space takes one column, which keeps the caret below the characters it points at.
        shown = "".join(" " if character.isspace() else character for character in spec)
        super().__init__(f"{message}\n  {shown}\n  {' ' * at}{'^' * max(length, 1)}")


class TraceError(Portable, ValueError):
    """A malformed trace. `line` counts from 1."""

    def __init__(self, name: str, line: int, message: str) -> None:
        self.name = name
        self.line = line
        super().__init__(f"{name}:{line}: {message}")
