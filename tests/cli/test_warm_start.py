"""The warm start of `garden run`: what it does without, and that nobody can tell it from a cold one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import garden
from garden.cli import commands, warm
from garden.cli.main import _parser, main
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

    def refuse(options: object) -> int:
        raise AssertionError("the program was not in the cache")

    return lambda: monkeypatch.setattr(commands, "run", refuse)


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


#: Says on standard error what has been loaded beside what Python loads for itself.
_COMMAND = """\
import sys
before = {*sys.modules}
from garden.cli.main import main
status = main(sys.argv[1:])
print(*sorted({*sys.modules} - before), file=sys.stderr)
sys.exit(status)
"""


def process(*words: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """A process of its own that carries out a command line, for a `with` block."""
    # The same garden as here, whatever the working directory has.
    environment = {**os.environ, "PYTHONPATH": str(Path(garden.__file__).parent.parent)}
    command = [sys.executable, "-P", "-c", _COMMAND, *words]
    return child(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_two_processes_may_fill_one_cache_at_once(
    cache: Cache, write: Write, run: Run, without_compiler: Callable[[], None]
) -> None:
    path = write(PROGRAMS["numbers"])
    with process("run", path) as first, process("run", path) as second:
        for started in (first, second):
            assert started.communicate()[0] == "45\n"
            assert started.returncode == 0
    without_compiler()
    assert run(path) == (0, "45\n", "")


#: Modules of others that take long to load.
SLOW = {
    *("typing", "collections", "functools", "contextlib", "re", "enum", "signal", "threading", "argparse", "json"),
    *("dataclasses", "inspect", "pathlib", "hashlib", "numpy", "llvmlite"),
}


@pytest.mark.parametrize("name", ["nothing", "a constant", "numbers"])
def test_a_warm_start_loads_nothing_that_takes_long(name: str, cache: Cache, write: Write, run: Run) -> None:
    path = write(PROGRAMS[name])
    cold = run(path)
    with process(path) as warm:
        output, error = warm.communicate()
    assert (warm.returncode, output) == cold[:2]
    loaded = set(error.split())
    assert {"garden.native.image.load", "garden.native.run.jit"} <= loaded
    assert not loaded & {*SLOW, "importlib"}
    ours = {module for module in loaded if module.startswith(("allocators.", "garden."))}
    assert {module for module in ours if module.startswith("allocators.")} == {
        "allocators.errors",
        "allocators.mapping",
    }
    stages = ("garden.syntax", "garden.types", "garden.ir", "garden.bytecode", "garden.vm", "garden.std")
    assert not {module for module in ours if module.startswith(stages)}
    assert not ours & {"garden.pipeline", "garden.machines", "garden.native.codegen.compiler", "garden.diagnostics"}


LINES = [
    ["FILE"],
    ["FILE", "-O0"],
    ["-O1", "FILE", "-B"],
    ["--engine", "jit", "--backtrace", "FILE"],
    ["--engine", "auto", "--engine", "jit", "FILE"],
    ["--heap-limit", "64M", "--stack-size", "1G", "FILE", "--heap-limit", "4096"],
]


@pytest.mark.parametrize("words", LINES)
def test_command_lines_mean_the_same_as_to_the_full_parser(words: list[str]) -> None:
    options = warm._options(words)
    full = _parser().parse_args(["run", *words])
    assert options is not None
    assert (options.file, options.level, options.backtrace) == (full.file, full.level, full.backtrace)
    assert full.engine in ("auto", "jit")
    for size, text in ((options.heap_limit, full.heap_limit), (options.stack_size, full.stack_size)):
        assert size == (None if text is None else warm._size(text))


@pytest.mark.parametrize(
    "words",
    [[], ["-"], ["FILE", "FILE"], ["FILE", "-O2"], ["FILE", "-O", "1"], ["FILE", "--engine"], ["FILE", "--heap-limit"],
     ["FILE", "--engine", "reference"], ["FILE", "--heap-limit", "much"], ["FILE", "--alloc-stats"], ["--help"],
     ["FILE", "--alloc", "run=page"], ["FILE", "--verbose"], ["--engine=jit", "FILE"], ["--", "FILE"]],
)  # fmt: skip
def test_other_command_lines_are_left_to_the_full_parser(words: list[str]) -> None:
    assert warm._options(words) is None


def test_programs_for_which_there_are_other_packages_are_not_kept(cache: Cache) -> None:
    with garden.Engine(engine="jit") as engine:
        engine.compile("1").run()
    assert HOST is not None
    assert load_program(cache, program_key(b"1", HOST, level=1, backtrace=False)) is None
    assert os.listdir(cache.directory)
