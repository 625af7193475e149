"""Object files for tests: written byte by byte, so that every field and every relocation is known."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

X86_64: Final = 62
AARCH64: Final = 183

UNDEFINED: Final = 0
#: Numbers of the sections of `write_object`.
TEXT: Final = 1
DATA: Final = 2
BSS: Final = 3
NOTE: Final = 4

NOTYPE: Final = 0
OBJECT: Final = 1
FUNC: Final = 2
GLOBAL: Final = 0x10

#: A relocation: offset in .text, type, number of the symbol, addend.
Relocation = tuple[int, int, int, int]


class NewSymbol(NamedTuple):
    name: str
    section: int
    value: int = 0
    size: int = 0
    info: int = GLOBAL | NOTYPE


def write_object(
    machine: int,
    text: bytes,
    symbols: list[NewSymbol],
    relocations: list[Relocation],
    *,
    data: bytes = b"",
    zeroes: int = 0,
    align: int = 16,
    kind: int = 1,
    text_flags: int = 6,
    text_name: str = ".text",
    rela_type: int = 4,
) -> bytes:
    """An ELF64 object with .text, .data, .bss and a section that is not loaded; symbols are numbered from 1."""
    names = b"\0"
    offsets = []
    for name in (text_name, ".data", ".bss", ".comment", ".rela.text", ".symtab", ".strtab"):
        offsets.append(len(names))
        names += name.encode() + b"\0"
    table = bytes(24)
    for symbol in symbols:
        offset = len(names)
        names += symbol.name.encode() + b"\0"
        table += struct.pack("<IBBHQQ", offset, symbol.info, 0, symbol.section, symbol.value, symbol.size)
    entries = b"".join(
        struct.pack("<QQq", offset, number << 32 | kind_, addend) for offset, kind_, number, addend in relocations
    )
    body = bytes(64)
    headers = bytes(64)

    def section(name: int, kind: int, flags: int, content: bytes, size: int, *rest: int) -> None:
        nonlocal body, headers
        headers += struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, len(body), size, *rest)
        body += content

    section(offsets[0], 1, text_flags, text, len(text), 0, 0, align, 0)
    section(offsets[1], 1, 3, data, len(data), 0, 0, 8, 0)
    section(offsets[2], 8, 3, b"", zeroes, 0, 0, 8, 0)
    section(offsets[3], 1, 0, b"note", 4, 0, 0, 1, 0)
    section(offsets[4], rela_type, 0, entries, len(entries), 6, TEXT, 8, 24)
    section(offsets[5], 2, 0, table, len(table), 7, 1, 8, 24)
    section(offsets[6], 3, 0, names, len(names), 0, 0, 1, 0)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0, len(body), 0, 64, 0, 0, 64, len(headers) // 64, 7)
    return header + body[64:] + headers
