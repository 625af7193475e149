"""Report: how the type checker says what is wrong, and where."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.spelling import closest
from garden.diagnostics import Diagnostic
from garden.syntax import ast as kind
from garden.syntax.ast import Ast
from garden.types.types import Type

#: Names that are looked for among all others to suggest a better one: each search walks over all of them.
MAX_SUGGESTIONS: Final = 16


@mypyc_attr(native_class=True)
class Report:
    """Appends diagnostics about nodes and tokens of one AST to a list."""

    __slots__ = ("_ast", "_diagnostics", "_first", "_suggestions")

    def __init__(self, ast: Ast[Allocator], diagnostics: list[Diagnostic]) -> None:
        self._ast: Final = ast
        self._diagnostics: Final = diagnostics
        self._first: Final = len(diagnostics)
        self._suggestions = 0

    def node(
        self,
        code: str,
        message: str,
        node: int,
        *,
        label: str = "",
        notes: tuple[str, ...] = (),
        helps: tuple[str, ...] = (),
    ) -> None:
        """Report an error at a node: at its main token, or for a call at what is called."""
        ast = self._ast
        last: int = ast.token[node]
        first = last
        if ast.kinds[node] == kind.CALL:
            target: int = ast.a[node]
            last = ast.token[target]
            first = last
            if ast.kinds[target] == kind.FIELD and ast.kinds[ast.a[target]] == kind.IDENT:
                first = ast.token[ast.a[target]]
        self._tokens(code, message, first, last, label, notes, helps)

    def token(
        self,
        code: str,
        message: str,
        token: int,
        *,
        label: str = "",
        notes: tuple[str, ...] = (),
        helps: tuple[str, ...] = (),
    ) -> None:
        """Report an error at a token."""
        self._tokens(code, message, token, token, label, notes, helps)

    def _tokens(
        self,
        code: str,
        message: str,
        first: int,
        last: int,
        label: str,
        notes: tuple[str, ...],
        helps: tuple[str, ...],
    ) -> None:
        start: int = self._ast.tokens.starts[first]
        length: int = self._ast.tokens.ends[last] - start
        self._diagnostics.append(Diagnostic(code, message, start, length, label=label, notes=notes, helps=helps))

    def suggest(self, name: str, candidates: list[str]) -> tuple[str, ...]:
        """A help that names the nearest candidate, or none."""
        best = closest(name, candidates)
        return (f"did you mean `{best}`?",) if best else ()

    def may_suggest(self) -> bool:
        """Whether another search among all names is worth its time."""
        self._suggestions += 1
        return self._suggestions <= MAX_SUGGESTIONS

    def sort(self) -> None:
        """Put what was reported here into source order."""
        first: int = self._first
        ordered = sorted([(self._diagnostics[index].start, index) for index in range(first, len(self._diagnostics))])
        self._diagnostics[first:] = [self._diagnostics[index] for _, index in ordered]


def a(type: Type) -> str:
    """A type with its article: `an Int`, `a Str`; nothing for Void."""
    if type.name == "Void":
        return "nothing"
    return f"{'an' if type.name[0] in 'AIO' else 'a'} {type}"
