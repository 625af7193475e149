"""The part of the parser that knows types and signatures."""

from __future__ import annotations

from typing import TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from garden.syntax import ast as nodes
from garden.syntax import frames, tokens
from garden.syntax.automaton import Automaton

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class TypeParser(Automaton[A, S]):
    """Types end before anything else goes on: when `_type` returns, its frames are gone."""

    __slots__ = ()

    def _signature(self, docs: i64) -> int:
        """Parameters and return type. The index of the three words of a signature in `extra`, or 0, and reported."""
        if not self._want(tokens.LPAREN):
            return 0
        children = self._children
        mark = len(children)
        while self._kind != tokens.RPAREN:
            name = self._name("a parameter or `)`")
            parameter_type = 0
            if name != 0:
                self._want(tokens.COLON)
                parameter_type = self._type()
            if parameter_type == 0:
                children.truncate(mark)
                return 0
            children.append(name)
            children.append(parameter_type)
        self._advance()
        result = 0
        # A head ends with the body, or inside `extern` with the next function or the end.
        if self._kind != tokens.LBRACE and not (self._in_extern and self._is_next_signature()):
            result = self._type()
            if result == 0:
                children.truncate(mark)
                return 0
        parameters = self._list(children, mark)
        extra = self.ast.extra
        index = len(extra)
        extra.append(result)
        extra.append(parameters)
        extra.append(docs)
        return index

    def _is_next_signature(self) -> bool:
        kind = self._kind
        return kind == tokens.FN or kind == tokens.DOC or kind == tokens.RBRACE or kind == tokens.EOF

    def _type(self) -> int:
        """The type that begins here. 0, and reported, where there is none; then its frames are gone."""
        bottom = len(self._frames)
        node = self._parse_type(bottom)
        if node == 0:
            while len(self._frames) > bottom:
                self._drop()
        return node

    def _parse_type(self, bottom: i64) -> int:
        while True:
            token = self._position
            kind = self._kind
            if tokens.T_STR <= kind <= tokens.T_VOID:
                self._advance()
                node = self.ast.add(nodes.TYPE, token, 0, 0)
            elif kind == tokens.IDENT and self._in_extern:
                self._advance()
                node = self.ast.add(nodes.TYPE_SLOT, token, 0, 0)
            elif kind == tokens.T_FOREIGN:
                node = self._foreign_type()
            elif kind == tokens.T_OPTION or kind == tokens.T_ARRAY:
                if not self._enter_type(frames.OPTION_TYPE if kind == tokens.T_OPTION else frames.ARRAY_TYPE):
                    return 0
                continue
            elif kind == tokens.T_RECORD:
                if not self._enter_type(frames.RECORD_TYPE):
                    return 0
                if self._kind != tokens.GT:
                    if not self._type_label():
                        return 0
                    continue
                node = self._close_type()
            else:
                self._blame("E0210", f"expected a type, got {self._found()}")
                return 0
            # What ends with this type.
            while True:
                if node == 0 or len(self._frames) == bottom:
                    return node
                self._children.append(node)
                if self._form == frames.RECORD_TYPE and self._kind != tokens.GT:
                    if not self._type_label():
                        return 0
                    break
                node = self._close_type()

    def _enter_type(self, form: i64) -> bool:
        if not self._open(form, self._position, 0):
            return False
        self._advance()
        return self._want_angle(tokens.LT)

    def _want_angle(self, kind: i64) -> bool:
        if self._kind == kind:
            self._advance()
            return True
        self._blame("E0206", f"malformed type: expected `{tokens.SPELLINGS[kind]}`, got {self._found()}")
        return False

    def _type_label(self) -> bool:
        """A field's name in a record type, and the colon."""
        name = self._name("a field name or `>`")
        if name == 0:
            return False
        self._children.append(name)
        self._want(tokens.COLON)
        return True

    def _foreign_type(self) -> int:
        self._advance()
        if not self._want_angle(tokens.LT):
            return 0
        name = self._name("the name of a foreign type")
        if name == 0 or not self._want_angle(tokens.GT):
            return 0
        return self.ast.add(nodes.TYPE_FOREIGN, name, 0, 0)

    def _close_type(self) -> int:
        """End the type frame on top; its node, or 0, and reported."""
        if not self._want_angle(tokens.GT):
            return 0
        form = self._form
        token, _, mark = self._top()
        if form == frames.RECORD_TYPE:
            fields = self._list(self._children, mark)
            self._pop()
            return self.ast.add(nodes.TYPE_RECORD, token, fields, 0)
        member = self._children.pop()
        self._pop()
        kind = nodes.TYPE_OPTION if form == frames.OPTION_TYPE else nodes.TYPE_ARRAY
        return self.ast.add(kind, token, member, 0)
