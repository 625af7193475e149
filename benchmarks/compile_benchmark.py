"""What compiling costs: lines per second of each stage, and what a node of the AST takes.

The programs are those of `shapes`: long, and each of one kind. Beside garden stand CPython's `compile` and the parser
of pycparser, with the same programs in Python and in C. Every compilation starts with empty allocators.
"""

from __future__ import annotations

import ast
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from allocators import COMPILED, MetricAllocator
from benchmarks import shapes
from benchmarks.measure import environment, medians, optional, print_table, write_flavour
from benchmarks.shapes import Shape
from garden.pipeline import STAGES, Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

_STAGES: Final = STAGES[: STAGES.index("emit") + 1]
#: Source to bytecode, which is the sum of the stages.
_GARDEN: Final = "garden"
_PYTHON: Final = "CPython compile"
_PYTHON_PARSE: Final = "CPython ast.parse"
_PYCPARSER: Final = "pycparser"
_COLUMNS: Final = (*_STAGES, _GARDEN, _PYTHON, _PYTHON_PARSE, _PYCPARSER)


def run(*, rounds: int, scale: float, output: Path | None) -> None:
    """Measure, print, and write `compile.json` and `compile.svg` to `output`.

    What the file has of the other flavour stays there, and is plotted too.
    """
    missing: list[str] = []
    pycparser = optional("pycparser", missing)
    programs = {
        f"{int(500 * scale)} functions": shapes.tower(int(500 * scale)),
        f"{int(1000 * scale)} arms": shapes.match(int(1000 * scale)),
        f"{int(2000 * scale)} lets": shapes.body(int(2000 * scale)),
        f"{int(1000 * scale)} terms": shapes.expression(int(1000 * scale)),
    }
    lines: dict[str, dict[str, float]] = {}
    sizes: dict[str, dict[str, tuple[int, int]]] = {}
    for name, shape in programs.items():
        times = medians(_compilers(shape, pycparser), rounds=rounds)
        counts = _line_counts(shape)
        lines[name] = {column: counts[column] / times[column] for column in _COLUMNS if column in times}
        sizes[name] = _tree_sizes(shape, pycparser)
    columns = [column for column in _COLUMNS if column in lines[next(iter(lines))]]
    flavour = "compiled" if COMPILED else "pure"
    print(f"thousand lines per second, garden in the {flavour} flavour (the garden column: all stages)")
    print_table(
        ["", *columns], [[name, *[f"{by[column] / 1000:.0f}" for column in columns]] for name, by in lines.items()]
    )
    print("\nbytes that a syntax tree takes, per node and per line")
    rows = []
    for name, by_parser in sizes.items():
        counts = _line_counts(programs[name])
        cells = [f"{size / nodes:.0f}, {size / counts[parser]:.0f}" for parser, (size, nodes) in by_parser.items()]
        rows.append([name, *cells])
    print_table(["", *sizes[next(iter(sizes))]], rows)
    if missing:
        print(f"\nnot installed, so not measured: pip install {' '.join(missing)}")
    if output is not None:
        data = {
            "environment": environment([pycparser]),
            "rounds": rounds,
            "lines_per_second": {
                name: {column: round(rate) for column, rate in by.items()} for name, by in lines.items()
            },
            "bytes_per_node": {
                name: {parser: round(size / nodes, 1) for parser, (size, nodes) in by_parser.items()}
                for name, by_parser in sizes.items()
            },
        }
        _plot(output / "compile.svg", write_flavour(output / "compile.json", data))


def _line_counts(shape: Shape) -> dict[str, int]:
    """Number of lines of what each column compiles."""
    garden, python, c = [text.count("\n") for text in shape]
    return {**dict.fromkeys((*_STAGES, _GARDEN), garden), _PYTHON: python, _PYTHON_PARSE: python, _PYCPARSER: c}


def _compilers(shape: Shape, pycparser: Any) -> list[Callable[[], dict[str, float]]]:
    compilers: list[Callable[[], dict[str, float]]] = [
        partial(_garden, Source("shape", shape.garden.encode())),
        partial(_timed, _PYTHON, partial(compile, shape.python, "shape", "exec")),
        partial(_timed, _PYTHON_PARSE, partial(ast.parse, shape.python)),
    ]
    if pycparser is not None:
        compilers.append(partial(_timed, _PYCPARSER, lambda: pycparser.CParser().parse(shape.c)))
    return compilers


def _garden(source: Source) -> dict[str, float]:
    """Seconds of each stage, and of all."""
    times = {}
    with StageAllocators() as allocators, Compilation(source, allocators, STANDARD) as compilation:
        for stage in _STAGES:
            times.update(_timed(stage, getattr(compilation, stage)))
    return {**times, _GARDEN: sum(times.values())}


def _timed(name: str, work: Callable[[], object]) -> dict[str, float]:
    # As timeit does it.
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    gc.enable()
    return {name: seconds}


def _tree_sizes(shape: Shape, pycparser: Any) -> dict[str, tuple[int, int]]:
    """For each parser, what its tree takes in bytes, Python objects included, and how many nodes that has."""
    garden = Source("shape", shape.garden.encode())
    with StageAllocators() as plain:
        allocators = plain.metered()
        with Compilation(garden, allocators, STANDARD) as compilation:
            tree, objects = _traced(compilation.parse)
            metric = allocators["parse"]
            assert isinstance(metric, MetricAllocator)
            # What stands in the memory of the stage is no Python object; tokens and names belong to the tree.
            sizes = {_GARDEN: (objects + metric.counters.current_bytes, len(tree) - 1)}
    module, objects = _traced(lambda: ast.parse(shape.python))
    # Nodes such as Load() are one object each.
    sizes[_PYTHON_PARSE] = (objects, len({id(node) for node in ast.walk(module)}))
    if pycparser is not None:
        file, objects = _traced(lambda: pycparser.CParser().parse(shape.c))
        sizes[_PYCPARSER] = (objects, sum(1 for _ in _c_nodes(file)))
    return sizes


def _traced(make: Callable[[], Any]) -> tuple[Any, int]:
    """What a function makes, and how many bytes of Python objects that leaves."""
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, size


def _c_nodes(file: Any) -> Iterator[Any]:
    pending = [file]
    while pending:
        node = pending.pop()
        yield node
        pending.extend([child for _, child in node.children()])


def _plot(path: Path, flavours: Mapping[str, Any]) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install matplotlib")
        return
    # What is no garden is measured with each flavour; the bars show the last.
    bars: dict[str, dict[str, float]] = {}
    for flavour, data in flavours.items():
        for name, by_column in data["lines_per_second"].items():
            for column, rate in by_column.items():
                if column not in _STAGES:
                    label = f"garden, {flavour}" if column == _GARDEN else column
                    bars.setdefault(label, {})[name] = rate
    figure, axes = pyplot.subplots(figsize=(8, 5))
    width = 0.8 / len(bars)
    for place, label in enumerate(sorted(bars, key=lambda label: not label.startswith(_GARDEN))):
        positions = [index + place * width for index in range(len(bars[label]))]
        axes.bar(positions, list(bars[label].values()), width, label=label)
    names = list(next(iter(bars.values())))
    axes.set_xticks([index + 0.4 - width / 2 for index in range(len(names))], names)
    axes.set_yscale("log")
    axes.set_ylabel("lines per second")
    axes.legend(fontsize=8)
    axes.grid(visible=True, axis="y", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
