"""Runs: how they start, end, fail and start again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from allocators import AllocError, Layout
from allocators.stack import StackAlloc
from garden.bytecode import ops
from garden.bytecode.ops import encode
from garden.errors import GardenError, Trap
from garden.host import HostFunction
from garden.types.types import Array, Int, Record, Slot, Str, Void
from garden.vm.machine import ReferenceMachine
from garden.vm.values import from_word, to_word
from tests.support.encoding import encode_imm16

FIB = [
    encode_imm16(ops.JMPGE_IMM, 0, 2, 2),
    encode(ops.RET),
    encode(ops.PUSH2, 1, 2),
    encode(ops.MOV, 1, 0),
    encode(ops.ISUB_IMM, 0, 1, imm=1),
    encode(ops.CALL, imm=0),
    encode(ops.MOV, 2, 0),
    encode(ops.ISUB_IMM, 0, 1, imm=2),
    encode(ops.CALL, imm=0),
    encode(ops.IADD, 0, 2, 0),
    encode(ops.POP2, 2, 1),
    encode(ops.RET),
    encode(ops.LOAD_IMM, 0, imm=12),
    encode(ops.TAIL, imm=0),
    encode(ops.CALL, imm=12),
    encode(ops.HALT),
]
FIB_PARTS: dict[str, Any] = {"functions": (("fib", 0, 12, 1), ("entry", 12, 14, 0)), "entry": 14}
#: f calls itself for ever; entry calls f.
ENDLESS = [encode(ops.CALL, imm=0), encode(ops.RET), encode(ops.CALL, imm=0), encode(ops.RET)]
ENDLESS += [encode(ops.CALL, imm=2), encode(ops.HALT)]
ENDLESS_PARTS: dict[str, Any] = {"functions": (("f", 0, 2, 0), ("entry", 2, 4, 0)), "entry": 4}


def host(implementation: Callable[..., Any], *types: Any, result: Any = Void, **flags: bool) -> HostFunction:
    parameters = tuple([(f"p{index}", type) for index, type in enumerate(types)])
    return HostFunction("test", "host", parameters, result, implementation, **flags)


def calling(*functions: HostFunction) -> dict[str, Any]:
    """A program that calls host functions without arguments in a row."""
    words = [encode(ops.SYS, 0, imm=index) for index in range(len(functions))]
    return {"words": [*words, encode(ops.HALT)], "hosts": functions, "functions": (("entry", 0, len(words) + 1, 0),)}


def test_run_starts_at_the_entry_and_returns_r0(assemble: Any, ledger: Any, machine_of: Any) -> None:
    with machine_of(assemble(FIB, **FIB_PARTS), ledger) as machine:
        assert machine.run() == 144
        assert machine.run() == 144


def test_call_runs_one_function(assemble: Any, ledger: Any, machine_of: Any) -> None:
    with machine_of(assemble(FIB, **FIB_PARTS), ledger) as machine:
        assert [machine.call(1, [n]) for n in range(10)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
        with pytest.raises(TypeError, match="takes 1 arguments, not 2"):
            machine.call(1, [1, 2])


def test_call_passes_words_beyond_the_registers_on_the_spill_stack(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.POP3, 40, 41, 42), encode(ops.MOV, 0, 31), encode(ops.RET)]
    with machine_of(assemble(words, functions=(("f", 0, 3, 35),)), ledger) as machine:
        assert machine.call(1, list(range(100, 135))) == 131
        assert list(machine.registers[40:43]) == [132, 133, 134]
        assert list(machine.registers[1:31]) == list(range(101, 131))


def test_a_run_starts_with_registers_and_stacks_of_its_own(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.IADD_IMM, 0, 7, imm=1), encode(ops.LOAD_IMM, 7, imm=5), encode(ops.PUSH, 7), encode(ops.HALT)]
    stack = StackAlloc(bytearray(64))
    with machine_of(assemble(words), ledger, spill=stack) as machine:
        for run in range(3):
            assert (run, machine.run(), stack.depth) == (run, 1, 1)


def test_a_trap_knows_its_place_in_the_source(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.NOP), encode(ops.IDIV, 0, 1, 2), encode(ops.HALT)]
    with machine_of(assemble(words, positions=[3, 14, 15]), ledger) as machine, pytest.raises(Trap) as caught:
        machine.run()
    assert (caught.value.code, caught.value.offset, caught.value.backtrace) == ("T0001", 14, ())


def test_a_backtrace_names_the_active_functions_entry_first(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [
        encode(ops.IDIV, 0, 1, 1),  # inner
        encode(ops.RET),
        encode(ops.CALL, imm=0),  # outer, whose call is its last word
        encode(ops.CALL, imm=2),  # entry
        encode(ops.RET),
        encode(ops.CALL, imm=3),
        encode(ops.HALT),
    ]
    # Whatever the order of the rows.
    functions = (("outer", 2, 3, 0), ("entry", 3, 5, 0), ("inner", 0, 2, 0))
    code = assemble(words, functions=functions, entry=5)
    with machine_of(code, ledger, backtrace=True) as machine, pytest.raises(Trap) as caught:
        machine.run()
    assert caught.value.backtrace == ("entry", "outer", "inner")
    assert caught.value.offset == 0


def test_a_tail_call_leaves_no_trace(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.IDIV, 0, 1, 1), encode(ops.RET), encode(ops.TAIL, imm=0), encode(ops.CALL, imm=2)]
    words += [encode(ops.CALL, imm=3), encode(ops.HALT)]
    functions = (("inner", 0, 2, 0), ("outer", 2, 3, 0), ("entry", 3, 4, 0))
    code = assemble(words, functions=functions, entry=4)
    with machine_of(code, ledger, backtrace=True) as machine, pytest.raises(Trap) as caught:
        machine.run()
    assert caught.value.backtrace == ("entry", "inner")


@pytest.mark.parametrize("limit", [1, 2, 5, 5000])
def test_too_many_calls_are_a_stack_overflow(assemble: Any, ledger: Any, machine_of: Any, limit: int) -> None:
    code = assemble(ENDLESS, **ENDLESS_PARTS)
    with machine_of(code, ledger, frame_limit=limit, backtrace=True) as machine:
        for _ in range(2):
            with pytest.raises(Trap, match="T0002: stack overflow") as caught:
                machine.run()
            assert caught.value.backtrace == ("entry",) + ("f",) * (limit - 1)
            assert caught.value.offset == (20 if limit == 1 else 0)


def test_a_deep_recursion_within_the_limit_comes_back(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [
        encode_imm16(ops.JMPNE_IMM, 0, 0, 2),
        encode(ops.RET),
        encode(ops.ISUB_IMM, 0, 0, imm=1),
        encode(ops.CALL, imm=0),
        encode(ops.IADD_IMM, 0, 0, imm=2),
        encode(ops.RET),
    ]
    with machine_of(assemble(words, functions=(("f", 0, 6, 1),)), ledger) as machine:
        assert machine.call(1, [10_000]) == 20_000


@pytest.mark.parametrize(("op", "room"), [(ops.PUSH, 5), (ops.PUSH2, 6), (ops.PUSH3, 7)])
def test_a_full_spill_stack_is_a_stack_overflow(
    assemble: Any, ledger: Any, machine_of: Any, op: int, room: int
) -> None:
    words = [encode(op, 0, 1, 2), encode(ops.JMP, imm=0)]
    stack = StackAlloc(memoryview(bytearray(8 * room + 16))[: 8 * room])
    with machine_of(assemble(words, positions=[4, 5]), ledger, spill=stack) as machine:
        for _ in range(2):
            with pytest.raises(Trap, match="T0002: stack overflow") as caught:
                machine.run()
            assert caught.value.offset == 4


def test_the_default_spill_stack_holds_256_kib(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.PUSH, 0), encode(ops.IADD_IMM, 0, 0, imm=1), encode(ops.JMP, imm=0)]
    with machine_of(assemble(words), ledger) as machine:
        with pytest.raises(Trap, match="T0002"):
            machine.run()
        assert machine.registers[0] == 32768


def test_arguments_that_do_not_fit_the_spill_stack_are_a_stack_overflow(
    assemble: Any, ledger: Any, machine_of: Any
) -> None:
    code = assemble([encode(ops.HALT)], functions=(("f", 0, 1, 40),))
    with machine_of(code, ledger, spill=StackAlloc(bytearray(32))) as machine, pytest.raises(Trap, match="T0002"):
        machine.call(1, [0] * 40)


def test_a_heap_beyond_its_limit_is_out_of_memory(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.ALLOC, 0, imm=1000), encode(ops.IADD_IMM, 1, 1, imm=1), encode(ops.JMP, imm=0)]
    with machine_of(assemble(words, positions=[7, 8, 9]), ledger, heap_limit=100_000) as machine:
        for _ in range(2):
            with pytest.raises(Trap, match="T0003") as caught:
                machine.run()
            assert caught.value.offset == 7
            assert 90 <= machine.registers[1] <= 100


@pytest.mark.parametrize("word", [encode(ops.LOAD, 0, 1), encode(ops.STORE, 1, 0)])
@pytest.mark.parametrize("address", [0, 8, -8, 1 << 47, -(1 << 63), (1 << 63) - 1])
def test_an_address_outside_the_heap_traps(assemble: Any, ledger: Any, word: int, address: int) -> None:
    words = [encode(ops.ALLOC, 3, imm=8), encode(ops.LOAD_CONST, 1, imm=0), word, encode(ops.HALT)]
    with ReferenceMachine(assemble(words, constants=[address]), ledger) as machine, pytest.raises(Trap, match="T0005"):
        machine.run()


@pytest.mark.parametrize("operands", [(3, 1), (1, 3)])
@pytest.mark.parametrize("address", [0, 8, -8, 1 << 47, -(1 << 63), (1 << 63) - 1])
def test_a_copy_from_or_to_the_outside_traps(assemble: Any, ledger: Any, operands: Any, address: int) -> None:
    words = [
        encode(ops.ALLOC, 3, imm=16),
        encode(ops.LOAD_CONST, 1, imm=0),
        encode(ops.COPY, *operands, imm=16),
        encode(ops.HALT),
    ]
    with ReferenceMachine(assemble(words, constants=[address]), ledger) as machine, pytest.raises(Trap, match="T0005"):
        machine.run()


@pytest.mark.parametrize("offset", [4, 1 << 20])
def test_a_copy_that_is_not_inside_objects_traps(assemble: Any, ledger: Any, offset: int) -> None:
    for operands in ((3, 4), (4, 3)):
        words = [
            encode(ops.ALLOC, 3, imm=16),
            encode(ops.ADDROF, 4, 3, imm=offset),
            encode(ops.COPY, *operands, imm=16),
            encode(ops.HALT),
        ]
        with ReferenceMachine(assemble(words), ledger) as machine, pytest.raises(Trap, match="T0005"):
            machine.run()


def test_constant_strings_cannot_be_written(assemble: Any, ledger: Any) -> None:
    words = [encode(ops.LOAD_CONST, 1, imm=0), encode(ops.LOAD, 0, 1), encode(ops.STORE, 1, 0), encode(ops.HALT)]
    code = assemble(words, constants=lambda addresses: addresses, strings=("text",))
    with ReferenceMachine(code, ledger) as machine:
        with pytest.raises(Trap, match="T0005"):
            machine.run()
        assert machine.registers[0] & 0xFFFFFFFF == 4
    words = [
        encode(ops.LOAD_CONST, 1, imm=0),
        encode(ops.ALLOC, 2, imm=16),
        encode(ops.COPY, 1, 2, imm=16),
        encode(ops.HALT),
    ]
    code = assemble(words, constants=lambda addresses: addresses, strings=("text",))
    with ReferenceMachine(code, ledger) as machine, pytest.raises(Trap, match="T0005"):
        machine.run()


def test_control_c_is_a_trap_and_the_machine_runs_again(assemble: Any, ledger: Any, machine_of: Any) -> None:
    words = [encode(ops.JMPT, 0, imm=0), encode(ops.RET)]
    with machine_of(assemble(words, functions=(("f", 0, 2, 1),), positions=[42, 0]), ledger) as machine:
        timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(Trap, match="T0007: interrupted") as caught:
            machine.call(1, [1])
        timer.join()
        assert caught.value.offset == 42
        assert machine.call(1, [0]) == 0


def test_an_exception_of_a_host_function_ends_the_run_as_it_is(assemble: Any, ledger: Any, machine_of: Any) -> None:
    fail = True

    def sometimes() -> None:
        if fail:
            raise KeyError("mine")

    with machine_of(assemble(**calling(host(sometimes))), ledger) as machine:
        with pytest.raises(KeyError, match="mine"):
            machine.run()
        fail = False
        assert machine.run() == 0


def test_running_out_of_memory_inside_a_host_function_is_its_own_exception(
    assemble: Any, ledger: Any, machine_of: Any
) -> None:
    def hungry() -> None:
        raise AllocError("mine", Layout(8))

    with machine_of(assemble(**calling(host(hungry))), ledger) as machine, pytest.raises(AllocError, match="mine"):
        machine.run()


def test_a_trap_of_a_host_function_gets_a_place_and_a_backtrace(assemble: Any, ledger: Any, machine_of: Any) -> None:
    def trap() -> None:
        raise Trap("T0006", "not that")

    code = assemble(**calling(host(trap)), positions=[5, 6])
    with machine_of(code, ledger, backtrace=True) as machine, pytest.raises(Trap, match="T0006: not that") as caught:
        machine.run()
    assert (caught.value.offset, caught.value.backtrace) == (5, ("entry",))


def test_a_host_function_cannot_run_the_machine_that_it_runs_on(assemble: Any, ledger: Any, machine_of: Any) -> None:
    machines: list[ReferenceMachine[Any]] = []
    code = assemble(**calling(host(lambda: machines[0].run())))
    with machine_of(code, ledger) as machine:
        machines.append(machine)
        with pytest.raises(GardenError, match="running already"):
            machine.run()


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        (Int, "x", "want Int, got 'x'"),
        (Int, 1 << 63, "not an Int"),
        (Str, 1, "want Str"),
        (Str, "\ud800", "surrogates"),
        (Slot("T"), 1, "no type"),
    ],
)
def test_a_host_function_must_return_what_it_declares(
    assemble: Any, ledger: Any, machine_of: Any, type: Any, value: object, message: str
) -> None:
    code = assemble(**calling(host(lambda: value, result=type)))
    with machine_of(code, ledger) as machine, pytest.raises(TypeError, match=f"test.host has returned .*{message}"):
        machine.run()


# Output.


class Sink:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def __call__(self, data: bytes) -> None:
        self.pieces.append(data)


def say(text: str) -> HostFunction:
    return host(lambda machine: machine.write(text), machine=True)


def test_output_is_written_at_the_end_of_the_run(assemble: Any, ledger: Any, machine_of: Any) -> None:
    sink = Sink()
    with machine_of(assemble(**calling(say("a"), say("ä"), say("b"))), ledger, write=sink) as machine:
        machine.run()
        assert sink.pieces == ["aäb".encode()]


def test_output_is_written_when_there_is_much_of_it(assemble: Any, ledger: Any, machine_of: Any) -> None:
    sink = Sink()
    with machine_of(assemble(**calling(say("x" * 5000), say("y" * 5000), say("z"))), ledger, write=sink) as machine:
        machine.run()
    assert [len(piece) for piece in sink.pieces] == [10000, 1]


def test_output_comes_before_what_a_host_function_writes_itself(assemble: Any, ledger: Any, machine_of: Any) -> None:
    sink = Sink()
    functions = (say("1"), host(lambda: 2, result=Int, pure=True), say("3"), host(lambda: sink(b"4")), say("5"))
    with machine_of(assemble(**calling(*functions)), ledger, write=sink) as machine:
        machine.run()
    assert sink.pieces == [b"13", b"4", b"5"]


def boom() -> None:
    raise KeyError("boom")


def stop() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("failing", "error"), [(boom, KeyError), (stop, Trap)])
def test_output_before_a_failure_is_written(
    assemble: Any, ledger: Any, machine_of: Any, failing: Any, error: Any
) -> None:
    sink = Sink()
    with machine_of(assemble(**calling(say("so far"), host(failing, pure=True))), ledger, write=sink) as machine:
        with pytest.raises(error):
            machine.run()
        assert sink.pieces == [b"so far"]


def test_output_that_cannot_be_written_is_lost_once(assemble: Any, ledger: Any, machine_of: Any) -> None:
    written: list[bytes] = []

    def write(data: bytes) -> None:
        written.append(data)
        if len(written) == 1:
            raise BrokenPipeError

    with machine_of(assemble(**calling(say("a"), host(int, result=Int))), ledger, write=write) as machine:
        with pytest.raises(BrokenPipeError):
            machine.run()
        machine.run()
    assert written == [b"a", b"a"]


def test_output_goes_to_standard_output_behind_what_python_has_printed(
    assemble: Any, ledger: Any, machine_of: Any, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    print("first", flush=False)
    with machine_of(assemble(**calling(say("zweiter\n"), say("ö"))), ledger) as machine:
        machine.run()
    assert capfdbinary.readouterr().out.replace(b"\r", b"") == "first\nzweiter\nö".encode()


# Memory.

PAIR = Record(left=Int, right=Str)


def consume(text: str, numbers: list[int], pair: dict[str, object]) -> dict[str, object]:
    return {"left": len(text) + sum(numbers) + len(str(pair["right"])), "right": text * 3}


def busy_code(assemble: Any) -> Any:
    """A program with constant strings, deep calls, spills, heap objects and host calls; its value is a record."""
    make = host(lambda: "made " * 20_000, result=Str)
    numbers = host(lambda: list(range(9_000)), result=Array(Int))
    pair = host(lambda: {"left": 1, "right": "right"}, result=PAIR)
    use = host(consume, Str, Array(Int), PAIR, result=PAIR)
    words = [
        encode_imm16(ops.JMPEQ_IMM, 0, 0, 5),
        encode(ops.ISUB_IMM, 0, 0, imm=1),
        encode(ops.PUSH, 1),
        encode(ops.CALL, imm=0),
        encode(ops.POP, 1),
        encode(ops.RET),
        encode(ops.LOAD_IMM, 0, imm=1500),
        encode(ops.CALL, imm=0),
        encode(ops.SYS, 0, imm=0),
        encode(ops.MOV, 10, 0),
        encode(ops.SYS, 0, imm=1),
        encode(ops.MOV, 11, 0),
        encode(ops.SYS, 0, imm=2),
        encode(ops.MOV, 2, 0),
        encode(ops.MOV, 1, 11),
        encode(ops.MOV, 0, 10),
        encode(ops.SYS, 3, imm=3),
        encode(ops.HALT),
    ]
    return assemble(
        words,
        strings=("right", "a", "", "constants"),
        hosts=(make, numbers, pair, use),
        functions=(("f", 0, 6, 1), ("entry", 6, len(words), 0)),
        entry=6,
    )


def test_strings_and_records_survive_until_the_next_run(assemble: Any, ledger: Any, machine_of: Any) -> None:
    with machine_of(busy_code(assemble), ledger) as machine:
        word = machine.run()
        value = from_word(machine.heap, PAIR, word)
        assert value == {"left": 100_000 + sum(range(9_000)) + 5, "right": "made " * 60_000}


def test_words_made_after_a_reset_can_be_passed_to_a_call(assemble: Any, ledger: Any, machine_of: Any) -> None:
    with machine_of(busy_code(assemble), ledger) as machine:
        machine.run()
        machine.reset()
        used = machine.heap.used
        word = to_word(machine.heap, Str, "an argument")
        machine.call(1, [3])
        assert (used, machine.heap.str_text(word)) == (0, "an argument")


def test_runs_take_no_more_memory_than_the_first(assemble: Any, ledger: Any, machine_of: Any) -> None:
    with machine_of(busy_code(assemble), ledger) as machine:
        machine.run()
        taken = machine.heap.taken
        for _ in range(3):
            machine.run()
            assert machine.heap.taken <= taken


def test_no_failure_of_an_allocation_leaves_a_block_behind(assemble: Any, ledger: Any, machine_of: Any) -> None:
    code = busy_code(assemble)
    outcomes: list[str] = []
    while not outcomes or outcomes[-1] != "done":
        ledger.requests = 0
        ledger.fail_at = len(outcomes) + 1
        try:
            with machine_of(code, ledger) as machine:
                try:
                    machine.run()
                    outcomes.append("done")
                except Trap as trap:
                    outcomes.append(trap.code)
                # Whatever happened, the machine can run again.
                ledger.fail_at = 0
                assert from_word(machine.heap, PAIR, machine.run())["right"] == "made " * 60_000
        except AllocError:
            outcomes.append("construction")
        assert ledger.live == 0
    assert set(outcomes) == {"construction", "T0002", "T0003", "done"}


def test_closing_twice_is_harmless_and_leaves_the_spill_stack_of_the_caller(
    assemble: Any, ledger: Any, machine_of: Any
) -> None:
    stack = StackAlloc(bytearray(64))
    machine = machine_of(assemble([encode(ops.HALT)]), ledger, spill=stack)
    machine.close()
    machine.close()
    stack.push(1)
    assert ledger.live == 0
