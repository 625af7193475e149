"""switch_fold and switch_lookup."""

from __future__ import annotations

import pytest

from garden.ir.passes.switch_fold import switch_fold
from garden.ir.passes.switch_lookup import switch_lookup
from tests.support.rewriter import Rewriter, lines


def chain(keys: list[int], *, between: str = "") -> str:
    """A function that compares its parameter with each key in turn and returns the place of the first equal one."""
    text = ["fn f1(%v0) -> Int {", "b0(%v0:Int):"]
    for place, key in enumerate(keys):
        if place:
            text += [f"b{2 * place}:", between]
        text.append(f"br_imm IEq %v0, {key}, b{2 * place + 1}, b{2 * place + 2}")
    for place in range(len(keys)):
        text += [f"b{2 * place + 1}:", f"%v{place + 1}:Int = {place}", f"ret %v{place + 1}"]
    return "\n".join([*text, f"b{2 * len(keys)}:", "ret %v0", "}"])


def switch_arms(printed: str) -> list[str]:
    """The keys of the switches in a printed function, in order."""
    return [line.partition(" -> ")[0].strip() for line in printed.split("\n") if " -> b" in line]


def test_a_chain_of_comparisons_becomes_a_switch(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                br_imm IEq %v0, 1, b1, b2
            b1:
                ret %v0
            b2:
                br_imm INe %v0, 2, b4, b3
            b3:
                %v1:Int = 20
                ret %v1
            b4:
                %v2:Int = 3000000000
                br_cmp IEq %v2, %v0, b5, b6
            b5:
                ret %v2
            b6:
                %v3:Int = 3000000001
                br_cmp IEq %v0, %v3, b7, b8
            b7:
                ret %v0
            b8:
                br_imm IEq %v0, 4, b1, b9
            b9:
                br_imm IEq %v0, 5, b1, b10
            b10:
                ret %v0
        }"""
    # The two large keys spread the chain too far.
    assert rewrite.keeps(switch_fold, before)
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = 3
                %v2:Int = 4
                switch %v0
                    1 -> b1
                    2 -> b2
                    3 -> b3
                    4 -> b4
                    5 -> b1
                    _ -> b5
            b1:
                ret %v0
            b2:
                %v3:Int = 20
                ret %v3
            b3:
                ret %v1
            b4:
                ret %v0
            b5:
                ret %v0
        }"""
    small = before.replace("3000000000", "3").replace("3000000001", "4").replace("IEq %v0, 4", "IEq %v0, 3")
    assert rewrite(switch_fold, small) == lines(after)
    assert rewrite.count == 1


def test_a_chain_over_texts_becomes_a_switch_however_far_apart(rewrite: Rewriter) -> None:
    links = []
    for place, key in enumerate(["red", "green", "blue", "red", "grey"]):
        links += [
            f"b{2 * place}:" if place else "b0(%v0:Str):",
            f"%v{place + 1}:Str = `{key}`",
            f"br_cmp SEq %v0, %v{place + 1}, b{2 * place + 1}, b{2 * place + 2}",
            f"b{2 * place + 1}:",
            "ret %v0",
        ]
    text = "\n".join(["fn f1(%v0) -> Str {", *links, "b10:", "ret %v0", "}"])
    assert switch_arms(rewrite(switch_fold, text)) == ["`red`", "`green`", "`blue`", "`grey`", "_"]


def test_the_first_arm_of_a_repeated_key_wins_and_the_other_dies(rewrite: Rewriter) -> None:
    printed = rewrite(switch_fold, chain([1, 2, 1, 3, 4]))
    assert switch_arms(printed) == ["1", "2", "3", "4", "_"]
    assert "= 2\n" not in printed
    assert "= 3\n" in printed


@pytest.mark.parametrize(
    "keys",
    [
        [1, 2, 3],
        [1, 2, 3, 2, 1],
        [1, 2, 3, 17],
        [-(1 << 31), (1 << 31) - 1, 0, 1],
    ],
)
def test_few_or_sparse_keys_stay_comparisons(rewrite: Rewriter, keys: list[int]) -> None:
    assert rewrite.keeps(switch_fold, chain(keys))


def test_the_spread_of_four_keys_is_below_sixteen(rewrite: Rewriter) -> None:
    assert switch_arms(rewrite(switch_fold, chain([1, 2, 3, 16]))) == ["1", "2", "3", "16", "_"]


def test_the_dense_parts_of_a_chain_become_switches(rewrite: Rewriter) -> None:
    printed = rewrite(switch_fold, chain([1, 2, 3, 4, 5, 9001, 9002, 9003, 9004, 9005]))
    assert rewrite.count == 2
    assert switch_arms(printed) == ["1", "2", "3", "4", "5", "_", "9001", "9002", "9003", "9004", "9005", "_"]


def test_a_link_that_does_more_than_compare_ends_a_chain(rewrite: Rewriter) -> None:
    assert rewrite.keeps(switch_fold, chain([1, 2, 3, 4, 5], between="Sys host.log(%v0)"))


