"""The heap of a program is the same on every engine: what it holds, how often it was asked, what it takes."""

from __future__ import annotations

import pytest

from allocators import MetricAllocator, PageAlloc
from garden.machines import make_machine
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.std import STANDARD
from tests.support.engines import ENGINES

PROGRAMS = {
    "texts": 'import "str"\nfn f(n:Int s:Str) Str { match { n == 0 { s } { f(n - 1 str.concat(s str.from(n))) } } }\n'
    'f(300 "")',
    "numbers": 'import "str"\nfn f(n:Int m:Int) Int { match { n < 1 { m } { f(n - 1 m + str.len(str.from(n))) } } }\n'
    "f(3000 0)",
    "arrays": 'import "arr"\nfn f(n:Int) Int { match { n == 0 { 0 } { arr.sum(arr.range(0 n)) + f(n - 1) } } }\nf(500)',
    "records": "fn f(n:Int) Int { match { n == 0 { 0 } { { a: n b: { c: n d: 1.5 } }.b.c + f(n - 1) } } }\nf(1000)",
    "options": 'import "opt"\nfn f(n:Int) Int { match { n == 0 { 0 } { opt.or(opt.some(n) 0) + f(n - 1) } } }\nf(1000)',
    "large": 'import "arr"\narr.len(arr.range(0 1000000)) + arr.len(arr.range(0 10))',
}


def figures(text: str, engine: str, level: int) -> tuple[int, int, int]:
    """Bytes in use, allocations, and bytes that the heap has taken from its allocator."""
    chunks = MetricAllocator(PageAlloc())
    with (
        StageAllocators({"run": chunks}) as allocators,
        Compilation(Source("test", text.encode()), allocators, STANDARD, level=level) as compilation,
        make_machine(compilation, RunOptions(engine), whole=False) as machine,
    ):
        machine.run()
        heap = machine.heap
        assert chunks.live_bytes >= heap.taken
        result = heap.used, heap.allocations, heap.taken
    assert chunks.live_bytes == 0
    return result


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_engine_has_the_same_heap(name: str, level: int) -> None:
    text = PROGRAMS[name]
    used, allocations, taken = figures(text, "reference", level)
    assert allocations > 0
    assert 0 < used <= taken
    for engine in ENGINES[1:]:
        assert figures(text, engine, level) == (used, allocations, taken), engine
