"""Dominators: which blocks every path to a block leads through.

The dominator tree of `BlockOrder`, numbered: each block with its place in preorder and the last place below it, so that
asking is two comparisons.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir.ir import Ir
from garden.ir.order import BlockOrder


@mypyc_attr(native_class=True)
class Dominators:
    """The dominator trees of all functions. `scratch` holds 8 bytes a block until `close`."""

    __slots__ = ("_enter", "_leave")

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self._enter: Vec[Allocator] = Vec(scratch, "I")  # place in preorder from 1, 0 where not reachable
        self._leave: Vec[Allocator] = Vec(scratch, "I")
        order = BlockOrder(ir, scratch)
        try:
            self._enter.fill(0, ir.block_count)
            self._leave.fill(0, ir.block_count)
            order.prepare()
            for function in range(1, ir.function_count):
                if ir.function_first[function]:
                    order.analyse(function)
                    self._number(order)
        except BaseException:
            self.close()
            raise
        finally:
            order.close()

    def _number(self, order: BlockOrder) -> None:
        enter = self._enter.items
        leave = self._leave.items
        blocks = order.blocks.items
        dominators = order.dominators.items
        # From the leaves up: what is below a block comes after it.
        for index in range(len(order.blocks) - 1, -1, -1):
            block: i64 = blocks[index]
            above: i64 = dominators[block]
            enter[block] = index + 1
            leave[block] = max(leave[block], index + 1)
            leave[above] = max(leave[above], leave[block])

    def reachable(self, block: i64) -> bool:
        """Whether there is a path from the first block of the function."""
        return bool(self._enter.items[block])

    def dominates(self, above: i64, below: i64) -> bool:
        """Whether every path to `below` leads through `above`. Both are reachable blocks of one function."""
        number: i64 = self._enter.items[below]
        first: i64 = self._enter.items[above]
        last: i64 = self._leave.items[above]
        return first <= number <= last

    def close(self) -> None:
        self._leave.close()
        self._enter.close()
