"""What a run leaves for the next one, and that nobody can tell which run it is."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import garden
from garden.native.fingerprint import fingerprint
from garden.native.target import host_target
from tests.support.processes import child

ROOT = Path(__file__).parent.parent.parent

Write = Callable[[str], str]

pytestmark = pytest.mark.skipif(host_target() is None, reason="there is no machine code for this system")

SUM = 'import "io"\nfn sum(n:Int) Int { match { n == 0 { 0 } { n + sum(n - 1) } } }\nio.println(sum(9))\n'
TRAP = 'import "io"\nio.println("before")\nfn half(n:Int) Int {\n\t10 / n\n}\nhalf(0)\n'
WRONG = "1 + true\n"
PYTHON_ONLY = 'import ("io" "str" "unsafe/syscall")\nio.println(str.len(syscall.uname().sysname) > 0)\n'


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a program and returns its path; the cache is empty."""
    monkeypatch.setenv("GARDEN_CACHE_DIR", str(tmp_path / "cache"))

    def write(text: str) -> str:
        path = tmp_path / "program.garden"
        path.write_text(text)
        return str(path)

    return write


def command(*words: str) -> list[str]:
    # Not the sources in the working directory, but what is installed.
    return [sys.executable, "-P", "-m", "garden", "run", *words]


def run(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("text", [SUM, TRAP, WRONG, PYTHON_ONLY])
def test_cold_and_warm_say_what_the_reference_engine_says(write: Write, text: str) -> None:
    path = write(text)
    expected = run("--engine", "reference", path)
    for _ in range(2):
        assert run(path) == expected
        assert run("--engine", "jit", path) == expected


def executables(tmp_path: Path) -> list[str]:
    return [file.name for file in (tmp_path / "cache").glob("*.program")]


def test_the_first_run_loads_no_llvm_and_the_second_leaves_an_executable(write: Write, tmp_path: Path) -> None:
    # What is not installed is made once.
    assert run("--engine", "interpreter", write(TRAP))[1] == "before\n"
    path = write(SUM)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command(path)[1:]], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "45\n"
    assert "garden.native.run.tiered" in done.stderr
    assert "llvmlite" not in done.stderr
    assert executables(tmp_path) == []
    assert run(path) == (0, "45\n", "")
    assert len(executables(tmp_path)) == 1


def test_without_a_place_to_keep_anything_programs_run_all_the_same(write: Write, tmp_path: Path) -> None:
    path = write(SUM)
    (tmp_path / "cache").write_text("no directory")
    for _ in range(2):
        assert run(path) == (0, "45\n", "")
    assert (tmp_path / "cache").read_text() == "no directory"


def test_a_run_that_takes_long_changes_over_and_leaves_an_executable(write: Write, tmp_path: Path) -> None:
    long = "fn loop(n:Int a:Int) Int { match { n == 0 { a } { loop(n - 1 (a * 31 + n) % 1000003) } } }\n"
    # What is not installed is made once.
    assert run("--engine", "jit", write(TRAP))[1] == "before\n"
    path = write(f'import "io"\n{long}io.println(loop(200000000 1))\n')
    status, out, err = run("--time", "--verbose", path)
    assert (status, err.count("\n")) == (0, len(err.splitlines()))
    events = [line.partition("ms: ")[2] for line in err.splitlines() if "ms: " in line]
    assert events[:4] == ["interpreted", "compiling", "compiled", "changed over to machine code"]
    assert set(events[4:]) == {"kept for the next run", "ended"}
    program = tmp_path / "cache" / executables(tmp_path)[-1]
    for kept in (tmp_path / "cache").glob("*.program"):
        program = max(program, kept, key=lambda file: file.stat().st_mtime_ns)
    assert subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout == out


def test_ctrl_c_ends_it_whatever_runs(write: Write) -> None:
    say = "fn say(n:Int) Int { match { n == 0 { 0 } { io.println(n) say(n - 1) } } }\n"
    path = write(f'import "io"\n{say}fn f(n:Int) Int {{ match {{ n == -1 {{ 0 }} {{ f(n + 1) }} }} }}\nf(say(9000))\n')
    for delay in (0.0, 0.05, 0.5):
        with child(command(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "9000\n"
            # Interpreted, being compiled, machine code.
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 1
            assert "T0007: interrupted" in process.stderr.read()


def test_the_key_is_what_the_documentation_says(write: Write, tmp_path: Path) -> None:
    path = write(SUM)
    assert run("-O0", "--engine", "jit", path) == (0, "45\n", "")
    parts = [b"executable", str(host_target()).encode(), b"0", fingerprint(), os.fsencode(path), SUM.encode()]
    data = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    key = hashlib.blake2b(data, digest_size=32).hexdigest()
    assert executables(tmp_path) == [f"{key}.program"]


def test_an_installed_package_and_no_source_tree_has_a_build_id() -> None:
    build_id = Path(garden.__file__).parent / "native" / "build_id"
    if (Path(garden.__file__).parent.parent / "setup.py").exists():
        assert not build_id.exists()
        return
    assert re.fullmatch(r"[0-9a-f]{64}", build_id.read_text())
    assert fingerprint() == build_id.read_bytes()


@pytest.mark.parametrize("options", [["--alloc-stats"], ["-B"], ["--heap-limit", "1M"], ["--verbose"]])
def test_who_wants_more_than_the_program_gets_it_from_python(write: Write, options: list[str]) -> None:
    path = write(TRAP)
    assert run(path) == run("--engine", "reference", path)
    status, out, err = run(*options, path)
    assert (status, out) == (1, "before\n")
    assert f"{path}:4:5: T0001" in err


def test_a_program_by_another_name_says_that_name(write: Write, tmp_path: Path) -> None:
    first = write(TRAP)
    second = tmp_path / "other.garden"
    os.rename(first, second)
    assert str(second) in run(str(second))[2]
    os.rename(second, first)
    assert first in run(first)[2]


def test_the_environment_and_standard_input_stay(write: Write) -> None:
    path = write(SUM)
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-c", f"echo line | ({' '.join(command(path))}; cat)"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stdout == "45\nline\n"
