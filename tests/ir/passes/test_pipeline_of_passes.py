"""The pipeline as a whole: its interface, its memory, and what it makes of whole functions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from allocators import Allocator, AllocError, Arena, MetricAllocator, PageAlloc
from garden.ir.ir import Ir
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.passes import PASSES, optimise
from garden.ir.passes.counts import Counts
from garden.ir.printer import print_ir
from tests.support.rewriter import PACKAGES, Rewriter, lines, pipeline, with_entry

STEP = """
    fn f1(%v0) -> Bool {
        b0(%v0:Int):
            %v1:Int = 2
            %v2:Int = IMod %v0, %v1
            %v3:Int = 0
            %v4:Bool = IEq %v2, %v3
            ret %v4
    }
    fn f2(%v0, %v1) -> Int {
        b0(%v0:Int, %v1:Int):
            %v2:Int = 1
            %v3:Bool = IEq %v0, %v2
            br %v3, b1, b2
        b1:
            jmp b6(%v1)
        b2:
            %v4:Bool = Call f1(%v0)
            br %v4, b3, b4
        b3:
            %v5:Int = 2
            %v6:Int = IDiv %v0, %v5
            jmp b5(%v6)
        b4:
            %v7:Int = 3
            %v8:Int = IMul %v7, %v0
            %v9:Int = 1
            %v10:Int = IAdd %v8, %v9
            jmp b5(%v10)
        b5(%v11:Int):
            %v12:Int = 1
            %v13:Int = IAdd %v1, %v12
            %v14:Int = Call f2(%v11, %v13)
            jmp b6(%v14)
        b6(%v15:Int):
            ret %v15
    }"""


def test_passes_build_on_each_other(rewrite: Rewriter) -> None:
    after = """
        fn f2(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                br_imm IEq %v0, 1, b1, b2
            b1:
                ret %v1
            b2:
                %v2:Int = IMod %v0, 2
                br_imm IEq %v2, 0, b3, b4
            b3:
                %v3:Int = IDiv %v0, 2
                jmp b5(%v3)
            b4:
                %v4:Int = IMul %v0, 3
                %v5:Int = IAdd %v4, 1
                jmp b5(%v5)
            b5(%v6:Int):
                %v7:Int = IAdd %v1, 1
                tail f2(%v6, %v7)
        }"""
    assert rewrite(pipeline, STEP).endswith(lines(after))
    # Again nothing is left to do.
    assert rewrite(pipeline, f"{STEP[: STEP.index('fn f2')]}{after}") == rewrite(pipeline, STEP)


def test_arms_of_constants_become_a_lookup(rewrite: Rewriter) -> None:
    links = []
    for key in range(1, 6):
        arm, other = 2 * key - 1, 2 * key
        links += [f"%v{4 * key}:Int = {key}", f"%v{4 * key + 1}:Bool = IEq %v0, %v{4 * key}"]
        links += [f"br %v{4 * key + 1}, b{arm}, b{other}", f"b{arm}:", f"%v{4 * key + 2}:Str = `{key}`"]
        links += [f"jmp b99(%v{4 * key + 2})", f"b{other}:"]
    text = "\n".join(
        [
            "fn f1(%v0) -> Str {",
            "b0(%v0:Int):",
            *links,
            "%v1:Str = `?`",
            "jmp b99(%v1)",
            "b99(%v2:Str):",
            "ret %v2",
            "}",
        ]
    )
    after = """
        fn f1(%v0) -> Str {
            b0(%v0:Int):
                %v1:Str = Lookup %v0 [1 -> `1`, 2 -> `2`, 3 -> `3`, 4 -> `4`, 5 -> `5`], `?`
                ret %v1
        }"""
    assert rewrite(pipeline, text) == lines(after)


def test_an_inlined_call_with_constants_folds(rewrite: Rewriter) -> None:
    text = (
        STEP[: STEP.index("fn f2")]
        + """
        fn f2() -> Int {
            b0:
                %v0:Int = 6
                %v1:Bool = Call f1(%v0)
                br %v1, b1, b2
            b1:
                %v2:Int = 10
                jmp b3(%v2)
            b2:
                %v3:Int = 20
                jmp b3(%v3)
            b3(%v4:Int):
                ret %v4
        }"""
    )
    assert rewrite(pipeline, text).endswith("fn f2() -> Int {\nb0:\n%v0:Int = 10\nret %v0\n}")


def test_a_division_by_zero_is_never_removed(rewrite: Rewriter) -> None:
    text = "fn f1() -> Int {\nb0:\n%v0:Int = 1\n%v1:Int = 0\n%v2:Int = IDiv %v0, %v1\nret %v0\n}"
    assert "IDiv" in rewrite(pipeline, text)


def test_on_pass_is_called_after_each_pass_and_the_rewrites_are_counted() -> None:
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(with_entry(STEP), memory, PACKAGES)
    names: list[str] = []
    texts: list[str] = [print_ir(ir)]

    def keep(name: str, seen: Ir[Allocator]) -> None:
        assert seen is ir
        names.append(name)
        texts.append(print_ir(seen))

    count = optimise(ir, memory, verify=True, on_pass=keep)
    assert names == [name for name, _ in PASSES]
    changes = sum([before != after for before, after in pairwise(texts)])
    assert count >= changes > 3
    close_parsed(ir)


def test_verify_says_which_pass_has_left_the_ir_broken() -> None:
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir("fn f1() -> Int {\nb0:\n%v0:Int = 1\n%v1:Double = 1.0\nret %v0\n}", memory)
    ir.a[ir.block_last[ir.function_first[1]]] = 2
    with pytest.raises(AssertionError, match="after inline: function 1 block 1 row 3 ret: operand 2 is a Double"):
        optimise(ir, memory, verify=True)
    close_parsed(ir)


def everything() -> str:
    """A program on which every pass has something to do."""
    inner = "Record<y: Int>"
    functions = [
        STEP,
        f"""
        fn f3(%v0, %v1) -> Int {{
            b0(%v0:Record<x: Int p: {inner}>, %v1:Int):
                %v2:{inner} = AddrOf %v0+8
                %v3:Int = Load %v2+0
                %v4:Int = Load %v2+0
                %v5:Int = IAdd %v3, %v4
                %v6:Int = IAdd %v4, %v3
                %v7:Int = IMul %v5, %v6
                %v8:Int = 3
                %v9:Int = 4
                %v10:Int = IMul %v8, %v9
                jmp b1(%v7)
            b1(%v11:Int):
                %v12:Bool = true
                br %v12, b2, b3
            b2:
                %v13:Int = IAdd %v10, %v11
                ret %v13
            b3:
                br_imm IEq %v1, 0, b4, b3
            b4:
                jmp b3
        }}
        fn f4(%v0, %v1) -> Int {{
            b0(%v0:Int, %v1:Bool):
                switch %v0
                    1 -> b1
                    _ -> b2
            b1:
                %v2:Int = 10
                ret %v2
            b2:
                %v3:Int = 20
                ret %v3
        }}
        fn f5(%v0, %v1) -> Int {{
            b0(%v0:Bool, %v1:Int):
                br %v0, b1, b2
            b1:
                jmp b3(%v1)
            b2:
                Sys host.log(%v1)
                %v2:Int = INeg %v1
                jmp b3(%v2)
            b3(%v3:Int):
                %v4:Int = IMul %v3, %v3
                ret %v4
        }}""",
    ]
    for number in range(6, 8):
        links = [f"br_imm IEq %v0, {key}, b{2 * key + 1}, b{2 * key + 2}\nb{2 * key + 2}:" for key in range(8)]
        arms = [f"b{2 * key + 1}:\n%v{key + 1}:Int = {key}\nret %v{key + 1}" for key in range(8)]
        call = f"%v20:Bool = Call f1(%v0)\nbr %v20, b50, b51\nb50:\nret %v0\nb51:\n%v21:Int = Call f{number}(%v0)"
        head = f"fn f{number}(%v0) -> Int {{\nb0(%v0:Int):"
        functions.append("\n".join([head, *links, call, "ret %v21", *arms, "}"]))
    return with_entry("\n".join(functions))


def test_what_the_passes_allocate_grows_in_proportion_to_the_program() -> None:
    totals = []
    for count in (100, 200, 400):
        functions = []
        for number in range(count // 10):
            links = [
                f"br_imm IEq %v0, {key * key}, b{2 * key + 1}, b{2 * key + 2}\nb{2 * key + 2}:" for key in range(10)
            ]
            arms = [f"b{2 * key + 1}:\n%v{key + 2}:Int = Call f1(%v0)\njmp b60(%v{key + 2})" for key in range(10)]
            head = f"fn f{number + 2}(%v0) -> Int {{\nb0(%v0:Int):"
            functions.append("\n".join([head, *links, "jmp b60(%v0)", *arms, "b60(%v1:Int):", "ret %v1", "}"]))
        square = "fn f1(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = IMul %v0, %v0\nret %v1\n}"
        memory = MetricAllocator(Arena(PageAlloc()))
        ir = parse_ir(with_entry("\n".join([square, *functions])), memory, PACKAGES)
        before = memory.counters.total_bytes
        scratch = MetricAllocator(Arena(PageAlloc()))
        optimise(ir, scratch)
        totals.append(memory.counters.total_bytes - before + scratch.counters.total_bytes)
        close_parsed(ir)
    # Containers double, so single steps are uneven.
    assert totals[2] < 5 * totals[0]


def test_every_pass_has_something_to_do() -> None:
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(everything(), memory, PACKAGES)
    counts = Counts(ir, memory)
    assert [name for name, run in PASSES if run(ir, counts) == 0] == []
    counts.close()
    close_parsed(ir)


def test_whichever_allocation_of_scratch_fails_nothing_is_left_behind(
    failing: Callable[[int], Any],
) -> None:
    text = everything()
    memory = MetricAllocator(Arena(PageAlloc()))
    fail_at = 0
    finished = False
    while not finished:
        ir = parse_ir(text, memory, PACKAGES)
        scratch = failing(fail_at)
        try:
            optimise(ir, scratch)
            finished = True
        except AllocError:
            fail_at += 1
        assert scratch.live == 0
        close_parsed(ir)
        assert memory.live_blocks == 0
    assert fail_at > 50


def test_whichever_allocation_of_the_ir_fails_it_can_still_be_closed(
    failing: Callable[[int], Any],
) -> None:
    # Inlining more than doubles the instructions.
    adds = "\n".join([f"%v{index + 1}:Int = IAdd %v{index}, 1" for index in range(18)])
    calls = "\n".join([f"%v{index + 1}:Int = Call f1(%v{index})" for index in range(60)])
    text = f"fn f1(%v0) -> Int {{\nb0(%v0:Int):\n{adds}\nret %v18\n}}\n"
    text = with_entry(f"{text}fn f2(%v0) -> Int {{\nb0(%v0:Int):\n{calls}\nret %v60\n}}")
    scratch = MetricAllocator(Arena(PageAlloc()))
    failures = 0
    finished = False
    while not finished:
        memory = failing(10_000)
        ir = parse_ir(text, memory, PACKAGES)
        memory.requests_left = failures
        try:
            optimise(ir, scratch)
            finished = True
        except AllocError:
            failures += 1
        close_parsed(ir)
        assert memory.live == 0
        assert scratch.live_blocks == 0
    assert failures >= 1
