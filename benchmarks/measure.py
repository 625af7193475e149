"""Timing in interleaved rounds, and what a report says of the machine."""

from __future__ import annotations

import importlib
import json
import platform
import statistics
import sys
import timeit
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import allocators
from allocators.report.table import progress_bar, table


class Case:
    """A statement to time, with the names it uses, and what to do before each round."""

    def __init__(
        self, name: str, statement: str, names: dict[str, Any], before: Callable[[], object] | None = None
    ) -> None:
        self.name = name
        self.before = before
        self.timer = timeit.Timer(statement, globals=names)


def interleaved(cases: Sequence[Case], *, rounds: int, repeats: int) -> dict[str, float]:
    """Median nanoseconds per statement of each case."""

    def timed(case: Case) -> dict[str, float]:
        if case.before is not None:
            case.before()
        return {case.name: case.timer.timeit(repeats) / repeats * 1e9}

    return medians([partial(timed, case) for case in cases], rounds=rounds)


def medians(runs: Sequence[Callable[[], dict[str, float]]], *, rounds: int) -> dict[str, float]:
    """The median of each figure, less being better. Every round does each run once, so that all see the same machine.

    Within a round the better of two runs counts, which leaves out most interruptions.
    """
    figures: dict[str, list[float]] = {}
    for number in range(rounds):
        for run in runs:
            once, again = run(), run()
            for name, value in once.items():
                figures.setdefault(name, []).append(min(value, again[name]))
        progress(number + 1, rounds)
    return {name: statistics.median(values) for name, values in figures.items()}


def progress(done: int, total: int) -> None:
    """A progress bar on standard error, where that is a terminal."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{progress_bar(done, total)} {done}/{total}", end=end, file=sys.stderr, flush=True)


def optional(module: str, missing: list[str]) -> Any:
    """A module to compare with, or None; what is missing is noted by its package name."""
    try:
        return importlib.import_module(module)
    except ImportError:
        missing.append(module)
        return None


def pyplot() -> Any:
    """What draws plots, or None, which is said."""
    missing: list[str] = []
    module = optional("matplotlib", missing)
    if module is None:
        print("no plot: pip install matplotlib")
        return None
    return importlib.import_module("matplotlib.pyplot")


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


def write_flavour(path: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Write a result of the installed flavour beside that of the other one, if the file has it; return them by flavour.

    `data` has an "environment".
    """
    flavours: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    flavours[data["environment"]["flavour"]] = data
    write_json(path, flavours)
    return flavours
