"""The runtime: the functions that machine code calls, written in garden (`runtime.garden`) over `memory`.

It is compiled to SSA as any program is. From there it becomes part of the module of the calling program, so that small
functions are inlined and unused ones dropped.

Costs: some 0.1 s, only when there is something new to translate.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from allocators import Allocator, Arena
from garden.ir.ir import Ir
from garden.native.codegen.intrinsics import MEMORY
from garden.pipeline import SCRATCH, Compilation, StageAllocators
from garden.source import Source

SOURCE: Final = Path(__file__).with_name("runtime.garden")
#: What executables have in addition.
HOST: Final = SOURCE.parents[1] / "executable" / "host.garden"

#: The stages that the runtime goes through.
_STAGES: Final = ("parse", "check", "lower", "optimise")


def runtime_source(host: bool = False) -> Source:
    """The text of the runtime, with that of the host of executables if it is wanted."""
    return Source(SOURCE.name, SOURCE.read_bytes() + (HOST.read_bytes() if host else b""))


@contextmanager
def runtime_ir(allocator: Allocator, *, host: bool = False) -> Iterator[Ir[Allocator]]:
    """The functions of the runtime as SSA, until the end of the block, with all memory from one allocator.

    With `host`, those of the host of executables too.
    """
    with Arena(allocator) as kept, Arena(allocator) as scratch:
        given: dict[str, Allocator] = dict.fromkeys(_STAGES, kept)
        given[SCRATCH] = scratch
        with (
            StageAllocators(given) as allocators,
            Compilation(runtime_source(host), allocators, {MEMORY.path: MEMORY}) as compilation,
        ):
            yield compilation.optimise()
