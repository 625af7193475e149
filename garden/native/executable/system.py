"""System: what an executable has instead of Python and libc, as an object that is linked with the program's.

It has the definitions that the intrinsics of `garden.native.codegen.system_calls` refer to, the entry point, the host
(`host.garden`), and the libc functions that LLVM assumes. What depends on the program are words of data, which whoever
makes an executable defines: `CARRIED` there.

The executable starts on the stack of the system. The program has its own stack, since the size of that one cannot be
chosen. SIGINT goes to `garden_interrupt`, unless it is ignored. SIGPIPE is ignored: writing fails instead, so that a
reader of standard error that has gone does not change how a program ends.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from garden.diagnostics import BOLD, PLAIN, RED
from garden.native.codegen.body import field
from garden.native.codegen.entry import SYSTEM, functions_text
from garden.native.codegen.module import RuntimeFunctions, library_text
from garden.native.codegen.system_calls import CARRIED, KNOWN_ERRORS, TEXTS, system_call
from garden.native.prebuilt import prebuilt
from garden.native.target import AARCH64, X86_64, compile_text
from garden.traps import MESSAGES

if TYPE_CHECKING:
    from garden.native.cache import Cache

#: Functions of `host.garden` that are called from here.
_HOST_FUNCTIONS: Final = ("map_stack", "prepare", "flush", "finish", "serve")

#: Numbers of the calls of Linux.
_NUMBERS: Final = {
    X86_64: {
        "read": 0, "write": 1, "close": 3, "mmap": 9, "munmap": 11, "rt_sigaction": 13, "ioctl": 16, "execve": 59,
        "geteuid": 107, "exit_group": 231, "openat": 257, "readlinkat": 267, "ppoll": 271, "execveat": 322,
        "statx": 332,
    },
    AARCH64: {
        "read": 63, "write": 64, "close": 57, "mmap": 222, "munmap": 215, "rt_sigaction": 134, "ioctl": 29,
        "execve": 221, "geteuid": 175, "exit_group": 94, "openat": 56, "readlinkat": 78, "ppoll": 73, "execveat": 281,
        "statx": 291,
    },
}  # fmt: skip
_SIGINT: Final = 2
_SIGPIPE: Final = 13
_SIG_IGN: Final = 1
_SA_RESTORER: Final = 0x04000000


def host_object(target: str, cache: Cache | None = None) -> bytes:
    """The object that is linked with that of a program to make an executable, the same for all."""
    return prebuilt("host", target, cache, lambda: compile_text(_host_text(target, cache), target))


def _host_text(target: str, cache: Cache | None) -> str:
    texts = (
        _lines([f"{code}: {text}" for _, _, code, text in MESSAGES]),
        _lines([f": {os.strerror(number)}" for number in range(KNOWN_ERRORS)]),
        _lines(["garden: cannot write the output: error "]),
        _lines(["garden: no memory for the stack"]),
        _lines([BOLD, RED, PLAIN]),
        _lines(["NO_COLOR="]),
    )
    parts = [
        numbers_text(target),
        *[f"@executable.{name} = external hidden global i64\n" for name in CARRIED],
        *[bytes_text(f"executable.{name}", text) for name, text in zip(TEXTS, texts, strict=True)],
        "@executable.wanted = internal global i64 0\n",
        "@executable.words = internal global i64 0\n",
        functions_text(target, SYSTEM),
        RuntimeFunctions(target, cache, host=True).text(_HOST_FUNCTIONS),
        _MAIN,
        LIBC,
    ]
    return library_text(target, parts)


def numbers_text(target: str) -> str:
    """The LLVM text of the numbers of the system calls."""
    return "".join([f"@system.{call} = internal constant i64 {number}\n" for call, number in _NUMBERS[target].items()])


def _lines(texts: list[str]) -> bytes:
    return "".join([f"{text}\n" for text in texts]).encode()


def bytes_text(name: str, text: bytes) -> str:
    """The LLVM text of a constant of so many bytes."""
    contents = "".join([chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text])
    return f'@{name} = internal constant [{len(text)} x i8] c"{contents}"\n'


_OLD_ACTION: Final = "ptrtoint (ptr @executable.old_action to i64)"


_NEW_ACTION: Final = "ptrtoint (ptr @executable.action to i64)"
_IGNORE: Final = "ptrtoint (ptr @executable.ignore to i64)"
_MAIN: Final = f"""\
declare hidden void @garden_interrupt(i32)
@executable.action = internal constant {{ ptr, i64, ptr, i64 }}
  {{ ptr @garden_interrupt, i64 {_SA_RESTORER}, ptr @garden_handled, i64 0 }}
