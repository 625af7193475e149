"""`python -m allocators replay TRACE --alloc SPEC`: replays a recorded trace on an allocator."""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from allocators.errors import AllocError, LayoutError, MisuseError, SpecError, TraceError
from allocators.layout import Layout
from allocators.report import as_html, as_json, as_text
from allocators.report.table import progress_bar
from allocators.spec import parse_spec, spec_table
from allocators.trace.format import FORMATS, read_trace
from allocators.trace.replay import Replay


class Progress:
    """A progress bar, shown on a terminal after half a second, and never elsewhere."""

    def __init__(self, stream: TextIO, total: int) -> None:
        self._stream = stream
        self._total = total
        self._done = 0
        self._shown = False
        self._next = time.monotonic() + 0.5 if total and stream.isatty() else float("inf")

    def lines(self, source: Iterable[str]) -> Iterator[str]:
        """Pass lines through and show progress through the file."""
        for line in source:
            yield line
            self._done += len(line)
            if time.monotonic() >= self._next:
                self._show()
        if self._shown:
            self._stream.write("\r\033[K")
            self._stream.flush()

    def _show(self) -> None:
        share = min(self._done / self._total, 1.0)
        self._stream.write(f"\r{progress_bar(self._done, self._total)} {share:4.0%}")
        self._stream.flush()
        self._shown = True
        self._next = time.monotonic() + 0.1


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns the exit status.

    0 on success, or if the reader of the output has gone away; 1 for a bad trace, an allocator that cannot replay it,
    or output that cannot be written; 2 for a usage error; 130 after Ctrl-C.
    """
    try:
        options = _parser().parse_args(arguments)
        _print(_report(_replay(options), options))
    except SpecError as error:
        _complain(f"--alloc: {error}")
        return 2
    except BrokenPipeError:
        return 0
    except (TraceError, MisuseError, LayoutError, AllocError, OSError) as error:
        _complain(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    return 0


def _complain(message: str) -> None:
    """Print to standard error, unless that is closed or full: the exit status says enough then."""
    try:
        if sys.stderr is not None:
            print(message, file=sys.stderr, flush=True)
    except OSError:
        # Or the interpreter would try again at its end, and change the status.
        sys.stderr = None


def _report(replay: Replay, options: argparse.Namespace) -> str:
    if options.json:
        return as_json(replay.figures())
    if options.html:
        return as_html(replay.figures())
    return f"{as_text(replay.figures())}\n{replay.summary()}"


def _print(text: str) -> None:
    """Write to standard output. Raises OSError on failure; Python then does not try again at exit."""
    try:
        print(text, flush=True)
    except OSError:
        with suppress(OSError, AttributeError):
            # Python flushes the rest at exit, which would fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m allocators", description="Tools for allocators.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    replay = commands.add_parser(
        "replay",
        help="replay a trace on an allocator",
        description="Replay a trace on an allocator, and print its counters and where its memory went.",
        epilog=f"allocators that SPEC can name:\n\n{spec_table()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("trace", help="a trace file, or - for standard input")
    replay.add_argument("--alloc", metavar="SPEC", default="arena(page)", help="the allocator; default %(default)s")
    replay.add_argument("--format", choices=FORMATS, default="", help="format of the trace; detected by default")
    form = replay.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object")
    form.add_argument("--html", action="store_true", help="print one HTML page")
    replay.add_argument(
        "--align", type=_alignment, default=8, help="alignment for trace formats without one; default %(default)s"
    )
    replay.add_argument(
        "--min-align", type=_alignment, default=1, help="minimum alignment of every block; default %(default)s"
    )
    return parser


def _alignment(text: str) -> int:
    try:
        return Layout(0, int(text)).align
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _replay(options: argparse.Namespace) -> Replay:
    replay = Replay(parse_spec(options.alloc), min_align=options.min_align)
    if options.trace == "-":
        if sys.stdin is None:
            raise OSError("standard input is closed")
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        _run(replay, options, sys.stdin, 0)
    else:
        path = Path(options.trace)
        with path.open(encoding="utf-8", errors="replace") as file:
            _run(replay, options, file, path.stat().st_size)
    return replay


def _run(replay: Replay, options: argparse.Namespace, file: TextIO, size: int) -> None:
    lines = Progress(sys.stderr, size).lines(file)
    replay.run(read_trace(lines, name=options.trace, format=options.format, align=options.align))


if __name__ == "__main__":
    sys.exit(main())
