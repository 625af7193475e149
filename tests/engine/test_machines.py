"""Which engine runs a program."""

from __future__ import annotations

import pytest

from allocators import StackAlloc
from garden.machines import MOST_ROWS, MachineOptions, make_machine
from garden.native.run.interpreter_machine import InterpreterMachine
from garden.native.run.jit import JitMachine
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD
from garden.vm.machine import Machine
from tests.support.engines import ENGINES

pytestmark = pytest.mark.skipif("jit" not in ENGINES, reason="there is no machine code for this system")

SMALL = "1 + 2"


def chosen(text: str, options: MachineOptions) -> type:
    source = Source("test", text.encode())
    with (
        StageAllocators() as allocators,
        Compilation(source, allocators, STANDARD) as compilation,
        make_machine(compilation, options, whole=True) as machine,
    ):
        assert machine.run() == 3
        return type(machine)


def test_auto_is_the_jit() -> None:
    assert chosen(SMALL, MachineOptions()) is JitMachine


@pytest.mark.parametrize(("engine", "machine"), [("interpreter", InterpreterMachine), ("reference", Machine)])
def test_an_engine_that_is_named_is_taken(engine: str, machine: type) -> None:
    assert chosen(SMALL, MachineOptions(engine)) is machine


def test_what_bytecode_alone_has_leaves_the_jit_out() -> None:
    assert chosen(SMALL, MachineOptions(spill=StackAlloc(bytearray(4096)))) is InterpreterMachine
    assert chosen(SMALL, MachineOptions(frame_limit=100)) is InterpreterMachine


def test_a_program_that_llvm_would_take_long_for_is_interpreted() -> None:
    # Too large to be inlined, and what is not called cannot be folded.
    body = " ".join(f"let x{index} = x{index - 1} * n + {index}" for index in range(1, 40))
    functions = [f"fn f{index}(n:Int) Int {{ let x0 = n {body} x39 }}" for index in range(MOST_ROWS // 70)]
    notes: list[str] = []
    assert chosen("\n".join([*functions, SMALL]), MachineOptions(note=notes.append)) is InterpreterMachine
    assert notes == ["the engine jit would take long to compile so large a program"]


def test_an_engine_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'fast'"):
        MachineOptions("fast")
