"""The one opcode table: every instruction of the machine, its operands and its meaning.

An instruction is one 64-bit little-endian word: `op:8 a:8 b:8 c:8 imm:32`, imm signed. A word is handled as a signed
number, so that a shift leaves imm with its sign. Registers are r0 to r63. Jump targets are absolute pcs, counted in
words. A comparison with an immediate keeps the immediate in b and c, as 16 bits, since imm holds the target.

Values are untyped 64-bit words: Int and addresses as they are, Bool as 0 or 1, Double as its bits. Str values are
interned, so equal strings are equal words.

Calls: arguments come in r0, r1, ...; the result goes to r0. Arguments from `REGISTER_ARGUMENTS` on are pushed to the
spill stack by the caller, the last one first, and popped by the callee, which leaves the stack as it was below them. A
call may change every register: what the caller still needs it saves, unless it knows what the callee writes. A host
function changes r0 and no other register.
"""

from __future__ import annotations

from typing import Final

from allocators._mypyc import mypyc_attr

REGISTERS: Final = 64
#: How many arguments travel in registers.
REGISTER_ARGUMENTS: Final = 32
#: No instruction: what stands in place of the first opcode of a function that has become machine code while its program
#: runs. The upper half of that word is its row.
NATIVE: Final = 127

# What an operand field holds.
UNUSED: Final = 0
DEST: Final = 1  # a register that is written
SOURCE: Final = 2  # a register that is read
IMM: Final = 3  # a number in imm
IMM16: Final = 4  # a number in b and c
TARGET: Final = 5  # a pc in imm
CONSTANT: Final = 6  # an index into the constant area, in imm
HOST: Final = 7  # a host function's index, in imm
COUNT: Final = 8  # a small number in an 8-bit field
SLOT: Final = 9  # a spill stack word, counted down from the top (0 is the top), in imm
DROPPED: Final = 10  # how many words leave the spill stack, in imm


@mypyc_attr(native_class=True)
class Op:
    """One opcode. `a`, `b`, `c`, `imm` say what each field holds; `pushes` by how many words the spill stack grows,
    beside what an operand of kind `DROPPED` and a call's arguments on the stack take off.

    `terminator`: control never continues with the next word. `traps`: the T codes that it can end a run with.
    """

    __slots__ = ("a", "b", "c", "code", "doc", "imm", "name", "pushes", "terminator", "traps")

    def __init__(
        self,
        code: int,
        name: str,
        doc: str,
        a: int = UNUSED,
        b: int = UNUSED,
        c: int = UNUSED,
        imm: int = UNUSED,
        *,
        pushes: int = 0,
        terminator: bool = False,
        traps: tuple[str, ...] = (),
    ) -> None:
        self.code: Final = code
        self.name: Final = name
        self.doc: Final = doc
        self.a: Final = a
        self.b: Final = b
        self.c: Final = c
        self.imm: Final = imm
        self.pushes: Final = pushes
        self.terminator: Final = terminator
        self.traps: Final = traps


NOP: Final = 0
HALT: Final = 1
MOV: Final = 2
LOAD_IMM: Final = 3
LOAD_CONST: Final = 4

IADD: Final = 5
ISUB: Final = 6
IMUL: Final = 7
IDIV: Final = 8
IMOD: Final = 9
ILT: Final = 10
ILE: Final = 11
IEQ: Final = 12
INE: Final = 13
INEG: Final = 14

IADD_IMM: Final = 15
ISUB_IMM: Final = 16
IMUL_IMM: Final = 17
IDIV_IMM: Final = 18
IMOD_IMM: Final = 19
ILT_IMM: Final = 20
IGT_IMM: Final = 21
IEQ_IMM: Final = 22
INE_IMM: Final = 23

DADD: Final = 24
DSUB: Final = 25
DMUL: Final = 26
DDIV: Final = 27
DLT: Final = 28
DLE: Final = 29
DNEG: Final = 30

CAST_TO_INT: Final = 31
CAST_TO_DOUBLE: Final = 32
CAST_TO_BOOL: Final = 33

JMP: Final = 34
JMPT: Final = 35
JMPF: Final = 36
JMPEQ: Final = 37
JMPNE: Final = 38
JMPLT: Final = 39
JMPLE: Final = 40
JMPEQ_IMM: Final = 41
JMPNE_IMM: Final = 42
JMPLT_IMM: Final = 43
JMPLE_IMM: Final = 44
JMPGT_IMM: Final = 45
JMPGE_IMM: Final = 46
JMPDLT: Final = 47
JMPDLE: Final = 48
JMPDNLT: Final = 49
JMPDNLE: Final = 50
SWITCH: Final = 51
LOOKUP: Final = 52

CALL: Final = 53
TAIL: Final = 54
SYS: Final = 55
RET: Final = 56

