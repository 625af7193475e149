"""What it is worth that the spill stack is a `StackAlloc`, and that this lies on the stack of the process.

Three interpreters run the workloads of the benchmark across languages. They differ in the spill stack alone:

* *vector*: pushes to an array that grows, through its pointer, length and capacity, which lie in memory. Each push
  looks whether there is room, and if there is none, the array moves to a block of twice the size.
* *process stack*: the spill stack that the interpreter has by default. One look for each group of words, and the top
  travels in a register.
* *heap buffer*: the same code, over a buffer of the same size elsewhere.

What counts is the time that a run takes inside the process, without compiling.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from unittest.mock import patch

from allocators import Allocator, PageAlloc, StackAlloc
from allocators.collections import Vec
from benchmarks.languages_benchmark import SOURCES, WORKLOADS
from benchmarks.measure import environment, medians, optional, print_table, write_json
from garden.bytecode.code import Code
from garden.native.codegen import interpreter
from garden.native.codegen.body import UNLIKELY, field
from garden.native.codegen.interpreter import Handler
from garden.native.codegen.module import RuntimeFunctions
from garden.native.context import FIELD, SPILL_FULL
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine
from garden.native.run.jit import externals
from garden.native.target import compile_text, host_target
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import SPILL_BYTES, RunOptions
from garden.source import Source
from garden.std import STANDARD

#: Words that the vector has room for at first.
FIRST_CAPACITY: Final = 4

_POINTER: Final = "spill"
_LENGTH: Final = "spill_top"
_CAPACITY: Final = "spill_end"


#: What makes room for a word more.
_GROW: Final = f"""\
define internal preserve_mostcc void @grow_spill() noinline cold {{
  %answer = call i64 @garden_request(i64 {SPILL_FULL}, i64 0, i64 0)
  ret void
}}
"""


class VectorHandler(Handler):
    """The spill stack as a vector: three words of the context, which otherwise hold the process stack."""

    def _load_field(self, name: str) -> str:
        return self.value(f"load i64, ptr {field(name)}")

    def _word(self, index: str) -> str:
        """A pointer to a word of the vector."""
        return self.beyond(self.value(f"load ptr, ptr {field(_POINTER)}"), "i64", index)

    def push(self, words: list[str]) -> None:
        for word in words:
            length = self._load_field(_LENGTH)
            full = self.value(f"icmp eq i64 {length}, {self._load_field(_CAPACITY)}")
            grow, after = self.label(), self.label()
            self.line(f"br i1 {full}, label %{grow}, label %{after}, {UNLIKELY}")
            self.place(grow)
            self.line("call preserve_mostcc void @grow_spill()")
            self.line(f"br label %{after}")
            self.place(after)
            self.line(f"store i64 {word}, ptr {self._word(length)}")
            self.store_field(_LENGTH, self.value(f"add i64 {length}, 1"))

    def pop(self, count: int) -> list[str]:
        words = []
        for _ in range(count):
            length = self.value(f"add i64 {self._load_field(_LENGTH)}, -1")
            words.append(self.value(f"load i64, ptr {self._word(length)}"))
            self.store_field(_LENGTH, length)
        return words

    def slot(self, below: str) -> str:
        last = self.value(f"add i64 {self._load_field(_LENGTH)}, -1")
        return self._word(self.value(f"sub i64 {last}, {below}"))

    def drop(self, count: str) -> None:
        self.store_field(_LENGTH, self.value(f"sub i64 {self._load_field(_LENGTH)}, {count}"))

    def save_spill(self) -> None:
        pass

    def load_spill(self) -> None:
        pass


class VectorMachine(InterpreterMachine):
    """Runs a program with such handlers. The vector is a new one in each run."""

    def __init__(self, code: Code[Allocator], image: Image, allocator: Allocator) -> None:
        self._vector: Vec[Allocator] = Vec(allocator, "q")
        # It must have one, but never uses it.
        super().__init__(code, image, allocator, RunOptions(spill=StackAlloc(bytearray(16))))

    def _run(self, function: int, stack: int, argument: int) -> int:
        try:
            return super()._run(function, stack, argument)
        finally:
            # The stack, which has not moved, continues from where it is.
            assert self._spill.stack is not None
            self._context[FIELD[_LENGTH]] = self._spill.stack.cursor

    def _set_spill(self, spill: StackAlloc) -> None:
        self._vector.close()
        self._vector = Vec(self.allocator, "q")
        self._context[FIELD[_LENGTH]] = 0
        self._grow(FIRST_CAPACITY)

    def _grow(self, more: int) -> None:
        self._vector.fill(0, more)
        self._context[FIELD[_POINTER]] = self._vector.address
        self._context[FIELD[_CAPACITY]] = len(self._vector)

    def _serve_more(self, kind: int, a: int, b: int) -> int:
        if kind != SPILL_FULL:
            return super()._serve_more(kind, a, b)
        self._grow(len(self._vector))
        return 0

    def close(self) -> None:
        super().close()
        self._vector.close()


def run(*, rounds: int, scale: float, output: Path | None) -> None:
    """Measure, print, and write `spill.json` to `output`; a tenth of the work is fewer rounds."""
    rounds = max(1, round(rounds * scale))
    target = host_target()
    if target is None:
        raise SystemExit("there is no native code for this system")
    runtime = RuntimeFunctions(target)
    usual = compile_text(interpreter.interpreter_text(target, runtime), target)
    with patch.object(interpreter, "Handler", VectorHandler):
        vector = compile_text(interpreter.interpreter_text(target, runtime) + _GROW, target)
    makers: dict[str, Callable[[Code[Any], Allocator], InterpreterMachine]] = {
        "vector": lambda code, allocator: VectorMachine(code, _image(vector), allocator),
        "process stack": lambda code, allocator: InterpreterMachine(code, _image(usual), allocator),
        "heap buffer": lambda code, allocator: InterpreterMachine(
            code, _image(usual), allocator, RunOptions(spill=StackAlloc(bytearray(SPILL_BYTES)))
        ),
    }
    with ExitStack() as closing:
        runs = []
        for workload in WORKLOADS:
            for name, make in makers.items():
                allocators = closing.enter_context(StageAllocators())
                source = Source(workload, (SOURCES / f"{workload}.garden").read_bytes())
                compilation = closing.enter_context(Compilation(source, allocators, STANDARD))
                machine = closing.enter_context(make(compilation.emit(), allocators["run"]))
                runs.append(partial(_timed, f"{workload}|{name}", machine))
        times = medians(runs, rounds=rounds)
    rows = []
    ratios: dict[str, dict[str, float]] = {name: {} for name in makers}
    for workload in WORKLOADS:
        row = [workload]
        for name in makers:
            ratios[name][workload] = times[f"{workload}|{name}"] / times[f"{workload}|vector"]
            row.append(f"{times[f'{workload}|{name}']:.1f} ({ratios[name][workload]:.2f})")
        rows.append(row)
    means = {name: statistics.geometric_mean(by.values()) for name, by in ratios.items()}
    rows.append(["geometric mean", *[f"({mean:.2f})" for mean in means.values()]])
    print("ms of a run (ratio to the vector)")
    print_table(["", *makers], rows)
    if output is not None:
        data = {
            "environment": environment([optional("llvmlite", [])]),
            "rounds": rounds,
            "ms": {name: {key: round(times[f"{key}|{name}"], 3) for key in WORKLOADS} for name in makers},
            "ratios": {name: round(mean, 3) for name, mean in means.items()},
        }
        write_json(output / "spill.json", data)


def _image(object: bytes) -> Image:
    return Image(object, PageAlloc(), externals())


def _timed(name: str, machine: InterpreterMachine) -> dict[str, float]:
    start = perf_counter()
    machine.run()
    return {name: (perf_counter() - start) * 1e3}
