"""FailingAllocator: fails on purpose, to test how a program behaves when memory runs out.

Every request that may fail is counted from 0: allocate, grow and shrink, zeroed or not. These requests fail:

* `fail_index=n`: request n and every later one, as in Zig. Retrying with a smaller size, as an arena does, fails too.
* `resize_fail_index=n`: the same for grow and shrink only, which have their own index.
* `every=n`: every n-th request, that is, those with index n - 1, 2n - 1, ...
* `when=f`: requests for which `f(index, layout)` is true.

`times` limits the number of induced failures: `fail_index=3, times=1` fails only request 3.

The fields are those of Zig's `std.testing.FailingAllocator` and a few more: `stack` is the call stack of the first
induced failure. A failure of the parent itself is passed on and does not count as induced.

Costs: some comparisons per request.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Callable
from operator import index as plain_int
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import CountingAdaptor
from allocators.base import check_grow, check_resize, check_shrink
from allocators.block import Block, Region
from allocators.errors import AllocError, MisuseError
from allocators.layout import Layout, number_text
from allocators.protocol import Allocator
from allocators.trace.call_stack import CallStack

A = TypeVar("A", bound=Allocator)

_STACK_DEPTH: Final = 16


@mypyc_attr(native_class=True)
class FailingAllocator(CountingAdaptor[A], Generic[A]):
    """Forwards to `parent`, except for requests that it fails with `AllocError`."""

    __slots__ = (
        "_every",
        "_fail_index",
        "_resize_fail_index",
        "_times",
        "_when",
        "alloc_index",
        "allocated_bytes",
        "allocations",
        "deallocations",
        "failures",
        "freed_bytes",
        "resize_index",
        "resizes",
        "stack",
    )

    def __init__(
        self,
        parent: A,
        *,
        fail_index: SupportsIndex | None = None,
        resize_fail_index: SupportsIndex | None = None,
        every: SupportsIndex | None = None,
        when: Callable[[int, Layout], bool] | None = None,
        times: SupportsIndex | None = None,
    ) -> None:
        super().__init__(parent)
        self._fail_index: Final = _at_least(0, "fail_index", fail_index)
        self._resize_fail_index: Final = _at_least(0, "resize_fail_index", resize_fail_index)
        self._every: Final = _at_least(1, "every", every)
        self._when: Final = when
        self._times: Final = _at_least(0, "times", times)
        #: Requests to allocate so far, including failed ones.
        self.alloc_index: i64 = 0
        #: Requests to grow or shrink so far, including failed ones.
        self.resize_index: i64 = 0
        #: Bytes allocated, including growth.
        self.allocated_bytes: i64 = 0
        #: Bytes deallocated, including shrinkage.
        self.freed_bytes: i64 = 0
        #: Calls that succeeded.
        self.allocations: i64 = 0
        self.deallocations: i64 = 0
        self.resizes: i64 = 0
        #: Induced failures.
        self.failures: i64 = 0
        #: Where the first of them happened.
        self.stack: CallStack | None = None

    @property
    def index(self) -> int:
        """The index of the next request, which is the number of requests so far."""
        return self.alloc_index + self.resize_index

    @property
    def has_induced_failure(self) -> bool:
        return self.failures > 0

    def _fails(self, index: int, layout: Layout, resize_index: int) -> bool:
        """Whether to fail a request; `resize_index` is -1 for an allocation."""
        if self._spent():
            return False
        if self._fail_index is not None and index >= self._fail_index:
            return True
        if self._resize_fail_index is not None and resize_index >= self._resize_fail_index:
            return True
        if self._every is not None and (index + 1) % self._every == 0:
            return True
        # The function may have made requests itself.
        return self._when is not None and bool(self._when(index, layout)) and not self._spent()

    def _spent(self) -> bool:
        return self._times is not None and self.failures >= self._times

    def _request(self, layout: Layout, resize: bool) -> None:
        """Count a request, and fail it if its turn has come."""
        index = self.index
        resize_index = -1
        if resize:
            resize_index = self.resize_index
            self.resize_index += 1
        else:
            self.alloc_index += 1
        if self._fails(index, layout, resize_index):
            self.failures += 1
            if self.stack is None:
                self.stack = CallStack.here(_STACK_DEPTH)
            raise AllocError("fail", layout, in_use=self._live_bytes, reason=f"failed on purpose at index {index}")

    def allocate(self, layout: Layout) -> Block:
        self._request(layout, False)
        return self._allocated(self._up.allocate(layout), layout)

    def allocate_zeroed(self, layout: Layout) -> Block:
        self._request(layout, False)
        return self._allocated(self._up.allocate_zeroed(layout), layout)

    def _allocated(self, block: Block, layout: Layout) -> Block:
        self.allocations += 1
        self.allocated_bytes += layout.size
        return self._added(block, layout.size)

    def _removed(self, size: i64) -> None:
        self.deallocations += 1
        self.freed_bytes += size

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        return self._resize(self._up.grow, block, old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        return self._resize(self._up.grow_zeroed, block, old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        return self._resize(self._up.shrink, block, old, new)

    def _resize(
        self, resize: Callable[[Block, Layout, Layout], Block], block: Block, old: Layout, new: Layout
    ) -> Block:
        self._check_resize(block, old)
        region = block.region
        self._request(new, True)
        try:
            resized = resize(block, old, new)
        except BaseException:
            self._not_resized(block, region, old)
            raise
        return self._resized(region, resized, old, new)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """Forward to the parent. It counts as a request; an induced failure returns None."""
        check_resize(block, old, new)
        self._check_resize(block, old)
        try:
            self._request(new, True)
        except AllocError:
            return None
        return super().resize_in_place(block, old, new)

    def _resized(self, region: Region, block: Block, old: Layout, new: Layout) -> Block:
        self.resizes += 1
        if new.size > old.size:
            self.allocated_bytes += new.size - old.size
        else:
            self.freed_bytes += old.size - new.size
        return super()._resized(region, block, old, new)

    def _lost(self, blocks: int, size: int) -> None:
        self.deallocations += blocks
        self.freed_bytes += size

    def __repr__(self) -> str:
        options = ""
        for name, value in (
            ("fail_index", self._fail_index),
            ("resize_fail_index", self._resize_fail_index),
            ("every", self._every),
            ("times", self._times),
        ):
            if value is not None:
                options += f", {name}={value}"
        if self._when is not None:
            options += f", when={self._when!r}"
        return f"fail({self._parent!r}{options})"


def _at_least(least: int, name: str, value: SupportsIndex | None) -> int | None:
    if value is None:
        return None
    number = plain_int(value)
    if number < least:
        raise MisuseError(f"{name} must be at least {least}, not {number_text(number)}")
    return number
