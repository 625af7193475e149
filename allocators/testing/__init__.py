"""Conformance tests for allocators, and tools to test code that uses one.

`check_allocator(make)` runs the contract tests; `AllocatorMachine` and `run_machine(make)` let Hypothesis search for a
sequence of calls that breaks the contract; `check_every_failure(function)` fails each request of a function in turn.
Only the machine needs Hypothesis (`pip install hypothesis`).
"""
# Not compiled: Hypothesis inspects the functions that it drives.

from typing import TYPE_CHECKING, Any

from allocators.testing.checked import Checked as Checked
from allocators.testing.conformance import check_allocator as check_allocator
from allocators.testing.errors import ConformanceError as ConformanceError
from allocators.testing.errors import LeakedBlocks as LeakedBlocks
from allocators.testing.errors import NondeterministicAllocations as NondeterministicAllocations
from allocators.testing.errors import SwallowedFailure as SwallowedFailure
from allocators.testing.every_failure import check_every_failure as check_every_failure
from allocators.testing.instrumented import Failures as Failures
from allocators.testing.instrumented import Instrumented as Instrumented

if TYPE_CHECKING:
    from allocators.testing.machine import AllocatorMachine as AllocatorMachine
    from allocators.testing.machine import machine as machine
    from allocators.testing.machine import run_machine as run_machine

_NEEDS_HYPOTHESIS = ("AllocatorMachine", "machine", "run_machine")


def __getattr__(name: str) -> Any:
    if name not in _NEEDS_HYPOTHESIS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import allocators.testing.machine as module

    return getattr(module, name)
