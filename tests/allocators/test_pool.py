from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocators import (
    AllocError,
    Arena,
    Block,
    Checkpoint,
    Layout,
    LayoutError,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    reset,
)
from allocators.testing import Failures, Instrumented

ITEM = Layout(24, 8)


def test_the_block_freed_last_is_handed_out_first() -> None:
    """Zig: of three, the second is destroyed, and the next one created is it again."""
    pool = PoolAllocator(PageAlloc(), 24)
    first, second, third = (pool.allocate(ITEM) for _ in range(3))
    assert len({first.address, second.address, third.address}) == 3
    address = second.address
    pool.deallocate(second, ITEM)
    assert pool.allocate(ITEM).address == address
    addresses = [third.address, first.address]
    pool.deallocate(first, ITEM)
    pool.deallocate(third, ITEM)
    assert [pool.allocate(ITEM).address for _ in range(2)] == addresses


def test_it_asks_its_parent_for_slabs_that_double_up_to_a_mebibyte() -> None:
    parent = Instrumented()
    pool = PoolAllocator(parent, 1000, 8)
    for _ in range(4000):
        pool.allocate(Layout(1000, 8))
    slots = [call.new.size // 1000 for call in parent.calls if call.new is not None]
    assert slots == [16, 32, 64, 128, 256, 512, 1024, 1048, 1048]
    assert pool.capacity == sum(slots)
    assert pool.allocated_bytes == 1000 * sum(slots)
    pool.close()
    assert parent.live_blocks == 0


def test_slots_are_spaced_by_the_alignment() -> None:
    pool = PoolAllocator(PageAlloc(), 65, 64)
    addresses = [pool.allocate(Layout(65, 64)).address for _ in range(10)]
    assert all(address % 64 == 0 for address in addresses)
    assert {after - before for before, after in pairwise(addresses)} == {128}


def test_what_does_not_fit_a_slot_is_refused() -> None:
    pool = PoolAllocator(PageAlloc(), 24, 8)
    for layout in (Layout(25, 8), Layout(24, 16)):
        with pytest.raises(AllocError, match="slots have 24 bytes aligned to 8"):
            pool.allocate(layout)
    block = pool.allocate(Layout(8, 4))
    assert block.size == 24
    block.view[:] = bytes(range(24))
    with pytest.raises(AllocError):
        pool.grow(block, Layout(8, 4), Layout(25, 4))
    assert bytes(block.view) == bytes(range(24))
    pool.deallocate(block, Layout(24, 4))


def test_a_block_grows_and_shrinks_in_its_slot() -> None:
    pool = PoolAllocator(PageAlloc(), 24, 8)
    block = pool.allocate(Layout(1, 1))
    address = block.address
    block.view[0] = 7
    block = pool.grow_zeroed(block, Layout(1, 1), Layout(24, 8))
    assert bytes(block.view) == bytes([7]) + bytes(23)
    block = pool.shrink(block, Layout(24, 8), Layout(0, 1))
    block = pool.grow(block, Layout(0, 1), Layout(5, 1))
    assert block.address == address
    assert pool.live_blocks == 1
    pool.deallocate(block, Layout(5, 1))
    assert pool.live_blocks == 0


@pytest.mark.parametrize("slots", [1, 3, 4, 10, 64, 100])
def test_a_limit_below_can_be_used_to_the_last_slot(slots: int) -> None:
    """rmm #1957: the maximum could not be reached once there was an initial size."""
    for capacity in (0, 1, slots):
        pool = PoolAllocator(LimitAllocator(PageAlloc(), 16 * slots), 16, 16, capacity=capacity)
        for _ in range(slots):
            pool.allocate(Layout(16, 16))
        with pytest.raises(AllocError):
            pool.allocate(Layout(16, 16))
        assert pool.capacity == slots


def test_a_request_that_rounding_would_push_over_the_limit_fits() -> None:
    """rmm #1664: sizes were rounded up before they were compared with the limit."""
    pool = PoolAllocator(LimitAllocator(PageAlloc(), 1024), 1024, 1024)
    pool.allocate(Layout(1000, 8))


def test_a_capacity_is_allocated_right_away_and_can_be_all_there_is() -> None:
    parent = Instrumented()
    pool = PoolAllocator(parent, 24, capacity=5, growable=False)
    assert (pool.capacity, parent.live_bytes) == (5, 120)
    for _ in range(5):
        pool.allocate(ITEM)
    with pytest.raises(AllocError) as caught:
        pool.allocate(ITEM)
    assert (caught.value.limit, caught.value.in_use) == (120, 120)
    assert pool.capacity == 5
    with pytest.raises(AllocError):
        PoolAllocator(LimitAllocator(parent, 100), 24, capacity=5)


def test_a_refused_slab_changes_nothing() -> None:
    failures = Failures()
    pool = PoolAllocator(failures.allocator(), 24, capacity=1)
    block = pool.allocate(ITEM)
    failures.refuse(None)
    with pytest.raises(AllocError):
        pool.allocate(ITEM)
    pool.deallocate(block, ITEM)
    pool.allocate(ITEM)
    failures.allow()
    pool.allocate(ITEM)
    assert pool.live_blocks == 2


def test_misuse_is_refused() -> None:
    parent = PageAlloc()
    pool = PoolAllocator(parent, 24)
    block = pool.allocate(ITEM)
    with pytest.raises(MisuseError):
        pool.deallocate(parent.allocate(ITEM), ITEM)
    with pytest.raises(MisuseError):
        pool.deallocate(PoolAllocator(parent, 24).allocate(ITEM), ITEM)
    with pytest.raises(MisuseError):
        pool.deallocate(block, Layout(25, 8))
    pool.deallocate(block, ITEM)
    for use in (
        lambda: pool.deallocate(block, ITEM),
        lambda: pool.grow(block, ITEM, ITEM),
        lambda: pool.shrink(block, ITEM, ITEM),
    ):
        with pytest.raises(MisuseError):
            use()
    for size, align, capacity, error in ((0, 8, 0, MisuseError), (8, 3, 0, LayoutError), (8, 8, -1, MisuseError)):
        with pytest.raises(error):
            PoolAllocator(parent, size, align, capacity=capacity)


def test_resetting_keeps_the_slabs_that_the_policy_keeps_and_asks_for_none() -> None:
    parent = Instrumented()
    pool = PoolAllocator(parent, 16, 16)
    kept = {
        reset.ALL: [64, 32, 16],
        reset.NEWEST: [64],
        reset.limit(64 * 16 + 31 * 16): [64],
        reset.limit(64 * 16 + 32 * 16): [64, 32],
        reset.limit(63 * 16): [],
        reset.NONE: [],
        # 49 slots were in use, and half as many again are kept.
        reset.recent_peak(least=0): [64],
    }
    for policy, want in kept.items():
        blocks = [pool.allocate(Layout(16, 16)) for _ in range(16 + 32 + 1)]
        assert pool.capacity == 16 + 32 + 64
        assert pool.reset(policy)
        assert all(block.released for block in blocks)
        assert pool.live_blocks == 0
        assert pool.capacity == sum(want)
        before = len(parent.calls)
        for _ in range(sum(want)):
            pool.allocate(Layout(16, 16))
        assert len(parent.calls) == before
        pool.close()
        assert parent.live_blocks == 0


def test_the_end_of_a_scope_frees_its_slots_and_gives_its_slabs_back() -> None:
    parent = Instrumented()
    pool = PoolAllocator(parent, 16, 16)
    layout = Layout(16, 16)
    kept = [pool.allocate(layout) for _ in range(10)]
    freed = pool.allocate(layout)
    pool.deallocate(freed, layout)
    slabs = parent.live_blocks
    with pool.scope():
        inner = [pool.allocate(layout) for _ in range(100)]
        pool.deallocate(kept[0], layout)
        pool.deallocate(inner[3], layout)
        with pool.scope():
            innermost = [pool.allocate(layout) for _ in range(50)]
        assert all(block.released for block in innermost)
        assert not inner[4].released
        assert pool.live_blocks == 9 + 99
    assert all(block.released for block in inner)
    assert not any(block.released for block in kept[1:])
    assert pool.live_blocks == 9
    assert parent.live_blocks == slabs
    addresses = {block.address for block in kept[1:]}
    for _ in range(7):
        block = pool.allocate(layout)
        assert block.address not in addresses
        addresses.add(block.address)
    assert parent.live_blocks == slabs
    assert len(addresses) == 16


@given(st.lists(st.sampled_from("aaafcr"), max_size=80))
def test_scopes_never_lose_or_double_a_slot(steps: list[str]) -> None:
    parent = MetricAllocator(PageAlloc())
    pool = PoolAllocator(parent, 16, 16)
    layout = Layout(16, 16)
    live: list[tuple[Block, int]] = []
    points: list[Checkpoint] = []
    for step in steps:
        if step == "a":
            block = pool.allocate(layout)
            assert block.address not in {other.address for other, _depth in live}
            live.append((block, len(points)))
        elif step == "f" and live:
            pool.deallocate(live.pop(len(live) // 2)[0], layout)
        elif step == "c":
            points.append(pool.checkpoint())
        elif step == "r" and points:
            number = len(points) // 2
            pool.restore(points[number])
            del points[number:]
            for block, depth in live:
                assert block.released == (depth > number)
            live = [(block, depth) for block, depth in live if depth <= number]
        assert pool.live_blocks == len(live)
    while pool.live_blocks < pool.capacity:
        live.append((pool.allocate(layout), 0))
    assert len({block.address for block, _depth in live}) == pool.capacity
    pool.close()
    assert parent.live_blocks == 0


def test_a_closed_pool_is_empty_and_can_be_used_again() -> None:
    parent = Instrumented()
    with PoolAllocator(Arena(parent), 24) as pool:
        block = pool.allocate(ITEM)
    assert block.released
    assert pool.capacity == 0
    pool.allocate(ITEM)
    pool.close()
    pool.close()
