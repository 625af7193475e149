"""Values where control flow divides and meets again: who saves, who moves, who drops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from garden.bytecode import ops
from garden.bytecode.ops import op_of
from tests.support.ir_texts import function

Listing = Callable[..., list[str]]

#: An unknown callee, since it comes later, that gives its argument back.
CALLER = """
// f
fn f1(%v0, %v1) -> Int {
    b0(%v0:Int, %v1:Int):
    BODY
}
// g
fn f2(%v0) -> Int {
    b0(%v0:Int):
        ret %v0
}
// entry
fn f3() -> Int {
    b0:
        %v0:Int = 3
        %v1:Int = 40
        %v2:Int = Call f1(%v0, %v1)
        ret %v2
}
"""


def test_only_the_arm_that_calls_saves(bytecode: Any, listing: Listing) -> None:
    body = """
        br_imm ILt %v0, 0, b1, b2
        b1:
        %v2:Int = Call f2(%v0)
        jmp b3(%v2)
        b2:
        jmp b3(%v0)
        b3(%v3:Int):
        %v4:Int = IAdd %v3, %v1
        ret %v4
    """
    text = CALLER.replace("BODY", body)
    lines = listing(text)
    assert lines == [
        "jmpge_imm r0, #0, 0006",
        "push r1",
        "call 0008 <g>",
        "pop r1",
        "<f.bb_0006>:",
        "iadd r0, r0, r1",
        "ret",
    ]
    assert bytecode.run(bytecode(text)) == 43


def test_what_was_saved_before_the_branch_stays_saved(bytecode: Any, listing: Listing) -> None:
    body = """
        %v2:Int = Call f2(%v0)
        br_imm ILt %v2, 0, b1, b2
        b1:
        %v3:Int = Call f2(%v2)
        jmp b3(%v3)
        b2:
        jmp b3(%v2)
        b3(%v4:Int):
        %v5:Int = IAdd %v4, %v1
        ret %v5
    """
    text = CALLER.replace("BODY", body)
    lines = listing(text)
    assert [line for line in lines if line.startswith(("push", "pop", "store", "load", "drop"))] == [
        "push r1",
        "pop r1",
    ]
    assert bytecode.run(bytecode(text)) == 43


def test_an_arm_that_leaves_drops_what_was_saved(listing: Listing) -> None:
    body = """
        %v2:Int = Call f2(%v0)
        br_imm ILt %v2, 0, b1, b2
        b1:
        ret %v2
        b2:
        %v3:Int = IAdd %v2, %v1
        ret %v3
    """
    assert listing(CALLER.replace("BODY", body)) == [
        "push r1",
        "call 0010 <g>",
        "jmpge_imm r0, #0, 0007",
        "drop #1",
        "ret",
        "<f.bb_0007>:",
        "pop r1",
        "iadd r0, r0, r1",
        "ret",
    ]


def test_a_slot_that_nobody_needs_any_more_is_used_again(listing: Listing) -> None:
    body = """
        %v2:Int = Call f2(%v0)
        br_imm ILt %v2, 0, b1, b2
        b1:
        ret %v1
        b2:
        br_imm IEq %v2, 7, b3, b4(%v2)
        b3:
        %v3:Int = IMul %v2, 3
        jmp b4(%v3)
        b4(%v4:Int):
        %v5:Int = Call f2(%v4)
        %v6:Int = IAdd %v5, %v4
        ret %v6
    """
    assert listing(CALLER.replace("BODY", body)) == [
        "push r1",
        "call 0014 <g>",
        "jmpge_imm r0, #0, 0007",
        "pop r0",
        "ret",
        "<f.bb_0007>:",
        "jmpne_imm r0, #7, 0009",
        "imul_imm r0, r0, #3",
        "<f.bb_0009>:",
        "store_slot r0, top",
        "call 0014 <g>",
        "pop r1",
        "iadd r0, r0, r1",
        "ret",
    ]


def test_an_arm_that_leaves_fewer_slots_than_others_makes_up_for_it(bytecode: Any) -> None:
    # The first edge to come keeps the slot of %v1, the other way pops it.
    body = """
        %v2:Int = Call f2(%v0)
        br_imm ILt %v2, 0, b1, b2
        b1:
        jmp b3(%v2)
        b2:
        %v3:Int = IAdd %v1, %v2
        jmp b3(%v3)
        b3(%v4:Int):
        %v5:Int = Call f2(%v4)
        %v6:Int = IAdd %v5, %v4
        ret %v6
    """
    code = bytecode(CALLER.replace("BODY", body))
    names = [ops.OPS[op_of(word)].name for word in code.words]
    assert names.count("push") == 2
    assert bytecode.run(code) == 86
    # Where the way that pops comes first, nobody need make up for anything.
    code = bytecode(CALLER.replace("BODY", body.replace("ILt %v2, 0, b1, b2", "IGt %v2, 0, b2, b1")))
    names = [ops.OPS[op_of(word)].name for word in code.words]
    assert names.count("push") == 2
    assert names.count("drop") == 1
    assert bytecode.run(code) == 86


@pytest.mark.parametrize("subject", [-3, 3])
@pytest.mark.parametrize("arms", ["b1, b2", "b2, b1"])
def test_a_slot_that_an_arm_reuses_is_not_taken_for_granted_behind_it(bytecode: Any, arms: str, subject: int) -> None:
    # In one arm %v1 is dead, and %v3 takes its slot. In the other it is alive, and %v3 is saved elsewhere.
    body = f"""
        %v2:Int = Call f2(%v0)
        %v3:Int = IMul %v2, 7
        br_imm ILt %v2, 0, {arms}
        b1:
        %v4:Int = Call f2(%v2)
        jmp b3(%v4)
        b2:
        %v5:Int = Call f2(%v2)
        %v6:Int = IAdd %v1, %v5
        jmp b3(%v6)
        b3(%v7:Int):
        %v8:Int = Call f2(%v7)
        %v9:Int = IAdd %v8, %v3
        ret %v9
    """
    text = CALLER.replace("BODY", body).replace("%v0:Int = 3\n", f"%v0:Int = {subject}\n")
    code = bytecode(text)
    assert "store_slot" in [ops.OPS[op_of(word)].name for word in code.words]
    in_first = (subject < 0) == (arms == "b1, b2")
    assert bytecode.run(code) == (subject if in_first else 40 + subject) + 7 * subject


def test_the_argument_of_an_arm_is_the_parameter_under_another_name(listing: Listing) -> None:
    body = """
        br_imm ILt %v0, 0, b1(%v1), b2(%v1, %v0)
        b1(%v2:Int):
        ret %v2
        b2(%v3:Int, %v4:Int):
        %v5:Int = ISub %v3, %v4
        ret %v5
    """
    assert listing(function("Int Int", body, "3 4")) == [
        "jmpge_imm r0, #0, 0005",
        "mov r0, r1",
        "ret",
        "<f.bb_0005>:",
        "isub r0, r1, r0",
        "ret",
    ]


def test_an_argument_that_is_passed_twice_or_needed_again_is_copied(bytecode: Any) -> None:
    body = """
        br_imm ILt %v0, 0, b1(%v1, %v1), b2(%v1, %v1, %v0)
        b1(%v2:Int, %v3:Int):
        %v4:Int = IMul %v2, %v3
        ret %v4
        b2(%v5:Int, %v6:Int, %v7:Int):
        %v8:Int = IMul %v5, 100
        %v9:Int = IAdd %v8, %v6
        %v10:Int = IMul %v9, %v7
        %v11:Int = ISub %v10, %v0
        ret %v11
    """
    for registers in (64, 4):
        assert bytecode.run(bytecode(function("Int Int", body, "3 4"), registers=registers)) == 404 * 3 - 3
        assert bytecode.run(bytecode(function("Int Int", body, "-3 4"), registers=registers)) == 16


@pytest.mark.parametrize("registers", [64, 4])
@pytest.mark.parametrize("subject", [-1, 0, 1])
def test_more_parameters_than_registers_arrive_in_slots(bytecode: Any, subject: int, registers: int) -> None:
    forth = ", ".join([f"%v{index}" for index in range(1, 9)])
    back = ", ".join([f"%v{index}" for index in range(8, 0, -1)])
    parameters = ", ".join([f"%v{index}:Int" for index in range(11, 19)])
    lines = ["%v100:Int = IMul %v11, 3"]
    for index in range(12, 19):
        lines.append(f"%v{index + 100}:Int = IAdd %v{100 if index == 12 else index + 199}, %v{index}")
        lines.append(f"%v{index + 200}:Int = IMul %v{index + 100}, 3")
    body = f"""
        br_imm ILt %v0, 0, b1({forth}), b2
        b2:
        br_imm IEq %v0, 0, b1({back}), b3
        b3:
        %v10:Int = IMul %v1, %v8
        jmp b1(%v10, {back.split(", ", 1)[1]})
        b1({parameters}):
        {chr(10).join(lines)}
        ret %v218
    """
    words = list(range(1, 9))
    if subject >= 0:
        words.reverse()
    if subject > 0:
        words[0] = 8
    expected = 0
    for word in words:
        expected = (expected + word) * 3
    text = function("Int " * 9, body, f"{subject} 1 2 3 4 5 6 7 8")
    assert bytecode.run(bytecode(text, registers=registers)) == expected
