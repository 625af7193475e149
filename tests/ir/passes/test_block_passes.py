"""The passes over blocks and edges: unreachable, copy_propagation, merge_blocks, ret_inline, indirect_jump."""

from __future__ import annotations

from garden.ir.passes.copy_propagation import copy_propagation
from garden.ir.passes.indirect_jump import indirect_jump
from garden.ir.passes.merge_blocks import merge_blocks
from garden.ir.passes.ret_inline import ret_inline
from garden.ir.passes.unreachable import unreachable
from tests.support.rewriter import Rewriter, lines

# unreachable


def test_blocks_that_nothing_leads_to_are_removed(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                jmp b3
            b1:
                %v1:Int = IAdd %v0, 1
                jmp b2(%v1)
            b2(%v2:Int):
                jmp b3
            b3:
                ret %v0
            b4:
                jmp b3
        }"""
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                jmp b1
            b1:
                ret %v0
        }"""
    assert rewrite(unreachable, before) == lines(after)
    assert rewrite.count == 3


def test_blocks_of_a_switch_are_reachable(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        unreachable,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                switch %v0
                    1 -> b1(%v0)
                    _ -> b2
            b1(%v1:Int):
                %v2:Int = ISub %v1, 1
                br_imm IEq %v2, 0, b2, b3(%v2)
            b2:
                ret %v0
            b3(%v3:Int):
                ret %v3
        }""",
    )


# copy_propagation


def test_a_parameter_that_is_always_one_value_is_that_value(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1, %v2) -> Int {
            b0(%v0:Int, %v1:Bool, %v2:Int):
                br %v1, b1, b2
            b1:
                jmp b3(%v0, %v2)
            b2:
                jmp b3(%v0, %v0)
            b3(%v3:Int, %v4:Int):
                %v5:Int = IAdd %v3, %v4
                jmp b4(%v3, %v5)
            b4(%v6:Int, %v7:Int):
                %v8:Int = IMul %v6, %v7
                ret %v8
        }"""
    after = """
        fn f1(%v0, %v1, %v2) -> Int {
            b0(%v0:Int, %v1:Bool, %v2:Int):
                br %v1, b1, b2
            b1:
                jmp b3(%v2)
            b2:
                jmp b3(%v0)
            b3(%v3:Int):
                %v4:Int = IAdd %v0, %v3
                jmp b4
            b4:
                %v5:Int = IMul %v0, %v4
                ret %v5
        }"""
    assert rewrite(copy_propagation, before) == lines(after)
    assert rewrite.count == 3


def test_what_a_block_gives_that_nothing_leads_to_may_be_another_value(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        copy_propagation,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                jmp b2(%v0)
            b1:
                jmp b2(%v0)
            b2(%v1:Int):
                ret %v1
        }""",
    )


def test_two_constants_of_one_value_are_two_values(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        copy_propagation,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Bool):
                br %v0, b1, b2
            b1:
                %v1:Int = 1
                jmp b3(%v1)
            b2:
                %v2:Int = 1
                jmp b3(%v2)
            b3(%v3:Int):
                ret %v3
        }""",
    )


# merge_blocks


def test_a_chain_of_jumps_becomes_one_block(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IAdd %v0, 1
                jmp b2
            b1:
                ret %v2
            b2:
                %v2:Int = IAdd %v1, 2
                jmp b1
        }"""
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IAdd %v0, 1
                %v2:Int = IAdd %v1, 2
                ret %v2
        }"""
    assert rewrite(merge_blocks, before) == lines(after)
    assert rewrite.count == 2


def test_blocks_with_parameters_or_other_predecessors_do_not_merge(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        merge_blocks,
        """
        fn f1(%v0) -> Bool {
            b0(%v0:Bool):
                br %v0, b1, b2
            b1:
                jmp b2
            b2:
                jmp b3(%v0)
            b3(%v1:Bool):
                ret %v1
        }""",
    )


# ret_inline


def test_a_jump_to_a_return_returns(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                jmp b4(%v0)
            b2:
                br_imm IEq %v0, 1, b3, b5(%v1, %v0)
            b3:
                jmp b4(%v1)
            b4(%v2:Int):
                jmp b5(%v0, %v2)
            b5(%v3:Int, %v4:Int):
                ret %v4
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                br_imm IEq %v0, 0, b1, b2
            b1:
                ret %v0
            b2:
                br_imm IEq %v0, 1, b3, b4(%v1, %v0)
            b3:
                ret %v1
            b4(%v2:Int, %v3:Int):
                ret %v3
        }"""
    assert rewrite(ret_inline, before) == lines(after)
    assert rewrite.count == 3


def test_a_jump_to_a_return_of_nothing_or_of_a_value_from_above(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                jmp b1
            b1:
                ret %v0
        }
        fn f2() {
            b0:
                jmp b1
            b1:
                ret
        }"""
    after = "fn f1(%v0) -> Int {\nb0(%v0:Int):\nret %v0\n}\nfn f2() {\nb0:\nret\n}"
    assert rewrite(ret_inline, before) == after


