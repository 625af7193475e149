"""Machines: which engine runs a program, and how the machine for it is made.

| engine | what it runs | where |
| --- | --- | --- |
| `jit` | the whole program as machine code | Linux on x86-64 and AArch64 |
| `interpreter` | bytecode, in machine code that is made once | the same |
| `reference` | bytecode, in Python | everywhere |

`auto` takes the first of these that can do what is asked for: a spill stack of one's own, or a limit on the number of
active calls, is a thing of bytecode. A program that LLVM would take many seconds for is not for the JIT, either.
Machine code comes from the cache, or from llvmlite where that is installed; where neither is there, `auto` goes on to
the next engine, and any other choice is an `EngineError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from allocators import Allocator, MisuseError, Pages, StackAlloc
from allocators.base import as_pages
from allocators.layout import number_text
from garden.common import ENGINES
from garden.errors import EngineError, ImageError
from garden.native.cache import Cache
from garden.native.target import host_target
from garden.output import write_stdout
from garden.pipeline import Compilation
from garden.std import STANDARD
from garden.vm.heap import DEFAULT_LIMIT
from garden.vm.machine import FRAME_LIMIT, SPILL_BYTES, Machine

if TYPE_CHECKING:
    from garden.native.run.interpreter_machine import InterpreterMachine
    from garden.native.run.jit import JitMachine

    AnyMachine: TypeAlias = Machine[Allocator] | JitMachine | InterpreterMachine


#: Rows of IR of the largest program that `auto` gives to the JIT. LLVM takes some 0.15 ms for each.
MOST_ROWS: Final = 1 << 15


#: More than any process has; a `Layout` may not be much larger.
_MOST_SPILL_BYTES: Final = 1 << 62


class MachineOptions:
    """How programs run. `engine` is one of `ENGINES`. ValueError for another and for negative numbers.

    `write` is given the output; `heap_limit` is in bytes, `frame_limit` in active calls. `stack_size` is in bytes: of
    the native stack for `jit`, else of the spill stack, and then so many more calls may be active. `spill` is the spill
    stack to use instead. With `backtrace`, traps carry the names of the active functions. `note` is told why an engine
    was passed over.
    """

    def __init__(
        self,
        engine: str = "auto",
        *,
        write: Callable[[bytes], object] = write_stdout,
        heap_limit: int = DEFAULT_LIMIT,
        frame_limit: int | None = None,
        stack_size: int | None = None,
        spill: StackAlloc | None = None,
        backtrace: bool = False,
        note: Callable[[str], object] | None = None,
    ) -> None:
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}, want one of {', '.join(ENGINES)}")
        _require_size("heap_limit", heap_limit)
        if frame_limit is not None:
            _require_size("frame_limit", frame_limit)
        if stack_size is not None:
            _require_size("stack_size", stack_size)
        if spill is not None and not isinstance(spill, StackAlloc):
            raise TypeError(f"spill is a StackAlloc, not {spill!r}")
        if not callable(write):
            raise TypeError(f"write takes the output, which {write!r} cannot")
        self.engine: Final = engine
        self.write: Final = write
        self.heap_limit: Final = heap_limit
        self.frame_limit: Final = frame_limit
        self.stack_size: Final = stack_size
        self.spill: Final = spill
        self.backtrace: Final = backtrace
        self.note: Final = note

    def candidates(self) -> tuple[str, ...]:
        """The engines to try, best first."""
        if self.engine != "auto":
            return (self.engine,)
        if self.spill is not None or self.frame_limit is not None:
            return ENGINES[2:]
        return ENGINES[1:]


def _require_size(name: str, number: object) -> None:
    if not isinstance(number, int):
        raise TypeError(f"{name} is an int, not {number!r}")
    if number < 0:
        raise ValueError(f"{name} must not be negative: {number_text(number)}")


def make_machine(compilation: Compilation, options: MachineOptions, *, whole: bool) -> AnyMachine:
    """A machine for a program, which must be valid. With `whole`, all functions can be called, not only the entry.

    Raises `AllocError`, or `EngineError` where the engine is not available.
    """
    candidates = options.candidates()
    for engine in candidates[:-1]:
        try:
            return _make(engine, compilation, options, whole)
        except EngineError as error:
            if options.note is not None:
                options.note(str(error))
    return _make(candidates[-1], compilation, options, whole)


def _make(engine: str, compilation: Compilation, options: MachineOptions, whole: bool) -> AnyMachine:
    if engine == "reference":
        return _reference(compilation, options)
    target = host_target()
    if target is None:
        raise EngineError(f"the engine {engine} does not run on this system")
    try:
        pages = as_pages(compilation.allocators["native"])
        if engine == "jit":
            if not is_for_jit(compilation, options.engine):
                raise EngineError("the engine jit would take long to compile so large a program")
            return _jit(compilation, options, target, pages, whole)
        return _interpreter(compilation, options, target, pages)
    except ImportError as error:
        raise EngineError(f"the engine {engine} needs llvmlite: {error}") from error
    except (ImageError, MisuseError) as error:
        # Misused is an allocator for the stage `native` that cannot protect pages.
        raise EngineError(f"the engine {engine} cannot load its code: {error}") from error


def is_for_jit(compilation: Compilation, engine: str) -> bool:
    """Whether the JIT should have a program, which must be valid, when an engine is asked for."""
    return engine == "jit" or compilation.optimise().value_count <= MOST_ROWS


def _jit(compilation: Compilation, options: MachineOptions, target: str, pages: Pages, whole: bool) -> AnyMachine:
    from garden.native.codegen.compiler import compile_program
    from garden.native.codegen.programs import program_key
    from garden.native.image.load import Image
    from garden.native.run.jit import JitMachine, externals

    cache = Cache()
    program = compilation.generate(
        lambda ir, scratch: compile_program(ir, scratch, target, whole=whole, backtrace=options.backtrace, cache=cache)
    )
    if not whole and compilation.packages is STANDARD:
        source = compilation.source.text
        key = program_key(source, target, level=compilation.level, backtrace=options.backtrace)
        cache.store(key, program.to_bytes())
    image = Image(program.object, pages, externals())
    compilation.stage = "run"
    return JitMachine(
        program,
        image,
        lambda: compilation.allocators["run"],
        compilation.check().hosts,
        write=options.write,
        heap_limit=options.heap_limit,
        stack_size=options.stack_size,
        backtrace=options.backtrace,
    )


def _spill_bytes(options: MachineOptions) -> int:
    return SPILL_BYTES if options.stack_size is None else min(options.stack_size, _MOST_SPILL_BYTES)


def _frame_limit(options: MachineOptions) -> int:
    if options.frame_limit is not None:
        return options.frame_limit
    return max(FRAME_LIMIT, _spill_bytes(options) >> 3)


def _interpreter(compilation: Compilation, options: MachineOptions, target: str, pages: Pages) -> AnyMachine:
    from garden.native.image.load import Image
    from garden.native.run.interpreter_machine import InterpreterMachine, interpreter_object
    from garden.native.run.jit import externals

    code = compilation.emit()
    compilation.stage = "native"
    image = Image(interpreter_object(target, Cache()), pages, externals())
    compilation.stage = "run"
    return InterpreterMachine(
        code,
        image,
        compilation.allocators["run"],
        spill=options.spill,
        spill_bytes=_spill_bytes(options),
        write=options.write,
        heap_limit=options.heap_limit,
        frame_limit=_frame_limit(options),
        backtrace=options.backtrace,
    )


def _reference(compilation: Compilation, options: MachineOptions) -> AnyMachine:
    code = compilation.emit()
    compilation.stage = "run"
    return Machine(
        code,
        compilation.allocators["run"],
        spill=options.spill,
        spill_bytes=_spill_bytes(options),
        write=options.write,
        heap_limit=options.heap_limit,
        frame_limit=_frame_limit(options),
        backtrace=options.backtrace,
    )
