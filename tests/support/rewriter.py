"""What the tests of the passes share: IR text in, IR text out, verified, with the scratch memory given back."""

from __future__ import annotations

from collections.abc import Callable

from allocators import Allocator, Arena, MetricAllocator, PageAlloc
from garden.errors import Trap
from garden.host import HostFunction, Package, missing
from garden.ir.ir import Ir
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.passes import Pass, optimise
from garden.ir.passes.counts import Counts
from garden.ir.printer import print_ir
from garden.ir.verifier import verify
from garden.types.types import Bool, Double, Int, Str, Type, Void


def _refuse_seven(number: int) -> int:
    if number == 7:
        raise Trap("T0006", "not seven")
    return number * 2


def _nothing(number: int) -> None:
    return None


def _fail(number: int) -> int:
    raise ValueError(number)


def _function(
    name: str, parameters: tuple[Type, ...], result: Type, implementation: Callable[..., object], *, pure: bool = True
) -> HostFunction:
    named = tuple((f"p{index}", type) for index, type in enumerate(parameters))
    return HostFunction("host", name, named, result, implementation, pure=pure)


HOST = Package(
    "host",
    "Functions of every kind.",
    [
        _function("twice", (Int,), Int, _refuse_seven),
        _function("twice", (Double,), Double, lambda number: number * 2.0),
        _function("concat", (Str, Str), Str, lambda left, right: left + right),
        _function("repeat", (Str, Int), Str, lambda text, count: text * count),
        _function("not", (Bool,), Bool, lambda truth: not truth),
        _function("middle", (Int, Int, Int), Int, lambda x, y, z: sorted([x, y, z])[1]),
        _function("nan", (), Double, lambda: float("nan")),
        _function("big", (), Int, lambda: 1 << 63),
        _function("surrogate", (), Str, lambda: "\ud800"),
        _function("fail", (Int,), Int, _fail),
        _function("declared", (Int,), Int, missing),
        _function("log", (Int,), Void, _nothing, pure=False),
        _function("next", (Int,), Int, lambda number: number + 1, pure=False),
    ],
)
PACKAGES = {"host": HOST}

ENTRY = "fn f{}() {{\nb0:\nret\n}}\n"


def lines(text: str) -> str:
    """The lines of IR text without indentation, empty lines and comments."""
    stripped = [line.strip() for line in text.splitlines()]
    return "\n".join([line for line in stripped if line and not line.startswith("//")])


def with_entry(text: str) -> str:
    """A program whose last function is an empty `entry`."""
    return f"{text}\n{ENTRY.format(text.count('fn f') + 1)}"


def _no_pass(ir: Ir[Allocator], counts: Counts) -> int:
    return 0


def pipeline(ir: Ir[Allocator], counts: Counts) -> int:
    """All passes as one, with counts of their own."""
    counts.close()
    return optimise(ir, counts.scratch)


def check_counts(ir: Ir[Allocator], counts: Counts) -> None:
    """Check that what a pass has left in the counts is what counting anew gives."""
    anew = Counts(ir, counts.scratch)
    # Nobody asks for item 0, values that are missing.
    values, blocks = ir.value_count, ir.block_count
    assert [counts.uses()[row] for row in range(1, values)] == [anew.uses()[row] for row in range(1, values)]
    edges, edges_anew = counts.predecessors(), anew.predecessors()
    assert [edges[block] for block in range(blocks)] == [edges_anew[block] for block in range(blocks)]
    anew.close()


class Rewriter:
    """Runs one pass over a program."""

    def __init__(self, memory: MetricAllocator[Arena[PageAlloc]]) -> None:
        self.memory = memory
        self.count = 0

    def __call__(self, run: Pass, text: str) -> str:
        """The printed functions after a pass; `count` is how many rewrites it has reported."""
        ir: Ir[Allocator] = parse_ir(with_entry(text), self.memory, PACKAGES)
        try:
            assert verify(ir, self.memory) == []
            scratch = MetricAllocator(Arena(PageAlloc()))
            counts = Counts(ir, scratch)
            # So that the pass has to keep them right.
            counts.uses()
            counts.predecessors()
            self.count = run(ir, counts)
            check_counts(ir, counts)
            counts.close()
            assert scratch.live_blocks == 0
            assert verify(ir, self.memory) == []
            printed = lines(print_ir(ir))
            return printed.removesuffix(lines(ENTRY.format(ir.function_count - 1))).strip()
        finally:
            close_parsed(ir)

    def keeps(self, run: Pass, text: str) -> bool:
        """Whether a pass leaves a program as it is, and says so."""
        before = self(_no_pass, text)
        return self(run, text) == before and self.count == 0
