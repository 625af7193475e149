"""What is reported of wrong programs, and what is left of them."""

from __future__ import annotations

import pytest

from tests.support.parsed import parse


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        # Expressions.
        ("1 +", ["E0203"]),
        ("1 + )", ["E0203 )"]),
        ("(1", ["E0201 ("]),
        ("()", ["E0203 )"]),
        ("[1", ["E0201 ["]),
        ("[1 }", ["E0203 }"]),
        ("f(1", ["E0201 ("]),
        ("f(1 ]", ["E0203 ]"]),
        (")", ["E0201 )"]),
        ("}", ["E0201 }"]),
        ("* 2", ["E0201 *"]),
        ("!x", ["E0201 !"]),
        ("x?", ["E0201 ?"]),
        (".5", ["E0201 ."]),
        ("x.", ["E0202"]),
        ("x.5", ["E0202 5"]),
        ("x.match", ["E0202 match"]),
        ("1 + match { { 1 } }", ["E0203 match"]),
        ("(match { { 1 } })", ["E0203 match"]),
        ("[let x = 1]", ["E0203 let"]),
        ("{ a: let b = 1 }", ["E0203 let"]),
        ("(n -1)", ["E0201 -"]),
        # Records.
        ("{ 1 }", ["E0202 1"]),
        ("{ a 1 }", ["E0201 1"]),
        ("{ a: }", ["E0203 }"]),
        ("{ a: 1", ["E0201 {"]),
        # Casts and types.
        ("x as", ["E0210"]),
        ("x as y", ["E0210 y"]),
        ("x as T<Int>", ["E0210 T"]),
        ("x as Option", ["E0206"]),
        ("x as Option Int", ["E0206 Int"]),
        ("x as Option<>", ["E0210 >"]),
        ("x as Array<Int", ["E0206"]),
        ("x as Array<Int Str>", ["E0206 Str"]),
        ("x as Foreign<>", ["E0202 >"]),
        ("x as Foreign<Int>", ["E0202 Int"]),
        ("x as Record<Int>", ["E0202 Int"]),
        ("x as Record<a Int>", ["E0201 Int"]),
        ("x as Record<a: >", ["E0210 >"]),
        # Items.
        ("let", ["E0202"]),
        ("let 1 = 2", ["E0202 1"]),
        ("let match = 2", ["E0202 match"]),
        ("let Int = 2", ["E0202 Int"]),
        ("let x 1", ["E0201 1"]),
        ("let x == 1", ["E0201 =="]),
        ("let x =", ["E0203"]),
        ("import", ["E0205"]),
        ("import io", ["E0205 io"]),
        ("import (io str)", ["E0205 io", "E0205 str"]),
        ('import ("io"', ["E0205"]),
        ("import (1)", ["E0205 1"]),
        ("fn", ["E0202"]),
        ("fn (", ["E0202 ("]),
        ("fn match() Int { 1 }", ["E0202 match"]),
        ("fn fn() { ) }", ["E0202 fn", "E0201 )"]),
        ("fn f", ["E0201"]),
        ("fn f(", ["E0202"]),
        ("fn f(1) {}", ["E0202 1"]),
        ("fn f(a) {}", ["E0201 )"]),
        ("fn f(a Int) {}", ["E0201 Int"]),
        ("fn f(a: T) {}", ["E0210 T"]),
        ("fn f() T {}", ["E0210 T"]),
        ("fn f() Int", ["E0201"]),
        ("fn f() Int 1", ["E0201 1"]),
        ("fn f() {", ["E0201 f"]),
        ("fn f() { 1", ["E0201 f"]),
        ("fn f() { g( }", ["E0203 }"]),
        ("extern", ["E0201"]),
        ("extern io {}", ["E0201 io"]),
        ('extern "io"', ["E0201"]),
        ('extern "io" {', ["E0201 {"]),
        ('extern "io" { let x = 1 }', ["E0201 let"]),
        ('extern "io" { fn f() { 1 } fn g() }', ["E0201 {"]),
        ('extern "io" { fn f(x: ) fn g( fn h() }', ["E0210 )", "E0202 fn"]),
        ('extern "io" { extern "x" {} }', ["E0201 extern"]),
        # Matches.
        ("match", ["E0201"]),
        ("match x { { 1 } }", ["E0201 x"]),
        ("match {}", ["E0204 match"]),
        ("match { a { 1 } }", ["E0204 match"]),
        ("match { a }", ["E0201 }"]),
        ("match { a b { 1 } { 2 } }", ["E0201 b"]),
        ("match { { a: 1 }.a { 2 } {} }", ["E0201 :", "E0203 ."]),
        ("match {", ["E0201 match"]),
        ("match { a {", ["E0201 {"]),
        ("match { let x = 1 { 2 } { 3 } }", ["E0203 let"]),
        # Docs.
        ("#! doc", ["E0207 #! doc"]),
        ("#! doc\n1", ["E0207 #! doc"]),
        ('#! doc\nimport "io"', ["E0207 #! doc"]),
        ("#! doc\nmatch { { 1 } }", ["E0207 #! doc"]),
        ("fn f() { #! doc\n}", ["E0207 #! doc"]),
        ("f(#! doc\n1)", ["E0207 #! doc"]),
        ("[#! a\n1 #! b\n2]", ["E0207 #! a", "E0207 #! b"]),
        ("1 + #! doc\n2", ["E0207 #! doc"]),
        ("{ #! doc\na: 1 }", ["E0207 #! doc"]),
        ("(1 #! doc\n)", ["E0207 #! doc"]),
        ('extern "p" { #! doc\n}', ["E0207 #! doc"]),
        # Functions in the wrong place.
        ("fn f() { fn g() {} }", ["E0208 fn"]),
        ("match { { fn g() {} } }", ["E0208 fn"]),
        ("let x = fn g() {}", ["E0208 fn"]),
        ("f(fn g() {})", ["E0208 fn"]),
        ("fn f() { fn g() { fn h() {} } }", ["E0208 fn", "E0208 fn"]),
        ("[fn g() {}]", ["E0203 fn"]),
    ],
)
def test_a_mistake_is_reported_where_it_is_and_once(text: str, mistakes: list[str]) -> None:
    parsed = parse(text)
    assert parsed.mistakes == mistakes, "\n".join(parsed.rendered)


