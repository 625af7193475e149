"""switch_fold: a chain of branches that compare one value with constants becomes a switch.

    b0:                                  b0:
        br_imm IEq %v0, 1, b1, b2            switch %v0
    b2:                                          1 -> b1
        br_imm IEq %v0, 2, b3, b4    =>          2 -> b3
    b4:                                          3 -> b5
        br_imm IEq %v0, 3, b5, b6                4 -> b7
    b6:                                          _ -> b8
        br_imm IEq %v0, 4, b7, b8

A link of the chain is a block that only the link before it leads to, and that holds nothing but constants; they move to
the head, and `dce` removes unused ones. The first arm of a repeated key wins. At least `MIN_CASES` distinct
keys make a switch; Ints must also be dense, since the table behind a switch has a slot for every number between the
least and the greatest key. Of a long chain the dense parts become switches.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.blocks import link, unlink_blocks
from garden.ir.ir import Ir
from garden.ir.passes.counts import Counts
from garden.ir.passes.unreachable import unreachable
from garden.types.types import INT, STR

#: Fewer comparisons are as fast as a table.
MIN_CASES: Final = 4
#: Slots of a table per case, at most.
MAX_SPREAD: Final = 4


def switch_fold(ir: Ir[Allocator], counts: Counts) -> i64:
    """Make switches; return how many."""
    folder = _Folder(ir, counts)
    try:
        count = folder.run()
    finally:
        folder.close()
    if count:
        unlink_blocks(ir)
        # The arms of repeated keys.
        counts.forget_uses()
        counts.forget_predecessors()
        unreachable(ir, counts)
    return count


@mypyc_attr(native_class=True)
class _Folder:
    """The chain at hand: blocks, and for each the key, the edge to its arm, and the edge to the next."""

    __slots__ = (
        "_blocks",
        "_hits",
        "_keys",
        "_misses",
        "_part",
        "_predecessors",
        "_seen",
        "_stamps",
        "_words",
        "hit",
        "ir",
        "key",
        "miss",
        "subject",
    )

    def __init__(self, ir: Ir[Allocator], counts: Counts) -> None:
        scratch = counts.scratch
        self.ir: Final = ir
        self._blocks: Vec[Allocator] = Vec(scratch, "I")
        self._keys: Vec[Allocator] = Vec(scratch, "q")
        self._hits: Vec[Allocator] = Vec(scratch, "I")
        self._misses: Vec[Allocator] = Vec(scratch, "I")
        self._words: Vec[Allocator] = Vec(scratch, "q")
        self._seen: Vec[Allocator] = Vec(scratch, "B")
        # For each Int from the least key, or for each symbol, the last part of a chain that had it as a key.
        self._stamps: Vec[Allocator] = Vec(scratch, "I")
        self._part = 0
        self._predecessors = counts.predecessors()
        self.subject = 0
        self.key = 0
        self.hit = 0
        self.miss = 0

    def close(self) -> None:
        self._stamps.close()
        self._seen.close()
        self._words.close()
        self._misses.close()
        self._hits.close()
        self._keys.close()
        self._blocks.close()

    def run(self) -> i64:
        ir = self.ir
        self._seen.fill(0, ir.block_count)
        count = 0
        for function in range(1, ir.function_count):
            block: i64 = ir.function_first[function]
            while block:
                if not self._seen.items[block] and self._compares(block):
                    self._gather(block)
                    count += self._fold()
                block = ir.block_next[block]
        return count

    def _compares(self, block: i64) -> bool:
        """Whether a block ends by comparing a value with a constant for equality; what, is then in the attributes."""
        ir = self.ir
        branch: i64 = ir.block_last[block]
        opcode: i64 = ir.op[branch]
        if opcode == op.BRANCH_CMP_IMM:
            opcode = ir.b[branch]
            if opcode not in (op.IEQ_IMM, op.INE_IMM):
                return False
            self.subject = ir.a[branch]
            self.key = ir.imm[branch]
        elif opcode == op.BRANCH_CMP:
            opcode = ir.imm[branch]
            self.subject = self._subject(branch)
            constant: i64 = ir.b[branch] if self.subject == ir.a[branch] else ir.a[branch]
            if opcode not in (op.IEQ, op.INE, op.SEQ, op.SNE) or ir.op[constant] not in (op.CONST, op.CONST_STR):
                return False
            self.key = ir.imm[constant]
        else:
            return False
        equal = opcode in (op.IEQ, op.IEQ_IMM, op.SEQ)
        self.hit = ir.c[branch] if equal else ir.d[branch]
        self.miss = ir.d[branch] if equal else ir.c[branch]
        # With two constants it is for `const_fold`.
        return ir.type[self.subject] in (INT, STR) and ir.op[self.subject] not in (op.CONST, op.CONST_STR)

    def _gather(self, block: i64) -> None:
        """Gather the chain that begins with `block`, which was just looked at."""
        ir = self.ir
        for column in (self._blocks, self._keys, self._hits, self._misses):
            column.clear()
        subject = self.subject
        while True:
            self._seen.items[block] = 1
            self._blocks.append_i64(block)
            self._keys.append_i64(self.key)
            self._hits.append_i64(self.hit)
            self._misses.append_i64(self.miss)
            after: i64 = ir.pool.items[self.miss + 1]
            if self._seen.items[after] or not self._is_link(after) or not self._compares(after):
                return
            if self.subject != subject:
                return
            block = after

    def _is_link(self, block: i64) -> bool:
        ir = self.ir
        if self._predecessors[block] != 1 or ir.block_params[block]:
            return False
        inst: i64 = ir.block_first[block]
        last: i64 = ir.block_last[block]
        while inst != last:
            if ir.op[inst] not in (op.CONST, op.CONST_STR, op.UNDEFINED, op.NOP):
                return False
            inst = ir.next[inst]
        return True

    def _fold(self) -> i64:
        """Make switches of the parts of the chain that are worth it."""
        ir = self.ir
        total = len(self._blocks)
        branch: i64 = ir.block_last[self._blocks.items[0]]
        text = ir.op[branch] == op.BRANCH_CMP and ir.imm[branch] in (op.SEQ, op.SNE)
        count = 0
        start = 0
        while total - start >= MIN_CASES:
            length = total - start if text else self._dense(start)
            if length < MIN_CASES:
                break
            if self._collect(start, start + length, text):
                self._replace(start, start + length)
                count += 1
            start += length
        return count

    def _dense(self, start: i64) -> i64:
        """Length of the longest part from `start` whose keys are dense, or one not much shorter."""
        keys = self._keys.items
        # No machine words: the keys may be 2**64 apart.
        least: int = keys[start]
        most = least
        best: int = 0
        for end in range(start, len(self._keys)):
            key: int = keys[end]
            least = min(least, key)
            most = max(most, key)
            length: int = end - start + 1
            if most - least < MAX_SPREAD * length:
                best = length
            elif best >= MIN_CASES and length > 2 * best + MIN_CASES:
                # Searching further for each part would not be linear.
                break
        return best

    def _collect(self, start: i64, end: i64, text: bool) -> bool:
        """Put the list of a switch for a part of the chain into `_words`; whether it is one."""
        keys = self._keys.items
        hits = self._hits.items
        words = self._words
        words.clear()
        words.append_i64(self._misses.items[end - 1])
        least: i64 = 0 if text else keys[start]
        most: i64 = least
        for index in range(start, end):
            least = min(least, keys[index])
            most = max(most, keys[index])
        self._stamps.fill(0, max(0, most - least + 1 - len(self._stamps)))
        self._part += 1
        stamps = self._stamps.items
        for index in range(start, end):
            key: i64 = keys[index]
            if stamps[key - least] != self._part:
                stamps[key - least] = self._part
                words.append_i64(key)
                words.append_i64(hits[index])
        distinct = len(words) // 2
        return distinct >= MIN_CASES and (text or most - least < MAX_SPREAD * distinct)

    def _replace(self, start: i64, end: i64) -> None:
        """Let the first block of a part end with the switch in `_words`, and the others die."""
        ir = self.ir
        blocks = self._blocks.items
        head: i64 = blocks[start]
        branch: i64 = ir.block_last[head]
        before = 0
        inst: i64 = ir.block_first[head]
        while inst != branch:
            before = inst
            inst = ir.next[inst]
        subject = self._subject(branch)
        for index in range(start + 1, end):
            block: i64 = blocks[index]
            last: i64 = ir.block_last[block]
            inst = ir.block_first[block]
            while inst != last:
                link(ir, head, before, inst)
                before = inst
                inst = ir.next[inst]
            ir.block_function[block] = 0
            ir.block_first[block] = 0
            ir.block_last[block] = 0
        if before:
            ir.next[before] = branch
        ir.op[branch] = op.SWITCH
        ir.a[branch] = subject
        ir.b[branch] = ir.add_words(self._words)
        ir.c[branch] = 0
        ir.d[branch] = 0
        ir.imm[branch] = 0

    def _subject(self, branch: i64) -> i64:
        """The operand of a comparison that is no constant."""
        ir = self.ir
        subject: i64 = ir.a[branch]
        if ir.op[branch] == op.BRANCH_CMP and ir.op[subject] in (op.CONST, op.CONST_STR):
            subject = ir.b[branch]
        return subject
