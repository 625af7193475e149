"""Emitter: from the IR to bytecode, one function after the other, each in one forward pass over its blocks.

Before the pass stand the order of the blocks (`garden.bytecode.order`) and the backward scan for uses
(`garden.bytecode.liveness`); during it, registers are allocated (`garden.bytecode.regalloc`). What is here is the
choice of instructions, jumps, tables, and where functions start.

Jumps lead forwards, except those of self tail calls, which lead to the start of the function. The jumps to a block that
is not emitted yet form a chain through their targets, and so do the calls of a function.

A branch falls through to the block that follows. Where its edges take code, that stands behind the conditional jump, on
the way that needs it. A match on keys becomes a table, or a chain of comparisons where a table would be too sparse.

Costs: time and memory are linear in the size of the program; 10 bytes of scratch a value, 60 a block, and 8 a use in
the largest function.
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
from garden.bytecode.liveness import Liveness
from garden.bytecode.ops import REGISTERS, TABLE_COUNT, TABLE_DEFAULT, TABLE_SLOTS
from garden.bytecode.order import BlockOrder
from garden.bytecode.peephole import peephole
from garden.bytecode.regalloc import ALL_REGISTERS, FEWEST_REGISTERS, RegisterAllocator, register_arguments
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.ir.operands import EFFECTS
from garden.types.types import STR

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

_MIN_IMM16: Final = -(1 << 15)
_MAX_IMM16: Final = (1 << 15) - 1
#: A host call counts its arguments in 8 bits.
_MOST_HOST_ARGUMENTS: Final = 255


def _by_opcode(pairs: dict[int, int]) -> bytes:
    return bytes([pairs.get(opcode, 0) for opcode in range(max(op.OPS) + 1)])


#: The bytecode instruction of an IR instruction that has the same operands, 0 where there is none.
_DIRECT: Final = _by_opcode(
    {
        op.IADD: bytecode.IADD,
        op.ISUB: bytecode.ISUB,
        op.IMUL: bytecode.IMUL,
        op.IDIV: bytecode.IDIV,
        op.IMOD: bytecode.IMOD,
        op.ILT: bytecode.ILT,
        op.ILE: bytecode.ILE,
        op.IEQ: bytecode.IEQ,
        op.INE: bytecode.INE,
        op.DADD: bytecode.DADD,
        op.DSUB: bytecode.DSUB,
        op.DMUL: bytecode.DMUL,
        op.DDIV: bytecode.DDIV,
        op.DLT: bytecode.DLT,
        op.DLE: bytecode.DLE,
        op.SEQ: bytecode.IEQ,
        op.SNE: bytecode.INE,
        op.INEG: bytecode.INEG,
        op.DNEG: bytecode.DNEG,
        op.IADD_IMM: bytecode.IADD_IMM,
        op.ISUB_IMM: bytecode.ISUB_IMM,
        op.IMUL_IMM: bytecode.IMUL_IMM,
        op.IDIV_IMM: bytecode.IDIV_IMM,
        op.IMOD_IMM: bytecode.IMOD_IMM,
        op.ILT_IMM: bytecode.ILT_IMM,
        op.IGT_IMM: bytecode.IGT_IMM,
        op.IEQ_IMM: bytecode.IEQ_IMM,
        op.INE_IMM: bytecode.INE_IMM,
        op.INT_TO_DOUBLE: bytecode.CAST_TO_DOUBLE,
        op.DOUBLE_TO_INT: bytecode.CAST_TO_INT,
        op.INT_TO_BOOL: bytecode.CAST_TO_BOOL,
        op.LOAD: bytecode.LOAD,
        op.ADDROF: bytecode.ADDROF,
    }
)
#: By comparison: the jump where it holds, and the jump where it does not; of that, whether operands are swapped.
_JUMPS: Final = _by_opcode(
    {
        op.ILT: bytecode.JMPLT,
        op.ILE: bytecode.JMPLE,
        op.IEQ: bytecode.JMPEQ,
        op.INE: bytecode.JMPNE,
        op.SEQ: bytecode.JMPEQ,
        op.SNE: bytecode.JMPNE,
        op.DLT: bytecode.JMPDLT,
        op.DLE: bytecode.JMPDLE,
        op.ILT_IMM: bytecode.JMPLT_IMM,
        op.IGT_IMM: bytecode.JMPGT_IMM,
        op.IEQ_IMM: bytecode.JMPEQ_IMM,
        op.INE_IMM: bytecode.JMPNE_IMM,
    }
)
_INVERSE_JUMPS: Final = _by_opcode(
    {
        op.ILT: bytecode.JMPLE,
        op.ILE: bytecode.JMPLT,
        op.IEQ: bytecode.JMPNE,
        op.INE: bytecode.JMPEQ,
        op.SEQ: bytecode.JMPNE,
        op.SNE: bytecode.JMPEQ,
        op.DLT: bytecode.JMPDNLT,
        op.DLE: bytecode.JMPDNLE,
        op.ILT_IMM: bytecode.JMPGE_IMM,
        op.IGT_IMM: bytecode.JMPLE_IMM,
        op.IEQ_IMM: bytecode.JMPNE_IMM,
        op.INE_IMM: bytecode.JMPEQ_IMM,
    }
)
_SWAPPED: Final = _by_opcode({op.ILT: 1, op.ILE: 1})


@mypyc_attr(native_class=True)
class Emitter(Generic[A, S]):
    """Makes bytecode. `allocator` holds the code, `scratch` what is needed on the way.

    With `optimize`, jumps and moves are tidied up at the end. `registers` from 4 up to `REGISTERS` is for tests: with
    fewer of them, more goes to the spill stack. Only code for `REGISTERS` can be called from outside with more
    arguments than fit those.
    """

    __slots__ = ("_allocator", "_optimize", "_registers", "_scratch")

    def __init__(self, allocator: A, scratch: S, *, optimize: bool = True, registers: int = REGISTERS) -> None:
        if not FEWEST_REGISTERS <= registers <= REGISTERS:
            raise ValueError(f"the number of registers is from {FEWEST_REGISTERS} to {REGISTERS}, not {registers}")
        self._allocator: Final[A] = allocator
        self._scratch: Final[S] = scratch
        self._optimize: Final = optimize
        self._registers: Final = registers

    def emit(self, ir: Ir[Allocator]) -> Code[A]:
        """The code of a program, which does not need the IR any more.

        Raises `AllocError`, and then keeps nothing, or ValueError where control flow has a cycle or a host function
        more than 255 arguments.
        """
        code = Code(self._allocator, ir.checked)
        try:
            emission = _Emission(ir, code, self._scratch, self._registers)
            try:
                emission.emit()
            finally:
                emission.close()
            if self._optimize:
                peephole(code, self._scratch)
        except BaseException:
            code.close()
            raise
        return code


@mypyc_attr(native_class=True)
class _Emission(Generic[A, S]):
    """The emission of one program."""

    __slots__ = (
        "_assembler",
        "_block_chains",
        "_block_pcs",
        "_code",
        "_constants",
        "_following",
        "_function",
        "_function_chains",
        "_function_pcs",
        "_ir",
        "_liveness",
        "_ops",
        "_order",
        "_pool",
        "_registers",
        "_subjects",
        "_tables",
        "_unless",
        "_when",
    )

    def __init__(self, ir: Ir[Allocator], code: Code[A], scratch: S, registers: int) -> None:
        self._ir: Final = ir
        self._code: Final = code
        self._ops: Final = ir.op
        self._pool: Final = ir.pool.data
        self._function: i64 = 0
        self._following: i64 = 0  # the block that is emitted next
        self._when: i64 = 0  # the jump of a branch where its condition holds, without the target
        self._unless: i64 = 0  # and where it does not
        self._assembler: Assembler[A] = Assembler(code)
        # By block: its pc, and the last of the jumps that wait for it. By function the same.
        self._block_pcs: Vec[S] = Vec(scratch, "I")
        self._block_chains: Vec[S] = Vec(scratch, "I")
        self._function_pcs: Vec[S] = Vec(scratch, "I")
        self._function_chains: Vec[S] = Vec(scratch, "I")
        self._subjects: Vec[S] = Vec(scratch, "B")  # by block: the register that its branch has compared
        self._tables: Vec[S] = Vec(scratch, "I")  # switch tables of the function, whose slots are still blocks
        self._constants: ConstantPool[A, S] = ConstantPool(code, scratch)
        self._order: BlockOrder[S] = BlockOrder(ir, scratch)
        self._liveness: Liveness[S] = Liveness(ir, self._order, scratch, register_arguments(registers))
        self._registers: RegisterAllocator[A, S] = RegisterAllocator(
            ir, self._assembler, self._constants, self._order, self._liveness, scratch, registers
        )
        try:
            self._constants.prepare()
            self._order.prepare()
            self._liveness.prepare()
            self._registers.prepare()
            self._block_pcs.fill(0, ir.block_count)
            self._block_chains.fill(0, ir.block_count)
            self._subjects.fill(0, ir.block_count)
            self._function_pcs.fill(0, ir.function_count)
            self._function_chains.fill(0, ir.function_count)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._registers.close()
        self._liveness.close()
        self._order.close()
        self._constants.close()
        self._tables.close()
        self._subjects.close()
        self._function_chains.close()
        self._function_pcs.close()
        self._block_chains.close()
        self._block_pcs.close()

    def emit(self) -> None:
        ir = self._ir
        count = ir.function_count
        self._code.entry = self._assembler.pc
        self._assembler.emit(bytecode.CALL, 0, 0, 0, 0)
        self._assembler.emit(bytecode.HALT, 0, 0, 0, 0)
        for function in range(1, count):
            self._emit_function(function)
        self._assembler.set_target(self._code.entry, self._function_pcs.data[count - 1])
        self._assembler.finish()
        self._constants.finish()

    def _emit_function(self, function: int) -> None:
        ir = self._ir
        registers = self._registers
        assembler = self._assembler
        self._order.analyse(function)
        self._liveness.analyse(function)
        self._function = function
        start = assembler.label()
        self._function_pcs.data[function] = start
        self._resolve(self._function_chains.data[function], start)
        registers.begin_function(ir.block_params[ir.function_first[function]])
        blocks = self._order.blocks.data
        last = len(self._order.blocks) - 1
        block: int = 0
        for index in range(last + 1):
            previous = block
            block = blocks[index]
            self._following = blocks[index + 1] if index < last else 0
            self._begin_block(block, previous)
            self._emit_block(block)
        self._fill_tables()
        registers.clobbers.data[function] = registers.written
        self._code.functions.append(
            ir.function_name[function], start, assembler.pc, ir.function_parameters[function]
        )

    def _resolve(self, chain: i64, target: i64) -> None:
        """Let all jumps or calls of a chain lead to `target`."""
        while chain:
            chain = self._assembler.set_target(chain, target)

    def _begin_block(self, block: int, previous: int) -> None:
        pc = self._assembler.label()
        self._block_pcs.data[block] = pc
        self._resolve(self._block_chains.data[block], pc)
        known: i64 = -1
        number: i64 = 0
        if self._order.predecessors.data[block] == 1:
            # What the condition of the branch has found out.
            ir = self._ir
            above: int = self._order.dominators.data[block]
            branch: int = ir.block_last[above]
            if self._ops[branch] == op.BRANCH_CMP_IMM:
                equal: int = ir.c[branch] if ir.b[branch] == op.IEQ_IMM else 0
                if ir.b[branch] == op.INE_IMM:
                    equal = ir.d[branch]
                if equal and self._pool[equal + 1] == block:
                    known = self._subjects.data[above]
                    number = ir.imm[branch]
        self._registers.begin_block(block, previous, known, number)

    def _emit_block(self, block: int) -> None:
        ir = self._ir
        ops = self._ops
        left = ir.a
        right = ir.b
        imms = ir.imm
        nexts = ir.next
        positions = ir.pos
        heads = self._liveness.heads.data
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
                if heads[row] or EFFECTS[opcode] == op.TRAPS:
                    if opcode == op.BOOL_TO_INT:
                        registers.copy(row, left[row])
                    elif opcode <= op.SNE:
                        first = registers.use_both(left[row], right[row])
                        second = registers.second
                        assembler.emit(_DIRECT[opcode], registers.define(row), first, second, 0)
                    else:
                        first = registers.use(left[row])
                        assembler.emit(_DIRECT[opcode], registers.define(row), first, 0, imms[row])
            elif opcode == op.CALL:
                callee: int = left[row]
                clobbered: i64 = registers.clobbers.data[callee]
                registers.pass_arguments(right[row], clobbered)
                # What a function changes by calling itself it changes anyway.
                if callee != self._function:
                    registers.written |= clobbered
                self._emit_to_function(bytecode.CALL, callee)
                registers.end_call(right[row], row)
            elif opcode == op.SYS:
                arguments: int = right[row]
                count: i64 = self._pool[arguments]
                if count > _MOST_HOST_ARGUMENTS:
                    raise ValueError(f"a host function takes at most {_MOST_HOST_ARGUMENTS} arguments, not {count}")
                registers.pass_arguments(arguments, 1)
                assembler.emit(bytecode.SYS, count, 0, 0, left[row])
                registers.end_call(arguments, row)
            elif opcode == op.STORE:
                value = registers.use_both(left[row], right[row])
                assembler.emit(bytecode.STORE, registers.second, value, 0, imms[row])
            elif opcode == op.ALLOC:
                assembler.emit(bytecode.ALLOC, registers.define(row), 0, 0, imms[row])
            elif heads[row]:
                if opcode == op.LOOKUP:
                    self._emit_lookup(row)
                else:
                    first = registers.use(left[row])
                    assembler.emit(_DIRECT[opcode], registers.define(row), first, 0, imms[row])
            row = nexts[row]
        self._emit_terminator(block, row, opcode)

    def _emit_to_function(self, opcode: i64, function: int) -> None:
        """Emit a call, tail call or jump to the start of a function."""
        target: i64 = self._function_pcs.data[function]
        if target == 0:
            target = self._function_chains.data[function]
            self._function_chains.data[function] = self._assembler.pc
        self._assembler.emit(opcode, 0, 0, 0, target)

    # Terminators.

    def _emit_terminator(self, block: int, row: i64, opcode: i64) -> None:
        ir = self._ir
        registers = self._registers
        if opcode == op.RET:
            registers.pass_result(ir.a[row])
            self._assembler.emit(bytecode.RET, 0, 0, 0, 0)
        elif opcode == op.TAIL:
            callee: int = ir.a[row]
            registers.pass_to_tail(ir.b[row])
            if callee == self._function:
                self._emit_to_function(bytecode.JMP, callee)
            else:
                registers.written |= registers.clobbers.data[callee]
                self._emit_to_function(bytecode.TAIL, callee)
        elif opcode == op.JUMP:
            self._consume_edge(ir.c[row])
            registers.end_block(block, False)
            if registers.plan_edge(ir.c[row]):
                registers.emit_edge(ir.c[row])
            self._jump_on(ir.c[row])
        elif opcode == op.SWITCH:
            self._emit_switch(block, row)
        else:
            self._subjects.data[block] = self._emit_condition(row, opcode)
            self._consume_edge(ir.c[row])
            self._consume_edge(ir.d[row])
            registers.end_block(block, True)
            self._emit_branch(ir.c[row], ir.d[row])

    def _consume_edge(self, edge: int) -> None:
        """Consume the arguments of an edge, as far as the parameters are used."""
        pool = self._pool
        words: i64 = pool[edge]
        if words == 1:
            return
        heads = self._liveness.heads.data
        parameters: int = self._ir.block_params[pool[edge + 1]]
        for index in range(1, words):
            if heads[pool[parameters + index]]:
                self._liveness.consume(pool[edge + 1 + index])

    def _jump_to(self, word: i64, block: int) -> None:
        """Emit a jump, given without its target, to a block."""
        chain: i64 = self._block_chains.data[block]
        self._block_chains.data[block] = self._assembler.pc
        self._assembler.emit_word(chain << 32 | word)

    def _jump_on(self, edge: int) -> None:
        """Go on with the block that an edge leads to: by a jump unless it follows."""
        target: int = self._pool[edge + 1]
        if target != self._following:
            self._jump_to(bytecode.JMP, target)

    def _emit_condition(self, row: i64, opcode: i64) -> i64:
        """Find the jumps of a branch, bring its operands into registers, and return the first of these."""
        ir = self._ir
        registers = self._registers
        if opcode == op.BRANCH:
            first = registers.use(ir.a[row])
            self._when = first << 8 | bytecode.JMPT
            self._unless = first << 8 | bytecode.JMPF
            return first
        comparison: i64
        if opcode == op.BRANCH_CMP:
            comparison = ir.imm[row]
            first = registers.use_both(ir.a[row], ir.b[row])
            self._set_jumps(comparison, first, registers.second)
            return first
        comparison = ir.b[row]
        number: i64 = ir.imm[row]
        first = registers.use(ir.a[row])
        if _MIN_IMM16 <= number <= _MAX_IMM16:
            fields = (number & 0xFFFF) << 16 | first << 8
            self._when = fields | _JUMPS[comparison]
            self._unless = fields | _INVERSE_JUMPS[comparison]
            return first
        registers.load_word(registers.scratch, number)
        if comparison == op.IGT_IMM:
            self._set_jumps(op.ILT, registers.scratch, first)
        elif comparison == op.ILT_IMM:
            self._set_jumps(op.ILT, first, registers.scratch)
        elif comparison == op.IEQ_IMM:
            self._set_jumps(op.IEQ, first, registers.scratch)
        else:
            self._set_jumps(op.INE, first, registers.scratch)
        return first

    def _set_jumps(self, comparison: i64, left: i64, right: i64) -> None:
        self._when = right << 16 | left << 8 | _JUMPS[comparison]
        if _SWAPPED[comparison]:
            left, right = right, left
        self._unless = right << 16 | left << 8 | _INVERSE_JUMPS[comparison]

    def _emit_branch(self, yes: int, no: int) -> None:
        registers = self._registers
        pool = self._pool
        yes_takes_code = registers.plan_edge(yes)
        no_takes_code = registers.plan_edge(no)
        if not no_takes_code and (yes_takes_code or pool[yes + 1] == self._following):
            self._jump_to(self._unless, pool[no + 1])
            if yes_takes_code:
                registers.plan_edge(yes)
                registers.emit_edge(yes)
            self._jump_on(yes)
        elif not yes_takes_code:
            self._jump_to(self._when, pool[yes + 1])
            if no_takes_code:
                registers.emit_edge(no)
            self._jump_on(no)
        else:
            assembler = self._assembler
            jump = assembler.pc
            assembler.emit_word(self._unless)
            registers.plan_edge(yes)
            registers.emit_edge(yes)
            self._jump_to(bytecode.JMP, pool[yes + 1])
            assembler.set_target(jump, assembler.label())
            registers.plan_edge(no)
            registers.emit_edge(no)
            self._jump_on(no)

    # Tables.

    def _emit_switch(self, block: int, row: i64) -> None:
        ir = self._ir
        pool = self._pool
        assembler = self._assembler
        constants = self._constants
        registers = self._registers
        cases: int = ir.b[row]
        end: int = cases + 1 + pool[cases]
        is_str: bool = ir.type[ir.a[row]] == STR
        subject = registers.use(ir.a[row])
        for cell in range(cases + 1, end, 2):
            self._consume_edge(pool[cell])
        registers.end_block(block, True)
        first, last = self._key_range(cases, is_str)
        if not constants.worth_a_table(first, last, pool[cases] // 2):
            self._emit_comparisons(cases, subject, is_str)
            return
        switch = assembler.pc
        assembler.emit(bytecode.SWITCH, subject, 0, 0, 0)
        table = constants.add_table(first, last, self._emit_arm(pool[cases + 1]), is_str, False)
        assembler.set_target(switch, table)
        self._tables.append(table)
        for cell in range(cases + 2, end, 2):
            slot = constants.table_word(pool[cell], is_str) - first
            constants.set_slot(table, slot, self._emit_arm(pool[cell + 1]))

    def _emit_arm(self, edge: int) -> i64:
        """Where a table leads for an edge: the negative of a block, or the pc of the code that the edge takes."""
        registers = self._registers
        target: i64 = self._pool[edge + 1]
        if not registers.plan_edge(edge):
            return -target
        pc = self._assembler.label()
        registers.emit_edge(edge)
        self._jump_to(bytecode.JMP, target)
        return pc

    def _fill_tables(self) -> None:
        """Now that all blocks of the function have a pc, put them into its switch tables."""
        constants = self._code.constants.data
        pcs = self._block_pcs.data
        for table in self._tables.view:
            for place in range(table + TABLE_DEFAULT, table + TABLE_SLOTS + constants[table + TABLE_COUNT]):
                target: i64 = constants[place]
                if target < 0:
                    constants[place] = pcs[-target]
        self._tables.clear()

    def _emit_comparisons(self, cases: int, subject: i64, is_str: bool) -> None:
        """A switch as a chain of comparisons."""
        pool = self._pool
        assembler = self._assembler
        registers = self._registers
        for cell in range(cases + 2, cases + 1 + pool[cases], 2):
            edge: int = pool[cell + 1]
            takes_code = registers.plan_edge(edge)
            self._compare(subject, pool[cell], is_str)
            if takes_code:
                jump = assembler.pc
                assembler.emit_word(self._unless)
                registers.emit_edge(edge)
                self._jump_to(bytecode.JMP, pool[edge + 1])
                assembler.set_target(jump, assembler.label())
            else:
                self._jump_to(self._when, pool[edge + 1])
        edge = pool[cases + 1]
        if registers.plan_edge(edge):
            registers.emit_edge(edge)
        self._jump_on(edge)

    def _compare(self, subject: i64, key: int, is_str: bool) -> None:
        """Find the jumps for a comparison of a register with a key."""
        if not is_str and _MIN_IMM16 <= key <= _MAX_IMM16:
            fields = (key & 0xFFFF) << 16 | subject << 8
            self._when = fields | bytecode.JMPEQ_IMM
            self._unless = fields | bytecode.JMPNE_IMM
            return
        registers = self._registers
        if is_str:
            self._assembler.emit(bytecode.LOAD_CONST, registers.scratch, 0, 0, self._constants.string(key))
        else:
            registers.load_word(registers.scratch, key)
        self._set_jumps(op.IEQ, subject, registers.scratch)

    def _key_range(self, cases: int, is_str: bool) -> tuple[int, int]:
        """The smallest and the greatest key of a switch or lookup list; (0, -1) where there is none."""
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

    def _emit_lookup(self, row: i64) -> None:
        ir = self._ir
        pool = self._pool
        assembler = self._assembler
        constants = self._constants
        registers = self._registers
        cases: int = ir.b[row]
        is_str: bool = ir.type[ir.a[row]] == STR
        values_are_str: bool = ir.type[row] == STR
        first, last = self._key_range(cases, is_str)
        subject = registers.use(ir.a[row])
        result = registers.define(row)
        if constants.worth_a_table(first, last, pool[cases] // 2):
            default = constants.table_word(pool[cases + 1], values_are_str)
            table = constants.add_table(first, last, default, is_str, values_are_str)
            for cell in range(cases + 2, cases + pool[cases], 2):
                slot = constants.table_word(pool[cell], is_str) - first
                constants.set_slot(table, slot, constants.table_word(pool[cell + 1], values_are_str))
            assembler.emit(bytecode.LOOKUP, result, subject, 0, table)
            return
        # Too sparse: compare with one key after the other.
        ends: i64 = 0
        for cell in range(cases + 2, cases + pool[cases], 2):
            self._compare(subject, pool[cell], is_str)
            jump = assembler.pc
            assembler.emit_word(self._unless)
            self._load_case(result, pool[cell + 1], values_are_str)
            end = assembler.pc
            assembler.emit(bytecode.JMP, 0, 0, 0, ends)
            ends = end
            assembler.set_target(jump, assembler.label())
        self._load_case(result, pool[cases + 1], values_are_str)
        self._resolve(ends, assembler.label())

    def _load_case(self, register: i64, value: int, is_str: bool) -> None:
        if is_str:
            self._assembler.emit(bytecode.LOAD_CONST, register, 0, 0, self._constants.string(value))
        else:
            self._registers.load_word(register, value)
