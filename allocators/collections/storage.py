"""Storage: the one block behind a container, how it is resized and given back, and whether it may be used.

A container caches views of its block. They are released before the block is resized or freed, so that an allocator
which moves or unmaps pages sees nobody looking, and so that a stale view raises rather than reading old bytes.

A container may be used while `block.region.memory` is not None: one comparison an access. It fails once a scope or a
reset has revoked the block, once the container is closed, and also while an operation of several steps is under way,
for whoever comes in from a callback or a finaliser meanwhile. `unusable` tells these apart. `allocators.block` says
what becomes of views.
"""

from __future__ import annotations

from operator import index as plain_int
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.block import DANGLING, RELEASED, Block, empty_region
from allocators.errors import LayoutError, MisuseError
from allocators.layout import MAX_SIZE, Layout, number_text
from allocators.protocol import Allocator
from allocators.uncopyable import Uncopyable

A = TypeVar("A", bound=Allocator, covariant=True)

FIRST_CAPACITY: Final = 8

#: Of containers that have no block: one that nobody revokes, and one that has ended.
_NO_BLOCK: Final = Block(DANGLING, 0, empty_region())
_ENDED: Final = Block(DANGLING, 0, RELEASED)
_NO_BYTES: Final = Layout(0, 1)


@mypyc_attr(native_class=True)
class Storage(Uncopyable, Generic[A]):
    """At most one block of an allocator. Zero bytes are no block: an empty container never touches its allocator.

    `held` is the block while an operation keeps everybody else out, which `block` then does by being one that has
    ended.
    """

    __slots__ = ("allocator", "block", "closed", "held", "layout")

    def __init__(self, allocator: A) -> None:
        self.allocator = allocator
        self.block = _NO_BLOCK
        self.held: Block | None = None
        self.layout = _NO_BYTES
        self.closed = False

    def unusable(self) -> MisuseError:
        """The error for using a container whose block has ended, or that has none any more."""
        if self.closed:
            return MisuseError("the container is closed")
        if self.held is not None:
            return MisuseError("the container is in the middle of another operation")
        return MisuseError("the memory of the container has been revoked by a scope, a reset or its allocator's close")

    def check(self) -> None:
        """Raise `MisuseError` unless the container may be used."""
        if self.block.region.memory is None:
            raise self.unusable()

    def check_not_held(self) -> None:
        """Raise `MisuseError` in the middle of another operation: a container cannot be closed then."""
        if self.held is not None:
            raise self.unusable()

    def hold(self) -> Block:
        """Keep everybody else out until `let_go`; returns the block. Raises `MisuseError` as `check` does."""
        block = self.block
        if block.region.memory is None:
            raise self.unusable()
        self.held = block
        self.block = _ENDED
        return block

    def let_go(self, block: Block) -> None:
        """End what `hold` has begun, with the block that there is now."""
        self.block = block
        self.held = None

    def resize(self, layout: Layout) -> None:
        """Make the block fit `layout`, keeping the common prefix. Where it raises, nothing has changed."""
        block = self.hold()
        before = self.layout
        try:
            if layout.size == 0:
                if before.size > 0:
                    self.allocator.deallocate(block, before)
                block = _NO_BLOCK
            elif before.size == 0:
                block = self.allocator.allocate(layout)
            elif layout.size >= before.size:
                block = self.allocator.grow(block, before, layout)
            else:
                block = self.allocator.shrink(block, before, layout)
            self.layout = layout
        except BaseException:
            if layout.size == 0 and block.region.memory is None:
                # It has been freed, whatever else has gone wrong.
                block = _NO_BLOCK
                self.layout = layout
            raise
        finally:
            self.let_go(block)

    def view(self, format: str) -> memoryview:
        """A fresh view of the bytes that were asked for, as items of one machine type; an empty one without a block."""
        block = self.block if self.held is None else self.held
        if block.region.memory is None:
            return memoryview(bytearray()).cast(format)  # type: ignore[call-overload,no-any-return]
        return block.view[: self.layout.size].cast(format)  # type: ignore[call-overload,no-any-return]

    def close(self) -> None:
        """Give the block back, unless a scope or a reset has ended it already; closing twice is harmless."""
        block = self.block
        layout = self.layout
        self.closed = True
        self.block = _ENDED
        self.layout = _NO_BYTES
        if layout.size > 0 and block.region.memory is not None:
            self.allocator.deallocate(block, layout)


def release_view(view: memoryview) -> None:
    """Release a cached view, or leave it to whoever looks at the bytes through it (a numpy array, say)."""
    try:
        view.release()
    except BufferError:
        pass


def as_count(number: SupportsIndex, what: str) -> int:
    """An argument that counts something, as a plain int; `MisuseError` where it is negative."""
    count = number if isinstance(number, int) else plain_int(number)
    if count < 0:
        raise MisuseError(f"{what} must not be negative: {number_text(count)}")
    return count


def needed(length: int, additional: int, capacity: int) -> int:
    """The capacity to ask for so that `additional` items fit behind `length`: at least twice as much, or the same.

    Raises `LayoutError` where no memory could be that large.
    """
    if additional > MAX_SIZE - length:
        raise LayoutError(f"{length} items and {number_text(additional)} more exceed 2**63 - 1")
    wanted = length + additional
    if wanted <= capacity:
        return capacity
    return max(wanted, 2 * capacity, FIRST_CAPACITY)


def plain_slice(items: slice) -> slice:
    """A slice of plain ints: asking for them may run the caller's code, which must be over before anything is done."""
    return slice(_bound(items.start), _bound(items.stop), _bound(items.step))


def _bound(bound: SupportsIndex | None) -> int | None:
    return None if bound is None else plain_int(bound)
