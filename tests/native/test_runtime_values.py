"""Arrays, options, output, assertions and the figures of the heap in the native runtime."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from garden.native.context import OUTPUT_BYTES
from garden.types.types import Array, Bool, Double, Int, Option, Record, Str
from tests.support.reference import Twins

POINT = Record(x=Int, y=Record(name=Str, size=Double))
HERE = {"x": 1, "y": {"name": "here", "size": 2.5}}
THERE = {"x": -1, "y": {"name": "there", "size": -0.0}}


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    twins = Twins()
    yield twins
    twins.close()


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (Int, [3, 5, 7]),
        (Double, [1.5, -0.0, math.inf]),
        (Bool, [True, False]),
        (Str, ["a", ""]),
        (POINT, [HERE, THERE, HERE]),
        (Record(), [{}, {}]),
        (Option(Int), [1, None]),
        (Array(Int), [[1, 2], []]),
    ],
)
def test_members_are_read_by_index(twins: Twins, type: object, values: list[object]) -> None:
    assert twins("arr.len", [Array(type)], values, slot=type) == len(values)
    for index in (*range(-1, len(values) + 1), -(1 << 63), (1 << 63) - 1):
        twins("arr.get", [Array(type), Int], values, index, slot=type)


def test_ranges_are_made(twins: Twins) -> None:
    for start, end in ((0, 0), (0, 1), (-3, 4), (5, 1), ((1 << 63) - 3, (1 << 63) - 1), (-(1 << 63), -(1 << 63) + 2)):
        twins("arr.range", [Int, Int], start, end)


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 1 << 40), (0, (1 << 60) - 2), (0, (1 << 63) - 1), (-(1 << 63), (1 << 63) - 1), (-1, (1 << 63) - 1)],
)
def test_ranges_that_no_memory_holds_trap_in_the_same_words(twins: Twins, start: int, end: int) -> None:
    assert "bytes more exceed the program's limit" in twins("arr.range", [Int, Int], start, end)


def test_members_are_added_up(twins: Twins) -> None:
    for ints in ([], [7], [1, 2, 3], [(1 << 63) - 1, 1], list(range(20))):
        twins("arr.sum", [Array(Int)], ints)
    for doubles in ([], [-0.0], [0.1] * 10, [1e308, 1e308, -math.inf], [1e16, 1.0, -1e16]):
        twins("arr.sum", [Array(Double)], doubles)


@pytest.mark.parametrize(("type", "value"), [(Int, 5), (Double, -0.5), (Bool, True), (Str, "a"), (POINT, HERE)])
def test_options_have_a_value_or_none(twins: Twins, type: object, value: object) -> None:
    option = Option(type)
    assert twins("opt.some", [type], value, slot=type) == value
    assert twins("opt.none", [type], value, slot=type) is None
    for held in (value, None):
        twins("opt.is_some", [option], held, slot=type)
        twins("opt.is_none", [option], held, slot=type)
        twins("opt.unwrap", [option], held, slot=type)
        twins("opt.or", [option, type], held, value, slot=type)


def test_assertions_trap_where_they_fail(twins: Twins) -> None:
    assert twins("testing.assert", [Bool], True) is None
    assert twins("testing.assert", [Bool], False) == "T0004: assertion failed"


def test_the_heap_has_its_figures() -> None:
    twins = Twins()
    for size in (0, 3, 1000, 70_000, 8, 100_000):
        twins("arr.range", [Int, Int], 0, size // 8)
        assert twins("unsafe/runtime.used", []) == twins.heap.used
        assert twins("unsafe/runtime.allocs", []) == twins.heap.allocations
    twins.close()


def test_values_are_written(twins: Twins) -> None:
    for end in ("", "ln"):
        for type, value in ((Str, "a\u20acb"), (Str, ""), (Int, -5), (Double, 0.1), (Bool, True), (Bool, False)):
            twins(f"io.print{end}", [type], value)
    assert twins.output() == "a\u20acb-50.1truefalsea\u20acb\n\n-5\n0.1\ntrue\nfalse\n"


@pytest.mark.parametrize("length", [0, 1, 100, OUTPUT_BYTES - 513, OUTPUT_BYTES - 512, OUTPUT_BYTES, 20_000])
def test_texts_of_any_length_are_written_in_order(twins: Twins, length: int) -> None:
    for _ in range(3):
        twins("io.print", [Int], 7)
        twins("io.println", [Str], "a" * length)
        twins("io.print", [Double], 1.5)
    assert twins.output() == f"7{'a' * length}\n1.5" * 3


def test_the_buffer_is_never_too_small() -> None:
    twins = Twins()
    longest = -math.nextafter(0.0, 1.0)
    # Whatever the buffer holds before, by a byte more each time.
    for held in range(OUTPUT_BYTES - 512 - 4, OUTPUT_BYTES - 512 + 1):
        for type, value in ((Int, -(1 << 63)), (Bool, False), (Str, "abcdefghi"), (Double, longest)):
            twins("io.print", [Str], "x" * held)
            twins("io.println", [type], value)
            # Numbers that are made into texts use the same buffer.
            twins("str.from", [Double], longest)
            twins.output()
    twins.close()


def test_a_piece_of_output_ends_with_a_whole_text(twins: Twins) -> None:
    native = twins.native
    for _ in range(2000):
        twins("io.print", [Str], "\u20ac\U0001f600")
    pieces = list(native.written)
    assert len(pieces) > 1
    for piece in pieces:
        piece.decode()
    twins.output()
