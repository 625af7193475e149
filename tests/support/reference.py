"""The native runtime on the reference machine: its intrinsics as Python functions, on the memory of a real heap.

Every access is checked: it must lie in a block of the heap, in the output buffer or, for reading, in a constant string;
what is written in the heap's current chunk must have been allocated.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from allocators import Allocator, BaseAllocator, Block, Layout, PageAlloc
from garden.bytecode.code import Code
from garden.errors import Trap
from garden.host import HostFunction
from garden.native.codegen.hosts import native_call
from garden.native.codegen.intrinsics import FIRST_POWER, MEMORY, crc_table, machine_code_only, powers_table
from garden.native.codegen.runtime import runtime_source
from garden.native.context import FIELD, FIELDS, OUTPUT_BYTES
from garden.output import Output
from garden.pipeline import Compilation, StageAllocators
from garden.semantics import double_of, word_of, wrap
from garden.std import STANDARD
from garden.traps import MESSAGES, trap
from garden.types.types import Array, Option, Type
from garden.vm.heap import MAX_STR_BYTES, Heap
from garden.vm.machine import ReferenceMachine
from garden.vm.runtime import Runtime
from garden.vm.values import from_word, to_word

_BITS = (1 << 64) - 1
_CRC = crc_table()
_POWERS = powers_table()


class Blocks(BaseAllocator):
    """Pages, and which of them are live."""

    def __init__(self) -> None:
        self._pages = PageAlloc()
        self.live: dict[int, int] = {}

    def allocate(self, layout: Layout) -> Block:
        block = self._pages.allocate(layout)
        self.live[block.address] = layout.size
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        del self.live[block.address]
        self._pages.deallocate(block, layout)


def _unsigned(word: int) -> int:
    return word & _BITS


def _trailing_zeros(word: int) -> int:
    return (word & -word).bit_length() - 1 if word else 64


#: What has neither state nor memory, on words.
PURE: dict[str, Callable[..., int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: wrap(a << _shift(b)),
    "shr": lambda a, b: wrap(_unsigned(a) >> _shift(b)),
    "sar": lambda a, b: a >> _shift(b),
    "below": lambda a, b: int(_unsigned(a) < _unsigned(b)),
    "udiv": lambda a, b: wrap(_unsigned(a) // _unsigned(b)),
    "high": lambda a, b: wrap(_unsigned(a) * _unsigned(b) >> 64),
    "trailing_zeros": _trailing_zeros,
    "bits": lambda a: a,
    "double": lambda a: a,
    "sqrt": lambda a: word_of(math.sqrt(double_of(a))),
    "crc": lambda a: _CRC[a],
    "power_high": lambda a: wrap(_POWERS[2 * (a - FIRST_POWER)]),
    "power_low": lambda a: wrap(_POWERS[2 * (a - FIRST_POWER) + 1]),
    "max_str_bytes": lambda: MAX_STR_BYTES,
}


def _shift(by: int) -> int:
    # Any other number is poison in LLVM.
    assert 0 <= by < 64
    return by


@cache
def _compiled_runtime() -> tuple[Code[Allocator], dict[str, int]]:
    """The runtime as bytecode, and its functions by name."""
    code = Compilation(runtime_source(), StageAllocators(), {MEMORY.path: MEMORY}).emit()
    symbols = code.checked.ast.symbols
    names = code.functions.column(0)
    return code, {symbols.lookup(names[row]).decode(): row for row in range(1, len(code.functions))}


class ReferenceRuntime:
    """Calls functions of the runtime by name.

    `written` are the pieces of output, `context` the words of the context, `loads` counts what was read.
    """

    def __init__(self, limit: int = 1 << 26, strings: memoryview | None = None) -> None:
        self.blocks = Blocks()
        self.constants = (0, 0)
        self.heap: Heap[Blocks] = Heap(self.blocks, strings, limit=limit)
        if strings is not None:
            self.constants = (ctypes.addressof(ctypes.c_char.from_buffer(strings)), strings.nbytes)
        # What lies before and behind it must stay as it is.
        self._buffer = ctypes.create_string_buffer(b"\xaa" * (OUTPUT_BYTES + 16), OUTPUT_BYTES + 16)
        self.output = ctypes.addressof(self._buffer) + 8
        self.context = [0] * len(FIELDS)
        self.context[FIELD["output"]] = self.output
        self.context[FIELD["output_end"]] = self.output + OUTPUT_BYTES
        self.written: list[bytes] = []
        self.loads = 0
        self.push()
        self._code, self._rows = _compiled_runtime()
        self._hosts = [self._host(function) for function in self._code.checked.hosts]
        self._machine = ReferenceMachine(self._code, PageAlloc())

    def __call__(self, name: str, *words: int) -> int:
        """The word of the result of a function."""
        # The code is shared, and what it calls is not.
        self._code.checked.hosts[:] = self._hosts
        try:
            return self._machine.call(self._rows[name], list(words))
        finally:
            self.pull()

    def flush(self) -> bytes:
        """All output so far, which is then forgotten."""
        self._write(0, 0)
        output = b"".join(self.written)
        self.written.clear()
        return output

    def close(self) -> None:
        self._machine.close()
        self.heap.close()

    # The heap of Python, and the words of the context.

    def push(self) -> None:
        heap = self.heap
        words = (heap.cursor, heap.end, heap.cursor - heap.used, heap.allocations, *heap.string_table)
        for name, word in zip(("cursor", "end", "base", "allocations", "slots", "mask", "strings"), words, strict=True):
            self.context[FIELD[name]] = word

    def pull(self) -> None:
        self.heap.resume(*[self.context[FIELD[name]] for name in ("cursor", "allocations", "strings")])

    # Intrinsics.

    def _host(self, function: HostFunction) -> HostFunction:
        """An intrinsic that can be called."""
        on_words = PURE.get(function.name) or self._function(function.name)
        return HostFunction(
            function.package,
            function.name,
            function.parameters,
            function.result,
            lambda _machine, _host, *words: on_words(*words),
            pure=function.pure,
            words=True,
        )

    def _function(self, name: str) -> Callable[..., Any]:
        kind, _, field = name.partition("_")
        if kind == "context":
            return lambda: self.context[FIELD[field]]
        if kind == "set":
            return lambda word: self._set(FIELD[field], word)
        if kind == "trap":
            number = next(number for message, number, _, _ in MESSAGES if message == field)
            return lambda *words: self._trap(number, *words)
        return {
            "load": self._load,
            "load8": lambda address: ctypes.c_uint8.from_address(self._readable(address, 1)).value,
            "store": lambda address, word: self._store(address, 8, word),
            "store8": lambda address, word: self._store(address, 1, word),
            "request_chunk": self._chunk,
            "request_table": self._table,
            "request_write": self._write,
            # What only executables call has no counterpart here.
        }.get(name, machine_code_only)

    def _set(self, index: int, word: int) -> int:
        self.context[index] = word
        return 0

    def _trap(self, number: int, a: int = 0, b: int = 0) -> None:
        raise trap(number, a, b, self.context[FIELD["trap_c"]])

    def _readable(self, address: int, size: int) -> int:
        self.loads += 1
        regions = [*self.blocks.live.items(), (self.output, OUTPUT_BYTES), self.constants]
        if not any(start <= address and address + size <= start + length for start, length in regions):
            raise AssertionError(f"{size} bytes at {address:#x} are not the program's")
        return address

    def _load(self, address: int) -> int:
        return ctypes.c_int64.from_address(self._readable(address, 8)).value

    def _store(self, address: int, size: int, word: int) -> int:
        start, length = self.constants
        assert not start <= address < start + length
        cursor, end = self.context[FIELD["cursor"]], self.context[FIELD["end"]]
        assert not cursor < address + size <= end, "these bytes of the chunk are free"
        (ctypes.c_int64 if size == 8 else ctypes.c_uint8).from_address(self._readable(address, size)).value = word
        return 0

    def _chunk(self, size: int) -> int:
        self.pull()
        counted = self.heap.allocations
        address = self.heap.alloc(size)
        # The runtime counts it.
        self.heap.allocations = counted
        self.push()
        return address

    def _table(self) -> int:
        self.pull()
        old = self.heap.renew_table()
        self.push()
        return old

    def _write(self, address: int, count: int) -> int:
        pending = self.context[FIELD["output"]] - self.output
        assert 0 <= pending <= OUTPUT_BYTES
        assert self._buffer.raw[:8] == self._buffer.raw[-8:] == b"\xaa" * 8
        if pending:
            self.written.append(ctypes.string_at(self.output, pending))
        if count:
            self.written.append(ctypes.string_at(self._readable(address, count), count))
        self.context[FIELD["output"]] = self.output
        return 0


def _with_slot(type: Type, slot: Type) -> Type:
    """A type with its slots filled."""
    if type.name == "Slot":
        return slot
    if type.name in ("Array", "Option"):
        return {"Array": Array, "Option": Option}[type.name](_with_slot(type.members[0], slot))
    return type


class Twins:
    """Calls a host function in Python and its native form, each on a heap of its own, and compares everything."""

    def __init__(self, limit: int = 1 << 26) -> None:
        self.native = ReferenceRuntime(limit)
        self.heap = Heap(PageAlloc(), limit=limit)
        self._output = bytearray()
        self._hosts: list[HostFunction] = []
        self._runtime = Runtime(self.heap, self._hosts, Output(self._output.extend))

    def __call__(self, path: str, types: list[Type], *values: object, slot: Type | None = None) -> Any:
        """What both have in common: the Python value of the result, or the text of the trap.

        The function is the one that takes exactly these types, `slot` being what its slots stand for.
        """
        function = self._find(path, types, slot)
        self._hosts[:] = [function]
        native = self.native
        words = [to_word(self.heap, type, value) for type, value in zip(types, values, strict=True)]
        twins = [to_word(native.heap, type, value) for type, value in zip(types, values, strict=True)]
        native.push()
        call = native_call(function)
        assert call is not None
        name, constants = call
        expected: Any
        try:
            expected = from_word(self.heap, function.result, self._runtime.call(0, words))
        except Trap as raised:
            expected = str(raised)
        try:
            found = from_word(native.heap, function.result, native(name, *twins, *constants))
        except Trap as raised:
            found = str(raised)
        if isinstance(found, float) and isinstance(expected, float):
            assert word_of(found) == word_of(expected)
        else:
            assert found == expected
        assert (native.heap.used, native.heap.allocations) == (self.heap.used, self.heap.allocations)
        return found

    def output(self) -> str:
        """What both have written since the last time."""
        self._runtime.output.flush()
        output = self.native.flush()
        assert output == self._output
        self._output.clear()
        return output.decode()

    def _find(self, path: str, types: list[Type], slot: Type | None) -> HostFunction:
        package, _, name = path.rpartition(".")
        for function in STANDARD[package].functions:
            if function.name == name:
                if slot is not None:
                    parameters = [_with_slot(type, slot) for _, type in function.parameters]
                    function = function.with_types(parameters, _with_slot(function.result, slot))
                if [type for _, type in function.parameters] == types:
                    return function
        raise LookupError(f"no {path} takes {types}")

    def close(self) -> None:
        self.native.close()
        self.heap.close()
