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
return becomes a jump to a new block, and that has what followed the call, with the result as its parameter.

Instructions keep their positions, so a trap is reported where it is; but a backtrace does not name what was inlined.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Vec
from garden.ir.ir import CALL, EDGE, JUMP, LOOKUP, NOP, OPS, PARAM, RET, SWITCH, TAIL, Ir
from garden.ir.operands import A_VALUE, B_VALUE, B_VALUES, OPERANDS, replace_uses, resolve

MAX_ROWS: Final = 20
MAX_BLOCKS: Final = 6
MAX_GROWTH: Final = 4

# How far the visit of a function is.
_OPEN: Final = 1
_CLOSED: Final = 2
_INLINABLE: Final = 3


def inline(ir: Ir[Allocator], scratch: Allocator) -> int:
    """Inline calls of small functions; return how many."""
    inliner = _Inliner(ir, scratch)
    try:
        return inliner.run()
    finally:
        inliner.close()


@mypyc_attr(native_class=True)
class _Inliner:
    """How far each function is, and what the rows of the body at hand have become."""

    __slots__ = ("_blocks", "_copies", "_pending", "_replacement", "_state", "_words", "ir")

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self.ir: Final = ir
        self._state: Vec[Allocator] = Vec(scratch, "B")  # by function
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
        self._state.close()

    def run(self) -> int:
        ir = self.ir
        entry = ir.function_count - 1
        self._state.fill(0, ir.function_count)
        # Nothing is inlined into `entry`, nor is it called.
        self._state.data[entry] = _CLOSED
        self._extend(self._replacement, ir.value_count)
        count = 0
        for root in range(1, entry):
            self._pending.append(root)
            while len(self._pending):
                function: int = self._pending.pop()
                if function < 0:
                    count += self._visit(-function)
                elif self._state.data[function] == 0:
                    self._state.data[function] = _OPEN
                    self._pending.append(-function)
                    self._push_callees(function)
        if count:
            self._extend(self._replacement, ir.value_count)
            replace_uses(ir, self._replacement.data)
        return count

    def _extend(self, by_row: Vec[Allocator], length: int) -> None:
        """Have an item for each row; for some that are yet to come too, since this is asked for every row."""
        if len(by_row) < length:
            by_row.fill(0, 2 * length - len(by_row))

    def _push_callees(self, function: int) -> None:
        ir = self.ir
        block: int = ir.function_first[function]
        while block:
            inst: int = ir.block_first[block]
            while inst:
                if ir.op[inst] in (CALL, TAIL) and self._state.data[ir.a[inst]] == 0:
                    self._pending.append(ir.a[inst])
                inst = ir.next[inst]
            block = ir.block_next[block]

    def _visit(self, function: int) -> int:
        """Inline into a function whose callees have been visited; find out whether it can be inlined itself."""
        ir = self.ir
        budget = (MAX_GROWTH - 1) * self._rows(function)
        count = 0
        block: int = ir.function_first[function]
        while block:
            before = 0
            inst: int = ir.block_first[block]
            while inst:
                after: int = ir.next[inst]
                if ir.op[inst] == CALL and self._state.data[ir.a[inst]] == _INLINABLE:
                    callee: int = ir.a[inst]
                    rows = self._rows(callee)
                    if rows <= budget:
                        budget -= rows
                        count += 1
                        if ir.block_next[ir.function_first[callee]] == 0:
                            before = self._splice(block, before, inst)
                        else:
                            # What follows the call is in a block of its own now.
                            block = self._split(block, before, inst)
                            before = 0
                        inst = after
                        continue
                before = inst
                inst = after
            block = ir.block_next[block]
        self._state.data[function] = _INLINABLE if self._is_inlinable(function) else _CLOSED
        return count

    def _rows(self, function: int) -> int:
        ir = self.ir
        rows = 0
        block: int = ir.function_first[function]
        while block:
            inst: int = ir.block_first[block]
            while inst:
                rows += 1
                inst = ir.next[inst]
            block = ir.block_next[block]
        return rows

    def _is_inlinable(self, function: int) -> bool:
        ir = self.ir
        rows = 0
        blocks = 0
        block: int = ir.function_first[function]
        while block:
            blocks += 1
            inst: int = ir.block_first[block]
            while inst:
                rows += 1
                op: int = ir.op[inst]
                if rows > MAX_ROWS or blocks > MAX_BLOCKS or op in (TAIL, SWITCH, LOOKUP):
                    return False
                if op == CALL and self._state.data[ir.a[inst]] == _OPEN:
                    return False
                inst = ir.next[inst]
            block = ir.block_next[block]
        return True

    # Copying a body.

    def _splice(self, block: int, before: int, call: int) -> int:
        """Put the one block of a callee in place of a call; return the instruction before what follows the call."""
        ir = self.ir
        body: int = ir.function_first[ir.a[call]]
        self._bind_arguments(call, body)
        after: int = ir.next[call]
        ret: int = ir.block_last[body]
        inst: int = ir.block_first[body]
        while inst != ret:
            if ir.op[inst] != NOP:
                copy = self._copy(inst)
                self._copy_operands(inst, copy)
                self._link(block, before, copy)
                before = copy
            inst = ir.next[inst]
        self._link(block, before, after)
        self._replacement.data[call] = self._mapped(ir.a[ret]) if ir.type[call] else 0
        return before

    def _split(self, block: int, before: int, call: int) -> int:
        """Put the blocks of a callee in place of a call; return the new block with what follows the call."""
        ir = self.ir
        function: int = ir.block_function[block]
        callee: int = ir.a[call]
        body: int = ir.function_first[callee]
        self._bind_arguments(call, body)
        rest = self._add_block_after(block, function)
        ir.block_first[rest] = ir.next[call]
        ir.block_last[rest] = ir.block_last[block]
        if ir.type[call]:
            result = ir.add(PARAM, ir.type[call], 0, 0, 0, 0, 0, ir.pos[call])
            ir.block_params[rest] = ir.add_list([result])
            self._extend(self._replacement, ir.value_count)
            self._replacement.data[call] = result
        # The first block of the body continues the block of the call.
        self._link(block, before, 0)
        ir.block_last[block] = before
        self._extend(self._blocks, ir.block_count)
        self._blocks.data[body] = block
        last = block
        source: int = ir.block_next[body]
        while source:
            last = self._add_block_after(last, function)
            self._extend(self._blocks, ir.block_count)
            self._blocks.data[source] = last
            self._copy_parameters(source, last)
            source = ir.block_next[source]
        source = body
        while source:
            self._copy_rows(source)
            source = ir.block_next[source]
        source = body
        while source:
            self._fill_rows(source, rest, ir.type[call] != 0)
            source = ir.block_next[source]
        return rest

    def _bind_arguments(self, call: int, body: int) -> None:
        """Let the parameters of a body be the arguments of a call."""
        ir = self.ir
        pool = ir.pool.data
        self._extend(self._copies, ir.value_count)
        copies = self._copies.data
        parameters: int = ir.block_params[body]
        arguments: int = ir.b[call]
        for position in range(1, pool[parameters] + 1):
            copies[pool[parameters + position]] = pool[arguments + position]

    def _add_block_after(self, block: int, function: int) -> int:
        ir = self.ir
        added = ir.add_block(0)
        ir.block_function[added] = function
        ir.block_next[added] = ir.block_next[block]
        ir.block_next[block] = added
        if ir.function_last[function] == block:
            ir.function_last[function] = added
        return added

    def _link(self, block: int, before: int, inst: int) -> None:
        """Let an instruction follow another one, or be the first of a block."""
        if before:
            self.ir.next[before] = inst
        else:
            self.ir.block_first[block] = inst

    def _copy(self, inst: int) -> int:
        """A copy of a row, whose operands are still those of the body."""
        ir = self.ir
        copy = ir.add(
            ir.op[inst],
            ir.type[inst],
            ir.a[inst],
            ir.b[inst],
            ir.c[inst],
            ir.d[inst],
            ir.imm[inst],
            ir.pos[inst],
        )
        self._extend(self._copies, ir.value_count)
        self._extend(self._replacement, ir.value_count)
        self._copies.data[inst] = copy
        return copy

    def _copy_parameters(self, source: int, block: int) -> None:
        ir = self.ir
        parameters: int = ir.block_params[source]
        self._words.clear()
        for position in range(1, ir.pool.data[parameters] + 1):
            self._words.append(self._copy(ir.pool.data[parameters + position]))
        ir.block_params[block] = ir.add_words(self._words)

    def _copy_rows(self, source: int) -> None:
        """Append copies of the instructions of a block of the body to the block that it has become."""
        ir = self.ir
        inst: int = ir.block_first[source]
        while inst:
            copy = self._copy(inst)
            ir.append(self._blocks.data[source], copy)
            inst = ir.next[inst]

    def _fill_rows(self, source: int, rest: int, has_result: bool) -> None:
        """Give those copies the operands of the caller, and turn returns into jumps to `rest`."""
        ir = self.ir
        inst: int = ir.block_first[source]
        while inst:
            copy: int = self._copies.data[inst]
            if ir.op[inst] == RET:
                value = self._mapped(ir.a[inst])
                ir.op[copy] = JUMP
                ir.a[copy] = 0
                ir.c[copy] = ir.add_list([rest, value] if has_result else [rest])
            else:
                self._copy_operands(inst, copy)
            inst = ir.next[inst]

    def _mapped(self, value: int) -> int:
        """What a value of the body is in the caller. Calls in the body may have been replaced already."""
        mapped: int = self._copies.data[resolve(self._replacement.data, value)]
        return mapped

    def _copy_operands(self, inst: int, copy: int) -> None:
        ir = self.ir
        op: int = ir.op[inst]
        flags = OPERANDS[op]
        if flags & A_VALUE:
            ir.a[copy] = self._mapped(ir.a[inst])
        if flags & B_VALUE:
            ir.b[copy] = self._mapped(ir.b[inst])
        elif flags & B_VALUES:
            self._words.clear()
            for value in ir.list_at(ir.b[inst]):
                self._words.append(self._mapped(value))
            ir.b[copy] = ir.add_words(self._words)
        if OPS[op].c == EDGE:
            ir.c[copy] = self._copy_edge(ir.c[inst])
        if OPS[op].d == EDGE:
            ir.d[copy] = self._copy_edge(ir.d[inst])

    def _copy_edge(self, edge: int) -> int:
        ir = self.ir
        self._words.clear()
        self._words.append(self._blocks.data[ir.pool.data[edge + 1]])
        for value in ir.list_at(edge)[1:]:
            self._words.append(self._mapped(value))
        return ir.add_words(self._words)
