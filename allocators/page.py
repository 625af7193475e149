"""PageAlloc: every allocation is its own run of whole pages from the operating system.

Layout: one anonymous private mapping per block, page-aligned, with the size rounded up to pages. For an alignment
larger than a page the mapping is longer by the alignment less a page; this slack is address space that is never
touched, so it costs no memory. The block covers all its pages, so it may be larger than requested.

Costs: two system calls per allocation, some microseconds, and at least one page. Fresh pages are zero, so
`allocate_zeroed` is free. Where the OS can remap, growing moves page table entries instead of bytes.

Protection ends with a block: the block that `grow` or `shrink` returns is writable, whether or not it moved.

Not for: small or short-lived blocks. Put an `Arena` or a `BumpAlloc` on top.
"""

from __future__ import annotations

import mmap
import sys
from operator import index as plain_int
from typing import TYPE_CHECKING, Final, SupportsIndex

from allocators._mypyc import i64, mypyc_attr
from allocators.base import BaseAllocator, check_grow, check_shrink, part_end, unfit
from allocators.block import Block, Region, address_of, dangling, released, zero
from allocators.errors import AllocError, MisuseError, caused_by
from allocators.layout import Layout
from allocators.mapping import PAGE_SIZE, PROTECTIONS, map_pages, protect_pages

if TYPE_CHECKING:
    from allocators.protocol import Access
    from allocators.waste import Waste

_CAN_REMAP: Final = sys.platform == "linux"


