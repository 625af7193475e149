"""Text: how `io.println` and `str.from` format values."""

from __future__ import annotations


def bool_text(value: bool) -> str:
    return "true" if value else "false"


def double_text(value: float) -> str:
    """The shortest decimal number that reads back as the same Double, never with an exponent.

    Whole numbers have no point (`1`, `-0`); the others are `inf`, `-inf` and `NaN`.
    """
    if value != value:
        return "NaN"
    mantissa, _, exponent = float.__repr__(value).partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = whole + fraction
    # Python writes an exponent below 1e-4, and from 1e16 on, where there are no fractional digits.
    point = len(whole) + int(exponent)
    return f"{sign}0.{'0' * -point}{digits}" if point <= 0 else sign + digits.ljust(point, "0")
