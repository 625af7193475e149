"""Each rule of bytecode is broken once, and the verifier says where."""

from __future__ import annotations

from typing import Any

import pytest

from allocators import PageAlloc
from garden.bytecode import ops
from garden.bytecode.ops import encode, op_of
from garden.bytecode.verifier import MAX_MESSAGES, verify
from tests.support.ir_texts import FIB, function


def complaints(code: Any, changes: dict[int, int], **options: int) -> list[str]:
    """What the verifier says of code in which some words are replaced."""
    before = {pc: code.words[pc] for pc in changes}
    for pc, word in changes.items():
        code.words[pc] = word
    messages = verify(code, PageAlloc(), **options)
    for pc, word in before.items():
        code.words[pc] = word
    assert verify(code, PageAlloc()) == []
    return messages


@pytest.mark.parametrize(
    ("pc", "word", "message"),
    [
        (0, encode(ops.CALL, imm=2), "0000: the run does not start with a call of the entry"),
        (1, encode(ops.RET), "0001: the run does not end with a halt"),
        (7, 255, "0007: no opcode has the number 255"),
        (7, encode(ops.ISUB_IMM, 64, 0, imm=1), "0007: there is no register r64"),
        (7, encode(ops.INEG, 0, 0, 9), "0007: a field without meaning is 9"),
        (3, encode(ops.RET, imm=1), "0003: a field without meaning is 1"),
        (7, encode(ops.JMPT, 0, imm=16), "0007: a jump out of the function, to 16"),
        (8, encode(ops.CALL, imm=3), "0008: no function starts at 3"),
        (7, encode(ops.LOAD_CONST, 0, imm=0), "0007: there is no constant 0"),
        (7, encode(ops.SYS, 1, imm=0), "0007: there is no host function 0"),
        (7, encode(ops.DROP, imm=0), "0007: 0 words to drop"),
        (15, encode(ops.INEG, 0, 0), "0015: the function ends with ineg"),
        (7, encode(ops.ISUB_IMM, 0, 9, imm=1), "0007: isub_imm reads a register that was not written on every path"),
        (14, encode(ops.IADD, 0, 1, 2), "0014: iadd reads a register that was not written on every path"),
        (7, encode(ops.LOAD_SLOT, 0, imm=1), "0007: there is no slot 1 among 1"),
        (9, encode(ops.POP2, 1, 2), "0009: pop2 takes more off the spill stack than is there"),
        (9, encode(ops.LOAD_SLOT, 1), "0015: a return with 1 words on the spill stack"),
        (13, encode(ops.JMP, imm=6), "0006: 1 words on the spill stack, or 0"),
        (15, encode(ops.JMP, imm=6), None),
    ],
)
def test_a_wrong_word_is_found(bytecode: Any, pc: int, word: int, message: str | None) -> None:
    messages = complaints(bytecode(FIB), {pc: word})
    if message is None:
        assert messages == []
    else:
        assert any([found.startswith(message) for found in messages]), messages


LEAF = """
// leaf
fn f1(%v0) -> Int {
    b0(%v0:Int):
        %v1:Int = IMul %v0, 3
        %v2:Int = IMul %v0, %v1
        ret %v2
}
// middle
fn f2(%v0, %v1) -> Int {
    b0(%v0:Int, %v1:Int):
        %v2:Int = Call f1(%v0)
        %v3:Int = IAdd %v2, %v0
        ret %v3
}
// entry
fn f3() -> Int {
    b0:
        %v0:Int = 4
        %v1:Int = 5
        %v2:Int = Call f2(%v0, %v1)
        %v3:Int = IAdd %v2, 1
        ret %v3
}
"""


def test_a_register_survives_no_call_that_may_change_it(bytecode: Any) -> None:
    code = bytecode(LEAF)
    # The leaf changes r0 and r1, so the middle function keeps its argument in r2.
    assert [code.words[pc] for pc in (5, 6, 7)] == [
        encode(ops.MOV, 2, 0),
        encode(ops.CALL, imm=2),
        encode(ops.IADD, 0, 0, 2),
    ]
    message = "reads a register that was not written on every path"
    assert complaints(code, {5: encode(ops.MOV, 1, 0), 7: encode(ops.IADD, 0, 0, 1)}) == [f"0007: iadd {message}"]
    assert complaints(code, {5: encode(ops.MOV, 9, 0), 7: encode(ops.IADD, 0, 0, 9)}) == []
    # The middle function changes r1 through the leaf.
    assert op_of(code.words[12]) == ops.IADD_IMM
    assert complaints(code, {12: encode(ops.IADD, 0, 0, 1)}) == [f"0012: iadd {message}"]


def test_arguments_must_be_written(bytecode: Any) -> None:
    code = bytecode(FIB)
    _, first, _, _ = code.functions[2]
    assert complaints(code, {first: encode(ops.NOP)}) == [
        f"{first + 1:04}: call reads a register that was not written on every path"
    ]


def test_fewer_registers_may_be_allowed(bytecode: Any) -> None:
    code = bytecode(function("Int Int", "%v2:Int = IMul %v0, %v1\n%v3:Int = IAdd %v2, %v0\nret %v3", "3 4"))
    assert verify(code, PageAlloc(), registers=4) == []
    assert verify(code, PageAlloc(), registers=2) != []


def test_a_table_must_lie_in_the_constant_area_and_lead_into_the_function(bytecode: Any) -> None:
    text = function("Int", "switch %v0\n1 -> b1\n2 -> b2\n_ -> b3\nb1:\nret %v0\nb2:\nret %v0\nb3:\nret %v0", "3")
    code = bytecode(text)
    code.constants[3] = 0
    assert verify(code, PageAlloc()) == ["0002: a jump out of the function, to 0"]
    code.constants[2] = 100
    assert verify(code, PageAlloc()) == ["0002: the table at 0 is not inside the constant area"]


def test_functions_follow_one_another(bytecode: Any) -> None:
    code = bytecode(FIB)
    code.functions.columns[1][2] += 1
    assert verify(code, PageAlloc()) == ["0017: function 2 goes from 17 to 19, where 16 is next"]


def test_there_is_an_end_to_messages(bytecode: Any) -> None:
    body = "\n".join([f"%v{index}:Int = IMul %v{index - 1}, 3" for index in range(1, 200)])
    code = bytecode(function("Int", f"{body}\nret %v199", "3"))
    for pc in range(2, 200):
        code.words[pc] = 255
    assert len(verify(code, PageAlloc())) == MAX_MESSAGES
