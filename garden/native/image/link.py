"""Linking: merges objects, lays them out and relocates them, to their bytes at an address.

Layout of an image:

    text | stubs | slots | constants || data | zeroes

The part before the double bar can be sealed ('rx') once it is relocated; the rest starts at the next page and stays
writable. A *stub* is 16 bytes: a jump to the address in its second half. Calls of externals go through stubs, since an
external may be out of reach of a call. A *slot* is 8 bytes: an address that code loads (other linkers call the slots
global offset table). Every symbol that needs a stub or a slot has one.

Nothing is mapped or executed here, so objects for other machines can be linked too.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from garden.errors import ImageError
from garden.native.image.elf import (
    ABSOLUTE,
    CONSTANT,
    DATA,
    MAX_ALIGN,
    MAX_IMAGE_BYTES,
    NOWHERE,
    RELOCATION,
    TEXT,
    UNDEFINED,
    ZERO,
    ObjectFile,
    Section,
    Symbol,
)
from garden.native.image.relocations import ADRP_FIELD, BY_PAGE, IN_PAGE, RELATIVELY, RULES
from garden.native.target import AARCH64, X86_64

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STUB_SIZE: Final = 16
SLOT_SIZE: Final = 8
#: The first half of a stub: a jump to the address in the second half.
_JUMPS: Final = {
    X86_64: bytes.fromhex("ff 25 02 00 00 00 cc cc"),  # jmp [rip + 2]
    AARCH64: bytes.fromhex("50 00 00 58 00 02 1f d6"),  # ldr x16, . + 8; br x16
}

_WORD: Final = struct.Struct("<I")
_ADDRESS: Final = struct.Struct("<Q")


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

    stubs = _round_up(put(TEXT, 0), STUB_SIZE)
    code_end = stubs + STUB_SIZE * len(object_file.called)
    slots = _round_up(code_end, SLOT_SIZE)
    data = _round_up(put(CONSTANT, slots + SLOT_SIZE * len(object_file.slotted)), page_size)
    data_end = put(ZERO, put(DATA, data))
    size = _round_up(data_end, page_size)
    if size > MAX_IMAGE_BYTES:
        raise ImageError(f"an image of {size} bytes is longer than {MAX_IMAGE_BYTES}")
    return Placement(starts, stubs, slots, code_end, data, data_end, size)


def _round_up(size: int, align: int) -> int:
    return (size + align - 1) & -align


def merge(objects: Sequence[ObjectFile]) -> ObjectFile:
    """One object of several for the same target. Where more than one defines a symbol, the first one does for all."""
    pieces: list[memoryview] = []
    sections: list[Section] = []
    symbols: list[Symbol] = []
    relocations: list[tuple[int, int, memoryview]] = []
    called: list[int] = []
    slotted: list[int] = []
    known: dict[str, Symbol] = {}
    size = 0
    for object_file in objects:
        first_section, first_symbol = len(sections), len(symbols)
        sections += [
            Section(old.name, old.kind, old.offset + size, old.stored, old.size, old.align)
            for old in object_file.sections
        ]
        for old in object_file.symbols:
            symbol = old
            if old.section not in (UNDEFINED, ABSOLUTE, NOWHERE):
                symbol = Symbol(
                    old.name,
                    old.section + first_section,
                    old.value,
                    old.size,
                    is_function=old.is_function,
                    is_local=old.is_local,
                )
            if not old.is_local and old.section != UNDEFINED:
                symbol = known.setdefault(old.name, symbol)
            symbols.append(symbol)
        relocations += [(to + first_section, zero + first_symbol, rows) for to, zero, rows in object_file.relocations]
        called += [number + first_symbol for number in object_file.called]
        slotted += [number + first_symbol for number in object_file.slotted]
        pieces.append(object_file.data)
        size += len(object_file.data)
    for number, symbol in enumerate(symbols):
        if symbol.section == UNDEFINED:
            symbols[number] = known.get(symbol.name, symbol)
    called = [number for number in called if symbols[number].section == UNDEFINED]
    return ObjectFile(objects[0].target, memoryview(b"".join(pieces)), sections, symbols, relocations, called, slotted)


def link(object_file: ObjectFile, base: int, externals: Mapping[str, int], page_size: int = MAX_ALIGN) -> bytes:
    """The bytes of the image at address `base`, which begins a page. Raises `ImageError`.

    `externals` has the address of each symbol that the object does not define, and of others that shall not be its own.
    """
    placement = place(object_file, page_size)
    image = bytearray(placement.size)
    with memoryview(image) as view:
        fill(object_file, placement, base, externals, view)
    return bytes(image)


def fill(
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
    for number, zero, entries in object_file.relocations:
        _relocate(object_file, number, placement.starts[number], zero, entries, base, referents, image)


def _addresses(object_file: ObjectFile, placement: Placement, base: int, externals: Mapping[str, int]) -> list[int]:
    """The address of each symbol, 0 for those that are not loaded."""
    addresses = []
    for symbol in object_file.symbols:
        number = symbol.section
        found = None if symbol.is_local else externals.get(symbol.name)
        if found is not None:
            if not 0 <= found < 1 << 64:
                raise ImageError(f"the address of {symbol.name!r}, {found:#x}, has more than 64 bits")
            address = found
        elif number == NOWHERE:
            address = 0
        elif number == ABSOLUTE:
            address = symbol.value
        elif number != UNDEFINED:
            address = base + placement.starts[number] + symbol.value
        else:
            raise ImageError(f"undefined symbol {symbol.name!r}")
        addresses.append(address)
    return addresses


def _relocate(
    object_file: ObjectFile,
    number: int,
    start: int,
    zero: int,
    entries: memoryview,
    base: int,
    referents: tuple[list[int], list[int], list[int]],
    image: memoryview,
) -> None:
    """Apply the relocations of a section that starts at `start` in the image, whose symbol 0 has the number `zero`."""
    rules = RULES[object_file.target]
    for offset, kind, symbol, addend in RELOCATION.iter_unpack(entries):
        referent, manner, (lowest, end), size, shift, field = rules[kind]
        at = start + offset
        value = referents[referent][zero + symbol] + addend
        if manner == RELATIVELY:
            value -= base + at
        elif manner == IN_PAGE:
            value &= 0xFFF
        elif manner == BY_PAGE:
            value = (value & -0x1000) - (base + at & -0x1000)
        if not lowest <= value < end or value & (1 << shift) - 1:
            section = object_file.sections[number].name
            name = object_file.symbols[zero + symbol].name
            raise ImageError(
                f"{section}+{offset:#x}: relocation type {kind} cannot hold the value {value:#x} for {name!r}"
            )
        if field:
            value >>= shift
            if field == ADRP_FIELD:
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
