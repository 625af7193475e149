"""Calls: what a call calls, whether its arguments fit, and what it gives.

A function of the program has one signature. A host function may have several, and then the first that takes exactly the
types given is called; or slots, which the arguments bind from left to right.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.syntax import ast as kind
from garden.syntax.ast import SIGNATURE_PARAMETERS, Ast
from garden.types.declarations import SILENT_ROW, Declarations
from garden.types.overloads import DIFFERS, FITS, SILENT, UNKNOWN, Overloads, bind, substitute
from garden.types.program import FUNCTION_NAME, FUNCTION_NODE, FUNCTION_RESULT, FUNCTION_TYPES, CheckedProgram
from garden.types.report import Report, a
from garden.types.symbol_set import SymbolSet
from garden.types.types import MAX_RECORD_SIZE, POISON, TypeTable
from garden.types.unknown import Unknown
from garden.types.values import Values

S = TypeVar("S", bound=Allocator, covariant=True)

#: Overloads that a diagnostic lists.
_MAX_LISTED: Final = 12


@mypyc_attr(native_class=True)
class Calls(Generic[S]):
    """Checks calls, and notes their targets in the program."""

    __slots__ = (
        "_ast",
        "_declarations",
        "_dropped",
        "_given",
        "_overloads",
        "_program",
        "_report",
        "_types",
        "_unknown",
        "_values",
    )

    def __init__(
        self,
        program: CheckedProgram[Allocator],
        report: Report,
        values: Values[S],
        declarations: Declarations[S],
        unknown: Unknown[S],
        dropped: SymbolSet[S],
        scratch: S,
    ) -> None:
        self._program: Final = program
        self._ast: Final[Ast[Allocator]] = program.ast
        self._types: Final[TypeTable[Allocator]] = program.types
        self._report: Final = report
        self._values: Final = values
        self._declarations: Final = declarations
        self._overloads: Final[Overloads[S]] = declarations.overloads
        self._unknown: Final = unknown
        #: Names that are not reported as unknown.
        self._dropped: Final = dropped
        #: Types of the arguments of the current call.
        self._given: Vec[S] = Vec(scratch, "I")

    def check(self, node: i64) -> i64:
        """The type of a call whose arguments are checked."""
        given = self._given
        given.clear()
        poisoned = False
        for argument in self._ast.list_at(self._ast.b[node]):
            type = self._values.value(argument)
            given.append_i64(type)
            poisoned = poisoned or type == POISON
        target: i64 = self._ast.a[node]
        target_kind: i64 = self._ast.kinds[target]
        if target_kind == kind.IDENT:
            return self._call_function(node, target)
        if target_kind == kind.FIELD and self._ast.kinds[self._ast.a[target]] == kind.IDENT:
            return self._call_package(node, target, poisoned)
        self._report.node("E0320", "only functions and functions of packages can be called", node)
        return POISON

    def _call_function(self, node: i64, target: i64) -> i64:
        symbol: i64 = self._ast.tokens.symbols[self._ast.token[target]]
        functions = self._declarations.functions.items
        row: i64 = functions[symbol]
        if row == 0:
            functions[symbol] = SILENT_ROW
            if symbol not in self._dropped:
                self._unknown.function(target)
            return POISON
        if row == SILENT_ROW:
            return POISON
        self._program.targets.items[node] = 2 * row + 1
        types: i64 = self._program.functions.typed_columns[FUNCTION_TYPES][row]
        extra = self._program.extra.data
        self._check_arguments(node, extra[types + 1 : types + 1 + extra[types]], {}, row, 0)
        return int(self._program.functions.typed_columns[FUNCTION_RESULT][row])

    def _call_package(self, node: i64, target: i64, poisoned: bool) -> i64:
        overloads = self._overloads
        base: i64 = self._ast.a[target]
        package: i64 = self._ast.tokens.symbols[self._ast.token[base]]
        meaning = overloads.meaning(package)
        if meaning == UNKNOWN:
            overloads.silence(package)
            if package not in self._dropped:
                self._unknown.package(node)
        if meaning <= SILENT:
            return POISON
        name: i64 = self._ast.tokens.symbols[self._ast.token[target]]
        first = overloads.first(package, name)
        if first == 0:
            if overloads.may_report(package, name):
                self._unknown.member(target)
            return POISON
        if overloads.next(first):
            return self._call_overloaded(node, first, poisoned)
        slots: dict[int, int] = {}
        if self._check_arguments(node, overloads.parameters(first), slots, 0, first):
            return self._choose(node, first, slots)
        result = overloads.result(first)
        return POISON if self._types.type(result).generic else result

    def _call_overloaded(self, node: i64, first: i64, poisoned: bool) -> i64:
        """Call the first candidate that takes exactly the types given."""
        overloads = self._overloads
        shared = overloads.shared_result(first)
        if self._types.type(shared).generic:
            shared = POISON
        if poisoned:
            return shared
        exact = overloads.exact(first, self._given.view)
        candidate = overloads.first_generic(first)
        while candidate and (exact == 0 or candidate < exact):
            slots: dict[int, int] = {}
            if self._accepts(overloads.parameters(candidate), slots):
                return self._choose(node, candidate, slots)
            candidate = overloads.next_generic(candidate)
        if exact:
            return self._choose(node, exact, {})
        given = [self._types.type(type) for type in self._given.view]
        path = overloads.function(first).path
        shown = ", ".join([str(type) for type in given])
        notes: list[str] = []
        candidate = first
        while candidate and len(notes) < _MAX_LISTED:
            notes.append(f"there is `{overloads.function(candidate)}`")
            candidate = overloads.next(candidate)
        helps: tuple[str, ...] = ()
        if shared != POISON and len(given) == 1 and self._given.items[0] == shared:
            helps = (f"this is {a(given[0])} already: leave out the call",)
        self._report.node("E0321", f"no `{path}` takes ({shown})", node, notes=tuple(notes), helps=helps)
        return shared

    def _accepts(self, wanted: memoryview, slots: dict[int, int]) -> bool:
        """Whether a function of these parameter types takes the types given."""
        given = self._given.items
        if len(wanted) != len(self._given):
            return False
        for index in range(len(wanted)):
            if wanted[index] != given[index] and bind(self._types, wanted[index], given[index], slots) != FITS:
                return False
        return True

    def _check_arguments(self, node: i64, wanted: memoryview, slots: dict[int, int], row: i64, candidate: i64) -> bool:
        """Report what is wrong with the arguments of a call to the one function of its name; False where something is.

        That function is a row of the program's functions or a candidate. `slots` gets what its slots stand for.
        """
        given = self._given.items
        good = True
        count = len(wanted)
        if count != len(self._given):
            takes = f"{count} argument{'' if count == 1 else 's'}" if count else "no arguments"
            self._report.node(
                "E0306",
                f"`{self._callee(row, candidate)}` takes {takes}, not {len(self._given)}",
                node,
                notes=(f"it is `{self._signature(row, candidate)}`",),
            )
            return False
        arguments: i64 = self._ast.b[node]
        for index in range(count):
            want: i64 = wanted[index]
            got: i64 = given[index]
            if want == got:
                continue
            outcome = bind(self._types, want, got, slots)
            good = good and outcome == FITS
            if outcome == DIFFERS:
                name = self._parameter(row, candidate, index)
                self._report.node(
                    "E0307",
                    f"wrong type for the parameter `{name}`, want {self._types.type(want)}",
                    self._ast.extra.items[arguments + 1 + index],
                    label=f"this is {a(self._types.type(got))}",
                    notes=(f"`{self._callee(row, candidate)}` is `{self._signature(row, candidate)}`",),
                )
            elif outcome != FITS:
                slot = self._types.type(outcome)
                bound = self._types.type(slots[outcome])
                self._report.node(
                    "E0322",
                    f"`{slot}` cannot be two types at once: it is {a(bound)} already",
                    self._ast.extra.items[arguments + 1 + index],
                    label=f"this is {a(self._types.type(got))}",
                    notes=(f"`{self._callee(row, candidate)}` is `{self._signature(row, candidate)}`",),
                )
        return good

    def _choose(self, node: i64, candidate: i64, slots: dict[int, int]) -> i64:
        """Let a call call a candidate that takes its arguments. Returns what it gives, its slots being bound."""
        overloads = self._overloads
        given = self._given.view
        result = overloads.result(candidate)
        if overloads.generic(candidate):
            if POISON in given:
                return POISON if self._types.type(result).generic else result
            generic = result
            result = substitute(self._types, generic, slots)
            if result == POISON:
                self._report.node(
                    "E0322",
                    f"nothing tells what `{self._types.type(generic)}` is here",
                    node,
                    notes=(f"`{self._callee(0, candidate)}` is `{self._signature(0, candidate)}`",),
                )
                return POISON
            size = self._types.type(result).size
            if size > MAX_RECORD_SIZE:
                self._report.node("E0326", f"a record of {size} bytes is too large", node)
                return POISON
        self._program.targets.items[node] = 2 * overloads.use(candidate, given, result) + 2
        return result

    def _callee(self, row: i64, candidate: i64) -> str:
        if candidate:
            return self._overloads.function(candidate).path
        return self._ast.symbols.lookup(self._program.functions.typed_columns[FUNCTION_NAME][row]).decode()

    def _signature(self, row: i64, candidate: i64) -> str:
        if candidate:
            return self._overloads.function(candidate).signature
        return self._program.signature(self._program.functions.typed_columns[FUNCTION_NODE][row])

    def _parameter(self, row: i64, candidate: i64, index: i64) -> str:
        if candidate:
            return self._overloads.function(candidate).parameters[index][0]
        node: i64 = self._program.functions.typed_columns[FUNCTION_NODE][row]
        names: i64 = self._ast.extra.items[self._ast.a[node] + SIGNATURE_PARAMETERS]
        return self._ast.name(self._ast.extra.items[names + 1 + 2 * index])

    def close(self) -> None:
        self._given.close()
