"""The machine code of the entry is what the assembly beside it says, by the assemblers of the system."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from allocators import PageAlloc
from garden.native.codegen.body import field
from garden.native.codegen.entry import ENTRY, SYSTEM, Function, functions, functions_text
from garden.native.context import FIELD, FIELDS
from garden.native.image.elf import parse
from garden.native.image.link import link
from garden.native.image.load import Image
from garden.native.target import AARCH64, X86_64, compile_text, host_target

_PREFIXES = {X86_64: "x86_64-linux-gnu-", AARCH64: "aarch64-linux-gnu-"}


def tool(target: str, name: str) -> str:
    """A tool of binutils for a target; where there is none, the test is skipped."""
    found = shutil.which(_PREFIXES[target] + name) or (shutil.which(name) if target == host_target() else None)
    if found is None:
        pytest.skip(f"there is no {name} for {target}")
    return found


def assembled(target: str, function: Function, folder: Path) -> bytes:
    """What the assembler makes of the assembly."""
    lines = [".text"]
    if target == X86_64:
        lines.append(".intel_syntax noprefix")
    for line in function.assembly:
        # Operands that are filled in have 32 bits, also where fewer would do.
        wide = target == X86_64 and (" + " in line or line.startswith("jne"))
        lines.append("{disp32} " + line if wide and "rip" not in line else line)
    lines.append(".balign 8, 0")
    lines.extend([f"to_{symbol}: .quad {symbol} - ." for symbol in function.symbols])
    source = folder / "code.s"
    source.write_text("\n".join([*lines, ""]))
    subprocess.run([tool(target, "as"), "-o", folder / "code.o", source], check=True, timeout=60)
    copy: list[str | Path] = [
        tool(target, "objcopy"),
        "-O",
        "binary",
        "-j",
        ".text",
        folder / "code.o",
        folder / "code.bin",
    ]
    subprocess.run(copy, check=True, timeout=60)
    return (folder / "code.bin").read_bytes()


@pytest.mark.parametrize("name", [*ENTRY, *SYSTEM])
@pytest.mark.parametrize("target", [X86_64, AARCH64])
def test_the_bytes_are_what_the_assembly_says(target: str, name: str, tmp_path: Path) -> None:
    function = functions(target)[name]
    assert assembled(target, function, tmp_path) == function.code + bytes(8 * len(function.symbols))


@pytest.mark.parametrize("target", [X86_64, AARCH64])
def test_the_code_of_an_image_has_the_distances_to_what_it_needs(target: str) -> None:
    text = "@context = hidden global [99 x i64] zeroinitializer\n" + functions_text(target, ENTRY)
    object_file = parse(compile_text(text, target))
    base = 0x12345000
    image = link(object_file, base, {})
    starts = {symbol.name: symbol for symbol in object_file.symbols}
    assert starts["context"].section != starts["garden_enter"].section
    for name, function in functions(target).items():
        if name not in ENTRY:
            continue
        start = starts[name].value
        assert starts[name].is_function
        assert starts[name].size == len(function.code) + 8 * len(function.symbols)
        assert image[start : start + len(function.code)] == function.code
        for index, symbol in enumerate(function.symbols):
            at = start + len(function.code) + 8 * index
            (distance,) = struct.unpack_from("<q", image, at)
            if symbol == "garden_leave":
                assert at + distance == starts["garden_leave"].value
            else:
                # The context begins the writable part, on a page of its own.
                assert (at + distance) % 4096 == 0
                assert at + distance + 99 * 8 <= len(image)


#: Adds to a word of the context before a request and after it.
ASKING = f"""
@context = hidden global [{len(FIELDS)} x i64] zeroinitializer
define hidden i64 @ask(i64 %n) {{
  store i64 %n, ptr {field("cursor")}
  %answer = call i64 @garden_request(i64 7, i64 %n, i64 5)
  %now = load i64, ptr {field("cursor")}
  %sum = add i64 %answer, %now
  ret i64 %sum
}}
"""
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


@pytest.mark.skipif(host_target() is None, reason="there is no native code for this machine")
@pytest.mark.parametrize("own_stack", [False, True])
def test_requests_may_change_the_context_and_end_the_run(own_stack: bool) -> None:
    target = host_target()
    assert target is not None
    with Image(compile_text(ASKING + functions_text(target, ENTRY), target), PageAlloc(), {}) as image:
        context = (ctypes.c_int64 * len(FIELDS)).from_address(image.address("context"))
        served = []

        def serve(kind: int, a: int, b: int) -> int:
            served.append((kind, a, b, context[FIELD["cursor"]]))
            context[FIELD["cursor"]] = 1000
            context[FIELD["trap"]] = a < 0
            return 34

        callback = CALLBACK(serve)
        context[FIELD["request"]] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        enter = CALLBACK(image.address("garden_enter"))
        stack = ctypes.create_string_buffer(1 << 16)
        end = (ctypes.addressof(stack) + len(stack)) & -16 if own_stack else 0
        for n in (3, -3, 4):
            result = enter(image.address("ask"), end, n)
            assert served.pop() == (7, n, 5, n)
            if n > 0:
                assert result == 34 + 1000
        # On a stack of its own, the program has left marks there.
        assert any(stack.raw) == own_stack
