"""What the type checker knows of a program: the type of every node, its functions, and what every call calls.

Later stages look these up; nothing is resolved twice.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Table, Vec
from garden.syntax.ast import Ast
from garden.types.host import HostFunction
from garden.types.types import TypeTable

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class CheckedProgram(Generic[A]):
    """The product of the type checker, beside the AST that it describes (and does not own).

    `node_types`: Vec 'I', a type id for every node, 0 where it has none.
    `targets`: Vec 'I', for every call node what it calls: 0 nothing known, 2 * f + 1 the function of row f in
    `functions`, 2 * h + 2 the host function `hosts[h]`.
    `functions`: a table "IIII" in source order: FN node, return type id, index of the parameter types in `extra`,
    symbol of the name. Row 0 is unused.
    `extra`: Vec 'I' of lists, length first.
    `hosts`: the host functions that the program calls.
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
            self.extra.append(0)
        except MemoryError:
            self.close()
            raise

    def close(self) -> None:
        self.extra.close()
        self.functions.close()
        self.targets.close()
        self.node_types.close()
        self.types.close()
