"""The IR as text, one instruction a line; `garden.ir.parser` reads it back.

Values and blocks are numbered from 0 in every function, in the order in which they are written, so that the text of a
function depends on nothing but the function. Types stand where values are defined.

    // sq
    fn f1(%v0) -> Int {
        b0(%v0:Int):
            %v1:Int = IMul %v0, %v0
            ret %v1
    }

For people: text is made with Python strings, so its memory is not counted by any allocator.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from array import array
from typing import Final

from allocators import Allocator
from garden.ir import ir as op
from garden.ir.ir import Ir
from garden.semantics import double_of
from garden.types.types import BOOL, DOUBLE, STR, VOID

#: What a NaN has to look like to be written without its bits.
PLAIN_NAN: Final = 0x7FF8000000000000

_ESCAPES: Final = {"\\": "\\\\", "`": "\\`", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def print_ir(ir: Ir[Allocator]) -> str:
    """All functions of a program."""
    printer = _Printer(ir)
    return "\n".join([printer.function(row) for row in range(1, ir.function_count)])


def quote(text: str) -> str:
    """A text in backticks, with escapes for what would not survive on one line."""
    parts = [
        _ESCAPES[char] if char in _ESCAPES else char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in text
    ]
    return f"`{''.join(parts)}`"


def double_text(word: int) -> str:
    """The Double of a word, such that reading it gives the word again."""
    value = double_of(word)
    if value != value and word != PLAIN_NAN:
        return f"nan:{word & 0xFFFFFFFFFFFFFFFF:#x}"
    return repr(value)


class _Printer:
    """The numbers of the values and blocks written so far, plus one; 0 where something is used but never defined."""

    def __init__(self, ir: Ir[Allocator]) -> None:
        self.ir: Final = ir
        self.values: Final = array("I", bytes(4 * ir.value_count))
        self.blocks: Final = array("I", bytes(4 * ir.block_count))

    def function(self, row: int) -> str:
        ir = self.ir
        self._number(row)
        symbol: int = ir.function_name[row]
        name = "entry" if row == ir.function_count - 1 else ir.checked.ast.symbols.lookup(symbol).decode()
        first: int = ir.function_first[row]
        result: int = ir.function_result[row]
        parameters = ", ".join([self._value(value) for value in ir.list_at(ir.block_params[first])])
        arrow = "" if result <= VOID else f" -> {self._type(result)}"
        lines = [f"// {name}", f"fn f{row}({parameters}){arrow} {{"]
        block = first
        while block:
            lines.append(f"\tb{self.blocks[block] - 1}{self._block_parameters(block)}:")
            inst: int = ir.block_first[block]
            while inst:
                lines.append(f"\t\t{self._definition(inst)}{self._instruction(inst)}")
                inst = ir.next[inst]
            block = ir.block_next[block]
        lines.append("}\n")
        return "\n".join(lines)

    def _number(self, row: int) -> None:
        ir = self.ir
        values = 0
        blocks = 0
        block: int = ir.function_first[row]
        while block:
            blocks += 1
            self.blocks[block] = blocks
            for value in ir.list_at(ir.block_params[block]):
                values += 1
                self.values[value] = values
            inst: int = ir.block_first[block]
            while inst:
                if ir.type[inst]:
                    values += 1
                    self.values[inst] = values
                inst = ir.next[inst]
            block = ir.block_next[block]

    def _value(self, value: int) -> str:
        number = self.values[value] if value < len(self.values) else 0
        return f"%v{number - 1}" if number else f"%?{value}"

    def _type(self, type: int) -> str:
        return str(self.ir.checked.types.type(type))

    def _typed(self, value: int) -> str:
        return f"{self._value(value)}:{self._type(self.ir.type[value])}"

    def _block_parameters(self, block: int) -> str:
        parameters = ", ".join([self._typed(value) for value in self.ir.list_at(self.ir.block_params[block])])
        return f"({parameters})" if parameters else ""

    def _definition(self, inst: int) -> str:
        return f"{self._typed(inst)} = " if self.ir.type[inst] else ""

    def _edge(self, edge: int) -> str:
        words = self.ir.list_at(edge)
        number = self.blocks[words[0]] if words[0] < len(self.blocks) else 0
        target = f"b{number - 1}" if number else f"b?{words[0]}"
        return f"{target}({self._values(words[1:])})" if len(words) > 1 else target

    def _values(self, values: memoryview) -> str:
        return ", ".join([self._value(value) for value in values])

    def _text(self, symbol: int) -> str:
        text = self.ir.checked.ast.symbols.lookup(symbol).decode()
        return quote(text)

    def _constant(self, type: int, word: int) -> str:
        if type == STR:
            return self._text(word)
        if type == BOOL and 0 <= word <= 1:
            return "true" if word else "false"
        return double_text(word) if type == DOUBLE else str(word)

    def _instruction(self, inst: int) -> str:
        ir = self.ir
        opcode: int = ir.op[inst]
        a: int = ir.a[inst]
        b: int = ir.b[inst]
        imm: int = ir.imm[inst]
        if opcode not in op.OPS:
            return f"opcode {opcode}"
        name = op.OPS[opcode].name
        if opcode in (op.CONST, op.CONST_STR):
            return self._constant(ir.type[inst], imm)
        if opcode in (op.CALL, op.TAIL):
            return f"{name} f{a}({self._values(ir.list_at(b))})"
        if opcode == op.SYS:
            return f"{name} {ir.checked.hosts[a].path}({self._values(ir.list_at(b))})"
        if opcode == op.ALLOC:
            return f"{name}(size={imm},align=8)"
        if opcode == op.STORE:
            return f"{name} {self._value(b)}+{imm}, {self._value(a)}"
        if opcode == op.COPY:
            return f"{name} {self._value(b)}, {self._value(a)}, {imm}"
        if opcode in (op.LOAD, op.ADDROF):
            return f"{name} {self._value(a)}+{imm}"
        if opcode == op.LOOKUP:
            return f"{name} {self._lookup(inst)}"
        if opcode == op.SWITCH:
            return f"{name} {self._switch(inst)}"
        if opcode in (op.BRANCH_CMP, op.BRANCH_CMP_IMM):
            comparison = imm if opcode == op.BRANCH_CMP else b
            other = self._value(b) if opcode == op.BRANCH_CMP else str(imm)
            kind = op.OPS[comparison].name if comparison in op.OPS else f"opcode {comparison}"
            return f"{name} {kind} {self._value(a)}, {other}, {self._edge(ir.c[inst])}, {self._edge(ir.d[inst])}"
        return self._simple(inst, name)

    def _simple(self, inst: int, name: str) -> str:
        """An instruction that is nothing but its operands."""
        ir = self.ir
        entry = op.OPS[ir.op[inst]]
        operands = []
        if entry.a == op.VALUE or (entry.a == op.MAYBE_VALUE and ir.a[inst]):
            operands.append(self._value(ir.a[inst]))
        if entry.b == op.VALUE:
            operands.append(self._value(ir.b[inst]))
        if entry.imm == op.IMM:
            operands.append(str(ir.imm[inst]))
        if entry.c == op.EDGE:
            operands.append(self._edge(ir.c[inst]))
        if entry.d == op.EDGE:
            operands.append(self._edge(ir.d[inst]))
        return f"{name} {', '.join(operands)}" if operands else name

    def _lookup(self, inst: int) -> str:
        ir = self.ir
        subject: int = ir.a[inst]
        words = ir.list_at(ir.b[inst])
        type: int = ir.type[inst]
        pairs = [
            f"{self._constant(ir.type[subject], words[index])} -> {self._constant(type, words[index + 1])}"
            for index in range(1, len(words) - 1, 2)
        ]
        return f"{self._value(subject)} [{', '.join(pairs)}], {self._constant(type, words[0])}"

    def _switch(self, inst: int) -> str:
        ir = self.ir
        subject: int = ir.a[inst]
        words = ir.list_at(ir.b[inst])
        keys = [self._constant(ir.type[subject], words[index]) for index in range(1, len(words) - 1, 2)]
        keys.append("_")
        edges = [self._edge(words[index]) for index in range(2, len(words), 2)]
        edges.append(self._edge(words[0]))
        width = max([len(key) for key in keys])
        arms = [f"\t\t\t{key:{width}} -> {edge}" for key, edge in zip(keys, edges, strict=True)]
        return "\n".join([self._value(subject), *arms])
