"""CallbackAllocator, made from two Python functions, and RetryAllocator, which calls a function when memory runs out.

`CallbackAllocator` allocates from any memory that Python can reach: a C library's malloc, shared memory, a mapped
device buffer. For each live block it keeps what the first function returned and passes that to the second.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.adaptors.adaptor import Adaptor
from allocators.base import BaseAllocator, unfit
from allocators.block import Block, Region, dangling, released
from allocators.errors import AllocError, LayoutError, MisuseError
from allocators.layout import Layout
from allocators.protocol import Allocator

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    Memory = WriteableBuffer | int

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class _Lent:
    """A live block: what the callback returned, the layout it was called with, and all of that memory."""

    __slots__ = ("layout", "memory", "whole")

    def __init__(self, memory: Memory, layout: Layout, whole: Region) -> None:
        self.memory: Final = memory
        self.layout: Final = layout
        self.whole = whole


@mypyc_attr(native_class=True)
class CallbackAllocator(BaseAllocator):
    """Memory from `allocate_memory`, freed by `free_memory`.

    `allocate_memory(layout)` returns at least `layout.size` bytes as any writable buffer or as an address; None, 0 or a
    MemoryError means that no memory is available. `free_memory(memory, layout)` receives that return value and the same
    layout.

    `align` is the alignment that the function guarantees, by default that of malloc. For a larger alignment the request
    has alignment `align` and more bytes, and the block is the aligned part. Blocks of size zero do not call the
    functions.
    """

    __slots__ = ("_align", "_allocate_memory", "_free_memory", "_live")

    def __init__(
        self,
        allocate_memory: Callable[[Layout], Memory | None],
        free_memory: Callable[[Any, Layout], object],
        *,
        align: int = 16,
    ) -> None:
        self._allocate_memory: Final = allocate_memory
        self._free_memory: Final = free_memory
        self._align: Final = Layout(0, align).align
        self._live: dict[Region, _Lent] = {}

    @property
    def live_blocks(self) -> int:
        """Number of live blocks, excluding those of size zero."""
        return len(self._live)

    def allocate(self, layout: Layout) -> Block:
        if layout.size == 0:
            return dangling(layout.align)
        size: int = layout.size
        try:
            request = layout if layout.align <= self._align else Layout(size + layout.align - self._align, self._align)
        except LayoutError:
            raise AllocError("callback", layout, reason="no room for the alignment") from None
        try:
            memory = self._allocate_memory(request)
        except MemoryError as error:
            raise AllocError("callback", layout, reason=str(error)) from error
        if memory is None or (isinstance(memory, int) and memory == 0):
            raise AllocError("callback", layout, reason="the callback has no memory")
        try:
            whole = _region(memory, request)
            address = (whole.address + layout.align - 1) & -layout.align
            key = whole.part(address, size)
            block = Block(address, size, key)
            self._live[key] = _Lent(memory, request, whole)
        except BaseException:
            self._free_memory(memory, request)
            raise
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.region.memory is None:
            raise released(block)
        if block.size == 0 and block.region not in self._live:
            block.release()
            return
        key = block.region
        lent = self._live.get(key)
        if lent is None:
            raise MisuseError(f"{block!r} was not allocated by {self!r}")
        if layout.size > block.size:
            raise unfit(block, layout)
        self._give_back(key, lent)
        block.release()

    def _give_back(self, key: Region, lent: _Lent) -> None:
        # The function may use this allocator, or even close it, so the block is removed first.
        del self._live[key]
        # A live view would keep the function from resizing or unmapping the memory.
        key.let_go()
        lent.whole.close()
        try:
            self._free_memory(lent.memory, lent.layout)
        except BaseException:
            self._take_again(key, lent)
            raise
        key.close()

    def _take_again(self, key: Region, lent: _Lent) -> None:
        """The function has raised: make the block live again if its memory is unchanged."""
        with suppress(MisuseError, BufferError, ValueError, TypeError):
            lent.whole = _region(lent.memory, lent.layout)
            key.memory = lent.whole.part(key.address, key.size).memory
            self._live[key] = lent

    def owns(self, block: Block) -> bool:
        return block.region in self._live

    def close(self) -> None:
        """Free all live blocks, newest first, and revoke them.

        If the function raises, that block stays live, and the first error is raised once all others are freed.
        """
        first: BaseException | None = None
        for key, lent in reversed(list(self._live.items())):
            # The function may have freed others.
            if key in self._live:
                try:
                    self._give_back(key, lent)
                except BaseException as error:
                    first = first or error
        if first is not None:
            raise first

    def __repr__(self) -> str:
        return f"callback({self._allocate_memory!r}, {self._free_memory!r})"


def _region(memory: Memory, layout: Layout) -> Region:
    """What a callback returned for a layout, as a region. Raises `MisuseError` if it is too small or misaligned."""
    if isinstance(memory, int):
        size: int = layout.size
        view = memoryview((ctypes.c_ubyte * size).from_address(memory)).cast("B")
        region = Region(memory, size, view)
    else:
        region = Region.of(memory)
    if region.size < layout.size or region.address & (layout.align - 1):
        raise MisuseError(f"the callback returned {region!r} for {layout!r}")
    return region


@mypyc_attr(native_class=True)
class RetryAllocator(Adaptor[A], Generic[A]):
    """Calls `on_failure(layout)` when `parent` refuses a request, and tries again while that returns True.

    The function may free memory, through this allocator too: empty a cache, raise a limit, add swap. It works like
    RMM's failure callback. Without a function, it collects Python's garbage and tries once more.
    """

    __slots__ = ("_on_failure",)

    def __init__(self, parent: A, on_failure: Callable[[Layout], bool] | None = None) -> None:
        super().__init__(parent)
        self._on_failure: Final = on_failure

    def _try_again(self, layout: Layout, attempt: int) -> bool:
        if self._on_failure is not None:
            return self._on_failure(layout)
        if attempt == 0:
            gc.collect()
        return attempt == 0

    def allocate(self, layout: Layout) -> Block:
        attempt = 0
        while True:
            try:
                return self._up.allocate(layout)
            except MemoryError:
                if not self._try_again(layout, attempt):
                    raise
            attempt += 1

    def allocate_zeroed(self, layout: Layout) -> Block:
        attempt = 0
        while True:
            try:
                return self._up.allocate_zeroed(layout)
            except MemoryError:
                if not self._try_again(layout, attempt):
                    raise
            attempt += 1

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._up.deallocate(block, layout)

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        attempt = 0
        while True:
            try:
                return self._up.grow(block, old, new)
            except MemoryError:
                if not self._try_again(new, attempt):
                    raise
            attempt += 1

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        attempt = 0
        while True:
            try:
                return self._up.grow_zeroed(block, old, new)
            except MemoryError:
                if not self._try_again(new, attempt):
                    raise
            attempt += 1

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        attempt = 0
        while True:
            try:
                return self._up.shrink(block, old, new)
            except MemoryError:
                if not self._try_again(new, attempt):
                    raise
            attempt += 1

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Forward to the parent once: a block that cannot be resized in place does not mean that memory has run out."""
        return self._up.resize_in_place(block, old, new)

    def __repr__(self) -> str:
        return f"retry({self._parent!r})"
