"""Executables do what `garden run` does with the reference engine: output, messages, exit codes.

With GARDEN_LONG=1 in the environment, all test programs that can be built are, at every level; else a sample.
"""

from __future__ import annotations

import os
import pty
import resource
import shutil
import signal
import struct
import subprocess
import time
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from garden.diagnostics import MAX_SHOWN, Diagnostic
from garden.errors import CompileError, Trap
from garden.native.codegen import compiler
from garden.native.codegen.body import field
from garden.native.codegen.system_calls import CARRIED
from garden.native.executable import aot
from garden.native.executable.system import host_object
from garden.native.target import AARCH64, X86_64, compile_text
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.semantics import word_of
from garden.source import Source
from garden.std import STANDARD
from garden.traps import MESSAGES, trap
from garden.vm.heap import DEFAULT_LIMIT
from garden.vm.machine import ReferenceMachine
from tests.support.executables import HOST, Builder, needs_native, run
from tests.support.processes import child
from tests.support.program import Program, load

LONG = os.environ.get("GARDEN_LONG") == "1"
ROOT = Path(__file__).parent.parent / "programs"

FOREVER = "fn loop(n:Int) Int { match { n == -1 { 0 } { loop(n + 1) } } }\nloop(0)\n"
TALKING = 'import "io"\nfn talk(n:Int) Int { io.println(n)\n    match { n == -1 { 0 } { talk(n + 1) } } }\ntalk(0)\n'
DEEP = """import "io"
fn down(n:Int) Int { match { n == 0 { 0 } { 1 + down(n - 1) } } }
io.println(down(10000000))
"""


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("executables"))


def can_be_built(path: Path) -> bool:
    """Whether a program runs, on standard packages that need no Python."""
    text = path.read_bytes()
    claims = load(path).claims
    return claims.mode == "run" and not claims.errors and not any(word in text for word in (b"test/", b"syscall"))


PROGRAMS = [path for path in sorted(ROOT.rglob("*.garden")) if can_be_built(path)]


def cases(step: int) -> list[tuple[Path, int]]:
    """Programs and levels: all, or so few of each folder that one in `step` is there."""
    if LONG:
        return [(path, level) for path in PROGRAMS for level in load(path).claims.levels]
    chosen = PROGRAMS[::step]
    levels = [load(path).claims.levels for path in chosen]
    return [(path, levels[index][index % len(levels[index])]) for index, path in enumerate(chosen)]


def name_of(case: object) -> str:
    return case.stem if isinstance(case, Path) else f"O{case}"


def reference(program: Program, level: int) -> tuple[int, bytes, str]:
    """Exit code, output and message of a program with the reference engine."""
    output = bytearray()
    limit = program.claims.heap_limit or DEFAULT_LIMIT
    with (
        StageAllocators() as allocators,
        Compilation(program.source, allocators, STANDARD, level=level) as compilation,
        ReferenceMachine(
            compilation.emit(), allocators["run"], RunOptions(write=output.extend, heap_limit=limit)
        ) as machine,
    ):
        try:
            machine.run()
        except Trap as error:
            shown = Diagnostic(error.code, error.message, error.offset, 0).render(program.source)
            return 1, bytes(output), shown + "\n"
    return 0, bytes(output), ""


def check(builder: Builder, path: Path, level: int, target: str | None) -> None:
    program = load(path)
    limit = program.claims.heap_limit or DEFAULT_LIMIT
    found = run(builder.build(program.source, target, level, heap_limit=limit), target)
    status, output, message = reference(program, level)
    assert (found.returncode, found.stdout) == (status, output)
    shown = found.stderr.decode()
    if program.claims.trap is not None and program.claims.trap.code == "T0002":
        # Each engine has its own limit, and says which.
        shown, message = (text.partition("stack overflow")[0] for text in (shown, message))
    assert shown == message


@needs_native
@pytest.mark.parametrize(("path", "level"), cases(6), ids=name_of)
def test_an_executable_does_what_the_reference_engine_does(builder: Builder, path: Path, level: int) -> None:
    check(builder, path, level, HOST)


