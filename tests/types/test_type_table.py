"""Types as values and as ids."""

from __future__ import annotations

import pytest

from allocators import BumpAlloc, PageAlloc
from allocators.errors import AllocError
from garden.host import HostFunction
from garden.types import types
from garden.types.types import Array, Bool, Double, Foreign, Int, Option, Record, Slot, Str, Type, TypeTable, Void
from tests.support.checked import CountingAlloc

_SAMPLES = {
    "Int": Int,
    "Array<Option<Str>>": Array(Option(Str)),
    "Record<x: Int p: Record<u: Bool v: Str>>": Record(x=Int, p=Record(u=Bool, v=Str)),
    "Record<>": Record(),
    "Foreign<Window>": Foreign("Window"),
    "T": Slot("T"),
}


def deep(levels: int) -> Type:
    type = Int
    for _ in range(levels):
        type = Array(type)
    return type


@pytest.mark.parametrize("spelling", list(_SAMPLES))
def test_types_are_spelled_as_in_garden(spelling):
    assert str(_SAMPLES[spelling]) == spelling


def test_records_are_laid_out_inline():
    record = Record(x=Int, p=Record(u=Bool, v=Str), q=Array(Record(a=Int, b=Int)))
    assert record.size == 32
    assert [record.field_offset(index) for index in range(3)] == [0, 8, 24]
    assert Void.size == 0
    assert Option(record).size == 8


def test_types_are_equal_when_they_are_spelled_alike():
    assert Record(x=Int, y=Str) == Record(x=Int, y=Str)
    assert Record(x=Int, y=Str) != Record(y=Str, x=Int)
    assert Record(x=Int) != Record(y=Int)
    assert Foreign("Int") != Int
    assert Slot("Int") != Int
    assert Int != "Int"
    assert len({Array(Int), Array(Int), Option(Int)}) == 2


def test_deep_types_need_no_recursion():
    assert deep(5000) == deep(5000)
    assert deep(5000) != deep(5001)
    assert len(str(deep(5000))) < 5000
    with BumpAlloc(PageAlloc()) as allocator:
        table = TypeTable(allocator)
        assert table.intern(deep(3000)) == table.intern(deep(3000))


def test_scalars_have_the_ids_of_their_names():
    with BumpAlloc(PageAlloc()) as allocator:
        table = TypeTable(allocator)
        for type, id in ((Void, types.VOID), (Bool, types.BOOL), (Int, types.INT), (Double, types.DOUBLE)):
            assert table.intern(type) == id
            assert table.type(id) == type
        assert table.intern(Str) == types.STR
        assert str(table.type(types.POISON)) == "?"


def test_equal_types_have_one_id_however_they_are_made():
    with BumpAlloc(PageAlloc()) as allocator:
        table = TypeTable(allocator)
        ids = {spelling: table.intern(type) for spelling, type in _SAMPLES.items()}
        assert len(set(ids.values())) == len(ids)
        for spelling, id in ids.items():
            assert table.intern(_SAMPLES[spelling]) == id
            assert table.type(id) == _SAMPLES[spelling]
        assert table.compound("Array", [table.compound("Option", [types.STR])]) == ids["Array<Option<Str>>"]
        inner = table.compound("Record", [types.BOOL, types.STR], ("u", "v"))
        outer = table.compound("Record", [types.INT, inner], ("x", "p"))
        assert outer == ids["Record<x: Int p: Record<u: Bool v: Str>>"]
        assert list(table.members(outer)) == [types.INT, inner]
        assert list(table.members(types.INT)) == []


def test_a_table_that_runs_out_of_memory_stays_as_it_was():
    with BumpAlloc(PageAlloc()) as pages:
        for requests in range(60):
            allocator = CountingAlloc(pages, requests)
            try:
                table = TypeTable(allocator)
            except AllocError:
                assert allocator.live == 0
                continue
            try:
                for index in range(200):
                    table.intern(Foreign(f"F{index}"))
            except AllocError:
                assert str(table.type(len(table) - 1)) == f"Foreign<F{len(table) - 7}>"
            table.close()
            assert allocator.live == 0


def test_a_generic_function_can_be_given_its_types():
    def implementation(value: object) -> object:
        return value

    slot = Slot("T")
    generic = HostFunction("opt", "some", (("value", slot),), Option(slot), implementation, machine=True, doc="Some.")
    assert generic.generic
    concrete = generic.with_types([Int], Option(Int))
    assert not concrete.generic
    assert str(concrete) == "fn some(value:Int) Option<Int>"
    assert (concrete.path, concrete.implementation, concrete.machine, concrete.words, concrete.pure, concrete.doc) == (
        "opt.some",
        implementation,
        True,
        False,
        False,
        "Some.",
    )
