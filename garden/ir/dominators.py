"""Dominators: which blocks every path to a block leads through.

After Cooper, Harvey and Kennedy, *A Simple, Fast Dominance Algorithm*: immediate dominators by intersection in reverse
postorder until nothing changes; one round where there are no cycles. Predecessors are looked at the deepest first, so
that the chains and joins of long matches take linear time. The tree is then numbered, each block with the first and
the last number below it, so that asking is two comparisons.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Vec
from garden.ir.blocks import postorder
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count


@mypyc_attr(native_class=True)
class Dominators:
    """The dominator trees of all functions. `scratch` holds some thirty bytes a block until `close`."""

    __slots__ = ("_child", "_enter", "_head", "_idom", "_leave", "_link", "_order", "_pending", "_rank", "_sibling")

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self._order: Vec[Allocator] = Vec(scratch, "I")
        self._pending: Vec[Allocator] = Vec(scratch, "i")
        self._rank: Vec[Allocator] = Vec(scratch, "I")  # place in postorder from 1, 0 where not reachable
        self._idom: Vec[Allocator] = Vec(scratch, "I")
        self._head: Vec[Allocator] = Vec(scratch, "I")  # chain of the edges to a block
        self._link: Vec[Allocator] = Vec(scratch, "I")  # pairs: where the edge comes from, the next of the chain
        self._child: Vec[Allocator] = Vec(scratch, "I")
        self._sibling: Vec[Allocator] = Vec(scratch, "I")
        self._enter: Vec[Allocator] = Vec(scratch, "I")
        self._leave: Vec[Allocator] = Vec(scratch, "I")
        try:
            blocks = ir.block_count
            for column in (
                self._rank,
                self._idom,
                self._head,
                self._child,
                self._sibling,
                self._enter,
                self._leave,
            ):
                column.fill(0, blocks)
            visited: Vec[Allocator] = Vec(scratch, "B")
            try:
                visited.fill(0, blocks)
                for function in range(1, ir.function_count):
                    if ir.function_first[function]:
                        self._order.clear()
                        postorder(ir, function, self._order, visited.data, self._pending)
                        self._link_edges(ir)
                        self._find()
                        self._number(ir.function_first[function])
            finally:
                visited.close()
        except BaseException:
            self.close()
            raise

    def _link_edges(self, ir: Ir[Allocator]) -> None:
        """Chain the edges to each block of `_order`, so that what comes first in postorder comes first in a chain."""
        order = self._order.data
        rank = self._rank.data
        head = self._head.data
        link = self._link
        pool = ir.pool.data
        link.clear()
        link.append(0)
        link.append(0)
        for index in range(len(self._order) - 1, -1, -1):
            block: int = order[index]
            rank[block] = index + 1
            terminator: int = ir.block_last[block]
            for number in range(edge_count(ir, terminator)):
                target: int = pool[edge_at(ir, terminator, number) + 1]
                link.append(block)
                link.append(head[target])
                head[target] = len(link) // 2 - 1

    def _find(self) -> None:
        order = self._order.data
        rank = self._rank.data
        idom = self._idom.data
        head = self._head.data
        link = self._link.data
        last = len(self._order) - 1
        first: int = order[last]
        idom[first] = first
        changed = True
        while changed:
            changed = False
            for index in range(last - 1, -1, -1):
                block: int = order[index]
                meeting = 0
                edge: int = head[block]
                while edge:
                    source: int = link[2 * edge]
                    if idom[source]:
                        meeting = self._intersect(source, meeting, rank, idom) if meeting else source
                    edge = link[2 * edge + 1]
                if idom[block] != meeting:
                    idom[block] = meeting
                    changed = True

    def _intersect(self, left: int, right: int, rank: memoryview, idom: memoryview) -> int:
        while left != right:
            while rank[left] < rank[right]:
                left = idom[left]
            while rank[right] < rank[left]:
                right = idom[right]
        return left

    def _number(self, first: int) -> None:
        order = self._order.data
        idom = self._idom.data
        child = self._child.data
        sibling = self._sibling.data
        for index in range(len(self._order) - 1):
            block: int = order[index]
            parent: int = idom[block]
            sibling[block] = child[parent]
            child[parent] = block
        pending = self._pending
        number = 0
        pending.append(first)
        while len(pending):
            block = pending.pop()
            if block < 0:
                self._leave.data[-block] = number
                continue
            number += 1
            self._enter.data[block] = number
            pending.append(-block)
            below: int = child[block]
            while below:
                pending.append(below)
                below = sibling[below]

    def reachable(self, block: int) -> bool:
        """Whether there is a path from the first block of the function."""
        return bool(self._rank.data[block])

    def dominates(self, above: int, below: int) -> bool:
        """Whether every path to `below` leads through `above`. Both are reachable blocks of one function."""
        number: int = self._enter.data[below]
        first: int = self._enter.data[above]
        last: int = self._leave.data[above]
        return first <= number <= last

    def close(self) -> None:
        self._leave.close()
        self._enter.close()
        self._sibling.close()
        self._child.close()
        self._link.close()
        self._head.close()
        self._idom.close()
        self._rank.close()
        self._pending.close()
        self._order.close()
