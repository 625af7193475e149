"""LockedAllocator: a lock around a parent, so that several threads can share it.

Each operation holds the lock while it runs. A sequence of operations, such as a scope, is not atomic: to make it so,
hold `lock`, which is reentrant. A restore also drops what other threads have allocated since the checkpoint.

The lock does not protect the contents of blocks: threads that write to the same block need their own lock.

A fork waits for the operations of other threads, so that the child can use the allocator.

Costs: some 50 ns per operation, and contention between threads. An arena per thread (`ArenaPool`) avoids both.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.adaptors.adaptor import Adaptor
from allocators.block import Block
from allocators.fork import fork_safe_lock
from allocators.layout import Layout
from allocators.protocol import Access, Allocator
from allocators.reset import ResetPolicy
from allocators.scope import Checkpoint

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class LockedAllocator(Adaptor[A], Generic[A]):
    """Forwards everything to `parent`, one thread at a time."""

    __slots__ = ("lock",)

    def __init__(self, parent: A) -> None:
        super().__init__(parent)
        #: Held during each operation.
        self.lock: Final = fork_safe_lock()

    def allocate(self, layout: Layout) -> Block:
        with self.lock:
            return self._up.allocate(layout)

    def allocate_zeroed(self, layout: Layout) -> Block:
        with self.lock:
            return self._up.allocate_zeroed(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        with self.lock:
            self._up.deallocate(block, layout)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        with self.lock:
            return self._up.grow(block, old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        with self.lock:
            return self._up.grow_zeroed(block, old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        with self.lock:
            return self._up.shrink(block, old, new)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        with self.lock:
            return self._up.resize_in_place(block, old, new)

    def owns(self, block: Block) -> bool:
        with self.lock:
            return super().owns(block)

    def protect(
        self, block: Block, access: Access, offset: SupportsIndex = 0, size: SupportsIndex | None = None
    ) -> None:
        with self.lock:
            super().protect(block, access, offset, size)

    def reset(self, policy: ResetPolicy | None = None) -> None:
        with self.lock:
            super().reset(policy)

    def checkpoint(self) -> Checkpoint:
        with self.lock:
            return super().checkpoint()

    def restore(self, point: Checkpoint) -> None:
        with self.lock:
            super().restore(point)

    def close(self) -> None:
        with self.lock:
            super().close()

    def __repr__(self) -> str:
        return f"locked({self._parent!r})"
