"""The IR: functions of basic blocks in SSA form, with block parameters instead of phi nodes.

Everything of a program stands in four containers, and is referenced by index; 0 means "none" everywhere.

`Ir.inst` rows are instructions and terminators. An instruction that has a result *is* that value: value 12 is row 12.
The instructions of a block form a list through `next`; its last one is its terminator. Block parameters are rows too
(`PARAM`), but stand in the block's parameter list instead.

| column | holds |
| --- | --- |
| op | one of the opcodes below |
| type | type id of the result, 0 if there is none |
| a b c d | operands, see `OPS`: a value, a function, an edge, or the index of a list in `pool` |
| imm | 64-bit signed: a constant, an immediate, a byte offset; the bits of a Double |
| pos | byte offset in the source |
| next | the following instruction of the block |

`pool` is a Vec of 'q'. A *list* in it is its length followed by its words. An *edge* is such a list too: the target
block, then one argument per parameter of it. The switch list: default edge, then key, edge, key, edge, ... The lookup
list: default constant, then key, constant, key, constant, ... Keys are Ints, or symbols of the AST's interner for Str;
constants are what `imm` of a constant of that type is. No list but the empty one is referred to twice, so a pass may
change it in place.

Control never goes backwards: the blocks of a function have no cycles, since the language has no loops and a recursion
is a call. The verifier checks it; passes, the order of blocks and the emitter rely on it.

`block` rows: function, first and last instruction, parameter list in `pool`, next block of the function in layout
order. A block that has died has function 0 and stands in no list.

`function` rows: name symbol (`entry` has none: go by its row), first block, last block, return type id, source
offset, parameter count. The parameters of a function are those of its first block. Row f here is row f of
`CheckedProgram.functions`; the last row is `entry`, which has no row there.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec
from allocators.uncopyable import Uncopyable
from garden.types.program import CheckedProgram
from garden.types.types import BOOL, DOUBLE, INT, STR

A = TypeVar("A", bound=Allocator, covariant=True)

NONE: Final = 0
NOP: Final = 1
PARAM: Final = 2
UNDEFINED: Final = 3
CONST: Final = 4
CONST_STR: Final = 5

IADD: Final = 10
ISUB: Final = 11
IMUL: Final = 12
IDIV: Final = 13
IMOD: Final = 14
ILT: Final = 15
ILE: Final = 16
IEQ: Final = 17
INE: Final = 18

DADD: Final = 20
DSUB: Final = 21
DMUL: Final = 22
DDIV: Final = 23
DLT: Final = 24
DLE: Final = 25

SEQ: Final = 26
SNE: Final = 27

INEG: Final = 28
DNEG: Final = 29

IADD_IMM: Final = 30
ISUB_IMM: Final = 31
IMUL_IMM: Final = 32
IDIV_IMM: Final = 33
IMOD_IMM: Final = 34
ILT_IMM: Final = 35
IGT_IMM: Final = 36
IEQ_IMM: Final = 37
INE_IMM: Final = 38

INT_TO_DOUBLE: Final = 40
DOUBLE_TO_INT: Final = 41
INT_TO_BOOL: Final = 42
BOOL_TO_INT: Final = 43

CALL: Final = 50
SYS: Final = 51
ALLOC: Final = 52
STORE: Final = 53
LOAD: Final = 54
ADDROF: Final = 55
LOOKUP: Final = 56
COPY: Final = 57

RET: Final = 60
JUMP: Final = 61
BRANCH: Final = 62
BRANCH_CMP: Final = 63
BRANCH_CMP_IMM: Final = 64
SWITCH: Final = 65
TAIL: Final = 66

FIRST_TERMINATOR: Final = RET

# What `OPS` says of an operand column: nothing, a value, a value that may be missing, a function row, an index into
# `CheckedProgram.hosts`, a list of values, an edge, a switch or lookup list, or one of the opcodes ILT_IMM IGT_IMM
# IEQ_IMM INE_IMM.
UNUSED: Final = 0
VALUE: Final = 1
MAYBE_VALUE: Final = 2
FUNCTION: Final = 3
HOST: Final = 4
VALUES: Final = 5
EDGE: Final = 6
CASES: Final = 7
COMPARE: Final = 8

# What `OPS` says of imm.
NO_IMM: Final = 0
IMM: Final = 1  # an Int of 32 bits
BITS: Final = 2  # a constant of the row's type: Int, Bool as 0 or 1, or the bits of a Double
SYMBOL: Final = 3  # a symbol: the text of a Str
OFFSET: Final = 4  # bytes
SIZE: Final = 5  # bytes
COMPARISON: Final = 6  # one of the opcodes ILT ILE IEQ INE DLT DLE SEQ SNE

#: How far removing an instruction whose result is unused changes what the program does.
PURE: Final = 0  # not at all
READS: Final = 1  # not at all, but it may not move across a store
TRAPS: Final = 2  # it may trap, so it stays
EFFECT: Final = 3  # it does something else than make a value, so it stays

# What `OPS` says of the type of an operand or a result, where it is not one type id, or nothing (0).
ANY: Final = -1  # any type that values have
SAME: Final = -2  # Int or Bool, the same for both operands
MEMORY: Final = -3  # what can be an address: a record, an array or an option
COMPARED: Final = -4  # what the comparison in imm takes
RETURNED: Final = -5  # the result of the function that the instruction is in, or nothing
CALLED: Final = -6  # the result of the function that is called, or nothing
KEY: Final = -7  # Int or Str
NUMBER: Final = -8  # Int, Bool or Double
CONSTANT: Final = -9  # Int, Bool, Double or Str


@mypyc_attr(native_class=True)
class Op:
    """An opcode: its name in dumps, what it does, what its operand columns and `imm` hold, and its effect.

    `takes_a` and `takes_b` are the types of the values in a and b, `gives` that of the result, `edges` how many edges
    stand in c and d.
    """

    __slots__ = ("a", "b", "c", "d", "doc", "effect", "gives", "imm", "name", "takes_a", "takes_b")

    def __init__(
        self,
        name: str,
        doc: str,
        a: i64 = UNUSED,
        b: i64 = UNUSED,
        *,
        edges: i64 = 0,
        takes: tuple[int, int] = (0, 0),
        gives: i64 = 0,
        imm: i64 = NO_IMM,
        effect: i64 = PURE,
    ) -> None:
        self.name: Final = name
        self.doc: Final = doc
        self.a: Final = a
        self.b: Final = b
        self.c: Final = EDGE if edges > 0 else UNUSED
        self.d: Final = EDGE if edges > 1 else UNUSED
        self.takes_a: Final = takes[0]
        self.takes_b: Final = takes[1]
        self.gives: Final = gives
        self.imm: Final = imm
        self.effect: Final = effect


def _unary(name: str, doc: str, takes: i64, gives: i64) -> Op:
    return Op(name, doc, VALUE, takes=(takes, 0), gives=gives)


def _binary(name: str, doc: str, takes: i64, gives: i64, effect: i64 = PURE) -> Op:
    return Op(name, doc, VALUE, VALUE, takes=(takes, takes), gives=gives, effect=effect)


def _with_imm(name: str, doc: str, gives: i64, effect: i64 = PURE) -> Op:
    return Op(name, doc, VALUE, takes=(INT, 0), gives=gives, imm=IMM, effect=effect)


#: The one table of IR opcodes. `garden.ir.verifier` checks what it says.
OPS: Final[dict[int, Op]] = {
    NOP: Op("Noop", "nothing; passes leave it for what they remove"),
    PARAM: Op("Param", "a parameter of a block, given by every edge to it", gives=ANY, effect=EFFECT),
    UNDEFINED: Op("Undefined", "any value, which nothing depends on", gives=ANY),
    CONST: Op("Const", "imm", gives=NUMBER, imm=BITS),
    CONST_STR: Op("ConstStr", "the text of the symbol imm", gives=STR, imm=SYMBOL),
    IADD: _binary("IAdd", "a + b, which wraps", INT, INT),
    ISUB: _binary("ISub", "a - b, which wraps", INT, INT),
    IMUL: _binary("IMul", "a * b, which wraps", INT, INT),
    IDIV: _binary("IDiv", "a / b towards zero; T0001 if b is 0", INT, INT, TRAPS),
    IMOD: _binary("IMod", "the remainder of a / b, with the sign of a; T0001 if b is 0", INT, INT, TRAPS),
    ILT: _binary("ILt", "a < b", INT, BOOL),
    ILE: _binary("ILe", "a <= b", INT, BOOL),
    IEQ: _binary("IEq", "a == b", SAME, BOOL),
    INE: _binary("INe", "a != b", SAME, BOOL),
    DADD: _binary("DAdd", "a + b", DOUBLE, DOUBLE),
    DSUB: _binary("DSub", "a - b", DOUBLE, DOUBLE),
    DMUL: _binary("DMul", "a * b", DOUBLE, DOUBLE),
    DDIV: _binary("DDiv", "a / b; T0001 if b is 0", DOUBLE, DOUBLE, TRAPS),
    DLT: _binary("DLt", "a < b; false for a NaN", DOUBLE, BOOL),
    DLE: _binary("DLe", "a <= b; false for a NaN", DOUBLE, BOOL),
    SEQ: _binary("SEq", "whether the texts are equal", STR, BOOL),
    SNE: _binary("SNe", "whether the texts differ", STR, BOOL),
    INEG: _unary("INeg", "-a, which wraps", INT, INT),
    DNEG: _unary("DNeg", "a with its sign flipped", DOUBLE, DOUBLE),
    IADD_IMM: _with_imm("IAdd", "a + imm, which wraps", INT),
    ISUB_IMM: _with_imm("ISub", "a - imm, which wraps", INT),
    IMUL_IMM: _with_imm("IMul", "a * imm, which wraps", INT),
    IDIV_IMM: _with_imm("IDiv", "a / imm towards zero; T0001 if imm is 0", INT, TRAPS),
    IMOD_IMM: _with_imm("IMod", "the remainder of a / imm, with the sign of a; T0001 if imm is 0", INT, TRAPS),
    ILT_IMM: _with_imm("ILt", "a < imm", BOOL),
    IGT_IMM: _with_imm("IGt", "a > imm", BOOL),
    IEQ_IMM: _with_imm("IEq", "a == imm", BOOL),
    INE_IMM: _with_imm("INe", "a != imm", BOOL),
    INT_TO_DOUBLE: _unary("Cast<Int->Double>", "the nearest Double", INT, DOUBLE),
    DOUBLE_TO_INT: _unary("Cast<Double->Int>", "a towards zero, saturating; 0 for a NaN", DOUBLE, INT),
    INT_TO_BOOL: _unary("Cast<Int->Bool>", "whether a is not 0", INT, BOOL),
    BOOL_TO_INT: _unary("Cast<Bool->Int>", "1 or 0", BOOL, INT),
    CALL: Op("Call", "the result of function a with the arguments b", FUNCTION, VALUES, gives=CALLED, effect=EFFECT),
    SYS: Op(
        "Sys",
        "the result of host function a with the arguments b; no effect where that function has none",
        HOST,
        VALUES,
        gives=CALLED,
        effect=EFFECT,
    ),
    ALLOC: Op("Alloc", "imm uninitialised bytes; T0003 if there are none", gives=MEMORY, imm=SIZE, effect=TRAPS),
    STORE: Op(
        "Store", "put the word a at address b + imm", VALUE, VALUE, takes=(ANY, MEMORY), imm=OFFSET, effect=EFFECT
    ),
    LOAD: Op("Load", "the word at address a + imm", VALUE, takes=(MEMORY, 0), gives=ANY, imm=OFFSET, effect=READS),
    ADDROF: Op("AddrOf", "a + imm, which lies inside the object a", VALUE, takes=(MEMORY, 0), gives=MEMORY, imm=OFFSET),
    LOOKUP: Op("Lookup", "the constant that the list b has for a", VALUE, CASES, takes=(KEY, 0), gives=CONSTANT),
    COPY: Op(
        "Copy",
        "copy imm bytes from address a to address b, another object",
        VALUE,
        VALUE,
        takes=(MEMORY, MEMORY),
        imm=SIZE,
        effect=EFFECT,
    ),
    RET: Op("ret", "return a", MAYBE_VALUE, takes=(RETURNED, 0), effect=EFFECT),
    JUMP: Op("jmp", "go on by edge c", edges=1, effect=EFFECT),
    BRANCH: Op("br", "by edge c if a, else by d", VALUE, edges=2, takes=(BOOL, 0), effect=EFFECT),
    BRANCH_CMP: Op(
        "br_cmp",
        "by edge c if the comparison imm holds of a and b, else by d",
        VALUE,
        VALUE,
        edges=2,
        takes=(COMPARED, COMPARED),
        imm=COMPARISON,
        effect=EFFECT,
    ),
    BRANCH_CMP_IMM: Op(
        "br_imm",
        "by edge c if the comparison b holds of a and imm, else by d",
        VALUE,
        COMPARE,
        edges=2,
        takes=(INT, 0),
        imm=IMM,
        effect=EFFECT,
    ),
    SWITCH: Op("switch", "by the edge that the list b has for a", VALUE, CASES, takes=(KEY, 0), effect=EFFECT),
    TAIL: Op("tail", "return the result of function a with the arguments b", FUNCTION, VALUES, effect=EFFECT),
}


@mypyc_attr(native_class=True)
class Ir(Uncopyable, Generic[A]):
    """A program in IR, beside the checked program that it comes from (and does not own).

    The columns of the three tables are attributes, prefixed `block_` and `function_` for those two; they are replaced
    when their table grows, so do not keep them across an `add`.
    """

    __slots__ = (
        "_block_capacity",
        "_blocks",
        "_capacity",
        "_functions",
        "_inst",
        "a",
        "b",
        "block_first",
        "block_function",
        "block_last",
        "block_next",
        "block_params",
        "c",
        "checked",
        "d",
        "function_first",
        "function_last",
        "function_name",
        "function_parameters",
        "function_pos",
        "function_result",
        "imm",
        "next",
        "op",
        "pool",
        "pos",
        "type",
    )

    def __init__(self, allocator: A, checked: CheckedProgram[Allocator]) -> None:
        self.checked: Final = checked
        self._inst: Table[A] = Table(allocator, "BIIIIIqII")
        self._blocks: Table[A] = Table(allocator, "IIIII")
        self._functions: Table[A] = Table(allocator, "IIIIII")
        self.pool: Vec[A] = Vec(allocator, "q")
        self._capacity: i64 = 0
        self._block_capacity: i64 = 0
        self._read_columns()
        self._read_block_columns()
        self._read_function_columns()
        try:
            self.pool.append_i64(0)
            self.add(NONE, 0, 0)
            self.add_block(0)
            self.add_function(0, 0, 0, 0)
        except MemoryError:
            self.close()
            raise

    def _read_columns(self) -> None:
        self.op, self.type, self.a, self.b, self.c, self.d, self.imm, self.pos, self.next = self._inst.typed_columns
        self._capacity = self._inst.capacity

    def _read_block_columns(self) -> None:
        columns = self._blocks.typed_columns
        self.block_function, self.block_first, self.block_last, self.block_params, self.block_next = columns
        self._block_capacity = self._blocks.capacity

    def _read_function_columns(self) -> None:
        (
            self.function_name,
            self.function_first,
            self.function_last,
            self.function_result,
            self.function_pos,
            self.function_parameters,
        ) = self._functions.typed_columns

    @property
    def value_count(self) -> i64:
        """Number of instruction rows, row 0 included: the length of an array indexed by value."""
        return len(self._inst)

    @property
    def block_count(self) -> i64:
        """Number of block rows, row 0 included."""
        return len(self._blocks)

    @property
    def function_count(self) -> i64:
        """Number of function rows, row 0 included."""
        return len(self._functions)

    def add(self, op: i64, type: i64, pos: i64, *, a: i64 = 0, b: i64 = 0, c: i64 = 0, d: i64 = 0, imm: i64 = 0) -> i64:
        """Add an instruction that stands in no block yet, and return its row; see `Builder` for those of a block."""
        row = self._inst.add()
        if row >= self._capacity:
            self._read_columns()
        self.op[row] = op
        self.type[row] = type
        self.a[row] = a
        self.b[row] = b
        self.c[row] = c
        self.d[row] = d
        self.imm[row] = imm
        self.pos[row] = pos
        self.next[row] = 0
        return row

    def append(self, block: i64, inst: i64) -> None:
        """Put an instruction at the end of a block."""
        last: i64 = self.block_last[block]
        if last:
            self.next[last] = inst
        else:
            self.block_first[block] = inst
        self.block_last[block] = inst

    def add_block(self, function: i64) -> i64:
        """Add an empty block at the end of a function's layout (function 0: nowhere), and return its row."""
        row = self._blocks.add()
        if row >= self._block_capacity:
            self._read_block_columns()
        self.block_function[row] = function
        self.block_first[row] = 0
        self.block_last[row] = 0
        self.block_params[row] = 0
        self.block_next[row] = 0
        if function:
            last: i64 = self.function_last[function]
            if last:
                self.block_next[last] = row
            else:
                self.function_first[function] = row
            self.function_last[function] = row
        return row

    def add_function(self, name: i64, result: i64, pos: i64, parameters: i64) -> i64:
        """Add a function without blocks, and return its row."""
        row = self._functions.append(name, 0, 0, result, pos, parameters)
        self._read_function_columns()
        return row

    def add_list(self, words: list[int]) -> i64:
        """Add a list to `pool` and return its index; the empty list is 0."""
        if not words:
            return 0
        index = len(self.pool)
        self.pool.reserve(len(words) + 1)
        self.pool.append_i64(len(words))
        for word in words:
            self.pool.append_i64(word)
        return index

    def add_words(self, words: Vec[Allocator]) -> i64:
        """Add a list that stands in a Vec of 'q', and return its index."""
        count = len(words)
        if count == 0:
            return 0
        index = len(self.pool)
        self.pool.reserve(count + 1)
        self.pool.append_i64(count)
        self.pool.extend_from(words)
        return index

    def list_at(self, index: i64) -> memoryview:
        """The words of a list, without a copy; stale once `pool` grows."""
        data = self.pool.data
        return data[index + 1 : index + 1 + data[index]]

    def close(self) -> None:
        self.pool.close()
        self._functions.close()
        self._blocks.close()
        self._inst.close()
