"""Modules: assembles all parts of an image into one LLVM text.

A module has the entry and exit code, the context, and the runtime functions that it needs, so that LLVM can inline them
and drop those that are not called.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from allocators import Arena, PageAlloc
from garden.ir.calls import callees
from garden.native.cache import Cache
from garden.native.codegen import intrinsics
from garden.native.codegen.body import declarations, external_data, field, shared_data
from garden.native.codegen.entry import ENTRY, declared_functions, functions_text
from garden.native.codegen.runtime import SOURCE, runtime_ir
from garden.native.codegen.translate import Signature, Translator
from garden.native.prebuilt import prebuilt
from garden.native.target import STACK_POINTER

#: Prefix of the LLVM names of the runtime's functions.
_PREFIX: Final = "rt."

_Row = tuple[str, str, list[str], list[str], list[int] | None, list[str], str]


class RuntimeFunctions:
    """The functions of the runtime as LLVM texts, for one target. `signatures` are by name.

    With `host`, those of the host of executables too.
    """

    def __init__(self, target: str, cache: Cache | None = None, *, host: bool = False) -> None:
        self.signatures: Final[dict[str, Signature]] = {}
        self._texts: Final[dict[str, str]] = {}
        self._callees: Final[dict[str, list[str]]] = {}
        for name, result, parameters, shape, slots, called, text in json.loads(runtime_rows(target, cache, host=host)):
            signature = self.signatures[name] = Signature(f"{_PREFIX}{name}", result, parameters)
            signature.shape, signature.slots = shape, slots
            self._callees[name] = called
            self._texts[name] = text

    def text(self, needed: Iterable[str]) -> str:
        """The text of these functions and of all functions that they call."""
        pending = list(needed)
        known = dict.fromkeys(pending)
        while pending:
            for name in self._callees[pending.pop()]:
                if name not in known:
                    known[name] = None
                    pending.append(name)
        return "".join([self._texts[name] for name in self._texts if name in known])


def runtime_rows(target: str, cache: Cache | None = None, *, host: bool = False) -> bytes:
    """The functions of the runtime, as JSON."""
    name = "runtime-with-host" if host else "runtime"
    return prebuilt(name, target, cache, lambda: json.dumps(_translate(target, host)).encode())


def _translate(target: str, host: bool) -> list[_Row]:
    """Name, signature (see `Signature`), names of the callees and text of each function."""
    rows: list[_Row] = []
    # The runtime is no part of the program, whose figures must not depend on what is in the cache.
    with Arena(PageAlloc()) as scratch, runtime_ir(scratch, host=host) as ir:
        # The host runs little and seldom.
        small_from = SOURCE.stat().st_size if host else None
        translator = Translator(ir, scratch, _PREFIX, small_from=small_from)
        try:
            names = [signature.name.removeprefix(_PREFIX) for signature in translator.signatures]
            # The last one is what stands outside of functions, which is nothing.
            for row in range(1, ir.function_count - 1):
                signature = translator.signatures[row]
                called = [names[callee] for callee in callees(ir, row)]
                text = translator.function(row)
                shape = (signature.result, signature.parameters, signature.shape, signature.slots)
                rows.append((names[row], *shape, called, text))
            assert not translator.strings, "the runtime has no constant strings, which would not be interned"
        finally:
            translator.close()
    return rows


def module_text(target: str, parts: Iterable[str], *, argument_words: int, interrupt: str) -> str:
    """The text of a module for a target: its own parts, and what every module has.

    `interrupt` are instructions that the handler of signals does beside what it does everywhere.
    """
    own = [functions_text(target, ENTRY), shared_data(argument_words), _interrupt_handler(interrupt)]
    return "".join([*own, *_used_by_all(target), *parts])


def library_text(target: str, parts: Iterable[str]) -> str:
    """The text of a module that uses the entry and exit code, and the context, of the one that it is linked with."""
    return "".join([declared_functions(ENTRY), external_data(), *_used_by_all(target), *parts])


def _used_by_all(target: str) -> tuple[str, str]:
    return declarations(STACK_POINTER[target]), intrinsics.declarations()


def _interrupt_handler(more: str) -> str:
    return f"""\
define hidden void @garden_interrupt(i32 %signal) {{
  %number = sub i32 %signal, 1
  %bits = zext i32 %number to i64
  %bit = shl i64 1, %bits
  %before = atomicrmw or ptr {field("interrupted")}, i64 %bit monotonic, align 8
{more}
  ret void
}}
"""
