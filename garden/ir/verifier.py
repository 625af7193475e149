"""The rules of the IR as checks. Tests run them on what lowering makes, and after every pass.

1. Every block with a function stands once in the layout of that function, and no edge leads to any other block.
2. A block ends with its only terminator. Every instruction stands in one block, every parameter in one list.
3. The first block of a function has the function's parameters, and no edge leads to it.
4. No block leads back to itself.
5. Columns that an opcode does not use are 0. Immediates, offsets and sizes fit 32 bits.
6. Every list lies inside `pool` and has one owner, so a pass may change it in place.
7. An edge has an argument of the right type for each parameter of its target.
8. Every operand is a value of the right type, and its definition dominates its use. In a block that cannot be reached
   everything dominates.
9. The keys of a switch or a lookup are distinct.

What an opcode takes, gives and uses, `garden.ir.ir.OPS` says.

Costs: linear. Messages and the keys of a list are Python objects.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Vec
from garden.common import MAX_IMM, MIN_IMM, WORD_SIZE
from garden.ir import ir as op
from garden.ir.blocks import count_predecessors
from garden.ir.dominators import Dominators
from garden.ir.ir import Ir
from garden.ir.operands import A_VALUE, B_VALUE, B_VALUES, OPERANDS, edge_at, edge_count
from garden.types.types import BOOL, DOUBLE, INT, STR, VOID

#: Messages after which the verifier stops.
MAX_MESSAGES: Final = 100

#: Opcodes that may stand in `imm` of a `BRANCH_CMP`, and in b of a `BRANCH_CMP_IMM`.
_COMPARISONS: Final = (op.ILT, op.ILE, op.IEQ, op.INE, op.DLT, op.DLE, op.SEQ, op.SNE)
_IMM_COMPARISONS: Final = (op.ILT_IMM, op.IGT_IMM, op.IEQ_IMM, op.INE_IMM)

#: The types that are meant by what `OPS` says instead of a type.
_TYPES: Final[dict[int, tuple[int, ...]]] = {
    op.SAME: (INT, BOOL),
    op.KEY: (INT, STR),
    op.NUMBER: (INT, BOOL, DOUBLE),
    op.CONSTANT: (INT, BOOL, DOUBLE, STR),
}


def verify(ir: Ir[Allocator], scratch: Allocator) -> list[str]:
    """What is wrong with the IR, nothing if it is well-formed; at most `MAX_MESSAGES`."""
    verifier = _Verifier(ir, scratch)
    try:
        verifier.run()
    finally:
        verifier.close()
    return verifier.messages


@mypyc_attr(native_class=True)
class _Verifier:
    """Where every value is defined, and which lists have an owner."""

    __slots__ = ("_block", "_owned", "_placed", "_places", "_where", "ir", "messages", "scratch")

    def __init__(self, ir: Ir[Allocator], scratch: Allocator) -> None:
        self.ir: Final = ir
        self.scratch: Final = scratch
        self.messages: Final[list[str]] = []
        self._where: Vec[Allocator] = Vec(scratch, "I")  # the block that defines a value, 0 where none does
        self._places: Vec[Allocator] = Vec(scratch, "I")  # its place in that block; parameters are at 0
        self._placed: Vec[Allocator] = Vec(scratch, "B")  # by block: whether it stands in a layout
        self._owned: Vec[Allocator] = Vec(scratch, "B")  # by index into the pool
        self._block = 0

    def close(self) -> None:
        self._owned.close()
        self._placed.close()
        self._places.close()
        self._where.close()

    def run(self) -> None:
        ir = self.ir
        self._where.fill(0, ir.value_count)
        self._places.fill(0, ir.value_count)
        self._placed.fill(0, ir.block_count)
        self._owned.fill(0, len(ir.pool))
        for function in range(1, ir.function_count):
            self._check_layout(function)
        for block in range(1, ir.block_count):
            if ir.block_function[block] and not self._placed.items[block]:
                self._say(block, 0, "stands in no layout")
        # The rest follows links and lists, so it needs them to be sound.
        if self.messages:
            return
        for block in range(1, ir.block_count):
            if ir.block_function[block]:
                self._check_lists(block)
        for function in range(1, ir.function_count):
            self._check_entry(function)
        if not self.messages:
            self._check_cycles()
        if self.messages:
            return
        for block in range(1, ir.block_count):
            inst: int = ir.block_first[block] if ir.block_function[block] else 0
            self._block = block
            while inst:
                self._check_types(inst)
                inst = ir.next[inst]
        self._check_dominance()

    def _say(self, block: int, inst: int, message: str) -> None:
        if len(self.messages) < MAX_MESSAGES:
            function: int = self.ir.block_function[block]
            row = f" row {inst} {self._name(inst)}" if inst else ""
            self.messages.append(f"function {function} block {block}{row}: {message}")

    def _name(self, inst: int) -> str:
        opcode: int = self.ir.op[inst]
        return op.OPS[opcode].name if opcode in op.OPS else f"opcode {opcode}"

    def _complain(self, inst: int, message: str) -> None:
        self._say(self._block, inst, message)

    # Links.

    def _check_layout(self, function: int) -> None:
        ir = self.ir
        block: int = ir.function_first[function]
        last = 0
        if block == 0:
            self.messages.append(f"function {function}: has no blocks")
        while block:
            if block >= ir.block_count:
                self._say(last, 0, f"is followed by block {block}, which does not exist")
                return
            if self._placed.items[block]:
                self._say(block, 0, "stands in a layout twice")
                return
            self._placed.items[block] = 1
            if ir.block_function[block] != function:
                self._say(block, 0, f"stands in the layout of function {function}")
                return
            self._check_block(block)
            last = block
            block = ir.block_next[block]
        if ir.function_last[function] != last:
            self.messages.append(f"function {function}: its last block is {last}, not {ir.function_last[function]}")

    def _check_block(self, block: int) -> None:
        ir = self.ir
        where = self._where.items
        parameters: int = ir.block_params[block]
        if self._check_list(block, 0, parameters, 0):
            for value in ir.list_at(parameters):
                if not 0 < value < ir.value_count or ir.op[value] != op.PARAM:
                    self._say(block, 0, f"row {value} in its list of parameters is none")
                elif where[value]:
                    self._say(block, 0, f"parameter {value} stands in two lists")
                elif ir.type[value] <= VOID:
                    self._say(block, 0, f"parameter {value} has no type")
                else:
                    where[value] = block
        place = 1
        last = 0
        inst: int = ir.block_first[block]
        while inst:
            if inst >= ir.value_count:
                self._say(block, last, f"is followed by row {inst}, which does not exist")
                return
            opcode: int = ir.op[inst]
            if opcode not in op.OPS or opcode == op.PARAM:
                self._say(block, inst, "stands in a block")
                return
            if where[inst]:
                self._say(block, inst, "stands in two places")
                return
            if last and ir.op[last] >= op.FIRST_TERMINATOR:
                self._say(block, last, "is a terminator before the end of its block")
            where[inst] = block
            self._places.items[inst] = place
            place += 1
            last = inst
            inst = ir.next[inst]
        if last != ir.block_last[block]:
            self._say(block, 0, f"its last instruction is {last}, not {ir.block_last[block]}")
        if last == 0 or ir.op[last] < op.FIRST_TERMINATOR:
            self._say(block, last, "does not end with a terminator")

    # Lists.

    def _check_list(self, block: int, inst: int, index: int, least: int) -> bool:
        """Whether a list lies inside the pool and has at least `least` words; says it where not, or if it is shared."""
        ir = self.ir
        if not 0 <= index < len(ir.pool):
            self._say(block, inst, f"list {index} is outside the pool")
            return False
        length: int = ir.pool.items[index]
        if length < least or index + 1 + length > len(ir.pool):
            self._say(block, inst, f"list {index} cannot have {length} words")
            return False
        if index:
            if self._owned.items[index]:
                self._say(block, inst, f"list {index} has two owners")
            self._owned.items[index] = 1
        return True

    def _check_lists(self, block: int) -> None:
        """Check lists and edges of a block's instructions: that they lie in the pool, and lead to blocks."""
        ir = self.ir
        inst: int = ir.block_first[block]
        while inst:
            entry = op.OPS[ir.op[inst]]
            sound = True
            if entry.b == op.CASES:
                sound = self._check_list(block, inst, ir.b[inst], 1)
                if sound and ir.pool.items[ir.b[inst]] % 2 == 0:
                    self._say(block, inst, "a key without what belongs to it")
                    sound = False
            elif entry.b == op.VALUES:
                sound = self._check_list(block, inst, ir.b[inst], 0)
            if sound:
                for index in range(edge_count(ir, inst)):
                    self._check_edge(block, inst, edge_at(ir, inst, index))
            for used, column, name in (
                (entry.a, ir.a, "a"),
                (entry.b, ir.b, "b"),
                (entry.c, ir.c, "c"),
                (entry.d, ir.d, "d"),
            ):
                if used == op.UNUSED and column[inst]:
                    self._say(block, inst, f"column {name} is not 0")
            inst = ir.next[inst]

    def _check_edge(self, block: int, inst: int, edge: int) -> None:
        ir = self.ir
        if not self._check_list(block, inst, edge, 1):
            return
        target: int = ir.pool.items[edge + 1]
        if not 0 < target < ir.block_count or ir.block_function[target] != ir.block_function[block]:
            self._say(block, inst, f"an edge leads to block {target}, which is dead or of another function")
        elif target == ir.function_first[ir.block_function[block]]:
            self._say(block, inst, "an edge leads to the first block")
        else:
            arguments: int = ir.pool.items[edge] - 1
            parameters: int = ir.pool.items[ir.block_params[target]]
            if arguments != parameters:
                self._say(block, inst, f"an edge has {arguments} arguments for {parameters} parameters")

    def _check_entry(self, function: int) -> None:
        ir = self.ir
        first: int = ir.function_first[function]
        if ir.function_parameters[function] != ir.pool.items[ir.block_params[first]]:
            self._say(first, 0, f"has not the {ir.function_parameters[function]} parameters of its function")

    def _check_cycles(self) -> None:
        """Take away blocks that nothing leads to, until none is left, or there is a cycle."""
        ir = self.ir
        targets = ir.pool.items
        counts = count_predecessors(ir, self.scratch)
        free: Vec[Allocator] = Vec(self.scratch, "I")
        try:
            left = counts.items
            for function in range(1, ir.function_count):
                # That of the function itself.
                left[ir.function_first[function]] -= 1
            for block in range(1, ir.block_count):
                if ir.block_function[block] and left[block] == 0:
                    free.append_i64(block)
            while len(free):
                block = free.pop_i64()
                terminator: int = ir.block_last[block]
                for index in range(edge_count(ir, terminator)):
                    target: int = targets[edge_at(ir, terminator, index) + 1]
                    left[target] -= 1
                    if left[target] == 0:
                        free.append_i64(target)
            for block in range(1, ir.block_count):
                if left[block]:
                    self._say(block, 0, "is on a cycle, or behind one")
        finally:
            free.close()
            counts.close()

    # Types and immediates.

    def _is(self, type: int, want: int) -> bool:
        if want == op.ANY:
            return type > VOID
        if want == op.MEMORY:
            return type > STR and self.ir.checked.types.type(type).name in ("Record", "Array", "Option")
        if want in _TYPES:
            return type in _TYPES[want]
        return type == want

    def _type_name(self, type: int) -> str:
        return str(self.ir.checked.types.type(type)) if type else "nothing"

    def _check_value(self, inst: int, value: int, want: int) -> None:
        """Check that an operand is a value, and of the type that is wanted."""
        ir = self.ir
        if not 0 < value < ir.value_count or not self._where.items[value]:
            self._complain(inst, f"operand {value} is defined nowhere")
        elif ir.block_function[self._where.items[value]] != ir.block_function[self._block]:
            self._complain(inst, f"operand {value} is a value of another function")
        elif not self._is(ir.type[value], want):
            self._complain(inst, f"operand {value} is a {self._type_name(ir.type[value])}")

    def _check_types(self, inst: int) -> None:
        ir = self.ir
        opcode: int = ir.op[inst]
        entry = op.OPS[opcode]
        takes_a = entry.takes_a
        takes_b = entry.takes_b
        if entry.imm == op.COMPARISON:
            if ir.imm[inst] not in _COMPARISONS:
                self._complain(inst, f"opcode {ir.imm[inst]} is no comparison")
                return
            comparison = op.OPS[ir.imm[inst]]
            takes_a = comparison.takes_a
            takes_b = comparison.takes_b
        if entry.a == op.MAYBE_VALUE:
            self._check_returned(inst)
        elif entry.a == op.VALUE:
            self._check_value(inst, ir.a[inst], takes_a)
        elif entry.a == op.FUNCTION:
            self._check_call(inst)
        elif entry.a == op.HOST:
            self._check_sys(inst)
        if entry.b == op.VALUE:
            self._check_value(inst, ir.b[inst], takes_b)
            if takes_b == op.SAME and ir.type[ir.a[inst]] != ir.type[ir.b[inst]]:
                self._complain(inst, "its operands differ in type")
        elif entry.b == op.COMPARE and ir.b[inst] not in _IMM_COMPARISONS:
            self._complain(inst, f"opcode {ir.b[inst]} is no comparison with an immediate")
        elif entry.b == op.CASES:
            self._check_keys(inst)
        if entry.gives != op.CALLED and not self._is(ir.type[inst], entry.gives):
            self._complain(inst, f"its result is a {self._type_name(ir.type[inst])}")
        for index in range(edge_count(ir, inst)):
            edge = ir.list_at(edge_at(ir, inst, index))
            parameters = ir.list_at(ir.block_params[edge[0]])
            for position in range(len(parameters)):
                self._check_value(inst, edge[1 + position], ir.type[parameters[position]])
        self._check_imm(inst, entry.imm)

    def _check_call(self, inst: int) -> None:
        ir = self.ir
        callee: int = ir.a[inst]
        if not 0 < callee < ir.function_count:
            self._complain(inst, f"there is no function {callee}")
            return
        values = ir.list_at(ir.b[inst])
        parameters = ir.list_at(ir.block_params[ir.function_first[callee]])
        if len(values) != len(parameters):
            self._complain(inst, f"{len(values)} arguments for {len(parameters)} parameters")
            return
        for index in range(len(values)):
            self._check_value(inst, values[index], ir.type[parameters[index]])
        result: int = ir.function_result[callee]
        if ir.op[inst] == op.TAIL:
            own: int = ir.function_result[ir.block_function[self._block]]
            if own > VOID and own != result:
                self._complain(inst, f"gives a {self._type_name(result)} where a {self._type_name(own)} is due")
        elif ir.type[inst] != (result if result > VOID else 0):
            self._complain(inst, f"its result is a {self._type_name(ir.type[inst])}")

    def _check_sys(self, inst: int) -> None:
        ir = self.ir
        if not 0 <= ir.a[inst] < len(ir.checked.hosts):
            self._complain(inst, f"there is no host function {ir.a[inst]}")
            return
        host = ir.checked.hosts[ir.a[inst]]
        values = ir.list_at(ir.b[inst])
        if len(values) != len(host.parameters):
            self._complain(inst, f"{len(values)} arguments for {len(host.parameters)} parameters")
            return
        for index in range(len(values)):
            self._check_value(inst, values[index], op.ANY)
            want = host.parameters[index][1]
            if not want.generic and ir.checked.types.type(ir.type[values[index]]) != want:
                self._complain(inst, f"argument {values[index]} is a {self._type_name(ir.type[values[index]])}")
        result = ir.checked.types.type(ir.type[inst] or VOID)
        if not host.result.generic and result != host.result:
            self._complain(inst, f"its result is a {self._type_name(ir.type[inst])}")

    def _check_returned(self, inst: int) -> None:
        ir = self.ir
        result: int = ir.function_result[ir.block_function[self._block]]
        if result > VOID:
            self._check_value(inst, ir.a[inst], result)
        elif ir.a[inst]:
            self._complain(inst, "a value where none is due")

    def _check_keys(self, inst: int) -> None:
        words = self.ir.list_at(self.ir.b[inst])
        keys = set()
        for index in range(1, len(words), 2):
            keys.add(words[index])
        if 2 * len(keys) + 1 != len(words):
            self._complain(inst, "a key stands there twice")

    def _check_imm(self, inst: int, kind: int) -> None:
        ir = self.ir
        imm: int = ir.imm[inst]
        if (
            (kind == op.NO_IMM and imm)
            or (kind == op.IMM and not MIN_IMM <= imm <= MAX_IMM)
            or (kind == op.BITS and ir.type[inst] == BOOL and imm not in (0, 1))
            or (kind == op.SYMBOL and not 0 <= imm < len(ir.checked.ast.symbols))
            or (kind in (op.OFFSET, op.SIZE) and (not 0 <= imm <= MAX_IMM or imm % WORD_SIZE))
        ):
            self._complain(inst, f"imm cannot be {imm}")

    # Dominance.

    def _check_dominance(self) -> None:
        ir = self.ir
        pool = ir.pool.items
        dominators = Dominators(ir, self.scratch)
        try:
            for block in range(1, ir.block_count):
                inst: int = ir.block_first[block] if ir.block_function[block] else 0
                if inst and not dominators.reachable(block):
                    continue
                self._block = block
                while inst:
                    flags = OPERANDS[ir.op[inst]]
                    if flags & A_VALUE and ir.a[inst]:
                        self._check_dominates(inst, ir.a[inst], dominators)
                    if flags & B_VALUE:
                        self._check_dominates(inst, ir.b[inst], dominators)
                    elif flags & B_VALUES:
                        for value in ir.list_at(ir.b[inst]):
                            self._check_dominates(inst, value, dominators)
                    for index in range(edge_count(ir, inst)):
                        edge = edge_at(ir, inst, index)
                        for cell in range(edge + 2, edge + 1 + pool[edge]):
                            self._check_dominates(inst, pool[cell], dominators)
                    inst = ir.next[inst]
        finally:
            dominators.close()

    def _check_dominates(self, inst: int, value: int, dominators: Dominators) -> None:
        where = self._where.items
        if not 0 < value < self.ir.value_count or not where[value]:
            return
        if where[value] == self._block:
            sound = self._places.items[value] < self._places.items[inst]
        else:
            sound = dominators.reachable(where[value]) and dominators.dominates(where[value], self._block)
        if not sound:
            self._complain(inst, f"operand {value} does not dominate it")
