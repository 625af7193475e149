"""CallStack: the stack of a call, cheap to capture and formatted only on demand.

Frames of this package are skipped, so the first one is the caller's. Compiled functions have no frames and do not
appear.

Costs: some 100 ns per frame. A frame is kept as its code object and a line number.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Final

_PACKAGE: Final = __name__.partition(".")[0]
_INSIDE: Final = _PACKAGE + "."


class CallStack:
    """Frames, innermost first."""

    __slots__ = ("frames",)

    def __init__(self, frames: list[tuple[CodeType, int]]) -> None:
        #: Code and line number of each frame.
        self.frames: Final = frames

    @staticmethod
    def here(depth: int) -> CallStack:
        """The stack of the caller of this package, at most `depth` frames."""
        frames: list[tuple[CodeType, int]] = []
        frame: FrameType | None = sys._getframe(0) if depth > 0 else None
        while frame is not None and len(frames) < depth:
            module = frame.f_globals.get("__name__", "")
            if module != _PACKAGE and not module.startswith(_INSIDE):
                frames.append((frame.f_code, frame.f_lineno or 0))
            frame = frame.f_back
        return CallStack(frames)

    def site(self) -> str:
        """The innermost frame as file:line(function), or '?' if the stack is empty."""
        if not self.frames:
            return "?"
        code, line = self.frames[0]
        return f"{code.co_filename}:{line}({code.co_qualname})"

    def lines(self) -> list[str]:
        """Two lines per frame, as in a traceback, but innermost first."""
        # Imported on demand: it takes longer to load than everything else here.
        import linecache

        lines = []
        for code, line in self.frames:
            lines.append(f'  File "{code.co_filename}", line {line}, in {code.co_qualname}')
            source = linecache.getline(code.co_filename, line).strip()
            if source:
                lines.append(f"    {source}")
        return lines

    def __repr__(self) -> str:
        return f"<CallStack {self.site()} and {max(len(self.frames) - 1, 0)} more>"
