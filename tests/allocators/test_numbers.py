"""Numbers in the public interface: whatever has `__index__` is one, in both flavours; everything else is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from allocators import (
    Arena,
    ArenaPool,
    BinningAllocator,
    BumpAlloc,
    DebugAllocator,
    FailingAllocator,
    Layout,
    LayoutError,
    LimitAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    reset,
)
from allocators.collections import ByteBuffer, HashMap, Table, Vec


class Number:
    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


PAGES = PageAlloc()

#: What takes the number, and one that it accepts.
TAKERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "arena min_align": (lambda number: Arena(PAGES, min_align=number), 8),
    "arena capacity": (lambda number: Arena(PAGES, capacity=number), 4096),
    "bump first_chunk": (lambda number: BumpAlloc(PAGES, first_chunk=number), 4096),
    "bump largest_chunk": (lambda number: BumpAlloc(PAGES, largest_chunk=number), 1 << 20),
    "pool size": (lambda number: PoolAllocator(PAGES, number), 64),
    "pool align": (lambda number: PoolAllocator(PAGES, 64, number), 16),
    "pool capacity": (lambda number: PoolAllocator(PAGES, 64, capacity=number), 10),
    "arena pool most": (lambda number: ArenaPool(PAGES, most=number), 2),
    "limit": (lambda number: LimitAllocator(PAGES, number), 4096),
    "binning smallest": (lambda number: BinningAllocator(PAGES, smallest=number), 32),
    "binning largest": (lambda number: BinningAllocator(PAGES, largest=number), 64),
    "failing fail_index": (lambda number: FailingAllocator(PAGES, fail_index=number), 1),
    "failing resize_fail_index": (lambda number: FailingAllocator(PAGES, resize_fail_index=number), 1),
    "failing every": (lambda number: FailingAllocator(PAGES, every=number), 3),
    "failing times": (lambda number: FailingAllocator(PAGES, times=number), 3),
    "debug depth": (lambda number: DebugAllocator(PAGES, depth=number), 4),
    "debug canary": (lambda number: DebugAllocator(PAGES, canary=number), 8),
    "debug quarantine": (lambda number: DebugAllocator(PAGES, quarantine=number), 4096),
    "reset limit": (lambda number: reset.limit(number), 4096),
    "reset rounds": (lambda number: reset.recent_peak(number), 2),
    "layout size": (lambda number: Layout(number), 64),
    "layout align": (lambda number: Layout(64, number), 16),
    "table capacity": (lambda number: Table(PAGES, "I", number), 8),
    "vec capacity": (lambda number: Vec(PAGES, "I", number), 8),
    "buffer capacity": (lambda number: ByteBuffer(PAGES, number), 8),
    "map capacity": (lambda number: HashMap(PAGES, number), 8),
    "vec reserve": (lambda number: Vec(PAGES, "I").reserve(number), 8),
    "buffer reserve": (lambda number: ByteBuffer(PAGES).reserve(number), 8),
    "map reserve": (lambda number: HashMap(PAGES).reserve(number), 8),
}
each = pytest.mark.parametrize("name", TAKERS)


@each
def test_what_has_an_index_is_a_number(name: str) -> None:
    take, good = TAKERS[name]
    assert repr(take(Number(good))) == repr(take(good)) or "at 0x" in repr(take(good))


@each
@pytest.mark.parametrize("bad", [4.0, "4", [4]], ids=repr)
def test_what_has_no_index_is_refused(name: str, bad: object) -> None:
    take, _ = TAKERS[name]
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        take(bad)


@each
def test_a_negative_number_is_refused(name: str) -> None:
    take, _ = TAKERS[name]
    with pytest.raises((LayoutError, MisuseError)) as caught:
        take(Number(-5))
    assert "-5" in str(caught.value)


@each
def test_a_huge_number_is_refused_by_all_but_those_without_a_bound(name: str) -> None:
    take, _ = TAKERS[name]
    if name.startswith(("failing", "debug", "reset")):
        take(Number(1 << 70))
        return
    with pytest.raises((LayoutError, MisuseError)):
        take(Number(1 << 70))
