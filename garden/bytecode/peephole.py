"""Peephole: tidies up the code of a whole program, and closes the gaps.

| rule | does |
| --- | --- |
| jump threading | a jump to a jump goes where that goes; a jump to a return is a return |
| unreachable | what stands after an instruction that never continues, and is no target, goes |
| next | a jump to the following instruction goes |
| self move | a move of a register to itself goes |
| move merge | where a result only moves on to another register at once, it is made there |

What goes becomes `nop` first. If there is any, all code is moved together, and jumps, calls, tables, functions and
positions follow.

Costs: two visits of every word, and two more if anything goes; one byte of scratch a word, and then four more.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64
from allocators.collections import Vec
from allocators.collections.storage import Cells
from garden.bytecode import ops as bytecode
from garden.bytecode.code import FUNCTION_END, FUNCTION_FIRST, Code
from garden.bytecode.ops import TABLE_COUNT, TABLE_DEFAULT, TABLE_SLOTS

# Flags by opcode.
_JUMPS: Final = 1  # it has a target inside its function
_TARGETS: Final = 2  # it has a target
_ENDS: Final = 4  # control never continues with the next word
_MAKES: Final = 8  # it writes register a and no other
_HAS_TABLE: Final = 16
_READS_A: Final = 32
_READS_B: Final = 64
_READS_C: Final = 128

#: How far to look for the fate of a register.
_WINDOW: Final = 8


def _flags(op: int) -> int:
    entry = bytecode.OPS[op]
    flags = _ENDS if entry.terminator else 0
    if entry.imm == bytecode.TARGET:
        flags |= _TARGETS if op in (bytecode.CALL, bytecode.TAIL) else _TARGETS | _JUMPS
    if entry.a == bytecode.DEST and entry.b != bytecode.DEST:
        flags |= _MAKES
    if op == bytecode.SWITCH and entry.imm == bytecode.CONSTANT:
        flags |= _HAS_TABLE
    if entry.a == bytecode.SOURCE:
        flags |= _READS_A
    if entry.b == bytecode.SOURCE:
        flags |= _READS_B
    if entry.c == bytecode.SOURCE:
        flags |= _READS_C
    return flags


_FLAGS: Final = bytes([_flags(op) for op in range(len(bytecode.OPS))])


def peephole(code: Code[Allocator], scratch: Allocator) -> int:
    """Tidy up a program; return by how many words it has become shorter."""
    targeted: Vec[Allocator] = Vec(scratch, "B")
    try:
        targeted.fill_zero(len(code.words) + 1)
        _thread_jumps(code, targeted.items)
        removed = _remove(code, targeted.items)
    finally:
        targeted.close()
    if removed:
        _compact(code, scratch)
    return removed


def _thread_jumps(code: Code[Allocator], targeted: Cells) -> None:
    """Let jumps lead to their final targets, and mark all targets."""
    words = code.words.items
    constants = code.constants.items
    firsts = code.functions.typed_columns[FUNCTION_FIRST]
    for function in range(1, len(code.functions)):
        targeted[firsts[function]] = 1
    # Most jumps lead forwards, so their targets have found their own already.
    pc: i64
    for pc in range(len(code.words) - 1, -1, -1):
        word: i64 = words[pc]
        flags = _FLAGS[word & 0xFF]
        if flags & _JUMPS:
            target = _final(words, word >> 32)
            beyond: i64 = words[target]
            if word & 0xFF == bytecode.JMP and beyond & 0xFF == bytecode.RET:
                words[pc] = beyond
                continue
            words[pc] = target << 32 | word & 0xFFFFFFFF
            targeted[target] = 1
        elif flags & _HAS_TABLE:
            table = word >> 32
            for place in range(table + TABLE_DEFAULT, table + TABLE_SLOTS + constants[table + TABLE_COUNT]):
                target = _final(words, constants[place])
                constants[place] = target
                targeted[target] = 1


def _final(words: Cells, target: i64) -> i64:
    word: i64 = words[target]
    return word >> 32 if word & 0xFF == bytecode.JMP else target


def _remove(code: Code[Allocator], targeted: Cells) -> int:
    """Turn what is not needed into `NOP`; return how many there are."""
    words = code.words.items
    count: i64 = len(code.words)
    removed = 0
    reachable = True
    before: i64 = bytecode.NOP
    pc: i64
    for pc in range(count):
        word: i64 = words[pc]
        op = word & 0xFF
        if targeted[pc]:
            reachable = True
            before = bytecode.NOP
        if not reachable or op == bytecode.NOP:
            words[pc] = bytecode.NOP
            removed += 1
            continue
        if op == bytecode.MOV:
            source = word >> 16 & 0xFF
            target = word >> 8 & 0xFF
            if source == target:
                words[pc] = bytecode.NOP
                removed += 1
                before = bytecode.NOP
                continue
            if (
                _FLAGS[before & 0xFF] & _MAKES
                and before >> 8 & 0xFF == source
                and _dies(words, targeted, pc + 1, count, source)
            ):
                words[pc - 1] = before & ~0xFF00 | target << 8
                words[pc] = bytecode.NOP
                removed += 1
                before = bytecode.NOP
                continue
        elif _FLAGS[op] & _ENDS:
            reachable = False
            if op == bytecode.JMP and word >> 32 == pc + 1:
                words[pc] = bytecode.NOP
                removed += 1
                reachable = True
        before = word
    return removed


def _dies(words: Cells, targeted: Cells, start: i64, count: i64, register: i64) -> bool:
    """Whether no instruction reads a register from `start` on, as far as a short look tells."""
    end = start + _WINDOW
    if end > count:
        end = count
    pc = start
    while pc < end and not targeted[pc]:
        word: i64 = words[pc]
        op = word & 0xFF
        if op == bytecode.RET:
            return register != 0
        flags = _FLAGS[op]
        if (
            (flags & _READS_A and word >> 8 & 0xFF == register)
            or (flags & _READS_B and word >> 16 & 0xFF == register)
            or (flags & _READS_C and word >> 24 & 0xFF == register)
            or flags & (_TARGETS | _ENDS)
            or op == bytecode.SYS
        ):
            return False
        if flags & _MAKES and word >> 8 & 0xFF == register:
            return True
        pc += 1
    return False


def _compact(code: Code[Allocator], scratch: Allocator) -> None:
    """Close the gaps that `NOP` leaves."""
    words = code.words.items
    positions = code.positions.items
    constants = code.constants.items
    count: i64 = len(code.words)
    moved: Vec[Allocator] = Vec(scratch, "I")
    try:
        # By pc: where it goes; for one that goes away, where what follows it goes.
        moved.fill_zero(count + 1)
        places = moved.items
        place: i64 = 0
        pc: i64
        for pc in range(count):
            places[pc] = place
            if words[pc] & 0xFF != bytecode.NOP:
                place += 1
        places[count] = place
        place = 0
        for pc in range(count):
            word: i64 = words[pc]
            flags = _FLAGS[word & 0xFF]
            if flags & _TARGETS:
                word = places[word >> 32] << 32 | word & 0xFFFFFFFF
            elif flags & _HAS_TABLE:
                table = word >> 32
                for slot in range(table + TABLE_DEFAULT, table + TABLE_SLOTS + constants[table + TABLE_COUNT]):
                    constants[slot] = places[constants[slot]]
            elif word & 0xFF == bytecode.NOP:
                continue
            words[place] = word
            positions[place] = positions[pc]
            place += 1
        code.words.truncate(place)
        code.positions.truncate(place)
        firsts = code.functions.typed_columns[FUNCTION_FIRST]
        ends = code.functions.typed_columns[FUNCTION_END]
        for function in range(1, len(code.functions)):
            firsts[function] = places[firsts[function]]
            ends[function] = places[ends[function]]
        code.entry = places[code.entry]
    finally:
        moved.close()
