"""Heap: the memory of one running program, in chunks from an allocator.

Layout. Records, arrays and option cells are bumped up through the current chunk, a word at least; chunks start at
64 KiB and double to 16 MiB, and what is larger than the next chunk gets one of its own. A record is its fields one
after the other, nested records inline. An array is a word of length, then its members. An option is 0, or the address
of its value laid out as a member would be. A Str is a word of length (low 32 bits) and hash (high 32 bits), then its
UTF-8 bytes, padded with zeros to a word.

Every Str is interned: an open-addressing table of a power of two slots, at most half full and probed linearly, holds
the address and the first word of each, the constant strings of the program first. So equal strings are equal words.

A foreign object of the host is a number, counted from 1; the heap keeps the object alive.

Addresses are real. Reads and writes find the chunk behind an address, and trap if there is none, so that wrong code
cannot reach anything but the program's own memory.

Costs: an allocation is a comparison and an addition. A Str costs its hash, one comparison most often, and 32 to 64
bytes of table beside its bytes. Finding a chunk is a comparison for the one used last, a binary search for others.

Nothing is freed before `reset`: a program that makes garbage for ever ends with a trap at the limit. Not for texts of
an attacker: the hash is CRC-32, so texts of equal hashes are easy to make, and interning n of them takes time for n^2.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, Generic, TypeVar

from allocators import Allocator, Block, Layout, LayoutError
from allocators._mypyc import i64, mypyc_attr
from allocators.block import address_of
from allocators.collections import Vec
from allocators.collections.storage import release_view
from allocators.errors import caused_by
from allocators.uncopyable import Uncopyable
from garden.common import NOWHERE
from garden.errors import Trap
from garden.strings import hash_bytes
from garden.traps import NO_SUCH_FOREIGN, NO_SUCH_WORD, OVER_LIMIT, STR_TOO_LONG, trap

A = TypeVar("A", bound=Allocator, covariant=True)

#: Bytes that a program may use where nobody says otherwise.
DEFAULT_LIMIT: Final = 1 << 30
#: The longest Str, in bytes. Host functions that make longer ones would exhaust the machine before the heap sees them.
MAX_STR_BYTES: Final = (1 << 28) - 1

#: Bytes of the first chunk and of the largest that several allocations share, and slots of the first table of strings.
FIRST_CHUNK: Final = 1 << 16
LAST_CHUNK: Final = 1 << 24
FIRST_SLOTS: Final = 64


@mypyc_attr(native_class=True)
class _Chunk:
    """Memory that a program may look at: `words` and `bytes` are its views. Constant strings have no block."""

    __slots__ = ("address", "block", "bytes", "end", "words")

    def __init__(self, address: int, view: memoryview, block: Block | None) -> None:
        self.address: Final = address
        self.end: Final = address + view.nbytes
        self.bytes: Final = view
        self.words: Final[memoryview] = view.cast("q")
        self.block: Final = block

    def release(self) -> None:
        """Let go of the memory, so that it can be given back."""
        if self.end:
            release_view(self.words)
            release_view(self.bytes)


_NOTHING: Final = _Chunk(0, memoryview(b""), None)


@mypyc_attr(native_class=True)
class Heap(Uncopyable, Generic[A]):
    """Words, strings and foreign objects of a program whose constant strings are `strings`, laid out as `Code.strings`.

    `limit` is in bytes, chunks and string table together. Where it, or the allocator, is exhausted, `Trap` T0003.
    `cursor` and `end` are the free rest of the current chunk: whoever bumps `cursor` up himself, no further than
    `end`, allocates. `allocations` counts those that `alloc` has made since the last reset.
    """

    __slots__ = (
        "_chunks",
        "_constants",
        "_current",
        "_foreign",
        "_handles",
        "_mask",
        "_next_size",
        "_outgrown",
        "_recent",
        "_retired",
        "_starts",
        "_strings",
        "_table",
        "_taken",
        "allocations",
        "allocator",
        "cursor",
        "end",
        "limit",
    )

    def __init__(self, allocator: A, strings: memoryview | None = None, *, limit: int = DEFAULT_LIMIT) -> None:
        self.allocator: Final[A] = allocator
        self.limit: Final = limit
        self.cursor: i64 = NOWHERE
        self.end: i64 = NOWHERE
        self.allocations: i64 = 0
        self._constants = _NOTHING if not strings else _Chunk(address_of(strings), strings.cast("B"), None)
        self._current = _NOTHING
        self._recent = _NOTHING
        # Chunks by address; the constant strings are one of them.
        self._chunks = [self._constants]
        self._starts: list[int] = [self._constants.address]
        self._next_size: int = FIRST_CHUNK
        # Bytes of live objects outside the current chunk, and bytes that the chunks take.
        self._retired: int = 0
        self._taken: int = 0
        self._table: Vec[A] = Vec(allocator, "q")
        # The table before this one, while machine code moves the strings.
        self._outgrown: Vec[A] = Vec(allocator, "q")
        self._mask: i64 = -1
        self._strings: i64 = 0
        self._foreign: list[object] = []
        self._handles: dict[int, int] = {}
        try:
            self._intern_constants()
        except BaseException:
            self.close()
            raise

    # Statistics.

    @property
    def used(self) -> int:
        """Bytes of everything that the program has allocated since the last reset."""
        if self._current.block is None:
            return self._retired
        return self._retired + self.cursor - self._current.address

    @property
    def taken(self) -> int:
        """Bytes that the heap has taken from its allocator."""
        return self._taken + 8 * len(self._table)

    # For machine code, which allocates and interns by itself, with copies of these numbers.

    @property
    def string_table(self) -> tuple[int, int, int]:
        """Address of the table of strings, number of slots less 1 (-1 while there is no table), strings in it."""
        return self._table.address, self._mask, self._strings

    def resume(self, cursor: int, allocations: int, strings: int) -> None:
        """Continue from where machine code has got to: in the current chunk, and in the table of strings."""
        self.cursor = cursor
        self.allocations = allocations
        self._strings = strings
        self._outgrown.close()

    def renew_table(self) -> int:
        """Have an empty table of strings with room for more, and return the address of the one before.

        That is there until `resume`, for machine code to move the strings. `Trap` T0003 where there is no memory.
        """
        new = self._larger_table()
        self._outgrown = self._table
        self._table = new
        self._mask = (len(new) >> 1) - 1
        return self._outgrown.address

    # Words.

    def alloc(self, size: int) -> int:
        """The address of `size` fresh bytes, rounded up to whole words; their contents are undefined."""
        cursor: int = self.cursor
        end: int = self.end
        size = (size + 7) & -8
        if not 0 <= size <= end - cursor:
            address = self.take(size)
            self.allocations += 1
            return address
        self.cursor = cursor + size
        self.allocations += 1
        return cursor

    def take(self, size: int) -> int:
        """Memory for `size` bytes, a multiple of 8, from a new chunk; `allocations` stays."""
        if size > self._next_size or size < 0:
            chunk = self._new_chunk(size)
            self._retired += size
        else:
            # The last chunk below the limit may be smaller than its turn.
            chunk = self._new_chunk(max(size, min(self._next_size, (self.limit - self.taken) & -8)))
            self._retired = self.used
            self._current = chunk
            self.cursor = chunk.address + size
            self.end = chunk.end
            self._next_size = min(2 * self._next_size, LAST_CHUNK)
        return chunk.address

    def _new_chunk(self, size: int) -> _Chunk:
        """A new chunk of exactly `size` bytes."""
        self._check_limit(size)
        try:
            block = self.allocator.allocate(Layout(size, 8))
        except (MemoryError, LayoutError) as error:
            raise caused_by(Trap("T0003", f"the allocator of the program is exhausted: {error}"), error)
        chunk = _Chunk(block.address, block.view[:size], block)
        index = bisect_right(self._starts, chunk.address)
        self._starts.insert(index, chunk.address)
        self._chunks.insert(index, chunk)
        self._taken += size
        return chunk

    def _check_limit(self, size: int) -> None:
        if not 0 <= size <= self.limit - self.taken:
            raise trap(OVER_LIMIT, size, self.limit)

    def load(self, address: int) -> int:
        """The word at an address; `Trap` T0005 where the program has no memory."""
        chunk = self._recent
        if not chunk.address <= address < chunk.end:
            chunk = self._find(address)
        offset = address - chunk.address
        if offset & 7:
            raise _bad_address(address)
        word: int = chunk.words[offset >> 3]
        return word

    def store(self, address: int, word: int) -> None:
        """Overwrite the word at an address; `Trap` T0005 where the program has no memory that it may write."""
        chunk = self._recent
        if not chunk.address <= address < chunk.end:
            chunk = self._find(address)
        offset = address - chunk.address
        if offset & 7 or chunk.block is None:
            raise _bad_address(address)
        chunk.words[offset >> 3] = word

    def words(self, address: int, count: int) -> memoryview:
        """The `count` words from an address on, without a copy, format 'q'; of no use after a reset."""
        if count == 0:
            return self._constants.words[:0]
        chunk = self._find(address)
        offset = address - chunk.address
        if offset & 7 or not 0 < count <= (chunk.end - address) >> 3:
            raise _bad_address(address)
        return chunk.words[offset >> 3 : (offset >> 3) + count]

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy `size` bytes, a multiple of 8, from one address to another; `Trap` T0005 as for `load` and `store`."""
        words = self.words(source, size >> 3)
        if size == 0:
            return
        if self._find(target).block is None:
            raise _bad_address(target)
        self.words(target, size >> 3)[:] = words

    def _find(self, address: int) -> _Chunk:
        """The chunk that an address lies in."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            chunk = self._chunks[index]
            if address < chunk.end:
                self._recent = chunk
                return chunk
        raise _bad_address(address)

    # Strings.

    def intern(self, text: bytes) -> int:
        """The word of a Str with these bytes, which must be UTF-8."""
        length = len(text)
        if length > MAX_STR_BYTES:
            raise trap(STR_TOO_LONG, MAX_STR_BYTES, length)
        hashed = hash_bytes(text)
        header = length | hashed << 32
        if header >= 1 << 63:
            header -= 1 << 64
        slot = self._slot(header, text)
        if slot >= 0:
            found: int = self._table.data[slot]
            if found:
                return found
        if 2 * (self._strings + 1) > self._mask + 1:
            self._grow_table()
            slot = self._slot(header, text)
        padded = (length + 7) & -8
        address = self.alloc(8 + padded)
        chunk = self._find(address)
        start = address - chunk.address
        # The last word first: the text then overwrites all of it but the padding.
        chunk.words[(start + padded) >> 3] = 0
        chunk.words[start >> 3] = header
        chunk.bytes[start + 8 : start + 8 + length] = text
        table = self._table.data
        table[slot] = address
        table[slot + 1] = header
        self._strings += 1
        return address

    def _slot(self, header: int, text: bytes) -> int:
        """Where in the table a Str stands or would stand; -1 while there is no table."""
        mask: int = self._mask
        if mask < 0:
            return -1
        table = self._table.data
        slot = header >> 32 & mask
        while True:
            found: int = table[2 * slot]
            if found == 0 or (table[2 * slot + 1] == header and self.str_bytes(found) == text):
                return 2 * slot
            slot = (slot + 1) & mask

    def _larger_table(self) -> Vec[A]:
        """An empty table with room for more strings; `Trap` T0003 where there is no memory."""
        slots: int = max(2 * (self._mask + 1), FIRST_SLOTS)
        self._check_limit(16 * slots)
        table: Vec[A] = Vec(self.allocator, "q")
        try:
            table.fill(0, 2 * slots)
        except MemoryError as error:
            raise caused_by(Trap("T0003", f"no memory for another Str: {error}"), error)
        return table

    def _grow_table(self) -> None:
        """Move all strings to a larger table. Where that fails, nothing has changed."""
        old = self._table
        new = self._larger_table()
        mask = (len(new) >> 1) - 1
        try:
            source = old.data
            target = new.data
            for index in range(0, len(old), 2):
                address: int = source[index]
                if address:
                    _place(target, mask, address, source[index + 1])
        except BaseException:
            new.close()
            raise
        self._table = new
        self._mask = mask
        old.close()

    def _intern_constants(self) -> None:
        """Make the constant strings the only ones. On `MemoryError` nothing has changed."""
        words = self._constants.words
        count = 0
        index = 0
        while index < len(words):
            index += _str_words(words[index])
            count += 1
        if count == self._strings:
            return
        slots = FIRST_SLOTS
        while slots < 2 * count:
            slots *= 2
        table: Vec[A] = Vec(self.allocator, "q")
        try:
            table.fill(0, 2 * slots)
            index = 0
            while index < len(words):
                header: int = words[index]
                _place(table.data, slots - 1, self._constants.address + 8 * index, header)
                index += _str_words(header)
        except BaseException:
            table.close()
            raise
        self._table.close()
        self._table = table
        self._mask = slots - 1
        self._strings = count

    def str_length(self, address: int) -> int:
        """Bytes of a Str."""
        return self.load(address) & 0xFFFFFFFF

    def str_bytes(self, address: int, start: int = 0, end: int = -1) -> bytes:
        """A copy of the bytes of a Str from `start` up to `end`, -1 being its end."""
        chunk = self._recent
        if not chunk.address <= address < chunk.end:
            chunk = self._find(address)
        length = self.load(address) & 0xFFFFFFFF
        if end < 0:
            end = length
        if not 0 <= start <= end <= length or length > chunk.end - address - 8:
            raise _bad_address(address)
        offset = address - chunk.address + 8
        return bytes(chunk.bytes[offset + start : offset + end])

    def str_text(self, address: int) -> str:
        """A Str as Python has it."""
        return self.str_bytes(address).decode()

    # Foreign objects.

    def foreign_word(self, value: object) -> int:
        """The word of a host object; the same object has the same word."""
        handle = self._handles.get(id(value))
        if handle is None:
            self._foreign.append(value)
            handle = len(self._foreign)
            self._handles[id(value)] = handle
        return handle

    def foreign_object(self, word: int) -> object:
        """The host object of a word."""
        if not 1 <= word <= len(self._foreign):
            raise trap(NO_SUCH_FOREIGN, word)
        return self._foreign[word - 1]

    # The end of a run.

    def reset(self) -> None:
        """Drop everything but the constant strings; the current chunk is kept for the next run."""
        kept = self._current
        self._drop_chunks(kept)
        self._retired = 0
        self.allocations = 0
        if kept.block is not None:
            self.cursor = kept.address
            self.end = kept.end
            self._next_size = max(FIRST_CHUNK, kept.end - kept.address)
        self._foreign.clear()
        self._handles.clear()
        try:
            self._intern_constants()
        except MemoryError as error:
            raise caused_by(Trap("T0003", f"no memory for the constant strings: {error}"), error)

    def _drop_chunks(self, kept: _Chunk) -> None:
        """Give all chunks back but the constant strings and one more."""
        self._recent = self._constants
        for index in range(len(self._chunks) - 1, -1, -1):
            chunk = self._chunks[index]
            block = chunk.block
            if block is not None and chunk is not kept:
                del self._chunks[index]
                del self._starts[index]
                size = chunk.end - chunk.address
                self._taken -= size
                chunk.release()
                self.allocator.deallocate(block, Layout(size, 8))

    def close(self) -> None:
        """Give all memory back; closing twice is harmless."""
        self._table.close()
        self._outgrown.close()
        self._mask = -1
        self._strings = 0
        self._drop_chunks(_NOTHING)
        self._constants.release()
        self._constants = _NOTHING
        self._current = _NOTHING
        self._recent = _NOTHING
        self._chunks.clear()
        self._starts.clear()
        self._retired = 0
        self.cursor = NOWHERE
        self.end = NOWHERE
        self._foreign.clear()
        self._handles.clear()

    def __repr__(self) -> str:
        return f"<Heap of {self.used} bytes in use, limit {self.limit}>"


def _str_words(header: int) -> int:
    """Words that a Str takes, its first one included."""
    return 1 + (((header & 0xFFFFFFFF) + 7) >> 3)


def _place(table: memoryview, mask: int, address: int, header: int) -> None:
    """Put a Str that is in no slot yet into the first free one from its own on."""
    slot = header >> 32 & mask
    while table[2 * slot]:
        slot = (slot + 1) & mask
    table[2 * slot] = address
    table[2 * slot + 1] = header


def _bad_address(address: int) -> Trap:
    return trap(NO_SUCH_WORD, address)
