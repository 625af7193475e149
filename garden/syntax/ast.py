"""The AST: one flat table of nodes, referenced by index.

A node is (kind, token, a, b). `token` is the node's main token, for positions and text. What `a` and `b` mean stands
beside each kind below: a node, a token, or an index into `extra`, a list of 32-bit words. A *list* at `extra[i]` is its
length followed by its words. Node 0 means "none"; ids are dense, so later stages keep what they know of a node in
arrays as long as the table.

Order: what a node consists of has smaller ids than the node itself, and the ids of the items of a body, of the members
of a list, and of the roots increase in source order. So one walk over the table sees children before parents. Not every
node is part of the tree: items dropped after an error are not, nor are the bodies of all default
arms of a match but the last.

Depth: parentheses leave no node. The tree is as deep as the source nests, and chains of left operands (`a` of a binary
operator, field, cast or call) are of any length too: walk it by a loop, or with a stack in scratch memory.

After errors the tree is smaller, never malformed, with two exceptions: a match without default arm has 0 in its
place, and a path of an import that lacks its quotes is an identifier.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Interner, Table, Vec
from allocators.uncopyable import Uncopyable
from garden.source import Source
from garden.syntax.tokens import Tokens

A = TypeVar("A", bound=Allocator, covariant=True)

NONE: Final = 0
INT: Final = 1  # token: the literal
DOUBLE: Final = 2  # token: the literal
STRING: Final = 3  # token: the literal
TRUE: Final = 4
FALSE: Final = 5
IDENT: Final = 6  # token: the name
BINARY: Final = 7  # token: the operator; a, b: operands
UNARY: Final = 8  # token: the operator; a: operand
ARRAY: Final = 9  # token: `[`; a: list of members
RECORD: Final = 10  # token: `{`; a: list of name token, value, name token, value, ...
LET: Final = 11  # token: the name; a: value; b: list of doc tokens, or 0
FN: Final = 12  # token: the name; a: signature; b: list of body items
MATCH: Final = 13  # token: `match`; a: list of arms, as condition, body list index, ...; b: default body list, or 0
CALL: Final = 14  # token: `(`; a: target; b: list of arguments
FIELD: Final = 15  # token: the name; a: the record or package
CAST: Final = 16  # token: `as`; a: operand; b: type
IMPORT: Final = 17  # token: `import`; a: list of string tokens
EXTERN: Final = 18  # token: the package string; a: list of signature nodes; b: list of doc tokens, or 0
SIGNATURE: Final = 19  # inside extern. token: the name; a: signature

TYPE: Final = 30  # token: one of Str Int Double Bool Void
TYPE_SLOT: Final = 31  # inside extern. token: the identifier
TYPE_OPTION: Final = 32  # a: the type inside
TYPE_ARRAY: Final = 33  # a: the member type
TYPE_FOREIGN: Final = 34  # token: the identifier inside the brackets
TYPE_RECORD: Final = 35  # a: list of name token, type, name token, type, ...

# A signature is three words of `extra`: the return type node (0 means Void), a list of parameters (name token, type,
# name token, type, ...), a list of doc tokens, or 0.
SIGNATURE_RESULT: Final = 0
SIGNATURE_PARAMETERS: Final = 1
SIGNATURE_DOCS: Final = 2

KIND_NAMES: Final[dict[int, str]] = {
    NONE: "none",
    INT: "int",
    DOUBLE: "double",
    STRING: "string",
    TRUE: "true",
    FALSE: "false",
    IDENT: "ident",
    BINARY: "binary",
    UNARY: "unary",
    ARRAY: "array",
    RECORD: "record",
    LET: "let",
    FN: "fn",
    MATCH: "match",
    CALL: "call",
    FIELD: "field",
    CAST: "cast",
    IMPORT: "import",
    EXTERN: "extern",
    SIGNATURE: "signature",
    TYPE: "type",
    TYPE_SLOT: "slot",
    TYPE_OPTION: "Option",
    TYPE_ARRAY: "Array",
    TYPE_FOREIGN: "Foreign",
    TYPE_RECORD: "Record",
}


@mypyc_attr(native_class=True)
class Ast(Uncopyable, Generic[A]):
    """Everything that parsing keeps: tokens, symbols, nodes, `extra`, and the list index of the top-level items.

    The AST owns the tokens and the symbols from here on, also where its construction fails. The node columns are
    attributes; they are replaced when the table grows. `extra` is a Vec of 'I' whose word 0 is an empty list.
    """

    __slots__ = ("_capacity", "_table", "a", "b", "extra", "kinds", "roots", "source", "symbols", "token", "tokens")

    def __init__(self, allocator: A, source: Source, symbols: Interner[A], tokens: Tokens[A]) -> None:
        self.source: Final = source
        self.symbols: Final = symbols
        self.tokens: Final = tokens
        self._table: Table[A] = Table(allocator, "BIII")
        self._capacity: i64 = 0
        self.kinds, self.token, self.a, self.b = self._table.typed_columns
        self.extra: Vec[A] = Vec(allocator, "I")
        self.roots = 0
        try:
            self.extra.append_i64(0)
            self.add(NONE, 0, 0, 0)
        except MemoryError:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._table)

    def add(self, kind: i64, token: i64, a: i64, b: i64) -> i64:
        """Append a node and return its id."""
        row = self._table.add()
        if row >= self._capacity:
            self._capacity = self._table.capacity
            self.kinds, self.token, self.a, self.b = self._table.typed_columns
        self.kinds[row] = kind
        self.token[row] = token
        self.a[row] = a
        self.b[row] = b
        return row

    def list_at(self, index: i64) -> memoryview:
        """The words of the list at `extra[index]`, without a copy; stale once `extra` grows."""
        data = self.extra.data
        return data[index + 1 : index + 1 + data[index]]

    def text(self, token: i64) -> bytes:
        """The source bytes of a token."""
        return self.source.text[self.tokens.starts[token] : self.tokens.ends[token]]

    def name(self, token: i64) -> str:
        """The interned text of an identifier, string or doc comment."""
        return self.symbols.lookup(self.tokens.symbols[token]).decode()

    def start(self, node: i64) -> i64:
        """The byte offset of a node's main token."""
        return int(self.tokens.starts[self.token[node]])

    def close(self) -> None:
        """Give back everything, tokens and symbols included."""
        self.extra.close()
        self._table.close()
        self.tokens.close()
        self.symbols.close()
