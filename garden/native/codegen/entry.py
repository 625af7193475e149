"""Entry: the way into machine code and out of it, and to the system, as bytes that need no assembler.

No other language can change the stack, and LLVM has an assembler only for the processor that it runs on. So this is
machine code already. A line has the bytes of an instruction (on AArch64 its word) in hexadecimal, and what they mean in
assembly, which a test compares. A word of the context there, or a label at the end, is an operand that is filled in.
The label `to_NAME` is that of the distance from there to a symbol, which stands after the code, so that it does not
matter where the code lies. To LLVM this is the `prologue` of a function without a body: data that stands at its start.
It must not look at that body, from which it would learn that calls change no memory: hence `weak`.

`garden_enter(function, stack, argument)` saves what its caller must find unchanged, moves to another stack where one is
given, calls the function, and returns what that does. `garden_leave()` returns to the caller of the last `garden_enter`
from anywhere, with all frames between dropped. `garden_request(kind, a, b)` calls the host, on the stack that the
context names, and leaves unless the host has set `trap` to 0, so that a host that fails on its way ends the run.
`garden_on_stack(function, stack)` calls a function on another stack, which calls of the host leave meanwhile.

Of executables only: `_start` is where the system begins a process; it calls `garden_main(words)` with the address of
what is on the stack then. `garden_system(number, a, b, c, d, e)` is a system call, whose sixth argument is 0, and
`garden_handled()` is where the handler of a signal returns to.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import re
from typing import Final, NamedTuple

from garden.native.context import FIELD
from garden.native.target import AARCH64, X86_64

ENTRY: Final = ("garden_enter", "garden_leave", "garden_request", "garden_on_stack")
SYSTEM: Final = ("_start", "garden_system", "garden_handled")

_LINES: Final = {
    X86_64: """
        garden_enter:
        55          push rbp
        53          push rbx
        4154        push r12
        4155        push r13
        4156        push r14
        4157        push r15
        4883ec08    sub rsp, 8
        488d05      lea rax, [rip + to_context]
        480300      add rax, [rax]
        4889a0      mov [rax + {host_stack}], rsp
        31c9        xor ecx, ecx
        4885f6      test rsi, rsi
        480f45cc    cmovne rcx, rsp
        480f45e6    cmovne rsp, rsi
        488988      mov [rax + {request_stack}], rcx
        4889f8      mov rax, rdi
        4889d7      mov rdi, rdx
        ffd0        call rax
        488d0d      lea rcx, [rip + to_garden_leave]
        480309      add rcx, [rcx]
        ffe1        jmp rcx

        garden_leave:
        488d0d      lea rcx, [rip + to_context]
        480309      add rcx, [rcx]
        488ba1      mov rsp, [rcx + {host_stack}]
        4883c408    add rsp, 8
        415f        pop r15
        415e        pop r14
        415d        pop r13
        415c        pop r12
        5b          pop rbx
        5d          pop rbp
        c3          ret

        garden_request:
        55          push rbp
        4889e5      mov rbp, rsp
        488d05      lea rax, [rip + to_context]
        480300      add rax, [rax]
        4889a8      mov [rax + {frame}], rbp
        48c7c1ffffffff mov rcx, -1
        488988      mov [rax + {trap}], rcx
        488b88      mov rcx, [rax + {request_stack}]
        4885c9      test rcx, rcx
        480f45e1    cmovne rsp, rcx
        4883e4f0    and rsp, -16
        ff90        call [rax + {request}]
        488d0d      lea rcx, [rip + to_context]
        480309      add rcx, [rcx]
        488b89      mov rcx, [rcx + {trap}]
        4885c9      test rcx, rcx
        0f85        jne ended
        4889ec      mov rsp, rbp
        5d          pop rbp
        c3          ret
        ended:
        488d0d      lea rcx, [rip + to_garden_leave]
        480309      add rcx, [rcx]
        ffe1        jmp rcx

        garden_on_stack:
        55          push rbp
        4889e5      mov rbp, rsp
        488d05      lea rax, [rip + to_context]
        480300      add rax, [rax]
        4889a0      mov [rax + {request_stack}], rsp
        4889f4      mov rsp, rsi
        ffd7        call rdi
        4889ec      mov rsp, rbp
        488d0d      lea rcx, [rip + to_context]
        480309      add rcx, [rcx]
        31d2        xor edx, edx
        488991      mov [rcx + {request_stack}], rdx
        5d          pop rbp
        c3          ret

        _start:
        4889e7      mov rdi, rsp
        4883e4f0    and rsp, -16
        488d05      lea rax, [rip + to_garden_main]
        480300      add rax, [rax]
        ffd0        call rax

        garden_system:
        4889f8      mov rax, rdi
        4889f7      mov rdi, rsi
        4889d6      mov rsi, rdx
        4889ca      mov rdx, rcx
        4d89c2      mov r10, r8
        4d89c8      mov r8, r9
        4531c9      xor r9d, r9d
        0f05        syscall
        c3          ret

        garden_handled:
        b80f000000  mov eax, 15
        0f05        syscall
        """,
    AARCH64: """
        garden_enter:
        a9b67bfd  stp x29, x30, [sp, #-160]!
        a90153f3  stp x19, x20, [sp, #16]
        a9025bf5  stp x21, x22, [sp, #32]
        a90363f7  stp x23, x24, [sp, #48]
        a9046bf9  stp x25, x26, [sp, #64]
        a90573fb  stp x27, x28, [sp, #80]
        6d0627e8  stp d8, d9, [sp, #96]
        6d072fea  stp d10, d11, [sp, #112]
        6d0837ec  stp d12, d13, [sp, #128]
        6d093fee  stp d14, d15, [sp, #144]
        10000009  adr x9, to_context
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        910003ea  mov x10, sp
        f900012a  str x10, [x9, {host_stack}]
        f100003f  cmp x1, #0
        9a8a03eb  csel x11, xzr, x10, eq
        f900012b  str x11, [x9, {request_stack}]
        9a81014a  csel x10, x10, x1, eq
        9100015f  mov sp, x10
        aa0003e9  mov x9, x0
        aa0203e0  mov x0, x2
        d63f0120  blr x9
        10000009  adr x9, to_garden_leave
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        d61f0120  br x9

        garden_leave:
        10000009  adr x9, to_context
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        f940012a  ldr x10, [x9, {host_stack}]
        9100015f  mov sp, x10
        a94153f3  ldp x19, x20, [sp, #16]
        a9425bf5  ldp x21, x22, [sp, #32]
        a94363f7  ldp x23, x24, [sp, #48]
        a9446bf9  ldp x25, x26, [sp, #64]
        a94573fb  ldp x27, x28, [sp, #80]
        6d4627e8  ldp d8, d9, [sp, #96]
        6d472fea  ldp d10, d11, [sp, #112]
        6d4837ec  ldp d12, d13, [sp, #128]
        6d493fee  ldp d14, d15, [sp, #144]
        a8ca7bfd  ldp x29, x30, [sp], #160
        d65f03c0  ret

        garden_request:
        a9bf7bfd  stp x29, x30, [sp, #-16]!
        910003fd  mov x29, sp
        10000009  adr x9, to_context
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        f900013d  str x29, [x9, {frame}]
        9280000b  mov x11, #-1
        f900012b  str x11, [x9, {trap}]
        f940012a  ldr x10, [x9, {request_stack}]
        f100015f  cmp x10, #0
        910003eb  mov x11, sp
        9a8a016a  csel x10, x11, x10, eq
        9100015f  mov sp, x10
        f9400129  ldr x9, [x9, {request}]
        d63f0120  blr x9
        10000009  adr x9, to_context
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        f940012a  ldr x10, [x9, {trap}]
        b500000a  cbnz x10, ended
        910003bf  mov sp, x29
        a8c17bfd  ldp x29, x30, [sp], #16
        d65f03c0  ret
        ended:
        10000009  adr x9, to_garden_leave
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        d61f0120  br x9

        garden_on_stack:
        a9bf7bfd  stp x29, x30, [sp, #-16]!
        910003fd  mov x29, sp
        10000009  adr x9, to_context
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        910003ea  mov x10, sp
        f900012a  str x10, [x9, {request_stack}]
        9100003f  mov sp, x1
        d63f0000  blr x0
        910003bf  mov sp, x29
        10000009  adr x9, to_context
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        f900013f  str xzr, [x9, {request_stack}]
        a8c17bfd  ldp x29, x30, [sp], #16
        d65f03c0  ret

        _start:
        910003e0  mov x0, sp
        10000009  adr x9, to_garden_main
        f940012a  ldr x10, [x9]
        8b0a0129  add x9, x9, x10
        d63f0120  blr x9

        garden_system:
        aa0003e8  mov x8, x0
        aa0103e0  mov x0, x1
        aa0203e1  mov x1, x2
        aa0303e2  mov x2, x3
        aa0403e3  mov x3, x4
        aa0503e4  mov x4, x5
        d2800005  mov x5, #0
        d4000001  svc #0
        d65f03c0  ret

        garden_handled:
        d2801168  mov x8, #139
        d4000001  svc #0
        """,
}

#: What LLVM knows of the functions: results and parameters.
_TYPES: Final = {
    "garden_enter": ("i64", "ptr, i64, i64"),
    "garden_leave": ("void", ""),
    "garden_request": ("i64", "i64, i64, i64"),
    "garden_on_stack": ("i64", "ptr, i64"),
    "_start": ("void", ""),
    "garden_system": ("i64", "i64, i64, i64, i64, i64, i64"),
    "garden_handled": ("void", ""),
}

#: A word of the context, or the word at the end, which may be a label.
_OPERAND: Final = re.compile(r"\{(\w+)\}|(\w+)\]?$")
_DISTANCE: Final = "to_"


class Function(NamedTuple):
    """A function: its code, whole words of 8 bytes, and the symbols to which distances follow, a word each.

    `assembly` is the same for people, a line an instruction or label.
    """

    code: bytes
    symbols: list[str]
    assembly: list[str]


def functions_text(target: str, names: tuple[str, ...]) -> str:
    """The LLVM text of some functions."""
    return "".join([_text(name, function) for name, function in functions(target).items() if name in names])


def declared_functions(names: tuple[str, ...]) -> str:
    """The LLVM text of some functions that another module has."""
    return "".join([f"declare hidden {_TYPES[name][0]} @{name}({_TYPES[name][1]})\n" for name in names])


def functions(target: str) -> dict[str, Function]:
    """All functions for a target, by name."""
    found = {}
    for text in _LINES[target].split("\n\n"):
        name, *lines = [line.strip() for line in text.strip().splitlines()]
        found[name.removesuffix(":")] = _assemble(target, lines)
    return found


def _text(name: str, function: Function) -> str:
    size = len(function.code)
    fields = [f"[{size} x i8]"]
    contents = "".join([f"\\{byte:02X}" for byte in function.code])
    values = [f'[{size} x i8] c"{contents}"']
    for index, symbol in enumerate(function.symbols):
        place = f"getelementptr (i8, ptr @{name}, i64 {size + 8 * index})"
        fields.append("i64")
        values.append(f"i64 sub (i64 ptrtoint (ptr @{symbol} to i64), i64 ptrtoint (ptr {place} to i64))")
    result, parameters = _TYPES[name]
    return (
        f"define weak hidden {result} @{name}({parameters}) naked noinline nounwind align 16"
        f" prologue <{{ {', '.join(fields)} }}> <{{ {', '.join(values)} }}> {{ unreachable }}\n"
    )


def _assemble(target: str, lines: list[str]) -> Function:
    found = [_OPERAND.search(line) for line in lines]
    names = [match[2] for match in found if match is not None and match[2]]
    symbols = [name.removeprefix(_DISTANCE) for name in dict.fromkeys(names) if name.startswith(_DISTANCE)]
    labels = {name: 0 for name in names if name.startswith(_DISTANCE) or f"{name}:" in lines}
    # The first time, only the labels become right.
    for _ in range(2):
        code = bytearray()
        assembly = []
        for line in lines:
            if line.endswith(":"):
                labels[line[:-1]] = len(code)
                assembly.append(line)
            else:
                hexadecimal, meaning = line.split(maxsplit=1)
                code += _instruction(target, hexadecimal, _operand(meaning, labels), len(code))
                assembly.append(meaning.format(**{name: 8 * index for name, index in FIELD.items()}))
        code += bytes(-len(code) & 7)
        for index, symbol in enumerate(symbols):
            labels[_DISTANCE + symbol] = len(code) + 8 * index
    return Function(bytes(code), symbols, assembly)


def _operand(meaning: str, labels: dict[str, int]) -> tuple[int, int] | None:
    """The index of a word of the context and -1, or -1 and a place in the code; None where nothing is filled in."""
    found = _OPERAND.search(meaning)
    if found is None:
        return None
    if found[1]:
        return FIELD[found[1]], -1
    return (-1, labels[found[2]]) if found[2] in labels else None


def _instruction(target: str, hexadecimal: str, operand: tuple[int, int] | None, at: int) -> bytes:
    """The bytes of an instruction that stands `at` some place."""
    if target == X86_64:
        code = bytes.fromhex(hexadecimal)
        if operand is None:
            return code
        field, place = operand
        # 32 bits at the end; a place counts from after them.
        filled = 8 * field if field >= 0 else place - (at + len(code) + 4)
        return code + filled.to_bytes(4, "little", signed=True)
    word = int(hexadecimal, 16)
    if operand is not None:
        field, place = operand
        # 12 bits that count words of 8 bytes, or 19 that count instructions from here.
        word |= field << 10 if field >= 0 else (place - at >> 2 & 0x7FFFF) << 5
    return word.to_bytes(4, "little")
