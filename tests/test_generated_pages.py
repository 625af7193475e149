"""Pages of the documentation that are made of what they describe; `pytest --bless` writes them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from allocators.spec import ENTRIES
from garden.diagnostics import CODES
from garden.std import STANDARD
from tests.support.program import load

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PROGRAMS = ROOT / "tests" / "programs"

_LINK = re.compile(r"\]\(([^)]+)\)")
_PARTS = {
    "E01": "Text",
    "E02": "Syntax",
    "E03": "Names and types",
    "E04": "Literals",
    "E05": "Executables",
    "T00": "Traps",
}


def diagnostics_page() -> str:
    """Every code, what it means, and the first program that causes it."""
    shown: dict[str, str] = {}
    for path in sorted(PROGRAMS.rglob("*.garden")):
        claims = load(path).claims
        codes = [claim.code for claim in claims.errors] + ([claims.trap.code] if claims.trap else [])
        for code in codes:
            shown.setdefault(code, path.relative_to(PROGRAMS).with_suffix("").as_posix())
    lines = [
        "# Diagnostics",
        "",
        "Every error that the compiler reports and every trap that ends a run has a code, which is never given to",
        "another one. The examples are test programs that cause them.",
    ]
    part = ""
    for code, meaning in CODES.items():
        if _PARTS[code[:3]] != part:
            part = _PARTS[code[:3]]
            lines.extend(["", f"## {part}", "", "| code | meaning | example |", "| --- | --- | --- |"])
        name = shown.get(code)
        example = f"[{name}](../tests/programs/{name}.garden)" if name else ""
        lines.append(f"| {code} | {meaning} | {example} |")
    return "\n".join(lines) + "\n"


def packages_page() -> str:
    """Every standard function."""
    lines = ["# The standard packages", "", "A package is called by the last part of its path."]
    for path in sorted(STANDARD):
        package = STANDARD[path]
        lines.extend(["", f"## {path}", "", package.doc, "", "| function | |", "| --- | --- |"])
        for function in package.functions:
            doc = " ".join(function.doc.split())
            lines.append(f"| `{str(function).removeprefix('fn ')}` | {doc} |")
    return "\n".join(lines) + "\n"


def specs_page() -> str:
    """Every allocator that a spec can name."""
    lines = [
        "# Specs of allocators",
        "",
        "A spec is a composition of allocators as text, such as `metric(limit(64M, arena(page, min_align=8)))`. Sizes",
        "are in bytes and may end in K, M, G or T. `allocators.parse_spec` builds the allocator that a spec describes,",
        "the `repr` of an allocator is its spec, and the command line accepts a spec for every allocator option.",
        "Parameters without a default are positional, the others are named.",
        "",
        "| spec | |",
        "| --- | --- |",
    ]
    lines += [f"| `{entry.usage}` | {entry.summary} |" for entry in ENTRIES]
    return "\n".join(lines) + "\n"


def test_the_page_of_diagnostics_is_up_to_date(matches_file: Callable[[Path, str], None]) -> None:
    matches_file(DOCS / "diagnostics.md", diagnostics_page())


def test_the_page_of_specs_is_up_to_date(matches_file: Callable[[Path, str], None]) -> None:
    matches_file(DOCS / "specs.md", specs_page())


@pytest.mark.skipif(sys.platform != "linux", reason="what uname tells depends on the system")
def test_the_page_of_standard_packages_is_up_to_date(matches_file: Callable[[Path, str], None]) -> None:
    matches_file(DOCS / "language" / "standard-packages.md", packages_page())


@pytest.mark.parametrize(
    "page", [DOCS / "diagnostics.md", *sorted((DOCS / "language").glob("*.md"))], ids=lambda page: page.stem
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        path = page.parent / target if target else page
        assert path.exists(), link
        if anchor:
            headings = [
                line.lstrip("# ").lower() for line in path.read_text(encoding="utf-8").split("\n") if line[:1] == "#"
            ]
            assert anchor in [heading.replace(" ", "-") for heading in headings], link


def test_every_feature_has_a_program() -> None:
    rows = [
        line
        for line in (DOCS / "language" / "features.md").read_text(encoding="utf-8").split("\n")
        if line.startswith("| ")
    ]
    features = [row for row in rows if not row.startswith(("| ---", "| feature "))]
    assert features
    for row in features:
        assert _LINK.search(row), row
