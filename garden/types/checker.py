"""The type checker: from the AST to the type of every node, and what every name and call refers to.

Two steps. `Declarations` collects what the program declares, wherever it stands. Then the bodies are checked, functions
first, each seeing its parameters only, then the top level. The walk over a body keeps its tasks on a stack of words, so
nesting costs no Python frames: a node is *entered*, which pushes its parts, and *left* when their types are known.

A node that is wrong is reported once and has no type: it is poison, and whatever uses it stays silent. A name that
means nothing is reported where it is met first.

Costs: linear in the number of nodes, times the number of generic overloads where a host function has several.

Decided here:

* Imports and `extern` count for the whole program, wherever they stand, as functions do. What `extern` declares comes
  before what is imported under the same name. Two imported packages of one name are an error.
* What `extern` declares is the function of that package with exactly that signature, where there is one.
* Values, functions and packages are three kinds of names, which do not hide each other.
* A parameter, field or member cannot be Void. A record has at most `MAX_RECORD_SIZE` bytes, an array literal
  `MAX_ARRAY_SIZE`.
* After an error of an earlier stage, what could not be parsed may be what introduced a name or gave a body its value.
  So names that the source introduces anywhere are not reported as unknown then, nor types of bodies around errors.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.common import WORD_SIZE
from garden.diagnostics import Diagnostic
from garden.host import Package
from garden.syntax import ast as kind
from garden.syntax import tokens as token_kind
from garden.syntax.ast import SIGNATURE_PARAMETERS, Ast
from garden.types.calls import Calls
from garden.types.declarations import Declarations
from garden.types.program import FUNCTION_NODE, CheckedProgram
from garden.types.report import Report, a
from garden.types.scopes import Scopes
from garden.types.symbol_set import SymbolSet
from garden.types.types import BOOL, DOUBLE, INT, MAX_ARRAY_SIZE, POISON, STR, VOID
from garden.types.unknown import Unknown
from garden.types.values import Values

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

# Tasks are words: a node to enter times two, or a node to leave times two plus one. Node 0 stands for a scope.
_LEAVE_SCOPE: Final = 0
_ENTER_SCOPE: Final = 1

#: The types of literals.
_LITERALS: Final[dict[int, int]] = {
    kind.INT: INT,
    kind.DOUBLE: DOUBLE,
    kind.STRING: STR,
    kind.TRUE: BOOL,
    kind.FALSE: BOOL,
}

#: What each operator takes on both sides, and what it gives where that is not the same type.
_OPERANDS: Final[dict[int, tuple[int, ...]]] = {
    token_kind.PLUS: (INT, DOUBLE),
    token_kind.MINUS: (INT, DOUBLE),
    token_kind.STAR: (INT, DOUBLE),
    token_kind.SLASH: (INT, DOUBLE),
    token_kind.PERCENT: (INT,),
    token_kind.EQ: (INT, BOOL, STR),
    token_kind.NE: (INT, BOOL, STR),
    token_kind.LT: (INT, DOUBLE),
    token_kind.GT: (INT, DOUBLE),
    token_kind.LE: (INT, DOUBLE),
    token_kind.GE: (INT, DOUBLE),
}

#: What `as` makes of each type.
_CASTS: Final[dict[int, tuple[int, ...]]] = {INT: (DOUBLE, BOOL), DOUBLE: (INT,), BOOL: (INT,)}


@mypyc_attr(native_class=True)
class Checker(Generic[A, S]):
    """Checks programs. `allocator` holds the checked program, `scratch` what is needed on the way.

    `packages` are those that a program may import, by path.
    """

    __slots__ = ("_allocator", "_diagnostics", "_packages", "_scratch")

    def __init__(
        self, allocator: A, scratch: S, diagnostics: list[Diagnostic], packages: Mapping[str, Package]
    ) -> None:
        self._allocator: Final[A] = allocator
        self._scratch: Final[S] = scratch
        self._diagnostics: Final = diagnostics
        self._packages: Final = packages

    def check(self, ast: Ast[Allocator]) -> CheckedProgram[A]:
        """The checked program; what is wrong with it is appended to the diagnostics, in source order.

        Diagnostics that are there already count as errors of earlier stages. Raises `AllocError`, and then keeps
        nothing.
        """
        program = CheckedProgram(self._allocator, ast)
        try:
            checking = _Checking(program, self._scratch, self._diagnostics, self._packages)
            try:
                checking.check()
            finally:
                checking.close()
        except BaseException:
            program.close()
            raise
        return program


@mypyc_attr(native_class=True)
class _Checking(Generic[S]):
    """The check of one program."""

    __slots__ = (
        "_ast",
        "_calls",
        "_declarations",
        "_dropped",
        "_errors",
        "_extra",
        "_kinds",
        "_left",
        "_node_types",
        "_program",
        "_report",
        "_right",
        "_scopes",
        "_symbols",
        "_targets",
        "_tasks",
        "_tokens",
        "_torn",
        "_types",
        "_unknown",
        "_values",
    )

    def __init__(
        self,
        program: CheckedProgram[Allocator],
        scratch: S,
        diagnostics: list[Diagnostic],
        packages: Mapping[str, Package],
    ) -> None:
        ast = program.ast
        self._program: Final = program
        self._ast: Final[Ast[Allocator]] = ast
        # Nothing that these view grows any more.
        self._kinds: Final = ast.kinds
        self._tokens: Final = ast.token
        self._left: Final = ast.a
        self._right: Final = ast.b
        self._extra: Final = ast.extra.items
        self._symbols: Final = ast.tokens.symbols
        self._node_types: Final = program.node_types.items
        self._targets: Final = program.targets.items
        self._types: Final = program.types
        #: Where earlier stages found errors, and whether there is one in the current function.
        self._errors: Final = sorted([diagnostic.start for diagnostic in diagnostics])
        self._torn = False
        self._report: Final = Report(ast, diagnostics)
        self._values: Values[S] = Values(program, self._report, scratch)
        self._declarations: Declarations[S] = Declarations(program, self._report, self._values, scratch, packages)
        self._scopes: Scopes[S] = Scopes(scratch)
        self._unknown: Final = Unknown(program, self._report, self._declarations, self._scopes)
        #: Names whose introduction may have been lost.
        self._dropped: SymbolSet[S] = SymbolSet(scratch)
        self._calls: Calls[S] = Calls(
            program, self._report, self._values, self._declarations, self._unknown, self._dropped, scratch
        )
        self._tasks: Vec[S] = Vec(scratch, "q")

    def close(self) -> None:
        self._tasks.close()
        self._calls.close()
        self._dropped.close()
        self._scopes.close()
        self._declarations.close()
        self._values.close()

    def check(self) -> None:
        ast = self._ast
        symbols = len(ast.symbols)
        self._values.names.reserve(symbols)
        self._scopes.reserve(symbols)
        if self._errors:
            self._dropped.reserve(symbols)
            self._find_introduced_names()
        self._declarations.collect()
        for row in range(1, len(self._program.functions)):
            self._torn = self._has_error(row)
            self._check_function(row)
        self._torn = len(self._errors) > 0
        self._check_items(ast.roots)
        self._report.sort()

    def _find_introduced_names(self) -> None:
        """Note every name after `let` or `fn` or before a colon, and every string, which may be that of an import."""
        kinds = self._ast.tokens.kinds
        for token in range(1, len(self._ast.tokens) - 1):
            token_is: i64 = kinds[token]
            if token_is == token_kind.STRING:
                self._dropped.add(self._symbols[token])
            elif token_is == token_kind.IDENT:
                before: i64 = kinds[token - 1]
                if before == token_kind.LET or before == token_kind.FN or kinds[token + 1] == token_kind.COLON:
                    self._dropped.add(self._symbols[token])

    def _has_error(self, row: i64) -> bool:
        """Whether an earlier stage found an error between this function and the next."""
        nodes = self._program.functions.typed_columns[FUNCTION_NODE]
        start = self._ast.start(nodes[row])
        index = bisect_left(self._errors, start)
        if index == len(self._errors):
            return False
        following = row + 1
        if following == len(self._program.functions):
            return True
        end = self._ast.start(nodes[following])
        return end < start or self._errors[index] < end

    # Functions and bodies.

    def _check_function(self, row: i64) -> None:
        functions = self._program.functions
        nodes, results, parameters, _ = functions.typed_columns
        node: i64 = nodes[row]
        wanted: i64 = results[row]
        types: i64 = parameters[row]
        names: i64 = self._extra[self._left[node] + SIGNATURE_PARAMETERS]
        self._scopes.enter()
        for index in range(self._extra[names] // 2):
            token: i64 = self._extra[names + 1 + 2 * index]
            self._scopes.declare(self._symbols[token], token, self._program.extra.items[types + 1 + index])
        body: i64 = self._right[node]
        self._check_items(body)
        self._scopes.leave()
        given = self._body_type(body)
        if given == wanted or POISON in (given, wanted) or self._torn:
            return
        name = self._ast.name(self._tokens[node])
        want = self._types.type(wanted)
        got = self._types.type(given)
        last = self._last(body)
        helps: tuple[str, ...] = ()
        notes: tuple[str, ...] = ()
        if given == VOID and last and self._kinds[last] == kind.LET:
            notes = ("a `let` has no value",)
            helps = (f"end the body with `{self._ast.name(self._tokens[last])}`",)
        elif wanted == VOID:
            helps = (f"write what it returns after its parameters: `{got}`",)
        self._report.node(
            "E0317",
            f"`{name}` must return {a(want)}, not {a(got)}",
            last or node,
            label=f"this is {a(got)}" if last and given != VOID else "",
            notes=notes,
            helps=helps,
        )

    def _last(self, items: i64) -> i64:
        """The last item of a body, 0 where it is empty."""
        count: i64 = self._extra[items]
        return int(self._extra[items + count]) if count else 0

    def _body_type(self, items: i64) -> i64:
        last = self._last(items)
        return self._values.result(last) if last else VOID

    def _check_items(self, items: i64) -> None:
        """Check the items of a body, and all inside them."""
        tasks = self._tasks
        self._push_items(items)
        while len(tasks):
            task: i64 = tasks.pop_i64()
            if task == _LEAVE_SCOPE:
                self._scopes.leave()
            elif task == _ENTER_SCOPE:
                self._scopes.enter()
            elif task & 1:
                self._leave(task >> 1)
            else:
                self._enter(task >> 1)

    def _push_items(self, items: i64) -> None:
        """Push the nodes of a list, so that the first is entered first."""
        extra = self._extra
        tasks = self._tasks
        for index in range(items + extra[items], items, -1):
            tasks.append_i64(extra[index] << 1)

    def _push_body(self, items: i64) -> None:
        """Push the items of an arm, in a scope of their own."""
        if self._extra[items]:
            self._tasks.append_i64(_LEAVE_SCOPE)
            self._push_items(items)
            self._tasks.append_i64(_ENTER_SCOPE)

    def _enter(self, node: i64) -> None:
        """Give a leaf its type; push the parts of any other node, and the task to leave it."""
        node_kind: i64 = self._kinds[node]
        if node_kind < kind.IDENT:
            self._node_types[node] = _LITERALS[node_kind]
            return
        if node_kind == kind.IDENT:
            self._check_name(node)
            return
        tasks = self._tasks
        left: i64 = self._left[node]
        if node_kind == kind.BINARY:
            tasks.append_i64(node << 1 | 1)
            tasks.append_i64(self._right[node] << 1)
            tasks.append_i64(left << 1)
        elif node_kind == kind.CALL:
            tasks.append_i64(node << 1 | 1)
            self._push_items(self._right[node])
        elif node_kind == kind.MATCH:
            tasks.append_i64(node << 1 | 1)
            self._push_body(self._right[node])
            for index in range(left + self._extra[left] - 1, left, -2):
                self._push_body(self._extra[index + 1])
                tasks.append_i64(self._extra[index] << 1)
        elif node_kind == kind.ARRAY:
            tasks.append_i64(node << 1 | 1)
            self._push_items(left)
        elif node_kind == kind.RECORD:
            tasks.append_i64(node << 1 | 1)
            for index in range(left + self._extra[left], left, -2):
                tasks.append_i64(self._extra[index] << 1)
        elif node_kind <= kind.CAST and node_kind != kind.FN:
            tasks.append_i64(node << 1 | 1)
            tasks.append_i64(left << 1)

    def _leave(self, node: i64) -> None:
        """Give a node its type, that of its parts being known."""
        node_kind: i64 = self._kinds[node]
        if node_kind == kind.BINARY:
            type = self._binary(node)
        elif node_kind == kind.CALL:
            type = self._calls.check(node)
        elif node_kind == kind.LET:
            type = self._values.value(self._left[node])
            token: i64 = self._tokens[node]
            self._scopes.declare(self._symbols[token], token, type)
        elif node_kind == kind.MATCH:
            type = self._match(node)
        elif node_kind == kind.FIELD:
            type = self._field(node)
        elif node_kind == kind.CAST:
            type = self._cast(node)
        elif node_kind == kind.UNARY:
            type = self._unary(node)
        elif node_kind == kind.ARRAY:
            type = self._array(node)
        else:
            type = self._values.record(node)
        self._node_types[node] = type

    # Names.

    def _check_name(self, node: i64) -> None:
        token: i64 = self._tokens[node]
        symbol: i64 = self._symbols[token]
        binding = self._scopes.find(symbol)
        if binding:
            self._node_types[node] = self._scopes.type(binding)
            self._targets[node] = self._scopes.token(binding)
            return
        # Later uses in this scope find a binding that is poison, and stay silent.
        self._scopes.declare(symbol, 0, POISON)
        if symbol not in self._dropped:
            self._unknown.name(node)

    # Operators.

    def _binary(self, node: i64) -> i64:
        token: i64 = self._tokens[node]
        operator: i64 = self._ast.tokens.kinds[token]
        left = self._values.value(self._left[node])
        right = self._values.value(self._right[node])
        if left == POISON or right == POISON:
            return POISON
        takes = _OPERANDS[operator]
        if left == right and left in takes:
            if operator >= token_kind.EQ:
                return BOOL
            return left
        spelling = token_kind.SPELLINGS[operator]
        choices = " or ".join([f"two {self._types.type(type)}s" for type in takes])
        notes: tuple[str, ...] = ()
        helps: tuple[str, ...] = ()
        if left == right == DOUBLE and (operator == token_kind.EQ or operator == token_kind.NE):
            notes = ("Doubles are rounded, so two that should be equal seldom are",)
            helps = ("compare how far they are apart with `<`",)
        elif left == right == STR and operator == token_kind.PLUS:
            helps = ("`str.concat` joins two texts",)
        elif left != right and left in (INT, DOUBLE) and right in (INT, DOUBLE):
            helps = ("convert one of them: `as Double` or `as Int`",)
        self._report.token(
            "E0308",
            f"`{spelling}` takes {choices}, not {a(self._types.type(left))} and {a(self._types.type(right))}",
            token,
            notes=notes,
            helps=helps,
        )
        return POISON

    def _unary(self, node: i64) -> i64:
        operand = self._values.value(self._left[node])
        if operand in (POISON, INT, DOUBLE):
            return operand
        token: i64 = self._tokens[node]
        spelling = token_kind.SPELLINGS[self._ast.tokens.kinds[token]]
        self._report.token(
            "E0308", f"the sign `{spelling}` goes before an Int or a Double, not {a(self._types.type(operand))}", token
        )
        return POISON

    def _cast(self, node: i64) -> i64:
        source = self._values.value(self._left[node])
        target: i64 = self._node_types[self._right[node]]
        if target == POISON:
            return POISON
        if source == POISON:
            return target if target in _CASTS else POISON
        if target in _CASTS.get(source, ()):
            return target
        want = self._types.type(target)
        got = self._types.type(source)
        if source == target:
            self._report.node(
                "E0310",
                f"this is {a(want)} already",
                node,
                notes=("a cast to the same type does nothing",),
                helps=(f"leave out `as {want}`",),
            )
            return target
        helps: tuple[str, ...] = ()
        if target == STR and source in (INT, DOUBLE):
            helps = ("`str.from` makes text of a number",)
        elif source in _CASTS and target in _CASTS:
            helps = (f"go by way of Int: `as Int as {want}`",)
        self._report.node("E0309", f"there is no cast from {got} to {want}", node, helps=helps)
        return POISON

    # Compound values.

    def _array(self, node: i64) -> i64:
        members = self._ast.list_at(self._left[node])
        if not len(members):
            self._report.node("E0312", "nothing tells the type of the members of an empty array", node)
            return POISON
        first = POISON
        good = True
        for member in members:
            type = self._values.value(member)
            if first == POISON:
                first = type
            elif type != first and type != POISON and good:
                want = self._types.type(first)
                self._report.node(
                    "E0311",
                    f"the members of an array have one type, here {want}",
                    member,
                    label=f"this is {a(self._types.type(type))}",
                )
                good = False
        size = WORD_SIZE + len(members) * self._types.type(first).size
        if size > MAX_ARRAY_SIZE:
            self._report.node("E0328", f"an array of {size} bytes is too large, the limit is {MAX_ARRAY_SIZE}", node)
            return POISON
        return POISON if first == POISON else self._types.compound("Array", [first])

    def _field(self, node: i64) -> i64:
        record = self._values.value(self._left[node])
        if record == POISON:
            return POISON
        type = self._types.type(record)
        token: i64 = self._tokens[node]
        name = self._ast.name(token)
        index = type.field_index(name) if type.name == "Record" else -1
        if index >= 0:
            self._targets[node] = type.field_offset(index)
            return self._types.members(record)[index]
        if type.name != "Record":
            self._report.token("E0314", f"{a(type)} has no fields", token)
        else:
            helps = self._report.suggest(name, list(type.labels)) if self._report.may_suggest() else ()
            self._report.token(
                "E0314", f"this record has no field `{name}`", token, notes=(f"it is {type}",), helps=helps
            )
        return POISON

    # Matches.

    def _match(self, node: i64) -> i64:
        arms: i64 = self._left[node]
        default: i64 = self._right[node]
        # An empty default arm has its own list; 0 is a match without one, which was reported.
        result = self._body_type(default) if default else POISON
        for index in range(arms + 1, arms + 1 + self._extra[arms], 2):
            condition: i64 = self._extra[index]
            type = self._values.result(condition)
            if type != BOOL and type != POISON:
                helps = ("compare it with something, such as `== 0`",) if type == INT else ()
                got = a(self._types.type(type))
                self._report.node("E0315", f"a condition must be a Bool, not {got}", condition, helps=helps)
            body: i64 = self._extra[index + 1]
            type = self._body_type(body)
            if type != result and type != POISON and result != POISON and not self._torn:
                last = self._last(body)
                want = self._types.type(result)
                notes: tuple[str, ...] = ()
                if last and self._kinds[last] == kind.LET:
                    notes = ("a `let` has no value",)
                self._report.node(
                    "E0316",
                    f"this arm gives {a(self._types.type(type))}, and the default arm {a(want)}",
                    last or condition,
                    notes=notes,
                )
        return result
