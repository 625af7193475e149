"""common_subexpressions: what a block has computed already is not computed again.

    %v2:Int = IMul %v0, %v1      %v2:Int = IMul %v0, %v1
    %v3:Int = IMul %v1, %v0  =>  %v3:Int = IAdd %v2, %v2
    %v4:Int = IAdd %v2, %v3

Within a block only, so that no value lives across blocks because of it. Covers what has no effect, and what may only
trap: the first of two equal divisions traps for both. Calls of pure host functions count, up to two arguments.

Equal constants make equal what is computed from them, but stay themselves: a constant is cheap to make anew, and
`imm_fold` wants those that are used once.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators.collections import Vec
from garden.ir.blocks import make_noop, unlink_noops
from garden.ir.ir import (
    CONST,
    CONST_STR,
    DADD,
    DDIV,
    DMUL,
    IADD,
    IDIV,
    IDIV_IMM,
    IEQ,
    IMM,
    IMOD,
    IMOD_IMM,
    IMUL,
    INE,
    OFFSET,
    OPS,
    PURE,
    SEQ,
    SNE,
    SYS,
    UNUSED,
    VALUE,
    Ir,
)
from garden.ir.operands import replace_uses
from garden.ir.passes.available import Available

_OTHER: Final = 0
_PLAIN: Final = 1  # determined by type, values a and b, and imm
_COMMUTATIVE: Final = 2  # and by the order of a and b not
_CONSTANT: Final = 3
_HOST_CALL: Final = 4

_MAX_ARGUMENTS: Final = 2


def _kind(op: int) -> int:
    if op not in OPS:
        return _OTHER
    if op in (CONST, CONST_STR):
        return _CONSTANT
    if op in (IADD, IMUL, DADD, DMUL, IEQ, INE, SEQ, SNE):
        return _COMMUTATIVE
    if op == SYS:
        return _HOST_CALL
    entry = OPS[op]
    if op not in (IDIV, IMOD, IDIV_IMM, IMOD_IMM, DDIV) and entry.effect != PURE:
        return _OTHER
    return _PLAIN if entry.a == VALUE and entry.b in (UNUSED, VALUE) and entry.imm in (0, IMM, OFFSET) else _OTHER


_KINDS: Final = bytes([_kind(op) for op in range(max(OPS) + 1)])


def common_subexpressions(ir: Ir[Allocator], scratch: Allocator) -> int:
    """Replace instructions by equal ones before them; return how many."""
    # By value: the first equal one, 0 where that is the value itself.
    same: Vec[Allocator] = Vec(scratch, "I")
    available = Available(scratch)
    try:
        same.fill(0, ir.value_count)
        count = 0
        for block in range(1, ir.block_count):
            if ir.block_function[block]:
                available.clear()
                count += _scan(ir, block, same.data, available)
        if count:
            values = same.data
            for value in range(1, ir.value_count):
                if ir.op[value] in (CONST, CONST_STR):
                    values[value] = 0
            replace_uses(ir, values)
            unlink_noops(ir)
        return count
    finally:
        available.close()
        same.close()


def _scan(ir: Ir[Allocator], block: int, same: memoryview, available: Available) -> int:
    op = ir.op
    nexts = ir.next
    count = 0
    inst: int = ir.block_first[block]
    while inst:
        kind = _KINDS[op[inst]]
        if kind != _OTHER:
            head = ir.type[inst] << 8 | op[inst]
            a: int = ir.a[inst]
            b: int = ir.b[inst]
            imm: int = ir.imm[inst]
            if kind == _HOST_CALL:
                arguments = ir.list_at(b)
                words = len(arguments)
                known = words <= _MAX_ARGUMENTS and ir.type[inst] != 0 and ir.checked.hosts[a].pure
                b = (same[arguments[0]] or arguments[0]) if words > 0 and known else 0
                imm = (same[arguments[1]] or arguments[1]) if words > 1 and known else 0
            else:
                known = True
                a = same[a] or a
                b = same[b] or b
                if kind == _COMMUTATIVE and a > b:
                    a, b = b, a
            first = available.get(head, a, b, imm) if known else 0
            if first:
                same[inst] = first
                if kind != _CONSTANT:
                    make_noop(ir, inst)
                    count += 1
            elif known:
                available.set(head, a, b, imm, inst)
        inst = nexts[inst]
    return count
