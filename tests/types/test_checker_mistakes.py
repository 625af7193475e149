"""What is wrong with wrong programs: one diagnostic for one mistake, where it is, and how to mend it."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        # Names.
        ("let a = b", "E0301 b"),
        ("let a = a", "E0301 a"),
        ("a let a = 1", "E0301 a"),
        ("fn f() {} let a = f", "E0301 f"),
        ('import "io" let a = io', "E0301 io"),
        ("fn f(a:Int) Int { b }", "E0301 b"),
        ("f(1)", "E0302 f"),
        ('import "oi"', 'E0303 "oi"'),
        ("nowhere.f(1)", "E0303 nowhere"),
        ('io.println("x")', "E0304 io"),
        ('import "io" io.printn("x")', "E0305 printn"),
        ('extern "p" { fn f() } p.g()', "E0305 g"),
        ("let a = 1 a(2)", "E0320 a"),
        ("let a = {b: 1} a.b(2)", "E0320 a.b"),
        ("let a = {b: {c: 1}} a.b.c(2)", "E0320 c"),
        ("import ()", "E0324 import"),
        ('import ("unsafe/runtime" "vendor/runtime") runtime.used()', 'E0327 "vendor/runtime"'),
        # Calls.
        ("fn f(a:Int) Int { a } f()", "E0306 f"),
        ("fn f() {} f(1 2)", "E0306 f"),
        ('import "str" let a = str.concat("x")', "E0306 str.concat"),
        ('fn f(a:Int b:Str) Int { a } f(1 "x") f(1 2)', "E0307 2"),
        ('import "str" let a = str.concat("x" 1)', "E0307 1"),
        ('extern "p" { fn f(a:Foreign<A>) fn g() Foreign<B> } p.f(p.g())', "E0307 p.g"),
        ('import "math" math.abs("x")', "E0321 math.abs"),
        ('import "io" io.println()', "E0321 io.println"),
        ('import "opt" opt.same(1 "x")', 'E0322 "x"'),
        ('import "opt" opt.is_some(1)', "E0307 1"),
        ('import "opt" opt.none()', "E0322 opt.none"),
        # Operators and casts.
        ("let a = 1 + 2.0", "E0308 +"),
        ('let a = 1 == "x"', "E0308 =="),
        ('let a = "x" + "y"', "E0308 +"),
        ("let a = -true", "E0308 -"),
        ("let a = 1 as Int", "E0310 as"),
        ("let a = [1] as Array<Int>", "E0310 as"),
        ("let a = true as Double", "E0309 as"),
        ("let a = 1.5 as Bool", "E0309 as"),
        ("let a = 1 as Str", "E0309 as"),
        ('let a = "1" as Int', "E0309 as"),
        ("let a = 1 as Void", "E0309 as"),
        ("let a = 1 as Array<Int>", "E0309 as"),
        # Arrays and records.
        ('let a = [1 2 "x" "y"]', 'E0311 "x"'),
        ("let a = []", "E0312 ["),
        ("let a = {x: 1 y: 2 x: 3}", "E0313 x"),
        ("fn f(a:Record<x:Int x:Str>) {}", "E0313 x"),
        ("let a = {x: 1} let b = a.y", "E0314 y"),
        ("let a = 1.0 let b = a.y", "E0314 y"),
        # Matches.
        ("match { 1 { } { } }", "E0315 1"),
        ('import "io" match { io.println(1) { } { } }', "E0315 io.println"),
        ('let a = match { true { 1 } { "x" } }', "E0316 1"),
        ("let a = match { true { } { 1 } }", "E0316 true"),
        ("let a = match { true { let b = 1 } { 1 } }", "E0316 b"),
        # Functions.
        ('fn f() Int { "x" }', 'E0317 "x"'),
        ("fn f() Int { }", "E0317 f"),
        ("fn f() { 1 }", "E0317 1"),
        ("fn f() Int { 1 let a = 2 }", "E0317 a"),
        ('fn f() Int { 1 import "io" }', "E0317 import"),
        ("fn f() {} fn f() Int { 1 }", "E0318 f"),
        ('extern "a/p" { fn f(a:Int) fn f(b:Int) Int }', "E0318 f"),
        ('extern "a/p" { fn f(a:Int) fn f(b:Int) Int } p.f(1)', "E0318 f"),
        ("fn f(a:Int a:Str) {}", "E0323 a"),
        ('extern "p" { fn f(a:Int a:Str) }', "E0323 a"),
        # Void.
        ("fn f() {} let a = f()", "E0319 f"),
        ("fn f() {} let a = 1 + f()", "E0319 f"),
        ("fn f() {} let a = -f()", "E0319 f"),
        ("fn f() {} let a = [f()]", "E0319 f"),
        ("fn f() {} let a = {x: f()}", "E0319 f"),
        ("fn f() {} let a = f() as Int", "E0319 f"),
        ("fn f() {} fn g(a:Int) {} g(f())", "E0319 f"),
        ('import "opt" fn f() {} let a = opt.some(f())', "E0319 f"),
        ("let a = let b = 1", "E0319 b"),
        ("let a = match { { } }", "E0319 match"),
        ('let a = match { { import "io" } }', "E0319 match"),
        ("fn f(a:Void) {}", "E0319 Void"),
        ("fn f(a:Array<Void>) {}", "E0319 Void"),
        ("fn f() Option<Void> { 1 }", "E0319 Void"),
        ("fn f(a:Record<x:Void>) {}", "E0319 Void"),
    ],
)
def test_one_mistake_gives_one_diagnostic(check, text, mistake):
    checked = check(text)
    found = [f"{code} {marked}" for code, marked in zip(checked.codes, checked.marked, strict=True)]
    assert found == [mistake], checked.rendered


@pytest.mark.parametrize(
    "mistake", ["b", "f(1)", "1 + true", '"1" as Array<Int>', "[]", "{x: 1 x: 2}", "{x: 1}.y", "match { { b } }"]
)
def test_what_uses_a_mistake_stays_silent(code, mistake):
    assert code(
        f"""
        import ("io" "str" "opt")
        fn g(a:Int r:Record<x:Int>) Str {{ "x" }}
        extern "p" {{ fn h(a:Int) Int }}
        let bad = {mistake}
        let c = bad + 1 + 2.0
        let d = [bad bad] as Array<Str>
        let e = {{x: bad}}
        let f = e.x.y.z
        let g = -bad
        io.println(bad)
        io.println(str.from(bad))
        let h = opt.some(bad)
        let i = opt.same(bad 1) + opt.same(1 bad)
        let j = p.h(bad) + bad + g(bad bad)
        let k = match {{ bad {{ bad }} true {{ 1 }} {{ bad }} }}
        """
    )


def test_a_mistake_does_not_hide_the_next(check):
    checked = check(
        """
        fn f(a:Int b:Int) Int { zz }
        let a = f("x" "y") + 1.0
        let b = [1 zz "z"]
        let c = f(zz "y")
        """
    )
    assert checked.codes == ["E0301", "E0307", "E0307", "E0308", "E0301", "E0311", "E0307"]


def test_diagnostics_stand_in_source_order(check):
    checked = check("zz let a = yy fn f() Int { xx } let b = ww fn g() Int { vv }")
    assert checked.marked == ["zz", "yy", "xx", "ww", "vv"]


def test_a_wrong_argument_still_gives_the_return_type(clean, check):
    assert check('fn f(a:Int) Str { "x" } let b = f(1.0) let c = f()').types.splitlines()[1:] == ["b: Str", "c: Str"]


def test_overloads_that_agree_on_their_result_give_it_anyway(check):
    assert check('import ("str" "math") let a = str.from(true) let b = math.abs(true)').types == "a: Str\nb: ?\n"


def test_a_name_is_reported_once_in_a_scope(check):
    assert check("zz zz let a = zz match { true { zz } { zz } }").codes == ["E0301"]
    assert check("match { true { zz zz } { zz } }").codes == ["E0301", "E0301"]
    assert check("f(1) f(2) let a = f(3)").codes == ["E0302"]
    assert check('io.println("a") io.print("b")').codes == ["E0304"]
    assert check('import "oi" oi.println("a") oi.print("b")').codes == ["E0303"]
    assert check('import "io" io.prin("a") io.prin("b") io.prim("c")').codes == ["E0305", "E0305"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("let total = 1 let a = totl", "help: did you mean `total`?"),
        ("fn compute(n:Int) {} comptue(1)", "help: did you mean `compute`?"),
        ('import "mth"', "help: did you mean `math`?"),
        ('import "runtime"', "help: did you mean `unsafe/runtime`?"),
        ('import "io" io.printl("x")', "help: did you mean `println`?"),
        ("let a = {width: 1} a.widht", "help: did you mean `width`?"),
        ("runtime.used()", 'help: add `import "unsafe/runtime"`'),
        ('println("x")', "help: did you mean `io.println`?"),
        ("fn f() {} let a = f", "help: call it: `f(...)`"),
        ("let a = 1.0 == 2.0", "help: compare how far they are apart with `<`"),
        ("let a = 1 * 2.0", "help: convert one of them: `as Double` or `as Int`"),
        ('let a = "x" + "y"', "help: `str.concat` joins two texts"),
        ("let a = 1 as Str", "help: `str.from` makes text of a number"),
        ("let a = true as Double", "help: go by way of Int: `as Int as Double`"),
        ("let a = 1 as Int", "help: leave out `as Int`"),
        ("match { 1 { } { } }", "help: compare it with something, such as `== 0`"),
        ("fn f() { 1.5 }", "help: write what it returns after its parameters: `Double`"),
        ("fn f() Int { let a = 2 }", "help: end the body with `a`"),
        ('import "str" str.from("x")', "help: this is a Str already: leave out the call"),
        ('import "str" str.from(true)', "note: there is `fn from(number:Double) Str`"),
        ("fn f(a:Int b:Str) {} f(1)", "note: it is `fn f(a:Int b:Str)`"),
        ("fn f(a:Int b:Str) {} f(1 2)", "note: `f` is `fn f(a:Int b:Str)`"),
    ],
)
def test_diagnostics_say_how_to_mend_it(check, text, line):
    rendered = check(text).rendered
    assert len(rendered) == 1
    assert line in rendered[0].splitlines()


def test_a_diagnostic_names_what_is_wanted_and_what_is_there(check):
    assert check('fn twice(a:Int) Int { a * 2 }\nlet y = twice("x")').rendered == [
        "test:2:15: E0307: wrong type for the parameter `a`, want Int\n"
        'let y = twice("x")\n'
        "              ~~~ this is a Str\n"
        "note: `twice` is `fn twice(a:Int) Int`"
    ]


def test_a_record_that_doubles_with_every_line_is_refused_before_it_is_huge(check):
    lines = ["let a = {x: 1 y: 2}"] + ["let a = {x: a y: a}"] * 60
    checked = check("\n".join(lines))
    assert checked.codes == ["E0326"]
    assert len(checked.nodes) < 1_000_000


@pytest.mark.parametrize(("count", "codes"), [(2047, []), (2048, ["E0328"])])
def test_an_array_has_less_than_two_gigabytes(check, count, codes):
    # 2**20 bytes, the largest record.
    lines = ["let r = {x: 1 y: 2}"] + ["let r = {x: r y: r}"] * 16
    lines.append(f"let a = [{'r ' * count}]")
    assert check("\n".join(lines)).codes == codes


def test_a_type_that_doubles_with_every_line_is_cut_where_it_is_shown(clean):
    lines = ["let a = [1]"] + ["let a = [{x: a y: a}]"] * 200
    assert clean("\n".join(lines)).types.splitlines()[-1].endswith("...")


def test_after_a_mistake_of_the_parser_no_name_that_it_lost_is_unknown(check):
    checked = check(
        """
        fn broken( { 1 }
        let lost = + * 2
        fn f() Int { let inner = ) inner }
        broken(lost)
        unknown
        """
    )
    assert [code for code in checked.codes if code.startswith("E03")] == ["E0301"]


def test_after_a_mistake_of_the_parser_a_body_may_lack_its_value(check):
    checked = check("fn f() Int { let a = 1 ) } fn g() Int { let a = 1 }")
    assert [code for code in checked.codes if code.startswith("E03")] == ["E0317"]
    assert checked.marked[-1] == "a"


def test_a_match_without_a_default_arm_is_reported_by_the_parser_only(check):
    assert check("fn f(a:Int) Int { match { a == 1 { 1 } } }").codes == ["E0204"]
