"""The unparser: its layout; and for random trees, that the parser reads what is spelled, and that the way back fits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.parsed import EXAMPLE, parse_clean

# A tree is a tuple, its form first; this module knows by itself how each form is spelled, with parentheses around every
# operand, and how it prints.
Tree = tuple[Any, ...]


def spell(tree: Tree) -> list[str]:
    """The tokens of a tree as garden source. What must not be parted is one token."""
    form = tree[0]
    if form == "atom":
        return [tree[1]]
    if form == "sign":
        first, *rest = _in_parentheses(tree[2])
        return [tree[1] + first, *rest]
    if form == "binary":
        return [*_in_parentheses(tree[2]), tree[1], *_in_parentheses(tree[3])]
    if form == "cast":
        return [*_in_parentheses(tree[1]), "as", *_spell_type(tree[2])]
    if form == "field":
        return [*_in_parentheses(tree[1]), ".", tree[2]]
    if form == "call":
        return [*spell(tree[1]), "(", *_spell_row(tree[2]), ")"]
    if form == "array":
        return ["[", *_spell_row(tree[1]), "]"]
    if form == "record":
        return ["{", *[word for name, value in tree[1] for word in (name, ":", *spell(value))], "}"]
    if form == "let":
        return [*_spell_docs(tree[3]), "let", tree[1], "=", *spell(tree[2])]
    if form == "match":
        arms = [word for condition, body in tree[1] for word in (*_in_parentheses(condition), *_spell_body(body))]
        return ["match", "{", *arms, *_spell_body(tree[2]), "}"]
    if form == "fn":
        return [*_spell_docs(tree[4]), "fn", *_spell_signature(tree), *_spell_body(tree[5])]
    if form == "import":
        return ["import", "(", *[f'"{path}"' for path in tree[1]], ")"]
    assert form == "extern"
    functions = [word for fn in tree[2] for word in (*_spell_docs(fn[4]), "fn", *_spell_signature(fn))]
    return [*_spell_docs(tree[3]), "extern", f'"{tree[1]}"', "{", *functions, "}"]


def _in_parentheses(tree: Tree) -> list[str]:
    return spell(tree) if tree[0] in ("atom", "array", "call") else ["(", *spell(tree), ")"]


def _spell_row(trees: list[Tree]) -> list[str]:
    return [word for tree in trees for word in spell(tree)]


def _spell_body(trees: list[Tree]) -> list[str]:
    return ["{", *_spell_row(trees), "}"]


def _spell_docs(docs: list[str]) -> list[str]:
    return [f"#! {doc}\n" for doc in docs]


def _spell_type(tree: Tree) -> list[str]:
    form = tree[0]
    if form == "scalar":
        return [tree[1]]
    if form == "Record":
        return ["Record", "<", *[word for name, kind in tree[1] for word in (name, ":", *_spell_type(kind))], ">"]
    inside = [tree[1]] if form == "Foreign" else _spell_type(tree[1])
    return [form, "<", *inside, ">"]


def _spell_signature(tree: Tree) -> list[str]:
    parameters = [word for name, kind in tree[2] for word in (name, ":", *_spell_type(kind))]
    return [tree[1], "(", *parameters, ")", *_spell_type(tree[3])]


def show(tree: Tree, depth: int = 0, prefix: str = "") -> list[str]:
    """The lines of a tree as the printer prints it."""
    form = tree[0]
    indent = "  " * depth
    inside = depth + 1
    if form == "atom":
        return [f"{indent}{prefix}{tree[1]}"]
    if form == "import":
        paths = "".join([f' "{path}"' for path in tree[1]])
        return [f"{indent}{prefix}(import{paths})"]
    docs: list[str] = []
    if form == "sign":
        head, parts = tree[1], show(tree[2], inside)
    elif form == "binary":
        head, parts = tree[1], show(tree[2], inside) + show(tree[3], inside)
    elif form == "cast":
        head, parts = f"cast {_show_type(tree[2])}", show(tree[1], inside)
    elif form == "field":
        head, parts = f"field {tree[2]}", show(tree[1], inside)
    elif form == "call":
        head, parts = "call", _titled("target:", [tree[1]], inside)
        for argument in tree[2]:
            parts += _titled("arg:", [argument], inside)
    elif form == "array":
        head, parts = "array", _show_row(tree[1], inside)
    elif form == "record":
        head, parts = "record", [line for name, value in tree[1] for line in show(value, inside, f"{name}: ")]
    elif form == "let":
        docs, head, parts = tree[3], f"let {tree[1]}", show(tree[2], inside)
    elif form == "match":
        head, parts = "match", []
        for condition, body in tree[1]:
            parts += _titled("case:", [condition], inside) + _titled("body:", body, inside)
        parts += _titled("default:", tree[2], inside)
    elif form == "fn":
        docs, head, parts = tree[4], _show_signature(tree), _show_row(tree[5], inside)
    else:
        docs, head, parts = tree[3], f'extern "{tree[1]}"', []
        for fn in tree[2]:
            parts += [f"{'  ' * inside}#! {doc}" for doc in fn[4]]
            parts.append(f"{'  ' * inside}({_show_signature(fn)})")
    return [*[f"{indent}#! {doc}" for doc in docs], f"{indent}{prefix}({head}", *parts, f"{indent})"]


def _show_row(trees: list[Tree], depth: int) -> list[str]:
    return [line for tree in trees for line in show(tree, depth)]


def _titled(title: str, trees: list[Tree], depth: int) -> list[str]:
    return [f"{'  ' * depth}{title}", *_show_row(trees, depth + 1)]


def _show_type(tree: Tree) -> str:
    form = tree[0]
    if form == "scalar":
        return str(tree[1])
    if form == "Record":
        return f"Record<{' '.join([f'{name}: {_show_type(kind)}' for name, kind in tree[1]])}>"
    return f"{form}<{tree[1] if form == 'Foreign' else _show_type(tree[1])}>"


def _show_signature(tree: Tree) -> str:
    parameters = " ".join([f"{name}: {_show_type(kind)}" for name, kind in tree[2]])
    return f"fn {tree[1]} ({parameters}) -> {_show_type(tree[3])}"


_names = st.sampled_from(["a", "b", "_c", "letter", "Inte"])
_docs = st.lists(st.sampled_from(["what it is", "x(1) # {"]), max_size=2)
_literals = st.sampled_from(["0", "12", "3.", "0.25", "true", "false", '""', '"a (b"']).map(lambda text: ("atom", text))
_identifiers = _names.map(lambda name: ("atom", name))


def _types(scalars: list[str]) -> st.SearchStrategy[Tree]:
    return st.recursive(
        st.sampled_from(scalars).map(lambda name: ("scalar", name)) | _names.map(lambda name: ("Foreign", name)),
        lambda inside: st.one_of(
            st.tuples(st.sampled_from(["Option", "Array"]), inside),
            st.tuples(st.just("Record"), st.lists(st.tuples(_names, inside), max_size=3)),
        ),
        max_leaves=5,
    )


_scalars = ["Int", "Double", "Bool", "Str", "Void"]
_plain_types = _types(_scalars)
_slot_types = _types([*_scalars, "T"])


def _row(trees: list[Tree]) -> list[Tree]:
    """The same trees, so that none but the last ends with a name that the next one's parenthesis would call."""
    return [_closed(tree) if _ends_with_name(tree) else tree for tree in trees[:-1]] + trees[-1:]


