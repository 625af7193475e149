"""Containers whose memory a scope or a reset has revoked: every use raises, and nobody else's bytes change."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from typing import Any

import pytest

from allocators import (
    Arena,
    BinningAllocator,
    BumpAlloc,
    DebugAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    StackAlloc,
)
from allocators.collections import ByteBuffer, HashMap, Interner, Table, Vec

SCOPED: dict[str, Callable[[], Any]] = {
    "arena": lambda: Arena(PageAlloc()),
    "bump": lambda: BumpAlloc(PageAlloc()),
    "stack": lambda: StackAlloc(bytearray(1 << 16)),
    "pool": lambda: PoolAllocator(PageAlloc(), 4096),
    "metric": lambda: MetricAllocator(Arena(PageAlloc())),
    "limit": lambda: LimitAllocator(Arena(PageAlloc()), 1 << 20),
    "debug": lambda: DebugAllocator(Arena(PageAlloc()), raise_leaks=False),
    "binning": lambda: BinningAllocator(Arena(PageAlloc())),
}


def vec_of(allocator: Any) -> Vec[Any]:
    vec: Vec[Any] = Vec(allocator, "q")
    vec.extend(range(100))
    return vec


def float_vec_of(allocator: Any) -> Vec[Any]:
    vec: Vec[Any] = Vec(allocator, "d", 200)
    vec.extend([number / 2 for number in range(100)])
    return vec


def buffer_of(allocator: Any) -> ByteBuffer[Any]:
    buffer: ByteBuffer[Any] = ByteBuffer(allocator, 50)
    buffer.write(bytes(30))
    return buffer


def table_of(allocator: Any) -> Table[Any]:
    table: Table[Any] = Table(allocator, "BId")
    for number in range(20):
        table.append(number, number, number)
    return table


def map_of(allocator: Any) -> HashMap[Any]:
    map: HashMap[Any] = HashMap(allocator)
    for number in range(40):
        map[number] = number
    return map


def interner_of(allocator: Any) -> Interner[Any]:
    interner: Interner[Any] = Interner(allocator)
    for number in range(40):
        interner.intern(b"%d" % number)
    return interner


def vec_uses(vec: Vec[Any]) -> list[Callable[[], object]]:
    other = Vec(PageAlloc(), vec.format)
    other.append(1)
    return [
        lambda: vec[5],
        lambda: vec[-1],
        lambda: vec[1:3],
        lambda: vec.__setitem__(5, -1),
        lambda: vec.__setitem__(slice(0, 2), [1, 2]),
        lambda: vec.__delitem__(0),
        lambda: vec.__delitem__(slice(0, 0)),
        lambda: len(vec),
        lambda: list(vec),
        lambda: 5 in vec,
        lambda: vec.append(1),
        lambda: vec.pop(),
        lambda: vec.pop(0),
        lambda: vec.extend([]),
        lambda: vec.extend([1]),
        lambda: vec.extend_from(other),
        lambda: other.extend_from(vec),
        lambda: vec.insert(0, 1),
        lambda: vec.insert_all(0, [1, 2]),
        lambda: vec.fill(1, 0),
        lambda: vec.fill(1, 3),
        lambda: vec.reserve(0),
        lambda: vec.reserve(1000),
        lambda: vec.truncate(1),
        vec.clear,
        vec.copy,
        vec.shrink_to_fit,
        vec.numpy,
        vec.check_open,
        lambda: vec.view,
        lambda: vec.data,
        lambda: vec.address,
    ]


def buffer_uses(buffer: ByteBuffer[Any]) -> list[Callable[[], object]]:
    return [
        lambda: buffer[0],
        lambda: buffer[0:2],
        lambda: buffer.__setitem__(0, 1),
        lambda: buffer.__delitem__(0),
        lambda: len(buffer),
        lambda: list(buffer),
        lambda: bytes(buffer),
        lambda: buffer.write(b"x"),
        lambda: buffer.write_byte(1),
        lambda: buffer.insert(0, b"x"),
        lambda: buffer.fill(0, 1),
        lambda: buffer.slice(0, 1),
        lambda: buffer.reserve(1),
        lambda: buffer.truncate(0),
        buffer.clear,
        buffer.shrink_to_fit,
        buffer.numpy,
        lambda: buffer.view,
    ]


def table_uses(table: Table[Any]) -> list[Callable[[], object]]:
    return [
        lambda: table[0],
        lambda: table.__setitem__(0, (1, 1, 1)),
        lambda: table.__delitem__(0),
        lambda: len(table),
        lambda: list(table),
        table.add,
        lambda: table.append(1, 1, 1),
        lambda: table.extend([1], [1], [1]),
        lambda: table.extend([], [], []),
        lambda: table.insert(0, 1, 1, 1),
        lambda: table.fill(1, 1, 1, 1),
        lambda: table.fill(0, 1, 1, 1),
        lambda: table.reserve(0),
        lambda: table.reserve(1000),
        table.pop,
        lambda: table.truncate(0),
        table.clear,
        table.shrink_to_fit,
        lambda: table.column(0),
        lambda: table.columns,
        lambda: table.numpy(0),
    ]


def map_uses(map: HashMap[Any]) -> list[Callable[[], object]]:
    return [
        lambda: map[1],
        lambda: map.get(1),
        lambda: map.get(1000),
        lambda: 1 in map,
        lambda: map.set(1, 2),
        lambda: map.set(1000, 2),
        lambda: map.setdefault(1, 2),
        lambda: map.update([(1, 2)]),
        lambda: map.delete(1),
        lambda: map.pop(1),
        lambda: map.reserve(0),
        lambda: map.reserve(1000),
        map.shrink_to_fit,
        map.clear,
        lambda: len(map),
        lambda: list(map),
        lambda: list(map.items()),
        lambda: map.keys,
        lambda: map.values,
        map.numpy,
        map.check_open,
    ]


def interner_uses(interner: Interner[Any]) -> list[Callable[[], object]]:
    return [
        lambda: interner.intern(b"1"),
        lambda: interner.intern(b"new"),
        lambda: interner.find(b"1"),
        lambda: b"1" in interner,
        lambda: interner.lookup(0),
        lambda: len(interner),
        lambda: list(interner),
        interner.clear,
        interner.shrink_to_fit,
    ]


KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Callable[[], object]]]]] = {
    "vec": (vec_of, vec_uses),
    "float_vec": (float_vec_of, vec_uses),
    "buffer": (buffer_of, buffer_uses),
    "table": (table_of, table_uses),
    "map": (map_of, map_uses),
    "interner": (interner_of, interner_uses),
}


def refuses(container: Any, uses: Callable[[Any], list[Callable[[], object]]]) -> None:
    for number, use in enumerate(uses(container)):
        with pytest.raises(MisuseError, match="revoked"):
            print(number, use())
    assert "of" in repr(container)
    container.close()
    container.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("under", SCOPED)
def test_after_a_scope_every_use_of_a_container_is_refused(under: str, kind: str) -> None:
    make, uses = KINDS[kind]
    allocator = SCOPED[under]()
    with allocator.scope():
        container = make(allocator)
    other = allocator.allocate(Layout(4000))
    other.view[:] = bytes(other.size)
    refuses(container, uses)
    assert not bytes(other.view).strip(b"\0")
    allocator.deallocate(other, Layout(4000))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("under", [name for name in SCOPED if name != "limit"])
def test_after_a_reset_every_use_of_a_container_is_refused(under: str, kind: str) -> None:
    make, uses = KINDS[kind]
    allocator = SCOPED[under]()
    container = make(allocator)
    allocator.reset()
    refuses(container, uses)


@pytest.mark.parametrize("kind", KINDS)
def test_after_its_allocator_was_closed_a_container_is_refused(kind: str) -> None:
    make, uses = KINDS[kind]
    for allocator in (PageAlloc(), Arena(PageAlloc()), BumpAlloc(PageAlloc()), StackAlloc(bytearray(1 << 16))):
        container = make(allocator)
        allocator.close()
        refuses(container, uses)


@pytest.mark.parametrize("kind", KINDS)
def test_a_container_from_before_a_scope_stays_usable(kind: str) -> None:
    make, uses = KINDS[kind]
    arena = Arena(PageAlloc())
    container = make(arena)
    with arena.scope():
        make(arena)
    for use in uses(container)[:4]:
        use()


@pytest.mark.parametrize("part", range(4))
def test_one_revoked_part_is_enough_to_refuse_an_interner(part: int) -> None:
    arena = Arena(PageAlloc())
    interner = interner_of(arena)
    with arena.scope():
        inner = [interner._bytes.vec, interner._ends, interner._hashes, interner._slots._numbers][part]
        # In a scope it grows into memory that ends with it.
        inner.reserve(10_000)
    for use in (lambda: interner.intern(b"new"), lambda: interner.find(b"1"), lambda: len(interner)):
        with pytest.raises(MisuseError, match="revoked"):
            use()
    interner.close()


def test_a_map_that_grew_inside_a_scope_is_refused_as_a_whole() -> None:
    arena = Arena(PageAlloc())
    map = map_of(arena)
    with arena.scope():
        map._slots._numbers.reserve(10_000)
    for use in map_uses(map):
        with pytest.raises(MisuseError, match="revoked"):
            use()
    map.close()


def test_iterators_notice_that_the_memory_is_revoked_between_two_items() -> None:
    arena = Arena(PageAlloc())
    for make, _uses in KINDS.values():
        with arena.scope():
            items = iter(make(arena))
            next(items)
        with pytest.raises(MisuseError, match="revoked"):
            next(items)


def test_an_empty_container_has_nothing_that_could_be_revoked() -> None:
    arena = Arena(PageAlloc())
    with arena.scope():
        vec = Vec(arena, "q")
        table = Table(arena, "BI")
        map = HashMap(arena)
        interner = Interner(arena)
    vec.append(1)
    table.append(1, 2)
    map[1] = 2
    assert (list(vec), list(table), map[1], interner.intern(b"x")) == ([1], [(1, 2)], 2, 0)


def test_views_taken_before_stay_readable_and_are_the_callers_affair() -> None:
    page = PageAlloc()
    vec = vec_of(page)
    view, data, array = vec.view, vec.data, vec.numpy()
    page.close()
    assert view.tolist() == data[:100].tolist() == array.tolist() == list(range(100))
    copying.copy(array)
    with pytest.raises(MisuseError):
        vec.numpy()
