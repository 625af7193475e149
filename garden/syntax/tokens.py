"""Tokens: what the lexer makes of a source, one table row each.

A row is (kind, start, end, symbol): the bytes `start..end` of the source, and for identifiers, strings and doc comments
the symbol that their text is interned as (a string's text is what stands between its quotes, a doc comment's what
follows `#!` and one space). Row 0 is a token of kind `NONE`, so 0 can mean "no token"; the last row is `EOF`.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table
from allocators.uncopyable import Uncopyable

A = TypeVar("A", bound=Allocator, covariant=True)

NONE: Final = 0
EOF: Final = 1
IDENT: Final = 2
INT: Final = 3
DOUBLE: Final = 4
STRING: Final = 5
DOC: Final = 6

LPAREN: Final = 10
RPAREN: Final = 11
LBRACKET: Final = 12
RBRACKET: Final = 13
LBRACE: Final = 14
RBRACE: Final = 15
PLUS: Final = 16
MINUS: Final = 17
STAR: Final = 18
SLASH: Final = 19
PERCENT: Final = 20
ASSIGN: Final = 21
EQ: Final = 22
NE: Final = 23
LT: Final = 24
GT: Final = 25
LE: Final = 26
GE: Final = 27
BANG: Final = 28
QUESTION: Final = 29
COLON: Final = 30
DOT: Final = 31

IMPORT: Final = 40
EXTERN: Final = 41
AS: Final = 42
LET: Final = 43
FN: Final = 44
MATCH: Final = 45
TRUE: Final = 46
FALSE: Final = 47

T_STR: Final = 50
T_INT: Final = 51
T_DOUBLE: Final = 52
T_BOOL: Final = 53
T_VOID: Final = 54
T_OPTION: Final = 55
T_ARRAY: Final = 56
T_FOREIGN: Final = 57
T_RECORD: Final = 58

#: How each kind is spelled in dumps and diagnostics: the text itself where it is fixed, else a description.
SPELLINGS: Final[dict[int, str]] = {
    NONE: "nothing",
    EOF: "end of file",
    IDENT: "identifier",
    INT: "integer",
    DOUBLE: "double",
    STRING: "string",
    DOC: "doc comment",
    LPAREN: "(",
    RPAREN: ")",
    LBRACKET: "[",
    RBRACKET: "]",
    LBRACE: "{",
    RBRACE: "}",
    PLUS: "+",
    MINUS: "-",
    STAR: "*",
    SLASH: "/",
    PERCENT: "%",
    ASSIGN: "=",
    EQ: "==",
    NE: "!=",
    LT: "<",
    GT: ">",
    LE: "<=",
    GE: ">=",
    BANG: "!",
    QUESTION: "?",
    COLON: ":",
    DOT: ".",
    IMPORT: "import",
    EXTERN: "extern",
    AS: "as",
    LET: "let",
    FN: "fn",
    MATCH: "match",
    TRUE: "true",
    FALSE: "false",
    T_STR: "Str",
    T_INT: "Int",
    T_DOUBLE: "Double",
    T_BOOL: "Bool",
    T_VOID: "Void",
    T_OPTION: "Option",
    T_ARRAY: "Array",
    T_FOREIGN: "Foreign",
    T_RECORD: "Record",
}

#: Keywords and type names: identifiers that are tokens of their own.
KEYWORDS: Final[dict[bytes, int]] = {SPELLINGS[kind].encode(): kind for kind in SPELLINGS if kind >= IMPORT}


@mypyc_attr(native_class=True)
class Tokens(Uncopyable, Generic[A]):
    """The token table. The four columns are attributes; they are replaced when the table grows."""

    __slots__ = ("_capacity", "_table", "ends", "kinds", "starts", "symbols")

    def __init__(self, allocator: A) -> None:
        self._table: Table[A] = Table(allocator, "BIII")
        self._capacity: i64 = 0
        self.kinds, self.starts, self.ends, self.symbols = self._table.typed_columns
        self.add(NONE, 0, 0, 0)

    def __len__(self) -> int:
        """Number of rows, row 0 included."""
        return len(self._table)

    def add(self, kind: i64, start: i64, end: i64, symbol: i64) -> i64:
        """Append a token and return its row."""
        row = self._table.add()
        if row >= self._capacity:
            self._capacity = self._table.capacity
            self.kinds, self.starts, self.ends, self.symbols = self._table.typed_columns
        self.kinds[row] = kind
        self.starts[row] = start
        self.ends[row] = end
        self.symbols[row] = symbol
        return row

    def kind_bytes(self) -> bytes:
        """A copy of the kinds."""
        return bytes(self._table.column(0))

    def close(self) -> None:
        self._table.close()