def _closed(tree: Tree) -> Tree:
    return ("let", tree[1], _closed(tree[2]), tree[3]) if tree[0] == "let" else ("array", [tree])


def _ends_with_name(tree: Tree) -> bool:
    form = tree[0]
    if form == "let":
        return _ends_with_name(tree[2])
    if form == "binary":
        return _ends_with_name(tree[3]) and tree[3][0] in ("atom", "field")
    if form == "sign":
        return _ends_with_name(tree[2]) and tree[2][0] in ("atom", "field")
    return form == "field" or (form == "atom" and (tree[1][0].isalpha() or tree[1][0] == "_"))


def _rows(trees: st.SearchStrategy[Tree]) -> st.SearchStrategy[list[Tree]]:
    return st.lists(trees, max_size=3).map(_row)


def _items_of(expressions: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    imports = st.tuples(st.just("import"), st.lists(st.sampled_from(["io", "unsafe/runtime"]), max_size=2))
    simple = expressions | imports
    lets = st.tuples(st.just("let"), _names, simple, _docs)
    bodies = _rows(simple | lets)
    matches = st.tuples(st.just("match"), st.lists(st.tuples(expressions, bodies), max_size=2), bodies)
    return st.one_of(imports, lets, matches, st.tuples(st.just("let"), _names, lets | matches, _docs))


def _grow(inside: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    items = inside | _items_of(inside)
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">="])
    fields = st.tuples(st.just("field"), inside, _names)
    return st.one_of(
        st.tuples(st.just("binary"), operators, inside, inside),
        st.tuples(st.just("binary"), operators, inside, inside),
        st.tuples(st.just("sign"), st.sampled_from("+-"), inside),
        st.tuples(st.just("cast"), inside, _plain_types),
        fields,
        st.tuples(st.just("call"), _identifiers | fields, _rows(items)),
        st.tuples(st.just("array"), _rows(inside)),
        st.tuples(st.just("record"), st.lists(st.tuples(_names, inside), max_size=3)),
    )


_expressions = st.recursive(_literals | _identifiers, _grow, max_leaves=12)


_items = _expressions | _items_of(_expressions)


