"""Random IR gives the same result however few registers there are, and whether or not the code is tidied up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from evaluate import Evaluator
from generate import random_program

from garden.ir.verifier import verify as verify_ir

REGISTERS = (64, 6, 4)


def check(bytecode: Any, seed: int, **shape: int) -> None:
    ir = bytecode.keep(random_program(seed, bytecode.memory, **shape))
    assert verify_ir(ir, bytecode.memory) == []
    expected = Evaluator(ir).run()
    for registers in REGISTERS:
        for optimize in (False, True):
            result = bytecode.run(bytecode.emit(ir, optimize=optimize, registers=registers))
            assert result == expected, f"seed {seed}, {registers} registers, optimize={optimize}"


@pytest.mark.parametrize("seed", range(40))
def test_small_programs(bytecode: Any, seed: int) -> None:
    check(bytecode, seed, functions=2, size=10)


@pytest.mark.parametrize("seed", range(1000, 1010))
def test_programs_of_many_blocks(bytecode: Any, seed: int) -> None:
    check(bytecode, seed, functions=3, size=50)


@pytest.mark.parametrize("seed", range(2000, 2010))
def test_programs_with_more_arguments_than_registers_take(bytecode: Any, seed: int) -> None:
    check(bytecode, seed, functions=3, size=25, most_parameters=45)


def test_code_is_the_same_each_time(bytecode: Any) -> None:
    make: Callable[[], Any] = lambda: bytecode.emit(bytecode.keep(random_program(5, bytecode.memory, size=60)))  # noqa: E731
    assert list(make().words) == list(make().words)
