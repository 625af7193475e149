"""Closing: the base of what a `with` statement closes."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from allocators._mypyc import mypyc_attr
from allocators.uncopyable import Uncopyable


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True, acyclic=True)
class Closing(Uncopyable):
    """Calls `close` at the end of a `with` block. It owns memory, so it cannot be copied or pickled."""

    __slots__ = ()

    def close(self) -> None:
        """Give all memory back. Nothing allocated may be used afterwards; closing twice is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
