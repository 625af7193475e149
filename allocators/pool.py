"""PoolAllocator: blocks of one size, freed in any order, reused last in first out.

Layout: slabs of slots from any parent, the first of `first_slots`, each later one twice as many up to 1 MiB; where the
parent refuses, half as many are tried, down to one, so that a limit below can be used up to the last slot. A slot is
the size rounded up to the alignment. Freed slots are listed beside the memory, not in it; the slot freed last is handed
out first, while it is still in the cache. As Zig's MemoryPool and RMM's fixed-size resource.

A smaller request gets a whole slot too, and grows in it without moving. A larger one, or one of a larger alignment, is
refused with `AllocError`: put a `FallbackAllocator` or a `BinningAllocator` around the pool.

Costs: an allocation takes an item off a list, a free adds one; 16 bytes of lists for each free slot. A slab goes back
to the parent only by `reset` and `close`.
"""

from __future__ import annotations

from typing import Final, Generic, Self, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, as_base, check_grow, check_shrink, unfit
from allocators.block import Block, Region, dangling, released
from allocators.layout import Layout
from allocators.protocol import Allocator, AllocError, MisuseError
from allocators.reset import ALL, ResetPolicy
from allocators.scope import Checkpoint, Ledger, Scope

A = TypeVar("A", bound=Allocator)

_FIRST_SLOTS: Final = 16
_LARGEST_SLAB: Final = 1 << 20


@mypyc_attr(native_class=True)
class _Slab:
    """A block of the parent full of slots.

    Blocks are handed out through `key`; those put aside by checkpoints are below it, the oldest first. `fresh` is the
    first slot that was never handed out.
    """

    __slots__ = ("aside", "block", "end", "fresh", "key", "layout")

    def __init__(self, block: Block, layout: Layout) -> None:
        self.block: Final = block
        self.layout: Final = layout
        self.end: Final[i64] = block.address + layout.size
        self.fresh: i64 = block.address
        self.aside: list[Region] = []
        self.key = self.make_key()

    def make_key(self) -> Region:
        return self.block.region.part(self.block.address, self.layout.size)

    def close_keys(self, count: int) -> None:
        """Close all keys but the `count` oldest, and go on with the last of those, or with none."""
        self.key.close()
        for key in self.aside[count:]:
            key.close()
        if count > 0:
            self.key = self.aside[count - 1]
        del self.aside[max(count - 1, 0) :]


@mypyc_attr(native_class=True)
class PoolAllocator(BaseAllocator, Generic[A]):
    """Blocks of `size` bytes aligned to `align`, from slabs of `parent`.

    `capacity`: slots to allocate right away. `growable`: whether there may ever be more than those.
    """

    __slots__ = (
        "_depth",
        "_free",
        "_growable",
        "_layout",
        "_ledger",
        "_live",
        "_parent",
        "_slabs",
        "_stride",
        "_up",
    )

    def __init__(self, parent: A, size: int, align: int = 8, *, capacity: int = 0, growable: bool = True) -> None:
        if size < 1:
            raise MisuseError(f"slots must have at least one byte, not {size}")
        if capacity < 0:
            raise MisuseError(f"capacity must not be negative: {capacity}")
        self._parent: Final[A] = parent
        self._up: Final = as_base(parent)
        self._layout: Final = Layout(size, align)
        self._stride: Final[i64] = (size + align - 1) & -align
        self._growable: Final = growable
        self._slabs: list[_Slab] = []
        #: Slots that were handed out and freed, the newest last, each with its slab.
        self._free: list[tuple[int, _Slab]] = []
        self._live: i64 = 0
