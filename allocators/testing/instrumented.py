"""Instrumented, a parent that checks its child, and Failures, which makes any number of them run out of memory.

Each block has its own memory with guard bytes on both sides, at an address with exactly the requested alignment. Fresh
memory is filled with junk. Every call is recorded, the arguments of every free are compared with those of the
allocation, and nothing resizes in place. So a child cannot pass by luck.

Costs: some microseconds per call, and 16 KiB or four times the alignment per block.
"""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import Final

from allocators.base import BaseAllocator, check_grow, check_shrink
from allocators.block import Block, Region, address_of, released
from allocators.errors import AllocError
from allocators.layout import Layout
from allocators.testing.errors import ConformanceError, Interruption
from allocators.uncopyable import Uncopyable

#: Guard bytes before and after a block.
GUARD: Final = 16
_GUARD_BYTES: Final = b"\xfb" * GUARD
_JUNK: Final = b"\xa7" * 4096
#: The default limit for one request: far more than a check needs.
LIMIT: Final = 1 << 28
#: From this size on, memory is mapped pages, which cost nothing until touched, and is not filled with junk.
_LARGE: Final = 1 << 20
#: Addresses are chosen modulo this.
_RESIDUES: Final = 1 << 13

_OWN_CODE: Final = str(Path(__file__).parent.parent)


class Failures(Uncopyable):
    """Counts the requests of all its allocators together, and refuses them from a given one on.

    `fail_at` is the number of the first request to refuse, counted from 0; None refuses none. `times` is the number of
    refused requests, by default all later ones, so that retrying with a smaller size fails too.
    """

    def __init__(self, fail_at: int | None = None, times: int | None = None) -> None:
        self.fail_at = fail_at
        self.times = times
        #: Requests so far, including refused ones.
        self.requests = 0
        #: Refused requests so far.
        self.refused = 0
        self.allocators: list[Instrumented] = []

    def allocator(self, *, over_size: int = 0) -> Instrumented:
        """A new source of memory that uses this count."""
        allocator = Instrumented(self, over_size=over_size)
        self.allocators.append(allocator)
        return allocator

    def admit(self) -> bool:
        """Count one request; returns whether to serve it."""
        number = self.requests
        self.requests += 1
        if self.fail_at is None or number < self.fail_at:
            return True
        if self.times is not None and number >= self.fail_at + self.times:
            return True
        self.refused += 1
        return False

    def refuse(self, times: int | None = 1, *, after: int = 0) -> None:
        """Serve `after` more requests, then refuse `times`, or all if None."""
        self.fail_at = self.requests + after
        self.times = times

    def allow(self) -> None:
        """Stop refusing."""
        self.fail_at = None

    @property
    def leaks(self) -> list[str]:
        """One line for each block that is live in any of the allocators."""
        return [line for allocator in self.allocators for line in allocator.leaks]


class Call:
    """A call that a parent has served: the method, the layouts, and the address of the block."""

    __slots__ = ("address", "method", "new", "old")

    def __init__(self, method: str, address: int, old: Layout | None, new: Layout | None) -> None:
        self.method: Final = method
        self.address: Final = address
        self.old: Final = old
        self.new: Final = new

    def __repr__(self) -> str:
        layouts = ", ".join(repr(layout) for layout in (self.old, self.new) if layout is not None)
        return f"<Call {self.method} {self.address:#x} {layouts}>"


class Piece:
    """Revoked memory of a parent."""

    __slots__ = ("_memory", "end", "start")

    def __init__(self, start: int, size: int, memory: memoryview) -> None:
        self.start: Final = start
        self.end: Final = start + size
        self._memory: Final = memory

    def overlaps(self, block: Block) -> bool:
        """Whether any byte of a block lies here."""
        return self.start < block.address + block.size and block.address < self.end


class _Record:
    """A live block: its requested layout, its memory with the guards, and the call site."""

    __slots__ = ("layout", "memory", "offset", "site")

    def __init__(self, layout: Layout, memory: memoryview, offset: int, site: str) -> None:
        self.layout = layout
        self.memory = memory
        self.offset = offset
        self.site = site


