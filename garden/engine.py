"""Engine: garden inside a Python program.

An `Engine` holds what its programs share: packages, allocators, limits, and where output goes. `compile` gives a
`Program`, which runs as a whole, or function by function, any number of times.

Memory. Every program has its own arenas, one per stage, unless the engine was given allocators. What the stages made
and the machine that runs it stay until the program is closed, and closing the engine closes all its programs. Then
nothing is left in any allocator.

Threads. An engine does one thing at a time: threads that share one wait for each other, and engines share nothing.

Costs. A call from Python resets the heap of the program and turns arguments and result into words and back: beside the
work of the function itself, some 60 us in interpreted Python.
"""
# Not compiled: its signatures are documentation.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from allocators import Allocator, StackAlloc
from allocators.closing import Closing
from allocators.spelling import closest
from allocators.uncopyable import Uncopyable
from garden.bindings import Package
from garden.diagnostics import CODES, Diagnostic
from garden.errors import GardenError, Trap
from garden.host import Package as HostPackage
from garden.machines import make_machine
from garden.output import write_stdout
from garden.pipeline import LEVELS, Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.std import STANDARD
from garden.syntax.ast import SIGNATURE_DOCS, SIGNATURE_PARAMETERS
from garden.types.program import FUNCTION_NAME
from garden.types.types import Type
from garden.vm.values import from_word, to_word

if TYPE_CHECKING:
    from garden.vm.protocol import Machine

F = TypeVar("F", bound=Callable[..., Any])
P = TypeVar("P", bound=HostPackage)

#: The package of functions that belong to no other.
HOST_PACKAGE: Final = "host"


class Engine(Closing):
    """Compiles programs that share packages, allocators and limits.

    `packages` are those that programs may import, the standard ones unless told otherwise. `allocators` are those of
    the stages, which stay the caller's; of a mapping, every program adds its own arenas for the stages that it does
    not have. An arena that all programs share grows until the caller resets it. `level` is that of optimisation, 0 or
    1, ValueError for another. How programs run is said as for `RunOptions`.
    """

    def __init__(
        self,
        packages: Iterable[HostPackage] = STANDARD.values(),
        *,
        allocators: StageAllocators | Mapping[str, Allocator] | None = None,
        level: int = 1,
        engine: str = "auto",
        heap_limit: int | None = None,
        frame_limit: int | None = None,
        stack_size: int | None = None,
        spill: StackAlloc | None = None,
        write: Callable[[bytes], object] = write_stdout,
        backtrace: bool = False,
    ) -> None:
        self._packages: Final[dict[str, HostPackage]] = {}
        self._allocators: Final = allocators
        if level not in LEVELS:
            raise ValueError("the levels of optimisation are 0 and 1")
        self._level: Final = level
        self._options: Final = RunOptions(
            engine,
            write=write,
            heap_limit=heap_limit,
            frame_limit=frame_limit,
            stack_size=stack_size,
            spill=spill,
            backtrace=backtrace,
        )
        self._programs: Final[dict[int, Program]] = {}
        self._running = 0
        self._lock: Final = RLock()
        for package in packages:
            self.register(package)

    def register(self, package: P) -> P:
        """Let programs that are compiled from now on import a package, and return it.

        Raises ValueError where another one has its path, TypeError for what is no package.
        """
        if not isinstance(package, HostPackage):
            raise TypeError(f"want a package, got {package!r}")
        with self._lock:
            if self._packages.setdefault(package.path, package) is not package:
                raise ValueError(f"there is a package {package.path!r} already")
        return package

    @overload
    def function(self, implementation: F) -> F: ...
    @overload
    def function(self, *, name: str = "", pure: bool = False) -> Callable[[F], F]: ...
    def function(
        self, implementation: Callable[..., Any] | None = None, *, name: str = "", pure: bool = False
    ) -> Callable[..., Any]:
        """A decorator as `Package.function`, for the package `host`."""
        package = self._packages.get(HOST_PACKAGE)
        if package is None:
            package = self.register(Package(HOST_PACKAGE, "Functions of the host."))
        if not isinstance(package, Package):
            raise ValueError(f"the package {HOST_PACKAGE!r} takes no functions")
        decorate = package.function(name=name, pure=pure)
        return decorate if implementation is None else decorate(implementation)

    def compile(self, source: str | Source, *, name: str = "<string>") -> Program:
        """Compile a program; diagnostics call it by its name.

        Raises `CompileError` with all diagnostics where it is not valid, `AllocError` where a stage, or the machine
        that will run it, finds no memory, and `EngineError` where the engine asked for is not available. TypeError for
        what is neither a str nor a Source.
        """
        if isinstance(source, str):
            # A lone surrogate has no UTF-8: what stands for it is an error at its place.
            source = Source(name, source.encode(errors="surrogatepass"))
        elif not isinstance(source, Source):
            raise TypeError(f"a program is a str or a Source, not a {type(source).__name__}")
        with self._lock:
            given = self._allocators
            allocators = given if isinstance(given, StageAllocators) else StageAllocators(given)
            compilation = Compilation(source, allocators, dict(self._packages), level=self._level)
            return Program(self, compilation, owns_allocators=allocators is not given)

    def close(self) -> None:
        """Close all programs; closing twice is harmless."""
        with self._lock:
            for program in list(self._programs.values()):
                program.close()

    def __repr__(self) -> str:
        return f"<Engine of {len(self._packages)} packages and {len(self._programs)} open programs>"


