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


@pytest.mark.parametrize(("package", "names"), [(garden, GARDEN), (allocators, ALLOCATORS - {"COMPILED"})])
def test_type_checkers_see_the_names_that_there_are(package: ModuleType, names: set[str]) -> None:
    tree = ast.parse((ROOT / package.__name__ / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: (node.module, alias.name) for node in imports for alias in node.names if alias.asname}
    assert set(seen) - {"reset"} == names
    for name, (module, original) in seen.items():
        value = getattr(package, name)
        assert module is not None
        assert value is (sys.modules[f"{module}.{name}"] if name == "reset" else getattr(sys.modules[module], original))


@pytest.mark.parametrize("package", [garden, allocators])
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Machine'"):
        package.Machine  # noqa: B018


def test_a_name_is_the_same_however_its_module_was_loaded() -> None:
    code = (
        "import allocators.trace.profiling, allocators.reset, allocators;"
        "print(allocators.profile, allocators.reset.NEWEST)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    assert printed.stdout.strip() == "<class 'allocators.trace.profiling.profile'> newest"


def test_importing_everything_from_allocators_gives_all_names() -> None:
    names: dict[str, object] = {}
    exec("from allocators import *", names)
    assert set(names) - {"__builtins__"} == ALLOCATORS | {"reset"}


@pytest.mark.parametrize("package", ["garden", "allocators"])
def test_importing_a_package_loads_no_module_of_it(package: str) -> None:
    code = f"import sys, {package}; print([name for name in sys.modules if name.startswith(('garden', 'allocators'))])"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    assert set(ast.literal_eval(printed.stdout)) == {package}