def test_a_return_that_computes_first_is_not_copied(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        ret_inline,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                jmp b1(%v0)
            b1(%v1:Int):
                %v2:Int = INeg %v1
                ret %v2
        }""",
    )


# indirect_jump


def test_edges_through_empty_blocks_go_on_at_once(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                br %v0, b1, b2
            b1:
                jmp b3
            b2:
                %v2:Int = INeg %v1
                ret %v2
            b3:
                jmp b4(%v1)
            b4(%v3:Int):
                %v4:Int = IAdd %v3, 1
                ret %v4
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                br %v0, b2(%v1), b1
            b1:
                %v2:Int = INeg %v1
                ret %v2
            b2(%v3:Int):
                %v4:Int = IAdd %v3, 1
                ret %v4
        }"""
    assert rewrite(indirect_jump, before) == lines(after)


def test_a_join_that_only_jumps_passes_on_what_it_is_given(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                br %v0, b1(%v1), b2
            b1(%v2:Int):
                jmp b3(%v1, %v2)
            b2:
                %v3:Int = INeg %v1
                jmp b1(%v3)
            b3(%v4:Int, %v5:Int):
                %v6:Int = IAdd %v4, %v5
                ret %v6
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                br %v0, b2(%v1, %v1), b1
            b1:
                %v2:Int = INeg %v1
                jmp b2(%v1, %v2)
            b2(%v3:Int, %v4:Int):
                %v5:Int = IAdd %v3, %v4
                ret %v5
        }"""
    assert rewrite(indirect_jump, before) == lines(after)
    assert rewrite.count == 2


def test_a_block_whose_parameter_is_used_elsewhere_is_not_skipped(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        indirect_jump,
        """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                br %v0, b1(%v1), b2
            b1(%v2:Int):
                jmp b3(%v2)
            b2:
                %v3:Int = INeg %v1
                jmp b1(%v3)
            b3(%v4:Int):
                %v5:Int = IAdd %v4, %v2
                ret %v5
        }""",
    )


def test_a_branch_with_one_destination_becomes_a_jump(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                br %v0, b1, b2
            b1:
                jmp b3(%v1)
            b2:
                jmp b3(%v1)
            b3(%v2:Int):
                %v3:Int = INeg %v2
                ret %v3
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Bool, %v1:Int):
                jmp b1(%v1)
            b1(%v2:Int):
                %v3:Int = INeg %v2
                ret %v3
        }"""
    assert rewrite(indirect_jump, before) == lines(after)


def test_edges_to_one_block_with_different_arguments_stay_a_branch(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        indirect_jump,
        """
        fn f1(%v0, %v1, %v2) -> Int {
            b0(%v0:Bool, %v1:Int, %v2:Int):
                br %v0, b1(%v1), b1(%v2)
            b1(%v3:Int):
                %v4:Int = INeg %v3
                ret %v4
        }""",
    )


def test_a_bool_that_only_decides_a_branch_becomes_branches(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                br_imm ILt %v0, 0, b1, b2
            b1:
                %v2:Bool = true
                jmp b5(%v2)
            b2:
                br_imm ILt %v1, 0, b3, b4
            b3:
                %v3:Bool = IEq %v0, 5
                jmp b5(%v3)
            b4:
                %v4:Bool = false
                jmp b5(%v4)
            b5(%v5:Bool):
                br %v5, b6, b7(%v1)
            b6:
                ret %v0
            b7(%v6:Int):
                %v7:Int = INeg %v6
                ret %v7
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                br_imm ILt %v0, 0, b3, b1
            b1:
                br_imm ILt %v1, 0, b2, b4(%v1)
            b2:
                %v2:Bool = IEq %v0, 5
                br %v2, b3, b4(%v1)
            b3:
                ret %v0
            b4(%v3:Int):
                %v4:Int = INeg %v3
                ret %v4
        }"""
    assert rewrite(indirect_jump, before) == lines(after)
    # Three jumps, and two edges through what is then empty.
    assert rewrite.count == 5


def test_a_constant_decides_a_comparison_and_what_that_decides(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Bool):
                %v1:Int = 3
                %v2:Int = 4
                br %v0, b1(%v1, %v2), b1(%v2, %v2)
            b1(%v3:Int, %v4:Int):
                br_imm IEq %v3, 3, b2(%v4), b3
            b2(%v5:Int):
                br_imm IGt %v5, 3, b4, b3
            b3:
                ret %v1
            b4:
                ret %v2
        }"""
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Bool):
                %v1:Int = 3
                %v2:Int = 4
                br %v0, b2, b1
            b1:
                ret %v1
            b2:
                ret %v2
        }"""
    assert rewrite(indirect_jump, before) == lines(after)
    assert rewrite.count == 3


def test_a_bool_that_is_used_elsewhere_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        indirect_jump,
        """
        fn f1(%v0, %v1) -> Bool {
            b0(%v0:Int, %v1:Bool):
                br_imm ILt %v0, 0, b1, b2
            b1:
                %v2:Bool = true
                jmp b3(%v2)
            b2:
                Sys host.log(%v0)
                jmp b3(%v1)
            b3(%v3:Bool):
                br %v3, b4, b5
            b4:
                ret %v3
            b5:
                ret %v1
        }""",
    )


def test_a_block_with_a_constant_that_is_used_is_not_skipped(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        indirect_jump,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Bool):
                br %v0, b1, b2
            b1:
                %v1:Int = 1
                jmp b3(%v1)
            b2:
                %v2:Int = 2
                jmp b3(%v2)
            b3(%v3:Int):
                ret %v3
        }""",
    )
