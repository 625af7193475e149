"""The parser's place among the tokens: what stands there, advancing, and reporting what should not stand there.

Doc comments are tokens too, but only before `let`, `fn` and `extern`: anywhere else they are reported and skipped.
A token is blamed once.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from garden.diagnostics import Diagnostic
from garden.syntax import tokens
from garden.syntax.ast import Ast

A = TypeVar("A", bound=Allocator, covariant=True)

_BLANKS: Final = b" \t\r\n"
_SIGN_HELP: Final = "a sign with a blank before it and none after it begins a new expression"

#: Longer texts are cut in messages.
_SHOWN_BYTES: Final = 40


@mypyc_attr(native_class=True)
class Cursor(Generic[A]):
    """A place among the tokens of `ast`, at first before all of them.

    `kind` repeats that of the token at `position`. `silenced` is the token that was blamed last.
    """

    __slots__ = ("_ast", "_diagnostics", "_kinds", "_surplus", "_text", "kind", "position", "silenced")

    def __init__(self, ast: Ast[A], diagnostics: list[Diagnostic]) -> None:
        self._ast: Final = ast
        self._diagnostics: Final = diagnostics
        self._text: Final = ast.source.text
        self._kinds: Final = ast.tokens.kinds
        self._surplus: i64 = -1
        self.position: i64 = 0
        self.kind: i64 = tokens.NONE
        self.silenced: i64 = -1

    # Going on.

    def advance(self) -> None:
        """Go to the next token."""
        self.position += 1
        self.kind = self._kinds[self.position]
        if self.kind == tokens.DOC:
            self._skip_misplaced_docs()

    def _skip_misplaced_docs(self) -> None:
        """Report and skip the doc comments that begin here, unless something follows that can be documented."""
        first = self.position
        end = self._end_of_docs()
        kind: i64 = self._kinds[end]
        if kind != tokens.LET and kind != tokens.FN and kind != tokens.EXTERN:
            self.report("E0207", "a doc comment can only stand before `let`, `fn` or `extern`", first)
            self._go_to(end)

    def _end_of_docs(self) -> i64:
        """The token after the doc comments that begin here."""
        end = self.position
        while self._kinds[end] == tokens.DOC:
            end += 1
        return end

    def _go_to(self, position: i64) -> None:
        self.position = position
        self.kind = self._kinds[position]

    # docs = { doc }
    def docs(self) -> i64:
        """Go past the doc comments that begin here; the list of their tokens."""
        if self.kind != tokens.DOC:
            return 0
        first = self.position
        end = self._end_of_docs()
        extra = self._ast.extra
        index = len(extra)
        extra.append_i64(end - first)
        for token in range(first, end):
            extra.append_i64(token)
        self._go_to(end)
        return index

    def want(self, kind: i64) -> bool:
        """Go past a token of this kind, or blame the current one for not being it."""
        if self.kind == kind:
            self.advance()
            return True
        helps = (_SIGN_HELP,) if self.kind == tokens.PLUS or self.kind == tokens.MINUS else ()
        self.blame("E0201", f"expected `{tokens.SPELLINGS[kind]}`, got {self.found()}", helps)
        return False

    def want_angle(self, kind: i64) -> bool:
        """The same of the brackets in a type."""
        if self.kind == kind:
            self.advance()
            return True
        self.blame("E0206", f"malformed type: expected `{tokens.SPELLINGS[kind]}`, got {self.found()}")
        return False

    def name(self, what: str) -> i64:
        """Go past the identifier here and return it, or blame what stands here instead and return 0."""
        token = self.position
        if self.kind == tokens.IDENT:
            self.advance()
            return token
        self.blame("E0202", f"expected {what}, got {self.found()}")
        return 0

    # Looking around.

    def previous(self) -> i64:
        """The kind of the token before this one."""
        kind: i64 = self._kinds[self.position - 1]
        return kind

    def is_first_on_line(self) -> bool:
        previous: i64 = self._ast.tokens.ends[self.position - 1]
        return self._text.find(b"\n", previous, self._ast.tokens.starts[self.position]) >= 0

    # addition = ? a sign that begins no expression ?
    def is_new_expression(self) -> bool:
        """Whether the sign here begins an expression: one with a blank before it and none after it does."""
        start: i64 = self._ast.tokens.starts[self.position]
        text = self._text
        return text[start - 1] in _BLANKS and start + 1 < len(text) and text[start + 1] not in _BLANKS

    def is_next_signature(self) -> bool:
        """Whether inside `extern` a signature ends here."""
        kind = self.kind
        return kind == tokens.FN or kind == tokens.DOC or kind == tokens.RBRACE or kind == tokens.EOF

    def is_meant_as_name(self) -> bool:
        """Whether a keyword stands where a name is missing, on the same line: then it begins nothing."""
        return self.kind >= tokens.IMPORT and not self.is_first_on_line()

    def unclosed(self) -> i64:
        """How many more `{` than `}` the source has, less those already reported.

        While there are any, a function inside a body is taken for a sign that the body lacks its end.
        """
        if self._surplus < 0:
            kinds = self._ast.tokens.kind_bytes()
            self._surplus = max(0, kinds.count(tokens.LBRACE) - kinds.count(tokens.RBRACE))
        return self._surplus

    def take_unclosed(self) -> None:
        """One `{` without its `}` has been reported."""
        if self._surplus > 0:
            self._surplus -= 1

    # Errors.

    def report(self, code: str, message: str, token: i64, helps: tuple[str, ...] = ()) -> None:
        start: i64 = self._ast.tokens.starts[token]
        self._diagnostics.append(Diagnostic(code, message, start, self._ast.tokens.ends[token] - start, helps=helps))

    def blame(self, code: str, message: str, helps: tuple[str, ...] = ()) -> None:
        """Report the current token, unless it has been reported."""
        if self.position == self.silenced:
            return
        self.silenced = self.position
        self.report(code, message, self.position, helps)

    def found(self) -> str:
        """The current token, for messages."""
        kind = self.kind
        if kind == tokens.IDENT or kind == tokens.INT or kind == tokens.DOUBLE:
            text = self._ast.text(self.position)
            shown = text if len(text) <= _SHOWN_BYTES else text[:_SHOWN_BYTES] + b"..."
            return f"{tokens.SPELLINGS[kind]} `{shown.decode()}`"
        if kind < tokens.LPAREN:
            return tokens.SPELLINGS[kind]
        return f"`{tokens.SPELLINGS[kind]}`"
