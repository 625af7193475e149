"""dce: removes instructions and block parameters that nothing needs.

    b0:                          b0:
        %v1:Int = IAdd %v0, 1        jmp b1
        jmp b1(%v1)          =>  b1:
    b1(%v2:Int):                     ret %v0
        ret %v0

What terminators and instructions with an effect use is needed, what that uses is needed, and so on; a parameter needs
its arguments only if it is needed itself, so chains of values that lead to nothing go too. What may trap has an effect,
and so have all calls: even a pure host function may refuse its arguments.

Since control never goes backwards, the last value that is not needed has no uses at all. So where uses are known
already, and each value has some, there is nothing to do.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.ir import ir as op
from garden.ir.blocks import make_noop, unlink_noops
from garden.ir.ir import Ir
from garden.ir.operands import A_VALUE, B_VALUE, B_VALUES, EFFECTS, OPERANDS, drop_parameters, edge_at, edge_count
from garden.ir.passes.counts import Counts


def dce(ir: Ir[Allocator], counts: Counts) -> i64:
    """Remove what is not needed; return how many instructions and parameters."""
    if counts.uses_are_known and not _may_remove(ir, counts.uses()):
        return 0
    liveness = _Liveness(counts.scratch)
    try:
        count = liveness.run(ir)
    finally:
        liveness.close()
    if count:
        counts.forget_uses()
    return count


def _may_remove(ir: Ir[Allocator], uses: Cells) -> bool:
    """Whether there is a value without uses that could go, or a `NOP`."""
    ops = ir.op
    nexts = ir.next
    pool = ir.pool.items
    for block in range(1, ir.block_count):
        function: i64 = ir.block_function[block]
        if function == 0:
            continue
        parameters: i64 = ir.block_params[block]
        if parameters and ir.function_first[function] != block:
            for cell in range(parameters + 1, parameters + 1 + pool[parameters]):
                if not uses[pool[cell]]:
                    return True
        inst: i64 = ir.block_first[block]
        while inst:
            if EFFECTS[ops[inst]] < op.TRAPS and not uses[inst]:
                return True
            inst = nexts[inst]
    return False


@mypyc_attr(native_class=True)
class _Liveness:
    """What is needed, and what each parameter is given."""

    __slots__ = ("_edges", "_incoming", "_live", "_owner", "_pending", "_place")

    def __init__(self, scratch: Allocator) -> None:
        self._live: Vec[Allocator] = Vec(scratch, "B")
        self._pending: Vec[Allocator] = Vec(scratch, "I")
        # By block the chain of edges to it; pairs of an edge and the next pair of the chain, from 1.
        self._incoming: Vec[Allocator] = Vec(scratch, "I")
        self._edges: Vec[Allocator] = Vec(scratch, "I")
        # By parameter: its block, and which of its parameters it is.
        self._owner: Vec[Allocator] = Vec(scratch, "I")
        self._place: Vec[Allocator] = Vec(scratch, "I")

    def close(self) -> None:
        self._place.close()
        self._owner.close()
        self._edges.close()
        self._incoming.close()
        self._pending.close()
        self._live.close()

    def run(self, ir: Ir[Allocator]) -> i64:
        self._live.fill(0, ir.value_count)
        self._owner.fill(0, ir.value_count)
        self._place.fill(0, ir.value_count)
        self._incoming.fill(0, ir.block_count)
        self._edges.fill(0, 2)
        self._link(ir)
        self._mark_roots(ir)
        while len(self._pending):
            self._mark_needs(ir, self._pending.pop_i64())
        return self._remove(ir)

    def _link(self, ir: Ir[Allocator]) -> None:
        """Find out where parameters stand, and which edges lead to blocks that have some."""
        pool = ir.pool.items
        incoming = self._incoming.items
        for block in range(1, ir.block_count):
            if ir.block_function[block] == 0:
                continue
            parameters: i64 = ir.block_params[block]
            if parameters:
                for position in range(1, pool[parameters] + 1):
                    self._owner.items[pool[parameters + position]] = block
                    self._place.items[pool[parameters + position]] = position
            terminator: i64 = ir.block_last[block]
            for index in range(edge_count(ir, terminator)):
                edge = edge_at(ir, terminator, index)
                if pool[edge] > 1:
                    target: i64 = pool[edge + 1]
                    pair = len(self._edges) // 2
                    self._edges.append_i64(edge)
                    self._edges.append_i64(incoming[target])
                    incoming[target] = pair

    def _mark_roots(self, ir: Ir[Allocator]) -> None:
        ops = ir.op
        nexts = ir.next
        for block in range(1, ir.block_count):
            inst: i64 = ir.block_first[block] if ir.block_function[block] else 0
            while inst:
                if EFFECTS[ops[inst]] >= op.TRAPS:
                    self._mark_operands(ir, inst)
                inst = nexts[inst]

    def _mark(self, value: i64) -> None:
        if not self._live.items[value]:
            self._live.items[value] = 1
            self._pending.append_i64(value)

    def _mark_operands(self, ir: Ir[Allocator], inst: i64) -> None:
        flags = OPERANDS[ir.op[inst]]
        if flags & A_VALUE:
            self._mark(ir.a[inst])
        if flags & B_VALUE:
            self._mark(ir.b[inst])
        elif flags & B_VALUES:
            pool = ir.pool.items
            start: i64 = ir.b[inst]
            for cell in range(start + 1, start + 1 + pool[start]):
                self._mark(pool[cell])

    def _mark_needs(self, ir: Ir[Allocator], value: i64) -> None:
        if ir.op[value] != op.PARAM:
            self._mark_operands(ir, value)
            return
        place: i64 = self._place.items[value]
        pair: i64 = self._incoming.items[self._owner.items[value]]
        while pair:
            edge: i64 = self._edges.items[2 * pair]
            self._mark(ir.pool.items[edge + 1 + place])
            pair = self._edges.items[2 * pair + 1]

    def _remove(self, ir: Ir[Allocator]) -> i64:
        ops = ir.op
        nexts = ir.next
        live = self._live.items
        removed = 0
        noops = 0
        for block in range(1, ir.block_count):
            inst: i64 = ir.block_first[block] if ir.block_function[block] else 0
            while inst:
                if ops[inst] == op.NOP:
                    noops += 1
                elif not live[inst] and EFFECTS[ops[inst]] < op.TRAPS:
                    make_noop(ir, inst)
                    removed += 1
                inst = nexts[inst]
        if removed + noops:
            unlink_noops(ir)
        dropped = self._drop_parameters(ir)
        return removed + dropped

    def _drop_parameters(self, ir: Ir[Allocator]) -> i64:
        """Remove the parameters that are not needed, but for those of functions."""
        live = self._live.items
        pool = ir.pool.items
        # From here on: which parameters go.
        gone = self._place.items
        count = 0
        for block in range(1, ir.block_count):
            parameters: i64 = ir.block_params[block]
            function: i64 = ir.block_function[block] if parameters else 0
            if function:
                first = ir.function_first[function] == block
                for cell in range(parameters + 1, parameters + 1 + pool[parameters]):
                    parameter: i64 = pool[cell]
                    gone[parameter] = 0
                    if not first and not live[parameter]:
                        gone[parameter] = 1
                        count += 1
        if count:
            drop_parameters(ir, gone)
        return count
