"""`garden build`, as a person meets it."""

from __future__ import annotations

import builtins
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from garden.cli.main import TARGETS, main
from garden.native.target import AARCH64, X86_64, host_target

FIB = str(Path(__file__).parent.parent.parent / "docs" / "examples" / "fib.garden")
HOST = host_target()
needs_native = pytest.mark.skipif(HOST is None, reason="there is no native code for this machine")

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARDEN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@needs_native
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_an_executable_prints_what_the_program_does(level: str, tmp_path: Path, capfd: Captured) -> None:
    assert main(["build", FIB, "-o", str(tmp_path / "fib"), level]) == 0
    assert capfd.readouterr() == ("", "")
    assert subprocess.run([tmp_path / "fib"], capture_output=True, timeout=60).stdout == b"6765\n"


@pytest.mark.parametrize(("target", "machine"), [(X86_64, 62), (AARCH64, 183)])
def test_an_executable_is_for_the_machine_that_one_names(target: str, machine: int, tmp_path: Path) -> None:
    assert main(["build", FIB, "-o", str(tmp_path / "fib"), "--target", target]) == 0
    header = (tmp_path / "fib").read_bytes()[:20]
    assert (header[:4], header[18]) == (b"\x7fELF", machine)


def test_the_targets_are_those_that_there_is_native_code_for() -> None:
    assert TARGETS == (X86_64, AARCH64)


@needs_native
def test_limits_are_set_when_the_executable_is_made(tmp_path: Path) -> None:
    program = tmp_path / "program.garden"
    program.write_text(
        'import ("arr" "io")\n'
        "fn down(n:Int) Int { match { n == 0 { 0 } { 1 + down(n - 1) } } }\n"
        "io.println(down(100000))\n"
        "io.println(arr.len(arr.range(0 1000000)))\n"
    )
    out = tmp_path / "out"
    assert main(["build", str(program), "-o", str(out), "--stack-size", "64M", "--heap-limit", "4M"]) == 0
    found = subprocess.run([out], capture_output=True, timeout=60)
    assert (found.returncode, found.stdout) == (1, b"100000\n")
    assert found.stderr.startswith(
        f"{program}:4:24: T0003: 8000008 bytes more exceed the program's limit of 4194304\n".encode()
    )


def test_a_program_from_standard_input_can_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    source = b'import ("io" "unsafe/syscall")\n\nio.println(syscall.uname().sysname)\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(source)))
    assert main(["build", "-", "-o", str(tmp_path / "out"), "--target", X86_64]) == 1
    assert not (tmp_path / "out").exists()
    assert capfd.readouterr().err.splitlines() == [
        "<stdin>:3:20: E0501: `unsafe/syscall.uname` needs Python, which an executable does without",
        "io.println(syscall.uname().sysname)",
        "                   ~~~~~",
        "help: `garden run` can call it",
    ]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path, capfd: Captured) -> None:
    out = tmp_path / "missing" / "out"
    assert main(["build", FIB, "-o", str(out), "--target", X86_64]) == 1
    assert capfd.readouterr().err == f"garden: cannot write {out}: No such file or directory\n"


def test_without_llvmlite_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "llvmlite":
            raise ImportError("No module named 'llvmlite'")
        return real(name, *arguments, **more)

    # What is in the cache needs none.
    monkeypatch.setenv("GARDEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["build", FIB, "-o", str(tmp_path / "out"), "--target", X86_64]) == 1
    assert capfd.readouterr().err == "garden: making an executable needs llvmlite: No module named 'llvmlite'\n"
    assert not (tmp_path / "out").exists()


def test_where_no_executable_can_run_a_target_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert main(["build", FIB, "-o", str(tmp_path / "out")]) == 2
    assert "--target" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words", [["build", FIB], ["build", FIB, "-o"], ["build", FIB, "-o", "x", "--stack-size", "many"]]
)
def test_a_wrong_command_line_exits_with_2(words: list[str], capfd: Captured) -> None:
    assert main(words) == 2
