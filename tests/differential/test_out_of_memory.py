"""Whichever request for memory is refused while a test program is compiled and run, no memory is left behind.

A dozen programs, with and without mistakes, have every request refused, and a large one some of them. With
GARDEN_LONG=1 in the environment it is all programs, and every request.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import shapes

from allocators import Allocator
from allocators.testing import check_every_failure
from allocators.testing.instrumented import Failures
from garden.errors import CompileError, Trap
from garden.pipeline import SCRATCH, STAGES, Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.vm.machine import ReferenceMachine
from tests.support.packages import PACKAGES
from tests.support.program import load

LONG = os.environ.get("GARDEN_LONG") == "1"
ROOT = Path(__file__).parent.parent / "programs"

PROGRAMS = [path for path in sorted(ROOT.rglob("*.garden")) if path.parent.name not in ("workloads", "traps", "limits")]
SAMPLE = PROGRAMS if LONG else PROGRAMS[::24]


def run(source: Source, stages: dict[str, Allocator]) -> None:
    """Compile and run at -O1. A mistake or a trap of the program is a good end, a refused request a MemoryError."""
    with Compilation(source, StageAllocators(stages), PACKAGES) as compilation:
        try:
            code = compilation.emit()
        except CompileError:
            return
        with ReferenceMachine(code, stages["run"], RunOptions(write=len)) as machine:
            try:
                machine.run()
            except Trap as trap:
                # What runs out of memory in a run is the program.
                if trap.code in ("T0002", "T0003"):
                    raise MemoryError(trap.message) from trap


def sources(failures: Failures) -> dict[str, Allocator]:
    return {stage: failures.allocator() for stage in (*STAGES, SCRATCH)}


@pytest.mark.parametrize("path", SAMPLE, ids=[path.relative_to(ROOT).with_suffix("").as_posix() for path in SAMPLE])
def test_no_memory_is_left_behind(path: Path) -> None:
    source = load(path).source
    assert check_every_failure(lambda stages: run(source, stages), sources) > 20


def test_a_large_program_leaves_no_memory_behind() -> None:
    # Large enough for the containers of every stage to grow several times.
    text = f'import "io"\n{shapes.tower(80).garden}{shapes.match(60).garden}io.println(f(f79(3)))'
    source = Source("large", text.encode())
    requests = check_every_failure(lambda stages: run(source, stages), sources, at_most=None if LONG else 60)
    assert requests > 200
