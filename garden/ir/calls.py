"""Calls: which functions of a program call which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allocators import Allocator
from garden.ir import ir as op
from garden.ir.ir import Ir


def instructions(ir: Ir[Allocator], function: int) -> Iterator[int]:
    """The instructions of a function, terminators included, block by block in their layout."""
    block: int = ir.function_first[function]
    while block:
        inst: int = ir.block_first[block]
        while inst:
            yield inst
            inst = ir.next[inst]
        block = ir.block_next[block]


def callees(ir: Ir[Allocator], function: int) -> list[int]:
    """Rows of the functions that a function calls, each once."""
    return list(dict.fromkeys([ir.a[inst] for inst in instructions(ir, function) if ir.op[inst] in (op.CALL, op.TAIL)]))


def reachable(ir: Ir[Allocator], roots: Iterable[int]) -> list[int]:
    """Rows of some functions and of all that they may lead to, in the order of the program."""
    reached = dict.fromkeys(roots)
    pending = list(reached)
    while pending:
        for callee in callees(ir, pending.pop()):
            if callee not in reached:
                reached[callee] = None
                pending.append(callee)
    return sorted(reached)
