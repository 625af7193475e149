"""Handlers of signals run where Ctrl-C is seen, and what they raise comes out of the run, on every engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import garden
from garden.errors import Trap
from garden.native.cache import Cache, digest
from tests.support.engines import ENGINES

STORM = Path(__file__).parents[1] / "support" / "signal_storm.py"

SOURCE = """import ("io" "host")
fn spin(n:Int x:Int) Int { match { n == 0 { x } { spin(n + 1 x * 6364136223846793005 + 1442695040888963407) } } }
fn climb(n:Int) Int { match { n == 0 { 1 } { climb(n - 1) + climb(n - 1) } } }
fn talk(n:Int) Int { match { n == 0 { 1 } { io.println("some more text for the output") talk(n + 1) } } }
fn ask(n:Int) Int { match { n == 0 { 1 } { ask(host.up(n)) } } }
fn once(n:Int) Int { 1 + host.stop(n) }
fn twice(n:Int) Int { spin(host.stop(n) 5) }
fn fine(n:Int) Int { n + 1 }
"""

#: Endless each: a loop, calls that return, output, host functions.
ENDLESS = {"spin": (1, 5), "climb": (80,), "talk": (1,), "ask": (1,)}


class Late(Exception):
    """What a handler raises."""


def late(number: int, frame: object) -> None:
    raise Late(number)


class Host:
    """A program, and what its host function `stop` and the receiver of its output do."""

    def __init__(self, name: str) -> None:
        self.stop: Callable[[], object] = lambda: None
        self.write: Callable[[], object] = lambda: None
        self.engine = garden.Engine(engine=name, write=lambda data: self.write())

        @self.engine.function
        def up(n: int) -> int:
            return n + 1

        @self.engine.function
        def stop(n: int) -> int:
            self.stop()
            return n

        self.program = self.engine.compile(SOURCE)

    def raises(self, error: Any, name: str, *times: float) -> Any:
        """The exception that ends a call; the program can then be called again. `times` are those of an alarm."""

        def call() -> None:
            # Not before: it is in here that the handler is to raise.
            alarm(*times or (0,))
            self.program[name](*ENDLESS.get(name, (1,)))

        with pytest.raises(error) as info:
            call()
        alarm(0)
        self.stop = self.write = lambda: None
        assert self.program["fine"](1) == 2
        return info.value


@pytest.fixture(params=ENGINES)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    it = Host(request.param)
    with it.engine:
        yield it


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Handlers as a test finds them, whatever this process was started with, and no alarm when it has ended."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM, signal.SIGUSR1)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, late)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def alarm(seconds: float, again: float = 0) -> None:
    signal.setitimer(signal.ITIMER_REAL, seconds, again)


@pytest.mark.parametrize("name", ENDLESS)
def test_what_a_handler_raises_comes_out_of_the_run(host: Host, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for turn in range(10):
        host.raises(Late, name, 0.001 + 0.0007 * turn)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ENDLESS)
def test_a_run_goes_on_after_a_handler_that_raises_nothing(host: Host, name: str) -> None:
    seen = []

    def third(number: int, frame: object) -> None:
        seen.append(number)
        if len(seen) == 3:
            alarm(0)
            raise Late

    signal.signal(signal.SIGALRM, third)
    host.raises(Late, name, 0.002, 0.002)
    assert seen[:3] == [signal.SIGALRM] * 3


@pytest.mark.parametrize("name", ENDLESS)
def test_two_signals_each_have_their_handler_called(host: Host, name: str) -> None:
    seen: list[int] = []

    def note(number: int, frame: object) -> None:
        seen.append(number)
        if len(set(seen)) == 2:
            raise Late

    signal.signal(signal.SIGALRM, note)
    signal.signal(signal.SIGUSR1, note)
    timer = threading.Timer(0.004, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    host.raises(Late, name, 0.002)
    timer.join()
    assert sorted(seen) == [signal.SIGUSR1, signal.SIGALRM]


def test_a_handler_that_a_host_function_has_installed_counts(host: Host) -> None:
    def install() -> None:
        signal.signal(signal.SIGUSR1, late)
        timer.start()

    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1))
    host.stop = install
    error = host.raises(Late, "twice")
    timer.join()
    assert error.args == (signal.SIGUSR1,)


def test_handlers_are_as_before_after_a_host_function_changed_them(host: Host) -> None:
    def change() -> None:
        # As asyncio does: the handler is another one for a while.
        before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, before)
        alarm(0.005)

    host.stop = change
    host.raises(Late, "twice")
    host.stop = lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN)
    assert host.program["once"](1) == 2
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_IGN
    signal.raise_signal(signal.SIGALRM)


def test_a_signal_ends_a_host_function_that_waits(host: Host) -> None:
    def wait() -> None:
        alarm(0.01)
        threading.Event().wait()

    host.stop = wait
    host.raises(Late, "once")


def test_a_signal_ends_a_receiver_of_output_that_waits(host: Host) -> None:
    def wait() -> None:
        # Not before: what is written last is written even if the run was ended.
        alarm(0.01)
        threading.Event().wait()

    host.write = wait
    host.raises(Late, "talk")


def test_ctrl_c_in_a_host_function_has_the_place_of_its_call(host: Host) -> None:
    host.stop = lambda: signal.raise_signal(signal.SIGINT)
    trap = host.raises(Trap, "once")
    assert (trap.code, trap.offset) == ("T0007", SOURCE.index("stop(n)"))


def test_ctrl_c_in_a_receiver_of_output_is_a_trap(host: Host) -> None:
    host.write = lambda: signal.raise_signal(signal.SIGINT)
    assert host.raises(Trap, "talk").code == "T0007"


def test_ctrl_c_while_the_last_output_is_written_is_a_trap(host: Host) -> None:
    program = host.engine.compile('import "io"\nio.println("the end")\n')
    host.write = lambda: signal.raise_signal(signal.SIGINT)
    with pytest.raises(Trap, match="T0007"):
        program.run()


def test_a_signal_during_another_thread_s_run_goes_to_the_main_thread(host: Host) -> None:
    results: list[object] = []
    ended = threading.Event()

    def work() -> None:
        results.extend([host.program["climb"](14) for _ in range(20)])
        ended.set()

    thread = threading.Thread(target=work)
    seen: list[threading.Thread] = []
    signal.signal(signal.SIGALRM, lambda number, frame: seen.append(threading.current_thread()))
    alarm(0.001, 0.001)
    thread.start()
    assert ended.wait(60)
    alarm(0)
    thread.join()
    assert results == [1 << 14] * 20
    assert set(seen) == {threading.main_thread()}


@pytest.mark.parametrize("name", ENGINES)
def test_signals_at_random_moments_leave_nothing_behind(name: str, tmp_path: Path) -> None:
    environment = {**os.environ, "GARDEN_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(STORM), name, "150", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    # That they have come at all.
    assert int(done.stdout.split()[0]) > 50


@pytest.mark.parametrize("error", [TimeoutError, ValueError])
def test_what_a_handler_raises_while_a_call_is_folded_ends_the_compiler(error: type[Exception]) -> None:
    def fail(number: int, frame: object) -> None:
        raise error

    signal.signal(signal.SIGALRM, fail)
    with garden.Engine() as engine:
        waits = True

        @engine.function(pure=True)
        def wait(n: int) -> int:
            if waits:
                signal.raise_signal(signal.SIGALRM)
            return n

        text = 'import "host"\nhost.wait(7)'
        with pytest.raises(error):
            engine.compile(text)
        waits = False
        assert engine.compile(text).run() == 7


def test_what_a_handler_raises_is_no_failure_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(number: int, frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, late)
    cache = Cache(str(tmp_path / "cache"))
    key = digest(b"key")
    assert cache.store(key, b"data")
    opened = os.open

    def interrupted(*arguments: Any, **options: Any) -> int:
        signal.raise_signal(signal.SIGALRM)
        return opened(*arguments, **options)

    monkeypatch.setattr(os, "open", interrupted)
    for use in (lambda: cache.load(key), lambda: cache.store(key, b"other"), cache.clear, cache.entries, cache.problem):
        with pytest.raises(TimeoutError):
            use()
    monkeypatch.undo()
    assert cache.load(key) == b"data"
