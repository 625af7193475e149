"""Aot: compiles a program to a Linux executable that needs neither Python nor any library, without a linker.

It is the image of the JIT, linked at a fixed address, with support code in garden (`host.garden`) and system calls
(`system`). It contains the name and source of the program, to show where a trap happened.

Layout: the file header in its own page, then the image as two segments: one sealed, one writable, whose trailing zeros
are not in the file. There are no sections and no symbols.

Limits are those of the JIT, set at build time. Host functions that only Python implements cannot be called: each
reachable call of one is a diagnostic.

Costs: 28 KB plus the program itself, 10 of them for a table to format Doubles with, and half a second to build. An
executable starts in some 0.2 ms.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import errno
import os
import struct
from bisect import bisect_left
from typing import Final

from allocators import Allocator
from garden.diagnostics import Diagnostic
from garden.errors import CompileError
from garden.host import HostFunction
from garden.ir import ir as op
from garden.ir.calls import instructions, reachable
from garden.ir.ir import Ir
from garden.native.cache import Cache
from garden.native.codegen.compiler import PREFIX, stack_reserve, translate_program
from garden.native.codegen.hosts import native_call
from garden.native.executable.system import HOST_FUNCTIONS, system_text
from garden.native.image.elf import HEADER, IDENTITY, MACHINES, parse
from garden.native.image.link import link, place
from garden.native.run.jit import STACK_BYTES
from garden.native.target import AARCH64, X86_64, compile_text
from garden.pipeline import Compilation
from garden.vm.heap import DEFAULT_LIMIT

#: The largest pages that a system may have.
_PAGE_SIZES: Final = {X86_64: 1 << 12, AARCH64: 1 << 16}
#: Where the file lies in memory.
_BASE: Final = 1 << 22

# ELF, what executables have of it. Names are those of its specification, without prefixes.
_PROGRAM: Final = struct.Struct("<IIQQQQQQ")
_EXEC: Final = 2
_LOAD: Final = 1
_STACK: Final = 0x6474E551
_EXECUTE: Final = 1
_WRITE: Final = 2
_READ: Final = 4


def build(
    compilation: Compilation,
    target: str,
    *,
    stack_bytes: int = STACK_BYTES,
    heap_limit: int = DEFAULT_LIMIT,
    cache: Cache | None = None,
) -> bytes:
    """The file of an executable for a target. `cache` is for the runtime.

    Raises `CompileError` where the program is not valid, or calls what is only there in Python, `AllocError`, and
    ImportError where llvmlite is not installed.
    """
    return executable(
        compilation.generate(
            lambda ir, scratch: compile_executable(
                ir, scratch, target, stack_bytes=stack_bytes, heap_limit=heap_limit, cache=cache
            )
        )
    )


def compile_executable(
    ir: Ir[Allocator],
    scratch: Allocator,
    target: str,
    *,
    stack_bytes: int = STACK_BYTES,
    heap_limit: int = DEFAULT_LIMIT,
    cache: Cache | None = None,
) -> bytes:
    """The object of an executable, which needs nothing that it does not have, and begins at `_start`."""
    source = ir.checked.ast.source
    diagnostics = _refused(ir)
    if diagnostics:
        raise CompileError(source, diagnostics)
    text, (_, constant_words, _) = translate_program(ir, scratch, target, whole=False, cache=cache, host=HOST_FUNCTIONS)
    reserve = stack_reserve(ir)
    text += system_text(
        target,
        source.name.encode(errors="backslashreplace"),
        source.text,
        entry=f"call.{ir.function_count - 1}",
        constants=f"{PREFIX}strings",
        constant_words=constant_words,
        stack_bytes=max(stack_bytes, 2 * reserve) + 4095 & -4096,
        reserve=reserve,
        heap_limit=heap_limit,
    )
    return compile_text(text, target)


def _refused(ir: Ir[Allocator]) -> list[Diagnostic]:
    """A diagnostic for each call of what is only there in Python that the program may reach, in source order."""
    found: dict[int, HostFunction] = {}
    for row in reachable(ir, (ir.function_count - 1,)):
        for inst in instructions(ir, row):
            if ir.op[inst] == op.SYS:
                function: HostFunction = ir.checked.hosts[ir.a[inst]]
                if native_call(function) is None:
                    found[ir.pos[inst]] = function
    return [_refusal(ir, offset, found[offset]) for offset in sorted(found)]


def _refusal(ir: Ir[Allocator], offset: int, function: HostFunction) -> Diagnostic:
    tokens = ir.checked.ast.tokens
    token = bisect_left(range(len(tokens)), offset, 1, key=tokens.starts.__getitem__)
    return Diagnostic(
        "E0501",
        f"`{function.path}` needs Python, which an executable does without",
        offset,
        tokens.ends[token] - offset,
        helps=("`garden run` can call it",),
    )


def executable(object: bytes) -> bytes:
    """The file of an executable, of an object that begins at `_start` and needs nothing else."""
    object_file = parse(object)
    target = object_file.target
    page = _PAGE_SIZES[target]
    base = _BASE + page
    placement = place(object_file, page)
    image = link(object_file, base, {}, page)
    start = next(symbol for symbol in object_file.symbols if symbol.name == "_start")
    entry = base + placement.starts[start.section] + start.value
    data = image[placement.data :].rstrip(b"\0")
    segments = [
        # Type, flags, place in the file, address (twice), bytes in the file and in memory, alignment.
        (_LOAD, _READ | _EXECUTE, page, base, base, placement.data, placement.data, page),
        (
            _LOAD,
            _READ | _WRITE,
            page + placement.data,
            base + placement.data,
            base + placement.data,
            len(data),
            placement.data_end - placement.data,
            page,
        ),
        (_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16),
    ]
    header = HEADER.pack(
        *IDENTITY, _EXEC, MACHINES[target], 1, entry, HEADER.size, 0, 0,
        HEADER.size, _PROGRAM.size, len(segments), 0, 0, 0,
    )  # fmt: skip
    header += b"".join([_PROGRAM.pack(*segment) for segment in segments])
    return header.ljust(page, b"\0") + image[: placement.data] + data


def write_executable(path: str, content: bytes) -> None:
    """Write the file of an executable, in place of a file that was there, which may be running. Raises OSError."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            file.write(content)
        return
    if not os.path.basename(path):
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    path = os.path.realpath(path)
    unfinished = f"{path}.{os.urandom(8).hex()}"
    try:
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777), "wb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise
