"""tailcall and inline."""

from __future__ import annotations

from allocators import Arena, MetricAllocator, PageAlloc
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.passes.counts import Counts
from garden.ir.passes.inline import MAX_GROWTH, MAX_ROWS, inline
from garden.ir.passes.tailcall import tailcall
from garden.ir.printer import print_ir
from tests.support.rewriter import Rewriter, lines

SQUARE = """
    fn f1(%v0) -> Int {
        b0(%v0:Int):
            %v1:Int = IMul %v0, %v0
            ret %v1
    }"""
LARGER = """
    fn f1(%v0, %v1) -> Int {
        b0(%v0:Int, %v1:Int):
            br_cmp ILt %v0, %v1, b1, b2(%v0)
        b1:
            Sys host.log(%v1)
            ret %v1
        b2(%v2:Int):
            ret %v2
    }"""


# tailcall


def test_a_call_that_is_returned_becomes_a_tail_call(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                %v1:Int = Call f2(%v0, %v0)
                ret %v1
            b2:
                %v2:Int = ISub %v0, 1
                %v3:Int = Call f1(%v2)
                Noop
                ret %v3
        }
        fn f2(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                ret %v0
        }
        fn f3(%v0) {
            b0(%v0:Int):
                Call f3(%v0)
                ret
        }"""
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                tail f2(%v0, %v0)
            b2:
                %v1:Int = ISub %v0, 1
                Noop
                tail f1(%v1)
        }
        fn f2(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                ret %v0
        }
        fn f3(%v0) {
            b0(%v0:Int):
                tail f3(%v0)
        }"""
    assert rewrite(tailcall, before) == lines(after)
    assert rewrite.count == 3


def test_a_call_that_something_follows_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        tailcall,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                %v1:Int = Call f1(%v0)
                ret %v0
            b2:
                %v2:Int = Call f1(%v0)
                Sys host.log(%v0)
                ret %v2
        }""",
    )


# inline


def test_a_body_of_one_block_takes_the_place_of_the_call(rewrite: Rewriter) -> None:
    caller = """
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IAdd %v0, 1
                %v2:Int = Call f1(%v1)
                %v3:Int = Call f1(%v2)
                ret %v3
        }"""
    after = """
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IAdd %v0, 1
                %v2:Int = IMul %v1, %v1
                %v3:Int = IMul %v2, %v2
                ret %v3
        }"""
    assert rewrite(inline, SQUARE + caller) == lines(SQUARE + after)
    assert rewrite.count == 2


def test_a_body_of_several_blocks_splits_the_block_of_the_call(rewrite: Rewriter) -> None:
    caller = """
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = 100
                %v2:Int = Call f1(%v0, %v1)
                %v3:Int = IAdd %v2, %v1
                br_imm IEq %v3, 0, b1, b2
            b1:
                ret %v3
            b2:
                ret %v2
        }"""
    after = """
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = 100
                br_cmp ILt %v0, %v1, b1, b2(%v0)
            b1:
                Sys host.log(%v1)
                jmp b3(%v1)
            b2(%v2:Int):
                jmp b3(%v2)
            b3(%v3:Int):
                %v4:Int = IAdd %v3, %v1
                br_imm IEq %v4, 0, b4, b5
            b4:
                ret %v4
            b5:
                ret %v3
        }"""
    assert rewrite(inline, LARGER + caller) == lines(LARGER + after)


def test_callees_come_first_whatever_their_order(rewrite: Rewriter) -> None:
    text = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f2(%v0)
                ret %v1
        }
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f3(%v0)
                %v2:Int = IAdd %v1, 2
                ret %v2
        }
        fn f3(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IAdd %v0, 3
                ret %v1
        }"""
    printed = rewrite(inline, text)
    assert rewrite.count == 2
    assert "Call" not in printed
    assert printed.startswith(
        "fn f1(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = IAdd %v0, 3\n%v2:Int = IAdd %v1, 2\nret %v2\n}"
    )


def test_a_function_that_returns_its_parameter_or_nothing(rewrite: Rewriter) -> None:
    text = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                ret %v0
        }
        fn f2(%v0) {
            b0(%v0:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                Sys host.log(%v0)
                ret
            b2:
                ret
        }
        fn f3(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f1(%v0)
                Call f2(%v1)
                %v2:Int = Call f1(%v1)
                ret %v2
        }"""
    after = """
        fn f3(%v0) -> Int {
            b0(%v0:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                Sys host.log(%v0)
                jmp b3
            b2:
                jmp b3
            b3:
                ret %v0
        }"""
    assert rewrite(inline, text).endswith(lines(after))


def test_recursion_is_not_unrolled(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        inline,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f1(%v0)
                ret %v1
        }
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f1(%v0)
                %v2:Int = Call f2(%v1)
                ret %v2
        }""",
    )


def test_mutual_recursion_is_inlined_nowhere_twice(rewrite: Rewriter) -> None:
    text = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f2(%v0)
                ret %v1
        }
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Call f1(%v0)
                ret %v1
        }"""
    assert rewrite.keeps(inline, text)


def test_entry_keeps_its_calls() -> None:
    text = "fn f1() -> Int {\nb0:\n%v0:Int = 3\nret %v0\n}\nfn f2() -> Int {\nb0:\n%v0:Int = Call f1()\nret %v0\n}"
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(text, memory)
    counts = Counts(ir, memory)
    assert inline(ir, counts) == 0
    assert tailcall(ir, counts) == 0
    assert "Call f1()" in print_ir(ir)
    close_parsed(ir)


def test_large_functions_and_those_with_tables_stay_calls(rewrite: Rewriter) -> None:
    adds = "\n".join([f"%v{index + 1}:Int = IAdd %v{index}, 1" for index in range(MAX_ROWS)])
    large = f"fn f1(%v0) -> Int {{\nb0(%v0:Int):\n{adds}\nret %v{MAX_ROWS}\n}}\n"
    table = "fn f2(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = Lookup %v0 [1 -> 2], 3\nret %v1\n}\n"
    caller = "fn f3(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = Call f1(%v0)\n%v2:Int = Call f2(%v1)\nret %v2\n}"
    assert rewrite.keeps(inline, large + table + caller)


def test_growth_has_a_bound(rewrite: Rewriter) -> None:
    adds = "\n".join([f"%v{index + 1}:Int = IAdd %v{index}, 1" for index in range(MAX_ROWS - 1)])
    small = f"fn f1(%v0) -> Int {{\nb0(%v0:Int):\n{adds}\nret %v{MAX_ROWS - 1}\n}}\n"
    calls = "\n".join([f"%v{index + 1}:Int = Call f1(%v{index})" for index in range(100)])
    printed = rewrite(inline, f"{small}fn f2(%v0) -> Int {{\nb0(%v0:Int):\n{calls}\nret %v100\n}}")
    caller = printed[printed.index("fn f2") :]
    assert rewrite.count == (MAX_GROWTH - 1) * 101 // MAX_ROWS
    assert caller.count("\n") <= MAX_GROWTH * 103