@executable.ignore = internal constant [4 x i64] [i64 {_SIG_IGN}, i64 0, i64 0, i64 0]
@executable.old_action = internal global [4 x i64] zeroinitializer
define internal i64 @executable_serve(i64 %kind, i64 %a, i64 %b) {{
  %where = load i64, ptr {field("where")}
  %answer = call fastcc i64 @"rt.serve"(i64 %kind, i64 %a, i64 %b, i64 %where)
  ret i64 %answer
}}
define internal i64 @executable_run(i64 %argument) {{
  %prepared = call fastcc i64 @"rt.prepare"(i64 0)
  %entry = load ptr, ptr @executable.entry
  %value = call i64 %entry(i64 0)
  %flushed = call fastcc i64 @"rt.flush"(i64 0)
  ret i64 0
}}
define hidden void @garden_main(i64 %words) noreturn nounwind {{
start:
  store i64 %words, ptr @executable.words
  %stack = call fastcc i64 @"rt.map_stack"(i64 0)
  %none = icmp eq i64 %stack, 0
  br i1 %none, label %end, label %run
run:
  store ptr @executable_serve, ptr {field("request")}
  {system_call("rt_sigaction", _SIGPIPE, _IGNORE, 0, 8, result="%unpiped", unique=".0")}
  {system_call("rt_sigaction", _SIGINT, _NEW_ACTION, _OLD_ACTION, 8, result="%installed", unique=".1")}
  %before = load i64, ptr @executable.old_action
  %ignored = icmp eq i64 %before, {_SIG_IGN}
  br i1 %ignored, label %ignore, label %enter
ignore:
  {system_call("rt_sigaction", _SIGINT, _OLD_ACTION, 0, 8, result="%again", unique=".2")}
  br label %enter
enter:
  %entered = call i64 @garden_enter(ptr @executable_run, i64 %stack, i64 0)
  %finished = call fastcc i64 @"rt.finish"(i64 0)
  br label %end
end:
  %status = phi i64 [ 1, %start ], [ %finished, %enter ]
  {system_call("exit_group", "%status", result="%exited", unique=".3")}
  unreachable
}}
"""


#: The functions that LLVM calls, and those that it makes of others, though no library is there. Without the attribute,
#: it would find out what the loops do, and call the function that they are in.
LIBC: Final = """\
@memcpy = hidden alias ptr (ptr, ptr, i64), ptr @memmove
define hidden ptr @memmove(ptr %to, ptr %from, i64 %count) nounwind "no-builtins" {
start:
  %to.address = ptrtoint ptr %to to i64
  %from.address = ptrtoint ptr %from to i64
  %distance = sub i64 %to.address, %from.address
  %forward = icmp uge i64 %distance, %count
  br i1 %forward, label %by.words, label %backward
by.words:
  %end = and i64 %count, -8
  %some = icmp ne i64 %end, 0
  br i1 %some, label %words, label %by.bytes
words:
  %word = phi i64 [ 0, %by.words ], [ %word.next, %words ]
  %word.from = getelementptr i8, ptr %from, i64 %word
  %word.to = getelementptr i8, ptr %to, i64 %word
  %eight = load i64, ptr %word.from, align 1
  store i64 %eight, ptr %word.to, align 1
  %word.next = add nuw i64 %word, 8
  %word.more = icmp ult i64 %word.next, %end
  br i1 %word.more, label %words, label %by.bytes
by.bytes:
  %rest = icmp ult i64 %end, %count
  br i1 %rest, label %bytes, label %done
bytes:
  %byte = phi i64 [ %end, %by.bytes ], [ %byte.next, %bytes ]
  %byte.from = getelementptr i8, ptr %from, i64 %byte
  %byte.to = getelementptr i8, ptr %to, i64 %byte
  %one = load i8, ptr %byte.from
  store i8 %one, ptr %byte.to
  %byte.next = add nuw i64 %byte, 1
  %byte.more = icmp ult i64 %byte.next, %count
  br i1 %byte.more, label %bytes, label %done
backward:
  %left = phi i64 [ %count, %start ], [ %left.next, %backward ]
  %left.next = sub i64 %left, 1
  %left.from = getelementptr i8, ptr %from, i64 %left.next
  %left.to = getelementptr i8, ptr %to, i64 %left.next
  %last = load i8, ptr %left.from
  store i8 %last, ptr %left.to
  %left.more = icmp ne i64 %left.next, 0
  br i1 %left.more, label %backward, label %done
done:
  ret ptr %to
}
define hidden ptr @memset(ptr %to, i32 %value, i64 %count) nounwind "no-builtins" {
start:
  %byte = trunc i32 %value to i8
  %some = icmp ne i64 %count, 0
  br i1 %some, label %bytes, label %done
bytes:
  %at = phi i64 [ 0, %start ], [ %next, %bytes ]
  %place = getelementptr i8, ptr %to, i64 %at
  store i8 %byte, ptr %place
  %next = add nuw i64 %at, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %bytes, label %done
done:
  ret ptr %to
}
define hidden i32 @memcmp(ptr %left, ptr %right, i64 %count) nounwind "no-builtins" {
start:
  br label %look
look:
  %at = phi i64 [ 0, %start ], [ %next, %compare ]
  %more = icmp ult i64 %at, %count
  br i1 %more, label %compare, label %equal
compare:
  %left.place = getelementptr i8, ptr %left, i64 %at
  %right.place = getelementptr i8, ptr %right, i64 %at
  %left.byte = load i8, ptr %left.place
  %right.byte = load i8, ptr %right.place
  %next = add nuw i64 %at, 1
  %same = icmp eq i8 %left.byte, %right.byte
  br i1 %same, label %look, label %different
different:
  %left.int = zext i8 %left.byte to i32
  %right.int = zext i8 %right.byte to i32
  %difference = sub i32 %left.int, %right.int
  ret i32 %difference
equal:
  ret i32 0
}
"""
