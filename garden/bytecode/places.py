"""Places: where every value is while the instructions of a function are emitted, and the code that moves values.

A value is in a register, in a slot of the spill stack, or in both. The last register is scratch, for cycles of moves
and for words on their way from slot to slot; all others hold values. Constants are never saved: wherever they are
needed they are loaded.

The slots of a function are the words that it has pushed, numbered from 0; code counts them down from the top, so
`depth` is known everywhere. Writes to slots are logged, so that going back to an earlier point is undoing them.

Layout: two arrays by value, of registers and of slots, never cleared: an entry holds only if the register or slot says
the same. Sets of registers are bit masks.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.bytecode import ops as bytecode
from garden.bytecode.assembler import Assembler
from garden.bytecode.constants import ConstantPool
from garden.bytecode.liveness import RANK_SHIFT, Liveness
from garden.bytecode.moves import ParallelMoves
from garden.bytecode.ops import REGISTER_ARGUMENTS, REGISTERS
from garden.bytecode.register_sets import lowest, only
from garden.common import MAX_IMM, MIN_IMM
from garden.ir import ir as op
from garden.ir.ir import Ir

#: Below this depth, dead slots under live ones are not looked for.
_SHALLOW: Final = 8
#: How many slots are looked at to find a dead one.
_PROBES: Final = 4


def register_arguments(registers: int) -> int:
    """How many arguments travel in registers, of code that uses `registers` registers."""
    return min(REGISTER_ARGUMENTS, registers - 1)


@mypyc_attr(native_class=True)
class Places:
    """The places of the values of one function after the other, in `registers` registers.

    `holds` has for each register the value in it, or 0; `home` a register for each value, `slots` a slot; `frame` the
    value in each slot. `allocatable` are all registers but the scratch one, `free` those without a value, `pinned`
    those that the current instruction reads, `written` those that the function has changed. `rank` is that of the
    block for which `is_live` speaks.
    """

    __slots__ = (
        "_constants",
        "_holds",
        "_home",
        "_imms",
        "_known_pc",
        "_known_register",
        "_known_value",
        "_liveness",
        "_load_count",
        "_load_registers",
        "_load_values",
        "_moves",
        "_ops",
        "_probe",
        "_slots",
        "allocatable",
        "assembler",
        "depth",
        "first_operand",
        "frame",
        "free",
        "heads",
        "holds",
        "home",
        "log",
        "pinned",
        "rank",
        "scratch",
        "second_operand",
        "slots",
        "written",
    )

    def __init__(
        self,
        ir: Ir[Allocator],
        assembler: Assembler,
        constants: ConstantPool,
        liveness: Liveness,
        scratch: Allocator,
        registers: int,
    ) -> None:
        self._constants: Final = constants
        self._liveness: Final = liveness
        self._ops: Final = ir.op
        self._imms: Final = ir.imm
        self._moves: Final = ParallelMoves()
        self.assembler: Final = assembler
        self.scratch: Final[i64] = registers - 1
        self.allocatable: Final[i64] = (1 << (registers - 1)) - 1
        self.free: i64 = self.allocatable
        self.pinned: i64 = 0
        self.written: i64 = 0
        self.rank: i64 = 0
        self.depth: i64 = 0
        # Operands that are consumed but not loaded yet, so that their slots are not free for others.
        self.first_operand: i64 = 0
        self.second_operand: i64 = 0
        self._probe: i64 = 0
        # A register that is known to have a certain number in it while the pc is this.
        self._known_pc: i64 = -1
        self._known_register: i64 = 0
        self._known_value: i64 = 0
        # Loads that go with `_moves`.
        self._load_count: i64 = 0
        self._load_registers = [0] * REGISTERS
        self._load_values = [0] * REGISTERS
        # The memory of `holds`, `home` and `slots`.
        self._holds: Vec[Allocator] = Vec(scratch, "I")
        self._home: Vec[Allocator] = Vec(scratch, "B")
        self._slots: Vec[Allocator] = Vec(scratch, "I")
        self.frame: Vec[Allocator] = Vec(scratch, "I")
        self.log: Vec[Allocator] = Vec(scratch, "I")  # pairs: slot, the value that was in it
        self.heads = liveness.heads.items
        self.holds = self._holds.items
        self.home = self._home.items
        self.slots = self._slots.items

    def prepare(self, values: int) -> None:
        """Take the memory for `values` values. Liveness has taken its own before."""
        self._holds.fill_zero(REGISTERS)
        self._home.fill_zero(values)
        self._slots.fill_zero(values)
        self.heads = self._liveness.heads.items
        self.holds = self._holds.items
        self.home = self._home.items
        self.slots = self._slots.items

    def close(self) -> None:
        self.log.close()
        self.frame.close()
        self._slots.close()
        self._home.close()
        self._holds.close()

    # Registers.

    def place(self, register: i64, value: i64) -> None:
        """Note that a register has a value."""
        self.free &= ~only(register)
        self.holds[register] = value
        self.home[value] = register

    def take(self, register: i64, value: i64) -> None:
        """Give a register to a value that is written to it now."""
        self.place(register, value)
        self.written |= only(register)

    def release(self, register: i64) -> None:
        self.free |= only(register)
        self.holds[register] = 0

    def release_all(self) -> None:
        used = ~self.free & self.allocatable
        while used:
            self.holds[lowest(used)] = 0
            used &= used - 1
        self.free = self.allocatable

    def register_of(self, value: i64) -> i64:
        """The register that a value is in, or -1."""
        register = self.home[value]
        if self.holds[register] == value:
            return register
        return -1

    def is_live(self, value: i64) -> bool:
        return self.heads[value] >> RANK_SHIFT >= self.rank

    def is_constant(self, value: i64) -> bool:
        opcode = self._ops[value]
        return op.UNDEFINED <= opcode <= op.CONST_STR

    def needs_saving(self, value: i64) -> bool:
        """Whether a value is lost when its register is."""
        return not self.is_constant(value) and self.slot_of(value) < 0

    def move(self, value: i64, source: i64, target: i64) -> None:
        """Move a value to another register."""
        self.assembler.move(target, source)
        self.release(source)
        self.take(target, value)

    def rename(self, value: i64, other: i64) -> None:
        """Give the places of a value to another one."""
        register = self.register_of(value)
        slot = self.slot_of(value)
        if register >= 0:
            self.holds[register] = other
            self.home[other] = register
        if slot >= 0:
            self.write_slot(slot, other)

    # Slots.

    def slot_of(self, value: i64) -> i64:
        """The slot that a value is in, or -1."""
        slot = self.slots[value]
        if slot < self.depth and self.frame.items[slot] == value:
            return slot
        return -1

    def write_slot(self, slot: i64, value: i64) -> None:
        """Note that a slot has a value."""
        frame = self.frame
        if slot >= len(frame):
            frame.fill(0, slot + 1 - len(frame))
        self.log.append_i64(slot)
        self.log.append_i64(frame.items[slot])
        frame.items[slot] = value
        self.slots[value] = slot

    def unwind(self, mark: i64) -> None:
        """Undo the writes to slots since the log had that length."""
        log = self.log
        frame = self.frame.items
        while len(log) > mark:
            value = log.pop_i64()
            frame[log.pop_i64()] = value

    def is_dead(self, slot: i64) -> bool:
        """Whether the word of a slot is not needed any more."""
        value = self.frame.items[slot]
        if self.is_live(value) or (value != 0 and (value == self.first_operand or value == self.second_operand)):
            return False
        planned: i64 = 0
        while planned < self._load_count and self._load_values[planned] != value:
            planned += 1
        return planned == self._load_count

    def top(self) -> i64:
        """The depth without the dead slots on top."""
        top = self.depth
        while top > 0 and self.is_dead(top - 1):
            top -= 1
        return top

    def hole(self) -> i64:
        """A dead slot somewhere, if one is found soon, or else the next new one."""
        if self.depth >= _SHALLOW:
            for _probe in range(_PROBES):
                self._probe += 1
                if self._probe >= self.depth:
                    self._probe = 0
                if self.is_dead(self._probe):
                    return self._probe
        return self.depth

    def save(self, value: i64, register: i64) -> None:
        """Save a value in a dead slot or a new one."""
        slot = self.top()
        self.save_in(slot if slot < self.depth else self.hole(), value, register)

    def save_in(self, slot: i64, value: i64, register: i64) -> None:
        """Save a value in a certain slot, at most the next new one."""
        if slot == self.depth:
            self.assembler.push(register)
            self.depth += 1
        else:
            self.assembler.emit(bytecode.STORE_SLOT, register, 0, 0, self.depth - 1 - slot)
        self.write_slot(slot, value)

    def load_slot(self, register: i64, slot: i64) -> None:
        self.assembler.emit(bytecode.LOAD_SLOT, register, 0, 0, self.depth - 1 - slot)

    def drop(self, depth: i64) -> None:
        """Leave `depth` words on the spill stack."""
        if self.depth > depth:
            self.assembler.emit(bytecode.DROP, 0, 0, 0, self.depth - depth)
            self.depth = depth

    # Loads.

    def load(self, register: i64, value: i64) -> None:
        """Put a constant or the value of a slot into a register; the last read of the top slot pops it."""
        opcode = self._ops[value]
        if opcode == op.CONST:
            self.load_word(register, self._imms[value])
        elif opcode == op.CONST_STR:
            self.load_string(register, self._imms[value])
        elif opcode == op.UNDEFINED:
            self.assembler.emit(bytecode.LOAD_IMM, register, 0, 0, 0)
        else:
            slot = self.slots[value]
            if slot == self.depth - 1 and not self.is_live(value):
                self.assembler.pop(register)
                self.depth -= 1
            else:
                self.load_slot(register, slot)

    def load_word(self, register: i64, value: i64) -> None:
        if MIN_IMM <= value <= MAX_IMM:
            if value != self._known_value or register != self._known_register or self.assembler.pc != self._known_pc:
                self.assembler.emit(bytecode.LOAD_IMM, register, 0, 0, value)
        else:
            self.assembler.emit(bytecode.LOAD_CONST, register, 0, 0, self._constants.wide(value))

    def load_string(self, register: i64, symbol: i64) -> None:
        self.assembler.emit(bytecode.LOAD_CONST, register, 0, 0, self._constants.string(symbol))

    def know(self, register: i64, value: i64) -> None:
        """Whenever control comes to the current pc, `register` has that number in it, unless it is -1."""
        self._known_pc = self.assembler.pc
        self._known_register = register
        self._known_value = value

    # Values to fixed places: arguments, results, what a block expects.

    def begin_plan(self) -> None:
        """Forget what was planned and not carried out."""
        self._moves.clear()
        self._load_count = 0

    def plan(self, register: i64, value: i64) -> bool:
        """Plan that a value goes to a register; whether it is there already. A value that is nowhere is dead."""
        source = self.register_of(value)
        if source == register:
            return True
        if source >= 0:
            self._moves.add(register, source)
        elif self.is_constant(value) or self.slot_of(value) >= 0:
            self._load_registers[self._load_count] = register
            self._load_values[self._load_count] = value
            self._load_count += 1
        return False

    def has_plan(self) -> bool:
        return self._moves.count > 0 or self._load_count > 0

    def carry_out(self, floor: i64) -> None:
        """Do what is planned, all at once. Slots from `floor` on are not needed afterwards.

        What is known of registers stays as it was, since nothing asks where the values arrive.
        """
        if self._moves.count:
            self._moves.emit(self.assembler, self.scratch)
        count = self._load_count
        if count == 0:
            return
        self._load_count = 0
        while self.depth > floor and count:
            found = self._find_load(self.frame.items[self.depth - 1], count)
            if found < 0:
                break
            self.assembler.pop(self._load_registers[found])
            self.depth -= 1
            count -= 1
            self._load_registers[found] = self._load_registers[count]
            self._load_values[found] = self._load_values[count]
        for index in range(count):
            register: i64 = self._load_registers[index]
            value: i64 = self._load_values[index]
            if self.is_constant(value):
                self.load(register, value)
            else:
                self.load_slot(register, self.slots[value])

    def _find_load(self, value: i64, count: i64) -> i64:
        """The one planned load of a value, or -1 if there is none or more than one."""
        found: i64 = -1
        for index in range(count):
            if self._load_values[index] == value:
                if found >= 0:
                    return -1
                found = index
        return found

    def push_value(self, value: i64) -> None:
        """Push a value, whatever place it is in, or anything if it is nowhere. Places stay as they were."""
        register = self.register_of(value)
        if register < 0:
            register = self.scratch
            if self.is_constant(value):
                self.load(register, value)
            else:
                slot = self.slot_of(value)
                if slot < 0:
                    self.push_anything()
                    return
                self.load_slot(register, slot)
        self.assembler.push(register)
        self.depth += 1

    def push_anything(self) -> None:
        """Push a word that is never read."""
        used = ~self.free & self.allocatable
        register = self.scratch
        if used:
            register = lowest(used)
        else:
            self.assembler.emit(bytecode.LOAD_IMM, register, 0, 0, 0)
        self.assembler.push(register)
        self.depth += 1

    def settle(self, count: i64, base: i64) -> None:
        """Move the topmost `count` words down to slot `base`, and drop what is above."""
        if self.depth - count > base:
            for index in range(count):
                self.assembler.emit(bytecode.LOAD_SLOT, self.scratch, 0, 0, count - 1 - index)
                self.assembler.emit(bytecode.STORE_SLOT, self.scratch, 0, 0, self.depth - 1 - base - index)
        self.drop(base + count)
