"""What the tests of the type checker share: a few packages, and a program's types and mistakes as text."""

from __future__ import annotations

from allocators import Allocator, BaseAllocator, Block, BumpAlloc, Layout, PageAlloc
from allocators.errors import AllocError
from garden.diagnostics import Diagnostic
from garden.host import HostFunction, Package
from garden.source import Source
from garden.syntax.parser import Parser
from garden.types.checker import Checker
from garden.types.printer import print_types
from garden.types.program import CheckedProgram
from garden.types.types import Array, Bool, Double, Int, Option, Record, Slot, Str, Type, Void


def nothing(*arguments: object) -> None:
    """What the packages' functions do: they are never called."""


def function(package: str, name: str, *parameters: tuple[str, Type], result: Type = Void) -> HostFunction:
    return HostFunction(package, name, parameters, result, nothing, pure=True, words=True, doc=name)


_T = Slot("T")
_U = Slot("U")
_PACKAGES = (
    Package(
        "io",
        "Output.",
        [
            function("io", "println", ("text", Str)),
            function("io", "println", ("number", Int)),
            function("io", "println", ("number", Double)),
            function("io", "print", ("text", Str)),
        ],
    ),
    Package(
        "str",
        "Text.",
        [
            function("str", "concat", ("left", Str), ("right", Str), result=Str),
            function("str", "from", ("number", Int), result=Str),
            function("str", "from", ("number", Double), result=Str),
        ],
    ),
    Package(
        "math",
        "Numbers.",
        [
            function("math", "abs", ("number", Int), result=Int),
            function("math", "abs", ("number", Double), result=Double),
        ],
    ),
    Package(
        "opt",
        "Options.",
        [
            function("opt", "some", ("value", _T), result=Option(_T)),
            function("opt", "none", result=Option(_T)),
            function("opt", "is_some", ("option", Option(_T)), result=Bool),
            function("opt", "pair", ("first", _T), ("second", _U), result=Record(first=_T, second=Array(_U))),
            function("opt", "same", ("first", _T), ("second", _T), result=_T),
        ],
    ),
    Package("unsafe/runtime", "The machine.", [function("unsafe/runtime", "used", result=Int)]),
    Package("vendor/runtime", "Another.", [function("vendor/runtime", "used", result=Int)]),
)
PACKAGES = {package.path: package for package in _PACKAGES}


class Checked:
    """A checked program that is closed already: its printed forms, its mistakes, and what its calls call."""

    def __init__(self, program: CheckedProgram[Allocator], diagnostics: list[Diagnostic]) -> None:
        self.types = print_types(program)
        self.nodes = print_types(program, nodes=True)
        self.diagnostics = diagnostics
        self.codes = [diagnostic.code for diagnostic in diagnostics]
        self.hosts = list(program.hosts)
        source = program.ast.source
        self.rendered = [diagnostic.render(source) for diagnostic in diagnostics]
        #: The text under each mistake.
        self.marked = [
            source.text[diagnostic.start : diagnostic.start + diagnostic.length].decode() for diagnostic in diagnostics
        ]


def check_text(text: str) -> Checked:
    with BumpAlloc(PageAlloc()) as allocator, BumpAlloc(PageAlloc()) as scratch:
        diagnostics: list[Diagnostic] = []
        ast = Parser(allocator, scratch, diagnostics).parse(Source("test", text.encode()))
        program = Checker(allocator, scratch, diagnostics, PACKAGES).check(ast)
        checked = Checked(program, diagnostics)
        program.close()
        ast.close()
        return checked


class CountingAlloc(BaseAllocator):
    """Counts live blocks, and serves a number of requests before it fails."""

    def __init__(self, parent: BaseAllocator, requests: int = 1 << 62) -> None:
        self.parent = parent
        self.requests = requests
        self.live = 0

    def allocate(self, layout: Layout) -> Block:
        if self.requests == 0:
            raise AllocError("CountingAlloc", layout, reason="as the test wants")
        self.requests -= 1
        block = self.parent.allocate(layout)
        self.live += 1
        return block

    def deallocate(self, block: Block, layout: Layout) -> None:
        self.parent.deallocate(block, layout)
        self.live -= 1
