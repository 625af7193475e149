"""How the tests of the standard packages call a function: by path, on Python values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allocators import PageAlloc
from garden.host import HostFunction
from garden.output import Output
from garden.std import STANDARD
from garden.types.types import Array, Option, Type
from garden.vm.heap import Heap
from garden.vm.runtime import Runtime
from garden.vm.values import from_word, to_word


def with_slot(type: Type, slot: Type) -> Type:
    """A type with its slots filled."""
    if type.name == "Slot":
        return slot
    if type.name in ("Array", "Option"):
        return {"Array": Array, "Option": Option}[type.name](with_slot(type.members[0], slot))
    return type


class Caller:
    """Calls host functions through a Runtime of their own."""

    def __init__(self, heap: Heap[Any]) -> None:
        self.heap = heap
        self.output = bytearray()
        self.hosts: list[HostFunction] = []
        self.runtime = Runtime(heap, self.hosts, Output(self.output.extend))

    def __call__(self, path: str, types: list[Type], *values: object, slot: Type | None = None) -> Any:
        """The result of the function that takes exactly these types, `slot` being what its slots stand for."""
        function = self.find(path, types, slot)
        words = [to_word(self.heap, type, value) for type, value in zip(types, values, strict=True)]
        return from_word(self.heap, function.result, self.words(function, *words))

    def words(self, function: HostFunction, *words: int) -> int:
        self.hosts[:] = [function]
        return self.runtime.call(0, list(words))

    def find(self, path: str, types: list[Type], slot: Type | None = None) -> HostFunction:
        package, _, name = path.rpartition(".")
        for function in STANDARD[package].functions:
            if function.name == name:
                if slot is not None:
                    parameters = [with_slot(type, slot) for _, type in function.parameters]
                    function = function.with_types(parameters, with_slot(function.result, slot))
                if [type for _, type in function.parameters] == types:
                    return function
        raise LookupError(f"no {path} takes {types}")


@pytest.fixture
def call() -> Iterator[Caller]:
    heap = Heap(PageAlloc(), limit=1 << 24)
    yield Caller(heap)
    heap.close()