@mypyc_attr(native_class=True)
class PageAlloc(BaseAllocator):
    """Whole pages from the OS. Satisfies `Pages`.

    Memory never vanishes under a live view: if a block is deallocated while views of it are alive, its pages are
    unmapped with the last view.
    """

    __slots__ = ("_allocated", "_asked", "_live", "_sealed")

    def __init__(self) -> None:
        self._live: dict[int, Region] = {}
        #: Requested bytes by block address.
        self._asked: dict[int, int] = {}
        #: By address of a block with read-only pages: one byte per page, 1 if the page is read-only.
        self._sealed: dict[int, bytearray] = {}
        self._allocated: i64 = 0

    @property
    def page_size(self) -> int:
        return PAGE_SIZE

    @property
    def allocated_bytes(self) -> int:
        """Bytes mapped for live blocks, including slack for alignment."""
        return self._allocated

    @property
    def live_blocks(self) -> int:
        """Number of live blocks, excluding those of size zero."""
        return len(self._live)

    def allocate(self, layout: Layout) -> Block:
        if layout.size == 0:
            return dangling(layout.align)
        # Plain ints: the sum can exceed 2**63, which the OS then refuses.
        align: int = layout.align
        slack = align - PAGE_SIZE if align > PAGE_SIZE else 0
        size = _round_to_pages(layout.size)
        try:
            mapping = map_pages(size + slack)
        except (OSError, OverflowError, ValueError) as error:
            raise caused_by(AllocError("page", layout, in_use=self._allocated, reason=str(error)), None)
        return self._adopt(mapping, size, align, layout.size)

    def _adopt(self, mapping: mmap.mmap, size: int, align: int, asked: int) -> Block:
        """Make the aligned `size` bytes of a mapping a live block."""
        memory = memoryview(mapping)
        base = address_of(memory)
        address = (base + align - 1) & -align
        if len(memory) != size:
            memory = memory[address - base : address - base + size]
        region = Region(address, size, memory)
        self._live[address] = region
        self._asked[address] = asked
        self._allocated += len(mapping)
        return Block(address, size, region)

    def allocate_zeroed(self, layout: Layout) -> Block:
        return self.allocate(layout)

    def deallocate(self, block: Block, layout: Layout) -> None:
        if block.region.memory is None:
            raise released(block)
        if block.size == 0 and block.address not in self._live:
            block.release()
            return
        if layout.size > block.size:
            raise unfit(block, layout)
        mapping = self._forget(block)
        block.release()
        try:
            mapping.close()
        except BufferError:
            # Views of the pages are still alive; the last one unmaps them.
            pass

    def _region_of(self, block: Block) -> Region:
        region = self._live.get(block.address)
        if region is None or region is not block.region:
            raise MisuseError(f"{block!r} was not allocated here")
        return region

    def _forget(self, block: Block) -> mmap.mmap:
        """Close the region of a live block and return its mapping."""
        region = self._region_of(block)
        mapping = _mapping_of(region)
        self._allocated -= len(mapping)
        del self._live[block.address]
        del self._asked[block.address]
        self._sealed.pop(block.address, None)
        region.close()
        return mapping

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        if block.size == 0:
            return self._move(block, old, new, 0)
        region = self._region_of(block)
        # Plain ints: the rounded size can exceed 2**63.
        held: int = region.size
        if block.address % new.align == 0 and _round_to_pages(new.size) == held and self._unseal(region):
            return self._renew(block, region, new.size)
        return self._remap(block, old, new, old.size)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        # The rest of the last page may be dirty; the pages after it are fresh. An adaptor may have cut the block to the
        # requested size, so only the region knows where the last page ends.
        dirty = block.region.size
        grown = self.grow(block, old, new)
        zero(grown, old.size, min(dirty, grown.size))
        return grown

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        if new.size == 0:
            empty = dangling(new.align)
            self.deallocate(block, old)
            return empty
        region = self._region_of(block)
        held: int = region.size
        if block.address % new.align == 0 and _round_to_pages(new.size) == held and self._unseal(region):
            return self._renew(block, region, new.size)
        return self._remap(block, old, new, new.size)

    def _unseal(self, region: Region) -> bool:
        """Make all pages of a region writable; False if the OS refuses, and the block must move."""
        if region.address in self._sealed:
            try:
                self._protect(region, "rw", 0, region.size)
            except OSError:
                return False
        return True

    def _renew(self, block: Block, region: Region, asked: int) -> Block:
        self._asked[region.address] = asked
        block.release()
        return Block(region.address, region.size, region)

    def _remap(self, block: Block, old: Layout, new: Layout, kept: int) -> Block:
        """Resize the mapping of a block: by remapping if possible, else by copying."""
        region = self._region_of(block)
        mapping = _mapping_of(region)
        plain = region.size == len(mapping) and new.align <= PAGE_SIZE and block.address not in self._sealed
        if not _CAN_REMAP or not plain:
            return self._move(block, old, new, kept)
        size = _round_to_pages(new.size)
        before = region.size
        region.let_go()
        try:
            mapping.resize(size)
        except (OSError, ValueError, OverflowError, BufferError) as error:
            region.memory = memoryview(mapping)
            if isinstance(error, BufferError):
                # Views are alive, so the pages must stay where they are.
                return self._move(block, old, new, kept)
            raise caused_by(AllocError("page", new, in_use=self._allocated, reason=str(error)), None)
        region.close()
        del self._live[block.address]
        del self._asked[block.address]
        self._allocated -= before
        block.release()
        return self._adopt(mapping, size, 1, new.size)

    def protect(
        self, block: Block, access: Access, offset: SupportsIndex = 0, size: SupportsIndex | None = None
    ) -> None:
        """Allow reading ('r'), reading and writing ('rw'), or reading and executing ('rx') of the pages of a block.

        `offset` and `size`, in bytes, select a range of whole pages. While any page of the block is not writable,
        `block.view` is read-only. Raises `MisuseError` if the range is not whole pages, or if writing is
        taken away while a view is alive, since a write through it would crash the process. Raises OSError if the OS
        refuses.
        """
        if sys.platform == "win32":
            raise NotImplementedError("protection of pages is not supported on Windows")
        if access not in PROTECTIONS:
            raise MisuseError(f"unknown access {access!r}, want one of {', '.join(PROTECTIONS)}")
        first = plain_int(offset)
        count = None if size is None else plain_int(size)
        region = self._region_of(block)
        self._protect(region, access, first, part_end(region.size, PAGE_SIZE, first, count))

    def _protect(self, region: Region, access: Access, offset: int, end: int) -> None:
        mapping = _mapping_of(region)
        start = region.address - address_of(memoryview(mapping))
        region.let_go()
        try:
            if access != "rw" and _has_views(mapping):
                raise MisuseError(f"a view of {region!r} is still alive; release it before taking away writing")
            protect_pages(region.address + offset, end - offset, PROTECTIONS[access])
            self._note_access(region, access, offset // PAGE_SIZE, end // PAGE_SIZE)
        finally:
            memory = memoryview(mapping)[start : start + region.size]
            region.memory = memory.toreadonly() if region.address in self._sealed else memory

    def _note_access(self, region: Region, access: Access, first: int, end: int) -> None:
        """Record whether the pages of a region from `first` up to `end` are writable."""
        sealed = self._sealed.pop(region.address, None) or bytearray(region.size // PAGE_SIZE)
        sealed[first:end] = (b"\0" if access == "rw" else b"\1") * (end - first)
        if 1 in sealed:
            self._sealed[region.address] = sealed

    def waste(self) -> Waste:
        """Where the mapped bytes have gone: `slack` is the unused end of last pages, `padding` serves alignment."""
        from allocators.waste import Waste

        asked = sum(self._asked.values())
        held = sum([region.size for region in self._live.values()])
        return Waste(
            live=asked,
            dead=0,
            padding=self._allocated - held,
            tail=0,
            abandoned=0,
            overhead=0,
            slack=held - asked,
        )

    def owns(self, block: Block) -> bool:
        region = self._live.get(block.address)
        return region is not None and region is block.region

    def close(self) -> None:
        """Unmap every live block; pages with live views are unmapped with the last view."""
        for region in list(self._live.values()):
            block = Block(region.address, region.size, region)
            self.deallocate(block, Layout(region.size, 1))

    def __repr__(self) -> str:
        return "page"


def _round_to_pages(size: int) -> int:
    return (size + PAGE_SIZE - 1) & -PAGE_SIZE


def _mapping_of(region: Region) -> mmap.mmap:
    mapping = region.view.obj
    assert isinstance(mapping, mmap.mmap)
    return mapping


def _has_views(mapping: mmap.mmap) -> bool:
    """Whether any view of the mapping is alive: Python then refuses to resize it, even to its present size."""
    try:
        mapping.resize(len(mapping))
    except BufferError:
        return True
    except (OSError, SystemError):
        # Python looks for views first; then the OS may refuse, for example if protections differ.
        pass
    return False
