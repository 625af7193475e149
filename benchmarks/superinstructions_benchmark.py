"""What the interpreter's superinstructions bring on programs that they were not chosen on.

Interpreters that differ in their superinstructions alone run the workloads of the benchmark across languages, with the
table as it is, and the training programs in cross-validation: each with a table that is chosen without it, and without
a fifth of the others. What counts is the processor time of a run inside the process, without compiling.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import process_time

from allocators import PageAlloc
from benchmarks.languages_benchmark import SOURCES, WORKLOADS
from benchmarks.measure import environment, medians, optional, print_table, write_json
from benchmarks.superinstructions import TRAINING, choose, show, training_profiles
from garden.bytecode.superinstructions import GUARDS, SUPERINSTRUCTIONS
from garden.native.codegen.interpreter import interpreter_text
from garden.native.codegen.module import RuntimeFunctions
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine
from garden.native.run.jit import externals
from garden.native.target import compile_text, host_target
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

WITHOUT = "without"
COLUMNS = (WITHOUT, "guards alone", "with")
FOLDS = 5


def run(*, rounds: int, scale: float, output: Path | None, programs: int) -> None:
    """Measure, print, and write `superinstructions.json` to `output`; a tenth of the work is fewer rounds."""
    rounds = max(1, round(rounds * scale))
    target = host_target()
    if target is None:
        raise SystemExit("there is no native code for this system")
    runtime = RuntimeFunctions(target)

    def compiled(superinstructions: tuple[str, ...]) -> bytes:
        return compile_text(interpreter_text(target, runtime, superinstructions), target)

    without, guards = compiled(()), compiled(GUARDS)
    table = compiled(SUPERINSTRUCTIONS)
    with_table = dict.fromkeys(WORKLOADS, table)
    profiles = training_profiles(target)
    for fold in range(FOLDS):
        left_out = list(profiles)[fold::FOLDS]
        chosen = choose([profiles[name] for name in profiles if name not in left_out], programs=programs)
        object = compiled((*GUARDS, *[show(run) for run, _ in chosen]))
        with_table |= dict.fromkeys(left_out, object)
    paths = {workload: SOURCES / f"{workload}.garden" for workload in WORKLOADS} | {
        path.stem: path for path in TRAINING
    }
    with ExitStack() as closing:
        runs = []
        for name, path in paths.items():
            for column, object in zip(COLUMNS, (without, guards, with_table[name]), strict=True):
                allocators = closing.enter_context(StageAllocators())
                compilation = closing.enter_context(
                    Compilation(Source(path.name, path.read_bytes()), allocators, STANDARD)
                )
                image = Image(object, PageAlloc(), externals())
                machine = closing.enter_context(InterpreterMachine(compilation.emit(), image, allocators["run"]))
                runs.append(partial(_timed, f"{name}|{column}", machine))
        times = medians(runs, rounds=rounds)
    ratios = {
        name: {column: times[f"{name}|{column}"] / times[f"{name}|{WITHOUT}"] for column in COLUMNS} for name in paths
    }
    means = {}
    for title, names in (("workloads", WORKLOADS), ("cross-validation", tuple(profiles))):
        means[title] = {
            column: statistics.geometric_mean([ratios[name][column] for name in names]) for column in COLUMNS
        }
        rows = [
            [name, *[f"{times[f'{name}|{column}']:.2f} ({ratios[name][column]:.2f})" for column in COLUMNS]]
            for name in names
        ]
        rows.append(["geometric mean", *[f"({means[title][column]:.2f})" for column in COLUMNS]])
        print(f"{title}: ms of a run (ratio to that without superinstructions)")
        print_table(["", *COLUMNS], rows)
    if output is not None:
        data = {
            "environment": environment([optional("llvmlite", [])]),
            "rounds": rounds,
            "ms": {name: {column: round(times[f"{name}|{column}"], 3) for column in COLUMNS} for name in paths},
            "ratios": {title: {column: round(mean, 3) for column, mean in by.items()} for title, by in means.items()},
        }
        write_json(output / "superinstructions.json", data)


def _timed(name: str, machine: InterpreterMachine) -> dict[str, float]:
    start = process_time()
    machine.run()
    return {name: (process_time() - start) * 1e3}
