"""const_fold, and the folding of host calls."""

from __future__ import annotations

import pytest

from garden.ir.passes.const_fold import const_fold
from tests.support.rewriter import Rewriter

MIN = -(1 << 63)
MAX = (1 << 63) - 1


def folded(rewrite: Rewriter, type: str, operation: str, *constants: str) -> str:
    """What a function that computes one operation on constants returns, as the definition of that value."""
    body = "\n".join([f"%v{index}:{constant}" for index, constant in enumerate(constants)])
    last = len(constants)
    printed = rewrite(const_fold, f"fn f1() -> {type} {{\nb0:\n{body}\n%v{last}:{type} = {operation}\nret %v{last}\n}}")
    return printed.split("\n")[-3].partition(" = ")[2]


@pytest.mark.parametrize(
    ("operation", "left", "right", "result"),
    [
        ("IAdd", 2, 5, 7),
        ("IAdd", MAX, 1, MIN),
        ("ISub", MIN, 1, MAX),
        ("IMul", 2, 5, 10),
        ("IMul", MAX, MAX, 1),
        ("IMul", MIN, -1, MIN),
        ("IDiv", 7, 2, 3),
        ("IDiv", -7, 2, -3),
        ("IDiv", 7, -2, -3),
        ("IDiv", MIN, -1, MIN),
        ("IMod", -7, 2, -1),
        ("IMod", 7, -2, 1),
        ("IMod", MIN, -1, 0),
    ],
)
def test_int_arithmetic_wraps_and_divides_towards_zero(
    rewrite: Rewriter, operation: str, left: int, right: int, result: int
) -> None:
    assert folded(rewrite, "Int", f"{operation} %v0, %v1", f"Int = {left}", f"Int = {right}") == str(result)
    if -(1 << 31) <= right < 1 << 31:
        assert folded(rewrite, "Int", f"{operation} %v0, {right}", f"Int = {left}") == str(result)


@pytest.mark.parametrize(
    ("operation", "left", "right", "result"),
    [
        ("ILt", 1, 2, True),
        ("ILt", 2, 2, False),
        ("ILt", MIN, MAX, True),
        ("ILe", 2, 2, True),
        ("ILe", 3, 2, False),
        ("IEq", 2, 2, True),
        ("INe", 2, 2, False),
    ],
)
def test_int_comparisons_are_signed(rewrite: Rewriter, operation: str, left: int, right: int, result: bool) -> None:
    shown = str(result).lower()
    assert folded(rewrite, "Bool", f"{operation} %v0, %v1", f"Int = {left}", f"Int = {right}") == shown


@pytest.mark.parametrize(
    ("operation", "left", "result"),
    [("ILt", 4, True), ("ILt", 5, False), ("IGt", 6, True), ("IGt", 5, False), ("IEq", 5, True), ("INe", 5, False)],
)
def test_comparisons_with_an_immediate(rewrite: Rewriter, operation: str, left: int, result: bool) -> None:
    assert folded(rewrite, "Bool", f"{operation} %v0, 5", f"Int = {left}") == str(result).lower()


@pytest.mark.parametrize(
    ("operation", "left", "right", "result"),
    [
        ("DAdd", "0.1", "0.2", "0.30000000000000004"),
        ("DAdd", "-0.0", "0.0", "0.0"),
        ("DAdd", "-0.0", "-0.0", "-0.0"),
        ("DSub", "0.0", "0.0", "0.0"),
        ("DMul", "1e+300", "1e+300", "inf"),
        ("DMul", "-1.0", "0.0", "-0.0"),
        ("DDiv", "1.0", "4.0", "0.25"),
        ("DDiv", "1e+300", "1e-300", "inf"),
        ("DDiv", "1.0", "inf", "0.0"),
    ],
)
def test_double_arithmetic_is_ieee(rewrite: Rewriter, operation: str, left: str, right: str, result: str) -> None:
    assert folded(rewrite, "Double", f"{operation} %v0, %v1", f"Double = {left}", f"Double = {right}") == result


@pytest.mark.parametrize(
    ("operation", "left", "right", "result"),
    [
        ("DLt", "1.0", "2.0", "true"),
        ("DLt", "-0.0", "0.0", "false"),
        ("DLe", "0.0", "-0.0", "true"),
        ("DLt", "nan", "1.0", "false"),
        ("DLe", "1.0", "nan", "false"),
        ("DLe", "nan", "nan", "false"),
        ("DLe", "inf", "inf", "true"),
    ],
)
def test_double_comparisons_are_false_for_a_nan(
    rewrite: Rewriter, operation: str, left: str, right: str, result: str
) -> None:
    assert folded(rewrite, "Bool", f"{operation} %v0, %v1", f"Double = {left}", f"Double = {right}") == result


