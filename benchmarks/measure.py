"""Timing in interleaved rounds, and what a report says of the machine."""

from __future__ import annotations

import importlib
import json
import platform
import statistics
import sys
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import allocators
from allocators.report.table import table


class Case:
    """A statement to time, with the names it uses, and what to do before each round."""

    def __init__(
        self, name: str, statement: str, names: dict[str, Any], before: Callable[[], object] | None = None
    ) -> None:
        self.name = name
        self.before = before
        self.timer = timeit.Timer(statement, globals=names)


def interleaved(cases: Sequence[Case], *, rounds: int, repeats: int) -> dict[str, float]:
    """Median nanoseconds per statement of each case. Every round runs each case once, so that all see the same machine.

    Within a round the better of two runs counts, which leaves out most interruptions.
    """
    times: dict[str, list[float]] = {case.name: [] for case in cases}
    for number in range(rounds):
        for case in cases:
            runs = []
            for _ in range(2):
                if case.before is not None:
                    case.before()
                runs.append(case.timer.timeit(repeats))
            times[case.name].append(min(runs) / repeats * 1e9)
        progress(number + 1, rounds)
    return {name: statistics.median(values) for name, values in times.items()}


def progress(done: int, total: int) -> None:
    """A progress bar on standard error, where that is a terminal."""
    if sys.stderr.isatty():
        filled = 40 * done // total
        end = "\n" if done == total else ""
        print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done}/{total}", end=end, file=sys.stderr, flush=True)


def optional(module: str, missing: list[str]) -> Any:
    """A module to compare with, or None; what is missing is noted by its package name."""
    try:
        return importlib.import_module(module)
    except ImportError:
        missing.append(module)
        return None


def environment(modules: Sequence[Any] = ()) -> dict[str, str]:
    """The machine and the versions that figures were measured with."""
    versions = {module.__name__: str(module.__version__) for module in modules if module is not None}
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "flavour": "compiled" if allocators.COMPILED else "pure",
        **versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """An aligned table: the first column to the left, figures to the right."""
    print(table([header, *rows]))


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a result so that it can be compared line by line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n")
