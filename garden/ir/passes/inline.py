"""inline: the body of a small function takes the place of a call.

    fn f1(%v0) -> Int {
        b0(%v0:Int):
            %v1:Int = IMul %v0, %v0
            ret %v1
    }
        %v1:Int = Call f1(%v0)   =>  %v1:Int = IMul %v0, %v0

Functions are visited callees first, so what is inlined has had its own calls inlined. A function is inlined if it has
at most `MAX_ROWS` instructions and `MAX_BLOCKS` blocks and calls no function whose visit is still going on, itself
above all: so no cycle of calls is unrolled. A caller grows to at most `MAX_GROWTH` times its size. Nothing is inlined
into `entry`, which runs once.

A body of one block goes where the call was. Of a longer one the first block continues the block of the call, each
return becomes a jump to a new block, and that has what followed the call. The row of the call becomes its parameter,
so that what uses the result need not change.

Instructions keep their positions, so a trap is reported where it is; but a backtrace does not name what was inlined.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.ir import ir as op
from garden.ir.blocks import link
from garden.ir.ir import Ir
from garden.ir.operands import A_VALUE, B_VALUE, B_VALUES, EDGES, OPERANDS, replace_uses_in
from garden.ir.passes.counts import Counts

MAX_ROWS: Final = 20
MAX_BLOCKS: Final = 6
MAX_GROWTH: Final = 4

# How far the visit of a function is.
_OPEN: Final = 1
_CLOSED: Final = 2
_INLINABLE: Final = 3


def inline(ir: Ir[Allocator], counts: Counts) -> i64:
    """Inline calls of small functions; return how many."""
    inliner = _Inliner(ir, counts.scratch)
    try:
        count = inliner.run()
    finally:
        inliner.close()
    if count:
        counts.forget_uses()
        counts.forget_predecessors()
    return count


@mypyc_attr(native_class=True)
class _Inliner:
    """How far each function is, and what the rows of the current body become."""

    __slots__ = ("_blocks", "_copies", "_pending", "_replacement", "_rows", "_state", "_words", "ir")

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self.ir: Final = ir
        self._state: Vec[Allocator] = Vec(scratch, "B")  # by function
        # By function: number of instructions, those of calls inlined in it included if it is inlinable itself.
        self._rows: Vec[Allocator] = Vec(scratch, "I")
        self._pending: Vec[Allocator] = Vec(scratch, "i")
        self._copies: Vec[Allocator] = Vec(scratch, "I")  # by value of a body: what it is in the caller
        self._blocks: Vec[Allocator] = Vec(scratch, "I")  # the same by block
        self._replacement: Vec[Allocator] = Vec(scratch, "I")  # by call: the value that it gives now
        self._words: Vec[Allocator] = Vec(scratch, "q")

    def close(self) -> None:
        self._words.close()
        self._replacement.close()
        self._blocks.close()
        self._copies.close()
        self._pending.close()
        self._rows.close()
        self._state.close()

    def run(self) -> i64:
        ir = self.ir
        entry = ir.function_count - 1
        self._state.fill(0, ir.function_count)
        self._rows.fill(0, ir.function_count)
        # `entry` is not called, and nothing is inlined into it.
        self._state.items[entry] = _CLOSED
        count = 0
        for root in range(1, entry):
            self._pending.append_i64(root)
            while len(self._pending):
                function: i64 = self._pending.pop_i64()
                if function < 0:
                    count += self._visit(-function)
                elif self._state.items[function] == 0:
                    self._state.items[function] = _OPEN
                    self._pending.append_i64(-function)
                    self._push_callees(function)
        return count

    def _extend(self, by_row: Vec[Allocator], length: i64) -> None:
        """Have an item for each row; for some that are yet to come too, since this is asked for every body."""
        if len(by_row) < length:
            by_row.fill(0, 2 * length - len(by_row))

    def _push_callees(self, function: i64) -> None:
        ir = self.ir
        rows = 0
        block: i64 = ir.function_first[function]
        while block:
            inst: i64 = ir.block_first[block]
            while inst:
                rows += 1
                if ir.op[inst] in (op.CALL, op.TAIL) and self._state.items[ir.a[inst]] == 0:
                    self._pending.append_i64(ir.a[inst])
                inst = ir.next[inst]
            block = ir.block_next[block]
        self._rows.items[function] = rows

    def _visit(self, function: i64) -> i64:
        """Inline into a function whose callees have been visited; find out whether it can be inlined itself."""
        ir = self.ir
        rows = self._rows.items
        budget: i64 = (MAX_GROWTH - 1) * rows[function]
        count = 0
        replaced = False
        block: i64 = ir.function_first[function]
        while block:
            before = 0
            inst: i64 = ir.block_first[block]
            while inst:
                after: i64 = ir.next[inst]
                if ir.op[inst] == op.CALL and self._state.items[ir.a[inst]] == _INLINABLE:
                    callee: i64 = ir.a[inst]
                    if rows[callee] <= budget:
                        budget -= rows[callee]
                        count += 1
                        if ir.block_next[ir.function_first[callee]] == 0:
                            before = self._splice(block, before, inst)
                            replaced = True
                        else:
                            # What follows the call is in its own block now.
                            block = self._split(block, before, inst)
                            before = 0
                        inst = after
                        continue
                before = inst
                inst = after
            block = ir.block_next[block]
        if replaced:
            self._extend(self._replacement, ir.value_count)
            replace_uses_in(ir, function, self._replacement.items)
        self._state.items[function] = _INLINABLE if self._is_inlinable(function) else _CLOSED
        return count

    def _is_inlinable(self, function: i64) -> bool:
        ir = self.ir
        rows = 0
        blocks = 0
        block: i64 = ir.function_first[function]
        while block:
            blocks += 1
            inst: i64 = ir.block_first[block]
            while inst:
                rows += 1
                opcode: i64 = ir.op[inst]
                if rows > MAX_ROWS or blocks > MAX_BLOCKS or opcode in (op.TAIL, op.SWITCH, op.LOOKUP):
                    return False
                if opcode == op.CALL and self._state.items[ir.a[inst]] == _OPEN:
                    return False
                inst = ir.next[inst]
            block = ir.block_next[block]
        self._rows.items[function] = rows
        return True

    # Copying a body.

    def _splice(self, block: i64, before: i64, call: i64) -> i64:
        """Put the one block of a callee in place of a call; return the instruction before what follows the call."""
        ir = self.ir
        body: i64 = ir.function_first[ir.a[call]]
        self._bind_arguments(call, body)
        after: i64 = ir.next[call]
        ret: i64 = ir.block_last[body]
        inst: i64 = ir.block_first[body]
        while inst != ret:
            if ir.op[inst] != op.NOP:
                copy = self._copy(inst)
                self._copies.items[inst] = copy
                link(ir, block, before, copy)
                before = copy
            inst = ir.next[inst]
        link(ir, block, before, after)
        if ir.type[call]:
            self._extend(self._replacement, ir.value_count)
            self._replacement.items[call] = self._copies.items[ir.a[ret]]
        return before

    def _split(self, block: i64, before: i64, call: i64) -> i64:
        """Put the blocks of a callee in place of a call; return the new block with what follows the call."""
        ir = self.ir
        function: i64 = ir.block_function[block]
        body: i64 = ir.function_first[ir.a[call]]
        self._bind_arguments(call, body)
        rest = self._add_block_after(block, function)
        ir.block_first[rest] = ir.next[call]
        ir.block_last[rest] = ir.block_last[block]
        has_result: bool = ir.type[call] != 0
        if has_result:
            ir.op[call] = op.PARAM
            ir.a[call] = 0
            ir.b[call] = 0
            ir.next[call] = 0
            ir.block_params[rest] = ir.add_list([call])
        # The first block of the body continues the block of the call.
        link(ir, block, before, 0)
        ir.block_last[block] = before
        self._number_rows(body)
        self._extend(self._blocks, ir.block_count)
        self._blocks.items[body] = block
        last = block
        source: i64 = ir.block_next[body]
        while source:
            last = self._add_block_after(last, function)
            self._blocks.items[source] = last
            source = ir.block_next[source]
        source = body
        while source:
            self._copy_block(source, rest, has_result, source != body)
            source = ir.block_next[source]
        return rest

    def _bind_arguments(self, call: i64, body: i64) -> None:
        """Let the parameters of a body be the arguments of a call."""
        ir = self.ir
        pool = ir.pool.items
        self._extend(self._copies, ir.value_count)
        copies = self._copies.items
        parameters: i64 = ir.block_params[body]
        arguments: i64 = ir.b[call]
        for position in range(1, pool[parameters] + 1):
            copies[pool[parameters + position]] = pool[arguments + position]

    def _add_block_after(self, block: i64, function: i64) -> i64:
        ir = self.ir
        added = ir.add_block(0)
        ir.block_function[added] = function
        ir.block_next[added] = ir.block_next[block]
        ir.block_next[block] = added
        if ir.function_last[function] == block:
            ir.function_last[function] = added
        return added

    def _number_rows(self, body: i64) -> None:
        """Say which rows the copies will be: those that `_copy_block` adds for block after block, parameters first."""
        ir = self.ir
        copies = self._copies.items
        nexts = ir.next
        pool = ir.pool.items
        row = ir.value_count
        source = body
        while source:
            if source != body:
                parameters: i64 = ir.block_params[source]
                for cell in range(parameters + 1, parameters + 1 + pool[parameters]):
                    copies[pool[cell]] = row
                    row += 1
            inst: i64 = ir.block_first[source]
            while inst:
                copies[inst] = row
                row += 1
                inst = nexts[inst]
            source = ir.block_next[source]

    def _copy_block(self, source: i64, rest: i64, has_result: bool, has_parameters: bool) -> None:
        """Add a block of the body to the block that it becomes; returns become jumps to `rest`."""
        ir = self.ir
        block: i64 = self._blocks.items[source]
        if has_parameters:
            self._copy_parameters(source, block)
        link(ir, block, ir.block_last[block], ir.value_count)
        copy = 0
        inst: i64 = ir.block_first[source]
        while inst:
            if ir.op[inst] == op.RET:
                value: i64 = self._copies.items[ir.a[inst]]
                edge = ir.add_list([rest, value] if has_result else [rest])
                copy = ir.add(op.JUMP, 0, ir.pos[inst], c=edge)
            else:
                copy = self._copy(inst)
                ir.next[copy] = copy + 1
            inst = ir.next[inst]
        ir.next[copy] = 0
        ir.block_last[block] = copy

    def _copy_parameters(self, source: i64, block: i64) -> None:
        ir = self.ir
        words = self._words
        words.clear()
        parameters: i64 = ir.block_params[source]
        for cell in range(parameters + 1, parameters + 1 + ir.pool.items[parameters]):
            parameter: i64 = ir.pool.items[cell]
            words.append_i64(ir.add(op.PARAM, ir.type[parameter], ir.pos[parameter]))
        ir.block_params[block] = ir.add_words(words)

    def _copy(self, inst: i64) -> i64:
        """A copy of an instruction, with the operands that it has in the caller; it stands in no block yet."""
        ir = self.ir
        copies = self._copies.items
        opcode: i64 = ir.op[inst]
        flags = OPERANDS[opcode]
        a: i64 = ir.a[inst]
        b: i64 = ir.b[inst]
        c = 0
        d = 0
        if flags & A_VALUE:
            a = copies[a]
        if flags & B_VALUE:
            b = copies[b]
        elif flags & B_VALUES:
            self._words.clear()
            b = self._copy_values(b + 1, b + 1 + ir.pool.items[b])
        if flags & EDGES:
            c = self._copy_edge(ir.c[inst])
            if opcode != op.JUMP:
                d = self._copy_edge(ir.d[inst])
        return ir.add(opcode, ir.type[inst], ir.pos[inst], a=a, b=b, c=c, d=d, imm=ir.imm[inst])

    def _copy_edge(self, edge: i64) -> i64:
        pool = self.ir.pool.items
        self._words.clear()
        self._words.append_i64(self._blocks.items[pool[edge + 1]])
        return self._copy_values(edge + 2, edge + 1 + pool[edge])

    def _copy_values(self, start: i64, end: i64) -> i64:
        """A list of what is in `_words`, and of the values in some cells of the pool, as they are in the caller."""
        pool = self.ir.pool.items
        copies = self._copies.items
        for cell in range(start, end):
            self._words.append_i64(copies[pool[cell]])
        return self.ir.add_words(self._words)