PUSH: Final = 57
PUSH2: Final = 58
PUSH3: Final = 59
POP: Final = 60
POP2: Final = 61
POP3: Final = 62
STORE_SLOT: Final = 63
LOAD_SLOT: Final = 64

ALLOC: Final = 65
STORE: Final = 66
LOAD: Final = 67
ADDROF: Final = 68

DROP: Final = 69
COPY: Final = 70

_DIVIDES: Final = ("T0001",)

OPS: Final[tuple[Op, ...]] = (
    Op(NOP, "nop", "nothing"),
    Op(HALT, "halt", "end of the run; the result is in r0", terminator=True),
    Op(MOV, "mov", "a = b", DEST, SOURCE),
    Op(LOAD_IMM, "load_imm", "a = imm", DEST, imm=IMM),
    Op(LOAD_CONST, "load_const", "a = constants[imm]", DEST, imm=CONSTANT),
    Op(IADD, "iadd", "a = b + c, wrapping", DEST, SOURCE, SOURCE),
    Op(ISUB, "isub", "a = b - c, wrapping", DEST, SOURCE, SOURCE),
    Op(IMUL, "imul", "a = b * c, wrapping", DEST, SOURCE, SOURCE),
    Op(IDIV, "idiv", "a = b / c, towards zero", DEST, SOURCE, SOURCE, traps=_DIVIDES),
    Op(IMOD, "imod", "a = b % c, sign of b", DEST, SOURCE, SOURCE, traps=_DIVIDES),
    Op(ILT, "ilt", "a = b < c", DEST, SOURCE, SOURCE),
    Op(ILE, "ile", "a = b <= c", DEST, SOURCE, SOURCE),
    Op(IEQ, "ieq", "a = b == c, also for Bool and Str", DEST, SOURCE, SOURCE),
    Op(INE, "ine", "a = b != c, also for Bool and Str", DEST, SOURCE, SOURCE),
    Op(INEG, "ineg", "a = -b, wrapping", DEST, SOURCE),
    Op(IADD_IMM, "iadd_imm", "a = b + imm, wrapping", DEST, SOURCE, imm=IMM),
    Op(ISUB_IMM, "isub_imm", "a = b - imm, wrapping", DEST, SOURCE, imm=IMM),
    Op(IMUL_IMM, "imul_imm", "a = b * imm, wrapping", DEST, SOURCE, imm=IMM),
    Op(IDIV_IMM, "idiv_imm", "a = b / imm, towards zero", DEST, SOURCE, imm=IMM, traps=_DIVIDES),
    Op(IMOD_IMM, "imod_imm", "a = b % imm, sign of b", DEST, SOURCE, imm=IMM, traps=_DIVIDES),
    Op(ILT_IMM, "ilt_imm", "a = b < imm", DEST, SOURCE, imm=IMM),
    Op(IGT_IMM, "igt_imm", "a = b > imm", DEST, SOURCE, imm=IMM),
    Op(IEQ_IMM, "ieq_imm", "a = b == imm", DEST, SOURCE, imm=IMM),
    Op(INE_IMM, "ine_imm", "a = b != imm", DEST, SOURCE, imm=IMM),
    Op(DADD, "dadd", "a = b + c, Double", DEST, SOURCE, SOURCE),
    Op(DSUB, "dsub", "a = b - c, Double", DEST, SOURCE, SOURCE),
    Op(DMUL, "dmul", "a = b * c, Double", DEST, SOURCE, SOURCE),
    Op(DDIV, "ddiv", "a = b / c, Double", DEST, SOURCE, SOURCE, traps=_DIVIDES),
    Op(DLT, "dlt", "a = b < c, Double", DEST, SOURCE, SOURCE),
    Op(DLE, "dle", "a = b <= c, Double", DEST, SOURCE, SOURCE),
    Op(DNEG, "dneg", "a = b with its sign bit flipped", DEST, SOURCE),
    Op(CAST_TO_INT, "cast_to_int", "a = the Double b truncated and saturated, NaN as 0", DEST, SOURCE),
    Op(CAST_TO_DOUBLE, "cast_to_double", "a = the Int b as Double", DEST, SOURCE),
    Op(CAST_TO_BOOL, "cast_to_bool", "a = whether b is not 0", DEST, SOURCE),
    Op(JMP, "jmp", "go to the target", imm=TARGET, terminator=True),
    Op(JMPT, "jmpt", "go if a", SOURCE, imm=TARGET),
    Op(JMPF, "jmpf", "go if not a", SOURCE, imm=TARGET),
    Op(JMPEQ, "jmpeq", "go if a == b", SOURCE, SOURCE, imm=TARGET),
    Op(JMPNE, "jmpne", "go if a != b", SOURCE, SOURCE, imm=TARGET),
    Op(JMPLT, "jmplt", "go if a < b", SOURCE, SOURCE, imm=TARGET),
    Op(JMPLE, "jmple", "go if a <= b", SOURCE, SOURCE, imm=TARGET),
    Op(JMPEQ_IMM, "jmpeq_imm", "go if a == imm16", SOURCE, IMM16, imm=TARGET),
    Op(JMPNE_IMM, "jmpne_imm", "go if a != imm16", SOURCE, IMM16, imm=TARGET),
    Op(JMPLT_IMM, "jmplt_imm", "go if a < imm16", SOURCE, IMM16, imm=TARGET),
    Op(JMPLE_IMM, "jmple_imm", "go if a <= imm16", SOURCE, IMM16, imm=TARGET),
    Op(JMPGT_IMM, "jmpgt_imm", "go if a > imm16", SOURCE, IMM16, imm=TARGET),
    Op(JMPGE_IMM, "jmpge_imm", "go if a >= imm16", SOURCE, IMM16, imm=TARGET),
    Op(JMPDLT, "jmpdlt", "go if a < b, Double", SOURCE, SOURCE, imm=TARGET),
    Op(JMPDLE, "jmpdle", "go if a <= b, Double", SOURCE, SOURCE, imm=TARGET),
    Op(JMPDNLT, "jmpdnlt", "go if not a < b, Double", SOURCE, SOURCE, imm=TARGET),
    Op(JMPDNLE, "jmpdnle", "go if not a <= b, Double", SOURCE, SOURCE, imm=TARGET),
    Op(SWITCH, "switch", "go to the pc that the table at imm has for a", SOURCE, imm=CONSTANT, terminator=True),
    Op(LOOKUP, "lookup", "a = what the table at imm has for b", DEST, SOURCE, imm=CONSTANT),
    Op(CALL, "call", "push the return pc as a frame and go to the target", imm=TARGET, traps=("T0002",)),
    Op(TAIL, "tail", "go to the target in this frame", imm=TARGET, terminator=True),
    Op(SYS, "sys", "r0 = host function imm of a arguments, passed as to a call", COUNT, imm=HOST),
    Op(RET, "ret", "pop a frame and go to its return pc", terminator=True),
    Op(PUSH, "push", "push a", SOURCE, pushes=1, traps=("T0002",)),
    Op(PUSH2, "push2", "push a, then b", SOURCE, SOURCE, pushes=2, traps=("T0002",)),
    Op(PUSH3, "push3", "push a, then b, then c", SOURCE, SOURCE, SOURCE, pushes=3, traps=("T0002",)),
    Op(POP, "pop", "a = the top, popped", DEST, pushes=-1),
    Op(POP2, "pop2", "a = the top, popped; then b", DEST, DEST, pushes=-2),
    Op(POP3, "pop3", "a = the top, popped; then b, then c", DEST, DEST, DEST, pushes=-3),
    Op(STORE_SLOT, "store_slot", "the spill stack word imm below the top = a", SOURCE, imm=SLOT),
    Op(LOAD_SLOT, "load_slot", "a = the spill stack word imm below the top", DEST, imm=SLOT),
    Op(ALLOC, "alloc", "a = address of imm fresh bytes of the heap", DEST, imm=IMM, traps=("T0003",)),
    Op(STORE, "store", "the word at address a + imm = b", SOURCE, SOURCE, imm=IMM),
    Op(LOAD, "load", "a = the word at address b + imm", DEST, SOURCE, imm=IMM),
    Op(ADDROF, "addrof", "a = address b + imm", DEST, SOURCE, imm=IMM),
    Op(DROP, "drop", "pop imm words", imm=DROPPED),
    Op(COPY, "copy", "the imm bytes at address a = those at address b", SOURCE, SOURCE, imm=IMM),
)

assert [op.code for op in OPS] == list(range(len(OPS)))

# A switch or lookup table in the constant area: the first key, the number of slots, the default, then one pc or value a
# slot. The slot of an Int is subject - first. A Str's key is its address in the constant strings, and its slot
# (subject - first) / 8; whether the table is for Str stands in the word before the first key.
TABLE_KIND: Final = 0
TABLE_FIRST: Final = 1
TABLE_COUNT: Final = 2
TABLE_DEFAULT: Final = 3
TABLE_SLOTS: Final = 4


def encode(op: int, a: int = 0, b: int = 0, c: int = 0, imm: int = 0) -> int:
    """The word of an instruction."""
    return imm << 32 | c << 24 | b << 16 | a << 8 | op


def op_of(word: int) -> int:
    return word & 0xFF


def a_of(word: int) -> int:
    return word >> 8 & 0xFF


def b_of(word: int) -> int:
    return word >> 16 & 0xFF


def c_of(word: int) -> int:
    return word >> 24 & 0xFF


def imm_of(word: int) -> int:
    return word >> 32


def imm16_of(word: int) -> int:
    return (word >> 16 & 0xFFFF ^ 0x8000) - 0x8000
