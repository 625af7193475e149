"""Records: one for each live block, across scopes and resets, for adaptors that need more than totals.

Layout: a dict of records by address, size and region, and one more for each open checkpoint, with the blocks allocated
since. Live blocks of size zero can agree in all three; their records form a chain and are indistinguishable.

Signal handlers and finalisers, which may use the same allocator, run at function calls and loop iterations. So each
change of the dicts contains neither.

Costs: some 300 ns per operation, and 150 to 250 bytes per live block.
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
    """A live block: address, size in bytes, region, and the adaptor's own data: a number and a tag."""

    __slots__ = ("address", "number", "other", "page", "region", "size", "tag")

    def __init__(self, address: i64, size: i64, region: Region) -> None:
        self.address: i64 = address
        self.size: i64 = size
        self.region = region
        self.number: i64 = -1
        self.tag: Any = None
        #: The dict that holds it, or held it last: that of the blocks since the same checkpoint.
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
        """Add a newly allocated block."""
        record.page = self._pages[-1]
        self.put_back(record)

    def put_back(self, record: Record) -> None:
        """Put back a block that was resized in place or could not be freed, at its old age."""
        page = record.page
        key = (record.address, record.size, record.region)
        record.other = page[key] if key in page else None  # noqa: SIM401 - not a call
        page[key] = record
        self._count += 1

    def take(self, block: Block, size: int) -> Record | None:
        """Remove and return the record of a block; None if there is none.

        Two blocks of size zero, one from before a checkpoint and one made since, can share address and size; their
        regions differ.
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
        """Whether the blocks of the same age as a removed one have not been dropped."""
        return any([page is record.page for page in self._pages])

    @property
    def depth(self) -> int:
        """Number of open checkpoints."""
        return len(self._pages) - 1

    def begin(self) -> None:
        """A checkpoint was taken."""
        self._pages.append({})

    def detach(self, number: int) -> list[Page]:
        """Remove and return the blocks allocated since checkpoint `number`, or all for `ALL_BLOCKS`."""
        pages = self._pages[number + 1 :]
        del self._pages[number + 1 :]
        if number == ALL_BLOCKS:
            self._pages.append({})
        self._count -= len(listed(pages))
        return pages

    def attach(self, pages: list[Page], number: int) -> None:
        """Put back what `detach` returned for this number."""
        meanwhile = self._pages[number + 1 :] if number == ALL_BLOCKS else []
        self._pages[number + 1 :] = pages
        self._count += len(listed(pages)) - len(listed(meanwhile))
        for record in listed(meanwhile):
            self.add(record)

    def clear(self) -> list[Record]:
        """Remove and return all records, and forget every checkpoint."""
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

    Subclasses override the hooks. `kind` is the letter of the operation in a trace.
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
        """Hook: called before an operation, which does not take place if this raises."""

    def _allocated(self, kind: str, record: Record, layout: Layout) -> None:
        """Hook: a block was allocated; may set its number."""

    def _freed(self, record: Record) -> None:
        """Hook: a block was freed."""

    def _resized(self, kind: str, record: Record, address: i64, old: Layout, new: Layout) -> None:
        """Hook: the block at `address` was resized; `record` has its new address."""

    def _refused(self, kind: str, layout: Layout) -> None:
        """Hook: the parent has refused an operation, being out of memory."""

    def _gone(self, records: list[Record]) -> None:
        """Hook: the parent has dropped blocks in bulk."""

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
        """Remove and return the record of a block to free or resize.

        This comes before the call of the parent, after which the address can belong to a new block.
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
        """The parent has raised: put the block back unless it has ended or was dropped."""
        if block.region is region and self._records.current(record):
            self._records.put_back(record)
        else:
            self._end(record)

    def _end(self, record: Record) -> None:
        """A block was freed, or was dropped with others meanwhile."""
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
        """Forward to the parent; None means that nothing has changed."""
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
        """Add the record of a resized block that was in `region`."""
        address = record.address
        record.address = resized.address
        record.size = new.size
        record.region = resized.region
        if resized.region is region and self._records.current(record):
            # A block that did not move keeps its age; otherwise it is a new block.
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
