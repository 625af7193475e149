"""Images: objects of LLVM that are loaded and called, and objects by hand whose every patched field is known."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Callable
from itertools import pairwise

import pytest

from allocators import (
    Access,
    Adaptor,
    AllocError,
    Block,
    DebugAllocator,
    FailingAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    PageAlloc,
)
from garden.errors import ImageError
from garden.native import target
from garden.native.image.elf import MAX_IMAGE_BYTES, parse
from garden.native.image.link import link, place
from garden.native.image.load import Image
from tests.support.objects import (
    AARCH64,
    BSS,
    DATA,
    FUNC,
    GLOBAL,
    NOTE,
    OBJECT,
    TEXT,
    UNDEFINED,
    X86_64,
    NewSymbol,
    Relocation,
    write_object,
)

HOST = target.host_target()
needs_native = pytest.mark.skipif(HOST is None, reason="there is no native code for this machine")
TARGETS = (target.X86_64, target.AARCH64)

#: What LLVM makes every kind of section and reference of.
PROGRAM = """
@table = private unnamed_addr constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
@names = constant [2 x ptr] [ptr @hello, ptr @world]
@hello = private constant [6 x i8] c"hello\\00"
@world = private constant [6 x i8] c"world\\00"
@counter = global i64 7
@to_counter = global ptr @counter
@to_labs = global ptr @labs
@zeroes = global [100 x i64] zeroinitializer
@small = global i8 3
@index = global i64 2
@vector = global <2 x i64> <i64 100, i64 200>
@elsewhere = external global i64

declare i64 @labs(i64)
declare ptr @memcpy(ptr, ptr, i64)

define i64 @choose(i64 %x) {
  switch i64 %x, label %other [
    i64 0, label %zero
    i64 1, label %one
    i64 2, label %two
    i64 3, label %three
    i64 4, label %four
    i64 5, label %five
  ]
zero:
  ret i64 5
one:
  %abs = call i64 @labs(i64 -17)
  ret i64 %abs
two:
  %index = load volatile i64, ptr @index
  %looked = call i64 @look_up(i64 %index)
  ret i64 %looked
three:
  %old = load i64, ptr @counter
  %new = add i64 %old, 1
  store i64 %new, ptr @counter
  %far = load i64, ptr @elsewhere
  %sum = add i64 %new, %far
  ret i64 %sum
four:
  %float = sitofp i64 %x to double
  %scaled = fmul double %float, 2.625
  %whole = fptosi double %scaled to i64
  ret i64 %whole
five:
  %pair = load <2 x i64>, ptr @vector
  %byte = load i8, ptr @small
  %third = getelementptr i64, ptr @zeroes, i64 2
  store <2 x i64> %pair, ptr %third
  %fourth = getelementptr i64, ptr @zeroes, i64 3
  %second = load i64, ptr %fourth
  %wide = zext i8 %byte to i64
  %total = add i64 %second, %wide
  ret i64 %total
other:
  ret i64 -1
}

define internal i64 @look_up(i64 %x) noinline {
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %x
  %value = load i64, ptr %place
  %odd = and i64 %x, 1
  %name = getelementptr [2 x ptr], ptr @names, i64 0, i64 %odd
  %text = load ptr, ptr %name
  %letter = load i8, ptr %text
  %wide = zext i8 %letter to i64
  %sum = add i64 %value, %wide
  ret i64 %sum
}

