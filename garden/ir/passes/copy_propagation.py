"""copy_propagation: a block parameter that every edge gives the same value is that value.

    b1:                          b1:
        jmp b3(%v0)                  jmp b3
    b2:                          b2:
        jmp b3(%v0)          =>      jmp b3
    b3(%v1:Int):                 b3:
        %v2:Int = IAdd %v1, 1        %v1:Int = IAdd %v0, 1

Blocks are visited in reverse postorder, so all edges to a block are known before it, but for those from blocks that
cannot be reached: what such edges lead to keeps its parameters. The value dominates every edge, hence the block.
"""

from __future__ import annotations

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.ir.blocks import postorder
from garden.ir.ir import Ir
from garden.ir.operands import drop_parameters, edge_at, edge_count, replace_uses
from garden.ir.passes.counts import Counts


def copy_propagation(ir: Ir[Allocator], counts: Counts) -> i64:
    """Replace parameters that are always the same value; return how many."""
    scratch = counts.scratch
    # By value: what a parameter was given so far, itself once that is several values, 0 for nothing.
    given: Vec[Allocator] = Vec(scratch, "I")
    seen: Vec[Allocator] = Vec(scratch, "I")
    visited: Vec[Allocator] = Vec(scratch, "B")
    order: Vec[Allocator] = Vec(scratch, "I")
    pending: Vec[Allocator] = Vec(scratch, "i")
    try:
        predecessors = counts.predecessors()
        given.fill(0, ir.value_count)
        seen.fill(0, ir.block_count)
        visited.fill(0, ir.block_count)
        count = 0
        for function in range(1, ir.function_count):
            if _has_joins(ir, function):
                order.clear()
                postorder(ir, function, order, visited.items, pending)
                count += _propagate(ir, order, given.items, seen.items, predecessors)
        if count:
            values = given.items
            pool = ir.pool.items
            for block in range(1, ir.block_count):
                parameters: i64 = ir.block_params[block]
                for cell in range(parameters + 1, parameters + 1 + pool[parameters]):
                    if values[pool[cell]] == pool[cell]:
                        values[pool[cell]] = 0
            replace_uses(ir, values)
            drop_parameters(ir, values)
            counts.forget_uses()
        return count
    finally:
        pending.close()
        order.close()
        visited.close()
        seen.close()
        given.close()


def _has_joins(ir: Ir[Allocator], function: i64) -> bool:
    """Whether any block of a function but the first has parameters."""
    block: i64 = ir.block_next[ir.function_first[function]]
    while block and ir.block_params[block] == 0:
        block = ir.block_next[block]
    return block != 0


def _propagate(ir: Ir[Allocator], order: Vec[Allocator], given: Cells, seen: Cells, predecessors: Cells) -> i64:
    pool = ir.pool.items
    blocks = order.items
    count = 0
    for place in range(len(order) - 1, -1, -1):
        block: i64 = blocks[place]
        parameters: i64 = ir.block_params[block]
        complete = seen[block] == predecessors[block]
        for cell in range(parameters + 1, parameters + 1 + pool[parameters]):
            parameter: i64 = pool[cell]
            if complete and given[parameter] != parameter:
                count += 1
            else:
                given[parameter] = parameter
        terminator: i64 = ir.block_last[block]
        for index in range(edge_count(ir, terminator)):
            edge = edge_at(ir, terminator, index)
            target: i64 = pool[edge + 1]
            seen[target] += 1
            parameters = ir.block_params[target]
            for position in range(1, pool[parameters] + 1):
                parameter = pool[parameters + position]
                argument: i64 = pool[edge + 1 + position]
                if given[argument]:
                    argument = given[argument]
                if given[parameter] == 0:
                    given[parameter] = argument
                elif given[parameter] != argument:
                    given[parameter] = parameter
    return count
