"""The stages in a row, each with its allocator.

`StageAllocators` holds one allocator a stage and one for scratch; `Compilation` takes a source through the stages as
far as one asks, and owns what they make. Scratch is reset after each stage, where its allocator can be.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from allocators import Allocator, Arena, MisuseError, PageAlloc, Resettable
from allocators._mypyc import mypyc_attr
from allocators.base import close_parent
from allocators.closing import Closing
from garden.diagnostics import Diagnostic
from garden.errors import CompileError
from garden.host import Package
from garden.ir.ir import Ir
from garden.source import Source
from garden.syntax.ast import Ast
from garden.syntax.parser import Parser
from garden.types.checker import Checker
from garden.types.program import CheckedProgram

if TYPE_CHECKING:
    from garden.bytecode.code import Code

T = TypeVar("T")

#: The stages, in order. `optimise` works on what `lower` made, and keeps nothing itself; `native` is machine code.
STAGES: Final = ("parse", "check", "lower", "optimise", "emit", "native", "run")
#: The stage whose allocator must be one of `Pages`.
_PAGES: Final = "native"
SCRATCH: Final = "scratch"
#: The levels of optimisation: none, and all passes.
LEVELS: Final = (0, 1)


@mypyc_attr(native_class=True)
class StageAllocators(Closing):
    """One allocator per stage, and one for scratch that all stages share.

    A stage without one gets an `Arena` over its own pages, `native` plain pages, which `close` closes; what is given
    stays the caller's.
    """

    __slots__ = ("_allocators", "_owned")

    def __init__(self, given: Mapping[str, Allocator] | None = None) -> None:
        self._allocators: Final[dict[str, Allocator]] = {}
        self._owned: Final[list[Allocator]] = []
        if given is None:
            given = {}
        elif not isinstance(given, Mapping):
            raise TypeError(f"want a mapping from stages to allocators, got {given!r}")
        for name in given:
            if name not in STAGES and name != SCRATCH:
                raise ValueError(f"unknown stage {name!r}, want one of {', '.join([*STAGES, SCRATCH])}")
        for name in (*STAGES, SCRATCH):
            allocator = given.get(name)
            if allocator is not None and not isinstance(allocator, Allocator):
                raise TypeError(f"want an allocator for the stage {name}, got {allocator!r}")
            if allocator is None:
                allocator = PageAlloc() if name == _PAGES else Arena(PageAlloc())
                self._owned.append(allocator)
            self._allocators[name] = allocator

    @staticmethod
    def of_specs(specs: Sequence[str]) -> StageAllocators:
        """Allocators from texts such as "parse=limit(8M, arena(page))", all owned; the last one for a stage counts.

        Raises ValueError for a wrong text.
        """
        given: dict[str, Allocator] = {}
        if specs:
            from allocators.spec import parse_spec
        for spec in specs:
            stage, equals, allocator = spec.partition("=")
            if not equals:
                raise ValueError(f"want STAGE=SPEC, such as parse=arena(page), not {spec!r}")
            given[stage.strip()] = parse_spec(allocator)
        allocators = StageAllocators(given)
        allocators._owned.extend(given.values())
        return allocators

    def metered(self) -> StageAllocators:
        """The same allocators, each in a `MetricAllocator`. Closing either closes what the first one owns."""
        from allocators import MetricAllocator

        metered = StageAllocators({name: MetricAllocator(inner) for name, inner in self._allocators.items()})
        metered._owned.extend(self._owned)
        return metered

    def __getitem__(self, stage: str) -> Allocator:
        """The allocator of a stage, or of `scratch`; KeyError for other names."""
        return self._allocators[stage]

    def items(self) -> list[tuple[str, Allocator]]:
        """Stage names and allocators, in the order of the stages, scratch last."""
        return list(self._allocators.items())

    def close(self) -> None:
        """Give back all memory of the allocators that are owned; closing twice is harmless."""
        for allocator in self._owned:
            close_parent(allocator)


@mypyc_attr(native_class=True)
class Compilation(Closing):
    """One program on its way through the stages.

    Each method runs its stage, and those before it that have not run yet, once; asking again gives the same product.
    A stage that needs a valid program raises `CompileError` where there are diagnostics. A stage that runs out of
    memory raises `AllocError`, keeps nothing, and can be tried again; `stage` says which it was. Bytecode uses at
    most `registers` registers, or all of them.
    """

    __slots__ = (
        "_ast",
        "_checked",
        "_code",
        "_ir",
        "_optimised",
        "allocators",
        "diagnostics",
        "level",
        "packages",
        "registers",
        "source",
        "stage",
    )

    def __init__(
        self,
        source: Source,
        allocators: StageAllocators,
        packages: Mapping[str, Package],
        *,
        level: int = 1,
        registers: int | None = None,
    ) -> None:
        if level not in LEVELS:
            raise ValueError("the levels of optimisation are 0 and 1")
        self.source: Final = source
        self.allocators: Final = allocators
        self.registers: Final = registers
        self.diagnostics: Final[list[Diagnostic]] = []
        self.stage = STAGES[0]
        self.packages: Final = packages
        self.level: Final = level
        self._ast: Ast[Allocator] | None = None
        self._checked: CheckedProgram[Allocator] | None = None
        self._ir: Ir[Allocator] | None = None
        self._optimised = False
        self._code: Code[Allocator] | None = None

    def _run(self, stage: str, make: Callable[[Allocator, Allocator], T]) -> T:
        """Run one stage; where it fails, what it reported is forgotten, so that it can be tried again."""
        self.stage = stage
        reported = len(self.diagnostics)
        scratch = self.allocators[SCRATCH]
        try:
            return make(self.allocators[stage], scratch)
        except BaseException:
            del self.diagnostics[reported:]
            raise
        finally:
            if isinstance(scratch, Resettable):
                try:
                    scratch.reset()
                except MisuseError:
                    # An adaptor over an allocator that cannot be reset; the stage has freed its blocks anyway.
                    pass

    def in_source_order(self) -> list[Diagnostic]:
        """The diagnostics of all stages so far, by their place in the source."""
        return sorted(self.diagnostics, key=_start_of)

    def require_valid(self) -> None:
        """Raise `CompileError` where there are diagnostics."""
        if self.diagnostics:
            raise CompileError(self.source, self.in_source_order())

    def parse(self) -> Ast[Allocator]:
        """The AST; syntax errors go to `diagnostics`, and what could be parsed is there all the same."""
        if self._ast is None:
            self._ast = self._run("parse", self._parse)
        return self._ast

    def _parse(self, allocator: Allocator, scratch: Allocator) -> Ast[Allocator]:
        return Parser(allocator, scratch, self.diagnostics).parse(self.source)

    def check(self) -> CheckedProgram[Allocator]:
        """The checked program; type errors go to `diagnostics`. Also after syntax errors, for what was parsed."""
        if self._checked is None:
            self.parse()
            self._checked = self._run("check", self._check)
        return self._checked

    def _check(self, allocator: Allocator, scratch: Allocator) -> CheckedProgram[Allocator]:
        return Checker(allocator, scratch, self.diagnostics, self.packages).check(self.parse())

    def lower(self) -> Ir[Allocator]:
        """The IR as lowered. Raises `CompileError` where the program is not valid."""
        if self._ir is None:
            self.check()
            self.require_valid()
            self._ir = self._run("lower", self._lower)
        self.require_valid()
        return self._ir

    def _lower(self, allocator: Allocator, scratch: Allocator) -> Ir[Allocator]:
        from garden.ir.lower import Lowerer

        return Lowerer(allocator, scratch, self.diagnostics).lower(self.check())

    def optimise(self, on_pass: Callable[[str, Ir[Allocator]], None] | None = None) -> Ir[Allocator]:
        """The IR after the passes of the optimisation level; `on_pass` sees it after each."""
        ir = self.lower()
        if not self._optimised and self.level > 0:
            from garden.ir.passes import optimise

            try:
                self._run("optimise", lambda _allocator, scratch: optimise(ir, scratch, on_pass=on_pass))
            except BaseException:
                # A pass may have stopped half way.
                self._close_ir()
                raise
        self._optimised = True
        return ir

    def emit(self) -> Code[Allocator]:
        """The bytecode. The IR is not needed any more, and is freed."""
        if self._code is None:
            self.optimise()
            self._code = self._run("emit", self._emit)
            self._close_ir()
        return self._code

    def _emit(self, allocator: Allocator, scratch: Allocator) -> Code[Allocator]:
        from garden.bytecode.emit import Emitter
        from garden.bytecode.ops import REGISTERS

        registers = REGISTERS if self.registers is None else self.registers
        return Emitter(allocator, scratch, optimise=self.level > 0, registers=registers).emit(self.optimise())

    def generate(self, make: Callable[[Ir[Allocator], Allocator], T]) -> T:
        """What `make` makes of the optimised IR, with scratch memory, as the stage `native`.

        The IR is not needed any more, and is freed.
        """
        ir = self.optimise()
        product = self._run("native", lambda _allocator, scratch: make(ir, scratch))
        self._close_ir()
        return product

    def _close_ir(self) -> None:
        if self._ir is not None:
            self._ir.close()
            self._ir = None
        self._optimised = False

    def close(self) -> None:
        """Give back everything that the stages made; closing twice is harmless."""
        if self._code is not None:
            self._code.close()
            self._code = None
        self._close_ir()
        if self._checked is not None:
            self._checked.close()
            self._checked = None
        if self._ast is not None:
            self._ast.close()
            self._ast = None


def _start_of(diagnostic: Diagnostic) -> int:
    return diagnostic.start
