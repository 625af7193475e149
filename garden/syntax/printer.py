"""Printed forms of what the lexer and the parser make, for people and tests.

Tokens: one line a token, with line and column, its kind, and its text.

    1:1 keyword let
    1:5 identifier half

AST: one s-expression a root, an indent of two spaces a level. Atoms and names stand on lines of their own. In both,
line ends inside strings are shown as `\\n` and `\\r`, so that a line stays a line, and a backslash as two.

    (let half
      (/
        (cast Double
          total
        )
        2.0
      )
    )

Costs: memory linear in the output. As every line is indented, a chain of n operators takes some n * n bytes.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Sequence

from allocators import Allocator
from garden.syntax import ast as nodes
from garden.syntax import tokens
from garden.syntax.ast import Ast

_INDENT = "  "


def print_tokens(ast: Ast[Allocator]) -> str:
    """All tokens but the one of row 0, a line each."""
    lines = []
    lexed = ast.tokens
    text = ast.source.text
    line = 1
    column = 1
    before = 0
    for row in range(1, len(lexed)):
        start: int = lexed.starts[row]
        between = text[before:start]
        breaks = between.count(b"\n")
        if breaks:
            line += breaks
            column = 1
            between = between[between.rindex(b"\n") + 1 :]
        column += len(between.decode("utf-8", "replace"))
        before = start
        shown = _escape(text[start : lexed.ends[row]])
        position = f"{line}:{column} {_token_class(lexed.kinds[row])}"
        lines.append(f"{position} {shown}\n" if shown else f"{position}\n")
    return "".join(lines)


def _token_class(kind: int) -> str:
    if kind >= tokens.T_STR:
        return "type"
    if kind >= tokens.IMPORT:
        return "keyword"
    if kind >= tokens.LPAREN:
        return "mark"
    return tokens.SPELLINGS[kind]


def _escape(text: bytes) -> str:
    return text.decode().replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def print_ast(ast: Ast[Allocator]) -> str:
    """Every root as an s-expression."""
    return _AstPrinter(ast).print(ast.list_at(ast.roots))


def type_text(ast: Ast[Allocator], node: int) -> str:
    """A type node as garden spells it; `Void` for node 0."""
    if node == 0:
        return "Void"
    parts: list[str] = []
    # What is still to be written: a text, or a type node if that is not 0.
    rest = [("", node)]
    while rest:
        text, node = rest.pop()
        parts.append(text)
        if node == 0:
            continue
        kind = ast.kinds[node]
        if kind == nodes.TYPE or kind == nodes.TYPE_SLOT:
            parts.append(ast.text(ast.token[node]).decode())
        elif kind == nodes.TYPE_FOREIGN:
            parts.append(f"Foreign<{ast.name(ast.token[node])}>")
        elif kind == nodes.TYPE_RECORD:
            fields = ast.list_at(ast.a[node])
            parts.append("Record<")
            rest.append((">", 0))
            for index in range(len(fields) - 2, -1, -2):
                rest.append((f"{' ' if index else ''}{ast.name(fields[index])}: ", fields[index + 1]))
        else:
            parts.append(f"{nodes.KIND_NAMES[kind]}<")
            rest.append((">", 0))
            rest.append(("", ast.a[node]))
    return "".join(parts)


def parameters_text(ast: Ast[Allocator], signature: int) -> str:
    """The parameters of a signature, in parentheses."""
    pairs = ast.list_at(ast.extra[signature + nodes.SIGNATURE_PARAMETERS])
    parameters = [f"{ast.name(pairs[i])}: {type_text(ast, pairs[i + 1])}" for i in range(0, len(pairs), 2)]
    return f"({' '.join(parameters)})"


def doc_lines(ast: Ast[Allocator], docs: int) -> list[str]:
    """A list of doc tokens as comments, without line ends."""
    texts = [ast.name(token) for token in ast.list_at(docs)]
    return [f"#! {text}" if text else "#!" for text in texts]


class _AstPrinter:
    """A stack of what is still to be printed: a depth, a text, and a node whose first line the text begins."""

    def __init__(self, ast: Ast[Allocator]) -> None:
        self.ast = ast
        self.lines: list[str] = []
        self.rest: list[tuple[int, str, int]] = []

    def print(self, roots: Sequence[int]) -> str:
        for root in roots:
            self.rest.append((0, "", root))
            while self.rest:
                depth, text, node = self.rest.pop()
                if node == 0:
                    self._line(depth, text)
                else:
                    self._node(depth, text, node)
        return "".join(self.lines)

    def _line(self, depth: int, text: str) -> None:
        self.lines.append(f"{_INDENT * depth}{text}\n")

    def _docs(self, depth: int, docs: int) -> None:
        for line in doc_lines(self.ast, docs):
            self._line(depth, line)

    def _node(self, depth: int, text: str, node: int) -> None:
        """Print the first line of a node, and leave the rest of it on the stack."""
        ast = self.ast
        kind = ast.kinds[node]
        token = ast.token[node]
        a = ast.a[node]
        b = ast.b[node]
        inside = depth + 1
        parts: list[tuple[int, str, int]] = []
        if kind == nodes.BINARY:
            head = ast.text(token).decode()
            parts = [(inside, "", a), (inside, "", b)]
        elif kind == nodes.UNARY:
            head = ast.text(token).decode()
            parts = [(inside, "", a)]
        elif kind == nodes.ARRAY:
            head = "array"
            parts = [(inside, "", member) for member in ast.list_at(a)]
        elif kind == nodes.RECORD:
            head = "record"
            fields = ast.list_at(a)
            parts = [(inside, f"{ast.name(fields[i])}: ", fields[i + 1]) for i in range(0, len(fields), 2)]
        elif kind == nodes.LET:
            self._docs(depth, b)
            head = f"let {ast.name(token)}"
            parts = [(inside, "", a)]
        elif kind == nodes.FN:
            self._docs(depth, ast.extra[a + nodes.SIGNATURE_DOCS])
            head = self._signature(token, a)
            parts = [(inside, "", item) for item in ast.list_at(b)]
        elif kind == nodes.MATCH:
            head = "match"
            arms = ast.list_at(a)
            for i in range(0, len(arms), 2):
                parts += [(inside, "case:", 0), (inside + 1, "", arms[i])]
                parts += self._section(inside, "body:", arms[i + 1])
            if b:
                parts += self._section(inside, "default:", b)
        elif kind == nodes.CALL:
            head = "call"
            parts = [(inside, "target:", 0), (inside + 1, "", a)]
            for argument in ast.list_at(b):
                parts += [(inside, "arg:", 0), (inside + 1, "", argument)]
        elif kind == nodes.FIELD:
            head = f"field {ast.name(token)}"
            parts = [(inside, "", a)]
        elif kind == nodes.CAST:
            head = f"cast {type_text(ast, b)}"
            parts = [(inside, "", a)]
        elif kind == nodes.IMPORT:
            paths = "".join([f' "{_escape(ast.name(path).encode())}"' for path in ast.list_at(a)])
            self._line(depth, f"{text}(import{paths})")
            return
        elif kind == nodes.EXTERN:
            self._docs(depth, b)
            head = f'extern "{_escape(ast.name(token).encode())}"'
            parts = [(inside, "", signature) for signature in ast.list_at(a)]
        elif kind == nodes.SIGNATURE:
            self._docs(depth, ast.extra[a + nodes.SIGNATURE_DOCS])
            self._line(depth, f"{text}({self._signature(token, a)})")
            return
        elif kind == nodes.STRING:
            self._line(depth, f'{text}"{_escape(ast.name(token).encode())}"')
            return
        else:
            self._line(depth, f"{text}{ast.text(token).decode()}")
            return
        self._line(depth, f"{text}({head}")
        self.rest.append((depth, ")", 0))
        parts.reverse()
        self.rest += parts

    def _section(self, depth: int, title: str, body: int) -> list[tuple[int, str, int]]:
        return [(depth, title, 0), *[(depth + 1, "", item) for item in self.ast.list_at(body)]]

    def _signature(self, name: int, signature: int) -> str:
        ast = self.ast
        result = ast.extra[signature + nodes.SIGNATURE_RESULT]
        return f"fn {ast.name(name)} {parameters_text(ast, signature)} -> {type_text(ast, result)}"
