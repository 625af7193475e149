"""What garden's arithmetic means."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garden.errors import Trap
from garden.semantics import MAX_INT, MIN_INT, ddiv, double_of, double_to_int, idiv, imod, word_of, wrap

INTS = st.integers(MIN_INT, MAX_INT)


@given(st.integers(-(1 << 200), 1 << 200))
def test_wrapping_keeps_the_low_64_bits(value: int) -> None:
    wrapped = wrap(value)
    assert MIN_INT <= wrapped <= MAX_INT
    assert (wrapped - value) % (1 << 64) == 0


@given(INTS, INTS.filter(bool))
def test_quotient_and_remainder_make_the_dividend_again(dividend: int, divisor: int) -> None:
    quotient = idiv(dividend, divisor)
    remainder = imod(dividend, divisor)
    assert MIN_INT <= quotient <= MAX_INT
    assert wrap(quotient * divisor + remainder) == dividend
    assert abs(remainder) < abs(divisor)
    assert remainder == 0 or (remainder < 0) == (dividend < 0)


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "remainder"),
    [
        (7, 2, 3, 1),
        (-7, 2, -3, -1),
        (7, -2, -3, 1),
        (-7, -2, 3, -1),
        (MIN_INT, -1, MIN_INT, 0),
        (MIN_INT, 1, MIN_INT, 0),
    ],
)
def test_division_goes_towards_zero(dividend: int, divisor: int, quotient: int, remainder: int) -> None:
    assert idiv(dividend, divisor) == quotient
    assert imod(dividend, divisor) == remainder


def test_division_by_zero_traps() -> None:
    for divide in (lambda: idiv(1, 0), lambda: imod(1, 0), lambda: ddiv(1.0, 0.0), lambda: ddiv(0.0, -0.0)):
        with pytest.raises(Trap) as raised:
            divide()
        assert raised.value.code == "T0001"


def test_double_division_overflows_to_infinity() -> None:
    assert ddiv(1e308, 1e-308) == math.inf
    assert ddiv(-1.0, math.inf) == 0.0
    assert math.isnan(ddiv(math.nan, 1.0))


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (2.9, 2),
        (-2.9, -2),
        (-0.0, 0),
        (math.nan, 0),
        (math.inf, MAX_INT),
        (-math.inf, MIN_INT),
        (9223372036854775808.0, MAX_INT),
        (9223372036854774784.0, 9223372036854774784),
        (-9223372036854775808.0, MIN_INT),
        (-9223372036854777856.0, MIN_INT),
    ],
)
def test_a_double_becomes_an_int_by_truncation_within_range(value: float, result: int) -> None:
    assert double_to_int(value) == result


@given(INTS.filter(lambda word: not math.isnan(double_of(word))))
def test_words_and_doubles_are_the_same_bits(word: int) -> None:
    assert word_of(double_of(word)) == word


def test_the_sign_of_zero_is_a_bit() -> None:
    assert word_of(0.0) == 0
    assert word_of(-0.0) == MIN_INT
    assert math.copysign(1.0, double_of(MIN_INT)) == -1.0