class Program(Closing):
    """A compiled program, made by `Engine.compile`.

    `compilation` has what each stage made of it, `result` is the type of its value.
    """

    def __init__(self, engine: Engine, compilation: Compilation, *, owns_allocators: bool) -> None:
        self.compilation: Final = compilation
        self._engine: Final = engine
        self._owns_allocators: Final = owns_allocators
        self._running = False
        self._closed = False
        self._machine: Machine | None = None
        try:
            ir = compilation.optimise()
            self.result: Final[Type] = compilation.check().types.type(ir.function_result[ir.function_count - 1])
            self._machine = make_machine(compilation, engine._options, whole=True)
            engine._programs[id(self)] = self
        except BaseException:
            self._release()
            raise

    @property
    def source(self) -> Source:
        return self.compilation.source

    @property
    def allocators(self) -> StageAllocators:
        """The allocators of its stages."""
        return self.compilation.allocators

    @property
    def functions(self) -> dict[str, Function]:
        """The functions of the program by name, in source order. Shown as text, each is its signature."""
        with self._engine._lock:
            self._require_open()
            functions = [Function(self, row) for row in range(1, len(self.compilation.check().functions))]
        return {function.name: function for function in functions}

    def function(self, name: str, *, into: object = None) -> Function:
        """The function of a name, KeyError if there is none.

        `into` is the dataclass that a record it returns becomes an instance of, or an annotation with one, such as
        `list[Point]`; without it, records become dicts.
        """
        if not isinstance(name, str):
            raise KeyError(f"a function is named by a str, not by a {type(name).__name__}")
        with self._engine._lock:
            self._require_open()
            checked = self.compilation.check()
            symbol = checked.ast.symbols.find(name.encode(errors="surrogatepass"))
            symbols = checked.functions.columns[FUNCTION_NAME]
            for row in range(1, len(checked.functions)):
                if symbols[row] == symbol:
                    return Function(self, row, into)
        near = closest(name, list(self.functions))
        raise KeyError(f"{self.source.name} has no function `{name}`" + (f", did you mean `{near}`?" if near else ""))

    def __getitem__(self, name: str) -> Function:
        """The function of a name, KeyError if there is none."""
        return self.function(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.functions

    def run(self, *, into: object = None) -> Any:
        """Run the program from its start in a fresh state, and return the value of its last top-level item.

        `into` is as for `function`. Raises `Trap`, with a note of where it happened, or whatever a host function, the
        receiver of the output or the handler of a signal raises; the program can be run again after any of them.
        """
        return self._run(lambda machine: from_word(machine.heap, self.result, machine.run(), into))

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError(f"{self.source.name} is closed")

    def _run(self, work: Callable[[Machine], Any]) -> Any:
        """Have the machine do some work, which is one run."""
        engine = self._engine
        with engine._lock:
            self._require_open()
            if self._running:
                raise GardenError(f"{self.source.name} is running already")
            if engine._options.spill is not None and engine._running:
                raise GardenError(f"{self.source.name} cannot run: the spill stack of the engine is in use")
            assert self._machine is not None
            # Nothing is called between here and `try`: a signal handler might raise there.
            self._running = True
            engine._running += 1
            try:
                return work(self._machine)
            except Trap as trap:
                # One with a note comes from another program, which a host function has run.
                if trap.offset >= 0 and trap.code in CODES and not hasattr(trap, "__notes__"):
                    trap.add_note(Diagnostic(trap.code, trap.message, trap.offset, 0).render(self.source))
                raise
            finally:
                engine._running -= 1
                self._running = False

    def close(self) -> None:
        """Give back all memory of the program; closing twice is harmless. GardenError while it is running."""
        with self._engine._lock:
            if self._running:
                raise GardenError(f"{self.source.name} is running and cannot be closed")
            self._release()

    def _release(self) -> None:
        """Give everything back, as far as that goes: what is done last is done whatever has been raised before."""
        self._closed = True
        try:
            if self._machine is not None:
                self._machine.close()
                self._machine = None
        finally:
            try:
                self.compilation.close()
            finally:
                if self._owns_allocators:
                    self.allocators.close()
                self._engine._programs.pop(id(self), None)

    def __repr__(self) -> str:
        return f"<Program {self.source.name}>"


class Function(Uncopyable):
    """A function of a program: call it with Python values; shown as text it is its signature.

    `parameters` are names and types, `result` is the type of the result, `doc` the text of its doc comments.
    """

    def __init__(self, program: Program, row: int, into: object = None) -> None:
        checked = program.compilation.check()
        ast = checked.ast
        nodes, results, types, symbols = (column[row] for column in checked.functions.columns)
        signature = ast.a[nodes]
        names = ast.list_at(ast.extra.items[signature + SIGNATURE_PARAMETERS])
        docs = ast.list_at(ast.extra.items[signature + SIGNATURE_DOCS])
        self.name: Final = ast.symbols.lookup(symbols).decode()
        self.parameters: Final[tuple[tuple[str, Type], ...]] = tuple(
            (ast.name(token), checked.types.type(checked.extra.items[types + 1 + index]))
            for index, token in enumerate(names[::2])
        )
        self.result: Final[Type] = checked.types.type(results)
        self.doc: Final = "\n".join([ast.name(token) for token in docs])
        self._signature: Final = checked.signature(nodes)
        self._program: Final = program
        self._row: Final = row
        self._into: Final = into

    def __call__(self, *arguments: object) -> Any:
        """Call it in a fresh state and return its result.

        TypeError where the number of arguments or the type of one is wrong, OverflowError for an int outside 64 bits,
        ValueError for a str that is no UTF-8; beyond that as `Program.run`.
        """
        wanted = len(self.parameters)
        if len(arguments) != wanted:
            raise TypeError(f"`{self}` takes {wanted} argument{'' if wanted == 1 else 's'}, not {len(arguments)}")

        def work(machine: Machine) -> Any:
            machine.reset()
            words = []
            for (name, type), argument in zip(self.parameters, arguments, strict=True):
                try:
                    words.append(to_word(machine.heap, type, argument))
                except (TypeError, OverflowError) as error:
                    raise error.__class__(f"{self.name}: parameter {name}:{type}: {error}") from error
                except UnicodeEncodeError as error:
                    raise ValueError(f"{self.name}: parameter {name}:{type}: {error}") from error
            return from_word(machine.heap, self.result, machine.call(self._row, words), self._into)

        return self._program._run(work)

    def __str__(self) -> str:
        return self._signature

    def __repr__(self) -> str:
        return f"<Function {self._signature}>"


def compile(
    source: str | Source,
    *,
    name: str = "<string>",
    packages: Iterable[HostPackage] = STANDARD.values(),
    allocators: StageAllocators | Mapping[str, Allocator] | None = None,
    level: int = 1,
    write: Callable[[bytes], object] = write_stdout,
) -> Program:
    """Compile a program in a new engine: as `Engine(...).compile(source, name=name)`."""
    return Engine(packages, allocators=allocators, level=level, write=write).compile(source, name=name)
