"""Runtime: what a running program has beside its code: its heap, its output, and the host functions that it calls.

Every engine calls host functions through `call`, and so they behave alike on all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from garden.types.host import HostFunction
from garden.vm.heap import Heap
from garden.vm.values import from_word, to_word

A = TypeVar("A", bound=Allocator, covariant=True)

#: Bytes of output that are kept back before they are written.
BUFFER_BYTES: Final = 1 << 13


def write_stdout(data: bytes) -> None:
    """Write UTF-8 to the standard output that Python has at the moment."""
    stdout = sys.stdout
    binary = getattr(stdout, "buffer", None)
    if binary is None:
        stdout.write(data.decode())
    else:
        # What Python code has printed so far comes first.
        stdout.flush()
        binary.write(data)
    stdout.flush()


@mypyc_attr(native_class=True)
class Runtime(Generic[A]):
    """The first argument of host functions that are declared with `machine`.

    `write` is given whole pieces of output as UTF-8.
    """

    __slots__ = ("_buffer", "_write", "heap", "hosts")

    def __init__(self, heap: Heap[A], hosts: list[HostFunction], write: Callable[[bytes], object]) -> None:
        self.heap: Final = heap
        self.hosts: Final = hosts
        self._write: Final = write
        self._buffer = bytearray()

    def write(self, text: str) -> None:
        """Add text to the program's output."""
        self.write_bytes(text.encode())

    def write_bytes(self, data: bytes) -> None:
        """The same for UTF-8."""
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand on what has been written so far. Where that fails, it is lost."""
        if self._buffer:
            data = bytes(self._buffer)
            self._buffer.clear()
            self._write(data)

    def discard(self) -> None:
        """Forget what has been written and not yet handed on."""
        self._buffer.clear()

    def call(self, index: int, words: list[int]) -> int:
        """Call host function number `index` of the program with these words, and return the word of its result."""
        function = self.hosts[index]
        implementation = function.implementation
        if function.words:
            word: int = implementation(self, function, *words)
            return word
        if not function.machine and not function.pure:
            # It may write past our buffer.
            self.flush()
        arguments: list[Any] = [self] if function.machine else []
        for (_, type), word in zip(function.parameters, words, strict=True):
            arguments.append(from_word(self.heap, type, word))
        result = implementation(*arguments)
        try:
            return to_word(self.heap, function.result, result)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{function.path} has returned a wrong value: {error}") from error