def test_one_run_reports_mistakes_all_over_a_program() -> None:
    parsed = parse(
        """
import io
let a = (1 + ) * 2
let b 3
fn f(x Int) Int {
    let c = { n 1 }
    match {
        x ? { c. }
        x == 1 { [1 2 }
        { g(]) }
    }
}
let d = 1.2.3 + $
#! lost
d
fn g() Foo { ) }
let e = "x
"""
    )
    assert parsed.mistakes == [
        "E0205 io",
        "E0203 )",
        "E0201 3",
        "E0201 Int",
        "E0201 1",
        "E0201 ?",
        "E0202 }",
        "E0203 }",
        "E0203 ]",
        "E0103 1.2.3",
        "E0101 $",
        "E0207 #! lost",
        "E0210 Foo",
        "E0201 )",
        'E0102 "x',
    ]


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ("let a = (1 + ) let b = 2", ["let"]),
        ("let a = )\nf(1)", ["call"]),
        ("f(1 ? 2)\ng(3)", ["call"]),
        ("f(g(1 ?\nh(2)) 3)\ni(4)", ["call"]),
        ("let a = { x ? }\nb", ["ident"]),
        ("let a 1\nlet b = 2", ["let", "let"]),
        ("import io\nio.f()", ["import", "call"]),
        ("let a = 1 +\nlet b = 2", ["let"]),
        ("let a = [1 let b = 2", ["let"]),
        ("match { a ? { 1 } { 2 } }\nb", ["ident"]),
        ("let x = f(match { a ? { 1 } { 2 } } 3)\nb", ["ident"]),
        ("match { a { 1 } }\nb", ["match", "ident"]),
        ("fn f(x ?) Int { 1 }\nfn g() {}", ["fn"]),
        ("fn f() Int { 1 + }\nfn g() {}", ["fn", "fn"]),
        ("fn f() Int { match { a ? { 1 } { 2 } } 3 }\nb", ["fn", "ident"]),
        ("fn f() { fn g() {} 1 }\nb", ["fn", "fn", "ident"]),
        ("let x = fn g() {}\nb", ["fn", "ident"]),
        ('extern "p" { fn a() let fn b() }\nx', ["extern", "ident"]),
        ("x )\ny", ["ident", "ident"]),
    ],
)
def test_parsing_resumes_behind_a_mistake(text: str, roots: list[str]) -> None:
    parsed = parse(text)
    assert len(parsed.mistakes) == 1, "\n".join(parsed.rendered)
    assert parsed.roots == roots


def test_a_function_that_lacks_its_end_is_one_mistake_before_the_next_function() -> None:
    parsed = parse("fn f() {\n  match { a { 1\n}\nfn g() { 2 }\n#! doc\nfn h() { 3 }\nf()")
    assert parsed.mistakes == ["E0201 match"]
    assert parsed.roots == ["fn", "fn", "fn", "call"]


def test_a_function_with_docs_ends_a_function_that_lacks_its_end() -> None:
    parsed = parse("fn f() {\n  1\n#! doc\nfn g() { 2 }")
    assert parsed.mistakes == ["E0201 f"]
    assert parsed.tree == "(fn f () -> Void\n  1\n)\n#! doc\n(fn g () -> Void\n  2\n)\n"


def test_many_functions_that_lack_their_ends_are_as_many_mistakes() -> None:
    parsed = parse("fn f() { 1\n" * 50)
    assert parsed.mistakes == ["E0201 f"] * 50
    assert parsed.roots == ["fn"] * 50


def test_a_match_without_default_arm_stays_in_the_tree() -> None:
    assert parse("match { a { 1 } }").tree == "(match\n  case:\n    a\n  body:\n    1\n)\n"


def test_diagnostics_come_in_source_order() -> None:
    parsed = parse("let a = )\nlet b = $ 1\nlet c = ]\n1.2.3\nmatch {\n  a { ) }\n}")
    starts = [diagnostic.start for diagnostic in parsed.diagnostics]
    assert starts == sorted(starts)
    assert len(starts) == 6


def test_a_sign_that_starts_an_expression_gets_help() -> None:
    (rendered,) = parse("let x = (n -1)").rendered
    assert rendered == (
        "test:1:12: E0201: expected `)`, got `-`\n"
        "let x = (n -1)\n"
        "           ~\n"
        "help: a sign with a blank before it and none after it begins a new expression"
    )


def test_long_names_are_cut_in_messages() -> None:
    (diagnostic,) = parse("let x " + "y" * 1000).diagnostics
    assert diagnostic.message == f"expected `=`, got identifier `{'y' * 40}...`"
    assert diagnostic.length == 1000


def test_thousands_of_mistakes_are_all_reported() -> None:
    assert parse("let x = )\n" * 3000).mistakes == ["E0203 )"] * 3000
