"""The layout shows the architecture: imports run downwards only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# From the ground up. A module may import from its own layer and those above it in this list.
LAYERS = (
    ("allocators",),
    ("garden.common", "garden.source", "garden.errors", "garden.interrupts", "garden.output", "garden.traps"),
    ("garden.semantics", "garden.strings", "garden.run_options"),
    ("garden.diagnostics",),
    ("garden.syntax",),
    ("garden.types.types",),
    ("garden.host",),
    ("garden.types",),
    ("garden.ir",),
    ("garden.bytecode",),
    ("garden.vm",),
    ("garden.std",),
    ("garden.pipeline",),
    ("garden.native",),
    ("garden.native.executable",),
    ("garden.machines",),
    ("garden.bindings",),
    ("garden.engine",),
    ("garden",),
    ("garden.cli", "garden.__main__"),
)
# Inside `allocators`.
ALLOCATOR_LAYERS = (
    ("allocators._mypyc", "allocators.address", "allocators.errors", "allocators.protocol", "allocators.uncopyable"),
    ("allocators.layout",),
    ("allocators.block",),
)


def modules() -> list[tuple[str, Path]]:
    found = []
    for package in ("allocators", "garden"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            found.append((name.removesuffix(".__init__"), path))
    return found


def imported(path: Path) -> set[str]:
    """Names of our own modules that a module imports when it runs (not for type checking only)."""
    tree = ast.parse(path.read_text())
    typing_only = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            typing_only |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
    names = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.split(".")[0] in ("allocators", "garden")}


def layer_of(name: str) -> int:
    """The number of a module's layer: that of the longest prefix which is listed."""
    best, number = "", -1
    for index, layer in enumerate(LAYERS):
        for prefix in layer:
            if (name == prefix or name.startswith(f"{prefix}.")) and len(prefix) > len(best):
                best, number = prefix, index
    return number


@pytest.mark.parametrize(("name", "path"), modules(), ids=[name for name, _ in modules()])
def test_a_module_imports_nothing_from_above_it(name: str, path: Path) -> None:
    above = {other for other in imported(path) if layer_of(other) > layer_of(name)}
    assert not above


@pytest.mark.parametrize("index", range(len(ALLOCATOR_LAYERS)))
def test_the_ground_floor_stands_on_itself(index: int) -> None:
    below = {name for layer in ALLOCATOR_LAYERS[: index + 1] for name in layer}
    for name in ALLOCATOR_LAYERS[index]:
        assert imported(ROOT / f"{name.replace('.', '/')}.py") <= below


def test_allocators_imports_nothing_from_outside_the_standard_library() -> None:
    import sys

    for name, path in modules():
        if name.startswith(("garden", "allocators.testing")):
            continue
        tree = ast.parse(path.read_text())
        roots = {
            module.split(".")[0]
            for node in ast.walk(tree)
            for module in (
                [node.module]
                if isinstance(node, ast.ImportFrom) and node.module
                else [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else []
            )
        }
        assert roots <= set(sys.stdlib_module_names) | {"allocators", "_typeshed", "mypy_extensions"}, name
