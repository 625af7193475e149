"""Machines: which engine runs a program, and how the machine for it is made.

| engine | what it runs | where |
| --- | --- | --- |
| `jit` | the whole program as machine code | Linux on x86-64 and AArch64 |
| `interpreter` | bytecode, in machine code that is made once | the same |
| `reference` | bytecode, in Python | everywhere |

`auto` takes the first of these that can do what is asked for: a custom spill stack, or a limit on the number of active
calls, needs an engine of bytecode. A program that LLVM would take many seconds for is not for the JIT, either. Machine
code comes from the cache, or from llvmlite where that is installed and can be loaded; where neither is there, `auto`
moves on to the next engine, and any other choice is an `EngineError`.

The command does not wait for machine code: `auto` is then a `tiered_machine`, which begins in the interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allocators import MisuseError
from allocators.base import as_pages
from allocators.errors import caused_by
from garden.errors import EngineError, ImageError
from garden.native.cache import Cache, digest
from garden.native.fingerprint import fingerprint
from garden.native.target import host_target
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.std import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable

    from garden.host import HostFunction
    from garden.native.codegen.programs import NativeProgram
    from garden.native.run.tiered import TieredMachine
    from garden.vm.protocol import Machine

#: Rows of IR of the largest program that `auto` gives to the JIT. LLVM takes some 0.15 ms for each.
MOST_ROWS: Final = 1 << 15


def make_machine(
    compilation: Compilation,
    options: RunOptions,
    *,
    whole: bool,
    made: Callable[[NativeProgram], None] | None = None,
) -> Machine:
    """A machine for a program, which must be valid. With `whole`, all functions can be called, not only the entry.

    `made` is told of machine code, where that is what runs. Raises `AllocError`, or `EngineError` where the engine is
    not available.
    """
    candidates = options.candidates()
    for engine in candidates[:-1]:
        try:
            return _make(engine, compilation, options, whole, made)
        except EngineError as error:
            if options.note is not None:
                options.note(str(error))
    return _make(candidates[-1], compilation, options, whole, made)


def kept_machine(compilation: Compilation, options: RunOptions) -> Machine | None:
    """A machine for machine code that the cache has of an earlier run; None where there is none for these options.

    No stage of the compiler runs, and the program is not checked: what is in the cache was valid. Raises `AllocError`.
    """
    target = host_target()
    if target is None or options.candidates()[0] != "jit" or compilation.packages is not STANDARD:
        return None
    from garden.native.codegen.programs import load_program, standard_hosts

    program = load_program(Cache(), _key(compilation, options, target))
    hosts = None if program is None else standard_hosts(program)
    if program is None or hosts is None:
        return None
    try:
        return _jit_machine(compilation, options, program, hosts)
    except (ImageError, MisuseError):
        return None


def tiered_machine(
    compilation: Compilation, options: RunOptions, made: Callable[[NativeProgram], None]
) -> TieredMachine | None:
    """A machine for one run of a program of standard packages, which must be valid; None where there cannot be one.

    The first time it leaves a mark in the cache; the second time machine code is made without delay, and for sure.
    `made` is told of it, in another thread; the cache has it by then. Memory of that is from the system. Raises
    `AllocError`.
    """
    target = host_target()
    if target is None:
        return None
    from garden.native.image.load import Image
    from garden.native.prebuilt import is_installed
    from garden.native.run.interpreter_machine import interpreter_object
    from garden.native.run.jit import STACK_BYTES, externals
    from garden.native.run.tiered import TieredMachine

    cache = Cache()
    mark = _mark(compilation, target)
    is_known = cache.load(mark) is not None
    if not is_known and not cache.store(mark, b"") and not is_installed("interpreter", target):
        # To make an interpreter that nobody keeps takes longer than to compile the program.
        return None
    try:
        object = interpreter_object(target, cache)
    except ImportError:
        return None
    source, level = compilation.source, compilation.level

    def compile(strings: bytes) -> NativeProgram:
        from garden.native.codegen.compiler import compile_program

        with StageAllocators() as allocators, Compilation(source, allocators, STANDARD, level=level) as again:
            if not is_for_jit(again, options.engine):
                raise EngineError("that would take long for so large a program")
            program = again.generate(
                lambda ir, scratch: compile_program(
                    ir, scratch, target, whole=False, backtrace=options.backtrace, cache=cache, strings=strings
                )
            )
        cache.store(_key(compilation, options, target), program.to_bytes())
        return program

    # Calls that machine code could have active must not be too many before it is there.
    of_interpreter = RunOptions(
        "interpreter",
        write=options.write,
        heap_limit=options.heap_limit,
        stack_size=STACK_BYTES if options.stack_size is None else options.stack_size,
        backtrace=options.backtrace,
    )
    code = compilation.emit()
    compilation.stage = "native"
    try:
        image = Image(object, as_pages(compilation.allocators["native"]), externals())
    except (ImageError, MisuseError):
        return None
    compilation.stage = "run"
    return TieredMachine(
        code,
        image,
        compilation.allocators["run"],
        of_interpreter,
        stack_bytes=options.stack_size,
        has_earned=is_known,
        compile=compile,
        made=made,
    )


def _make(
    engine: str,
    compilation: Compilation,
    options: RunOptions,
    whole: bool,
    made: Callable[[NativeProgram], None] | None,
) -> Machine:
    if engine == "reference":
        return _reference(compilation, options)
    target = host_target()
    if target is None:
        raise EngineError(f"the engine {engine} does not run on this system")
    try:
        if engine == "jit":
            if not is_for_jit(compilation, options.engine):
                raise EngineError("the engine jit would take long to compile so large a program")
            return _jit(compilation, options, target, whole, made)
        return _interpreter(compilation, options, target)
    except ImportError as error:
        raise caused_by(EngineError(f"the engine {engine} needs llvmlite: {error}"), error)
    except (ImageError, MisuseError) as error:
        # Misused is an allocator for the stage `native` that cannot protect pages.
        raise caused_by(EngineError(f"the engine {engine} cannot load its code: {error}"), error)


def is_for_jit(compilation: Compilation, engine: str) -> bool:
    """Whether the JIT should have a program, which must be valid, when an engine is asked for."""
    return engine == "jit" or compilation.optimise().value_count <= MOST_ROWS


def _jit(
    compilation: Compilation,
    options: RunOptions,
    target: str,
    whole: bool,
    made: Callable[[NativeProgram], None] | None,
) -> Machine:
    from garden.native.codegen.compiler import compile_program

    cache = Cache()
    program = compilation.generate(
        lambda ir, scratch: compile_program(ir, scratch, target, whole=whole, backtrace=options.backtrace, cache=cache)
    )
    if not whole and compilation.packages is STANDARD:
        cache.store(_key(compilation, options, target), program.to_bytes())
    if made is not None:
        made(program)
    return _jit_machine(compilation, options, program, compilation.check().hosts)


def _mark(compilation: Compilation, target: str) -> bytes:
    """The key of the mark of a program that has been run before."""
    return digest(b"seen", target.encode(), fingerprint(), compilation.source.text)


def _key(compilation: Compilation, options: RunOptions, target: str) -> bytes:
    """The key of a program's machine code."""
    from garden.native.codegen.programs import program_key

    return program_key(compilation.source.text, target, level=compilation.level, backtrace=options.backtrace)


def _jit_machine(
    compilation: Compilation, options: RunOptions, program: NativeProgram, hosts: list[HostFunction]
) -> Machine:
    from garden.native.image.load import Image
    from garden.native.run.jit import JitMachine, externals

    compilation.stage = "native"
    image = Image(program.object, as_pages(compilation.allocators["native"]), externals())
    compilation.stage = "run"
    return JitMachine(program, image, lambda: compilation.allocators["run"], hosts, options)


def _interpreter(compilation: Compilation, options: RunOptions, target: str) -> Machine:
    from garden.native.image.load import Image
    from garden.native.run.interpreter_machine import InterpreterMachine, interpreter_object
    from garden.native.run.jit import externals

    code = compilation.emit()
    compilation.stage = "native"
    image = Image(interpreter_object(target, Cache()), as_pages(compilation.allocators["native"]), externals())
    compilation.stage = "run"
    return InterpreterMachine(
        code,
        image,
        compilation.allocators["run"],
        options,
    )


def _reference(compilation: Compilation, options: RunOptions) -> Machine:
    from garden.vm.machine import ReferenceMachine

    code = compilation.emit()
    compilation.stage = "run"
    return ReferenceMachine(
        code,
        compilation.allocators["run"],
        options,
    )
