"""load_store_forward: what a block has stored or loaded is not loaded again.

    Store %v1+8, %v0             Store %v1+8, %v0
    %v2:Int = Load %v1+8     =>  ret %v0
    ret %v2

Looks at a block, and at those that only it leads to. A store through a fresh object leaves other fresh objects alone,
but not what was loaded through an address of unknown origin; a store through such an address, and a second one to the
same place, make everything uncertain. Host functions change nothing that garden code has stored.

A copy makes everything uncertain too, since nobody keeps track of what it overwrites. So does a call: not that it could
change what is there, but a value that outlives a call must be saved and restored, which costs more than to load it
again.
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


def load_store_forward(ir: Ir[Allocator], counts: Counts) -> i64:
    """Replace loads by what is known to be there; return how many."""
    if not _has_loads(ir):
        return 0
    forwarder = _Forwarder(ir, counts)
    try:
        count = forwarder.run()
    finally:
        forwarder.close()
    if count:
        counts.forget_uses()
    return count


def _has_loads(ir: Ir[Allocator]) -> bool:
    ops = ir.op
    nexts = ir.next
    for block in range(1, ir.block_count):
        inst: i64 = ir.block_first[block] if ir.block_function[block] else 0
        while inst:
            if ops[inst] == op.LOAD:
                return True
            inst = nexts[inst]
    return False


@mypyc_attr(native_class=True)
class _Forwarder:
    """What is known of memory, and by load the value that it gives."""

    __slots__ = ("_available", "_epochs", "_fresh", "_other", "_replacement", "_trees", "ir")

    def __init__(self, ir: Ir[Allocator], counts: Counts) -> None:
        scratch = counts.scratch
        self.ir: Final = ir
        self._replacement: Vec[Allocator] = Vec(scratch, "I")
        self._available = Available(scratch)
        # Since when what is known of fresh objects, and of all others, is certain: part of the keys.
        self._epochs = 0
        self._fresh = 0
        self._other = 0
        self._trees = Trees(ir, counts)

    def close(self) -> None:
        self._trees.close()
        self._available.close()
        self._replacement.close()

    def run(self) -> i64:
        ir = self.ir
        trees = self._trees
        self._replacement.fill(0, ir.value_count)
        count = 0
        while trees.advance():
            self._available.forget(trees.mark)
            self._fresh = trees.first
            self._other = trees.second
            before = 0
            inst: i64 = ir.block_first[trees.block]
            while inst:
                opcode: i64 = ir.op[inst]
                after: i64 = ir.next[inst]
                if opcode == op.LOAD and self._is_known(inst):
                    link(ir, trees.block, before, after)
                    count += 1
                else:
                    if opcode == op.STORE:
                        self._store(inst)
                    elif opcode in (op.CALL, op.COPY):
                        self._epochs += 1
                        self._fresh = self._epochs
                        self._other = self._epochs
                    before = inst
                inst = after
            trees.descend(len(self._available), self._fresh, self._other)
        if count:
            replace_uses(ir, self._replacement.items)
        return count

    def _resolved(self, value: i64) -> i64:
        return self._replacement.items[value] or value

    def _store(self, inst: i64) -> None:
        ir = self.ir
        base = self._resolved(ir.b[inst])
        offset: i64 = ir.imm[inst]
        self._epochs += 1
        self._other = self._epochs
        if ir.op[base] != op.ALLOC or self._available.get(self._fresh, base, 0, offset):
            self._fresh = self._epochs
        epoch = self._fresh if ir.op[base] == op.ALLOC else self._other
        self._available.add(epoch, base, 0, offset, self._resolved(ir.a[inst]))

    def _is_known(self, inst: i64) -> bool:
        """Whether it is known what a load gives, so that this replaces it; if not, it is from now on."""
        ir = self.ir
        base = self._resolved(ir.a[inst])
        offset: i64 = ir.imm[inst]
        epoch = self._fresh if ir.op[base] == op.ALLOC else self._other
        known = self._available.add(epoch, base, 0, offset, inst)
        if known and ir.type[known] == ir.type[inst]:
            self._replacement.items[inst] = known
            return True
        return False