@pytest.mark.parametrize(
    ("type", "operation", "constant", "result"),
    [
        ("Int", "INeg %v0", "Int = 5", "-5"),
        ("Int", "INeg %v0", f"Int = {MIN}", str(MIN)),
        ("Double", "DNeg %v0", "Double = 0.0", "-0.0"),
        ("Double", "DNeg %v0", "Double = -2.5", "2.5"),
        ("Double", "Cast<Int->Double> %v0", "Int = 3", "3.0"),
        ("Double", "Cast<Int->Double> %v0", f"Int = {MAX}", "9.223372036854776e+18"),
        ("Int", "Cast<Double->Int> %v0", "Double = -2.9", "-2"),
        ("Int", "Cast<Double->Int> %v0", "Double = 1e+300", str(MAX)),
        ("Int", "Cast<Double->Int> %v0", "Double = -inf", str(MIN)),
        ("Int", "Cast<Double->Int> %v0", "Double = nan", "0"),
        ("Bool", "Cast<Int->Bool> %v0", "Int = -3", "true"),
        ("Bool", "Cast<Int->Bool> %v0", "Int = 0", "false"),
        ("Int", "Cast<Bool->Int> %v0", "Bool = true", "1"),
    ],
)
def test_negation_and_casts(rewrite: Rewriter, type: str, operation: str, constant: str, result: str) -> None:
    assert folded(rewrite, type, operation, constant) == result


@pytest.mark.parametrize(
    ("operation", "left", "right", "result"),
    [
        ("SEq", "Str = `a`", "Str = `a`", "true"),
        ("SEq", "Str = `a`", "Str = `b`", "false"),
        ("SNe", "Str = `a`", "Str = `b`", "true"),
        ("IEq", "Bool = true", "Bool = true", "true"),
        ("INe", "Bool = true", "Bool = true", "false"),
    ],
)
def test_texts_and_bools_compare(rewrite: Rewriter, operation: str, left: str, right: str, result: str) -> None:
    assert folded(rewrite, "Bool", f"{operation} %v0, %v1", left, right) == result


@pytest.mark.parametrize(
    ("type", "operation", "left", "right"),
    [
        ("Int", "IDiv", "1", "0"),
        ("Int", "IMod", "1", "0"),
        ("Double", "DDiv", "1.0", "0.0"),
        ("Double", "DDiv", "0.0", "-0.0"),
        ("Double", "DSub", "inf", "inf"),
        ("Double", "DMul", "inf", "0.0"),
        ("Double", "DAdd", "nan", "1.0"),
    ],
)
def test_traps_and_nans_are_left_to_the_machine(
    rewrite: Rewriter, type: str, operation: str, left: str, right: str
) -> None:
    constants = (f"{type} = {left}", f"{type} = {right}")
    assert folded(rewrite, type, f"{operation} %v0, %v1", *constants) == f"{operation} %v0, %v1"
    assert rewrite.count == 0


@pytest.mark.parametrize("operation", ["IDiv", "IMod"])
def test_a_division_by_the_immediate_zero_stays(rewrite: Rewriter, operation: str) -> None:
    assert folded(rewrite, "Int", f"{operation} %v0, 0", "Int = 1") == f"{operation} %v0, 0"


def test_what_is_folded_folds_what_follows(rewrite: Rewriter) -> None:
    before = """
        fn f1() -> Int {
            b0:
                %v0:Int = 2
                %v1:Int = IMul %v0, %v0
                jmp b1
            b1:
                %v2:Int = IAdd %v1, %v0
                ret %v2
        }"""
    after = """
        fn f1() -> Int {
            b0:
                %v0:Int = 2
                %v1:Int = 4
                jmp b1
            b1:
                %v2:Int = 6
                ret %v2
        }"""
    expected = "\n".join([line.strip() for line in after.strip().split("\n")])
    assert rewrite(const_fold, before) == expected
    assert rewrite.count == 2


def test_one_unknown_operand_is_enough_to_stay(rewrite: Rewriter) -> None:
    assert rewrite.keeps(
        const_fold,
        """
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Double):
                %v2:Int = 2
                %v3:Int = IAdd %v0, %v2
                %v4:Int = ISub %v2, %v0
                %v5:Double = 0.0
                %v6:Double = DMul %v1, %v5
                %v7:Bool = IEq %v0, %v0
                br_cmp ILt %v2, %v0, b1, b2
            b1:
                ret %v3
            b2:
                ret %v4
        }""",
    )


ARMS = "\n".join([f"b{arm}:\n%v{10 + arm}:Int = {arm}\nret %v{10 + arm}" for arm in (1, 2, 3)])


