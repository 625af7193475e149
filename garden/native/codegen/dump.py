"""Dump: prints machine code and LLVM text for people.

It prints the program itself, without the runtime, most of which is the same for every program.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from allocators import Allocator
from garden.ir.ir import Ir
from garden.native.codegen.compiler import translate_program
from garden.native.codegen.programs import PREFIX
from garden.native.target import assembly_of

_DEFINE: Final = "define "
#: What LLVM marks for tables of unwinding and for the layout of the file.
_NOISE: Final = ("\t.cfi_", "\t.p2align", "\t.type", "\t.size", "\t.hidden", "\t.globl")


def llvm_text(ir: Ir[Allocator], scratch: Allocator, target: str) -> str:
    """The LLVM text of the functions that the program may reach."""
    text, _ = translate_program(ir, scratch, target, whole=False)
    functions = text.split(f"\n{_DEFINE}")[1:]
    own = [function.partition("\n}")[0] for function in functions if f'@"{PREFIX}' in function.partition("(")[0]]
    return "\n\n".join([f"{_DEFINE}{function}\n}}" for function in own])


def native_text(ir: Ir[Allocator], scratch: Allocator, target: str) -> str:
    """The assembly of the same functions, except those that were inlined."""
    text, _ = translate_program(ir, scratch, target, whole=False)
    return "\n\n".join(_functions(assembly_of(text, target)))


def write_perf_map(symbols: Mapping[str, tuple[int, int]]) -> None:
    """Tell `perf` about functions that are in no file: writes address, size and name of each where it looks."""
    lines = sorted([(address, size, name) for name, (address, size) in symbols.items()])
    # Everybody may write to that folder, so what stands there under the name already is not followed.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(f"/tmp/perf-{os.getpid()}.map", flags, 0o600), "w") as file:
        file.writelines([f"{address:x} {size:x} {name}\n" for address, size, name in lines])


def _functions(assembly: str) -> Iterator[str]:
    """Each function of the program, without the lines that do not become code."""
    lines: list[str] = []
    inside = False
    for line in assembly.splitlines():
        if line.startswith((PREFIX, "call.")) and line.split("#")[0].rstrip().endswith(":"):
            inside = True
        if line.startswith(".Lfunc_end") and inside:
            yield "\n".join(lines)
            inside = False
            lines.clear()
        if inside and not line.startswith(_NOISE):
            lines.append(line)
