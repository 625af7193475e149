"""testing: assertions."""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from garden.host import HostFunction, Package, declare
from garden.traps import ASSERTION_FAILED, trap
from garden.types.types import Bool
from garden.vm.runtime import Runtime


@declare("testing", "assert", ("truth", Bool), words=True, native="testing_assert")
def assert_(machine: Runtime[Allocator], function: HostFunction, truth: int) -> int:
    """Traps unless the condition is true."""
    if not truth:
        raise trap(ASSERTION_FAILED)
    return 0


TESTING: Final = Package("testing", "Programs that check themselves.", [assert_])