def test_another_way_into_a_link_ends_a_chain(rewrite: Rewriter) -> None:
    assert rewrite.keeps(switch_fold, chain([1, 2, 3, 4]).replace("%v2:Int = 1\nret %v2", "jmp b4"))


def test_chains_over_different_values_do_not_mix(rewrite: Rewriter) -> None:
    text = chain([1, 2, 3, 4]).replace("fn f1(%v0)", "fn f1(%v0, %v9)").replace("b0(%v0:Int)", "b0(%v0:Int, %v9:Int)")
    text = text.replace("br_imm IEq %v0, 3", "br_imm IEq %v9, 3")
    kept = rewrite(switch_fold, text)
    assert rewrite.count == 0
    assert "switch" not in kept


def test_a_comparison_of_two_constants_is_no_link(rewrite: Rewriter) -> None:
    text = chain([1, 2, 3, 4]).replace("br_imm IEq %v0, 1,", "%v9:Int = 6\n%v8:Int = 7\nbr_cmp IEq %v9, %v8,")
    rewrite(switch_fold, text)
    assert rewrite.count == 0


def test_an_edge_with_arguments_keeps_them(rewrite: Rewriter) -> None:
    text = chain([1, 2, 3, 4]).replace("br_imm IEq %v0, 2, b3", "%v9:Int = 2\nbr_cmp IEq %v0, %v9, b3(%v9)")
    text = text.replace("b3:", "b3(%v8:Int):")
    printed = rewrite(switch_fold, text)
    assert "2 -> b2(%v1)" in printed
    assert "%v1:Int = 2" in printed


# switch_lookup


def test_a_switch_between_constants_becomes_a_lookup(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Str {
            b0(%v0:Int):
                switch %v0
                    1 -> b1
                    2 -> b2
                    3 -> b1
                    _ -> b3
            b1:
                %v1:Str = `one`
                ret %v1
            b2:
                %v2:Str = `two`
                Noop
                ret %v2
            b3:
                %v3:Str = `none`
                ret %v3
        }"""
    after = """
        fn f1(%v0) -> Str {
            b0(%v0:Int):
                %v1:Str = Lookup %v0 [1 -> `one`, 2 -> `two`, 3 -> `one`], `none`
                ret %v1
        }"""
    assert rewrite(switch_lookup, before) == lines(after)
    assert rewrite.count == 1


def test_arms_that_join_become_a_lookup_and_a_jump(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Double {
            b0(%v0:Str):
                switch %v0
                    `a` -> b1
                    _   -> b2
            b1:
                %v1:Double = -0.0
                jmp b3(%v1)
            b2:
                %v2:Double = 2.5
                jmp b3(%v2)
            b3(%v3:Double):
                %v4:Double = DNeg %v3
                ret %v4
        }"""
    after = """
        fn f1(%v0) -> Double {
            b0(%v0:Str):
                %v1:Double = Lookup %v0 [`a` -> -0.0], 2.5
                jmp b1(%v1)
            b1(%v2:Double):
                %v3:Double = DNeg %v2
                ret %v3
        }"""
    assert rewrite(switch_lookup, before) == lines(after)


def test_an_arm_that_something_else_leads_to_stays(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Bool):
                br %v1, b1, b2
            b1:
                switch %v0
                    1 -> b2
                    _ -> b3
            b2:
                %v2:Int = 1
                ret %v2
            b3:
                %v3:Int = 2
                ret %v3
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Bool):
                br %v1, b1, b2
            b1:
                %v2:Int = Lookup %v0 [1 -> 1], 2
                ret %v2
            b2:
                %v3:Int = 1
                ret %v3
        }"""
    assert rewrite(switch_lookup, before) == lines(after)


@pytest.mark.parametrize(
    "arm",
    [
        "ret %v0",  # no constant
        "%v9:Int = 1\nSys host.log(%v9)\nret %v9",
        "%v9:Int = 1\n%v8:Int = 2\nret %v9",
        "%v9:Int = 1\njmp b3(%v9)",  # the others return
        "tail f1(%v0)",
    ],
)
def test_an_arm_that_is_more_than_a_constant_keeps_the_switch(rewrite: Rewriter, arm: str) -> None:
    text = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:Int):
                switch %v0
                    1 -> b1
                    2 -> b2
                    _ -> b4
            b1:
                %v1:Int = 10
                ret %v1
            b2:
                {arm}
            b3(%v2:Int):
                ret %v2
            b4:
                %v3:Int = 30
                ret %v3
        }}"""
    rewrite(switch_lookup, text)
    assert rewrite.count == 0


def test_arms_that_return_nothing_keep_the_switch(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        switch_lookup, "fn f1(%v0) {\nb0(%v0:Int):\nswitch %v0\n1 -> b1\n_ -> b2\nb1:\nret\nb2:\nret\n}"
    )
