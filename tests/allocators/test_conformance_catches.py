"""The conformance suite finds broken allocators: each of these has one fault, and the suite names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, settings

from allocators import (
    Access,
    AllocError,
    Arena,
    BaseAllocator,
    Block,
    BumpAlloc,
    Checkpoint,
    Counters,
    Layout,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    Region,
)
from allocators.base import check_grow, check_shrink
from allocators.block import empty_region
from allocators.testing import ConformanceError, Instrumented, check_allocator, run_machine


class Forwarder(BaseAllocator):
    """Forwards to its parent, rightly."""

    def __init__(self, parent: Any) -> None:
        self.parent = parent

    def allocate(self, layout: Layout) -> Block:
        block: Block = self.parent.allocate(layout)
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.parent.deallocate(block, layout)

    def close(self) -> None:
        pass


class Overlapping(BaseAllocator):
    """Begins again at the start of its buffer when it has come to the end."""

    def __init__(self) -> None:
        self.region = Region.of(bytearray(8192))
        self.used = 0

    def allocate(self, layout: Layout) -> Block:
        if layout.size + layout.align > self.region.size:
            raise AllocError("overlapping", layout)
        if self.used + layout.size + layout.align > self.region.size:
            self.used = 0
        address = (self.region.address + self.used + layout.align - 1) & -layout.align
        self.used = address + layout.size - self.region.address
        return Block(address, layout.size, self.region)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.released:
            raise MisuseError("released")
        block.release()


class HalfReset(BaseAllocator):
    """Resets the one that can be reset before it finds that the other cannot."""

    def __init__(self) -> None:
        self._arena = Arena(PageAlloc())
        self._pages = PageAlloc()

    def _of(self, layout: Layout) -> BaseAllocator:
        return self._arena if layout.size < 64 else self._pages

    def allocate(self, layout: Layout) -> Block:
        return self._of(layout).allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        (self._pages if self._pages.owns(block) else self._arena).deallocate(block, layout)

    def reset(self) -> None:
        self._arena.reset()
        raise MisuseError("pages cannot be reset")

    def close(self) -> None:
        self._arena.close()
        self._pages.close()


class StaysProtected(BaseAllocator):
    """Hands out pages, and forgets to let them be written again."""

    def __init__(self) -> None:
        self._pages = PageAlloc()
        self._protected = False

    @property
    def page_size(self) -> int:
        return self._pages.page_size

    def protect(self, block: Block, access: Access, offset: int = 0, size: int | None = None) -> None:
        self._pages.protect(block, access, offset, size)
        self._protected = True

    def allocate(self, layout: Layout) -> Block:
        return self._pages.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._pages.deallocate(block, layout)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        shrunk = self._pages.shrink(block, old, new)
        if self._protected and shrunk.size:
            self._pages.protect(shrunk, "r")
        return shrunk

    def close(self) -> None:
        self._pages.close()


class Misaligned(Forwarder):
    """Thinks that no one needs more than 16."""

    def allocate(self, layout: Layout) -> Block:
        return super().allocate(Layout(layout.size, min(layout.align, 16)))

    def deallocate(self, block: Block, layout: Layout) -> None:
        super().deallocate(block, Layout(layout.size, min(layout.align, 16)))


class TooSmall(Forwarder):
    """Forgets the last byte of a block."""

    def allocate(self, layout: Layout) -> Block:
        block = super().allocate(layout)
        return Block(block.address, max(block.size - 1, 0), block.region)


class PrefixLost(Forwarder):
    """Grows without copying what there was."""

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        grown = self.allocate(new)
        self.deallocate(block, old)
        return grown


class PrefixLostByShrinking(Forwarder):
    """Keeps the end of a block rather than its start."""

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        shrunk = self.allocate(new)
        shrunk.view[: new.size] = block.view[old.size - new.size : old.size]
        self.deallocate(block, old)
        return shrunk


class NotZeroed(Forwarder):
    """Believes that memory is zero when it comes."""

    def allocate_zeroed(self, layout: Layout) -> Block:
        return self.allocate(layout)


class TailNotZeroed(Forwarder):
    """grow_zeroed is just grow."""

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        return self.grow(block, old, new)


class AlignmentIgnoredByGrow(Forwarder):
    """Grows with the old alignment."""

    def __init__(self, parent: Any) -> None:
        super().__init__(BumpAlloc(parent))

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        grown: Block = self.parent.grow(block, old, Layout(new.size, old.align))
        return grown


class Leaking(Forwarder):
    """Loses every fifth block that is freed."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent)
        self.frees = 0

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.frees += 1
        if self.frees % 5 == 0 and not block.released:
            block.release()
            return
        super().deallocate(block, layout)


