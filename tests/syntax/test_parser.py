"""The parser: what programs without mistakes mean."""

from __future__ import annotations

import pytest

from tests.support.parsed import EXAMPLE, parse_clean, shape


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b + c", "(+ (+ a b) c)"),
        ("a - b * c / d % e", "(- a (% (/ (* b c) d) e))"),
        ("a * b + c", "(+ (* a b) c)"),
        ("a == b + c", "(== a (+ b c))"),
        ("a + b < c * d", "(< (+ a b) (* c d))"),
        ("a == b == c", "(== (== a b) c)"),
        ("a != b <= c >= d > e < f", "(< (> (>= (<= (!= a b) c) d) e) f)"),
        ("(a + b) * c", "(* (+ a b) c)"),
        ("a * (b + c)", "(* a (+ b c))"),
        ("-a * b", "(* (- a) b)"),
        ("a * -b", "(* a (- b))"),
        ("a - -b", "(- a (- b))"),
        ("--+a", "(- (- (+ a)))"),
        ("-a.b", "(- (field b a))"),
        ("-f(a)", "(- (call target: f arg: a))"),
        ("-a as Double", "(- (cast Double a))"),
        ("(-a) as Double", "(cast Double (- a))"),
        ("a + b as Double", "(+ a (cast Double b))"),
        ("a as Int as Bool", "(cast Bool (cast Int a))"),
        ("a as Int * b", "(* (cast Int a) b)"),
        ("a as Int.b", "(field b (cast Int a))"),
        ("a.b.c", "(field c (field b a))"),
        ("1.x", "(field x 1)"),
        ("[1 2].x", "(field x (array 1 2))"),
        ("{}", "(record)"),
        ("{ a: 1 b: -2 }.a", "(field a (record a: 1 b: (- 2)))"),
        ("{ a: { b: 1 } }", "(record a: (record b: 1))"),
        ("[]", "(array)"),
        ("[[1] [] [2 3]]", "(array (array 1) (array) (array 2 3))"),
        ("((((a))))", "a"),
        ("true false", "true false"),
    ],
)
def test_expressions_group_by_precedence(text: str, expected: str) -> None:
    assert shape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f()", "(call target: f)"),
        ("f (a)", "(call target: f arg: a)"),
        ("f\n(a)", "(call target: f arg: a)"),
        ("(f)(a)", "(call target: f arg: a)"),
        ("a.f(b)", "(call target: (field f a) arg: b)"),
        ("f(a)(b)", "(call target: f arg: a) b"),
        ("f(a).g(b)", "(call target: (field g (call target: f arg: a)) arg: b)"),
        ("f(x (a + b))", "(call target: f arg: (call target: x arg: (+ a b)))"),
        ("f(1 (a + b))", "(call target: f arg: 1 arg: (+ a b))"),
        ("[x (a)]", "(array (call target: x arg: a))"),
        ("[(x + y) (a)]", "(array (+ x y) a)"),
        ("a + b (c)", "(+ a (call target: b arg: c))"),
        ("(a + b) (c)", "(+ a b) c"),
        ("a as Int (b)", "(cast Int a) b"),
        ("f(match { a { 1 } { 2 } } b)", "(call target: f arg: (match case: a body: 1 default: 2) arg: b)"),
    ],
)
def test_a_name_before_a_parenthesis_is_called(text: str, expected: str) -> None:
    assert shape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(n - 1)", "(call target: f arg: (- n 1))"),
        ("f(n-1)", "(call target: f arg: (- n 1))"),
        ("f(n- 1)", "(call target: f arg: (- n 1))"),
        ("f(n -1)", "(call target: f arg: n arg: (- 1))"),
        ("f(n\n+1)", "(call target: f arg: n arg: (+ 1))"),
        ("[1 -2 - 3 -(4)]", "(array 1 (- (- 2) 3) (- 4))"),
        ("a # note\n-b", "a (- b)"),
        ("a -\nb", "(- a b)"),
        ("a * -b", "(* a (- b))"),
        ("a * - b", "(* a (- b))"),
        ("let x = a -b", "(let x a) (- b)"),
    ],
)
def test_a_sign_with_a_blank_only_before_it_starts_an_expression(text: str, expected: str) -> None:
    assert shape(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match { { 1 } }", "(match default: 1)"),
        ("match { a { 1 } {} }", "(match case: a body: 1 default:)"),
        ("match { a {} b { 1 2 } { 3 } }", "(match case: a body: case: b body: 1 2 default: 3)"),
        ("match { { 3 } a { 1 } }", "(match case: a body: 1 default: 3)"),
        ("match { { 1 } a { 2 } { 3 } }", "(match case: a body: 2 default: 3)"),
        ("match { f (a) { 1 } {} }", "(match case: (call target: f arg: a) body: 1 default:)"),
        ("match { ({ a: b }.a) { 1 } {} }", "(match case: (field a (record a: b)) body: 1 default:)"),
        ("match { a { match { { 1 } } } {} }", "(match case: a body: (match default: 1) default:)"),
        ("let x = match { { 1 } } x", "(let x (match default: 1)) x"),
        ("match { { 1 } } -1", "(match default: 1) (- 1)"),
        ("match { { 1 } } + 1", "(match default: 1) (+ 1)"),
    ],
)
def test_matches(text: str, expected: str) -> None:
    assert shape(text) == expected


