"""Layout: the size and the alignment of a piece of memory."""

from __future__ import annotations

from typing import Final

from allocators._mypyc import i64, mypyc_attr
from allocators.errors import LayoutError

#: Largest size, rounded up to its alignment, that a layout can have: what a signed 64-bit offset can reach.
MAX_SIZE: Final = (1 << 63) - 1
MAX_ALIGN: Final = 1 << 62

#: Bytes in one item of each machine type, by its `struct` format character.
ITEM_SIZES: Final = {"B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "Q": 8, "q": 8, "d": 8}


@mypyc_attr(native_class=True, acyclic=True)
class Layout:
    """`size` bytes at an address that is a multiple of `align`, a power of two.

    Raises `LayoutError` for a negative size, an alignment that is no power of two, or a size that exceeds 2^63 - 1
    once rounded up to the alignment. So no allocator ever sees such a layout.
    """

    __slots__ = ("align", "size")

    def __init__(self, size: int, align: int = 8) -> None:
        if not isinstance(size, int) or not isinstance(align, int):
            raise TypeError(f"a layout takes two ints, not {size!r} and {align!r}")
        if align <= 0 or align & (align - 1) or align > MAX_ALIGN:
            raise LayoutError(f"alignment must be a power of two up to 2**62, not {align}")
        if size < 0:
            raise LayoutError(f"size must not be negative: {size}")
        if size > MAX_SIZE - (align - 1):
            raise LayoutError(f"size {size} rounded up to alignment {align} exceeds 2**63 - 1")
        self.size: Final[i64] = size
        self.align: Final[i64] = align

    @staticmethod
    def array(format: str, count: int) -> Layout:
        """The layout of `count` items of one machine type, named by its `struct` format character."""
        item_size = ITEM_SIZES.get(format)
        if item_size is None:
            raise LayoutError(f"unknown item format {format!r}, want one of {' '.join(ITEM_SIZES)}")
        return Layout(item_size * count, item_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self.size == other.size and self.align == other.align

    def __hash__(self) -> int:
        return hash((self.size, self.align))

    def __repr__(self) -> str:
        return f"Layout(size={self.size}, align={self.align})"
