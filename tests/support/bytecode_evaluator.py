"""Evaluates IR directly, block by block, as an oracle for the bytecode that is made of it."""

from __future__ import annotations

from collections.abc import Callable

from allocators import Allocator
from garden import semantics
from garden.ir import ir as op
from garden.ir.ir import Ir

_INT: dict[int, Callable[[int, int], int]] = {
    op.IADD: lambda x, y: semantics.wrap(x + y),
    op.ISUB: lambda x, y: semantics.wrap(x - y),
    op.IMUL: lambda x, y: semantics.wrap(x * y),
    op.IDIV: semantics.idiv,
    op.IMOD: semantics.imod,
    op.ILT: lambda x, y: int(x < y),
    op.ILE: lambda x, y: int(x <= y),
    op.IEQ: lambda x, y: int(x == y),
    op.INE: lambda x, y: int(x != y),
    op.SEQ: lambda x, y: int(x == y),
    op.SNE: lambda x, y: int(x != y),
}
_IMM: dict[int, int] = {
    op.IADD_IMM: op.IADD,
    op.ISUB_IMM: op.ISUB,
    op.IMUL_IMM: op.IMUL,
    op.IDIV_IMM: op.IDIV,
    op.IMOD_IMM: op.IMOD,
    op.ILT_IMM: op.ILT,
    op.IEQ_IMM: op.IEQ,
    op.INE_IMM: op.INE,
}


class Evaluator:
    """Values are words. Memory is a list of words, an address eight times an index into it."""

    def __init__(self, ir: Ir[Allocator]) -> None:
        self.ir = ir
        self.memory = [0]

    def run(self) -> int:
        return self.call(self.ir.function_count - 1, [])

    def call(self, function: int, arguments: list[int]) -> int:
        ir = self.ir
        while True:
            block = ir.function_first[function]
            values = dict(zip(ir.list_at(ir.block_params[block]), arguments, strict=True))
            while True:
                row = ir.block_first[block]
                while ir.op[row] < op.FIRST_TERMINATOR:
                    values[row] = self.instruction(row, values)
                    row = ir.next[row]
                code = ir.op[row]
                if code == op.RET:
                    return values[ir.a[row]] if ir.a[row] else 0
                if code == op.TAIL:
                    function = ir.a[row]
                    arguments = [values[value] for value in ir.list_at(ir.b[row])]
                    break
                words = ir.list_at(self.edge(row, code, values)).tolist()
                block = words[0]
                passed = [values[value] for value in words[1:]]
                values.update(zip(ir.list_at(ir.block_params[block]), passed, strict=True))

    def edge(self, row: int, code: int, values: dict[int, int]) -> int:
        ir = self.ir
        if code == op.JUMP:
            return int(ir.c[row])
        if code == op.SWITCH:
            cases = ir.list_at(ir.b[row]).tolist()
            return dict(zip(cases[1::2], cases[2::2], strict=True)).get(values[ir.a[row]], cases[0])
        holds = values[ir.a[row]]
        if code == op.BRANCH_CMP:
            holds = _INT[ir.imm[row]](holds, values[ir.b[row]])
        elif code == op.BRANCH_CMP_IMM:
            holds = self.with_imm(ir.b[row], holds, ir.imm[row])
        return int(ir.c[row] if holds else ir.d[row])

    def with_imm(self, code: int, left: int, imm: int) -> int:
        return int(left > imm) if code == op.IGT_IMM else _INT[_IMM[code]](left, imm)

    def instruction(self, row: int, values: dict[int, int]) -> int:
        ir = self.ir
        code = ir.op[row]
        if code == op.CONST:
            return int(ir.imm[row])
        if code in _INT:
            return _INT[code](values[ir.a[row]], values[ir.b[row]])
        if code in _IMM or code == op.IGT_IMM:
            return self.with_imm(code, values[ir.a[row]], ir.imm[row])
        if code == op.INEG:
            return semantics.wrap(-values[ir.a[row]])
        if code == op.BOOL_TO_INT:
            return values[ir.a[row]]
        if code == op.INT_TO_BOOL:
            return int(values[ir.a[row]] != 0)
        if code == op.LOOKUP:
            cases = ir.list_at(ir.b[row]).tolist()
            return dict(zip(cases[1::2], cases[2::2], strict=True)).get(values[ir.a[row]], cases[0])
        if code == op.ALLOC:
            address = 8 * len(self.memory)
            self.memory.extend([0] * (ir.imm[row] // 8))
            return address
        if code == op.STORE:
            self.memory[(values[ir.b[row]] + ir.imm[row]) // 8] = values[ir.a[row]]
            return 0
        if code == op.COPY:
            source, target, words = values[ir.a[row]] // 8, values[ir.b[row]] // 8, ir.imm[row] // 8
            self.memory[target : target + words] = self.memory[source : source + words]
            return 0
        if code == op.LOAD:
            return self.memory[(values[ir.a[row]] + ir.imm[row]) // 8]
        if code == op.ADDROF:
            return values[ir.a[row]] + int(ir.imm[row])
        if code == op.NOP:
            return 0
        arguments = [values[value] for value in ir.list_at(ir.b[row])]
        if code == op.CALL:
            return self.call(ir.a[row], arguments)
        assert code == op.SYS
        return int(ir.checked.hosts[ir.a[row]].implementation(*arguments))
