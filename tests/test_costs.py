"""What compiling each example costs, in figures that do not depend on the machine, committed in `costs.json`.

A change that makes a program larger, or a stage hungrier, shows up as a difference here. `pytest --bless` writes the
file anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allocators import MetricAllocator
from garden.bytecode import ops
from garden.bytecode.ops import op_of
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD
from tests.support.program import Mismatch, compare

ROOT = Path(__file__).parent.parent
COSTS = Path(__file__).parent / "costs.json"
EXAMPLES = [
    *sorted((ROOT / "docs" / "examples").glob("*.garden")),
    *sorted(ROOT.glob("tests/programs/workloads/*.garden")),
]


def costs(path: Path) -> dict[str, object]:
    """Sizes of the products of one program, saves to the spill stack in its code, and what each stage asked for."""
    source = Source(path.name, path.read_bytes())
    with StageAllocators() as plain:
        allocators = plain.metered()
        with Compilation(source, allocators, STANDARD) as compilation:
            ast = compilation.parse()
            lowered = compilation.lower().value_count
            code = compilation.emit()
            opcodes = [op_of(word) for word in code.words.view]
            saves = [
                ops.OPS[opcode].pushes or 1
                for opcode in opcodes
                if opcode in (ops.PUSH, ops.PUSH2, ops.PUSH3, ops.STORE_SLOT)
            ]
            products = {
                "tokens": len(ast.tokens),
                "nodes": len(ast),
                "instructions": lowered,
                "code_words": len(code.words),
                "spills": sum(saves),
            }
        stages = {}
        for stage, metric in allocators.items():
            assert isinstance(metric, MetricAllocator)
            if stage != "run":
                counters = metric.counters
                stages[stage] = {"allocations": counters.total_blocks, "bytes": counters.total_bytes}
    return {**products, "stages": stages}


def test_the_costs_of_the_examples_are_those_that_are_committed(pytestconfig: pytest.Config) -> None:
    found = {path.relative_to(ROOT).as_posix(): costs(path) for path in EXAMPLES}
    compare(COSTS, json.dumps(found, indent=2) + "\n", bool(pytestconfig.getoption("--bless")))


def test_a_difference_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(Mismatch):
        compare(tmp_path / "costs.json", "{}\n", bless=False)
