"""Traps: every message that can end a run, by number, so that machine code and Python report the same.

A message has a T code and a text. The text may contain up to three words: `{a}`, `{b}` and `{c}` are Ints, `{x}` and
`{y}` the first two as Doubles. Machine code passes the number and leaves the words in its context; `trap` makes the
exception. Messages that quote a Python exception are not here.
"""

from __future__ import annotations

import struct
from typing import Final

from garden.errors import Trap

DIVISION_BY_ZERO: Final = 1
TOO_MANY_CALLS: Final = 2
OVER_LIMIT: Final = 3
STR_TOO_LONG: Final = 4
REPEAT_TOO_LONG: Final = 5
ASSERTION_FAILED: Final = 6
INDEX_OUTSIDE_ARRAY: Final = 7
INDEX_OUTSIDE_STR: Final = 8
SLICE_OUTSIDE_STR: Final = 9
NO_SUCH_WORD: Final = 10
NO_SUCH_FOREIGN: Final = 11
SLICE_INSIDE_CHARACTER: Final = 12
NEGATIVE_REPEAT: Final = 13
INT_BOUNDS: Final = 14
DOUBLE_BOUNDS: Final = 15
NO_VALUE: Final = 16
INTERRUPTED: Final = 17
STACK_FULL: Final = 18
NO_MEMORY: Final = 19

#: Name, number, code and text of each message, by number from 1.
MESSAGES: Final[tuple[tuple[str, int, str, str], ...]] = (
    ("division_by_zero", DIVISION_BY_ZERO, "T0001", "division by zero"),
    ("too_many_calls", TOO_MANY_CALLS, "T0002", "stack overflow: {a} calls are active"),
    ("over_limit", OVER_LIMIT, "T0003", "{a} bytes more exceed the program's limit of {b}"),
    ("str_too_long", STR_TOO_LONG, "T0003", "a Str has at most {a} bytes, not {b}"),
    ("repeat_too_long", REPEAT_TOO_LONG, "T0003", "str.repeat: a Str has at most {a} bytes"),
    ("assertion_failed", ASSERTION_FAILED, "T0004", "assertion failed"),
    (
        "index_outside_array",
        INDEX_OUTSIDE_ARRAY,
        "T0005",
        "arr.get: index {a} is outside an array of {b} members",
    ),
    ("index_outside_str", INDEX_OUTSIDE_STR, "T0005", "str.get: index {a} is outside a Str of {b} bytes"),
    ("slice_outside_str", SLICE_OUTSIDE_STR, "T0005", "str.slice: {a} to {b} is outside a Str of {c} bytes"),
    ("no_such_word", NO_SUCH_WORD, "T0005", "the program has no word at address {a:#x}"),
    ("no_such_foreign", NO_SUCH_FOREIGN, "T0005", "no foreign object has the number {a}"),
    ("slice_inside_character", SLICE_INSIDE_CHARACTER, "T0006", "str.slice: index {a} is inside a character"),
    ("negative_repeat", NEGATIVE_REPEAT, "T0006", "str.repeat: a text cannot be repeated {a} times"),
    ("int_bounds", INT_BOUNDS, "T0006", "math.clamp: the lower bound {a} is above the upper bound {b}"),
    ("double_bounds", DOUBLE_BOUNDS, "T0006", "math.clamp: no numbers are between {x} and {y}"),
    ("no_value", NO_VALUE, "T0006", "opt.unwrap: the option has no value"),
    ("interrupted", INTERRUPTED, "T0007", "interrupted"),
    ("stack_full", STACK_FULL, "T0002", "stack overflow: the stack of the machine is full"),
    ("no_memory", NO_MEMORY, "T0003", "the system has no memory for {a} bytes more"),
)

_TWO_WORDS: Final = struct.Struct("<qq")
_TWO_DOUBLES: Final = struct.Struct("<dd")


def trap(message: int, a: int = 0, b: int = 0, c: int = 0) -> Trap:
    """The exception for a message and its words."""
    _, _, code, text = MESSAGES[message - 1]
    if "{x}" in text:
        x, y = _TWO_DOUBLES.unpack(_TWO_WORDS.pack(a, b))
        return Trap(code, text.format(x=x, y=y))
    return Trap(code, text.format(a=a, b=b, c=c))
