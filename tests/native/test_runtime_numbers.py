"""Doubles in the native runtime: written as the shortest decimal, and `math` to the last bit."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator

import pytest

from garden.semantics import word_of
from garden.std.text import double_text
from garden.types.types import Double, Int
from tests.support.reference import ReferenceRuntime, Twins

SMALLEST_NORMAL = 2.2250738585072014e-308
SPECIAL = (
    0.0,
    0.5,
    0.49999999999999994,
    1.0,
    1.5,
    2.5,
    5e-324,
    math.nextafter(SMALLEST_NORMAL, 0.0),
    SMALLEST_NORMAL,
    1.7976931348623157e308,
    4503599627370495.5,
    4503599627370496.0,
    9007199254740991.0,
    9007199254740992.0,
    9007199254740994.0,
    9223372036854775807.0,
    math.inf,
    math.nan,
)
SIGNED = (*SPECIAL, *[-x for x in SPECIAL])
INTS = (-(1 << 63), -(1 << 63) + 1, -7, -1, 0, 1, 7, (1 << 63) - 1)


@pytest.fixture(scope="module")
def runtime() -> Iterator[ReferenceRuntime]:
    runtime = ReferenceRuntime()
    yield runtime
    runtime.close()


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    twins = Twins()
    yield twins
    twins.close()


def written(runtime: ReferenceRuntime, x: float) -> str:
    """What `io.print` makes of a Double; the buffer is emptied each time, so that it is at its start."""
    runtime("io_print_double", word_of(x))
    return runtime.flush().decode()


@pytest.mark.parametrize("x", SIGNED)
def test_special_doubles_are_written_as_in_python(runtime: ReferenceRuntime, x: float) -> None:
    assert written(runtime, x) == double_text(x)


def test_powers_of_ten_are_written_as_in_python(runtime: ReferenceRuntime) -> None:
    for exponent in range(-324, 309):
        x = float(f"1e{exponent}")
        assert written(runtime, x) == double_text(x)


def test_powers_of_two_and_their_neighbours_are_written_as_in_python(runtime: ReferenceRuntime) -> None:
    for exponent in range(-1074, 1024, 3):
        # A power of two is nearer to the number below than to the one above.
        power = math.ldexp(1.0, exponent)
        assert written(runtime, power) == double_text(power)
        if exponent % 4 == 0:
            for x in (math.nextafter(power, 0.0), math.nextafter(power, math.inf)):
                assert written(runtime, x) == double_text(x)


def test_random_doubles_are_written_as_in_python(runtime: ReferenceRuntime) -> None:
    rng = random.Random(5)
    for _ in range(1000):
        x = struct.unpack("<d", rng.randbytes(8))[0]
        assert written(runtime, x) == double_text(x)


def test_short_decimals_and_whole_numbers_are_written_as_in_python(runtime: ReferenceRuntime) -> None:
    rng = random.Random(6)
    for _ in range(300):
        for x in (
            rng.randrange(-(10**7), 10**7) / 10 ** rng.randrange(8),
            float(rng.randrange(10 ** rng.randrange(1, 25))),
            math.ldexp(float(rng.randrange(1 << 53)), -1074),
        ):
            assert written(runtime, x) == double_text(x)


def test_a_decimal_halfway_between_two_doubles_belongs_to_the_even_one(runtime: ReferenceRuntime) -> None:
    for x in (2.0**54 + 4, 9007199254740993.0 * 2, 1e23, 9e23, 5e22):
        assert written(runtime, x) == double_text(x)


@pytest.mark.parametrize("a", SIGNED)
def test_double_functions_of_one_number_are_bit_exact(twins: Twins, a: float) -> None:
    for path in ("math.abs", "math.round", "math.sqrt"):
        twins(path, [Double], a)


def test_double_functions_of_several_numbers_are_bit_exact(twins: Twins) -> None:
    for a in SIGNED[::2]:
        for b in SIGNED:
            for path in ("math.min", "math.max"):
                twins(path, [Double, Double], a, b)
            twins("math.clamp", [Double, Double, Double], 1.25, a, b)
            twins("math.clamp", [Double, Double, Double], a, -2.0, b)


def test_rounding_agrees_on_random_numbers(twins: Twins) -> None:
    rng = random.Random(7)
    for _ in range(200):
        twins("math.round", [Double], math.ldexp(rng.uniform(-1.0, 1.0), rng.randrange(-2, 60)))


def test_a_nan_without_a_sign_comes_of_the_root_of_a_negative_number(runtime: ReferenceRuntime) -> None:
    assert runtime("math_sqrt", word_of(-1.0)) == word_of(math.nan)


def test_int_functions_agree(twins: Twins) -> None:
    for a in INTS:
        twins("math.abs", [Int], a)
        twins("math.round", [Int], a)
        for b in INTS:
            twins("math.min", [Int, Int], a, b)
            twins("math.max", [Int, Int], a, b)
            twins("math.gcd", [Int, Int], a, b)
            twins("math.clamp", [Int, Int, Int], 3, a, b)
            twins("math.clamp", [Int, Int, Int], a, -1, b)
