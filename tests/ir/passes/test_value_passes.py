"""The passes over instructions: addrof_fold, load_store_forward, common_subexpressions, imm_fold, branch_cmp, dce."""

from __future__ import annotations

import pytest

from garden.ir.passes.addrof_fold import addrof_fold
from garden.ir.passes.branch_cmp import branch_cmp
from garden.ir.passes.common_subexpressions import common_subexpressions
from garden.ir.passes.dce import dce
from garden.ir.passes.imm_fold import imm_fold
from garden.ir.passes.load_store_forward import load_store_forward
from tests.support.rewriter import Rewriter, lines

OUTER = "Record<x: Int p: Record<y: Int z: Int>>"
INNER = "Record<y: Int z: Int>"


# addrof_fold


def test_offsets_of_addresses_add_up(rewrite: Rewriter) -> None:
    before = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:{OUTER}):
                %v1:{INNER} = AddrOf %v0+8
                %v2:{INNER} = AddrOf %v1+0
                %v3:Int = Load %v2+8
                Store %v1+0, %v3
                ret %v3
        }}"""
    after = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:{OUTER}):
                %v1:{INNER} = AddrOf %v0+8
                %v2:{INNER} = AddrOf %v0+8
                %v3:Int = Load %v0+16
                Store %v0+8, %v3
                ret %v3
        }}"""
    assert rewrite(addrof_fold, before) == lines(after)
    assert rewrite.count == 3


def test_an_offset_that_would_not_fit_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        addrof_fold,
        f"""
        fn f1(%v0) -> Int {{
            b0(%v0:{OUTER}):
                %v1:{INNER} = AddrOf %v0+2147483640
                %v2:Int = Load %v1+8
                ret %v2
        }}""",
    )


def test_a_stored_or_passed_address_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        addrof_fold,
        f"""
        fn f1(%v0) -> {INNER} {{
            b0(%v0:{OUTER}):
                %v1:{INNER} = AddrOf %v0+8
                %v2:Array<{INNER}> = Alloc(size=16,align=8)
                Store %v2+8, %v1
                ret %v1
        }}""",
    )


# load_store_forward


def test_what_was_stored_is_not_loaded(rewrite: Rewriter) -> None:
    before = f"""
        fn f1(%v0, %v1) -> Int {{
            b0(%v0:Int, %v1:Int):
                %v2:{INNER} = Alloc(size=16,align=8)
                Store %v2+0, %v0
                Store %v2+8, %v1
                %v3:Int = Load %v2+0
                %v4:Int = Load %v2+8
                %v5:Int = ISub %v3, %v4
                ret %v5
        }}"""
    after = f"""
        fn f1(%v0, %v1) -> Int {{
            b0(%v0:Int, %v1:Int):
                %v2:{INNER} = Alloc(size=16,align=8)
                Store %v2+0, %v0
                Store %v2+8, %v1
                %v3:Int = ISub %v0, %v1
                ret %v3
        }}"""
    assert rewrite(load_store_forward, before) == lines(after)
    assert rewrite.count == 2


def test_what_a_copy_may_have_overwritten_is_loaded_again(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        load_store_forward,
        f"""
        fn f1(%v0, %v1) -> Int {{
            b0(%v0:{INNER}, %v1:Int):
                %v2:{INNER} = Alloc(size=16,align=8)
                Store %v2+0, %v1
                Copy %v2, %v0, 16
                %v3:Int = Load %v2+0
                ret %v3
        }}""",
    )


def test_what_was_loaded_is_not_loaded_again_on_any_way_from_there(rewrite: Rewriter) -> None:
    before = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:{INNER}):
                %v1:Int = Load %v0+8
                Sys host.log(%v1)
                br_imm IEq %v1, 0, b1, b2
            b1:
                %v2:Int = Load %v0+8
                jmp b3(%v2)
            b2:
                %v3:Int = Load %v0+0
                %v4:Int = Load %v0+8
                %v5:Int = IAdd %v3, %v4
                jmp b3(%v5)
            b3(%v6:Int):
                %v7:Int = Load %v0+0
                %v8:Int = Load %v0+8
                %v9:Int = IAdd %v7, %v8
                ret %v9
        }}"""
    after = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:{INNER}):
                %v1:Int = Load %v0+8
                Sys host.log(%v1)
                br_imm IEq %v1, 0, b1, b2
            b1:
                jmp b3(%v1)
            b2:
                %v2:Int = Load %v0+0
                %v3:Int = IAdd %v2, %v1
                jmp b3(%v3)
            b3(%v4:Int):
                %v5:Int = Load %v0+0
                %v6:Int = Load %v0+8
                %v7:Int = IAdd %v5, %v6
                ret %v7
        }}"""
    assert rewrite(load_store_forward, before) == lines(after)
    assert rewrite.count == 2


