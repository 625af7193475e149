"""Image: an object file, laid out, relocated, and sealed in pages, so that its code can be called.

LLVM emits one relocatable ELF64 object a module. `parse` checks it and finds what has to be loaded, `link` makes the
bytes that it is at some address, without mapping or running anything, and `Image` does the same into pages. So a warm
start needs neither a linker nor LLVM, and objects of other machines can be linked too, just not loaded.

Layout of an image, one block of a `Pages` allocator, or pages of the system:

    text | stubs | slots | constants || data | zeroes

What stands left of the double bar is sealed ('rx') once relocations are applied, and the rest, from the next page on,
stays writable. A *stub* is 16 bytes: a jump to the address that stands in its second half. Calls of an external go
through one, since it may lie farther away than a call reaches. A *slot* is 8 bytes, an address that code loads from
there (other linkers call the slots global offset table). There is one of each for every symbol that needs it.

Whatever an object says is checked before it is used, and all of it before anything can be executed: for an object that
is damaged, of another machine, or beyond what LLVM emits for the small code model, `ImageError` has the offending
value. No check can tell whether the code itself is good, so do not load what strangers can write.

Costs: 1.5 ms for an object of 60 KB with 300 symbols and 900 relocations, and lists that live as long as loading takes.
Tables for unwinding and for debuggers are not loaded. Every start of the `garden` command waits for this module, so it
imports next to nothing, and has no named tuples, each of which takes as long to make as a small object to load.
"""

from __future__ import annotations

import ctypes
import struct

from allocators.mapping import PAGE_SIZE, PROTECTIONS, address_of_pages, map_pages, protect_pages
from garden.errors import ImageError
from garden.native.target import AARCH64, X86_64, host_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Final, Self

    from allocators import Pages

#: The longest image, in bytes: what a call reaches on AArch64, so that no call within an image needs a stub.
MAX_IMAGE_BYTES: Final = 1 << 27
#: The largest alignment of a section, in bytes: the smallest page.
MAX_ALIGN: Final = 4096

STUB_SIZE: Final = 16
SLOT_SIZE: Final = 8
#: The first half of a stub: a jump to the address in the second half.
_JUMPS: Final = {
    X86_64: bytes.fromhex("ff 25 02 00 00 00 cc cc"),  # jmp [rip + 2]
    AARCH64: bytes.fromhex("50 00 00 58 00 02 1f d6"),  # ldr x16, . + 8; br x16
}

_WORD: Final = struct.Struct("<I")
_ADDRESS: Final = struct.Struct("<Q")

