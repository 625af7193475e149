"""Joins: the places of values when a block starts, and the code on the edges between blocks.

A block with one predecessor starts as that ends, so its edge never takes code. Its parameters are the arguments under
another name, copied only where the argument is still needed or a constant.

Where control flow joins, the edge that comes first decides in which registers values arrive; the others move them. All
edges arrive with the slots that the block's immediate dominator had at its end, or those that the first edge has left
of them, and with everything that was saved since then back in a register. Only where there are not enough registers do
values arrive in further slots. Constants do not arrive at all.

Going back to the end of a dominator is undoing what was written to slots since, and reading the registers that were
written down there.

Costs: at most one look at every register for each edge; a word for each register in use at a branch, until the function
ends.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec
from garden.bytecode.liveness import Liveness
from garden.bytecode.places import Places
from garden.bytecode.regalloc import RegisterAllocator
from garden.bytecode.register_sets import lowest, only
from garden.ir.ir import Ir
from garden.ir.order import BlockOrder

# The state in which a join starts, as words of `_states`: how many values arrive in registers, how many parameters do,
# how many of both arrive in slots, and the depth below these slots; then the three lists. Values are `value << 8 |
# register`, parameters `place << 8 | register`; in slots `value`, or `-place`.
_THROUGH: Final = 0
_PARAMETERS: Final = 1
_IN_SLOTS: Final = 2
_BASE: Final = 3
_LISTS: Final = 4


@mypyc_attr(native_class=True)
class Joins:
    """The states of the blocks of one function after the other."""

    __slots__ = (
        "_depths",
        "_heads",
        "_hints",
        "_ir",
        "_marks",
        "_order",
        "_places",
        "_pool",
        "_registers",
        "_saved",
        "_state",
        "_states",
    )

    def __init__(
        self,
        ir: Ir[Allocator],
        order: BlockOrder,
        places: Places,
        registers: RegisterAllocator,
        liveness: Liveness,
        scratch: Allocator,
    ) -> None:
        self._ir: Final = ir
        self._order: Final = order
        self._places: Final = places
        self._registers: Final = registers
        self._hints: Final = liveness.hints
        self._pool: Final = ir.pool.items
        self._heads = places.heads
        # By block: until it starts, the only edge that leads to it, or the state of a join in `_states`, and after its
        # end the registers then, also there; length of the log at its end; depth at its end.
        self._state: Vec[Allocator] = Vec(scratch, "I")
        self._marks: Vec[Allocator] = Vec(scratch, "I")
        self._depths: Vec[Allocator] = Vec(scratch, "I")
        self._states: Vec[Allocator] = Vec(scratch, "q")
        # What arrives at a join in slots: values, and parameters as -place.
        self._saved: Vec[Allocator] = Vec(scratch, "q")

    def prepare(self) -> None:
        """Take the memory for the blocks of the program. `places` has taken its own before."""
        self._heads = self._places.heads
        for column in (self._state, self._marks, self._depths):
            column.fill_zero(self._ir.block_count)

    def close(self) -> None:
        self._saved.close()
        self._states.close()
        self._depths.close()
        self._marks.close()
        self._state.close()

    # Blocks.

    def begin_function(self) -> None:
        """Forget the states of the function before."""
        self._states.clear()
        self._states.append_i64(0)

    def begin_block(self, block: i64, previous: i64) -> None:
        """Start a block; `previous` is the one that was emitted before."""
        places = self._places
        places.rank = self._order.ranks.items[block]
        places.pinned = 0
        self._registers.next_call()
        above: i64 = self._order.dominators.items[block]
        if above == 0:
            return
        if self._order.predecessors.items[block] > 1:
            self._enter_join(block, above)
            return
        if above != previous:
            self._restore(above)
        edge: i64 = self._state.items[block]
        if self._pool[edge] > 1:
            self._bind(block, edge)
        else:
            self._release_dead()

    def _restore(self, block: i64) -> None:
        """Go back to the end of a block."""
        places = self._places
        places.unwind(self._marks.items[block])
        places.depth = self._depths.items[block]
        places.release_all()
        states = self._states.items
        state: i64 = self._state.items[block]
        for index in range(state + 1, state + 1 + states[state]):
            entry: i64 = states[index]
            places.place(entry & 0xFF, entry >> 8)

    def _release_dead(self) -> None:
        places = self._places
        used = ~places.free & places.allocatable
        while used:
            register = lowest(used)
            used &= used - 1
            if not places.is_live(places.holds[register]):
                places.release(register)

    def _bind(self, block: i64, edge: i64) -> None:
        """Let the parameters of a block with one predecessor be the arguments of the edge."""
        pool = self._pool
        places = self._places
        parameters: i64 = self._ir.block_params[block]
        count: i64 = pool[parameters]
        for index in range(1, count + 1):
            parameter: i64 = pool[parameters + index]
            argument: i64 = pool[edge + 1 + index]
            if self._heads[parameter] and not places.is_live(argument) and not places.is_constant(argument):
                places.rename(argument, parameter)
        self._release_dead()
        for index in range(1, count + 1):
            parameter = pool[parameters + index]
            if self._heads[parameter] and places.register_of(parameter) < 0 and places.slot_of(parameter) < 0:
                self._copy_argument(parameter, edge, index, parameters)

    def _copy_argument(self, parameter: i64, edge: i64, index: i64, parameters: i64) -> None:
        pool = self._pool
        places = self._places
        argument: i64 = pool[edge + 1 + index]
        source: i64 = -1
        if not places.is_constant(argument):
            if not places.is_live(argument):
                # Passed twice: an earlier parameter has taken its place.
                other: i64 = 1
                while pool[edge + 1 + other] != argument or self._heads[pool[parameters + other]] == 0:
                    other += 1
                argument = pool[parameters + other]
            source = places.register_of(argument)
        places.pinned = 0
        if source >= 0:
            places.pinned = only(source)
        target = self._registers.define(parameter, self._heads[parameter])
        if source < 0:
            places.load(target, argument)
        elif target != source:
            places.assembler.move(target, source)

    def end_block(self, block: i64, keep: bool) -> None:
        """Finish a block but for its edges; `keep` if one that does not follow at once will start as this one ends."""
        places = self._places
        self._marks.items[block] = len(places.log)
        self._depths.items[block] = places.depth
        if not keep:
            return
        states = self._states
        state: i64 = len(states)
        self._state.items[block] = state
        states.append_i64(0)
        used = ~places.free & places.allocatable
        count: i64 = 0
        while used:
            register = lowest(used)
            used &= used - 1
            states.append_i64(places.holds[register] << 8 | register)
            count += 1
        states.items[state] = count

    # Edges.

    def plan_edge(self, edge: i64) -> bool:
        """Look at an edge out of the block that has come to its end; whether going along it takes code."""
        pool = self._pool
        places = self._places
        target: i64 = pool[edge + 1]
        if self._order.predecessors.items[target] == 1:
            self._state.items[target] = edge
            return False
        places.begin_plan()
        if self._state.items[target] == 0:
            self._design(target, edge)
        states = self._states.items
        state: i64 = self._state.items[target]
        cell: i64 = state + _LISTS
        for _value in range(states[state + _THROUGH]):
            entry: i64 = states[cell]
            places.plan(entry & 0xFF, entry >> 8)
            cell += 1
        for _parameter in range(states[state + _PARAMETERS]):
            entry = states[cell]
            places.plan(entry & 0xFF, pool[edge + 1 + (entry >> 8)])
            cell += 1
        depth: i64 = states[state + _BASE]
        return places.has_plan() or states[state + _IN_SLOTS] > 0 or depth != places.depth

    def emit_edge(self, edge: i64) -> None:
        """Emit the code of the edge that was planned last. What is known of the end of the block stays as it is."""
        pool = self._pool
        places = self._places
        states = self._states.items
        state: i64 = self._state.items[pool[edge + 1]]
        count: i64 = states[state + _IN_SLOTS]
        base: i64 = states[state + _BASE]
        depth = places.depth
        while places.depth < base:
            places.push_anything()
        cell: i64 = state + _LISTS + states[state + _THROUGH] + states[state + _PARAMETERS]
        for index in range(cell, cell + count):
            entry: i64 = states[index]
            places.push_value(entry if entry > 0 else pool[edge + 1 - entry])
        places.carry_out(places.depth if count else base)
        places.settle(count, base)
        places.depth = depth

    def _design(self, block: i64, edge: i64) -> None:
        """Decide where values are when a join starts, so that the edge that comes first has little to do."""
        places = self._places
        here = places.rank
        # Liveness is asked about the join from here on.
        places.rank = self._order.ranks.items[block]
        states = self._states
        state: i64 = len(states)
        self._state.items[block] = state
        for _word in range(_LISTS):
            states.append_i64(0)
        self._saved.clear()
        taken = self._design_through(self._order.dominators.items[block], state)
        taken = self._design_parameters(block, edge, state, taken)
        # Not without dead slots: dropping them takes an instruction, and they will be used again.
        base: i64 = self._depths.items[self._order.dominators.items[block]]
        if base > places.depth:
            base = places.depth
        states.items[state + _IN_SLOTS] = len(self._saved)
        states.items[state + _BASE] = base
        states.extend(self._saved.view)
        places.written |= taken
        places.rank = here

    def _design_through(self, above: i64, state: i64) -> i64:
        """Find places for the values that live on, and return all registers that are taken then."""
        places = self._places
        states = self._states
        taken: i64 = 0
        count: i64 = 0
        used = ~places.free & places.allocatable
        while used:
            register = lowest(used)
            used &= used - 1
            value: i64 = places.holds[register]
            if places.is_live(value) and not places.is_constant(value):
                states.append_i64(value << 8 | register)
                taken |= only(register)
                count += 1
        # What was written to slots since the end of the dominator is not there on other ways.
        log = places.log.items
        for index in range(self._marks.items[above], len(places.log), 2):
            value = places.frame.items[log[index]]
            if places.is_live(value) and places.register_of(value) < 0 and not self._is_listed(value, state, count):
                register = self._pick(taken, places.home[value])
                if register < 0:
                    self._saved.append_i64(value)
                else:
                    states.append_i64(value << 8 | register)
                    taken |= only(register)
                    count += 1
        states.items[state + _THROUGH] = count
        return taken

    def _design_parameters(self, block: i64, edge: i64, state: i64, taken: i64) -> i64:
        """Find places for the parameters of a join, and return all registers that are taken then."""
        pool = self._pool
        places = self._places
        hints = self._hints.items
        parameters: i64 = self._ir.block_params[block]
        count: i64 = 0
        for index in range(1, pool[parameters] + 1):
            parameter: i64 = pool[parameters + index]
            if self._heads[parameter] == 0:
                continue
            hint: i64 = hints[parameter]
            if hint < 0:
                hint = hints[-hint]
            register: i64
            if hint > 0 and taken >> (hint - 1) & 1 == 0:
                register = hint - 1
            else:
                register = self._pick(taken, places.home[pool[edge + 1 + index]])
            if register < 0:
                self._saved.append_i64(-index)
                continue
            self._states.append_i64(index << 8 | register)
            hints[parameter] = register + 1
            taken |= only(register)
            count += 1
        self._states.items[state + _PARAMETERS] = count
        return taken

    def _pick(self, taken: i64, preferred: i64) -> i64:
        """A register outside `taken`: the preferred or the lowest one, or -1."""
        if taken >> preferred & 1 == 0:
            return preferred
        free = ~taken & self._places.allocatable
        if free:
            return lowest(free)
        return -1

    def _is_listed(self, value: i64, state: i64, count: i64) -> bool:
        states = self._states.items
        for index in range(state + _LISTS, state + _LISTS + count):
            if states[index] >> 8 == value:
                return True
        saved = self._saved.items
        place: i64 = 0
        while place < len(self._saved) and saved[place] != value:
            place += 1
        return place < len(self._saved)

    def _enter_join(self, block: i64, above: i64) -> None:
        """Start a block as it was designed."""
        pool = self._pool
        places = self._places
        places.unwind(self._marks.items[above])
        places.release_all()
        states = self._states.items
        parameters: i64 = self._ir.block_params[block]
        state: i64 = self._state.items[block]
        cell: i64 = state + _LISTS
        for _value in range(states[state + _THROUGH]):
            entry: i64 = states[cell]
            if places.is_live(entry >> 8):
                places.place(entry & 0xFF, entry >> 8)
            cell += 1
        for _parameter in range(states[state + _PARAMETERS]):
            entry = states[cell]
            places.place(entry & 0xFF, pool[parameters + (entry >> 8)])
            cell += 1
        base: i64 = states[state + _BASE]
        count: i64 = states[state + _IN_SLOTS]
        places.depth = base + count
        for index in range(count):
            entry = states[cell + index]
            places.write_slot(base + index, entry if entry > 0 else pool[parameters - entry])
