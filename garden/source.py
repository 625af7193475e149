"""Source: the bytes of a program, and positions in them."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import codecs
from typing import Final

#: Token and node tables keep offsets in 32 bits.
MAX_SOURCE_BYTES: Final = (1 << 32) - 1


class Source:
    """A program's text as UTF-8 bytes, and its name in diagnostics.

    A byte order mark at the start is dropped: it is not part of the program, and offsets and columns count from after
    it. Raises TypeError if the text is not bytes, ValueError if it is longer than `MAX_SOURCE_BYTES`.
    """

    def __init__(self, name: str, text: bytes) -> None:
        if not isinstance(name, str) or not isinstance(text, bytes):
            raise TypeError(f"a source takes a str and bytes, not {name!r} and a {type(text).__name__}")
        if len(text) > MAX_SOURCE_BYTES:
            raise ValueError(f"{name}: a program may have at most {MAX_SOURCE_BYTES} bytes, this one has {len(text)}")
        self.name: Final = name
        self.text: Final = text.removeprefix(codecs.BOM_UTF8)
        # An offset, with its line and column: ascending queries walk over the text only once.
        self._known = (0, 1, 1)
        # Start and end of the line that was last asked for.
        self._line = (0, -1)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset, both from 1; columns count characters."""
        text = self.text
        offset = min(max(offset, 0), len(text))
        known, line, column = self._known
        if offset < known:
            known, line, column = 0, 1, 1
        line_ends = text.count(b"\n", known, offset)
        if line_ends:
            known = text.rfind(b"\n", known, offset) + 1
            line += line_ends
            column = 1
        column += len(text[known:offset].decode("utf-8", "replace"))
        if offset == len(text) or not is_inside_character(text, offset):
            self._known = (offset, line, column)
        return line, column

    def line_at(self, offset: int) -> tuple[int, int]:
        """Start and end of the line around a byte offset, without its newline."""
        text = self.text
        offset = min(max(offset, 0), len(text))
        start, end = self._line
        if not start <= offset <= end:
            start = text.rfind(b"\n", 0, offset) + 1
            end = text.find(b"\n", offset)
            if end < 0:
                end = len(text)
            self._line = (start, end)
        return start, end - 1 if text.endswith(b"\r", start, end) else end


def is_inside_character(text: bytes, offset: int) -> bool:
    """Whether the byte at an offset continues a multi-byte character."""
    return text[offset] & 0xC0 == 0x80
