"""Superinstructions: runs of instructions that the interpreter executes as one.

A superinstruction is written as the names of the instructions in the run. `+n` after a jump says that its target is n
words further, inside the run or at its end; any other jump leaves the run. `(b=n)` says that operand b is the register
that the instruction n words before has written: its value need not be loaded again. Of the words that a jump inside the
run passes over, the last one leaves it, so that there is one way to every word:

    jmple+3 mov ret iadd_imm jmp        return, or add and go back
    dmul dadd(c=1)                      a sum whose second term has just been made

They are a matter of that interpreter. No code that is emitted has them, but while a machine of that engine is open,
words of its code that begin a run have a code of the run, from `FIRST` on, in place of their opcode. All else stays as
it is, so a word inside a run can still be jumped to, and runs may overlap.

`python -m benchmarks.superinstructions` has chosen them. It counts what the programs of `benchmarks/training` execute,
which are no workloads of a benchmark, and takes only runs that two of them share: what only one program has saves that
one a lot, and others nothing.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import re
from typing import Final, NamedTuple

from garden.bytecode import ops as bytecode

#: The code of the first superinstruction, and how many codes there are.
FIRST: Final = 128
CODES: Final = 256

#: What many functions begin with: a condition under which they return.
GUARDS: Final = tuple(
    [
        f"{op.name}+{len(body.split()) + 1} {body}"
        for op in bytecode.OPS
        if op.imm == bytecode.TARGET and op.a == bytecode.SOURCE
        for body in ("ret", "mov ret", "load_imm ret")
    ]
)

#: All of them; those behind the guards are in the order of what they save.
SUPERINSTRUCTIONS: Final[tuple[str, ...]] = (
    *GUARDS,
    "mov sys",
    "mov mov",
    "imod_imm jmpne_imm(a=1)",
    "iadd_imm push load_slot load_slot load_slot call",
    "dmul dadd(c=1)",
    "mov jmp",
    "imod idiv_imm",
    "load load",
    "mov mov mov call",
    "iadd_imm mov call",
    "mov mov mov sys",
    "iadd imod_imm(b=1)",
    "mov mov sys",
    "mov load_slot sys",
    "iadd_imm jmp",
    "iadd_imm load_const",
    "load load_slot",
    "load_slot drop jmp",
    "alloc load_slot load(b=1) load",
    "push3 load_imm call",
    "mov mov jmp",
    "drop ret",
    "load_const dsub(b=1) dmul",
    "iadd_imm mov jmp",
    "load_slot call",
    "load_imm jmpdnlt(b=1)",
    "mov ret",
    "iadd_imm iadd_imm",
    "push3 push",
    "load_const dmul(c=1) load_const",
    "pop iadd(b=1)",
    "pop drop jmp",
    "load dmul(c=1) load",
    "iadd_imm mov mov",
    "mov isub_imm mov",
    "load_slot sys",
    "load dsub(c=1)",
    "alloc load",
    "store mov ret",
    "store load",
    "imul_imm iadd(b=1)",
    "push2 iadd_imm",
    "load_slot load_slot drop jmp",
    "load dmul(b=1) dadd(c=1)",
    "iadd_imm push",
    "mov mov load_imm load_imm call",
    "load_imm load_const load_imm call",
    "mov load_slot call",
    "jmpge_imm iadd_imm",
    "load_imm jmpdnlt(b=1) load_slot",
    "mov load_imm",
    "load_imm jmp",
    "pop load_slot drop jmp",
    "iadd_imm load_slot",
)

_WORD: Final = re.compile(r"([a-z0-9_]+)(?:\+(\d))?(?:\(([abc=\d,]+)\))?")
_BY_NAME: Final = {op.name: op.code for op in bytecode.OPS}
_FIELDS: Final = "abc"

# What must be so for a run to match: three bytes, of which these are the first. The others are x and y, offsets in
# bytes from its first word unless something else is said.
OPCODE: Final = 0  # the opcode at x is y
SAME: Final = 1  # the bytes at x and y are equal
OTHER: Final = 2  # they are not
AHEAD: Final = 3  # the target of the word at x is y words behind the first one

Test = tuple[int, int, int]


class Step(NamedTuple):
    """One instruction of a run: its opcode, how many words further it jumps, and for each of the operands a, b, c how
    many words back its register has been written; 0 where that is not known."""

    code: int
    skip: int = 0
    back: tuple[int, int, int] = (0, 0, 0)


Run = tuple[Step, ...]


def parse(text: str) -> Run:
    """The run that is written so. ValueError where it is none."""
    run = []
    for word in text.split():
        match = _WORD.fullmatch(word)
        if match is None or match[1] not in _BY_NAME:
            raise ValueError(f"{word!r} in {text!r} is no instruction")
        known = dict([item.split("=") for item in match[3].split(",")]) if match[3] else {}
        a, b, c = [int(known.get(name, 0)) for name in _FIELDS]
        run.append(Step(_BY_NAME[match[1]], int(match[2] or 0), (a, b, c)))
    return tuple(run)


def opcode_of(word: int) -> int:
    """The opcode of a word, whether or not that has the code of a run."""
    code = word & 0xFF
    if not FIRST <= code < FIRST + len(SUPERINSTRUCTIONS):
        return code
    match = _WORD.match(SUPERINSTRUCTIONS[code - FIRST])
    assert match is not None
    return _BY_NAME[match[1]]


def is_conditional(code: int) -> bool:
    """Whether an instruction is a jump that may not be taken."""
    return bytecode.OPS[code].imm == bytecode.TARGET and code not in (bytecode.JMP, bytecode.TAIL, bytecode.CALL)


def leaves(code: int) -> bool:
    """Whether control is never at the next word after an instruction, as far as a run can see."""
    return bytecode.OPS[code].terminator or code in (bytecode.CALL, bytecode.SYS)


def written(code: int) -> tuple[int, ...]:
    """The operands that an instruction writes, as their places in a word: 1 for a, 2 for b, 3 for c."""
    op = bytecode.OPS[code]
    return tuple([place for place, kind in enumerate((op.a, op.b, op.c), 1) if kind == bytecode.DEST])


def passed_over(run: Run, index: int) -> set[int]:
    """The words before one that control has not come through, since a jump passes over them."""
    return {
        word
        for jump in range(index)
        if 0 < run[jump].skip <= index - jump
        for word in range(jump + 1, jump + run[jump].skip)
    }


def tests_of(run: Run) -> list[Test]:
    """What must be so at a word for a run to begin there. Longer runs have more of it."""
    tests = [(OPCODE, 8 * index, step.code) for index, step in enumerate(run)]
    for index, step in enumerate(run):
        if step.skip:
            tests.append((AHEAD, 8 * index, index + step.skip))
        for place, back in enumerate(step.back, 1):
            if not back:
                continue
            operand = 8 * index + place
            tests.append((SAME, operand, 8 * (index - back) + 1))
            writer = index - back
            # Whatever else the writer writes, it does so afterwards.
            later = [(writer, other) for other in written(run[writer].code) if other != 1]
            for between in sorted(set(range(writer + 1, index)) - passed_over(run, index)):
                later += [(between, other) for other in written(run[between].code)]
            tests += [(OTHER, operand, 8 * word + other) for word, other in later]
    return tests


def preference(run: Run) -> tuple[int, int]:
    """Of runs that begin at a word, the one that has most of this is taken: the longest one that knows most."""
    return len(run), len(tests_of(run))
