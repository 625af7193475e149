"""str."""

from __future__ import annotations

from typing import Any

import pytest

from garden.errors import Trap
from garden.std.str import repeat
from garden.types.types import Bool, Int, Str
from garden.vm.heap import MAX_STR_BYTES

#: One, two, three and four bytes a character.
TEXT = "aä€😀"


def test_contains(call: Any) -> None:
    for hay, needle, found in (
        ("abc", "bc", True),
        ("abc", "cb", False),
        ("", "", True),
        ("a", "", True),
        (TEXT, "€", True),
    ):
        assert call("str.contains", [Str, Str], hay, needle) is found


def test_concat(call: Any) -> None:
    assert call("str.concat", [Str, Str], "grü", "n") == "grün"
    assert call("str.concat", [Str, Str], "", "") == ""


def test_concat_interns_its_result(call: Any) -> None:
    left = call.heap.intern(b"left")
    both = call.heap.intern(b"leftleft")
    assert call.words(call.find("str.concat", [Str, Str]), left, left) == both


def test_repeat(call: Any) -> None:
    assert call("str.repeat", [Str, Int], "ab", 3) == "ababab"
    assert call("str.repeat", [Str, Int], "ab", 0) == ""
    assert call("str.repeat", [Str, Int], "", 1 << 62) == ""


@pytest.mark.parametrize("count", [-1, -(1 << 63)])
def test_a_negative_repeat_count_traps(call: Any, count: int) -> None:
    with pytest.raises(Trap, match=r"T0006: str\.repeat"):
        call("str.repeat", [Str, Int], "a", count)


def test_a_repetition_that_no_str_can_hold_is_never_made(call: Any) -> None:
    for text, count in (("x", 1 << 62), ("x", MAX_STR_BYTES + 1), ("ä", MAX_STR_BYTES // 2 + 1)):
        with pytest.raises(Trap, match="T0003"):
            repeat.implementation(text, count)
    with pytest.raises(Trap, match="T0003"):
        call("str.repeat", [Str, Int], "x" * 1000, 1 << 15)


def test_len_counts_bytes(call: Any) -> None:
    assert [call("str.len", [Str], text) for text in ("", "abc", TEXT)] == [0, 3, 10]


def test_get_reads_a_byte(call: Any) -> None:
    assert bytes([call("str.get", [Str, Int], TEXT, index) for index in range(10)]) == TEXT.encode()


@pytest.mark.parametrize("index", [-1, 10, 1 << 40, -(1 << 63)])
def test_get_outside_the_text_traps(call: Any, index: int) -> None:
    with pytest.raises(Trap, match=f"T0005: str.get: index {index} is outside a Str of 10 bytes"):
        call("str.get", [Str, Int], TEXT, index)


def test_slice_takes_bytes(call: Any) -> None:
    boundaries = [0, 1, 3, 6, 10]
    data = TEXT.encode()
    for start in boundaries:
        for end in boundaries:
            if start <= end:
                assert call("str.slice", [Str, Int, Int], TEXT, start, end) == data[start:end].decode()


@pytest.mark.parametrize(("start", "end"), [(-1, 1), (0, 11), (3, 1), (11, 11), (-5, -3), (0, 1 << 62)])
def test_slice_outside_the_text_traps(call: Any, start: int, end: int) -> None:
    with pytest.raises(Trap, match=f"T0005: str.slice: {start} to {end} is outside a Str of 10 bytes"):
        call("str.slice", [Str, Int, Int], TEXT, start, end)


@pytest.mark.parametrize("inside", [2, 4, 5, 7, 8, 9])
def test_slice_does_not_cut_a_character(call: Any, inside: int) -> None:
    with pytest.raises(Trap, match=f"T0006: str.slice: index {inside} is inside a character"):
        call("str.slice", [Str, Int, Int], TEXT, 0, inside)
    with pytest.raises(Trap, match=f"T0006: str.slice: index {inside} is inside a character"):
        call("str.slice", [Str, Int, Int], TEXT, inside, 10)


def test_a_slice_of_everything_is_the_same_str(call: Any) -> None:
    word = call.heap.intern(TEXT.encode())
    assert call.words(call.find("str.slice", [Str, Int, Int]), word, 0, 10) == word


def test_from_makes_text_of_numbers_and_truths(call: Any) -> None:
    assert call("str.from", [Int], -12) == "-12"
    assert call("str.from", [Bool], True) == "true"
