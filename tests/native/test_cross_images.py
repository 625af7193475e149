"""Images for AArch64 that are made here: the JIT's and the interpreter's, linked, with every relocation read back."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from garden.native.codegen.compiler import compile_program
from garden.native.codegen.interpreter import interpreter_text
from garden.native.codegen.module import RuntimeFunctions
from garden.native.image.elf import ObjectFile, parse
from garden.native.image.link import link, place
from garden.native.target import AARCH64, compile_text
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

PROGRAMS = Path(__file__).parent.parent / "programs"
BASE = 0x7F12_3456_7000
#: Functions of libc, farther away than a call reaches.
EXTERNALS = {name: 0x1000 * index for index, name in enumerate(("memcpy", "memmove", "memset", "memcmp"), 1)}

#: Of relocations that patch a field of an instruction: where it begins, its bits, and what it counts in bytes.
DISTANCES = {279: (5, 14, 4), 280: (5, 19, 4), 282: (0, 26, 4), 283: (0, 26, 4)}
LOW = {277: 1, 278: 1, 284: 2, 285: 4, 286: 8, 299: 16}


#: Added to one of the test programs, so that all that a program can have is there.
SHOWN = b"""
import ("io" "math" "arr" "opt")
fn shown(x:Double) { io.println(math.clamp(math.sqrt(x) 0.5 1000.25)) }
fn pick(n:Int) Str { match { n == 1 {"one"} n == 2 {"two"} n == 3 {"three"} n == 4 {"four"} n == 5 {"five"} {"more"} } }
shown(arr.get([2.0 3.5] 1))
io.println(pick(opt.or(opt.some(3) 1)))
"""


def jit_object() -> bytes:
    """Of a program with strings, Doubles, arrays, options and tables."""
    source = Source("test", (PROGRAMS / "workloads" / "keyword_table.garden").read_bytes() + SHOWN)
    with StageAllocators() as allocators, Compilation(source, allocators, STANDARD) as compilation:
        ir = compilation.optimise()
        return compile_program(ir, allocators["scratch"], AARCH64, whole=True).object


def interpreter_object() -> bytes:
    return compile_text(interpreter_text(AARCH64, RuntimeFunctions(AARCH64)), AARCH64)


def signed(value: int, bits: int) -> int:
    return (value ^ 1 << bits - 1) - (1 << bits - 1)


class Linked:
    """An image, and where its symbols are."""

    def __init__(self, object_file: ObjectFile) -> None:
        self.object = object_file
        self.image = link(object_file, BASE, EXTERNALS)
        self.starts = place(object_file, 4096).starts
        self.kinds: dict[int, int] = {}

    def address(self, symbol: int) -> int:
        named = self.object.symbols[symbol]
        return BASE + self.starts[named.section] + named.value if named.section else EXTERNALS[named.name]

    def word(self, format: str, address: int) -> int:
        return int(struct.unpack_from(f"<{format}", self.image, address - BASE)[0])

    def jumped_to(self, address: int) -> int:
        """Where code at an address goes, if it is a stub."""
        if self.word("I", address) == 0x58000050:
            return self.word("Q", address + 8)
        return address

    def check(self, kind: int, address: int, wanted: int) -> None:
        """Read back what a relocation has left at an address; `wanted` is what it refers to."""
        if kind == 257:
            assert self.word("Q", address) == wanted
            return
        if kind in (260, 261):
            assert address + self.word("q" if kind == 260 else "i", address) == wanted
            return
        instruction = self.word("I", address)
        if kind in DISTANCES:
            shift, bits, unit = DISTANCES[kind]
            distance = unit * signed(instruction >> shift & (1 << bits) - 1, bits)
            assert self.jumped_to(address + distance) == wanted
        elif kind == 275:
            pages = signed((instruction >> 5 & 0x7FFFF) << 2 | instruction >> 29 & 3, 21)
            assert instruction & 0x9F00_0000 == 0x9000_0000
            assert (address & -4096) + 4096 * pages == wanted & -4096
        else:
            assert (instruction >> 10 & 0xFFF) * LOW[kind] == wanted & 0xFFF


@pytest.mark.parametrize("make", [jit_object, interpreter_object])
def test_every_relocation_of_an_image_for_aarch64_leads_where_it_should(make: Callable[[], bytes]) -> None:
    linked = Linked(parse(make()))
    kinds: dict[int, int] = {}
    for number, _, entries in linked.object.relocations:
        for offset, kind, symbol, addend in struct.iter_unpack("<QIIq", entries):
            linked.check(kind, BASE + linked.starts[number] + offset, linked.address(symbol) + addend)
            kinds[kind] = kinds.get(kind, 0) + 1
    # What must be there: of pages, of places in them, of calls, and the distances of the entry.
    assert {260, 275, 277, 283} <= set(kinds), kinds
    assert sum(kinds.values()) > 100
