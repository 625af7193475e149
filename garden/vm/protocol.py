"""Machine: what every engine makes of a program, and whoever runs one knows of it."""
# Not compiled: it has nothing to execute.

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from allocators import Allocator
from garden.vm.heap import Heap


class Machine(Protocol):
    """Runs one program, as often as one likes. A context manager, which closes it."""

    @property
    def heap(self) -> Heap[Allocator]:
        """The heap of the program."""
        ...

    def run(self) -> int:
        """Run the program from its start, in a fresh state, and return the word of its value.

        Raises `Trap`, or what a host function, the receiver of the output or the handler of a signal raises.
        """
        ...

    def call(self, function: int, words: list[int]) -> int:
        """Run one function, by its row, on argument words, and return the word of its result. Raises as `run`.

        The heap stays as it is, so that words of strings and records can be passed: `reset` first, before making
        them, for a fresh one. TypeError where the number of words is not that of the parameters.
        """
        ...

    def reset(self) -> None:
        """Forget everything of former runs: the heap, the stacks, output that has not been written."""
        ...

    def close(self) -> None:
        """Give all memory back; closing twice is harmless."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
