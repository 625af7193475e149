"""Test programs: garden sources that carry their own expectations as comments (see `annotations`).

A program runs on every engine and at every optimisation level, its memory watched by a `DebugAllocator` a stage, the
IR verified after every pass, and the code as well. *Snapshots* are files beside the program, for those few where the
exact text is the point: `name.stderr` has the rendered diagnostics, or the trap, `name.ir` and `name.bytecode` what -O1
makes of it. `pytest --bless` writes them.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from difflib import unified_diff
from pathlib import Path
from types import TracebackType
from typing import Any

from allocators import Allocator, Arena, PageAlloc
from allocators.adaptors.debug import DebugAllocator
from garden.bytecode.disassemble import disassemble
from garden.bytecode.ops import REGISTERS
from garden.bytecode.verifier import verify as verify_code
from garden.diagnostics import Diagnostic
from garden.errors import CompileError
from garden.ir.ir import Ir
from garden.ir.printer import print_ir
from garden.ir.verifier import verify as verify_ir
from garden.pipeline import SCRATCH, STAGES, Compilation, StageAllocators
from garden.source import Source
from garden.std.text import bool_text, double_text
from tests.support.annotations import AnnotationError, Annotations
from tests.support.engines import OF_BYTECODE, Outcome, run
from tests.support.packages import PACKAGES

_HEADING = re.compile(r"^#+ (.*)$")


class Mismatch(AssertionError):
    """A program does not do what it claims; says so in lines `file:line: what is wrong`."""


class Program:
    """A test program and what it claims. `name` is what messages call the file."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.claims = Annotations(name, text)
        # Without its directory, so that snapshots are the same everywhere.
        self.source = Source(Path(name).name, text.encode(errors="surrogateescape"))

    def run(self, engine: str, level: int, *, registers: int = REGISTERS) -> tuple[list[Diagnostic], Outcome | None]:
        """Compile and run: what is wrong with the program, or how its run went; neither if it is only to be checked.

        The code uses so many registers at most.
        """
        with _Memory() as memory, self._compile(memory, level, registers) as compilation:
            diagnostics = _diagnostics(compilation, self.claims.mode == "check")
            if diagnostics or self.claims.mode == "check":
                return diagnostics, None
            return [], self._run(compilation, engine)

    def check(self, engine: str, level: int) -> None:
        """Compile and run. Raises `Mismatch` where a claim does not hold."""
        diagnostics, outcome = self.run(engine, level)
        wrong = self._wrong_diagnostics(diagnostics)
        if outcome is not None:
            wrong.extend(self._wrong_run(outcome))
        if wrong:
            raise Mismatch("\n".join(wrong))

    def snapshot(self, kind: str) -> str:
        """The text of a snapshot."""
        with _Memory() as memory, self._compile(memory, self.claims.levels[-1]) as compilation:
            diagnostics = _diagnostics(compilation, self.claims.mode == "check")
            if kind != "stderr" and diagnostics:
                raise Mismatch(f"{self.name}:1: a program with mistakes has no {kind}")
            if kind == "ir":
                return print_ir(compilation.optimise())
            if kind == "bytecode":
                return disassemble(compilation.emit())
            lines = [diagnostic.render(compilation.source) for diagnostic in diagnostics]
            if not diagnostics and self.claims.mode == "run":
                trap = self._run(compilation, "reference").trap
                if trap is not None:
                    rendered = Diagnostic(trap.code, trap.message, trap.offset, 0).render(compilation.source)
                    lines.extend([rendered, *trap.backtrace])
            return "".join([f"{line}\n" for line in lines])

    def _compile(self, memory: _Memory, level: int, registers: int = REGISTERS) -> Compilation:
        return Compilation(self.source, memory.allocators, PACKAGES, level=level, registers=registers)

    def _run(self, compilation: Compilation, engine: str) -> Outcome:
        claims = self.claims
        ir = compilation.optimise(_verifies)
        result = ir.checked.types.type(ir.function_result[ir.function_count - 1])
        if engine in OF_BYTECODE:
            with Arena(PageAlloc()) as scratch:
                messages = verify_code(compilation.emit(), scratch, registers=compilation.registers)
            assert not messages, f"bytecode: {'; '.join(messages)}"
        backtrace = claims.backtrace is not None or "stderr" in claims.snapshots
        return run(compilation, engine, result, claims.heap_limit, backtrace)

    def _wrong_diagnostics(self, diagnostics: list[Diagnostic]) -> list[str]:
        wrong = []
        claims = list(self.claims.errors)
        for diagnostic in diagnostics:
            line, column = self.source.position(diagnostic.start)
            found = [c for c in claims if c.fits(line, column, diagnostic.code, diagnostic.message)]
            if found:
                claims.remove(found[0])
            else:
                wrong.append(f"{self.name}:{line}:{column}: not claimed: {diagnostic.code}: {diagnostic.message}")
        wrong.extend([f"{self.name}:{claim.line}: claimed, and not reported: {claim}" for claim in claims])
        return wrong

    def _wrong_run(self, outcome: Outcome) -> list[str]:
        claims = self.claims
        wrong = self._wrong_output(outcome.output)
        trap = outcome.trap
        if trap is None:
            if claims.trap is not None:
                wrong.append(f"{self.name}:{claims.trap.line}: claimed, and did not happen: {claims.trap}")
            if claims.value is not None and shown(outcome.value) != claims.value.text:
                wrong.append(f"{self.name}:{claims.value.line}: the value is {shown(outcome.value)}")
            return wrong
        line, column = self.source.position(trap.offset) if trap.offset >= 0 else (0, 0)
        if claims.trap is None or not claims.trap.fits(line, column, trap.code, trap.message):
            instead = "" if claims.trap is None else f", but {claims.trap} on line {claims.trap.line}"
            wrong.append(f"{self.name}:{line}:{column}: not claimed: {trap}{instead}")
        if claims.backtrace is not None and trap.backtrace != claims.backtrace:
            wrong.append(f"{self.name}:{line}: the active functions are {' '.join(trap.backtrace)}")
        return wrong

    def _wrong_output(self, output: str) -> list[str]:
        claims = self.claims
        lines = output.split("\n")
        if not lines[-1]:
            lines.pop()
        wrong = []
        for claim, line in zip(claims.output, lines, strict=False):
            if claim.text != line:
                wrong.append(f"{self.name}:{claim.line}: expected {claim.text!r}, got {line!r}")
        wrong.extend(
            [f"{self.name}:{claim.line}: not written: {claim.text!r}" for claim in claims.output[len(lines) :]]
        )
        last = claims.output[-1].line if claims.output else 1
        wrong.extend([f"{self.name}:{last}: not claimed: {line!r}" for line in lines[len(claims.output) :]])
        return wrong


