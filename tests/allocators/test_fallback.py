from __future__ import annotations

import ctypes
from typing import Any

import pytest

from allocators import (
    AllocError,
    Arena,
    BaseAllocator,
    BinningAllocator,
    Block,
    BumpAlloc,
    CorruptionError,
    DebugAllocator,
    FallbackAllocator,
    Layout,
    LeakError,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    Region,
    ResetPolicy,
    StackAlloc,
    reset,
)
from allocators.testing import Failures


def test_zigs_numbers_in_units_of_16() -> None:
    """Zig's test of BufferFirstAllocator, with a stack that rounds sizes up to 16 bytes."""
    block = PageAlloc().allocate(Layout(160, 16))
    stack = StackAlloc(block.region.part(block.address, 160))
    fallback = FallbackAllocator(stack, MetricAllocator(PageAlloc()))

    def behind() -> int:
        return fallback.second.live_blocks

    nine = fallback.allocate(Layout(144, 1))
    assert stack.owns(nine)
    five = fallback.allocate(Layout(80, 1))
    assert not stack.owns(five)
    assert behind() == 1
    fallback.deallocate(nine, Layout(144, 1))
    twelve = fallback.allocate(Layout(192, 1))
    assert behind() == 2
    six = fallback.allocate(Layout(96, 1))
    assert stack.owns(six)
    eight = fallback.allocate(Layout(128, 1))
    assert behind() == 3
    for each, size in ((five, 80), (twelve, 192), (six, 96), (eight, 128)):
        fallback.deallocate(each, Layout(size, 1))
    assert stack.used_bytes == 0
    assert behind() == 0


def test_a_block_that_the_first_cannot_grow_moves_to_the_second() -> None:
    stack = StackAlloc(bytearray(256))
    fallback = FallbackAllocator(stack, MetricAllocator(PageAlloc()))
    for method, rest in (("grow", None), ("grow_zeroed", bytes(900))):
        block = fallback.allocate(Layout(100, 8))
        block.view[:100] = bytes(range(100))
        moved = getattr(fallback, method)(block, Layout(100, 8), Layout(1000, 8))
        assert bytes(moved.view[:100]) == bytes(range(100))
        if rest is not None:
            assert bytes(moved.view[100:1000]) == rest
        assert block.released
        assert stack.used_bytes == 0
        assert not stack.owns(moved)
        smaller = fallback.shrink(moved, Layout(1000, 8), Layout(50, 8))
        assert bytes(smaller.view[:50]) == bytes(range(50))
        assert not stack.owns(smaller)
        fallback.deallocate(smaller, Layout(50, 8))
    assert fallback.second.live_blocks == 0


def test_growing_that_both_refuse_changes_nothing() -> None:
    stack = StackAlloc(bytearray(256))
    fallback = FallbackAllocator(stack, LimitAllocator(PageAlloc(), 500))
    block = fallback.allocate(Layout(100, 8))
    block.view[:100] = bytes(range(100))
    for method in ("grow", "grow_zeroed"):
        with pytest.raises(AllocError) as caught:
            getattr(fallback, method)(block, Layout(100, 8), Layout(1000, 8))
        assert caught.value.limit == 500
    assert bytes(block.view[:100]) == bytes(range(100))
    fallback.deallocate(block, Layout(100, 8))
    assert stack.used_bytes == 0


def test_a_shrink_that_the_first_refuses_moves_too() -> None:
    failures = Failures()
    first = failures.allocator()
    fallback = FallbackAllocator(first, Arena(PageAlloc()))
    block = fallback.allocate(Layout(100, 8))
    block.view[:] = bytes(range(100))
    failures.refuse()
    moved = fallback.shrink(block, Layout(100, 8), Layout(50, 16))
    assert bytes(moved.view[:50]) == bytes(range(50))
    assert first.live_blocks == 0


def test_blocks_of_no_bytes_belong_to_the_second() -> None:
    first = MetricAllocator(StackAlloc(bytearray(64)))
    second = MetricAllocator(PageAlloc())
    fallback = FallbackAllocator(first, second)
    block = fallback.allocate(Layout(0, 64))
    assert block.address % 64 == 0
    zeroed = fallback.allocate_zeroed(Layout(0, 1))
    assert (first.live_blocks, second.live_blocks) == (0, 2)
    grown = fallback.grow(block, Layout(0, 64), Layout(8, 8))
    assert block.released
    assert (first.live_blocks, second.live_blocks) == (1, 1)
    empty = fallback.shrink(grown, Layout(8, 8), Layout(0, 8))
    assert (first.live_blocks, second.live_blocks) == (0, 2)
    for each, layout in ((empty, Layout(0, 8)), (zeroed, Layout(0, 1))):
        fallback.deallocate(each, layout)
        with pytest.raises(MisuseError):
            fallback.deallocate(each, layout)
    assert second.live_blocks == 0


