"""A run that changes over from the interpreter to machine code: nobody can tell but by the time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from allocators import MetricAllocator, PageAlloc
from garden.bindings import Package
from garden.errors import Trap
from garden.host import Package as HostPackage
from garden.native.cache import Cache
from garden.native.codegen.compiler import compile_program
from garden.native.codegen.programs import NativeProgram
from garden.native.image.load import Image
from garden.native.run import tiered
from garden.native.run.interpreter_machine import interpreter_object
from garden.native.run.jit import externals
from garden.native.run.tiered import TieredMachine
from garden.native.target import host_target
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.std import STANDARD
from garden.types.types import Type
from garden.vm.machine import ReferenceMachine
from garden.vm.values import from_word
from tests.support.program import load

pytestmark = pytest.mark.skipif(host_target() is None, reason="there is no machine code for this system")

ROOT = Path(__file__).parent.parent / "programs"


class Bench:
    """Makes machines of sources that may import `test`: there `changed` says whether the machine has changed over."""

    def __init__(self) -> None:
        self.closing = ExitStack()
        self.machine: TieredMachine | None = None
        self.output = bytearray()
        self.packages: dict[str, HostPackage] = dict(STANDARD)
        self.run = MetricAllocator(PageAlloc())
        package = Package("test", "What a test wants of a program.")
        self.packages["test"] = package
        self.called: Callable[[], object] = lambda: None
        self.calls = 0

        @package.function
        def changed() -> bool:
            return self.machine is None or "changed over to machine code" in self.events

        @package.function
        def call(n: int) -> int:
            self.calls += 1
            self.called()
            return n

    @property
    def events(self) -> list[str]:
        assert self.machine is not None
        return [text for _, text in self.machine.events]

    def compile(self, source: Source, level: int = 1) -> Compilation:
        allocators = self.closing.enter_context(StageAllocators())
        return self.closing.enter_context(Compilation(source, allocators, self.packages, level=level))

    def make(
        self,
        text: str | Source,
        *,
        level: int = 1,
        has_earned: bool = True,
        compile: Callable[[bytes], NativeProgram] | None = None,
        stack_size: int = 1 << 22,
        heap_limit: int | None = None,
        backtrace: bool = False,
    ) -> TieredMachine:
        source = Source("test", text.encode()) if isinstance(text, str) else text
        target = host_target()
        assert target is not None

        def machine_code(strings: bytes) -> NativeProgram:
            with (
                StageAllocators() as allocators,
                Compilation(source, allocators, self.packages, level=level) as compilation,
            ):
                return compilation.generate(
                    lambda ir, scratch: compile_program(
                        ir, scratch, target, whole=False, backtrace=backtrace, strings=strings
                    )
                )

        self.compilation = self.compile(source, level)
        self.machine = TieredMachine(
            self.compilation.emit(),
            Image(interpreter_object(target, Cache()), None, externals()),
            self.run,
            RunOptions(
                "interpreter",
                write=self.output.extend,
                stack_size=stack_size,
                heap_limit=heap_limit,
                backtrace=backtrace,
            ),
            stack_bytes=stack_size,
            has_earned=has_earned,
            compile=compile or machine_code,
            made=lambda program: None,
        )
        self.closing.callback(self.machine.close)
        return self.machine

    def result(self, type: Type, word: int) -> object:
        assert self.machine is not None
        return from_word(self.machine.heap, type, word)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    with bench.closing:
        yield bench
        bench.machine = None
    assert bench.run.counters.current_bytes == 0


#: Waits, in a loop of tail calls, until machine code runs it.
WAIT = 'import ("io" "str" "test")\nfn wait(n:Int) Int { match { test.changed() { n } { wait(n + 0) } } }\n'


def test_a_tail_call_leads_to_machine_code(bench: Bench) -> None:
    machine = bench.make(WAIT + 'io.println("before")\nio.println(wait(7))\n"value"')
    before = machine.code.words.view.tolist()
    machine.run()
    assert bench.output == b"before\n7\n"
    assert bench.events == ["interpreted", "compiling", "compiled", "changed over to machine code", "ended"] or (
        "kept for the next run" in bench.events
    )
    assert before != machine.code.words.view.tolist()
    machine.close()
    # As other engines can run it, if not for superinstructions, which are taken back too.
    with ReferenceMachine(bench.compilation.emit(), bench.run, RunOptions(write=bench.output.extend)) as reference:
        bench.machine = None
        reference.run()
    assert bench.output == b"before\n7\n" * 2


def test_calls_that_are_active_return_into_the_interpreter(bench: Bench) -> None:
    deep = """
