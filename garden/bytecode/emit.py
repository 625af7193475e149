"""Emitter: from the IR to bytecode, one function after the other, each in one forward pass over its blocks.

Before the pass stand the order of the blocks (`garden.ir.order`) and the backward scan for uses
(`garden.bytecode.liveness`); during it, values get their places (`places`, `regalloc`, `joins`). What is here is the
choice of instructions, jumps, tables, and where functions start.

Jumps lead forwards, except those of self tail calls, which lead to the start of the function. The jumps to a block that
is not emitted yet form a chain through their targets, and so do the calls of a function.

A branch falls through to the block that follows. Where its edges take code, that stands after the conditional jump, on
the way that needs it. A match on keys becomes a table, or a chain of comparisons where a table would be too sparse.

Costs: time and memory are linear in the size of the program. Scratch holds 17 bytes a value, 37 a block (49 if control
flow joins anywhere), and 8 a use in the largest function.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.bytecode import ops as bytecode
from garden.bytecode.assembler import Assembler
from garden.bytecode.code import Code
from garden.bytecode.constants import ConstantPool
from garden.bytecode.joins import Joins
from garden.bytecode.liveness import Liveness
from garden.bytecode.ops import REGISTERS, TABLE_COUNT, TABLE_DEFAULT, TABLE_SLOTS
from garden.bytecode.peephole import peephole
from garden.bytecode.places import Places, register_arguments
from garden.bytecode.regalloc import FEWEST_REGISTERS, RegisterAllocator
from garden.bytecode.selection import DIRECT, IN_ORDER, INVERSE_JUMPS, JUMPS, OF_REGISTERS, SWAPPED
from garden.common import MAX_IMM16, MIN_IMM16
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import EFFECTS
from garden.ir.order import BlockOrder
from garden.types.types import STR

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Emitter(Generic[A, S]):
    """Makes bytecode. `allocator` holds the code, `scratch` what is needed on the way.

    With `optimise`, jumps and moves are tidied up at the end. The code uses at most `registers` registers, at least
    4; the fewer, the more goes to the spill stack. A machine can call functions with arguments on the spill stack
    from outside only if the code is for `REGISTERS`.
    """

    __slots__ = ("_allocator", "_optimise", "_registers", "_scratch")

    def __init__(self, allocator: A, scratch: S, *, optimise: bool = True, registers: int = REGISTERS) -> None:
        if not FEWEST_REGISTERS <= registers <= REGISTERS:
            raise ValueError(f"the number of registers is from {FEWEST_REGISTERS} to {REGISTERS}, not {registers}")
        self._allocator: Final[A] = allocator
        self._scratch: Final[S] = scratch
        self._optimise: Final = optimise
        self._registers: Final = registers

    def emit(self, ir: Ir[Allocator]) -> Code[A]:
        """The code of a program, which does not need the IR any more.

        Raises `AllocError`, and then keeps nothing.
        """
        code = Code(self._allocator, ir.checked)
        try:
            emission = _Emission(ir, code, self._scratch, self._registers)
            try:
                emission.emit()
            finally:
                emission.close()
            if self._optimise:
                peephole(code, self._scratch)
        except BaseException:
            code.close()
            raise
        return code


@mypyc_attr(native_class=True)
class _Emission:
    """The emission of one program."""

    __slots__ = (
        "_assembler",
        "_blocks",
        "_code",
        "_constants",
        "_following",
        "_function",
        "_function_chains",
        "_function_pcs",
        "_ir",
        "_joins",
        "_liveness",
        "_ops",
        "_order",
        "_places",
        "_pool",
        "_registers",
        "_subjects",
        "_tables",
        "_unless",
        "_when",
    )

    def __init__(self, ir: Ir[Allocator], code: Code[Allocator], scratch: Allocator, registers: int) -> None:
        self._ir: Final = ir
        self._code: Final = code
        self._ops: Final = ir.op
        self._pool: Final = ir.pool.items
        self._function: i64 = 0
        self._following: i64 = 0  # the block that is emitted next
        # The jump of a branch where its condition holds, and where it does not, without the targets.
        self._when: i64 = 0
        self._unless: i64 = 0
        # By block: the last of the jumps that wait for it, or its pc once it is emitted; and the register that its own
        # branch compares.
        self._blocks: Vec[Allocator] = Vec(scratch, "I")
        self._subjects: Vec[Allocator] = Vec(scratch, "B")
        # By function: its pc, and the last of the calls that wait for it.
        self._function_pcs: Vec[Allocator] = Vec(scratch, "I")
        self._function_chains: Vec[Allocator] = Vec(scratch, "I")
        self._tables: Vec[Allocator] = Vec(scratch, "I")  # switch tables of the function, whose slots are still blocks
        arguments = register_arguments(registers)
        assembler: Assembler = Assembler(code)
        constants: ConstantPool = ConstantPool(code, scratch)
        order: BlockOrder = BlockOrder(ir, scratch)
        liveness: Liveness = Liveness(ir, order, scratch, arguments)
        places: Places = Places(ir, assembler, constants, liveness, scratch, registers)
        allocator: RegisterAllocator = RegisterAllocator(ir, places, liveness, scratch, arguments)
        self._assembler: Final[Assembler] = assembler
        self._constants: Final[ConstantPool] = constants
        self._order: Final[BlockOrder] = order
        self._liveness: Final[Liveness] = liveness
        self._places: Final[Places] = places
        self._registers: Final[RegisterAllocator] = allocator
        self._joins: Final[Joins] = Joins(ir, order, places, allocator, liveness, scratch)
        try:
            constants.prepare()
            order.prepare()
            liveness.prepare()
            places.prepare(ir.value_count)
            allocator.prepare()
            self._joins.prepare()
            for by_block in (self._blocks, self._subjects):
                by_block.fill_zero(ir.block_count)
            for by_function in (self._function_pcs, self._function_chains):
                by_function.fill_zero(ir.function_count)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._joins.close()
        self._registers.close()
        self._places.close()
        self._liveness.close()
        self._order.close()
        self._constants.close()
        self._tables.close()
        self._function_chains.close()
        self._function_pcs.close()
        self._subjects.close()
        self._blocks.close()

    def emit(self) -> None:
        assembler = self._assembler
        count = self._ir.function_count
        self._code.entry = assembler.pc
        assembler.emit(bytecode.CALL, 0, 0, 0, 0)
        assembler.emit(bytecode.HALT, 0, 0, 0, 0)
        for function in range(1, count):
            self._emit_function(function)
        assembler.set_target(self._code.entry, self._function_pcs.items[count - 1])
        assembler.finish()
        self._constants.finish()

    def _emit_function(self, function: i64) -> None:
        ir = self._ir
        assembler = self._assembler
        self._order.analyse(function)
        self._order.rank()
        self._liveness.analyse()
        self._function = function
        start = assembler.label()
        self._function_pcs.items[function] = start
        self._resolve(self._function_chains.items[function], start)
        self._joins.begin_function()
        self._registers.begin_function(ir.block_params[ir.function_first[function]])
        blocks = self._order.blocks.items
        last = len(self._order.blocks) - 1
        block: i64 = 0
        for index in range(last + 1):
            previous = block
            block = blocks[index]
            self._following = 0
            if index < last:
                self._following = blocks[index + 1]
            self._begin_block(block, previous)
            self._emit_block(block)
        # What the scan has found is used up exactly.
        assert self._liveness.count == 0
        assert len(self._liveness.calls) == 0
        self._fill_tables()
        self._registers.clobbers.items[function] = self._places.written
        self._code.functions.append(ir.function_name[function], start, assembler.pc, ir.function_parameters[function])

    def _resolve(self, chain: i64, target: i64) -> None:
        """Let all jumps or calls of a chain lead to `target`."""
        while chain:
            chain = self._assembler.set_target(chain, target)

    def _begin_block(self, block: i64, previous: i64) -> None:
        pc = self._assembler.label()
        self._resolve(self._blocks.items[block], pc)
        self._blocks.items[block] = pc
        register: i64 = -1
        number: i64 = 0
        if self._order.predecessors.items[block] == 1:
            # What the branch before has found out.
            ir = self._ir
            above: i64 = self._order.dominators.items[block]
            branch: i64 = ir.block_last[above]
            if self._ops[branch] == op.BRANCH_CMP_IMM:
                equal: i64 = 0
                comparison: i64 = ir.b[branch]
                if comparison == op.IEQ_IMM:
                    equal = ir.c[branch]
                elif comparison == op.INE_IMM:
                    equal = ir.d[branch]
                if equal and self._pool[equal + 1] == block:
                    register = self._subjects.items[above]
                    number = ir.imm[branch]
        self._places.know(register, number)
        self._joins.begin_block(block, previous)

    def _emit_block(self, block: i64) -> None:
        ir = self._ir
        ops = self._ops
        left = ir.a
        right = ir.b
        imms = ir.imm
        nexts = ir.next
        positions = ir.pos
        heads = self._liveness.heads.items
        registers = self._registers
        assembler = self._assembler
        row: i64 = ir.block_first[block]
        while True:
            opcode: i64 = ops[row]
            if opcode <= op.CONST_STR:
                row = nexts[row]
                continue
            assembler.position = positions[row]
            if opcode >= op.FIRST_TERMINATOR:
                break
            if opcode < op.CALL:
                head: i64 = heads[row]
                if head or EFFECTS[opcode] == op.TRAPS:
                    if opcode <= op.SNE:
                        first = registers.use_both(left[row], right[row])
                        second = registers.second
                        assembler.emit(DIRECT[opcode], registers.define(row, head), first, second, 0)
                    elif opcode == op.BOOL_TO_INT:
                        registers.copy(row, left[row])
                    else:
                        first = registers.use(left[row])
                        assembler.emit(DIRECT[opcode], registers.define(row, head), first, 0, imms[row])
            elif opcode <= op.SYS:
                self._emit_call(row, opcode)
            elif opcode == op.STORE:
                first = registers.use_both(left[row], right[row])
                assembler.emit(bytecode.STORE, registers.second, first, 0, imms[row])
            elif opcode == op.COPY:
                first = registers.use_both(left[row], right[row])
                assembler.emit(bytecode.COPY, registers.second, first, 0, imms[row])
            else:
                head = heads[row]
                if opcode == op.ALLOC:
                    assembler.emit(bytecode.ALLOC, registers.define(row, head), 0, 0, imms[row])
                elif head:
                    first = registers.use(left[row])
                    if opcode == op.LOOKUP:
                        self._emit_lookup(row, first, registers.define(row, head))
                    else:
                        assembler.emit(DIRECT[opcode], registers.define(row, head), first, 0, imms[row])
            row = nexts[row]
        self._emit_terminator(block, row, opcode)

    # Calls.

    def _emit_call(self, row: i64, opcode: i64) -> None:
        registers = self._registers
        callee: i64 = self._ir.a[row]
        arguments: i64 = self._ir.b[row]
        if opcode == op.SYS:
            count: i64 = self._pool[arguments]
            registers.pass_arguments(arguments, 1)
            self._assembler.emit(bytecode.SYS, count, 0, 0, callee)
        else:
            clobbered: i64 = registers.clobbers.items[callee]
            registers.pass_arguments(arguments, clobbered)
            # What a function changes by calling itself it changes anyway.
            if callee != self._function:
                self._places.written |= clobbered
            self._emit_to_function(bytecode.CALL, callee)
        registers.end_call(arguments, row)

    def _emit_to_function(self, opcode: i64, function: i64) -> None:
        """Emit a call, tail call or jump to the start of a function."""
        target: i64 = self._function_pcs.items[function]
        if target == 0:
            target = self._function_chains.items[function]
            self._function_chains.items[function] = self._assembler.pc
        self._assembler.emit(opcode, 0, 0, 0, target)

    def _emit_tail(self, callee: i64, arguments: i64) -> None:
        registers = self._registers
        registers.pass_to_tail(arguments)
        if callee == self._function:
            self._emit_to_function(bytecode.JMP, callee)
        else:
            self._places.written |= registers.clobbers.items[callee]
            self._emit_to_function(bytecode.TAIL, callee)

    # The ends of blocks.

    def _emit_terminator(self, block: i64, row: i64, opcode: i64) -> None:
        ir = self._ir
        if opcode == op.RET:
            self._registers.pass_result(ir.a[row])
            self._assembler.emit(bytecode.RET, 0, 0, 0, 0)
        elif opcode == op.TAIL:
            self._emit_tail(ir.a[row], ir.b[row])
        elif opcode == op.JUMP:
            self._consume_edge(ir.c[row])
            self._joins.end_block(block, False)
            self._go_on(ir.c[row])
        elif opcode == op.SWITCH:
            self._emit_switch(block, row)
        else:
            self._subjects.items[block] = self._emit_condition(row, opcode)
            self._consume_edge(ir.c[row])
            self._consume_edge(ir.d[row])
            self._joins.end_block(block, True)
            self._emit_branch(ir.c[row], ir.d[row])

    def _consume_edge(self, edge: i64) -> None:
        """Consume the arguments of an edge, as far as the parameters are used."""
        pool = self._pool
        words: i64 = pool[edge]
        if words == 1:
            return
        heads = self._liveness.heads.items
        parameters: i64 = self._ir.block_params[pool[edge + 1]]
        for index in range(1, words):
            if heads[pool[parameters + index]]:
                self._liveness.consume(pool[edge + 1 + index])

    def _jump(self, word: i64, block: i64) -> None:
        """Emit a jump, given without its target, to a block that comes later."""
        chain = self._blocks.items[block]
        self._blocks.items[block] = self._assembler.pc
        self._assembler.emit_word(chain << 32 | word)

    def _go_on(self, edge: i64) -> None:
        """Go along an edge: its code, and a jump unless the target follows."""
        if self._joins.plan_edge(edge):
            self._joins.emit_edge(edge)
        target: i64 = self._pool[edge + 1]
        if target != self._following:
            self._jump(bytecode.JMP, target)

    def _go_if_not(self, edge: i64) -> None:
        """Go along an edge with code where the condition does not hold, after a jump over that code."""
        assembler = self._assembler
        over = assembler.pc
        assembler.emit_word(self._when)
        self._joins.emit_edge(edge)
        self._jump(bytecode.JMP, self._pool[edge + 1])
        assembler.set_target(over, assembler.label())

    def _emit_branch(self, yes: i64, no: i64) -> None:
        pool = self._pool
        yes_takes_code = self._joins.plan_edge(yes)
        no_takes_code = self._joins.plan_edge(no)
        if yes_takes_code and no_takes_code:
            self._go_if_not(no)
            self._go_on(yes)
        elif yes_takes_code or (not no_takes_code and pool[yes + 1] == self._following):
            self._jump(self._unless, pool[no + 1])
            self._go_on(yes)
        else:
            self._jump(self._when, pool[yes + 1])
            self._go_on(no)

    def _emit_condition(self, row: i64, opcode: i64) -> i64:
        """Find the jumps of a branch, bring its operands into registers, and return the first of these."""
        ir = self._ir
        registers = self._registers
        if opcode == op.BRANCH:
            first = registers.use(ir.a[row])
            self._when = first << 8 | bytecode.JMPT
            self._unless = first << 8 | bytecode.JMPF
        elif opcode == op.BRANCH_CMP:
            first = registers.use_both(ir.a[row], ir.b[row])
            self._set_jumps(ir.imm[row], first, registers.second)
        else:
            first = registers.use(ir.a[row])
            self._compare(ir.b[row], first, ir.imm[row])
        return first

    def _set_jumps(self, comparison: i64, left: i64, right: i64) -> None:
        """Find the jumps for a comparison of two registers."""
        self._when = right << 16 | left << 8 | JUMPS[comparison]
        if SWAPPED[comparison]:
            left, right = right, left
        self._unless = right << 16 | left << 8 | INVERSE_JUMPS[comparison]

    def _compare(self, comparison: i64, register: i64, number: i64) -> None:
        """Find the jumps for a comparison of a register with a number."""
        if MIN_IMM16 <= number <= MAX_IMM16:
            fields = (number & 0xFFFF) << 16 | register << 8
            self._when = fields | JUMPS[comparison]
            self._unless = fields | INVERSE_JUMPS[comparison]
            return
        scratch = self._places.scratch
        self._places.load_word(scratch, number)
        if IN_ORDER[comparison]:
            self._set_jumps(OF_REGISTERS[comparison], register, scratch)
        else:
            self._set_jumps(OF_REGISTERS[comparison], scratch, register)

    # Tables.

    def _key_range(self, cases: i64, is_str: bool) -> tuple[i64, i64]:
        """The smallest and the greatest key of a switch or lookup list; (0, -1) if there is none."""
        pool = self._pool
        constants = self._constants
        if pool[cases] == 1:
            return 0, -1
        first = constants.table_word(pool[cases + 2], is_str)
        last = first
        for cell in range(cases + 4, cases + pool[cases], 2):
            key = constants.table_word(pool[cell], is_str)
            if key < first:
                first = key
            elif key > last:
                last = key
        return first, last

    def _compare_key(self, subject: i64, key: i64, is_str: bool) -> None:
        """Find the jumps for a comparison of a register with a key."""
        if is_str:
            scratch = self._places.scratch
            self._places.load_string(scratch, key)
            self._set_jumps(op.SEQ, subject, scratch)
        else:
            self._compare(op.IEQ_IMM, subject, key)

    def _emit_switch(self, block: i64, row: i64) -> None:
        ir = self._ir
        pool = self._pool
        constants = self._constants
        cases: i64 = ir.b[row]
        end: i64 = cases + 1 + pool[cases]
        is_str: bool = ir.type[ir.a[row]] == STR
        subject = self._registers.use(ir.a[row])
        for cell in range(cases + 1, end, 2):
            self._consume_edge(pool[cell])
        self._joins.end_block(block, True)
        first, last = self._key_range(cases, is_str)
        if constants.worth_a_table(first, last, pool[cases] // 2):
            switch = self._assembler.pc
            self._assembler.emit(bytecode.SWITCH, subject, 0, 0, 0)
            table = constants.add_table(first, last, self._emit_arm(pool[cases + 1]), is_str, False)
            self._assembler.set_target(switch, table)
            self._tables.append_i64(table)
            for cell in range(cases + 2, end, 2):
                slot = constants.table_word(pool[cell], is_str) - first
                constants.set_slot(table, slot, self._emit_arm(pool[cell + 1]))
            return
        for cell in range(cases + 2, end, 2):
            edge: i64 = pool[cell + 1]
            takes_code = self._joins.plan_edge(edge)
            self._compare_key(subject, pool[cell], is_str)
            if takes_code:
                self._when, self._unless = self._unless, self._when
                self._go_if_not(edge)
            else:
                self._jump(self._when, pool[edge + 1])
        self._go_on(pool[cases + 1])

    def _emit_arm(self, edge: i64) -> i64:
        """Where a table leads for an edge: the negative of a block, or the pc of the code that the edge takes."""
        target: i64 = self._pool[edge + 1]
        if not self._joins.plan_edge(edge):
            return -target
        pc = self._assembler.label()
        self._joins.emit_edge(edge)
        self._jump(bytecode.JMP, target)
        return pc

    def _fill_tables(self) -> None:
        """Now that all blocks of the function have a pc, put them into its switch tables."""
        constants = self._code.constants.items
        pcs = self._blocks.items
        tables = self._tables.items
        for index in range(len(self._tables)):
            table = tables[index]
            for place in range(table + TABLE_DEFAULT, table + TABLE_SLOTS + constants[table + TABLE_COUNT]):
                target = constants[place]
                if target < 0:
                    constants[place] = pcs[-target]
        self._tables.clear()

    def _emit_lookup(self, row: i64, subject: i64, result: i64) -> None:
        ir = self._ir
        pool = self._pool
        assembler = self._assembler
        constants = self._constants
        cases: i64 = ir.b[row]
        is_str: bool = ir.type[ir.a[row]] == STR
        gives_str: bool = ir.type[row] == STR
        first, last = self._key_range(cases, is_str)
        if constants.worth_a_table(first, last, pool[cases] // 2):
            default = constants.table_word(pool[cases + 1], gives_str)
            table = constants.add_table(first, last, default, is_str, gives_str)
            for cell in range(cases + 2, cases + pool[cases], 2):
                slot = constants.table_word(pool[cell], is_str) - first
                constants.set_slot(table, slot, constants.table_word(pool[cell + 1], gives_str))
            assembler.emit(bytecode.LOOKUP, result, subject, 0, table)
            return
        ends: i64 = 0
        for cell in range(cases + 2, cases + pool[cases], 2):
            self._compare_key(subject, pool[cell], is_str)
            over = assembler.pc
            assembler.emit_word(self._unless)
            self._load_case(result, pool[cell + 1], gives_str)
            end = assembler.pc
            assembler.emit(bytecode.JMP, 0, 0, 0, ends)
            ends = end
            assembler.set_target(over, assembler.label())
        self._load_case(result, pool[cases + 1], gives_str)
        self._resolve(ends, assembler.label())

    def _load_case(self, register: i64, value: i64, is_str: bool) -> None:
        if is_str:
            self._places.load_string(register, value)
        else:
            self._places.load_word(register, value)
