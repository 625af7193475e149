"""Typed loads and stores: compiled modules have the machine operations, and containers let nobody past their block."""

from __future__ import annotations

import ast
import importlib
import struct
import sys
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

import allocators
from allocators import Arena, BaseAllocator, Block, Layout, MisuseError, PageAlloc, Region, StackAlloc, memory
from allocators.block import address_of
from allocators.collections import ByteBuffer, HashMap, Interner, Table, Vec
from allocators.layout import ITEM_SIZES
from allocators.testing import Instrumented

INTEGERS = "BbHhIiQq"
FOLDER = Path(allocators.__file__).parent
USERS = [
    "allocators.arena",
    "allocators.stack",
    "allocators.collections.hash_map",
    "allocators.collections.interner",
    "allocators.collections.slots",
    "allocators.collections.storage",
    "allocators.collections.table",
    "allocators.collections.vec",
]


def signatures() -> list[ast.FunctionDef]:
    tree = ast.parse((FOLDER / "memory.py").read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    return [node for node in checked.body if isinstance(node, ast.FunctionDef)]


def use_everything() -> list[object]:
    vec = Vec(PageAlloc(), "q")
    for number in range(20):
        vec.append(number)
    vec.append_i64(5)
    vec[3] = 4
    vec.cells[4] = 9
    vec.fill(7, 3)
    vec.extend_from(vec)
    floats = Vec(PageAlloc(), "d")
    floats.append_f64(0.5)
    floats.cells.set_f64(0, floats.cells.get_f64(0) + 1)
    table = Table(PageAlloc(), "BId")
    table.append(1, 2, 3.5)
    table.insert(0, 4, 5, 6.5)
    del table[1]
    map = HashMap(PageAlloc())
    for number in range(30):
        map[number] = number
    del map[7]
    names = Interner(PageAlloc())
    ids = [names.intern(b"%d" % (number % 20)) for number in range(30)]
    stack = StackAlloc(bytearray(100))
    stack.push(3)
    stack.push_i64(4)
    popped = [stack.pop_i64(), stack.pop()]
    Arena(PageAlloc()).allocate(Layout(8))
    return [list(vec), vec.cells[3], list(floats), list(table), dict(map.items()), ids, names.lookup(3), popped]


EXPECTED = [
    [0, 1, 2, 4, 9, *range(5, 20), 5, 7, 7, 7] * 2,
    4,
    [1.5],
    [(4, 5, 6.5)],
    {number: number for number in range(30) if number != 7},
    [number % 20 for number in range(30)],
    b"3",
    [4, 3],
]


def test_compiled_modules_do_not_call_the_functions_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    assert use_everything() == EXPECTED

    def refuse(*_arguments: object) -> None:
        raise AssertionError("called as a Python function")

    for user in USERS:
        module = importlib.import_module(user)
        for function in signatures():
            if hasattr(module, function.name):
                monkeypatch.setattr(module, function.name, refuse)
    for function in signatures():
        monkeypatch.setattr(memory, function.name, refuse)
    if allocators.COMPILED:
        assert use_everything() == EXPECTED
    else:
        with pytest.raises(AssertionError, match="called as a Python function"):
            use_everything()


def test_a_pointer_is_an_address_in_compiled_modules_and_a_view_in_python() -> None:
    vec = Vec(PageAlloc(), "I", 10)
    assert vec.cells.pointer == (vec.address if allocators.COMPILED else vec.data)


def test_every_signature_has_its_function_in_the_header() -> None:
    header = (FOLDER / "memory.h").read_text()
    made = [
        f"{verb}_{name}"
        for name in ("u8", "u16", "u32", "i32", "i64", "u64", "f32", "f64")
        for verb in ("load", "store")
    ]
    for function in signatures():
        assert f"memory_{function.name}(" in header or function.name in made
        assert callable(getattr(memory, function.name))
    assert all(f"MEMORY_ACCESS({name.partition('_')[2]}, " in header for name in made)
    assert f'"{memory.KINDS}"' in header


@pytest.mark.parametrize("format", INTEGERS)
def test_integers_have_the_bounds_of_their_format(format: str) -> None:
    bits = 8 * ITEM_SIZES[format]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if format.islower() else (0, (1 << bits) - 1)
    vec = Vec(PageAlloc(), format)
    for number in (low, 0, 1, high):
        vec.append(number)
        assert vec[-1] == vec.view[-1] == number
        if number < 1 << 63:
            vec.append_i64(number)
            vec.cells[0] = number
            assert vec.cells[0] == vec.pop_i64() == vec[0] == number
    before = list(vec)
    for number in (low - 1, high + 1, 1 << 64, -(1 << 63) - 1, 1 << 100):
        with pytest.raises(ValueError, match="invalid value"):
            vec.append(number)
        with pytest.raises(ValueError, match="invalid value"):
            vec[0] = number
        if -(1 << 63) <= number < 1 << 63:
            with pytest.raises(ValueError, match=r"does not fit|invalid value"):
                vec.append_i64(number)
            with pytest.raises(ValueError, match=r"does not fit|invalid value"):
                vec.cells[0] = number
    for wrong in (0.5, "1", None, b"1"):
        with pytest.raises(TypeError):
            vec.append(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        vec.cells.get_f64(0)
    with pytest.raises(TypeError):
        vec.append_f64(0.5)
    assert list(vec) == before


def test_an_item_beyond_63_bits_does_not_pass_as_a_signed_one() -> None:
    vec = Vec(PageAlloc(), "Q")
    vec.append((1 << 64) - 1)
    with pytest.raises(OverflowError):
        vec.cells[0]
    with pytest.raises(ValueError, match="does not fit"):
        vec.cells[0] = -1
    assert list(vec) == [(1 << 64) - 1]


@pytest.mark.parametrize("format", "fd")
def test_floats_are_rounded_to_their_format(format: str) -> None:
    vec = Vec(PageAlloc(), format)
    for number in (0.1, -0.0, 1e300, float("inf"), 3, True):
        vec.append(number)
        (rounded,) = (
            array(format, [number])
            if abs(number) != 1e300
            else array(format, [float("inf") if format == "f" else number])
        )
        assert struct.pack("d", vec[-1]) == struct.pack("d", rounded)
        vec.append_f64(float(number))
        vec.cells.set_f64(0, vec.cells.get_f64(len(vec) - 1))
        assert vec[0] == rounded
    with pytest.raises(TypeError):
        vec.cells[0]
    with pytest.raises(TypeError):
        vec.cells[0] = 1
    with pytest.raises(TypeError):
        vec.append_i64(1)
    with pytest.raises((ValueError, OverflowError)):
        vec.append(10**400)


@pytest.mark.parametrize("index", [5, 6, -6, 1 << 31, 1 << 62, (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), -(1 << 70)])
def test_no_index_reaches_outside(index: int) -> None:
    vec = Vec(PageAlloc(), "H")
    vec.extend(range(5))
    table = Table(PageAlloc(), "BH")
    for number in range(5):
        table.append(number, number)
    uses: list[Callable[[], object]] = [
        lambda: vec[index],
        lambda: vec.__setitem__(index, 1),
        lambda: vec.__delitem__(index),
        lambda: vec.pop(index),
        lambda: table[index],
        lambda: table.__setitem__(index, (1, 2)),
    ]
    if -(1 << 63) <= index < 1 << 63:
        for cells in (vec.cells, *table.cells):
            uses += [lambda cells=cells: cells[index], lambda cells=cells: cells.__setitem__(index, 1)]  # type: ignore[misc]
            uses += [lambda cells=cells: cells.get(index), lambda cells=cells: cells.set(index, 1)]  # type: ignore[misc]
    for use in uses:
        with pytest.raises(IndexError):
            use()
    assert (list(vec), len(table)) == ([0, 1, 2, 3, 4], 5)


def test_typed_access_does_not_count_from_the_end() -> None:
    vec = Vec(PageAlloc(), "q")
    vec.append(1)
    with pytest.raises(IndexError):
        vec.cells[-1]
    with pytest.raises(IndexError):
        Vec(PageAlloc(), "q").pop_i64()


def test_cells_stay_good_while_their_container_grows_and_shrinks() -> None:
    table = Table(PageAlloc(), "BIq")
    bytes_, words, longs = table.cells
    for number in range(5000):
        table.add()
        bytes_[number] = number & 255
        words[number] = number
        longs[number] = -number
    table.truncate(100)
    table.shrink_to_fit()
    assert [(bytes_[row], words[row], longs[row]) for row in range(100)] == list(table)
    table.close()
    for cells in table.cells:
        with pytest.raises(IndexError):
            cells[0]


def test_columns_at_odd_addresses_hold_their_items() -> None:
    # A region that starts where no machine type is aligned.
    buffer = bytearray(1000)
    start = address_of(memoryview(buffer))
    odd = Region.of(buffer).part(start + 1, 801)

    class Odd(BaseAllocator):
        def allocate(self, layout: Layout) -> Block:
            return Block(odd.address, layout.size, odd)

        def deallocate(self, block: Block, layout: Layout) -> None:
            block.release()

    for format in ITEM_SIZES:
        vec = Vec(Odd(), format, 50)
        for number in range(50):
            vec.append(number)
        if format in INTEGERS:
            assert [vec.cells[index] for index in range(50)] == list(range(50))
        assert list(vec) == list(range(50))
        vec.close()


class Short(Instrumented):
    """Returns blocks that are smaller than they must be, or cannot be written to."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def allocate(self, layout: Layout) -> Block:
        if self.fault == "small":
            return super().allocate(Layout(layout.size // 2, layout.align))
        block = super().allocate(layout)
        block.region.memory = block.view.toreadonly()
        return block

    def allocate_zeroed(self, layout: Layout) -> Block:
        return self.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        super().deallocate(block, Layout(block.size, layout.align))


@pytest.mark.parametrize("fault", ["small", "read-only"])
def test_a_block_that_is_of_no_use_is_given_back(fault: str) -> None:
    allocator = Short(fault)
    uses: list[Callable[[], object]] = [
        lambda: Vec(allocator, "q").append(1),
        lambda: Vec(allocator, "q").append_i64(1),
        lambda: Vec(allocator, "I", 100),
        lambda: Vec(allocator, "I").fill_zero(100),
        lambda: Table(allocator, "qI").append(1, 2),
        lambda: ByteBuffer(allocator).write(b"12345"),
        lambda: HashMap(allocator).set(1, 2),
        lambda: Interner(allocator).intern(b"name"),
    ]
    for use in uses:
        with pytest.raises((MisuseError, TypeError)):
            use()
    vec = Vec(allocator, "q")
    for _ in range(2):
        with pytest.raises((MisuseError, TypeError)):
            vec.append(1)
        assert (len(vec), vec.capacity) == (0, 0)
    vec.close()
    assert allocator.live_blocks == 0


def test_a_parent_of_an_arena_that_returns_too_little_is_refused() -> None:
    with pytest.raises((MisuseError, TypeError)):
        Arena(Short("small")).allocate(Layout(8))


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x7F, 0x80, 0xFF])
def test_a_map_or_interner_that_somebody_has_overwritten_stays_inside_its_block(byte: int) -> None:
    buffer = bytearray(1 << 16)
    map = HashMap(StackAlloc(buffer))
    for number in range(100):
        map[number] = number
    other = bytearray(1 << 16)
    names = Interner(StackAlloc(other))
    for number in range(100):
        names.intern(b"%d" % number)
    # Zeros would be free slots; any view of the whole can do this.
    for whole in (buffer, other):
        whole[:-1:2] = bytes([byte]) * (len(whole) // 2)
    uses: list[Callable[[int], object]] = [
        map.__getitem__,
        map.pop,
        lambda number: names.find(b"%d" % number),
        names.lookup,
    ]
    for number in range(200):
        for use in uses:
            try:
                use(number)
            except (MisuseError, KeyError, IndexError):
                pass


class Meddling(BaseAllocator):
    """Calls a function before each allocation, once."""

    def __init__(self) -> None:
        self.parent = PageAlloc()
        self.call: Callable[[], object] | None = None

    def allocate(self, layout: Layout) -> Block:
        call, self.call = self.call, None
        if call is not None:
            call()
        return self.parent.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.parent.deallocate(block, layout)


@pytest.mark.parametrize("change", ["close", "clear", "shrink"])
def test_a_source_that_changes_while_the_target_grows_is_not_read(change: str) -> None:
    source = Vec(PageAlloc(), "q")
    source.extend(range(1000))
    allocator = Meddling()
    target = Vec(allocator, "q")
    target.append(1)

    def shrink() -> None:
        source.truncate(1)
        source.shrink_to_fit()

    allocator.call = {"close": source.close, "clear": source.clear, "shrink": shrink}[change]
    with pytest.raises(MisuseError):
        target.extend_from(source)
    assert list(target) == [1]


def test_a_container_cannot_be_used_while_its_allocator_makes_it_grow() -> None:
    allocator = Meddling()
    vec = Vec(allocator, "q")
    uses: list[Callable[[], object]] = [
        lambda: vec.append(1),
        lambda: vec.append_i64(1),
        lambda: vec.cells[0],
        lambda: vec.cells.__setitem__(0, 1),
        lambda: vec.pop_i64(),
        lambda: vec.extend_from(vec),
        lambda: vec.fill_zero(3),
        vec.close,
    ]
    vec.append(0)
    for use in uses:
        while len(vec) < vec.capacity:
            vec.append_i64(7)
        errors: list[Exception] = []

        def call(use: Callable[[], object] = use, errors: list[Exception] = errors) -> None:
            with pytest.raises(MisuseError) as caught:
                use()
            errors.append(caught.value)

        allocator.call = call
        vec.append_i64(7)
        assert [type(error) for error in errors] == [MisuseError]


@pytest.mark.skipif(sys.platform != "linux", reason="the resident memory is read from /proc")
def test_reserving_room_for_many_entries_touches_no_pages() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = resident()
    map = HashMap(PageAlloc())
    map[1] = 2
    map.reserve(30_000_000)
    assert map[1] == 2
    assert map.capacity >= 30_000_000
    assert resident() - before < 50 << 20
    map.close()


def test_zeros_at_the_end_of_a_vec_that_was_used_are_zeros() -> None:
    arena = Arena(PageAlloc())
    dirty = arena.allocate(Layout(4096))
    dirty.view[:] = b"\xff" * 4096
    arena.reset()
    vec = Vec(arena, "I")
    vec.fill_zero(50)
    vec.append(9)
    vec.fill_zero(60)
    assert list(vec) == [0] * 50 + [9] + [0] * 60
    vec.fill_zero(0)
    with pytest.raises(MisuseError):
        vec.fill_zero(-1)
