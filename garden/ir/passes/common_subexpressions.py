"""common_subexpressions: what has been computed already on every way to a block is not computed again.

    %v2:Int = IMul %v0, %v1      %v2:Int = IMul %v0, %v1
    %v3:Int = IMul %v1, %v0  =>  %v3:Int = IAdd %v2, %v2
    %v4:Int = IAdd %v2, %v3

Looks at a block, and at those that only it leads to. Covers what has no effect, and what may only trap: the first of
two equal divisions traps for both. Calls of pure host functions count, up to two arguments.

A call in between makes it forget all but those: a value that outlives a call must be saved and restored, which costs
more than to compute it again.

Equal constants make equal what is computed from them, but stay themselves: a constant is cheap to make anew, and
`imm_fold` wants those that are used once.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.blocks import link
from garden.ir.ir import Ir
from garden.ir.operands import replace_uses
from garden.ir.passes.available import Available, Trees
from garden.ir.passes.counts import Counts

_OTHER: Final = 0
_CALL: Final = 1
_PLAIN: Final = 2  # determined by type, values a and b, and imm
_COMMUTATIVE: Final = 3  # and by the order of a and b not
_CONSTANT: Final = 4
_HOST_CALL: Final = 5

_MAX_ARGUMENTS: Final = 2


def _kind(opcode: i64) -> i64:
    if opcode not in op.OPS:
        return _OTHER
    if opcode in (op.CONST, op.CONST_STR):
        return _CONSTANT
    if opcode in (op.IADD, op.IMUL, op.DADD, op.DMUL, op.IEQ, op.INE, op.SEQ, op.SNE):
        return _COMMUTATIVE
    if opcode == op.SYS:
        return _HOST_CALL
    if opcode == op.CALL:
        return _CALL
    entry = op.OPS[opcode]
    if opcode not in (op.IDIV, op.IMOD, op.IDIV_IMM, op.IMOD_IMM, op.DDIV) and entry.effect != op.PURE:
        return _OTHER
    return (
        _PLAIN
        if entry.a == op.VALUE and entry.b in (op.UNUSED, op.VALUE) and entry.imm in (0, op.IMM, op.OFFSET)
        else _OTHER
    )


_KINDS: Final = bytes([_kind(opcode) for opcode in range(max(op.OPS) + 1)])


def common_subexpressions(ir: Ir[Allocator], counts: Counts) -> i64:
    """Replace instructions by equal ones before them; return how many."""
    finder = _Finder(ir, counts)
    try:
        count = finder.run()
    finally:
        finder.close()
    if count:
        counts.forget_uses()
    return count


@mypyc_attr(native_class=True)
class _Finder:
    """What is available, and by value the first one that equals it, 0 where that is the value itself."""

    __slots__ = ("_available", "_calls", "_same", "_trees", "ir")

    def __init__(self, ir: Ir[Allocator], counts: Counts) -> None:
        scratch = counts.scratch
        self.ir: Final = ir
        self._same: Vec[Allocator] = Vec(scratch, "I")
        self._available = Available(scratch)
        # How many calls have been met: the number of the last one is part of the keys.
        self._calls = 0
        self._trees = Trees(ir, counts)

    def close(self) -> None:
        self._trees.close()
        self._available.close()
        self._same.close()

    def run(self) -> i64:
        ir = self.ir
        trees = self._trees
        self._same.fill(0, ir.value_count)
        count = 0
        while trees.advance():
            self._available.forget(trees.mark)
            last_call = trees.first
            before = 0
            inst: i64 = ir.block_first[trees.block]
            while inst:
                kind = _KINDS[ir.op[inst]]
                after: i64 = ir.next[inst]
                if kind == _CALL:
                    self._calls += 1
                    last_call = self._calls
                if kind >= _PLAIN and self._is_known(inst, kind, last_call) and kind != _CONSTANT:
                    link(ir, trees.block, before, after)
                    count += 1
                else:
                    before = inst
                inst = after
            trees.descend(len(self._available), last_call, 0)
        if count:
            same = self._same.items
            for value in range(1, ir.value_count):
                if ir.op[value] in (op.CONST, op.CONST_STR):
                    same[value] = 0
            replace_uses(ir, same)
        return count

    def _is_known(self, inst: i64, kind: i64, last_call: i64) -> bool:
        """Whether an instruction is computed already; if not, it is from now on."""
        ir = self.ir
        same = self._same.items
        a: i64 = ir.a[inst]
        b: i64 = ir.b[inst]
        imm: i64 = ir.imm[inst]
        if kind == _HOST_CALL:
            arguments = ir.list_at(b)
            words = len(arguments)
            if words > _MAX_ARGUMENTS or ir.type[inst] == 0 or not ir.checked.hosts[a].pure:
                return False
            last_call = 0
            b = (same[arguments[0]] or arguments[0]) if words > 0 else 0
            imm = (same[arguments[1]] or arguments[1]) if words > 1 else 0
        else:
            a = same[a] or a
            b = same[b] or b
            if kind == _COMMUTATIVE and a > b:
                a, b = b, a
        head = last_call << 32 | ir.type[inst] << 8 | ir.op[inst]
        first = self._available.add(head, a, b, imm, inst)
        same[inst] = first
        return first != 0
