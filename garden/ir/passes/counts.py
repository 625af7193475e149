"""Counts: how often each value is used, and how many edges lead to each block, kept from one pass to the next.

Either is counted when a pass first asks for it. A pass that changes operands or edges must afterwards have the counts
right again, or forget them; what is right is what counting again would give. Rows that a pass adds have no count, so it
forgets them all, unless no operand and no edge refers to those rows.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.ir.blocks import count_predecessors
from garden.ir.ir import Ir
from garden.ir.operands import add_uses, count_uses, edge_at, edge_count


@mypyc_attr(native_class=True)
class Counts:
    """The counts of one program, in memory of `scratch`, which is there for the passes too."""

    __slots__ = ("_predecessors", "_uses", "ir", "scratch")

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self.ir: Final = ir
        self.scratch: Final = scratch
        self._uses: Vec[Allocator] | None = None
        self._predecessors: Vec[Allocator] | None = None

    def uses(self) -> Cells:
        """By value, how often it is an operand, arguments of edges included; item 0 counts values that are missing."""
        counted = self._uses
        if counted is None:
            counted = count_uses(self.ir, self.scratch)
            self._uses = counted
        return counted.items

    def predecessors(self) -> Cells:
        """By block, how many edges lead to it, and one more to the first of a function."""
        counted = self._predecessors
        if counted is None:
            counted = count_predecessors(self.ir, self.scratch)
            self._predecessors = counted
        return counted.items

    @property
    def uses_are_known(self) -> bool:
        """Whether asking for uses costs nothing."""
        return self._uses is not None

    def leave_out(self, block: i64) -> None:
        """Count no longer what is in a block, which is about to be removed."""
        ir = self.ir
        if self._uses is not None:
            add_uses(ir, self._uses.items, block, block + 1, -1)
        if self._predecessors is not None:
            predecessors = self._predecessors.items
            terminator: i64 = ir.block_last[block]
            for index in range(edge_count(ir, terminator)):
                predecessors[ir.pool.items[edge_at(ir, terminator, index) + 1]] -= 1

    def forget_uses(self) -> None:
        """Have uses counted again when they are asked for again."""
        if self._uses is not None:
            self._uses.close()
            self._uses = None

    def forget_predecessors(self) -> None:
        """Have edges counted again when they are asked for again."""
        if self._predecessors is not None:
            self._predecessors.close()
            self._predecessors = None

    def close(self) -> None:
        self.forget_predecessors()
        self.forget_uses()
