"""Random IR gives the same result however few registers there are, and whether or not the code is tidied up."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from garden.ir.verifier import verify as verify_ir
from tests.support.bytecode_evaluator import Evaluator
from tests.support.bytecode_generator import random_program

REGISTERS = (64, 6, 4)


def check(bytecode: Any, seed: int, **shape: int) -> None:
    ir = bytecode.keep(random_program(seed, bytecode.memory, **shape))
    assert verify_ir(ir, bytecode.memory) == []
    expected = Evaluator(ir).run()
    for registers in REGISTERS:
        for optimise in (False, True):
            result = bytecode.run(bytecode.emit(ir, optimise=optimise, registers=registers))
            assert result == expected, f"seed {seed}, {registers} registers, optimise={optimise}"


@pytest.mark.parametrize("seed", range(40))
def test_small_programs(bytecode: Any, seed: int) -> None:
    check(bytecode, seed, functions=2, size=10)


@pytest.mark.parametrize("seed", range(1000, 1010))
def test_programs_of_many_blocks(bytecode: Any, seed: int) -> None:
    check(bytecode, seed, functions=3, size=50)


@pytest.mark.parametrize("seed", range(2000, 2010))
def test_programs_with_more_arguments_than_registers_take(bytecode: Any, seed: int) -> None:
    check(bytecode, seed, functions=3, size=25, most_parameters=45)


def under_pressure(seed: int) -> str:
    """Straight code in which many values survive calls, as arguments of which others are used the last time."""
    random = Random(seed)
    many = random.choice((3, 5, 36))
    alive = ["%v0"]
    lines = []
    for index in range(1, 120):
        value = f"%v{index}"
        if random.random() < 0.4 and len(alive) > 3:
            callee, count = random.choice(((2, 2), (3, many)))
            picked = [random.choice(alive) for _ in range(count)]
            lines.append(f"{value}:Int = Call f{callee}({', '.join(picked)})")
        else:
            picked = [random.choice(alive), random.choice(alive)]
            lines.append(f"{value}:Int = ISub {picked[0]}, {picked[1]}")
        alive.append(value)
        if len(alive) > 12:
            for used in set(picked) & set(alive):
                if len(alive) > 12 and random.random() < 0.9:
                    alive.remove(used)
    total = "%v0"
    for index, value in enumerate(alive):
        lines.append(f"%v{1000 + index}:Int = IMul {total}, 3")
        lines.append(f"%v{2000 + index}:Int = IAdd %v{1000 + index}, {value}")
        total = f"%v{2000 + index}"
    functions = [f"// f\nfn f1(%v0) -> Int {{\nb0(%v0:Int):\n{chr(10).join(lines)}\nret {total}\n}}"]
    for row, count in ((2, 2), (3, many)):
        parameters = [f"%v{index}" for index in range(count)]
        typed = [f"{parameter}:Int" for parameter in parameters]
        body = [f"%v100:Int = ISub {parameters[0]}, {parameters[-1]}"]
        for index, parameter in enumerate(parameters[1:-1]):
            body.append(f"%v{101 + index}:Int = ISub {parameter}, %v{100 + index}")
        lines = [*body, f"ret %v{100 + max(0, count - 2)}"]
        header = f"// g\nfn f{row}({', '.join(parameters)}) -> Int {{\nb0({', '.join(typed)}):"
        functions.append("\n".join([header, *lines, "}"]))
    functions.append("// entry\nfn f4() -> Int {\nb0:\n%v0:Int = 12345\n%v1:Int = Call f1(%v0)\nret %v1\n}")
    return "\n".join(functions)


@pytest.mark.parametrize("seed", range(30))
def test_programs_under_register_pressure(bytecode: Any, seed: int) -> None:
    ir = bytecode.parse(under_pressure(seed))
    expected = Evaluator(ir).run()
    for registers in REGISTERS:
        assert bytecode.run(bytecode.emit(ir, registers=registers)) == expected, f"{registers} registers"


def test_code_is_the_same_each_time(bytecode: Any) -> None:
    make: Callable[[], Any] = lambda: bytecode.emit(bytecode.keep(random_program(5, bytecode.memory, size=60)))  # noqa: E731
    assert list(make().words) == list(make().words)
