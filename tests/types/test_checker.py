"""What right programs mean: the types of their nodes, and what names and calls refer to."""

from __future__ import annotations

from textwrap import dedent

import pytest


def test_literals_have_their_types(clean):
    assert clean('let a = 1 let b = 1.5 let c = "x" let d = true let e = false').types == dedent("""\
        a: Int
        b: Double
        c: Str
        d: Bool
        e: Bool
        """)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/"])
def test_arithmetic_gives_the_type_of_its_operands(clean, operator):
    assert clean(f"let a = 3 {operator} 2").types == "a: Int\n"
    assert clean(f"let a = 3.0 {operator} 2.0").types == "a: Double\n"


def test_remainder_is_for_ints(clean, code):
    assert clean("let a = 7 % 2").types == "a: Int\n"
    assert code("let a = 7.0 % 2.0") == "E0308 %"


@pytest.mark.parametrize("operator", ["<", ">", "<=", ">="])
def test_order_is_for_numbers(clean, code, operator):
    assert clean(f"let a = 1 {operator} 2").types == "a: Bool\n"
    assert clean(f"let a = 1.0 {operator} 2.0").types == "a: Bool\n"
    assert code(f'let a = "x" {operator} "y"') == f"E0308 {operator}"
    assert code(f"let a = true {operator} false") == f"E0308 {operator}"


@pytest.mark.parametrize("operator", ["==", "!="])
def test_equality_is_for_ints_bools_and_strs(clean, code, operator):
    assert clean(f"let a = 1 {operator} 2").types == "a: Bool\n"
    assert clean(f"let a = true {operator} false").types == "a: Bool\n"
    assert clean(f'let a = "x" {operator} "y"').types == "a: Bool\n"
    assert code(f"let a = 1.0 {operator} 2.0") == f"E0308 {operator}"
    assert code(f"let a = [1] {operator} [1]") == f"E0308 {operator}"


def test_signs_keep_the_type(clean):
    assert clean("let a = -1 let b = +2.0 let c = - -a").types == "a: Int\nb: Double\nc: Int\n"


def test_casts_go_between_the_scalars(clean):
    assert clean("let a = 1 as Double let b = 1.5 as Int let c = 1 as Bool let d = true as Int").types == dedent("""\
        a: Double
        b: Int
        c: Bool
        d: Int
        """)


def test_arrays_and_records_are_made_of_their_parts(clean):
    assert clean('let a = [1 2] let b = { x: 1 y: { z: "s" } } let c = [b b]').types == dedent("""\
        a: Array<Int>
        b: Record<x: Int y: Record<z: Str>>
        c: Array<Record<x: Int y: Record<z: Str>>>
        """)


def test_a_record_without_fields_is_a_record(clean):
    assert clean("let a = {}").types == "a: Record<>\n"


def test_a_field_has_its_type_and_its_offset(clean):
    checked = clean('let a = { x: 1 y: { u: true v: "s" } } let b = a.y let c = a.y.v')
    assert checked.types.splitlines()[1:] == ["b: Record<u: Bool v: Str>", "c: Str"]


def test_names_mean_the_innermost_binding(clean):
    assert clean(
        """
        let a = 1
        let b = match { true { let a = "x" let a = a == "y" a } { false } }
        let a = a as Double
        let c = a
        """
    ).types == dedent("""\
        a: Int
        b: Bool
        a: Double
        c: Double
        """)


def test_a_let_may_shadow_a_parameter(clean):
    clean('fn f(a:Int) Str { let a = 1.0 let a = "x" a }')


def test_what_an_arm_names_is_gone_behind_it(code):
    assert code("match { true { let inner = 1 inner } { inner } }") == "E0301 inner"


def test_a_condition_sees_no_arm_before_it(code):
    assert code("match { true { let inner = true } inner { } { } }") == "E0301 inner"


