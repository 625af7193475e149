"""Runs IR as it stands, one row at a time: what the passes are compared by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allocators import Allocator
from garden.errors import Trap
from garden.ir import ir as code
from garden.ir.ir import Ir
from garden.semantics import ddiv, double_of, double_to_int, idiv, imod, word_of, wrap
from garden.types.types import STR, VOID

_INT: dict[int, Callable[[Any, Any], Any]] = {
    code.IADD: lambda x, y: wrap(x + y),
    code.ISUB: lambda x, y: wrap(x - y),
    code.IMUL: lambda x, y: wrap(x * y),
    code.IDIV: idiv,
    code.IMOD: imod,
}
_DOUBLE: dict[int, Callable[[Any, Any], Any]] = {
    code.DADD: lambda x, y: x + y,
    code.DSUB: lambda x, y: x - y,
    code.DMUL: lambda x, y: x * y,
    code.DDIV: ddiv,
}
_COMPARE: dict[int, Callable[[Any, Any], Any]] = {
    code.ILT: lambda x, y: x < y,
    code.ILE: lambda x, y: x <= y,
    code.IEQ: lambda x, y: x == y,
    code.INE: lambda x, y: x != y,
    code.SEQ: lambda x, y: x == y,
    code.SNE: lambda x, y: x != y,
    code.DLT: lambda x, y: double_of(x) < double_of(y),
    code.DLE: lambda x, y: double_of(x) <= double_of(y),
    code.ILT_IMM: lambda x, y: x < y,
    code.IGT_IMM: lambda x, y: x > y,
    code.IEQ_IMM: lambda x, y: x == y,
    code.INE_IMM: lambda x, y: x != y,
}
_IMMEDIATE = {
    code.IADD_IMM: code.IADD,
    code.ISUB_IMM: code.ISUB,
    code.IMUL_IMM: code.IMUL,
    code.IDIV_IMM: code.IDIV,
    code.IMOD_IMM: code.IMOD,
}
_UNARY: dict[int, Callable[[int], int]] = {
    code.INEG: lambda x: wrap(-x),
    code.DNEG: lambda x: word_of(-double_of(x)),
    code.INT_TO_DOUBLE: lambda x: word_of(float(x)),
    code.DOUBLE_TO_INT: lambda x: double_to_int(double_of(x)),
    code.INT_TO_BOOL: lambda x: int(x != 0),
    code.BOOL_TO_INT: lambda x: x,
}


class OutOfFuel(Exception):
    """The program takes too long to be worth running."""


class Evaluator:
    """One run of a program. `log` is what its calls of impure host functions were given."""

    def __init__(self, ir: Ir[Allocator], fuel: int = 20_000) -> None:
        self.ir = ir
        self.fuel = fuel
        self.log: list[Any] = []
        self.memory: dict[int, int] = {}
        self.top = 4096

    def run(self, function: int, arguments: list[int]) -> tuple[object, ...]:
        """How a call ends, as something that can be compared: its result, or its trap and where."""
        try:
            word = self._call(function, arguments)
        except Trap as trap:
            return ("trap", trap.code, trap.offset, self.log)
        return ("value", self._show(self.ir.function_result[function], word), self.log)

    def _show(self, type: int, word: int) -> object:
        if type == STR:
            return self.ir.checked.ast.symbols.lookup(word)
        return word if type > VOID else None

    def _call(self, function: int, arguments: list[int]) -> int:
        ir = self.ir
        block = ir.function_first[function]
        while True:
            values = dict(zip(ir.list_at(ir.block_params[block]), arguments, strict=True))
            frame = values
            while True:
                follow = self._block(block, frame)
                if follow[0] == "return":
                    result: int = follow[1]
                    return result
                if follow[0] == "tail":
                    break
                edge = list(ir.list_at(follow[1]))
                given = [frame[value] for value in edge[1:]]
                block = edge[0]
                frame.update(zip(ir.list_at(ir.block_params[block]), given, strict=True))
            block = ir.function_first[follow[1]]
            arguments = follow[2]

    def _block(self, block: int, frame: dict[int, int]) -> tuple[Any, ...]:
        """Run a block; say how it ends."""
        ir = self.ir
        inst = ir.block_first[block]
        while True:
            self.fuel -= 1
            if self.fuel < 0:
                raise OutOfFuel
            op = ir.op[inst]
            a, b, imm = ir.a[inst], ir.b[inst], ir.imm[inst]
            if op >= code.FIRST_TERMINATOR:
                break
            try:
                word = self._instruction(inst, op, frame)
            except Trap as trap:
                # Inside a call the position is known already.
                offset = ir.pos[inst] if trap.offset < 0 else trap.offset
                raise Trap(trap.code, trap.message, offset) from None
            if ir.type[inst]:
                frame[inst] = word
            inst = ir.next[inst]
        if op == code.RET:
            return ("return", frame[a] if a else 0)
        if op == code.TAIL:
            return ("tail", a, [frame[value] for value in ir.list_at(b)])
        if op == code.JUMP:
            return ("edge", ir.c[inst])
        if op == code.SWITCH:
            return ("edge", self._choose(b, frame[a]))
        if op == code.BRANCH:
            taken = frame[a]
        elif op == code.BRANCH_CMP:
            taken = _COMPARE[imm](frame[a], frame[b])
        else:
            taken = _COMPARE[b](frame[a], imm)
        return ("edge", ir.c[inst] if taken else ir.d[inst])

    def _choose(self, cases: int, key: int) -> int:
        words = self.ir.list_at(cases)
        for index in range(1, len(words), 2):
            if words[index] == key:
                return words[index + 1]
        return words[0]

    def _instruction(self, inst: int, op: int, frame: dict[int, int]) -> int:
        ir = self.ir
        a, b, imm = ir.a[inst], ir.b[inst], ir.imm[inst]
        if op in (code.CONST, code.CONST_STR):
            return imm
        if op in (code.UNDEFINED, code.NOP):
            return 0
        if op in _INT:
            return int(_INT[op](frame[a], frame[b]))
        if op in _IMMEDIATE:
            return int(_INT[_IMMEDIATE[op]](frame[a], imm))
        if op in _DOUBLE:
            return word_of(_DOUBLE[op](double_of(frame[a]), double_of(frame[b])))
        if op in _COMPARE:
            return int(_COMPARE[op](frame[a], frame[b] if b else imm))
        if op in _UNARY:
            return _UNARY[op](frame[a])
        if op == code.CALL:
            return self._call(a, [frame[value] for value in ir.list_at(b)])
        if op == code.SYS:
            return self._sys(a, [frame[value] for value in ir.list_at(b)])
        if op == code.ALLOC:
            self.top += imm
            return self.top - imm
        if op == code.STORE:
            self.memory[frame[b] + imm] = frame[a]
            return 0
        if op == code.COPY:
            for offset in range(0, imm, 8):
                self.memory[frame[b] + offset] = self.memory[frame[a] + offset]
            return 0
        if op == code.LOAD:
            return self.memory[frame[a] + imm]
        if op == code.ADDROF:
            return frame[a] + imm
        assert op == code.LOOKUP
        return self._choose(b, frame[a])

    def _sys(self, host: int, words: list[int]) -> int:
        function = self.ir.checked.hosts[host]
        arguments: list[Any] = []
        for word, (_name, type) in zip(words, function.parameters, strict=True):
            shown: Any = word
            if type.name == "Str":
                shown = self.ir.checked.ast.symbols.lookup(word).decode()
            elif type.name == "Double":
                shown = double_of(word)
            elif type.name == "Bool":
                shown = bool(word)
            arguments.append(shown)
        if not function.pure:
            self.log.append((function.path, arguments))
        result = function.implementation(*arguments)
        if function.result.name == "Str":
            return self.ir.checked.ast.symbols.intern(result.encode())
        if function.result.name == "Double":
            return word_of(result)
        return int(result or 0)
