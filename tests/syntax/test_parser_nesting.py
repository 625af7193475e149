"""Nesting, chains and rows have no limit, and cost no recursion."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allocators import Allocator, BumpAlloc, PageAlloc
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.parser import Parser
from garden.syntax.unparser import unparse
from tests.support.parsed import check_tree

#: Far more than Python has frames.
DEPTH = 20_000

#: Ways to nest: a program with so many levels, and one that opens them only.
_SHAPES: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "parentheses": (lambda n: "(" * n + "1" + ")" * n, lambda n: "(" * n),
    "signs": (lambda n: "-" * n + "1", lambda n: "-" * n),
    "arrays": (lambda n: "[" * n + "]" * n, lambda n: "[" * n),
    "records": (lambda n: "{ a: " * n + "1" + " }" * n, lambda n: "{ a: " * n),
    "calls": (lambda n: "f(" * n + ")" * n, lambda n: "f(" * n),
    "matches": (lambda n: "match { { " * n + "1" + " } }" * n, lambda n: "match { { " * n),
    "matches in arms": (lambda n: "match { a { " * n + "1" + " } { 2 } }" * n, lambda n: "match { a { " * n),
    "matches in lets": (lambda n: "let x = match { { " * n + "1" + " } }" * n, lambda n: "let x = match { { " * n),
    "lets": (lambda n: "let x = " * (n + 1) + "1", lambda n: "let x = " * (n + 1)),
    "option types": (lambda n: "x as " + "Option<" * n + "Int" + ">" * n, lambda n: "x as " + "Option<" * n),
    "record types": (
        lambda n: "fn f(x: " + "Record<a: " * n + "Int" + ">" * n + ") {}",
        lambda n: "fn f(x: " + "Record<a: " * n,
    ),
    "parentheses in a function": (
        lambda n: "fn f() Int { let x = " + "(" * n + "1" + ")" * n + " x }",
        lambda n: "fn f() Int { let x = " + "(" * n,
    ),
    "everything right of operators": (
        lambda n: "a == b + c * (" * n + "1" + ")" * n,
        lambda n: "a == b + c * (" * n,
    ),
}


def run(text: str, look: Callable[[Ast[Allocator]], object]) -> list[str]:
    """Parse a program, look at its tree, and return the codes of its mistakes."""
    diagnostics: list[Diagnostic] = []
    with BumpAlloc(PageAlloc()) as allocator:
        ast = Parser(allocator, allocator, diagnostics).parse(Source("test", text.encode()))
        check_tree(ast)
        look(ast)
        ast.close()
    return [diagnostic.code for diagnostic in diagnostics]


def kinds_after_a_round_trip(ast: Ast[Allocator]) -> None:
    """Unparse, parse again, and compare: without the printed form, which takes the square of a tree's depth."""

    def compare(again: Ast[Allocator]) -> None:
        assert [again.kinds[node] for node in range(len(again))] == [ast.kinds[node] for node in range(len(ast))]

    assert run(unparse(ast), compare) == []


def nothing(ast: Ast[Allocator]) -> None:
    """Look at nothing."""


@pytest.mark.parametrize("shape", _SHAPES)
def test_programs_nest_without_a_limit(shape: str) -> None:
    nested, _ = _SHAPES[shape]
    # The indents of so many matches are gigabytes.
    look = nothing if "match" in shape else kinds_after_a_round_trip
    assert run(nested(DEPTH), look) == []


@pytest.mark.parametrize("shape", _SHAPES)
def test_what_is_opened_only_is_one_mistake(shape: str) -> None:
    _, opened = _SHAPES[shape]
    codes = run(opened(DEPTH), nothing)
    assert len(codes) == 1
    assert codes[0] in ("E0201", "E0203", "E0210")


def test_a_million_parentheses_are_one_mistake() -> None:
    assert run("(" * 1_000_000, nothing) == ["E0201"]


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ("1" + " + 1" * 5_000, 1),
        ("a" + ".b" * 5_000, 1),
        ("f" + "().g" * 3_000, 1),
        ("1" + " as Int" * 5_000, 1),
        ("1 " * 5_000, 5_000),
        ("match {" + " x == 1 { 1 }" * 2_000 + " {} }", 1),
        ("fn f(" + " a: Int" * 5_000 + ") {}", 1),
        ("#! doc\n" * 5_000 + "let x = 1", 1),
    ],
)
def test_chains_and_rows_are_of_any_length(text: str, roots: int) -> None:
    def look(ast: Ast[Allocator]) -> None:
        assert len(ast.list_at(ast.roots)) == roots
        kinds_after_a_round_trip(ast)

    assert run(text, look) == []
