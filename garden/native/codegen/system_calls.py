"""System calls: intrinsics of the runtime for executables, which call the system directly.

They are more of the functions that `garden.native.codegen.intrinsics` describes: calls of the system, and what the
executable carries with it. `host.garden` is made of them; what they refer to is in `garden.native.executable.system`.
Those of `LAUNCHER` are for `launcher.garden` and refer to `garden.native.executable.launcher`.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

from garden.diagnostics import MAX_SHOWN
from garden.native import context
from garden.types.types import Int, Type, Void
from garden.vm.heap import FIRST_CHUNK, FIRST_SLOTS, LAST_CHUNK

#: Asks for the settings of a terminal, up to 60 bytes, which nothing else has.
_TCGETS: Final = 0x5401
#: In a `struct pollfd`, that there is room to write.
_POLLOUT: Final = 4 << 32
_READ_WRITE: Final = 3
_PRIVATE_ANONYMOUS: Final = 0x22
#: Takes memory as it is used, and no large pages, of which clearing the first one would take longer than to start.
_NORESERVE_STACK: Final = 0x24000
#: Of the numbers of errors, those below are the same on every system, so that they can be named when building.
KNOWN_ERRORS: Final = 35

#: The words that an executable carries with it: numbers of the program, and addresses. `entry` is the function that
#: runs it.
CARRIED: Final = (
    "stack_bytes",
    "reserve",
    "heap_limit",
    "constant_words",
    "source_bytes",
    "name_bytes",
    "widths_bytes",
    "constants",
    "source",
    "name",
    "widths",
    "entry",
)
#: Texts that are the same in all executables.
TEXTS: Final = ("messages", "errors", "failure", "no_stack", "styles", "no_color")

_CONSTANTS: Final = {
    "first_chunk": FIRST_CHUNK,
    "last_chunk": LAST_CHUNK,
    "first_slots": FIRST_SLOTS,
    "output_bytes": context.OUTPUT_BYTES,
    "max_shown": MAX_SHOWN,
    "known_errors": KNOWN_ERRORS,
    "chunk_request": context.CHUNK,
    "table_request": context.TABLE,
    "write_request": context.WRITE,
}


def system_call(name: str, *arguments: str | int, result: str = "{r}", unique: str = "{u}") -> str:
    """Instructions that call the system."""
    words = ", ".join([f"i64 {word}" for word in (*arguments, *[0] * (5 - len(arguments)))])
    number = f"%number{unique}"
    return f"{number} = load i64, ptr @system.{name}\n{result} = call i64 @garden_system(i64 {number}, {words})"


_STATUS: Final = "ptrtoint (ptr @launcher.status to i64)"
_EMPTY: Final = "ptrtoint (ptr @launcher.empty to i64)"
#: In place of the descriptor of a folder, the working directory.
_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
#: Kind, mode, owner and size. The layout of what `statx` tells is the same on every machine.
_STATX_WANTED: Final = 0x20B

#: Texts that the launcher carries with it, each with a zero byte at its end.
LAUNCHER_TEXTS: Final = ("target", "build_id", "python", "failure")


def _open(flags: str, directory: str | int, path: str) -> str:
    """Open a file with flags whose numbers depend on the target."""
    return f"%flags{{u}} = load i64, ptr @launcher.{flags}\n{system_call('openat', directory, path, '%flags{u}')}"


#: The same for the launcher. A path is the address of a text that ends with a zero byte.
LAUNCHER: Final[tuple[tuple[str, Type, str], ...]] = (
    ("open_source", Int, _open("source_flags", _AT_FDCWD, "{a}")),
    ("open_directory", Int, _open("directory_flags", _AT_FDCWD, "{a}")),
    # A file of a directory that is open.
    ("open_program", Int, _open("program_flags", "{a}", "{b}")),
    ("close", Void, system_call("close", "{a}", result="%ignored{u}")),
    ("read", Int, system_call("read", "{a}", "{b}", "{c}")),
    # The status of what a path leads to, or of an open file, goes to `launcher_status()`.
    ("get_status", Int, system_call("statx", _AT_FDCWD, "{a}", 0, _STATX_WANTED, _STATUS)),
    ("get_file_status", Int, system_call("statx", "{a}", _EMPTY, _AT_EMPTY_PATH, _STATX_WANTED, _STATUS)),
    ("get_own_path", Int, system_call("readlinkat", _AT_FDCWD, "ptrtoint (ptr @launcher.itself to i64)", "{a}", "{b}")),
    ("get_user", Int, system_call("geteuid")),
    # Become another program, with these arguments and this environment. They return if that is impossible.
    ("execute", Void, system_call("execve", "{a}", "{b}", "{c}", result="%ignored{u}")),
    (
        "execute_file",
        Void,
        system_call("execveat", "{a}", _EMPTY, "{b}", "{c}", _AT_EMPTY_PATH, result="%ignored{u}"),
    ),
    ("launcher_status", Int, f"{{r}} = add i64 0, {_STATUS}"),
    ("launcher_memory", Int, "{r} = ptrtoint ptr @launcher.memory to i64"),
    *[(f"launcher_{name}", Int, f"{{r}} = ptrtoint ptr @launcher.{name} to i64") for name in LAUNCHER_TEXTS],
)

#: Name, type of the result, and text: see `garden.native.codegen.intrinsics`.
INTRINSICS: Final[tuple[tuple[str, Type, str], ...]] = (
    ("write_output", Int, system_call("write", 1, "{a}", "{b}")),
    ("write_error", Int, system_call("write", 2, "{a}", "{b}")),
    # Whether a descriptor is a terminal: then the result is 0, and what `b` is the address of is overwritten.
    ("get_terminal", Int, system_call("ioctl", "{a}", _TCGETS, "{b}")),
    # Wait until a non-blocking file has room, or has failed.
    (
        "wait_for",
        Int,
        f"%wanted{{u}} = or i64 {{a}}, {_POLLOUT}\nstore i64 %wanted{{u}}, ptr @executable.wanted\n"
        + system_call("ppoll", "ptrtoint (ptr @executable.wanted to i64)", 1),
    ),
    ("map", Int, system_call("mmap", 0, "{a}", _READ_WRITE, _PRIVATE_ANONYMOUS, -1)),
    ("map_stack", Int, system_call("mmap", 0, "{a}", _READ_WRITE, _PRIVATE_ANONYMOUS | _NORESERVE_STACK, -1)),
    ("unmap", Void, system_call("munmap", "{a}", "{b}", result="%ignored{u}")),
    # Ends the run since the output cannot be written, with the number of the error.
    ("fail", Void, f"call fastcc void @garden_trap(i64 {context.FAILED}, i64 %where, i64 {{a}}, i64 0)"),
    # What the stack began with: the count of arguments, the arguments, 0, the environment, 0.
    ("executable_words", Int, "{r} = load i64, ptr @executable.words"),
    ("output_buffer", Int, "{r} = ptrtoint ptr @output_buffer to i64"),
    *[(f"executable_{name}", Int, f"{{r}} = load i64, ptr @executable.{name}") for name in CARRIED],
    *[(f"executable_{name}", Int, f"{{r}} = ptrtoint ptr @executable.{name} to i64") for name in TEXTS],
    *[(name, Int, f"{{r}} = add i64 0, {number}") for name, number in _CONSTANTS.items()],
)
