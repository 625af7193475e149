"""RegisterAllocator: gives values registers, and passes arguments and results.

A linear scan over the blocks in the order of `garden.ir.order`, in the same pass that emits, one function at a
time. A value that must leave its register is saved once, and comes back into any register where it is needed again. So
nothing is ever refused: what does not fit is saved.

A result goes to the register of its hint (see `garden.bytecode.liveness`). Where a value sits there that the next call
would destroy or wants elsewhere anyway, that value makes room at once. Without a hint it is the lowest free register,
outside what the next call destroys if the value is needed after the call. If no register is free, the value whose next
use is furthest away leaves its own.

A call may change every register, unless the callee has been emitted before: then the registers that it changes are
known. What is needed after a call is moved to a register that the call leaves alone, or saved: so only paths that call
save anything. What was saved is read back into the register that wants it, and popped at the last read from the top.

Costs: linear in the number of operands, with at most one look at every register for each call.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.bytecode.liveness import NUMBER, RANK_SHIFT, Liveness
from garden.bytecode.ops import REGISTERS
from garden.bytecode.places import Places
from garden.bytecode.register_sets import lowest, only
from garden.ir import ir as op
from garden.ir.ir import Ir

#: Two operands and the scratch register, and one more so that arguments are not a special case.
FEWEST_REGISTERS: Final = 4
#: What a call of an unknown function changes: all registers but the last, which no function uses.
ALL_REGISTERS: Final = (1 << (REGISTERS - 1)) - 1

#: Saving this many values at once is cheaper in slots than in registers, since three pushes are one instruction.
_PACKED: Final = 3


@mypyc_attr(native_class=True)
class RegisterAllocator:
    """`clobbers` is a Vec 'q' by function, of the registers that calling it changes."""

    __slots__ = (
        "_heads",
        "_hints",
        "_ir",
        "_liveness",
        "_lost",
        "_next_arguments",
        "_next_lost",
        "_next_mark",
        "_next_zone",
        "_ops",
        "_places",
        "_pool",
        "_register_arguments",
        "clobbers",
        "second",
    )

    def __init__(
        self, ir: Ir[Allocator], places: Places, liveness: Liveness, scratch: Allocator, register_arguments: int
    ) -> None:
        self._ir: Final = ir
        self._places: Final = places
        self._liveness: Final = liveness
        self._ops: Final = ir.op
        self._pool: Final = ir.pool.items
        self._register_arguments: Final[i64] = register_arguments
        self._heads = liveness.heads.items
        self._hints = liveness.hints.items
        self.second: i64 = 0  # register of the second operand
        self._lost: i64 = 0  # what the current call changes
        # The next call of the block: number of records after it, its arguments, their registers, what it changes.
        self._next_mark: i64 = 0
        self._next_arguments: i64 = 0
        self._next_zone: i64 = 0
        self._next_lost: i64 = 0
        self.clobbers: Vec[Allocator] = Vec(scratch, "q")

    def prepare(self) -> None:
        """Take the memory for the functions of the program. Liveness has taken its own before."""
        self._heads = self._liveness.heads.items
        self._hints = self._liveness.hints.items
        self.clobbers.fill(ALL_REGISTERS, self._ir.function_count)

    def close(self) -> None:
        self.clobbers.close()

    # Operands.

    def use(self, value: i64) -> i64:
        """The register of the only operand of an instruction, which then is consumed."""
        places = self._places
        places.pinned = 0
        head = self._liveness.consume(value)
        register = places.register_of(value)
        if register < 0:
            places.first_operand = value
            register = self._fetch(value)
            places.first_operand = 0
        places.pinned = only(register)
        if head >> RANK_SHIFT < places.rank:
            places.release(register)
        return register

    def use_both(self, left: i64, right: i64) -> i64:
        """The register of the first operand, and in `second` that of the second; both then are consumed."""
        places = self._places
        self._liveness.consume(left)
        self._liveness.consume(right)
        first = places.register_of(left)
        second = places.register_of(right)
        places.pinned = 0
        if first >= 0:
            places.pinned = only(first)
        if second >= 0:
            places.pinned |= only(second)
        if first < 0 or second < 0:
            places.first_operand = left
            places.second_operand = right
            if first < 0:
                first = self._fetch(left)
                places.pinned |= only(first)
            if second < 0:
                second = first if left == right else self._fetch(right)
                places.pinned |= only(second)
            places.first_operand = 0
            places.second_operand = 0
        if not places.is_live(left):
            places.release(first)
        if not places.is_live(right):
            places.release(second)
        self.second = second
        return first

    def _fetch(self, value: i64) -> i64:
        """Bring a value that is in no register into one."""
        places = self._places
        free = places.free & ~places.pinned
        if free & ~self._next_zone:
            free &= ~self._next_zone
        register = lowest(free) if free else self._evict(places.pinned)
        places.load(register, value)
        places.take(register, value)
        return register

    # Results.

    def define(self, value: i64, head: i64) -> i64:
        """The register for the result of the instruction whose operands were used last; `head` is that of `value`."""
        places = self._places
        if head == 0:
            return places.scratch
        register = self._choose(value, head & NUMBER)
        places.pinned = 0
        places.take(register, value)
        return register

    def _choose(self, value: i64, first: i64) -> i64:
        """A free register for a value that is used next by record `first`."""
        places = self._places
        avoid: i64 = 0
        if first <= self._next_mark:
            avoid = self._next_lost
        else:
            hint: i64 = self._hints[value]
            if hint < 0:
                hint = self._hints[-hint]
            if hint > 0:
                register = hint - 1
                if places.free >> register & 1:
                    return register
                if first <= self._next_mark + self._next_arguments and self._vacate(register):
                    return register
                avoid = self._next_zone
            elif self._survives(first):
                avoid = self._next_lost
        free = places.free & ~avoid
        if free == 0:
            free = places.free
        return lowest(free) if free else self._evict(0)

    def _survives(self, first: i64) -> bool:
        """Whether a value whose next use is record `first`, not after the next call, is used again after it."""
        rest: i64 = self._liveness.records.items[first]
        return rest & NUMBER <= self._next_mark and rest >> RANK_SHIFT >= self._places.rank

    def _vacate(self, register: i64) -> bool:
        """Let the value in an argument register of the next call make room, if it will have to anyway."""
        places = self._places
        value: i64 = places.holds[register]
        first: i64 = self._heads[value] & NUMBER
        if first > self._next_mark + self._next_arguments:
            return False
        room = places.free & ~places.pinned
        if first > self._next_mark and not places.is_constant(value):
            # An argument of the call itself.
            target: i64 = self._hints[value] - 1
            if target < 0 or room >> target & 1 == 0:
                room &= ~self._next_zone
                if room == 0:
                    return False
                target = lowest(room)
            places.move(value, register, target)
            return True
        if places.needs_saving(value):
            room &= ~self._next_lost
            if room:
                places.move(value, register, lowest(room))
                return True
            self._save_survivors()
        places.release(register)
        return True

    def _save_survivors(self) -> None:
        """Save what the next call would destroy: as one group, so that pushes are packed."""
        places = self._places
        used = ~places.free & places.allocatable & self._next_lost
        while used:
            register = lowest(used)
            used &= used - 1
            value: i64 = places.holds[register]
            first: i64 = self._heads[value] & NUMBER
            if (
                (first <= self._next_mark or self._survives(first))
                and first <= self._next_mark + self._next_arguments
                and places.needs_saving(value)
            ):
                places.save(value, register)

    def _evict(self, pinned: i64) -> i64:
        """Free the register, outside `pinned`, of the value whose next use is furthest away."""
        places = self._places
        used = ~places.free & places.allocatable & ~pinned
        register: i64 = -1
        furthest: i64 = 0
        while used:
            candidate = lowest(used)
            used &= used - 1
            next_use: i64 = self._heads[places.holds[candidate]] & NUMBER
            if register < 0 or next_use < furthest:
                register = candidate
                furthest = next_use
        value: i64 = places.holds[register]
        if places.needs_saving(value):
            places.save(value, register)
        places.release(register)
        return register

    def copy(self, value: i64, source: i64) -> None:
        """Make `value` the same as `source`, by renaming that if it is not needed any more."""
        places = self._places
        if places.is_constant(source):
            self._liveness.consume(source)
            places.load(self.define(value, self._heads[value]), source)
            return
        head: i64 = self._liveness.records.items[self._liveness.count]
        if head >> RANK_SHIFT < places.rank:
            self._liveness.consume(source)
            places.rename(source, value)
        else:
            register = self.use(source)
            target = self.define(value, self._heads[value])
            if target != register:
                places.assembler.move(target, register)

    # Calls.

    def next_call(self) -> None:
        """Look ahead to the next call of the block."""
        entry = self._liveness.calls.pop_i64()
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
        zone = only(self._in_registers(count)) - 1
        self._next_zone = zone
        self._next_lost = zone | 1
        if self._ops[row] == op.CALL:
            self._next_lost |= self.clobbers.items[self._ir.a[row]]

    def _in_registers(self, count: i64) -> i64:
        """How many of `count` arguments travel in registers."""
        return count if count < self._register_arguments else self._register_arguments

    def _consume(self, arguments: i64, count: i64) -> None:
        pool = self._pool
        for index in range(arguments + 1, arguments + 1 + count):
            self._liveness.consume(pool[index])

    def pass_arguments(self, arguments: i64, clobbered: i64) -> None:
        """Consume the arguments of a call and put them in place, and save what the call would destroy.

        `clobbered` are the registers that it changes beside those of arguments and result.
        """
        pool = self._pool
        places = self._places
        count: i64 = pool[arguments]
        in_registers = self._in_registers(count)
        moved: i64 = 1
        places.begin_plan()
        # Found before the arguments are consumed: some of them may be in slots.
        top = places.top()
        self._consume(arguments, count)
        for index in range(in_registers):
            if not places.plan(index, pool[arguments + 1 + index]):
                moved |= only(index)
        places.written |= moved
        self._lost = clobbered | moved
        self._save_lost(top, count == in_registers)
        for index in range(count - 1, in_registers - 1, -1):
            places.push_value(pool[arguments + 1 + index])
        places.carry_out(places.depth if count > in_registers else places.top())

    def _save_lost(self, top: i64, look_below: bool) -> None:
        """Save the live values that are only in registers that the call changes.

        Slots from `top` on are dead; `look_below` if those below may be too.
        """
        places = self._places
        used = ~places.free & places.allocatable & self._lost
        endangered: i64 = 0
        count: i64 = 0
        while used:
            register = lowest(used)
            used &= used - 1
            value: i64 = places.holds[register]
            if places.is_live(value) and places.needs_saving(value):
                endangered |= only(register)
                count += 1
        room = places.free & ~self._lost
        while endangered:
            register = lowest(endangered)
            endangered &= endangered - 1
            value = places.holds[register]
            if room and count < _PACKED:
                # The old register continues to hold the value: it may be an argument too.
                target = lowest(room)
                room &= room - 1
                places.assembler.move(target, register)
                places.take(target, value)
            elif top < places.depth:
                places.save_in(top, value, register)
                top += 1
            else:
                places.save_in(places.hole() if look_below else top, value, register)
                top = places.depth

    def end_call(self, arguments: i64, result: i64) -> None:
        """Forget what the call has destroyed, and take its result."""
        pool = self._pool
        places = self._places
        used = ~places.free & places.allocatable & self._lost
        while used:
            places.release(lowest(used))
            used &= used - 1
        count: i64 = pool[arguments]
        for index in range(arguments + 1, arguments + 1 + count):
            value: i64 = pool[index]
            if not places.is_live(value):
                register = places.register_of(value)
                if register >= 0:
                    places.release(register)
        places.depth -= count - self._in_registers(count)
        if self._heads[result]:
            places.take(0, result)
        self.next_call()

    def pass_to_tail(self, arguments: i64) -> None:
        """Put the arguments of a tail call in place, and leave nothing else on the spill stack."""
        pool = self._pool
        places = self._places
        count: i64 = pool[arguments]
        self._consume(arguments, count)
        in_registers = self._in_registers(count)
        places.begin_plan()
        for index in range(in_registers):
            if not places.plan(index, pool[arguments + 1 + index]):
                places.written |= only(index)
        for index in range(count - 1, in_registers - 1, -1):
            places.push_value(pool[arguments + 1 + index])
        on_stack = count - in_registers
        floor: i64 = 0
        if on_stack:
            floor = places.depth
        places.carry_out(floor)
        places.settle(on_stack, 0)
        self.next_call()

    def pass_result(self, value: i64) -> None:
        """Put the value that a function returns in place, unless there is none, and leave the spill stack empty."""
        places = self._places
        if value:
            self._liveness.consume(value)
            places.begin_plan()
            if not places.plan(0, value):
                places.carry_out(0)
                places.written |= 1
        places.drop(0)

    def begin_function(self, parameters: i64) -> None:
        """Start a function with a list of parameters."""
        pool = self._pool
        places = self._places
        places.release_all()
        places.log.clear()
        count: i64 = pool[parameters]
        places.depth = count - self._in_registers(count)
        for index in range(count):
            value: i64 = pool[parameters + 1 + index]
            if index >= self._register_arguments:
                places.write_slot(count - 1 - index, value)
            elif self._heads[value]:
                places.place(index, value)
        places.written = 0
