"""Stage allocators are real: what a stage reports is what it needs, and any allocator will do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from allocators import Allocator, AllocError, Arena, BumpAlloc, LimitAllocator, MetricAllocator, PageAlloc, StackAlloc
from garden.errors import Trap
from garden.machines import make_machine
from garden.pipeline import SCRATCH, STAGES, Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.std import STANDARD
from tests.support import program
from tests.support.engines import ENGINES, IDLE

PATH = Path(__file__).parent.parent / "programs" / "workloads" / "keyword_table.garden"
SOURCE = Source(PATH.name, PATH.read_bytes())
OUTPUT = "".join(f"{expected.text}\n" for expected in program.load(PATH).claims.output).encode()
#: By engine, the stages that need memory of their own.
USED = [(engine, stage) for engine in ENGINES for stage in (*STAGES, SCRATCH) if stage not in IDLE[engine]]


def run(engine: str, allocators: StageAllocators) -> tuple[str, bytes]:
    """Compile and run; the stage that ran out of memory, or "", and the output."""
    output = bytearray()
    with Compilation(SOURCE, allocators, STANDARD) as compilation:
        try:
            with make_machine(compilation, RunOptions(engine, write=output.extend), whole=False) as machine:
                machine.run()
        except AllocError:
            return compilation.stage, bytes(output)
        except Trap as trap:
            return f"run, {trap.code}", bytes(output)
    return "", bytes(output)


def needs(engine: str) -> dict[str, int]:
    """The peak of each stage, as its report says."""
    with StageAllocators() as plain:
        metered = plain.metered()
        assert run(engine, metered)[0] == ""
        return {
            stage: metric.counters.peak_bytes
            for stage, metric in metered.items()
            if isinstance(metric, MetricAllocator)
        }


@pytest.mark.parametrize(("engine", "stage"), USED)
def test_a_stage_needs_just_what_it_reports(engine: str, stage: str) -> None:
    peak = needs(engine)[stage]
    for limit, ran_out in ((peak, False), (peak - 1, True)):
        pages = PageAlloc() if stage == "native" else Arena(PageAlloc())
        limited = MetricAllocator(LimitAllocator(pages, limit))
        with StageAllocators({stage: limited}) as allocators:
            failed, output = run(engine, allocators)
        assert limited.live_blocks == 0
        if not ran_out:
            assert (failed, output) == ("", OUTPUT)
        elif stage == SCRATCH:
            assert failed
        else:
            # A machine that is refused memory while it runs traps; the optimiser works in what lowering has.
            assert failed.partition(",")[0] in {stage, "optimise" if stage == "lower" else stage}


KINDS: dict[str, Callable[[], Allocator]] = {
    "stack": lambda: StackAlloc(bytearray(1 << 20)),
    "bump": lambda: BumpAlloc(PageAlloc()),
    "arena": lambda: Arena(PageAlloc()),
    "page": PageAlloc,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("engine", "stage"), USED)
def test_any_allocator_serves_any_stage(engine: str, stage: str, kind: str) -> None:
    metric = MetricAllocator(KINDS[kind]())
    # Machine code needs pages; where there are none, something else runs the program.
    with StageAllocators({stage: metric}) as allocators:
        assert run("auto" if stage == "native" else engine, allocators) == ("", OUTPUT)
    assert metric.live_blocks == 0
    assert (metric.counters.total_blocks > 0) == (stage != "native" or kind == "page")
    metric.close()
