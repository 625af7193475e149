"""Liveness: for every value its uses that are still to come, and the register it should best be in.

One backward scan over a function makes a chain of use records a value, the use that is emitted first on top. A record
is a word: the greatest rank (see `garden.ir.order`) of all later uses, and the number of the next record. The
head of a value's chain has the same form. Records are numbered in the order in which the scan meets them, so a greater
number is an earlier use, and emitting consumes them by counting down.

A value is live in a block exactly if a use is left with at least the rank of the block: one comparison, no sets, and
the branches that the block does not lead to do not count. (With control flow that is not nested it may be thought to be
live where it is not, which costs a move, never the other way round.)

Only what is used counts: an instruction without effect whose result has no uses has no uses of operands either, so
dead code falls away in passing.

Hints, in a Vec 'i' by value: register + 1 of an argument or a returned value, the negative of the block parameter that
the value is passed to, or 0. The earliest use decides.

Calls: for each block, a list of its calls in `calls`, ended by 0 and read from the end: the row of the instruction and
the number of records after it.

Costs: a word for each use, and time linear in the number of operands.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import EFFECTS
from garden.ir.order import BlockOrder

#: The bits of a record or head that hold the number of a record; the rank stands above.
NUMBER: Final = 0xFFFFFFFF
RANK_SHIFT: Final = 32

_FIRST_RECORDS: Final = 64
_FIRST_ROWS: Final = 64


@mypyc_attr(native_class=True)
class Liveness:
    """The uses in the function analysed last. `count` is the number of records that are not consumed yet."""

    __slots__ = (
        "_heads",
        "_hints",
        "_ir",
        "_limit",
        "_order",
        "_pool",
        "_records",
        "_register_arguments",
        "_rows",
        "calls",
        "count",
        "heads",
        "hints",
        "records",
    )

    def __init__(self, ir: Ir[Allocator], order: BlockOrder, scratch: Allocator, register_arguments: int) -> None:
        self._ir: Final = ir
        self._order: Final = order
        self._register_arguments: Final[i64] = register_arguments
        self._limit: i64 = 0
        self.count: i64 = 0
        self.heads: Vec[Allocator] = Vec(scratch, "q")
        self.hints: Vec[Allocator] = Vec(scratch, "i")
        self.records: Vec[Allocator] = Vec(scratch, "q")
        self.calls: Vec[Allocator] = Vec(scratch, "q")
        self._rows: Vec[Allocator] = Vec(scratch, "I")
        self._pool: Final = ir.pool.items
        self._heads = self.heads.items
        self._hints = self.hints.items
        self._records = self.records.items

    def prepare(self) -> None:
        """Take the memory for the values of the program."""
        self.heads.fill_zero(self._ir.value_count)
        self.hints.fill_zero(self._ir.value_count)
        self._heads = self.heads.items
        self._hints = self.hints.items

    def analyse(self) -> None:
        """Find the uses of the function whose blocks have been ordered last."""
        ir = self._ir
        ops = ir.op
        nexts = ir.next
        left = ir.a
        right = ir.b
        heads = self._heads
        hints = self._hints
        rows = self._rows
        items = rows.items
        blocks = self._order.blocks.items
        ranks = self._order.ranks.items
        self.count = 0
        for place in range(len(self._order.blocks) - 1, -1, -1):
            block = blocks[place]
            rank = ranks[block]
            self.calls.append_i64(0)
            row = ir.block_first[block]
            count: i64 = 0
            while row:
                if count == len(rows):
                    rows.fill(0, max(count, _FIRST_ROWS))
                    items = rows.items
                items[count] = row
                count += 1
                row = nexts[row]
            self._scan_terminator(items[count - 1], rank)
            index: i64
            for index in range(count - 2, -1, -1):
                row = items[index]
                opcode = ops[row]
                if opcode <= op.CONST_STR:
                    continue
                if opcode < op.CALL:
                    if heads[row] == 0 and EFFECTS[opcode] != op.TRAPS:
                        continue
                    if opcode <= op.SNE:
                        self._use(right[row], rank)
                    operand = left[row]
                    self._use(operand, rank)
                    if opcode == op.BOOL_TO_INT:
                        hints[operand] = hints[row]
                elif opcode <= op.SYS:
                    self._scan_arguments(row, rank)
                elif opcode in (op.STORE, op.COPY):
                    self._use(right[row], rank)
                    self._use(left[row], rank)
                elif opcode != op.ALLOC and heads[row]:
                    self._use(left[row], rank)

    def _use(self, value: i64, rank: i64) -> None:
        number = self.count + 1
        if number >= self._limit:
            self._grow()
        later = self._heads[value]
        self._records[number] = later
        greatest = later >> RANK_SHIFT
        if greatest < rank:
            greatest = rank
        self._heads[value] = greatest << RANK_SHIFT | number
        self.count = number

    def _grow(self) -> None:
        self.records.fill(0, max(len(self.records), _FIRST_RECORDS))
        self._limit = len(self.records)
        self._records = self.records.items

    def _scan_arguments(self, row: i64, rank: i64) -> None:
        """The uses of a call, a host call or a tail call."""
        pool = self._pool
        hints = self._hints
        arguments = self._ir.b[row]
        self.calls.append_i64(row << RANK_SHIFT | self.count)
        index: i64
        for index in range(pool[arguments] - 1, -1, -1):
            value = pool[arguments + 1 + index]
            self._use(value, rank)
            if index < self._register_arguments:
                hints[value] = index + 1

    def _scan_terminator(self, row: i64, rank: i64) -> None:
        ir = self._ir
        opcode = ir.op[row]
        if opcode == op.RET:
            value = ir.a[row]
            if value:
                self._use(value, rank)
                self._hints[value] = 1
        elif opcode == op.TAIL:
            self._scan_arguments(row, rank)
        elif opcode == op.SWITCH:
            cases = ir.b[row]
            cell: i64
            for cell in range(cases + self._pool[cases], cases, -2):
                self._scan_edge(self._pool[cell], rank)
            self._use(ir.a[row], rank)
        else:
            if opcode != op.JUMP:
                self._scan_edge(ir.d[row], rank)
            self._scan_edge(ir.c[row], rank)
            if opcode in (op.BRANCH, op.BRANCH_CMP, op.BRANCH_CMP_IMM):
                if opcode == op.BRANCH_CMP:
                    self._use(ir.b[row], rank)
                self._use(ir.a[row], rank)

    def _scan_edge(self, edge: i64, rank: i64) -> None:
        """The uses of the arguments of an edge, as far as the parameters are used."""
        pool = self._pool
        words = pool[edge]
        if words == 1:
            return
        hints = self._hints
        parameters = self._ir.block_params[pool[edge + 1]]
        index: i64
        for index in range(words - 1, 0, -1):
            parameter = pool[parameters + index]
            if self._heads[parameter]:
                value = pool[edge + 1 + index]
                self._use(value, rank)
                hint = hints[parameter]
                hints[value] = hint if hint > 0 else -parameter

    def consume(self, value: i64) -> i64:
        """Take off the use that comes next in emission order, which is of `value`; what remains of its head."""
        number = self.count
        head = self._records[number]
        self._heads[value] = head
        self.count = number - 1
        return head

    def close(self) -> None:
        self._rows.close()
        self.calls.close()
        self.records.close()
        self.hints.close()
        self.heads.close()