class Instrumented(BaseAllocator):
    """Real memory from Python's heap. `over_size`: extra bytes in every block."""

    def __init__(self, failures: Failures | None = None, *, over_size: int = 0, limit: int = LIMIT) -> None:
        self.failures = Failures() if failures is None else failures
        self.calls: list[Call] = []
        self.closed = False
        #: Number of frees before the one that raises `Interruption`, once; None for never.
        self.interrupt_after: int | None = None
        self._over_size = over_size
        self._limit = limit
        self._live: dict[Region, _Record] = {}

    @property
    def live_blocks(self) -> int:
        """Number of live blocks, including those of size zero."""
        return len(self._live)

    @property
    def live_bytes(self) -> int:
        """Requested bytes of live blocks."""
        return sum(record.layout.size for record in self._live.values())

    @property
    def leaks(self) -> list[str]:
        """One line for each live block."""
        return [
            f"{record.layout.size} bytes aligned to {record.layout.align}, from {record.site}"
            for record in self._live.values()
        ]

    def allocate(self, layout: Layout) -> Block:
        self._admit(layout)
        return self._serve("allocate", layout, junk=True)

    def allocate_zeroed(self, layout: Layout) -> Block:
        self._admit(layout)
        return self._serve("allocate_zeroed", layout, junk=False)

    def _admit(self, layout: Layout) -> None:
        if not self.failures.admit():
            raise AllocError("instrumented", layout, reason="refused on demand")
        if layout.size > self._limit or layout.align > self._limit:
            raise AllocError("instrumented", layout, limit=self._limit)

    def _serve(self, method: str, layout: Layout, *, junk: bool) -> Block:
        block = self._make(layout, junk)
        self.calls.append(Call(method, block.address, None, layout))
        return block

    def _make(self, layout: Layout, junk: bool) -> Block:
        align = layout.align
        size = layout.size
        if size == 0:
            # Blocks of size zero and equal alignment share an address, which catches tables keyed by address.
            region = Region(align if align >= 16 else 16 + align, 0, memoryview(bytearray()))
            self._live[region] = _Record(layout, memoryview(b""), 0, _caller())
            return Block(region.address, 0, region)
        size += self._over_size
        step = 2 * align
        turns = max(_RESIDUES // step, 1)
        period = turns * step
        total = size + 2 * period + 2 * GUARD
        memory = memoryview(bytearray(total) if total < _LARGE else mmap.mmap(-1, total))
        base = address_of(memory)
        # Cycles through the odd multiples of the alignment below the period, so the position of a block in its page
        # depends only on the calls before it.
        address = ((base + GUARD + period - 1) & -period) + len(self.calls) % turns * step + align
        offset = address - base
        memory[offset - GUARD : offset] = _GUARD_BYTES
        memory[offset + size : offset + size + GUARD] = _GUARD_BYTES
        view = memory[offset : offset + size]
        if junk and size < _LARGE:
            _fill(view)
        region = Region(address, size, view)
        self._live[region] = _Record(layout, memory, offset, _caller())
        return Block(address, size, region)

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._check_fits("deallocate", block, layout)
        self.calls.append(Call("deallocate", block.address, layout, None))
        self._end(block)
        if self.interrupt_after is not None:
            self.interrupt_after -= 1
            if self.interrupt_after < 0:
                self.interrupt_after = None
                raise Interruption

    def _end(self, block: Block) -> None:
        region = block.region
        record = self._live[region]
        size = region.size
        overwritten = False
        if size:
            memory = record.memory
            behind = record.offset + size
            front = memory[record.offset - GUARD : record.offset]
            overwritten = bytes(front) != _GUARD_BYTES or bytes(memory[behind : behind + GUARD]) != _GUARD_BYTES
            if size < _LARGE:
                _fill(memory[record.offset : behind])
        region.close()
        block.release()
        del self._live[region]
        if overwritten:
            raise ConformanceError(f"somebody wrote outside the parent's block of {size} bytes", self._history())

    def _check_fits(self, method: str, block: Block, layout: Layout) -> None:
        """Raise unless the block was allocated here and the layout fits it."""
        if block.released:
            raise released(block)
        record = self._live.get(block.region)
        if record is None or block.address != block.region.address:
            raise ConformanceError(f"{method} of a block that the parent never gave: {block!r}", self._history())
        asked = record.layout
        if layout.align != asked.align or not asked.size <= layout.size <= block.region.size:
            raise ConformanceError(
                f"{method} with {layout!r} of a block that the parent gave for {asked!r}", self._history()
            )

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        return self._resize("grow", block, old, new, old.size)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        check_grow(block, old, new)
        grown = self._resize("grow_zeroed", block, old, new, old.size)
        grown.view[old.size :] = bytes(grown.size - old.size)
        return grown

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        check_shrink(block, old, new)
        return self._resize("shrink", block, old, new, new.size)

    def _resize(self, method: str, block: Block, old: Layout, new: Layout, kept: int) -> Block:
        self._check_fits(method, block, old)
        self._admit(new)
        moved = self._make(new, junk=True)
        moved.view[:kept] = block.view[:kept]
        self.calls.append(Call(method, moved.address, old, new))
        self._end(block)
        return moved

    def owns(self, block: Block) -> bool:
        return block.region in self._live

    def close(self) -> None:
        """Revoke all blocks."""
        self.closed = True
        for region in self._live:
            region.close()
        self._live.clear()

    def revoke(self) -> list[Piece]:
        """Revoke all blocks, as a reset does, but keep their memory from being reused; returns where they were."""
        pieces = [Piece(region.address, region.size, record.memory) for region, record in self._live.items()]
        for region in self._live:
            region.close()
        self._live.clear()
        return pieces

    def _history(self) -> list[str]:
        return [f"parent: {call!r}" for call in self.calls]

    def __repr__(self) -> str:
        return "instrumented"


def _fill(view: memoryview) -> None:
    size = len(view)
    for start in range(0, size, len(_JUNK)):
        step = min(len(_JUNK), size - start)
        view[start : start + step] = _JUNK[:step]


def _caller() -> str:
    """The nearest source line outside the allocators package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_CODE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})"
