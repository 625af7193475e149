"""Region, one piece of real memory; Lease, the right to hand out blocks in it; and Block, an allocation inside it.

Closing a region revokes every block that was handed out through it. Allocators use this to revoke blocks wholesale
(`reset`, the end of a scope, unmapping) without keeping a list of them. One that cuts up memory which it cannot close,
since its parent or somebody else owns it, hands out blocks through a lease, which ends with the region it is taken on.

What raises, and what does not, once a block has ended:

* Asking the block, or a container on it, raises `MisuseError`: `Block.view`, and every operation of a container that
  looks at its items or changes them, `data` and `columns` included. The question is asked again each time, for one
  comparison. `close` stays quiet, and `capacity` and `repr` say what was.
* What has been handed out before is not asked again. A memoryview (of a block, of a container's items, its `data` or
  one of its `columns`) and a numpy array on it are windows on memory. They keep that memory alive, so reading and
  writing through them never touches unmapped pages; but the allocator hands the same bytes out again, and then they are
  windows on somebody else's block. Let go of them before their block ends, and do not keep them across calls that may
  end it.
* A container releases the views that it caches, `data` and `columns`, when it grows, shrinks or closes: these raise
  ValueError from then on. Slices of them and numpy arrays do not; they show the bytes as they were, or whatever
  has come there since.

Costs: one object a block. `Block.view` makes a memoryview, about 100 ns from interpreted code.
"""

from __future__ import annotations

from operator import index as plain_int
from typing import TYPE_CHECKING, Final, SupportsIndex

from allocators._mypyc import i64, mypyc_attr
from allocators.address import address_of_buffer
from allocators.errors import MisuseError
from allocators.layout import Layout, number_text
from allocators.uncopyable import Uncopyable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Address of blocks that own no memory: not null, and aligned enough for every machine type.
DANGLING: Final = 16

#: Fewer leases than this are not searched for ended ones.
_FEW: Final = 8


def address_of(view: memoryview) -> int:
    """The address of the first byte of a writable, contiguous view; `DANGLING` for an empty one."""
    if view.nbytes == 0:
        return DANGLING
    return address_of_buffer(view)


@mypyc_attr(native_class=True)
class Region(Uncopyable):
    """`size` bytes of memory at `address`, and the memoryview that keeps them alive.

    `memory` is that view, or None once the region is closed. `taken` and `dead` are for the allocator that hands out
    blocks through the region: bytes of the blocks that occupy it, and how many of those have been freed without making
    room.
    """

    __slots__ = ("_leases", "address", "memory", "size")

    def __init__(self, address: i64, size: i64, memory: memoryview | None) -> None:
        self.address: Final[i64] = address
        self.size: Final[i64] = size
        self.memory = memory
        #: The leases that end with this region; some may have ended already.
        self._leases: list[Lease] | None = None

    @staticmethod
    def of(buffer: WriteableBuffer) -> Region:
        """The region of a buffer that the caller owns: a bytearray, an array, numpy, shared memory, a mapping.

        Raises `MisuseError` where the buffer is read-only, not contiguous, or holds Python objects. While the region is
        open the buffer cannot be resized.
        """
        view = memoryview(buffer)
        if _holds_objects(view.format):
            raise MisuseError("a region needs a buffer of bytes and numbers, not of Python objects")
        if view.readonly:
            raise MisuseError("a region needs a writable buffer")
        if not view.c_contiguous:
            raise MisuseError("a region needs a contiguous buffer")
        # Only a one-dimensional or non-empty view can be cast; an empty one has no bytes to lose.
        flat = view.cast("B") if view.nbytes else memoryview(bytearray())
        return Region(address_of(flat), flat.nbytes, flat)

    def part(self, address: SupportsIndex, size: SupportsIndex) -> Region:
        """A separate region over some of this one's bytes: closing either leaves the other open.

        Raises `MisuseError` where they are not all inside this region, or it is closed.
        """
        start = address if isinstance(address, int) else plain_int(address)
        count = size if isinstance(size, int) else plain_int(size)
        return Region(start, count, self._piece(start, count))

    def _piece(self, start: int, count: int) -> memoryview:
        """Some of the bytes. Raises `MisuseError` where they are not all inside this region, or it is closed."""
        # Plain ints, and no sum of numbers that have not been compared yet.
        base: int = self.address
        room: int = self.size
        offset = start - base
        if offset < 0 or offset > room or count < 0 or count > room - offset:
            raise MisuseError(f"{number_text(count)} bytes from byte {number_text(offset)} on are not inside {self!r}")
        return self.view[offset : offset + count]

    def lease(self, address: i64, size: i64) -> Lease:
        """A lease of some of this region's bytes, which ends with the region. Raises as `part` does.

        For an allocator that hands out blocks from a block of its parent: when the parent revokes that, they all end.
        """
        lease = Lease(address, size, self._piece(address, size))
        self._note(lease)
        return lease

    def renew(self, lease: Lease) -> None:
        """Give a lease of this region that has let go of its memory that memory again."""
        lease.memory = self._piece(lease.address, lease.size)
        self._note(lease)

    def _note(self, lease: Lease) -> None:
        leases = self._leases
        if leases is None:
            self._leases = [lease]
        else:
            # Doubling before it looks again makes this a constant time for each.
            if len(leases) >= _FEW and len(leases) & (len(leases) - 1) == 0:
                leases[:] = [other for other in leases if other.memory is not None]
            leases.append(lease)
        if self.memory is None:
            # A finaliser has closed the region meanwhile.
            self.close()

    @property
    def view(self) -> memoryview:
        """All bytes, writable unless the pages are protected. Raises `MisuseError` once closed."""
        memory = self.memory
        if memory is None:
            raise MisuseError("the memory has been released")
        return memory

    @property
    def closed(self) -> bool:
        return self.memory is None

    def close(self) -> None:
        """Revoke every block of this region, and end its leases. Views that others hold stay valid.

        Closing twice is harmless.
        """
        self.let_go()
        leases = self._leases
        while leases:
            leases[-1].close()
            leases.pop()

    def let_go(self) -> None:
        """Release the memory, for whoever means to set `memory` again: leases go on."""
        memory = self.memory
        self.memory = None
        if memory is not None:
            try:
                memory.release()
            except BufferError:
                # Something such as a numpy array looks at the bytes through this very view, and keeps it alive.
                pass

    def __repr__(self) -> str:
        state = " closed" if self.memory is None else ""
        return f"<{type(self).__name__} {self.size} bytes at {self.address:#x}{state}>"


