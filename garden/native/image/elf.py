"""ELF: reads and checks the relocatable objects that LLVM emits; the constants of the format.

`parse` finds what has to be loaded. Every field is checked before it is used: for an object that is damaged, for
another machine, or beyond what LLVM emits for the small code model, `ImageError` has the offending value. Unwinding and
debugging tables are left out.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from garden.errors import ImageError
from garden.native.image.relocations import CALLEE, RULES, SLOT
from garden.native.target import AARCH64, X86_64

if TYPE_CHECKING:
    from collections.abc import Mapping

    from garden.native.image.relocations import Rule

#: The longest image, in bytes: what a call reaches on AArch64, so that no call within an image needs a stub.
MAX_IMAGE_BYTES: Final = 1 << 27
#: The largest alignment of a section, in bytes: the smallest page.
MAX_ALIGN: Final = 4096

# ELF. Names are those of its specification, without prefixes.
HEADER: Final = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
RELOCATION: Final = struct.Struct("<QIIq")
IDENTITY: Final = (b"\x7fELF", 2, 1, 1)  # 64 bits, little-endian, version 1
_RELOCATABLE: Final = 1
MACHINES: Final = {X86_64: 62, AARCH64: 183}
_TARGETS: Final = {machine: target for target, machine in MACHINES.items()}

_PROGBITS: Final = 1
_SYMTAB: Final = 2
_STRTAB: Final = 3
_RELA: Final = 4
_NOTE: Final = 7
_NOBITS: Final = 8
_REL: Final = 9
#: What the psABI of x86-64 calls a section of tables for unwinding.
_UNWIND: Final = 0x70000001

_WRITE: Final = 0x1
_ALLOC: Final = 0x2
_EXECINSTR: Final = 0x4
_TLS: Final = 0x400
_COMPRESSED: Final = 0x800

UNDEFINED: Final = 0
ABSOLUTE: Final = 0xFFF1
#: In place of the number of a section that is not loaded.
NOWHERE: Final = -1

_LOCAL: Final = 0
_FUNC: Final = 2
_FILE: Final = 4

# Where a section is put.
LEFT_OUT: Final = 0
TEXT: Final = 1
CONSTANT: Final = 2
DATA: Final = 3
ZERO: Final = 4


class _SectionHeader:
    __slots__ = ("align", "entry_size", "flags", "info", "link", "name", "offset", "size", "type")

    def __init__(self, entry: tuple[int, ...]) -> None:
        (
            self.name,
            self.type,
            self.flags,
            _,
            self.offset,
            self.size,
            self.link,
            self.info,
            self.align,
            self.entry_size,
        ) = entry


class Section:
    """Where a section goes, and which bytes of the object it is; `stored` is 0 for one that is all zero."""

    __slots__ = ("align", "kind", "name", "offset", "size", "stored")

    def __init__(self, name: str, kind: int, offset: int, stored: int, size: int, align: int) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.offset: Final = offset
        self.stored: Final = stored
        self.size: Final = size
        self.align: Final = align


class Symbol:
    """A name for `size` bytes at `value` in a section. Numbers of sections are those of ELF.

    Other objects do not see a local one.
    """

    __slots__ = ("is_function", "is_local", "name", "section", "size", "value")

    def __init__(
        self, name: str, section: int, value: int, size: int, *, is_function: bool = False, is_local: bool = False
    ) -> None:
        self.name: Final = name
        self.section: Final = section
        self.value: Final = value
        self.size: Final = size
        self.is_function: Final = is_function
        self.is_local: Final = is_local


class ObjectFile:
    """The checked contents of an object, for the loader.

    `relocations` has the number of a section, the number of the symbol that the entries call 0, and the entries.
    `called` and `slotted` are the numbers of the symbols that need a stub and a slot.
    """

    __slots__ = ("called", "data", "relocations", "sections", "slotted", "symbols", "target")

    def __init__(
        self,
        target: str,
        data: memoryview,
        sections: list[Section],
        symbols: list[Symbol],
        relocations: list[tuple[int, int, memoryview]],
        called: list[int],
        slotted: list[int],
    ) -> None:
        self.target: Final = target
        self.data: Final = data
        self.sections: Final = sections
        self.symbols: Final = symbols
        self.relocations: Final = relocations
        self.called: Final = called
        self.slotted: Final = slotted


def parse(data: bytes | memoryview) -> ObjectFile:
    """Check an object and find what is to be loaded. Raises `ImageError`; the result refers to `data`."""
    view = memoryview(data).toreadonly()
    target, headers, names = _section_headers(view)
    sections = [_section(view, header, names) for header in headers]
    table, symbols = _symbols(view, headers, sections)
    relocations = []
    called: dict[int, None] = {}
    slotted: dict[int, None] = {}
    for header in headers:
        if header.type not in (_RELA, _REL):
            continue
        if header.info >= len(sections):
            raise ImageError(f"there are relocations for section {header.info} of {len(sections)}")
        section = sections[header.info]
        if section.kind == LEFT_OUT:
            continue
        if header.type == _REL:
            raise ImageError(f"{section.name} has relocations without addends")
        if header.link != table:
            raise ImageError(f"relocations of {section.name} name symbol table {header.link}, there is only {table}")
        entries = _table(view, header, RELOCATION.size)
        _check_relocations(RULES[target], section, entries, symbols, called, slotted)
        relocations.append((header.info, 0, entries))
    return ObjectFile(target, view, sections, symbols, relocations, list(called), list(slotted))


def _section_headers(data: memoryview) -> tuple[str, list[_SectionHeader], bytes]:
    """The target, all section headers, and the string table with their names."""
    if len(data) < HEADER.size:
        raise ImageError(f"{len(data)} bytes are too few for an object")
    header = HEADER.unpack_from(data)
    if header[:4] != IDENTITY:
        raise ImageError(f"not a 64-bit little-endian ELF object, it begins with {bytes(data[:7]).hex(' ')}")
    kind, machine, start, size, count, names = (header[index] for index in (4, 5, 9, 14, 15, 16))
    if kind != _RELOCATABLE:
        raise ImageError(f"not a relocatable object but of ELF type {kind}")
    target = _TARGETS.get(machine)
    if target is None:
        raise ImageError(f"unknown machine {machine}")
    if size != _SECTION.size:
        raise ImageError(f"section headers have {size} bytes instead of {_SECTION.size}")
    end = start + count * size
    if end > len(data):
        raise ImageError(f"{count} section headers at {start:#x} are not inside the object of {len(data)} bytes")
    headers = [_SectionHeader(entry) for entry in _SECTION.iter_unpack(data[start:end])]
    if names >= count:
        raise ImageError(f"section {names} of {count} should have the names of sections")
    return target, headers, _strings(data, headers[names])


def _contents(data: memoryview, header: _SectionHeader) -> memoryview:
    end = header.offset + header.size
    if end > len(data):
        raise ImageError(
            f"a section of {header.size} bytes at {header.offset:#x} is not inside the object of {len(data)} bytes"
        )
    return data[header.offset : end]


def _table(data: memoryview, header: _SectionHeader, entry_size: int) -> memoryview:
    contents = _contents(data, header)
    if header.entry_size != entry_size or header.size % entry_size:
        raise ImageError(
            f"a table of {header.size} bytes, {header.entry_size} an entry, should have {entry_size} an entry"
        )
    return contents


def _strings(data: memoryview, header: _SectionHeader) -> bytes:
    if header.type != _STRTAB:
        raise ImageError(f"a section of type {header.type:#x} should be a string table")
    strings = bytes(_contents(data, header))
    if not strings.endswith(b"\0"):
        raise ImageError(f"a string table of {len(strings)} bytes does not end with a zero byte")
    return strings


def _string(strings: bytes, offset: int) -> str:
    if offset >= len(strings):
        raise ImageError(f"a name at {offset:#x} is not inside the string table of {len(strings)} bytes")
    return strings[offset : strings.index(0, offset)].decode("utf-8", "backslashreplace")


def _section(data: memoryview, header: _SectionHeader, names: bytes) -> Section:
    name = _string(names, header.name)
    kind = _kind(name, header)
    if kind == LEFT_OUT:
        return Section(name, kind, 0, 0, 0, 1)
    align = header.align or 1
    if align & align - 1 or align > MAX_ALIGN:
        raise ImageError(f"{name} has an alignment of {align} bytes")
    if header.size > MAX_IMAGE_BYTES:
        raise ImageError(f"{name} has {header.size} bytes, which is more than the {MAX_IMAGE_BYTES} of an image")
    stored = 0 if header.type == _NOBITS else len(_contents(data, header))
    return Section(name, kind, header.offset, stored, header.size, align)


def _kind(name: str, header: _SectionHeader) -> int:
    flags = header.flags
    if not flags & _ALLOC or header.type in (_NOTE, _UNWIND) or name == ".eh_frame":
        return LEFT_OUT
    if header.type not in (_PROGBITS, _NOBITS):
        raise ImageError(f"{name} has type {header.type:#x}, which cannot be loaded")
    if flags & (_TLS | _COMPRESSED) or flags & (_WRITE | _EXECINSTR) == _WRITE | _EXECINSTR:
        raise ImageError(f"{name} has flags {flags:#x}, which cannot be loaded")
    if flags & _EXECINSTR:
        return TEXT
    # What is constant once it is relocated says so by its name only.
    if flags & _WRITE and not name.startswith(".data.rel.ro"):
        return ZERO if header.type == _NOBITS else DATA
    return CONSTANT


def _symbols(data: memoryview, headers: list[_SectionHeader], sections: list[Section]) -> tuple[int, list[Symbol]]:
    """The number of the symbol table, and the symbols."""
    tables = [number for number, header in enumerate(headers) if header.type == _SYMTAB]
    if len(tables) != 1:
        raise ImageError(f"there are {len(tables)} symbol tables")
    header = headers[tables[0]]
    if header.link >= len(headers):
        raise ImageError(f"section {header.link} of {len(headers)} should have the names of symbols")
    names = _strings(data, headers[header.link])
    symbols: list[Symbol] = []
    for name_offset, info, _, number, value, size in _SYMBOL.iter_unpack(_table(data, header, _SYMBOL.size)):
        name = _string(names, name_offset)
        kind = info & 15
        if kind > _FILE:
            raise ImageError(f"symbol {name!r} has type {kind}, which cannot be loaded")
        if not symbols:
            # The first one stands for none.
            number = NOWHERE
        elif number < len(sections) and number != UNDEFINED:
            section = sections[number]
            if section.kind == LEFT_OUT:
                number = NOWHERE
            elif value + size > section.size:
                raise ImageError(
                    f"symbol {name!r}, {size} bytes at {value:#x}, is not inside the {section.size} of {section.name}"
                )
        elif number not in (UNDEFINED, ABSOLUTE):
            raise ImageError(f"symbol {name!r} is in section {number} of {len(sections)}")
        symbols.append(Symbol(name, number, value, size, is_function=kind == _FUNC, is_local=info >> 4 == _LOCAL))
    return tables[0], symbols


def _check_relocations(
    rules: Mapping[int, Rule],
    section: Section,
    entries: memoryview,
    symbols: list[Symbol],
    called: dict[int, None],
    slotted: dict[int, None],
) -> None:
    """Check the relocations of a section, all but their values, and note the symbols that need stubs and slots."""
    for offset, kind, number, _ in RELOCATION.iter_unpack(entries):
        rule = rules.get(kind)
        if rule is None:
            raise ImageError(f"{section.name}+{offset:#x} has unknown relocation type {kind}")
        referent, _, _, size, _, _ = rule
        if offset + size > section.stored:
            raise ImageError(f"{section.name}+{offset:#x} is relocated, but it has {section.stored} bytes")
        if number >= len(symbols):
            raise ImageError(f"{section.name}+{offset:#x} refers to symbol {number} of {len(symbols)}")
        symbol = symbols[number]
        if symbol.section == NOWHERE:
            raise ImageError(f"{section.name}+{offset:#x} refers to {symbol.name!r}, which is not loaded")
        if referent == SLOT:
            slotted[number] = None
        elif referent == CALLEE and symbol.section == UNDEFINED:
            called[number] = None
