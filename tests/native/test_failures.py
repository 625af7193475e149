"""Whatever goes wrong in a program in machine code, the process goes on, and so does the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import garden
from allocators import MetricAllocator, PageAlloc
from garden.errors import GardenError, Trap
from tests.support.engines import ENGINES
from tests.support.processes import child

NATIVE = [engine for engine in ENGINES if engine != "reference"]

FINE = 'import "str"\nfn fine(n:Int) Str { str.concat("fine " str.from(n)) }\n'


@pytest.fixture(params=NATIVE)
def engine(request: pytest.FixtureRequest) -> Iterator[garden.Engine]:
    """An engine in machine code, whose allocators are empty at the end."""
    allocators = {stage: MetricAllocator(PageAlloc()) for stage in ("native", "run")}
    with garden.Engine(engine=request.param, allocators=allocators, heap_limit=1 << 20, write=bytearray().extend) as it:
        yield it
    assert [metric.counters.current_bytes for metric in allocators.values()] == [0, 0]


def trap_of(program: garden.Program, name: str, *arguments: object) -> Trap:
    with pytest.raises(Trap) as info:
        program[name](*arguments)
    return info.value


def test_endless_recursion_ends(engine: garden.Engine) -> None:
    program = engine.compile(
        FINE
        + """fn itself(n:Int) Int { 1 + itself(n + 1) }
        fn even(n:Int) Int { 1 + odd(n) }
        fn odd(n:Int) Int { 1 + even(n) }
        fn twice(n:Int) Int { twice(n + 1) * twice(n + 2) }
        """
    )
    for _ in range(2):
        for name in ("itself", "even", "odd", "twice"):
            assert trap_of(program, name, 1).code == "T0002"
        assert program["fine"](1) == "fine 1"


@pytest.mark.parametrize("name", NATIVE)
def test_ten_million_calls_may_be_active(name: str) -> None:
    text = "fn down(n:Int) Int { match { n == 0 { 0 } { down(n - 1) + 1 } } }"
    with garden.Engine(engine=name, stack_size=1 << 30) as engine:
        assert engine.compile(text)["down"](10_000_000) == 10_000_000


@pytest.mark.parametrize(
    "expression",
    [
        "1 / n",
        "1 % n",
        "1.0 / (n as Double)",
        "f(1 / n)",
        "f(f(2) % n)",
        "match { 1 / n == 3 { 1 } { 2 } }",
        "match { n == 0 { 1 % n } { 2 } }",
        "{ a: 1 b: 2 / n }.b",
        "arr.get([1 2 / n] 0)",
        "str.len(str.from(7 % n))",
        "7 / n + 7 / n",
    ],
)
def test_division_by_zero_traps_wherever_it_stands(engine: garden.Engine, expression: str) -> None:
    text = f'{FINE}import "arr"\nfn f(n:Int) Int {{ n + 1 }}\nfn bad(n:Int) {{ let x = {expression} }}\n'
    program = engine.compile(text)
    trap = trap_of(program, "bad", 0)
    assert trap.code == "T0001"
    assert text[trap.offset] in "/%" or text[trap.offset :].startswith(("1", "2", "7", "f("))
    assert program["fine"](2) == "fine 2"


def test_the_heap_is_limited(engine: garden.Engine) -> None:
    program = engine.compile(
        FINE
        + """import "arr"
        fn texts(s:Str) Str { texts(str.concat(s s)) }
        fn arrays(n:Int) Int { arrays(n + arr.len(arr.range(0 1000))) }
        fn records(n:Int) Int { records({ a: n b: n }.a + arr.get([n n] 0)) }
        """
    )
    assert trap_of(program, "texts", "abcdefgh").code == "T0003"
    for name in ("arrays", "records"):
        assert trap_of(program, name, 1).code == "T0003"
    assert program["fine"](3) == "fine 3"


def test_an_exception_of_a_host_function_ends_the_run_as_itself(engine: garden.Engine) -> None:
    class Unwell(Exception):
        pass

    @engine.function
    def fail(n: int) -> int:
        if n == 3:
            raise Unwell(n)
        return n

    program = engine.compile(f'{FINE}import "host"\nfn count(n:Int) Int {{ host.fail(n) + count(n + 1) }}\n')
    with pytest.raises(Unwell, match="3"):
        program["count"](0)
    assert program["fine"](4) == "fine 4"


def test_a_host_function_cannot_run_the_program_that_calls_it(engine: garden.Engine) -> None:
    @engine.function
    def again(n: int) -> int:
        result: int = program["start"](n)
        return result

    program = engine.compile(f'{FINE}import "host"\nfn start(n:Int) Int {{ host.again(n) }}\n')
    with pytest.raises(GardenError, match="running already"):
        program["start"](1)
    assert program["fine"](5) == "fine 5"


SPIN = FINE + "fn spin(n:Int) Int { spin(n + 1) }\nfn climb(n:Int) Int { 1 + climb(n) }\n"
SLOW = "fn slow(n:Int) Int { match { n == 0 { 7 } { slow(n - 1) } } }\n"


START = 'fn start(n:Int) { match { n == 0 {} { io.println("started") start(n - 1) } } }\n'


def interrupt_after(seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_an_endless_loop_ends_with_ctrl_c(engine: garden.Engine) -> None:
    program = engine.compile(SPIN)
    for _ in range(2):
        timer = interrupt_after(0.2)
        assert trap_of(program, "spin", 0).code == "T0007"
        timer.join()
        assert program["fine"](6) == "fine 6"


def test_ctrl_c_works_as_before_when_nothing_runs(engine: garden.Engine) -> None:
    program = engine.compile(SPIN)
    handler = signal.getsignal(signal.SIGINT)
    assert program["fine"](7) == "fine 7"
    assert signal.getsignal(signal.SIGINT) is handler
    timer = interrupt_after(0.1)
    with pytest.raises(KeyboardInterrupt):
        time.sleep(5)
    timer.join()


def test_a_handler_that_raises_nothing_lets_the_program_go_on(engine: garden.Engine) -> None:
    seen: list[int] = []
    program = engine.compile(SPIN + SLOW + "fn long(n:Int) Int { match { n == 0 { 7 } { slow(n) + long(n - 1) } } }")
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        timer = interrupt_after(0.05)
        runs = 0
        while not seen and runs < 1000:
            assert program["long"](3000) == 21007
            runs += 1
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


@pytest.mark.parametrize("name", NATIVE)
def test_ctrl_c_ends_the_command(name: str, tmp_path: Path) -> None:
    path = tmp_path / "spin.garden"
    # As much as no buffer holds back.
    path.write_text('import "io"\n' + START + "fn spin(n:Int) Int { spin(n + 1) }\nstart(5000)\nspin(0)\n")
    command = [sys.executable, "-m", "garden", "run", "--engine", name, str(path)]
    with child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert set(out.splitlines()) == {"started"}
    assert "T0007: interrupted" in err


def test_a_thousand_runs_leave_memory_where_it_was(engine: garden.Engine) -> None:
    @engine.function
    def back(text: str) -> str:
        return text

    program = engine.compile(
        FINE
        + """import ("host" "io")
        fn work(n:Int) Str {
            match { n == 0 { host.back("done") } { io.println(fine(n)) work(n - 1) } }
        }
        fn bad(n:Int) Int { n / 0 }
        """
    )

    def some(count: int) -> None:
        for _ in range(count):
            assert program["work"](50) == "done"
            trap_of(program, "bad", 1)

    some(100)
    before = resident_bytes()
    some(1000)
    assert resident_bytes() - before < 1 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("name", NATIVE)
def test_two_threads_run_two_programs_at_once(name: str) -> None:
    text = FINE + SLOW + 'fn work(n:Int) Str { match { slow(n) == 7 { fine(n) } { "" } } }\n'
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        with garden.Engine(engine=name) as engine:
            program = engine.compile(text)
            results[number] = [program["work"](number * 100_000 + turn) for turn in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [f"fine {number * 100_000 + turn}" for turn in range(20)] for number in range(4)}
