"""The bytecode as text, one instruction a line.

    globals:
      0000:    "total "
      0001:    #4611686018427387904 (2.0)
      0002:    lookup 3 slots from #5, else #1
                 #5 -> #10
                 #7 -> #12

    0002 <fib>:
      0002:    jmpne_imm r0, #0, 0004          ; 1: fn fib(n:Int) Int { ...
      0003:    ret
    <fib.bb_0004>:
      0004:    jmpne_imm r0, #1, 0006

How operands look follows from the opcode table. A note shows the source at the first instruction of each line.

For people: text is made with Python strings, so its memory is not counted by any allocator.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from allocators import Allocator
from garden.bytecode import ops as bytecode
from garden.bytecode.code import Code
from garden.bytecode.ops import (
    TABLE_COUNT,
    TABLE_DEFAULT,
    TABLE_FIRST,
    TABLE_KIND,
    TABLE_SLOTS,
    Op,
    a_of,
    b_of,
    c_of,
    imm16_of,
    imm_of,
)
from garden.bytecode.superinstructions import opcode_of
from garden.common import WORD_SIZE
from garden.semantics import double_of

#: Where notes start.
_NOTE_COLUMN: Final = 44
#: Ints below this are more likely to be Ints than the bits of a Double.
_SMALL: Final = 1 << 52


def disassemble(code: Code[Allocator]) -> str:
    """A program as text: constants, then functions."""
    return _Disassembler(code).program()


class _Disassembler:
    def __init__(self, code: Code[Allocator]) -> None:
        self.code: Final = code
        self.names: Final[dict[int, str]] = {code.entry: "start"}
        self.targets: Final[set[int]] = set()
        #: By index in the constant area: the opcode that uses the table there.
        self.tables: Final[dict[int, int]] = {}
        self.line_starts: Final = [0]
        at = code.checked.ast.source.text.find(b"\n")
        while at >= 0:
            self.line_starts.append(at + 1)
            at = code.checked.ast.source.text.find(b"\n", at + 1)
        symbols = code.checked.ast.symbols
        for row in range(1, len(code.functions)):
            name, first, _, _ = code.functions[row]
            self.names[first] = symbols.lookup(name).decode() if row + 1 < len(code.functions) else "entry"
        for word in code.words:
            self._note_targets(word)

    def _note_targets(self, word: int) -> None:
        entry = bytecode.OPS[opcode_of(word)]
        imm = imm_of(word)
        if entry.imm == bytecode.TARGET and entry.code not in (bytecode.CALL, bytecode.TAIL):
            self.targets.add(imm)
        elif entry.code in (bytecode.SWITCH, bytecode.LOOKUP):
            self.tables[imm] = entry.code
            if entry.code == bytecode.SWITCH:
                constants = self.code.constants
                end = imm + TABLE_SLOTS + constants[imm + TABLE_COUNT]
                self.targets.update(constants[imm + TABLE_DEFAULT : end])

    def program(self) -> str:
        lines: list[str] = []
        if len(self.code.constants):
            lines.append("globals:")
            self._constants(lines)
            lines.append("")
        self._function(self.code.entry, self.code.entry + 2, lines)
        for row in range(1, len(self.code.functions)):
            lines.append("")
            _, first, end, _ = self.code.functions[row]
            self._function(first, end, lines)
        return "\n".join(lines) + "\n"

    # Constants.

    def _constants(self, lines: list[str]) -> None:
        constants = self.code.constants
        index = 0
        while index < len(constants):
            if index in self.tables:
                index = self._table(index, lines)
            else:
                lines.append(f"  {index:04}:    {self._constant(constants[index])}")
                index += 1

    def _constant(self, word: int) -> str:
        """A constant that may be anything: the text behind an address of a string, else a number."""
        text = self._text(word)
        if text is not None:
            return text
        return f"#{word}" if -_SMALL < word < _SMALL else f"#{word} ({double_of(word)!r})"

    def _text(self, address: int) -> str | None:
        strings = self.code.strings
        offset = address - strings.address
        if not 0 <= offset < WORD_SIZE * len(strings) or offset % WORD_SIZE:
            return None
        start = offset // WORD_SIZE + 1
        length = strings[start - 1] & 0xFFFFFFFF
        text = bytes(strings[start:].cast("B")[:length]).decode("utf-8", "replace")
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    def _table(self, index: int, lines: list[str]) -> int:
        """The lines of a table; where the next constant is."""
        constants = self.code.constants
        opcode = self.tables[index]
        count = constants[index + TABLE_COUNT]
        step = WORD_SIZE if constants[index + TABLE_KIND] else 1
        first = constants[index + TABLE_FIRST]
        default = constants[index + TABLE_DEFAULT]
        name = bytecode.OPS[opcode].name
        slots = f"{count} slots from {self._constant(first)}" if count else "no slots"
        lines.append(f"  {index:04}:    {name} {slots}, else {self._slot(opcode, default)}")
        for slot in range(count):
            value = constants[index + TABLE_SLOTS + slot]
            if value != default:
                lines.append(f"             {self._constant(first + step * slot)} -> {self._slot(opcode, value)}")
        return index + TABLE_SLOTS + int(count)

    def _slot(self, opcode: int, value: int) -> str:
        return f"{value:04}" if opcode == bytecode.SWITCH else self._constant(value)

    # Instructions.

    def _function(self, first: int, end: int, lines: list[str]) -> None:
        name = self.names[first]
        lines.append(f"{first:04} <{name}>:")
        last_line = -1
        for pc in range(first, end):
            if pc in self.targets:
                lines.append(f"<{name}.bb_{pc:04}>:")
            text = f"  {pc:04}:    {self._instruction(self.code.words[pc])}"
            line = bisect_right(self.line_starts, self.code.positions[pc])
            if line != last_line and first != self.code.entry:
                last_line = line
                text = f"{text:{_NOTE_COLUMN}}; {line}: {self._source_line(line)}"
            lines.append(text.rstrip())

    def _source_line(self, line: int) -> str:
        source = self.code.checked.ast.source
        start, end = source.line_at(self.line_starts[line - 1])
        return source.text[start:end].decode("utf-8", "replace").strip()

    def _instruction(self, word: int) -> str:
        entry = bytecode.OPS[opcode_of(word)]
        operands = []
        for kind, field in ((entry.a, a_of(word)), (entry.b, b_of(word)), (entry.c, c_of(word))):
            if kind in (bytecode.DEST, bytecode.SOURCE):
                operands.append(f"r{field}")
            elif kind == bytecode.COUNT:
                operands.append(f"#{field}")
            elif kind == bytecode.IMM16:
                operands.append(f"#{imm16_of(word)}")
        operands.extend(self._imm(entry, imm_of(word)))
        return f"{entry.name} {', '.join(operands)}".rstrip()

    def _imm(self, entry: Op, imm: int) -> tuple[str, ...]:
        if entry.imm in (bytecode.IMM, bytecode.DROPPED):
            return (f"#{imm}",)
        if entry.imm == bytecode.SLOT:
            return (f"top-{imm}" if imm else "top",)
        if entry.imm == bytecode.CONSTANT:
            return (f"[{imm:04}]",)
        if entry.imm == bytecode.HOST:
            return (f"{imm} <{self.code.checked.hosts[imm].path}>",)
        if entry.imm == bytecode.TARGET:
            name = self.names.get(imm)
            return (
                f"{imm:04} <{name}>"
                if name is not None and entry.code in (bytecode.CALL, bytecode.TAIL)
                else f"{imm:04}",
            )
        return ()
