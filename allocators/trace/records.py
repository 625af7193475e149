"""Records: one for each live block, through scopes and resets, for adaptors that must know more than a sum.

Layout: a dict of records, by address, size and region, and one more for each open checkpoint, which holds the blocks
allocated since. Live blocks of size zero can agree in all three; their records form a chain, and none can be told from
the other.

Signal handlers and finalisers, which may use the same allocator, run when Python calls a function and when a loop turns
round. So each change of the dicts is made without either.

Costs: some 300 ns an operation, and 150 to 250 bytes a live block.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.adaptors.adaptor import ALL_BLOCKS, Adaptor
from allocators.block import Block, Region
from allocators.errors import MisuseError
from allocators.layout import Layout
from allocators.protocol import Allocator
from allocators.trace.format import ALLOCATE, ALLOCATE_ZEROED, GROW, GROW_ZEROED, SHRINK

A = TypeVar("A", bound=Allocator)

Page = dict[tuple[int, int, Region], "Record"]


@mypyc_attr(native_class=True)
class Record:
    """A live block: address, size in bytes, region, and what the adaptor notes of it: a number, a tag of its own."""

    __slots__ = ("address", "number", "other", "page", "region", "size", "tag")

    def __init__(self, address: i64, size: i64, region: Region) -> None:
        self.address: i64 = address
        self.size: i64 = size
        self.region = region
        self.number: i64 = -1
        self.tag: Any = None
        #: Where it stands, or stood last: with the blocks as old as this one.
        self.page: Page = {}
        #: The next one with the same key.
        self.other: Record | None = None


@mypyc_attr(native_class=True)
class Records:
    """The records of all live blocks."""

    __slots__ = ("_count", "_pages")

    def __init__(self) -> None:
        self._pages: list[Page] = [{}]
        self._count: i64 = 0

    def __len__(self) -> int:
        return self._count

    def add(self, record: Record) -> None:
        """Enter a block that is allocated now."""
        record.page = self._pages[-1]
        self.put_back(record)

    def put_back(self, record: Record) -> None:
        """Enter a block as old as it was: one that has been resized in place, or could not be freed."""
        page = record.page
        key = (record.address, record.size, record.region)
        record.other = page[key] if key in page else None  # noqa: SIM401 - not a call
        page[key] = record
        self._count += 1

    def take(self, block: Block, size: int) -> Record | None:
        """Take out the record of a block, None if there is none.

        Address and size alone could be those of two blocks of size zero, one from before a checkpoint and one made
        since; their regions differ.
        """
        key = (block.address, size, block.region)
        for page in reversed(self._pages):
            if key in page:
                record = page[key]
                if record.other is None:
                    del page[key]
                else:
                    page[key] = record.other
                self._count -= 1
                return record
        return None

    def current(self, record: Record) -> bool:
        """Whether nothing has dropped the blocks as old as one that was taken out."""
        return any([page is record.page for page in self._pages])

    @property
    def depth(self) -> int:
        """Number of open checkpoints."""
        return len(self._pages) - 1

    def begin(self) -> None:
        """A checkpoint was taken."""
        self._pages.append({})

    def detach(self, number: int) -> list[Page]:
        """Take out what was allocated since the checkpoint of that number, or all for `ALL_BLOCKS`."""
        pages = self._pages[number + 1 :]
        del self._pages[number + 1 :]
        if number == ALL_BLOCKS:
            self._pages.append({})
        self._count -= len(listed(pages))
        return pages

    def attach(self, pages: list[Page], number: int) -> None:
        """Put back what `detach` has taken out for that number."""
        meanwhile = self._pages[number + 1 :] if number == ALL_BLOCKS else []
        self._pages[number + 1 :] = pages
        self._count += len(listed(pages)) - len(listed(meanwhile))
        for record in listed(meanwhile):
            self.add(record)

    def clear(self) -> list[Record]:
        """Take out and return all records, and forget every checkpoint."""
        return listed(self.detach(ALL_BLOCKS))

    def all(self) -> list[Record]:
        """The records of all live blocks."""
        return listed(self._pages)


def listed(pages: list[Page]) -> list[Record]:
    """The records on some pages."""
    found = []
    for page in pages:
        for head in list(page.values()):
            record: Record | None = head
            while record is not None:
                found.append(record)
                record = record.other
    return found


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class RecordingAdaptor(Adaptor[A], Generic[A]):
    """Forwards the six methods, keeps a record of each live block, and hands out exactly the requested sizes.

    Subclasses say what else happens by overriding the hooks. `kind` is the letter of the operation in a trace.
    """

    __slots__ = ("_records",)

    def __init__(self, parent: A) -> None:
        super().__init__(parent)
        self._records = Records()

    @property
    def live_blocks(self) -> int:
        """Number of live blocks."""
        return len(self._records)

    def _prepare(self) -> None:
        """Hook: an operation is about to begin. It does not where this raises."""

    def _allocated(self, kind: str, record: Record, layout: Layout) -> None:
        """Hook: a block was allocated; its number can be set."""

    def _freed(self, record: Record) -> None:
        """Hook: a block was freed."""

    def _resized(self, kind: str, record: Record, address: i64, old: Layout, new: Layout) -> None:
        """Hook: the block that was at `address` was resized; `record` tells where it is now."""

    def _refused(self, kind: str, layout: Layout) -> None:
        """Hook: the parent has refused an operation for want of memory."""

    def _gone(self, records: list[Record]) -> None:
        """Hook: the parent has dropped blocks wholesale."""

    def allocate(self, layout: Layout) -> Block:
        self._prepare()
        try:
            block = self._up.allocate(layout)
        except MemoryError:
            self._refused(ALLOCATE, layout)
            raise
        return self._enter(ALLOCATE, block, layout)

    def allocate_zeroed(self, layout: Layout) -> Block:
        self._prepare()
        try:
            block = self._up.allocate_zeroed(layout)
        except MemoryError:
            self._refused(ALLOCATE_ZEROED, layout)
            raise
        return self._enter(ALLOCATE_ZEROED, block, layout)

    def _enter(self, kind: str, block: Block, layout: Layout) -> Block:
        size = layout.size
        record = Record(block.address, size, block.region)
        self._records.add(record)
        self._allocated(kind, record, layout)
        return block if block.size == size else Block(block.address, size, block.region)

    def _take(self, block: Block, layout: Layout) -> Record:
        """Take out the record of a block that is to be freed or resized.

        Before the parent has the block back: from then on its address can belong to a new block.
        """
        record = self._records.take(block, layout.size)
        if record is None:
            raise MisuseError(f"{block!r} with {layout!r} was not allocated through {self!r}")
        return record

    def deallocate(self, block: Block, layout: Layout) -> None:
        self._prepare()
        record = self._take(block, layout)
        region = block.region
        try:
            self._up.deallocate(block, layout)
        except BaseException:
            self._failed(record, block, region)
            raise
        self._end(record)

    def _failed(self, record: Record, block: Block, region: Region) -> None:
        """The parent has raised: the block is where it was, unless it has ended all the same, or was dropped."""
        if block.region is region and self._records.current(record):
            self._records.put_back(record)
        else:
            self._end(record)

    def _end(self, record: Record) -> None:
        """A block has ended by itself, or was dropped with others meanwhile."""
        if self._records.current(record):
            self._freed(record)
        else:
            self._gone([record])

    def grow(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._resize(GROW, block, old, new)

    def grow_zeroed(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._resize(GROW_ZEROED, block, old, new)

    def shrink(self, block: Block, old: Layout, new: Layout) -> Block:
        return self._resize(SHRINK, block, old, new)

    def _resize(self, kind: str, block: Block, old: Layout, new: Layout) -> Block:
        self._prepare()
        record = self._take(block, old)
        region = block.region
        try:
            if kind == GROW:
                resized = self._up.grow(block, old, new)
            elif kind == SHRINK:
                resized = self._up.shrink(block, old, new)
            else:
                resized = self._up.grow_zeroed(block, old, new)
        except BaseException as error:
            self._failed(record, block, region)
            if isinstance(error, MemoryError):
                self._refused(kind, new)
            raise
        return self._enter_resized(kind, record, region, resized, old, new)

    def resize_in_place(self, block: Block, old: Layout, new: Layout) -> Block | None:
        """As the parent does it; where it says no, nothing has happened."""
        self._prepare()
        record = self._take(block, old)
        region = block.region
        try:
            resized = self._up.resize_in_place(block, old, new)
        except BaseException:
            self._failed(record, block, region)
            raise
        if resized is None:
            self._failed(record, block, region)
            return None
        return self._enter_resized(SHRINK if new.size < old.size else GROW, record, region, resized, old, new)

    def _enter_resized(
        self, kind: str, record: Record, region: Region, resized: Block, old: Layout, new: Layout
    ) -> Block:
        """Note where a block that was in `region` is now."""
        address = record.address
        record.address = resized.address
        record.size = new.size
        record.region = resized.region
        if resized.region is region and self._records.current(record):
            # Where it has not left its place it is as old as it was, else it is a new block.
            self._records.put_back(record)
        else:
            self._records.add(record)
        self._resized(kind, record, address, old, new)
        return resized if resized.size == new.size else Block(resized.address, new.size, resized.region)

    def _checkpoint_number(self) -> int:
        return self._records.depth

    def _checkpointed(self) -> None:
        self._records.begin()

    def _detach(self, number: int) -> object:
        return (self._records.detach(number), number)

    def _attach(self, blocks: Any) -> None:
        self._records.attach(*blocks)

    def _dropped(self, blocks: Any, number: int) -> None:
        self._gone(listed(blocks[0]))
