"""The names that the two packages offer: adding or removing one is a decision, and changes this file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import allocators
import garden

ROOT = Path(__file__).parent.parent

GARDEN = {
    "STANDARD",
    "Compilation",
    "CompileError",
    "Diagnostic",
    "Engine",
    "Function",
    "GardenError",
    "Package",
    "Program",
    "Source",
    "StageAllocators",
    "Trap",
    "compile",
}

ALLOCATORS = {
    "Access",
    "Adaptor",
    "AllocError",
    "Allocator",
    "Arena",
    "ArenaPool",
    "BaseAllocator",
    "BinningAllocator",
    "Block",
    "BlockRecord",
    "BumpAlloc",
    "COMPILED",
    "CallSiteAllocator",
    "CallbackAllocator",
    "Checkpoint",
    "CorruptionError",
    "Counters",
    "CountingAdaptor",
    "DebugAllocator",
    "DoubleFreeError",
    "FailingAllocator",
    "FallbackAllocator",
    "Layout",
    "LayoutError",
    "LeakError",
    "LimitAllocator",
    "LockedAllocator",
    "MetricAllocator",
    "MisuseError",
    "PageAlloc",
    "Pages",
    "PoolAllocator",
    "ProfilerRecord",
    "ProfilerRecords",
    "Region",
    "ResetPolicy",
    "Resettable",
    "RetryAllocator",
    "Scoped",
    "SpecError",
    "StackAlloc",
    "TRACEMALLOC_DOMAIN",
    "TakenArena",
    "Trace",
    "TracemallocAllocator",
    "TracingAllocator",
    "Waste",
    "parse_spec",
    "profile",
}


def public(package: ModuleType) -> set[str]:
    """The public names of a package, without its modules."""
    names = {name for name in dir(package) if not name.startswith("_")}
    return {name for name in names if not isinstance(getattr(package, name), ModuleType)}


def test_the_public_names_of_garden() -> None:
    assert public(garden) == GARDEN


def test_the_public_names_of_allocators() -> None:
    assert public(allocators) == ALLOCATORS


def test_type_checkers_see_the_names_of_garden_that_there_are() -> None:
    tree = ast.parse((ROOT / "garden" / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "typing"]
    seen = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names if alias.asname}
    assert set(seen) == GARDEN
    for name, (module, original) in seen.items():
        assert module is not None
        assert getattr(garden, name) is getattr(sys.modules[module], original)


def test_an_unknown_name_of_garden_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'garden' has no attribute 'Machine'"):
        garden.Machine  # noqa: B018


def test_importing_garden_loads_no_stage() -> None:
    code = "import sys, garden; print([name for name in sys.modules if name.startswith(('garden.', 'allocators'))])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert printed.stdout.strip() == "[]"
