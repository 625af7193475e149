"""Which engine runs a program."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import garden
from allocators import StackAlloc
from garden.machines import MOST_ROWS, make_machine
from garden.native.run.interpreter_machine import InterpreterMachine
from garden.native.run.jit import JitMachine
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.std import STANDARD
from garden.vm.machine import ReferenceMachine
from tests.support.engines import ENGINES

pytestmark = pytest.mark.skipif("jit" not in ENGINES, reason="there is no machine code for this system")

SMALL = "1 + 2"


def chosen(text: str, options: RunOptions) -> type:
    source = Source("test", text.encode())
    with (
        StageAllocators() as allocators,
        Compilation(source, allocators, STANDARD) as compilation,
        make_machine(compilation, options, whole=True) as machine,
    ):
        assert machine.run() == 3
        return type(machine)


def test_auto_is_the_jit() -> None:
    assert chosen(SMALL, RunOptions()) is JitMachine


@pytest.mark.parametrize(("engine", "machine"), [("interpreter", InterpreterMachine), ("reference", ReferenceMachine)])
def test_an_engine_that_is_named_is_taken(engine: str, machine: type) -> None:
    assert chosen(SMALL, RunOptions(engine)) is machine


def test_what_bytecode_alone_has_leaves_the_jit_out() -> None:
    assert chosen(SMALL, RunOptions(spill=StackAlloc(bytearray(4096)))) is InterpreterMachine
    assert chosen(SMALL, RunOptions(frame_limit=100)) is InterpreterMachine


@pytest.mark.parametrize("options", [{"frame_limit": 10}, {"spill": StackAlloc(bytearray(4096))}])
def test_what_the_jit_cannot_obey_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="needs a bytecode engine"):
        garden.Engine(engine="jit", **options)


LITTLE = """
import resource, sys
import garden
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
with garden.Engine(engine=sys.argv[1]) as engine:
    down = engine.compile("fn down(n:Int) Int { match { n == 0 { 0 } { 1 + down(n - 1) } } }")["down"]
    print(down(1000))
"""


@pytest.mark.parametrize("warm", [False, True])
def test_auto_runs_a_program_where_there_is_little_address_space(warm: bool, tmp_path: Path) -> None:
    def run(engine: str, limit: int) -> tuple[int, str, str]:
        environment = {**os.environ, "GARDEN_CACHE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", LITTLE, engine, str(limit)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    if warm:
        assert run("jit", -1) == (0, "1000\n", "")
        assert run("jit", 150_000 << 10) == (0, "1000\n", "")
    else:
        # There is the interpreter at least.
        assert run("interpreter", -1) == (0, "1000\n", "")
    assert run("auto", 150_000 << 10) == (0, "1000\n", "")


def test_a_program_that_llvm_would_take_long_for_is_interpreted() -> None:
    # Too large to be inlined, and what is not called cannot be folded.
    body = " ".join(f"let x{index} = x{index - 1} * n + {index}" for index in range(1, 40))
    functions = [f"fn f{index}(n:Int) Int {{ let x0 = n {body} x39 }}" for index in range(MOST_ROWS // 70)]
    notes: list[str] = []
    assert chosen("\n".join([*functions, SMALL]), RunOptions(note=notes.append)) is InterpreterMachine
    assert notes == ["the engine jit would take long to compile so large a program"]


def test_a_long_chain_of_operations_is_compiled_in_a_small_stack() -> None:
    length = 20_000
    forms = ("x{} + m", "x{} * m", "x{} - 3", "m - x{}", "x{} / 3")
    chain = "\n".join([f"let x{index + 1} = {forms[index % 5].format(index)}" for index in range(length)])
    source = f"fn f(n:Int m:Int) Int {{ let x0 = n\n{chain}\nx{length} }}"
    results: list[Any] = []

    def work() -> None:
        with garden.Engine(engine="jit").compile(source) as program:
            results.append(program["f"](5, 2))

    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    value = 5
    for _ in range(length // 5):
        value = 2 - ((value + 2) * 2 - 3)
        value = abs(value) // 3 * (1 if value >= 0 else -1)
    assert results == [value]


def test_an_engine_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="'fast'"):
        RunOptions("fast")
