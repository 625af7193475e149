"""The unparser: an AST back to garden source, laid out as one would write it.

Parsing what it prints gives the same AST; comments and needless parentheses are lost, and a default arm moves behind
the other arms. The AST must have no errors.

Two rules of garden need care. An identifier or field before a parenthesis is called, whatever stands between them, so
an item such as `a + b` gets parentheses where the next item starts with one. And a brace at the start of a match arm is
a default arm, so a condition that starts with a record gets parentheses.

Costs: time and memory linear in the size of the text, whose indents grow with the depth of the tree. No recursion.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Sequence

from allocators import Allocator
from garden.syntax import ast as nodes
from garden.syntax import tokens
from garden.syntax.ast import Ast
from garden.syntax.printer import doc_lines, parameters_text, type_text

_INDENT = "    "

# How tight an expression holds together. Between the two, the levels of binary operators.
_COMPARISON = 1
_SUM = 2
_PRODUCT = 3
_SIGN = 4
_CAST = 5
_TIGHT = 6

_LEVELS = {
    tokens.PLUS: _SUM,
    tokens.MINUS: _SUM,
    tokens.STAR: _PRODUCT,
    tokens.SLASH: _PRODUCT,
    tokens.PERCENT: _PRODUCT,
}

#: Something still to be written: a text, then a node if that is not 0, and how many levels it is indented.
_Part = tuple[str, int, int]


def unparse(ast: Ast[Allocator]) -> str:
    """The source of `ast`, one root after the other."""
    unparser = _Unparser(ast)
    parts: list[_Part] = []
    after_block = False
    for index, item in enumerate(unparser.items(ast.list_at(ast.roots), 0)):
        # An empty line around functions and the like.
        is_block = ast.kinds[ast.list_at(ast.roots)[index]] in (nodes.FN, nodes.EXTERN)
        if index and (is_block or after_block):
            parts.append(("\n", 0, 0))
        after_block = is_block
        parts += [*item, ("\n", 0, 0)]
    return unparser.write(parts)


class _Unparser:
    def __init__(self, ast: Ast[Allocator]) -> None:
        self.ast = ast

    def write(self, parts: list[_Part]) -> str:
        written: list[str] = []
        rest = parts[::-1]
        while rest:
            text, node, indent = rest.pop()
            written.append(text)
            if node:
                rest += self._node(node, indent)[::-1]
        return "".join(written)

    def items(self, items: Sequence[int], indent: int) -> list[list[_Part]]:
        """The parts of each of some items, arguments or members that stand in a row."""
        rows: list[list[_Part]] = []
        next_is_paren = False
        for item in reversed(items):
            in_parens = next_is_paren and self._ends_callable(item)
            rows.append(self._item(item, indent, in_parens))
            is_let = self.ast.kinds[item] == nodes.LET
            next_is_paren = (in_parens and not is_let) or self._first(item) == 0
        rows.reverse()
        return rows

    def _item(self, item: int, indent: int, in_parens: bool) -> list[_Part]:
        ast = self.ast
        parts: list[_Part] = []
        # Around the value of a `let`, not around the `let`; the value may be another one.
        while ast.kinds[item] == nodes.LET:
            parts.append((f"{self._docs(ast.b[item], indent)}let {ast.name(ast.token[item])} = ", 0, 0))
            item = ast.a[item]
        return parts + _wrap(item, indent, in_parens)

    def _row(self, items: Sequence[int], indent: int) -> list[_Part]:
        """Items between blanks."""
        parts: list[_Part] = []
        for item in self.items(items, indent):
            if parts:
                parts.append((" ", 0, 0))
            parts += item
        return parts

    def _body(self, items: Sequence[int], indent: int) -> list[_Part]:
        """Items in braces, on lines of their own."""
        if not len(items):
            return [("{}", 0, 0)]
        parts: list[_Part] = [("{", 0, 0)]
        for item in self.items(items, indent + 1):
            parts.append((_line(indent + 1), 0, 0))
            parts += item
        parts.append((f"{_line(indent)}}}", 0, 0))
        return parts

    def _node(self, node: int, indent: int) -> list[_Part]:
        ast = self.ast
        kind = ast.kinds[node]
        token = ast.token[node]
        a = ast.a[node]
        b = ast.b[node]
        if kind == nodes.BINARY:
            level = self._level(node)
            left = self._operand(a, level, indent)
            return [*left, (f" {ast.text(token).decode()} ", 0, 0), *self._operand(b, level + 1, indent)]
        if kind == nodes.UNARY:
            return [(ast.text(token).decode(), 0, 0), *self._operand(a, _SIGN, indent)]
        if kind == nodes.CAST:
            return [*self._operand(a, _CAST, indent), (f" as {type_text(ast, b)}", 0, 0)]
        if kind == nodes.FIELD:
            return [*self._operand(a, _TIGHT, indent), (f".{ast.name(token)}", 0, 0)]
        if kind == nodes.CALL:
            return [("", a, indent), ("(", 0, 0), *self._row(ast.list_at(b), indent), (")", 0, 0)]
        if kind == nodes.ARRAY:
            return [("[", 0, 0), *self._row(ast.list_at(a), indent), ("]", 0, 0)]
        if kind == nodes.RECORD:
            return self._record(ast.list_at(a), indent)
        if kind == nodes.LET:
            return self._item(node, indent, False)
        if kind == nodes.MATCH:
            return self._match(ast.list_at(a), ast.list_at(b), indent)
        if kind == nodes.FN:
            head = self._signature(token, a, indent)
            return [(f"{head} ", 0, 0), *self._body(ast.list_at(b), indent)]
        if kind == nodes.IMPORT:
            return [(f"import ({' '.join([self._string(path) for path in ast.list_at(a)])})", 0, 0)]
        if kind == nodes.EXTERN:
            parts: list[_Part] = [(f"{self._docs(b, indent)}extern {self._string(token)} {{", 0, 0)]
            parts += [(_line(indent + 1), signature, indent + 1) for signature in ast.list_at(a)]
            return [*parts, (f"{_line(indent)}}}", 0, 0)]
        if kind == nodes.SIGNATURE:
            return [(self._signature(token, a, indent), 0, 0)]
        if kind == nodes.STRING:
            return [(self._string(token), 0, 0)]
        return [(ast.text(token).decode(), 0, 0)]

    def _record(self, fields: Sequence[int], indent: int) -> list[_Part]:
        if not len(fields):
            return [("{}", 0, 0)]
        parts = [(f" {self.ast.name(fields[i])}: ", fields[i + 1], indent) for i in range(0, len(fields), 2)]
        return [("{", 0, 0), *parts, (" }", 0, 0)]

    def _match(self, arms: Sequence[int], default: Sequence[int], indent: int) -> list[_Part]:
        ast = self.ast
        parts: list[_Part] = [("match {", 0, 0)]
        for i in range(0, len(arms), 2):
            condition = arms[i]
            starts_with_brace = ast.kinds[self._first(condition)] == nodes.RECORD
            parts.append((_line(indent + 1), 0, 0))
            parts += _wrap(condition, indent + 1, starts_with_brace)
            parts.append((" ", 0, 0))
            parts += self._body(ast.list_at(arms[i + 1]), indent + 1)
        parts.append((_line(indent + 1), 0, 0))
        parts += self._body(default, indent + 1)
        parts.append((f"{_line(indent)}}}", 0, 0))
        return parts

    def _signature(self, name: int, signature: int, indent: int) -> str:
        ast = self.ast
        docs = self._docs(ast.extra[signature + nodes.SIGNATURE_DOCS], indent)
        result = ast.extra[signature + nodes.SIGNATURE_RESULT]
        suffix = f" {type_text(ast, result)}" if result else ""
        return f"{docs}fn {ast.name(name)}{parameters_text(ast, signature)}{suffix}"

    def _docs(self, docs: int, indent: int) -> str:
        return "".join([f"{line}{_line(indent)}" for line in doc_lines(self.ast, docs)])

    def _string(self, token: int) -> str:
        return f'"{self.ast.name(token)}"'

    def _level(self, node: int) -> int:
        kind = self.ast.kinds[node]
        if kind == nodes.BINARY:
            return _LEVELS.get(self.ast.tokens.kinds[self.ast.token[node]], _COMPARISON)
        if kind == nodes.UNARY:
            return _SIGN
        return _CAST if kind == nodes.CAST else _TIGHT

    def _operand(self, node: int, level: int, indent: int) -> list[_Part]:
        """An operand of something that binds at `level`."""
        return _wrap(node, indent, self._level(node) < level)

    def _first(self, node: int) -> int:
        """The node whose text an item starts with, or 0 where that is a parenthesis."""
        ast = self.ast
        while True:
            kind = ast.kinds[node]
            if kind == nodes.BINARY:
                level = self._level(node)
            elif kind == nodes.CAST:
                level = _CAST
            elif kind == nodes.FIELD or kind == nodes.CALL:
                level = _TIGHT
            else:
                return node
            node = ast.a[node]
            if self._level(node) < level:
                return 0

    def _ends_callable(self, node: int) -> bool:
        """Whether a parenthesis after this item would call what it ends with."""
        ast = self.ast
        while True:
            kind = ast.kinds[node]
            if kind == nodes.BINARY:
                level = self._level(node) + 1
                node = ast.b[node]
            elif kind == nodes.UNARY:
                level = _SIGN
                node = ast.a[node]
            elif kind == nodes.LET:
                level = 0
                node = ast.a[node]
            else:
                return bool(kind == nodes.IDENT or kind == nodes.FIELD)
            if self._level(node) < level:
                return False


def _wrap(node: int, indent: int, in_parens: bool) -> list[_Part]:
    return [("(", node, indent), (")", 0, 0)] if in_parens else [("", node, indent)]


def _line(indent: int) -> str:
    return f"\n{_INDENT * indent}"
