"""The test programs are complete and tidy: every diagnostic, every trap and every standard function has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from garden.diagnostics import CODES
from garden.std import STANDARD
from tests.support.annotations import SNAPSHOTS
from tests.support.program import Program, load

ROOT = Path(__file__).parent / "programs"
PROGRAMS: dict[str, Program] = {
    path.relative_to(ROOT).as_posix(): load(path) for path in sorted(ROOT.rglob("*.garden"))
}
TEXTS = {name: program.source.text.decode(errors="replace") for name, program in PROGRAMS.items()}

_LONG_STRING = re.compile(r'^[^"\n]*("[^"\n]*"[^"\n]*)*"[^"\n]*\n[^"]*"', re.MULTILINE)

#: Nothing in a program causes Ctrl-C, and only building an executable refuses a function; both have tests elsewhere.
NOT_BY_RUNNING = {"T0007", "E0501"}


@pytest.mark.parametrize("code", [code for code in CODES if code not in NOT_BY_RUNNING])
def test_every_code_has_a_program_that_says_where(code: str) -> None:
    claims = []
    for program in PROGRAMS.values():
        claims.extend(program.claims.errors)
        if program.claims.trap is not None:
            claims.append(program.claims.trap)
    assert any(claim.code == code and claim.column is not None for claim in claims)


@pytest.mark.parametrize(
    "path", sorted({function.path for package in STANDARD.values() for function in package.functions})
)
def test_every_standard_function_is_called(path: str) -> None:
    package, _, name = path.rpartition(".")
    called = f"{package.rpartition('/')[2]}.{name}("
    assert any(called in text for text in TEXTS.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_called_by_a_sentence_and_claims_something(name: str) -> None:
    assert re.fullmatch(r"[a-z]+/[a-z0-9_]+\.garden", name)
    claims = PROGRAMS[name].claims
    claimed = claims.output or claims.value or claims.errors or claims.trap or claims.mode == "check"
    assert claimed or "testing.assert" in TEXTS[name]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("lexical/")])
def test_line_ends_of_windows_make_no_difference(name: str) -> None:
    # Those inside a string are part of it.
    if _LONG_STRING.search(TEXTS[name]):
        pytest.skip("has a string of several lines")
    text = PROGRAMS[name].source.text.decode(errors="surrogateescape")
    Program(name, text.replace("\n", "\r\n")).check("reference", 1)


def test_every_snapshot_belongs_to_a_program() -> None:
    kept = {path.relative_to(ROOT) for kind in SNAPSHOTS for path in ROOT.rglob(f"*.{kind}")}
    wanted = {
        Path(name).with_suffix(f".{kind}") for name, program in PROGRAMS.items() for kind in program.claims.snapshots
    }
    assert kept == wanted
