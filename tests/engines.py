"""Engines: what can execute the code of a test program, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allocators import Allocator
from garden.bytecode.code import Code
from garden.errors import Trap
from garden.types.types import Type
from garden.vm.heap import DEFAULT_LIMIT
from garden.vm.machine import Machine
from garden.vm.values import from_word


class Outcome:
    """What a run has written, the value it has given as a Python value, and the trap that has ended it, if one has."""

    def __init__(self, output: str, value: Any, trap: Trap | None) -> None:
        self.output = output
        self.value = value
        self.trap = trap


#: Runs code over an allocator. Further: the type of its value, the limit of its heap in bytes, whether to keep a
#: backtrace.
Engine = Callable[[Code[Any], Allocator, Type, int | None, bool], Outcome]


def reference(code: Code[Any], allocator: Allocator, result: Type, heap_limit: int | None, backtrace: bool) -> Outcome:
    """The machine in Python."""
    output = bytearray()
    limit = DEFAULT_LIMIT if heap_limit is None else heap_limit
    with Machine(code, allocator, write=output.extend, heap_limit=limit, backtrace=backtrace) as machine:
        try:
            word = machine.run()
        except Trap as trap:
            return Outcome(output.decode(), None, trap)
        return Outcome(output.decode(), from_word(machine.heap, result, word), None)


ENGINES: dict[str, Engine] = {"reference": reference}