@pytest.mark.skipif(HOST == AARCH64, reason="executables for AArch64 run here without an emulator")
@pytest.mark.parametrize(("path", "level"), cases(24), ids=name_of)
def test_an_executable_for_aarch64_does_so_in_an_emulator(builder: Builder, path: Path, level: int) -> None:
    check(builder, path, level, AARCH64)


# Messages.

#: Lines that are hard to show: what begins a line, what is in it, and how it ends.
HARD = "\n".join(
    [
        "# \t tabs\t and äöü and 🌱",
        "# a line with a carriage return\r",
        "",
        "# " + "long ä " * MAX_SHOWN,
        "# " + "🌱" * MAX_SHOWN + " \t " + "é" * MAX_SHOWN,
        "#" * (MAX_SHOWN - 1),
        "#" * MAX_SHOWN,
        "#" * (MAX_SHOWN + 1) + "\r",
        "0",
    ]
)
#: An entry that reads what to end with, and where, from the standard input: five words.
INPUT = f"""
declare hidden i64 @garden_system(i64, i64, i64, i64, i64, i64)
define hidden i64 @"call.1"() {{
  %place = ptrtoint ptr @arguments to i64
  %got = call i64 @garden_system(i64 {63 if HOST == AARCH64 else 0}, i64 0, i64 %place, i64 40, i64 0, i64 0)
  %message = load i64, ptr @arguments
  %where = load i64, ptr getelementptr (i64, ptr @arguments, i64 1)
  %a = load i64, ptr getelementptr (i64, ptr @arguments, i64 2)
  %b = load i64, ptr getelementptr (i64, ptr @arguments, i64 3)
  %c = load i64, ptr getelementptr (i64, ptr @arguments, i64 4)
  store i64 %c, ptr {field("trap_c")}
  call fastcc void @garden_trap(i64 %message, i64 %where, i64 %a, i64 %b)
  unreachable
}}
"""


def with_input(text: str) -> str:
    """The text of a module with another entry."""
    before, found, after = text.partition('@"call.1"()')
    assert found
    return f'{before}@"replaced"(){after}{INPUT}'


@pytest.fixture(scope="module")
def hard_source() -> Source:
    return Source("härd\tname.garden", b"\xef\xbb\xbf" + HARD.encode())


