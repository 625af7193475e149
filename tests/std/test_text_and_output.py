"""io, and how values are written."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from garden.std.text import double_text
from garden.types.types import Bool, Double, Int, Str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.0, "-1"),
        (0.1, "0.1"),
        (1.5, "1.5"),
        (100.0, "100"),
        (123456.789, "123456.789"),
        (1 / 3, "0.3333333333333333"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (-1.25e-7, "-0.000000125"),
        (1e15, "1000000000000000"),
        (1e16, "10000000000000000"),
        (1.2345678901234567e16, "12345678901234568"),
        (-1.5e20, "-150000000000000000000"),
        (1e22, "10000000000000000000000"),
        (2.0**53, "9007199254740992"),
        (5e-324, "0." + "0" * 323 + "5"),
        (1.7976931348623157e308, "17976931348623157" + "0" * 292),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "NaN"),
        (-math.nan, "NaN"),
    ],
)
def test_a_double_is_its_shortest_decimal_without_exponent(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_text_reads_back_as_the_same_double(value: float) -> None:
    text = double_text(value)
    assert set(text) <= set("-.0123456789")
    assert float(text) == value
    assert math.copysign(1.0, float(text)) == math.copysign(1.0, value)
    # As short as Python's, which is the shortest.
    assert Decimal(text) == Decimal(repr(value))
    assert "." not in text or text[-1] != "0"


SAMPLES: list[tuple[Any, object, str]] = [
    (Str, "grün", "grün"),
    (Str, "", ""),
    (Int, -(1 << 63), "-9223372036854775808"),
    (Double, 2.0, "2"),
    (Double, -0.5, "-0.5"),
    (Bool, True, "true"),
    (Bool, False, "false"),
]


@pytest.mark.parametrize(("type", "value", "text"), SAMPLES)
def test_print_and_println_write_any_scalar(call: Any, type: Any, value: object, text: str) -> None:
    assert call("io.print", [type], value) is None
    assert call("io.println", [type], value) is None
    call.runtime.output.flush()
    assert call.output.decode() == f"{text}{text}\n"


@pytest.mark.parametrize(("type", "value", "text"), SAMPLES[2:])
def test_str_from_writes_as_println_does(call: Any, type: Any, value: object, text: str) -> None:
    assert call("str.from", [type], value) == text
