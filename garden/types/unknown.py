"""Unknown names: reports names, functions and packages that do not exist, and suggests what was probably meant."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from garden.syntax import ast as kind
from garden.syntax.ast import Ast
from garden.types.declarations import SILENT_ROW, Declarations
from garden.types.overloads import FIRST_IMPORT, SILENT
from garden.types.program import FUNCTION_NAME, CheckedProgram
from garden.types.report import Report
from garden.types.scopes import Scopes

S = TypeVar("S", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Unknown(Generic[S]):
    """Reports names that mean nothing where they stand."""

    __slots__ = ("_ast", "_declarations", "_overloads", "_program", "_report", "_scopes")

    def __init__(
        self, program: CheckedProgram[Allocator], report: Report, declarations: Declarations[S], scopes: Scopes[S]
    ) -> None:
        self._program: Final = program
        self._ast: Final[Ast[Allocator]] = program.ast
        self._report: Final = report
        self._declarations: Final = declarations
        self._overloads: Final = declarations.overloads
        self._scopes: Final = scopes

    def _symbol(self, node: int) -> int:
        return int(self._ast.tokens.symbols[self._ast.token[node]])

    def _is_value(self, node: int) -> bool:
        """Whether an identifier names a value here."""
        binding = self._scopes.find(self._symbol(node))
        return binding != 0 and self._scopes.token(binding) != 0

    def name(self, node: int) -> None:
        """Report an identifier that names no value."""
        symbol = self._symbol(node)
        name = self._ast.name(self._ast.token[node])
        message = f"there is no `{name}` here"
        notes: tuple[str, ...] = ()
        helps: tuple[str, ...] = ()
        if self._declarations.functions.items[symbol] not in (0, SILENT_ROW):
            message = f"`{name}` is a function, and functions are not values"
            helps = (f"call it: `{name}(...)`",)
        elif self._overloads.meaning(symbol) > SILENT:
            message = f"`{name}` is a package, and packages are not values"
            helps = (f"call one of its functions: `{name}.function(...)`",)
        elif self._report.may_suggest():
            if self._is_global(symbol):
                notes = ("a `let` of the top level is known after it, and not inside functions",)
                helps = (f"pass `{name}` as an argument, or move its `let` up",)
            else:
                symbols = self._ast.symbols
                names = [symbols.lookup(other).decode() for other in self._scopes.symbols()]
                helps = self._report.suggest(name, names)
        self._report.node("E0301", message, node, notes=notes, helps=helps)

    def _is_global(self, symbol: int) -> bool:
        """Whether some `let` of the top level has this name."""
        ast = self._ast
        lets = [node for node in ast.list_at(ast.roots) if ast.kinds[node] == kind.LET]
        return symbol in [self._symbol(node) for node in lets]

    def function(self, target: int) -> None:
        """Report a called identifier that names no function."""
        name = self._ast.name(self._ast.token[target])
        if self._is_value(target):
            self._report.node("E0320", f"`{name}` is a value, and only functions can be called", target)
            return
        helps: tuple[str, ...] = ()
        if self._report.may_suggest():
            owners = self._declarations.packages_with(name)
            if owners:
                helps = (f"did you mean `{owners[0].name}.{name}`?",)
            else:
                symbols = self._ast.symbols
                rows = self._program.functions.typed_columns[FUNCTION_NAME]
                names = [symbols.lookup(rows[row]).decode() for row in range(1, len(self._program.functions))]
                helps = self._report.suggest(name, names)
        self._report.node("E0302", f"there is no function `{name}`", target, helps=helps)

    def package(self, node: int) -> None:
        """Report a call of a function of a package that is not known or not imported."""
        base: int = self._ast.a[self._ast.a[node]]
        token: int = self._ast.token[base]
        name = self._ast.name(token)
        package = self._declarations.package_named(name)
        if package is not None:
            self._report.token(
                "E0304", f"the package `{name}` is not imported", token, helps=(f'add `import "{package.path}"`',)
            )
        elif self._is_value(base):
            self._report.node("E0320", f"`{name}` is a value, and only packages have functions", node)
        else:
            self._declarations.report_unknown_package(name, token)

    def member(self, target: int) -> None:
        """Report the name of a function that its package does not have."""
        ast = self._ast
        package = self._symbol(ast.a[target])
        token: int = ast.token[target]
        name = ast.name(token)
        helps: tuple[str, ...] = ()
        if self._overloads.meaning(package) >= FIRST_IMPORT and self._report.may_suggest():
            helps = self._report.suggest(
                name, [function.name for function in self._overloads.imported(package).functions]
            )
        package_name = ast.symbols.lookup(package).decode()
        self._report.token("E0305", f"the package `{package_name}` has no function `{name}`", token, helps=helps)