# ELF. Names are those of its specification, without prefixes.
_HEADER: Final = struct.Struct("<4sBBB9xHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_IDENTITY: Final = (b"\x7fELF", 2, 1, 1)  # 64 bits, little-endian, version 1
_RELOCATABLE: Final = 1
_TARGETS: Final = {62: X86_64, 183: AARCH64}

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

_UNDEFINED: Final = 0
_RESERVED: Final = 0xFF00
_ABSOLUTE: Final = 0xFFF1
#: In place of the number of a section that is not loaded.
_NOWHERE: Final = -1

_FUNC: Final = 2
_FILE: Final = 4

# Where a section is put.
_LEFT_OUT: Final = 0
_TEXT: Final = 1
_CONSTANT: Final = 2
_DATA: Final = 3
_ZERO: Final = 4

# What a relocation refers to: the symbol, its stub if it is an external, its slot.
_SYMBOL_ITSELF: Final = 0
_CALLEE: Final = 1
_SLOT: Final = 2
# And how: by address, by distance from the place that is patched, by distance in pages, by the place in a page. Pages
# are of 4 KiB here, whatever they are for the system.
_ABSOLUTELY: Final = 0
_RELATIVELY: Final = 1
_BY_PAGE: Final = 2
_IN_PAGE: Final = 3

_U32: Final = (0, 1 << 32)
_U64: Final = (0, 1 << 64)


def _signed(bits: int) -> tuple[int, int]:
    return -(1 << bits - 1), 1 << bits - 1


#: How to apply one type of relocation: referent, manner, span, size, shift, field.
_Rule = tuple[int, int, tuple[int, int], int, int, int]


def _rule(referent: int, manner: int, span: tuple[int, int], size: int = 4, shift: int = 0, field: int = 0) -> _Rule:
    """The value must be in `span`, its end not included, and a multiple of `1 << shift`.

    Without a `field` it is stored in `size` bytes; else it is shifted and replaces those bits of the instruction.
    """
    return referent, manner, span, size, shift, field


_ADRP_FIELD: Final = 0x60FFFFE0
_IMM12_FIELD: Final = 0x003FFC00

_ADRP: Final = (_BY_PAGE, _signed(33), 4, 12, _ADRP_FIELD)
_REL32: Final = (_RELATIVELY, _signed(32))
_REL64: Final = (_RELATIVELY, _signed(64), 8)
_BRANCH26: Final = _rule(_CALLEE, _RELATIVELY, _signed(28), 4, 2, 0x03FFFFFF)


def _low12(referent: int, shift: int) -> _Rule:
    """The place in a page, in units of what is loaded or stored."""
    return _rule(referent, _IN_PAGE, (0, 1 << 12), 4, shift, _IMM12_FIELD)


#: By target and number of the relocation type, from the psABI of each.
_RULES: Final[Mapping[str, Mapping[int, _Rule]]] = {
    X86_64: {
        1: _rule(_SYMBOL_ITSELF, _ABSOLUTELY, _U64, 8),  # 64
        2: _rule(_SYMBOL_ITSELF, *_REL32),  # PC32
        4: _rule(_CALLEE, *_REL32),  # PLT32
        9: _rule(_SLOT, *_REL32),  # GOTPCREL
        10: _rule(_SYMBOL_ITSELF, _ABSOLUTELY, _U32),  # 32
        11: _rule(_SYMBOL_ITSELF, _ABSOLUTELY, _signed(32)),  # 32S
        24: _rule(_SYMBOL_ITSELF, *_REL64),  # PC64
        41: _rule(_SLOT, *_REL32),  # GOTPCRELX
        42: _rule(_SLOT, *_REL32),  # REX_GOTPCRELX
    },
    AARCH64: {
        257: _rule(_SYMBOL_ITSELF, _ABSOLUTELY, _U64, 8),  # ABS64
        260: _rule(_SYMBOL_ITSELF, *_REL64),  # PREL64
        261: _rule(_SYMBOL_ITSELF, *_REL32),  # PREL32
        275: _rule(_SYMBOL_ITSELF, *_ADRP),  # ADR_PREL_PG_HI21
        277: _low12(_SYMBOL_ITSELF, 0),  # ADD_ABS_LO12_NC
        278: _low12(_SYMBOL_ITSELF, 0),  # LDST8_ABS_LO12_NC
        279: _rule(_CALLEE, _RELATIVELY, _signed(16), 4, 2, 0x0007FFE0),  # TSTBR14
        280: _rule(_CALLEE, _RELATIVELY, _signed(21), 4, 2, 0x00FFFFE0),  # CONDBR19
        282: _BRANCH26,  # JUMP26
        283: _BRANCH26,  # CALL26
        284: _low12(_SYMBOL_ITSELF, 1),  # LDST16_ABS_LO12_NC
        285: _low12(_SYMBOL_ITSELF, 2),  # LDST32_ABS_LO12_NC
        286: _low12(_SYMBOL_ITSELF, 3),  # LDST64_ABS_LO12_NC
        299: _low12(_SYMBOL_ITSELF, 4),  # LDST128_ABS_LO12_NC
        311: _rule(_SLOT, *_ADRP),  # ADR_GOT_PAGE
        312: _low12(_SLOT, 3),  # LD64_GOT_LO12_NC
    },
}


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
    """A name for `size` bytes at `value` in a section. Numbers of sections are those of ELF."""

    __slots__ = ("is_function", "name", "section", "size", "value")

    def __init__(self, name: str, section: int, value: int, size: int, is_function: bool) -> None:
        self.name: Final = name
        self.section: Final = section
        self.value: Final = value
        self.size: Final = size
        self.is_function: Final = is_function


class ObjectFile:
    """What an object has for the loader, checked.

    `relocations` has the number of a section and the entries for it. `called` and `slotted` are the numbers of the
    symbols that need a stub and a slot.
    """

    __slots__ = ("called", "data", "relocations", "sections", "slotted", "symbols", "target")

    def __init__(
        self,
        target: str,
        data: memoryview,
        sections: list[Section],
        symbols: list[Symbol],
        relocations: list[tuple[int, memoryview]],
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
        if section.kind == _LEFT_OUT:
            continue
        if header.type == _REL:
            raise ImageError(f"{section.name} has relocations without addends")
        if header.link != table:
            raise ImageError(f"relocations of {section.name} name symbol table {header.link}, there is only {table}")
        entries = _table(view, header, _RELOCATION.size)
        _check_relocations(_RULES[target], section, entries, symbols, called, slotted)
        relocations.append((header.info, entries))
    return ObjectFile(target, view, sections, symbols, relocations, list(called), list(slotted))


def _section_headers(data: memoryview) -> tuple[str, list[_SectionHeader], bytes]:
    """The target, all section headers, and the string table with their names."""
    if len(data) < _HEADER.size:
        raise ImageError(f"{len(data)} bytes are too few for an object")
    header = _HEADER.unpack_from(data)
    if header[:4] != _IDENTITY:
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
    if kind == _LEFT_OUT:
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
        return _LEFT_OUT
    if header.type not in (_PROGBITS, _NOBITS):
        raise ImageError(f"{name} has type {header.type:#x}, which cannot be loaded")
    if flags & (_TLS | _COMPRESSED) or flags & (_WRITE | _EXECINSTR) == _WRITE | _EXECINSTR:
        raise ImageError(f"{name} has flags {flags:#x}, which cannot be loaded")
    if flags & _EXECINSTR:
        return _TEXT
    # What is constant once it is relocated says so by its name only.
    if flags & _WRITE and not name.startswith(".data.rel.ro"):
        return _ZERO if header.type == _NOBITS else _DATA
    return _CONSTANT


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
            number = _NOWHERE
        elif number < len(sections) and number != _UNDEFINED:
            section = sections[number]
            if section.kind == _LEFT_OUT:
                number = _NOWHERE
            elif value + size > section.size:
                raise ImageError(
                    f"symbol {name!r}, {size} bytes at {value:#x}, is not inside the {section.size} of {section.name}"
                )
        elif number not in (_UNDEFINED, _ABSOLUTE):
            raise ImageError(f"symbol {name!r} is in section {number} of {len(sections)}")
        symbols.append(Symbol(name, number, value, size, kind == _FUNC))
    return tables[0], symbols


def _check_relocations(
    rules: Mapping[int, _Rule],
    section: Section,
    entries: memoryview,
    symbols: list[Symbol],
    called: dict[int, None],
    slotted: dict[int, None],
) -> None:
    """Check the relocations of a section, all but their values, and note the symbols that need stubs and slots."""
    for offset, kind, number, _ in _RELOCATION.iter_unpack(entries):
        rule = rules.get(kind)
        if rule is None:
            raise ImageError(f"{section.name}+{offset:#x} has unknown relocation type {kind}")
        referent, _, _, size, _, _ = rule
        if offset + size > section.stored:
            raise ImageError(f"{section.name}+{offset:#x} is relocated, but it has {section.stored} bytes")
        if number >= len(symbols):
            raise ImageError(f"{section.name}+{offset:#x} refers to symbol {number} of {len(symbols)}")
        symbol = symbols[number]
        if symbol.section == _NOWHERE:
            raise ImageError(f"{section.name}+{offset:#x} refers to {symbol.name!r}, which is not loaded")
        if referent == _SLOT:
            slotted[number] = None
        elif referent == _CALLEE and symbol.section == _UNDEFINED:
            called[number] = None


class Placement:
    """Where everything goes, in bytes from the start of the image.

    `starts` is by section number, -1 for those left out. Code ends at `code_end`; what is sealed and what begins at
    `data` are whole pages; `data_end` is that of the last variable, and `size` whole pages again.
    """

    __slots__ = ("code_end", "data", "data_end", "size", "slots", "starts", "stubs")

    def __init__(
        self, starts: list[int], stubs: int, slots: int, code_end: int, data: int, data_end: int, size: int
    ) -> None:
        self.starts: Final = starts
        self.stubs: Final = stubs
        self.slots: Final = slots
        self.code_end: Final = code_end
        self.data: Final = data
        self.data_end: Final = data_end
        self.size: Final = size


def place(object_file: ObjectFile, page_size: int) -> Placement:
    """Lay out an image in pages of `page_size` bytes. Raises `ImageError` where it becomes too long."""
    sections = object_file.sections
    starts = [-1] * len(sections)

    def put(kind: int, end: int) -> int:
        for number, section in enumerate(sections):
            if section.kind == kind:
                starts[number] = _round_up(end, section.align)
                end = starts[number] + section.size
        return end

    stubs = _round_up(put(_TEXT, 0), STUB_SIZE)
    code_end = stubs + STUB_SIZE * len(object_file.called)
    slots = _round_up(code_end, SLOT_SIZE)
    data = _round_up(put(_CONSTANT, slots + SLOT_SIZE * len(object_file.slotted)), page_size)
    data_end = put(_ZERO, put(_DATA, data))
    size = _round_up(data_end, page_size)
    if size > MAX_IMAGE_BYTES:
        raise ImageError(f"an image of {size} bytes is longer than {MAX_IMAGE_BYTES}")
    return Placement(starts, stubs, slots, code_end, data, data_end, size)


def _round_up(size: int, align: int) -> int:
    return (size + align - 1) & -align


def link(object_file: ObjectFile, base: int, externals: Mapping[str, int], page_size: int = MAX_ALIGN) -> bytes:
    """The bytes of the image at address `base`, which begins a page. Raises `ImageError`.

    `externals` has the address of each symbol that the object does not define.
    """
    placement = place(object_file, page_size)
    image = bytearray(placement.size)
    with memoryview(image) as view:
        _fill(object_file, placement, base, externals, view)
    return bytes(image)


def _fill(
    object_file: ObjectFile, placement: Placement, base: int, externals: Mapping[str, int], image: memoryview
) -> None:
    """Make the image that shall lie at `base` in zeroed memory."""
    if base % MAX_ALIGN or not 0 <= base < (1 << 64) - placement.size:
        raise ImageError(f"an image cannot be at address {base:#x}")
    data = object_file.data
    for section, start in zip(object_file.sections, placement.starts, strict=True):
        if section.stored:
            image[start : start + section.stored] = data[section.offset : section.offset + section.stored]
    addresses = _addresses(object_file, placement, base, externals)
    callees = addresses.copy()
    at = placement.stubs
    for number in object_file.called:
        image[at : at + SLOT_SIZE] = _JUMPS[object_file.target]
        _ADDRESS.pack_into(image, at + STUB_SIZE - SLOT_SIZE, addresses[number])
        callees[number] = base + at
        at += STUB_SIZE
    slots = [0] * len(addresses)
    at = placement.slots
    for number in object_file.slotted:
        _ADDRESS.pack_into(image, at, addresses[number])
        slots[number] = base + at
        at += SLOT_SIZE
    referents = (addresses, callees, slots)
    for number, entries in object_file.relocations:
        _relocate(object_file, number, placement.starts[number], entries, base, referents, image)


def _addresses(object_file: ObjectFile, placement: Placement, base: int, externals: Mapping[str, int]) -> list[int]:
    """The address of each symbol, 0 for those that are not loaded."""
    addresses = []
    for symbol in object_file.symbols:
        number = symbol.section
        if number == _NOWHERE:
            address = 0
        elif number == _ABSOLUTE:
            address = symbol.value
        elif number != _UNDEFINED:
            address = base + placement.starts[number] + symbol.value
        else:
            found = externals.get(symbol.name)
            if found is None:
                raise ImageError(f"undefined symbol {symbol.name!r}")
            if not 0 <= found < 1 << 64:
                raise ImageError(f"the address of {symbol.name!r}, {found:#x}, has more than 64 bits")
            address = found
        addresses.append(address)
    return addresses


def _relocate(
    object_file: ObjectFile,
    number: int,
    start: int,
    entries: memoryview,
    base: int,
    referents: tuple[list[int], list[int], list[int]],
    image: memoryview,
) -> None:
    """Apply the relocations of a section that starts at `start` in the image."""
    rules = _RULES[object_file.target]
    for offset, kind, symbol, addend in _RELOCATION.iter_unpack(entries):
        referent, manner, (lowest, end), size, shift, field = rules[kind]
        at = start + offset
        value = referents[referent][symbol] + addend
        if manner == _RELATIVELY:
            value -= base + at
        elif manner == _IN_PAGE:
            value &= 0xFFF
        elif manner == _BY_PAGE:
            value = (value & -0x1000) - (base + at & -0x1000)
        if not lowest <= value < end or value & (1 << shift) - 1:
            section = object_file.sections[number].name
            name = object_file.symbols[symbol].name
            raise ImageError(
                f"{section}+{offset:#x}: relocation type {kind} cannot hold the value {value:#x} for {name!r}"
            )
        if field:
            value >>= shift
            if field == _ADRP_FIELD:
                # The two lowest bits stand above the others.
                value = (value & 3) << 29 | (value >> 2 & 0x7FFFF) << 5
            else:
                # Multiplied with the lowest bit of the field: shifted to its place.
                value = value * (field & -field) & field
            value |= _WORD.unpack_from(image, at)[0] & ~field
            _WORD.pack_into(image, at, value)
        elif size == 4:
            _WORD.pack_into(image, at, value & 0xFFFFFFFF)
        else:
            _ADDRESS.pack_into(image, at, value & 0xFFFFFFFFFFFFFFFF)


class _Memory:
    """A block of whole pages."""

    def __init__(self, pages: Pages, size: int) -> None:
        from allocators.layout import Layout

        self._pages: Final = pages
        self._layout: Final = Layout(size, pages.page_size)
        self._block: Final = pages.allocate_zeroed(self._layout)
        self.address: Final = self._block.address

    def view(self) -> memoryview:
        return self._block.view

    def seal(self, size: int) -> None:
        """Make the first bytes, whole pages, executable instead of writable."""
        self._pages.protect(self._block, "rx", 0, size)

    def give_back(self) -> None:
        self._pages.deallocate(self._block, self._layout)


class _SystemMemory:
    """The same of pages that no allocator knows of."""

    def __init__(self, size: int) -> None:
        try:
            self._mapping: Final = map_pages(size)
        except OSError as error:
            raise ImageError(f"the system has no {size} bytes for the image: {error}") from error
        self.address: Final = address_of_pages(self._mapping)

    def view(self) -> memoryview:
        return memoryview(self._mapping)

    def seal(self, size: int) -> None:
        protect_pages(self.address, size, PROTECTIONS["rx"])

    def give_back(self) -> None:
        self._mapping.close()


class Image:
    """An object in memory, ready to be called.

    Takes one block of `pages`, or pages of the system where that is None, which `close` gives back; nothing may run in
    it any more then. `externals` has the address of each symbol that the object does not define. Raises `ImageError`,
    also where the system does not let pages be executed, and `AllocError` of `pages`; then nothing is left allocated.
    """

    def __init__(self, data: bytes | memoryview, pages: Pages | None, externals: Mapping[str, int]) -> None:
        object_file = parse(data)
        host = host_target()
        if object_file.target != host:
            raise ImageError(f"an object for {object_file.target} cannot be loaded on {host or 'this machine'}")
        page_size = PAGE_SIZE if pages is None else pages.page_size
        placement = place(object_file, page_size)
        if placement.code_end == 0:
            raise ImageError("there is no code in the object")
        memory = _SystemMemory(placement.size) if pages is None else _Memory(pages, placement.size)
        try:
            base = memory.address
            # Released at once: pages under a live view cannot be sealed.
            with memory.view() as view:
                _fill(object_file, placement, base, externals, view)
            try:
                memory.seal(placement.data)
            except (OSError, NotImplementedError) as error:
                raise ImageError(f"code cannot be made executable: {error}") from error
            if host == AARCH64:
                _flush_instruction_cache(base, base + placement.code_end)
        except BaseException:
            memory.give_back()
            raise
        self._memory: _Memory | _SystemMemory | None = memory
        #: Bytes of machine code, stubs included.
        self.code_size: Final = placement.code_end
        #: Bytes of the block.
        self.size: Final = placement.size
        #: Address and size in bytes of the writable part.
        self.data: Final = (base + placement.data, placement.data_end - placement.data)
        self._addresses: dict[str, int] = {}
        self._functions: dict[str, tuple[int, int]] = {}
        # Local symbols come first, so that a global one wins.
        for symbol in object_file.symbols:
            if symbol.name and symbol.section not in (_UNDEFINED, _ABSOLUTE, _NOWHERE):
                address = base + placement.starts[symbol.section] + symbol.value
                self._addresses[symbol.name] = address
                if symbol.is_function:
                    self._functions[symbol.name] = (address, symbol.size)

    @property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Address and size in bytes of each function, local ones too; none once closed."""
        return self._functions

    def address(self, symbol: str) -> int:
        """The address of a function or variable. Raises `ImageError` where the image has none of that name."""
        address = self._addresses.get(symbol)
        if address is None:
            raise ImageError(f"there is no {symbol!r} in the image" if self._memory else "the image is closed")
        return address

    def close(self) -> None:
        """Give the pages back. Closing twice is harmless."""
        memory = self._memory
        if memory is not None:
            memory.give_back()
            self._memory = None
            self._addresses = {}
            self._functions = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _flush_instruction_cache(start: int, end: int) -> None:
    """Make the processor see code that was just written, where it does not see to that itself.

    By `__clear_cache`, as compilers provide it. Python cannot execute the instructions itself, but Linux does it too
    when a page becomes executable for the first time, and so for all pages that come fresh from it.
    """
    for library in (None, "libgcc_s.so.1"):
        try:
            clear_cache = ctypes.CDLL(library).__clear_cache
        except (OSError, AttributeError):
            continue
        clear_cache.restype = None
        clear_cache(ctypes.c_void_p(start), ctypes.c_void_p(end))
        return