def test_a_match_has_the_type_of_its_arms(clean):
    assert clean('let a = match { true { 1 "x" } false { "y" } { "z" } }').types == "a: Str\n"
    assert clean("let a = match { { 1 } }").types == "a: Int\n"


def test_empty_arms_are_void(clean):
    assert clean("match { true { } { } }").nodes == "match: Void\n  if\n    true: Bool\n  then\n  else\n"


def test_functions_may_call_each_other_whatever_their_order(clean):
    clean(
        """
        let start = even(10)
        fn even(n:Int) Bool { match { n == 0 { true } { odd(n - 1) } } }
        fn odd(n:Int) Bool { match { n == 0 { false } { even(n - 1) } } }
        """
    )


def test_a_function_without_a_type_is_void(clean):
    assert clean("fn f() {} fn g(a:Int) { f() }").types == "fn f()\nfn g(a:Int)\n"


def test_a_function_sees_no_let_of_the_top_level(check):
    checked = check("let a = 1 fn f() Int { a }")
    assert checked.codes == ["E0301"]
    assert "note: a `let` of the top level is known after it, and not inside functions" in checked.rendered[0]


def test_functions_values_and_packages_do_not_hide_each_other(clean):
    clean(
        """
        import ("io" "str")
        fn io(str:Str) Str { let io = str.concat(str str) io }
        let str = io(str.from(1))
        io.println(str)
        """
    )


def test_the_first_overload_that_takes_the_arguments_is_called(clean):
    checked = clean('import ("io" "math") io.println(math.abs(-1)) io.println(math.abs(-1.0)) io.println("x")')
    assert [str(host) for host in checked.hosts] == [
        "fn abs(number:Int) Int",
        "fn println(number:Int)",
        "fn abs(number:Double) Double",
        "fn println(number:Double)",
        "fn println(text:Str)",
    ]


@pytest.mark.parametrize(
    ("functions", "called"),
    [
        ("fn f(a:T) Double fn f(a:Int) Int", "Double"),
        ("fn f(a:Int) Int fn f(a:T) Double", "Int"),
        ("fn f(a:T b:T) Double fn f(a:Int) Int fn f(a:U) Str", "Int"),
        ("fn f(a:Str) Double fn f(a:Array<T>) Double fn f(a:U) Str fn f(a:T) Bool", "Str"),
    ],
)
def test_of_overloads_with_slots_and_without_the_first_is_called(clean, functions, called):
    types = clean(f'extern "p" {{ {functions} }} let a = p.f(1)').types
    assert types.splitlines()[-1] == f"a: {called}"


def test_each_of_many_overloads_is_found(clean):
    kinds = [" ".join([f"f{bit}:{'Str' if index >> bit & 1 else 'Int'}" for bit in range(11)]) for index in range(2048)]
    declared = "\n".join([f"fn f({kind}) {'Int' if index % 2 else 'Bool'}" for index, kind in enumerate(kinds)])
    asked = [(index, ['""' if index >> bit & 1 else "0" for bit in range(11)]) for index in (0, 1, 1000, 2046, 2047)]
    calls = "\n".join([f"let a{index} = p.f({' '.join(arguments)})" for index, arguments in asked])
    types = clean(f'extern "p" {{ {declared} }}\n{calls}').types.splitlines()
    assert types[2048:] == ["a0: Bool", "a1: Int", "a1000: Bool", "a2046: Bool", "a2047: Int"]


def test_a_host_function_is_listed_once(clean):
    assert len(clean('import "io" io.print("a") io.print("b")').hosts) == 1


def test_a_package_is_called_by_the_last_part_of_its_path(clean):
    assert clean('import "unsafe/runtime" let a = runtime.used()').types == "a: Int\n"


def test_an_import_counts_wherever_it_stands(clean):
    clean('fn f() { io.println("x") } match { true { import "io" } { } } import "io"')


