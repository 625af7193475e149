"""What the parser's stack consists of: the forms of frames, and the tables by form and by token that drive it."""

from __future__ import annotations

from typing import Final

from garden.syntax import ast as nodes
from garden.syntax import tokens

#: What later stages may rely on: paths in the tree that turn into another level are at most this long.
MAX_NESTING: Final = 1000

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
# Types. They end before anything else goes on.
OPTION_TYPE: Final = 14  # token: `Option`
ARRAY_TYPE: Final = 15  # token: `Array`
RECORD_TYPE: Final = 16  # token: `Record`

FORMS: Final = 17

#: Operand of a frame that parts of are missing: it is parsed on for the sake of what is inside, and then dropped.
BROKEN: Final = (1 << 32) - 1

# What may follow an operand, beside operators.
APPLY: Final = 1
SELECT: Final = 2
CONVERT: Final = 3


def _by_index(size: int, entries: dict[int, int]) -> bytes:
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

#: By token kind, how the token goes on with an operand before it: as an operator of this form, or otherwise.
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

#: By form, whether a frame is a level of nesting.
NESTS: Final = _by_index(
    FORMS,
    {
        CALL: 1,
        ARRAY: 1,
        RECORD: 1,
        MATCH: 1,
        PAREN: 1,
        SIGN: 1,
        OPTION_TYPE: 1,
        ARRAY_TYPE: 1,
        RECORD_TYPE: 1,
    },
)
