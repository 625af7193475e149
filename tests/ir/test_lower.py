"""Lowering, in printed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from garden.ir import ir as op
from garden.semantics import word_of

if TYPE_CHECKING:
    from tests.ir.conftest import Programs

Lower = Callable[[str], str]


def function(text: str, row: int) -> str:
    """The lines inside one printed function."""
    start = text.index(f"fn f{row}(")
    return text[text.index("\n", start) + 1 : text.index("\n}", start)]


def lines(*expected: str) -> str:
    return "\n".join(expected)


# Literals.


@pytest.mark.parametrize(
    ("literal", "type", "shown"),
    [
        ("0", "Int", "0"),
        ("007", "Int", "7"),
        ("9223372036854775807", "Int", "9223372036854775807"),
        ("-9223372036854775808", "Int", "-9223372036854775808"),
        ("-(9223372036854775808)", "Int", "-9223372036854775808"),
        ("+5", "Int", "5"),
        ("3.", "Double", "3.0"),
        ("0.1", "Double", "0.1"),
        ("-0.0", "Double", "-0.0"),
        ("true", "Bool", "true"),
        ("false", "Bool", "false"),
        ('"a b"', "Str", "`a b`"),
        ('""', "Str", "``"),
    ],
)
def test_a_literal_is_one_constant(lower: Lower, literal: str, type: str, shown: str) -> None:
    assert function(lower(literal), 1) == lines("b0:", f"%v0:{type} = {shown}", "ret %v0")


@pytest.mark.parametrize(
    "literal",
    [
        "9223372036854775808",
        "-9223372036854775809",
        "-(9223372036854775808 as Double)",
        "-(9223372036854775808 + 1)",
        "+9223372036854775808",
        "9" * 5000,
    ],
)
def test_an_integer_outside_64_bits_is_reported_where_it_stands(programs: Programs, literal: str) -> None:
    programs.lower(f"let a = 1\n{literal}")
    (diagnostic,) = programs.diagnostics
    digits = literal.strip("+-() asDouble1").rstrip("+ ")
    assert (diagnostic.code, diagnostic.length) == ("E0401", len(digits))
    assert diagnostic.start == 10 + literal.index(digits)


def test_leading_zeros_do_not_make_an_integer_too_large(lower: Lower) -> None:
    assert "%v0:Int = 12" in lower("0" * 5000 + "12")


def test_a_double_that_rounds_to_infinity_is_reported(programs: Programs) -> None:
    programs.lower(f"let a = {'9' * 309}.0\nlet b = {'1' * 309}.0")
    (diagnostic,) = programs.diagnostics
    assert (diagnostic.code, diagnostic.start, diagnostic.length) == ("E0402", 8, 311)


def test_every_mistake_is_reported(programs: Programs) -> None:
    programs.lower("fn f() Int { 9999999999999999999 }\nf() + 9999999999999999999")
    assert [diagnostic.code for diagnostic in programs.diagnostics] == ["E0401", "E0401"]


# Operators.


@pytest.mark.parametrize(
    ("type", "operator", "result", "shown"),
    [
        ("Int", "+", "Int", "IAdd %v0, %v1"),
        ("Int", "-", "Int", "ISub %v0, %v1"),
        ("Int", "*", "Int", "IMul %v0, %v1"),
        ("Int", "/", "Int", "IDiv %v0, %v1"),
        ("Int", "%", "Int", "IMod %v0, %v1"),
        ("Int", "<", "Bool", "ILt %v0, %v1"),
        ("Int", ">", "Bool", "ILt %v1, %v0"),
        ("Int", "<=", "Bool", "ILe %v0, %v1"),
        ("Int", ">=", "Bool", "ILe %v1, %v0"),
        ("Int", "==", "Bool", "IEq %v0, %v1"),
        ("Int", "!=", "Bool", "INe %v0, %v1"),
        ("Double", "+", "Double", "DAdd %v0, %v1"),
        ("Double", "-", "Double", "DSub %v0, %v1"),
        ("Double", "*", "Double", "DMul %v0, %v1"),
        ("Double", "/", "Double", "DDiv %v0, %v1"),
        ("Double", "<", "Bool", "DLt %v0, %v1"),
        ("Double", ">", "Bool", "DLt %v1, %v0"),
        ("Double", "<=", "Bool", "DLe %v0, %v1"),
        ("Double", ">=", "Bool", "DLe %v1, %v0"),
        ("Bool", "==", "Bool", "IEq %v0, %v1"),
        ("Bool", "!=", "Bool", "INe %v0, %v1"),
        ("Str", "==", "Bool", "SEq %v0, %v1"),
        ("Str", "!=", "Bool", "SNe %v0, %v1"),
    ],
)
def test_an_operator_is_one_instruction(lower: Lower, type: str, operator: str, result: str, shown: str) -> None:
    text = lower(f"fn f(a:{type} b:{type}) {result} {{ a {operator} b }}")
    assert function(text, 1) == lines(f"b0(%v0:{type}, %v1:{type}):", f"%v2:{result} = {shown}", "ret %v2")


@pytest.mark.parametrize(
    ("source", "target", "shown"),
    [
        ("Int", "Double", "Cast<Int->Double> %v0"),
        ("Double", "Int", "Cast<Double->Int> %v0"),
        ("Int", "Bool", "Cast<Int->Bool> %v0"),
        ("Bool", "Int", "Cast<Bool->Int> %v0"),
    ],
)
def test_a_cast_is_one_instruction(lower: Lower, source: str, target: str, shown: str) -> None:
    text = lower(f"fn f(a:{source}) {target} {{ a as {target} }}")
    assert function(text, 1) == lines(f"b0(%v0:{source}):", f"%v1:{target} = {shown}", "ret %v1")


def test_a_sign_is_a_negation_or_nothing(lower: Lower) -> None:
    text = lower("fn f(a:Int b:Double) Double { let c = -a let d = +a --b }")
    assert function(text, 1) == lines(
        "b0(%v0:Int, %v1:Double):", "%v2:Int = INeg %v0", "%v3:Double = DNeg %v1", "%v4:Double = DNeg %v3", "ret %v4"
    )


def test_operands_are_evaluated_from_left_to_right(lower: Lower) -> None:
    text = lower("fn a() Int { 1 } fn b() Int { 2 } fn c() Int { 3 }\na() > b() * c()")
    assert function(text, 4) == lines(
        "b0:",
        "%v0:Int = Call f1()",
        "%v1:Int = Call f2()",
        "%v2:Int = Call f3()",
        "%v3:Int = IMul %v1, %v2",
        "%v4:Bool = ILt %v3, %v0",
        "ret %v4",
    )


# Names.


def test_a_name_is_the_value_that_it_was_bound_to(lower: Lower) -> None:
    text = lower("let a = 1 let b = a let a = a + b a")
    assert function(text, 1) == lines("b0:", "%v0:Int = 1", "%v1:Int = IAdd %v0, %v0", "ret %v1")


def test_a_parameter_can_be_shadowed(lower: Lower) -> None:
    text = lower("fn f(a:Int b:Int) Int { let b = a let a = b * b a }")
    assert function(text, 1) == lines("b0(%v0:Int, %v1:Int):", "%v2:Int = IMul %v0, %v0", "ret %v2")


def test_what_an_arm_binds_ends_with_it(lower: Lower) -> None:
    text = lower("fn f(a:Int) Int { let b = match { a == 0 { let a = a + 5 a } { let a = 7 a } } a + b }")
    assert function(text, 1) == lines(
        "b0(%v0:Int):",
        "%v1:Int = 0",
        "%v2:Bool = IEq %v0, %v1",
        "br %v2, b1, b2",
        "b1:",
        "%v3:Int = 5",
        "%v4:Int = IAdd %v0, %v3",
        "jmp b3(%v4)",
        "b2:",
        "%v5:Int = 7",
        "jmp b3(%v5)",
        "b3(%v6:Int):",
        "%v7:Int = IAdd %v0, %v6",
        "ret %v7",
    )


# Matches.


def test_conditions_are_evaluated_in_order_and_only_while_none_holds(lower: Lower) -> None:
    text = lower("fn p(n:Int) Bool { n > 0 }\nmatch { p(1) { 10 } p(2) { 20 } { 30 } }")
    assert function(text, 2) == lines(
        "b0:",
        "%v0:Int = 1",
        "%v1:Bool = Call f1(%v0)",
        "br %v1, b1, b2",
        "b1:",
        "%v2:Int = 10",
        "jmp b5(%v2)",
        "b2:",
        "%v3:Int = 2",
        "%v4:Bool = Call f1(%v3)",
        "br %v4, b3, b4",
        "b3:",
        "%v5:Int = 20",
        "jmp b5(%v5)",
        "b4:",
        "%v6:Int = 30",
        "jmp b5(%v6)",
        "b5(%v7:Int):",
        "ret %v7",
    )


def test_a_match_without_a_value_passes_none(lower: Lower) -> None:
    text = lower('import "io"\nfn f(a:Bool) { match { a { io.println("y") let b = 1 } { } } }')
    assert function(text, 1) == lines(
        "b0(%v0:Bool):",
        "br %v0, b1, b2",
        "b1:",
        "%v1:Str = `y`",
        "Sys io.println(%v1)",
        "%v2:Int = 1",
        "jmp b3",
        "b2:",
        "jmp b3",
        "b3:",
        "ret",
    )


def test_a_match_with_only_a_default_needs_no_blocks(lower: Lower) -> None:
    text = lower("let a = 1 let b = match { { let a = 2 a } } a + b")
    assert function(text, 1) == lines("b0:", "%v0:Int = 1", "%v1:Int = 2", "%v2:Int = IAdd %v0, %v1", "ret %v2")


def test_the_default_arm_may_stand_first(lower: Lower) -> None:
    text = lower("fn f(a:Bool) Int { match { { 1 } a { 2 } } }")
    assert function(text, 1) == lines(
        "b0(%v0:Bool):",
        "br %v0, b1, b2",
        "b1:",
        "%v1:Int = 2",
        "jmp b3(%v1)",
        "b2:",
        "%v2:Int = 1",
        "jmp b3(%v2)",
        "b3(%v3:Int):",
        "ret %v3",
    )


def test_matches_nest_in_arms_and_conditions(lower: Lower) -> None:
    text = lower(
        "fn id(a:Bool) Bool { a }\n"
        "fn f(a:Bool b:Bool) Int { match { id(match { a { b } { a } }) { match { b { 1 } { 2 } } } { 3 } } }"
    )
    assert function(text, 2) == lines(
        "b0(%v0:Bool, %v1:Bool):",
        "br %v0, b1, b2",
        "b1:",
        "jmp b3(%v1)",
        "b2:",
        "jmp b3(%v0)",
        "b3(%v2:Bool):",
        "%v3:Bool = Call f1(%v2)",
        "br %v3, b4, b8",
        "b4:",
        "br %v1, b5, b6",
        "b5:",
        "%v4:Int = 1",
        "jmp b7(%v4)",
        "b6:",
        "%v5:Int = 2",
        "jmp b7(%v5)",
        "b7(%v6:Int):",
        "jmp b9(%v6)",
        "b8:",
        "%v7:Int = 3",
        "jmp b9(%v7)",
        "b9(%v8:Int):",
        "ret %v8",
    )


def test_a_match_can_be_an_argument_between_others(lower: Lower) -> None:
    text = lower("fn f(a:Int b:Int c:Int) Int { b }\nf(1 match { true { 2 } { 3 } } 4)")
    assert function(text, 2) == lines(
        "b0:",
        "%v0:Int = 1",
        "%v1:Bool = true",
        "br %v1, b1, b2",
        "b1:",
        "%v2:Int = 2",
        "jmp b3(%v2)",
        "b2:",
        "%v3:Int = 3",
        "jmp b3(%v3)",
        "b3(%v4:Int):",
        "%v5:Int = 4",
        "%v6:Int = Call f1(%v0, %v4, %v5)",
        "ret %v6",
    )


# Functions, calls, and the top level.


def test_functions_call_each_other_whatever_their_order(lower: Lower) -> None:
    text = lower("odd(3)\nfn odd(n:Int) Bool { even(n) } fn even(n:Int) Bool { odd(n) }")
    assert function(text, 1) == lines("b0(%v0:Int):", "%v1:Bool = Call f2(%v0)", "ret %v1")
    assert function(text, 2) == lines("b0(%v0:Int):", "%v1:Bool = Call f1(%v0)", "ret %v1")
    assert function(text, 3) == lines("b0:", "%v0:Int = 3", "%v1:Bool = Call f1(%v0)", "ret %v1")


def test_rows_are_those_of_the_checked_program_and_entry_comes_last(programs: Programs) -> None:
    ir = programs.lower("fn b(x:Int y:Str) Str { y }\nfn a() { }\n1.5")
    symbols = ir.checked.ast.symbols
    rows = range(1, ir.function_count)
    assert [symbols.lookup(ir.function_name[row]) for row in rows][:2] == [b"b", b"a"]
    assert [ir.checked.functions[row][3] for row in (1, 2)] == [ir.function_name[row] for row in (1, 2)]
    assert [str(ir.checked.types.type(ir.function_result[row])) for row in rows] == ["Str", "Void", "Double"]
    assert [ir.function_parameters[row] for row in rows] == [2, 0, 0]
    assert [ir.function_pos[row] for row in rows] == [3, 31, 0]


def test_a_call_without_a_value_is_no_value(lower: Lower) -> None:
    text = lower("fn f() { } fn g() { f() f() }")
    assert function(text, 1) == lines("b0:", "ret")
    assert function(text, 2) == lines("b0:", "Call f1()", "Call f1()", "ret")


def test_items_before_the_last_are_evaluated_and_dropped(lower: Lower) -> None:
    text = lower('import "io"\nfn f() Int { 1 io.println(2) 3 }')
    assert function(text, 1) == lines(
        "b0:", "%v0:Int = 1", "%v1:Int = 2", "Sys io.println(%v1)", "%v2:Int = 3", "ret %v2"
    )


def test_the_overload_that_the_checker_chose_is_called(programs: Programs) -> None:
    ir = programs.lower('import ("math" "str")\nlet a = math.abs(-2.5) str.from(a)')
    calls = [row for row in range(ir.value_count) if ir.op[row] == op.SYS]
    hosts = [str(ir.checked.hosts[ir.a[row]]) for row in calls]
    assert [host[host.index(":") + 1 :] for host in hosts] == ["Double) Double", "Double) Str"]


@pytest.mark.parametrize("program", ["", 'import "io"', "fn f() Int { 1 }", "let a = 1", "fn f() { } f()"])
def test_a_program_whose_last_item_has_no_value_returns_nothing(lower: Lower, program: str) -> None:
    text = lower(program)
    assert text.endswith("\nret\n}")
    assert "->" not in text[text.rindex("fn f") :]


def test_declarations_are_no_items_of_entry(lower: Lower) -> None:
    text = lower("5\nfn f() { }")
    assert "fn f2() -> Int {" in text
    assert function(text, 2) == lines("b0:", "%v0:Int = 5", "ret %v0")


def test_a_function_that_is_only_declared_cannot_be_called(programs: Programs) -> None:
    programs.lower('extern "gpu" { fn draw(n:Int) Int fn clear() }\ngpu.draw(1)')
    (diagnostic,) = programs.diagnostics
    assert (diagnostic.code, diagnostic.length) == ("E0325", 4)
    assert diagnostic.message == "`gpu.draw` is declared but not implemented"
    assert diagnostic.notes == ("no package has `fn draw(n:Int) Int`",)


def test_a_declared_function_that_a_package_implements_can_be_called(lower: Lower) -> None:
    text = lower('extern "math" { fn sqrt(n:Double) Double }\nmath.sqrt(2.0)')
    assert function(text, 1) == lines("b0:", "%v0:Double = 2.0", "%v1:Double = Sys math.sqrt(%v0)", "ret %v1")


# Records and arrays.


def test_nested_record_literals_are_built_in_place(lower: Lower) -> None:
    text = lower("{ a: 1 b: { c: 2.0 d: { e: true } } f: 3 }")
    assert function(text, 1) == lines(
        "b0:",
        "%v0:Record<a: Int b: Record<c: Double d: Record<e: Bool>> f: Int> = Alloc(size=32,align=8)",
        "%v1:Int = 1",
        "Store %v0+0, %v1",
        "%v2:Double = 2.0",
        "Store %v0+8, %v2",
        "%v3:Bool = true",
        "Store %v0+16, %v3",
        "%v4:Int = 3",
        "Store %v0+24, %v4",
        "ret %v0",
    )


def test_a_record_that_is_no_literal_is_copied_into_the_outer_one(lower: Lower) -> None:
    record = "Record<b: Str c: Record<d: Double e: Array<Int>>>"
    text = lower(f"fn f(r:{record}) Record<a: Int r: {record} z: Int> {{ {{ a: 1 r: r z: 2 }} }}")
    assert function(text, 1) == lines(
        f"b0(%v0:{record}):",
        f"%v1:Record<a: Int r: {record} z: Int> = Alloc(size=40,align=8)",
        "%v2:Int = 1",
        "Store %v1+0, %v2",
        "%v3:Str = Load %v0+0",
        "Store %v1+8, %v3",
        "%v4:Double = Load %v0+8",
        "Store %v1+16, %v4",
        "%v5:Array<Int> = Load %v0+16",
        "Store %v1+24, %v5",
        "%v6:Int = 2",
        "Store %v1+32, %v6",
        "ret %v1",
    )


def test_no_record_is_ever_stored_as_an_address(programs: Programs) -> None:
    ir = programs.lower(
        "fn make(n:Int) Record<x: Int> { { x: n } }\n"
        "let a = make(1)\nlet b = { p: a q: make(2) r: { s: a } }\nlet c = [a b.p b.r.s make(3) { x: 4 }]\n"
        "let d = { p: b } [d { p: b }]"
    )
    types = ir.checked.types
    stored = [ir.a[row] for row in range(ir.value_count) if ir.op[row] == op.STORE]
    assert stored
    assert "Record" not in [types.type(ir.type[value]).name for value in stored]


def test_a_field_is_loaded_and_a_nested_record_is_an_address(lower: Lower) -> None:
    inner = "Record<d: Str e: Int>"
    text = lower(f"fn f(r:Record<a: Int c: {inner}>) Int {{ let d = r.c.d let c = r.c r.a + c.e }}")
    assert function(text, 1) == lines(
        f"b0(%v0:Record<a: Int c: {inner}>):",
        f"%v1:{inner} = AddrOf %v0+8",
        "%v2:Str = Load %v1+0",
        f"%v3:{inner} = AddrOf %v0+8",
        "%v4:Int = Load %v0+0",
        "%v5:Int = Load %v3+8",
        "%v6:Int = IAdd %v4, %v5",
        "ret %v6",
    )


def test_an_array_has_its_length_before_its_members(lower: Lower) -> None:
    text = lower("fn f(a:Int) Array<Int> { [5 a] }")
    assert function(text, 1) == lines(
        "b0(%v0:Int):",
        "%v1:Array<Int> = Alloc(size=24,align=8)",
        "%v2:Int = 2",
        "Store %v1+0, %v2",
        "%v3:Int = 5",
        "Store %v1+8, %v3",
        "Store %v1+16, %v0",
        "ret %v1",
    )


def test_records_lie_inline_in_arrays_and_arrays_do_not(lower: Lower) -> None:
    text = lower("let r = { x: 1 y: true } let a = [r { x: 2 y: false }] [a]")
    record = "Record<x: Int y: Bool>"
    assert function(text, 1) == lines(
        "b0:",
        f"%v0:{record} = Alloc(size=16,align=8)",
        "%v1:Int = 1",
        "Store %v0+0, %v1",
        "%v2:Bool = true",
        "Store %v0+8, %v2",
        f"%v3:Array<{record}> = Alloc(size=40,align=8)",
        "%v4:Int = 2",
        "Store %v3+0, %v4",
        "%v5:Int = Load %v0+0",
        "Store %v3+8, %v5",
        "%v6:Bool = Load %v0+8",
        "Store %v3+16, %v6",
        "%v7:Int = 2",
        "Store %v3+24, %v7",
        "%v8:Bool = false",
        "Store %v3+32, %v8",
        f"%v9:Array<Array<{record}>> = Alloc(size=16,align=8)",
        "%v10:Int = 1",
        "Store %v9+0, %v10",
        "Store %v9+8, %v3",
        "ret %v9",
    )


def test_a_record_from_a_match_passes_its_address(lower: Lower) -> None:
    text = lower("fn f(a:Bool r:Record<x: Int>) Int { let s = match { a { r } { { x: 1 } } } s.x }")
    assert function(text, 1) == lines(
        "b0(%v0:Bool, %v1:Record<x: Int>):",
        "br %v0, b1, b2",
        "b1:",
        "jmp b3(%v1)",
        "b2:",
        "%v2:Record<x: Int> = Alloc(size=8,align=8)",
        "%v3:Int = 1",
        "Store %v2+0, %v3",
        "jmp b3(%v2)",
        "b3(%v4:Record<x: Int>):",
        "%v5:Int = Load %v4+0",
        "ret %v5",
    )


# Positions.


@pytest.mark.parametrize(
    ("program", "opcode", "at"),
    [
        ("let a = 7 a / a", op.IDIV, "/ a"),
        ("let a = 7 a % a", op.IMOD, "% a"),
        ("let a = 7.0 a / a", op.DDIV, "/ a"),
        ("fn f(n:Int) Int { n } f(1)", op.CALL, "f(1)"),
        ('import "testing" testing.assert(true)', op.SYS, "assert("),
        ("let r = { x: 1 } r.x", op.ALLOC, "{ x"),
        ("let r = { x: 1 } r.x", op.LOAD, "x"),
        ("[1 2]", op.ALLOC, "["),
        ("2 as Double", op.INT_TO_DOUBLE, "as"),
        ("-5", op.CONST, "-5"),
        ("match { true { 1 } { 2 } }", op.BRANCH, "true"),
        ("match { true { 1 } { 2 } }", op.PARAM, "match"),
    ],
)
def test_an_instruction_stands_where_its_source_does(programs: Programs, program: str, opcode: int, at: str) -> None:
    ir = programs.lower(program)
    (row,) = [row for row in range(ir.value_count) if ir.op[row] == opcode]
    assert program[ir.pos[row] :].startswith(at)


# Depth and length.

#: Far more than Python has frames.
DEPTH = 5000


def nested(opening: str, inside: str, closing: str, *, levels: int = 1) -> str:
    """A construct inside itself, `DEPTH` levels deep."""
    count = DEPTH // levels
    return opening * count + inside + closing * count


@pytest.mark.parametrize(
    "program",
    [
        nested("f(", "1", ")"),
        nested("(1 + ", "1", ")"),
        nested("-(", "a", ")", levels=2),
        nested("match { b { ", "1", " } { 2 } }"),
        nested("match { { ", "1", " } }"),
        nested("match { b { 1 } { ", "2", " } }"),
        nested("g(match { b { b } { ", "b", " } })", levels=2),
        nested("{ x: ", "1", " }"),
        nested("[", "1", "]"),
        nested("[{ x: ", "1", " }]", levels=2),
    ],
)
def test_deep_nesting_needs_no_deep_recursion(programs: Programs, program: str) -> None:
    ir = programs.lower(f"fn f(n:Int) Int {{ n }} fn g(b:Bool) Bool {{ b }} let a = 1 let b = true {program}")
    assert ir.value_count > 1


def test_long_chains_need_no_deep_recursion(lower: Lower) -> None:
    text = lower("let a = 1 " + "a" + " + a" * 5000)
    assert text.count("IAdd") == 5000


def test_the_ir_grows_in_proportion_to_the_program(programs: Programs) -> None:
    def rows(count: int) -> int:
        functions = "".join([f"fn f{n}(a:Int) Int {{ a + {n} }}\n" for n in range(count)])
        arms = "".join([f"x == {n} {{ f{n}(x) }} " for n in range(count)])
        lets = "".join([f"let x = f{n}(x) + x\n" for n in range(count)])
        return programs.lower(f"{functions}let x = 1\n{lets}match {{ {arms} {{ x }} }}").value_count

    small, large = rows(50), rows(500)
    assert large < 10 * small


def test_a_large_record_is_copied_as_a_block(programs: Programs) -> None:
    fields = " ".join([f"f{n}: {n}" for n in range(1000)])
    ir = programs.lower(f"let r = {{ {fields} }} {{ a: r b: r }}")
    copies = [row for row in range(ir.value_count) if ir.op[row] == op.COPY]
    assert [ir.imm[row] for row in copies] == [8000, 8000]
    assert op.LOAD not in [ir.op[row] for row in range(ir.value_count)]


def test_records_without_words_cost_nothing_to_copy(programs: Programs) -> None:
    twice = "\n".join([f"let r{n} = {{ a: r{n - 1} b: r{n - 1} }}" for n in range(1, 16)])
    ir = programs.lower(f"let r0 = {{}}\n{twice}\n{{ x: 1 r: r15 y: r15 }}")
    stores = [row for row in range(ir.value_count) if ir.op[row] == op.STORE]
    assert len(stores) == 1


def test_doubles_are_kept_to_the_bit(programs: Programs) -> None:
    ir = programs.lower("0.1 + 179769313486231570000000000000000000000.5")
    words = [ir.imm[row] for row in range(ir.value_count) if ir.op[row] == op.CONST]
    assert words == [word_of(0.1), word_of(1.7976931348623157e38)]