def test_what_one_arm_has_stored_the_other_does_not_know(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        load_store_forward,
        f"""
        fn f1(%v0, %v1) -> Int {{
            b0(%v0:Bool, %v1:Int):
                %v2:{INNER} = Alloc(size=16,align=8)
                br %v0, b1, b2
            b1:
                Store %v2+0, %v1
                ret %v1
            b2:
                %v3:Int = Load %v2+0
                ret %v3
        }}""",
    )


def test_a_call_makes_loading_again_cheaper(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        load_store_forward,
        f"""
        fn f1(%v0) -> Int {{
            b0(%v0:{INNER}):
                %v1:{INNER} = Alloc(size=16,align=8)
                %v2:Int = Load %v0+8
                Store %v1+8, %v2
                %v3:Int = Call f1(%v0)
                %v4:Int = Load %v0+8
                %v5:Int = Load %v1+8
                %v6:Int = IAdd %v4, %v5
                ret %v6
        }}""",
    )


def test_the_last_store_counts(rewrite: Rewriter) -> None:
    before = f"""
        fn f1(%v0, %v1) -> Int {{
            b0(%v0:Int, %v1:Int):
                %v2:{INNER} = Alloc(size=16,align=8)
                Store %v2+0, %v0
                Store %v2+0, %v1
                %v3:Int = Load %v2+0
                ret %v3
        }}"""
    assert rewrite(load_store_forward, before).endswith("ret %v1\n}")


@pytest.mark.parametrize("first", [f"%v2:{INNER} = AddrOf %v1+8", f"%v2:{INNER} = Alloc(size=16,align=8)"])
def test_a_store_makes_uncertain_what_may_be_the_same_memory(rewrite: Rewriter, first: str) -> None:
    kept = f"""
        fn f1(%v0, %v1) -> Int {{
            b0(%v0:Int, %v1:{OUTER}):
                {first}
                %v3:Int = Load %v1+8
                Store %v2+0, %v0
                %v4:Int = Load %v1+8
                %v5:Int = IAdd %v3, %v4
                ret %v5
        }}"""
    assert rewrite.keeps(load_store_forward, kept)


def test_a_store_through_an_unknown_address_makes_fresh_objects_uncertain(rewrite: Rewriter) -> None:
    kept = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:Int):
                %v1:{OUTER} = Alloc(size=24,align=8)
                Store %v1+8, %v0
                %v2:{INNER} = AddrOf %v1+8
                %v3:Int = 5
                Store %v2+0, %v3
                %v4:Int = Load %v1+8
                ret %v4
        }}"""
    assert rewrite.keeps(load_store_forward, kept)


def test_fresh_objects_do_not_disturb_each_other(rewrite: Rewriter) -> None:
    before = f"""
        fn f1(%v0) -> Int {{
            b0(%v0:Int):
                %v1:{INNER} = Alloc(size=16,align=8)
                %v2:{INNER} = Alloc(size=16,align=8)
                Store %v1+0, %v0
                %v3:Int = 1
                Store %v2+0, %v3
                %v4:Int = Load %v1+0
                ret %v4
        }}"""
    assert rewrite(load_store_forward, before).endswith("ret %v0\n}")


# common_subexpressions


def test_equal_expressions_are_computed_once(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                %v2:Int = IMul %v0, %v1
                %v3:Int = IMul %v1, %v0
                %v4:Int = IAdd %v2, 1
                %v5:Int = IAdd %v3, 1
                %v6:Int = ISub %v4, %v5
                ret %v6
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                %v2:Int = IMul %v0, %v1
                %v3:Int = IAdd %v2, 1
                %v4:Int = ISub %v3, %v3
                ret %v4
        }"""
    assert rewrite(common_subexpressions, before) == lines(after)
    assert rewrite.count == 2


