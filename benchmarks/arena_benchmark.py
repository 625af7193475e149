"""What caching cursor and start in the arena is worth, against the same arena that reaches them through its footer.

Measured in the interpreter, and compiled by mypyc where that is installed, with the loop outside the arena's module
(calls from interpreted Python) and inside it (calls from compiled code); and in machine code, where both loops are
shown.
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
from benchmarks.native_arenas import BLOCKS as NATIVE_BLOCKS
from benchmarks.native_arenas import KINDS, KNOWLEDGE, NativeArenas

BLOCKS = 10_000
SIZE = 64
#: How often the chunk of the arenas in machine code is filled.
FILLS = 10_000


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
    native = NativeArenas()
    fills = max(10, int(FILLS * scale))
    cases = [
        Case(
            f"machine code, arena {known}|{kind}",
            "fill(kind, known, fills)",
            {"fill": native.fill, "kind": kind, "known": known, "fills": fills},
        )
        for known in KNOWLEDGE
        for kind in KINDS
    ]
    for name, value in interleaved(cases, rounds=rounds, repeats=1).items():
        times[name] = value / (fills * NATIVE_BLOCKS)
    rows = []
    for name in times:
        title, _, kind = name.partition("|")
        if kind == "cached":
            cached, footer = times[name], times[f"{title}|footer"]
            digits = 1 if cached >= 3 else 2
            rows.append([title, f"{cached:.{digits}f}", f"{footer:.{digits}f}", f"{footer / cached:.2f}"])
    print(f"ns per allocation of {SIZE} bytes")
    print_table(["", "cached", "through the footer", "ratio"], rows)
    if "compiled" not in flavours:
        print("\nonly the pure flavour: install without GARDEN_PURE, with a C compiler and mypy[mypyc], for the other")
    loops = {f"{kind}, arena {known}": native.loop(kind, known) for known in KNOWLEDGE for kind in KINDS}
    native.close()
    for name, loop in loops.items():
        print(f"\n{name}:\n{loop}")
    if output is not None:
        figures = {name.replace("|", ", "): round(value, 2) for name, value in times.items()}
        write_json(
            output / "arena.json",
            {"environment": environment(), "rounds": rounds, "nanoseconds": figures, "loops": loops},
        )


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
