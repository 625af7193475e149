"""The contract of every allocator. The errors it may raise are in `allocators.errors`.

The contract is that of Rust's `Allocator` trait. A block is *currently allocated* from the call that returned it until
it is given to `deallocate`, or to a `grow` or `shrink` that succeeds (which ends the old block even if the address
stays the same). A layout *fits* a block if its alignment is that of the allocation and its size lies between the size
last requested and the size last returned.

This module is never compiled: mypyc cannot compile runtime-checkable protocols.
"""
# Not compiled: mypyc has no runtime-checkable protocols.

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from allocators.block import Block
    from allocators.layout import Layout
    from allocators.scope import Checkpoint

#: How pages may be accessed: read, read and write, or read and execute. Never write and execute at once.
Access = Literal["r", "rw", "rx"]


@runtime_checkable
class Allocator(Protocol):
    """Six methods that hand out, resize and take back blocks of real memory.

    Zero size is legal everywhere and touches no memory. Every method that returns a block may return more bytes than
    requested. If one raises `AllocError`, the allocator and every block are unchanged.
    """

    def allocate(self, layout: Layout) -> Block:
        """Return a block of at least `layout.size` bytes, aligned to `layout.align`, contents undefined."""
        ...

    def allocate_zeroed(self, layout: Layout) -> Block:
        """Like `allocate`, with every byte zero."""
        ...

    def deallocate(self, block: Block, layout: Layout) -> None:
        """End a block; `layout` must fit it."""
        ...

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        """Return a block for `new` (`new.size >= old.size`) that starts with the first `old.size` bytes of `block`.

        The alignment may change. On success `block` has ended; on failure it is unchanged.
        """
        ...

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        """Like `grow`, with every byte from `old.size` on zero."""
        ...

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        """Return a block for `new` (`new.size <= old.size`) that holds the first `new.size` bytes of `block`."""
        ...


@runtime_checkable
class Pages(Allocator, Protocol):
    """An allocator whose blocks own whole pages, whose protection can be changed."""

    @property
    def page_size(self) -> int:
        """Bytes in a page."""
        ...

    def protect(self, block: Block, access: Access, offset: int = 0, size: int | None = None) -> None:
        """Set the access to the pages of `block`: to all of them, or to `size` bytes from byte `offset` on.

        Raises `MisuseError` unless the range is whole pages inside the block; without `size` it extends to the block's
        end. While any page of the block is not writable, `block.view` is read-only.
        """
        ...


@runtime_checkable
class Scoped(Protocol):
    """An allocator that can free at once everything allocated since a checkpoint."""

    def checkpoint(self) -> Checkpoint:
        """Save the current state."""
        ...

    def restore(self, point: Checkpoint) -> None:
        """Return to that state and revoke the blocks allocated since. `MisuseError` if the checkpoint has ended."""
        ...


@runtime_checkable
class Resettable(Protocol):
    """An allocator that can free all its blocks at once and stay usable."""

    def reset(self) -> object:
        """Revoke all blocks and make their memory available again.

        A `MisuseError` other than `CorruptionError` means that nothing has changed; any other error is raised after the
        reset is complete.
        """
        ...
