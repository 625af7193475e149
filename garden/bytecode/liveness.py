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

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import EFFECTS
from garden.ir.order import BlockOrder

S = TypeVar("S", bound=Allocator, covariant=True)

#: The bits of a record or head that hold the number of a record; the rank stands above.
NUMBER: Final = 0xFFFFFFFF
RANK_SHIFT: Final = 32

_FIRST_RECORDS: Final = 64
_FIRST_ROWS: Final = 64


@mypyc_attr(native_class=True)
class Liveness(Generic[S]):
    """The uses in the function analysed last. `count` is the number of records that are not consumed yet."""

    __slots__ = (
        "_ir",
        "_limit",
        "_order",
        "_register_arguments",
        "_rows",
        "calls",
        "count",
        "heads",
        "hints",
        "records",
    )

    def __init__(self, ir: Ir[Allocator], order: BlockOrder[S], scratch: S, register_arguments: int) -> None:
        self._ir: Final = ir
        self._order: Final = order
        self._register_arguments: Final[i64] = register_arguments
        self._limit: i64 = 0
        self.count: i64 = 0
        self.heads: Vec[S] = Vec(scratch, "q")
        self.hints: Vec[S] = Vec(scratch, "i")
        self.records: Vec[S] = Vec(scratch, "q")
        self.calls: Vec[S] = Vec(scratch, "q")
        self._rows: Vec[S] = Vec(scratch, "I")

    def prepare(self) -> None:
        """Take the memory for the values of the program."""
        self.heads.fill(0, self._ir.value_count)
        self.hints.fill(0, self._ir.value_count)

    def analyse(self, function: int) -> None:
        """Find the uses of a function whose blocks have been ordered."""
        ir = self._ir
        ops = ir.op
        nexts = ir.next
        left = ir.a
        right = ir.b
        heads = self.heads.items
        hints = self.hints.items
        rows = self._rows
        items = rows.items
        blocks = self._order.blocks.items
        ranks = self._order.ranks.items
        self.count = 0
        for place in range(len(self._order.blocks) - 1, -1, -1):
            block: int = blocks[place]
            rank: i64 = ranks[block]
            self.calls.append(0)
            row: int = ir.block_first[block]
            count = 0
            while row:
                if count == len(rows):
                    rows.fill(0, max(count, _FIRST_ROWS))
                    items = rows.items
                items[count] = row
                count += 1
                row = nexts[row]
            self._scan_terminator(items[count - 1], rank)
            for index in range(count - 2, -1, -1):
                row = items[index]
                opcode: i64 = ops[row]
                if opcode <= op.CONST_STR:
                    continue
                if opcode < op.CALL:
                    if heads[row] == 0 and EFFECTS[opcode] != op.TRAPS:
                        continue
                    if opcode <= op.SNE:
                        self._use(right[row], rank)
                    operand: int = left[row]
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
        heads = self.heads.items
        later: i64 = heads[value]
        self.records.items[number] = later
        greatest = later >> RANK_SHIFT
        if greatest < rank:
            greatest = rank
        heads[value] = greatest << RANK_SHIFT | number
        self.count = number

    def _grow(self) -> None:
        self.records.fill(0, max(len(self.records), _FIRST_RECORDS))
        self._limit = len(self.records)

    def _scan_arguments(self, row: int, rank: i64) -> None:
        """The uses of a call, a host call or a tail call."""
        pool = self._ir.pool.items
        hints = self.hints.items
        arguments: int = self._ir.b[row]
        count: int = pool[arguments]
        self.calls.append(row << 32 | self.count)
        for index in range(count - 1, -1, -1):
            value: int = pool[arguments + 1 + index]
            self._use(value, rank)
            if index < self._register_arguments:
                hints[value] = index + 1

    def _scan_terminator(self, row: int, rank: i64) -> None:
        ir = self._ir
        opcode: int = ir.op[row]
        if opcode == op.RET:
            value: int = ir.a[row]
            if value:
                self._use(value, rank)
                self.hints.items[value] = 1
        elif opcode == op.TAIL:
            self._scan_arguments(row, rank)
        elif opcode == op.SWITCH:
            pool = ir.pool.items
            cases: int = ir.b[row]
            for cell in range(cases + pool[cases], cases, -2):
                self._scan_edge(pool[cell], rank)
            self._use(ir.a[row], rank)
        else:
            if opcode != op.JUMP:
                self._scan_edge(ir.d[row], rank)
            self._scan_edge(ir.c[row], rank)
            if opcode in (op.BRANCH, op.BRANCH_CMP, op.BRANCH_CMP_IMM):
                if opcode == op.BRANCH_CMP:
                    self._use(ir.b[row], rank)
                self._use(ir.a[row], rank)

    def _scan_edge(self, edge: int, rank: i64) -> None:
        """The uses of the arguments of an edge, as far as the parameters are used."""
        ir = self._ir
        pool = ir.pool.items
        words: int = pool[edge]
        if words == 1:
            return
        hints = self.hints.items
        parameters: int = ir.block_params[pool[edge + 1]]
        for index in range(words - 1, 0, -1):
            parameter: int = pool[parameters + index]
            if self.heads.items[parameter]:
                value: int = pool[edge + 1 + index]
                self._use(value, rank)
                hint: int = hints[parameter]
                hints[value] = hint if hint > 0 else -parameter

    def consume(self, value: i64) -> i64:
        """Take off the use that comes next in emission order, which is of `value`; what remains of its head."""
        number = self.count
        head: i64 = self.records.items[number]
        self.heads.items[value] = head
        self.count = number - 1
        return head

    def close(self) -> None:
        self._rows.close()
        self.calls.close()
        self.records.close()
        self.hints.close()
        self.heads.close()