@pytest.fixture(scope="module")
def trapping(builder: Builder, hard_source: Source) -> Path:
    """An executable that ends as its input says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "compile_text", lambda text, target: compile_text(with_input(text), target))
        return builder.build(hard_source)


#: Where a character begins, or the source ends.
OFFSETS = [index for index, byte in enumerate(HARD.encode() + b"0") if byte & 0xC0 != 0x80 and byte not in b"\r\n"]
WORDS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-20, 20),
    st.floats().map(word_of),
    st.integers(-330, 310).map(lambda power: word_of(float(f"1e{power}"))),
    st.integers(0, 10**17).map(lambda digits: word_of(digits * 1e-5)),
)


@needs_native
@settings(max_examples=2000 if LONG else 150, deadline=None)
@given(st.integers(1, len(MESSAGES)), st.sampled_from(OFFSETS), WORDS, WORDS, WORDS)
def test_every_message_is_shown_as_python_shows_it(
    trapping: Path, hard_source: Source, message: int, offset: int, a: int, b: int, c: int
) -> None:
    found = run(trapping, input=struct.pack("<5q", message, offset, a, b, c))
    error = trap(message, a, b, c)
    assert found.stderr.decode() == Diagnostic(error.code, error.message, offset, 0).render(hard_source) + "\n"
    assert (found.returncode, found.stdout) == (1, b"")


def on_terminal(path: Path, **options: Any) -> str:
    """What an executable says to a terminal that is its standard error; it has room for all of it."""
    terminal, error = pty.openpty()
    try:
        tty.setraw(error)
        subprocess.run([path], stdout=subprocess.DEVNULL, stderr=error, timeout=60, **options)
        return os.read(terminal, 4096).decode()
    finally:
        os.close(error)
        os.close(terminal)


@needs_native
@pytest.mark.parametrize(
    ("variables", "color"),
    [
        ({}, True),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLO": "1", "NO_COLORS": "1", "A": "NO_COLOR=1"}, True),
    ],
)
def test_a_terminal_gets_the_colours_that_python_shows(
    trapping: Path, hard_source: Source, variables: dict[str, str], color: bool
) -> None:
    for message in range(1, len(MESSAGES) + 1):
        words = (message, OFFSETS[message], 1, 2, 3)
        error = trap(*words[:1], *words[2:])
        expected = Diagnostic(error.code, error.message, words[1], 0).render(hard_source, color=color) + "\n"
        assert on_terminal(trapping, input=struct.pack("<5q", *words), env=variables) == expected


@needs_native
@pytest.mark.parametrize("length", [1000, 1270, 1290, 4000])
def test_a_name_of_any_length_is_shown(builder: Builder, length: int) -> None:
    # Each of these bytes takes six characters.
    source = Source("\udcff" * length, b"1 / 0\n")
    expected = Diagnostic("T0001", "division by zero", 2, 0).render(source) + "\n"
    assert run(builder.build(source)).stderr == expected.encode(errors="backslashreplace")


# Calls that only Python can serve.


def refused(builder: Builder, source: str) -> list[str]:
    with pytest.raises(CompileError) as info:
        builder.build(source, X86_64)
    return [diagnostic.render(Source("p", source.encode())) for diagnostic in info.value.diagnostics]


def test_a_call_that_needs_python_is_refused_where_it_stands(builder: Builder) -> None:
    source = 'import ("io" "unsafe/syscall")\nfn name() Str { syscall.uname().sysname }\nio.println(name())\n'
    (diagnostic,) = refused(builder, source + "io.println(1 / 0)\n")
    assert diagnostic.split("\n") == [
        "p:2:25: E0501: `unsafe/syscall.uname` needs Python, which an executable does without",
        "fn name() Str { syscall.uname().sysname }",
        "                        ~~~~~",
        "help: `garden run` can call it",
    ]


def test_all_calls_that_need_python_are_refused_in_source_order(builder: Builder) -> None:
    source = 'import ("io" "unsafe/syscall")\nfn b() Str { syscall.uname().machine }\n'
    source += "io.println(syscall.uname().sysname)\nio.println(b())\n"
    assert [line.split(": ")[0] for line in refused(builder, source)] == ["p:2:22", "p:3:20"]


@needs_native
def test_a_call_that_nothing_leads_to_may_need_python(builder: Builder) -> None:
    source = 'import "unsafe/syscall"\nfn never() Str { syscall.uname().sysname }\n1\n'
    assert run(builder.build(source)).returncode == 0


# Limits.


@needs_native
def test_ten_million_calls_are_active_on_a_large_stack(builder: Builder) -> None:
    assert run(builder.build(DEEP, stack_bytes=1 << 30)).stdout == b"10000000\n"


@needs_native
def test_the_stack_of_an_executable_is_as_large_as_one_says(builder: Builder) -> None:
    found = run(builder.build(DEEP, stack_bytes=1 << 20))
    assert found.returncode == 1
    assert found.stderr.startswith(b"program.garden:2:49: T0002: stack overflow: ")


@needs_native
def test_output_of_any_length_is_written_whole(builder: Builder) -> None:
    source = """import ("io" "str")
    fn count(n:Int last:Int) Int {
        match {
            n == last { n }
            {
                io.print(str.repeat("ab" n % 10000))
                io.println(n)
                count(n + 7 last)
            }
        }
    }
    count(0 21000)
    """
    expected = "".join(["ab" * (n % 10000) + f"{n}\n" for n in range(0, 21000, 7)])
    assert run(builder.build(source)).stdout == expected.encode()


@needs_native
@pytest.mark.parametrize("address_space", [1 << 27, 400 << 20])
def test_a_system_without_memory_is_no_crash(builder: Builder, address_space: int) -> None:
    source = 'import "arr"\nfn fill(n:Int) Int { fill(n + arr.len(arr.range(0 1000))) }\nfill(0)\n'
    path = builder.build(source)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))

    found = run(path, preexec_fn=limit)
    assert found.returncode == 1
    if address_space == 1 << 27:
        assert found.stderr == b"garden: no memory for the stack\n"
    else:
        assert b"2:43: T0003: the system has no memory for 16777216 bytes more\n" in found.stderr


# The world around it.


def caught(process: subprocess.Popen[bytes], what: str) -> bool:
    """Whether SIGINT is in a set of signals of a process: `SigCgt` or `SigIgn`."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith(what)]
    return bool(int(line.split()[1], 16) & 1 << signal.SIGINT - 1)


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError("it did not happen within ten seconds")


