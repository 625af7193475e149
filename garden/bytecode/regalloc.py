"""RegisterAllocator: where every value is while instructions are emitted, and the code that moves values around.

A linear scan over the blocks in the order of `garden.bytecode.order`, one function at a time, in the same pass that
emits. A value is in a register, in a slot of the spill stack, or in both, and that changes as the scan goes on: a value
that must leave its register is saved once, and comes back into any register where it is needed again. So nothing is
ever refused: what does not fit is saved. Constants are never saved and never kept for later blocks that join; they are
loaded where they are needed.

**Registers.** The last register is scratch, for cycles of moves and for words on their way from slot to slot; all others
are allocated. A result goes to the register of its hint (see `garden.bytecode.liveness`). Where a value sits there that
the next call would destroy or wants elsewhere anyway, that value makes room at once. Without a hint it is the lowest
register that is free, outside what the next call destroys if the value survives the call. If no register is free, the
value whose next use is furthest away leaves its own.

**Calls.** A call may change every register, unless the callee has been emitted before: then its registers are known. What
survives a call is moved to a register that the call leaves alone, or saved. So only paths that call save anything.

**Spill stack.** The slots of a function are the words it has pushed, numbered from 0; code counts them down from the top,
so `depth` is known everywhere. Saving pushes, or reuses a slot whose value is dead. Reading the last time from the top
pops. What is left is dropped where the function ends, and where control flow joins: all edges to a block arrive with the
same slots, those that the block's immediate dominator had, and with everything else in registers.

**Blocks.** A block with one predecessor starts as that ends. The first edge to a join decides in which registers values
arrive there; the others move them. Writes to slots are logged, so that going back to the end of a dominator is undoing
them; registers at the end of a block are written down where they will be needed.

Layout: two arrays by value, of registers and of slots, never cleared: an entry holds only if the register or slot says
the same. Costs: linear in the number of operands, with at most one look at every register for each call and block.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.bytecode.assembler import Assembler
from garden.bytecode.constants import ConstantPool
from garden.bytecode.liveness import NUMBER, RANK_SHIFT, Liveness
from garden.bytecode.moves import ParallelMoves
from garden.bytecode.ops import (
    DROP,
    LOAD_CONST,
    LOAD_IMM,
    LOAD_SLOT,
    REGISTER_ARGUMENTS,
    REGISTERS,
    STORE_SLOT,
)
from garden.bytecode.order import BlockOrder
from garden.ir.ir import CALL, CONST, CONST_STR, SYS, TAIL, UNDEFINED, Ir

A = TypeVar("A", bound=Allocator, covariant=True)
S = TypeVar("S", bound=Allocator, covariant=True)

#: Two operands and the scratch register, and one more so that arguments are not a special case.
FEWEST_REGISTERS: Final = 4
#: The set of all registers but the last of `REGISTERS`: what a call of an unknown function changes.
ALL_REGISTERS: Final = (1 << (REGISTERS - 1)) - 1

#: Saving this many values at once is cheaper in slots than in registers, since three pushes are one instruction.
_PACKED: Final = 3
#: Below this depth, dead slots under live ones are not looked for.
_SHALLOW: Final = 8
#: How many slots are looked at to find a dead one.
_PROBES: Final = 4

#: By byte: the place of its lowest bit.
_LOWEST: Final = bytes([8, *[(byte & -byte).bit_length() - 1 for byte in range(1, 256)]])

# The state in which a join starts, as words of `_states`: how many values arrive in registers, how many parameters do,
# how many of both arrive in slots, and the depth below these slots; then the three lists. Values are `value << 8 |
# register`, parameters `place << 8 | register`; in slots `value`, or `-place`.
_THROUGH: Final = 0
_PARAMETERS: Final = 1
_IN_SLOTS: Final = 2
_BASE: Final = 3
_LISTS: Final = 4


def lowest(registers: i64) -> i64:
    """The lowest register of a set that is not empty."""
    register: i64 = 0
    while registers & 0xFF == 0:
        registers >>= 8
        register += 8
    return register + _LOWEST[registers & 0xFF]


@mypyc_attr(native_class=True)
class RegisterAllocator(Generic[A, S]):
    """Places the values of one function after the other, with so many `registers`.

    `depth` is the number of words that the function has on the spill stack, `written` the set of registers that it
    has changed so far, `clobbers` a Vec 'q' by function of the registers that calling it changes. Sets of registers
    are bit masks.
    """

    __slots__ = (
        "_allocatable",
        "_assembler",
        "_constants",
        "_depths",
        "_edges",
        "_first_operand",
        "_frame",
        "_free",
        "_heads",
        "_hints",
        "_holds",
        "_home",
        "_ir",
        "_known_pc",
        "_known_register",
        "_known_value",
        "_liveness",
        "_load_count",
        "_load_registers",
        "_load_values",
        "_log",
        "_lost",
        "_marks",
        "_moves",
        "_next_arguments",
        "_next_lost",
        "_next_mark",
        "_next_zone",
        "_ops",
        "_order",
        "_pinned",
        "_pool",
        "_probe",
        "_rank",
        "_saved",
        "_second_operand",
        "_slots",
        "_state",
        "_states",
        "clobbers",
        "depth",
        "register_arguments",
        "scratch",
        "second",
        "written",
    )

    def __init__(
        self,
        ir: Ir[Allocator],
        assembler: Assembler[A],
        constants: ConstantPool[A, S],
        order: BlockOrder[S],
        liveness: Liveness[S],
        scratch: S,
        registers: int,
    ) -> None:
        self._ir: Final = ir
        self._assembler: Final = assembler
        self._constants: Final = constants
        self._order: Final = order
        self._liveness: Final = liveness
        self._moves: Final = ParallelMoves()
        self._ops: Final = ir.op
        self._pool: Final = ir.pool.data
        self._heads = liveness.heads.data
        self._hints = liveness.hints.data
        self.scratch: Final[i64] = registers - 1
        self.register_arguments: Final[i64] = register_arguments(registers)
        self._allocatable: Final[i64] = (1 << (registers - 1)) - 1

        self._holds = [0] * REGISTERS  # by register: the value in it, or 0
        self._free: i64 = self._allocatable
        self._pinned: i64 = 0  # registers of the operands of the current instruction
        self.second: i64 = 0  # register of the second operand
        self._first_operand: i64 = 0  # operands that are not loaded yet
        self._second_operand: i64 = 0
        self.written: i64 = 0
        self.depth: i64 = 0
        self._probe: i64 = 0
        self._rank: i64 = 0
        self._lost: i64 = 0
        # The next call of the block: number of records behind it, its arguments, their registers, what it changes.
        self._next_mark: i64 = 0
        self._next_arguments: i64 = 0
        self._next_zone: i64 = 0
        self._next_lost: i64 = 0
        # What a branch has found out about a register, for the first instruction of a block.
        self._known_pc: i64 = -1
        self._known_register: i64 = 0
        self._known_value: i64 = 0
        # Loads that go with `_moves`.
        self._load_count: i64 = 0
        self._load_registers = [0] * REGISTERS
        self._load_values = [0] * REGISTERS

        self.clobbers: Vec[S] = Vec(scratch, "q")
        self._home: Vec[S] = Vec(scratch, "B")  # by value: register
        self._slots: Vec[S] = Vec(scratch, "I")  # by value: slot
        self._state: Vec[S] = Vec(scratch, "I")  # by block: its registers at the end, or a join's state, in `_states`
        self._marks: Vec[S] = Vec(scratch, "I")  # by block: length of the log at its end
        self._depths: Vec[S] = Vec(scratch, "I")  # by block: depth at its end
        self._edges: Vec[S] = Vec(scratch, "I")  # by block: the only edge that leads to it
        self._frame: Vec[S] = Vec(scratch, "I")  # by slot: the value in it, or 0
        self._log: Vec[S] = Vec(scratch, "I")  # pairs: slot, the value that was in it
        self._states: Vec[S] = Vec(scratch, "q")
        self._saved: Vec[S] = Vec(scratch, "q")  # values, and parameters as -place, that arrive at a join in slots

    def prepare(self) -> None:
        """Take the memory for the values and blocks of the program. Liveness has taken its own before."""
        ir = self._ir
        self._heads = self._liveness.heads.data
        self._hints = self._liveness.hints.data
        self.clobbers.fill(ALL_REGISTERS, ir.function_count)
        self._home.fill(0, ir.value_count)
        self._slots.fill(0, ir.value_count)
        for column in (self._state, self._marks, self._depths, self._edges):
            column.fill(0, ir.block_count)

    # Registers.

    def _place(self, register: i64, value: i64) -> None:
        """Note that a register has a value."""
        self._free &= ~(1 << register)
        self._holds[register] = value
        self._home.data[value] = register

    def _take(self, register: i64, value: i64) -> None:
        """Give a register to a value that is about to be written to it."""
        self._place(register, value)
        self.written |= 1 << register

    def _release(self, register: i64) -> None:
        self._free |= 1 << register
        self._holds[register] = 0

    def _release_all(self) -> None:
        used = ~self._free & self._allocatable
        while used:
            self._holds[lowest(used)] = 0
            used &= used - 1
        self._free = self._allocatable

    def _register_of(self, value: i64) -> i64:
        """The register that a value is in, or -1."""
        register: i64 = self._home.data[value]
        return register if self._holds[register] == value else -1

    def _is_live(self, value: i64) -> bool:
        head: i64 = self._heads[value]
        return head >> RANK_SHIFT >= self._rank

    def _is_constant(self, value: i64) -> bool:
        op: i64 = self._ops[value]
        return UNDEFINED <= op <= CONST_STR

    def use(self, value: i64) -> i64:
        """The register of the only operand of an instruction, which then is consumed."""
        self._pinned = 0
        head = self._liveness.consume(value)
        register: i64 = self._home.data[value]
        if self._holds[register] != value:
            self._first_operand = value
            register = self._fetch(value)
            self._first_operand = 0
        self._pinned = 1 << register
        if head >> RANK_SHIFT < self._rank:
            self._release(register)
        return register

    def use_both(self, left: i64, right: i64) -> i64:
        """The register of the first operand, and in `second` that of the second; both then are consumed."""
        self._liveness.consume(left)
        self._liveness.consume(right)
        first = self._register_of(left)
        second = self._register_of(right)
        self._pinned = (1 << first if first >= 0 else 0) | (1 << second if second >= 0 else 0)
        if first < 0 or second < 0:
            self._first_operand = left
            self._second_operand = right
            if first < 0:
                first = self._fetch(left)
                self._pinned |= 1 << first
            if second < 0:
                second = first if left == right else self._fetch(right)
                self._pinned |= 1 << second
            self._first_operand = 0
            self._second_operand = 0
        if not self._is_live(left):
            self._release(first)
        if not self._is_live(right):
            self._release(second)
        self.second = second
        return first

    def _fetch(self, value: i64) -> i64:
        """Bring a value that is in no register into one."""
        free = self._free & ~self._pinned
        if free & ~self._next_zone:
            free &= ~self._next_zone
        register = lowest(free) if free else self._evict(self._pinned)
        self._load(register, value)
        self._take(register, value)
        return register

    def _load(self, register: i64, value: i64) -> None:
        """Put a constant or the value of a slot into a register; the last read of the top slot pops it."""
        op: i64 = self._ops[value]
        if op == CONST:
            self.load_word(register, self._ir.imm[value])
        elif op == CONST_STR:
            self._assembler.emit(LOAD_CONST, register, 0, 0, self._constants.string(self._ir.imm[value]))
        elif op == UNDEFINED:
            self._assembler.emit(LOAD_IMM, register, 0, 0, 0)
        else:
            slot: i64 = self._slots.data[value]
            if slot == self.depth - 1 and not self._is_live(value):
                self._assembler.pop(register)
                self.depth -= 1
            else:
                self._assembler.emit(LOAD_SLOT, register, 0, 0, self.depth - 1 - slot)

    def load_word(self, register: i64, value: int) -> None:
        """Put a number into a register."""
        if -0x80000000 <= value <= 0x7FFFFFFF:
            if (
                value != self._known_value
                or register != self._known_register
                or self._assembler.pc != self._known_pc
            ):
                self._assembler.emit(LOAD_IMM, register, 0, 0, value)
        else:
            self._assembler.emit(LOAD_CONST, register, 0, 0, self._constants.wide(value))

    def define(self, value: i64) -> i64:
        """The register for the result of the instruction whose operands were used last."""
        head: i64 = self._heads[value]
        if head == 0:
            return self.scratch
        register = self._choose(value, head & NUMBER)
        self._pinned = 0
        self._take(register, value)
        return register

    def _choose(self, value: i64, first: i64) -> i64:
        """A free register for a value that is used next by record `first`."""
        avoid: i64 = 0
        if first <= self._next_mark:
            avoid = self._next_lost
        else:
            hint: i64 = self._hints[value]
            if hint < 0:
                hint = self._hints[-hint]
            if hint > 0:
                register = hint - 1
                if self._free >> register & 1:
                    return register
                if first <= self._next_mark + self._next_arguments and self._vacate(register):
                    return register
                avoid = self._next_zone
            elif self._survives(first):
                avoid = self._next_lost
        free = self._free & ~avoid
        if free == 0:
            free = self._free
        return lowest(free) if free else self._evict(0)

    def _survives(self, first: i64) -> bool:
        """Whether a value whose next use is record `first`, not behind the next call, is used again behind it."""
        rest: i64 = self._liveness.records.data[first]
        return rest & NUMBER <= self._next_mark and rest >> RANK_SHIFT >= self._rank

    def _vacate(self, register: i64) -> bool:
        """Let the value in an argument register of the next call make room, if it will have to anyway."""
        value: i64 = self._holds[register]
        first: i64 = self._heads[value] & NUMBER
        if first > self._next_mark + self._next_arguments:
            return False
        room = self._free & ~self._pinned
        if first > self._next_mark and not self._is_constant(value):
            # An argument of the call itself.
            target: i64 = self._hints[value] - 1
            if target < 0 or room >> target & 1 == 0:
                room &= ~self._next_zone
                if room == 0:
                    return False
                target = lowest(room)
            self._move(value, register, target)
            return True
        if not self._is_constant(value) and self._slot_of(value) < 0:
            room &= ~self._next_lost
            if room:
                self._move(value, register, lowest(room))
                return True
            self._save_survivors()
        self._release(register)
        return True

    def _move(self, value: i64, source: i64, target: i64) -> None:
        self._assembler.move(target, source)
        self._release(source)
        self._take(target, value)

    def _save_survivors(self) -> None:
        """Save what the next call would destroy: as one group, so that pushes are packed."""
        used = ~self._free & self._allocatable & self._next_lost
        while used:
            register = lowest(used)
            used &= used - 1
            value: i64 = self._holds[register]
            first: i64 = self._heads[value] & NUMBER
            if (
                (first <= self._next_mark or self._survives(first))
                and first <= self._next_mark + self._next_arguments
                and not self._is_constant(value)
                and self._slot_of(value) < 0
            ):
                self._save(value, register)

    def _evict(self, pinned: i64) -> i64:
        """Free the register, outside `pinned`, of the value whose next use is furthest away."""
        used = ~self._free & self._allocatable & ~pinned
        register: i64 = -1
        furthest: i64 = 0
        while used:
            candidate = lowest(used)
            used &= used - 1
            next_use: i64 = self._heads[self._holds[candidate]] & NUMBER
            if register < 0 or next_use < furthest:
                register = candidate
                furthest = next_use
        value: i64 = self._holds[register]
        if not self._is_constant(value) and self._slot_of(value) < 0:
            self._save(value, register)
        self._release(register)
        return register

    # Slots.

    def _slot_of(self, value: i64) -> i64:
        """The slot that a value is in, or -1."""
        slot: i64 = self._slots.data[value]
        if slot < self.depth and self._frame.data[slot] == value:
            return slot
        return -1

    def _write_slot(self, slot: i64, value: i64) -> None:
        """Note that a slot has a value now."""
        frame = self._frame
        if slot >= len(frame):
            frame.fill(0, slot + 1 - len(frame))
        self._log.append(slot)
        self._log.append(frame.data[slot])
        frame.data[slot] = value
        self._slots.data[value] = slot

    def _is_dead(self, slot: i64) -> bool:
        """Whether nobody wants the word of a slot any more."""
        value: i64 = self._frame.data[slot]
        if value == 0:
            return True
        if value == self._first_operand or value == self._second_operand:
            return False
        return not self._is_live(value) or self._slots.data[value] != slot

    def _top(self) -> i64:
        """The depth without dead slots on top."""
        top = self.depth
        while top > 0 and self._is_dead(top - 1):
            top -= 1
        return top

    def _save(self, value: i64, register: i64) -> None:
        """Save a value in a dead slot or a new one."""
        slot = self._top()
        if slot == self.depth and slot >= _SHALLOW:
            for _probe in range(_PROBES):
                self._probe = self._probe + 1 if self._probe + 1 < self.depth else 0
                if self._is_dead(self._probe):
                    slot = self._probe
                    break
        self._save_in(slot, value, register)

    def _save_in(self, slot: i64, value: i64, register: i64) -> None:
        if slot == self.depth:
            self._assembler.push(register)
            self.depth += 1
        else:
            self._assembler.emit(STORE_SLOT, register, 0, 0, self.depth - 1 - slot)
        self._write_slot(slot, value)

    def _drop(self, depth: i64) -> None:
        """Leave so many words on the spill stack."""
        if self.depth > depth:
            self._assembler.emit(DROP, 0, 0, 0, self.depth - depth)
            self.depth = depth

    def _unwind(self, mark: i64) -> None:
        """Undo the writes to slots since the log had that length."""
        log = self._log
        frame = self._frame.data
        while len(log) > mark:
            value: int = log.pop()
            frame[log.pop()] = value

    # Values to fixed places: arguments, results, the registers of a join.

    def _forget_plan(self) -> None:
        self._moves.clear()
        self._load_count = 0

    def _plan(self, register: i64, value: i64) -> bool:
        """Plan that a value goes to a register; whether it is there already. A value that is nowhere is dead."""
        source = self._register_of(value)
        if source == register:
            return True
        if source >= 0:
            self._moves.add(register, source)
        elif self._is_constant(value) or self._slot_of(value) >= 0:
            self._load_registers[self._load_count] = register
            self._load_values[self._load_count] = value
            self._load_count += 1
        return False

    def _carry_out(self, floor: i64) -> None:
        """Do what is planned. Slots from `floor` on are not needed afterwards."""
        if self._moves.count:
            self._moves.emit(self._assembler, self.scratch)
        count = self._load_count
        if count == 0:
            return
        self._load_count = 0
        while self.depth > floor and count:
            found = self._find_load(self._frame.data[self.depth - 1], count)
            if found < 0:
                break
            self._assembler.pop(self._load_registers[found])
            self.depth -= 1
            count -= 1
            self._load_registers[found] = self._load_registers[count]
            self._load_values[found] = self._load_values[count]
        for index in range(count):
            register: i64 = self._load_registers[index]
            value: i64 = self._load_values[index]
            if self._is_constant(value):
                self._load(register, value)
            else:
                self._assembler.emit(LOAD_SLOT, register, 0, 0, self.depth - 1 - self._slots.data[value])

    def _find_load(self, value: i64, count: i64) -> i64:
        """The one planned load of a value, or -1 where there is none or more than one."""
        found: i64 = -1
        for index in range(count):
            if self._load_values[index] == value:
                if found >= 0:
                    return -1
                found = index
        return found

    def _push_value(self, value: i64) -> None:
        """Push a value, whatever place it is in, and leave it there."""
        register = self._register_of(value)
        if register < 0:
            register = self.scratch
            if self._is_constant(value):
                self._load(register, value)
            else:
                self._assembler.emit(LOAD_SLOT, register, 0, 0, self.depth - 1 - self._slots.data[value])
        self._assembler.push(register)
        self.depth += 1

    def _settle(self, count: i64, base: i64) -> None:
        """Move the topmost `count` words down to slot `base`, and drop what is above."""
        source = self.depth - count
        if source > base:
            for index in range(count):
                self._assembler.emit(LOAD_SLOT, self.scratch, 0, 0, count - 1 - index)
                self._assembler.emit(STORE_SLOT, self.scratch, 0, 0, self.depth - 1 - base - index)
            self._drop(base + count)

    # Calls.

    def _next_call(self) -> None:
        """Read about the next call of the block."""
        entry: i64 = self._liveness.calls.pop()
        if entry == 0:
            self._next_mark = 0
            self._next_arguments = 0
            self._next_zone = 0
            self._next_lost = 0
            return
        row = entry >> RANK_SHIFT
        count: i64 = self._pool[self._ir.b[row]]
        self._next_mark = entry & NUMBER
        self._next_arguments = count
        in_registers = count if count < self.register_arguments else self.register_arguments
        zone: i64 = (1 << in_registers) - 1
        self._next_zone = zone
        op: i64 = self._ops[row]
        if op == CALL:
            self._next_lost = zone | 1 | self.clobbers.data[self._ir.a[row]]
        else:
            self._next_lost = zone | 1

    def pass_arguments(self, arguments: int, clobbered: i64) -> None:
        """Consume the arguments of a call and put them in place, and save what the call would destroy.

        `clobbered` are the registers that it changes beside those of arguments and result.
        """
        self._forget_plan()
        pool = self._pool
        count: i64 = pool[arguments]
        top = self._top()
        for index in range(count):
            self._liveness.consume(pool[arguments + 1 + index])
        in_registers = count if count < self.register_arguments else self.register_arguments
        moved: i64 = 1
        for index in range(in_registers):
            if not self._plan(index, pool[arguments + 1 + index]):
                moved |= 1 << index
        self.written |= moved
        lost = clobbered | moved
        self._lost = lost
        self._save_lost(lost, top)
        for index in range(count - 1, in_registers - 1, -1):
            self._push_value(pool[arguments + 1 + index])
        self._carry_out(self.depth if count > in_registers else self._top())

    def _save_lost(self, lost: i64, top: i64) -> None:
        """Save the live values that are only in registers of `lost`; slots from `top` on are dead."""
        used = ~self._free & self._allocatable & lost
        endangered: i64 = 0
        count = 0
        while used:
            register = lowest(used)
            used &= used - 1
            value: i64 = self._holds[register]
            if self._is_live(value) and not self._is_constant(value) and self._slot_of(value) < 0:
                endangered |= 1 << register
                count += 1
        room = self._free & ~lost
        while endangered:
            register = lowest(endangered)
            endangered &= endangered - 1
            value = self._holds[register]
            if room and count < _PACKED:
                target = lowest(room)
                room &= room - 1
                self._assembler.move(target, register)
                self._take(target, value)
            else:
                self._save_in(top, value, register)
                top += 1

    def end_call(self, arguments: int, result: i64) -> None:
        """Forget what the call has destroyed, and take its result."""
        used = ~self._free & self._allocatable & self._lost
        while used:
            self._release(lowest(used))
            used &= used - 1
        pool = self._pool
        count: i64 = pool[arguments]
        for index in range(count):
            value: i64 = pool[arguments + 1 + index]
            if not self._is_live(value):
                register = self._register_of(value)
                if register >= 0:
                    self._release(register)
        if count > self.register_arguments:
            self.depth -= count - self.register_arguments
        if self._heads[result]:
            self._take(0, result)
        self._next_call()

    def pass_to_tail(self, arguments: int) -> None:
        """Put the arguments of a tail call in place, and leave nothing else on the spill stack."""
        self._forget_plan()
        pool = self._pool
        count: i64 = pool[arguments]
        for index in range(count):
            self._liveness.consume(pool[arguments + 1 + index])
        in_registers = count if count < self.register_arguments else self.register_arguments
        for index in range(in_registers):
            if not self._plan(index, pool[arguments + 1 + index]):
                self.written |= 1 << index
        for index in range(count - 1, in_registers - 1, -1):
            self._push_value(pool[arguments + 1 + index])
        on_stack = count - in_registers
        self._carry_out(self.depth if on_stack else 0)
        self._settle(on_stack, 0)
        self._next_call()

    def pass_result(self, value: i64) -> None:
        """Put the value that a function returns in place, unless there is none, and leave the spill stack empty."""
        if value:
            self._forget_plan()
            self._liveness.consume(value)
            if not self._plan(0, value):
                self._carry_out(0)
                self.written |= 1
        self._drop(0)

    def copy(self, value: i64, source: i64) -> None:
        """Make `value` the same as `source`, by renaming it where it is not needed any more."""
        head: i64 = self._liveness.records.data[self._liveness.count]
        if self._is_constant(source):
            self._liveness.consume(source)
            self._load(self.define(value), source)
        elif head >> RANK_SHIFT < self._rank:
            self._liveness.consume(source)
            self._rename(source, value)
        else:
            register = self.use(source)
            target = self.define(value)
            if target != register:
                self._assembler.move(target, register)

    def _rename(self, source: i64, value: i64) -> None:
        """Give the places of a value to another one."""
        register = self._register_of(source)
        slot = self._slot_of(source)
        if register >= 0:
            self._holds[register] = value
            self._home.data[value] = register
        if slot >= 0:
            self._write_slot(slot, value)

    # Blocks.

    def begin_function(self, parameters: int) -> None:
        """Start a function with a list of parameters."""
        pool = self._pool
        self._release_all()
        self._log.clear()
        self._states.clear()
        self._states.append(0)
        count: i64 = pool[parameters]
        on_stack = count - self.register_arguments
        self.depth = on_stack if on_stack > 0 else 0
        for index in range(count):
            value: i64 = pool[parameters + 1 + index]
            if index >= self.register_arguments:
                self._write_slot(count - 1 - index, value)
            elif self._heads[value]:
                self._place(index, value)
        self.written = 0

    def begin_block(self, block: int, previous: int, known: i64, number: i64) -> None:
        """Start a block; `previous` is the one that was emitted before.

        Whenever it is reached, register `known` has that number in it, unless that is -1.
        """
        self._rank = self._order.ranks.data[block]
        self._known_pc = self._assembler.pc
        self._known_register = known
        self._known_value = number
        self._pinned = 0
        self._next_call()
        above: int = self._order.dominators.data[block]
        if above == 0:
            return
        if self._order.predecessors.data[block] > 1:
            self._enter_join(block, above)
            return
        if above != previous:
            self._restore(above)
        edge: int = self._edges.data[block]
        if self._pool[edge] > 1:
            self._bind(block, edge)
        else:
            self._release_dead()

    def _restore(self, block: int) -> None:
        """Go back to the end of a block."""
        self._unwind(self._marks.data[block])
        self.depth = self._depths.data[block]
        self._release_all()
        states = self._states.data
        state: i64 = self._state.data[block]
        for index in range(state + 1, state + 1 + states[state]):
            entry: i64 = states[index]
            self._place(entry & 0xFF, entry >> 8)

    def _release_dead(self) -> None:
        used = ~self._free & self._allocatable
        while used:
            register = lowest(used)
            used &= used - 1
            if not self._is_live(self._holds[register]):
                self._release(register)

    def _bind(self, block: int, edge: int) -> None:
        """Let the parameters of a block with one predecessor be the arguments of the edge."""
        pool = self._pool
        parameters: int = self._ir.block_params[block]
        count: i64 = pool[parameters]
        for index in range(1, count + 1):
            parameter: i64 = pool[parameters + index]
            argument: i64 = pool[edge + 1 + index]
            if self._heads[parameter] and not self._is_live(argument) and not self._is_constant(argument):
                self._rename(argument, parameter)
        self._release_dead()
        for index in range(1, count + 1):
            parameter = pool[parameters + index]
            if self._heads[parameter] and self._register_of(parameter) < 0 and self._slot_of(parameter) < 0:
                self._copy_argument(parameter, edge, index, parameters)

    def _copy_argument(self, parameter: i64, edge: int, index: i64, parameters: int) -> None:
        pool = self._pool
        argument: i64 = pool[edge + 1 + index]
        self._pinned = 0
        if not self._is_constant(argument):
            if not self._is_live(argument):
                # Passed twice: an earlier parameter has taken its place.
                other: i64 = 1
                while pool[edge + 1 + other] != argument or self._heads[pool[parameters + other]] == 0:
                    other += 1
                argument = pool[parameters + other]
            source = self._register_of(argument)
            if source >= 0:
                self._pinned = 1 << source
                target = self.define(parameter)
                if target != source:
                    self._assembler.move(target, source)
                return
        target = self.define(parameter)
        self._load(target, argument)

    def end_block(self, block: int, keep: bool) -> None:
        """Finish a block but for its edges; `keep` if one that does not follow at once will start as this one ends."""
        self._marks.data[block] = len(self._log)
        self._depths.data[block] = self.depth
        if not keep:
            return
        states = self._states
        state = len(states)
        self._state.data[block] = state
        states.append(0)
        used = ~self._free & self._allocatable
        count = 0
        while used:
            register = lowest(used)
            used &= used - 1
            states.append(self._holds[register] << 8 | register)
            count += 1
        states.data[state] = count

    # Edges.

    def plan_edge(self, edge: int) -> bool:
        """Look at an edge out of the block that has come to its end; whether going along it takes code."""
        target: int = self._pool[edge + 1]
        if self._order.predecessors.data[target] == 1:
            self._edges.data[target] = edge
            return False
        if self._state.data[target] == 0:
            self._design_join(target, edge)
        self._forget_plan()
        pool = self._pool
        states = self._states.data
        state: i64 = self._state.data[target]
        cell: i64 = state + _LISTS
        for index in range(states[state + _THROUGH]):
            entry: i64 = states[cell]
            self._plan(entry & 0xFF, entry >> 8)
            cell += 1
        for index in range(states[state + _PARAMETERS]):
            entry = states[cell]
            self._plan(entry & 0xFF, pool[edge + 1 + (entry >> 8)])
            cell += 1
        in_slots: i64 = states[state + _IN_SLOTS]
        depth: i64 = states[state + _BASE]
        return self._moves.count > 0 or self._load_count > 0 or in_slots > 0 or depth != self.depth

    def emit_edge(self, edge: int) -> None:
        """Emit the code of the edge that was planned last. What is known of registers and slots stays as it is."""
        pool = self._pool
        states = self._states.data
        state: i64 = self._state.data[pool[edge + 1]]
        count: i64 = states[state + _IN_SLOTS]
        base: i64 = states[state + _BASE]
        depth = self.depth
        while self.depth < base:
            self._push_anything()
        cell: i64 = state + _LISTS + states[state + _THROUGH] + states[state + _PARAMETERS]
        for index in range(count):
            entry: i64 = states[cell + index]
            self._push_argument(entry if entry > 0 else pool[edge + 1 - entry])
        self._carry_out(self.depth if count else base)
        if count:
            self._settle(count, base)
        self._drop(base + count)
        self.depth = depth

    def _push_argument(self, value: i64) -> None:
        """Push a value, or anything if the value is dead."""
        if self._register_of(value) >= 0 or self._is_constant(value) or self._slot_of(value) >= 0:
            self._push_value(value)
        else:
            self._push_anything()

    def _push_anything(self) -> None:
        """Push a word that nobody will read."""
        self._assembler.emit(LOAD_IMM, self.scratch, 0, 0, 0)
        self._assembler.push(self.scratch)
        self.depth += 1

    def _design_join(self, block: int, edge: int) -> None:
        """Decide where values are when a join starts, so that the edge that comes first has little to do."""
        above: int = self._order.dominators.data[block]
        rank: i64 = self._order.ranks.data[block]
        here = self._rank
        # Liveness is asked about the join from here on.
        self._rank = rank
        states = self._states
        state = len(states)
        self._state.data[block] = state
        for _word in range(_LISTS):
            states.append(0)
        taken: i64 = 0
        count = 0
        used = ~self._free & self._allocatable
        while used:
            register = lowest(used)
            used &= used - 1
            value: i64 = self._holds[register]
            if self._is_live(value) and not self._is_constant(value):
                states.append(value << 8 | register)
                taken |= 1 << register
                count += 1
        # Slots written since the dominator's end are not there on other ways.
        saved = self._saved
        saved.clear()
        log = self._log.data
        for index in range(self._marks.data[above], len(self._log), 2):
            slot: i64 = log[index]
            value = self._frame.data[slot] if slot < self.depth else 0
            if (
                value
                and self._slots.data[value] == slot
                and self._is_live(value)
                and self._register_of(value) < 0
                and not self._is_listed(value, state, count)
            ):
                register = self._pick(taken, self._home.data[value])
                if register < 0:
                    saved.append(value)
                else:
                    states.append(value << 8 | register)
                    taken |= 1 << register
                    count += 1
        states.data[state + _THROUGH] = count
        taken = self._design_parameters(block, edge, state, taken)
        # Without the slots of the dominator that nobody needs any more.
        base: i64 = self._depths.data[above]
        if base > self.depth:
            base = self.depth
        while base > 0 and self._is_dead(base - 1):
            base -= 1
        states.data[state + _IN_SLOTS] = len(saved)
        states.data[state + _BASE] = base
        states.extend(saved.view)
        self.written |= taken
        self._rank = here

    def _design_parameters(self, block: int, edge: int, state: i64, taken: i64) -> i64:
        """Find places for the parameters of a join, and return all registers that are taken then."""
        pool = self._pool
        parameters: int = self._ir.block_params[block]
        count = 0
        for index in range(1, pool[parameters] + 1):
            parameter: i64 = pool[parameters + index]
            if self._heads[parameter] == 0:
                continue
            hint: i64 = self._hints[parameter]
            if hint < 0:
                hint = self._hints[-hint]
            register: i64 = -1
            if hint > 0 and taken >> (hint - 1) & 1 == 0:
                register = hint - 1
            else:
                register = self._pick(taken, self._home.data[pool[edge + 1 + index]])
            if register < 0:
                self._saved.append(-index)
                continue
            self._states.append(index << 8 | register)
            self._hints[parameter] = register + 1
            taken |= 1 << register
            count += 1
        self._states.data[state + _PARAMETERS] = count
        return taken

    def _pick(self, taken: i64, preferred: i64) -> i64:
        """A register outside `taken`: the preferred or the lowest one, or -1."""
        if taken >> preferred & 1 == 0:
            return preferred
        free = ~taken & self._allocatable
        return lowest(free) if free else -1

    def _is_listed(self, value: i64, state: i64, count: i64) -> bool:
        states = self._states.data
        for index in range(state + _LISTS, state + _LISTS + count):
            if states[index] >> 8 == value:
                return True
        return any([item == value for item in self._saved.view])

    def _enter_join(self, block: int, above: int) -> None:
        """Start a block as it was designed."""
        self._unwind(self._marks.data[above])
        self._release_all()
        pool = self._pool
        states = self._states.data
        parameters: int = self._ir.block_params[block]
        state: i64 = self._state.data[block]
        cell: i64 = state + _LISTS
        for index in range(states[state + _THROUGH]):
            entry: i64 = states[cell]
            if self._is_live(entry >> 8):
                self._place(entry & 0xFF, entry >> 8)
            cell += 1
        for index in range(states[state + _PARAMETERS]):
            entry = states[cell]
            self._place(entry & 0xFF, pool[parameters + (entry >> 8)])
            cell += 1
        base: i64 = states[state + _BASE]
        count: i64 = states[state + _IN_SLOTS]
        self.depth = base + count
        for index in range(count):
            entry = states[cell]
            self._write_slot(base + index, entry if entry > 0 else pool[parameters - entry])
            cell += 1

    def close(self) -> None:
        self._saved.close()
        self._states.close()
        self._log.close()
        self._frame.close()
        self._edges.close()
        self._depths.close()
        self._marks.close()
        self._state.close()
        self._slots.close()
        self._home.close()
        self.clobbers.close()


def register_arguments(registers: int) -> int:
    """How many arguments travel in registers where there are so many."""
    return min(REGISTER_ARGUMENTS, registers - 1)
