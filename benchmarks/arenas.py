"""Two arenas that differ in one thing: where cursor and start are kept.

`CachedArena` keeps them itself, as `allocators.Arena` does; `FooterArena` reaches them through the chunk's footer
object, as arenas did before oxc. Both hand out blocks of one chunk by the same rule. `fill_*` are the loops to time;
they, `Layout` and `Block` are here so that all is compiled together, as it is in the package.
"""

from __future__ import annotations

from typing import Final

from allocators import Region
from allocators._mypyc import i64, mypyc_attr


@mypyc_attr(native_class=True, acyclic=True)
class Layout:
    """Size and alignment in bytes."""

    __slots__ = ("align", "size")

    def __init__(self, size: i64, align: i64) -> None:
        self.size: Final[i64] = size
        self.align: Final[i64] = align


@mypyc_attr(native_class=True, acyclic=True, free_list_len=1)
class Block:
    """What an allocation returns."""

    __slots__ = ("address", "key", "size")

    def __init__(self, address: i64, size: i64, key: Region) -> None:
        self.address: Final[i64] = address
        self.size: Final[i64] = size
        self.key = key


@mypyc_attr(native_class=True)
class Footer:
    """What an arena knows of its chunk."""

    __slots__ = ("cursor", "region", "start")

    def __init__(self, region: Region) -> None:
        self.region = region
        self.start: i64 = region.address
        self.cursor: i64 = region.address + region.size


@mypyc_attr(native_class=True)
class CachedArena:
    """Cursor and start in the arena."""

    __slots__ = ("_cursor", "_footer", "_key", "_start")

    def __init__(self, region: Region) -> None:
        self._footer = Footer(region)
        self._key = region
        self._start: i64 = region.address
        self._cursor: i64 = region.address + region.size

    def allocate(self, layout: Layout) -> Block:
        address = (self._cursor - layout.size) & -layout.align
        if address < self._start:
            raise MemoryError
        self._cursor = address
        return Block(address, layout.size, self._key)

    def reset(self) -> None:
        self._cursor = self._key.address + self._key.size


@mypyc_attr(native_class=True)
class FooterArena:
    """Cursor and start in the footer of the current chunk."""

    __slots__ = ("_footer",)

    def __init__(self, region: Region) -> None:
        self._footer = Footer(region)

    def allocate(self, layout: Layout) -> Block:
        address = (self._footer.cursor - layout.size) & -layout.align
        if address < self._footer.start:
            raise MemoryError
        self._footer.cursor = address
        return Block(address, layout.size, self._footer.region)

    def reset(self) -> None:
        self._footer.cursor = self._footer.region.address + self._footer.region.size


def fill_cached(arena: CachedArena, layout: Layout, count: i64) -> None:
    """Allocate `count` blocks."""
    done: i64 = 0
    while done < count:
        arena.allocate(layout)
        done += 1


def fill_footer(arena: FooterArena, layout: Layout, count: i64) -> None:
    """Allocate `count` blocks."""
    done: i64 = 0
    while done < count:
        arena.allocate(layout)
        done += 1
