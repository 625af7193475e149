"""Arguments of containers and allocators: any size, any kind of number, and numbers that do something when asked."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy
import pytest

from allocators import (
    AllocError,
    Arena,
    CallbackAllocator,
    Layout,
    LayoutError,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    Region,
    StackAlloc,
)
from allocators.collections import ByteBuffer, HashMap, Interner, Table, Vec

HUGE = [2**52, 2**59, 2**60 - 1, 2**60, 2**60 + 1, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**200, 10**5000]


@pytest.mark.parametrize("count", HUGE, ids=lambda count: f"{count:#x}"[:20])
def test_no_container_takes_a_size_that_no_memory_has(count: int) -> None:
    metric = MetricAllocator(PageAlloc())
    for format in "BIq":
        vec = Vec(metric, format)
        vec.extend([1, 2, 3])
        for use in (
            vec.reserve,
            lambda count, vec=vec: vec.fill(7, count),
            lambda count, format=format: Vec(metric, format, count),
        ):
            with pytest.raises((AllocError, LayoutError)):
                use(count)
            assert (list(vec), vec.capacity) == ([1, 2, 3], 8)
        vec.close()
    for formats in ("QQ", "B", "BIq", "dddd"):
        table = Table(metric, formats)
        row = tuple(range(len(formats)))
        table.append(*row)
        for use in (
            table.reserve,
            lambda count, table=table, row=row: table.fill(count, *row),
            lambda count, formats=formats: Table(metric, formats, count),
        ):
            with pytest.raises((AllocError, LayoutError)):
                use(count)
            assert (list(table), table.capacity) == ([row], 8)
        table.close()
    with ByteBuffer(metric) as buffer:
        buffer.write(b"abc")
        for use in (buffer.reserve, lambda count: buffer.fill(0, count), lambda count: ByteBuffer(metric, count)):
            with pytest.raises((AllocError, LayoutError)):
                use(count)
        assert bytes(buffer) == b"abc"
    assert metric.live_blocks == 0


@pytest.mark.parametrize("count", HUGE, ids=lambda count: f"{count:#x}"[:20])
def test_a_map_that_cannot_grow_so_far_keeps_all_its_entries(count: int) -> None:
    metric = MetricAllocator(PageAlloc())
    with HashMap(metric) as map:
        map.update((key, key * key) for key in range(100))
        for use in (map.reserve, lambda count: HashMap(metric, count)):
            with pytest.raises((AllocError, LayoutError)):
                use(count)
        assert dict(map.items()) == {key: key * key for key in range(100)}
        assert all(map[key] == key * key for key in range(100))
        map[1000] = 1
        assert len(map) == 101
    assert metric.live_blocks == 0


@pytest.mark.parametrize("count", HUGE, ids=lambda count: f"{count:#x}"[:20])
def test_sizes_and_places_beyond_64_bits_get_the_documented_error(count: int) -> None:
    vec = Vec(PageAlloc(), "q")
    vec.extend([1, 2, 3])
    table = Table(PageAlloc(), "qd")
    table.append(1, 2)
    interner = Interner(PageAlloc())
    interner.intern(b"x")
    stack = StackAlloc(bytearray(256))
    stack.push(5)
    for use in (
        lambda: vec[count],
        lambda: vec[-count],
        lambda: vec.pop(count),
        lambda: vec.__delitem__(count),
        lambda: vec.truncate(count),
        lambda: table[count],
        lambda: table.__delitem__(-count),
        lambda: table.truncate(count),
        lambda: interner.lookup(count),
        lambda: interner.lookup(-count),
        lambda: stack.peek(count),
        lambda: stack.poke(count, 1),
        lambda: stack.pop_all(count),
    ):
        with pytest.raises(IndexError):
            use()
    for use in (
        lambda: vec.reserve(-count),
        lambda: vec.fill(1, -count),
        lambda: vec.extend_from(vec, -count),
        lambda: table.reserve(-count),
        lambda: table.fill(-count, 1, 2),
        lambda: HashMap(PageAlloc()).reserve(-count),
        lambda: stack.resume(count),
    ):
        with pytest.raises(MisuseError):
            use()
    vec.extend_from(vec, count)
    vec.insert(-count, 0)
    vec.insert(count, 4)
    table.insert(count, 3, 4)
    assert (list(vec), vec[-count:count].tolist()) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    assert (list(table), stack.pop(), stack.depth) == ([(1, 2.0), (3, 4.0)], 5, 0)


@pytest.mark.parametrize(
    "count", [2**62, 2**63 - 1, 2**63, 2**64, 2**200, 10**5000], ids=lambda count: f"{count:#x}"[:20]
)
def test_a_part_is_inside_its_region_or_refused(count: int) -> None:
    region = Region.of(bytearray(64))
    for address, size in (
        (region.address + 16, count),
        (region.address, count),
        (region.address + 16, -count),
        (count, 8),
        (-count, 8),
        (region.address - 1, 8),
        (region.address + 64, 1),
        (region.address + count, 0),
        (count, count),
    ):
        with pytest.raises(MisuseError, match="not inside"):
            region.part(address, size)
    assert region.part(region.address + 64, 0).size == 0
    assert region.part(region.address, 64).view.nbytes == 64


def test_layouts_say_what_is_wrong_with_them_whatever_the_size() -> None:
    for size, align in ((10**5000, 8), (-(10**5000), 8), (8, 10**5000), (8, -(2**70)), (2**63, 1), (2**63 - 1, 2)):
        with pytest.raises(LayoutError):
            Layout(size, align)
    for count in (2**60, 2**61, 2**63, 10**5000, -1):
        with pytest.raises(LayoutError):
            Layout.array("q", count)
    assert Layout.array("q", 2**60 - 1).size == 2**63 - 8
    for size, align in ((1.5, 8), ("1", 8), (8, None)):
        with pytest.raises(TypeError):
            Layout(size, align)  # type: ignore[arg-type]


def calling(action: Callable[[], object]) -> CallbackAllocator:
    """An allocator that does something before it gives memory and before it takes it back."""

    def allocate(layout: Layout) -> bytearray:
        action()
        return bytearray(layout.size)

    def free(_memory: bytearray, _layout: Layout) -> None:
        action()

    return CallbackAllocator(allocate, free)


class Number:
    """An integer by `__index__` alone."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Real:
    """A number by `__float__` alone."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return float(self.value)


NUMBERS = [Number, numpy.int64, numpy.uint8, numpy.int16, numpy.uint64]


@pytest.mark.parametrize("number", NUMBERS)
def test_whatever_has_an_index_is_an_int_to_a_container(number: Callable[[int], Any]) -> None:
    vec = Vec(PageAlloc(), "q", number(4))
    vec.append(number(1))
    vec.extend([number(2), 3, number(4)])
    vec.insert(number(0), number(0))
    vec.fill(number(5), number(2))
    vec[number(1)] = number(9)
    vec[number(2) : number(4)] = [number(7), number(8)]
    assert (list(vec), vec[number(6)], vec.pop(number(0)), type(vec[0])) == ([0, 9, 7, 8, 4, 5, 5], 5, 0, int)
    del vec[number(0)]
    vec.truncate(number(4))
    vec.reserve(number(10))
    vec.extend_from(vec, number(3))
    assert list(vec) == [7, 8, 4, 5, 5]
    table = Table(PageAlloc(), "Bqd", number(3))
    table.append(number(1), number(2), number(3))
    table.insert(number(0), number(4), number(5), number(6))
    table.fill(number(2), number(7), number(8), number(9))
    table[number(1)] = (number(1), number(1), number(1))
    assert list(table) == [(4, 5, 6.0), (1, 1, 1.0), (7, 8, 9.0), (7, 8, 9.0)]
    del table[number(0)]
    table.truncate(number(2))
    table.reserve(number(1))
    assert (table[number(0)], table.column(number(1)).tolist()) == ((1, 1, 1.0), [1, 8])
    map = HashMap(PageAlloc(), number(3))
    map[number(1)] = number(2)
    map.set(number(3), number(4))
    map.update([(number(5), number(6))])
    assert map.setdefault(number(7), number(8)) == 8
    assert (map[number(1)], map.get(number(3)), number(5) in map, map.pop(number(7))) == (2, 4, True, 8)
    map.delete(number(1))
    map.reserve(number(50))
    assert dict(map.items()) == {3: 4, 5: 6}
    buffer = ByteBuffer(PageAlloc(), number(1))
    buffer.write_byte(number(65))
    buffer.fill(number(66), number(3))
    buffer[number(1)] = number(67)
    assert (bytes(buffer), buffer.slice(number(1), number(3))) == (b"ACBB", b"CB")
    interner = Interner(PageAlloc())
    interner.intern(b"x")
    assert interner.lookup(number(0)) == b"x"


@pytest.mark.parametrize("number", NUMBERS)
def test_whatever_has_an_index_is_an_int_to_an_allocator(number: Callable[[int], Any]) -> None:
    assert Layout(number(24), number(8)) == Layout(24, 8)
    assert Layout.array("q", number(3)) == Layout(24, 8)
    stack = StackAlloc(bytearray(256))
    stack.push(number(1))
    stack.push_all([number(2), 3])
    stack.poke(number(0), number(4))
    assert (stack.peek(number(1)), stack.pop_all(number(2)), stack.pop()) == (2, [4, 2], 1)
    page = PageAlloc()
    block = page.allocate(Layout(number(100)))
    page.protect(block, "r", number(0))
    page.protect(block, "rw")
    page.deallocate(block, Layout(100))


@pytest.mark.parametrize("real", [Real, Number, numpy.float64, numpy.float32, numpy.int64, int])
@pytest.mark.parametrize("format", ["f", "d"])
def test_whatever_has_a_float_is_one_to_a_container(format: str, real: Callable[[int], Any]) -> None:
    vec = Vec(PageAlloc(), format)
    vec.append(real(1))
    vec.extend([real(2), 3.0])
    vec.insert(0, real(0))
    vec.fill(real(5), 2)
    vec[0] = real(9)
    vec[1:3] = [real(7), real(8)]
    assert list(vec) == [9, 7, 8, 3, 5, 5]
    table = Table(PageAlloc(), format)
    table.append(real(1))
    table[0] = (real(2),)
    assert table[0] == (2.0,)
    for wrong in ("1.5", b"1", None, [1.0], 1j):
        for use in (lambda wrong=wrong: vec.append(wrong), lambda wrong=wrong: table.append(wrong)):
            with pytest.raises(TypeError):
                use()
    with pytest.raises(ValueError, match="does not fit"):
        vec.append(10**400)
    assert (len(vec), len(table)) == (6, 1)


def test_numpy_arrays_of_any_layout_and_kind_are_taken_item_by_item() -> None:
    for items in (
        numpy.arange(5, dtype=">i4"),
        numpy.arange(5, dtype=object),
        numpy.arange(10, dtype="u1")[::2] // 2,
        (ctypes.c_int * 5)(0, 1, 2, 3, 4),
    ):
        vec = Vec(PageAlloc(), "q")
        vec.extend(items)
        assert list(vec) == [0, 1, 2, 3, 4]
    with pytest.raises((TypeError, ValueError)):
        vec.extend(numpy.zeros((2, 2), dtype="i8"))
    assert len(vec) == 5


def test_a_region_of_python_objects_is_refused() -> None:
    class Pair(ctypes.Structure):
        _fields_ = [("number", ctypes.c_long), ("object", ctypes.py_object)]

    for buffer in (
        numpy.array([{}, []], dtype=object),
        numpy.zeros(2, dtype=[("number", "i8"), ("object", object)]),
        numpy.empty((2, 2), dtype=object),
        numpy.empty(0, dtype=object),
        (ctypes.py_object * 2)({}, {}),
        Pair(1, {}),
    ):
        for use in (Region.of, StackAlloc):
            with pytest.raises(MisuseError, match="Python objects"):
                use(buffer)  # type: ignore[operator]
    for plain in (numpy.zeros(4, dtype=[("O", "i4")]), (ctypes.c_int * 4)(), array("d", [1.0]), numpy.zeros(2, ">i8")):
        assert Region.of(plain).size > 0


class Asked:
    """A number that does something when it is asked for its value."""

    def __init__(self, value: int, action: Callable[[], object]) -> None:
        self.value = value
        self.action = action

    def __index__(self) -> int:
        self.action()
        return self.value

    def __float__(self) -> float:
        return float(self.__index__())


@pytest.mark.parametrize("format", ["q", "d"])
def test_a_vec_may_be_changed_by_the_arguments_of_its_own_operations(format: str) -> None:
    def fresh() -> Vec[Any]:
        vec = Vec(Arena(PageAlloc()), format)
        vec.extend(range(8))
        return vec

    def items(vec: Vec[Any], action: Callable[[], object]) -> Any:
        yield 90
        action()
        yield 91

    operations: list[Callable[[Vec[Any], Callable[[], object]], object]] = [
        lambda vec, action: vec.append(Asked(70, action)),
        lambda vec, action: vec.extend(items(vec, action)),
        lambda vec, action: vec.insert(Asked(6, action), 71),
        lambda vec, action: vec.insert(3, Asked(72, action)),
        lambda vec, action: vec.insert_all(6, items(vec, action)),
        lambda vec, action: vec.fill(Asked(73, action), 2),
        lambda vec, action: vec.fill(74, Asked(2, action)),
        lambda vec, action: vec.pop(Asked(1, action)),
        lambda vec, action: vec[Asked(1, action)],
        lambda vec, action: vec[Asked(0, action) : 2],
        lambda vec, action: vec.__setitem__(1, Asked(75, action)),
        lambda vec, action: vec.__setitem__(Asked(1, action), 76),
        lambda vec, action: vec.__setitem__(slice(0, 2), items(vec, action)),
        lambda vec, action: vec.__delitem__(Asked(1, action)),
        lambda vec, action: vec.__delitem__(slice(Asked(1, action), 3)),
        lambda vec, action: vec.reserve(Asked(100, action)),
        lambda vec, action: vec.truncate(Asked(2, action)),
    ]
    for operate in operations:
        for change in (
            lambda vec: vec.append(50),
            lambda vec: vec.extend(range(1000)),
            lambda vec: vec.insert(0, 51),
            lambda vec: vec.truncate(1),
            lambda vec: vec.clear(),
            lambda vec: vec.shrink_to_fit(),
            lambda vec: vec.close(),
            lambda vec: vec.allocator.reset(),
        ):
            vec = fresh()
            with suppress(ValueError, IndexError):
                operate(vec, lambda vec=vec, change=change: change(vec))  # type: ignore[misc]
            if not vec._storage.closed and not vec._storage.block.released:
                assert len(vec) <= vec.capacity
                assert set(vec) <= {*range(1000)}
                vec.append(1)
                assert vec.pop() == 1
            vec.close()


def test_an_item_that_appends_to_its_vec_comes_after_what_it_added() -> None:
    vec = Vec(PageAlloc(), "q")
    vec.append(Asked(2, lambda: vec.append(1)))
    vec.extend([Asked(5, lambda: vec.extend([3, 4]))])
    vec.fill(Asked(7, lambda: vec.append(6)), 2)
    assert list(vec) == [1, 2, 3, 4, 5, 6, 7, 7]
    table = Table(PageAlloc(), "qd")
    table.append(3, Asked(4, lambda: table.append(1, 2)))
    table.fill(2, Asked(7, lambda: table.append(5, 6)), 8)
    table[Asked(0, lambda: table.append(9, 9))] = (Asked(0, lambda: table.__delitem__(0)), 0)
    assert list(table) == [(0, 0), (5, 6), (7, 8), (7, 8), (9, 9)]
    map = HashMap(PageAlloc())
    map[1] = Asked(2, lambda: map.update((number, number) for number in range(100)))
    assert (map[1], len(map)) == (2, 100)


def test_a_stack_may_be_used_by_the_words_that_are_pushed() -> None:
    stack = StackAlloc(bytearray(128))
    stack.push(Asked(2, lambda: stack.push(1)))
    stack.push_all([Asked(4, lambda: stack.push(3)), 5])
    stack.poke(Asked(0, lambda: stack.push(6)), 7)
    assert stack.pop_all(6) == [7, 5, 4, 3, 2, 1]
    stack.push_all(word for word in (1, 2))
    with pytest.raises(ValueError, match="does not fit"):
        stack.push_all([3, 2**63])
    with pytest.raises(TypeError):
        stack.push_all([3, 1.5])  # type: ignore[list-item]

    class Liar(list[int]):
        def __len__(self) -> int:
            return 1

    stack.push_all(Liar([3, 4]))
    with pytest.raises(AllocError):
        stack.push_all(Liar(range(1000)))
    with pytest.raises(AllocError):
        stack.push_all([Asked(1, lambda: stack.push(5))] * 14)
    assert stack.pop_all(stack.depth)[-4:] == [4, 3, 2, 1]
    stack.push_all([Asked(1, stack.reset), 2])
    assert (stack.pop_all(2), stack.depth) == ([2, 1], 0)


def test_a_stack_goes_on_only_from_where_machine_code_can_have_got_to() -> None:
    stack = StackAlloc(bytearray(256))
    block = stack.allocate(Layout(16))
    stack.push_all([1, 2])
    cursor = stack.cursor
    for wrong in (cursor + 1, cursor - 24, stack.end + 8, 0, -8):
        with pytest.raises(MisuseError, match="cannot go on"):
            stack.resume(wrong)
    stack.resume(cursor - 16)
    assert stack.depth == 2
    stack.deallocate(block, Layout(16))


def test_a_stack_over_memory_that_was_released_serves_nothing_more() -> None:
    region = Region.of(bytearray(256))
    stack = StackAlloc(region)
    stack.push_all([1, 2])
    region.close()
    for use in (
        lambda: stack.push(1),
        lambda: stack.push_all([1]),
        stack.pop,
        lambda: stack.pop_all(1),
        stack.peek,
        lambda: stack.poke(0, 1),
        lambda: stack.allocate(Layout(8)),
    ):
        with pytest.raises(MisuseError, match="released"):
            use()
    stack.close()


def test_a_container_is_closed_to_what_its_allocator_calls_while_it_grows() -> None:
    """A callback that uses the container in the middle of its growth is refused, and nothing is lost."""
    refused: list[str] = []
    containers: list[Any] = []

    def use() -> None:
        for container in containers:
            for attempt in (container.clear, container.close, lambda container=container: container.reserve(1)):
                try:
                    attempt()
                except MisuseError as error:
                    refused.append(str(error))

    allocator = calling(use)
    vec = Vec(allocator, "q")
    table = Table(allocator, "qB")
    for container in (vec, table):
        container.reserve(8)
        containers.append(container)
        for number in range(600):
            container.append(*[number % 100] * (1 if container is vec else 2))
        containers.clear()
        assert list(container) == [number % 100 if container is vec else (number % 100,) * 2 for number in range(600)]
        container.close()
    assert refused
    assert all("middle of another operation" in text for text in refused)


def test_an_allocator_may_use_the_map_that_it_serves() -> None:
    maps: list[HashMap[Any]] = []
    added: list[int] = []

    def use() -> None:
        # Not for the memory that this itself asks for.
        if maps:
            map = maps.pop()
            key = 10_000 + len(added)
            # Refused while its entries are on the move.
            with suppress(MisuseError):
                map[key] = key
                added.append(key)
            maps.append(map)

    allocator = calling(use)
    map = HashMap(allocator)
    maps.append(map)
    for key in range(300):
        map[key] = key
    assert added
    assert dict(map.items()) == {key: key for key in [*range(300), *added]}
    assert all(map[key] == key for key in [*range(300), *added])
    maps.clear()
    map.close()
