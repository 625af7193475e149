"""Makes random IR: functions that call one another and themselves, of blocks that branch, join and leave early.

Every function takes as its first parameter how deep it may still call. Values that are handed on are Ints; Bools and
records are used right where they are made.
"""

from __future__ import annotations

from random import Random

from allocators import Allocator
from allocators.collections import Interner
from garden.host import HostFunction
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.tokens import Tokens
from garden.types.program import CheckedProgram
from garden.types.types import BOOL, INT, Int, Record

_BINARY = (op.IADD, op.ISUB, op.IMUL)
_WITH_IMM = (op.IADD_IMM, op.ISUB_IMM, op.IMUL_IMM)
_COMPARE = (op.ILT, op.ILE, op.IEQ, op.INE)
_COMPARE_IMM = (op.ILT_IMM, op.IGT_IMM, op.IEQ_IMM, op.INE_IMM)
_CONSTANTS = (0, 1, 2, 3, -1, 100, -40000, 1 << 31, -(1 << 40), (1 << 63) - 1)


def _weigh(*words: int) -> int:
    total = 0
    for index, word in enumerate(words):
        total += (index + 1) * (word % 1009)
    return total


def hosts() -> list[HostFunction]:
    """Host functions of one, two and three Ints."""
    return [
        HostFunction("test", f"weigh{count}", tuple((f"p{index}", Int) for index in range(count)), Int, _weigh)
        for count in (1, 2, 3)
    ]


def empty_program(allocator: Allocator) -> Ir[Allocator]:
    """An IR without functions; `close_parsed` closes it and what is around it."""
    symbols = Interner(allocator)
    symbols.intern(b"")
    ast = Ast(allocator, Source("test", b""), symbols, Tokens(allocator))
    checked = CheckedProgram(allocator, ast)
    checked.hosts.extend(hosts())
    return Ir(allocator, checked)


class Join:
    """A block that several others may jump to; `values` are those that it sees."""

    def __init__(self, block: int, parameters: int, values: list[int]) -> None:
        self.block = block
        self.parameters = parameters
        self.values = values


