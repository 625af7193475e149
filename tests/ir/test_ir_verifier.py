"""The verifier finds every way in which IR can be ill-formed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from allocators import Allocator, Arena, MetricAllocator, PageAlloc
from garden.host import HostFunction, Package
from garden.ir import ir as code
from garden.ir.ir import Ir
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.verifier import MAX_MESSAGES, verify
from garden.types.types import BOOL, DOUBLE, INT, STR, Int, Str

PACKAGES = {"host": Package("host", "One function.", [HostFunction("host", "of", (("x", Int), ("y", Str)), Int, len)])}
PAIR = "Record<x: Int y: Int>"

Change = Callable[[Ir[Allocator]], object]


@pytest.fixture
def memory() -> Iterator[MetricAllocator[Arena[PageAlloc]]]:
    allocator = MetricAllocator(Arena(PageAlloc()))
    yield allocator
    assert allocator.live_blocks == 0


def messages(memory: MetricAllocator[Arena[PageAlloc]], text: str, change: Change | None = None) -> list[str]:
    """What the verifier says of a program, after a change to it; without the names of functions and blocks."""
    ir = parse_ir(text, memory, PACKAGES)
    if change is not None:
        assert verify(ir, memory) == []
        change(ir)
    found = verify(ir, memory)
    close_parsed(ir)
    return [message.partition(": ")[2] for message in found]


def body(*lines: str, head: str = "fn f1(%v0, %v1)", result: str = "") -> str:
    """A function of an Int and a Bool with this body, and an `entry`."""
    text = "\n".join(lines)
    arrow = f" -> {result}" if result else ""
    return f"{head}{arrow} {{\nb0(%v0:Int, %v1:Bool):\n{text}\n}}\nfn f2() {{\nb0:\nret\n}}"


DIAMOND = body(
    "br %v1, b1, b2",
    "b1:",
    "%v2:Int = IAdd %v0, 1",
    "jmp b3(%v2)",
    "b2:",
    "jmp b3(%v0)",
    "b3(%v3:Int):",
    "ret %v3",
    result="Int",
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("%v2:Int = IAdd %v0, %v1", "operand 2 is a Bool"),
        ("%v2:Bool = IAdd %v0, %v0", "its result is a Bool"),
        ("%v2:Bool = IEq %v0, %v1", "its operands differ in type"),
        ("%v2:Double = DAdd %v0, %v0", "operand 1 is a Int"),
        ("%v2:Double = Cast<Int->Double> %v1", "operand 2 is a Bool"),
        ("%v2:Int = IAdd %v0, 2147483648", "imm cannot be 2147483648"),
        ("%v2:Int = IAdd %v1, 1", "operand 2 is a Bool"),
        ("%v2:Int = Load %v0+0", "operand 1 is a Int"),
        (f"%v2:{PAIR} = Alloc(size=12,align=8)", "imm cannot be 12"),
        ("%v2:Int = Alloc(size=16,align=8)", "its result is a Int"),
        ("%v2:Int = Call f1(%v0, %v1)", "its result is a Int"),
        ("Call f1(%v1, %v0)", "operand 2 is a Bool"),
        ("Call f1(%v0)", "1 arguments for 2 parameters"),
        ("Call f3()", "there is no function 3"),
        ("%v2:Double = Lookup %v1 [], 1.0", "operand 2 is a Bool"),
        ("%v2:Int = Lookup %v0 [1 -> 1, 1 -> 2], 3", "a key stands there twice"),
        ("%v2:Int = IAdd %v3, 1\n%v3:Int = 1", "operand 4 does not dominate it"),
        ("%v2:Int = IAdd %v2, 1", "operand 3 does not dominate it"),
    ],
)
def test_an_instruction_with_wrong_operands(memory: MetricAllocator[Arena[PageAlloc]], line: str, message: str) -> None:
    assert message in messages(memory, body(line, "ret"))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("ret %v0", "a value where none is due"),
        ("br %v0, b1, b1", "operand 1 is a Int"),
        ("br_cmp IAdd %v0, %v0, b1, b1", "opcode 10 is no comparison"),
        ("br_cmp ILt %v0, %v1, b1, b1", "operand 2 is a Bool"),
        ("br_imm IAdd %v0, 1, b1, b1", "opcode 30 is no comparison with an immediate"),
        ("br_imm IEq %v1, 1, b1, b1", "operand 2 is a Bool"),
        ("switch %v1\n_ -> b1", "operand 2 is a Bool"),
        ("jmp b1(%v0)", "an edge has 1 arguments for 0 parameters"),
        ("jmp b2", "an edge has 0 arguments for 1 parameters"),
        ("jmp b2(%v1)", "operand 2 is a Bool"),
        ("jmp b0(%v0, %v1)", "an edge leads to the first block"),
        ("tail f1(%v1, %v1)", "operand 2 is a Bool"),
    ],
)
def test_a_terminator_with_wrong_operands(memory: MetricAllocator[Arena[PageAlloc]], end: str, message: str) -> None:
    assert message in messages(memory, body(end, "b1:", "ret", "b2(%v9:Int):", "ret"))


def test_a_result_of_the_wrong_type(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    assert messages(memory, body("ret %v1", result="Int")) == ["operand 2 is a Bool"]
    assert messages(memory, body("ret", result="Int")) == ["operand 0 is defined nowhere"]
    assert messages(memory, body("tail f2()", result="Int")) == ["gives a Void where a Int is due"]


def test_a_host_call_with_wrong_types(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    text = body("%v2:Str = `a`", "%v3:Int = Sys host.of(%v0, %v2)", "ret")

    def swap(ir: Ir[Allocator]) -> None:
        words = ir.list_at(ir.b[4])
        words[0], words[1] = words[1], words[0]

    def unknown(ir: Ir[Allocator]) -> None:
        ir.a[4] = 1

    def double(ir: Ir[Allocator]) -> None:
        ir.type[4] = ir.type[3]

    assert messages(memory, text, swap) == ["argument 3 is a Str", "argument 1 is a Int"]
    assert messages(memory, text, unknown) == ["there is no host function 1"]
    assert messages(memory, text, double) == ["its result is a Str"]


def test_a_value_of_one_arm_does_not_reach_the_other_nor_the_join(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    other = DIAMOND.replace("jmp b3(%v0)", "jmp b3(%v2)")
    join = DIAMOND.replace("ret %v3", "ret %v2")
    assert messages(memory, DIAMOND) == []
    assert messages(memory, other) == ["operand 4 does not dominate it"]
    assert messages(memory, join) == ["operand 4 does not dominate it"]


def test_values_reach_through_long_chains(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    links = []
    for number in range(1, 300):
        links += [f"br_imm IEq %v0, {number}, b{2 * number}, b{2 * number + 1}", f"b{2 * number}:", "jmp b1"]
        links += [f"b{2 * number + 1}:"]
    assert messages(memory, body(*links, "jmp b1", "b1:", "%v2:Int = INeg %v0", "jmp b600", "b600:", "ret")) == []


@pytest.mark.parametrize(
    ("blocks", "count"),
    [
        (("jmp b1", "b1:", "jmp b1"), 1),
        (("jmp b1", "b1:", "br %v1, b2, b3", "b2:", "jmp b1", "b3:", "ret"), 3),
        (("ret", "b1:", "jmp b2", "b2:", "jmp b1"), 2),
        (("jmp b3", "b1:", "jmp b2", "b2:", "jmp b3", "b3:", "br %v1, b1, b4", "b4:", "ret"), 4),
        (("switch %v0\n1 -> b1\n_ -> b2", "b1:", "jmp b2", "b2:", "jmp b1"), 2),
    ],
)
def test_no_block_leads_back_to_itself(
    memory: MetricAllocator[Arena[PageAlloc]], blocks: tuple[str, ...], count: int
) -> None:
    assert messages(memory, body(*blocks)) == ["is on a cycle, or behind one"] * count


# One value of each type: what an operand of each kind may be, and where the types stand.
TYPED = f"""fn f1(%v0, %v1, %v2, %v3, %v4) {{
    b0(%v0:Int, %v1:Bool, %v2:Double, %v3:Str, %v4:{PAIR}):
        ret
    b1:
        ret
}}
fn f2() {{
    b0:
        ret
}}"""
VALUES = {
    BOOL: {2},
    INT: {1},
    DOUBLE: {3},
    STR: {4},
    code.ANY: {1, 2, 3, 4, 5},
    code.SAME: {1, 2},
    code.MEMORY: {5},
    code.KEY: {1, 4},
    code.NUMBER: {1, 2, 3},
    code.CONSTANT: {1, 2, 3, 4},
    0: {0},
}
BY_TYPE = [op for op, entry in code.OPS.items() if op != code.PARAM and entry.gives != code.CALLED and op != code.TAIL]


@pytest.mark.parametrize("opcode", BY_TYPE, ids=lambda opcode: f"{opcode}-{code.OPS[opcode].name}")
def test_the_verifier_holds_every_opcode_to_its_row_of_the_table(
    memory: MetricAllocator[Arena[PageAlloc]], opcode: int
) -> None:
    entry = code.OPS[opcode]
    right = (entry.takes_a, entry.takes_b)
    if entry.imm == code.COMPARISON:
        right = (DOUBLE, DOUBLE)
    elif entry.a == code.MAYBE_VALUE:
        right = (0, 0)

    def complaints(a: int, b: int, result: int) -> list[str]:
        """What the verifier says of the instruction with these values as operands, and the type of one as result."""
        ir = parse_ir(TYPED, memory, PACKAGES)
        block = ir.function_first[1]
        end = ir.block_first[block]
        other = ir.block_next[block]
        edges = [ir.add_list([other]) for used in (entry.c, entry.d) if used == code.EDGE]
        if entry.b == code.CASES:
            b = ir.add_list([ir.add_list([other]) if opcode == code.SWITCH else 0])
        elif entry.b == code.COMPARE:
            b = code.IEQ_IMM
        imm = code.DLT if entry.imm == code.COMPARISON else 0
        type = ir.type[result]
        inst = ir.add(opcode, type, 0, a=a, b=b, imm=imm, **dict(zip("cd", edges, strict=False)))
        if opcode < code.FIRST_TERMINATOR:
            ir.next[inst] = end
        else:
            ir.block_last[block] = inst
        ir.block_first[block] = inst
        found = verify(ir, memory)
        close_parsed(ir)
        return found

    for a in VALUES[right[0]]:
        for b in {a} if right[0] == code.SAME else VALUES[right[1]]:
            for result in range(6):
                assert (complaints(a, b, result) == []) == (result in VALUES[entry.gives]), (a, b, result)
    a = min(VALUES[right[0]])
    b = min(VALUES[right[1]])
    result = min(VALUES[entry.gives])
    for wrong in set(range(6)) - VALUES[right[0]]:
        assert complaints(wrong, b, result)
    for wrong in set(range(6)) - VALUES[right[1]]:
        assert entry.b in (code.CASES, code.COMPARE) or complaints(a, wrong, result)


def test_every_opcode_says_what_it_does() -> None:
    for entry in code.OPS.values():
        assert entry.doc
        assert not entry.doc.endswith(".")


def test_in_an_unreachable_block_everything_dominates(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    assert messages(memory, body("ret", "b1:", "%v2:Int = INeg %v3", "jmp b2", "b2:", "%v3:Int = 1", "ret")) == []
    text = body("%v2:Int = INeg %v3", "ret", "b1:", "%v3:Int = 1", "ret")
    assert messages(memory, text) == ["operand 5 does not dominate it"]


def _set(column: str, row: int, value: int) -> Change:
    def change(ir: Ir[Allocator]) -> None:
        getattr(ir, column)[row] = value

    return change


# Rows of DIAMOND: parameters 1 and 2; then by block: branch 3 (row 3), add 4 and jump 5, jump 6, parameter 7, ret 8.
# Blocks: 1 to 4, and 5 for `entry`.
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("op", 4, 200), "stands in a block"),
        (_set("op", 4, code.PARAM), "stands in a block"),
        (_set("op", 4, code.RET), "is a terminator before the end of its block"),
        (_set("op", 5, code.NOP), "does not end with a terminator"),
        (_set("next", 5, 4), "stands in two places"),
        (_set("next", 5, 6), "stands in two places"),
        (_set("next", 5, 4000), "is followed by row 4000, which does not exist"),
        (_set("next", 4, 0), "its last instruction is 4, not 5"),
        (_set("c", 4, 1), "column c is not 0"),
        (_set("imm", 5, 8), "imm cannot be 8"),
        (_set("a", 4, 4000), "operand 4000 is defined nowhere"),
        (_set("a", 4, 9), "operand 9 is a value of another function"),
        (_set("block_first", 2, 0), "its last instruction is 0, not 5"),
        (_set("block_function", 3, 0), "stands in the layout of function 1"),
        (_set("block_function", 3, 2), "stands in the layout of function 1"),
        (_set("block_next", 2, 2), "stands in a layout twice"),
        (_set("block_next", 2, 4000), "is followed by block 4000, which does not exist"),
        (_set("block_next", 2, 4), "stands in no layout"),
        (_set("block_params", 4, 4000), "list 4000 is outside the pool"),
        (_set("function_last", 1, 3), "its last block is 4, not 3"),
        (_set("function_first", 1, 0), "has no blocks"),
        (_set("function_parameters", 1, 1), "has not the 1 parameters of its function"),
        (_set("op", 7, code.CONST), "row 7 in its list of parameters is none"),
        (_set("type", 7, 0), "parameter 7 has no type"),
        (_set("c", 5, 4000), "list 4000 is outside the pool"),
        (_set("c", 5, 0), "list 0 cannot have 0 words"),
    ],
)
def test_broken_links_and_columns(memory: MetricAllocator[Arena[PageAlloc]], change: Change, message: str) -> None:
    assert message in messages(memory, DIAMOND, change)


def test_an_edge_to_a_dead_block(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    def kill(ir: Ir[Allocator]) -> None:
        ir.block_function[3] = 0
        ir.block_next[2] = 4

    expected = ["an edge leads to block 3, which is dead or of another function"]
    assert messages(memory, DIAMOND, kill) == expected


def test_a_list_belongs_to_one_instruction(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    def share(ir: Ir[Allocator]) -> None:
        ir.c[6] = ir.c[5]

    found = messages(memory, DIAMOND, share)
    assert len(found) == 1
    assert found[0].endswith("has two owners")


def test_a_list_stays_inside_the_pool(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    def lengthen(ir: Ir[Allocator]) -> None:
        ir.pool.data[ir.c[5]] = 1000

    found = messages(memory, DIAMOND, lengthen)
    assert len(found) == 1
    assert found[0].endswith("cannot have 1000 words")


def test_a_parameter_stands_in_one_list(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    def share(ir: Ir[Allocator]) -> None:
        ir.block_params[3] = ir.add_list([7])

    assert "parameter 7 stands in two lists" in messages(memory, DIAMOND, share)


def test_a_value_of_another_function(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    text = body("ret") + "\nfn f3() {\nb0:\n%v0:Int = 1\n%v1:Int = INeg %v0\nret\n}"

    def swap(ir: Ir[Allocator]) -> None:
        ir.a[ir.next[ir.block_first[ir.function_first[3]]]] = 1

    assert messages(memory, text, swap) == ["operand 1 is a value of another function"]


def test_messages_name_function_block_row_and_opcode(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    ir = parse_ir(DIAMOND, memory)
    ir.imm[4] = 8
    assert verify(ir, memory) == []
    ir.imm[4] = 1 << 40
    assert verify(ir, memory) == [f"function 1 block 2 row 4 IAdd: imm cannot be {1 << 40}"]
    close_parsed(ir)


def test_no_more_is_said_than_a_hundred_messages(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    wrong = [f"%v{index}:Bool = IAdd %v0, %v0" for index in range(2, 200)]
    assert len(messages(memory, body(*wrong, "ret"))) == MAX_MESSAGES
