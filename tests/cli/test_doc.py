"""`garden doc`: what it finds, and what it says where it finds nothing."""

from __future__ import annotations

import pytest

from garden.cli.doc import describe
from garden.cli.main import main
from garden.std import STANDARD


def test_without_a_query_the_packages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doc"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(STANDARD)
    assert lines[sorted(STANDARD).index("testing")] == "testing         Programs that check themselves."


def test_a_package_is_shown_with_all_its_functions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doc", "testing"]) == 0
    assert capsys.readouterr().out == (
        "Programs that check themselves.\n\n"
        'import "testing"\n\n'
        "fn assert(truth:Bool)\n"
        "    Traps unless the condition is true.\n"
    )
    text = describe(STANDARD, "math")
    assert all(f"{function}\n    " in text for function in STANDARD["math"].functions)


def test_a_function_is_shown_with_its_overloads() -> None:
    assert describe(STANDARD, "math.abs").splitlines()[0] == 'math.abs, with import "math"'
    heads = [line for line in describe(STANDARD, "str.from").splitlines() if line.startswith("fn ")]
    assert heads == ["fn from(n:Int) Str", "fn from(x:Double) Str", "fn from(truth:Bool) Str"]


def test_a_package_goes_by_its_path_and_by_the_name_that_programs_call() -> None:
    assert describe(STANDARD, "runtime") == describe(STANDARD, "unsafe/runtime")
    assert describe(STANDARD, "runtime.used") == describe(STANDARD, "unsafe/runtime.used")
    assert 'runtime.used, with import "unsafe/runtime"' in describe(STANDARD, "runtime.used")


def test_the_name_of_a_function_is_looked_for_in_all_packages() -> None:
    heads = [line for line in describe(STANDARD, "len").splitlines() if line.startswith(("arr.", "str."))]
    assert heads == ['arr.len, with import "arr"', 'str.len, with import "str"']


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("tesing", "garden: there is no package or function `tesing`, did you mean `testing`?\n"),
        ("str.lenn", "garden: there is no package or function `str.lenn`, did you mean `str.len`?\n"),
        ("nowhere.len", "garden: there is no package or function `nowhere.len`\n"),
        ("", "garden: there is no package or function ``\n"),
    ],
)
def test_what_there_is_not_is_an_error_with_what_was_meant(
    query: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doc", query]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", message)
