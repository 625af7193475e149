"""Annotations: what a test program says about itself in comments.

Directives stand alone on lines before the first code:

    #@ mode: check           stop after checking (default: run)
    #@ opt: 1                optimisation levels to run at (default: 0 1)
    #@ heap-limit: 1048576   bytes that the program may use
    #@ backtrace: a b c      with the trap, these active functions, the entry first
    #@ snapshot: stderr ir   files of the program's name that say exactly what is printed (see `snapshots`)

Expectations stand behind code, or alone on lines before the code that they are about:

    # expect: text               the next line of output; all output must be claimed
    # value: 42                  the value of the program, as `str.from` writes it; a Str as it is
    # error: [E0301]             a diagnostic on this line; optionally `COLUMN [CODE] "part of the message"`
    # runtime-error: [T0001]     the run ends with this trap, on this line; the same options

A comment behind code is always an annotation; a comment on a line of its own is one if it begins with a word and a
colon. So a misspelt annotation is an error, and never a comment that nobody reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEVELS = (0, 1)
SNAPSHOTS = ("stderr", "ir", "bytecode")

# What a comment may hide in, first: strings, closed or not, and then comments.
_COMMENT = re.compile(r'"[^"]*"|"[^\n]*|(#[^\n]*)')
_DIRECTIVE = re.compile(r"#@ *([\w-]+):\s*(.*?)\s*")
_ANNOTATION = re.compile(r"# ?([A-Za-z][\w-]*):(?: (.*))?")
_CLAIM = re.compile(r'(?:(\d+)\s+)?\[([ET]\d{4})\](?:\s+"(.*)")?\s*')
_KEYS = ("expect", "value", "error", "runtime-error")


class AnnotationError(Exception):
    """A test program whose annotations make no sense."""


class Expected:
    """A text that a program claims, and the line where it does."""

    def __init__(self, line: int, text: str) -> None:
        self.line = line
        self.text = text


class Claim:
    """A diagnostic or trap that a program claims to cause."""

    def __init__(self, line: int, column: int | None, code: str, part: str) -> None:
        self.line = line
        self.column = column
        self.code = code
        self.part = part

    def fits(self, line: int, column: int, code: str, message: str) -> bool:
        """Whether a diagnostic or trap is what this claims."""
        return line == self.line and code == self.code and self.column in (None, column) and self.part in message

    def __str__(self) -> str:
        column = "" if self.column is None else f"{self.column} "
        part = f' "{self.part}"' if self.part else ""
        return f"{column}[{self.code}]{part}"


class Annotations:
    """All annotations of one program, called `name`. Raises `AnnotationError`."""

    def __init__(self, name: str, text: str) -> None:
        self.mode = "run"
        self.levels: tuple[int, ...] = LEVELS
        self.heap_limit: int | None = None
        self.backtrace: tuple[str, ...] | None = None
        self.snapshots: tuple[str, ...] = ()
        self.output: list[Expected] = []
        self.value: Expected | None = None
        self.errors: list[Claim] = []
        self.trap: Claim | None = None
        self._name = name
        self._directed: set[str] = set()
        code_lines = _code_lines(text)
        for line, comment in comments(text):
            if comment.startswith("#!"):
                continue
            where = f"{name}:{line}"
            behind = line in code_lines
            if comment.startswith("#@"):
                if behind or (code_lines and line > code_lines[0]):
                    raise AnnotationError(f"{where}: a directive stands alone, before the first code")
                self._direct(where, comment)
                continue
            match = _ANNOTATION.fullmatch(comment)
            if match is None or match[1] not in _KEYS:
                first = comment[1:].split(maxsplit=1)
                if behind or match is not None or (first and first[0].rstrip(":") in _KEYS):
                    raise AnnotationError(f"{where}: not an annotation: {comment}")
                continue
            about = line
            if not behind:
                about = next((code for code in code_lines if code > line), line + 1)
            self._annotate(where, match[1], match[2] or "", about)
        if (self.output or self.value or self.trap) and (self.errors or self.mode == "check"):
            raise AnnotationError(f"{name}: a program that does not run claims what it does when it runs")
        if self.value and self.trap:
            raise AnnotationError(f"{name}: a run that ends with a trap has no value")

    def _direct(self, where: str, comment: str) -> None:
        match = _DIRECTIVE.fullmatch(comment)
        if match is None:
            raise AnnotationError(f"{where}: malformed directive {comment!r}")
        key, value = match[1], match[2]
        words = tuple(value.split())
        if key in self._directed:
            raise AnnotationError(f"{where}: a second {key}")
        self._directed.add(key)
        if key == "mode" and value == "check":
            self.mode = value
        elif key == "opt" and words and set(words) < {str(level) for level in LEVELS}:
            self.levels = tuple([int(word) for word in words])
        elif key == "heap-limit" and value.isdecimal():
            self.heap_limit = int(value)
        elif key == "backtrace" and words:
            self.backtrace = words
        elif key == "snapshot" and words and set(words) <= set(SNAPSHOTS):
            self.snapshots = words
        else:
            raise AnnotationError(f"{where}: no such directive: {comment}")

    def _annotate(self, where: str, key: str, value: str, line: int) -> None:
        if key == "expect":
            self.output.append(Expected(line, value))
        elif key == "value":
            if self.value is not None:
                raise AnnotationError(f"{where}: a program has one value")
            self.value = Expected(line, value)
        elif key == "error":
            self.errors.append(_claim(where, value, line))
        else:
            if self.trap is not None:
                raise AnnotationError(f"{where}: a run ends with one trap")
            self.trap = _claim(where, value, line)


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Line number and text, from `#` on, of each comment; doc comments are among them."""
    for match in _COMMENT.finditer(text):
        if match[1] is not None:
            yield text.count("\n", 0, match.start()) + 1, match[1].removesuffix("\r")


def _code_lines(text: str) -> list[int]:
    """The numbers of all lines with something else on them than a comment; doc comments are code."""
    code = _COMMENT.sub(_without_comment, text)
    return [number for number, line in enumerate(code.split("\n"), 1) if line.strip()]


def _without_comment(match: re.Match[str]) -> str:
    return match[0] if match[1] is None or match[1].startswith("#!") else ""


def _claim(where: str, value: str, line: int) -> Claim:
    match = _CLAIM.fullmatch(value)
    if match is None:
        raise AnnotationError(f'{where}: want [CODE], with a column before and a "part" behind if you like: {value}')
    return Claim(line, int(match[1]) if match[1] else None, match[2], match[3] or "")
