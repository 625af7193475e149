"""Intrinsics: their tables, and that their LLVM text does what the reference does."""

from __future__ import annotations

import ctypes
import random
from binascii import crc32
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from garden.host import HostFunction
from garden.native.codegen.intrinsics import (
    FIRST_POWER,
    LAST_POWER,
    LLVM,
    MEMORY,
    OUT_OF_LINE,
    crc_table,
    declarations,
    powers_table,
)
from garden.native.codegen.runtime import runtime_ir
from garden.native.codegen.system_calls import INTRINSICS, LAUNCHER
from garden.native.context import FIELDS
from garden.std import STANDARD
from garden.types.types import Bool, Double, Void
from tests.support.reference import PURE

BY_NAME = {function.name: function for function in MEMORY.functions}
WORDS = (0, 1, -1, 2, 63, 255, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, -(1 << 63), 0x0123456789ABCDEF, -12345)
#: Functions whose arguments have bounds, and those.
BOUNDS = {
    "shl": range(64),
    "shr": range(64),
    "sar": range(64),
    "udiv": [word for word in WORDS if word],
    "crc": range(2048),
    "power_high": range(FIRST_POWER, LAST_POWER + 1),
    "power_low": range(FIRST_POWER, LAST_POWER + 1),
}


def test_programs_cannot_import_them() -> None:
    assert MEMORY.path not in STANDARD


def test_each_has_one_text_for_its_parameters_and_its_result() -> None:
    assert len(BY_NAME) == len(MEMORY.functions) == len(LLVM)
    for name, function in BY_NAME.items():
        text = LLVM[name]
        assert ("{r}" in text) == (function.result != Void), name
        assert [letter for letter in "abc" if f"{{{letter}}}" in text] == [name for name, _ in function.parameters]


def test_every_word_of_the_context_can_be_read_and_set() -> None:
    for field, _ in FIELDS:
        assert {f"context_{field}", f"set_{field}"} <= set(BY_NAME)


def test_the_table_of_bytes_gives_the_crc_of_a_byte_and_of_zeros_behind_it() -> None:
    table = crc_table()
    for index in (0, 1, 77, 255):
        for zeros in range(8):
            # What the inversions do is independent of the bytes.
            expected = crc32(bytes([index]) + bytes(zeros)) ^ crc32(bytes(zeros + 1))
            assert table[256 * zeros + index] == expected


def test_the_powers_of_ten_are_rounded_up_to_128_bits() -> None:
    table = powers_table()
    for index, exponent in enumerate(range(FIRST_POWER, LAST_POWER + 1)):
        bits = table[2 * index] << 64 | table[2 * index + 1]
        assert 1 << 127 <= bits < 1 << 128
        numerator, denominator = (10**exponent, 1) if exponent >= 0 else (1, 10**-exponent)
        # Scaled by a power of two, so that both have the same number of bits in front of the point.
        shift = 127 - _logarithm(numerator, denominator)
        if shift >= 0:
            numerator <<= shift
        else:
            denominator <<= -shift
        assert (bits - 1) * denominator < numerator <= bits * denominator


def _logarithm(numerator: int, denominator: int) -> int:
    """The largest power of two that is not above a fraction."""
    guess = numerator.bit_length() - denominator.bit_length()
    above = numerator << -guess < denominator if guess < 0 else numerator < denominator << guess
    return guess - 1 if above else guess


def test_functions_that_stay_out_of_line_exist() -> None:
    from allocators import PageAlloc

    with runtime_ir(PageAlloc()) as ir:
        symbols = ir.checked.ast.symbols
        names = {symbols.lookup(ir.function_name[row]).decode() for row in range(1, ir.function_count - 1)}
        assert set(OUT_OF_LINE) <= names


def _define(function: HostFunction) -> str:
    """An LLVM function that is nothing but a call of an intrinsic, on words."""
    lines = []
    arguments = {"u": "7", "r": "%result"}
    for name, type in function.parameters:
        arguments[name] = f"%{name}"
        if type == Double:
            lines.append(f"%{name}.double = bitcast i64 %{name} to double")
            arguments[name] += ".double"
    lines.append(LLVM[function.name].format(**arguments))
    if function.result == Double:
        lines.append("%word = bitcast double %result to i64")
    elif function.result == Bool:
        lines.append("%word = zext i1 %result to i64")
    elif function.result == Void:
        lines.append("%word = add i64 0, 0")
    else:
        lines.append("%word = add i64 0, %result")
    parameters = ", ".join([f"i64 %{name}" for name, _ in function.parameters])
    return f"define i64 @test_{function.name}({parameters}) {{\n" + "\n".join(lines) + "\nret i64 %word\n}\n"


@pytest.fixture(scope="module")
def compiled() -> Iterator[Callable[..., int]]:
    """Calls an intrinsic, by name, as machine code."""
    binding = pytest.importorskip("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    elsewhere = {name for name, _, _ in (*INTRINSICS, *LAUNCHER)}
    chosen = [
        function
        for function in MEMORY.functions
        if not function.name.startswith(("trap_", "request_")) and function.name not in elsewhere
    ]
    text = f"@context = global [{len(FIELDS)} x i64] zeroinitializer\n{declarations()}"
    module = binding.parse_assembly(text + "".join([_define(function) for function in chosen]))
    machine = binding.Target.from_default_triple().create_target_machine(opt=1)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()

    def call(name: str, *words: int) -> int:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(words))
        return prototype(engine.get_function_address(f"test_{name}"))(*words)

    yield call
    engine.close()


@pytest.mark.parametrize("name", list(PURE))
def test_machine_code_computes_what_the_reference_does(compiled: Callable[..., int], name: str) -> None:
    function = BY_NAME[name]
    rng = random.Random(8)
    count = len(function.parameters)
    cases = [BOUNDS[name] if name in BOUNDS and index == count - 1 else WORDS for index in range(count)]
    if name == "sqrt":
        cases = [[word & (1 << 63) - 1 for word in WORDS]]
    for words in product(*cases):
        assert compiled(name, *words) == PURE[name](*words), words
    if name not in BOUNDS and name != "sqrt":
        for _ in range(100):
            words = tuple([rng.randrange(-(1 << 63), 1 << 63) for _ in range(count)])
            assert compiled(name, *words) == PURE[name](*words), words


def test_machine_code_reads_and_writes_at_any_address(compiled: Callable[..., int]) -> None:
    buffer = ctypes.create_string_buffer(bytes(range(1, 33)), 32)
    address = ctypes.addressof(buffer)
    for offset in range(24):
        expected = int.from_bytes(buffer.raw[offset : offset + 8], "little", signed=True)
        assert compiled("load", address + offset) == expected
        assert compiled("load8", address + offset) == buffer.raw[offset]
    compiled("store", address + 3, -2)
    compiled("store8", address + 20, 0x1234)
    assert buffer.raw[:13] == bytes([1, 2, 3, 254, *[255] * 7, 12, 13])
    assert buffer.raw[19:22] == bytes([20, 0x34, 22])


def test_machine_code_sets_words_of_the_context(compiled: Callable[..., int]) -> None:
    for index, (field, _) in enumerate(FIELDS):
        compiled(f"set_{field}", index + 100)
    for index, (field, _) in enumerate(FIELDS):
        assert compiled(f"context_{field}") == index + 100
