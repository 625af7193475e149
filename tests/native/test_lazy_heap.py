"""The heap of machine code is made when it is first needed, and then as if it had always been there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from allocators import Allocator, LimitAllocator, MetricAllocator, PageAlloc
from garden.common import NOWHERE
from garden.errors import Trap
from garden.machines import make_machine
from garden.native.run.jit import JitMachine
from garden.native.target import host_target
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.std import STANDARD
from garden.vm.heap import Heap

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(host_target() is None, reason="there is no machine code for this system")


@contextmanager
def machine(text: str, allocator: Allocator, output: bytearray | None = None) -> Iterator[JitMachine]:
    """A machine for a program, with its memory from an allocator."""
    options = RunOptions("jit", write=bytearray().extend if output is None else output.extend)
    with (
        StageAllocators({"run": allocator}) as allocators,
        Compilation(Source("test", text.encode()), allocators, STANDARD) as compilation,
        make_machine(compilation, options, whole=False) as made,
    ):
        assert isinstance(made, JitMachine)
        yield made


def test_a_program_that_needs_no_memory_takes_none() -> None:
    output = bytearray()
    allocator = MetricAllocator(PageAlloc())
    with machine('import "io"\nio.println("text")\nio.println(6 * 7)', allocator, output) as made:
        made.run()
        made.run()
    assert output == b"text\n42\n" * 2
    assert allocator.counters.total_blocks == 0


def test_a_heap_that_is_made_late_knows_the_constant_strings() -> None:
    constants = "\n".join([f'let c{index} = "constant {index}"' for index in range(40)])
    # The number of bytes in use, which is 0, so that nothing is folded.
    text = f'import ("str" "unsafe/runtime")\n{constants}\nstr.concat("constant " str.from(39 + runtime.used())) == c39'
    with machine(text, PageAlloc()) as made:
        assert made.run() == 1
        assert made.run() == 1


def test_the_heap_can_be_asked_for_before_the_program_has_run_and_after() -> None:
    for early in (False, True):
        with machine('"text"', PageAlloc()) as made:
            assert not early or (made.heap.used, made.heap.allocations) == (0, 0)
            assert made.heap.str_text(made.run()) == "text"
            assert (made.heap.used, made.heap.allocations) == (0, 0)


def test_what_took_no_memory_is_counted_once_there_is_a_heap() -> None:
    text = 'import ("arr" "unsafe/runtime")\nlet none = arr.len(arr.range(0 0))\nruntime.allocs()'
    with machine(text, PageAlloc()) as made:
        count = made.run()
        assert made.heap.allocations == count
        assert made.run() == count


def test_no_memory_for_the_constant_strings_is_a_trap() -> None:
    text = 'import ("str" "unsafe/runtime")\nstr.concat("a" str.from(runtime.used()))'
    with machine(text, LimitAllocator(PageAlloc(), 0)) as made:
        for _ in range(2):
            with pytest.raises(Trap, match="T0003: no memory for the constant strings: "):
                made.run()


def test_nowhere_is_where_a_heap_begins() -> None:
    with PageAlloc() as pages:
        heap = Heap(pages)
        assert (heap.cursor, heap.end, heap.string_table) == (NOWHERE, NOWHERE, (NOWHERE, -1, 0))
        heap.close()
