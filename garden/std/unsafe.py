"""unsafe: internals of the program and of the operating system."""

from __future__ import annotations

import os
import sys
from typing import Final

from allocators import Allocator
from garden.host import Package, declare
from garden.types.types import Int, Record, Str
from garden.vm.runtime import Runtime


@declare("unsafe/runtime", "used", result=Int, machine=True, native="runtime_used")
def used(machine: Runtime[Allocator]) -> int:
    """Bytes in use for strings, records and arrays, without constant strings."""
    return machine.heap.used


@declare("unsafe/runtime", "allocs", result=Int, machine=True, native="runtime_allocs")
def allocs(machine: Runtime[Allocator]) -> int:
    """The number of strings, records and arrays allocated so far."""
    return machine.heap.allocations


_UNAME: Final = Record(sysname=Str, nodename=Str, release=Str, version=Str, machine=Str)
_LINUX: Final = sys.platform == "linux"


@declare(
    "unsafe/syscall",
    "uname",
    result=Record(**dict(zip(_UNAME.labels, _UNAME.members, strict=True)), domainname=Str) if _LINUX else _UNAME,
)
def uname() -> dict[str, str]:
    """Names and versions of the operating system and the machine; on Linux also the domain name."""
    if hasattr(os, "uname"):
        system = os.uname()
        names = [system.sysname, system.nodename, system.release, system.version, system.machine]
    else:
        import platform

        names = [
            platform.system(),
            platform.node(),
            platform.release(),
            platform.version(),
            platform.machine(),
        ]
    record = dict(zip(_UNAME.labels, names, strict=True))
    if _LINUX:
        record["domainname"] = _domain()
    return record


def _domain() -> str:
    try:
        with open("/proc/sys/kernel/domainname", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        # What the kernel reports if none is set.
        return "(none)"


RUNTIME: Final = Package("unsafe/runtime", "What the program has allocated.", [used, allocs])
SYSCALL: Final = Package("unsafe/syscall", "The operating system.", [uname])
