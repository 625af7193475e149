"""What the tests of the machine share: the engines, an allocator that counts and fails, and an assembler."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from allocators import Allocator, AllocError, BaseAllocator, Block, Layout, PageAlloc
from allocators.collections import Interner
from garden.bytecode.code import Code
from garden.host import HostFunction
from garden.native.cache import Cache
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine, interpreter_object
from garden.native.run.jit import externals
from garden.native.target import host_target
from garden.run_options import RunOptions
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.tokens import Tokens
from garden.types.program import CheckedProgram
from garden.vm.machine import ReferenceMachine


class Ledger(BaseAllocator):
    """Pages, counted. The request number `fail_at` (from 1) fails."""

    def __init__(self) -> None:
        self.pages = PageAlloc()
        self.live = 0
        self.requests = 0
        self.fail_at = 0

    def allocate(self, layout: Layout) -> Block:
        self.requests += 1
        if self.requests == self.fail_at:
            raise AllocError("ledger", layout, reason="told to")
        block = self.pages.allocate(layout)
        self.live += 1
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.pages.deallocate(block, layout)
        self.live -= 1


def reference(code: Code[Allocator], allocator: Allocator, **options: Any) -> ReferenceMachine[Allocator]:
    return ReferenceMachine(code, allocator, RunOptions(**options))


def interpreter(code: Code[Allocator], allocator: Allocator, **options: Any) -> InterpreterMachine:
    """The engine that does in machine code what the reference engine does."""
    target = host_target()
    assert target is not None
    image = Image(interpreter_object(target, Cache()), PageAlloc(), externals())
    return InterpreterMachine(code, image, allocator, RunOptions(**options))


ENGINES: dict[str, Callable[..., Any]] = {"reference": reference}
if host_target():
    ENGINES["interpreter"] = interpreter


@pytest.fixture(params=ENGINES)
def machine_of(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a machine of code and an allocator, with options, for each engine that runs bytecode."""
    return ENGINES[request.param]


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = Ledger()
    yield ledger
    assert ledger.live == 0, "blocks are still live at the end of the test"


def string_words(text: str) -> list[int]:
    """A Str as the heap lays it out."""
    data = text.encode()
    padded = data.ljust((len(data) + 7) & -8, b"\0")
    words = [len(data) | crc32(data) << 32]
    words.extend([int.from_bytes(padded[index : index + 8], "little") for index in range(0, len(padded), 8)])
    return words


class Assembler:
    """Makes Code out of instruction words. `addresses` are those of the constant strings of the last one."""

    def __init__(self) -> None:
        self.allocator = PageAlloc()
        self.closing: list[Any] = []
        self.addresses: list[int] = []

    def __call__(
        self,
        words: list[int] | Callable[[list[int]], list[int]],
        *,
        constants: list[int] | Callable[[list[int]], list[int]] = [],  # noqa: B006
        strings: tuple[str, ...] = (),
        hosts: tuple[HostFunction, ...] = (),
        functions: tuple[tuple[str, int, int, int], ...] = (),
        positions: list[int] | None = None,
        entry: int = 0,
    ) -> Code[Allocator]:
        """`words` and `constants` may be functions of the addresses of the constant strings."""
        symbols: Interner[PageAlloc] = Interner(self.allocator)
        symbols.intern(b"")
        ast = Ast(self.allocator, Source("test", b""), symbols, Tokens(self.allocator))
        checked = CheckedProgram(self.allocator, ast)
        checked.hosts.extend(hosts)
        code = Code(self.allocator, checked)
        self.closing.extend([ast, checked, code])
        offsets = []
        for text in strings:
            offsets.append(8 * len(code.strings))
            code.strings.extend(string_words(text))
        self.addresses = [code.strings.address + offset for offset in offsets]
        code.constants.extend(constants(self.addresses) if callable(constants) else constants)
        code.words.extend(words(self.addresses) if callable(words) else words)
        code.positions.extend(positions if positions is not None else list(range(0, 10 * len(code.words), 10)))
        for name, first, end, parameters in functions:
            code.functions.append(symbols.intern(name.encode()) if name != "entry" else 0, first, end, parameters)
        code.entry = entry
        return code


@pytest.fixture
def assemble() -> Iterator[Assembler]:
    assembler = Assembler()
    yield assembler
    for thing in reversed(assembler.closing):
        thing.close()
