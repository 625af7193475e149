"""Stage allocators are real: what a stage reports is what it needs, and any allocator will do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import program
import pytest

from allocators import Allocator, AllocError, Arena, BumpAlloc, LimitAllocator, MetricAllocator, PageAlloc, StackAlloc
from garden.errors import Trap
from garden.pipeline import SCRATCH, STAGES, Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD
from garden.vm.machine import Machine

PATH = Path(__file__).parent.parent / "programs" / "workloads" / "gcd_sum.garden"
SOURCE = Source(PATH.name, PATH.read_bytes())
OUTPUT = "".join(f"{expected.text}\n" for expected in program.load(PATH).claims.output).encode()
USED = [stage for stage in (*STAGES, SCRATCH) if stage != "optimise"]


def run(allocators: StageAllocators) -> tuple[str, bytes]:
    """Compile and run; the stage that ran out of memory, or "", and the output."""
    output = bytearray()
    with Compilation(SOURCE, allocators, STANDARD) as compilation:
        try:
            code = compilation.emit()
            compilation.stage = "run"
            with Machine(code, allocators["run"], write=output.extend) as machine:
                machine.run()
        except AllocError:
            return compilation.stage, bytes(output)
        except Trap as trap:
            return f"run, {trap.code}", bytes(output)
    return "", bytes(output)


def needs() -> dict[str, int]:
    """The peak of each stage, as its report says."""
    with StageAllocators() as plain:
        metered = plain.metered()
        assert run(metered)[0] == ""
        return {
            stage: metric.counters.peak_bytes
            for stage, metric in metered.items()
            if isinstance(metric, MetricAllocator)
        }


@pytest.mark.parametrize("stage", USED)
def test_a_stage_needs_just_what_it_reports(stage: str) -> None:
    peak = needs()[stage]
    for limit, ran_out in ((peak, False), (peak - 1, True)):
        limited = MetricAllocator(LimitAllocator(Arena(PageAlloc()), limit))
        with StageAllocators({stage: limited}) as allocators:
            failed, output = run(allocators)
        assert limited.live_blocks == 0
        if not ran_out:
            assert (failed, output) == ("", OUTPUT)
        elif stage == SCRATCH:
            assert failed
        else:
            # A machine that is refused memory while it runs traps.
            assert failed.partition(",")[0] == stage


KINDS: dict[str, Callable[[], Allocator]] = {
    "stack": lambda: StackAlloc(bytearray(1 << 20)),
    "bump": lambda: BumpAlloc(PageAlloc()),
    "arena": lambda: Arena(PageAlloc()),
    "page": PageAlloc,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", [*STAGES, SCRATCH])
def test_any_allocator_serves_any_stage(stage: str, kind: str) -> None:
    metric = MetricAllocator(KINDS[kind]())
    with StageAllocators({stage: metric}) as allocators:
        assert run(allocators) == ("", OUTPUT)
    assert metric.live_blocks == 0
    assert (metric.counters.total_blocks > 0) == (stage != "optimise")
    metric.close()
