"""A table in plain text."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, the first of them the heading: first column flush left, bars of '#' too, numbers flush right."""
    widths = [max([len(row[column]) for row in rows]) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        for cell, width in zip(row[1:], widths[1:], strict=True):
            cells.append(cell if cell.startswith("#") else cell.rjust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
