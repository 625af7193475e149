"""Operands: where instructions refer to values and to edges; counting, replacing and removing such references.

`OPERANDS` has a byte of flags for each opcode, derived from the table of opcodes. A pass looks at the flags and reads
the columns itself; `edge_count` and `edge_at` are for terminators only, so their cost is paid once a block.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.ir import ir as op
from garden.ir.ir import Ir

# What column a or b refers to, and whether there are edges. Value 0, where a value may be missing, counts as one.
A_VALUE: Final = 1
B_VALUE: Final = 2
B_VALUES: Final = 4
EDGES: Final = 8


def _flags(opcode: i64) -> i64:
    if opcode not in op.OPS:
        return 0
    entry = op.OPS[opcode]
    flags = A_VALUE if entry.a == op.VALUE or entry.a == op.MAYBE_VALUE else 0
    if entry.b == op.VALUE:
        flags |= B_VALUE
    elif entry.b == op.VALUES:
        flags |= B_VALUES
    if entry.c == op.EDGE or opcode == op.SWITCH:
        flags |= EDGES
    return flags


#: Flags by opcode.
OPERANDS: Final = bytes([_flags(opcode) for opcode in range(max(op.OPS) + 1)])
#: `Op.effect` by opcode.
EFFECTS: Final = bytes([op.OPS[opcode].effect if opcode in op.OPS else 0 for opcode in range(max(op.OPS) + 1)])


def edge_count(ir: Ir[Allocator], terminator: i64) -> i64:
    """Number of edges that leave through a terminator; of a switch, one an arm."""
    opcode: i64 = ir.op[terminator]
    if opcode == op.JUMP:
        return 1
    if opcode in (op.BRANCH, op.BRANCH_CMP, op.BRANCH_CMP_IMM):
        return 2
    if opcode == op.SWITCH:
        words: i64 = ir.pool.items[ir.b[terminator]]
        return (words + 1) // 2
    return 0


def edge_at(ir: Ir[Allocator], terminator: i64, index: i64) -> i64:
    """Edge number `index` of a terminator. The default of a switch is its first."""
    edge: i64
    if ir.op[terminator] == op.SWITCH:
        edge = ir.pool.items[ir.b[terminator] + 1 + 2 * index]
    elif index == 0:
        edge = ir.c[terminator]
    else:
        edge = ir.d[terminator]
    return edge


def set_edge(ir: Ir[Allocator], terminator: i64, index: i64, edge: i64) -> None:
    """Replace edge number `index` of a terminator."""
    if ir.op[terminator] == op.SWITCH:
        ir.pool.items[ir.b[terminator] + 1 + 2 * index] = edge
    elif index == 0:
        ir.c[terminator] = edge
    else:
        ir.d[terminator] = edge


def count_uses(ir: Ir[Allocator], scratch: Allocator) -> Vec[Allocator]:
    """How often each value is an operand, arguments of edges included: a Vec 'I' over `scratch` that the caller closes.

    Item 0 counts the values that are missing.
    """
    uses: Vec[Allocator] = Vec(scratch, "I")
    try:
        uses.fill(0, ir.value_count)
        add_uses(ir, uses.items, 1, ir.block_count, 1)
    except BaseException:
        uses.close()
        raise
    return uses


def add_uses(ir: Ir[Allocator], uses: Cells, first: i64, end: i64, step: i64) -> None:
    """Add `step` to the count of a value for each use in the block rows from `first` to before `end`."""
    ops = ir.op
    a = ir.a
    b = ir.b
    nexts = ir.next
    pool = ir.pool.items
    for block in range(first, end):
        inst: i64 = ir.block_first[block] if ir.block_function[block] else 0
        while inst:
            flags = OPERANDS[ops[inst]]
            if flags & A_VALUE:
                uses[a[inst]] += step
            if flags & B_VALUE:
                uses[b[inst]] += step
            elif flags & B_VALUES:
                start: i64 = b[inst]
                for cell in range(start + 1, start + 1 + pool[start]):
                    uses[pool[cell]] += step
            if flags & EDGES:
                for index in range(edge_count(ir, inst)):
                    edge = edge_at(ir, inst, index)
                    for cell in range(edge + 2, edge + 1 + pool[edge]):
                        uses[pool[cell]] += step
            inst = nexts[inst]


def replace_uses(ir: Ir[Allocator], replacement: Cells) -> None:
    """Let every operand v become `replacement[v]`, and so on until that is 0 or the value itself.

    Chains are followed and shortened, so that the whole is linear.
    """
    for function in range(1, ir.function_count):
        replace_uses_in(ir, function, replacement)


def replace_uses_in(ir: Ir[Allocator], function: i64, replacement: Cells) -> None:
    """The same for the operands in one function."""
    ops = ir.op
    a = ir.a
    b = ir.b
    nexts = ir.next
    pool = ir.pool.items
    block: i64 = ir.function_first[function]
    while block:
        inst: i64 = ir.block_first[block]
        while inst:
            flags = OPERANDS[ops[inst]]
            if flags & A_VALUE and replacement[a[inst]]:
                a[inst] = resolve(replacement, a[inst])
            if flags & B_VALUE:
                if replacement[b[inst]]:
                    b[inst] = resolve(replacement, b[inst])
            elif flags & B_VALUES:
                start: i64 = b[inst]
                _replace_cells(pool, start + 1, start + 1 + pool[start], replacement)
            if flags & EDGES:
                for index in range(edge_count(ir, inst)):
                    edge = edge_at(ir, inst, index)
                    _replace_cells(pool, edge + 2, edge + 1 + pool[edge], replacement)
            inst = nexts[inst]
        block = ir.block_next[block]


def _replace_cells(pool: Cells, start: i64, end: i64, replacement: Cells) -> None:
    for cell in range(start, end):
        if replacement[pool[cell]]:
            pool[cell] = resolve(replacement, pool[cell])


def resolve(replacement: Cells, value: i64) -> i64:
    """What a value is replaced by in the end; it and all on the way are then replaced by that at once."""
    last = value
    while replacement[last] and replacement[last] != last:
        last = replacement[last]
    while value != last:
        after: i64 = replacement[value]
        replacement[value] = last
        value = after
    return last


def drop_parameters(ir: Ir[Allocator], dropped: Cells) -> None:
    """Take every parameter p with `dropped[p]` not 0 off its block, and its argument off every edge there."""
    pool = ir.pool.items
    for block in range(1, ir.block_count):
        terminator: i64 = ir.block_last[block] if ir.block_function[block] else 0
        if terminator:
            for index in range(edge_count(ir, terminator)):
                edge = edge_at(ir, terminator, index)
                parameters: i64 = ir.block_params[pool[edge + 1]]
                _drop(pool, edge, 2, parameters, dropped)
    for block in range(1, ir.block_count):
        parameters = ir.block_params[block]
        if parameters and ir.block_function[block]:
            _drop(pool, parameters, 1, parameters, dropped)
            if pool[parameters] == 0:
                ir.block_params[block] = 0


def _drop(pool: Cells, at: i64, skip: i64, parameters: i64, dropped: Cells) -> None:
    """Keep of the list at `at`, from its cell number `skip` on, what stands where a kept parameter does."""
    kept = at + skip
    for index in range(pool[parameters]):
        word: i64 = pool[at + skip + index]
        if not dropped[pool[parameters + 1 + index]]:
            pool[kept] = word
            kept += 1
    pool[at] = kept - at - 1