def test_a_block_right_behind_the_firsts_memory_is_the_seconds() -> None:
    """Two mappings often touch: the end of one is the address of the other."""
    whole = PageAlloc().allocate(Layout(8192, 4096))

    class Halves:
        """Hands out the two halves of one mapping, the upper one first."""

        def __init__(self) -> None:
            self.left = [whole.address, whole.address + 4096]

        def allocate(self, layout: Layout) -> Block:
            if layout.size > 4096 or not self.left:
                raise AllocError("halves", layout)
            address = self.left.pop()
            return Block(address, 4096, whole.region.part(address, 4096))

        allocate_zeroed = allocate

        def deallocate(self, block: Block, layout: Layout) -> None:
            self.left.append(block.address)
            block.release()

        def grow(self, block: Block, old: Layout, new: Layout) -> Block:
            raise AllocError("halves", new)

        grow_zeroed = grow
        shrink = grow

    halves = Halves()
    second = MetricAllocator(halves)
    first = BumpAlloc(halves, first_chunk=4096)
    fallback = FallbackAllocator(first, second)
    behind = second.allocate(Layout(4096, 8))
    front = fallback.allocate(Layout(4096, 8))
    assert front.address + 4096 == behind.address
    assert first.owns(front)
    assert not first.owns(behind)
    fallback.deallocate(behind, Layout(4096, 8))
    assert second.live_blocks == 0


def test_scopes_and_resets_take_both_back() -> None:
    first = Arena(LimitAllocator(PageAlloc(), 20_000))
    second = BumpAlloc(PageAlloc())
    fallback = FallbackAllocator(first, second)
    kept = [fallback.allocate(Layout(10_000, 8)) for _ in range(2)]
    used = (first.used_bytes, second.used_bytes)
    assert used == (10_000, 10_000)
    with fallback.scope():
        dropped = [fallback.allocate(Layout(3000, 8)) for _ in range(4)]
    assert all(block.released for block in dropped)
    assert not any(block.released for block in kept)
    assert (first.used_bytes, second.used_bytes) == used
    fallback.reset()
    assert all(block.released for block in kept)
    assert (first.used_bytes, second.used_bytes) == (0, 0)
    fallback.close()
    assert (first.allocated_bytes, second.allocated_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("first", "second"), [(Arena(PageAlloc()), PageAlloc()), (PageAlloc(), Arena(PageAlloc()))], ids=["second", "first"]
)
def test_both_must_be_able_to_go_back(first: Any, second: Any) -> None:
    fallback = FallbackAllocator(first, second)
    block = fallback.allocate(Layout(10, 1))
    with pytest.raises(MisuseError):
        fallback.checkpoint()
    with pytest.raises(MisuseError):
        fallback.reset()
    with pytest.raises(MisuseError):
        fallback.restore(Arena(PageAlloc()).checkpoint())
    assert not block.released
    fallback.deallocate(block, Layout(10, 1))


def test_a_first_allocator_that_does_not_know_its_blocks_is_of_no_use() -> None:
    class Mute:
        def allocate(self, layout: Layout) -> Block:
            return Block(16, layout.size, Region.of(bytearray(layout.size)))

        allocate_zeroed = allocate

        def deallocate(self, block: Block, layout: Layout) -> None: ...

        def grow(self, block: Block, old: Layout, new: Layout) -> Block:
            return block

        grow_zeroed = grow
        shrink = grow

    fallback = FallbackAllocator(Mute(), PageAlloc())
    block = fallback.allocate(Layout(8, 8))
    with pytest.raises(MisuseError, match="cannot tell which blocks it owns"):
        fallback.deallocate(block, Layout(8, 8))


class Refusing(BaseAllocator):
    """Has no reset."""

    def __init__(self) -> None:
        self._pages = PageAlloc()

    def allocate(self, layout: Layout) -> Block:
        return self._pages.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._pages.deallocate(block, layout)

    def owns(self, block: Block) -> bool:
        return self._pages.owns(block)


