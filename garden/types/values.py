"""Values: what type a node has where a value is wanted, and the types of records, which literals and types share."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from garden.syntax import ast as kind
from garden.syntax.ast import Ast
from garden.types.program import CheckedProgram
from garden.types.report import Report
from garden.types.symbol_set import SymbolSet
from garden.types.types import MAX_RECORD_FIELDS, MAX_RECORD_SIZE, POISON, VOID

S = TypeVar("S", bound=Allocator, covariant=True)

_DECLARATIONS: Final[dict[int, str]] = {
    kind.LET: "let",
    kind.FN: "fn",
    kind.IMPORT: "import",
    kind.EXTERN: "extern",
}


@mypyc_attr(native_class=True)
class Values(Generic[S]):
    """Types of nodes that are checked already."""

    __slots__ = ("_ast", "_kinds", "_program", "_report", "names")

    def __init__(self, program: CheckedProgram[Allocator], report: Report, scratch: S) -> None:
        self._program: Final = program
        self._ast: Final[Ast[Allocator]] = program.ast
        self._kinds: Final = program.ast.kinds
        self._report: Final = report
        #: Names met in the current list.
        self.names: SymbolSet[S] = SymbolSet(scratch)

    def result(self, node: i64) -> i64:
        """The type of what a node gives as an item: Void where it only declares something."""
        node_kind: i64 = self._kinds[node]
        if node_kind >= kind.LET and node_kind in _DECLARATIONS:
            return VOID
        type: i64 = self._program.node_types.items[node]
        return type

    def value(self, node: i64) -> i64:
        """The type of a node where a value is wanted: where it gives none, that is reported, and the type is poison."""
        type = self.result(node)
        if type != VOID:
            return type
        node_kind: i64 = self._kinds[node]
        if node_kind >= kind.TYPE:
            self._report.node("E0319", "`Void` has no values, it can only be what a function returns", node)
        elif node_kind in _DECLARATIONS:
            word = _DECLARATIONS[node_kind]
            self._report.node(
                "E0319", f"a value is wanted, and {'an' if word[0] in 'ie' else 'a'} `{word}` has none", node
            )
        elif node_kind == kind.MATCH:
            self._report.node(
                "E0319",
                "a value is wanted, and this match has none",
                node,
                notes=("a match has the value of the last item of its arms",),
            )
        else:
            self._report.node(
                "E0319", "a value is wanted, and this function returns none", node, label="this has no value"
            )
        return POISON

    def record(self, node: i64) -> i64:
        """The type of a record literal or record type whose fields are checked; poison if one of them is."""
        ast = self._ast
        fields = ast.list_at(ast.a[node])
        symbols = ast.tokens.symbols
        labels = []
        members = []
        size = 0
        count = 0
        good = True
        self.names.clear()
        for index in range(0, len(fields), 2):
            token: i64 = fields[index]
            member = self.value(fields[index + 1])
            name = ast.name(token)
            if not self.names.add(symbols[token]):
                self._report.token("E0313", f"a record has two fields named `{name}`", token, label="the second")
                good = False
            elif member == POISON:
                good = False
            else:
                inside = self._program.types.type(member)
                size += inside.size
                count += max(1, inside.field_count)
                labels.append(name)
                members.append(member)
        if not good:
            return POISON
        if size > MAX_RECORD_SIZE:
            self._report.node(
                "E0326",
                f"a record of {size} bytes is too large, the limit is {MAX_RECORD_SIZE}",
                node,
                notes=("records inside a record are part of it; arrays are not",),
            )
            return POISON
        if count > MAX_RECORD_FIELDS:
            self._report.node(
                "E0326",
                f"a record of {count} fields is too large, the limit is {MAX_RECORD_FIELDS}",
                node,
                notes=("the fields of records inside a record are part of it, and an empty record counts as one",),
            )
            return POISON
        return self._program.types.compound("Record", members, tuple(labels))

    def close(self) -> None:
        self.names.close()
