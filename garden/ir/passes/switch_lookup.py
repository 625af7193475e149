"""switch_lookup: a switch whose every arm is a constant becomes a table of constants.

    b0:                              b0:
        switch %v0                       %v1:Int = Lookup %v0 [1 -> 10, 2 -> 20], 0
            1 -> b1                      ret %v1
            2 -> b2
            _ -> b3
    b1:
        %v1:Int = 10             =>
        ret %v1
    b2:
        %v2:Int = 20
        ret %v2
    b3:
        %v3:Int = 0
        ret %v3

An arm may also pass its constant to a join, the same for all of them. It holds nothing but that constant.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.blocks import first_real
from garden.ir.builder import Builder
from garden.ir.ir import Ir
from garden.ir.operands import edge_at, edge_count
from garden.ir.passes.counts import Counts
from garden.ir.passes.unreachable import unreachable

_NO_ARM: Final = -1
#: What `_goes_to` says of an arm that returns.
_RETURNS: Final = 0


def switch_lookup(ir: Ir[Allocator], counts: Counts) -> i64:
    """Turn switches into lookups; return how many."""
    words: Vec[Allocator] = Vec(counts.scratch, "q")
    try:
        count = 0
        for block in range(1, ir.block_count):
            switch: i64 = ir.block_last[block] if ir.block_function[block] else 0
            if ir.op[switch] == op.SWITCH and _gather(ir, switch, words):
                _replace(ir, block, switch, words)
                count += 1
    finally:
        words.close()
    if count:
        counts.forget_uses()
        counts.forget_predecessors()
        unreachable(ir, counts)
    return count


def _gather(ir: Ir[Allocator], switch: i64, words: Vec[Allocator]) -> bool:
    """Put the list of a lookup instead of a switch into `words`; whether it can be one."""
    words.clear()
    cases: i64 = ir.b[switch]
    first = _goes_to(ir, edge_at(ir, switch, 0))
    for index in range(edge_count(ir, switch)):
        edge = edge_at(ir, switch, index)
        if first == _NO_ARM or _goes_to(ir, edge) != first:
            return False
        if index:
            words.append_i64(ir.pool.items[cases + 2 * index])
        words.append_i64(ir.imm[_constant(ir, edge)])
    return True


def _goes_to(ir: Ir[Allocator], edge: i64) -> i64:
    """The join that an arm gives a constant, `_RETURNS` where it returns one, `_NO_ARM` where it does anything else."""
    pool = ir.pool.items
    if pool[edge] != 1:
        return _NO_ARM
    block: i64 = pool[edge + 1]
    inst = first_real(ir, block)
    last: i64 = ir.block_last[block]
    if ir.op[inst] in (op.CONST, op.CONST_STR):
        inst = ir.next[inst]
        while ir.op[inst] == op.NOP:
            inst = ir.next[inst]
    if inst != last or ir.op[_constant(ir, edge)] not in (op.CONST, op.CONST_STR):
        return _NO_ARM
    join: i64 = pool[ir.c[last] + 1] if ir.op[last] == op.JUMP else _RETURNS
    return join


def _constant(ir: Ir[Allocator], edge: i64) -> i64:
    """The one value that an arm returns or passes on, 0 if there is none or several."""
    pool = ir.pool.items
    last: i64 = ir.block_last[pool[edge + 1]]
    value = 0
    if ir.op[last] == op.RET:
        value = ir.a[last]
    elif ir.op[last] == op.JUMP and pool[ir.c[last]] == 2:
        value = pool[ir.c[last] + 2]
    return value


def _replace(ir: Ir[Allocator], block: i64, switch: i64, words: Vec[Allocator]) -> None:
    edge = edge_at(ir, switch, 0)
    type: i64 = ir.type[_constant(ir, edge)]
    join = _goes_to(ir, edge)
    # The switch becomes the lookup: it stands where that has to.
    lookup = switch
    ir.op[lookup] = op.LOOKUP
    ir.type[lookup] = type
    ir.b[lookup] = ir.add_words(words)
    pos: i64 = ir.pos[lookup]
    if join == _RETURNS:
        Builder(ir, block).ret(lookup, pos)
    else:
        Builder(ir, block).jump(ir.add_list([join, lookup]), pos)
