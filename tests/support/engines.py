"""Engines: what can run a test program, by name."""

from __future__ import annotations

from typing import Any

from garden.errors import Trap
from garden.machines import make_machine
from garden.native.target import host_target
from garden.pipeline import Compilation
from garden.run_options import RunOptions
from garden.types.types import Type
from garden.vm.heap import DEFAULT_LIMIT
from garden.vm.values import from_word

#: Those that run here.
ENGINES = ("reference", "interpreter", "jit") if host_target() else ("reference",)
#: Those that run bytecode.
OF_BYTECODE = ENGINES[:2]

#: By engine, the stages that need no memory of their own. The optimiser works on what lowering has made, with scratch.
IDLE = {
    "reference": {"optimise", "native"},
    "interpreter": {"optimise"},
    "jit": {"optimise", "emit"},
}


class Outcome:
    """What a run has written, the value it has given as a Python value, and the trap that has ended it, if one has."""

    def __init__(self, output: str, value: Any, trap: Trap | None) -> None:
        self.output = output
        self.value = value
        self.trap = trap


def run(compilation: Compilation, engine: str, result: Type, heap_limit: int | None, backtrace: bool) -> Outcome:
    """Run a program whose value has a type. `heap_limit` is in bytes; `backtrace` whether to keep one."""
    output = bytearray()
    options = RunOptions(
        engine,
        write=output.extend,
        heap_limit=DEFAULT_LIMIT if heap_limit is None else heap_limit,
        backtrace=backtrace,
    )
    with make_machine(compilation, options, whole=False) as machine:
        try:
            word = machine.run()
        except Trap as trap:
            return Outcome(output.decode(), None, trap)
        return Outcome(output.decode(), from_word(machine.heap, result, word), None)
