"""The errors of this package, all of them; what its checks of other allocators raise is in `allocators.testing`."""
# Not compiled: mypyc does not compile exceptions well.

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from allocators.layout import Layout


class Portable:
    """For exceptions whose constructor takes more than the message: copied and pickled by message and attributes.

    Python makes an exception anew from its `args`, which such a constructor cannot take.
    """

    args: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """An exception with these `args`, without its constructor; its attributes come after."""
    return kind.__new__(kind, *args)


class LayoutError(ValueError):
    """A size or an alignment that no allocation can have."""


class MisuseError(ValueError):
    """A block or view was used against the contract: released, foreign, or with a layout that does not fit it."""


class DoubleFreeError(MisuseError):
    """A block was given back, grown or shrunk after it had ended."""


class CorruptionError(MisuseError):
    """Bytes were written that belong to no live block: before or behind one, or after it was freed."""


class LeakError(MisuseError):
    """Blocks were still live when their allocator was closed."""


class AllocError(Portable, MemoryError):
    """An allocator could not serve a request; nothing has changed.

    `size` and `align` are what was asked for, in bytes; `limit` and `in_use` are the allocator's own figures in bytes,
    or None where it has none. `allocator` is the allocator's name.
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
    """A spec that makes no sense. `at` and `length` are the offending characters of `spec`."""

    def __init__(self, message: str, spec: str, at: int, length: int) -> None:
        self.message = message
        self.spec = spec
        self.at = at
        self.length = length
        # Any white space is one column, so that the caret stays below what it points at.
        shown = "".join(" " if character.isspace() else character for character in spec)
        super().__init__(f"{message}\n  {shown}\n  {' ' * at}{'^' * max(length, 1)}")


class TraceError(Portable, ValueError):
    """A trace that cannot be read. `line` counts from 1."""

    def __init__(self, name: str, line: int, message: str) -> None:
        self.name = name
        self.line = line
        super().__init__(f"{name}:{line}: {message}")