def test_a_brace_in_a_body_is_a_record() -> None:
    assert shape("fn f() { x { a: 1 } }") == "(fn f () -> Void x (record a: 1))"


def test_a_let_takes_any_item() -> None:
    assert shape("let a = let b = 1 a") == "(let a (let b 1)) a"
    assert shape('let a = import "io"') == '(let a (import "io"))'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fn f() {}", "(fn f () -> Void)"),
        ("fn f() Void {}", "(fn f () -> Void)"),
        ("fn f(a: Int b:Str) Bool { a b }", "(fn f (a: Int b: Str) -> Bool a b)"),
        (
            "fn f(a: Option<Array<Foreign<X>>>) Record<> {}",
            "(fn f (a: Option<Array<Foreign<X>>>) -> Record<>)",
        ),
        (
            "fn f(r: Record<a: Int b: Record<c: Option<Str> d: Bool> e: Double>) {}",
            "(fn f (r: Record<a: Int b: Record<c: Option<Str> d: Bool> e: Double>) -> Void)",
        ),
    ],
)
def test_functions_and_types(text: str, expected: str) -> None:
    assert shape(text) == expected


def test_imports() -> None:
    assert shape('import "io" import ("a" "unsafe/runtime") import ()') == (
        '(import "io") (import "a" "unsafe/runtime") (import)'
    )


def test_extern_functions_have_slot_types() -> None:
    assert shape('extern "opt" { fn some(x: T) Option<T> fn f(r: Record<a: T b: U>) U fn g() }') == (
        '(extern "opt" (fn some (x: T) -> Option<T>) (fn f (r: Record<a: T b: U>) -> U) (fn g () -> Void))'
    )


def test_docs_belong_to_what_follows() -> None:
    text = '#! a\n#! b\nlet x = 1\n#! c\nfn f() { #! d\nlet y = 2 }\n#! e\nextern "p" { #! f\nfn g() }'
    assert parse_clean(text).tree == (
        "#! a\n#! b\n(let x\n  1\n)\n"
        "#! c\n(fn f () -> Void\n  #! d\n  (let y\n    2\n  )\n)\n"
        '#! e\n(extern "p"\n  #! f\n  (fn g () -> Void)\n)\n'
    )


def test_the_printed_form_of_an_ast() -> None:
    assert parse_clean('let s = { n: f("a\nb" 1.5) m: true }').tree == (
        "(let s\n"
        "  (record\n"
        "    n: (call\n"
        "      target:\n"
        "        f\n"
        "      arg:\n"
        '        "a\\nb"\n'
        "      arg:\n"
        "        1.5\n"
        "    )\n"
        "    m: true\n"
        "  )\n"
        ")\n"
    )


def test_a_program_that_uses_every_form() -> None:
    parsed = parse_clean(EXAMPLE)
    assert parsed.roots == [
        "import", "import", "fn", "fn", "fn", "fn", "let", "let", "let", "call", "call", "let", "extern",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "# only a comment", "\n\n"])
def test_a_program_of_nothing_has_no_roots(text: str) -> None:
    assert parse_clean(text).roots == []
