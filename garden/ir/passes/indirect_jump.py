"""indirect_jump: an edge to a block that only jumps on goes there at once.

    b0:                          b0:
        br %v0, b1, b2               br %v0, b2, b1
    b1:                      =>  b1:
        jmp b3                       ret %v2
    b2:                          b2:
        ret %v2                      ret %v1
    b3:
        ret %v1

A block may also continue by a branch on one of its parameters. An edge that gives it a constant goes where that leads,
and a jump becomes the branch itself. So a match of Bools, which is how garden spells `and` and `or`, is no Bool at all
where it decides another match:

    b1:                          b1:
        %v1:Bool = true              jmp b4
        jmp b3(%v1)              b2:
    b2:                      =>      %v1:Bool = ILt %v0, 5
        %v2:Bool = ILt %v0, 5        br %v1, b4, b5
        jmp b3(%v2)
    b3(%v3:Bool):
        br %v3, b4, b5

The block in between holds nothing but unused constants, and nothing but its end uses its parameters. Blocks
are visited from the end of the layout, so that a chain of jumps shortens to one edge. A branch both of whose edges are
equal becomes a jump.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count, set_edge
from garden.ir.passes.const_fold import compare_imm
from garden.ir.passes.counts import Counts
from garden.ir.passes.unreachable import unreachable

#: How often an edge is led on. More than once is needed only where a constant decides again.
_STEPS: Final = 4


def indirect_jump(ir: Ir[Allocator], counts: Counts) -> i64:
    """Redirect edges; return how many, jumps that became branches and branches that became jumps included."""
    threader = _Threader(ir, counts)
    try:
        count = threader.run()
    finally:
        threader.close()
    if count:
        # The uses are right.
        counts.forget_predecessors()
        unreachable(ir, counts)
    return count


@mypyc_attr(native_class=True)
class _Threader:
    """How often values are used, which of its block's parameters a value is (from 1), and the edge being made."""

    __slots__ = ("_layout", "_places", "_uses", "_words", "ir")

    def __init__(self, ir: Ir[Allocator], counts: Counts) -> None:
        scratch = counts.scratch
        self.ir: Final = ir
        self._places: Vec[Allocator] = Vec(scratch, "I")
        self._layout: Vec[Allocator] = Vec(scratch, "I")
        self._words: Vec[Allocator] = Vec(scratch, "q")
        self._uses = counts.uses()

    def close(self) -> None:
        self._words.close()
        self._layout.close()
        self._places.close()

    def run(self) -> i64:
        ir = self.ir
        self._place_parameters()
        count = 0
        for function in range(1, ir.function_count):
            self._layout.clear()
            block: i64 = ir.function_first[function]
            while block:
                self._layout.append_i64(block)
                block = ir.block_next[block]
            for index in range(len(self._layout) - 1, -1, -1):
                count += self._lead_on(ir.block_last[self._layout.items[index]])
        return count

    def _place_parameters(self) -> None:
        ir = self.ir
        pool = ir.pool.items
        self._places.fill(0, ir.value_count)
        places = self._places.items
        for block in range(1, ir.block_count):
            parameters: i64 = ir.block_params[block]
            if parameters and ir.block_function[block]:
                for position in range(1, pool[parameters] + 1):
                    places[pool[parameters + position]] = position

    def _lead_on(self, terminator: i64) -> i64:
        """Redirect what leaves through a terminator."""
        ir = self.ir
        uses = self._uses
        count = 0
        for index in range(edge_count(ir, terminator)):
            edge = edge_at(ir, terminator, index)
            for _step in range(_STEPS):
                onward = self._onward(edge)
                if onward == 0:
                    break
                composed = self._compose(edge, onward)
                self._release(edge)
                set_edge(ir, terminator, index, composed)
                edge = composed
                count += 1
        opcode: i64 = ir.op[terminator]
        if opcode == op.JUMP and self._copy_branch(terminator):
            opcode = ir.op[terminator]
            count += 1
        if opcode in (op.BRANCH, op.BRANCH_CMP, op.BRANCH_CMP_IMM) and self._is_decided(terminator):
            uses[ir.a[terminator]] -= 1
            if opcode == op.BRANCH_CMP:
                uses[ir.b[terminator]] -= 1
            self._release(ir.d[terminator])
            ir.op[terminator] = op.JUMP
            ir.a[terminator] = 0
            ir.b[terminator] = 0
            ir.d[terminator] = 0
            ir.imm[terminator] = 0
            count += 1
        return count

    def _release(self, edge: i64) -> None:
        """Forget the uses in an edge that was removed."""
        uses = self._uses
        pool = self.ir.pool.items
        for cell in range(edge + 2, edge + 1 + pool[edge]):
            uses[pool[cell]] -= 1

    def _is_decided(self, branch: i64) -> bool:
        """Whether both edges of a branch are equal."""
        ir = self.ir
        pool = ir.pool.items
        taken: i64 = ir.c[branch]
        other: i64 = ir.d[branch]
        if pool[taken + 1] != pool[other + 1]:
            return False
        return ir.list_at(taken) == ir.list_at(other)

    def _onward(self, edge: i64) -> i64:
        """The edge by which the target of an edge goes on, 0 where it does more, or that depends."""
        ir = self.ir
        target: i64 = ir.pool.items[edge + 1]
        end = self._end(target)
        if end == 0:
            return 0
        if ir.op[end] == op.JUMP:
            return int(ir.c[end])
        condition = self._argument(edge, ir.block_params[target], ir.a[end])
        if ir.op[condition] != op.CONST:
            return 0
        word: i64 = ir.imm[condition]
        taken = word != 0 if ir.op[end] == op.BRANCH else compare_imm(ir.b[end], word, ir.imm[end])
        return ir.c[end] if taken else ir.d[end]

    def _end(self, block: i64) -> i64:
        """The jump or the branch on a parameter that a block is nothing but; 0 where it is more.

        Then nothing else uses the parameters of the block.
        """
        ir = self.ir
        uses = self._uses
        pool = ir.pool.items
        end: i64 = ir.block_first[block]
        opcode: i64 = ir.op[end]
        while opcode == op.NOP or (opcode in (op.CONST, op.CONST_STR, op.UNDEFINED) and uses[end] == 0):
            end = ir.next[end]
            opcode = ir.op[end]
        if opcode not in (op.JUMP, op.BRANCH, op.BRANCH_CMP_IMM):
            return 0
        parameters: i64 = ir.block_params[block]
        if opcode != op.JUMP and not self._is_parameter(ir.a[end], parameters):
            return 0
        others = 0 if opcode == op.JUMP else -1
        for cell in range(parameters + 1, parameters + 1 + pool[parameters]):
            others += uses[pool[cell]]
        for index in range(edge_count(ir, end)):
            edge = edge_at(ir, end, index)
            for cell in range(edge + 2, edge + 1 + pool[edge]):
                if self._is_parameter(pool[cell], parameters):
                    others -= 1
        return end if others == 0 else 0

    def _is_parameter(self, value: i64, parameters: i64) -> bool:
        """Whether a value is one of the parameters in this list."""
        ir = self.ir
        pool = ir.pool.items
        place: i64 = self._places.items[value]
        return ir.op[value] == op.PARAM and 0 < place <= pool[parameters] and bool(pool[parameters + place] == value)

    def _argument(self, edge: i64, parameters: i64, value: i64) -> i64:
        """What a value of the target of an edge is before the edge."""
        if self._is_parameter(value, parameters):
            value = self.ir.pool.items[edge + 1 + self._places.items[value]]
        return value

    def _compose(self, edge: i64, onward: i64) -> i64:
        """A new edge, that is `edge` and then `onward`."""
        ir = self.ir
        pool = ir.pool.items
        parameters: i64 = ir.block_params[pool[edge + 1]]
        uses = self._uses
        words = self._words
        words.clear()
        words.append_i64(pool[onward + 1])
        for cell in range(onward + 2, onward + 1 + pool[onward]):
            argument = self._argument(edge, parameters, pool[cell])
            uses[argument] += 1
            words.append_i64(argument)
        return ir.add_words(words)

    def _copy_branch(self, jump: i64) -> bool:
        """Turn a jump to a block that only branches on its parameter into that branch; whether it was one."""
        ir = self.ir
        edge: i64 = ir.c[jump]
        target: i64 = ir.pool.items[edge + 1]
        end = self._end(target)
        if end == 0 or ir.op[end] == op.JUMP:
            return False
        condition = self._argument(edge, ir.block_params[target], ir.a[end])
        taken = self._compose(edge, ir.c[end])
        other = self._compose(edge, ir.d[end])
        self._uses[condition] += 1
        self._release(edge)
        ir.op[jump] = ir.op[end]
        ir.a[jump] = condition
        ir.b[jump] = ir.b[end]
        ir.c[jump] = taken
        ir.d[jump] = other
        ir.imm[jump] = ir.imm[end]
        return True
