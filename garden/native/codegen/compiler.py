"""Compiler: from the optimised IR of a program to machine code."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from allocators import Allocator
from garden.errors import ImageError
from garden.ir.calls import reachable
from garden.ir.ir import Ir
from garden.native.cache import Cache, digest
from garden.native.codegen.body import field
from garden.native.codegen.hosts import python_hosts
from garden.native.codegen.module import RuntimeFunctions, module_text
from garden.native.codegen.programs import PREFIX, NativeProgram
from garden.native.codegen.translate import Translator
from garden.native.target import compile_text

#: Bytes of stack that are left for what does not look, and for each instruction of the IR, whose values may all be
#: spilled in one frame after inlining.
_RESERVE = 1 << 18
_RESERVE_PER_INSTRUCTION = 64
#: What Ctrl-C does beside leaving its mark: the next call that may recurse finds no stack left.
_INTERRUPT = "  store atomic i64 -1, ptr {} monotonic, align 8"


def compile_program(
    ir: Ir[Allocator],
    scratch: Allocator,
    target: str,
    *,
    whole: bool,
    backtrace: bool = False,
    cache: Cache | None = None,
    strings: bytes | None = None,
) -> NativeProgram:
    """Compile a program or, with `whole`, all of its functions, so that each can be called from outside.

    With `strings`, the constant strings of its bytecode, it has exactly these, and each function that the program may
    reach can be called from outside: so the interpreter can go over to it. `ImageError` where it needs another string.

    If the cache has the object, llvmlite is not needed. Otherwise raises ImportError if it is not installed.
    """
    text, facts = translate_program(ir, scratch, target, whole=whole, backtrace=backtrace, cache=cache, strings=strings)
    key = digest(b"object", target.encode(), text.encode())
    object = None if cache is None else cache.load(key)
    if object is None:
        object = compile_text(text, target)
        if cache is not None:
            cache.store(key, object)
    return NativeProgram(object, *facts, stack_reserve(ir), python_hosts(ir.checked.hosts))


def stack_reserve(ir: Ir[Allocator]) -> int:
    """Bytes of stack that must be left when a function is called that may recurse."""
    return _RESERVE + _RESERVE_PER_INSTRUCTION * ir.value_count


def translate_program(
    ir: Ir[Allocator],
    scratch: Allocator,
    target: str,
    *,
    whole: bool,
    backtrace: bool = False,
    cache: Cache | None = None,
    strings: bytes | None = None,
) -> tuple[str, tuple[list[int], int, int]]:
    """The LLVM text of a module, and the first facts of a `NativeProgram`."""
    runtime = RuntimeFunctions(target, cache)
    translator = Translator(ir, scratch, PREFIX, runtime.signatures, backtrace=backtrace)
    try:
        entry = ir.function_count - 1
        rows = reachable(ir, range(1, ir.function_count) if whole else (entry,))
        roots = rows if whole or strings is not None else [entry]
        if strings is not None:
            translator.begin_strings(strings)
        functions = [translator.function(row) for row in rows]
        if strings is not None and 8 * len(translator.strings) != len(strings):
            raise ImageError("the machine code needs a constant string that the bytecode does not have")
        functions += [translator.wrapper(row, f"call.{row}") for row in roots]
        parts = [translator.string_data(), runtime.text(translator.needed), *functions]
        text = module_text(
            target,
            parts,
            argument_words=translator.argument_words,
            interrupt=_INTERRUPT.format(field("stack_limit")),
        )
        parameters = [-1] * ir.function_count
        for row in roots:
            parameters[row] = len(translator.signatures[row].parameters)
        return text, (parameters, len(translator.strings), translator.argument_words)
    finally:
        translator.close()
