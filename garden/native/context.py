"""Context: the words that machine code and Python share while a program runs.

The context is a global of the image, an array of words in its writable part, so that machine code addresses each field
relative to its own address and needs no register for it. Every machine loads its own image, and so has its own context.

`FIELDS` is the one table of it. Everything derives from it: offsets in LLVM text and in assembly, accessors for the
runtime, which is written in garden, and Python's view.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

#: Name and meaning of each word, in order.
FIELDS: Final[tuple[tuple[str, str], ...]] = (
    ("cursor", "heap: the next free byte of the current chunk"),
    ("end", "heap: the end of the current chunk"),
    ("base", "heap: what to subtract from cursor for the bytes in use"),
    ("allocations", "heap: how many there have been"),
    ("slots", "strings: address of the table, two words a slot: address and first word of a Str"),
    ("mask", "strings: number of slots less 1; -1 while there is no table"),
    ("strings", "strings: how many are in the table"),
    ("output", "output: the next free byte of the buffer"),
    ("output_end", "output: the end of the buffer"),
    ("unbuffered", "output: not 0 where it is handed on as it comes, since a terminal shows it"),
    ("host_stack", "stack pointer at the entry, which a trap restores"),
    ("request_stack", "the same where the program has a stack of its own, which calls into the host leave, else 0"),
    (
        "stack_limit",
        "calls that may recurse trap below this stack pointer; interpreter: the lowest address of the stack",
    ),
    ("request", "address of the host's function that serves requests"),
    ("trap", "0, or what ended the run: number of a message, or FAILED"),
    ("trap_a", "first value in the message"),
    ("trap_b", "second value in the message"),
    ("trap_c", "third value in the message"),
    ("where", "where the trap is: byte offset in the source, or pc"),
    ("interrupted", "signals that have come and wait for their handlers: bit n - 1 for signal n"),
    ("frame", "address of the frame that the trap or the failed request was in, for a backtrace"),
    ("registers", "interpreter: address of the registers"),
    ("code", "interpreter: address of the instructions"),
    ("constants", "interpreter: address of the constant area"),
    ("hosts", "interpreter: address of two words for each host function: its adapter, and what that needs"),
    ("frames", "interpreter: address of the first frame"),
    ("frames_top", "interpreter: the next free frame"),
    ("frames_end", "interpreter: the end of the frames"),
    ("spill", "interpreter: address of the spill stack"),
    ("spill_top", "interpreter: the next free word of it"),
    ("spill_end", "interpreter: the end of it"),
    ("asked", "interpreter: not 0 where the host wants to be asked as by a signal"),
    ("natives", "compiled functions: address of two words by row: of what calls it, and the number of its parameters"),
    ("native_arguments", "compiled functions: address of `arguments` of their image"),
    ("native_stack", "compiled functions: the end of their stack"),
    ("native_limit", "compiled functions: `stack_limit` while one runs"),
    ("native", "compiled functions: 1 while the interpreter has called one, else 0"),
    ("taken", "executable: bytes that the heap has taken from the system"),
    ("heap_limit", "executable: how many it may take"),
    ("next_chunk", "executable: bytes of the next chunk"),
)

#: Index of each field by name.
FIELD: Final[dict[str, int]] = {name: index for index, (name, _) in enumerate(FIELDS)}

#: `trap` where an exception of the host ended the run.
FAILED: Final = -1

#: Bytes of the output buffer, the global `output_buffer`.
OUTPUT_BYTES: Final = 1 << 13
#: Words of `arguments`, the global through which arguments go that have no register, and those of host functions.
ARGUMENT_WORDS: Final = 256

# Requests to the host: its function is given one of these and two words, and returns a word.
HOST_CALL: Final = 0  # host function a of b arguments, which stand in `arguments`; returns its result
CHUNK: Final = 1  # memory for a bytes on the heap, of which the current chunk has no room; returns their address
TABLE: Final = 2  # a larger table of strings
WRITE: Final = 3  # write b bytes from address a on; what the buffer holds comes first
POLL: Final = 4  # look for signals
FRAMES: Final = 5  # room for more frames
SPILL_FULL: Final = 6  # end the run, since the spill stack is full
UNKNOWN: Final = 7  # end the run, since no instruction has the opcode a
SPILL: Final = 8  # a spill stack elsewhere, since this thread's stack has no room for one