@needs_native
def test_ctrl_c_ends_an_executable_where_it_is(builder: Builder) -> None:
    with child([builder.build(FOREVER)], stderr=subprocess.PIPE) as process:
        wait_until(lambda: caught(process, "SigCgt"))
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=20)
    assert process.returncode == 1
    assert message.startswith(b"program.garden:1:46: T0007: interrupted\n")


@needs_native
def test_ctrl_c_ends_an_executable_that_waits_for_its_reader(builder: Builder) -> None:
    with child([builder.build(TALKING)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # Asleep: nobody reads, and the pipe is full.
        wait_until(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert process.returncode == 1
        assert process.stderr is not None
        assert b": T0007: interrupted\n" in process.stderr.read()


@needs_native
def test_an_executable_that_ignores_ctrl_c_goes_on_doing_so(builder: Builder) -> None:
    path = builder.build(FOREVER)
    with child([path], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) as process:
        # The handler is there for a moment at most.
        wait_until(lambda: seconds_of(process) > 0.05)
        assert caught(process, "SigIgn")
        process.send_signal(signal.SIGINT)
        before = seconds_of(process)
        wait_until(lambda: seconds_of(process) > before)
        assert process.poll() is None
        process.kill()


def seconds_of(process: subprocess.Popen[bytes]) -> float:
    """How long a process has computed."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@needs_native
def test_output_that_cannot_be_written_ends_the_run(builder: Builder) -> None:
    path = builder.build(TALKING)
    closed = run_to(path, lambda: os.close(1))
    assert closed == (1, b"garden: cannot write the output: error 9: Bad file descriptor\n")
    with open("/dev/full", "wb") as full:
        found = subprocess.run([path], stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert (found.returncode, found.stderr) == (
        1,
        b"garden: cannot write the output: error 28: No space left on device\n",
    )


def run_to(path: Path, before: Callable[[], object]) -> tuple[int, bytes]:
    found = subprocess.run([path], stderr=subprocess.PIPE, timeout=60, preexec_fn=before)
    return found.returncode, found.stderr


@needs_native
@pytest.mark.parametrize("ignored", [False, True])
def test_a_reader_that_goes_away_ends_the_run(builder: Builder, ignored: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        [builder.build(TALKING)], stdout=writing, stderr=subprocess.PIPE, timeout=60, restore_signals=not ignored
    )
    os.close(writing)
    assert (found.returncode, found.stderr) == (141, b"")


@needs_native
def test_a_trap_that_cannot_be_shown_still_has_its_exit_code(builder: Builder) -> None:
    path = builder.build('import "io"\nio.println("before")\nio.println(1 / 0)\n')
    found = subprocess.run([path], stdout=subprocess.PIPE, timeout=60, preexec_fn=lambda: os.close(2))
    assert (found.returncode, found.stdout) == (1, b"before\n")


@needs_native
def test_an_executable_needs_nothing_of_its_surroundings(builder: Builder, tmp_path: Path) -> None:
    path = builder.build('import "io"\nio.println("alone")\n')
    found = run(path, env={}, cwd=tmp_path, close_fds=True, stdin=subprocess.DEVNULL)
    assert found.stdout == b"alone\n"
    data = path.read_bytes()
    count = struct.unpack_from("<H", data, 56)[0]
    kinds = [struct.unpack_from("<II", data, 64 + 56 * index) for index in range(count)]
    # Two segments to load, of which none can be both written and executed, and a stack that cannot be executed.
    assert kinds == [(1, 5), (1, 6), (0x6474E551, 6)]


# The file.


@pytest.mark.parametrize("target", [X86_64, AARCH64])
def test_the_same_program_makes_the_same_file(builder: Builder, target: str) -> None:
    assert builder.build(FOREVER, target).read_bytes() == builder.build(FOREVER, target).read_bytes()


@pytest.mark.parametrize("target", [X86_64, AARCH64])
def test_a_linker_makes_an_executable_of_the_objects_as_well(target: str, tmp_path: Path) -> None:
    prefix = {X86_64: "x86_64-linux-gnu-", AARCH64: "aarch64-linux-gnu-"}[target]
    linker = shutil.which(f"{prefix}gcc") or (shutil.which("cc") if target == HOST else None)
    if linker is None:
        pytest.skip(f"there is no C compiler for {target}")
    source = Source("linked", b'import "io"\nio.println("linked")\nio.println(1 / (2 - 2))\n')
    with StageAllocators() as allocators, Compilation(source, allocators, STANDARD) as compilation:
        program = compilation.generate(lambda ir, scratch: compiler.compile_program(ir, scratch, target, whole=False))
    words: dict[str, object] = dict.fromkeys(CARRIED, 0)
    words |= {"stack_bytes": 1 << 20, "reserve": program.reserve, "heap_limit": 1 << 20}
    words |= {"constants": '"g.strings"', "constant_words": program.string_words, "entry": '"call.1"'}
    words |= {"source": "source", "source_bytes": len(source.text), "name": "name", "name_bytes": 6}
    lines = [f'.globl "executable.{name}"\n"executable.{name}": .quad {value}' for name, value in words.items()]
    text = source.text.decode().replace("\n", "\\n").replace('"', '\\"')
    lines += [f'source: .ascii "{text}"', 'name: .ascii "linked"']
    (tmp_path / "words.s").write_text("\n".join([".data", *lines, ""]))
    (tmp_path / "linked.o").write_bytes(program.object)
    (tmp_path / "host.o").write_bytes(host_object(target))
    path = tmp_path / "linked"
    files = [tmp_path / name for name in ("linked.o", "host.o", "words.s")]
    subprocess.run([linker, "-static", "-nostdlib", "-o", path, *files], check=True, timeout=60)
    found = run(path, target)
    assert (found.returncode, found.stdout) == (1, b"linked\n")
    assert found.stderr.startswith(b"linked:3:14: T0001: division by zero\n")


@needs_native
def test_a_file_that_is_running_is_replaced(builder: Builder, tmp_path: Path) -> None:
    path = tmp_path / "running"
    aot.write_executable(str(path), builder.build(FOREVER).read_bytes())
    assert path.stat().st_mode & 0o111 == 0o111 & ~current_umask()
    with child([path]) as process:
        aot.write_executable(str(path), b"another")
        assert process.poll() is None
        process.kill()
    assert path.read_bytes() == b"another"
    assert list(tmp_path.iterdir()) == [path]


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"kept")
    with pytest.raises(TypeError):
        aot.write_executable(str(path), None)  # type: ignore[arg-type]
    assert path.read_bytes() == b"kept"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        aot.write_executable(str(tmp_path / "missing" / "out"), b"")


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, link, real = tmp_path / "pipe", tmp_path / "link", tmp_path / "real"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    aot.write_executable(str(pipe), b"content")
    assert os.read(reading, 100) == b"content"
    os.close(reading)
    link.symlink_to(real)
    real.write_bytes(b"old")
    aot.write_executable(str(link), b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