def _signatures(types: st.SearchStrategy[Tree]) -> tuple[st.SearchStrategy[Any], ...]:
    return st.just("fn"), _names, st.lists(st.tuples(_names, types), max_size=3), types, _docs


_programs = st.lists(
    st.one_of(
        _items,
        _items,
        st.tuples(*_signatures(_plain_types), _rows(_items)),
        st.tuples(st.just("extern"), st.just("p/q"), st.lists(st.tuples(*_signatures(_slot_types)), max_size=2), _docs),
    ),
    max_size=4,
).map(_row)
_blanks = st.lists(st.sampled_from([" ", "\n", "\t ", "\r\n", " # (note)\n"]), min_size=1, max_size=7)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_programs, _blanks)
def test_random_trees_are_parsed_as_they_are_spelled_and_unparsed(trees: list[Tree], blanks: list[str]) -> None:
    words = [word for tree in trees for word in spell(tree)]
    text = "".join([word + blanks[index % len(blanks)] for index, word in enumerate(words)])
    parsed = parse_clean(text)
    assert parsed.tree.splitlines() == _show_row(trees, 0)
    again = parse_clean(parsed.unparsed)
    assert again.tree == parsed.tree
    assert again.unparsed == parsed.unparsed


@pytest.mark.parametrize(
    ("text", "unparsed"),
    [
        ("((a)+((b)*(c)))", "a + b * c"),
        ("((a+b)*c)", "(a + b) * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a == (b == c)", "a == (b == c)"),
        ("-(a + b)", "-(a + b)"),
        ("-(-a)", "--a"),
        ("a - (-b)", "a - -b"),
        ("(-a) as Int", "(-a) as Int"),
        ("-(a as Int)", "-a as Int"),
        ("(a as Int) as Bool", "a as Int as Bool"),
        ("(a + b) as Int", "(a + b) as Int"),
        ("a + (b as Int)", "a + b as Int"),
        ("(a as Int).b", "(a as Int).b"),
        ("(-a).b", "(-a).b"),
        ("1 . x", "1.x"),
        ("3. . x", "3..x"),
        ("(a + x) (b + c) * d", "(a + x)\n(b + c) * d"),
        ("(a + x) (b + y) (c + d) * e", "(a + x)\n(b + y)\n(c + d) * e"),
        ("f((a + x) (b + y) * c)", "f((a + x) (b + y) * c)"),
        ("[(-x) (a + b).c]", "[(-x) (a + b).c]"),
        ("let y = (a + x) (b + c) * d", "let y = (a + x)\n(b + c) * d"),
        ("let y = let z = (a + x) (b + c) * d", "let y = let z = (a + x)\n(b + c) * d"),
        ("f(let y = (a + x) (b + c) * d)", "f(let y = (a + x) (b + c) * d)"),
        ("[a -b]", "[a -b]"),
        ("match { ({ a: 1 }.a == b) {} {} }", "match {\n    ({ a: 1 }.a == b) {}\n    {}\n}"),
        ("match { {} a { 1 } }", "match {\n    a {\n        1\n    }\n    {}\n}"),
        ("{ }", "{}"),
        ("fn f() {}", "fn f() {}"),
        ("fn f() Void {}", "fn f() Void {}"),
        ("let x = #! d\nlet y = 1", "let x = #! d\nlet y = 1"),
    ],
)
def test_parentheses_stand_where_they_must(text: str, unparsed: str) -> None:
    parsed = parse_clean(text)
    assert parsed.unparsed == f"{unparsed}\n"
    assert parse_clean(parsed.unparsed).tree == parsed.tree


def test_a_whole_program_is_laid_out() -> None:
    parsed = parse_clean(EXAMPLE)
    assert (
        parsed.unparsed
        == """import ("io" "str" "testing")
import ("math")

#! Sum 1..n with an accumulator.
#!
#! It takes a while.
fn sum_to(n: Int acc: Int) Int {
    match {
        n == 0 {
            acc
        }
        {
            sum_to(n - 1 acc + n)
        }
    }
}

fn area(box: Record<w: Double h: Double>) Double {
    box.w * box.h
}

fn nothing() {}

fn first(all: Array<Option<Foreign<Thing>>>) Void {
    let x = all
    nothing()
}

#! Half of it.
let half = sum_to(4 0) as Double / 2.0
let shape = { w: half h: 3.0 inner: { flag: true } }
let list = [1 2 -3 +4 1 - 2 "text" shape.inner.flag]
testing.assert(area(shape) > 14.9)
io.println(str.concat("total " str.from(list)))
let kind = match {
    half <= 1.0 {
        "small"
    }
    half >= 2.0 != false {
        let y = "large"
        y
    }
    {}
}

#! Everything about options.
extern "opt" {
    #! An option with something in it.
    fn some(value: T) Option<T>
    fn none()
}
"""
    )
    assert parse_clean(parsed.unparsed).tree == parsed.tree
