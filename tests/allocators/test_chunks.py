"""What allocators that cut up a parent's blocks do when the parent raises, calls back, or takes its blocks away."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from allocators import (
    Allocator,
    AllocError,
    Arena,
    Block,
    BumpAlloc,
    DebugAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    PoolAllocator,
    Region,
    reset,
)
from allocators.spec import parse_spec
from allocators.testing import Instrumented
from tests.support.allocator_factories import each

ITEM = Layout(64, 8)

#: Small chunks, so that few blocks need many.
CHUNKED: dict[str, Callable[[Any], Any]] = {
    "arena": lambda parent: Arena(parent, min_align=8),
    "bump": lambda parent: BumpAlloc(parent, first_chunk=256, largest_chunk=256),
    "pool": lambda parent: PoolAllocator(parent, 64),
}


class Stop(BaseException):
    """As KeyboardInterrupt is one."""


class Hooked(Instrumented):
    """Calls a function before it allocates, and before it takes a block back."""

    def __init__(self) -> None:
        super().__init__()
        self.before_allocate: Callable[[], None] | None = None
        self.before_deallocate: Callable[[], None] | None = None

    def allocate(self, layout: Layout) -> Block:
        if self.before_allocate is not None:
            self.before_allocate()
        return super().allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if self.before_deallocate is not None:
            self.before_deallocate()
        super().deallocate(block, layout)


def fill(allocator: Allocator, parent: Instrumented, chunks: int) -> list[Block]:
    """Allocate until the parent has given so many blocks more."""
    wanted = parent.live_blocks + chunks
    blocks = []
    while parent.live_blocks < wanted:
        blocks.append(allocator.allocate(ITEM))
        if isinstance(allocator, BumpAlloc) and len(blocks) == 2:
            # Some of its blocks have chunks of their own.
            blocks.append(allocator.allocate(Layout(300, 8)))
    return blocks


ENDS: dict[str, Callable[[Any, Any], object]] = {
    "restore": lambda allocator, point: allocator.restore(point),
    "reset": lambda allocator, point: allocator.reset(),
    "reset to nothing": lambda allocator, point: allocator.reset(reset.NONE),
    "close": lambda allocator, point: allocator.close(),
}


@each(CHUNKED)
@pytest.mark.parametrize("end", list(ENDS.values()), ids=list(ENDS))
@pytest.mark.parametrize("error", [Stop(), KeyError(), MemoryError()], ids=lambda error: type(error).__name__)
def test_what_the_parent_raises_comes_after_the_deed(
    make: Callable[[Any], Any], end: Callable[[Any, Any], object], error: BaseException
) -> None:
    """Each block that goes back is refused in turn, and nothing but that one is left behind."""
    refused = 0
    while True:
        parent = Hooked()
        allocator = make(parent)
        older = fill(allocator, parent, 1)
        point = allocator.checkpoint()
        newer = fill(allocator, parent, 3)
        numbers = iter(range(100))

        def refuse(numbers: Any = numbers, refused: int = refused) -> None:
            if next(numbers) == refused:
                raise error

        parent.before_deallocate = refuse
        raised: list[BaseException] = []
        try:
            end(allocator, point)
        except BaseException as caught:
            raised.append(caught)
        parent.before_deallocate = None
        if not raised:
            break
        assert raised == [error]
        refused += 1
        assert all(block.released for block in newer)
        restored = end is ENDS["restore"]
        assert all(block.released != restored for block in older)
        kept = parent.live_blocks
        blocks = [allocator.allocate(ITEM) for _ in range(3)]
        live = [*older, *blocks] if restored else blocks
        for number, block in enumerate(live):
            block.view[:] = bytes([number]) * block.size
        assert all(bytes(block.view) == bytes([number]) * block.size for number, block in enumerate(live))
        if end is ENDS["close"]:
            assert kept == 1
        allocator.close()
        assert parent.live_blocks == 1
    assert refused or end is ENDS["reset"]


@each(CHUNKED)
def test_the_parent_may_use_the_allocator_while_it_takes_blocks_back(make: Callable[[Any], Any]) -> None:
    for end in ENDS.values():
        for use in (
            lambda allocator: allocator.allocate(ITEM),
            lambda allocator: allocator.reset(),
            lambda allocator: allocator.close(),
            lambda allocator: allocator.checkpoint(),
        ):
            parent = Hooked()
            allocator = make(parent)
            fill(allocator, parent, 1)
            point = allocator.checkpoint()
            fill(allocator, parent, 3)
            parent.before_deallocate = lambda use=use, allocator=allocator: use(allocator)
            end(allocator, point)
            parent.before_deallocate = None
            blocks = fill(allocator, parent, 2)
            assert len({block.address for block in blocks}) == len(blocks)
            assert not any(block.released for block in blocks)
            allocator.close()
            assert parent.live_blocks == 0


@each(CHUNKED)
def test_the_parent_may_use_the_allocator_while_it_allocates(make: Callable[[Any], Any]) -> None:
    for use in (
        lambda allocator, point, blocks: blocks.append(allocator.allocate(ITEM)),
        lambda allocator, point, blocks: blocks.extend(allocator.allocate(ITEM) for _ in range(40)),
        lambda allocator, point, blocks: allocator.restore(point),
        lambda allocator, point, blocks: allocator.reset(),
        lambda allocator, point, blocks: allocator.close(),
        lambda allocator, point, blocks: allocator.checkpoint(),
    ):
        parent = Hooked()
        allocator = make(parent)
        blocks = [allocator.allocate(ITEM)]
        point = allocator.checkpoint()

        def once(parent: Any = parent, use: Any = use, args: Any = (allocator, point, blocks)) -> None:
            parent.before_allocate = None
            use(*args)

        parent.before_allocate = once
        while parent.before_allocate is not None:
            blocks.append(allocator.allocate(ITEM))
        blocks.extend(allocator.allocate(ITEM) for _ in range(40))
        live = [block for block in blocks if not block.released]
        assert len(live) > 40
        extents = sorted((block.address, block.address + block.size) for block in live)
        assert all(end <= start for (_, end), (start, _) in pairwise(extents))
        if hasattr(allocator, "waste"):
            assert allocator.waste().live == sum(block.size for block in live)
        allocator.close()
        assert parent.live_blocks == 0


@each(CHUNKED)
def test_an_account_above_is_right_whatever_the_parent_raises(make: Callable[[Any], Any]) -> None:
    for error in (Stop(), KeyError(), MisuseError("a parent that objects")):
        for end in ("restore", "reset"):
            parent = Hooked()
            metric = MetricAllocator(make(parent))
            point = metric.checkpoint()
            fill(metric.parent, parent, 2)
            metric.allocate(ITEM)

            def object_once(parent: Hooked = parent, error: BaseException = error) -> None:
                parent.before_deallocate = None
                raise error

            parent.before_deallocate = object_once
            with pytest.raises(type(error)):
                metric.restore(point) if end == "restore" else metric.reset(reset.NONE)
            assert (metric.live_blocks, metric.live_bytes) == (0, 0)


REVOCATIONS: dict[str, tuple[str, Callable[[Any, Any], object]]] = {
    "reset of an arena": ("arena(page)", lambda parent, point: parent.reset()),
    "reset of a bump": ("bump(page)", lambda parent, point: parent.reset()),
    "reset of a stack": ("stack(256K)", lambda parent, point: parent.reset()),
    "reset through a metric": ("metric(bump(page))", lambda parent, point: parent.reset()),
    "reset below a debug": ("debug(arena(page))", lambda parent, point: parent.parent.reset()),
    "restore of a bump": ("bump(page)", lambda parent, point: parent.restore(point)),
    "restore of a pool": ("pool(32K, page, align=16)", lambda parent, point: parent.restore(point)),
    "close of an arena": ("arena(page)", lambda parent, point: parent.close()),
    "close of pages": ("page", lambda parent, point: parent.close()),
}


@each(CHUNKED)
@pytest.mark.parametrize(("spec", "revoke"), list(REVOCATIONS.values()), ids=list(REVOCATIONS))
def test_an_allocator_notices_that_its_parent_took_its_memory(
    make: Callable[[Any], Any], spec: str, revoke: Callable[[Any, Any], object]
) -> None:
    for end in ("close", "reset"):
        parent: Any = parse_spec(spec)
        point = parent.checkpoint() if hasattr(parent, "checkpoint") else None
        allocator = make(parent)
        block = allocator.allocate(ITEM)
        freed = allocator.allocate(ITEM)
        allocator.deallocate(freed, ITEM)
        revoke(parent, point)
        assert block.released
        with pytest.raises(MisuseError):
            _ = block.view
        for method, arguments in (
            ("allocate", (ITEM,)),
            ("allocate_zeroed", (ITEM,)),
            ("deallocate", (block, ITEM)),
            ("grow", (block, ITEM, Layout(100, 8))),
            ("checkpoint", ()),
        ):
            with pytest.raises(MisuseError):
                getattr(allocator, method)(*arguments)
        assert not allocator.owns(block)
        getattr(allocator, end)()
        fresh = allocator.allocate(ITEM)
        fresh.view[:] = b"x" * fresh.size
        other = parent.allocate(Layout(1000, 8))
        other.view[:] = b"y" * other.size
        assert bytes(fresh.view) == b"x" * fresh.size
        parent.deallocate(other, Layout(1000, 8))
        allocator.close()


def test_a_tower_of_allocators_notices_too() -> None:
    ground = BumpAlloc(PageAlloc())
    tower: list[Arena[Any]] = [Arena(ground)]
    for _ in range(4):
        tower.append(Arena(tower[-1]))
    blocks = [arena.allocate(ITEM) for arena in tower]
    ground.reset()
    assert all(block.released for block in blocks)
    for arena in reversed(tower):
        arena.close()


def test_only_the_chunks_of_an_ended_scope_are_lost() -> None:
    parent = BumpAlloc(PageAlloc())
    arena = Arena(parent)
    older = arena.allocate(ITEM)
    with parent.scope():
        newer = arena.allocate(Layout(50_000, 8))
    assert (older.released, newer.released) == (False, True)
    with pytest.raises(MisuseError):
        arena.allocate(ITEM)
    arena.reset()
    assert older.released
    arena.allocate(ITEM)


def test_scopes_around_a_revocation_end_quietly() -> None:
    parent = BumpAlloc(PageAlloc())
    for make in CHUNKED.values():
        allocator = make(parent)
        with allocator.scope():
            allocator.allocate(ITEM)
            parent.reset()
        allocator.close()


def test_an_arena_notices_the_end_of_the_region_it_stands_over() -> None:
    region = Region.of(bytearray(4096))
    arena = Arena.over(region.part(region.address + -region.address % 16, 2048), PageAlloc())
    region.close()
    block = arena.allocate(ITEM)
    assert not block.released, "a part is open while the whole is closed"
    region = Region.of(bytearray(4096))
    whole = region.part(region.address + -region.address % 16, 2048)
    arena = Arena.over(whole, PageAlloc())
    block = arena.allocate(ITEM)
    whole.close()
    assert block.released
    with pytest.raises(MisuseError):
        arena.allocate(ITEM)
    arena.reset(reset.ALL)
    with pytest.raises(AllocError):
        arena.allocate(ITEM)


def test_a_debug_allocator_over_an_arena_that_was_reset_can_be_closed() -> None:
    arena = Arena(PageAlloc())
    debug = DebugAllocator(arena)
    live = debug.allocate(ITEM)
    debug.deallocate(debug.allocate(ITEM), ITEM)
    arena.reset()
    assert live.released
    debug.check()
    debug.close()
    assert not debug.leaks()


@each(CHUNKED)
def test_blocks_of_size_zero_end_with_all_others(make: Callable[[Any], Any]) -> None:
    for end in ENDS.values():
        metric = MetricAllocator(make(PageAlloc()))
        older = metric.allocate(Layout(0, 1))
        point = metric.checkpoint()
        newer = metric.allocate(Layout(0, 1))
        metric.allocate(ITEM)
        end(metric if end is not ENDS["close"] else metric.parent, point)
        assert newer.released
        assert older.released == (end is not ENDS["restore"])
        if end is ENDS["restore"]:
            assert (metric.live_blocks, metric.live_bytes) == (1, 0)
            metric.deallocate(older, Layout(0, 1))
            assert metric.live_blocks == 0


@each(CHUNKED)
def test_a_refusal_says_what_the_parent_said(make: Callable[[Any], Any]) -> None:
    allocator = make(LimitAllocator(PageAlloc(), 50))
    with pytest.raises(AllocError, match=r"the parent refuses: limit: .* \(limit 50 bytes, in use 0 bytes\)") as caught:
        allocator.allocate(ITEM)
    cause = caught.value.__cause__
    assert isinstance(cause, AllocError)
    assert (cause.allocator, cause.limit) == ("limit", 50)


def test_a_block_of_the_parent_that_is_of_no_use_goes_back() -> None:
    class ReadOnly(Instrumented):
        def allocate(self, layout: Layout) -> Block:
            block = super().allocate(layout)
            block.region.memory = block.view.toreadonly()
            return block

    parent = ReadOnly()
    arena = Arena(parent)
    for _ in range(2):
        with pytest.raises(TypeError):
            arena.allocate(ITEM)
        assert parent.live_blocks == 0
    assert (arena.allocated_bytes, arena.used_bytes) == (0, 0)


def test_the_repr_of_a_pool_is_the_spec_that_makes_it() -> None:
    for spec in ("pool(64, page)", "pool(64, page, capacity=100)", "pool(64, page, capacity=9, growable=false)"):
        pool = parse_spec(spec)
        assert repr(pool) == spec
        assert isinstance(pool, PoolAllocator)
        pool.close()
        assert repr(pool) == spec