def test_equal_constants_make_equal_expressions_but_stay(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Double {
            b0(%v0:Double):
                %v1:Double = 2.0
                %v2:Double = DMul %v0, %v1
                %v3:Double = 2.0
                %v4:Double = DMul %v0, %v3
                %v5:Double = DDiv %v4, %v3
                %v6:Double = DDiv %v2, %v1
                %v7:Double = DAdd %v5, %v6
                ret %v7
        }"""
    after = """
        fn f1(%v0) -> Double {
            b0(%v0:Double):
                %v1:Double = 2.0
                %v2:Double = DMul %v0, %v1
                %v3:Double = 2.0
                %v4:Double = DDiv %v2, %v3
                %v5:Double = DAdd %v4, %v4
                ret %v5
        }"""
    assert rewrite(common_subexpressions, before) == lines(after)


def test_the_second_of_two_divisions_goes(rewrite: Rewriter) -> None:
    before = "%v2:Int = IDiv %v0, %v1\n%v3:Int = IDiv %v0, %v1\n%v4:Int = IAdd %v2, %v3\nret %v4"
    after = "%v2:Int = IDiv %v0, %v1\n%v3:Int = IAdd %v2, %v2\nret %v3"
    head = "fn f1(%v0, %v1) -> Int {\nb0(%v0:Int, %v1:Int):\n"
    assert rewrite(common_subexpressions, f"{head}{before}\n}}") == f"{head}{after}\n}}"


def test_pure_host_calls_count_as_expressions(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Sys host.twice(%v0)
                %v2:Int = Sys host.twice(%v0)
                %v3:Int = Sys host.twice(%v2)
                %v4:Int = Sys host.next(%v0)
                %v5:Int = Sys host.next(%v0)
                ret %v3
        }"""
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = Sys host.twice(%v0)
                %v2:Int = Sys host.twice(%v1)
                %v3:Int = Sys host.next(%v0)
                %v4:Int = Sys host.next(%v0)
                ret %v2
        }"""
    assert rewrite(common_subexpressions, before) == lines(after)


def test_both_arms_know_what_was_computed_before_them(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Double {
            b0(%v0:Double, %v1:Double):
                %v2:Double = DMul %v0, %v0
                br_cmp DLt %v2, %v1, b1, b2
            b1:
                %v3:Double = DMul %v0, %v0
                %v4:Double = DMul %v1, %v1
                jmp b3(%v4)
            b2:
                %v5:Double = DMul %v0, %v0
                %v6:Double = DMul %v1, %v1
                %v7:Double = DAdd %v5, %v6
                jmp b3(%v7)
            b3(%v8:Double):
                %v9:Double = DMul %v0, %v0
                %v10:Double = DMul %v8, %v9
                ret %v10
        }"""
    after = """
        fn f1(%v0, %v1) -> Double {
            b0(%v0:Double, %v1:Double):
                %v2:Double = DMul %v0, %v0
                br_cmp DLt %v2, %v1, b1, b2
            b1:
                %v3:Double = DMul %v1, %v1
                jmp b3(%v3)
            b2:
                %v4:Double = DMul %v1, %v1
                %v5:Double = DAdd %v2, %v4
                jmp b3(%v5)
            b3(%v6:Double):
                %v7:Double = DMul %v0, %v0
                %v8:Double = DMul %v6, %v7
                ret %v8
        }"""
    assert rewrite(common_subexpressions, before) == lines(after)
    assert rewrite.count == 2


