"""Runtime: what a running program has beside its code: its heap, its output, and the host functions that it calls.

Every engine calls host functions through `call`, and so they behave alike on all of them.
"""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.errors import caused_by
from allocators.uncopyable import Uncopyable
from garden.host import HostFunction
from garden.output import Output
from garden.vm.heap import Heap
from garden.vm.values import from_word, to_word

A = TypeVar("A", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Runtime(Uncopyable, Generic[A]):
    """The first argument of host functions that are declared with `machine`."""

    __slots__ = ("heap", "hosts", "output")

    def __init__(self, heap: Heap[A], hosts: list[HostFunction], output: Output) -> None:
        self.heap: Final = heap
        self.hosts: Final = hosts
        self.output: Final = output

    def write(self, text: str) -> None:
        """Add text to the program's output."""
        self.output.add(text.encode())

    def call(self, index: int, words: list[int]) -> int:
        """Call host function number `index` of the program with these words, and return the word of its result."""
        function = self.hosts[index]
        implementation = function.implementation
        if function.words:
            word: int = implementation(self, function, *words)
            return word
        if not function.machine and not function.pure:
            # It may write past our buffer.
            self.output.flush()
        arguments: list[Any] = [self] if function.machine else []
        for (_, type), word in zip(function.parameters, words, strict=True):
            arguments.append(from_word(self.heap, type, word))
        result = implementation(*arguments)
        try:
            return to_word(self.heap, function.result, result)
        except (TypeError, ValueError, OverflowError) as error:
            raise caused_by(TypeError(f"{function.path} has returned a wrong value: {error}"), error)
