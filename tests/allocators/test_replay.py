"""Replaying traces: the counts of recordings of real programs, and the command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from allocators import Arena, Layout, MetricAllocator, MisuseError, PageAlloc, StackAlloc, TracingAllocator
from allocators.__main__ import Progress, main
from allocators.spec import parse_spec
from allocators.trace.format import HEADER, read_trace
from allocators.trace.replay import Replay

ROOT = Path(__file__).parent.parent.parent
#: Where recordings of real programs lie, if anywhere: they are not ours to ship.
TRACES = Path(os.environ.get("ALLOCATORS_TRACES", ROOT.parent / "shared" / "traces"))


def trace(name: str) -> Path:
    path = TRACES / f"{name}.trace"
    if not path.exists():
        pytest.skip(f"no {path.name} in {TRACES}; set ALLOCATORS_TRACES to a directory with traces of wee_alloc")
    return path


def replay(text: str, spec: str, **options: object) -> Replay:
    done = Replay(parse_spec(spec))
    done.run(read_trace(text.splitlines(), **options))  # type: ignore[arg-type]
    return done


def replay_file(name: str, spec: str, align: int) -> Replay:
    done = Replay(parse_spec(spec))
    with trace(name).open() as file:
        done.run(read_trace(file, align=align))
    return done


@pytest.mark.parametrize(
    ("name", "operations", "allocations", "frees", "total", "largest", "peak", "peak_blocks", "live", "live_blocks"),
    [
        ("cpp-demangle", 102, 62, 40, 20486, 8192, 16197, 46, 14613, 22),
        ("dogfood", 46076, 32472, 13604, 2787815, 198802, 1359176, 18869, 1185922, 18868),
        ("ffmpeg", 3637, 1832, 1805, 784356, 72704, 604146, 1167, 32748, 27),
        ("grep-random-data", 198, 122, 76, 66481, 36872, 53926, 89, 49812, 46),
        ("grep-recursive", 1276, 657, 619, 1772125, 36872, 117450, 169, 48680, 38),
        ("ls", 82, 45, 37, 61858, 32816, 55989, 40, 19535, 8),
    ],
)
@pytest.mark.parametrize("spec", ["arena(page)", "bump(page)", "stack(8M)"])
def test_a_metric_counts_what_the_program_did(
    spec: str,
    name: str,
    operations: int,
    allocations: int,
    frees: int,
    total: int,
    largest: int,
    peak: int,
    peak_blocks: int,
    live: int,
    live_blocks: int,
) -> None:
    done = replay_file(name, spec, 8)
    counters = done.metric.counters
    assert done.operations == operations
    assert (counters.total_blocks, counters.frees, counters.resizes) == (allocations, frees, 0)
    assert (counters.total_bytes, counters.peak_bytes, counters.current_bytes) == (total, peak, live)
    assert (counters.peak_blocks, counters.current_blocks) == (peak_blocks, live_blocks)
    assert max(done.metric.histogram) >= largest > max(done.metric.histogram) // 2
    assert done.metric.histogram.get(0, 0) == (2 if name.startswith("grep") else 0)
    done.metric.close()


@pytest.mark.parametrize(
    ("name", "chunks", "allocated", "used", "most_used"),
    [
        ("cpp-demangle", 2, 49024, 18976, 19040),
        ("dogfood", 7, 2080320, 1803616, 1975776),
        ("ffmpeg", 5, 1121984, 673309, 673312),
        ("grep-random-data", 3, 114496, 63816, 63816),
        ("grep-recursive", 7, 2080320, 1755544, 1755824),
        ("ls", 3, 114496, 56824, 60920),
    ],
)
def test_the_arena_takes_what_the_arena_of_oxc_takes(
    name: str, chunks: int, allocated: int, used: int, most_used: int
) -> None:
    done = replay_file(name, "arena(page)", 8)
    arena = done.metric.parent
    assert isinstance(arena, Arena)
    assert len(list(arena.chunks())) == chunks
    assert (arena.allocated_bytes, arena.used_bytes, done.most_used) == (allocated, used, most_used)
    waste = arena.waste()
    assert waste.live == done.metric.live_bytes
    assert waste.live + waste.dead + waste.padding == used
    done.metric.close()


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("cpp-demangle", (18938, 18968, 19264)),
        ("grep-random-data", (63592, 63792, 64112)),
        ("ls", (56733, 56816, 56960)),
    ],
)
def test_so_it_does_for_every_minimum_alignment(name: str, used: tuple[int, int, int]) -> None:
    for min_align, want in zip((1, 8, 16), used, strict=True):
        done = replay_file(name, f"arena(page, min_align={min_align})", 1)
        assert done.metric.parent.used_bytes == want, min_align


REP = "4\n9\na 0 100\na 1 50\nr 0 200\nr 2 10\nr 1 20\nf 1\nf -1\nr 0 200\nf 0\n"


def test_reallocations_are_counted_by_whether_they_moved() -> None:
    done = replay(REP, "bump(page)")
    # Block 0 has one behind it and moves, block 1 shrinks, and the last one has the size that it had.
    assert (done.moved, done.stayed) == (1, 2)
    counters = done.metric.counters
    assert (counters.total_blocks, counters.frees, counters.resizes) == (3, 2, 3)
    assert (counters.total_bytes, counters.current_bytes) == (260, 10)


def test_what_was_recorded_replays_to_the_same_counts() -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    recorder = TracingAllocator(metric)
    blocks = [recorder.allocate(Layout(size, 16)) for size in range(20)]
    for number, block in enumerate(blocks):
        if number % 3 == 0:
            recorder.deallocate(block, Layout(number, 16))
        elif number % 3 == 1:
            recorder.grow_zeroed(block, Layout(number, 16), Layout(3 * number, 32))
        else:
            recorder.shrink(block, Layout(number, 16), Layout(1, 8))
    with recorder.scope():
        recorder.allocate_zeroed(Layout(1000, 8))
        with recorder.scope():
            recorder.allocate(Layout(1000, 8))
    for spec in ("arena(page)", "bump(page)", "stack(64K)"):
        done = Replay(parse_spec(spec))
        done.run(read_trace(recorder.trace.lines()))
        assert done.metric.counters.as_dict() == metric.counters.as_dict(), spec
    recorder.reset()
    done = Replay(parse_spec("arena(page)"))
    done.run(read_trace(recorder.trace.lines()))
    assert done.metric.counters.as_dict() == metric.counters.as_dict()


def test_requests_that_are_refused_are_left_out_with_all_that_follows_from_them() -> None:
    text = f"{HEADER}\na 0 100 8\na 1 100000 8\ng 1 200000 8\ng 0 50000 8\nf 1\nf 0\n! a 7 8\n"
    done = replay(text, "stack(1K)")
    assert (done.operations, done.refused, done.skipped, done.refused_in_trace) == (7, 2, 2, 1)
    assert done.metric.counters.failures == 2
    assert done.metric.live_blocks == 0


def test_an_operation_that_the_allocator_does_not_offer_is_named() -> None:
    with pytest.raises(MisuseError, match="operation 1, <Operation c"):
        replay(f"{HEADER}\na 0 8 8\nc\n", "page")


def test_alignments_can_be_raised() -> None:
    done = Replay(StackAlloc(bytearray(4096)), min_align=64)
    done.run(read_trace([HEADER, "a 0 8 8", "a 1 8 256", "a 2 8 1"]))
    assert [block.address % layout.align for block, layout in done._live.values()] == [0, 0, 0]
    assert [layout.align for _block, layout in done._live.values()] == [64, 256, 64]


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_the_command_prints_metrics_and_waste(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", write(tmp_path / "a.rep", REP), "--alloc", "arena(page, min_align=8)"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("metric(arena(page, min_align=8))\n")
    for line in ("2 frees, 3 resizes, 0 failures", "where the 16,384 bytes of arena(page, min_align=8) are"):
        assert line in out
    assert "8 operations in " in out
    assert "1 resized blocks moved, 2 stayed" in out
    assert err == ""


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.trace", "Alloc(100),\nAlloc(28),\nFree(1),\n")
    assert main(["replay", path, "--json", "--align", "32", "--alloc", "bump(page)"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["counters"]["current_bytes"] == 100
    assert figures["counters"]["peak_bytes"] == 128
    assert figures["histogram"] == [{"up_to": 32, "blocks": 1}, {"up_to": 128, "blocks": 1}]
    assert figures["waste"][0]["allocator"] == "bump(page)"
    assert figures["replay"]["most_used"] == 128 + 28
    assert figures["replay"]["operations"] == 3


def test_the_command_prints_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.trace", "Alloc(100),\nFree(0),\n")
    assert main(["replay", path, "--html"]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).tag.endswith("html")


@pytest.mark.parametrize(
    ("arguments", "text", "status", "message"),
    [
        ([], "Alloc(8),\nFree(3),\n", 1, ":2: allocation 3 is freed, but only 1 have been made"),
        ([], "what\n", 1, ":1: no known trace format begins with 'what'"),
        (["--alloc", "arean(page)"], "Alloc(8),\n", 2, "did you mean 'arena'?\n  arean(page)\n  ^^^^^"),
        (["--alloc", "page"], f"{HEADER}\nc\n", 1, "page has no checkpoints"),
        (["--format", "rep"], "Alloc(8),\n", 1, "want a header"),
    ],
)
def test_what_the_command_cannot_do_it_says(
    arguments: list[str], text: str, status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", write(tmp_path / "t", text), *arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_missing_file_and_a_wrong_alignment_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "/nowhere/at/all"]) == 1
    assert "No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["replay", "x", "--align", "3"])
    assert caught.value.code == 2
    assert "alignment must be a power of two up to 2**62, not 3" in capsys.readouterr().err


def test_the_module_runs_as_a_command_and_reads_standard_input() -> None:
    command = [sys.executable, "-m", "allocators", "replay", "-", "--json", "--alloc", "stack(4K)"]
    done = subprocess.run(
        command, input="Alloc(8),\n", capture_output=True, text=True, cwd=ROOT, check=True, timeout=60
    )
    assert json.loads(done.stdout)["counters"]["total_blocks"] == 1
    assert done.stderr == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_only_and_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        now[0] = 0.0
        for _line in Progress(stream, 1000).lines(["x" * 100] * 10):
            now[0] += 0.2
    assert "] 100%" in terminal.getvalue()
    assert terminal.getvalue().startswith("\r[" + "#" * 12 + "." * 28 + "]  30%")
    assert terminal.getvalue().endswith("\r\033[K")
    assert file.getvalue() == ""


def test_a_short_replay_shows_no_progress() -> None:
    terminal = Terminal()
    assert list(Progress(terminal, 10).lines(["a", "b"])) == ["a", "b"]
    assert terminal.getvalue() == ""


def run(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "allocators", "replay", *arguments], timeout=60, **options)


@pytest.fixture
def trace_file(tmp_path: Path) -> str:
    path = tmp_path / "trace"
    path.write_text("allocators trace 1\na 0 8 8\n")
    return str(path)


@pytest.mark.parametrize("form", [[], ["--json"], ["--html"]])
def test_a_reader_that_has_gone_away_is_no_error(trace_file: str, form: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run([trace_file, *form], stdout=writer, stderr=subprocess.PIPE)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_line(trace_file: str) -> None:
    with open("/dev/full", "wb") as full:
        done = run([trace_file], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (b"allocators trace 1\na 0 \xff 8\n", b"must be a number"),
        ("²\n".encode(), b"no known trace format"),
        (b"9" * 5000 + b"\n1\na 0 8\n", b"must be a number"),
        (b"allocators trace 1\na 0 99999999999999999999 8\n", b"size"),
    ],
)
def test_nonsense_on_standard_input_is_one_line(trace: bytes, message: bytes) -> None:
    done = run(["-"], input=trace, capture_output=True)
    assert done.returncode == 1
    assert message in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_closed_or_full_standard_error_does_not_change_the_status(redirection: str, tmp_path: Path) -> None:
    command = f'exec "$0" -m allocators replay "$1" {redirection}'
    missing = str(tmp_path / "missing")
    finished = subprocess.run(["sh", "-c", command, sys.executable, missing], capture_output=True, timeout=60)
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, b"", b"")


def test_standard_input_can_be_closed(trace_file: str) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -m allocators replay - <&-', sys.executable], timeout=60, capture_output=True
    )
    assert (done.returncode, done.stderr) == (1, b"error: standard input is closed\n")


def test_an_alignment_that_no_block_can_have_is_a_wrong_call(trace_file: str) -> None:
    for align in ("3", "x", "0", str(1 << 70)):
        done = run([trace_file, "--min-align", align], capture_output=True)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr
