"""Aot: compiles a program to a Linux executable that needs neither Python nor any library, without a linker.

It is the object of the JIT and that of the host (`system`), linked at a fixed address. It contains the name and source
of the program, to show where a trap happened.

Layout: the file header in its own page, then the image as two segments: one sealed, one writable, whose trailing zeros
are not in the file. There are no sections and no symbols.

Limits are those of the JIT, set at build time. Host functions that only Python implements cannot be called: each
reachable call of one is a diagnostic.

Costs: 28 KB plus the program itself, 10 of them for a table to format Doubles with. An executable starts in some
0.2 ms.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import errno
import os
import struct
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from allocators import Allocator
from garden.diagnostics import Diagnostic, width
from garden.errors import CompileError
from garden.host import HostFunction
from garden.ir import ir as op
from garden.ir.calls import instructions, reachable
from garden.ir.ir import Ir
from garden.native.cache import Cache
from garden.native.codegen.compiler import compile_program
from garden.native.codegen.hosts import native_call
from garden.native.codegen.programs import PREFIX
from garden.native.codegen.system_calls import CARRIED
from garden.native.executable.system import host_object
from garden.native.image.elf import (
    CONSTANT,
    DATA,
    HEADER,
    IDENTITY,
    LEFT_OUT,
    MACHINES,
    NOWHERE,
    RELOCATION,
    UNDEFINED,
    ObjectFile,
    Section,
    Symbol,
    parse,
)
from garden.native.image.link import link, merge, place
from garden.native.run.jit import STACK_BYTES
from garden.native.target import AARCH64, X86_64
from garden.pipeline import Compilation
from garden.source import Source
from garden.vm.heap import DEFAULT_LIMIT

if TYPE_CHECKING:
    from garden.native.codegen.programs import NativeProgram

_WORD: Final = struct.Struct("<q")
_MOST: Final = (1 << 63) - 1
#: The sections of the object of what an executable carries.
_WORDS: Final = 1
_TEXTS: Final = 2
#: The type of the relocation that is an address of 64 bits.
_ADDRESSES: Final = {X86_64: 1, AARCH64: 257}

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
    _refuse_calls_of_python(compilation)
    program = compilation.generate(lambda ir, scratch: compile_program(ir, scratch, target, whole=False, cache=cache))
    host = host_object(target, cache)
    return link_program(program, compilation.source, host, stack_bytes=stack_bytes, heap_limit=heap_limit)


def link_program(
    program: NativeProgram,
    source: Source,
    host: bytes,
    *,
    stack_bytes: int = STACK_BYTES,
    heap_limit: int = DEFAULT_LIMIT,
) -> bytes:
    """The file of an executable of a program whose machine code is there already."""
    object_file = parse(program.object)
    text, name, widths = source.text, source.name.encode(errors="backslashreplace"), _widths(source.text)
    numbers = {
        "stack_bytes": min(max(stack_bytes, 2 * program.reserve) + 4095, _MOST) & -4096,
        "reserve": program.reserve,
        "heap_limit": min(heap_limit, _MOST),
        "constant_words": program.string_words,
        "source_bytes": len(text),
        "name_bytes": len(name),
        "widths_bytes": len(widths),
    }
    symbols = {"constants": f"{PREFIX}strings", "entry": f"call.{len(program.parameters) - 1}"}
    carried = _carried(object_file.target, numbers, {"source": text, "name": name, "widths": widths}, symbols)
    return executable(merge([object_file, parse(host), carried]))


def _carried(target: str, numbers: dict[str, int], texts: dict[str, bytes], symbols: dict[str, str]) -> ObjectFile:
    """An object with the words of `CARRIED`: numbers, addresses of texts, which it has too, and of symbols."""
    words = bytearray()
    stored = bytearray()
    addresses = bytearray()
    defined = [Symbol("", NOWHERE, 0, 0)]
    for index, name in enumerate(CARRIED):
        defined.append(Symbol(f"executable.{name}", _WORDS, _WORD.size * index, _WORD.size))
        words += _WORD.pack(numbers.get(name, 0))
        if name in numbers:
            continue
        addresses += RELOCATION.pack(_WORD.size * index, _ADDRESSES[target], len(defined), 0)
        if name in texts:
            defined.append(Symbol(name, _TEXTS, len(stored), len(texts[name]), is_local=True))
            stored += texts[name]
        else:
            defined.append(Symbol(symbols[name], UNDEFINED, 0, 0))
    sections = [
        Section("", LEFT_OUT, 0, 0, 0, 1),
        Section("words", DATA, 0, len(words), len(words), 8),
        Section("texts", CONSTANT, len(words), len(stored), len(stored), 8),
    ]
    data = memoryview(bytes(words + stored))
    return ObjectFile(target, data, sections, defined, [(_WORDS, 0, memoryview(bytes(addresses)))], [], [])


def _widths(source: bytes) -> bytes:
    """The characters of a source that are not one column wide, a word each: UTF-8, and the width in the upper half."""
    chars = sorted(set(source.decode(errors="replace")) - set("\t\r\n"))
    return b"".join([c.encode().ljust(4, b"\0") + width(c).to_bytes(4, "little") for c in chars if width(c) != 1])


def _refuse_calls_of_python(compilation: Compilation) -> None:
    """Raise `CompileError` where the program may reach what is only there in Python."""
    diagnostics = _refused(compilation.optimise())
    if diagnostics:
        raise CompileError(compilation.source, diagnostics)


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


def executable(object_file: ObjectFile) -> bytes:
    """The file of an executable, of an object that begins at `_start` and needs nothing else."""
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
