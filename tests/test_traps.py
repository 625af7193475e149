"""The table of messages that runs end with."""

from __future__ import annotations

from garden import traps
from garden.diagnostics import CODES
from garden.semantics import word_of
from garden.traps import MESSAGES, trap


def test_messages_are_found_by_their_numbers() -> None:
    assert [number for _, number, _, _ in MESSAGES] == list(range(1, len(MESSAGES) + 1))


def test_every_number_has_the_name_of_its_message() -> None:
    numbers = {name.lower(): value for name, value in vars(traps).items() if name.isupper() and type(value) is int}
    assert numbers == {name: number for name, number, _, _ in MESSAGES}


def test_every_message_has_a_documented_code() -> None:
    assert {code for _, _, code, _ in MESSAGES} <= set(CODES)


def test_the_words_of_a_message_are_ints() -> None:
    assert str(trap(traps.SLICE_OUTSIDE_STR, -1, 5, 3)) == "T0005: str.slice: -1 to 5 is outside a Str of 3 bytes"


def test_they_may_be_larger_than_a_word() -> None:
    raised = trap(traps.OVER_LIMIT, 1 << 70, 1 << 30)
    assert raised.message == f"{1 << 70} bytes more exceed the program's limit of {1 << 30}"


def test_or_doubles() -> None:
    raised = trap(traps.DOUBLE_BOUNDS, word_of(2.0), word_of(-0.5))
    assert str(raised) == "T0006: math.clamp: no numbers are between 2.0 and -0.5"


def test_words_that_a_message_has_no_use_for_are_ignored() -> None:
    raised = trap(traps.DIVISION_BY_ZERO, 1, 2, 3)
    assert (raised.code, raised.message, raised.offset, raised.backtrace) == ("T0001", "division by zero", -1, ())
