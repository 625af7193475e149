"""Overloads: the host functions that a program can call, by package and name.

A *candidate* is one function of that package and name, a row of a table; candidates of the same name form a list in
the order of their declaration. A program declares candidates by `extern`; those of an imported package are added when
the first call asks for their name, so importing a large package costs nothing. Candidates are found by their parameter
types; only those with slots have to be tried one after the other.

Generic functions have *slots* among their types. Binding walks a parameter type and an argument type in lockstep and
notes what each slot stands for; substitution then makes the result type. Both keep their own stacks.
"""

from __future__ import annotations

from array import array
from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Interner, Table, Vec
from garden.host import HostFunction, Package
from garden.types.program import CheckedProgram
from garden.types.types import POISON, VOID, TypeTable

S = TypeVar("S", bound=Allocator, covariant=True)

# What a package name means. From FIRST_IMPORT on: that plus an index into the imported packages.
UNKNOWN: Final = 0
SILENT: Final = 1  # it was reported already that it means nothing
DECLARED: Final = 2  # only `extern` knows it
FIRST_IMPORT: Final = 3

# How far the candidates of a name are known.
_PARTIAL: Final = 0  # those of the imported package may be missing
_COMPLETE: Final = 1
_REPORTED: Final = 2  # there are none, and that was reported

# What `bind` returns, beside the id of a slot that would stand for two types.
FITS: Final = 0
DIFFERS: Final = -1

# The columns of `_heads`: the first and the last candidate of a set, the state of the set, the result type that all of
# it share or poison, the first and the last generic candidate.
_FIRST: Final = 0
_LAST: Final = 1
_STATE: Final = 2
_SHARED: Final = 3
_FIRST_GENERIC: Final = 4
_LAST_GENERIC: Final = 5

# The columns of `_candidates`: parameter list in `_lists`, result type, next candidate of the set, whether it is
# generic, the next generic candidate of the set, the set.
_PARAMETERS: Final = 0
_RESULT: Final = 1
_NEXT: Final = 2
_GENERIC: Final = 3
_NEXT_GENERIC: Final = 4
_SET: Final = 5


