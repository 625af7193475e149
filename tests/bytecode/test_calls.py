"""The calling convention: what callers save, what travels on the spill stack, and what callees are known to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from garden.bytecode import ops
from garden.bytecode.disassemble import disassemble
from garden.bytecode.ops import encode, op_of
from garden.host import HostFunction, Package
from garden.types.types import Int

Listing = Callable[..., list[str]]

ENTRY = "// entry\nfn f{row}() -> Int {{\nb0:\n%v0:Int = 1\nret %v0\n}}\n"


def ops_of(code: Any, row: int) -> list[int]:
    _, first, end, _ = code.functions[row]
    return [op_of(word) for word in code.words[first:end]]


def test_a_function_that_calls_nothing_saves_nothing(bytecode: Any) -> None:
    lines = [f"%v{index}:Int = IMul %v{index - 1}, %v0" for index in range(1, 40)]
    lines += [f"%v{index}:Int = IAdd %v{index - 1}, %v{index - 40}" for index in range(40, 60)]
    text = "// f\nfn f1(%v0) -> Int {\nb0(%v0:Int):\n" + "\n".join(lines) + "\nret %v59\n}\n" + ENTRY.format(row=2)
    assert not {ops.PUSH, ops.PUSH2, ops.PUSH3} & set(ops_of(bytecode(text), 1))


def test_what_survives_a_call_of_an_unknown_function_is_pushed_as_one_group(listing: Listing) -> None:
    assert listing(
        """
        // tak
        fn f1(%v0, %v1, %v2) -> Int {
            b0(%v0:Int, %v1:Int, %v2:Int):
                br_cmp ILt %v1, %v0, b1, b2
            b1:
                %v3:Int = ISub %v0, 1
                %v4:Int = Call f1(%v3, %v1, %v2)
                %v5:Int = ISub %v1, 1
                %v6:Int = Call f1(%v5, %v2, %v0)
                %v7:Int = ISub %v2, 1
                %v8:Int = Call f1(%v7, %v0, %v1)
                tail f1(%v4, %v6, %v8)
            b2:
                ret %v1
        }
        """
        + ENTRY.format(row=2)
    ) == [
        "<tak.bb_0002>:",
        "jmple r0, r1, 0022",
        "push3 r0, r1, r2",
        "isub_imm r0, r0, #1",
        "call 0002 <tak>",
        "load_slot r3, top-1",
        "push r0",
        "isub_imm r0, r3, #1",
        "load_slot r1, top-1",
        "load_slot r2, top-3",
        "call 0002 <tak>",
        "load_slot r3, top-1",
        "push r0",
        "isub_imm r0, r3, #1",
        "load_slot r1, top-4",
        "load_slot r2, top-3",
        "call 0002 <tak>",
        "mov r2, r0",
        "pop2 r1, r0",
        "drop #3",
        "jmp 0002",
        "<tak.bb_0022>:",
        "mov r0, r1",
        "ret",
    ]


def test_a_value_is_saved_once_however_many_calls_it_survives(bytecode: Any) -> None:
    calls = "\n".join([f"%v{index}:Int = Call f1(%v{index - 1})" for index in range(1, 20)])
    sums = "%v20:Int = IAdd %v19, %v0\n%v21:Int = IAdd %v20, %v0\nret %v21"
    text = f"// f\nfn f1(%v0) -> Int {{\nb0(%v0:Int):\n{calls}\n{sums}\n}}\n{ENTRY.format(row=2)}"
    assert ops_of(bytecode(text), 1).count(ops.PUSH) == 1


def test_slots_of_dead_values_are_used_again(bytecode: Any) -> None:
    # Each value survives some calls, and dies before those that were saved after it.
    lines = ["%v1:Int = IAdd %v0, 1", "%v2:Int = IAdd %v0, 2", "%v3:Int = IAdd %v0, 3"]
    for index in range(4, 300):
        lines.append(f"%v{1000 + index}:Int = Call f1(%v{index - 1})")
        lines.append(f"%v{index}:Int = IAdd %v{1000 + index}, %v{index - 3}")
    text = "// f\nfn f1(%v0) -> Int {\nb0(%v0:Int):\n" + "\n".join(lines) + "\nret %v299\n}\n" + ENTRY.format(row=2)
    depth = 0
    deepest = 0
    code = bytecode(text)
    _, first, end, _ = code.functions[1]
    for word in code.words[first:end]:
        depth += ops.OPS[op_of(word)].pushes
        deepest = max(deepest, depth)
    assert deepest < 30


def test_a_callee_that_was_emitted_before_is_known(listing: Listing, bytecode: Any) -> None:
    text = """
        // caller
        fn f2(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                %v2:Int = Call f1(%v0)
                %v3:Int = IAdd %v2, %v1
                %v4:Int = IAdd %v3, %v0
                ret %v4
        }
        """ + ENTRY.format(row=3)
    leaf = "// leaf\nfn f1(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = IMul %v0, %v0\nret %v1\n}\n"
    code = bytecode(leaf + text)
    _, first, end, _ = code.functions[2]
    names = [ops.OPS[op_of(word)].name for word in code.words[first:end]]
    assert names == ["mov", "call", "iadd", "iadd", "ret"]


def test_a_known_callee_changes_what_its_own_callees_change(bytecode: Any) -> None:
    leaf = "// leaf\nfn f1(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = IMul %v0, 3\n%v2:Int = IMul %v0, %v1\nret %v2\n}\n"
    middle = "// middle\nfn f2(%v0) -> Int {\nb0(%v0:Int):\n%v1:Int = IAdd %v0, 1\ntail f1(%v1)\n}\n"
    outer = """
        // outer
        fn f3(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                %v2:Int = Call f2(%v0)
                %v3:Int = IAdd %v2, %v1
                ret %v3
        }
        // entry
        fn f4() -> Int {
            b0:
                %v0:Int = 4
                %v1:Int = 1000
                %v2:Int = Call f3(%v0, %v1)
                ret %v2
        }
    """
    assert bytecode.run(bytecode(leaf + middle + outer)) == 1075


def test_a_tail_call_changes_the_registers_of_its_arguments(bytecode: Any) -> None:
    text = """
        // second
        fn f1(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                ret %v1
        }
        // twice
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                tail f1(%v0, %v0)
        }
        // outer
        fn f3(%v0, %v1) -> Int {
            b0(%v0:Int, %v1:Int):
                %v2:Int = Call f2(%v0)
                %v3:Int = IAdd %v2, %v1
                ret %v3
        }
        // entry
        fn f4() -> Int {
            b0:
                %v0:Int = 4
                %v1:Int = 1000
                %v2:Int = Call f3(%v0, %v1)
                ret %v2
        }
    """
    assert bytecode.run(bytecode(text)) == 1004


def test_what_survives_a_call_is_made_where_the_callee_leaves_it_alone(bytecode: Any) -> None:
    text = """
        // leaf
        fn f1(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IMul %v0, 3
                %v2:Int = IMul %v0, %v1
                ret %v2
        }
        // outer
        fn f2(%v0) -> Int {
            b0(%v0:Int):
                %v1:Int = IMul %v0, 5
                %v2:Int = IMul %v0, 7
                %v3:Int = Call f1(%v2)
                %v4:Int = ISub %v3, %v1
                ret %v4
        }
        // entry
        fn f3() -> Int {
            b0:
                %v0:Int = 4
                %v1:Int = Call f2(%v0)
                ret %v1
        }
    """
    code = bytecode(text)
    # The leaf changes r0 and r1.
    assert encode(ops.IMUL_IMM, 2, 0, imm=5) in list(code.words)
    assert bytecode.run(code) == 3 * 28 * 28 - 20


def many(count: int) -> str:
    """A function that combines so many parameters, an entry that calls it, and another on the way."""
    names = ", ".join([f"%v{index}" for index in range(count)])
    typed = ", ".join([f"%v{index}:Int" for index in range(count)])
    lines = []
    for index in range(1, count):
        before = f"%v{1000 + index - 1}" if index > 1 else "%v0"
        lines.append(f"%v{2000 + index}:Int = IMul {before}, 3")
        lines.append(f"%v{1000 + index}:Int = ISub %v{2000 + index}, %v{index}")
    weigh = (
        f"// weigh\nfn f1({names}) -> Int {{\nb0({typed}):\n" + "\n".join(lines) + f"\nret %v{1000 + count - 1}\n}}\n"
    )
    turned = ", ".join([f"%v{index}" for index in range(count - 1, -1, -1)])
    turn = f"// turn\nfn f2({names}) -> Int {{\nb0({typed}):\ntail f1({turned})\n}}\n"
    constants = "\n".join([f"%v{index}:Int = {index * index}" for index in range(count)])
    both = f"%v5000:Int = Call f1({names})\n%v5001:Int = Call f2({names})\n%v5002:Int = ISub %v5000, %v5001\nret %v5002"
    return f"{weigh}{turn}// entry\nfn f3() -> Int {{\nb0:\n{constants}\n{both}\n}}\n"


def weigh(words: list[int]) -> int:
    total = words[0]
    for word in words[1:]:
        total = total * 3 - word
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)


@pytest.mark.parametrize("registers", [64, 5])
@pytest.mark.parametrize("count", [2, 31, 32, 33, 50])
def test_arguments_that_do_not_fit_registers_travel_on_the_spill_stack(
    bytecode: Any, count: int, registers: int
) -> None:
    words = [index * index for index in range(count)]
    difference = weigh(words) - weigh(words[::-1])
    assert bytecode.run(bytecode(many(count), registers=registers)) == weigh([0, difference]) * -1


def test_stack_arguments_are_pushed_last_first_and_popped_by_the_callee(bytecode: Any) -> None:
    listing = disassemble(bytecode(many(34)))
    pushed = [line.split(":", 1)[1].split(";")[0].strip() for line in listing.split("<entry>:")[1].splitlines()[1:5]]
    assert pushed == ["load_imm r63, #1089", "push r63", "load_imm r63, #1024", "push r63"]
    callee = listing.split("<weigh>:")[1].split("<turn>:")[0]
    assert "load_slot" in callee or "pop" in callee
    assert "push" not in callee


@pytest.mark.parametrize("count", [1, 33, 40])
def test_a_tail_call_may_take_more_or_fewer_arguments_than_its_caller(bytecode: Any, count: int) -> None:
    names = ", ".join([f"%v{index}" for index in range(count)])
    typed = ", ".join([f"%v{index}:Int" for index in range(count)])
    text = f"""
        // last
        fn f1({names}) -> Int {{
            b0({typed}):
                ret %v{count - 1}
        }}
        // pass
        fn f2({", ".join([f"%v{index}" for index in range(36)])}) -> Int {{
            b0({", ".join([f"%v{index}:Int" for index in range(36)])}):
                tail f1({", ".join([f"%v{35 - index % 36}" for index in range(count)])})
        }}
        // entry
        fn f3() -> Int {{
            b0:
                {chr(10).join([f"%v{index}:Int = {index * 7}" for index in range(36)])}
                %v100:Int = Call f2({", ".join([f"%v{index}" for index in range(36)])})
                ret %v100
        }}
    """
    assert bytecode.run(bytecode(text)) == (35 - (count - 1) % 36) * 7


@pytest.mark.parametrize("count", [31, 32, 33, 40])
def test_host_functions_take_arguments_as_calls_do(bytecode: Any, count: int) -> None:
    parameters = tuple([(f"p{index}", Int) for index in range(count)])
    host = HostFunction("test", "weigh", parameters, Int, lambda *words: weigh(list(words)))
    names = ", ".join([f"%v{index}" for index in range(count)])
    constants = "\n".join([f"%v{index}:Int = {index * index}" for index in range(count)])
    body = f"{constants}\n%v100:Int = Sys test.weigh({names})\n%v101:Int = Sys test.weigh({names})"
    text = f"// entry\nfn f1() -> Int {{\nb0:\n{body}\n%v102:Int = ISub %v100, %v101\nret %v102\n}}"
    ir = bytecode.parse(text, {"test": Package("test", "", [host])})
    assert bytecode.run(bytecode.emit(ir)) == 0
    ir = bytecode.parse(text.replace("ret %v102", "ret %v101"), {"test": Package("test", "", [host])})
    assert bytecode.run(bytecode.emit(ir)) == weigh([index * index for index in range(count)])


def test_deep_recursion_with_arguments_on_the_spill_stack_balances(bytecode: Any) -> None:
    rest = ", ".join([f"%v{index}" for index in range(1, 35)])
    typed = ", ".join([f"%v{index}:Int" for index in range(35)])
    text = f"""
        // count
        fn f1(%v0, {rest}) -> Int {{
            b0({typed}):
                br_imm IEq %v0, 0, b1, b2
            b1:
                ret %v34
            b2:
                %v40:Int = ISub %v0, 1
                %v41:Int = Call f1(%v40, {rest})
                %v42:Int = IAdd %v41, %v33
                ret %v42
        }}
        // entry
        fn f2() -> Int {{
            b0:
                {chr(10).join([f"%v{index}:Int = {index}" for index in range(35)])}
                %v50:Int = 100
                %v51:Int = Call f1(%v50, {rest})
                ret %v51
        }}
    """
    assert bytecode.run(bytecode(text)) == 34 + 100 * 33
