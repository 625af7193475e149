"""The `garden` command, as a person meets it."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from garden.cli import commands
from garden.cli.main import main
from garden.pipeline import SCRATCH, STAGES
from tests.support.engines import ENGINES, IDLE

FIB = str(Path(__file__).parent.parent.parent / "docs" / "examples" / "fib.garden")

#: Needs memory while it runs.
SUM = 'import ("arr" "io")\nio.println(arr.sum(arr.range(0 4)))\n'

Write = Callable[[str], str]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a program and returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "program.garden"
        path.write_text(text)
        return str(path)

    return write


def stats(text: str) -> dict[str, dict[str, int]]:
    """The rows of the `--alloc-stats` table that ends a text, by stage and column."""
    lines = [line.split() for line in text.splitlines()]
    start = next(index for index, line in enumerate(lines) if line[:2] == ["stage", "allocs"])
    heading, *rows = lines[start:]
    return {row[0]: dict(zip(heading[1:], map(int, row[1:]), strict=True)) for row in rows}


def test_run_prints_the_output(capfd: Captured) -> None:
    assert main(["run", FIB]) == 0
    assert capfd.readouterr() == ("6765\n", "")


def test_a_file_by_itself_is_run(capfd: Captured) -> None:
    assert main([FIB]) == 0
    assert main(["--alloc-stats", FIB]) == 0
    assert capfd.readouterr().out == "6765\n6765\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_alloc_stats_has_a_row_for_every_stage_with_nothing_live(engine: str, write: Write, capfd: Captured) -> None:
    assert main(["run", write(SUM), "--alloc-stats", "--engine", engine]) == 0
    rows = stats(capfd.readouterr().err)
    assert list(rows) == [*STAGES, SCRATCH]
    for stage, row in rows.items():
        assert row["live"] == 0
        assert row["allocs"] == row["frees"]
        assert (row["bytes"] > 0) == (stage not in IDLE[engine]), stage
        assert row["peak"] <= row["bytes"]


def test_the_bytecode_of_fib_is_short_and_in_the_known_form(capfd: Captured) -> None:
    assert main(["dump", "bytecode", FIB]) == 0
    lines = capfd.readouterr().out.splitlines()
    start = next(index for index, line in enumerate(lines) if line.endswith("<fib>:"))
    body = lines[start + 1 : lines.index("", start)]
    instructions = [line for line in body if line.startswith("  ")]
    assert len(instructions) <= 22
    assert any("jmpne_imm r0, #0, 0004" in line for line in instructions)
    assert any(line.startswith("<fib.bb_0004>") for line in body)
    assert "; 6: n == 0 { 0 }" in instructions[0]


@pytest.mark.parametrize("product", ["tokens", "ast", "types", "ir", "bytecode"])
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_every_product_can_be_dumped(product: str, level: str, capfd: Captured) -> None:
    assert main(["dump", product, FIB, level]) == 0
    out, err = capfd.readouterr()
    assert "fib" in out
    assert out.endswith("\n")
    assert err == ""


def test_a_pass_is_shown_before_and_after(capfd: Captured) -> None:
    assert main(["dump", "ir", FIB, "--pass", "imm_fold"]) == 0
    before, _, after = capfd.readouterr().out.partition("// after imm_fold\n")
    assert "ISub %" in before
    assert before != after


def test_the_types_of_all_nodes_can_be_dumped(capfd: Captured) -> None:
    assert main(["dump", "types", FIB]) == 0
    short = capfd.readouterr().out
    assert main(["dump", "types", FIB, "--nodes"]) == 0
    long = capfd.readouterr().out
    assert "==: Bool" not in short
    assert "==: Bool\n        n: Int\n" in long


def test_bytecode_can_be_dumped_for_fewer_registers(write: Write, capfd: Captured) -> None:
    path = write(
        "fn f(a:Int b:Int c:Int) Int { let d = a * b let e = b * c let g = a * c d * e + e * g + g * d } f(1 2 3)"
    )
    assert main(["dump", "bytecode", path, "-O0"]) == 0
    assert "store_slot" not in capfd.readouterr().out
    assert main(["dump", "bytecode", path, "-O0", "--registers", "4"]) == 0
    out = capfd.readouterr().out
    assert "r4" not in out
    assert "push" in out or "store_slot" in out


@pytest.mark.parametrize(
    "words",
    [
        ("bytecode", "--registers", "3"),
        ("bytecode", "--registers", "65"),
        ("bytecode", "--nodes"),
        ("ir", "--registers", "8"),
    ],
)
def test_a_wish_that_a_dump_cannot_grant_is_a_wrong_command_line(words: tuple[str, ...], capfd: Captured) -> None:
    assert main(["dump", words[0], FIB, *words[1:]]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert words[1].removeprefix("--") in err


def test_an_unknown_pass_is_a_wrong_command_line(capfd: Captured) -> None:
    assert main(["dump", "ir", FIB, "--pass", "magic"]) == 2
    assert "const_fold" in capfd.readouterr().err


def test_an_empty_file_is_a_valid_program(write: Write, capfd: Captured) -> None:
    assert main(["run", write("")]) == 0
    assert capfd.readouterr() == ("", "")


def test_standard_input_is_a_program_too(monkeypatch: pytest.MonkeyPatch, capfd: Captured) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'import "io" io.println(1)')))
    assert main(["run", "-"]) == 0
    assert capfd.readouterr().out == "1\n"


MISTAKES = {
    "E0101": ("let a = 1\nlet b = 2 ; 3\n", 2, 11),
    "E0102": ('let a = 1\nlet b = "abc\n', 2, 9),
    "E0204": ("let a = match { true { 1 } }\n", 1, 9),
    "E0307": ("fn f(n:Int) Int { n }\nf(true)\n", 2, 3),
    "E0301": ("let a = b\n", 1, 9),
    "E0302": ("f(1)\n", 1, 1),
    "E0306": ("fn f(n:Int) Int { n }\nf(1 2)\n", 2, 1),
    "E0401": ("let a = 9223372036854775808\n", 1, 9),
}


@pytest.mark.parametrize("code", MISTAKES)
@pytest.mark.parametrize("command", ["run", "check"])
def test_one_mistake_gives_one_diagnostic(code: str, command: str, write: Write, capfd: Captured) -> None:
    text, line, column = MISTAKES[code]
    path = write(text)
    assert main([command, path]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    heads = [shown for shown in err.splitlines() if shown.startswith(f"{path}:")]
    assert len(heads) == 1
    assert heads[0].startswith(f"{path}:{line}:{column}: {code}: ")
    assert "~" in err


def test_two_mistakes_in_two_functions_give_two(write: Write, capfd: Captured) -> None:
    path = write("fn f() Int { a }\nfn g() Int { true }\n")
    assert main(["check", path]) == 1
    codes = [line.split()[1] for line in capfd.readouterr().err.splitlines() if line.startswith(path)]
    assert codes == ["E0301:", "E0317:"]


def test_diagnostics_as_json(write: Write, capfd: Captured) -> None:
    assert main(["check", "--json", write("let a = b\n")]) == 1
    (found,) = json.loads(capfd.readouterr().out)
    assert (found["code"], found["line"], found["column"], found["length"]) == ("E0301", 1, 9, 1)
    assert main(["check", "--json", FIB]) == 0
    assert json.loads(capfd.readouterr().out) == []


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, capfd: Captured) -> None:
    assert main(["run", str(tmp_path / "missing.garden")]) == 1
    assert "missing.garden" in capfd.readouterr().err
    assert main(["run", str(tmp_path)]) == 1
    assert main(["run", "nul\0byte"]) == 1


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path, capfd: Captured) -> None:
    path = tmp_path / "latin.garden"
    path.write_bytes(b"let a = 1\n# \xe4\n")
    assert main(["run", str(path)]) == 1
    assert ":2:3: E0100" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [[], ["run"], ["dump", "nonsense", FIB], ["run", FIB, "-O7"], ["run", FIB, "--alloc", "parse"],
     ["run", FIB, "--alloc", "parse=arena(nothing)"], ["run", FIB, "--alloc", "nowhere=page"],
     ["run", FIB, "--heap-limit", "much"]],
)  # fmt: skip
def test_a_wrong_command_line_exits_with_2(words: list[str], capfd: Captured) -> None:
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err


def test_help_and_version_exit_with_0(capfd: Captured) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    assert "garden" in capfd.readouterr().out


def test_a_trap_is_reported_with_its_position(write: Write, capfd: Captured) -> None:
    path = write('import "io"\nio.println("before")\nfn f(n:Int) Int {\n    1 / n\n}\nf(0)\n')
    assert main(["run", "--backtrace", path]) == 1
    out, err = capfd.readouterr()
    assert out == "before\n"
    assert f"{path}:4:7: T0001: " in err
    assert err.endswith("at:\n  0: entry\n  1: f\n")


ENDLESS = "fn f(n:Int) Int { 1 + f(n + 1) }\nf(0)\n"


def test_exhausting_the_frames_or_the_spill_stack_is_a_trap(write: Write, capfd: Captured) -> None:
    path = write(ENDLESS)
    for options in (["--stack-size", "64M"], ["--stack-size", "4K"]):
        assert main(["run", path, *options, "--alloc-stats"]) == 1
        err = capfd.readouterr().err
        assert f"{path}:1:" in err
        assert "T0002" in err
        assert all(row["live"] == 0 for row in stats(err).values())


def test_exhausting_the_heap_is_a_trap(write: Write, capfd: Captured) -> None:
    path = write('import "str"\nfn f(s:Str) Str { f(str.concat(s s)) }\nf("abcdefgh")\n')
    assert main(["run", path, "--heap-limit", "1M"]) == 1
    assert "T0003" in capfd.readouterr().err


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stage", [*STAGES, SCRATCH])
def test_exhausting_a_stage_is_an_error_of_that_stage(stage: str, engine: str, write: Write, capfd: Captured) -> None:
    kind, spec = ("limit", "limit(64, page)") if stage == "native" else ("stack", "stack(64)")
    status = main(["run", write(SUM), "--engine", engine, "--alloc", f"{stage}={spec}", "--alloc-stats"])
    out, err = capfd.readouterr()
    assert all(row["live"] == 0 for row in stats(err).values())
    if stage in IDLE[engine]:
        assert (status, out) == (0, "6\n")
        return
    assert (status, out) == (1, "")
    if stage == "run" and engine == "jit":
        # It has its memory for registers and frames from the system, and the program is refused any.
        assert "T0003: the allocator of the program is exhausted" in err
        return
    assert f"out of memory in stage {'parse' if stage == SCRATCH else stage}: {kind}: cannot allocate" in err


def test_an_engine_that_cannot_run_says_why(capfd: Captured) -> None:
    command = ["run", FIB, "--alloc", "native=arena(page)"]
    assert main([*command, "--engine", "jit"]) == 1
    assert "garden: the engine jit" in capfd.readouterr().err
    assert main([*command, "--verbose"]) == 0
    out, err = capfd.readouterr()
    assert out == "6765\n"
    assert "garden: the engine jit" in err
    assert main(command) == 0
    assert capfd.readouterr() == ("6765\n", "")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("redirection", "status", "said"),
    [
        (">/dev/full", 1, "garden: cannot write the output: error 28: No space left on device\n"),
        (">&-", 1, "garden: cannot write the output: error 9: Bad file descriptor\n"),
        ("| true", 0, ""),
    ],
)
def test_output_that_cannot_be_written_is_said(
    redirection: str, status: int, said: str, engine: str, write: Write
) -> None:
    path = write('import "io"\nfn f(n:Int) { match { n == 0 {} { io.println(n) f(n - 1) } } }\nf(100000)\n')
    command = f"{sys.executable} -m garden run --engine {engine} {path} {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (status, said)


def test_the_command_is_a_process_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "garden", "run", FIB], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "6765\n", "")


@pytest.mark.parametrize("engine", ENGINES)
def test_time_says_how_long_it_took(engine: str, capfd: Captured) -> None:
    assert main(["run", "--time", "--engine", engine, FIB]) == 0
    out, err = capfd.readouterr()
    assert out == "6765\n"
    assert re.fullmatch(r"garden: compiled in \d+\.\d\d ms, ran in \d+\.\d\d ms\n", err)


def test_ctrl_c_before_the_program_runs_is_no_traceback(capfd: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "read_program", interrupted)
    assert main(["check", FIB]) == 130
    assert capfd.readouterr() == ("", "garden: interrupted\n")
