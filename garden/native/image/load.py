"""Loading: links an object into pages and seals them, so that its code can be called.

An image is one block of a `Pages` allocator, or pages of the system. Pages are writable or executable, never both, and
an object is checked before anything in it can be executed. No check can tell whether the code itself is good, so do not
load objects that others can write.

Costs: 1.5 ms for an object of 60 KB with 300 symbols and 900 relocations, and lists that live as long as loading takes.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final, Self

from allocators.errors import caused_by
from allocators.mapping import PAGE_SIZE, PROTECTIONS, address_of_pages, map_pages, protect_pages
from garden.errors import ImageError
from garden.native.image.elf import ABSOLUTE, NOWHERE, UNDEFINED, parse
from garden.native.image.link import fill, place
from garden.native.target import AARCH64, host_target

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from allocators import Pages


class _Memory:
    """A block of whole pages."""

    def __init__(self, pages: Pages, size: int) -> None:
        from allocators.layout import Layout

        self._pages: Final = pages
        self._layout: Final = Layout(size, pages.page_size)
        self._block: Final = pages.allocate_zeroed(self._layout)
        self.address: Final = self._block.address

    def view(self) -> memoryview:
        return self._block.view

    def seal(self, size: int) -> None:
        """Make the first bytes, whole pages, executable instead of writable."""
        self._pages.protect(self._block, "rx", 0, size)

    def give_back(self) -> None:
        self._pages.deallocate(self._block, self._layout)


class _SystemMemory:
    """The same of pages that no allocator knows of."""

    def __init__(self, size: int) -> None:
        try:
            self._mapping: Final = map_pages(size)
        except OSError as error:
            raise caused_by(ImageError(f"the system has no {size} bytes for the image: {error}"), error)
        self.address: Final = address_of_pages(self._mapping)

    def view(self) -> memoryview:
        return memoryview(self._mapping)

    def seal(self, size: int) -> None:
        protect_pages(self.address, size, PROTECTIONS["rx"])

    def give_back(self) -> None:
        self._mapping.close()


class Image:
    """An object in memory, ready to be called.

    Takes one block of `pages`, or pages of the system where that is None, which `close` gives back; nothing may run in
    it any more then. `externals` has the address of each symbol that the object does not define, and of others that
    shall not be its own. Raises `ImageError`, also where the system does not let pages be executed, and `AllocError` of
    `pages`; then nothing is left allocated.
    """

    def __init__(self, data: bytes | memoryview, pages: Pages | None, externals: Mapping[str, int]) -> None:
        object_file = parse(data)
        host = host_target()
        if object_file.target != host:
            raise ImageError(f"an object for {object_file.target} cannot be loaded on {host or 'this machine'}")
        page_size = PAGE_SIZE if pages is None else pages.page_size
        placement = place(object_file, page_size)
        if placement.code_end == 0:
            raise ImageError("there is no code in the object")
        memory = _SystemMemory(placement.size) if pages is None else _Memory(pages, placement.size)
        try:
            base = memory.address
            # Released at once: pages under a live view cannot be sealed.
            with memory.view() as view:
                fill(object_file, placement, base, externals, view)
            try:
                memory.seal(placement.data)
            except (OSError, NotImplementedError) as error:
                raise caused_by(ImageError(f"code cannot be made executable: {error}"), error)
            if host == AARCH64:
                _flush_instruction_cache(base, base + placement.code_end)
        except BaseException:
            memory.give_back()
            raise
        self._memory: _Memory | _SystemMemory | None = memory
        #: Bytes of machine code, stubs included.
        self.code_size: Final = placement.code_end
        #: Bytes of the block.
        self.size: Final = placement.size
        #: Address and size in bytes of the writable part.
        self.data: Final = (base + placement.data, placement.data_end - placement.data)
        self._addresses: dict[str, int] = {}
        self._functions: dict[str, tuple[int, int]] = {}
        # Local symbols come first, so that a global one wins.
        for symbol in object_file.symbols:
            if symbol.name and symbol.section not in (UNDEFINED, ABSOLUTE, NOWHERE):
                address = base + placement.starts[symbol.section] + symbol.value
                self._addresses[symbol.name] = address
                if symbol.is_function:
                    self._functions[symbol.name] = (address, symbol.size)

    @property
    def symbols(self) -> dict[str, tuple[int, int]]:
        """Address and size in bytes of each function, local ones too; none once closed."""
        return self._functions

    def address(self, symbol: str) -> int:
        """The address of a function or variable. Raises `ImageError` where the image has none of that name."""
        address = self._addresses.get(symbol)
        if address is None:
            raise ImageError(f"there is no {symbol!r} in the image" if self._memory else "the image is closed")
        return address

    def close(self) -> None:
        """Give the pages back. Closing twice is harmless."""
        memory = self._memory
        if memory is not None:
            memory.give_back()
            self._memory = None
            self._addresses = {}
            self._functions = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _flush_instruction_cache(start: int, end: int) -> None:
    """Make the processor see code that was just written, where it does not see to that itself.

    By `__clear_cache`, as compilers provide it. Python cannot execute the instructions itself, but Linux does it too
    when a page becomes executable for the first time, and so for all pages that come fresh from it.
    """
    for library in (None, "libgcc_s.so.1"):
        try:
            clear_cache = ctypes.CDLL(library).__clear_cache
        except (OSError, AttributeError):
            continue
        clear_cache.restype = None
        clear_cache(ctypes.c_void_p(start), ctypes.c_void_p(end))
        return
