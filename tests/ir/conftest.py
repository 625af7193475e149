"""From source text to IR, with every IR verified and all memory accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from allocators import Allocator, AllocError, Arena, BaseAllocator, Block, Layout, MetricAllocator, PageAlloc
from garden.diagnostics import Diagnostic
from garden.ir.ir import Ir
from garden.ir.lower import Lowerer
from garden.ir.printer import print_ir
from garden.ir.verifier import verify
from garden.source import Source
from garden.std import STANDARD
from garden.syntax.parser import Parser
from garden.types.checker import Checker
from garden.types.program import CheckedProgram


class Programs:
    """Takes programs through the stages up to lowering, and keeps what they made until `close`."""

    def __init__(self) -> None:
        self.pages = PageAlloc()
        self.memory = MetricAllocator(Arena(self.pages))
        self.diagnostics: list[Diagnostic] = []
        self._owned: list[Ir[Allocator] | CheckedProgram[Allocator]] = []

    def check(self, text: str) -> CheckedProgram[Allocator]:
        """The checked program, which must be without mistakes."""
        source = Source("test", text.encode())
        ast = Parser(self.memory, self.memory, self.diagnostics).parse(source)
        checked = Checker(self.memory, self.memory, self.diagnostics, STANDARD).check(ast)
        self._owned.append(checked)
        assert not self.diagnostics, [diagnostic.render(source) for diagnostic in self.diagnostics]
        return checked

    def lower(self, text: str) -> Ir[Allocator]:
        """The verified IR; what lowering finds wrong is in `diagnostics`."""
        ir = Lowerer(self.memory, self.memory, self.diagnostics).lower(self.check(text))
        self._owned.append(ir)
        assert verify(ir, self.memory) == []
        return ir

    def close(self) -> None:
        for owned in reversed(self._owned):
            owned.close()
            if isinstance(owned, CheckedProgram):
                owned.ast.close()


class FailingAllocator(BaseAllocator):
    """Pages, until the request number `fail_at`; counts the live blocks."""

    def __init__(self, fail_at: int) -> None:
        self.pages = PageAlloc()
        self.requests_left = fail_at
        self.live = 0

    def allocate(self, layout: Layout) -> Block:
        if self.requests_left == 0:
            raise AllocError("failing", layout)
        self.requests_left -= 1
        block = self.pages.allocate(layout)
        self.live += 1
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.pages.deallocate(block, layout)
        self.live -= 1


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Programs whose memory must all be given back in the end."""
    made = Programs()
    yield made
    made.close()
    assert made.memory.live_blocks == 0


@pytest.fixture
def lower(programs: Programs) -> Callable[[str], str]:
    """The printed IR of a valid program, without indentation and the comments above functions."""

    def lower_text(text: str) -> str:
        printed = print_ir(programs.lower(text))
        assert programs.diagnostics == []
        lines = [line.strip() for line in printed.splitlines()]
        return "\n".join([line for line in lines if line and not line.startswith("//")])

    return lower_text


@pytest.fixture
def failing() -> Callable[[int], FailingAllocator]:
    """An allocator that serves so many requests, and then no more."""
    return FailingAllocator
