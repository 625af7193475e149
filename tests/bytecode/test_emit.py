"""What the emitter makes of IR, as a listing: instructions, jumps, registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from garden.errors import Trap
from tests.support.ir_texts import FIB, function

Listing = Callable[..., list[str]]


def test_fib_saves_only_where_it_calls(bytecode: Any, listing: Listing) -> None:
    assert listing(FIB) == [
        "jmpne_imm r0, #0, 0004",
        "ret",
        "<fib.bb_0004>:",
        "jmpne_imm r0, #1, 0006",
        "ret",
        "<fib.bb_0006>:",
        "push r0",
        "isub_imm r0, r0, #1",
        "call 0002 <fib>",
        "pop r1",
        "push r0",
        "isub_imm r0, r1, #2",
        "call 0002 <fib>",
        "pop r1",
        "iadd r0, r1, r0",
        "ret",
    ]
    assert bytecode.run(bytecode(FIB)) == 6765


def test_a_program_starts_by_calling_the_entry_and_halts(bytecode: Any) -> None:
    code = bytecode(FIB)
    assert code.entry == 0
    assert list(code.functions.column(1)) == [0, 2, 16]
    assert list(code.functions.column(2)) == [0, 16, 19]
    assert list(code.functions.column(3)) == [0, 1, 0]


def test_a_self_tail_call_is_a_jump_and_moves_happen_at_once(listing: Listing) -> None:
    lines = listing(
        function(
            "Int Int Int",
            """
            br_imm IEq %v0, 0, b1, b2
            b1:
            ret %v1
            b2:
            tail f1(%v1, %v2, %v0)
            """,
            "1 2 3",
        )
    )
    assert lines[-5:] == ["mov r63, r0", "mov r0, r1", "mov r1, r2", "mov r2, r63", "jmp 0002"]


def test_a_tail_call_of_another_function_keeps_the_frame(listing: Listing) -> None:
    lines = listing(
        """
        // f
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IAdd %v0, 1
                tail f2(%v1)
        }
        // g
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                ret %v0
        }
        // entry
        fn f3() -> Int {
            b0:
                %v0:Int = 1
                ret %v0
        }
        """
    )
    assert lines == ["iadd_imm r0, r0, #1", "tail 0004 <g>"]


@pytest.mark.parametrize(
    ("branch", "jump"),
    [
        ("br %v0, b1, b2", "jmpf r0, 0005"),
        ("br_imm IEq %v0, 5, b1, b2", "jmpne_imm r0, #5, 0005"),
        ("br_imm INe %v0, -5, b1, b2", "jmpeq_imm r0, #-5, 0005"),
        ("br_imm ILt %v0, 32767, b1, b2", "jmpge_imm r0, #32767, 0005"),
        ("br_imm IGt %v0, -32768, b1, b2", "jmple_imm r0, #-32768, 0005"),
        ("br_cmp ILt %v0, %v1, b1, b2", "jmple r1, r0, 0005"),
        ("br_cmp ILe %v0, %v1, b1, b2", "jmplt r1, r0, 0005"),
        ("br_cmp IEq %v0, %v1, b1, b2", "jmpne r0, r1, 0005"),
        ("br_cmp INe %v0, %v1, b1, b2", "jmpeq r0, r1, 0005"),
    ],
)
def test_a_branch_is_one_jump_to_the_block_that_does_not_follow(listing: Listing, branch: str, jump: str) -> None:
    kind = "Bool" if branch.startswith("br %") else "Int"
    body = f"{branch}\nb1:\n%v2:Int = 10\nret %v2\nb2:\n%v3:Int = 20\nret %v3"
    lines = listing(function(f"{kind} Int", body, entry="%v0:Int = 1\nret %v0\n"))
    assert lines == [jump, "load_imm r0, #10", "ret", "<f.bb_0005>:", "load_imm r0, #20", "ret"]


@pytest.mark.parametrize(("compare", "jump"), [("DLt", "jmpdnlt"), ("DLe", "jmpdnle")])
def test_doubles_are_compared_so_that_nan_is_never_less(listing: Listing, compare: str, jump: str) -> None:
    body = f"br_cmp {compare} %v0, %v1, b1, b2\nb1:\n%v2:Int = 1\nret %v2\nb2:\n%v3:Int = 2\nret %v3"
    lines = listing(function("Double Double", body, entry="%v0:Int = 1\nret %v0\n"))
    assert lines[0] == f"{jump} r0, r1, 0005"


@pytest.mark.parametrize(
    ("branch", "jump"),
    [
        ("ILt", "jmple r63, r0, 0006"),
        ("IGt", "jmple r0, r63, 0006"),
        ("IEq", "jmpne r0, r63, 0006"),
        ("INe", "jmpeq r0, r63, 0006"),
    ],
)
def test_an_immediate_too_wide_for_a_jump_goes_through_the_scratch_register(
    listing: Listing, branch: str, jump: str
) -> None:
    body = f"br_imm {branch} %v0, 32768, b1, b2\nb1:\n%v2:Int = 1\nret %v2\nb2:\n%v3:Int = 2\nret %v3"
    lines = listing(function("Int", body, "3"))
    assert lines[:2] == ["load_imm r63, #32768", jump]


def test_what_a_branch_found_out_is_not_loaded(listing: Listing) -> None:
    body = "br_imm INe %v0, 7, b1, b2\nb1:\n%v1:Int = 8\nret %v1\nb2:\n%v2:Int = 7\nret %v2"
    assert listing(function("Int", body, "3")) == [
        "jmpeq_imm r0, #7, 0005",
        "load_imm r0, #8",
        "ret",
        "<f.bb_0005>:",
        "ret",
    ]


@pytest.mark.parametrize("subject", [3, 7])
@pytest.mark.parametrize("comparison", ["IEq", "INe", "ILt"])
def test_what_a_branch_found_out_is_believed_on_its_own_way_only(bytecode: Any, comparison: str, subject: int) -> None:
    body = f"br_imm {comparison} %v0, 7, b1, b2\nb1:\n%v1:Int = 7\nret %v1\nb2:\n%v2:Int = 7\nret %v2"
    assert bytecode.run(bytecode(function("Int", body, str(subject)))) == 7


def test_what_a_branch_found_out_is_not_believed_where_control_flow_joins(bytecode: Any) -> None:
    body = "br_imm IEq %v0, 7, b1, b2\nb1:\njmp b3\nb2:\njmp b3\nb3:\n%v1:Int = 7\nret %v1"
    assert bytecode.run(bytecode(function("Int", body, "3"))) == 7


def test_constants_are_loaded_where_they_are_needed(listing: Listing) -> None:
    body = """
        %v1:Int = 1234567890123
        %v2:Int = 5
        br_imm IEq %v0, 0, b1, b2
        b1:
        ret %v2
        b2:
        %v3:Int = ISub %v2, %v0
        %v4:Int = IMul %v1, %v3
        ret %v4
    """
    assert listing(function("Int", body, "3")) == [
        "jmpne_imm r0, #0, 0005",
        "load_imm r0, #5",
        "ret",
        "<f.bb_0005>:",
        "load_imm r1, #5",
        "isub r0, r1, r0",
        "load_const r1, [0000]",
        "imul r0, r1, r0",
        "ret",
    ]


def test_constants_are_not_saved_across_calls(listing: Listing) -> None:
    body = """
        %v1:Int = 5
        %v2:Int = IAdd %v1, %v0
        %v3:Int = Call f1(%v2)
        %v4:Int = ISub %v1, %v3
        ret %v4
    """
    lines = listing(function("Int", body, "3"))
    assert not [line for line in lines if line.startswith(("push", "mov", "store"))]


def test_wide_constants_are_kept_once(bytecode: Any) -> None:
    body = """
        %v1:Int = 1234567890123
        %v2:Int = IAdd %v0, %v1
        %v3:Int = 1234567890123
        %v4:Int = ISub %v2, %v3
        %v5:Double = 0.5
        %v6:Int = Cast<Double->Int> %v5
        %v7:Int = 4602678819172646912
        %v8:Int = IAdd %v6, %v7
        %v9:Int = IAdd %v8, %v4
        ret %v9
    """
    code = bytecode(function("Int", body, "3"))
    # 0.5 and the Int have the same bits.
    assert list(code.constants) == [1234567890123, 4602678819172646912]
    assert bytecode.run(code) == 4602678819172646915


@pytest.mark.parametrize("number", [(1 << 31) - 1, -(1 << 31)])
def test_numbers_of_32_bits_need_no_constant(bytecode: Any, number: int) -> None:
    code = bytecode(function("Int", f"%v1:Int = {number}\n%v2:Int = IAdd %v0, %v1\nret %v2", "0"))
    assert len(code.constants) == 0
    assert bytecode.run(code) == number


def test_unused_results_are_not_computed_unless_that_may_trap(listing: Listing) -> None:
    body = """
        %v1:Int = IAdd %v0, 1
        %v2:Int = IMul %v1, %v0
        %v3:Int = IDiv %v0, %v1
        ret %v0
    """
    assert listing(function("Int", body, "3")) == ["iadd_imm r1, r0, #1", "idiv r63, r0, r1", "ret"]


def test_a_bool_as_int_is_the_same_register(listing: Listing) -> None:
    body = "%v1:Bool = IEq %v0, 3\n%v2:Int = Cast<Bool->Int> %v1\n%v3:Int = IAdd %v2, 1\nret %v3"
    assert listing(function("Int", body, "3")) == ["ieq_imm r0, r0, #3", "iadd_imm r0, r0, #1", "ret"]


def test_arms_bring_their_values_to_the_same_register(listing: Listing) -> None:
    body = """
        br_imm ILt %v0, 0, b1, b2
        b1:
        %v1:Int = INeg %v0
        jmp b3(%v1)
        b2:
        %v2:Int = IMul %v0, 2
        jmp b3(%v2)
        b3(%v3:Int):
        %v4:Int = IAdd %v3, 1
        ret %v4
    """
    assert listing(function("Int", body, "3")) == [
        "jmpge_imm r0, #0, 0005",
        "ineg r0, r0",
        "jmp 0006",
        "<f.bb_0005>:",
        "imul_imm r0, r0, #2",
        "<f.bb_0006>:",
        "iadd_imm r0, r0, #1",
        "ret",
    ]


def test_an_edge_of_a_branch_that_takes_code_has_it_behind_the_jump(bytecode: Any, listing: Listing) -> None:
    body = """
        br_imm ILt %v0, 0, b1(%v1, %v0), b1(%v0, %v1)
        b1(%v2:Int, %v3:Int):
        %v4:Int = ISub %v2, %v3
        ret %v4
    """
    assert listing(function("Int Int", body, "3 8")) == [
        "jmplt_imm r0, #0, 0006",
        "mov r63, r1",
        "mov r1, r0",
        "mov r0, r63",
        "<f.bb_0006>:",
        "isub r0, r1, r0",
        "ret",
    ]
    assert bytecode.run(bytecode(function("Int Int", body, "3 8"))) == -5
    assert bytecode.run(bytecode(function("Int Int", body, "-3 8"))) == 11


def test_blocks_that_cannot_be_reached_are_left_out(listing: Listing) -> None:
    body = "ret %v0\nb1:\n%v1:Int = IAdd %v0, 1\nret %v1"
    assert listing(function("Int", body, "3")) == ["ret"]


def test_traps_are_at_the_position_of_their_instruction(bytecode: Any) -> None:
    text = function("Int", "%v1:Int = IAdd %v0, 1\n%v2:Int = IDiv %v1, %v0\nret %v2", "0")
    with pytest.raises(Trap, match="T0001") as caught:
        bytecode.run(bytecode(text))
    assert text[caught.value.offset :].startswith("%v2:Int = IDiv")


def test_memory_instructions_address_with_offsets(listing: Listing) -> None:
    body = """
        %v1:Record<a: Int b: Int> = Alloc(size=16,align=8)
        Store %v1+0, %v0
        Store %v1+8, %v0
        %v2:Int = Load %v1+8
        ret %v2
    """
    assert listing(function("Int", body, "3")) == [
        "alloc r1, #16",
        "store r1, r0, #0",
        "store r1, r0, #8",
        "load r0, r1, #8",
        "ret",
    ]


def test_host_functions_change_nothing_but_r0(listing: Listing) -> None:
    body = """
        %v2:Int = Sys math.abs(%v1)
        %v3:Int = IAdd %v2, %v1
        %v4:Int = IAdd %v3, %v0
        ret %v4
    """
    assert listing(function("Int Int", body, "3 4")) == [
        "mov r2, r0",
        "mov r0, r1",
        "sys #1, 0 <math.abs>",
        "iadd r0, r0, r1",
        "iadd r0, r0, r2",
        "ret",
    ]


@pytest.mark.parametrize("registers", [3, 65])
def test_the_number_of_registers_has_limits(bytecode: Any, registers: int) -> None:
    with pytest.raises(ValueError, match="from 4 to 64"):
        bytecode(FIB, registers=registers)
