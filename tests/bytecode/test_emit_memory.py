"""What emitting takes from its allocators, and that it gives everything back."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from allocators import AllocError, Arena, FailingAllocator, MetricAllocator, PageAlloc
from garden.bytecode.disassemble import disassemble
from garden.bytecode.emit import Emitter
from garden.ir.ir import Ir
from tests.support.bytecode_generator import Generator, empty_program
from tests.support.ir_texts import switch


def random_ir(bytecode: Any, functions: int, size: int) -> Ir[Any]:
    ir = bytecode.keep(empty_program(bytecode.memory))
    Generator(Random(7), ir, most_parameters=40, size=size).program(functions)
    return ir  # type: ignore[no-any-return]


def small_programs(bytecode: Any) -> list[tuple[Ir[Any], int]]:
    """Programs, and numbers of registers, that between them use every container."""
    strings = bytecode.parse(switch(["`a`", "`b`", "`c`"], "Str", "`b`"))
    ints = bytecode.parse(switch([str(number * 1000000007) for number in range(5)], "Int", "1"))
    return [(strings, 64), (ints, 64), (random_ir(bytecode, 2, 30), 64), (random_ir(bytecode, 2, 30), 4)]


@pytest.mark.parametrize("which", range(4))
def test_nothing_is_left_behind_whichever_allocation_fails(bytecode: Any, which: int) -> None:
    ir, registers = small_programs(bytecode)[which]
    failed = 0
    for fail_index in range(1000):
        memory = MetricAllocator(PageAlloc())
        failing = FailingAllocator(memory, fail_index=fail_index)
        try:
            code = Emitter(failing, failing, registers=registers).emit(ir)
        except AllocError:
            assert memory.live_blocks == 0, f"request {fail_index}"
            failed += 1
        else:
            code.close()
            assert memory.live_blocks == 0
            break
    assert failed > 20


def test_code_stays_and_scratch_is_given_back(bytecode: Any) -> None:
    kept = MetricAllocator(Arena(PageAlloc()))
    scratch = MetricAllocator(Arena(PageAlloc()))
    code = Emitter(kept, scratch).emit(random_ir(bytecode, 3, 30))
    assert scratch.live_blocks == 0
    assert scratch.counters.total_blocks > 0
    assert disassemble(code).startswith("globals:")
    code.close()
    assert kept.live_blocks == 0


def test_an_emitter_can_be_used_again(bytecode: Any) -> None:
    emitter = Emitter(bytecode.memory, bytecode.scratch)
    ir = random_ir(bytecode, 2, 30)
    first = emitter.emit(ir)
    second = emitter.emit(ir)
    assert disassemble(first) == disassemble(second)
    first.close()
    second.close()


def chain_of_functions(count: int) -> str:
    """Functions that call the one before, as leaves and in the middle of arms."""
    parts = []
    for row in range(1, count + 1):
        parts.append(f"""
            // f
            fn f{row}(%v0, %v1) -> Int {{
                b0(%v0:Int, %v1:Int):
                    br_imm IEq %v0, {row}, b1, b2
                b1:
                    ret %v1
                b2:
                    %v2:Int = ISub %v0, 1
                    %v3:Int = Call f{max(1, row - 1)}(%v2, %v1)
                    %v4:Int = IAdd %v3, %v1
                    ret %v4
            }}""")
    return "\n".join(parts) + f"\n// entry\nfn f{count + 1}() -> Int {{\nb0:\n%v0:Int = 1\nret %v0\n}}"


def long_body(count: int) -> str:
    """One block in which every value is used at once and again at the end."""
    lines = [f"%v{index}:Int = IMul %v{index - 1}, %v0" for index in range(1, count)]
    lines += [f"%v{count + index}:Int = IAdd %v{count + index - 1}, %v{index}" for index in range(1, count)]
    body = "\n".join(lines)
    return f"// entry\nfn f1() -> Int {{\nb0:\n%v0:Int = 3\n%v{count}:Int = 4\n{body}\nret %v{2 * count - 1}\n}}"


def wide_match(count: int) -> str:
    """A chain of tests on values, whose arms call and meet again."""
    blocks = []
    for index in range(count):
        blocks.append(f"""
            b{3 * index}:
                %v{10 + 4 * index}:Int = IMul %v0, {index}
                br_imm IEq %v{10 + 4 * index}, {7 * index}, b{3 * index + 1}, b{3 * (index + 1)}
            b{3 * index + 1}:
                %v{11 + 4 * index}:Int = Call f1(%v0, %v1)
                %v{12 + 4 * index}:Int = IAdd %v{11 + 4 * index}, %v1
                jmp b{3 * count + 1}(%v{12 + 4 * index})""")
    text = "\n".join(blocks).replace("b0:", "b0(%v0:Int, %v1:Int):", 1)
    join = f"b{3 * count + 1}(%v5:Int):\n%v6:Int = IAdd %v5, %v0\nret %v6"
    entry = "// entry\nfn f2() -> Int {\nb0:\n%v0:Int = 1\nret %v0\n}"
    return f"// f\nfn f1(%v0, %v1) -> Int {{\n{text}\nb{3 * count}:\njmp b{3 * count + 1}(%v0)\n{join}\n}}\n{entry}"


@pytest.mark.parametrize("shape", [chain_of_functions, long_body, wide_match])
def test_work_and_memory_are_linear_in_the_size_of_the_program(bytecode: Any, shape: Any) -> None:
    figures = []
    for count in (100, 400):
        ir = bytecode.parse(shape(count))
        kept = MetricAllocator(PageAlloc())
        scratch = MetricAllocator(PageAlloc())
        code = Emitter(kept, scratch, registers=12).emit(ir)
        figures.append((len(code.words), kept.counters.peak_bytes, scratch.counters.peak_bytes))
        code.close()
    for small, large in zip(*figures, strict=True):
        # Capacities double, so memory may be twice as much as it need be.
        assert large < 8.5 * small
