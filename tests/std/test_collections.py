"""arr and opt."""

from __future__ import annotations

from typing import Any

import pytest

from garden.errors import Trap
from garden.types.types import Array, Bool, Double, Int, Option, Record, Str
from garden.vm.values import from_word, to_word

MAX = (1 << 63) - 1
POINT = Record(x=Int, p=Record(y=Double))
MEMBERS: list[tuple[Any, list[Any]]] = [
    (Int, [5, -6, 7]),
    (Double, [0.5, -0.0]),
    (Bool, [True, False]),
    (Str, ["a", "", "ä"]),
    (POINT, [{"x": 1, "p": {"y": 2.0}}, {"x": 3, "p": {"y": 4.0}}]),
    (Array(Int), [[1], [], [2, 3]]),
    (Option(Int), [None, 4, 0]),
]


@pytest.mark.parametrize(("member", "members"), MEMBERS)
def test_len_and_get_work_for_members_of_every_type(call: Any, member: Any, members: list[Any]) -> None:
    array = Array(member)
    assert call("arr.len", [array], members, slot=member) == len(members)
    for index, expected in enumerate(members):
        assert call("arr.get", [array, Int], members, index, slot=member) == expected


def test_an_array_may_be_empty(call: Any) -> None:
    assert call("arr.len", [Array(Int)], [], slot=Int) == 0


@pytest.mark.parametrize("index", [-1, 2, MAX, -MAX - 1])
def test_get_outside_the_array_traps(call: Any, index: int) -> None:
    with pytest.raises(Trap, match=f"T0005: arr.get: index {index} is outside an array of 2 members"):
        call("arr.get", [Array(Int), Int], [1, 2], index, slot=Int)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (0, 3), (-2, 2), (3, 0), (MAX - 2, MAX), (MAX, -MAX - 1), (0, 10_000), (5, 4096 + 5)]
)
def test_range(call: Any, start: int, end: int) -> None:
    assert call("arr.range", [Int, Int], start, end) == list(range(start, end))


@pytest.mark.parametrize("end", [1 << 23, 1 << 40, MAX])
def test_a_range_that_the_heap_cannot_hold_is_out_of_memory(call: Any, end: int) -> None:
    with pytest.raises(Trap, match="T0003"):
        call("arr.range", [Int, Int], -MAX - 1 if end == MAX else 0, end)


def test_sums_of_ints_wrap(call: Any) -> None:
    assert call("arr.sum", [Array(Int)], [1, 2, -5]) == -2
    assert call("arr.sum", [Array(Int)], []) == 0
    assert call("arr.sum", [Array(Int)], [MAX, 1]) == -MAX - 1
    assert call("arr.sum", [Array(Int)], [MAX, MAX, MAX]) == MAX - 2


def test_sums_of_doubles_are_added_from_left_to_right(call: Any) -> None:
    assert call("arr.sum", [Array(Double)], [0.1] * 10) == 0.9999999999999999
    assert call("arr.sum", [Array(Double)], [1e100, 1.0, -1e100]) == 0.0
    assert call("arr.sum", [Array(Double)], []) == 0.0


@pytest.mark.parametrize(("inside", "values"), MEMBERS)
def test_options_of_every_type(call: Any, inside: Any, values: list[Any]) -> None:
    option = Option(inside)
    some, none = call.find("opt.some", [inside], inside), call.find("opt.none", [inside], inside)
    for value in values:
        word = to_word(call.heap, inside, value)
        full, empty = call.words(some, word), call.words(none, word)
        assert (from_word(call.heap, option, full), from_word(call.heap, option, empty)) == (value, None)
        for name, expected in (("is_some", (1, 0)), ("is_none", (0, 1))):
            function = call.find(f"opt.{name}", [option], inside)
            assert (call.words(function, full), call.words(function, empty)) == expected
        unwrap, or_ = call.find("opt.unwrap", [option], inside), call.find("opt.or", [option, inside], inside)
        other = to_word(call.heap, inside, values[-1])
        assert (call.words(unwrap, full), call.words(or_, full, other), call.words(or_, empty, other)) == (
            word,
            word,
            other,
        )
        with pytest.raises(Trap, match=r"T0006: opt\.unwrap: the option has no value"):
            call.words(unwrap, empty)


def test_an_option_of_an_empty_option_has_a_value(call: Any) -> None:
    some = call.find("opt.some", [Option(Int)], Option(Int))
    is_some = call.find("opt.is_some", [Option(Option(Int))], Option(Int))
    assert call.words(is_some, call.words(some, 0)) == 1


def test_python_values_pass_through_options(call: Any) -> None:
    assert call("opt.some", [Str], "text", slot=Str) == "text"
    assert call("opt.none", [Str], "text", slot=Str) is None
    assert call("opt.or", [Option(Double), Double], None, 2.5, slot=Double) == 2.5
