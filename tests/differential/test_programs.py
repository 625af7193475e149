"""The evaluator, which shares only the parser with the compiler, finds true what the test programs claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from allocators import PageAlloc
from garden.diagnostics import Diagnostic
from garden.syntax.parser import Parser
from tests.support import program
from tests.support.ast_evaluator import Evaluator, OutOfSteps, Trapped, Unsupported

ROOT = Path(__file__).parent.parent / "programs"
#: Traps that limits of the machine cause.
LIMITS = ("T0002", "T0003")
#: Most programs need a few hundred.
MAX_STEPS = 200_000


def runs(path: Path) -> bool:
    """Whether a program is one that runs, and ends."""
    claims = program.load(path).claims
    return claims.mode == "run" and not claims.errors and (claims.trap is None or claims.trap.code not in LIMITS)


#: The workloads are checked against Python programs of their own.
PROGRAMS = [path for path in sorted(ROOT.rglob("*.garden")) if path.parent.name != "workloads" and runs(path)]


@pytest.mark.parametrize("path", PROGRAMS, ids=[path.relative_to(ROOT).with_suffix("").as_posix() for path in PROGRAMS])
def test_a_program_means_what_it_claims(path: Path) -> None:
    loaded = program.load(path)
    diagnostics: list[Diagnostic] = []
    source = loaded.source
    ast = Parser(PageAlloc(), PageAlloc(), diagnostics).parse(source)
    assert not diagnostics
    trap: Trapped | None = None
    value = None
    evaluator = Evaluator(ast, MAX_STEPS)
    try:
        value = evaluator.run()
    except Trapped as trapped:
        trap = trapped
    except Unsupported as function:
        pytest.skip(f"depends on {function}")
    except OutOfSteps:
        pytest.skip("takes too long")
    finally:
        ast.close()
    claims = loaded.claims
    lines = evaluator.output.split("\n")
    assert lines == [claim.text for claim in claims.output] + lines[len(claims.output) :]
    assert lines[len(claims.output) :] in ([], [""])
    if claims.value is not None:
        assert program.shown(value) == claims.value.text
    if trap is None:
        assert claims.trap is None
    else:
        assert claims.trap is not None
        line, column = source.position(trap.offset)
        assert claims.trap.fits(line, column, trap.code, claims.trap.part)
