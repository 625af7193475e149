"""What each sub-command does. Imports that only some commands or options need are inside functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from garden.cli.program_file import ReadError, read_program
from garden.cli.report import UsageError, fail, guarded, say, size_of
from garden.errors import CompileError, EngineError
from garden.output import write_stdout
from garden.pipeline import Compilation, StageAllocators
from garden.std import STANDARD
from garden.vm.heap import DEFAULT_LIMIT

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from allocators import Allocator
    from garden.ir.ir import Ir


def run(options: argparse.Namespace) -> int:
    """Compile and run a program."""
    from garden.cli.run import run_program

    return _with_compilation(options, run_program)


def build(options: argparse.Namespace) -> int:
    """Build an executable."""
    return _with_compilation(options, _build)


def check(options: argparse.Namespace) -> int:
    """Report the errors in a program."""
    return _with_compilation(options, _check)


def dump(options: argparse.Namespace) -> int:
    """Print the product of a stage."""
    return _with_compilation(options, _dump)


def _build(options: argparse.Namespace, compilation: Compilation) -> int:
    from garden.native.cache import Cache
    from garden.native.executable import aot
    from garden.native.run.jit import STACK_BYTES
    from garden.native.target import host_target

    target = options.target or host_target()
    if target is None:
        raise UsageError("no executable can run on this system: name another one with --target")
    if options.program.is_at(options.output):
        raise UsageError(f"the output {options.output} is the program itself")
    heap_limit = DEFAULT_LIMIT if options.heap_limit is None else size_of(options.heap_limit)
    stack_bytes = STACK_BYTES if options.stack_size is None else size_of(options.stack_size)
    try:
        content = aot.build(compilation, target, stack_bytes=stack_bytes, heap_limit=heap_limit, cache=Cache())
    except ImportError as error:
        raise EngineError(f"making an executable needs llvmlite: {error}") from error
    try:
        aot.write_executable(options.output, content)
    except (OSError, ValueError) as error:
        return fail(f"cannot write {options.output}: {getattr(error, 'strerror', None) or error}", 1)
    return 0


def _check(options: argparse.Namespace, compilation: Compilation) -> int:
    compilation.check()
    if not compilation.diagnostics:
        # Literals out of range are found while lowering.
        try:
            compilation.lower()
        except CompileError:
            pass
    if options.json:
        import json

        found = compilation.in_source_order()
        _print(json.dumps([diagnostic.as_dict(compilation.source) for diagnostic in found], indent=2))
        return 1 if found else 0
    compilation.require_valid()
    return 0


def _dump(options: argparse.Namespace, compilation: Compilation) -> int:
    if options.nodes and options.product != "types":
        raise UsageError("--nodes goes with `dump types`")
    if options.registers is not None and options.product != "bytecode":
        raise UsageError("--registers goes with `dump bytecode`")
    if options.pass_name is not None:
        if options.product != "ir":
            raise UsageError("--pass goes with `dump ir`")
        _dump_pass(options.pass_name, compilation)
        return 0
    from garden.bytecode.disassemble import disassemble
    from garden.ir.printer import print_ir
    from garden.syntax.printer import print_ast, print_tokens
    from garden.types.printer import print_types

    product = options.product
    if product == "tokens":
        text = print_tokens(compilation.parse())
    elif product == "ast":
        text = print_ast(compilation.parse())
    elif product == "types":
        text = print_types(compilation.check(), nodes=options.nodes)
    elif product == "ir":
        text = print_ir(compilation.optimise())
    elif product in ("llvm", "native"):
        text = _dump_native(product, compilation)
    else:
        text = disassemble(compilation.emit())
    _print(text.rstrip("\n"))
    compilation.require_valid()
    return 0


def _dump_native(product: str, compilation: Compilation) -> str:
    from garden.native.codegen.dump import llvm_text, native_text
    from garden.native.target import host_target

    target = host_target()
    if target is None:
        raise EngineError("there is no machine code for this system")
    make = llvm_text if product == "llvm" else native_text
    try:
        return compilation.generate(lambda ir, scratch: make(ir, scratch, target))
    except ImportError as error:
        raise EngineError(f"machine code needs llvmlite: {error}") from error


def _dump_pass(name: str, compilation: Compilation) -> None:
    from garden.ir.passes import PASSES
    from garden.ir.printer import print_ir

    names = [known for known, _ in PASSES]
    if name not in names:
        raise UsageError(f"unknown pass {name!r}, want one of {', '.join(names)}")
    texts = [print_ir(compilation.lower())]

    def keep(done: str, ir: Ir[Allocator]) -> None:
        texts.append(print_ir(ir))
        if done == name:
            _print(f"// before {name}\n{texts[-2]}\n// after {name}\n{texts[-1]}".rstrip("\n"))

    compilation.optimise(keep)


def _with_compilation(options: argparse.Namespace, action: Callable[[argparse.Namespace, Compilation], int]) -> int:
    """Run a command on a program; report failures on standard error."""
    wished = options.registers if options.command == "dump" else None
    if wished is not None:
        from garden.bytecode.ops import REGISTERS
        from garden.bytecode.regalloc import FEWEST_REGISTERS

        if not FEWEST_REGISTERS <= wished <= REGISTERS:
            return fail(f"the number of registers is from {FEWEST_REGISTERS} to {REGISTERS}, not {wished}", 2)
    try:
        plain = StageAllocators.of_specs(options.alloc)
    except ValueError as error:
        return fail(str(error), 2)
    try:
        options.program = read_program(options.file)
    except ReadError as error:
        plain.close()
        return fail(str(error), 1)
    source = options.program.source
    with plain:
        allocators = plain.metered() if options.alloc_stats else plain
        with Compilation(source, allocators, STANDARD, level=options.level, registers=wished) as compilation:
            status = guarded(lambda: action(options, compilation), source, lambda: compilation.stage)
        if options.alloc_stats:
            from garden.cli.stats import stats_table

            say(stats_table(allocators).rstrip("\n"))
    return status


def _print(text: str) -> None:
    write_stdout(f"{text}\n".encode(errors="backslashreplace"))
