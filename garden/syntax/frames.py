"""The parser's stack: what is open and unfinished, and the tables by form and by token that drive it.

A *frame* is a body, a call, a sign, an operator that waits for its right side, ... Its children so far are on a second
stack, from its `mark` on.

Costs: a frame takes 13 bytes, a finished child of an open frame 4.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec
from garden.syntax import ast as nodes
from garden.syntax import tokens

S = TypeVar("S", bound=Allocator, covariant=True)

# Forms of frames, and what `token` and `operand` of the frame are. First those that take items.
ROOT: Final = 0
BODY: Final = 1  # token: the function's name; operand: its signature, or BROKEN
ARM: Final = 2  # token: `{`
DEFAULT: Final = 3  # token: `{`
CALL: Final = 4  # token: `(`; operand: the target
LET: Final = 5  # token: the name; operand: list of doc tokens
# Those that take expressions.
ARRAY: Final = 6  # token: `[`
RECORD: Final = 7  # token: `{`
MATCH: Final = 8  # token: `match`; operand: body list of the default arm, 0, or BROKEN
PAREN: Final = 9  # token: `(`
# Operators, the loosest first.
COMPARISON: Final = 10  # token: the operator; operand: the left side
SUM: Final = 11  # the same
PRODUCT: Final = 12  # the same
SIGN: Final = 13  # token: the sign
# Types. They end before any other frame continues.
OPTION_TYPE: Final = 14  # token: `Option`
ARRAY_TYPE: Final = 15  # token: `Array`
RECORD_TYPE: Final = 16  # token: `Record`

FORMS: Final = 17

#: Operand of an incomplete frame: parsing continues so that its parts are checked, and the frame is then dropped.
BROKEN: Final = (1 << 32) - 1

# What may follow an operand, beside operators.
APPLY: Final = 1
SELECT: Final = 2
CONVERT: Final = 3


def _by_index(size: i64, entries: dict[int, int]) -> bytes:
    table = bytearray(size)
    for index, entry in entries.items():
        table[index] = entry
    return bytes(table)


#: By token kind, the kind of node that the token is by itself.
ATOMS: Final = _by_index(
    64,
    {
        tokens.IDENT: nodes.IDENT,
        tokens.INT: nodes.INT,
        tokens.DOUBLE: nodes.DOUBLE,
        tokens.STRING: nodes.STRING,
        tokens.TRUE: nodes.TRUE,
        tokens.FALSE: nodes.FALSE,
    },
)

#: By token kind, how the token continues with an operand before it: as an operator of this form, or otherwise.
CONTINUATIONS: Final = _by_index(
    64,
    {
        tokens.LPAREN: APPLY,
        tokens.DOT: SELECT,
        tokens.AS: CONVERT,
        tokens.EQ: COMPARISON,
        tokens.NE: COMPARISON,
        tokens.LT: COMPARISON,
        tokens.GT: COMPARISON,
        tokens.LE: COMPARISON,
        tokens.GE: COMPARISON,
        tokens.PLUS: SUM,
        tokens.MINUS: SUM,
        tokens.STAR: PRODUCT,
        tokens.SLASH: PRODUCT,
        tokens.PERCENT: PRODUCT,
    },
)

#: By form, the token that ends the frame and belongs to it.
CLOSERS: Final = _by_index(
    FORMS,
    {
        BODY: tokens.RBRACE,
        ARM: tokens.RBRACE,
        DEFAULT: tokens.RBRACE,
        CALL: tokens.RPAREN,
        ARRAY: tokens.RBRACKET,
        RECORD: tokens.RBRACE,
        MATCH: tokens.RBRACE,
    },
)


@mypyc_attr(native_class=True)
class FrameStack(Generic[S]):
    """Frames and their children, over `scratch`. At the bottom is a frame of the form `ROOT`, which stays.

    `form` repeats that of the frame on top. A constructor that fails has nothing to close.
    """

    __slots__ = ("_capacity", "_forms", "_frames", "_marks", "_operands", "_tokens", "children", "form")

    def __init__(self, scratch: S) -> None:
        self._frames: Final[Table[S]] = Table(scratch, "BIII")
        self._capacity: i64 = 0
        self._forms, self._tokens, self._operands, self._marks = self._frames.typed_columns
        self.children: Final[Vec[S]] = Vec(scratch, "I")
        self.form: i64 = ROOT
        self.open(ROOT, 0, 0)

    def __len__(self) -> int:
        return len(self._frames)

    def open(self, form: i64, token: i64, operand: i64) -> None:
        """Put a frame on the stack."""
        row = self._frames.add()
        if row >= self._capacity:
            self._capacity = self._frames.capacity
            self._forms, self._tokens, self._operands, self._marks = self._frames.typed_columns
        self._forms[row] = form
        self._tokens[row] = token
        self._operands[row] = operand
        self._marks[row] = len(self.children)
        self.form = form

    def top(self) -> tuple[int, int, int]:
        """Token, operand and mark of the frame on top."""
        top = len(self._frames) - 1
        return self._tokens[top], self._operands[top], self._marks[top]

    def set_operand(self, operand: i64) -> None:
        """Change the operand of the frame on top."""
        self._operands[len(self._frames) - 1] = operand

    def pop(self) -> None:
        """Take the top frame off and leave its children, which go to the frame below."""
        top = len(self._frames) - 1
        self._frames.truncate(top)
        self.form = self._forms[top - 1]

    def drop(self) -> None:
        """Take the top frame off together with its children."""
        self.children.truncate(self.top()[2])
        self.pop()

    def close(self) -> None:
        self.children.close()
        self._frames.close()