@mypyc_attr(native_class=True)
class Lease(Region):
    """What an allocator hands out blocks through: closing it revokes them, and leaves the memory to the allocator.

    `taken`: bytes of the blocks that occupy memory. `dead`: how many of those have been freed without making room. Both
    vanish with the lease, so the figures stay exact when blocks are revoked wholesale.
    """

    __slots__ = ("dead", "taken")

    def __init__(self, address: i64, size: i64, memory: memoryview | None) -> None:
        super().__init__(address, size, memory)
        self.taken: i64 = 0
        self.dead: i64 = 0


def _holds_objects(format: str) -> bool:
    """Whether a buffer's format has a Python object in it: an O that is not part of a field's name, as in T{O:name:}"""
    return "O" in "".join(format.split(":")[::2])


def empty_lease() -> Lease:
    """A lease without memory, for blocks of size zero."""
    return Lease(DANGLING, 0, memoryview(bytearray()))


def lease_of(block: Block) -> Lease:
    """The lease of a live block; `MisuseError` where it has ended, or was handed out without one."""
    region = block.region
    if region.memory is None:
        raise released(block)
    if not isinstance(region, Lease):
        raise foreign(block)
    return region


def foreign(block: Block) -> MisuseError:
    """The error for giving an allocator a block that is none of its blocks."""
    return MisuseError(f"{block!r} was not allocated here")


def empty_region() -> Region:
    """A region without memory, open until it is closed."""
    return Region(DANGLING, 0, memoryview(bytearray()))


#: What the region of a block becomes when the block ends.
RELEASED: Final = Region(0, 0, None)


@mypyc_attr(native_class=True, acyclic=True, free_list_len=1)
class Block(Uncopyable):
    """`size` bytes at `address`, inside `region`: what `allocate` returns.

    `address` is a real virtual address, for ctypes, numpy and machine code. Once the block has ended, `view` raises
    `MisuseError`, and so does giving the block to an allocator.
    """

    __slots__ = ("address", "region", "size")

    def __init__(self, address: i64, size: i64, region: Region) -> None:
        self.address: Final[i64] = address
        self.size: Final[i64] = size
        self.region = region

    @property
    def view(self) -> memoryview:
        """Exactly the bytes of this block, format 'B'."""
        memory = self.region.memory
        if memory is None:
            raise released(self)
        if self.size == 0:
            return memory[0:0]
        offset = self.address - self.region.address
        return memory[offset : offset + self.size]

    def cast(self, format: str) -> memoryview:
        """The bytes as machine items of a `struct` format; what is left over after the last item is cut off."""
        view = self.view
        item_size = Layout.array(format, 1).size
        return view[: self.size - self.size % item_size].cast(format)  # type: ignore[call-overload,no-any-return]

    @property
    def released(self) -> bool:
        """Whether the block has ended, or its memory is gone."""
        return self.region.memory is None

    def release(self) -> None:
        """End the block. For allocators, in `deallocate`, `grow` and `shrink`; it gives nothing back by itself."""
        self.region = RELEASED

    def __repr__(self) -> str:
        state = " released" if self.region.memory is None else ""
        return f"<Block {self.size} bytes at {self.address:#x}{state}>"


def released(block: Block) -> MisuseError:
    """The error for using a block that has ended."""
    return MisuseError(f"block of {block.size} bytes at {block.address:#x} has been released")


def dangling(align: i64) -> Block:
    """A zero-size block that no memory stands behind, at a non-null aligned address.

    Many can share that address; each has its own region, by which adaptors tell them apart.
    """
    return Block(align if align > DANGLING else DANGLING, 0, empty_region())


def copy(source: Block, target: Block, size: i64) -> None:
    """Copy the first `size` bytes; the blocks may overlap."""
    if size > 0:
        target.view[:size] = source.view[:size]


def zero(block: Block, start: i64, end: i64) -> None:
    """Set the bytes from `start` up to `end` to zero."""
    # A source of bounded size: zeroing a gigabyte must not take a second gigabyte.
    view = block.view
    while start < end:
        step = end - start
        if step > len(_ZEROS):
            step = len(_ZEROS)
        view[start : start + step] = _ZEROS[:step]
        start += step


_ZEROS: Final = memoryview(bytes(1 << 16))