fn twice(n:Int) Int { match { n > 1000000 { test.call(n) } { n * 2 } } }
fn deep(n:Int) Int { match { n == 0 { wait(1) } { let below = deep(n - 1) below + twice(n) + test.call(0) } } }
io.println(deep(1000))
"""
    bench.make(WAIT + deep).run()
    assert bench.output == b"1001001\n"
    assert bench.calls == 1000


def test_values_of_all_types_stay_what_they_are(bench: Bench) -> None:
    names = [f"p{index}" for index in range(40)]
    many = " ".join([f"{name}:{'Double' if index % 3 else 'Int'}" for index, name in enumerate(names)])
    total = " + ".join([name if index % 3 else f"{name} as Double" for index, name in enumerate(names)])
    values = " ".join([f"{index}.5" if index % 3 else str(index) for index in range(40)])
    text = f"""{WAIT}
fn same(a:Str b:Str) Bool {{ match {{ a == b {{ test.call(1) == 1 }} {{ false }} }} }}
fn named(a:Str) Int {{ match {{ a == "one" {{ test.call(1) }} a == "two" {{ 2 }} a == "four" {{ 4 }} {{ 0 }} }} }}
fn many({many}) Double {{ match {{ p0 == 1 {{ 0.0 + test.call(1) as Double }} {{ {total} }} }} }}
let made = str.concat("tw" "o")
io.println(wait(3))
io.println(same(made "two"))
io.println(named(made))
io.println(named(str.concat("fo" "ur")))
io.println(many({values}))
"""
    bench.make(text).run()
    # Of 40 numbers, those whose index is no multiple of 3 are half a number more.
    assert bench.output.decode().split() == ["3", "true", "2", "4", str(sum(range(40)) + 26 / 2).removesuffix(".0")]


def test_a_trap_has_its_place_and_the_calls_of_both(bench: Bench) -> None:
    text = WAIT + "fn down(n:Int) Int { match { n == 0 { 10 / n } { 1 + down(n - 1) } } }\n"
    text += "fn outer(n:Int) Int { wait(n) + down(n) }\nouter(2)\n"
    machine = bench.make(text, backtrace=True)
    with pytest.raises(Trap, match="division by zero") as raised:
        machine.run()
    assert raised.value.offset == text.index("/ n }")
    assert raised.value.backtrace == ("entry", "outer", "down", "down", "down")
    assert "changed over to machine code" in bench.events


def test_limits_hold_before_and_after(bench: Bench) -> None:
    endless = "fn endless(n:Int) Int { 1 + endless(n + 1) }\n"
    machine = bench.make(WAIT + endless + "wait(1)\nendless(0)\n")
    with pytest.raises(Trap, match="stack overflow: the stack of the machine is full"):
        machine.run()
    with pytest.raises(Trap, match="stack overflow"):
        bench.make(endless + "endless(0)\n", compile=refuse).run()
    grow = "fn grow(text:Str) Str { grow(str.concat(text text)) }\n"
    machine = bench.make(WAIT + grow + 'wait(1)\ngrow("x")\n', heap_limit=1 << 20)
    with pytest.raises(Trap, match="exceed the program's limit of 1048576"):
        machine.run()
    # It can be run again, and is machine code from the start.
    with pytest.raises(Trap, match="exceed the program's limit of 1048576"):
        machine.run()


def refuse(strings: bytes) -> NativeProgram:
    raise RuntimeError("refused")


def test_what_cannot_be_compiled_stays_in_the_interpreter(bench: Bench) -> None:
    machine = bench.make(WAIT + "wait(4)\n", compile=refuse)
    machine._note("changed over to machine code")
    assert machine.run() == 4
    machine.finish()
    assert "not compiled: refused" in bench.events


def test_machine_code_with_another_string_is_refused(bench: Bench) -> None:
    other = Bench()
    with other.closing:
        code = other.make('"another"').code
        strings = code.strings.view.tobytes()
        machine = bench.make('"one"')
        with pytest.raises(Exception, match="a constant string that the bytecode does not have"):
            machine._compile(strings)


@pytest.mark.parametrize("where", ["in the interpreter", "in machine code"])
def test_ctrl_c_ends_it(bench: Bench, where: str) -> None:
    loop = (
        "fn loop(n:Int) Int { match { n == -1 { 0 } { loop(n + 1) } } }\nfn start(n:Int) Int { test.call(n) loop(n) }\n"
    )
    wait = "wait(1)\n" if where == "in machine code" else ""
    machine = bench.make(WAIT + loop + wait + "start(0)\n", compile=None if wait else refuse)
    bench.called = lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(Trap, match="interrupted") as raised:
            machine.run()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert raised.value.code == "T0007"


def test_a_signal_whose_handler_returns_does_not_end_it(bench: Bench) -> None:
    seen: list[int] = []
    loop = """
