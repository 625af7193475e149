"""Values: Python values to words and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocators import PageAlloc
from garden.errors import Trap
from garden.types.types import Array, Bool, Double, Foreign, Int, Option, Record, Slot, Str, Type, Void
from garden.vm.heap import Heap
from garden.vm.values import from_word, to_word


@pytest.fixture
def heap(ledger: Any) -> Iterator[Heap[Any]]:
    heap = Heap(ledger)
    yield heap
    heap.close()


def there_and_back(heap: Heap[Any], type: Type, value: object) -> Any:
    return from_word(heap, type, to_word(heap, type, value))


@pytest.mark.parametrize(
    ("type", "value", "word"),
    [
        (Int, 5, 5),
        (Int, -(1 << 63), -(1 << 63)),
        (Int, (1 << 63) - 1, (1 << 63) - 1),
        (Bool, True, 1),
        (Bool, False, 0),
        (Double, 1.0, 0x3FF0000000000000),
        (Double, 2, 0x4000000000000000),
        (Double, -0.0, -(1 << 63)),
        (Void, None, 0),
        (Void, "anything", 0),
        (Option(Int), None, 0),
    ],
)
def test_scalars_are_words(heap: Heap[Any], type: Type, value: object, word: int) -> None:
    assert to_word(heap, type, value) == word
    assert heap.used == 0


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (Int, 0),
        (Double, 2.5),
        (Double, math.inf),
        (Str, ""),
        (Str, "grün 😀"),
        (Array(Int), []),
        (Array(Int), [1, -2, 3]),
        (Array(Double), [0.5, -0.0]),
        (Array(Bool), [True, False]),
        (Array(Str), ["a", "b", "a"]),
        (Array(Array(Int)), [[1], [], [2, 3]]),
        (Record(x=Int, s=Str), {"x": 1, "s": "t"}),
        (Record(), {}),
        (Array(Record()), [{}, {}]),
        (Record(x=Int, p=Record(u=Bool, v=Str), y=Double), {"x": 1, "p": {"u": True, "v": "w"}, "y": 2.0}),
        (Array(Record(a=Int, b=Record(c=Int))), [{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}]),
        (Option(Int), 7),
        (Option(Int), 0),
        (Option(Str), "s"),
        (Option(Record(x=Int)), {"x": 1}),
        (Option(Record()), {}),
        (Option(Array(Option(Bool))), [True, None, False]),
        (Option(Option(Int)), 3),
        (Record(o=Option(Record(x=Int)), a=Array(Str)), {"o": None, "a": ["x"]}),
    ],
)
def test_values_come_back(heap: Heap[Any], type: Type, value: object) -> None:
    assert there_and_back(heap, type, value) == value


def test_a_nan_comes_back(heap: Heap[Any]) -> None:
    assert math.isnan(there_and_back(heap, Double, math.nan))


def test_foreign_objects_come_back_as_themselves(heap: Heap[Any]) -> None:
    thing = object()
    assert there_and_back(heap, Foreign("Thing"), thing) is thing
    assert there_and_back(heap, Array(Foreign("Thing")), [thing, thing])[1] is thing


def test_layout_is_fields_and_members_inline(heap: Heap[Any]) -> None:
    inner = Record(u=Bool, v=Int)
    word = to_word(heap, Record(x=Int, p=inner, y=Int), {"x": 1, "p": {"u": True, "v": 3}, "y": 4})
    assert list(heap.words(word, 4)) == [1, 1, 3, 4]
    word = to_word(heap, Array(inner), [{"u": False, "v": 5}, {"u": True, "v": 6}])
    assert list(heap.words(word, 5)) == [2, 0, 5, 1, 6]
    word = to_word(heap, Option(inner), {"u": True, "v": 9})
    assert list(heap.words(word, 2)) == [1, 9]
    word = to_word(heap, Option(Option(Int)), 8)
    assert heap.load(heap.load(word)) == 8


@pytest.mark.parametrize(
    ("type", "value", "error"),
    [
        (Int, 1 << 63, OverflowError),
        (Int, -(1 << 63) - 1, OverflowError),
        (Int, True, TypeError),
        (Int, 1.0, TypeError),
        (Int, None, TypeError),
        (Bool, 1, TypeError),
        (Double, "1", TypeError),
        (Double, True, TypeError),
        (Double, 10**400, OverflowError),
        (Str, b"bytes", TypeError),
        (Array(Int), 5, TypeError),
        (Array(Str), "letters", TypeError),
        (Array(Int), b"bytes", TypeError),
        (Array(Int), [1, "2"], TypeError),
        (Array(Array(Int)), [[1], [1 << 63]], OverflowError),
        (Record(x=Int), {}, TypeError),
        (Record(x=Int), {"y": 1}, TypeError),
        (Record(x=Int), {"x": 1, "y": 1}, TypeError),
        (Record(x=Int), {"x": "1"}, TypeError),
        (Record(x=Int), 1, TypeError),
        (Record(x=Int), [1], TypeError),
        (Option(Int), "1", TypeError),
        (Slot("T"), 1, TypeError),
    ],
)
def test_what_is_not_of_the_type_is_refused(heap: Heap[Any], type: Type, value: object, error: Any) -> None:
    with pytest.raises(error):
        to_word(heap, type, value)


def test_a_generic_type_has_no_values(heap: Heap[Any]) -> None:
    with pytest.raises(TypeError, match="T is no type that values have"):
        from_word(heap, Slot("T"), 1)


@dataclass
class Point:
    x: int
    y: float


@dataclass
class Shape:
    kind: ClassVar[str] = "shape"
    name: str
    at: Point
    corners: list[Point] = field(default_factory=list)
    center: Point | None = None


POINT = Record(x=Int, y=Double)
SHAPE = Record(name=Str, at=POINT, corners=Array(POINT), center=Option(POINT))


def test_records_are_made_from_dataclasses_and_into_them(heap: Heap[Any]) -> None:
    shape = Shape("s", Point(1, 2.0), [Point(3, 4.0), Point(5, 6.0)], Point(7, 8.0))
    word = to_word(heap, SHAPE, shape)
    assert from_word(heap, SHAPE, word, Shape) == shape
    assert from_word(heap, SHAPE, word)["at"] == {"x": 1, "y": 2.0}
    empty = Shape("", Point(0, 0.0))
    assert from_word(heap, SHAPE, to_word(heap, SHAPE, empty), Shape) == empty


def test_annotations_around_a_dataclass_are_followed(heap: Heap[Any]) -> None:
    points = [Point(1, 2.0), Point(3, 4.0)]
    word = to_word(heap, Array(POINT), points)
    assert from_word(heap, Array(POINT), word, list[Point]) == points
    assert from_word(heap, Array(POINT), word, list) == [{"x": 1, "y": 2.0}, {"x": 3, "y": 4.0}]
    option = to_word(heap, Option(POINT), points[0])
    assert from_word(heap, Option(POINT), option, Point | None) == points[0]
    assert from_word(heap, Option(POINT), 0, Point | None) is None


@pytest.mark.parametrize("value", [Point, object(), Point(1, "2")])  # type: ignore[arg-type]
def test_other_objects_are_no_records(heap: Heap[Any], value: object) -> None:
    with pytest.raises(TypeError):
        to_word(heap, POINT, value)


def test_a_dataclass_may_have_more_fields_but_not_fewer(heap: Heap[Any]) -> None:
    assert there_and_back(heap, Record(x=Int), Point(1, 2.0)) == {"x": 1}
    with pytest.raises(TypeError):
        to_word(heap, Record(x=Int, y=Double, z=Int), Point(1, 2.0))


def test_deep_values_do_not_recurse(heap: Heap[Any]) -> None:
    type = Int
    value: Any = 1
    for _ in range(5000):
        type = Array(type)
        value = [value]
    back = there_and_back(heap, type, value)
    for _ in range(5000):
        back = back[0]
    assert back == 1
    type = Int
    value = 1
    for _ in range(2000):
        type = Record(f=Option(type))
        value = {"f": value}
    back = there_and_back(heap, type, value)
    for _ in range(2000):
        back = back["f"]
    assert back == 1


def test_what_a_program_shares_is_shared_in_python_too(heap: Heap[Any]) -> None:
    type = Array(Int)
    word = to_word(heap, type, [1])
    for _ in range(60):
        type = Array(type)
        outer = heap.alloc(24)
        heap.store(outer, 2)
        heap.store(outer + 8, word)
        heap.store(outer + 16, word)
        word = outer
    value = from_word(heap, type, word)
    assert value[0] is value[1]


def test_a_record_and_its_first_field_are_told_apart(heap: Heap[Any]) -> None:
    type = Array(Record(inner=Record(x=Int)))
    assert there_and_back(heap, type, [{"inner": {"x": 4}}]) == [{"inner": {"x": 4}}]


def test_words_that_are_not_what_the_type_says_trap(heap: Heap[Any]) -> None:
    cell = heap.alloc(16)
    for length in (-1, 1 << 40, (1 << 63) - 1):
        heap.store(cell, length)
        with pytest.raises(Trap, match="T0005"):
            from_word(heap, Array(Int), cell)
    for type in (Str, Array(Int), Record(x=Int), Option(Int), Foreign("F")):
        with pytest.raises(Trap, match="T0005"):
            from_word(heap, type, 12345)


def test_a_value_larger_than_the_heap_is_out_of_memory(ledger: Any) -> None:
    heap = Heap(ledger, limit=100_000)
    with pytest.raises(Trap, match="T0003"):
        to_word(heap, Array(Int), range(1 << 60))
    with pytest.raises(Trap, match="T0003"):
        to_word(heap, Array(Str), [str(number) for number in range(20_000)])
    heap.close()


SCALARS: list[tuple[Type, st.SearchStrategy[Any]]] = [
    (Int, st.integers(-(1 << 63), (1 << 63) - 1)),
    (Double, st.floats(allow_nan=False)),
    (Bool, st.booleans()),
    (Str, st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
]


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Types with values of them, around others of the kind."""
    arrays = inner.map(lambda pair: (Array(pair[0]), st.lists(pair[1], max_size=3)))
    options = inner.filter(lambda pair: pair[0].name != "Option").map(
        lambda pair: (Option(pair[0]), st.none() | pair[1])
    )
    records = st.lists(inner, max_size=3).map(
        lambda pairs: (
            Record(**{f"f{index}": pair[0] for index, pair in enumerate(pairs)}),
            st.fixed_dictionaries({f"f{index}": pair[1] for index, pair in enumerate(pairs)}),
        )
    )
    return arrays | options | records


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(st.sampled_from(SCALARS), around, max_leaves=6).flatmap(
        lambda pair: st.tuples(st.just(pair[0]), pair[1])
    )
)
def test_any_value_of_any_type_comes_back(pair: tuple[Type, Any]) -> None:
    allocator = PageAlloc()
    heap = Heap(allocator)
    try:
        type, value = pair
        assert there_and_back(heap, type, value) == value
    finally:
        heap.close()
