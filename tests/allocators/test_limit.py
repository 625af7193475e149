from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocators import AllocError, Arena, Block, Layout, LayoutError, LimitAllocator, MisuseError, PageAlloc


def test_zigs_numbers() -> None:
    """Zig #10258: accounting drifted on resizes and large blocks."""
    limited = LimitAllocator(PageAlloc(), 1010)
    small = limited.allocate(Layout(4, 4))
    large = limited.allocate(Layout(1000, 1))
    with pytest.raises(AllocError) as caught:
        limited.allocate(Layout(8, 8))
    assert (caught.value.size, caught.value.limit, caught.value.in_use) == (8, 1010, 1004)
    assert limited.live_bytes == 1004
    limited.deallocate(small, Layout(4, 4))
    assert limited.live_bytes == 1000
    limited.deallocate(large, Layout(1000, 1))
    assert limited.live_bytes == 0
    exact = limited.allocate(Layout(1010, 1))
    assert limited.remaining_bytes == 0
    with pytest.raises(AllocError):
        limited.allocate(Layout(1, 1))
    limited.deallocate(exact, Layout(1010, 1))


@pytest.mark.parametrize("parent", ["page", "arena"])
def test_growing_and_shrinking_count_the_difference_only(parent: str) -> None:
    limited = LimitAllocator(PageAlloc() if parent == "page" else Arena(PageAlloc()), 100)
    block = limited.allocate(Layout(40, 1))
    block = limited.grow(block, Layout(40, 1), Layout(100, 1))
    assert limited.live_bytes == 100
    with pytest.raises(AllocError) as caught:
        limited.grow(block, Layout(100, 1), Layout(101, 1))
    assert (caught.value.limit, caught.value.in_use) == (100, 100)
    block = limited.shrink(block, Layout(100, 1), Layout(10, 1))
    assert limited.live_bytes == 10
    block = limited.grow_zeroed(block, Layout(10, 1), Layout(99, 1))
    assert limited.live_bytes == 99
    limited.allocate(Layout(1, 1))
    limited.deallocate(block, Layout(99, 1))
    assert limited.live_bytes == 1


def test_nothing_can_always_be_allocated() -> None:
    limited = LimitAllocator(PageAlloc(), 0)
    block = limited.allocate(Layout(0, 64))
    with pytest.raises(AllocError):
        limited.grow(block, Layout(0, 64), Layout(1, 64))
    limited.deallocate(block, Layout(0, 64))


def test_the_limit_can_be_moved_even_below_what_is_in_use() -> None:
    limited = LimitAllocator(PageAlloc(), 100)
    block = limited.allocate(Layout(80, 1))
    limited.limit = 50
    assert limited.remaining_bytes == 0
    with pytest.raises(AllocError):
        limited.allocate(Layout(1, 1))
    empty = limited.allocate(Layout(0, 1))
    block = limited.shrink(block, Layout(80, 1), Layout(30, 1))
    assert limited.remaining_bytes == 20
    limited.limit = 1000
    limited.deallocate(limited.allocate(Layout(900, 1)), Layout(900, 1))
    limited.deallocate(block, Layout(30, 1))
    limited.deallocate(empty, Layout(0, 1))
    assert limited.live_blocks == 0


@pytest.mark.parametrize("limit", [-1, 1 << 63])
def test_a_limit_that_makes_no_sense_is_refused(limit: int) -> None:
    with pytest.raises(LayoutError):
        LimitAllocator(PageAlloc(), limit)
    limited = LimitAllocator(PageAlloc(), 5)
    with pytest.raises(LayoutError):
        limited.limit = limit
    assert limited.limit == 5


def test_it_limits_the_chunks_of_an_arena_above() -> None:
    limited = LimitAllocator(PageAlloc(), 60_000)
    arena = Arena(limited)

    def use_it_up() -> None:
        while True:
            arena.allocate(Layout(1000, 8))

    with pytest.raises(AllocError):
        use_it_up()
    assert 32_000 <= arena.allocated_bytes <= 60_000
    arena.close()
    assert limited.live_bytes == 0


def test_a_refused_parent_does_not_count() -> None:
    limited = LimitAllocator(LimitAllocator(PageAlloc(), 10), 100)
    with pytest.raises(AllocError) as caught:
        limited.allocate(Layout(20, 1))
    assert caught.value.limit == 10
    assert limited.live_bytes == 0


def test_what_a_scope_or_a_reset_drops_is_free_again() -> None:
    limited = LimitAllocator(Arena(PageAlloc()), 100)
    kept = limited.allocate(Layout(50, 1))
    for _ in range(10):
        with limited.scope():
            limited.allocate(Layout(50, 1))
    limited.reset()
    assert kept.released
    limited.allocate(Layout(100, 1))


@given(
    limit=st.integers(0, 2000),
    sizes=st.lists(st.tuples(st.sampled_from("agsf"), st.integers(0, 1500)), max_size=40),
)
def test_the_limit_is_never_exceeded_nor_anything_refused_below_it(limit: int, sizes: list[tuple[str, int]]) -> None:
    limited = LimitAllocator(Arena(PageAlloc()), limit)
    live: list[tuple[Block, Layout]] = []
    in_use = 0
    for step, size in sizes:
        if step == "f" and live:
            block, layout = live.pop()
            limited.deallocate(block, layout)
            in_use -= layout.size
        else:
            old = live[-1][1].size if live and step != "a" else 0
            new = {"a": size, "g": old + size, "s": min(old, size), "f": size}[step] if old else size
            fits = new <= old or in_use + new - old <= limit
            try:
                if not old:
                    live.append((limited.allocate(Layout(new, 1)), Layout(new, 1)))
                else:
                    block, layout = live[-1]
                    resize = limited.grow if new >= old else limited.shrink
                    live[-1] = (resize(block, layout, Layout(new, 1)), Layout(new, 1))
            except AllocError:
                assert not fits
            else:
                assert fits
                in_use += new - old
        assert limited.live_bytes == in_use <= limit
    limited.close()


def test_freeing_more_than_is_there_is_refused() -> None:
    parent = PageAlloc()
    limited = LimitAllocator(parent, 1000)
    with pytest.raises(MisuseError):
        limited.deallocate(parent.allocate(Layout(100, 1)), Layout(100, 1))
    assert limited.live_bytes == 0
