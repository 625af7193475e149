"""Parsing gives back all memory: after the tree is closed, and whatever request fails."""

from __future__ import annotations

import pytest

from allocators import BaseAllocator, Block, BumpAlloc, Layout, PageAlloc
from allocators.errors import AllocError
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax.parser import Parser
from tests.support.parsed import EXAMPLE

#: Mistakes of all kinds, so that recovery is under way when memory ends.
_WRONG = """
let a = (1 + ) * 2
let b 3
fn f(x Int) Int { match { x ? { c. } x == 1 { [1 2 } { g(]) } } }
#! lost
d
extern "p" { fn g() Foo let fn h(x: T) }
fn g() { let x = [{ a: f(-(1
"""


class FailingAlloc(BaseAllocator):
    """Counts live blocks and requests, and fails one request."""

    def __init__(self, parent: BaseAllocator, failing: int) -> None:
        self.parent = parent
        self.failing = failing
        self.requests = 0
        self.live = 0

    def allocate(self, layout: Layout) -> Block:
        self.requests += 1
        if self.requests == self.failing:
            raise AllocError("FailingAlloc", layout, reason="as the test wants")
        block = self.parent.allocate(layout)
        self.live += 1
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.parent.deallocate(block, layout)
        self.live -= 1


@pytest.mark.parametrize("text", [EXAMPLE * 3, _WRONG, ""], ids=["right", "wrong", "empty"])
def test_nothing_stays_allocated_whichever_request_fails(text: str) -> None:
    source = Source("test", text.encode())
    failing = 0
    while True:
        failing += 1
        with BumpAlloc(PageAlloc()) as pages:
            allocator = FailingAlloc(pages, failing)
            try:
                ast = Parser(allocator, allocator, []).parse(source)
            except AllocError:
                assert allocator.live == 0, f"request {failing} failed"
                continue
            assert allocator.requests < failing
            ast.close()
            assert allocator.live == 0
            break
    assert failing > 4


def test_scratch_is_given_back_and_what_is_kept_comes_from_the_allocator() -> None:
    with BumpAlloc(PageAlloc()) as pages:
        kept = FailingAlloc(pages, 0)
        scratch = FailingAlloc(pages, 0)
        ast = Parser(kept, scratch, []).parse(Source("test", EXAMPLE.encode()))
        assert scratch.requests > 0
        assert scratch.live == 0
        # Tokens, nodes, `extra`, and the four containers of an interner.
        assert kept.live == 7
        ast.close()
        ast.close()
        assert kept.live == 0


def test_memory_is_linear_in_the_program() -> None:
    def peak_requests(copies: int) -> tuple[int, int]:
        with BumpAlloc(PageAlloc()) as pages:
            allocator = FailingAlloc(pages, 0)
            diagnostics: list[Diagnostic] = []
            ast = Parser(allocator, allocator, diagnostics).parse(Source("test", (EXAMPLE * copies).encode()))
            assert not diagnostics
            nodes = len(ast)
            ast.close()
            return allocator.requests, nodes

    few, few_nodes = peak_requests(10)
    many, many_nodes = peak_requests(80)
    assert many_nodes - 1 == 8 * (few_nodes - 1)
    # Containers double: three more requests each, for at most ten containers.
    assert many <= few + 30