def test_slots_are_bound_from_the_arguments(clean):
    checked = clean('import "opt" let a = opt.some([1]) let b = opt.pair("x" a) let c = opt.is_some(a)')
    assert checked.types == dedent("""\
        a: Option<Array<Int>>
        b: Record<first: Str second: Array<Option<Array<Int>>>>
        c: Bool
        """)


def test_a_generic_function_is_listed_once_for_each_combination_of_types(clean):
    checked = clean('import "opt" opt.some(1) opt.some("x") opt.some(2) opt.is_some(opt.some(3))')
    assert [str(host) for host in checked.hosts] == [
        "fn some(value:Int) Option<Int>",
        "fn some(value:Str) Option<Str>",
        "fn is_some(option:Option<Int>) Bool",
    ]
    assert all(host.pure and host.words and host.implemented and host.doc for host in checked.hosts)


def test_extern_declares_functions_that_can_be_called(clean):
    checked = clean(
        """
        extern "gfx/window" {
            #! Opens it.
            fn open(width:Int title:Str) Foreign<Window>
            fn show(window:Foreign<Window> points:Array<Record<x:Int y:Int>>)
            fn show(window:Foreign<Window>)
            fn twice(value:T) Record<a:T b:T>
        }
        let w = window.open(640 "hello")
        window.show(w [{x: 1 y: 2}])
        window.show(w)
        let t = window.twice(1.5)
        """
    )
    assert checked.types == dedent("""\
        extern gfx/window fn open(width:Int title:Str) Foreign<Window>
        extern gfx/window fn show(window:Foreign<Window> points:Array<Record<x: Int y: Int>>)
        extern gfx/window fn show(window:Foreign<Window>)
        extern gfx/window fn twice(value:T) Record<a: T b: T>
        w: Foreign<Window>
        t: Record<a: Double b: Double>
        """)
    assert [host.path for host in checked.hosts] == ["gfx/window.open"] + ["gfx/window.show"] * 2 + ["gfx/window.twice"]
    assert not any(host.implemented for host in checked.hosts)


def test_extern_finds_the_implementation_where_a_package_has_the_same_signature(clean):
    checked = clean('extern "math" { fn abs(n:Int) Int fn abs(n:Int m:Int) Int } math.abs(1) math.abs(1 2)')
    assert [host.implemented for host in checked.hosts] == [True, False]


def test_extern_adds_to_what_is_imported(clean):
    checked = clean(
        'import "str" extern "str" { fn from(n:Int) Str fn shout(s:Str) Str } str.shout(str.concat(str.from(1) ""))'
    )
    assert [host.implemented for host in checked.hosts] == [True, True, False]


def test_an_import_of_what_extern_declares_needs_no_package(clean):
    clean('import "gfx" extern "gfx" { fn draw() } gfx.draw()')


def test_an_import_may_be_repeated(clean):
    clean('import ("io" "io") import "io"')


def test_the_long_form_shows_every_node(clean):
    assert clean(
        """
        import "str"
        fn f(n:Int r:Record<x:Int>) Int { let m = -n match { n == r.x { m } { f(n + 1 {x: n as Bool as Int}) } } }
        let a = [str.from(f(1 {x: 2})) "text
        on two lines"]
        """
    ).nodes == dedent("""\
        fn f(n:Int r:Record<x: Int>) Int
          m: Int
            -: Int
              n: Int
          match: Int
            if
              ==: Bool
                n: Int
                .x: Int
                  r: Record<x: Int>
            then
              m: Int
            else
              call: Int
                f: fn f(n:Int r:Record<x: Int>) Int
                +: Int
                  n: Int
                  1: Int
                record: Record<x: Int>
                  x
                    cast: Int
                      cast: Bool
                        n: Int
        a: Array<Str>
          array: Array<Str>
            call: Str
              str.from: fn from(number:Int) Str
              call: Int
                f: fn f(n:Int r:Record<x: Int>) Int
                1: Int
                record: Record<x: Int>
                  x
                    2: Int
            "text\\n        on two lines": Str
        """)
