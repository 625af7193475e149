"""The standard streams, in every state that somebody may hand them over in: the same on every engine."""

from __future__ import annotations

import errno
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic

import pytest

from garden.cli.main import main
from garden.native.target import host_target
from tests.support.engines import ENGINES
from tests.support.processes import child

GARDEN = f"{sys.executable} -m garden"
#: No step of a test takes longer.
LIMIT = 60

PROGRAMS = {
    "short": 'import "io"\nio.println("one")\n',
    "long": 'import "io"\nfn f(n:Int) { match { n == 0 {} { io.println(n) f(n - 1) } } }\nf(100000)\n',
    "silent": "let a = 1\n",
    "trap": 'import "io"\nio.println("before")\nlet zero = 0\n1 / zero\n',
    "wrong": "1 + true\n",
    "pieces": 'import "io"\nfn spin(n:Int) { spin(n + 1) }\nio.print("no end ")\nio.print(7)\nio.println(true)\n'
    "io.print(0.5)\nspin(0)\n",
}
LONG = "".join([f"{n}\n" for n in range(100000, 0, -1)])

#: In a process that stays Python, in one that becomes the program, and without Python at all.
HOWS = [*[f"run --engine {engine}" for engine in ENGINES], "run -B --engine jit", "executable"]
every_how = pytest.mark.parametrize("how", HOWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the programs are, and executables of them."""
    folder = tmp_path_factory.mktemp("streams")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GARDEN_CACHE_DIR", str(folder / "cache"))
        for name, text in PROGRAMS.items():
            path = folder / f"{name}.garden"
            path.write_text(text)
            if name != "wrong" and host_target() is not None:
                assert main(["build", str(path), "-o", str(folder / name)]) == 0
        yield folder


def command(folder: Path, how: str, program: str) -> str:
    """A command line for the shell."""
    if how != "executable":
        return f"{GARDEN} {how} {folder / program}.garden"
    if host_target() is None:
        pytest.skip("no executable can run on this system")
    return str(folder / program)


def sh(line: str) -> tuple[int, str, str]:
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    return done.returncode, done.stdout, done.stderr


def started(line: str, **streams: int) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """A process that has ended when the test does."""
    return child(["bash", "-c", f"exec {line}"], **streams)


def failure(number: int) -> str:
    return f"garden: cannot write the output: error {number}: {os.strerror(number)}\n"


@every_how
@pytest.mark.parametrize("program", ["short", "long", "trap"])
def test_a_closed_standard_output_ends_the_program(program: str, how: str, folder: Path) -> None:
    assert sh(f"{command(folder, how, program)} >&-") == (1, "", failure(errno.EBADF))


@every_how
@pytest.mark.parametrize("program", ["short", "long", "trap"])
def test_a_full_disk_ends_the_program(program: str, how: str, folder: Path) -> None:
    assert sh(f"{command(folder, how, program)} > /dev/full") == (1, "", failure(errno.ENOSPC))


@every_how
def test_a_program_without_output_needs_no_streams(how: str, folder: Path) -> None:
    assert sh(f"{command(folder, how, 'silent')} >&- 2>&- <&-") == (0, "", "")
    assert sh(f"{command(folder, how, 'silent')} > /dev/full") == (0, "", "")


@every_how
@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2> >(exec true)"])
def test_what_standard_error_does_not_take_is_lost(stderr: str, how: str, folder: Path) -> None:
    line = command(folder, how, "trap")
    assert sh(line)[:2] == (1, "before\n")
    assert sh(f"{line} {stderr}") == (1, "before\n", "")
    assert sh(f"trap '' PIPE; {line} {stderr}") == (1, "before\n", "")
    assert sh(f"{line} >&- 2>&-")[:2] == (1, "")
    if how != "executable":
        assert sh(f"trap '' PIPE; {command(folder, how, 'wrong')} {stderr}") == (1, "", "")


@every_how
def test_output_comes_before_the_trap(how: str, folder: Path) -> None:
    status, out, err = sh(f"{command(folder, how, 'trap')} 2>&1")
    assert (status, err) == (1, "")
    assert out.startswith(f"before\n{folder / 'trap.garden'}:4:3: T0001: ")


@every_how
@pytest.mark.parametrize("program", ["short", "long", "trap"])
def test_a_reader_that_has_gone_ends_the_program_silently(program: str, how: str, folder: Path) -> None:
    line = command(folder, how, program)
    for before in ("", "trap '' PIPE; "):
        reader, writer = os.pipe()
        os.close(reader)
        with started(f'bash -c "{before}exec {line}"', stdout=writer, stderr=subprocess.PIPE) as process:
            os.close(writer)
            _, err = process.communicate(timeout=LIMIT)
            assert (process.returncode, err) == (141, b"")


def read_slowly(file: int) -> bytes:
    """Everything, with pauses in which a pipe fills up."""
    found = b""
    while True:
        assert select.select([file], [], [], LIMIT)[0], "nothing comes any more"
        piece = os.read(file, 50_000)
        if not piece:
            return found
        found += piece
        select.select([], [], [], 0.01)


@every_how
def test_a_pipe_that_does_not_block_gets_everything(how: str, folder: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with started(command(folder, how, "long"), stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert read_slowly(reader).decode() == LONG
        os.close(reader)
        assert process.communicate(timeout=LIMIT) == (None, b"")
        assert process.returncode == 0


@every_how
def test_messages_wait_for_a_pipe_that_does_not_block(how: str, folder: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    filled = 0
    try:
        while True:
            filled += os.write(writer, bytes(1 << 10))
    except BlockingIOError:
        pass
    with started(command(folder, how, "trap"), stdout=writer, stderr=writer) as process:
        os.close(writer)
        found = read_slowly(reader)
        os.close(reader)
        assert process.wait(LIMIT) == 1
    assert found[:filled] == bytes(filled)
    assert found[filled:].startswith(b"before\n" + bytes(folder / "trap.garden") + b":4:3: T0001: ")


def read_terminal(terminal: int, end: bytes) -> bytes:
    """What a terminal shows, up to some text. It never says that nothing more will come."""
    found = b""
    limit = monotonic() + LIMIT
    while not found.endswith(end):
        assert select.select([terminal], [], [], max(0, limit - monotonic()))[0], found
        found += os.read(terminal, 1)
    return found


@every_how
@pytest.mark.parametrize("blocking", [True, False])
def test_a_terminal_shows_what_is_printed_at_once(blocking: bool, how: str, folder: Path) -> None:
    """A program that never ends, and is then killed, has shown everything."""
    terminal, inside = pty.openpty()
    try:
        os.set_blocking(inside, blocking)
        with started(command(folder, how, "pieces"), stdout=inside, stderr=inside, stdin=inside) as process:
            os.close(inside)
            assert read_terminal(terminal, b"0.5") == b"no end 7true\r\n0.5"
            assert process.poll() is None
            process.terminate()
            assert process.wait(LIMIT) == -15
    finally:
        os.close(terminal)


@pytest.mark.parametrize(
    "words", ["doc", "doc str", "cache", "--version", "--help", "run --help", "dump tokens {}", "dump ir {}",
              "check --json {}", "dump ir --pass imm_fold {}"],
)  # fmt: skip
def test_other_commands_treat_streams_in_the_same_way(words: str, folder: Path) -> None:
    line = f"{GARDEN} {words.format(folder / 'short.garden')}"
    status, out, err = sh(line)
    assert (status, err) == (0, "")
    assert sh(f"{line} >&-") == (1, "", failure(errno.EBADF))
    assert sh(f"{line} > /dev/full") == (1, "", failure(errno.ENOSPC))
    assert sh(f"{line} >&- 2>&-") == (1, "", "")
    assert sh(f"trap '' PIPE; {line} | true; exit ${{PIPESTATUS[0]}}")[1:] == ("", "")
    assert sh(f"PYTHONIOENCODING=ascii {line}") == (0, out, "")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_messages_never_go_to_standard_output(stderr: str, folder: Path) -> None:
    program = folder / "short.garden"
    lines = {
        f"run --alloc-stats {program}": (0, "one\n"),
        f"run --time {program}": (0, "one\n"),
        f"run --verbose --alloc native='arena(page)' {program}": (0, "one\n"),
        "run missing": (1, ""),
        "run --engine": (2, ""),
        "doc nothing": (1, ""),
        f"check {folder / 'wrong.garden'}": (1, ""),
        f"run --heap-limit much {program}": (2, ""),
    }
    for words, expected in lines.items():
        assert sh(f"{GARDEN} {words} {stderr}")[:2] == expected, words


@pytest.mark.parametrize("text", ["grün", "漢字", "e\u0301a", "👍🏽", "\u200b", "\uac00\u1161", "\ttab"])
@pytest.mark.parametrize("how", ["run --engine reference", "run --engine jit", "executable"])
def test_marks_stand_below_what_is_wrong(text: str, how: str, tmp_path: Path) -> None:
    columns = {"grün": 4, "漢字": 4, "e\u0301a": 2, "👍🏽": 4, "\u200b": 0, "\uac00\u1161": 2, "\ttab": 0}[text]
    path = tmp_path / "program.garden"
    path.write_text(f'let zero = 0\nfn f(s:Str) Int {{ 1 }}\nf("{text}") / zero\n')
    line = f"{GARDEN} {how} {path}"
    if how == "executable":
        out = tmp_path / "out"
        assert main(["build", str(path), "-o", str(out)]) == 0
        line = str(out)
    status, _, err = sh(line)
    head, source, mark, *_ = err.split("\n")
    assert (status, source) == (1, f'f("{text}") / zero')
    assert head.startswith(f"{path}:3:{len(text) + 7}: T0001: ")
    if "\t" in text:
        assert mark == "   \t" + " " * len('tab") ') + "~"
    else:
        assert mark == " " * (len('f("") ') + columns) + "~"
