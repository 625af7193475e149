"""The optimiser: passes over the IR, in the order of `PASSES`, at -O1.

A pass is a function of the IR and of `Counts` that returns how many rewrites it has made. It takes time for the size of
the IR, leaves it well-formed, and changes nothing that a program does: what traps still traps, at the same place. New
rows and lists come from the allocator of the IR; what a pass knows beside it is in scratch memory, and given back when
it ends, but for the counts, which the next pass may want. If either runs out, the IR is invalid, but can be
closed.

A pass that takes edges away removes the blocks that are `unreachable` then. Neither lowering nor inlining makes any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from allocators import Allocator
from garden.ir.ir import Ir
from garden.ir.passes.addrof_fold import addrof_fold
from garden.ir.passes.branch_cmp import branch_cmp
from garden.ir.passes.common_subexpressions import common_subexpressions
from garden.ir.passes.const_fold import const_fold
from garden.ir.passes.copy_propagation import copy_propagation
from garden.ir.passes.counts import Counts
from garden.ir.passes.dce import dce
from garden.ir.passes.imm_fold import imm_fold
from garden.ir.passes.indirect_jump import indirect_jump
from garden.ir.passes.inline import inline
from garden.ir.passes.load_store_forward import load_store_forward
from garden.ir.passes.merge_blocks import merge_blocks
from garden.ir.passes.ret_inline import ret_inline
from garden.ir.passes.switch_fold import switch_fold
from garden.ir.passes.switch_lookup import switch_lookup
from garden.ir.passes.tailcall import tailcall
from garden.ir.verifier import verify as verify_ir

Pass = Callable[[Ir[Allocator], Counts], int]

#: Name and function of each pass, in pipeline order. What a pass needs of those before it: the arguments of inlined
#: calls are constants for `const_fold`; returns are found before empty blocks go, and conditions lead on before blocks
#: merge; blocks merge before what looks at one block at a time; constants become immediates before comparisons become
#: branches, and those switches; what is looked for in the whole function comes when that has become small. A second
#: round would remove 0.2 % of the instructions of the test programs, so there is none.
PASSES: Final[tuple[tuple[str, Pass], ...]] = (
    ("inline", inline),
    ("const_fold", const_fold),
    ("ret_inline", ret_inline),
    ("indirect_jump", indirect_jump),
    ("copy_propagation", copy_propagation),
    ("merge_blocks", merge_blocks),
    ("imm_fold", imm_fold),
    ("branch_cmp", branch_cmp),
    ("switch_fold", switch_fold),
    ("switch_lookup", switch_lookup),
    ("addrof_fold", addrof_fold),
    ("load_store_forward", load_store_forward),
    ("common_subexpressions", common_subexpressions),
    ("tailcall", tailcall),
    ("dce", dce),
)


def optimise(
    ir: Ir[Allocator],
    scratch: Allocator,
    verify: bool = False,
    on_pass: Callable[[str, Ir[Allocator]], None] | None = None,
) -> int:
    """Run all passes; return how many rewrites they have made.

    With `verify`, raises AssertionError where a pass leaves the IR ill-formed. `on_pass` is called after each pass with
    its name and the IR, which it must not change.
    """
    count = 0
    counts = Counts(ir, scratch)
    try:
        for name, run in PASSES:
            count += run(ir, counts)
            if verify:
                messages = verify_ir(ir, scratch)
                if messages:
                    raise AssertionError(f"after {name}: {'; '.join(messages)}")
            if on_pass is not None:
                on_pass(name, ir)
    finally:
        counts.close()
    return count
