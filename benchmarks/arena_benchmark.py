"""What caching cursor and start in the arena is worth, against the same arena that reaches them through its footer.

Measured in the interpreter, and compiled by mypyc where that is installed, with the loop outside the arena's module
(calls from interpreted Python) and inside it (calls from compiled code).
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from allocators import COMPILED, Region
from benchmarks import arenas
from benchmarks.measure import Case, environment, interleaved, print_table, write_json

BLOCKS = 10_000
SIZE = 64


def run(*, rounds: int, scale: float, output: Path | None) -> None:
    """Measure, print, and write `arena.json` to `output`."""
    blocks = max(100, int(BLOCKS * scale))
    region = Region.of(bytearray(SIZE * blocks + SIZE))
    with tempfile.TemporaryDirectory() as folder:
        flavours: dict[str, ModuleType] = {"pure": arenas}
        compiled = _compile(Path(folder)) if COMPILED else None
        if compiled is not None:
            flavours["compiled"] = compiled
        cases = []
        for flavour, module in flavours.items():
            for kind in ("cached", "footer"):
                arena = getattr(module, f"{kind.capitalize()}Arena")(region)
                names: dict[str, Any] = {
                    "allocate": arena.allocate,
                    "fill": getattr(module, f"fill_{kind}"),
                    "arena": arena,
                    "layout": module.Layout(SIZE, 8),
                    "count": range(blocks),
                    "n": blocks,
                }
                loop = "for _ in count: allocate(layout)"
                cases.append(Case(f"{flavour}, called from Python|{kind}", loop, names, arena.reset))
                cases.append(
                    Case(f"{flavour}, loop in the module|{kind}", "fill(arena, layout, n)", names, arena.reset)
                )
        times = {name: value / blocks for name, value in interleaved(cases, rounds=rounds, repeats=1).items()}
    rows = []
    for name in times:
        title, _, kind = name.partition("|")
        if kind == "cached":
            cached, footer = times[name], times[f"{title}|footer"]
            rows.append([title, f"{cached:.1f}", f"{footer:.1f}", f"{footer / cached:.2f}"])
    print(f"ns per allocation of {SIZE} bytes")
    print_table(["", "cached", "through the footer", "ratio"], rows)
    if "compiled" not in flavours:
        print("\nonly the pure flavour: install without GARDEN_PURE, with a C compiler and mypy[mypyc], for the other")
    if output is not None:
        figures = {name.replace("|", ", "): round(value, 2) for name, value in times.items()}
        write_json(output / "arena.json", {"environment": environment(), "rounds": rounds, "nanoseconds": figures})


def _compile(folder: Path) -> ModuleType | None:
    """The module with the two arenas, compiled by mypyc; None where that does not work here."""
    source = folder / "compiled_arenas.py"
    shutil.copy(Path(arenas.__file__), source)
    command = [sys.executable, "-m", "mypyc", source.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("compiled_arenas.*.so"))
    if done.returncode != 0 or not found:
        print(f"mypyc does not compile here:\n{done.stdout}{done.stderr}", file=sys.stderr)
        return None
    spec = importlib.util.spec_from_file_location("compiled_arenas", found[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
