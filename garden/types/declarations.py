"""Declarations: what a program declares, wherever in it: types, functions, `extern` functions, imports.

One walk over all nodes in order, which has the parts of a type before the type and all before the first call, so that
neither the order of functions nor the place of an import matters. What `extern` declares goes before what is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.host import HostFunction, Package, missing
from garden.syntax import ast as kind
from garden.syntax import tokens as token_kind
from garden.syntax.ast import SIGNATURE_PARAMETERS, SIGNATURE_RESULT, Ast
from garden.types.overloads import DECLARED, FIRST_IMPORT, Overloads
from garden.types.program import CheckedProgram
from garden.types.report import Report
from garden.types.types import BOOL, DOUBLE, INT, POISON, STR, VOID, Type
from garden.types.values import Values

S = TypeVar("S", bound=Allocator, covariant=True)

_SCALARS: Final[dict[int, int]] = {
    token_kind.T_STR: STR,
    token_kind.T_INT: INT,
    token_kind.T_DOUBLE: DOUBLE,
    token_kind.T_BOOL: BOOL,
    token_kind.T_VOID: VOID,
}

#: In place of a function's row: there is none of this name, and that was reported.
SILENT_ROW: Final = (1 << 32) - 1


@mypyc_attr(native_class=True)
class Declarations(Generic[S]):
    """Fills in the type nodes and the functions of a program, and knows functions and packages by name.

    `functions`: Vec 'I', for each symbol the row of the function of that name, 0 for none, or `SILENT_ROW`.
    """

    __slots__ = ("_ast", "_imports", "_packages", "_program", "_report", "_values", "functions", "overloads")

    def __init__(
        self,
        program: CheckedProgram[Allocator],
        report: Report,
        values: Values[S],
        scratch: S,
        packages: Mapping[str, Package],
    ) -> None:
        self._program: Final = program
        self._ast: Final[Ast[Allocator]] = program.ast
        self._report: Final = report
        self._values: Final = values
        self._packages: Final = packages
        self.overloads: Overloads[S] = Overloads(program, scratch)
        self.functions: Vec[S] = Vec(scratch, "I")
        self._imports: Vec[S] = Vec(scratch, "I")

    def collect(self) -> None:
        """Walk over all nodes."""
        ast = self._ast
        symbols = len(ast.symbols)
        self.overloads.reserve(symbols)
        self.functions.fill(0, symbols)
        kinds = ast.kinds
        node_types = self._program.node_types.items
        for node in range(1, len(ast)):
            node_kind: i64 = kinds[node]
            if node_kind < kind.FN:
                continue
            if node_kind >= kind.TYPE:
                node_types[node] = self._type(node, node_kind)
            elif node_kind == kind.FN:
                self._declare_function(node)
            elif node_kind == kind.EXTERN:
                self._declare_extern(node)
            elif node_kind == kind.IMPORT:
                self._imports.append_i64(node)
        for node in self._imports.view:
            self._import(node)

    def _type(self, node: i64, node_kind: i64) -> i64:
        ast = self._ast
        types = self._program.types
        if node_kind == kind.TYPE:
            return _SCALARS[ast.tokens.kinds[ast.token[node]]]
        if node_kind == kind.TYPE_SLOT:
            return types.compound("Slot", [], (ast.name(ast.token[node]),))
        if node_kind == kind.TYPE_FOREIGN:
            return types.compound("Foreign", [], (ast.name(ast.token[node]),))
        if node_kind == kind.TYPE_RECORD:
            return self._values.record(node)
        inside = self._values.value(ast.a[node])
        if inside == POISON:
            return POISON
        return types.compound("Option" if node_kind == kind.TYPE_OPTION else "Array", [inside])

    def _parameter_types(self, signature: i64) -> list[int]:
        """The types of the parameters of a signature; two of one name are reported."""
        ast = self._ast
        names = self._values.names
        names.clear()
        types = []
        parameters = ast.list_at(ast.extra.items[signature + SIGNATURE_PARAMETERS])
        for index in range(0, len(parameters), 2):
            token: i64 = parameters[index]
            types.append(self._values.value(parameters[index + 1]))
            if not names.add(ast.tokens.symbols[token]):
                self._report.token(
                    "E0323", f"there are two parameters named `{ast.name(token)}`", token, label="the second"
                )
        return types

    def _result_type(self, signature: i64) -> i64:
        result: i64 = self._ast.extra.items[signature + SIGNATURE_RESULT]
        return int(self._program.node_types.items[result]) if result else VOID

    def _declare_function(self, node: i64) -> None:
        ast = self._ast
        program = self._program
        signature: i64 = ast.a[node]
        types = self._parameter_types(signature)
        result = self._result_type(signature)
        token: i64 = ast.token[node]
        symbol: i64 = ast.tokens.symbols[token]
        start = len(program.extra)
        program.extra.append_i64(len(types))
        program.extra.extend(types)
        row = program.functions.append(node, result, start, symbol)
        program.node_types.items[node] = result
        if self.functions.items[symbol]:
            name = ast.name(token)
            self._report.token(
                "E0318",
                f"there are two functions named `{name}`",
                token,
                label="the second",
                notes=("the first is the one that is called",),
            )
        else:
            self.functions.items[symbol] = row

    def _package_symbol(self, token: i64) -> i64:
        """The symbol of the name by which the package of a path is called: the last part of it.

        Where the program mentions no such name, that of the path itself will do.
        """
        ast = self._ast
        found = ast.symbols.find(ast.name(token).rpartition("/")[2].encode())
        return found if found >= 0 else int(ast.tokens.symbols[token])

    def _declare_extern(self, node: i64) -> None:
        ast = self._ast
        path = ast.name(ast.token[node])
        package = self._package_symbol(ast.token[node])
        self.overloads.declare_package(package)
        for item in ast.list_at(ast.a[node]):
            token: i64 = ast.token[item]
            function = self._host_function(path, item)
            if not self.overloads.add(package, ast.tokens.symbols[token], function):
                self._report.token(
                    "E0318",
                    f"`{function.path}` is declared twice with the same parameter types",
                    token,
                    label="the second",
                )

    def _host_function(self, path: str, item: i64) -> HostFunction:
        """What `extern` declares: the function of that package with that signature, or else one without a body."""
        ast = self._ast
        types = self._program.types
        signature: i64 = ast.a[item]
        name = ast.name(ast.token[item])
        parameter_types = self._parameter_types(signature)
        result = types.type(self._result_type(signature))
        self._program.node_types.items[item] = self._result_type(signature)
        names = ast.list_at(ast.extra.items[signature + SIGNATURE_PARAMETERS])
        parameters: list[tuple[str, Type]] = []
        for index, parameter in enumerate(parameter_types):
            parameters.append((ast.name(names[2 * index]), types.type(parameter)))
        package = self._packages.get(path)
        if package is not None:
            wanted = [type for _, type in parameters]
            for function in package.functions:
                if function.name == name and function.result == result:
                    given = [type for _, type in function.parameters]
                    if given == wanted:
                        return function
        return HostFunction(path, name, tuple(parameters), result, missing)

    def _import(self, node: i64) -> None:
        ast = self._ast
        paths = ast.list_at(ast.a[node])
        if not len(paths):
            self._report.node("E0324", "this imports nothing", node, helps=('name a package, as in `import "io"`',))
        for token in paths:
            path = ast.name(token)
            symbol = self._package_symbol(token)
            meaning = self.overloads.meaning(symbol)
            package = self._packages.get(path)
            if package is None:
                if meaning != DECLARED:
                    self.report_unknown_package(path, token)
                self.overloads.silence(symbol)
            elif meaning < FIRST_IMPORT:
                self.overloads.import_package(symbol, package)
            elif self.overloads.imported(symbol).path != path:
                other = self.overloads.imported(symbol).path
                self._report.token(
                    "E0327",
                    f"`{path}` and `{other}` are both called `{package.name}`",
                    token,
                    label="the second",
                    helps=("import one of them",),
                )

    def package_named(self, name: str) -> Package | None:
        """The first package, imported or not, that is called by this name."""
        for package in self._packages.values():
            if package.name == name:
                return package
        return None

    def packages_with(self, function: str) -> list[Package]:
        """The packages, imported or not, that have a function of this name."""
        found = []
        for package in self._packages.values():
            if function in [candidate.name for candidate in package.functions]:
                found.append(package)
        return found

    def report_unknown_package(self, path: str, token: i64) -> None:
        """Report that there is no such package; `token` names it."""
        helps: tuple[str, ...] = ()
        if self._report.may_suggest():
            package = self.package_named(path)
            if package is not None:
                helps = (f"did you mean `{package.path}`?",)
            else:
                helps = self._report.suggest(path, list(self._packages))
        self._report.token("E0303", f"there is no package `{path}`", token, helps=helps)

    def close(self) -> None:
        self._imports.close()
        self.functions.close()
        self.overloads.close()
