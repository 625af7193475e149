"""BlockOrder: which block dominates which, and the order in which the blocks of a function are emitted.

That is preorder of the dominator tree, siblings in topological order: a block comes after all that lead to it, and all
that it dominates follows it at once. So the state in which a block starts is that at the end of its immediate
dominator, what has happened in between can be undone as a stack, and the arms of a match stand where the source has
them. Blocks that cannot be reached are left out.

`ranks` is a second topological order, in which the last of several ways is taken first. Where control flow is nested,
as that of a match is, block x leads to block y if and only if x comes before y in both orders; whatever the control
flow, x leads to y only if it does. That makes liveness a comparison of two numbers.

Immediate dominators after Cooper, Harvey and Kennedy, *A Simple, Fast Dominance Algorithm*, in one round, since control
flow has no cycles.

Layout: arrays by block of the whole program, each block written once. Costs: linear in blocks and edges; one visit of
each edge, three where control flow joins.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.ir import Ir


@mypyc_attr(native_class=True)
class BlockOrder:
    """Orders one function after the other.

    `blocks` has the blocks of the function analysed last. Arrays by block: `ranks`, from 1, once `rank` was called;
    `dominators`, the immediate dominator, 0 for a first block; `predecessors`, the number of edges that lead to it from
    blocks that can be reached.
    """

    __slots__ = (
        "_child",
        "_count",
        "_edges",
        "_ir",
        "_is_tree",
        "_links",
        "_numbers",
        "_pending",
        "_postorder",
        "_sibling",
        "_targets",
        "blocks",
        "dominators",
        "predecessors",
        "ranks",
    )

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self._ir: Final = ir
        self.blocks: Vec[Allocator] = Vec(scratch, "I")
        self.ranks: Vec[Allocator] = Vec(scratch, "I")
        self.dominators: Vec[Allocator] = Vec(scratch, "I")
        self.predecessors: Vec[Allocator] = Vec(scratch, "I")
        self._edges: Vec[Allocator] = Vec(scratch, "I")  # where in `_targets` the targets of a block are
        self._count: Vec[Allocator] = Vec(scratch, "I")  # what a step has left to do, or chains of edges
        self._numbers: Vec[Allocator] = Vec(scratch, "I")  # place in reverse postorder, from 1
        self._child: Vec[Allocator] = Vec(scratch, "I")
        self._sibling: Vec[Allocator] = Vec(scratch, "I")
        self._targets: Vec[Allocator] = Vec(scratch, "I")  # lists of blocks, length first
        self._postorder: Vec[Allocator] = Vec(scratch, "I")
        self._pending: Vec[Allocator] = Vec(scratch, "I")
        self._links: Vec[Allocator] = Vec(scratch, "I")  # pairs: where an edge comes from, the next edge of the chain
        self._is_tree = True  # whether each block has one predecessor

    def prepare(self) -> None:
        """Take the memory for the blocks of the program."""
        for column in (
            self.ranks,
            self.dominators,
            self.predecessors,
            self._edges,
            self._count,
        ):
            column.fill_zero(self._ir.block_count)

    def analyse(self, function: i64) -> None:
        """Order the blocks of a function."""
        first = self._ir.function_first[function]
        self.blocks.clear()
        self._is_tree = True
        opcode = self._ir.op[self._ir.block_last[first]]
        if opcode in (op.RET, op.TAIL):
            self.ranks.items[first] = 1
            self.blocks.append_i64(first)
            return
        if self._search(first):
            self._is_tree = False
            self._dominate()
            self._layout(first)
        else:
            # Reverse postorder is preorder.
            postorder = self._postorder.items
            for index in range(len(self._postorder) - 1, -1, -1):
                self.blocks.append_i64(postorder[index])

    def _search(self, first: i64) -> bool:
        """Depth first, the last target first; whether any block has several predecessors.

        Lists the targets of each block and counts predecessors. For a tree the order of discovery gives the ranks, and
        the predecessor is the dominator.
        """
        pending = self._pending
        postorder = self._postorder
        count = self._count.items
        edges = self._edges.items
        predecessors = self.predecessors.items
        dominators = self.dominators.items
        ranks = self.ranks.items
        rank: i64 = 1
        joins = False
        self._targets.clear()
        postorder.clear()
        pending.clear()
        pending.append_i64(0)
        ranks[first] = rank
        self._enter(first)
        block = first
        while block:
            left = count[block]
            if left == 0:
                postorder.append_i64(block)
                block = pending.pop_i64()
                continue
            count[block] = left - 1
            target = self._targets.items[edges[block] + left]
            predecessors[target] += 1
            if ranks[target]:
                joins = True
            else:
                rank += 1
                ranks[target] = rank
                dominators[target] = block
                self._enter(target)
                pending.append_i64(block)
                block = target
        return joins

    def _enter(self, block: i64) -> None:
        """List the targets of a block."""
        ir = self._ir
        pool = ir.pool.items
        targets = self._targets
        self._edges.items[block] = len(targets)
        terminator = ir.block_last[block]
        opcode = ir.op[terminator]
        count: i64 = 0
        if opcode == op.SWITCH:
            cases = ir.b[terminator]
            words = pool[cases]
            count = (words + 1) // 2
            targets.append_i64(count)
            cell: i64
            for cell in range(cases + 3, cases + 1 + words, 2):
                targets.append_i64(pool[pool[cell] + 1])
            targets.append_i64(pool[pool[cases + 1] + 1])
        elif opcode == op.JUMP:
            count = 1
            targets.append_i64(1)
            targets.append_i64(pool[ir.c[terminator] + 1])
        elif opcode in (op.RET, op.TAIL):
            targets.append_i64(0)
        else:
            count = 2
            targets.append_i64(2)
            targets.append_i64(pool[ir.c[terminator] + 1])
            targets.append_i64(pool[ir.d[terminator] + 1])
        self._count.items[block] = count

    def _dominate(self) -> None:
        """Find the immediate dominators."""
        if len(self._numbers) == 0:
            # Only programs in which control flow joins need these.
            for column in (self._numbers, self._child, self._sibling):
                column.fill_zero(self._ir.block_count)
        postorder = self._postorder.items
        last: i64 = len(self._postorder) - 1
        edges = self._edges.items
        targets = self._targets.items
        heads = self._count.data  # all 0 after the search
        numbers = self._numbers.items
        predecessors = self.predecessors.items
        dominators = self.dominators.items
        links = self._links
        links.clear()
        links.append_i64(0)
        links.append_i64(0)
        index: i64
        cell: i64
        for index in range(last, -1, -1):
            block = postorder[index]
            numbers[block] = last - index + 1
            if heads[block]:
                dominators[block] = self._meeting(heads[block])
            start = edges[block]
            for cell in range(start + 1, start + 1 + targets[start]):
                target = targets[cell]
                if predecessors[target] == 1:
                    dominators[target] = block
                else:
                    links.append_i64(block)
                    links.append_i64(heads[target])
                    heads[target] = len(links) - 2

    def _meeting(self, edge: i64) -> i64:
        """The block where the ways to the sources of a chain of edges part.

        The deepest source comes first, so that chains and joins of long matches take linear time.
        """
        numbers = self._numbers.items
        dominators = self.dominators.items
        links = self._links.items
        meeting = links[edge]
        edge = links[edge + 1]
        while edge:
            other = links[edge]
            while meeting != other:
                if numbers[meeting] > numbers[other]:
                    meeting = dominators[meeting]
                else:
                    other = dominators[other]
            edge = links[edge + 1]
        return meeting

    def _layout(self, first: i64) -> None:
        """Put the preorder of the dominator tree into `blocks`."""
        postorder = self._postorder.items
        dominators = self.dominators.items
        child = self._child.items
        sibling = self._sibling.items
        for index in range(len(self._postorder) - 1):
            block = postorder[index]
            above = dominators[block]
            sibling[block] = child[above]
            child[above] = block
        block = first
        while block:
            self.blocks.append_i64(block)
            below = child[block]
            while below == 0 and block != 0:
                below = sibling[block]
                block = dominators[block]
            block = below

    def rank(self) -> None:
        """Rank the blocks of the function analysed last, each after all that lead to it, the last of several first."""
        if self._is_tree:
            # The search has discovered the blocks in this order.
            return
        edges = self._edges.items
        targets = self._targets.items
        ranks = self.ranks.items
        left = self._count.items
        predecessors = self.predecessors.items
        postorder = self._postorder.items
        for index in range(len(self._postorder)):
            left[postorder[index]] = predecessors[postorder[index]]
        pending = self._pending
        pending.append_i64(self.blocks.items[0])
        rank: i64 = 0
        cell: i64
        while len(pending):
            block = pending.pop_i64()
            rank += 1
            ranks[block] = rank
            start = edges[block]
            for cell in range(start + 1, start + 1 + targets[start]):
                target = targets[cell]
                missing = left[target] - 1
                if missing == 0:
                    pending.append_i64(target)
                left[target] = missing

    def close(self) -> None:
        self._links.close()
        self._pending.close()
        self._postorder.close()
        self._targets.close()
        self._sibling.close()
        self._child.close()
        self._numbers.close()
        self._count.close()
        self._edges.close()
        self.predecessors.close()
        self.dominators.close()
        self.ranks.close()
        self.blocks.close()