fn loop(n:Int) Int { match { n == 0 { 5 } { loop(n - 1) } } }
fn start(n:Int) Int { test.call(n) match { n == 0 { 0 } { loop(3000000) + start(n - 1) } } }
wait(1)
start(20)
"""
    machine = bench.make(WAIT + loop)
    bench.called = lambda: signal.raise_signal(signal.SIGALRM)
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        assert machine.run() == 100
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) >= 21


def test_an_exception_of_a_host_function_comes_out_of_machine_code(bench: Bench) -> None:
    machine = bench.make(WAIT + "fn outer(n:Int) Int { test.call(wait(n)) }\nouter(3)\n")

    def fail() -> None:
        raise LookupError("from the host")

    bench.called = fail
    with pytest.raises(LookupError, match="from the host"):
        machine.run()
    bench.called = lambda: None
    assert machine.run() == 3


def test_closing_while_it_is_compiled_is_harmless(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiered, "DELAY", 0.0)
    for _ in range(5):
        machine = bench.make("fn f(n:Int) Int { n + 1 }\nf(1)\n", has_earned=False)
        assert machine.run() == 2
        machine.close()
    done = bench.make("1", has_earned=False)
    assert done.run() == 1


CASES = [
    (path, level)
    for path in [path for path in sorted(ROOT.rglob("*.garden")) if b"test/" not in path.read_bytes()][::5]
    for level in load(path).claims.levels[-1:]
    if load(path).claims.mode == "run" and not load(path).claims.errors
]


@pytest.mark.parametrize(("path", "level"), CASES, ids=lambda case: case.stem if isinstance(case, Path) else f"O{case}")
def test_programs_in_machine_code_from_their_first_call_do_what_they_should(
    bench: Bench, path: Path, level: int
) -> None:
    program = load(path)
    machine = bench.make(
        program.source, level=level, heap_limit=program.claims.heap_limit, backtrace=program.claims.trap is not None
    )
    reported = bytearray()
    with ReferenceMachine(
        bench.compile(program.source, level).emit(),
        bench.run,
        RunOptions(write=reported.extend, heap_limit=program.claims.heap_limit),
    ) as reference:
        expected = outcome(reference)
    machine._compile_beside()
    found = outcome(machine)
    assert "changed over to machine code" in bench.events
    if "T0002" in str(expected):
        # Each engine has its own limit.
        assert found[:1] == expected[:1] == ("T0002",)
        return
    assert bench.output == reported
    assert found == expected


def outcome(machine: TieredMachine | ReferenceMachine[MetricAllocator]) -> tuple[object, ...]:
    try:
        machine.run()
    except Trap as trap:
        return trap.code, trap.message, trap.offset
    return (None,)
