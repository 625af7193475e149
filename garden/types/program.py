"""What the type checker knows of a program: the type of every node, its functions, and what every call calls.

Later stages look these up; nothing is resolved twice.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Table, Vec
from allocators.uncopyable import Uncopyable
from garden.host import HostFunction
from garden.syntax.ast import SIGNATURE_PARAMETERS, SIGNATURE_RESULT, Ast
from garden.types.types import MAX_SPELLING, Type, TypeTable, Void, signature_text

A = TypeVar("A", bound=Allocator, covariant=True)

#: The columns of `CheckedProgram.functions`.
FUNCTION_NODE: Final = 0
FUNCTION_RESULT: Final = 1
FUNCTION_TYPES: Final = 2
FUNCTION_NAME: Final = 3


@mypyc_attr(native_class=True)
class CheckedProgram(Uncopyable, Generic[A]):
    """The product of the type checker, beside the AST that it describes (and does not own).

    `node_types`: Vec 'I', a type id for every node, 0 where it has none. A `let` has the type of what it names, a
    function that of its result, a type node the type that it spells. What is called has none, only the call has.
    `targets`: Vec 'I', what a node refers to, 0 where nothing is known. A call: 2 * f + 1 is the function of row f in
    `functions`, 2 * h + 2 the host function `hosts[h]`. An identifier: the name token of the `let` or the parameter
    that it names. A field: its byte offset in the record.
    `functions`: a table "IIII" in source order: FN node, return type id, index of the parameter types in `extra`,
    symbol of the name. Row 0 is unused.
    `extra`: Vec 'I' of lists, length first.
    `hosts`: the host functions that the program calls, also those that are only declared. A generic one stands here
    once for each combination of types that it is called with, with those types in place of its slots.
    """

    __slots__ = ("ast", "extra", "functions", "hosts", "node_types", "targets", "types")

    def __init__(self, allocator: A, ast: Ast[Allocator]) -> None:
        self.ast: Final = ast
        self.types: TypeTable[A] = TypeTable(allocator)
        self.node_types: Vec[A] = Vec(allocator, "I")
        self.targets: Vec[A] = Vec(allocator, "I")
        self.functions: Table[A] = Table(allocator, "IIII")
        self.extra: Vec[A] = Vec(allocator, "I")
        self.hosts: list[HostFunction] = []
        try:
            self.node_types.fill(0, len(ast))
            self.targets.fill(0, len(ast))
            self.functions.append(0, 0, 0, 0)
            self.extra.append_i64(0)
        except MemoryError:
            self.close()
            raise

    def signature(self, node: int) -> str:
        """The head of a function or of a signature inside `extern`, such as `fn add(a:Int b:Int) Int`."""
        ast = self.ast
        words: int = ast.a[node]
        names = ast.list_at(ast.extra.items[words + SIGNATURE_PARAMETERS])
        result: int = ast.extra.items[words + SIGNATURE_RESULT]
        parameters = []
        length = 0
        for index in range(0, len(names), 2):
            name = ast.name(names[index])
            parameters.append((name, self.type_of(names[index + 1])))
            # More than that is not shown.
            length += len(name) + len(" :")
            if length > MAX_SPELLING:
                break
        return signature_text(ast.name(ast.token[node]), parameters, self.type_of(result) if result else Void)

    def type_of(self, node: int) -> Type:
        """The description of a node's type."""
        return self.types.type(self.node_types.items[node])

    def close(self) -> None:
        self.extra.close()
        self.functions.close()
        self.targets.close()
        self.node_types.close()
        self.types.close()
