"""Jit: runs a whole program as machine code, which `garden.native.codegen.compiler` has made of it before.

It has a stack of its own, since a thread's may be small and is not ours to measure. That is address space from the
operating system, as the stack of a thread is, and belongs to no allocator.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from allocators.mapping import address_of_pages, map_pages
from garden.native.codegen.programs import PREFIX
from garden.native.context import FIELD
from garden.native.run.machine import NativeMachine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from mmap import mmap

    from allocators import Allocator
    from garden.host import HostFunction
    from garden.native.codegen.programs import NativeProgram
    from garden.native.image.load import Image
    from garden.run_options import RunOptions

#: Bytes of address space for the stack where nobody says otherwise. Only what is used takes memory.
STACK_BYTES: Final = 1 << 28
#: The default where address space is short is halved down to this.
LEAST_STACK_BYTES: Final = 1 << 20
#: More than any process has.
_MOST_STACK_BYTES: Final = 1 << 62

_STACK_LIMIT: Final = FIELD["stack_limit"]
_FRAME: Final = FIELD["frame"]


class JitMachine(NativeMachine):
    """Runs a program in machine code, as often as one likes.

    `image` is that of the program's object, and becomes the machine's, which closes it. `allocator` gives that of the
    heap, when it is first needed. By default, the stack has `STACK_BYTES`, or less where there is not so much address
    space. Backtraces need a program that was compiled for them.
    """

    def __init__(
        self,
        program: NativeProgram,
        image: Image,
        allocator: Callable[[], Allocator],
        hosts: list[HostFunction],
        options: RunOptions,
    ) -> None:
        self._program: Final = program
        self._stack_bytes: Final = options.stack_size
        self._stack: Stack | None = None
        try:
            strings = None
            if program.string_words:
                words = ctypes.c_int64 * program.string_words
                strings = memoryview(words.from_address(image.address(f"{PREFIX}strings"))).cast("B").cast("q")
            super().__init__(
                image,
                allocator,
                strings,
                hosts,
                options,
                argument_words=program.argument_words,
            )
        except BaseException:
            image.close()
            raise

    def run(self) -> int:
        """Run the program from its start, in a fresh state, and return the word of its value.

        Raises `Trap`, or what a host function raises.
        """
        self._require_idle()
        self.reset()
        return self._start(len(self._program.parameters) - 1)

    def call(self, function: int, words: list[int]) -> int:
        """Run one function, by its row, on argument words, and return the word of its result.

        The heap stays as it is, as for `ReferenceMachine.call`. TypeError where the number of words is not that of the
        parameters.
        """
        parameters = self._program.parameters[function]
        if len(words) != parameters:
            raise TypeError(f"the function takes {parameters} arguments, not {len(words)}")
        self._require_idle()
        for index, word in enumerate(words):
            self._arguments[index] = word
        return self._start(function)

    def _start(self, function: int) -> int:
        if self._stack is None:
            self._stack = Stack(self._stack_bytes, self._program.reserve)
        self._context[_STACK_LIMIT] = self._stack.limit
        return self._run(self._image.address(f"call.{function}"), self._stack.end, 0)

    def _interrupted(self) -> None:
        if self._stack is not None:
            self._context[_STACK_LIMIT] = self._stack.limit

    def _offset(self, where: int) -> int:
        return where

    def backtrace(self) -> tuple[str, ...]:
        """Names of the functions that were active when the last run ended, the entry first.

        The program must have been compiled for it, so that every function keeps a frame pointer.
        """
        if self._stack is None:
            return ()
        return active_functions(self._image.symbols, self._stack, self._context[_FRAME])

    def close(self) -> None:
        """Give all memory back; closing twice is harmless."""
        try:
            super().close()
        finally:
            if self._stack is not None:
                self._stack.close()
                self._stack = None


class Stack:
    """Address space for a stack of machine code, from `start` to `end`. `AllocError` where there is none.

    `size` is in bytes, by default `STACK_BYTES`, or less where there is not so much address space. Calls that may
    recurse trap below `limit`, where `reserve` bytes are left.
    """

    def __init__(self, size: int | None, reserve: int) -> None:
        wanted = min(max(STACK_BYTES if size is None else size, 2 * reserve), _MOST_STACK_BYTES)
        least = max(LEAST_STACK_BYTES, 2 * reserve) if size is None else wanted
        pages: mmap | None = None
        while pages is None:
            try:
                pages = _map_stack(wanted)
            except MemoryError:
                wanted >>= 1
                if wanted < least:
                    raise
        self._pages: Final = pages
        self.start: Final = address_of_pages(self._pages)
        self.end: Final = self.start + wanted & -16
        self.limit: Final = self.start + reserve

    def close(self) -> None:
        self._pages.close()


def _map_stack(size: int) -> mmap:
    try:
        return map_pages(size)
    except (OSError, OverflowError, ValueError) as error:
        from allocators import AllocError, Layout

        raise AllocError("stack", Layout(size), reason=str(error)) from None


def active_functions(symbols: Mapping[str, tuple[int, int]], stack: Stack, frame: int) -> tuple[str, ...]:
    """Names of the functions that are active on a stack, the first one first, `frame` being the address of the last.

    The program must have been compiled for it, so that every function keeps a frame pointer.
    """
    functions = sorted([(address, size, name) for name, (address, size) in symbols.items() if name.startswith(PREFIX)])
    low, high = stack.start, stack.end
    names: list[str] = []
    words = memoryview((ctypes.c_int64 * ((high - low) // 8)).from_address(low)).cast("B").cast("q")
    known: dict[int, str] = {}
    while low <= frame < high - 8:
        index = (frame - low) >> 3
        address = words[index + 1] - 1
        name = known.get(address)
        if name is None:
            name = known[address] = _name_at(functions, address)
        if name:
            names.append(name)
        if words[index] <= frame:
            break
        frame = words[index]
    names.reverse()
    return tuple(names)


def _name_at(functions: list[tuple[int, int, str]], address: int) -> str:
    """The garden name of the function that an address lies in, empty where it lies in none."""
    for start, size, name in functions:
        if start <= address < start + size:
            return name.removeprefix(PREFIX).rpartition(".")[0]
    return ""


def externals() -> dict[str, int]:
    """Addresses of what machine code calls in libc."""
    libc = ctypes.CDLL(None)
    return {
        name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0
        for name in ("memcpy", "memmove", "memset", "memcmp")
    }
