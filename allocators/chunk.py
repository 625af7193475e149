"""Chunk, a block of the parent that an allocator cuts up, and Departures, through which chunks and leases leave it.

Giving a chunk back runs the parent's code, which may raise, or call back into the allocator. So `restore`, `reset` and
`close` first change the allocator completely, by plain assignments between which nothing else runs, neither a signal
handler nor a finaliser; what goes is listed in `Departures`, and `finish` sees to it after that. Whatever happens
there, the operation is done, and nothing that was to go is forgotten: what an interruption leaves on the list goes with
the next operation.
"""

from __future__ import annotations

from gc import disable, enable, isenabled
from types import TracebackType
from typing import Final

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator
from allocators.block import Block, Lease
from allocators.errors import MisuseError
from allocators.layout import Layout


@mypyc_attr(native_class=True)
class Chunk:
    """`block` of the parent, as it was asked for by `layout`; its data is `size` bytes from `start` on."""

    __slots__ = ("block", "cursor", "layout", "previous", "size", "start")

    def __init__(self, block: Block, layout: Layout, size: i64) -> None:
        self.block: Final = block
        self.layout: Final = layout
        self.start: Final[i64] = block.address
        self.size: Final[i64] = size
        #: The chunk made before this one.
        self.previous: Chunk | None = None
        #: Where the allocator's cursor was when the next chunk took over.
        self.cursor: i64 = block.address

    @property
    def revoked(self) -> bool:
        """Whether the parent has taken the block back, by a reset, a restore or its end."""
        return self.block.region.memory is None

    def new_lease(self) -> Lease:
        """A fresh lease of the data, to hand out blocks through; the parent revokes it with the block."""
        return self.block.region.lease(self.start, self.size)

    def give_back(self, parent: BaseAllocator) -> None:
        """Return the block, unless the parent has revoked it."""
        if self.block.region.memory is not None:
            parent.deallocate(self.block, self.layout)


@mypyc_attr(native_class=True)
class Run:
    """The chunks from `chunk`, the newest, back to `end`, which stays."""

    __slots__ = ("chunk", "end")

    def __init__(self, chunk: Chunk | None = None, end: Chunk | None = None) -> None:
        self.chunk = chunk
        self.end = end


@mypyc_attr(native_class=True)
class Departures:
    """`leases` to close, and `runs` of chunks to give back to a parent."""

    __slots__ = ("_parent", "leases", "runs")

    def __init__(self, parent: BaseAllocator) -> None:
        self._parent: Final = parent
        self.leases: list[Lease] = []
        self.runs: list[Run] = []

    def finish(self) -> BaseException | None:
        """Close the leases and give the chunks back, the newest first; returns the first exception that was raised.

        A chunk that the parent has raised for is the parent's affair.
        """
        first: BaseException | None = None
        while self.leases or self.runs:
            try:
                while self.leases:
                    lease = self.leases[-1]
                    lease.close()
                    if self.leases and self.leases[-1] is lease:
                        del self.leases[-1]
                while self.runs:
                    self._next()
            except BaseException as error:
                if first is None:
                    first = error
        if isinstance(first, MisuseError):
            first.done = True
        return first

    def _next(self) -> None:
        """Give the next chunk back. It leaves the list before that, since the parent may call back."""
        run = self.runs[-1]
        chunk = run.chunk
        if chunk is None or chunk is run.end:
            del self.runs[-1]
        else:
            run.chunk = chunk.previous
            chunk.give_back(self._parent)


@mypyc_attr(native_class=True)
class NoFinalisers:
    """For a `with` block that changes an allocator in many steps: no garbage is collected meanwhile."""

    __slots__ = ("_enabled",)

    def __init__(self) -> None:
        self._enabled = False

    def __enter__(self) -> None:
        self._enabled = isenabled()
        disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled:
            enable()


def revoked(allocator: object) -> MisuseError:
    """The error for an allocator whose parent has taken back what it allocates from."""
    return MisuseError(f"the parent has revoked the memory of {allocator!r}, which must be reset or closed")
