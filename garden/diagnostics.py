"""Diagnostics: errors in programs as data, and how they are rendered.

`CODES` is the one list of everything that can be reported. Codes are permanent: a number is never reused for another
error. E01.. lexer, E02.. parser, E03.. types, E04.. lowering, E05.. executables, T.. traps
at run time.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from allocators._mypyc import mypyc_attr
from garden.source import Source, is_inside_character

CODES: Final[dict[str, str]] = {
    "E0100": "the source is not valid UTF-8",
    "E0101": "unknown character",
    "E0102": "unterminated string",
    "E0103": "malformed number",
    "E0201": "unexpected token",
    "E0202": "expected an identifier",
    "E0203": "expected an expression",
    "E0204": "a match needs a default arm",
    "E0205": "an import takes package names in quotes",
    "E0206": "malformed type",
    "E0207": "a doc comment stands where nothing can be documented",
    "E0208": "a function inside a function or an arm",
    "E0210": "expected a type",
    "E0301": "unknown name",
    "E0302": "unknown function",
    "E0303": "unknown package",
    "E0304": "package is not imported",
    "E0305": "package has no such function",
    "E0306": "wrong number of arguments",
    "E0307": "wrong argument type",
    "E0308": "operands of these types do not go with the operator",
    "E0309": "no cast between these types",
    "E0310": "cast to the same type",
    "E0311": "array members of different types",
    "E0312": "an empty array has no type",
    "E0313": "duplicate field",
    "E0314": "no such field",
    "E0315": "a condition must be a Bool",
    "E0316": "match arms of different types",
    "E0317": "wrong return type",
    "E0318": "a function of this name exists already",
    "E0319": "a value is wanted, and there is none",
    "E0320": "not something that can be called",
    "E0321": "no overload takes these arguments",
    "E0322": "generic parameters conflict",
    "E0323": "a parameter of this name exists already",
    "E0324": "an empty import",
    "E0325": "this function is declared but not implemented",
    "E0326": "a record is too large",
    "E0327": "two packages of one name",
    "E0328": "an array is too large",
    "E0401": "integer outside 64 bits",
    "E0402": "double out of range",
    "E0501": "a function that an executable cannot call",
    "T0001": "division by zero",
    "T0002": "stack overflow",
    "T0003": "out of memory",
    "T0004": "assertion failed",
    "T0005": "index out of range",
    "T0006": "a host function refused its arguments",
    "T0007": "interrupted",
}

#: Unicode general categories of zero width: combining marks, formatting and control characters.
_NO_WIDTH: Final = ("Mn", "Me", "Cf", "Cc")
_SOFT_HYPHEN: Final = "\xad"
#: The Jamo that complete a Korean syllable.
_FIRST_VOWEL: Final = "\u1160"
_LAST_FINAL: Final = "\u11ff"

#: Styles of a terminal.
BOLD: Final = "\x1b[1m"
RED: Final = "\x1b[31m"
PLAIN: Final = "\x1b[0m"

#: Bytes of a source line to show; of a longer line, the part around the error.
MAX_SHOWN: Final = 240


@mypyc_attr(native_class=True)
class Diagnostic:
    """One error: a code of `CODES`, a message, and the source bytes `start..start+length` that it is about."""

    __slots__ = ("code", "helps", "label", "length", "message", "notes", "start")

    def __init__(
        self,
        code: str,
        message: str,
        start: int,
        length: int,
        *,
        label: str = "",
        notes: tuple[str, ...] = (),
        helps: tuple[str, ...] = (),
    ) -> None:
        assert code in CODES, code
        self.code: Final = code
        self.message: Final = message
        self.start: Final = start
        self.length: Final = length
        self.label: Final = label
        self.notes: Final = notes
        self.helps: Final = helps

    def render(self, source: Source, *, color: bool = False) -> str:
        """Position, code and message; the source line; the underline with its label; notes and helps."""
        line, column = source.position(self.start)
        text = source.text
        line_start, line_end = source.line_at(self.start)
        start = min(self.start, line_end)
        first, last = _shown_part(text, line_start, line_end, start)
        before = ("..." if first > line_start else "") + text[first:start].decode("utf-8", "replace")
        marked = text[start : min(start + self.length, last)].decode("utf-8", "replace")
        after = text[start:last].decode("utf-8", "replace") + ("..." if last < line_end else "")
        # Tabs stay tabs, so that the underline lines up whatever their width.
        indent = "".join(["\t" if char == "\t" else " " * width(char) for char in before])
        underline = "~" * max(1, sum([width(char) for char in marked]))
        red, bold, plain = (RED, BOLD, PLAIN) if color else ("", "", "")
        lines = [
            f"{bold}{source.name}:{line}:{column}: {red}{self.code}{plain}{bold}: {self.message}{plain}",
            before + after,
            f"{indent}{red}{underline}{plain}{' ' + self.label if self.label else ''}",
        ]
        lines.extend([f"note: {note}" for note in self.notes])
        lines.extend([f"help: {help}" for help in self.helps])
        return "\n".join(lines)

    def as_dict(self, source: Source) -> dict[str, object]:
        """The same as plain data, for JSON."""
        line, column = source.position(self.start)
        return {
            "file": source.name,
            "line": line,
            "column": column,
            "start": self.start,
            "length": self.length,
            "code": self.code,
            "message": self.message,
            "label": self.label,
            "notes": list(self.notes),
            "helps": list(self.helps),
        }

    def __repr__(self) -> str:
        return f"<Diagnostic {self.code} at {self.start}: {self.message}>"


def width(char: str) -> int:
    """The number of terminal columns of a character; 1 for a tab, whose width depends on its position.

    The Unicode property East Asian Width decides; combining and invisible characters have 0. Sequences that terminals
    merge, such as a family of emoji, count by character.
    """
    if " " <= char <= "~" or char == "\t":
        return 1
    import unicodedata

    if (unicodedata.category(char) in _NO_WIDTH and char != _SOFT_HYPHEN) or _FIRST_VOWEL <= char <= _LAST_FINAL:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _shown_part(text: bytes, line_start: int, line_end: int, start: int) -> tuple[int, int]:
    """Start and end of the part of a line to show for an error at `start`."""
    if line_end - line_start <= MAX_SHOWN:
        return line_start, line_end
    first = max(line_start, min(start - MAX_SHOWN // 2, line_end - MAX_SHOWN))
    last = first + MAX_SHOWN
    while first < start and is_inside_character(text, first):
        first += 1
    while last < line_end and is_inside_character(text, last):
        last += 1
    return first, last
