"""Every garden example in the pages about the language runs as it says, on every engine and at every level."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.engines import ENGINES
from tests.support.program import Program, load_page

PAGES = Path(__file__).parent.parent / "docs" / "language"

EXAMPLES = [
    pytest.param(program, engine, level, id=f"{page.stem}-{heading}-{engine}-O{level}")
    for page in sorted(PAGES.glob("*.md"))
    for heading, program in load_page(page)
    for engine in ENGINES
    for level in program.claims.levels
]


@pytest.mark.parametrize(("program", "engine", "level"), EXAMPLES)
def test_an_example_runs_as_it_says(program: Program, engine: str, level: int) -> None:
    program.check(engine, level)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 60
