"""math."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garden.errors import Trap
from garden.std.math import max_double, min_double, round_double
from garden.types.types import Double, Int

MIN = -(1 << 63)
MAX = (1 << 63) - 1
NAN = math.nan


def same(left: float, right: float) -> bool:
    return (left != left and right != right) or (left == right and math.copysign(1, left) == math.copysign(1, right))


@pytest.mark.parametrize(("n", "result"), [(0, 0), (5, 5), (-5, 5), (MAX, MAX), (MIN + 1, MAX), (MIN, MIN)])
def test_abs_of_an_int(call: Any, n: int, result: int) -> None:
    assert call("math.abs", [Int], n) == result


@pytest.mark.parametrize(("x", "result"), [(-1.5, 1.5), (2.0, 2.0), (-0.0, 0.0), (-math.inf, math.inf), (NAN, NAN)])
def test_abs_of_a_double(call: Any, x: float, result: float) -> None:
    assert same(call("math.abs", [Double], x), result)


def test_an_int_is_round_already(call: Any) -> None:
    assert call("math.round", [Int], -7) == -7


@pytest.mark.parametrize(
    ("x", "result"),
    [
        (0.5, 1.0),
        (-0.5, -1.0),
        (1.5, 2.0),
        (2.5, 3.0),
        (-2.5, -3.0),
        (2.4999999999999996, 2.0),
        (0.49999999999999994, 0.0),
        (-0.49999999999999994, -0.0),
        (-0.0, -0.0),
        (0.3, 0.0),
        (4503599627370495.5, 4503599627370496.0),
        (9007199254740993.0, 9007199254740993.0),
        (1e300, 1e300),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
        (NAN, NAN),
    ],
)
def test_round_takes_halves_away_from_zero(call: Any, x: float, result: float) -> None:
    assert same(call("math.round", [Double], x), result)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_round_is_the_nearest_whole_number(x: float) -> None:
    exact = math.floor(abs(Fraction(x)) + Fraction(1, 2))
    assert same(round_double.implementation(x), math.copysign(float(exact), x))


def test_min_and_max_of_ints(call: Any) -> None:
    for a in (MIN, -1, 0, 1, MAX):
        for b in (MIN, -1, 0, 1, MAX):
            assert call("math.min", [Int, Int], a, b) == min(a, b)
            assert call("math.max", [Int, Int], a, b) == max(a, b)


@pytest.mark.parametrize(
    ("a", "b", "least", "greatest"),
    [
        (1.0, 2.0, 1.0, 2.0),
        (2.0, 1.0, 1.0, 2.0),
        (0.0, -0.0, -0.0, 0.0),
        (-0.0, 0.0, -0.0, 0.0),
        (NAN, 1.0, 1.0, 1.0),
        (1.0, NAN, 1.0, 1.0),
        (NAN, NAN, NAN, NAN),
        (math.inf, -math.inf, -math.inf, math.inf),
        (NAN, -math.inf, -math.inf, -math.inf),
    ],
)
def test_min_and_max_of_doubles(call: Any, a: float, b: float, least: float, greatest: float) -> None:
    assert same(call("math.min", [Double, Double], a, b), least)
    assert same(call("math.max", [Double, Double], a, b), greatest)


@given(st.floats(), st.floats())
def test_min_and_max_do_not_depend_on_the_order(a: float, b: float) -> None:
    assert same(min_double.implementation(a, b), min_double.implementation(b, a))
    assert same(max_double.implementation(a, b), max_double.implementation(b, a))


@pytest.mark.parametrize(("n", "lo", "hi", "result"), [(5, 0, 3, 3), (-5, 0, 3, 0), (2, 0, 3, 2), (7, 4, 4, 4)])
def test_clamp(call: Any, n: int, lo: int, hi: int, result: int) -> None:
    assert call("math.clamp", [Int, Int, Int], n, lo, hi) == result
    assert call("math.clamp", [Double, Double, Double], float(n), float(lo), float(hi)) == float(result)


def test_clamp_without_a_range_traps(call: Any) -> None:
    with pytest.raises(Trap, match=r"T0006: math\.clamp: the lower bound 3 is above the upper bound 2"):
        call("math.clamp", [Int, Int, Int], 0, 3, 2)
    for lo, hi in ((3.0, 2.0), (NAN, 1.0), (1.0, NAN)):
        with pytest.raises(Trap, match="T0006"):
            call("math.clamp", [Double, Double, Double], 0.0, lo, hi)
    assert math.isnan(call("math.clamp", [Double, Double, Double], NAN, 0.0, 1.0))


@pytest.mark.parametrize(
    ("x", "root"), [(9.0, 3.0), (2.0, math.sqrt(2)), (0.0, 0.0), (-0.0, -0.0), (math.inf, math.inf)]
)
def test_square_roots(call: Any, x: float, root: float) -> None:
    assert same(call("math.sqrt", [Double], x), root)


@pytest.mark.parametrize("x", [-1.0, -5e-324, -math.inf, NAN])
def test_there_is_no_root_of_a_negative_number(call: Any, x: float) -> None:
    assert math.isnan(call("math.sqrt", [Double], x))


@pytest.mark.parametrize(
    ("a", "b", "divisor"),
    [(12, -18, 6), (0, 0, 0), (0, -7, 7), (MAX, MAX, MAX), (MIN, 6, 2), (MIN, 0, MIN), (MIN, MIN, MIN)],
)
def test_gcd_is_not_negative_unless_it_has_no_counterpart(call: Any, a: int, b: int, divisor: int) -> None:
    assert call("math.gcd", [Int, Int], a, b) == divisor
    assert call("math.gcd", [Int, Int], b, a) == divisor
