"""The rules of bytecode as checks. Tests run them on everything that is emitted.

1. Words have opcodes of the table; fields that an opcode does not use are 0, registers and indexes are in range.
2. Functions stand one after the other, behind the two words that call `entry` and halt. Jumps stay inside their
   function, calls lead to the start of one, and control never runs from one function into the next.
3. Tables lie inside the constant area, and those of switches lead into the function.
4. A register is written before it is read, on every path. A call destroys what its callee, and whatever that calls, may
   write.
5. The spill stack has the same depth at a pc on every path, never less than nothing. A return leaves nothing of the
   function on it, a tail call just the arguments of the callee; slots are inside.

Costs: linear in the number of words but for the messages, which are Python objects, with 13 bytes of scratch a word.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Vec
from garden.bytecode import ops as bytecode
from garden.bytecode.code import FUNCTION_FIRST, FUNCTION_PARAMETERS, Code
from garden.bytecode.ops import REGISTERS, TABLE_COUNT, TABLE_DEFAULT, TABLE_SLOTS, Op, a_of, b_of, c_of, imm_of, op_of
from garden.bytecode.places import register_arguments

#: No more is said of code that is that wrong.
MAX_MESSAGES: Final = 100

_UNVISITED: Final = -1


def verify(code: Code[Allocator], scratch: Allocator, *, registers: int = REGISTERS) -> list[str]:
    """What is wrong with the code, nothing if it is well-formed; at most `MAX_MESSAGES`.

    `registers` is how many it may use.
    """
    verifier = _Verifier(code, scratch, registers)
    try:
        verifier.run()
    finally:
        verifier.close()
    return verifier.messages


@mypyc_attr(native_class=True)
class _Verifier:
    """What each function writes, and the state before each word."""

    __slots__ = (
        "_calls",
        "_code",
        "_depths",
        "_end",
        "_first",
        "_pending",
        "_register_arguments",
        "_registers",
        "_rows",
        "_writes",
        "_written",
        "messages",
    )

    def __init__(self, code: Code[Allocator], scratch: Allocator, registers: int) -> None:
        self.messages: Final[list[str]] = []
        self._code: Final = code
        self._registers: Final = registers
        self._register_arguments: Final = register_arguments(registers)
        self._first = 0
        self._end = 0
        self._rows: Vec[Allocator] = Vec(scratch, "I")  # by pc: the function that starts there, or 0
        self._depths: Vec[Allocator] = Vec(scratch, "i")  # by pc: words on the spill stack
        self._written: Vec[Allocator] = Vec(scratch, "Q")  # by pc: the registers that have been written
        self._writes: Vec[Allocator] = Vec(scratch, "Q")  # by function: the registers that calling it changes
        self._calls: Vec[Allocator] = Vec(scratch, "I")  # lists of callers: first by function, then pairs
        self._pending: Vec[Allocator] = Vec(scratch, "I")

    def close(self) -> None:
        self._pending.close()
        self._calls.close()
        self._writes.close()
        self._written.close()
        self._depths.close()
        self._rows.close()

    def run(self) -> None:
        code = self._code
        count = len(code.words)
        if len(code.positions) != count:
            self._complain(0, f"there are {len(code.positions)} positions for {count} words")
        self._rows.fill(0, count)
        self._depths.fill(_UNVISITED, count)
        self._written.fill(0, count)
        self._writes.fill(0, len(code.functions))
        self._check_layout(count)
        if self.messages:
            return
        self._check_words()
        if self.messages:
            return
        self._find_writes()
        for row in range(1, len(code.functions)):
            self._check_flow(row)

    def _complain(self, pc: int, message: str) -> None:
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(f"{pc:04}: {message}")

    def _check_layout(self, count: int) -> None:
        code = self._code
        start = code.entry + 2
        for row in range(1, len(code.functions)):
            _, first, end, _ = code.functions[row]
            if first != start or end <= first or end > count:
                self._complain(first, f"function {row} goes from {first} to {end}, where {start} is next")
                return
            self._rows.data[first] = row
            start = end
        if start != count:
            self._complain(start, f"the words up to {count} belong to no function")
        if len(code.functions) < 2 or code.entry + 1 >= count:
            self._complain(code.entry, "there is nothing to run")
            return
        entry: int = code.functions.columns[FUNCTION_FIRST][len(code.functions) - 1]
        words = code.words.data
        if op_of(words[code.entry]) != bytecode.CALL or imm_of(words[code.entry]) != entry:
            self._complain(code.entry, "the run does not start with a call of the entry")
        if op_of(words[code.entry + 1]) != bytecode.HALT:
            self._complain(code.entry + 1, "the run does not end with a halt")

    # Single words.

    def _check_words(self) -> None:
        code = self._code
        words = code.words.data
        _, firsts, ends, _ = code.functions.columns
        for row in range(1, len(code.functions)):
            self._first = firsts[row]
            self._end = ends[row]
            for pc in range(self._first, self._end):
                word: int = words[pc]
                if op_of(word) >= len(bytecode.OPS):
                    self._complain(pc, f"no opcode has the number {op_of(word)}")
                    continue
                entry = bytecode.OPS[op_of(word)]
                self._check_field(pc, entry.a, a_of(word))
                self._check_field(pc, entry.b, b_of(word))
                if entry.b != bytecode.IMM16:
                    self._check_field(pc, entry.c, c_of(word))
                self._check_imm(pc, entry, word)
            last = bytecode.OPS[op_of(words[self._end - 1]) % len(bytecode.OPS)]
            if not last.terminator:
                self._complain(self._end - 1, f"the function ends with {last.name}")

    def _check_field(self, pc: int, kind: int, field: int) -> None:
        if kind in (bytecode.DEST, bytecode.SOURCE) and field >= self._registers:
            self._complain(pc, f"there is no register r{field}")
        elif kind == bytecode.UNUSED and field:
            self._complain(pc, f"a field without meaning is {field}")

    def _check_imm(self, pc: int, entry: Op, word: int) -> None:
        imm = imm_of(word)
        code = self._code
        if entry.imm == bytecode.UNUSED:
            self._check_field(pc, bytecode.UNUSED, imm)
        elif entry.imm == bytecode.TARGET:
            if entry.code in (bytecode.CALL, bytecode.TAIL):
                if not self._starts_function(imm):
                    self._complain(pc, f"no function starts at {imm}")
            elif not self._first <= imm < self._end:
                self._complain(pc, f"a jump out of the function, to {imm}")
        elif entry.imm == bytecode.CONSTANT:
            if not 0 <= imm < len(code.constants):
                self._complain(pc, f"there is no constant {imm}")
            elif entry.a != bytecode.DEST or entry.b != bytecode.UNUSED:
                self._check_table(pc, imm, entry.code == bytecode.SWITCH)
        elif entry.imm == bytecode.HOST:
            hosts = code.checked.hosts
            if not 0 <= imm < len(hosts):
                self._complain(pc, f"there is no host function {imm}")
            elif entry.a == bytecode.COUNT and a_of(word) != len(hosts[imm].parameters):
                self._complain(pc, f"{a_of(word)} arguments for {hosts[imm].path}")
        elif entry.imm == bytecode.DROPPED and imm <= 0:
            self._complain(pc, f"{imm} words to drop")
        elif entry.imm not in (bytecode.IMM, bytecode.SLOT, bytecode.DROPPED):
            self._complain(pc, f"an immediate of unknown kind {entry.imm}")

    def _starts_function(self, pc: int) -> bool:
        return 0 <= pc < len(self._rows) and bool(self._rows.data[pc])

    def _check_table(self, pc: int, table: int, is_switch: bool) -> None:
        constants = self._code.constants
        size = (
            TABLE_SLOTS + constants.data[table + TABLE_COUNT] if table + TABLE_COUNT < len(constants) else TABLE_SLOTS
        )
        if table + size > len(constants):
            self._complain(pc, f"the table at {table} is not inside the constant area")
        elif is_switch:
            for place in range(table + TABLE_DEFAULT, table + size):
                if not self._first <= constants.data[place] < self._end:
                    self._complain(pc, f"a jump out of the function, to {constants.data[place]}")
                    return

    # What functions write.

    def _find_writes(self) -> None:
        """The registers that each function changes, itself and through others."""
        code = self._code
        words = code.words.data
        calls = self._calls
        writes = self._writes.data
        _, firsts, ends, _ = code.functions.columns
        calls.fill(0, len(code.functions) + (len(code.functions) & 1))
        for row in range(1, len(code.functions)):
            written = 0
            for pc in range(firsts[row], ends[row]):
                word: int = words[pc]
                entry = bytecode.OPS[op_of(word)]
                written |= _written_by(entry, word)
                if entry.code in (bytecode.CALL, bytecode.TAIL):
                    callee: int = self._rows.data[imm_of(word)]
                    calls.append(row)
                    calls.append(calls.data[callee])
                    calls.data[callee] = len(calls) - 2
            writes[row] = written
            self._pending.append(row)
        data = calls.data
        while len(self._pending):
            row = self._pending.pop()
            call: int = data[row]
            while call:
                caller: int = data[call]
                both: int = writes[caller] | writes[row]
                if both != writes[caller]:
                    writes[caller] = both
                    self._pending.append(caller)
                call = data[call + 1]

    # States.

    def _check_flow(self, row: int) -> None:
        code = self._code
        words = code.words.data
        constants = code.constants.data
        _, first, end, parameters = code.functions[row]
        self._first = first
        self._end = end
        in_registers = min(parameters, self._register_arguments)
        self._reach(first, first, parameters - in_registers, (1 << in_registers) - 1)
        while len(self._pending):
            pc: int = self._pending.pop()
            word: int = words[pc]
            entry = bytecode.OPS[op_of(word)]
            depth = self._depth_after(pc, entry, word)
            written: int = self._written.data[pc]
            if self._read_by(entry, word) & ~written:
                self._complain(pc, f"{entry.name} reads a register that was not written on every path")
                continue
            if depth < 0:
                continue
            if entry.code == bytecode.CALL:
                written &= ~self._writes.data[self._rows.data[imm_of(word)]]
            written |= _written_by(entry, word)
            if entry.code == bytecode.SWITCH:
                table = imm_of(word)
                for place in range(table + TABLE_DEFAULT, table + TABLE_SLOTS + constants[table + TABLE_COUNT]):
                    self._reach(pc, constants[place], depth, written)
            elif entry.imm == bytecode.TARGET and entry.code != bytecode.CALL and entry.code != bytecode.TAIL:
                self._reach(pc, imm_of(word), depth, written)
            if not entry.terminator:
                self._reach(pc, pc + 1, depth, written)

    def _reach(self, source: int, pc: int, depth: int, written: int) -> None:
        """Control comes to `pc` with that depth and these registers."""
        if pc >= self._end:
            self._complain(source, "control runs out of the function")
        elif self._depths.data[pc] == _UNVISITED:
            self._depths.data[pc] = depth
            self._written.data[pc] = written
            self._pending.append(pc)
        elif self._depths.data[pc] != depth:
            self._complain(pc, f"{depth} words on the spill stack, or {self._depths.data[pc]}")
        elif self._written.data[pc] & ~written:
            self._written.data[pc] &= written
            self._pending.append(pc)

    def _stack_arguments(self, pc: int) -> int:
        """How many arguments the function that starts at `pc` takes from the spill stack."""
        parameters: int = self._code.functions.columns[FUNCTION_PARAMETERS][self._rows.data[pc]]
        return max(0, parameters - self._register_arguments)

    def _depth_after(self, pc: int, entry: Op, word: int) -> int:
        """The depth of the spill stack behind a word, or -1 where there is something wrong with it."""
        depth: int = self._depths.data[pc]
        imm = imm_of(word)
        if entry.imm == bytecode.SLOT and not 0 <= imm < depth:
            self._complain(pc, f"there is no slot {imm} among {depth}")
        if entry.code == bytecode.RET and depth:
            self._complain(pc, f"a return with {depth} words on the spill stack")
        elif entry.code == bytecode.TAIL and depth != self._stack_arguments(imm):
            self._complain(pc, f"a tail call with {depth} words on the spill stack, not {self._stack_arguments(imm)}")
        depth += entry.pushes
        if entry.imm == bytecode.DROPPED:
            depth -= imm
        elif entry.code == bytecode.CALL:
            depth -= self._stack_arguments(imm)
        elif entry.code == bytecode.SYS:
            depth -= max(0, a_of(word) - self._register_arguments)
        if depth < 0:
            self._complain(pc, f"{entry.name} takes more off the spill stack than is there")
        return depth

    def _read_by(self, entry: Op, word: int) -> int:
        """The registers that a word reads."""
        registers = 0
        if entry.a == bytecode.SOURCE:
            registers |= 1 << a_of(word)
        if entry.b == bytecode.SOURCE:
            registers |= 1 << b_of(word)
        if entry.c == bytecode.SOURCE:
            registers |= 1 << c_of(word)
        arguments = 0
        if entry.code in (bytecode.CALL, bytecode.TAIL):
            arguments = self._code.functions.columns[FUNCTION_PARAMETERS][self._rows.data[imm_of(word)]]
        elif entry.a == bytecode.COUNT:
            arguments = a_of(word)
        return registers | (1 << min(arguments, self._register_arguments)) - 1


def _written_by(entry: Op, word: int) -> int:
    """The registers that a word writes, a call as its result."""
    registers = 1 if entry.code in (bytecode.CALL, bytecode.SYS) else 0
    if entry.a == bytecode.DEST:
        registers |= 1 << a_of(word)
    if entry.b == bytecode.DEST:
        registers |= 1 << b_of(word)
    if entry.c == bytecode.DEST:
        registers |= 1 << c_of(word)
    return registers
