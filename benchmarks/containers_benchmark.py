"""Containers beside what a Python programmer would use, item by item: from Python, and from compiled code.

For compiled code, `container_loops` is compiled beside a copy of `allocators` that this makes for it, with the
project's own `setup.py`: mypyc calls directly only what it compiles in the same run.
"""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path
from typing import Any

from allocators import COMPILED, PageAlloc
from allocators.collections import HashMap, Interner, Vec
from benchmarks.measure import Case, environment, interleaved, medians, optional, print_table, write_json

ROOT = Path(__file__).parent.parent
SIZE = 512
#: Operations in one timing, from Python and in compiled code.
OPERATIONS = 200_000
COMPILED_OPERATIONS = 2_000_000


def run(*, rounds: int, scale: float, output: Path | None) -> None:
    """Measure, print, and write `containers.json` to `output`."""
    missing: list[str] = []
    numpy = optional("numpy", missing)
    tables = {"from Python": _from_python(numpy, rounds, max(1000, int(OPERATIONS * scale)))}
    if COMPILED:
        tables["from compiled code"] = _from_compiled(rounds, max(10_000, int(COMPILED_OPERATIONS * scale)))
    for title, figures in tables.items():
        print(f"ns per operation {title}")
        print_table(["", "ns", "ratio"], list(_rows(figures)))
        print()
    if not COMPILED:
        print("only the pure flavour: install without GARDEN_PURE, with a C compiler and mypy[mypyc], for the other")
    if missing:
        print(f"not installed, so not measured: pip install {' '.join(missing)}")
    if output is not None:
        rounded = {
            title: {name: round(value, 2) for name, value in figures.items()} for title, figures in tables.items()
        }
        write_json(
            output / "containers.json",
            {"environment": environment([numpy]), "rounds": rounds, "nanoseconds": rounded},
        )


def _rows(figures: dict[str, float]) -> Any:
    """Rows of the table: names are `operation|subject`, and the first subject of an operation is ours."""
    for name, value in figures.items():
        operation, _, subject = name.partition("|")
        ours = next(other for known, other in figures.items() if known.startswith(f"{operation}|"))
        yield [f"{operation}, {subject}", f"{value:.1f}", f"{ours / value:.2f}"]


def _from_python(numpy: Any, rounds: int, operations: int) -> dict[str, float]:
    items: dict[str, Any] = {
        "Vec": Vec(PageAlloc(), "q", SIZE),
        "array.array": array("q"),
        "list": [],
    }
    for container in items.values():
        container.extend(range(SIZE))
    if numpy is not None:
        items["numpy"] = numpy.arange(SIZE)
    numbers: dict[str, Any] = {"HashMap": HashMap(PageAlloc()), "dict": {}}
    names: dict[str, Any] = {"Interner": Interner(PageAlloc()), "dict": {}}
    words = [b"name%d" % number for number in range(SIZE)]
    for number, word in enumerate(words):
        for table in numbers.values():
            table[number * 7919] = number
        names["Interner"].intern(word)
        names["dict"][word] = number
    growing: dict[str, Any] = {"Vec": Vec(PageAlloc(), "q"), "array.array": array("q"), "list": []}

    cases = []
    for name, container in items.items():
        cases.append(Case(f"x = v[i]|{name}", "v[i]", {"v": container, "i": 300}))
    for name, container in items.items():
        cases.append(Case(f"v[i] = x|{name}", "v[i] = x", {"v": container, "i": 300, "x": 1234}))
    for name, container in growing.items():

        def empty(container: Any = container) -> None:
            del container[:]

        cases.append(Case(f"v.append(x)|{name}", "f(x)", {"f": container.append, "x": 1234}, empty))
    for name, table in numbers.items():
        cases.append(Case(f"m[k]|{name}", "m[k]", {"m": table, "k": 300 * 7919}))
    for name, table in numbers.items():
        cases.append(Case(f"m[k] = x|{name}", "m[k] = x", {"m": table, "k": 300 * 7919, "x": 1234}))
    cases.append(Case("id of a known name|Interner", "f(k)", {"f": names["Interner"].intern, "k": words[300]}))
    cases.append(Case("id of a known name|dict", "m[k]", {"m": names["dict"], "k": words[300]}))
    return interleaved(cases, rounds=rounds, repeats=operations)


