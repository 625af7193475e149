"""Programs that can be read only once, that cannot be read at all, and outputs that are the program itself."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from garden.cli.main import main
from garden.native.target import X86_64
from tests.support.engines import ENGINES
from tests.support.processes import child

GARDEN = f"{sys.executable} -m garden"
TEXT = 'import "io"\nio.println("once")\n'

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARDEN_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.garden"
    path.write_text(TEXT)
    return path


def sh(line: str, cwd: Path | None = None, **more: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a line for bash."""
    assert shutil.which("bash"), "these tests need bash"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, cwd=cwd, **more)  # type: ignore[call-overload]
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A named pipe, through which one reader gets the program."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    Thread(target=path.write_text, args=[TEXT], daemon=True).start()
    return path


COMMANDS = {
    "run": "once\n",
    "check": "",
    "check --json": "[]\n",
    "build -o out": "",
    "dump tokens": "import",
    "dump bytecode": "once",
    "run --alloc-stats": "once\n",
    **{f"run --engine {engine}": "once\n" for engine in ENGINES},
}


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("source", ["/dev/stdin", "-"])
def test_every_command_reads_a_pipe_once(words: str, source: str, program: Path, tmp_path: Path) -> None:
    expected = COMMANDS[words]
    status, out, err = sh(f"cat {program} | {GARDEN} {words} {source}", tmp_path)
    assert status == 0, err
    assert expected in out
    assert bool(out) == bool(expected)
    if "build" in words:
        assert sh("./out", tmp_path) == (0, "once\n", "")


def test_a_substituted_process_can_be_run(program: Path, tmp_path: Path) -> None:
    # With an empty cache, and with one that has the program.
    for _ in range(2):
        assert sh(f"GARDEN_CACHE_DIR={tmp_path} {GARDEN} <(cat {program})") == (0, "once\n", "")


def test_a_named_pipe_can_be_run(fifo: Path) -> None:
    assert sh(f"{GARDEN} run {fifo}") == (0, "once\n", "")