def test_a_call_makes_computing_again_cheaper_but_not_calling_the_host(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = ISub %v0, 1
                %v2:Int = Sys host.twice(%v0)
                %v3:Int = Call f1(%v1)
                %v4:Int = ISub %v0, 1
                %v5:Int = Sys host.twice(%v0)
                %v6:Int = IAdd %v4, %v5
                ret %v6
        }"""
    after = """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = ISub %v0, 1
                %v2:Int = Sys host.twice(%v0)
                %v3:Int = Call f1(%v1)
                %v4:Int = ISub %v0, 1
                %v5:Int = IAdd %v4, %v2
                ret %v5
        }"""
    assert rewrite(common_subexpressions, before) == lines(after)


def test_what_differs_or_is_known_on_one_way_only_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        common_subexpressions,
        f"""
        fn f1(%v0, %v1, %v2, %v3) -> Int {{
            b0(%v0:Int, %v1:Int, %v2:{OUTER}, %v3:Double):
                %v4:Int = ISub %v0, %v1
                %v5:Int = ISub %v1, %v0
                %v6:Int = IAdd %v0, 1
                %v7:Int = IAdd %v0, 2
                %v8:Int = ISub %v0, 1
                %v9:Int = 1
                %v10:Bool = true
                %v11:{INNER} = AddrOf %v2+8
                %v12:{OUTER} = AddrOf %v2+8
                %v13:{INNER} = Alloc(size=16,align=8)
                %v14:{INNER} = Alloc(size=16,align=8)
                %v15:Int = Call f1(%v0, %v1, %v2, %v3)
                %v16:Int = Call f1(%v0, %v1, %v2, %v3)
                %v17:Double = 0.0
                %v18:Double = -0.0
                %v19:Double = DAdd %v3, %v17
                %v20:Double = DAdd %v3, %v18
                br_imm IEq %v0, 0, b1, b2
            b1:
                %v21:Int = IMul %v0, %v1
                jmp b2
            b2:
                %v22:Int = IMul %v0, %v1
                ret %v22
        }}""",
    )


# imm_fold


@pytest.mark.parametrize(
    ("type", "operation", "constant", "result"),
    [
        ("Int", "IAdd %v0, %v1", 7, "IAdd %v0, 7"),
        ("Int", "IAdd %v1, %v0", 7, "IAdd %v0, 7"),
        ("Int", "IMul %v1, %v0", -7, "IMul %v0, -7"),
        ("Int", "ISub %v0, %v1", 7, "ISub %v0, 7"),
        ("Int", "IDiv %v0, %v1", 0, "IDiv %v0, 0"),
        ("Int", "IMod %v0, %v1", 2, "IMod %v0, 2"),
        ("Bool", "IEq %v1, %v0", 7, "IEq %v0, 7"),
        ("Bool", "INe %v0, %v1", 7, "INe %v0, 7"),
        ("Bool", "ILt %v0, %v1", 7, "ILt %v0, 7"),
        ("Bool", "ILt %v1, %v0", 7, "IGt %v0, 7"),
        ("Bool", "ILe %v0, %v1", 7, "ILt %v0, 8"),
        ("Bool", "ILe %v1, %v0", 7, "IGt %v0, 6"),
        ("Int", "IAdd %v0, %v1", (1 << 31) - 1, "IAdd %v0, 2147483647"),
        ("Int", "IAdd %v0, %v1", -(1 << 31), "IAdd %v0, -2147483648"),
    ],
)
def test_a_constant_that_is_used_once_becomes_an_immediate(
    rewrite: Rewriter, type: str, operation: str, constant: int, result: str
) -> None:
    head = f"fn f1(%v0) -> {type} {{\nb0(%v0:Int):\n"
    before = f"{head}%v1:Int = {constant}\n%v2:{type} = {operation}\nret %v2\n}}"
    assert rewrite(imm_fold, before) == f"{head}%v1:{type} = {result}\nret %v1\n}}"
    assert rewrite.count == 1


@pytest.mark.parametrize(
    ("type", "operation", "constant"),
    [
        ("Int", "ISub %v1, %v0", 7),
        ("Int", "IDiv %v1, %v0", 7),
        ("Int", "IMod %v1, %v0", 7),
        ("Int", "IAdd %v0, %v1", 1 << 31),
        ("Int", "IAdd %v0, %v1", -(1 << 31) - 1),
        ("Bool", "ILe %v0, %v1", (1 << 31) - 1),
        ("Bool", "ILe %v1, %v0", -(1 << 31)),
        ("Int", "IMul %v1, %v1", 7),
    ],
)
def test_a_constant_that_cannot_be_an_immediate_stays(
    rewrite: Rewriter, type: str, operation: str, constant: int
) -> None:
    head = f"fn f1(%v0) -> {type} {{\nb0(%v0:Int):\n"
    assert rewrite.keeps(imm_fold, f"{head}%v1:Int = {constant}\n%v2:{type} = {operation}\nret %v2\n}}")


def test_a_constant_that_is_used_twice_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        imm_fold,
        """
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = 7
                %v2:Int = IAdd %v0, %v1
                jmp b1(%v1)
            b1(%v3:Int):
                %v4:Int = IAdd %v2, %v3
                ret %v4
        }""",
    )


def test_bools_and_doubles_are_no_immediates(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        imm_fold,
        """
        fn f1(%v0, %v1) -> Double {
            b0(%v0:Bool, %v1:Double):
                %v2:Bool = true
                %v3:Bool = IEq %v0, %v2
                %v4:Double = 1.0
                %v5:Double = DAdd %v1, %v4
                ret %v5
        }""",
    )


# branch_cmp


@pytest.mark.parametrize(
    ("type", "comparison", "branch"),
    [
        ("Int", "IEq %v0, 0", "br_imm IEq %v0, 0"),
        ("Int", "INe %v0, 5", "br_imm INe %v0, 5"),
        ("Int", "ILt %v0, 5", "br_imm ILt %v0, 5"),
        ("Int", "IGt %v0, 5", "br_imm IGt %v0, 5"),
        ("Int", "Cast<Int->Bool> %v0", "br_imm INe %v0, 0"),
        ("Int", "ILt %v0, %v1", "br_cmp ILt %v0, %v1"),
        ("Int", "ILe %v1, %v0", "br_cmp ILe %v1, %v0"),
        ("Int", "IEq %v0, %v1", "br_cmp IEq %v0, %v1"),
        ("Bool", "INe %v0, %v1", "br_cmp INe %v0, %v1"),
        ("Double", "DLt %v0, %v1", "br_cmp DLt %v0, %v1"),
        ("Double", "DLe %v0, %v1", "br_cmp DLe %v0, %v1"),
        ("Str", "SEq %v0, %v1", "br_cmp SEq %v0, %v1"),
        ("Str", "SNe %v0, %v1", "br_cmp SNe %v0, %v1"),
    ],
)
def test_a_comparison_and_its_branch_become_one(rewrite: Rewriter, type: str, comparison: str, branch: str) -> None:
    text = """
        fn f1(%v0, %v1) {{
            b0(%v0:{type}, %v1:{type}):
                {condition}
                {branch}, b1, b2
            b1:
                ret
            b2:
                ret
        }}"""
    before = text.format(type=type, condition=f"%v2:Bool = {comparison}", branch="br %v2")
    assert rewrite(branch_cmp, before) == lines(text.format(type=type, condition="", branch=branch))
    assert rewrite.count == 1


def test_a_comparison_with_another_use_or_in_another_block_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        branch_cmp,
        """
        fn f1(%v0, %v1) -> Bool {
            b0(%v0:Int, %v1:Bool):
                %v2:Bool = IEq %v0, 0
                br %v2, b1, b2
            b1:
                %v3:Bool = IEq %v0, 1
                jmp b3
            b2:
                ret %v2
            b3:
                br %v3, b2, b4
            b4:
                br %v1, b2, b5
            b5:
                ret %v1
        }""",
    )


# dce


def test_chains_of_values_that_lead_to_nothing_go(rewrite: Rewriter) -> None:
    before = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                %v2:Int = IAdd %v0, 1
                Noop
                %v3:Int = 5
                jmp b1(%v2, %v0)
            b1(%v4:Int, %v5:Int):
                %v6:Int = ISub %v4, 1
                br_imm IEq %v5, 0, b2, b3(%v6, %v1)
            b2:
                ret %v5
            b3(%v7:Int, %v8:Int):
                ret %v8
        }"""
    after = """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                jmp b1(%v0)
            b1(%v2:Int):
                br_imm IEq %v2, 0, b2, b3(%v1)
            b2:
                ret %v2
            b3(%v3:Int):
                ret %v3
        }"""
    assert rewrite(dce, before) == lines(after)
    assert rewrite.count == 5