def _from_compiled(rounds: int, operations: int) -> dict[str, float]:
    """The figures of a process that has the compiled loops, with a copy of `allocators`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print("compiling allocators and the loops, which takes a minute", file=sys.stderr)
        shutil.copytree(
            ROOT / "allocators", folder / "allocators", ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
        shutil.copytree(
            ROOT / "benchmarks", folder / "benchmarks", ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
        shutil.copy(ROOT / "setup.py", folder / "project.py")
        (folder / "loops").mkdir()
        shutil.move(folder / "benchmarks" / "container_loops.py", folder / "loops" / "container_loops.py")
        (folder / "loops" / "__init__.py").touch()
        (folder / "setup.py").write_text(
            "import project\nproject.GROUPS = {'allocators': ('allocators',), 'loops': ('loops',)}\nproject.main()\n"
        )
        command = [sys.executable, "setup.py", "build_ext", "--inplace"]
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise SystemExit(f"mypyc does not compile here:\n{built.stdout[-4000:]}{built.stderr[-4000:]}")
        program = (
            "import json, sys\n"
            "from benchmarks.containers_benchmark import time_loops\n"
            f"print(json.dumps(time_loops({rounds}, {operations})))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True, check=True
        )
        figures: dict[str, float] = json.loads(done.stdout)
        return figures


def time_loops(rounds: int, operations: int) -> dict[str, float]:
    """Nanoseconds per operation of the compiled loops, without what the same loop takes that does nothing."""
    loops: Any = importlib.import_module("loops.container_loops")
    assert COMPILED, "the copy of allocators is not compiled"
    assert not str(loops.__file__).endswith(".py"), "the loops are not compiled"
    vecs = {format: Vec(PageAlloc(), format, SIZE) for format in "qI"}
    for vec in vecs.values():
        vec.extend(range(SIZE))
    listed = list(range(SIZE))
    growing: Vec[PageAlloc] = Vec(PageAlloc(), "q", operations)
    map: HashMap[PageAlloc] = HashMap(PageAlloc())
    plain: dict[int, int] = {}
    for number in range(SIZE):
        map[number * 7919] = plain[number * 7919] = number
    calls = {
        "nothing|": (loops.nothing, ()),
        "read|Cells of 'q'": (loops.read_cells, (vecs["q"].cells,)),
        "read|Cells of 'I'": (loops.read_cells, (vecs["I"].cells,)),
        "read|Vec of 'q'": (loops.read_vec, (vecs["q"],)),
        "read|list": (loops.read_list, (listed,)),
        "read|memoryview": (loops.read_view, (vecs["q"].data,)),
        "write|Cells of 'q'": (loops.write_cells, (vecs["q"].cells,)),
        "write|Cells of 'I'": (loops.write_cells, (vecs["I"].cells,)),
        "write|Vec of 'q'": (loops.write_vec, (vecs["q"],)),
        "write|list": (loops.write_list, (list(listed),)),
        "write|memoryview": (loops.write_view, (vecs["q"].copy().data,)),
        "append|Vec of 'q'": (loops.append_vec, (growing,)),
        "append|list": (loops.append_list, ([],)),
        "lookup|HashMap": (loops.read_map, (map,)),
        "lookup|dict": (loops.read_dict, (plain,)),
    }

    def timed(name: str) -> dict[str, float]:
        loop, arguments = calls[name]
        case = Case(name, "loop(*arguments)", {"loop": loop, "arguments": (*arguments, operations)})
        return {name: case.timer.timeit(1) / operations * 1e9}

    times = medians([lambda name=name: timed(name) for name in calls], rounds=rounds)  # type: ignore[misc]
    idle = times.pop("nothing|")
    return {name: value - idle for name, value in times.items()}
