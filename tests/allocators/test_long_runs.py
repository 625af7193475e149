"""Long random runs end where they began: no live byte, and the memory back with the operating system.

The full million operations take some minutes and run where ALLOCATORS_THOROUGH is set; without it, a fiftieth of that.
"""

from __future__ import annotations

import gc
import random
import sys
from pathlib import Path

import pytest

from allocators import Arena, BumpAlloc, DebugAllocator, MetricAllocator, PageAlloc
from allocators.spec import parse_spec
from allocators.testing import Checked
from tests.support.allocator_factories import THOROUGH

OPERATIONS = 1_000_000 if THOROUGH else 20_000


def mapped_bytes() -> int:
    """Size of the address space that is mapped, as the kernel counts it."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * PageAlloc().page_size


def walk(checked: Checked, operations: int, random: random.Random, most_live: int) -> None:
    """Random operations on up to `most_live` blocks, as many frees as allocations once there are enough."""
    live = checked.live
    numbers: list[int] = []
    for step in range(operations):
        choice = random.random()
        if numbers and (choice < 0.42 or len(numbers) >= most_live):
            # Mostly young blocks die; swapping with the last keeps the choice cheap.
            index = int(len(numbers) * random.random() ** 0.5)
            numbers[index], numbers[-1] = numbers[-1], numbers[index]
            checked.deallocate(live[numbers.pop()])
        elif numbers and choice < 0.55:
            held = live[random.choice(numbers)]
            checked.resize(held, random.randrange(400), 1 << random.randrange(7), zeroed=random.random() < 0.5)
        else:
            size = random.choice((0, random.randrange(32), random.randrange(300), random.randrange(4000)))
            held_or_none = checked.allocate(size, 1 << random.randrange(8), zeroed=random.random() < 0.3)
            if held_or_none is not None:
                numbers.append(held_or_none.number)
        if step % 50_000 == 0:
            checked.check_all()
    checked.check_all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_million_operations_leave_no_live_byte_and_give_their_memory_back() -> None:
    gc.collect()
    before = mapped_bytes()
    pages = PageAlloc()
    arena = Arena(pages)
    metric = MetricAllocator(DebugAllocator(arena, depth=0))
    checked = Checked(metric, sample=2, record=False)
    walk(checked, OPERATIONS, random.Random(1), 500)
    peak = mapped_bytes()
    assert peak - before >= pages.allocated_bytes > 0
    assert metric.live_bytes == sum(held.layout.size for held in checked.live.values())
    checked.free_all()
    assert (metric.live_bytes, metric.live_blocks) == (0, 0)
    metric.close()
    assert (arena.allocated_bytes, pages.allocated_bytes, pages.live_blocks) == (0, 0, 0)
    del checked
    gc.collect()
    # What stays is the model's own: Python's heap grows by a few MiB and does not shrink.
    assert mapped_bytes() - before < max((peak - before) // 4, 16 << 20)


@pytest.mark.parametrize(
    "spec",
    [
        "metric(page)",
        "metric(bump(page, first_chunk=4K))",
        "metric(binning(page))",
        "metric(pool(600, page, align=128))",
        "metric(fallback(stack(64K), arena(page)))",
        "metric(stack(16M))",
    ],
)
def test_a_long_walk_over(spec: str) -> None:
    metric = parse_spec(spec)
    assert isinstance(metric, MetricAllocator)
    checked = Checked(metric, sample=2, record=False)
    walk(checked, OPERATIONS // 5, random.Random(spec), 200)
    checked.free_all()
    assert (metric.live_bytes, metric.live_blocks) == (0, 0)
    metric.close()


def test_rounds_with_a_reset_settle_at_one_chunk() -> None:
    pages = PageAlloc()
    for allocator in (Arena(pages), BumpAlloc(pages)):
        checked = Checked(allocator, sample=1, record=False)
        sizes = []
        for number in range(8):
            walk(checked, 500, random.Random(number), 400)
            checked.reset()
            sizes.append(allocator.allocated_bytes)
        assert sizes[-1] == sizes[-3]
        allocator.close()
    assert pages.allocated_bytes == 0