class LeakingWhenRefused(Forwarder):
    """Takes two blocks from its parent, and forgets the first when the second is refused."""

    def allocate(self, layout: Layout) -> Block:
        header = self.parent.allocate(Layout(8, 8))
        block = super().allocate(layout)
        self.parent.deallocate(header, Layout(8, 8))
        return block


class ChangedByFailure(Forwarder):
    """Ends the old block before it has the new one."""

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        saved = bytes(block.view[: old.size])
        self.deallocate(block, old)
        grown = self.allocate(new)
        grown.view[: old.size] = saved
        return grown


class ReturnsNone(Forwarder):
    """Answers an impossible request with None."""

    def allocate(self, layout: Layout) -> Block:
        try:
            return super().allocate(layout)
        except AllocError:
            return None  # type: ignore[return-value]


class AnyMemoryError(Forwarder):
    """Raises a MemoryError that does not say what was asked for."""

    def allocate(self, layout: Layout) -> Block:
        try:
            return super().allocate(layout)
        except AllocError:
            raise MemoryError("no memory") from None


class FreesTwiceInSilence(Forwarder):
    """Accepts a block that has ended."""

    def deallocate(self, block: Block, layout: Layout) -> None:
        if not block.released:
            super().deallocate(block, layout)


class KeepsEndedBlocks(BaseAllocator):
    """Never releases a block."""

    def __init__(self) -> None:
        self.arena = Arena(PageAlloc())

    def allocate(self, layout: Layout) -> Block:
        return self.arena.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        pass


class WrongLayoutToParent(Forwarder):
    """Tells its parent a wrong alignment when it frees."""

    def deallocate(self, block: Block, layout: Layout) -> None:
        super().deallocate(block, Layout(layout.size, 1))


class WritesBeforeTheBlock(Forwarder):
    """Writes a header in front of what its parent gave."""

    def allocate(self, layout: Layout) -> Block:
        block = super().allocate(layout)
        if block.size and isinstance(self.parent, Instrumented):
            record = self.parent._live[block.region]
            record.memory[record.offset - 8 : record.offset] = b"\0" * 8
        return block


