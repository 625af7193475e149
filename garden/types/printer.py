"""The printed form of a checked program: what its top level names, or the type of every node.

The short form has a line for every top-level `let`, function and `extern` function, in source order:

    fn add(a:Int b:Int) Int
    total: Int

The long form has a line `text: Type` for every node with a type below its item, its parts indented under it. A call is
followed by what it calls, then by its arguments; `?` stands for what an error left unknown.

    total: Int
      call: Int
        add: fn add(a:Int b:Int) Int
        1: Int
        2: Int
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from garden.syntax import ast as kind
from garden.syntax.ast import Ast
from garden.types.program import FUNCTION_NODE, CheckedProgram

#: Levels by which lines are indented; deeper ones stand below each other.
MAX_INDENT: Final = 100

#: Characters of a literal that are shown.
MAX_TEXT: Final = 65

# What a line of the long form is about, beside a node.
_NODE: Final = 0
_TARGET: Final = 1  # the target of a call node
_FIELD: Final = 2  # the name token of a record field, followed by its value
_IF: Final = 3
_THEN: Final = 4
_ELSE: Final = 5

_WORDS: Final[dict[int, str]] = {_IF: "if", _THEN: "then", _ELSE: "else"}


def print_types(program: CheckedProgram[Allocator], *, nodes: bool = False) -> str:
    """The short form of a program, or with `nodes` the long one."""
    return _Printing(program, nodes).print()


@mypyc_attr(native_class=True)
class _Printing:
    """One program being printed. Tasks stand on a stack, next on top: a subject, what to print of it, and its depth."""

    __slots__ = ("_ast", "_lines", "_nodes", "_program", "_tasks")

    def __init__(self, program: CheckedProgram[Allocator], nodes: bool) -> None:
        self._program: Final = program
        self._ast: Final[Ast[Allocator]] = program.ast
        self._nodes: Final = nodes
        self._lines: list[str] = []
        self._tasks: list[tuple[int, int, int]] = []

    def print(self) -> str:
        ast = self._ast
        for node in ast.list_at(ast.roots):
            node_kind: int = ast.kinds[node]
            if node_kind == kind.FN:
                self._line(0, self._program.signature(node))
                if self._nodes:
                    self._push_list(ast.b[node], 1)
                    self._run()
            elif node_kind == kind.EXTERN:
                for item in ast.list_at(ast.a[node]):
                    self._line(0, f"extern {ast.name(ast.token[node])} {self._program.signature(item)}")
            elif self._nodes:
                self._push(node, _NODE, 0)
                self._run()
            elif node_kind == kind.LET:
                self._line(0, f"{self._text(node)}: {self._program.type_of(node)}")
        return "".join(self._lines)

    def _line(self, depth: int, text: str) -> None:
        self._lines.append(f"{'  ' * min(depth, MAX_INDENT)}{text}\n")

    def _text(self, node: int) -> str:
        """A node's main token, on one line."""
        text = self._ast.text(self._ast.token[node]).decode("utf-8", "replace").replace("\n", "\\n")
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."

    def _push(self, subject: int, task: int, depth: int) -> None:
        self._tasks.append((subject, task, depth))

    def _push_list(self, items: int, depth: int) -> None:
        extra = self._ast.extra.items
        for index in range(items + extra[items], items, -1):
            self._push(extra[index], _NODE, depth)

    def _run(self) -> None:
        tasks = self._tasks
        while tasks:
            subject, task, depth = tasks.pop()
            if task == _NODE:
                self._node(subject, depth)
            elif task == _TARGET:
                self._target(subject, depth)
            elif task == _FIELD:
                self._line(depth, self._ast.name(subject))
            else:
                self._line(depth, _WORDS[task])

    def _node(self, node: int, depth: int) -> None:
        """Print the line of a node, and push its parts."""
        ast = self._ast
        node_kind: int = ast.kinds[node]
        left: int = ast.a[node]
        right: int = ast.b[node]
        if node_kind in (kind.FN, kind.IMPORT, kind.EXTERN):
            return
        text = kind.KIND_NAMES[node_kind]
        inside = depth + 1
        if node_kind <= kind.IDENT or node_kind == kind.LET:
            text = self._text(node)
        elif node_kind == kind.FIELD:
            text = f".{self._text(node)}"
        elif node_kind == kind.UNARY or node_kind == kind.BINARY:
            text = self._text(node)
        self._line(depth, f"{text}: {self._program.type_of(node)}")
        if node_kind == kind.BINARY:
            self._push(right, _NODE, inside)
            self._push(left, _NODE, inside)
        elif node_kind == kind.CALL:
            self._push_list(right, inside)
            self._push(node, _TARGET, inside)
        elif node_kind == kind.MATCH:
            self._push_list(right, inside + 1)
            self._push(0, _ELSE, inside)
            for index in range(left + ast.extra.items[left] - 1, left, -2):
                self._push_list(ast.extra.items[index + 1], inside + 1)
                self._push(0, _THEN, inside)
                self._push(ast.extra.items[index], _NODE, inside + 1)
                self._push(0, _IF, inside)
        elif node_kind == kind.ARRAY:
            self._push_list(left, inside)
        elif node_kind == kind.RECORD:
            for index in range(left + ast.extra.items[left] - 1, left, -2):
                self._push(ast.extra.items[index + 1], _NODE, inside + 1)
                self._push(ast.extra.items[index], _FIELD, inside)
        elif node_kind > kind.IDENT:
            self._push(left, _NODE, inside)

    def _target(self, node: int, depth: int) -> None:
        """Print what a call calls."""
        ast = self._ast
        target: int = ast.a[node]
        text = self._text(target)
        if ast.kinds[target] == kind.FIELD:
            text = f"{self._text(ast.a[target])}.{text}"
        word: int = self._program.targets.items[node]
        if word == 0:
            callee = "?"
        elif word & 1:
            callee = self._program.signature(self._program.functions.typed_columns[FUNCTION_NODE][word >> 1])
        else:
            callee = self._program.hosts[(word >> 1) - 1].signature
        self._line(depth, f"{text}: {callee}")
