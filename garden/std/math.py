"""math: numbers. Double functions follow IEEE 754; in comparisons, a NaN loses against any number."""

from __future__ import annotations

import math
from typing import Final

from garden.host import Package, declare
from garden.semantics import word_of, wrap
from garden.traps import DOUBLE_BOUNDS, INT_BOUNDS, trap
from garden.types.types import Double, Int


@declare("math", "abs", ("n", Int), result=Int, pure=True, native="math_abs_int")
def abs_int(n: int) -> int:
    """The absolute value. That of the smallest Int is itself, since it has no positive counterpart."""
    return wrap(abs(n))


@declare("math", "abs", ("x", Double), result=Double, pure=True, native="math_abs_double")
def abs_double(x: float) -> float:
    """The absolute value."""
    return math.fabs(x)


@declare("math", "round", ("n", Int), result=Int, pure=True, native="math_round_int")
def round_int(n: int) -> int:
    """The number itself."""
    return n


@declare("math", "round", ("x", Double), result=Double, pure=True, native="math_round_double")
def round_double(x: float) -> float:
    """The nearest whole number; halves round away from zero."""
    if not math.isfinite(x):
        return x
    # `x + 0.5` would round 0.49999999999999994 up; the difference here is exact.
    whole = float(math.trunc(x))
    if abs(x - whole) >= 0.5:
        whole += math.copysign(1.0, x)
    return math.copysign(whole, x)


@declare("math", "min", ("a", Int), ("b", Int), result=Int, pure=True, native="math_min_int")
def min_int(a: int, b: int) -> int:
    """The smaller number."""
    return min(a, b)


@declare("math", "min", ("a", Double), ("b", Double), result=Double, pure=True, native="math_min_double")
def min_double(a: float, b: float) -> float:
    """The smaller number. -0.0 is smaller than 0.0; the result is a NaN only if both are."""
    if a != a:
        return b
    if a == b:
        return a if math.copysign(1.0, a) < 0.0 else b
    return b if b < a else a


@declare("math", "max", ("a", Int), ("b", Int), result=Int, pure=True, native="math_max_int")
def max_int(a: int, b: int) -> int:
    """The larger number."""
    return max(a, b)


@declare("math", "max", ("a", Double), ("b", Double), result=Double, pure=True, native="math_max_double")
def max_double(a: float, b: float) -> float:
    """The larger number. 0.0 is larger than -0.0; the result is a NaN only if both are."""
    if a != a:
        return b
    if a == b:
        return b if math.copysign(1.0, a) < 0.0 else a
    return b if b > a else a


@declare("math", "clamp", ("n", Int), ("lo", Int), ("hi", Int), result=Int, pure=True, native="math_clamp_int")
def clamp_int(n: int, lo: int, hi: int) -> int:
    """The number from `lo` to `hi` that is nearest to `n`. Traps if `lo` is above `hi`."""
    if lo > hi:
        raise trap(INT_BOUNDS, lo, hi)
    return min(max(n, lo), hi)


@declare(
    "math", "clamp", ("x", Double), ("lo", Double), ("hi", Double), result=Double, pure=True, native="math_clamp_double"
)
def clamp_double(x: float, lo: float, hi: float) -> float:
    """The number from `lo` to `hi` that is nearest to `x`; a NaN stays a NaN.

    Traps if `lo` is above `hi`, or either is a NaN.
    """
    if not lo <= hi:
        raise trap(DOUBLE_BOUNDS, word_of(lo), word_of(hi))
    if x < lo:
        return lo
    return hi if x > hi else x


@declare("math", "gcd", ("a", Int), ("b", Int), result=Int, pure=True, native="math_gcd")
def gcd(a: int, b: int) -> int:
    """The greatest common divisor, not negative; 0 for two zeros.

    That of the smallest Int and itself or 0 is the smallest Int.
    """
    return wrap(math.gcd(a, b))


@declare("math", "sqrt", ("x", Double), result=Double, pure=True, native="math_sqrt")
def sqrt(x: float) -> float:
    """The square root; a NaN for negative numbers."""
    return math.nan if x < 0.0 else math.sqrt(x)


MATH: Final = Package(
    "math",
    "Numbers.",
    [
        abs_int,
        abs_double,
        round_int,
        round_double,
        min_int,
        min_double,
        max_int,
        max_double,
        clamp_int,
        clamp_double,
        gcd,
        sqrt,
    ],
)
