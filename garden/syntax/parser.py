"""The parser: tokens to an AST.

An automaton with a stack of frames (see `automaton`): the frame on top decides what may come next. Operators are frames
too, of a form a level of precedence; one ends before an operator that binds no tighter (operator precedence parsing,
after Floyd). Parentheses are frames, but no nodes.

Nesting is limited to `MAX_NESTING` levels for the sake of later stages. A level is a pair of delimiters around
expressions, types or arms, a sign, or a `let` that is the value of a `let`; the body of a function or an arm is none of
its own. Chains such as `a + b + c` or `a.b.c` are of any length.

Costs: time and memory linear in the number of tokens; compiled about 0.5 us a token beside the lexer's 0.4, uncompiled
1.6 beside 1.3.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Interner
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax import ast as nodes
from garden.syntax import frames, tokens
from garden.syntax.ast import Ast
from garden.syntax.frames import MAX_NESTING as MAX_NESTING
from garden.syntax.lexer import Lexer
from garden.syntax.type_parser import TypeParser

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

#: By form, what is missing where an expression cannot begin.
_WANTED: Final[dict[int, str]] = {
    frames.CALL: "an argument or `)`",
    frames.ARRAY: "a member or `]`",
    frames.MATCH: "a condition, a default arm or `}`",
}

_BLANKS: Final = b" \t\r\n"


@mypyc_attr(native_class=True)
class Parser(Generic[A, S]):
    """Makes ASTs over `allocator`, with stacks over `scratch`, and appends what is wrong to `diagnostics`."""

    __slots__ = ("allocator", "diagnostics", "scratch")

    def __init__(self, allocator: A, scratch: S, diagnostics: list[Diagnostic]) -> None:
        self.allocator: Final[A] = allocator
        self.scratch: Final[S] = scratch
        self.diagnostics: Final = diagnostics

    def parse(self, source: Source) -> Ast[A]:
        """The AST of `source`: of what is left of it, where diagnostics (in source order) say what is wrong.

        Raises `AllocError`, and then keeps no memory.
        """
        first = len(self.diagnostics)
        symbols: Interner[A] = Interner(self.allocator)
        try:
            lexed = Lexer(self.allocator, self.diagnostics).lex(source, symbols)
        except BaseException:
            symbols.close()
            raise
        ast = Ast(self.allocator, source, symbols, lexed)
        automaton = _ItemParser(ast, self.scratch, self.diagnostics)
        try:
            automaton.run()
        except BaseException:
            ast.close()
            raise
        finally:
            automaton.close()
        self.diagnostics[first:] = sorted(self.diagnostics[first:], key=attrgetter("start"))
        return ast


@mypyc_attr(native_class=True)
class _ItemParser(TypeParser[A, S]):
    """One parse: items and expressions."""

    __slots__ = ()

    def run(self) -> None:
        self._open(frames.ROOT, 0, 0)
        self._advance()
        while True:
            form = self._form
            kind = self._kind
            if kind == tokens.EOF:
                if form == frames.ROOT:
                    break
                self._end_early()
            elif kind == frames.CLOSERS[form]:
                self._close_frame()
            elif kind == tokens.FN and form != frames.ROOT and self._unclosed() > 0:
                self._end_early()
            elif form <= frames.LET:
                self._item()
            elif form == frames.RECORD:
                self._field()
            elif form == frames.MATCH and kind == tokens.LBRACE:
                self._enter(frames.DEFAULT, 0)
            else:
                self._operand()
        self.ast.roots = self._list(self._roots, 0)

    # Items.

    def _item(self) -> None:
        docs = self._docs()
        kind = self._kind
        if kind < tokens.IMPORT:
            self._operand()
        elif kind == tokens.LET:
            self._let(docs)
        elif kind == tokens.FN:
            self._fn(docs)
        elif kind == tokens.MATCH:
            self._match()
        elif kind == tokens.IMPORT:
            self._import()
        elif kind == tokens.EXTERN:
            self._extern(docs)
        else:
            self._operand()

    def _let(self, docs: i64) -> None:
        self._advance()
        name = self._name("a name")
        if name == 0:
            self._recover_from_name()
            return
        self._want(tokens.ASSIGN)
        if not self._open(frames.LET, name, docs):
            self._recover(True)

    def _fn(self, docs: i64) -> None:
        if self._form != frames.ROOT:
            if self._unclosed() > 0:
                self._end_early()
            else:
                self._report("E0208", "a function can only stand at the top level", self._position)
        token = self._position
        self._advance()
        name = self._name("the name of the function")
        signature: i64 = 0
        if name != 0:
            token = name
            signature = self._signature(docs)
        if signature == 0:
            signature = frames.BROKEN
            self._skip_to_body()
        if self._want(tokens.LBRACE):
            self._open(frames.BODY, token, signature)
        else:
            self._recover(False)

    def _skip_to_body(self) -> None:
        """Behind a mistake in a function's head, go on at its body, so that this is looked at too."""
        if self._is_meant_as_name():
            self._advance()
        kind = self._kind
        while (
            kind != tokens.LBRACE
            and kind != tokens.RBRACE
            and kind != tokens.DOC
            and kind != tokens.EOF
            and not tokens.IMPORT <= kind <= tokens.FN
        ):
            self._advance()
            kind = self._kind
        self._silenced = self._position

    def _match(self) -> None:
        token = self._position
        self._advance()
        if self._kind != tokens.LBRACE:
            self._want(tokens.LBRACE)
            self._recover(False)
        elif self._open(frames.MATCH, token, 0):
            self._advance()
        else:
            self._recover(True)

    def _import(self) -> None:
        token = self._position
        children = self._children
        mark = len(children)
        self._advance()
        if self._kind == tokens.LPAREN:
            self._advance()
            while self._kind != tokens.RPAREN:
                if not self._import_path():
                    children.truncate(mark)
                    self._recover(False)
                    return
            self._advance()
        elif not self._import_path():
            self._recover(False)
            return
        self._attach(self.ast.add(nodes.IMPORT, token, self._list(children, mark), 0))

    def _import_path(self) -> bool:
        """The path of a package, and then True. A name that lacks its quotes is reported, but taken for one."""
        if self._kind != tokens.STRING:
            self._blame("E0205", f"expected the name of a package in quotes, got {self._found()}")
            if self._kind != tokens.IDENT:
                return False
        self._children.append(self._position)
        self._advance()
        return True

    def _extern(self, docs: i64) -> None:
        self._advance()
        package = self._position
        if self._kind != tokens.STRING:
            self._blame("E0201", f"expected the name of a package in quotes, got {self._found()}")
            self._recover(False)
            return
        self._advance()
        brace = self._position
        if not self._want(tokens.LBRACE):
            self._recover(False)
            return
        mark = len(self._children)
        self._in_extern = True
        while self._kind != tokens.RBRACE and self._kind != tokens.EOF:
            self._extern_function()
        self._in_extern = False
        signatures = self._list(self._children, mark)
        if self._kind == tokens.EOF:
            self._silenced = self._position
            self._report("E0201", "`{` is not closed", brace)
        else:
            self._advance()
        self._attach(self.ast.add(nodes.EXTERN, package, signatures, docs))

    def _extern_function(self) -> None:
        """One function inside `extern`, or what stands there instead."""
        docs = self._docs()
        if self._kind == tokens.FN:
            self._advance()
            name = self._name("the name of the function")
            if name != 0:
                signature = self._signature(docs)
                if signature != 0:
                    self._children.append(self.ast.add(nodes.SIGNATURE, name, signature, 0))
                    return
        else:
            self._blame("E0201", f"expected `fn` or `}}`, got {self._found()}")
        braces = 0
        while braces > 0 or not self._is_next_signature():
            if self._kind == tokens.LBRACE:
                braces += 1
            elif self._kind == tokens.RBRACE:
                braces -= 1
            elif self._kind == tokens.EOF:
                break
            self._advance()

    # Expressions.

    def _operand(self) -> None:
        kind = self._kind
        atom: i64 = frames.ATOMS[kind]
        if atom != 0:
            node = self.ast.add(atom, self._position, 0, 0)
            self._advance()
            self._after_operand(node)
        elif kind == tokens.LPAREN:
            self._enter(frames.PAREN, 0)
        elif kind == tokens.MINUS or kind == tokens.PLUS:
            self._enter(frames.SIGN, 0)
        elif kind == tokens.LBRACKET:
            self._enter(frames.ARRAY, 0)
        elif kind == tokens.LBRACE:
            self._enter(frames.RECORD, 0)
        elif self._form <= frames.DEFAULT and self._is_stray():
            self._advance()
        else:
            if self._form <= frames.DEFAULT:
                self._blame("E0201", f"unexpected {self._found()}")
            else:
                wanted = _WANTED.get(self._form, "an expression")
                self._blame("E0203", f"expected {wanted}, got {self._found()}")
            self._recover(False)

    def _field(self) -> None:
        """A field of a record literal, up to its value."""
        name = self._name("a field name or `}`")
        if name == 0:
            self._recover_from_name()
            return
        self._children.append(name)
        self._want(tokens.COLON)
        self._operand()

    def _is_new_expression(self) -> bool:
        """Whether the sign here starts an expression: one with a blank before it and none after it does."""
        start: i64 = self.ast.tokens.starts[self._position]
        text = self._text
        return text[start - 1] in _BLANKS and start + 1 < len(text) and text[start + 1] not in _BLANKS

    def _after_operand(self, node: int) -> None:
        """What goes on with an operand, or with the expression that ends with it."""
        ast = self.ast
        while True:
            token = self._position
            continuation: i64 = frames.CONTINUATIONS[self._kind]
            if continuation >= frames.COMPARISON and not (continuation == frames.SUM and self._is_new_expression()):
                while self._form >= continuation:
                    node = self._reduce(node)
                self._enter(continuation, node)
                return
            if continuation == frames.APPLY and (ast.kinds[node] == nodes.IDENT or ast.kinds[node] == nodes.FIELD):
                self._enter(frames.CALL, node)
                return
            if continuation == frames.SELECT:
                self._advance()
                name = self._name("a field name")
                if name == 0:
                    self._recover_from_name()
                    return
                node = ast.add(nodes.FIELD, name, node, 0)
            elif continuation == frames.CONVERT:
                self._advance()
                target = self._type()
                if target == 0:
                    self._recover(False)
                    return
                node = ast.add(nodes.CAST, token, node, target)
            else:
                while self._form >= frames.COMPARISON:
                    node = self._reduce(node)
                if self._form != frames.PAREN:
                    self._attach(node)
                    return
                if self._kind == tokens.EOF:
                    return
                if not self._want(tokens.RPAREN):
                    self._recover(False)
                    return
                self._pop()

    def _reduce(self, node: int) -> int:
        """End the operator on top, with `node` as its right side."""
        token, left, _ = self._top()
        if self._form == frames.SIGN:
            node = self.ast.add(nodes.UNARY, token, node, 0)
        else:
            node = self.ast.add(nodes.BINARY, token, left, node)
        self._pop()
        return node

    def _attach(self, node: int) -> None:
        """Give a finished item or expression to the frame on top."""
        while self._form == frames.LET:
            name, docs, _ = self._top()
            node = self.ast.add(nodes.LET, name, node, docs)
            self._pop()
        if self._form == frames.ROOT:
            self._roots.append(node)
            return
        self._children.append(node)
        if self._form == frames.MATCH:
            if self._kind != tokens.LBRACE:
                self._want(tokens.LBRACE)
                self._recover(False)
            else:
                self._enter(frames.ARM, 0)

    def _close_frame(self) -> None:
        """Go past the token that ends the top frame."""
        self._advance()
        ast = self.ast
        form = self._form
        token, operand, mark = self._top()
        if form == frames.CALL:
            arguments = self._list(self._children, mark)
            self._pop()
            self._after_operand(ast.add(nodes.CALL, token, operand, arguments))
        elif form == frames.ARRAY:
            members = self._list(self._children, mark)
            self._pop()
            self._after_operand(ast.add(nodes.ARRAY, token, members, 0))
        elif form == frames.RECORD:
            fields = self._list(self._children, mark)
            self._pop()
            self._after_operand(ast.add(nodes.RECORD, token, fields, 0))
        elif form == frames.ARM:
            body = self._list(self._children, mark)
            self._pop()
            self._children.append(body)
        elif form == frames.DEFAULT:
            body = self._new_list(self._children, mark)
            self._pop()
            if self._top()[1] != frames.BROKEN:
                self._set_operand(body)
        elif form == frames.MATCH:
            self._close_match(token, operand, mark)
        else:
            self._close_body(token, operand, mark)
            if self._form == frames.LET or self._form == frames.CALL:
                # A function is no value. That it stands here has been reported.
                self._recover(False)

    def _close_match(self, token: i64, default: i64, mark: i64) -> None:
        if default == frames.BROKEN:
            self._drop()
            if self._form > frames.DEFAULT:
                self._recover(False)
            return
        if default == 0:
            self._report("E0204", "this match has no default arm", token)
        arms = self._list(self._children, mark)
        self._pop()
        self._attach(self.ast.add(nodes.MATCH, token, arms, default))