def test_what_may_trap_or_has_an_effect_stays_with_what_it_needs(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        dce,
        f"""
        fn f1(%v0, %v1, %v2) {{
            b0(%v0:Int, %v1:Double, %v2:{INNER}):
                %v3:Int = 0
                %v4:Int = IDiv %v3, %v0
                %v5:Int = IMod %v0, 0
                %v6:Double = DDiv %v1, %v1
                %v7:{INNER} = Alloc(size=16,align=8)
                Store %v2+0, %v0
                Call f1(%v0, %v1, %v2)
                %v8:Int = Sys host.twice(%v0)
                %v9:Int = Sys host.next(%v0)
                ret
        }}""",
    )


def test_loads_addresses_lookups_and_comparisons_go(rewrite: Rewriter) -> None:
    before = f"""
        fn f1(%v0, %v1) {{
            b0(%v0:Int, %v1:{OUTER}):
                %v2:Int = Load %v1+0
                %v3:{INNER} = AddrOf %v1+8
                %v4:Int = Lookup %v0 [1 -> 2], 3
                %v5:Bool = IEq %v2, %v4
                %v6:Int = Undefined
                ret
        }}"""
    assert rewrite(dce, before) == lines(f"fn f1(%v0, %v1) {{\nb0(%v0:Int, %v1:{OUTER}):\nret\n}}")
    assert rewrite.count == 5


def test_parameters_of_functions_stay(rewrite: Rewriter) -> None:
    assert rewrite.keeps(dce, "fn f1(%v0) {\nb0(%v0:Int):\nret\n}")