class _Memory:
    """An allocator a stage, which finds out about misuse and, at the end, about leaks."""

    def __init__(self) -> None:
        # One frame a block tells which stage leaks, and more would take longer than the stages.
        self._debug = {
            stage: DebugAllocator(PageAlloc() if stage == "native" else Arena(PageAlloc()), depth=1)
            for stage in (*STAGES, SCRATCH)
        }
        self._closing = ExitStack()
        self.allocators = StageAllocators(self._debug)

    def __enter__(self) -> _Memory:
        for allocator in self._debug.values():
            self._closing.enter_context(allocator)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.__exit__(kind, error, trace)


def _diagnostics(compilation: Compilation, only_check: bool) -> list[Diagnostic]:
    """What is wrong with the program, in source order. With `only_check`, as far as the type checker knows."""
    try:
        compilation.check()
        compilation.require_valid()
        if not only_check:
            _verifies("lower", compilation.lower())
    except CompileError as error:
        return error.diagnostics
    return []


def _verifies(stage: str, ir: Ir[Allocator]) -> None:
    with Arena(PageAlloc()) as scratch:
        messages = verify_ir(ir, scratch)
    assert not messages, f"after {stage}: {'; '.join(messages)}"


def shown(value: Any) -> str:
    """A scalar or Str as `str.from` writes it; nothing for no value."""
    if isinstance(value, bool):
        return bool_text(value)
    if isinstance(value, float):
        return double_text(value)
    return "" if value is None else str(value)


def compare(path: Path, text: str, bless: bool) -> None:
    """Compare a text with a committed file, or write it there. Raises `Mismatch`."""
    if bless:
        path.write_bytes(text.encode())
        return
    kept = path.read_bytes().decode() if path.exists() else ""
    if text != kept:
        difference = unified_diff(kept.splitlines(), text.splitlines(), "committed", "now", lineterm="")
        raise Mismatch("\n".join([f"{path}: not up to date (`pytest --bless` writes it)", *difference]))


def load(path: Path) -> Program:
    """The test program in a file."""
    # What is no UTF-8 goes the way back when it is compiled.
    return Program(path.as_posix(), path.read_bytes().decode(errors="surrogateescape"))


def load_page(path: Path) -> list[tuple[str, Program]]:
    """The programs of a Markdown page, by heading: the ```garden blocks below it, as one.

    All other lines are blank in them, so that lines have the same numbers as on the page.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    sections: list[tuple[str, list[str]]] = []
    fence = ""
    for number, line in enumerate(lines):
        code = ""
        heading = None if fence else _HEADING.match(line)
        if heading:
            sections.append((heading[1], [""] * number))
        elif line.startswith("```"):
            fence = "" if fence else line
        elif fence == "```garden":
            if not sections:
                raise AnnotationError(f"{path.as_posix()}:{number + 1}: a program without a heading")
            code = line
        for _, kept in sections[-1:]:
            kept.append(code)
    return [(heading, Program(path.as_posix(), "\n".join(kept))) for heading, kept in sections if "".join(kept).strip()]
