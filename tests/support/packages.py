"""Packages that test programs can import: the standard ones, and some for what the standard ones have no use for.

test/thing    foreign objects, records and arrays of the host, functions with several slots
test/twin     has the name of
other/twin
"""

from __future__ import annotations

from collections.abc import Sequence

from garden.errors import Trap
from garden.host import Package, declare
from garden.std import STANDARD
from garden.types.types import Array, Bool, Double, Foreign, Int, Option, Record, Slot, Str

_T = Slot("T")
_U = Slot("U")
_THING = Foreign("Thing")
_POINT = Record(x=Int, y=Record(name=Str, size=Double))


@declare("test/thing", "make", ("number", Int), result=_THING)
def make(number: int) -> object:
    """A new thing."""
    return [number]


@declare("test/thing", "number", ("thing", _THING), result=Int)
def number(thing: list[int]) -> int:
    """The number that a thing was made of."""
    return thing[0]


@declare("test/thing", "other", result=Foreign("Other"))
def other() -> object:
    """What is no thing."""
    return object()


@declare("test/thing", "pair", ("first", _T), ("second", _U), result=Record(first=_T, second=_U), pure=True)
def pair(first: object, second: object) -> dict[str, object]:
    """Both values in a record."""
    return {"first": first, "second": second}


@declare("test/thing", "same", ("first", _T), ("second", _T), result=Bool, pure=True)
def same(first: object, second: object) -> bool:
    """Whether two values of any type are equal."""
    return first == second


@declare("test/thing", "empty", result=Array(_T), pure=True)
def empty() -> list[object]:
    """Nothing tells what it is an array of."""
    return []


@declare("test/thing", "half", ("number", Int), result=Option(Int), pure=True)
def half(number: int) -> int | None:
    """Half of an even number."""
    return None if number % 2 else number // 2


@declare("test/thing", "move", ("point", _POINT), ("by", Int), result=_POINT, pure=True)
def move(point: dict[str, object], by: int) -> dict[str, object]:
    """The point, `x` being larger."""
    return {**point, "x": point["x"] + by}  # type: ignore[operator]


@declare("test/thing", "reversed", ("array", Array(_T)), result=Array(_T), pure=True)
def reversed_(array: Sequence[object]) -> list[object]:
    """The members from the last to the first."""
    return list(reversed(array))


@declare("test/thing", "fail", ("text", Str), result=Int)
def fail(text: str) -> int:
    """Traps."""
    raise Trap("T0006", text)


@declare("test/twin", "which", result=Str)
def which() -> str:
    """Tells the packages apart."""
    return "test"


@declare("other/twin", "which", result=Str)
def which_other() -> str:
    """Tells the packages apart."""
    return "other"


PACKAGES = {
    **STANDARD,
    "test/thing": Package(
        "test/thing",
        "Things of the host.",
        [make, number, other, pair, same, empty, half, move, reversed_, fail],
    ),
    "test/twin": Package("test/twin", "One of two.", [which]),
    "other/twin": Package("other/twin", "The other of two.", [which_other]),
}
