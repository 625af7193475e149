"""Finalisers that use an allocator in the middle of its own operations, at every place where Python may run them."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from allocators import Arena, BaseAllocator, Block, BumpAlloc, Layout, MisuseError, PoolAllocator, Region, reset
from tests.support.allocator_factories import THOROUGH

MAKES: dict[str, Callable[[Any], Any]] = {
    "arena": lambda parent: Arena(parent, min_align=8),
    "bump": lambda parent: BumpAlloc(parent, first_chunk=256, largest_chunk=1024),
    "pool": lambda parent: PoolAllocator(parent, 64),
}
SEEDS = range(200 if THOROUGH else 12)


@pytest.fixture(autouse=True)
def _the_collector_as_it_was() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.enable()


class Parent(BaseAllocator):
    """Does each thing in one step, so that finalisers find nothing half done here."""

    def __init__(self) -> None:
        self.live: dict[int, Block] = {}

    def allocate(self, layout: Layout) -> Block:
        region = Region.of(bytearray(layout.size + layout.align))
        address = (region.address + layout.align - 1) & -layout.align
        block = Block(address, layout.size, region)
        self.live[address] = block
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        assert self.live.pop(block.address) is block
        block.region.close()
        block.release()


class Ghost:
    """Garbage that calls a function when it is collected."""

    def __init__(self, function: Callable[[], None]) -> None:
        self.self = self
        self.function = function

    def __del__(self) -> None:
        self.function()


class Haunted:
    """A random walk over an allocator, in each call of which a finaliser takes some steps more."""

    def __init__(self, make: Callable[[Any], Any], seed: int) -> None:
        self.random = random.Random(seed)
        self.parent = Parent()
        self.allocator = make(self.parent)
        self.is_pool = isinstance(self.allocator, PoolAllocator)
        self.live: dict[int, Block] = {}
        self.points: list[Any] = []
        self.busy: set[int] = set()
        self.blocks = 0
        self.inside = False
        self.visits = 0
        self.errors: list[BaseException] = []

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        if self.inside:
            return function(*arguments)
        Ghost(self.visit)
        gc.set_threshold(gc.get_count()[0] + self.random.randrange(1, 25), 1000, 1000)
        gc.enable()
        try:
            return function(*arguments)
        finally:
            gc.disable()

    def visit(self) -> None:
        if self.inside or not gc.isenabled():
            return
        self.inside = True
        self.visits += 1
        try:
            for _ in range(self.random.randrange(1, 4)):
                self.step()
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.inside = False

    def step(self) -> None:
        choice = self.random.random()
        for number in [number for number, block in self.live.items() if block.released]:
            del self.live[number]
        # What ends all blocks in the middle of a pool's operation makes it lose count of its slots, no more.
        whole = not (self.inside and self.is_pool)
        if choice < 0.6:
            size = self.random.choice((8, 16, 48, 64) if self.is_pool else (8, 16, 48, 64, 400))
            block = self.call(self.allocator.allocate, Layout(size, 8))
            self.blocks += 1
            self.live[self.blocks] = block
        elif choice < 0.85:
            self.end_or_resize(choice < 0.72)
        elif choice < 0.9:
            self.points.append(self.call(self.allocator.checkpoint))
        elif choice < 0.95 and self.points and whole:
            number = self.random.randrange(len(self.points))
            point = self.points[number]
            del self.points[number:]
            try:
                self.call(self.allocator.restore, point)
            except MisuseError as error:
                assert "gone already" in str(error)  # noqa: PT017
        elif choice < 0.96 and whole:
            self.call(self.allocator.reset, self.random.choice((reset.NEWEST, reset.ALL, reset.NONE)))
        elif choice < 0.965 and whole:
            self.call(self.allocator.close)

    def end_or_resize(self, end: bool) -> None:
        if not self.live:
            return
        number = self.random.choice(list(self.live))
        if number in self.busy:
            return
        block = self.live[number]
        layout = Layout(block.size, 8)
        if end:
            del self.live[number]
            self.call(self.allocator.deallocate, block, layout)
        elif not self.is_pool:
            self.busy.add(number)
            try:
                if self.random.random() < 0.5:
                    self.live[number] = self.call(self.allocator.grow, block, layout, Layout(block.size + 40, 8))
                else:
                    self.live[number] = self.call(self.allocator.shrink, block, layout, Layout(block.size // 3, 8))
            except ValueError as error:
                # The finaliser has ended the block, or the one that it was moved to.
                assert "released" in str(error)  # noqa: PT017
            self.busy.discard(number)

    def check(self) -> None:
        live = [block for block in self.live.values() if not block.released]
        extents = sorted((block.address, block.address + block.size) for block in live)
        assert all(end <= start for (_, end), (start, _) in pairwise(extents))
        if not self.is_pool:
            assert 0 <= self.allocator.used_bytes <= self.allocator.allocated_bytes
            assert self.allocator.peak_bytes < 1 << 24
            assert self.allocator.waste().live >= 0


@pytest.mark.parametrize("name", MAKES)
def test_a_finaliser_may_use_an_allocator_in_the_middle_of_a_call(name: str) -> None:
    visits = 0
    for seed in SEEDS:
        haunted = Haunted(MAKES[name], seed)
        gc.disable()
        gc.collect()
        for _ in range(300):
            haunted.step()
            haunted.check()
        gc.collect()
        haunted.allocator.close()
        assert not haunted.errors, haunted.errors
        assert not haunted.parent.live
        visits += haunted.visits
    assert visits
