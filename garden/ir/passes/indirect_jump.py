"""indirect_jump: an edge to a block that only jumps on goes where that goes.

    b0:                          b0:
        br %v0, b1, b2               br %v0, b2, b1
    b1:                      =>  b1:
        jmp b3                       ret %v2
    b2:                          b2:
        ret %v2                      ret %v1
    b3:
        ret %v1

The block in between may have parameters if nothing but its jump uses them. Blocks are visited from the end of the
layout, so that a chain of jumps shortens to one edge. A branch both of whose edges are equal becomes a jump.
"""

from __future__ import annotations

from allocators import Allocator
from allocators.collections import Vec
from garden.ir.blocks import first_real
from garden.ir.ir import BRANCH, BRANCH_CMP, BRANCH_CMP_IMM, JUMP, PARAM, Ir
from garden.ir.operands import count_uses, edge_at, edge_count, set_edge
from garden.ir.passes.unreachable import unreachable


def indirect_jump(ir: Ir[Allocator], scratch: Allocator) -> int:
    """Redirect edges; return how many, branches that became jumps included."""
    # By value: which parameter of its block it is, from 1.
    places: Vec[Allocator] = Vec(scratch, "I")
    layout: Vec[Allocator] = Vec(scratch, "I")
    words: Vec[Allocator] = Vec(scratch, "q")
    uses = count_uses(ir, scratch)
    try:
        places.fill(0, ir.value_count)
        _place(ir, places.data)
        count = 0
        for function in range(1, ir.function_count):
            layout.clear()
            block: int = ir.function_first[function]
            while block:
                layout.append(block)
                block = ir.block_next[block]
            for index in range(len(layout) - 1, -1, -1):
                count += _redirect(ir, ir.block_last[layout.data[index]], places.data, uses.data, words)
    finally:
        uses.close()
        words.close()
        layout.close()
        places.close()
    if count:
        unreachable(ir, scratch)
    return count


def _place(ir: Ir[Allocator], places: memoryview) -> None:
    pool = ir.pool.data
    for block in range(1, ir.block_count):
        if ir.block_function[block]:
            parameters: int = ir.block_params[block]
            for position in range(1, pool[parameters] + 1):
                places[pool[parameters + position]] = position


def _redirect(ir: Ir[Allocator], terminator: int, places: memoryview, uses: memoryview, words: Vec[Allocator]) -> int:
    count = 0
    for index in range(edge_count(ir, terminator)):
        edge = edge_at(ir, terminator, index)
        middle: int = ir.pool.data[edge + 1]
        onward = _onward(ir, middle, places, uses)
        if onward:
            _compose(ir, edge, onward, ir.block_params[middle], places, words)
            for word in ir.list_at(edge)[1:]:
                uses[word] -= 1
            for position in range(1, len(words)):
                uses[words.data[position]] += 1
            set_edge(ir, terminator, index, ir.add_words(words))
            count += 1
    if ir.op[terminator] in (BRANCH, BRANCH_CMP, BRANCH_CMP_IMM) and _equal(ir, ir.c[terminator], ir.d[terminator]):
        ir.op[terminator] = JUMP
        ir.a[terminator] = 0
        ir.b[terminator] = 0
        ir.d[terminator] = 0
        ir.imm[terminator] = 0
        count += 1
    return count


def _onward(ir: Ir[Allocator], block: int, places: memoryview, uses: memoryview) -> int:
    """The edge of a block that only jumps, and whose parameters nothing else uses; 0 where it is none."""
    jump = first_real(ir, block)
    if ir.op[jump] != JUMP:
        return 0
    pool = ir.pool.data
    edge: int = ir.c[jump]
    if pool[edge + 1] == block:
        return 0
    parameters: int = ir.block_params[block]
    others = 0
    for parameter in ir.list_at(parameters):
        others += uses[parameter]
    for argument in ir.list_at(edge)[1:]:
        if _is_parameter(ir, argument, parameters, places):
            others -= 1
    return edge if others == 0 else 0


def _is_parameter(ir: Ir[Allocator], value: int, parameters: int, places: memoryview) -> bool:
    """Whether a value is one of the parameters in this list."""
    pool = ir.pool.data
    place: int = places[value]
    return ir.op[value] == PARAM and 0 < place <= pool[parameters] and pool[parameters + place] == value


def _compose(
    ir: Ir[Allocator], edge: int, onward: int, parameters: int, places: memoryview, words: Vec[Allocator]
) -> None:
    """Put the edge that is `edge` and then `onward` into `words`."""
    words.clear()
    words.append(ir.pool.data[onward + 1])
    for argument in ir.list_at(onward)[1:]:
        if _is_parameter(ir, argument, parameters, places):
            words.append(ir.pool.data[edge + 1 + places[argument]])
        else:
            words.append(argument)


def _equal(ir: Ir[Allocator], left: int, right: int) -> bool:
    return ir.list_at(left) == ir.list_at(right)
