"""Memory and depth: nothing stays allocated, whatever fails, and nothing recurses."""

from __future__ import annotations

import pytest

from allocators import BumpAlloc, PageAlloc
from allocators.errors import AllocError
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax import ast as kind
from garden.syntax.parser import Parser
from garden.types.checker import Checker
from tests.support.checked import PACKAGES, CountingAlloc, check_text

_PROGRAM = b"""
import ("io" "str" "opt" "math")
extern "gfx" { fn draw(points:Array<Record<x:Int y:Int>>) fn draw(x:Int) fn id(v:T) T }
fn even(n:Int) Bool { match { n == 0 { true } { odd(n - 1) } } }
fn odd(n:Int) Bool { match { n == 0 { let r = false r } { even(n - 1) } } }
fn area(box:Record<w:Double h:Double>) Double { box.w * box.h }
let shape = {w: 1.5 h: 2.0 inner: {a: [1 2 3] b: "text"}}
let a = opt.pair(shape [opt.some(1)])
io.println(str.concat(str.from(math.abs(-1)) shape.inner.b))
gfx.draw([{x: 1 y: gfx.id(2)}])
gfx.draw(3)
let wrong = area(shape) + missing
let again = [1 "x" unknown(2)]
io.nothing(nowhere.f(1))
"""


def test_a_closed_program_leaves_nothing_behind():
    with BumpAlloc(PageAlloc()) as pages:
        kept = CountingAlloc(pages)
        scratch = CountingAlloc(pages)
        diagnostics: list[Diagnostic] = []
        ast = Parser(pages, pages, diagnostics).parse(Source("test", _PROGRAM))
        assert not diagnostics
        program = Checker(kept, scratch, diagnostics, PACKAGES).check(ast)
        assert diagnostics
        assert kept.live > 0
        assert scratch.live == 0
        program.close()
        assert kept.live == 0
        ast.close()


def test_any_allocation_may_fail():
    with BumpAlloc(PageAlloc()) as pages:
        ast = Parser(pages, pages, []).parse(Source("test", _PROGRAM))
        failures = 0
        while True:
            allocator = CountingAlloc(pages, failures)
            try:
                program = Checker(allocator, allocator, [], PACKAGES).check(ast)
            except AllocError:
                assert allocator.live == 0
                failures += 1
            else:
                program.close()
                assert allocator.live == 0
                break
        assert failures > 20
        ast.close()


def test_names_refer_to_the_tokens_that_introduce_them():
    text = b"fn f(a:Int b:Int) Int { let a = a + b a } let r = {x: 1 y: {z: 2}} let s = r.y.z"
    with BumpAlloc(PageAlloc()) as pages:
        ast = Parser(pages, pages, []).parse(Source("test", text))
        program = Checker(pages, pages, [], PACKAGES).check(ast)
        names = []
        offsets = []
        for node in range(1, len(ast)):
            target = program.targets[node]
            if ast.kinds[node] == kind.IDENT:
                names.append((ast.text(ast.token[node]).decode(), ast.tokens.starts[target]))
            elif ast.kinds[node] == kind.FIELD:
                offsets.append(target)
        assert names == [
            ("a", text.index(b"a:Int")),
            ("b", text.index(b"b:Int")),
            ("a", text.index(b"a = a")),
            ("r", text.index(b"r = ")),
        ]
        assert offsets == [8, 0]


_DEPTH = 990


@pytest.mark.parametrize(
    "text",
    [
        f"let a = {'[' * _DEPTH}1{']' * _DEPTH}",
        f"let a = {'[' * _DEPTH}{']' * _DEPTH}",
        f"let a = {'{x:' * _DEPTH}1{'}' * _DEPTH} a",
        f"fn f(a:{'Array<' * _DEPTH}Int{'>' * _DEPTH}) {{}} f(1)",
        f"fn f(a:Int) Int {{ a }} f({'f(' * _DEPTH}1{')' * _DEPTH})",
        f"fn f(a:Int) Int {{ {'match { a == 1 { 1 } { ' * _DEPTH}a{' } }' * _DEPTH} }}",
        f"fn f(a:Int) Int {{ {'match { true { ' * _DEPTH}a{' } { b } }' * _DEPTH} }}",
        f"let a = {'-' * _DEPTH}1",
        f"let a = {'let b = ' * _DEPTH}1",
        f"let a = 1{' + 1' * 5000}",
        f"let a = {{x: 1}} let b = a{'.x' * 5000}",
        f"let a = 1{' as Double as Int' * 5000}",
        f'import "opt" let a = {"opt.some(" * _DEPTH}1{")" * _DEPTH} let b = opt.same(a a)',
        f'extern "p" {{ fn f(a:{"Array<" * _DEPTH}T{">" * _DEPTH}) T }} let b = p.f({"[" * _DEPTH}1{"]" * _DEPTH})',
    ],
)
def test_depth_costs_no_recursion(text):
    checked = check_text(text)
    assert checked.nodes
