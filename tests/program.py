"""Test programs: garden sources that carry their own expectations as comments.

Directives stand alone on lines before the first code:

    #@ mode: check           stop after checking (default: run)
    #@ opt: 1                optimisation levels to run at (default: 0 1)
    #@ heap-limit: 1048576   bytes the program may use
    #@ backtrace: a b c      with the trap, these active functions, entry first

Expectations stand at the end of a line, or alone on the line before the one they are about:

    # expect: text               the next line of output; all output must be claimed
    # error: [E0301]             a diagnostic on this line; optionally `COLUMN [CODE] "part of the message"`
    # runtime-error: [T0001]     the run ends with this trap, on this line

Any other comment that looks like one of these (`# word: ...`) is a mistake in the test.
"""

from __future__ import annotations

import re
from pathlib import Path

from garden.errors import CompileError, Trap
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD
from garden.vm.machine import Machine

LEVELS = (0, 1)

_DIRECTIVE = re.compile(r"^#@\s*([\w-]+):\s*(.*?)\s*$")
_ANNOTATION = re.compile(r"#\s*([a-z][a-z-]*):(?:\s(.*))?$")
_CLAIM = re.compile(r'^(?:(\d+)\s+)?\[(\w+)\](?:\s+"(.*)")?$')


class AnnotationError(Exception):
    """A test program whose annotations make no sense."""


class Claim:
    """A diagnostic or trap that a program claims to cause."""

    def __init__(self, path: str, line: int, text: str) -> None:
        match = _CLAIM.match(text)
        if match is None:
            raise AnnotationError(
                f'{path}:{line}: want [CODE], optionally with a column before and a "part" after: {text}'
            )
        self.line = line
        self.column = int(match[1]) if match[1] else None
        self.code = match[2]
        self.part = match[3] or ""

    def fits(self, line: int, column: int, code: str, message: str) -> bool:
        """Whether a diagnostic is what this claims."""
        return line == self.line and code == self.code and self.column in (None, column) and self.part in message

    def __repr__(self) -> str:
        return f"line {self.line}: [{self.code}] {self.part}"


class Program:
    """A test program and what it claims."""

    def __init__(self, name: str, text: str, first_line: int = 1) -> None:
        self.name = name
        self.text = text
        self.mode = "run"
        self.levels: tuple[int, ...] = LEVELS
        self.heap_limit: int | None = None
        self.backtrace: tuple[str, ...] | None = None
        self.output: list[str] = []
        self.errors: list[Claim] = []
        self.trap: Claim | None = None
        in_header = True
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{name}:{first_line + number - 1}"
            stripped = line.strip()
            directive = _DIRECTIVE.match(stripped)
            if directive:
                if not in_header:
                    raise AnnotationError(f"{where}: a directive after the first code line")
                self._direct(where, directive[1], directive[2])
                continue
            if stripped.startswith("#@"):
                raise AnnotationError(f"{where}: malformed directive {stripped!r}")
            if stripped and not stripped.startswith("#"):
                in_header = False
            annotation = _ANNOTATION.search(line)
            if annotation:
                alone = stripped.startswith("#")
                self._annotate(where, annotation[1], annotation[2] or "", number + 1 if alone else number)

    def _direct(self, where: str, key: str, value: str) -> None:
        if key == "mode" and value in ("run", "check"):
            self.mode = value
        elif key == "opt" and all(word in ("0", "1") for word in value.split()):
            self.levels = tuple(int(word) for word in value.split())
        elif key == "heap-limit" and value.isdecimal():
            self.heap_limit = int(value)
        elif key == "backtrace":
            self.backtrace = tuple(value.split())
        else:
            raise AnnotationError(f"{where}: unknown directive {key}: {value}")

    def _annotate(self, where: str, key: str, value: str, line: int) -> None:
        if key == "expect":
            self.output.append(value)
        elif key == "error":
            self.errors.append(Claim(self.name, line, value))
        elif key == "runtime-error":
            if self.trap is not None:
                raise AnnotationError(f"{where}: a run ends with one trap only")
            self.trap = Claim(self.name, line, value)
        else:
            raise AnnotationError(f"{where}: unknown annotation {key!r}")

    def run(self, level: int) -> None:
        """Compile and run at one optimisation level; AssertionError where a claim does not hold."""
        source = Source(self.name, self.text.encode())
        with StageAllocators() as plain:
            allocators = plain.metered()
            with Compilation(source, allocators, STANDARD, level=level) as compilation:
                try:
                    compilation.lower()
                except CompileError as error:
                    self._check_errors(source, error)
                else:
                    assert not self.errors, f"no diagnostics, but claimed: {self.errors}"
                    if self.mode == "run":
                        self._check_run(compilation)
            live = {stage: metric.live_bytes for stage, metric in allocators.items()}  # type: ignore[attr-defined]
        assert not any(live.values()), f"bytes still live: {live}"

    def _check_errors(self, source: Source, error: CompileError) -> None:
        claims = list(self.errors)
        for diagnostic in error.diagnostics:
            line, column = source.position(diagnostic.start)
            for claim in claims:
                if claim.fits(line, column, diagnostic.code, diagnostic.message):
                    claims.remove(claim)
                    break
            else:
                raise AssertionError(f"not claimed:\n{diagnostic.render(source)}")
        assert not claims, f"claimed, but not reported: {claims}"

    def _check_run(self, compilation: Compilation) -> None:
        output = bytearray()
        trap: Trap | None = None
        code = compilation.emit()
        limits = {} if self.heap_limit is None else {"heap_limit": self.heap_limit}
        backtrace = self.backtrace is not None
        with Machine(
            code, compilation.allocators["run"], write=output.extend, backtrace=backtrace, **limits
        ) as machine:
            try:
                machine.run()
            except Trap as caught:
                trap = caught
        assert output.decode().splitlines() == self.output
        if trap is None:
            assert self.trap is None, f"no trap, but claimed: {self.trap}"
            return
        line, column = compilation.source.position(trap.offset)
        assert self.trap is not None, f"not claimed: {trap} at {line}:{column}"
        assert self.trap.fits(line, column, trap.code, trap.message), f"{trap} at {line}:{column}, not {self.trap}"
        if self.backtrace is not None:
            assert trap.backtrace == self.backtrace


def load(path: Path) -> Program:
    """The test program in a file."""
    return Program(path.as_posix(), path.read_text())
