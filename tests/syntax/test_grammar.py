"""The page with the grammar is complete and true: it reads what the parser reads, and test programs use all of it."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from allocators import BumpAlloc, PageAlloc
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax import tokens
from garden.syntax.parser import Parser
from tests.support.grammar import Characters, Program, Token, productions, used

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").rglob("*.garden"))
SYNTAX = Path(__file__).parents[2] / "garden" / "syntax"
SECTIONS = ("Programs", "Expressions", "Types", "Tokens")

_KINDS = {
    tokens.IDENT: "name",
    tokens.INT: "integer",
    tokens.DOUBLE: "double",
    tokens.STRING: "string",
    tokens.DOC: "doc",
}


@pytest.fixture(autouse=True)
def deep_recursion() -> Iterator[None]:
    """The recogniser recurses, and some programs nest a thousand levels deep."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    yield
    sys.setrecursionlimit(limit)


def parsed(source: Source) -> tuple[set[str], list[Token]]:
    """The codes of the mistakes that the compiler finds before it looks at names, and its tokens."""
    diagnostics: list[Diagnostic] = []
    with BumpAlloc(PageAlloc()) as allocator:
        ast = Parser(allocator, allocator, diagnostics).parse(source)
        found = []
        for row in range(1, len(ast.tokens) - 1):
            kind = ast.tokens.kinds[row]
            name = _KINDS.get(kind, "keyword" if kind >= tokens.IMPORT else "mark")
            found.append(Token(name, ast.tokens.starts[row], ast.tokens.ends[row]))
        ast.close()
    return {diagnostic.code for diagnostic in diagnostics}, found


def productions_used(source: Source) -> set[str] | None:
    """The productions that the page reads a program with, if it has a reading. Compares with the parser."""
    codes, lexed = parsed(source)
    characters = Characters(source.text)
    divided = characters.tokens()
    read = None if divided is None else Program(source.text, divided).derivation
    is_utf8 = "E0100" not in codes
    assert (read is not None and is_utf8) == (not codes), (sorted(codes), source.text)
    if read is None or not is_utf8:
        return None
    assert divided == lexed
    return characters.used | set(used("program", read))


USED: dict[Path, set[str]] = {}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_page_reads_what_the_parser_reads(path: Path) -> None:
    USED[path] = productions_used(Source(path.name, path.read_bytes())) or set()


def small_programs() -> list[bytes]:
    return [text for path in PROGRAMS if len(text := path.read_bytes()) < 1500]


@pytest.mark.parametrize("seed", range(20))
def test_the_page_refuses_what_the_parser_refuses(seed: int) -> None:
    """Programs with a few tokens or characters removed, doubled, or exchanged."""
    numbers = random.Random(seed)
    programs = small_programs()
    words = rb"let fn match extern import as { } ( ) [ ] - . x 1 2. : = < > Int Array * true".split()
    words += [b'"s"', b" -", b"#! d\n", b"\n", b" "]
    accepted = 0
    for _ in range(40):
        text = numbers.choice(programs)
        pieces = re.findall(rb"\w+|\s+|[^\w\s]", text)
        for _ in range(numbers.randrange(1, 4)):
            at = numbers.randrange(len(pieces) + 1)
            kind = numbers.randrange(3)
            pieces[at : at + (kind != 1)] = [numbers.choice([*words, *pieces])] if kind else []
        accepted += productions_used(Source("changed", b"".join(pieces))) is not None
    assert accepted


@pytest.mark.parametrize("production", [name for section in SECTIONS for name in productions(section)])
def test_every_production_has_a_program(production: str) -> None:
    for path in PROGRAMS:
        if path not in USED:
            USED[path] = productions_used(Source(path.name, path.read_bytes())) or set()
        if production in USED[path]:
            return
    pytest.fail(f"no program among {len(PROGRAMS)} has a {production}")


def test_the_parser_has_the_productions_of_the_page_above_its_methods() -> None:
    text = "".join([(SYNTAX / name).read_text() for name in ("parser.py", "cursor.py")])
    above = dict(re.findall(r"^    # ([a-z_]+) = (.*)$", text, re.MULTILINE))
    assert above == {name: right for section in SECTIONS[:3] for name, right in productions(section).items()}
