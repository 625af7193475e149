"""Layout: the size and the alignment of a piece of memory."""

from __future__ import annotations

from operator import index as plain_int
from typing import Final, SupportsIndex

from allocators._mypyc import i64, mypyc_attr
from allocators.errors import LayoutError

#: The largest size of a layout, rounded up to its alignment: the largest signed 64-bit offset.
MAX_SIZE: Final = (1 << 63) - 1
MAX_ALIGN: Final = 1 << 62

#: Bytes in one item of each machine type, by its `struct` format character.
ITEM_SIZES: Final = {"B": 1, "b": 1, "H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "Q": 8, "q": 8, "d": 8}


@mypyc_attr(native_class=True, acyclic=True)
class Layout:
    """`size` bytes at an address that is a multiple of `align`, a power of two. Both take anything with `__index__`.

    Raises `LayoutError` for a negative size, an alignment that is not a power of two, or a size that exceeds 2^63 - 1
    once rounded up to the alignment. So no allocator ever sees such a layout.
    """

    __slots__ = ("align", "size")

    def __init__(self, size: SupportsIndex, align: SupportsIndex = 8) -> None:
        count = size if isinstance(size, int) else plain_int(size)
        power = align if isinstance(align, int) else plain_int(align)
        if power <= 0 or power & (power - 1) or power > MAX_ALIGN:
            raise LayoutError(f"alignment must be a power of two up to 2**62, not {number_text(power)}")
        if count < 0:
            raise LayoutError(f"size must not be negative: {number_text(count)}")
        if count > MAX_SIZE - (power - 1):
            raise LayoutError(f"size {number_text(count)} rounded up to alignment {power} exceeds 2**63 - 1")
        self.size: Final[i64] = count
        self.align: Final[i64] = power

    @staticmethod
    def array(format: str, count: SupportsIndex) -> Layout:
        """The layout of `count` items of a machine type, given as a `struct` format character."""
        item_size = ITEM_SIZES.get(format)
        if item_size is None:
            raise LayoutError(f"unknown item format {format!r}, want one of {' '.join(ITEM_SIZES)}")
        return items_layout(count if isinstance(count, int) else plain_int(count), item_size, item_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self.size == other.size and self.align == other.align

    def __hash__(self) -> int:
        return hash((self.size, self.align))

    def __reduce__(self) -> tuple[type[Layout], tuple[int, int]]:
        return Layout, (self.size, self.align)

    def __repr__(self) -> str:
        return f"Layout(size={self.size}, align={self.align})"


def items_layout(count: int, item_size: int, align: int) -> Layout:
    """The layout of `count` items of `item_size` bytes each; `LayoutError` if the product is too large."""
    # Compared before it is multiplied: compiled code must not multiply large ints where a signal can arrive.
    if count < 0 or count > MAX_SIZE // item_size:
        raise LayoutError(f"there is no memory for {number_text(count)} items of {item_size} bytes")
    return Layout(item_size * count, align)


def number_text(number: int) -> str:
    """A number for a message: beyond 64 bits only its magnitude, since Python refuses to print very long numbers."""
    bits = number.bit_length()
    if bits <= 64:
        return str(number)
    return f"{'-' if number < 0 else ''}2**{bits - 1} or more"