class Generator:
    def __init__(self, random: Random, ir: Ir[Allocator], *, most_parameters: int, size: int) -> None:
        self.random = random
        self.ir = ir
        self.most_parameters = most_parameters
        self.size = size
        self.function = 0
        self.fuel = 0
        self.left = 0

    def program(self, functions: int) -> None:
        ir = self.ir
        random = self.random
        for _ in range(functions):
            name = ir.checked.ast.symbols.intern(b"f%d" % ir.function_count)
            ir.add_function(name, INT, 0, random.randint(1, self.most_parameters))
        entry = ir.add_function(0, INT, 0, 0)
        for row in range(1, entry + 1):
            self.generate(row)

    def generate(self, row: int) -> None:
        ir = self.ir
        self.function = row
        self.left = self.size
        block = ir.add_block(row)
        count = ir.function_parameters[row]
        parameters = [ir.add(op.PARAM, INT, 0) for _ in range(count)]
        ir.block_params[block] = ir.add_list(parameters)
        values = parameters[1:]
        if parameters:
            # Nothing calls any more where the fuel is used up.
            stop = ir.add_block(row)
            go = ir.add_block(row)
            self.emit(block, op.BRANCH_CMP_IMM, parameters[0], op.IGT_IMM, self.edge(go, []), self.edge(stop, []), 0)
            self.emit(stop, op.RET, self.random.choice(parameters))
            block = go
            self.fuel = self.emit(block, op.ISUB_IMM, parameters[0], imm=1)
        else:
            self.fuel = self.emit(block, op.CONST, imm=3)
        self.body(block, values, [])

    def emit(
        self, block: int, code: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, imm: int = 0, type: int = INT
    ) -> int:
        has_type = code < op.FIRST_TERMINATOR and code not in (op.STORE, op.COPY)
        row = self.ir.add(code, type if has_type else 0, self.random.randrange(100), a=a, b=b, c=c, d=d, imm=imm)
        self.ir.append(block, row)
        return row

    def edge(self, block: int, arguments: list[int]) -> int:
        return self.ir.add_list([block, *arguments])

    def value(self, block: int, values: list[int]) -> int:
        """One of the values, most often a recent one, or a constant."""
        random = self.random
        if not values or random.random() < 0.15:
            return self.emit(block, op.CONST, imm=random.choice(_CONSTANTS))
        if random.random() < 0.5:
            return random.choice(values[-4:])
        return random.choice(values)

    def arguments(self, block: int, values: list[int], count: int) -> list[int]:
        return [self.value(block, values) for _ in range(count)]

    def body(self, block: int, values: list[int], joins: list[Join]) -> None:
        """Fill a block, and those behind it, up to what ends them."""
        random = self.random
        ir = self.ir
        values = list(values)
        while True:
            for _ in range(random.randint(0, 5)):
                self.left -= 1
                self.instruction(block, values)
            self.left -= 1
            if self.left <= 0 or random.random() < 0.2:
                self.leave(block, values, joins)
                return
            join = Join(ir.add_block(self.function), random.randint(0, 3), list(values))
            inner = [*joins, join]
            arms = []
            edges = []
            for _ in range(2 if random.random() < 0.7 else random.randint(3, 7)):
                if random.random() < 0.15:
                    edges.append(self.edge(join.block, self.arguments(block, values, join.parameters)))
                    continue
                arm = ir.add_block(self.function)
                passed = self.arguments(block, values, random.choice((0, 0, 0, 1, 2)))
                parameters = [ir.add(op.PARAM, INT, 0) for _ in passed]
                ir.block_params[arm] = ir.add_list(parameters)
                edges.append(self.edge(arm, passed))
                arms.append((arm, values + parameters))
            self.branch(block, values, edges)
            for arm, seen in arms:
                self.body(arm, seen, inner)
            parameters = [ir.add(op.PARAM, INT, 0) for _ in range(join.parameters)]
            ir.block_params[join.block] = ir.add_list(parameters)
            block = join.block
            values = join.values + parameters

    def branch(self, block: int, values: list[int], edges: list[int]) -> None:
        random = self.random
        subject = self.value(block, values)
        if len(edges) > 2:
            sparse = random.random() < 0.3
            keys = random.sample(range(-3, 10), len(edges) - 1)
            cases = [edges[0]]
            for key, edge in zip(keys, edges[1:], strict=True):
                cases.extend([key * 1000003 if sparse else key, edge])
            self.emit(block, op.SWITCH, subject, self.ir.add_list(cases))
            return
        kind = random.randrange(3)
        if kind == 0:
            condition = self.emit(block, op.INT_TO_BOOL, subject, type=BOOL)
            self.emit(block, op.BRANCH, condition, 0, *edges)
        elif kind == 1:
            other = self.value(block, values)
            self.emit(block, op.BRANCH_CMP, subject, other, *edges, random.choice(_COMPARE))
        else:
            imm = random.choice((0, 1, 2, -5, 32767, 32768, -100000))
            self.emit(block, op.BRANCH_CMP_IMM, subject, random.choice(_COMPARE_IMM), *edges, imm)

    def leave(self, block: int, values: list[int], joins: list[Join]) -> None:
        """End a block: go on in a join that is open, most often the nearest one, or end the function."""
        random = self.random
        if joins and random.random() < 0.85:
            join = joins[-1] if random.random() < 0.8 else random.choice(joins)
            self.emit(block, op.JUMP, c=self.edge(join.block, self.arguments(block, values, join.parameters)))
        elif self.function < self.ir.function_count - 1 and random.random() < 0.4:
            self.emit(block, op.TAIL, *self.call(block, values))
        else:
            self.emit(block, op.RET, self.value(block, values))

    def call(self, block: int, values: list[int]) -> tuple[int, int]:
        """A function and the list of its arguments."""
        functions = self.ir.function_count - 2
        callee = self.function if self.random.random() < 0.3 else self.random.randint(1, functions)
        if callee > functions:
            callee = functions
        count = self.ir.function_parameters[callee] - 1
        return callee, self.ir.add_list([self.fuel, *self.arguments(block, values, count)])

    def instruction(self, block: int, values: list[int]) -> None:
        random = self.random
        choice = random.random()
        if choice < 0.3:
            values.append(self.emit(block, random.choice(_BINARY), *self.arguments(block, values, 2)))
        elif choice < 0.45:
            compared = self.emit(block, random.choice(_COMPARE), *self.arguments(block, values, 2), type=BOOL)
            values.append(self.emit(block, op.BOOL_TO_INT, compared))
        elif choice < 0.55:
            imm = random.choice((0, 1, 7, -3, 1 << 20))
            values.append(self.emit(block, random.choice(_WITH_IMM), self.value(block, values), imm=imm))
        elif choice < 0.65:
            code = random.choice(_COMPARE_IMM)
            compared = self.emit(block, code, self.value(block, values), imm=random.choice((0, 3, -1)), type=BOOL)
            values.append(self.emit(block, op.BOOL_TO_INT, compared))
        elif choice < 0.7:
            values.append(self.emit(block, op.INEG, self.value(block, values)))
        elif choice < 0.74:
            divisor = random.choice((2, 3, -7))
            values.append(
                self.emit(block, random.choice((op.IDIV_IMM, op.IMOD_IMM)), self.value(block, values), imm=divisor)
            )
        elif choice < 0.78:
            scale = random.choice((1, 1, 70001))
            cases = [17]
            for key in random.sample(range(-4, 12), random.randint(0, 8)):
                cases.extend([key * scale, random.choice(_CONSTANTS)])
            values.append(self.emit(block, op.LOOKUP, self.value(block, values), self.ir.add_list(cases)))
        elif choice < 0.83:
            self.record(block, values)
        elif choice < 0.9:
            count = random.randint(1, 3)
            arguments = self.ir.add_list(self.arguments(block, values, count))
            values.append(self.emit(block, op.SYS, count - 1, arguments))
        else:
            values.append(self.emit(block, op.CALL, *self.call(block, values)))

    def record(self, block: int, values: list[int]) -> None:
        types = self.ir.checked.types
        three = types.intern(Record(a=Int, b=Int, c=Int))
        two = types.intern(Record(b=Int, c=Int))
        record = self.emit(block, op.ALLOC, imm=24, type=three)
        for offset in (0, 8, 16):
            self.emit(block, op.STORE, self.value(block, values), record, imm=offset)
        inner = self.emit(block, op.ADDROF, record, imm=8, type=two)
        if self.random.random() < 0.5:
            copy = self.emit(block, op.ALLOC, imm=24, type=three)
            self.emit(block, op.COPY, record, copy, imm=24)
            if self.random.random() < 0.5:
                self.emit(block, op.COPY, inner, copy, imm=16)
            values.append(self.emit(block, op.LOAD, copy, imm=8 * self.random.randrange(3)))
        values.append(self.emit(block, op.LOAD, record, imm=0))
        values.append(self.emit(block, op.LOAD, inner, imm=8))


def random_program(
    seed: int, allocator: Allocator, *, functions: int = 3, most_parameters: int = 5, size: int = 30
) -> Ir[Allocator]:
    """A program that ends, made from a seed."""
    ir = empty_program(allocator)
    Generator(Random(seed), ir, most_parameters=most_parameters, size=size).program(functions)
    return ir
