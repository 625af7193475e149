"""What the interpreter has that the reference engine has not; `tests/vm` runs the same tests on both."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import garden
from allocators import Allocator, AllocError, FailingAllocator, MetricAllocator, PageAlloc, StackAlloc
from allocators.testing import Failures, check_every_failure
from garden.bytecode import ops
from garden.bytecode.disassemble import disassemble
from garden.errors import Trap
from garden.machines import make_machine
from garden.native.cache import Cache
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine, interpreter_object
from garden.native.run.jit import externals
from garden.native.target import host_target
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import SPILL_BYTES, RunOptions
from garden.source import Source
from garden.std import STANDARD

pytestmark = pytest.mark.skipif(host_target() is None, reason="there is no native code for this system")

#: Pushes a word for each of n calls, and adds up 1 to n.
SUM = "fn sum(n:Int) Int { match { n == 0 { 0 } { n + sum(n - 1) } } }\n"
#: The bytes of a line of the cache.
LINE = 64


def image() -> Image:
    target = host_target()
    assert target is not None
    return Image(interpreter_object(target, Cache()), PageAlloc(), externals())


class Bench:
    """Makes machines of sources; `run` has what they take beside their spill stack, when it is the default one."""

    def __init__(self) -> None:
        self.run = MetricAllocator(PageAlloc())
        self._closing: list[Any] = []

    def compile(self, text: str) -> Compilation:
        allocators = StageAllocators()
        compilation = Compilation(Source("test", text.encode()), allocators, STANDARD)
        self._closing += [allocators, compilation]
        return compilation

    def machine(self, text: str, **options: Any) -> InterpreterMachine:
        machine = InterpreterMachine(self.compile(text).emit(), image(), self.run, RunOptions(**options))
        self._closing.append(machine)
        return machine

    def close(self) -> None:
        for thing in reversed(self._closing):
            thing.close()
        assert self.run.counters.current_bytes == 0


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.close()


def test_every_opcode_has_a_handler() -> None:
    with image() as loaded:
        assert {f"op.{op.name}" for op in ops.OPS} <= loaded.symbols.keys()


def test_the_handlers_of_frequent_instructions_fit_one_cache_line() -> None:
    frequent = (
        "mov load_imm load_const iadd isub imul ilt ieq iadd_imm isub_imm ilt_imm dadd dmul dlt "
        "jmp jmpt jmpeq jmplt jmpne_imm jmpdnlt ret push pop load_slot load store"
    )
    with image() as loaded:
        handlers = {name: loaded.symbols[f"op.{name}"] for name in frequent.split()}
    assert [name for name, (address, size) in handlers.items() if address % LINE or size > LINE] == []


# The spill stack.


def test_the_default_spill_stack_takes_nothing_of_the_allocator(bench: Bench) -> None:
    machine = bench.machine(SUM + "sum(10)")
    blocks = bench.run.counters.current_blocks
    # As many words as there are in it.
    assert machine.call(1, [SPILL_BYTES // 8]) == 32768 * 32769 // 2
    # Other frames were needed, and the first ones given back.
    assert bench.run.counters.current_blocks == blocks
    with pytest.raises(Trap) as overflow:
        machine.call(1, [SPILL_BYTES // 8 + 1])
    assert overflow.value.message == (
        "stack overflow: stack: cannot allocate 8 bytes aligned to 8 (limit 262144 bytes, in use 262144 bytes)"
    )


def test_a_large_spill_stack_becomes_a_block_of_the_allocator_when_it_is_needed(bench: Bench) -> None:
    machine = bench.machine(SUM + "sum(10)", stack_size=1 << 22)
    assert machine.run() == 55
    assert bench.run.counters.current_bytes < 1 << 22
    assert machine.call(1, [100_000]) == 100_000 * 100_001 // 2
    assert bench.run.counters.current_bytes >= 1 << 22
    assert machine.call(1, [(1 << 22) // 8]) == (1 << 19) * ((1 << 19) + 1) // 2
    with pytest.raises(Trap, match="limit 4194304 bytes, in use 4194304 bytes"):
        machine.call(1, [(1 << 22) // 8 + 1])
    assert machine.run() == 55


def test_a_spill_stack_of_the_caller_is_used_where_it_is(bench: Bench) -> None:
    memory = bytearray(1 << 10)
    stack = StackAlloc(memory)
    machine = bench.machine(SUM + "sum(10)", spill=stack)
    assert machine.call(1, [100]) == 5050
    assert stack.depth == 0
    assert [int.from_bytes(memory[at : at + 8], "little") for at in (0, 8, 16)] == [100, 99, 98]
    with pytest.raises(Trap, match=r"in use 1024 bytes"):
        machine.call(1, [200])
    # What a run leaves is there until the next one.
    assert stack.depth == 128
    assert stack.pop() == 200 - 127
    assert machine.run() == 55
    assert stack.depth == 0


def test_a_thread_with_a_small_stack_has_its_spill_stack_elsewhere(bench: Bench) -> None:
    machine = bench.machine(SUM + "sum(10)")
    results = []

    def work() -> None:
        results.append(machine.call(1, [30_000]))
        results.append(machine.run())

    old = threading.stack_size(1 << 18)
    try:
        thread = threading.Thread(target=work)
    finally:
        thread.start()
        threading.stack_size(old)
    thread.join()
    assert results == [30_000 * 30_001 // 2, 55]
    assert bench.run.counters.current_bytes > SPILL_BYTES


def test_programs_that_run_programs_do_not_use_up_the_stack() -> None:
    depth = 60
    with garden.Engine(engine="interpreter") as engine:
        programs: list[garden.Program] = []

        @engine.function
        def inner(n: int) -> int:
            result: int = 0 if n == depth else programs[n]["start"](n + 1)
            return result

        text = f'import "host"\n{SUM}fn start(n:Int) Int {{ sum(20000) + host.inner(n) }}\n'
        programs += [engine.compile(text) for _ in range(depth)]
        assert programs[0]["start"](1) == depth * 20_000 * 20_001 // 2


def test_arguments_that_have_no_register_come_in_on_the_spill_stack(bench: Bench) -> None:
    names = [f"p{index}" for index in range(300)]
    body = " + ".join(f"{name} * {index}" for index, name in enumerate(names))
    machine = bench.machine(f"fn f({' '.join(f'{name}:Int' for name in names)}) Int {{ {body} }}\n1")
    words = [index * 7 % 11 for index in range(300)]
    for _ in range(2):
        assert machine.call(1, words) == sum(index * word for index, word in enumerate(words))


# Calls.


def test_frames_grow_to_their_limit_and_no_further(bench: Bench) -> None:
    machine = bench.machine("fn down(n:Int) Int { match { n == 0 { 0 } { 1 + down(n - 1) } } }\n1", frame_limit=5000)
    assert machine.call(1, [5000]) == 5000
    with pytest.raises(Trap, match="5000 calls are active"):
        machine.call(1, [5001])
    assert machine.call(1, [7]) == 7


# Code.


def test_the_code_of_an_open_machine_is_shown_as_it_was_emitted() -> None:
    source = Source("test", (SUM + "sum(10)").encode())
    with StageAllocators() as allocators, Compilation(source, allocators, STANDARD) as compilation:
        code = compilation.emit()
        words, text = code.words.view.tolist(), disassemble(code)
        with InterpreterMachine(code, image(), allocators["run"]) as machine:
            assert machine.run() == 55
            assert code.words.view.tolist() != words
            assert disassemble(code) == text
        assert code.words.view.tolist() == words


# Loading.


def test_a_machine_needs_no_llvm_where_the_cache_has_its_code(tmp_path: Any) -> None:
    program = tmp_path / "program.garden"
    program.write_text("1 + 1")
    text = (
        "import sys\nimport garden\n"
        "with garden.Engine(engine='interpreter') as engine:\n"
        "    assert engine.compile('1 + 1').run() == 2\n"
        "print('llvmlite' in sys.modules)\n"
    )
    environment = {**os.environ, "GARDEN_CACHE_DIR": str(tmp_path / "cache")}
    found = [
        subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout
        for _ in range(2)
    ]
    assert found == ["True\n", "False\n"]


# Failures.


def test_no_failing_allocation_leaves_anything_behind() -> None:
    source = Source("test", ('import "str"\n' + SUM + 'str.concat("sum " str.from(sum(40000)))').encode())

    def use(allocator: Allocator) -> None:
        metric = MetricAllocator(allocator)
        with StageAllocators({"run": metric}) as allocators, Compilation(source, allocators, STANDARD) as compilation:
            with make_machine(compilation, RunOptions("interpreter", stack_size=1 << 21), whole=True) as machine:
                try:
                    for _ in range(2):
                        assert machine.heap.str_text(machine.run()) == "sum 800020000"
                except Trap as trap:
                    if trap.code in ("T0002", "T0003"):
                        raise MemoryError(trap.message) from trap
                    raise
            assert metric.counters.current_bytes == 0

    assert check_every_failure(use, Failures.allocator) > 8


def test_where_there_are_no_pages_for_the_code_there_is_no_machine() -> None:
    native = MetricAllocator(FailingAllocator(PageAlloc(), fail_index=0))
    with (
        StageAllocators({"native": native}) as allocators,
        Compilation(Source("test", b"1 + 1"), allocators, STANDARD) as compilation,
    ):
        with pytest.raises(AllocError):
            make_machine(compilation, RunOptions("interpreter"), whole=True)
        assert compilation.stage == "native"
    assert native.counters.current_bytes == 0