def test_a_program_that_comes_in_pieces_is_waited_for() -> None:
    """Also where the pipe does not block."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    command = [*GARDEN.split(), "run", "-"]
    with child(command, stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        os.close(reader)
        for piece in (b'import "io"\n', b"io.println(", b"1 + 1)"):
            os.write(writer, piece)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.2)
        os.close(writer)
        assert process.communicate(timeout=60) == (b"2\n", None)


@pytest.mark.parametrize("command", ["run", "check", "build -o out", "dump ir"])
def test_a_closed_standard_input_cannot_be_read(command: str, tmp_path: Path) -> None:
    said = "garden: cannot read <stdin>: Bad file descriptor\n"
    assert sh(f"{GARDEN} {command} - <&-", tmp_path) == (1, "", said)
    status, out, _ = sh(f"{GARDEN} {command} /dev/stdin <&-", tmp_path)
    assert (status, out) == (1, "")
    assert not (tmp_path / "out").exists()


def test_a_file_without_an_end_is_no_traceback() -> None:
    limit = 600 << 20
    for command in ("run", "check", "run --engine reference"):
        status, out, err = sh(
            f"{GARDEN} {command} /dev/zero", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        )
        assert (status, out, err) == (1, "", "garden: cannot read /dev/zero: out of memory\n")


@pytest.mark.parametrize("command", ["run", "run --engine reference", "check", "dump ir"])
def test_what_cannot_be_read_is_one_line(command: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("")
    (tmp_path / "secret").chmod(0)
    names = ["missing", str(tmp_path), "''", "missing/", "$'caf\\xe9'", "$(printf %5000d 7)"]
    if os.geteuid() != 0:
        names.append("secret")
    for name in names:
        status, out, err = sh(f"{GARDEN} {command} {name}", tmp_path)
        assert (status, out, err.count("\n")) == (1, "", 1), name
        assert err.startswith("garden: cannot read "), name


SAME = {
    "its name": "program.garden",
    "another path": "./sub/../program.garden",
    "a symbolic link": "soft",
    "a hard link": "hard",
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("source", ["program.garden", "-", "/dev/stdin", "hard"])
def test_an_output_that_is_the_program_is_refused(name: str, source: str, program: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "soft").symlink_to(program)
    (tmp_path / "hard").hardlink_to(program)
    status, out, err = sh(f"{GARDEN} build {source} -o {SAME[name]} < program.garden", tmp_path)
    assert (status, out, err) == (2, "", f"garden: the output {SAME[name]} is the program itself\n")
    for path in (program, tmp_path / "soft", tmp_path / "hard"):
        assert path.read_text() == TEXT
    assert (tmp_path / "soft").is_symlink()
    assert program.stat().st_nlink == 2


def test_a_copy_of_the_program_is_another_file(program: Path, tmp_path: Path, capfd: Captured) -> None:
    copy = tmp_path / "copy"
    copy.write_text(TEXT)
    assert main(["build", str(program), "-o", str(copy), "--target", X86_64]) == 0
    assert copy.read_bytes().startswith(b"\x7fELF")


@pytest.mark.parametrize("out", ["", ".", "missing/out", "sub/", "nul\0byte", "/dev/full", "o" * 300])
def test_what_cannot_be_written_is_one_line(
    out: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["build", str(program), "-o", out, "--target", X86_64]) == 1
    err = capfd.readouterr().err
    assert err.startswith(f"garden: cannot write {out}: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


HUGE = ["9223372036854775807", "9223372036854775808", "8388607T", "99999999T", "9" * 5000]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", HUGE)
@pytest.mark.parametrize("option", ["--stack-size", "--heap-limit"])
def test_a_huge_size_is_no_traceback(option: str, size: str, engine: str, program: Path, capfd: Captured) -> None:
    status = main(["run", "--engine", engine, option, size, str(program)])
    out, err = capfd.readouterr()
    if len(size) > 100:
        assert (status, err) == (2, "garden: no memory has a number of bytes with 5000 digits\n")
    elif option == "--stack-size" and engine != "interpreter":
        assert status == 1
        assert err.startswith("garden: out of memory in stage run: ")
    else:
        # The interpreter takes so much only when it is needed.
        assert (status, out, err) == (0, "once\n", "")


@pytest.mark.parametrize("size", HUGE[:4])
def test_an_executable_may_have_huge_limits(size: str, program: Path, tmp_path: Path, capfd: Captured) -> None:
    out = str(tmp_path / "out")
    assert main(["build", str(program), "-o", out, "--heap-limit", size]) == 0
    assert sh(out) == (0, "once\n", "")
    assert main(["build", str(program), "-o", out, "--stack-size", size]) == 0
    assert sh(out) == (1, "", "garden: no memory for the stack\n")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_working_directory_that_is_gone_stops_nothing(engine: str, program: Path, tmp_path: Path) -> None:
    gone = f"mkdir gone && cd gone && rmdir ../gone && export GARDEN_CACHE_DIR=relative && {GARDEN}"
    if sh(f"{gone} --version", tmp_path)[0] != 0:
        # An editable install by way of the working directory.
        pytest.skip("Python itself does not start without a working directory")
    assert sh(f"{gone} run --engine {engine} {program}", tmp_path) == (0, "once\n", "")
    assert sh(f"{gone} cache", tmp_path) == (0, "relative\nnot used: the working directory has been removed\n", "")
    status, out, err = sh(f"{gone} build {program} -o out", tmp_path)
    assert (status, out, err) == (1, "", "garden: cannot write out: No such file or directory\n")


@pytest.mark.parametrize("cache", ["/dev/null", "/dev/null/below", "/proc/none", "$'caf\\xe9'", "$(printf %5000d 7)"])
def test_a_cache_that_cannot_be_used_stops_nothing(cache: str, program: Path, tmp_path: Path) -> None:
    command = f"export GARDEN_CACHE_DIR={cache}; {GARDEN}"
    assert sh(f"{command} run {program}", tmp_path) == (0, "once\n", "")
    done = subprocess.run(["bash", "-c", f"{command} cache"], capture_output=True, timeout=120, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("home", ["unset HOME", "HOME=", "HOME=/nowhere", "HOME=/dev/null", "HOME=relative"])
def test_a_home_that_cannot_be_used_stops_nothing(home: str, program: Path, tmp_path: Path) -> None:
    command = f"unset GARDEN_CACHE_DIR XDG_CACHE_HOME; {home}; export HOME; {GARDEN}"
    if home == "unset HOME":
        command = f"unset GARDEN_CACHE_DIR XDG_CACHE_HOME HOME; {GARDEN}"
    assert sh(f"{command} run --engine reference {program}", tmp_path) == (0, "once\n", "")
    status, out, err = sh(f"{command} cache", tmp_path)
    assert (status, err, out.count("\n")) == (0, "", 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_names_need_not_be_utf8(engine: str, program: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").write_text("1 / 0")
    line = f"cp trap $'caf\\xe9' && {GARDEN} run --engine {engine} $'caf\\xe9'"
    status, out, err = sh(line, tmp_path)
    assert (status, out) == (1, "")
    assert err.startswith("caf\\udce9:1:3: T0001: ")
    assert sh(f"{GARDEN} dump ast $'caf\\xe9' > /dev/null", tmp_path) == (0, "", "")
    assert sh(f"{GARDEN} build program.garden -o $'\\xff' && ./$'\\xff'", tmp_path) == (0, "once\n", "")
