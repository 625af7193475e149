"""Spill: the spill stack of a machine that executes bytecode, which is the caller's, or a block of an allocator."""

from __future__ import annotations

from allocators import Allocator, Block, Layout
from allocators._mypyc import mypyc_attr
from allocators.stack import StackAlloc
from garden.errors import Trap
from garden.run_options import RunOptions


@mypyc_attr(native_class=True)
class Spill:
    """`stack` is the one in use, None until `make` unless the options have one. `layout` is that of the block."""

    __slots__ = ("_allocator", "_block", "layout", "stack")

    def __init__(self, allocator: Allocator, options: RunOptions) -> None:
        self._allocator = allocator
        self._block: Block | None = None
        self.layout = Layout(options.spill_bytes, 16)
        self.stack: StackAlloc | None = options.spill

    def make(self) -> StackAlloc:
        """The stack, in a block of the allocator unless there is one. `AllocError` where there is no memory for it."""
        stack = self.stack
        if stack is None:
            block = self._allocator.allocate(self.layout)
            self._block = block
            stack = self.stack = StackAlloc(block.view)
        return stack

    def close(self) -> None:
        """Give the block back; closing twice is harmless. A stack of the caller stays open."""
        block = self._block
        if block is not None:
            self._block = None
            stack = self.stack
            self.stack = None
            if stack is not None:
                stack.close()
            self._allocator.deallocate(block, self.layout)


def spill_overflow(error: MemoryError) -> Trap:
    """What a stack that cannot grow any further ends a run with."""
    return Trap("T0002", f"stack overflow: {error}")
