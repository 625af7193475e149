"""What lowering takes from its allocators, and that it gives everything back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from allocators import AllocError, Arena, MetricAllocator, PageAlloc
from garden.ir.lower import Lowerer
from garden.ir.printer import print_ir

if TYPE_CHECKING:
    from tests.ir.conftest import FailingAllocator, Programs

#: One of everything, and enough of it that every container grows.
PROGRAM = """
import ("io" "str" "testing")

fn sum_to(n:Int acc:Int) Int { match { n <= 0 { acc } { sum_to(n - 1 acc + n) } } }
fn area(box: Record<w: Double h: Double>) Double { box.w * -box.h }
fn show(n:Int) { match { n == 0 { io.println("none") } n > 100 { io.println("many") } { io.println(n) } } }

let total = sum_to(4 0)
let shape = { w: (total as Double) / 2.0 h: 3.0 }
let list = [shape { w: 1.0 h: 2.0 }]
let nested = { a: shape b: { c: shape d: list } }
testing.assert(area(nested.b.c) < 14.9)
show(total)
str.concat("total " str.from(total))
""" + "".join([f"let x{n} = {{ n: {n} m: [{n}] }}\n" for n in range(60)])

#: What lowering reports does not keep it from giving memory back.
MISTAKEN = 'extern "gpu" { fn draw(n:Int) }\ngpu.draw(99999999999999999999)'


@pytest.mark.parametrize("program", [PROGRAM, MISTAKEN, ""])
def test_nothing_is_left_behind_whichever_allocation_fails(
    programs: Programs, failing: Callable[[int], FailingAllocator], program: str
) -> None:
    checked = programs.check(program)
    succeeded = 0
    for fail_at in range(1000):
        memory = failing(fail_at)
        try:
            ir = Lowerer(memory, memory, []).lower(checked)
        except AllocError:
            assert memory.live == 0
        else:
            ir.close()
            assert memory.live == 0
            succeeded = fail_at
            break
    assert succeeded > 5


def test_scratch_is_given_back_and_the_ir_stays(programs: Programs) -> None:
    checked = programs.check(PROGRAM)
    kept = MetricAllocator(Arena(PageAlloc()))
    scratch = MetricAllocator(Arena(PageAlloc()))
    ir = Lowerer(kept, scratch, []).lower(checked)
    assert scratch.live_blocks == 0
    assert scratch.counters.total_blocks > 0
    assert print_ir(ir).startswith("// sum_to")
    ir.close()
    assert kept.live_blocks == 0


def test_a_lowerer_can_be_used_again(programs: Programs) -> None:
    lowerer = Lowerer(programs.memory, programs.memory, programs.diagnostics)
    checked = programs.check(PROGRAM)
    first = lowerer.lower(checked)
    second = lowerer.lower(checked)
    assert print_ir(first) == print_ir(second)
    first.close()
    second.close()
