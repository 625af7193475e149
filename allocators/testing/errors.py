"""The errors that the checks raise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from allocators.errors import Portable

_SHOWN: Final = 60
_LEAKS_SHOWN: Final = 8


class ConformanceError(Portable, AssertionError):
    """An allocator, or the code that uses one, broke a promise.

    `promise` names it; `operations` are the calls that led to it, oldest first, as Python statements.
    """

    def __init__(self, promise: str, operations: Sequence[str] = ()) -> None:
        self.promise = promise
        self.operations = tuple(operations)
        lines = [promise]
        if self.operations:
            lines.append("after these operations:")
            hidden = len(self.operations) - _SHOWN
            if hidden > 0:
                lines.append(f"  ... {hidden} earlier ones, see `operations` ...")
            lines.extend(f"  {operation}" for operation in self.operations[-_SHOWN:])
        super().__init__("\n".join(lines))


class Interruption(BaseException):
    """Raised by a parent after it has freed a block, as Ctrl-C could raise KeyboardInterrupt there."""


def summary(leaks: Sequence[str]) -> str:
    """The first few leaks, and the number of others."""
    more = f"; and {len(leaks) - _LEAKS_SHOWN} more" if len(leaks) > _LEAKS_SHOWN else ""
    return "; ".join(leaks[:_LEAKS_SHOWN]) + more


class SwallowedFailure(ConformanceError):
    """A function ignored a refused request and returned normally."""


class NondeterministicAllocations(ConformanceError):
    """A function made fewer requests when run again."""


class LeakedBlocks(ConformanceError):
    """A function ended, normally or not, and leaked blocks."""