@pytest.mark.parametrize(
    ("constants", "branch", "arm"),
    [
        (["Bool = true"], "br %v0, b1, b2", 1),
        (["Bool = false"], "br %v0, b1, b2", 2),
        (["Int = 3"], "br_imm IGt %v0, 2, b1, b2", 1),
        (["Int = 3"], "br_imm INe %v0, 3, b1, b2", 2),
        (["Int = 3", "Int = 3"], "br_cmp ILe %v0, %v1, b1, b2", 1),
        (["Double = nan", "Double = 1.0"], "br_cmp DLt %v0, %v1, b1, b2", 2),
        (["Str = `a`", "Str = `b`"], "br_cmp SNe %v0, %v1, b1, b2", 1),
    ],
)
def test_a_branch_on_constants_becomes_a_jump(rewrite: Rewriter, constants: list[str], branch: str, arm: int) -> None:
    body = "\n".join([f"%v{index}:{constant}" for index, constant in enumerate(constants)])
    printed = rewrite(const_fold, f"fn f1() -> Int {{\nb0:\n{body}\n{branch}\n{ARMS}\n}}")
    # The other arms are no more.
    value = f"%v{len(constants)}"
    assert printed.split("\n")[2 + len(constants) :] == ["jmp b1", "b1:", f"{value}:Int = {arm}", f"ret {value}", "}"]


@pytest.mark.parametrize(("key", "arm"), [("Int = 2", 2), ("Int = 9", 3), ("Str = `y`", 2)])
def test_a_switch_on_a_constant_becomes_a_jump(rewrite: Rewriter, key: str, arm: int) -> None:
    cases = "1 -> b1\n2 -> b2" if key.startswith("Int") else "`x` -> b1\n`y` -> b2"
    printed = rewrite(const_fold, f"fn f1() -> Int {{\nb0:\n%v0:{key}\nswitch %v0\n{cases}\n_ -> b3\n{ARMS}\n}}")
    assert printed.split("\n")[3:] == ["jmp b1", "b1:", f"%v1:Int = {arm}", "ret %v1", "}"]


@pytest.mark.parametrize(
    ("type", "subject", "table", "result"),
    [
        ("Int", "Int = 2", "[1 -> 10, 2 -> 20], 0", "20"),
        ("Int", "Int = 3", "[1 -> 10, 2 -> 20], 0", "0"),
        ("Str", "Str = `b`", "[`a` -> `x`, `b` -> `y`], `z`", "`y`"),
        ("Bool", "Str = `b`", "[`a` -> true, `b` -> false], true", "false"),
        ("Double", "Int = 1", "[1 -> -0.0], 1.0", "-0.0"),
    ],
)
def test_a_lookup_of_a_constant_is_a_constant(
    rewrite: Rewriter, type: str, subject: str, table: str, result: str
) -> None:
    assert folded(rewrite, type, f"Lookup %v0 {table}", subject) == result


@pytest.mark.parametrize(
    ("type", "call", "constants", "result"),
    [
        ("Int", "twice(%v0)", ["Int = 4"], "8"),
        ("Double", "twice(%v0)", ["Double = 1.5"], "3.0"),
        ("Str", "concat(%v0, %v1)", ["Str = `a`", "Str = `é`"], "`aé`"),
        ("Str", "repeat(%v0, %v1)", ["Str = `ab`", "Int = 3"], "`ababab`"),
        ("Bool", "not(%v0)", ["Bool = true"], "false"),
        ("Int", "middle(%v0, %v1, %v2)", ["Int = 3", "Int = 1", "Int = 2"], "2"),
    ],
)
def test_a_pure_host_call_of_constants_is_its_result(
    rewrite: Rewriter, type: str, call: str, constants: list[str], result: str
) -> None:
    assert folded(rewrite, type, f"Sys host.{call}", *constants) == result
    assert rewrite.count == 1


@pytest.mark.parametrize(
    ("type", "call", "constants"),
    [
        ("Int", "twice(%v0)", ["Int = 7"]),  # traps
        ("Int", "fail(%v0)", ["Int = 1"]),  # raises
        ("Int", "next(%v0)", ["Int = 1"]),  # is not pure
        ("Int", "declared(%v0)", ["Int = 1"]),  # has no implementation
        ("Int", "big()", []),  # returns no Int
        ("Double", "nan()", []),
        ("Str", "surrogate()", []),  # returns no UTF-8
        ("Str", "repeat(%v0, %v1)", ["Str = `ab`", "Int = 4000000000"]),  # would take too long
    ],
)
def test_a_host_call_that_cannot_be_made_now_stays(
    rewrite: Rewriter, type: str, call: str, constants: list[str]
) -> None:
    assert folded(rewrite, type, f"Sys host.{call}", *constants) == f"Sys host.{call}"
    assert rewrite.count == 0


def test_a_host_call_with_an_unknown_argument_stays(rewrite: Rewriter) -> None:
    assert rewrite.keeps(const_fold, "fn f1(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = Sys host.twice(%v0)\nret %v1\n}")