@pytest.mark.parametrize("refusing", [Refusing, lambda: MetricAllocator(MetricAllocator(PageAlloc()))])
@pytest.mark.parametrize("policy", [None, reset.NONE])
def test_both_are_reset_or_none(refusing: Any, policy: ResetPolicy | None) -> None:
    for parents in ((BumpAlloc(PageAlloc()), refusing()), (refusing(), Arena(PageAlloc()))):
        for adaptor in (FallbackAllocator, lambda first, second: BinningAllocator(first, bins={16: second})):
            metric = MetricAllocator(adaptor(*parents))
            blocks = [parent.allocate(Layout(8, 8)) for parent in parents]
            counted = metric.allocate(Layout(8, 8))
            with pytest.raises(MisuseError, match="cannot be reset"):
                metric.reset(policy)
            assert not any(block.released for block in [*blocks, counted])
            assert metric.live_blocks == 1


def test_a_policy_is_for_those_that_have_chunks() -> None:
    arena = Arena(PageAlloc())
    metric = MetricAllocator(FallbackAllocator(StackAlloc(bytearray(64)), arena))
    blocks = [metric.allocate(Layout(size, 8)) for size in (40, 500)]
    metric.reset(reset.NONE)
    assert all(block.released for block in blocks)
    assert (metric.live_blocks, arena.allocated_bytes) == (0, 0)


def overrun(allocator: DebugAllocator[Any]) -> Block:
    """A block behind whose end somebody writes."""
    block = allocator.allocate(Layout(8, 8))
    ctypes.c_char.from_address(block.address + 8).value = b"x"
    return block


@pytest.mark.parametrize("broken", [0, 1])
def test_what_one_finds_at_its_reset_is_raised_when_both_are_reset(broken: int) -> None:
    parents = [DebugAllocator(Arena(PageAlloc())), DebugAllocator(Arena(PageAlloc()))]
    fallback = FallbackAllocator(*parents)
    blocks = [overrun(parents[broken]), parents[1 - broken].allocate(Layout(8, 8))]
    with pytest.raises(CorruptionError):
        fallback.reset()
    assert all(block.released for block in blocks)
    fallback.reset()


@pytest.mark.parametrize("broken", [0, 1])
def test_what_one_finds_at_a_scopes_end_is_raised_after_both(broken: int) -> None:
    parents = [DebugAllocator(Arena(PageAlloc())), DebugAllocator(Arena(PageAlloc()))]
    fallback = FallbackAllocator(*parents)
    point = fallback.checkpoint()
    blocks = [overrun(parents[broken]), parents[1 - broken].allocate(Layout(8, 8))]
    with pytest.raises(CorruptionError):
        fallback.restore(point)
    assert all(block.released for block in blocks)
    with pytest.raises(MisuseError):
        fallback.restore(point)


def test_a_checkpoint_that_one_has_passed_is_refused_and_nothing_changes() -> None:
    first, second = Arena(PageAlloc()), Arena(PageAlloc())
    fallback = FallbackAllocator(first, second)
    point = fallback.checkpoint()
    first.reset()
    block = second.allocate(Layout(8, 8))
    with pytest.raises(MisuseError):
        fallback.restore(point)
    assert not block.released


class Stubborn(BaseAllocator):
    """Takes nothing back."""

    def __init__(self, parent: Arena[PageAlloc]) -> None:
        self._parent = parent

    def allocate(self, layout: Layout) -> Block:
        return self._parent.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        raise RuntimeError("no")

    def owns(self, block: Block) -> bool:
        return self._parent.owns(block)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        raise AllocError("stubborn", new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        raise AllocError("stubborn", new)


@pytest.mark.parametrize("method", ["grow", "grow_zeroed"])
def test_a_block_that_cannot_leave_the_first_takes_nothing_of_the_second(method: str) -> None:
    second = MetricAllocator(PageAlloc())
    for adaptor in (
        FallbackAllocator(Stubborn(Arena(PageAlloc())), second),
        BinningAllocator(second, bins={16: Stubborn(Arena(PageAlloc()))}),
    ):
        block = adaptor.allocate(Layout(8, 8))
        with pytest.raises(RuntimeError):
            getattr(adaptor, method)(block, Layout(8, 8), Layout(100, 8))
        assert (block.released, second.live_blocks) == (False, 0)


@pytest.mark.parametrize("kind", ["fallback", "binning"])
def test_all_are_closed_when_closing_one_of_them_raises(kind: str) -> None:
    parents = [DebugAllocator(PageAlloc()), DebugAllocator(PageAlloc())]
    leaked = [parent.allocate(Layout(8, 8)) for parent in parents]
    adaptor: Any = FallbackAllocator(*parents)
    if kind == "binning":
        adaptor = BinningAllocator(parents[0], bins={16: parents[1]})
    with pytest.raises(LeakError):
        adaptor.close()
    assert all(block.released for block in leaked)
