"""Figures as plain ASCII tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from allocators.report.table import table

_BAR_WIDTH: Final = 40


def as_text(figures: Mapping[str, Any]) -> str:
    """Counters, size histogram and waste split, each as a table. Sizes are in bytes."""
    parts = [str(figures["allocator"]), _counters(figures["counters"])]
    if figures["histogram"]:
        parts.append(_histogram(figures["histogram"]))
    parts += [_waste(waste) for waste in figures["waste"]]
    return "\n\n".join(parts) + "\n"


def _counters(counters: Mapping[str, int]) -> str:
    rows = [["", "current", "peak", "total"]]
    for unit in ("bytes", "blocks"):
        rows.append([unit, *[_number(counters[f"{which}_{unit}"]) for which in ("current", "peak", "total")]])
    calls = ", ".join([f"{_number(counters[name])} {name}" for name in ("frees", "resizes", "failures")])
    return f"{table(rows)}\n{calls}"


def _histogram(classes: Sequence[Mapping[str, int]]) -> str:
    """One row for each size class in use, named by its largest size."""
    most = max(entry["blocks"] for entry in classes)
    rows = [["size up to", "blocks", ""]]
    for entry in classes:
        bar = "#" * -(-entry["blocks"] * _BAR_WIDTH // most)
        rows.append([_number(entry["up_to"]), _number(entry["blocks"]), bar])
    return table(rows)


def _waste(waste: Mapping[str, Any]) -> str:
    total = waste["total"]
    rows = []
    for name, size in waste.items():
        if name not in ("allocator", "total"):
            rows.append([name, _number(size), f"{100 * size / total if total else 0.0:.1f} %"])
    return f"where the {_number(total)} bytes of {waste['allocator']} are\n{table(rows)}"


def _number(number: int) -> str:
    return f"{number:,}"
