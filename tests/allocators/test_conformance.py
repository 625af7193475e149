"""Every allocator, alone and in every sensible composition two deep, keeps the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from allocators import (
    Allocator,
    BinningAllocator,
    CallbackAllocator,
    CallSiteAllocator,
    DebugAllocator,
    FailingAllocator,
    FallbackAllocator,
    LimitAllocator,
    LockedAllocator,
    PoolAllocator,
    RetryAllocator,
    TracemallocAllocator,
    TracingAllocator,
)
from allocators.spec import parse_spec
from allocators.testing import Instrumented, check_allocator, run_machine
from tests.support.allocator_factories import OVER_A_PARENT, SOURCES, THOROUGH, each, stack

ADAPTORS: dict[str, Callable[[Any], Allocator]] = {
    "limit": lambda parent: LimitAllocator(parent, 1 << 20),
    "pool": lambda parent: PoolAllocator(parent, 600, 128),
    "pool of small slots": lambda parent: PoolAllocator(parent, 16, 8),
    "binning": BinningAllocator,
    "fallback": lambda parent: FallbackAllocator(stack(4096), parent),
    "debug": DebugAllocator,
    "debug without quarantine": lambda parent: DebugAllocator(parent, quarantine=0, depth=0),
    "fail": lambda parent: FailingAllocator(parent, every=7),
    "retry": lambda parent: RetryAllocator(parent, lambda layout: False),
    "tracing": TracingAllocator,
    "call_sites": CallSiteAllocator,
    "tracemalloc": TracemallocAllocator,
    "locked": LockedAllocator,
}

CALLBACK: dict[str, Callable[[], Allocator]] = {
    "callback": lambda: CallbackAllocator(lambda layout: bytearray(layout.size), lambda memory, layout: None, align=1)
}

OUTER = (
    "arena({})",
    "arena({}, min_align=16, rounded_grow=true)",
    "bump({}, first_chunk=512, largest_chunk=4K)",
    "metric({})",
    "limit(256K, {})",
    "binning({})",
    "pool(256, {}, align=64)",
    "fallback(stack(2K), {})",
    "fallback(pool(64, page), {})",
    "debug({})",
    "fail({}, every=9)",
    "tracing({})",
    "call_sites({})",
    "locked({})",
)
INNER = (
    "page",
    "arena(page)",
    "bump(page, first_chunk=1K, largest_chunk=4K)",
    "stack(128K)",
    "fixed(128K)",
    "pool(512, page, align=256)",
    "binning(page)",
    "debug(page)",
    "limit(64K, page)",
    "metric(page)",
    "fallback(stack(4K), page)",
)
#: A pool serves no chunk of an arena.
COMPOSITIONS = [
    outer.format(inner) for outer in OUTER for inner in INNER if not (outer.startswith("arena") and inner[:4] == "pool")
]

MACHINE = settings(max_examples=300 if THOROUGH else 6, stateful_step_count=40, derandomize=not THOROUGH)


@each(OVER_A_PARENT | ADAPTORS)
def test_over_a_watched_parent_that_fails(make: Callable[[Any], Allocator]) -> None:
    check_allocator(make)


@each(SOURCES | CALLBACK | {"instrumented": Instrumented})
def test_with_memory_of_its_own(make: Callable[[], Allocator]) -> None:
    check_allocator(make)


@pytest.mark.parametrize("spec", COMPOSITIONS)
def test_a_composition(spec: str) -> None:
    check_allocator(lambda: parse_spec(spec))


@each(OVER_A_PARENT | ADAPTORS)
def test_machine_over_a_watched_parent_that_fails(make: Callable[[Any], Allocator]) -> None:
    run_machine(make, settings=MACHINE)


@each(SOURCES | CALLBACK)
def test_machine_with_memory_of_its_own(make: Callable[[], Allocator]) -> None:
    run_machine(make, settings=MACHINE)


@pytest.mark.parametrize("spec", COMPOSITIONS if THOROUGH else COMPOSITIONS[::3])
def test_machine_on_a_composition(spec: str) -> None:
    run_machine(lambda: parse_spec(spec), settings=MACHINE)


def test_a_strict_stack_last_in_first_out() -> None:
    def make() -> Allocator:
        return stack(strict=True)

    check_allocator(make, lifo=True)
    run_machine(make, lifo=True, settings=MACHINE)
