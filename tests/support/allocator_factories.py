"""Allocators to test, by their spec or by what they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from allocators import Allocator, Arena, BumpAlloc, MetricAllocator, PageAlloc, Region, StackAlloc

#: Set to run what takes minutes: the million operations, and more examples of the state machines.
THOROUGH = bool(os.environ.get("ALLOCATORS_THOROUGH"))
#: Examples that Hypothesis tries in a test.
EXAMPLES = 500 if THOROUGH else 25


def stack(size: int = 1 << 17, *, strict: bool = False) -> StackAlloc:
    return StackAlloc(bytearray(size), strict=strict)


#: The five allocators of the mission, ready to use.
FIVE: dict[str, Callable[[], Any]] = {
    "arena": lambda: Arena(PageAlloc()),
    "bump": lambda: BumpAlloc(PageAlloc()),
    "stack": stack,
    "page": PageAlloc,
    "metric": lambda: MetricAllocator(Arena(PageAlloc())),
}

#: Those that take a parent, each in its variants.
OVER_A_PARENT: dict[str, Callable[[Any], Allocator]] = {
    "arena": Arena,
    "arena min_align=8": lambda parent: Arena(parent, min_align=8),
    "arena min_align=16 rounded_grow": lambda parent: Arena(parent, min_align=16, rounded_grow=True),
    "arena capacity=100": lambda parent: Arena(parent, capacity=100),
    "bump": BumpAlloc,
    "bump of small chunks": lambda parent: BumpAlloc(parent, first_chunk=512, largest_chunk=2048),
    "metric": MetricAllocator,
}

#: Those that have memory of their own.
SOURCES: dict[str, Callable[[], Allocator]] = {
    "page": PageAlloc,
    "stack": stack,
    "fixed arena": lambda: Arena.over(Region.of(bytearray(1 << 17)), PageAlloc()),
}


def each(factories: dict[str, Any]) -> pytest.MarkDecorator:
    """Run a test with each of several factories, as `make`."""
    return pytest.mark.parametrize("make", list(factories.values()), ids=list(factories))