define void @copy(ptr %to, ptr %from, i64 %size) {
  %done = call ptr @memcpy(ptr %to, ptr %from, i64 %size)
  ret void
}
"""
FAR = 0x7FFF_1234_5678


@pytest.fixture(scope="module")
def objects() -> dict[str, bytes]:
    """The program as an object of each target."""
    return {name: target.compile_text(PROGRAM, name) for name in TARGETS}


@pytest.fixture(scope="module")
def host_object(objects: dict[str, bytes]) -> bytes:
    assert HOST is not None
    return objects[HOST]


@pytest.fixture
def elsewhere() -> ctypes.c_int64:
    """A variable outside the image."""
    return ctypes.c_int64(1000)


@pytest.fixture
def externals(elsewhere: ctypes.c_int64) -> dict[str, int]:
    libc = ctypes.CDLL(None)
    addresses = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0 for name in ("labs", "memcpy")}
    return {**addresses, "elsewhere": ctypes.addressof(elsewhere)}


def function(image: Image, name: str, *arguments: type, returns: type | None = ctypes.c_int64) -> Callable[..., int]:
    return ctypes.CFUNCTYPE(returns, *arguments)(image.address(name))


@needs_native
def test_functions_of_an_image_run(host_object: bytes, externals: dict[str, int]) -> None:
    pages = PageAlloc()
    with Image(host_object, pages, externals) as image:
        choose = function(image, "choose", ctypes.c_int64)
        # A jump table, an external, constants, a pointer to one, a variable, a variable outside, a literal.
        assert [choose(x) for x in range(-1, 7)] == [-1, 5, 17, 33 + ord("h"), 1008, 10, 203, -1]
        assert choose(3) == 1009
        to, source = ctypes.create_string_buffer(8), ctypes.create_string_buffer(b"garden")
        copy = function(image, "copy", ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, returns=None)
        copy(to, source, 6)
        assert to.value == b"garden"
    assert (pages.live_blocks, pages.allocated_bytes) == (0, 0)


@needs_native
def test_each_image_has_variables_of_its_own(host_object: bytes, externals: dict[str, int]) -> None:
    pages = PageAlloc()
    with Image(host_object, pages, externals) as first, Image(host_object, pages, externals) as second:
        function(first, "choose", ctypes.c_int64)(3)
        counters = [ctypes.c_int64.from_address(image.address("counter")) for image in (first, second)]
        assert [counter.value for counter in counters] == [8, 7]
        for image, counter in zip((first, second), counters, strict=True):
            assert ctypes.c_void_p.from_address(image.address("to_counter")).value == ctypes.addressof(counter)
            assert ctypes.c_void_p.from_address(image.address("to_labs")).value == externals["labs"]
            address, size = image.data
            assert address <= ctypes.addressof(counter) < address + size
            assert not any(ctypes.string_at(image.address("zeroes"), 800))


@needs_native
def test_functions_are_listed_with_their_places(host_object: bytes, externals: dict[str, int]) -> None:
    with Image(host_object, PageAlloc(), externals) as image:
        assert set(image.symbols) == {"choose", "look_up", "copy"}
        spans = sorted(image.symbols.values())
        for (address, size), (following, _) in pairwise(spans):
            assert 0 < size <= following - address
        first, last = spans[0], spans[-1]
        assert last[0] + last[1] - first[0] <= image.code_size
        assert image.address("choose") == image.symbols["choose"][0]
        with pytest.raises(ImageError, match="no 'missing' in the image"):
            image.address("missing")
    assert not image.symbols
    with pytest.raises(ImageError, match="closed"):
        image.address("choose")
    image.close()


def mappings() -> list[tuple[int, int, str]]:
    """Start, end and access, such as "r-x", of what the process has in memory that is no file."""
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps]
    anonymous = [(words[0].split("-"), words[1][:3]) for words in lines if len(words) == 5]
    return [(int(start, 16), int(end, 16), access) for (start, end), access in anonymous]


@needs_native
@pytest.mark.parametrize("pages", [PageAlloc(), None], ids=["PageAlloc", "system"])
def test_code_and_constants_are_sealed_and_variables_are_not(
    pages: PageAlloc | None, host_object: bytes, externals: dict[str, int]
) -> None:
    executable = [found for found in mappings() if found[2] == "r-x"]
    with Image(host_object, pages, externals) as image:
        assert function(image, "choose", ctypes.c_int64)(3) == 1008
        found = {
            name: [access for start, end, access in mappings() if start <= image.address(name) < end]
            for name in ("choose", "names", "counter", "zeroes")
        }
        assert found == {"choose": ["r-x"], "names": ["r-x"], "counter": ["rw-"], "zeroes": ["rw-"]}
    assert [found for found in mappings() if found[2] == "r-x"] == executable


@needs_native
@pytest.mark.parametrize("make", [DebugAllocator, MetricAllocator, lambda pages: LimitAllocator(pages, 1 << 20)])
def test_an_image_lives_in_the_pages_of_any_allocator(
    make: Callable[[PageAlloc], DebugAllocator[PageAlloc]], host_object: bytes, externals: dict[str, int]
) -> None:
    pages = PageAlloc()
    allocator = make(pages)
    with Image(host_object, allocator, externals) as image:
        assert function(image, "choose", ctypes.c_int64)(3) == 1008
    assert allocator.live_blocks == 0
    allocator.close()
    assert pages.live_blocks == 0


class Refusing(Adaptor[PageAlloc]):
    """Pages that cannot be executed, as on a hardened system."""

    def allocate(self, layout: Layout) -> Block:
        return self.parent.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.parent.deallocate(block, layout)

    def protect(self, block: Block, access: Access, offset: int = 0, size: int | None = None) -> None:
        raise PermissionError(13, "no")


@needs_native
def test_whatever_fails_leaves_no_block_behind(host_object: bytes, externals: dict[str, int]) -> None:
    pages = PageAlloc()
    with pytest.raises(AllocError):
        Image(host_object, FailingAllocator(pages, fail_index=0), externals)
    with pytest.raises(ImageError, match="executable"):
        Image(host_object, Refusing(pages), externals)
    for name in externals:
        with pytest.raises(ImageError, match=f"undefined symbol '{name}'"):
            Image(host_object, pages, {other: at for other, at in externals.items() if other != name})
    with pytest.raises(ImageError, match="more than 64 bits"):
        Image(host_object, pages, externals | {"elsewhere": 1 << 64})
    assert (pages.live_blocks, pages.allocated_bytes) == (0, 0)


@needs_native
def test_an_object_of_another_machine_is_linked_but_not_loaded(
    objects: dict[str, bytes], externals: dict[str, int]
) -> None:
    pages = PageAlloc()
    for name in TARGETS:
        assert link(parse(objects[name]), 0x10000, externals)
        if name != HOST:
            with pytest.raises(ImageError, match=f"an object for {name} cannot be loaded"):
                Image(objects[name], pages, externals)
    assert pages.live_blocks == 0


@needs_native
def test_an_object_without_code_is_not_loaded() -> None:
    assert HOST is not None
    pages = PageAlloc()
    with pytest.raises(ImageError, match="no code"):
        Image(target.compile_text("@lonely = global i64 1", HOST), pages, {})
    assert pages.live_blocks == 0


@pytest.mark.parametrize("name", TARGETS)
def test_linking_changes_nothing_but_addresses(name: str, objects: dict[str, bytes]) -> None:
    externals = {"labs": FAR, "memcpy": FAR + 64, "elsewhere": FAR + 128}
    here, there = (link(parse(objects[name]), base, externals) for base in (0x10000, 0x7654_0001_0000))
    assert link(parse(objects[name]), 0x10000, externals) == here
    # Within an image everything is relative, so that only words which hold addresses differ.
    for first, second in zip(struct.iter_unpack("<Q", here), struct.iter_unpack("<Q", there), strict=True):
        assert second[0] - first[0] in (0, 0x7654_0000_0000)


def word(image: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", image, at)[0])


def page_target(instruction: int, address: int) -> int:
    """The page that an ADRP at an address makes."""
    assert instruction & 0x9F00_0000 == 0x9000_0000
    pages = (instruction >> 5 & 0x7FFFF) << 2 | instruction >> 29 & 3
    return (address & -4096) + ((pages ^ 1 << 20) - (1 << 20)) * 4096


def test_aarch64_instructions_of_llvm_reach_what_they_name(objects: dict[str, bytes]) -> None:
    base = 0x5555_0000_0000
    externals = {"labs": FAR, "memcpy": FAR + 64, "elsewhere": FAR + 128}
    object_file = parse(objects[target.AARCH64])
    image = link(object_file, base, externals)
    starts = place(object_file, 4096).starts
    reached: dict[str, set[int]] = {}
    for number, _, entries in object_file.relocations:
        for offset, kind, symbol, addend in struct.iter_unpack("<QIIq", entries):
            named = object_file.symbols[symbol]
            at = starts[number] + offset
            instruction = word(image, at)
            if kind in (275, 311):
                # What follows in LLVM's code has the rest of the same address, whatever the schedule.
                reached.setdefault(named.name, set()).add(page_target(instruction, base + at))
            elif kind == 283:
                distance = (instruction & 0x3FFFFFF) - (1 << 26 if instruction & 1 << 25 else 0)
                called = at + 4 * distance
                if named.section == UNDEFINED:
                    assert image[called : called + 8].hex() == "5000005800021fd6"
                    assert struct.unpack_from("<Q", image, called + 8)[0] == externals[named.name]
                else:
                    assert called == starts[named.section] + named.value + addend
    for name, pages in reached.items():
        assert all(0 <= page - base < len(image) for page in pages), name
    assert {"counter", "elsewhere", "vector"} <= set(reached)


# By hand: .text has 64 bytes and lies at BASE, stubs (or, without any, slots) come next, .data a page later.
BASE = 0x10000
PLACE = 8
SYMBOLS = [
    NewSymbol("local", TEXT, 0x20, 8, GLOBAL | FUNC),
    NewSymbol("variable", DATA, 0x10, 8, GLOBAL | OBJECT),
    NewSymbol("far", UNDEFINED),
    NewSymbol("absolute", 0xFFF1, 0x1234),
    NewSymbol("zeroed", BSS, 8, 8, GLOBAL | OBJECT),
    NewSymbol("comment", NOTE),
]
LOCAL, VARIABLE, FAR_AWAY, ABSOLUTE, ZEROED, COMMENT = range(1, 7)


def by_hand(machine: int, *relocations: Relocation, word: int = 0) -> bytes:
    text = bytearray(b"\xcc" * 64)
    struct.pack_into("<Q", text, PLACE, word)
    return write_object(machine, bytes(text), SYMBOLS, list(relocations), data=bytes(range(32)), zeroes=32)


@pytest.mark.parametrize(
    ("kind", "symbol", "addend", "patched"),
    [
        (1, VARIABLE, 5, "1510010000000000"),  # 64: 0x11010 + 5
        (1, FAR_AWAY, 0, "78563412ff7f0000"),
        (1, ABSOLUTE, 1, "3512000000000000"),
        (1, ZEROED, 0, "2810010000000000"),  # .bss follows .data at 0x11020
        (2, VARIABLE, -4, "0410000000000000"),  # PC32: 0x11010 - 4 - 0x10008
        (4, LOCAL, -4, "1400000000000000"),  # PLT32: 0x10020 - 4 - 0x10008
        (4, FAR_AWAY, -4, "3400000000000000"),  # the stub: 0x10040 - 4 - 0x10008
        (9, VARIABLE, -4, "3400000000000000"),  # GOTPCREL: the slot is at 0x10040 too
        (41, VARIABLE, -4, "3400000000000000"),  # GOTPCRELX
        (42, FAR_AWAY, -4, "3400000000000000"),  # REX_GOTPCRELX
        (10, VARIABLE, 0, "1010010000000000"),  # 32
        (11, VARIABLE, -0x20000, "1010ffff00000000"),  # 32S: 0x11010 - 0x20000
        (24, VARIABLE, 0, "0810000000000000"),  # PC64: 0x11010 - 0x10008
        (24, LOCAL, -0x100, "18ffffffffffffff"),
    ],
)
def test_x86_64_relocations(kind: int, symbol: int, addend: int, patched: str) -> None:
    image = link(parse(by_hand(X86_64, (PLACE, kind, symbol, addend))), BASE, {"far": FAR})
    assert image[PLACE : PLACE + 8].hex() == patched
    assert image[:PLACE] == b"\xcc" * PLACE
    assert image[PLACE + 8 : 64] == b"\xcc" * 48
    if kind == 4 and symbol == FAR_AWAY:
        # jmp [rip + 2], with the address behind it.
        assert image[64:80].hex() == "ff2502000000cccc78563412ff7f0000"
    if kind in (9, 41, 42):
        assert image[64:72].hex() == ("78563412ff7f0000" if symbol == FAR_AWAY else "1010010000000000")


@pytest.mark.parametrize(
    ("kind", "symbol", "addend", "before", "after"),
    [
        (257, VARIABLE, 5, 0, 0x11015),  # ABS64
        (257, FAR_AWAY, 0, 0, FAR),
        (260, VARIABLE, 0, 0, 0x1008),  # PREL64: 0x11010 - 0x10008
        (261, LOCAL, -0x100, 0, 0xFFFFFF18),  # PREL32
        (275, VARIABLE, 0, 0x90000003, 0xB0000003),  # adrp: 1 page on
        (275, VARIABLE, 0x4000, 0x90000003, 0xB0000023),  # 5 pages
        (275, VARIABLE, -0x3000, 0x90000003, 0xD0FFFFE3),  # -2 pages
        (277, VARIABLE, 0, 0x91000063, 0x91004063),  # add: 0x010
        (277, VARIABLE, -0x11, 0x91000063, 0x913FFC63),  # 0xfff
        (278, VARIABLE, 1, 0x39400063, 0x39404463),  # ldrb: 0x011
        (284, VARIABLE, 2, 0x79400063, 0x79402463),  # ldrh: 0x012 / 2
        (285, VARIABLE, 4, 0xB9400063, 0xB9401463),  # ldr w: 0x014 / 4
        (286, VARIABLE, 8, 0xF9400063, 0xF9400C63),  # ldr x: 0x018 / 8
        (299, VARIABLE, 16, 0x3DC00063, 0x3DC00863),  # ldr q: 0x020 / 16
        (279, LOCAL, 0, 0x36000003, 0x360000C3),  # tbz: 0x18 / 4
        (279, LOCAL, -0x20, 0x36000003, 0x3607FFC3),  # -2
        (280, LOCAL, 0, 0x54000001, 0x540000C1),  # b.ne
        (280, LOCAL, -0x20, 0x54000001, 0x54FFFFC1),
        (282, LOCAL, 0, 0x14000000, 0x14000006),  # b
        (283, LOCAL, -0x20, 0x94000000, 0x97FFFFFE),  # bl
        (283, FAR_AWAY, 0, 0x94000000, 0x9400000E),  # the stub: 0x10040 - 0x10008
        (282, FAR_AWAY, 0, 0x14000000, 0x1400000E),
        (311, VARIABLE, 0, 0xB0000003, 0x90000003),  # adrp: the slot at 0x10040 is in the same page
        (312, VARIABLE, 0, 0xF9400063, 0xF9402063),  # ldr x: 0x040 / 8
    ],
)
def test_aarch64_relocations(kind: int, symbol: int, addend: int, before: int, after: int) -> None:
    object_bytes = by_hand(AARCH64, (PLACE, kind, symbol, addend), word=before)
    image = link(parse(object_bytes), BASE, {"far": FAR})
    assert struct.unpack_from("<Q", image, PLACE)[0] == after
    if kind in (282, 283) and symbol == FAR_AWAY:
        # ldr x16, . + 8; br x16, with the address behind it.
        assert image[64:80].hex() == "5000005800021fd678563412ff7f0000"
    if kind in (311, 312):
        assert image[64:72].hex() == "1010010000000000"


@pytest.mark.parametrize(
    ("machine", "kind", "symbol", "addend"),
    [
        (X86_64, 2, FAR_AWAY, 0),
        (X86_64, 2, VARIABLE, 1 << 31),
        (X86_64, 4, LOCAL, -(1 << 31) - 0x20),
        (X86_64, 9, VARIABLE, 1 << 31),
        (X86_64, 10, VARIABLE, -0x20000),
        (X86_64, 11, VARIABLE, 1 << 31),
        (X86_64, 1, VARIABLE, -0x20000),
        (AARCH64, 261, FAR_AWAY, 0),
        (AARCH64, 275, FAR_AWAY, 0),
        (AARCH64, 275, VARIABLE, 1 << 32),
        (AARCH64, 279, LOCAL, 1 << 15),
        (AARCH64, 280, LOCAL, 1 << 20),
        (AARCH64, 282, LOCAL, 1 << 27),
        (AARCH64, 283, LOCAL, -(1 << 27) - 0x20),
        # In reach, but not a multiple of what the instruction counts in.
        (AARCH64, 283, LOCAL, 2),
        (AARCH64, 284, VARIABLE, 1),
        (AARCH64, 285, VARIABLE, 2),
        (AARCH64, 286, VARIABLE, 4),
        (AARCH64, 299, VARIABLE, 8),
    ],
)
def test_a_value_that_does_not_fit_is_refused(machine: int, kind: int, symbol: int, addend: int) -> None:
    object_file = parse(by_hand(machine, (PLACE, kind, symbol, addend)))
    with pytest.raises(ImageError, match=rf"\.text\+0x8: relocation type {kind} cannot hold the value -?0x"):
        link(object_file, BASE, {"far": FAR})


def test_absolute_32_bit_references_need_an_image_at_a_low_address() -> None:
    object_file = parse(by_hand(X86_64, (PLACE, 11, VARIABLE, 0)))
    assert link(object_file, 0x7FFE_0000, {"far": FAR})[PLACE : PLACE + 4].hex() == "1010fe7f"
    with pytest.raises(ImageError):
        link(object_file, 0x7FFF_F000, {"far": FAR})


def test_one_stub_and_one_slot_serve_all_references_to_a_symbol() -> None:
    relocations = [(offset, 4, FAR_AWAY, -4) for offset in (0, 8, 16)]
    relocations += [(offset, 42, symbol, -4) for offset, symbol in ((24, VARIABLE), (32, FAR_AWAY), (40, VARIABLE))]
    placement = place(parse(by_hand(X86_64, *relocations)), 4096)
    assert (placement.stubs, placement.code_end, placement.slots) == (64, 80, 80)
    image = link(parse(by_hand(X86_64, *relocations)), BASE, {"far": FAR})
    assert struct.unpack_from("<2Q", image, 80) == (0x11010, FAR)
    assert not any(image[96:4096])


@pytest.mark.parametrize("page_size", [4096, 16384, 65536])
def test_what_is_writable_begins_a_page(page_size: int) -> None:
    placement = place(parse(by_hand(X86_64)), page_size)
    assert (placement.data, placement.data_end, placement.size) == (page_size, page_size + 64, 2 * page_size)


@pytest.mark.parametrize("base", [0x10001, 0x10800, -0x1000, (1 << 64) - 0x1000])
def test_an_image_is_at_a_page_of_the_address_space(base: int) -> None:
    with pytest.raises(ImageError, match="cannot be at address"):
        link(parse(by_hand(X86_64)), base, {"far": FAR})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": 3}, "unknown machine 3"),
        ({"kind": 2}, "ELF type 2"),
        ({"align": 24}, "alignment of 24"),
        ({"align": 1 << 20}, "alignment of 1048576"),
        ({"zeroes": MAX_IMAGE_BYTES + 1}, "bss has 134217729 bytes"),
        ({"zeroes": MAX_IMAGE_BYTES}, "an image of 134225920 bytes"),
        ({"text_flags": 7}, "flags 0x7"),
        ({"text_flags": 0x406}, "flags 0x406"),
        ({"rela_type": 9}, "relocations without addends"),
        ({"relocations": [(60, 1, VARIABLE, 0)]}, r"text\+0x3c is relocated, but it has 64 bytes"),
        ({"relocations": [(1 << 63, 1, VARIABLE, 0)]}, "is relocated"),
        ({"relocations": [(0, 777, VARIABLE, 0)]}, "unknown relocation type 777"),
        ({"relocations": [(0, 1, 7, 0)]}, "symbol 7 of 7"),
        ({"relocations": [(0, 1, 0, 0)]}, "'', which is not loaded"),
        ({"relocations": [(0, 1, COMMENT, 0)]}, "'comment', which is not loaded"),
        ({"symbols": [NewSymbol("long", TEXT, 60, 8)]}, "'long', 8 bytes at 0x3c, is not inside the 64 of .text"),
        ({"symbols": [NewSymbol("behind", TEXT, (1 << 64) - 1, 1)]}, "'behind'"),
        ({"symbols": [NewSymbol("common", 0xFFF2)]}, "'common' is in section 65522"),
        ({"symbols": [NewSymbol("lost", 8)]}, "'lost' is in section 8 of 8"),
        ({"symbols": [NewSymbol("thread", DATA, info=GLOBAL | 6)]}, "'thread' has type 6"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], message: str) -> None:
    parts: dict[str, object] = {"machine": X86_64, "text": bytes(64), "symbols": SYMBOLS, "relocations": []}
    parts |= {"data": bytes(32), "zeroes": 32}
    with pytest.raises(ImageError, match=message):
        place(parse(write_object(**(parts | changes))), 4096)  # type: ignore[arg-type]


def test_relocated_constants_are_sealed_and_unwinding_tables_left_out() -> None:
    for name, placed in ((".data.rel.ro.names", True), (".eh_frame", False)):
        data = write_object(X86_64, bytes(64), [], [], text_name=name, text_flags=3, data=bytes(8))
        object_file = parse(data)
        placement = place(object_file, 4096)
        assert placement.code_end == 0
        assert placement.starts[TEXT] == (0 if placed else -1)
        assert placement.data == (4096 if placed else 0)


def changed(data: bytes, chance: random.Random) -> bytes:
    """Damaged data: cut off, with bits flipped, or with a word overwritten."""
    damaged = bytearray(data)
    at = chance.randrange(len(data))
    how = chance.randrange(6)
    if how == 0:
        return bytes(damaged[:at])
    if how == 1:
        # Headers, where most of what can go wrong stands.
        at = chance.choice((chance.randrange(64), len(data) - 1 - chance.randrange(64 * 16)))
    if how == 2:
        at = min(at & ~7, len(data) - 8)
        damaged[at : at + 8] = chance.choice((bytes(8), b"\xff" * 8, chance.randbytes(8)))
    else:
        damaged[at] ^= 1 << chance.randrange(8)
    return bytes(damaged)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_object_is_an_image_or_an_image_error(name: str, seed: int, objects: dict[str, bytes]) -> None:
    chance = random.Random(f"{name} {seed}")
    data = objects[name]
    externals = {"labs": FAR, "memcpy": FAR, "elsewhere": FAR}
    refused = 0
    for _ in range(150):
        try:
            link(parse(changed(data, chance)), 0x5555_0000_0000, externals)
        except ImageError:
            refused += 1
    assert 0 < refused < 150


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_an_object_cut_off_anywhere_is_refused(machine: int) -> None:
    data = by_hand(machine)
    for size in range(len(data)):
        with pytest.raises(ImageError):
            parse(data[:size])


@needs_native
def test_no_damaged_object_leaves_a_block_behind(host_object: bytes, externals: dict[str, int]) -> None:
    pages = PageAlloc()
    chance = random.Random(1)
    for _ in range(150):
        try:
            Image(changed(host_object, chance), pages, externals).close()
        except ImageError:
            pass
        assert pages.live_blocks == 0


def test_an_image_is_made_of_any_bytes_like_object(objects: dict[str, bytes]) -> None:
    data = objects[target.X86_64]
    externals = {"labs": FAR, "memcpy": FAR, "elsewhere": FAR}
    assert link(parse(memoryview(data)), 0x10000, externals) == link(parse(data), 0x10000, externals)
