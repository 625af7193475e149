"""The printed form of the IR, and reading it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from allocators import Allocator, AllocError, Arena, MetricAllocator, PageAlloc
from garden.host import HostFunction, Package
from garden.ir.ir import Ir
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.printer import print_ir
from garden.ir.verifier import verify
from garden.types.types import Double, Int, Slot, Str, Void

if TYPE_CHECKING:
    from tests.ir.conftest import FailingAllocator

T = Slot("T")
PACKAGES = {
    "unsafe/text": Package(
        "unsafe/text",
        "Some functions.",
        [
            HostFunction("unsafe/text", "size", (("x", Int),), Int, len),
            HostFunction("unsafe/text", "size", (("x", Str),), Int, len),
            HostFunction("unsafe/text", "show", (("x", T),), T, str),
            HostFunction("unsafe/text", "put", (("x", Double), ("y", Str)), Void, print),
        ],
    )
}

#: One of everything.
PROGRAM = """\
// every_value
fn f1(%v0, %v1) -> Int {
	b0(%v0:Int, %v1:Record<x: Int p: Array<Str> q: Option<Foreign<Window>>>):
		%v2:Int = IMul %v0, %v0
		%v3:Int = IAdd %v0, -3
		%v4:Bool = IGt %v3, 2147483647
		%v5:Double = nan:0xfff8000000000000
		%v6:Double = nan
		%v7:Double = -inf
		%v8:Double = 1e-300
		%v9:Double = -0.0
		%v10:Str = `a\\\\ \\` \\n\\t\\r\\u{0}\\u{85} é -> %v1`
		%v11:Str = ``
		%v12:Int = Sys unsafe/text.size(%v2)
		%v13:Int = Sys unsafe/text.size(%v10)
		%v14:Bool = Sys unsafe/text.show(%v4)
		Sys unsafe/text.put(%v5, %v10)
		%v15:Int = Load %v1+0
		%v16:Record<x: Int p: Array<Str> q: Option<Foreign<Window>>> = Alloc(size=24,align=8)
		Store %v16+8, %v15
		%v17:Record<x: Int p: Array<Str> q: Option<Foreign<Window>>> = AddrOf %v16+0
		Copy %v17, %v16, 24
		%v18:Str = Lookup %v0 [1 -> `x`, -20 -> `y`], `z`
		%v19:Bool = Lookup %v18 [`x` -> true, `[` -> false], true
		%v20:Double = Cast<Int->Double> %v2
		%v21:Int = Cast<Double->Int> %v20
		%v22:Bool = Cast<Int->Bool> %v21
		%v23:Int = Cast<Bool->Int> %v22
		%v24:Int = INeg %v23
		%v25:Double = DNeg %v20
		%v26:Int = Undefined
		%v27:Int = -9223372036854775808
		%v28:Bool = true
		%v29:Bool = ILe %v0, %v2
		%v30:Bool = SNe %v10, %v11
		Noop
		br %v28, b1, b5(%v2, %v28)
	b1:
		switch %v0
			1   -> b5(%v3, %v4)
			-20 -> b2
			_   -> b3
	b2:
		switch %v10
			`a b` -> b3
			_     -> b4
	b3:
		br_imm IGt %v2, 7, b4, b5(%v2, %v4)
	b4:
		br_cmp DLe %v6, %v7, b5(%v3, %v4), b6
	b5(%v31:Int, %v32:Bool):
		ret %v31
	b6:
		tail f1(%v0, %v1)
}

// nothing
fn f2() {
	b0:
		jmp b1
	b1:
		ret
}

// entry
fn f3() {
	b0:
		Call f2()
		ret
}
"""


@pytest.fixture
def memory() -> Iterator[MetricAllocator[Arena[PageAlloc]]]:
    allocator = MetricAllocator(Arena(PageAlloc()))
    yield allocator
    assert allocator.live_blocks == 0


def test_the_text_of_everything_reads_back(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    ir = parse_ir(PROGRAM, memory, PACKAGES)
    assert verify(ir, memory) == []
    assert print_ir(ir) == PROGRAM
    close_parsed(ir)


@pytest.mark.parametrize("type", ["Record<>", "Array<Record<>>", "Option<" * 400 + "Foreign<File>" + ">" * 400])
def test_any_type_reads_back(memory: MetricAllocator[Arena[PageAlloc]], type: str) -> None:
    text = f"fn f1(%v0) {{\nb0(%v0:{type}):\nret\n}}\n// entry\nfn f2() {{\nb0:\nret\n}}\n"
    ir = parse_ir(text, memory)
    assert f"%v0:{type})" in print_ir(ir)
    close_parsed(ir)


def test_names_of_values_and_blocks_do_not_matter(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    text = "fn f1(%v7) -> Int {\nb9(%v7:Int):\njmp b4\nb2:\nret %v1\nb4:\n%v1:Int = INeg %v7\njmp b2\n}"
    ir = parse_ir(text, memory)
    expected = "fn f1(%v0) -> Int {\nb0(%v0:Int):\njmp b2\nb1:\nret %v1\nb2:\n%v1:Int = INeg %v0\njmp b1\n}"
    assert [line.strip() for line in print_ir(ir).strip().split("\n")[1:]] == expected.split("\n")
    close_parsed(ir)


def test_an_instruction_has_the_position_of_its_line(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    text = "// é\nfn f1() -> Int {\n\tb0:\n\t\t%v0:Int = 5\n\t\tret %v0\n}\n"
    ir = parse_ir(text, memory)
    constant = ir.block_first[ir.function_first[1]]
    assert text.encode()[ir.pos[constant] :].startswith(b"%v0:Int = 5")
    assert text.encode()[ir.pos[ir.next[constant]] :].startswith(b"ret %v0")
    close_parsed(ir)


def test_the_checked_program_has_the_functions_but_entry(memory: MetricAllocator[Arena[PageAlloc]]) -> None:
    ir = parse_ir(PROGRAM, memory, PACKAGES)
    checked = ir.checked
    assert len(checked.functions) == 3
    assert [checked.ast.symbols.lookup(checked.functions[row][3]) for row in (1, 2)] == [b"every_value", b"nothing"]
    assert checked.functions[1][1] == ir.function_result[1]
    assert [host.path for host in checked.hosts] == [
        "unsafe/text.size",
        "unsafe/text.size",
        "unsafe/text.show",
        "unsafe/text.put",
    ]
    close_parsed(ir)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("b0:\n%v0:Int = Frob 1\nret", "line 3: unknown opcode 'Frob'"),
        ("b0:\nret %v0", "line 3: value %v0 is not defined"),
        ("b0:\njmp b1", "line 3: block b1 is not defined"),
        ("b0:\n%v0:Int = 1\n%v0:Int = 2\nret", "line 4: value %v0 is defined twice"),
        ("b0:\nret\nb0:\nret", "line 4: block b0 is defined twice"),
        ("ret", "line 2: an instruction outside a block"),
        ("", "line 1: a function without blocks"),
        ("b0:\nret\n1 -> b0", "line 4: an arm outside a switch"),
        ("b0:\n_ -> b0", "line 3: an arm outside a switch"),
        ("b0:\n%v0:Int = 1\nswitch %v0\n1 -> b0", "line 4: a switch without a default"),
        ("b0:\n%v0:Int = 1\nswitch %v0\n_ -> b0\n1 -> b0", "line 6: an arm behind the default"),
        ("b0:\n%v0:Int = 1 2\nret", "line 3: want the end of the line, found '2'"),
        ("b0:\n%v0:Int = 1.5\nret", "line 3: want an integer, found '1.5'"),
        ("b0:\n%v0:Int = @\nret", "line 3: cannot read '@'"),
        ("b0:\n%v0:Number = 1\nret", "line 3: unknown type 'Number'"),
        ("b0:\n%v0:Array<Int> = 1\nret", "line 3: no constants have the type Array<Int>"),
        ("b0:\n%v0:Double = 1.0\n%v1:Double = DAdd %v0, 1\nret", "line 4: want a value, found '1'"),
        ("b0:\n%v0:Int = 1\n%v1:Bool = IGt %v0, %v0\nret", "line 4: IGt takes an integer on the right"),
        ("b0:\n%v0:Int = 1\nbr_imm Load %v0, 1, b0, b0", "line 4: 'Load' is no comparison"),
        ("b0:\n%v0:Int = Sys io.put()\nret", "line 3: unknown package 'io'"),
        ("b0:\n%v0:Int = Sys unsafe/text.size()\nret", "line 3: no function unsafe/text.size takes these arguments"),
        ("b0:\n%v0:Int = Call g1()\nret", "line 3: want f and a number, found 'g1'"),
        ("b0(%v0:Int):\nret", "line 1: the parameters are not those of the first block"),
        ("b0:\n%v0:" + "Array<Record<x: " * 2000 + " = 1\nret", "line 3: want a word, found '='"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line(
    memory: MetricAllocator[Arena[PageAlloc]], body: str, message: str
) -> None:
    with pytest.raises(ValueError, match="line ") as raised:
        parse_ir(f"fn f1() {{\n{body}\n}}", memory, PACKAGES)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fn f2() {\nb0:\nret\n}", "line 1: function f2 where f1 is due"),
        ("fn f1() {\nb0:\nret\n", "line 4: the last function has no end"),
        ("func f1() {\nb0:\nret\n}", "line 1: want 'fn', found 'func'"),
    ],
)
def test_functions_come_in_order_and_end(memory: MetricAllocator[Arena[PageAlloc]], text: str, message: str) -> None:
    with pytest.raises(ValueError, match="line ") as raised:
        parse_ir(text, memory)
    assert str(raised.value) == message


def test_parsing_leaves_nothing_behind_whichever_allocation_fails(failing: Callable[[int], FailingAllocator]) -> None:
    fail_at = 0
    while True:
        memory = failing(fail_at)
        try:
            ir: Ir[Allocator] = parse_ir(PROGRAM, memory, PACKAGES)
        except AllocError:
            assert memory.live == 0
            fail_at += 1
        else:
            close_parsed(ir)
            assert memory.live == 0
            break
    assert fail_at > 20


def test_verifying_leaves_nothing_behind_whichever_allocation_fails(
    memory: MetricAllocator[Arena[PageAlloc]], failing: Callable[[int], FailingAllocator]
) -> None:
    ir = parse_ir(PROGRAM, memory, PACKAGES)
    fail_at = 0
    while True:
        scratch = failing(fail_at)
        try:
            assert verify(ir, scratch) == []
        except AllocError:
            assert scratch.live == 0
            fail_at += 1
        else:
            assert scratch.live == 0
            break
    assert fail_at > 10
    close_parsed(ir)
