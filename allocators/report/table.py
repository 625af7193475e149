"""Tables and progress bars in plain text."""

from __future__ import annotations

from collections.abc import Sequence

_BAR_WIDTH = 40


def table(rows: Sequence[Sequence[str]], *, text: bool = False) -> str:
    """Rows of cells in aligned columns. The first is flush left, the others flush right, or flush left with `text`.

    Bars of '#' are always flush left.
    """
    widths = [max([len(row[column]) for row in rows]) for column in range(len(rows[0]))] if rows else []
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        for cell, width in zip(row[1:], widths[1:], strict=True):
            cells.append(cell.ljust(width) if text or cell.startswith("#") else cell.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def progress_bar(done: int, total: int) -> str:
    """A bar that shows progress; `total` must not be 0."""
    filled = min(_BAR_WIDTH * done // total, _BAR_WIDTH)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}]"
