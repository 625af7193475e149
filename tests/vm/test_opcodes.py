"""Every opcode against what Python says, on the values where it matters."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

from allocators.stack import StackAlloc
from garden.bytecode import ops
from garden.bytecode.ops import encode
from garden.errors import Trap
from garden.host import HostFunction
from garden.types.types import Int
from tests.support.encoding import encode_imm16

MIN = -(1 << 63)
MAX = (1 << 63) - 1
INTS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 1 << 31, -(1 << 31), 1 << 32, (1 << 62) + 1, MAX, MAX - 1, MIN, MIN + 1]
IMMS = [0, 1, -1, 2, -7, 10, 255, (1 << 31) - 1, -(1 << 31)]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 1e300, -1e300, 5e-324, 2.0**53, 2.0**63, -(2.0**63), 1e19, -1e19]
DOUBLES += [math.inf, -math.inf, math.nan]


def bits(value: float) -> int:
    return struct.unpack("<q", struct.pack("<d", value))[0]


def wrapped(value: int) -> int:
    return ctypes.c_int64(value & 0xFFFFFFFFFFFFFFFF).value


def same_double(word: int, value: float) -> bool:
    found = struct.unpack("<d", struct.pack("<q", word))[0]
    return (found != found and value != value) or bits(value) == word


class Bench:
    """A machine whose program is a few instructions and a halt; `call` sets r0 and up."""

    def __init__(self, assemble: Any, machine_of: Any, words: list[int], parameters: int, **parts: Any) -> None:
        words = [*words, encode(ops.HALT)]
        code = assemble(words, functions=(("f", 0, len(words), parameters),), **parts)
        self.stack = StackAlloc(bytearray(256))
        self.machine = machine_of(code, assemble.allocator, spill=self.stack)

    def __call__(self, *arguments: int) -> memoryview:
        self.machine.call(1, list(arguments))
        return self.machine.registers


@pytest.fixture
def bench(assemble: Any, machine_of: Any) -> Iterator[Callable[..., Bench]]:
    benches: list[Bench] = []

    def make(words: list[int], parameters: int, **parts: Any) -> Bench:
        benches.append(Bench(assemble, machine_of, words, parameters, **parts))
        return benches[-1]

    yield make
    for one in benches:
        one.machine.close()


def divided(left: int, right: int) -> int:
    return wrapped(int(Fraction(left, right)))


def remainder(left: int, right: int) -> int:
    return left - right * int(Fraction(left, right))


INT_BINARY: dict[int, Callable[[int, int], int]] = {
    ops.IADD: lambda x, y: wrapped(x + y),
    ops.ISUB: lambda x, y: wrapped(x - y),
    ops.IMUL: lambda x, y: wrapped(x * y),
    ops.IDIV: divided,
    ops.IMOD: remainder,
    ops.ILT: lambda x, y: x < y,
    ops.ILE: lambda x, y: x <= y,
    ops.IEQ: lambda x, y: x == y,
    ops.INE: lambda x, y: x != y,
}
INT_IMM: dict[int, Callable[[int, int], int]] = {
    ops.IADD_IMM: lambda x, y: wrapped(x + y),
    ops.ISUB_IMM: lambda x, y: wrapped(x - y),
    ops.IMUL_IMM: lambda x, y: wrapped(x * y),
    ops.IDIV_IMM: divided,
    ops.IMOD_IMM: remainder,
    ops.ILT_IMM: lambda x, y: x < y,
    ops.IGT_IMM: lambda x, y: x > y,
    ops.IEQ_IMM: lambda x, y: x == y,
    ops.INE_IMM: lambda x, y: x != y,
    ops.ADDROF: lambda x, y: wrapped(x + y),
}
DOUBLE_BINARY: dict[int, Callable[[float, float], float]] = {
    ops.DADD: lambda x, y: x + y,
    ops.DSUB: lambda x, y: x - y,
    ops.DMUL: lambda x, y: x * y,
    ops.DDIV: lambda x, y: x / y,
}
DOUBLE_COMPARE: dict[int, Callable[[float, float], bool]] = {
    ops.DLT: lambda x, y: x < y,
    ops.DLE: lambda x, y: x <= y,
}
JUMPS: dict[int, Callable[[int, int], bool]] = {
    ops.JMPEQ: lambda x, y: x == y,
    ops.JMPNE: lambda x, y: x != y,
    ops.JMPLT: lambda x, y: x < y,
    ops.JMPLE: lambda x, y: x <= y,
}
IMM_JUMPS: dict[int, Callable[[int, int], bool]] = {
    ops.JMPEQ_IMM: lambda x, y: x == y,
    ops.JMPNE_IMM: lambda x, y: x != y,
    ops.JMPLT_IMM: lambda x, y: x < y,
    ops.JMPLE_IMM: lambda x, y: x <= y,
    ops.JMPGT_IMM: lambda x, y: x > y,
    ops.JMPGE_IMM: lambda x, y: x >= y,
}
DOUBLE_JUMPS: dict[int, Callable[[float, float], bool]] = {
    ops.JMPDLT: lambda x, y: x < y,
    ops.JMPDLE: lambda x, y: x <= y,
    ops.JMPDNLT: lambda x, y: not x < y,
    ops.JMPDNLE: lambda x, y: not x <= y,
}
#: Those that have a test of their own below.
OTHERS = {
    ops.NOP, ops.HALT, ops.MOV, ops.LOAD_IMM, ops.LOAD_CONST, ops.INEG, ops.DNEG, ops.CAST_TO_INT,
    ops.CAST_TO_DOUBLE, ops.CAST_TO_BOOL, ops.JMP, ops.JMPT, ops.JMPF, ops.SWITCH, ops.LOOKUP, ops.CALL, ops.TAIL,
    ops.SYS, ops.RET, ops.PUSH, ops.PUSH2, ops.PUSH3, ops.POP, ops.POP2, ops.POP3, ops.STORE_SLOT, ops.LOAD_SLOT,
    ops.ALLOC, ops.STORE, ops.LOAD, ops.COPY, ops.DROP,
}  # fmt: skip


def name(op: int) -> str:
    return ops.OPS[op].name


def test_every_opcode_is_tested_here() -> None:
    tables = (INT_BINARY, INT_IMM, DOUBLE_BINARY, DOUBLE_COMPARE, JUMPS, IMM_JUMPS, DOUBLE_JUMPS)
    tested = [op for table in tables for op in table] + list(OTHERS)
    assert sorted(tested) == [op.code for op in ops.OPS]


@pytest.mark.parametrize("op", INT_BINARY, ids=name)
def test_int_operations_are_those_of_64_bit_integers(bench: Any, op: int) -> None:
    run = bench([encode(op, 63, 0, 1)], 2)
    divides = op in (ops.IDIV, ops.IMOD)
    for left in INTS:
        for right in INTS:
            if divides and right == 0:
                with pytest.raises(Trap, match="T0001: division by zero"):
                    run(left, right)
            else:
                assert run(left, right)[63] == INT_BINARY[op](left, right), (left, right)


@pytest.mark.parametrize("op", INT_BINARY, ids=name)
def test_an_operation_may_write_the_register_that_it_reads(bench: Any, op: int) -> None:
    run = bench([encode(op, 1, 1, 1)], 2)
    assert run(0, 7)[1] == INT_BINARY[op](7, 7)
    if op == ops.IMUL:
        assert run(0, MAX)[1] == wrapped(MAX * MAX)


@pytest.mark.parametrize("op", INT_IMM, ids=name)
def test_immediates_are_signed_32_bit_numbers(bench: Any, op: int) -> None:
    for imm in IMMS:
        run = bench([encode(op, 2, 1, imm=imm)], 2)
        for left in INTS:
            if imm == 0 and op in (ops.IDIV_IMM, ops.IMOD_IMM):
                with pytest.raises(Trap, match="T0001"):
                    run(0, left)
            else:
                assert run(0, left)[2] == INT_IMM[op](left, imm), (left, imm)


@pytest.mark.parametrize("op", DOUBLE_BINARY, ids=name)
def test_double_operations_are_those_of_ieee_754(bench: Any, op: int) -> None:
    run = bench([encode(op, 2, 0, 1)], 2)
    for left in DOUBLES:
        for right in DOUBLES:
            if op == ops.DDIV and right == 0.0:
                with pytest.raises(Trap, match="T0001"):
                    run(bits(left), bits(right))
            else:
                found = run(bits(left), bits(right))[2]
                assert same_double(found, DOUBLE_BINARY[op](left, right)), (left, right)


@pytest.mark.parametrize("op", DOUBLE_COMPARE, ids=name)
def test_a_comparison_with_nan_is_false(bench: Any, op: int) -> None:
    run = bench([encode(op, 2, 0, 1)], 2)
    for left in DOUBLES:
        for right in DOUBLES:
            assert run(bits(left), bits(right))[2] == DOUBLE_COMPARE[op](left, right), (left, right)


def test_ineg_wraps(bench: Any) -> None:
    run = bench([encode(ops.INEG, 1, 0)], 1)
    for value in INTS:
        assert run(value)[1] == wrapped(-value)


def test_dneg_flips_the_sign_bit_and_nothing_else(bench: Any) -> None:
    run = bench([encode(ops.DNEG, 1, 0)], 1)
    for value in DOUBLES:
        assert run(bits(value))[1] == bits(value) ^ MIN


def test_a_double_becomes_an_int_towards_zero_and_saturates(bench: Any) -> None:
    run = bench([encode(ops.CAST_TO_INT, 1, 0)], 1)
    for value in [*DOUBLES, 2.9, -2.9, 9223372036854774784.0]:
        expected = 0 if math.isnan(value) else int(min(max(Fraction(MIN), to_fraction(value)), Fraction(MAX)))
        assert run(bits(value))[1] == expected, value


def to_fraction(value: float) -> Fraction:
    return Fraction(1 << 2000) * (1 if value > 0 else -1) if math.isinf(value) else Fraction(value)


def test_an_int_becomes_the_nearest_double(bench: Any) -> None:
    run = bench([encode(ops.CAST_TO_DOUBLE, 1, 0)], 1)
    for value in [*INTS, (1 << 53) + 1, (1 << 53) + 3]:
        assert run(value)[1] == bits(ctypes.c_double(value).value)


def test_an_int_becomes_a_bool_by_not_being_zero(bench: Any) -> None:
    run = bench([encode(ops.CAST_TO_BOOL, 1, 0)], 1)
    for value in INTS:
        assert run(value)[1] == (1 if value else 0)


def test_moves_and_loads_copy_words(bench: Any) -> None:
    run = bench([encode(ops.NOP), encode(ops.MOV, 40, 0)], 1)
    for value in INTS:
        assert run(value)[40] == value
    for imm in IMMS:
        assert bench([encode(ops.LOAD_IMM, 5, imm=imm)], 0)()[5] == imm
    run = bench([encode(ops.LOAD_CONST, index, imm=index) for index in range(len(INTS))], 0, constants=INTS)
    assert list(run()[: len(INTS)]) == INTS


def branch(word: int) -> list[int]:
    """r9 is 1 where the jump at pc 0, whose target is 3, is taken, else 2."""
    return [word, encode(ops.LOAD_IMM, 9, imm=2), encode(ops.HALT), encode(ops.LOAD_IMM, 9, imm=1)]


@pytest.mark.parametrize("op", JUMPS, ids=name)
def test_compare_and_jump(bench: Any, op: int) -> None:
    run = bench(branch(encode(op, 0, 1, imm=3)), 2)
    for left in INTS:
        for right in INTS:
            assert (run(left, right)[9] == 1) == JUMPS[op](left, right), (left, right)


@pytest.mark.parametrize("op", IMM_JUMPS, ids=name)
def test_compare_with_immediate_and_jump(bench: Any, op: int) -> None:
    for imm in (0, 1, -1, 255, 256, -256, 32767, -32768):
        run = bench(branch(encode_imm16(op, 0, imm, 3)), 1)
        for left in [*INTS, imm, imm + 1, imm - 1]:
            assert (run(left)[9] == 1) == IMM_JUMPS[op](left, imm), (left, imm)


@pytest.mark.parametrize("op", DOUBLE_JUMPS, ids=name)
def test_compare_doubles_and_jump(bench: Any, op: int) -> None:
    run = bench(branch(encode(op, 0, 1, imm=3)), 2)
    for left in DOUBLES:
        for right in DOUBLES:
            assert (run(bits(left), bits(right))[9] == 1) == DOUBLE_JUMPS[op](left, right), (left, right)


def test_plain_and_conditional_jumps(bench: Any) -> None:
    assert bench(branch(encode(ops.JMP, imm=3)), 0)()[9] == 1
    for op, taken in ((ops.JMPT, 1), (ops.JMPF, 0)):
        run = bench(branch(encode(op, 0, imm=3)), 1)
        assert run(taken)[9] == 1
        assert run(1 - taken)[9] == 2


def test_a_jump_may_go_back(bench: Any) -> None:
    words = [encode(ops.ISUB_IMM, 0, 0, imm=1), encode(ops.IADD_IMM, 1, 1, imm=2), encode_imm16(ops.JMPGT_IMM, 0, 0, 0)]
    assert bench(words, 2)(5, 0)[1] == 10


INT_TABLE = [0, -2, 3, 77, 10, 11, 12]


def test_lookup_finds_the_slot_or_the_default(bench: Any) -> None:
    run = bench([encode(ops.LOOKUP, 1, 0, imm=1)], 1, constants=[99, *INT_TABLE])
    for subject, expected in ((-2, 10), (-1, 11), (0, 12), (1, 77), (-3, 77), (MAX, 77), (MIN, 77)):
        assert run(subject)[1] == expected


def test_switch_goes_to_the_slot_or_the_default(bench: Any) -> None:
    words = [encode(ops.SWITCH, 0, imm=0)]
    for arm in range(3):
        words += [encode(ops.LOAD_IMM, 1, imm=arm), encode(ops.HALT)]
    run = bench(words, 1, constants=[0, 5, 2, 5, 1, 3])
    for subject, expected in ((5, 0), (6, 1), (7, 2), (4, 2), (MIN, 2), (MAX, 2)):
        assert run(subject)[1] == expected


def test_str_tables_count_words_of_the_constant_strings(bench: Any, assemble: Any) -> None:
    # One word and a text of one word each, but for the long one.
    strings = ("one", "a longer string", "two", "other")

    def table(addresses: list[int]) -> list[int]:
        slots = [(address - addresses[0]) // 8 for address in addresses]
        values = [-1] * (slots[2] + 1)
        values[0] = 11
        values[slots[2]] = 22
        return [1, addresses[0], len(values), -1, *values]

    run = bench([encode(ops.LOOKUP, 1, 0, imm=0)], 1, constants=table, strings=strings)
    one, longer, two, other = assemble.addresses
    assert [run(subject)[1] for subject in (one, longer, two, other, one - 8, 0)] == [11, -1, 22, -1, -1, -1]


def test_calls_return_behind_themselves_and_tails_do_not(bench: Any) -> None:
    words = [
        encode(ops.CALL, imm=4),
        encode(ops.IADD_IMM, 0, 0, imm=1000),
        encode(ops.HALT),
        encode(ops.NOP),
        encode(ops.IADD_IMM, 0, 0, imm=100),  # called from 0
        encode(ops.TAIL, imm=7),
        encode(ops.HALT),
        encode(ops.IADD_IMM, 0, 0, imm=10),  # in the frame of 4
        encode(ops.RET),
    ]
    assert bench(words, 1)(1)[0] == 1111


def test_a_return_from_the_outermost_frame_ends_the_run(bench: Any) -> None:
    assert bench([encode(ops.LOAD_IMM, 0, imm=3), encode(ops.RET), encode(ops.LOAD_IMM, 0, imm=4)], 0)()[0] == 3


def test_pushes_and_pops_mirror_each_other(bench: Any) -> None:
    run = bench(
        [
            encode(ops.PUSH, 0),
            encode(ops.PUSH2, 1, 2),
            encode(ops.PUSH3, 3, 4, 5),
            encode(ops.POP, 10),
            encode(ops.POP2, 11, 12),
            encode(ops.POP3, 13, 14, 15),
        ],
        6,
    )
    words = [1, -2, MAX, MIN, 5, 6]
    assert list(run(*words)[10:16]) == words[::-1]


def test_slots_count_down_from_the_top_of_the_spill_stack(bench: Any) -> None:
    run = bench(
        [
            encode(ops.PUSH3, 0, 1, 2),
            encode(ops.LOAD_SLOT, 10, imm=0),
            encode(ops.LOAD_SLOT, 11, imm=2),
            encode(ops.STORE_SLOT, 3, imm=1),
            encode(ops.POP3, 12, 13, 14),
        ],
        4,
    )
    assert list(run(7, 8, 9, -4)[10:15]) == [9, 7, 9, -4, 7]


def test_drop_takes_words_off_the_spill_stack(bench: Any) -> None:
    run = bench([encode(ops.PUSH3, 0, 1, 2), encode(ops.DROP, imm=2), encode(ops.POP, 10)], 3)
    assert run(7, 8, 9)[10] == 7


def test_drop_takes_words_off(bench: Any) -> None:
    for count in range(4):
        run = bench([encode(ops.PUSH3, 0, 1, 2), encode(ops.DROP, imm=count), encode(ops.PUSH, 3)], 4)
        run(7, 8, 9, 10)
        assert run.stack.pop_all(run.stack.depth) == [10, *[9, 8, 7][count:]]


def test_heap_words_are_stored_and_loaded_at_offsets(bench: Any) -> None:
    run = bench(
        [
            encode(ops.ALLOC, 10, imm=24),
            encode(ops.STORE, 10, 0, imm=0),
            encode(ops.ADDROF, 11, 10, imm=16),
            encode(ops.STORE, 11, 1, imm=0),
            encode(ops.STORE, 11, 2, imm=-8),
            encode(ops.LOAD, 12, 10, imm=0),
            encode(ops.LOAD, 13, 10, imm=8),
            encode(ops.LOAD, 14, 11, imm=0),
        ],
        3,
    )
    registers = run(MIN, 2, 3)
    assert list(registers[12:15]) == [MIN, 3, 2]
    assert registers[11] == registers[10] + 16


def test_copy_takes_words_to_another_object(bench: Any) -> None:
    registers = bench(
        [
            encode(ops.ALLOC, 10, imm=24),
            encode(ops.STORE, 10, 0, imm=0),
            encode(ops.STORE, 10, 1, imm=8),
            encode(ops.STORE, 10, 2, imm=16),
            encode(ops.ALLOC, 11, imm=40),
            *[encode(ops.STORE, 11, 3, imm=offset) for offset in range(0, 40, 8)],
            encode(ops.ADDROF, 12, 11, imm=8),
            encode(ops.COPY, 12, 10, imm=24),
            *[encode(ops.LOAD, 20 + index, 11, imm=8 * index) for index in range(5)],
            encode(ops.LOAD, 25, 10, imm=0),
            encode(ops.COPY, 12, 10, imm=0),
        ],
        4,
    )(MIN, MAX, -1, 7)
    assert list(registers[20:26]) == [7, MIN, MAX, -1, 7, MIN]
    assert registers[12] == registers[11] + 8


def test_sys_passes_words_by_type_and_keeps_the_other_registers(bench: Any) -> None:
    seen: list[tuple[int, ...]] = []

    def record(first: int, second: int) -> int:
        seen.append((first, second))
        return -first

    host = HostFunction("test", "record", (("first", Int), ("second", Int)), Int, record)
    registers = bench([encode(ops.SYS, 2, imm=0)], 3, hosts=(host,))(MAX, 5, 6)
    assert seen == [(MAX, 5)]
    assert list(registers[:3]) == [-MAX, 5, 6]


def test_sys_takes_arguments_beyond_the_registers_from_the_spill_stack(bench: Any) -> None:
    names = tuple([(f"p{index}", Int) for index in range(35)])
    host = HostFunction("test", "last", names, Int, lambda *words: words[32] * 100 + words[33] * 10 + words[34])
    words = [encode(ops.LOAD_IMM, 40 + digit, imm=digit) for digit in range(1, 4)]
    words += [encode(ops.PUSH3, 43, 42, 41), encode(ops.SYS, 35, imm=0)]
    run = bench(words, 0, hosts=(host,))
    assert run()[0] == 123


def test_an_unknown_opcode_is_refused(bench: Any) -> None:
    with pytest.raises(ValueError, match="no opcode has the number 255"):
        bench([encode(255)], 0)()
