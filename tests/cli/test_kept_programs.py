"""Programs whose machine code is in the cache run without the compiler, and nobody can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import garden
from garden.cli.main import main
from garden.native.cache import Cache
from garden.native.codegen.programs import NativeProgram, load_program, program_key, standard_hosts
from garden.native.target import host_target
from tests.support.processes import child

HOST = host_target()
pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(HOST is None, reason="there is no machine code for this system")

Write = Callable[[str], str]
Run = Callable[..., tuple[int, str, str]]

PROGRAMS = {
    "nothing": "",
    "a constant": 'import "io"\nio.println("grün")',
    "numbers": 'import "io"\nfn sum(n:Int) Int { match { n == 0 { 0 } { n + sum(n - 1) } } }\nio.println(sum(9))',
    "texts": 'import ("io" "str")\nfn f(n:Int) Str { match { n < 2 { "a" } { str.concat(f(n - 1) f(n - 2)) } } }\n'
    'io.println(f(5))\nio.println(f(3) == "aaa")',
    "arrays": 'import ("io" "arr")\nio.println(arr.sum(arr.range(0 20000)))',
    "counting": 'import ("io" "str" "unsafe/runtime")\nio.println(str.from(runtime.used()))\n'
    "io.println(runtime.allocs())",
    "what only Python has": 'import ("io" "str" "unsafe/syscall")\nio.println(str.len(syscall.uname().sysname) > 0)',
    "a trap": 'import "io"\nio.println("before")\nfn half(n:Int) Int {\n\t10 / n\n}\nhalf(0)',
    "a trap with words in it": 'import ("io" "arr")\nfn at(i:Int) Int { arr.get(arr.range(0 3) i) }\nio.println(at(7))',
    "a trap for want of memory": 'import "str"\nfn more(s:Str) Str { more(str.concat(s s)) }\nmore("abcdefgh")',
}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """An empty cache, which the command uses."""
    monkeypatch.setenv("GARDEN_CACHE_DIR", str(tmp_path / "cache"))
    return Cache()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a program and returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.garden"
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(["run", *words])
        return status, *capfd.readouterr()

    return run


@pytest.fixture
def without_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From when it is called on, the compiler must not be used."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the program was not in the cache")

    return lambda: monkeypatch.setattr("garden.machines.make_machine", refuse)


@pytest.mark.parametrize("level", ["-O0", "-O1"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_warm_run_is_a_cold_one_without_the_compiler(
    name: str, level: str, cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]
) -> None:
    words = (write(PROGRAMS[name]), level, "--heap-limit", "1M")
    reference = run(*words, "--engine", "reference")
    cold = run(*words)
    assert cold == reference
    without_compiler()
    assert run(*words) == cold
    assert run(*words, "--engine", "jit") == cold


def test_a_backtrace_is_the_same(cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]) -> None:
    path = write(PROGRAMS["a trap"])
    plain = run(path)
    cold = run(path, "-B")
    assert cold[2] == plain[2] + "at:\n  0: entry\n  1: half\n"
    without_compiler()
    assert run("--backtrace", path) == cold
    assert run(path) == plain


def test_a_stack_of_another_size_is_taken(
    cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]
) -> None:
    path = write(
        'import "io"\nfn deep(n:Int) Int { match { n == 0 { 0 } { 1 + deep(n - 1) } } }\nio.println(deep(100000))'
    )
    assert run(path) == (0, "100000\n", "")
    without_compiler()
    assert run(path) == (0, "100000\n", "")
    status, output, error = run(path, "--stack-size", "4K")
    assert (status, output) == (1, "")
    assert f"{path}:2:" in error
    assert "T0002" in error


def test_too_large_a_stack_is_said_to_be_that(cache: Cache, write: Write, run: Run) -> None:
    words = (write(""), "--stack-size", "99999999T")
    cold = run(*words)
    assert cold[0] == 1
    assert cold[2].startswith("garden: out of memory in stage run: stack: cannot allocate ")
    assert run(*words) == cold


def test_an_edit_is_noticed(cache: Cache, write: Write, run: Run) -> None:
    for word in ("one", "two", "one"):
        assert run(write(f'import "io"\nio.println("{word}")')) == (0, f"{word}\n", "")
    assert run(write('import "io"\nio.println(one)'))[0] == 1


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data[:100], lambda data: b"", lambda data: data[::-1]]
)
def test_a_damaged_entry_is_made_again(
    damage: Callable[[bytes], bytes], cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]
) -> None:
    path = write(PROGRAMS["numbers"])
    cold = run(path)
    for entry in Path(cache.directory).iterdir():
        entry.write_bytes(damage(entry.read_bytes()))
    assert run(path) == cold
    without_compiler()
    assert run(path) == cold


def test_an_object_that_cannot_be_loaded_is_made_again(cache: Cache, write: Write, run: Run) -> None:
    path = write(PROGRAMS["numbers"])
    cold = run(path)
    key, program = kept(cache, path)
    cache.store(key, NativeProgram(b"", program.parameters, 0, 0, 0, {}).to_bytes())
    assert run(path) == cold
    assert kept(cache, path)[1].object == program.object


def test_a_host_function_that_there_is_not_makes_an_entry_useless(cache: Cache, write: Write, run: Run) -> None:
    path = write(PROGRAMS["what only Python has"])
    cold = run(path)
    key, program = kept(cache, path)
    hosts = standard_hosts(program)
    assert hosts is not None
    assert [str(hosts[index]) for index in program.hosts] == [
        text.removeprefix("unsafe/syscall.") for text in program.hosts.values()
    ]
    for index in program.hosts:
        program.hosts[index] = "unsafe/syscall.fn nowhere()"
    assert standard_hosts(program) is None
    cache.store(key, program.to_bytes())
    assert run(path) == cold


def kept(cache: Cache, path: str) -> tuple[bytes, NativeProgram]:
    """Key and entry of a program."""
    assert HOST is not None
    key = program_key(Path(path).read_bytes(), HOST, level=1, backtrace=False)
    program = load_program(cache, key)
    assert program is not None
    return key, program


def test_a_directory_that_cannot_be_used_changes_nothing_but_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, run: Run
) -> None:
    unsafe = tmp_path / "unsafe"
    unsafe.mkdir()
    unsafe.chmod(0o777)
    path = write(PROGRAMS["a constant"])
    for directory in (path, str(unsafe), "/dev/null/nowhere"):
        monkeypatch.setenv("GARDEN_CACHE_DIR", directory)
        for _ in range(2):
            assert run(path) == (0, "grün\n", "")
    assert not list(unsafe.iterdir())


def process(*words: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process of its own that carries out a command line, for a `with` block."""
    # The same garden as here, whatever the working directory has.
    environment = {**os.environ, "PYTHONPATH": str(Path(garden.__file__).parent.parent)}
    command = [sys.executable, "-P", "-m", "garden", *words]
    return child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_two_processes_may_fill_one_cache_at_once(
    cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]
) -> None:
    words = ("run", "--heap-limit", "1M", write(PROGRAMS["numbers"]))
    with process(*words) as first, process(*words) as second:
        for started in (first, second):
            assert started.communicate()[0] == "45\n"
            assert started.returncode == 0
    without_compiler()
    assert run(*words[1:]) == (0, "45\n", "")


def test_who_asks_for_the_stages_has_them_run(
    cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]
) -> None:
    path = write(PROGRAMS["numbers"])
    cold = run(path, "--alloc-stats")
    again = run(path, "--alloc-stats")
    assert [line.split()[0] for line in again[2].splitlines()] == [line.split()[0] for line in cold[2].splitlines()]
    assert run(path, "--alloc", "parse=limit(1, page)")[0] == 1
    without_compiler()
    assert run(path) == (0, "45\n", "")


def test_programs_for_which_there_are_other_packages_are_not_kept(cache: Cache) -> None:
    with garden.Engine(engine="jit") as engine:
        engine.compile("1").run()
    assert HOST is not None
    assert load_program(cache, program_key(b"1", HOST, level=1, backtrace=False)) is None
    assert os.listdir(cache.directory)
