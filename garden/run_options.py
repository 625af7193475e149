"""RunOptions: how programs run, said once for all engines.

| option | for `jit` | `interpreter`, `reference` |
| --- | --- | --- |
| `stack_size` | bytes of the native stack | bytes of the spill stack; as many calls as it has words may be active |
| `frame_limit` | refused | calls that may be active at once |
| `spill` | refused | the spill stack |
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from garden.common import ENGINES
from garden.output import write_stdout

if TYPE_CHECKING:
    from collections.abc import Callable

    from allocators import StackAlloc

#: Bytes of the spill stack by default.
SPILL_BYTES: Final = 1 << 18
#: Calls that may be active at once by default.
FRAME_LIMIT: Final = 1 << 17
#: More than any process has; a `Layout` may not be much larger.
_MOST_SPILL_BYTES: Final = 1 << 62


class RunOptions:
    """How programs run. `engine` is one of `ENGINES`.

    `write` is given the output; `heap_limit` is in bytes, `frame_limit` in active calls; `stack_size` is in bytes: of
    the native stack for `jit`, else of the spill stack, and then so many more calls may be active. `spill` is the spill
    stack to use instead, which every run resets. With `backtrace`, traps carry the names of the active functions.
    `note` is told why an engine was passed over. None is the default of each.

    Raises ValueError for an unknown engine, and for options that the engine cannot obey: `jit` has neither
    spill stack nor frames. TypeError for values of the wrong type.
    """

    def __init__(
        self,
        engine: str = "auto",
        *,
        write: Callable[[bytes], object] = write_stdout,
        heap_limit: int | None = None,
        frame_limit: int | None = None,
        stack_size: int | None = None,
        spill: StackAlloc | None = None,
        backtrace: bool = False,
        note: Callable[[str], object] | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}, want one of {', '.join(ENGINES)}")
        for name, number in (("heap_limit", heap_limit), ("frame_limit", frame_limit), ("stack_size", stack_size)):
            if number is None:
                continue
            if not isinstance(number, int):
                raise TypeError(f"{name} is an int, not {number!r}")
            if number < 0:
                from allocators.layout import number_text

                raise ValueError(f"{name} must not be negative: {number_text(number)}")
        if spill is not None:
            from allocators import StackAlloc

            if not isinstance(spill, StackAlloc):
                raise TypeError(f"spill is a StackAlloc, not {spill!r}")
        if not callable(write):
            raise TypeError(f"write takes the output, which {write!r} cannot")
        if engine == "jit":
            for name, value in (("frame_limit", frame_limit), ("spill", spill)):
                if value is not None:
                    raise ValueError(f"{name} needs a bytecode engine, interpreter or reference; jit has a stack_size")
        self.engine: Final = engine
        self.write: Final = write
        self.heap_limit: Final = heap_limit
        self.stack_size: Final = stack_size
        self.spill: Final = spill
        self.backtrace: Final = backtrace
        self.note: Final = note
        self._frame_limit: Final = frame_limit

    def candidates(self) -> tuple[str, ...]:
        """The engines to try, best first."""
        if self.engine != "auto":
            return (self.engine,)
        if self.spill is not None or self._frame_limit is not None:
            return ENGINES[2:]
        return ENGINES[1:]

    @property
    def spill_bytes(self) -> int:
        """Bytes of the spill stack that a machine makes itself."""
        return SPILL_BYTES if self.stack_size is None else min(self.stack_size, _MOST_SPILL_BYTES)

    @property
    def frame_limit(self) -> int:
        """Calls of bytecode that may be active at once."""
        if self._frame_limit is not None:
            return self._frame_limit
        return max(FRAME_LIMIT, self.spill_bytes >> 3)
