"""The `garden` command as it is installed: the launcher where there is one, else the entry point in Python.

Nobody can tell which of the two it is, or whether a program was in the cache.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import allocators
import garden
from garden.native.target import host_target
from tests.support.processes import child

#: The command of the package under test, where its environment has it.
COMMAND = Path(sys.executable).with_name("garden")
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the package is not installed")

#: Installed, compiled packages have the launcher, which can only be made where there is machine code.
HAS_LAUNCHER = allocators.COMPILED and host_target() is not None
needs_launcher = pytest.mark.skipif(not HAS_LAUNCHER, reason="this flavour has no launcher")

PROGRAMS = {
    "nothing": "",
    "output": 'import "io"\nfn sum(n:Int) Int { match { n == 0 { 0 } { n + sum(n - 1) } } }\nio.println(sum(9))\n',
    "a trap": 'import "io"\nio.println("before")\nfn half(n:Int) Int {\n\t10 / n\n}\nhalf(0)\n',
    "a mistake": "1 + true\n",
    "what only Python has": 'import ("io" "str" "unsafe/syscall")\nio.println(str.len(syscall.uname().sysname) > 0)\n',
    "a mark": '\ufeffimport "io"\nio.println("grün")\n0 / 0\n',
}
ENDLESS = 'import "io"\nfn f(n:Int) { io.println(n) f(n + 1) }\nf(0)\n'

Result = tuple[int, bytes, bytes]


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is empty, and nothing keeps the launcher from using it."""
    monkeypatch.setenv("GARDEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)


def run(*words: str | Path, command: Any = (COMMAND,), **options: Any) -> Result:
    done = subprocess.run([*command, *words], capture_output=True, timeout=120, **options)
    return done.returncode, done.stdout, done.stderr


def in_python(*words: str | Path, **options: Any) -> Result:
    return run(*words, command=(sys.executable, "-P", "-m", "garden"), **options)


def test_the_command_is_the_launcher_where_there_is_one() -> None:
    assert (COMMAND.read_bytes()[:4] == b"\x7fELF") == HAS_LAUNCHER
    package = distribution("garden-allocators")
    scripts = [str(entry.name) for entry in package.entry_points if entry.group == "console_scripts"]
    assert scripts == ([] if HAS_LAUNCHER else ["garden"])
    # So that uninstalling removes it.
    files = [Path(str(path.locate())).resolve() for path in package.files or ()]
    assert COMMAND.resolve() in files


@needs_launcher
def test_the_launcher_is_that_of_the_installed_package() -> None:
    build_id = (Path(garden.__file__).parent / "native" / "build_id").read_bytes()
    assert build_id + b"\0" in COMMAND.read_bytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_ends_the_same_however_it_is_started(name: str) -> None:
    Path("program.garden").write_text(PROGRAMS[name])
    expected = in_python("run", "--engine", "reference", "program.garden")
    for words in (["run", "program.garden"], ["program.garden"], ["run", "-O0", "program.garden"]):
        for _ in range(3):
            assert run(*words) == expected
        assert in_python(*words) == expected


def test_what_is_no_program_is_said_to_be_that() -> None:
    Path("folder").mkdir()
    for words in ([], ["run"], ["run", "none"], ["run", "folder"], ["run", ""], ["run", "a", "b"]):
        assert run(*words) == in_python(*words)
    for words in (["-V"], ["--help"], ["doc", "str.len"], ["dump", "ir", "none"], ["check", "none"]):
        assert run(*words) == in_python(*words)


def test_an_edit_is_noticed() -> None:
    for word in ("one", "two", "one", "two"):
        Path("program.garden").write_text(f'import "io"\nio.println("{word}")\n')
        assert run("run", "program.garden") == (0, f"{word}\n".encode(), b"")


def test_a_program_may_come_from_a_pipe() -> None:
    text = PROGRAMS["output"].encode()
    os.mkfifo("pipe")
    for _ in range(2):
        assert run("run", "-", input=text) == (0, b"45\n", b"")
        assert run("run", "/dev/stdin", input=text) == (0, b"45\n", b"")
        with child([COMMAND, "run", "pipe"], stdout=subprocess.PIPE) as process:
            Path("pipe").write_bytes(text)
            assert process.stdout.read() == b"45\n"


def test_modules_in_the_working_directory_are_not_loaded() -> None:
    for name in ("garden", "argparse", "os", "llvmlite", "allocators"):
        Path(f"{name}.py").write_text("raise SystemExit(99)\n")
    Path("program.garden").write_text(PROGRAMS["output"])
    for _ in range(2):
        assert run("run", "program.garden") == (0, b"45\n", b"")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_means_the_same(closed: int) -> None:
    for name in ("output", "a trap"):
        Path("program.garden").write_text(PROGRAMS[name])

        def with_closed(*words: str) -> Result:
            return run(f'exec "$@" {closed}>&-', "sh", *words, command=("sh", "-c"))

        expected = with_closed(sys.executable, "-P", "-m", "garden", "--engine", "reference", "program.garden")
        for _ in range(2):
            assert with_closed(str(COMMAND), "run", "program.garden") == expected


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_means_the_same(sent: signal.Signals) -> None:
    Path("program.garden").write_text(ENDLESS)
    ends = []
    for command in ([sys.executable, "-P", "-m", "garden", "--engine", "reference"], [COMMAND], [COMMAND]):
        with child([*command, "program.garden"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"0\n"
            process.send_signal(sent)
            error = process.communicate(timeout=120)[1]
            # It is where the signal found it.
            ends.append((process.returncode, error.splitlines()[0].rsplit(b":", 3)[-2:] if error else []))
    assert ends[1] == ends[0]
    assert ends[2] == ends[0]


def test_a_reader_that_has_gone_means_the_same() -> None:
    Path("program.garden").write_text(ENDLESS)
    for _ in range(2):
        with child([COMMAND, "program.garden"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"0\n"
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(120) == 141


@needs_launcher
def test_the_start_of_what_has_machine_code_has_no_python_in_it() -> None:
    Path("program.garden").write_text(ENDLESS)
    seen = []
    for more in (["--engine", "jit"], []):
        with child([COMMAND, "run", *more, "program.garden"], stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"0\n"
            seen.append(os.readlink(f"/proc/{process.pid}/exe"))
    (program,) = Path("cache").glob("*.program")
    assert seen[1] == str(program.resolve())