@mypyc_attr(native_class=True)
class Overloads(Generic[S]):
    """Host functions by the symbols of their package's name and their own."""

    __slots__ = (
        "_candidates",
        "_exact",
        "_functions",
        "_heads",
        "_hosts",
        "_imported",
        "_lists",
        "_packages",
        "_program",
        "_sets",
    )

    def __init__(self, program: CheckedProgram[Allocator], scratch: S) -> None:
        self._program: Final = program
        self._imported: list[Package] = []
        #: The function of each candidate.
        self._functions: list[HostFunction] = []
        #: For each symbol what it means as a package name.
        self._packages: Vec[S] = Vec(scratch, "I")
        #: Ids of (package symbol, function symbol), and a row for each.
        self._sets: Interner[S] = Interner(scratch)
        self._heads: Table[S] = Table(scratch, "IIBIII")
        self._candidates: Table[S] = Table(scratch, "IIIBII")
        self._lists: Vec[S] = Vec(scratch, "I")
        #: Candidates less one, as ids of (set, parameter types).
        self._exact: Interner[S] = Interner(scratch)
        #: Indices in the program's `hosts` of (candidate), or of (candidate, argument types) where it is generic.
        self._hosts: Interner[S] = Interner(scratch)

    def reserve(self, symbols: i64) -> None:
        """Make room for `symbols` symbols."""
        self._packages.fill(UNKNOWN, symbols)
        self._candidates.append(0, 0, 0, 0, 0, 0)

    # Packages.

    def meaning(self, package: i64) -> i64:
        """What a symbol means as a package name: `UNKNOWN`, `SILENT`, `DECLARED`, or `FIRST_IMPORT` and up."""
        meaning: i64 = self._packages.items[package]
        return meaning

    def silence(self, package: i64) -> None:
        """Note that a package name means nothing, and that this was reported."""
        if self._packages.items[package] == UNKNOWN:
            self._packages.items[package] = SILENT

    def imported(self, package: i64) -> Package:
        """The package behind a name whose meaning is an import."""
        return self._imported[self._packages.items[package] - FIRST_IMPORT]

    def import_package(self, symbol: i64, package: Package) -> None:
        """Let `symbol` mean a package, beside what `extern` declares under that name."""
        self._packages.items[symbol] = FIRST_IMPORT + len(self._imported)
        self._imported.append(package)

    def declare_package(self, symbol: i64) -> None:
        """Note that `extern` knows a package name."""
        if self._packages.items[symbol] < DECLARED:
            self._packages.items[symbol] = DECLARED

    # Candidates. Row 0 means none; row r is described by function r - 1.

    def first(self, package: i64, name: i64) -> i64:
        """The first candidate of a name, 0 if there is none. `package` must be declared or imported."""
        head = self._head(package, name)
        firsts = self._heads.typed_columns[_FIRST]
        states = self._heads.typed_columns[_STATE]
        if states[head] == _PARTIAL:
            states[head] = _COMPLETE
            if self._packages.items[package] >= FIRST_IMPORT:
                text = self._program.ast.symbols.lookup(name).decode()
                for function in self.imported(package).functions:
                    if function.name == text:
                        self.add(package, name, function)
                firsts = self._heads.typed_columns[_FIRST]
        first: i64 = firsts[head]
        return first

    def may_report(self, package: i64, name: i64) -> bool:
        """Whether this is the first time that a name without candidates is to be reported."""
        head = self._head(package, name)
        states = self._heads.typed_columns[_STATE]
        if states[head] == _REPORTED:
            return False
        states[head] = _REPORTED
        return True

    def _head(self, package: i64, name: i64) -> i64:
        head = self._sets.intern(array("I", [package, name]).tobytes())
        if head == len(self._heads):
            self._heads.append(0, 0, _PARTIAL, 0, 0, 0)
        return head

    def add(self, package: i64, name: i64, function: HostFunction) -> bool:
        """Add a candidate, unless there is one with the same parameter types already: returns whether it was added."""
        types = self._program.types
        parameters = array("I", [types.intern(type) for _, type in function.parameters])
        head = self._head(package, name)
        if self._exact.intern(array("I", [head, *parameters]).tobytes()) < len(self._functions):
            return False
        index = len(self._lists)
        self._lists.append_i64(len(parameters))
        self._lists.extend(parameters)
        result = types.intern(function.result)
        candidate = self._candidates.append(index, result, 0, int(function.generic), 0, head)
        self._functions.append(function)
        firsts, lasts, _, shared, first_generics, last_generics = self._heads.typed_columns
        last: i64 = lasts[head]
        lasts[head] = candidate
        if last:
            self._candidates.typed_columns[_NEXT][last] = candidate
            if shared[head] != result:
                shared[head] = POISON
        else:
            firsts[head] = candidate
            shared[head] = result
        if function.generic:
            last = last_generics[head]
            last_generics[head] = candidate
            if last:
                self._candidates.typed_columns[_NEXT_GENERIC][last] = candidate
            else:
                first_generics[head] = candidate
        return True

    def exact(self, candidate: i64, given: memoryview) -> i64:
        """The candidate of the same name as another that has exactly these parameter types, or 0."""
        head: i64 = self._candidates.typed_columns[_SET][candidate]
        return self._exact.find(array("I", [head, *given]).tobytes()) + 1

    def first_generic(self, candidate: i64) -> i64:
        """The first generic candidate of the same name as another, or 0."""
        first: i64 = self._heads.typed_columns[_FIRST_GENERIC][self._candidates.typed_columns[_SET][candidate]]
        return first

    def next_generic(self, candidate: i64) -> i64:
        """The next generic candidate of the same name, or 0."""
        following: i64 = self._candidates.typed_columns[_NEXT_GENERIC][candidate]
        return following

    def shared_result(self, candidate: i64) -> i64:
        """The result type that all candidates of the same name have, or poison."""
        shared: i64 = self._heads.typed_columns[_SHARED][self._candidates.typed_columns[_SET][candidate]]
        return shared

    def next(self, candidate: i64) -> i64:
        """The next candidate of the same name, or 0."""
        following: i64 = self._candidates.typed_columns[_NEXT][candidate]
        return following

    def parameters(self, candidate: i64) -> memoryview:
        """The parameter types of a candidate; stale once one is added."""
        start: i64 = self._candidates.typed_columns[_PARAMETERS][candidate]
        data = self._lists.data
        return data[start + 1 : start + 1 + data[start]]

    def result(self, candidate: i64) -> i64:
        """The result type of a candidate."""
        result: i64 = self._candidates.typed_columns[_RESULT][candidate]
        return result

    def function(self, candidate: i64) -> HostFunction:
        """What describes a candidate."""
        return self._functions[candidate - 1]

    def generic(self, candidate: i64) -> bool:
        """Whether a candidate has slots among its types."""
        return bool(self._candidates.typed_columns[_GENERIC][candidate])

    def use(self, candidate: i64, given: memoryview, result: i64) -> i64:
        """The index among the program's hosts of a candidate that is called with arguments of these types."""
        generic = self.generic(candidate)
        key = array("I", [candidate, *given] if generic else [candidate])
        index = self._hosts.intern(key.tobytes())
        hosts = self._program.hosts
        if index == len(hosts):
            function = self.function(candidate)
            if generic:
                types = self._program.types
                function = function.with_types([types.type(type) for type in given], types.type(result))
            hosts.append(function)
        return index

    def close(self) -> None:
        self._hosts.close()
        self._exact.close()
        self._lists.close()
        self._candidates.close()
        self._heads.close()
        self._sets.close()
        self._packages.close()


def bind(types: TypeTable[Allocator], parameter: i64, argument: i64, slots: dict[int, int]) -> i64:
    """Note in `slots` what the slots of a parameter type stand for, so that it takes an argument of this type.

    Returns `FITS`, `DIFFERS`, or the id of a slot that stands for another type already. Poison fits everything.
    """
    seen: set[tuple[int, int]] = set()
    pending = [(parameter, argument)]
    while pending:
        pair = pending.pop()
        want, got = pair
        if want == got or POISON in pair or pair in seen:
            continue
        wanted = types.type(want)
        given = types.type(got)
        if not wanted.generic:
            return DIFFERS
        if wanted.name == "Slot":
            if got == VOID:
                return DIFFERS
            if slots.setdefault(want, got) != got:
                return want
            continue
        if wanted.name != given.name or wanted.labels != given.labels:
            return DIFFERS
        seen.add(pair)
        # The leftmost member first, so that it is the later one that conflicts.
        inside = list(zip(types.members(want), types.members(got), strict=True))
        inside.reverse()
        pending.extend(inside)
    return FITS


def substitute(types: TypeTable[Allocator], generic: i64, slots: dict[int, int]) -> i64:
    """The type that a generic type becomes; poison where a slot stands for nothing."""
    done = dict(slots)
    pending = [generic]
    while pending:
        top = pending[-1]
        if top in done or not types.type(top).generic:
            done.setdefault(top, top)
            pending.pop()
            continue
        members: list[int] = list(types.members(top))
        if not members:
            return POISON
        missing = [member for member in members if member not in done]
        if missing:
            pending.extend(missing)
            continue
        inside = [done[member] for member in members]
        if POISON in inside:
            return POISON
        type = types.type(top)
        done[top] = types.compound(type.name, inside, type.labels)
        pending.pop()
    return done[generic]
