"""Programs: the product of the compiler for the JIT, and its form in the cache.

A `NativeProgram` is an object and the few facts that a machine needs. Its cache key depends only on the source, so that
a cached program is not even parsed. Programs that may import other than the standard packages have no such key.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from garden.native.cache import digest
from garden.native.fingerprint import fingerprint

if TYPE_CHECKING:
    from garden.host import HostFunction
    from garden.native.cache import Cache
    from garden.source import Source

#: Begins the names of a program's functions and data in its object.
PREFIX: Final = "g."
_MAGIC: Final = b"garden program 1\n"


class NativeProgram:
    """A program as an object, and what a machine must know of it.

    `parameters` are the numbers of parameters by function row, -1 for a function that was left out; the last row is the
    entry. `string_words` is the length of the constant strings. `reserve` is how many bytes of stack must be left when
    a function is called that may recurse. `hosts` are the host functions that are called in Python, by index, each
    with its path and signature.
    """

    __slots__ = ("argument_words", "hosts", "object", "parameters", "reserve", "string_words")

    def __init__(
        self,
        object: bytes,
        parameters: list[int],
        string_words: int,
        argument_words: int,
        reserve: int,
        hosts: dict[int, str],
    ) -> None:
        self.object: Final = object
        self.parameters: Final = parameters
        self.string_words: Final = string_words
        self.argument_words: Final = argument_words
        self.reserve: Final = reserve
        self.hosts: Final = hosts

    def to_bytes(self) -> bytes:
        lines = [
            " ".join(map(str, self.parameters)),
            f"{self.string_words} {self.argument_words} {self.reserve}",
            *[f"{index} {text}" for index, text in self.hosts.items()],
        ]
        return _MAGIC + "\n".join(lines).encode() + b"\n\n" + self.object

    @staticmethod
    def from_bytes(data: bytes) -> NativeProgram:
        """The inverse of `to_bytes`. ValueError for anything else."""
        head, blank, object = data.removeprefix(_MAGIC).partition(b"\n\n")
        if not data.startswith(_MAGIC) or not blank:
            raise ValueError("no program in machine code")
        parameters, numbers, *hosts = head.decode().split("\n")
        string_words, argument_words, reserve = map(int, numbers.split())
        by_index = {}
        for line in hosts:
            index, _, text = line.partition(" ")
            by_index[int(index)] = text
        return NativeProgram(
            object, [int(word) for word in parameters.split()], string_words, argument_words, reserve, by_index
        )


def program_key(source: bytes, target: str, *, level: int, backtrace: bool) -> bytes:
    """The key of a program that imports only standard packages: it covers all that the product depends on."""
    return digest(b"program", target.encode(), f"{level} {backtrace}".encode(), fingerprint(), source)


def executable_key(source: Source, target: str, level: int) -> bytes:
    """The key of a program's executable. `docs/internals/native.md` describes it for other readers."""
    # The bytes of the command line, whatever the locale is.
    name = os.fsencode(source.name)
    return digest(b"executable", target.encode(), str(level).encode(), fingerprint(), name, source.text)


def load_program(cache: Cache, key: bytes) -> NativeProgram | None:
    """The program cached under a key; None if there is none."""
    kept = cache.load(key)
    return None if kept is None else NativeProgram.from_bytes(kept)


def standard_hosts(program: NativeProgram) -> list[HostFunction] | None:
    """The host functions that a program calls in Python, by index; None if the standard packages lack one."""
    if not program.hosts:
        return []
    from garden.native.codegen.hosts import python_name
    from garden.std import STANDARD

    named = {python_name(function): function for package in STANDARD.values() for function in package.functions}
    if not all([text in named for text in program.hosts.values()]):
        return None
    # At indices that machine code does not call in Python, it does not matter what stands.
    anything = named[program.hosts[max(program.hosts)]]
    return [named.get(program.hosts.get(index, ""), anything) for index in range(max(program.hosts) + 1)]
