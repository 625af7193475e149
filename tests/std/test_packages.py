"""The standard packages as tables: what there is, and that it is documented."""

from __future__ import annotations

from garden.std import STANDARD
from garden.types.types import Double, Int

EXPECTED = {
    "arr": {"len", "get", "range", "sum"},
    "io": {"print", "println"},
    "math": {"abs", "clamp", "gcd", "max", "min", "round", "sqrt"},
    "opt": {"some", "none", "is_some", "is_none", "unwrap", "or"},
    "str": {"concat", "contains", "from", "get", "len", "repeat", "slice"},
    "testing": {"assert"},
    "unsafe/runtime": {"allocs", "used"},
    "unsafe/syscall": {"uname"},
}


def test_the_packages_and_their_functions() -> None:
    assert {path: {function.name for function in package.functions} for path, package in STANDARD.items()} == EXPECTED


def test_programs_call_a_package_by_the_last_part_of_its_path() -> None:
    assert [STANDARD[path].name for path in ("io", "unsafe/runtime")] == ["io", "runtime"]


def test_everything_is_documented_and_belongs_to_its_package() -> None:
    for path, package in STANDARD.items():
        assert package.path == path
        assert package.doc.endswith(".")
        for function in package.functions:
            assert function.package == path
            assert function.doc.split("\n")[0].endswith("."), function.path


def test_overloads_differ_in_their_parameters() -> None:
    for package in STANDARD.values():
        heads = [(function.name, tuple([type for _, type in function.parameters])) for function in package.functions]
        assert len(set(heads)) == len(heads)


def test_functions_say_what_they_are() -> None:
    clamp = [str(function) for function in STANDARD["math"].functions if function.name == "clamp"]
    assert clamp == ["fn clamp(n:Int lo:Int hi:Int) Int", "fn clamp(x:Double lo:Double hi:Double) Double"]


def test_what_may_be_folded_needs_no_machine_and_is_pure() -> None:
    foldable = [f.path for package in STANDARD.values() for f in package.functions if f.pure and not f.machine]
    assert set(foldable) == {
        *(f"math.{name}" for name in EXPECTED["math"]),
        "str.contains",
        "str.repeat",
        "str.concat",
        "str.from",
    }
    impure = [f.path for package in STANDARD.values() for f in package.functions if not f.pure]
    assert {"testing.assert", "io.println", "str.get", "str.slice", "unsafe/runtime.used"} <= set(impure)


def test_words_and_machine_functions_are_marked() -> None:
    length = next(function for function in STANDARD["str"].functions if function.name == "len")
    assert (length.words, length.machine, length.result) == (True, True, Int)
    sqrt = next(function for function in STANDARD["math"].functions if function.name == "sqrt")
    assert (sqrt.words, sqrt.machine, sqrt.result) == (False, False, Double)
