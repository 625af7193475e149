"""The process of the command becomes the program that it is to run, and nobody can tell."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
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

#: Shows by `/proc` whose process it is, from outside, while it waits for its reader.
ENDLESS = 'import "io"\nfn f(n:Int) { io.println(n) f(n + 1) }\nf(0)\n'
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


def test_python_is_gone_while_the_program_runs(write: Write) -> None:
    path = write(ENDLESS)
    for _ in range(2):
        with child(command(path), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"
            mapped = Path(f"/proc/{process.pid}/maps").read_text()
            process.stdout.close()
            # What a shell has for a program whose reader has gone.
            assert process.wait(60) == 141
        assert os.path.realpath(sys.executable) not in mapped


def test_a_cached_program_is_executed_from_its_file(write: Write, tmp_path: Path) -> None:
    path = write(ENDLESS)
    seen = []
    for _ in range(2):
        with child(command(path), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "0\n"
            seen.append(os.readlink(f"/proc/{process.pid}/exe"))
    (program,) = (tmp_path / "cache").glob("*.program")
    assert seen[1] == str(program)


@pytest.mark.parametrize("content", [b"", b"no executable", b"\x7fELF"])
def test_a_cached_program_that_the_system_refuses_is_made_again(write: Write, tmp_path: Path, content: bytes) -> None:
    path = write(SUM)
    assert run(path) == (0, "45\n", "")
    (program,) = (tmp_path / "cache").glob("*.program")
    whole = program.read_bytes()
    program.write_bytes(content)
    assert run(path) == (0, "45\n", "")
    assert program.read_bytes() == whole


def test_the_key_is_what_the_documentation_says(write: Write, tmp_path: Path) -> None:
    path = write(SUM)
    assert run("-O0", path) == (0, "45\n", "")
    parts = [b"executable", str(host_target()).encode(), b"0", fingerprint(), os.fsencode(path), SUM.encode()]
    data = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    key = hashlib.blake2b(data, digest_size=32).hexdigest()
    assert [file.name for file in (tmp_path / "cache").glob("*.program")] == [f"{key}.program"]


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
