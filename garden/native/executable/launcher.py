"""Launcher: makes the `garden` command of an installed package, an executable that starts cached programs by itself.

`launcher.garden` says what it does. It runs on the stack of the system and needs no limits: its loops are jumps, and
the only memory that it takes by the size of something is for the source, whose size is bounded.

Costs: 16 KB on disk. A start takes 0.1 ms until another program has taken its place, and 6 ms a MB of the source, to
hash it.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from pathlib import Path
from typing import Final

from allocators import Arena, PageAlloc
from garden.native.codegen.entry import SYSTEM, functions_text
from garden.native.codegen.intrinsics import MEMORY
from garden.native.codegen.module import module_text
from garden.native.codegen.system_calls import LAUNCHER_TEXTS, system_call
from garden.native.codegen.translate import Translator
from garden.native.executable.aot import executable
from garden.native.executable.system import LIBC, bytes_text, numbers_text
from garden.native.image.elf import parse
from garden.native.target import AARCH64, X86_64, compile_text
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source

SOURCE: Final = Path(__file__).with_name("launcher.garden")

#: Begins the LLVM names of the launcher's functions.
_PREFIX: Final = "garden."
#: Bytes of the memory of `launcher.garden`: a page for small things, and one for a path.
_MEMORY_BYTES: Final = 1 << 13
_STATUS_BYTES: Final = 256

# Flags of `open`. Two of them depend on the machine.
_NOCTTY: Final = 0o400
_NONBLOCK: Final = 0o4000
_CLOEXEC: Final = 0o2000000
_DIRECTORY: Final = {X86_64: 0o200000, AARCH64: 0o40000}
_NOFOLLOW: Final = {X86_64: 0o400000, AARCH64: 0o100000}


def launcher(target: str, build_id: bytes, python: str) -> bytes:
    """The file of a launcher. `python` is the name of the interpreter to start, such as python3.11.

    Raises ImportError where llvmlite is not installed.
    """
    return executable(parse(compile_text(_text(target, build_id, python), target)))


def _text(target: str, build_id: bytes, python: str) -> str:
    flags = {
        "source_flags": _NONBLOCK | _NOCTTY | _CLOEXEC,
        "directory_flags": _DIRECTORY[target] | _NOFOLLOW[target] | _CLOEXEC,
        "program_flags": _NOFOLLOW[target] | _NONBLOCK | _CLOEXEC,
    }
    texts = (target.encode(), build_id, python.encode(), f"garden: cannot find {python}\n".encode())
    parts = [
        numbers_text(target),
        *[f"@launcher.{name} = internal constant i64 {number}\n" for name, number in flags.items()],
        *[bytes_text(f"launcher.{name}", text + b"\0") for name, text in zip(LAUNCHER_TEXTS, texts, strict=True)],
        bytes_text("launcher.itself", b"/proc/self/exe\0"),
        bytes_text("launcher.empty", b"\0"),
        f"@launcher.status = internal global [{_STATUS_BYTES} x i8] zeroinitializer, align 8\n",
        f"@launcher.memory = internal global [{_MEMORY_BYTES} x i8] zeroinitializer, align 8\n",
        functions_text(target, SYSTEM),
        _functions(),
        _MAIN,
        LIBC,
    ]
    return module_text(target, parts, argument_words=0, interrupt="")


def _functions() -> str:
    """The LLVM text of the functions of `launcher.garden`, which are translated as those of the runtime are."""
    source = Source(SOURCE.name, SOURCE.read_bytes())
    with (
        Arena(PageAlloc()) as scratch,
        StageAllocators() as allocators,
        Compilation(source, allocators, {MEMORY.path: MEMORY}) as compilation,
    ):
        ir = compilation.optimise()
        translator = Translator(ir, scratch, _PREFIX)
        try:
            functions = [translator.function(row) for row in range(1, ir.function_count - 1)]
            return "".join([translator.string_data(), *functions])
        finally:
            translator.close()


_MAIN: Final = f"""\
define hidden void @garden_main(i64 %words) noreturn nounwind {{
  %status = call fastcc i64 @"{_PREFIX}launch"(i64 %words, i64 0)
  {system_call("exit_group", "%status", result="%exited", unique=".0")}
  unreachable
}}
"""