class OutsideItsRegion(Forwarder):
    """Gives blocks the region of another one."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent)
        self.other = Region.of(bytearray(16))

    def _astray(self, block: Block) -> Block:
        return Block(block.address, block.size, self.other) if block.size > 100 else block

    def allocate(self, layout: Layout) -> Block:
        return self._astray(self.parent.allocate(layout))

    def allocate_zeroed(self, layout: Layout) -> Block:
        return self._astray(self.parent.allocate_zeroed(layout))

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._astray(self.parent.grow(block, old, new))

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._astray(self.parent.grow_zeroed(block, old, new))


class CountsAFreeTooMany(Forwarder):
    """Counts a shrink as a free, as zprof did."""

    def __init__(self, parent: Any) -> None:
        super().__init__(MetricAllocator(parent))
        self.shrinks = 0

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        grown: Block = self.parent.grow(block, old, new)
        return grown

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        shrunk: Block = self.parent.shrink(block, old, new)
        self.shrinks += 1
        return shrunk

    @property
    def counters(self) -> Counters:
        counters: Counters = self.parent.counters
        counters.frees += self.shrinks
        return counters


class ScopeThatEndsNothing(Forwarder):
    """Has checkpoints, and forgets to revoke the blocks."""

    def __init__(self, parent: Any) -> None:
        super().__init__(parent)
        self.points: list[Checkpoint] = []

    def checkpoint(self) -> Checkpoint:
        self.points.append(Checkpoint(self))
        return self.points[-1]

    def restore(self, point: Checkpoint) -> None:
        if point not in self.points:
            raise MisuseError("passed")
        del self.points[self.points.index(point) :]


class ResetThatEndsNothing(Forwarder):
    """Takes its memory back while the old blocks can still be used."""

    def reset(self) -> None:
        pass


class Chunked(BaseAllocator):
    """Bumps up through chunks of its parent, and gives them back when it is closed or reset; rightly."""

    def __init__(self, parent: Any) -> None:
        self.parent = parent
        self.chunks: list[tuple[Block, Layout]] = []
        self.region = self.new_region()
        self.filled: list[Region] = []
        self.used = 0

    def new_region(self) -> Region:
        return self.chunks[-1][0].region.lease(*self.place()) if self.chunks else empty_region()

    def place(self) -> tuple[int, int]:
        block, layout = self.chunks[-1]
        return block.address, layout.size

    def allocate(self, layout: Layout) -> Block:
        if self.region.closed:
            raise MisuseError("the parent has revoked the memory")
        address = (self.region.address + self.used + layout.align - 1) & -layout.align
        if address + layout.size > self.region.address + self.region.size:
            if layout.size > 1 << 20:
                raise AllocError("chunked", layout)
            request = Layout(max(layout.size, 4096), max(layout.align, 16))
            self.chunks.append((self.parent.allocate(request), request))
            self.filled.append(self.region)
            self.region = self.new_region()
            address = self.region.address
        self.used = address + layout.size - self.region.address
        return Block(address, layout.size, self.region)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.released:
            raise MisuseError("released")
        block.release()

    def reset(self) -> None:
        chunks = self.chunks
        for region in [self.region, *self.filled]:
            region.close()
        self.chunks, self.filled, self.used = [], [], 0
        self.region = self.new_region()
        self.give_back(chunks)

    def give_back(self, chunks: list[tuple[Block, Layout]]) -> None:
        raised: list[BaseException] = []
        for block, layout in chunks:
            try:
                if not block.released:
                    self.parent.deallocate(block, layout)
            except BaseException as error:
                raised.append(error)
        if raised:
            raise raised[0]

    def close(self) -> None:
        self.reset()


class StopsAtAnException(Chunked):
    """Forgets the chunks that it has not given back yet when the parent raises."""

    def give_back(self, chunks: list[tuple[Block, Layout]]) -> None:
        for block, layout in chunks:
            if not block.released:
                self.parent.deallocate(block, layout)


class StopsBeforeTheDeed(Chunked):
    """Gives its chunks back before it revokes the blocks in them."""

    def reset(self) -> None:
        self.give_back(self.chunks)
        super().reset()


class HoldsOnToWhatIsGone(Chunked):
    """Does not notice that the parent has revoked its chunks."""

    def new_region(self) -> Region:
        return self.chunks[-1][0].region.part(*self.place()) if self.chunks else empty_region()


class ReturnsWhatIsGone(Chunked):
    """Gives the parent chunks that it has revoked."""

    def give_back(self, chunks: list[tuple[Block, Layout]]) -> None:
        for block, layout in chunks:
            if block.released:
                self.parent.deallocate(block, layout)
        super().give_back(chunks)


class EmptyBlocksSurvive(Chunked):
    """Does not revoke blocks of size zero."""

    def allocate(self, layout: Layout) -> Block:
        return super().allocate(layout) if layout.size else Block(max(layout.align, 16), 0, empty_region())


class MovesInPlace(Forwarder):
    """Says that it has resized in place when it has moved the block."""

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        if block.released:
            raise MisuseError("released")
        return self.grow(block, old, new) if new.size >= old.size else None


class WrapsInPlace(Forwarder):
    """Computes where a block would end in 64 bits, and so takes the largest sizes for small ones."""

    def __init__(self, parent: Any) -> None:
        super().__init__(BumpAlloc(parent))

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        if block.released:
            raise MisuseError("released")
        end = (block.address + new.size + 2**63) % 2**64 - 2**63
        if end > block.address + block.size or block.address % new.align:
            return None
        resized = Block(block.address, new.size, block.region)
        block.release()
        return resized


class OwnsEverything(Forwarder):
    def owns(self, block: Block) -> bool:
        return True


BROKEN: list[tuple[Callable[..., Any], str]] = [
    (Overlapping, "overlaps"),
    (Misaligned, "not aligned to"),
    (TooSmall, "want at least"),
    (PrefixLost, "did not keep the first"),
    (PrefixLostByShrinking, "did not keep the first"),
    (NotZeroed, "a byte that is not zero"),
    (TailNotZeroed, "that is not zero"),
    (AlignmentIgnoredByGrow, "not aligned to"),
    (Leaking, "live blocks"),
    (LeakingWhenRefused, "live blocks"),
    (ChangedByFailure, "has been released"),
    (ReturnsNone, "want a Block"),
    (AnyMemoryError, "want an AllocError"),
    (FreesTwiceInSilence, "did not raise MisuseError"),
    (KeepsEndedBlocks, "is not released"),
    (WrongLayoutToParent, "that the parent gave for"),
    (WritesBeforeTheBlock, "wrote outside"),
    (OutsideItsRegion, "not inside its region"),
    (CountsAFreeTooMany, "the counters are wrong: frees is"),
    (ScopeThatEndsNothing, "is not released"),
    (ResetThatEndsNothing, "is not released"),
    (MovesInPlace, "resize_in_place has moved"),
    (WrapsInPlace, "not inside its region"),
    (OwnsEverything, "a block from elsewhere"),
    (StopsAtAnException, "the parent still has"),
    (StopsBeforeTheDeed, "is not released"),
    (HoldsOnToWhatIsGone, "which can still be used"),
    (ReturnsWhatIsGone, "close raised MisuseError"),
    (EmptyBlocksSurvive, "is not released"),
    (HalfReset, "is live, but has been released"),
    (StaysProtected, "is not that of"),
]
NAMES = [broken.__name__ for broken, _promise in BROKEN]


@pytest.mark.parametrize(("broken", "promise"), BROKEN, ids=NAMES)
def test_check_allocator_names_the_broken_promise(broken: Callable[..., Any], promise: str) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_allocator(broken)
    assert promise in caught.value.promise


def test_nothing_is_wrong_with_the_base_of_the_broken_ones() -> None:
    check_allocator(Forwarder)
    check_allocator(Chunked)


def test_the_error_lists_the_calls_that_led_to_it() -> None:
    with pytest.raises(ConformanceError) as caught:
        check_allocator(PrefixLost)
    assert caught.value.operations[-1].startswith("b")
    assert "allocator.grow(b" in caught.value.operations[-1]
    assert "after these operations:\n  b0 = allocator.allocate(Layout(" in str(caught.value)
    assert "while checking" in str(caught.value)


#: Without shrinking, and the same examples each time.
FIND = settings(
    max_examples=300, stateful_step_count=30, phases=[Phase.generate], derandomize=True, database=None, print_blob=False
)
SHRINK = settings(
    stateful_step_count=10, phases=[Phase.generate, Phase.shrink], derandomize=True, database=None, print_blob=False
)
#: What the machine does not try, or tries too rarely.
NOT_FOR_THE_MACHINE = (
    OwnsEverything,
    HalfReset,
    StaysProtected,
    WrapsInPlace,
    ReturnsNone,
    AnyMemoryError,
    Overlapping,
    StopsAtAnException,
    StopsBeforeTheDeed,
    HoldsOnToWhatIsGone,
    ReturnsWhatIsGone,
)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [pytest.param(*pair, id=pair[0].__name__) for pair in BROKEN if pair[0] not in NOT_FOR_THE_MACHINE],
)
def test_the_machine_finds_the_broken_promise(broken: Callable[..., Any], promise: str) -> None:
    with pytest.raises((ConformanceError, ExceptionGroup)) as caught:
        run_machine(broken, settings=FIND)
    errors = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else [caught.value]
    assert any(promise in str(error) for error in errors), [str(error)[:300] for error in errors]


def test_the_machine_finds_the_shortest_sequence() -> None:
    with pytest.raises(ConformanceError) as caught:
        run_machine(NotZeroed, settings=SHRINK)
    assert len(caught.value.operations) == 1


def test_what_is_no_allocator_is_told_so() -> None:
    with pytest.raises(ConformanceError, match="six methods"):
        check_allocator(lambda: object())  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError):
        check_allocator(lambda first, second: first)
