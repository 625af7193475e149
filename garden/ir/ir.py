"""The IR: functions of basic blocks in SSA form, with block parameters instead of phi nodes.

Everything of a program stands in four containers, and is referenced by index; 0 means "none" everywhere.

`Ir.inst` rows are instructions and terminators. An instruction that has a result *is* that value: value 12 is row 12.
The instructions of a block form a list through `next`; its last one is its terminator. Block parameters are rows too
(`PARAM`), but stand in the block's parameter list instead.

| column | holds |
| --- | --- |
| op | one of the opcodes below |
| type | type id of the result, 0 where there is none |
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
is a call. Passes and the emitter rely on it.

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
from garden.types.program import CheckedProgram

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
IMM: Final = 1  # an Int
BITS: Final = 2  # a constant of the row's type: Int, Bool as 0 or 1, or the bits of a Double
SYMBOL: Final = 3  # a symbol: the text of a Str
OFFSET: Final = 4  # bytes
SIZE: Final = 5  # bytes
COMPARISON: Final = 6  # one of the opcodes ILT ILE IEQ INE DLT DLE SEQ SNE

#: What imm may be where it is an Int or an offset: the bytecode has 32 bits for it.
MIN_IMM: Final = -(1 << 31)
MAX_IMM: Final = (1 << 31) - 1

#: How far removing an instruction whose result is unused changes what the program does.
PURE: Final = 0  # not at all
READS: Final = 1  # not at all, but it may not move across a store
TRAPS: Final = 2  # it may trap, so it stays
EFFECT: Final = 3  # it does something else than make a value, so it stays


@mypyc_attr(native_class=True)
class Op:
    """An opcode: its name in dumps, what its operand columns and `imm` hold, and its effect."""

    __slots__ = ("a", "b", "c", "d", "effect", "imm", "name")

    def __init__(self, name: str, a: int, b: int, c: int, d: int, imm: int, effect: int) -> None:
        self.name: Final = name
        self.a: Final = a
        self.b: Final = b
        self.c: Final = c
        self.d: Final = d
        self.imm: Final = imm
        self.effect: Final = effect


#: The one table of IR opcodes.
OPS: Final[dict[int, Op]] = {
    NOP: Op("Noop", 0, 0, 0, 0, NO_IMM, PURE),
    PARAM: Op("Param", 0, 0, 0, 0, NO_IMM, EFFECT),
    UNDEFINED: Op("Undefined", 0, 0, 0, 0, NO_IMM, PURE),
    CONST: Op("Const", 0, 0, 0, 0, BITS, PURE),
    CONST_STR: Op("ConstStr", 0, 0, 0, 0, SYMBOL, PURE),
    IADD: Op("IAdd", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    ISUB: Op("ISub", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    IMUL: Op("IMul", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    IDIV: Op("IDiv", VALUE, VALUE, 0, 0, NO_IMM, TRAPS),
    IMOD: Op("IMod", VALUE, VALUE, 0, 0, NO_IMM, TRAPS),
    ILT: Op("ILt", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    ILE: Op("ILe", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    IEQ: Op("IEq", VALUE, VALUE, 0, 0, NO_IMM, PURE),  # also Bool
    INE: Op("INe", VALUE, VALUE, 0, 0, NO_IMM, PURE),  # also Bool
    DADD: Op("DAdd", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    DSUB: Op("DSub", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    DMUL: Op("DMul", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    DDIV: Op("DDiv", VALUE, VALUE, 0, 0, NO_IMM, TRAPS),
    DLT: Op("DLt", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    DLE: Op("DLe", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    SEQ: Op("SEq", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    SNE: Op("SNe", VALUE, VALUE, 0, 0, NO_IMM, PURE),
    INEG: Op("INeg", VALUE, 0, 0, 0, NO_IMM, PURE),
    DNEG: Op("DNeg", VALUE, 0, 0, 0, NO_IMM, PURE),
    # Immediates are on the right: value op imm.
    IADD_IMM: Op("IAdd", VALUE, 0, 0, 0, IMM, PURE),
    ISUB_IMM: Op("ISub", VALUE, 0, 0, 0, IMM, PURE),
    IMUL_IMM: Op("IMul", VALUE, 0, 0, 0, IMM, PURE),
    IDIV_IMM: Op("IDiv", VALUE, 0, 0, 0, IMM, TRAPS),
    IMOD_IMM: Op("IMod", VALUE, 0, 0, 0, IMM, TRAPS),
    ILT_IMM: Op("ILt", VALUE, 0, 0, 0, IMM, PURE),
    IGT_IMM: Op("IGt", VALUE, 0, 0, 0, IMM, PURE),
    IEQ_IMM: Op("IEq", VALUE, 0, 0, 0, IMM, PURE),
    INE_IMM: Op("INe", VALUE, 0, 0, 0, IMM, PURE),
    INT_TO_DOUBLE: Op("Cast<Int->Double>", VALUE, 0, 0, 0, NO_IMM, PURE),
    DOUBLE_TO_INT: Op("Cast<Double->Int>", VALUE, 0, 0, 0, NO_IMM, PURE),
    INT_TO_BOOL: Op("Cast<Int->Bool>", VALUE, 0, 0, 0, NO_IMM, PURE),
    BOOL_TO_INT: Op("Cast<Bool->Int>", VALUE, 0, 0, 0, NO_IMM, PURE),
    CALL: Op("Call", FUNCTION, VALUES, 0, 0, NO_IMM, EFFECT),
    SYS: Op("Sys", HOST, VALUES, 0, 0, NO_IMM, EFFECT),  # pure where the host function is
    ALLOC: Op("Alloc", 0, 0, 0, 0, SIZE, TRAPS),  # words, uninitialised; of the row's type
    STORE: Op("Store", VALUE, VALUE, 0, 0, OFFSET, EFFECT),  # the word a to address b + imm
    LOAD: Op("Load", VALUE, 0, 0, 0, OFFSET, READS),
    ADDROF: Op("AddrOf", VALUE, 0, 0, 0, OFFSET, PURE),
    COPY: Op("Copy", VALUE, VALUE, 0, 0, SIZE, EFFECT),  # imm bytes from address a to address b, another object
    LOOKUP: Op("Lookup", VALUE, CASES, 0, 0, NO_IMM, PURE),
    RET: Op("ret", MAYBE_VALUE, 0, 0, 0, NO_IMM, EFFECT),
    # Edges stand in c (taken where the condition is true) and d.
    JUMP: Op("jmp", 0, 0, EDGE, 0, NO_IMM, EFFECT),
    BRANCH: Op("br", VALUE, 0, EDGE, EDGE, NO_IMM, EFFECT),
    BRANCH_CMP: Op("br_cmp", VALUE, VALUE, EDGE, EDGE, COMPARISON, EFFECT),
    BRANCH_CMP_IMM: Op("br_imm", VALUE, COMPARE, EDGE, EDGE, IMM, EFFECT),
    SWITCH: Op("switch", VALUE, CASES, 0, 0, NO_IMM, EFFECT),
    TAIL: Op("tail", FUNCTION, VALUES, 0, 0, NO_IMM, EFFECT),
}


@mypyc_attr(native_class=True)
class Ir(Generic[A]):
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
            self.pool.append(0)
            self.add(NONE, 0, 0)
            self.add_block(0)
            self.add_function(0, 0, 0, 0)
        except MemoryError:
            self.close()
            raise

    def _read_columns(self) -> None:
        self.op, self.type, self.a, self.b, self.c, self.d, self.imm, self.pos, self.next = self._inst.columns
        self._capacity = self._inst.capacity

    def _read_block_columns(self) -> None:
        columns = self._blocks.columns
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
        ) = self._functions.columns

    @property
    def value_count(self) -> int:
        """Number of instruction rows, row 0 included: the length of an array indexed by value."""
        return len(self._inst)

    @property
    def block_count(self) -> int:
        """Number of block rows, row 0 included."""
        return len(self._blocks)

    @property
    def function_count(self) -> int:
        """Number of function rows, row 0 included."""
        return len(self._functions)

    def add(self, op: int, type: int, pos: int, *, a: int = 0, b: int = 0, c: int = 0, d: int = 0, imm: int = 0) -> int:
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

    def append(self, block: int, inst: int) -> None:
        """Put an instruction at the end of a block."""
        last: int = self.block_last[block]
        if last:
            self.next[last] = inst
        else:
            self.block_first[block] = inst
        self.block_last[block] = inst

    def add_block(self, function: int) -> int:
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
            last: int = self.function_last[function]
            if last:
                self.block_next[last] = row
            else:
                self.function_first[function] = row
            self.function_last[function] = row
        return row

    def add_function(self, name: int, result: int, pos: int, parameters: int) -> int:
        """Add a function without blocks, and return its row."""
        row = self._functions.append(name, 0, 0, result, pos, parameters)
        self._read_function_columns()
        return row

    def add_list(self, words: list[int]) -> int:
        """Add a list to `pool` and return its index; the empty list is 0."""
        if not words:
            return 0
        index = len(self.pool)
        self.pool.reserve(len(words) + 1)
        self.pool.append(len(words))
        for word in words:
            self.pool.append(word)
        return index

    def add_words(self, words: Vec[Allocator]) -> int:
        """Add a list that stands in a Vec of 'q', and return its index."""
        count = len(words)
        if count == 0:
            return 0
        index = len(self.pool)
        self.pool.reserve(count + 1)
        self.pool.append(count)
        self.pool.extend_from(words)
        return index

    def list_at(self, index: int) -> memoryview:
        """The words of a list, without a copy; stale once `pool` grows."""
        data = self.pool.data
        return data[index + 1 : index + 1 + data[index]]

    def close(self) -> None:
        self.pool.close()
        self._functions.close()
        self._blocks.close()
        self._inst.close()
