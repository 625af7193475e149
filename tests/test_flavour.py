"""The flavour that is under test is the one that was meant, and both show and allow the same."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
from pathlib import Path
from typing import Any

import pytest

import allocators
import garden

ROOT = Path(__file__).parent.parent
WANTED = os.environ.get("GARDEN_FLAVOUR")
MARK = "\n# Not compiled: "

#: The public classes that others may inherit from. Beside them, the errors.
OPEN = {"Adaptor", "BaseAllocator", "CountingAdaptor", "Package", "ResetPolicy"}


def sources() -> list[Path]:
    return sorted(path for package in ("allocators", "garden") for path in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def is_compiled(module: str) -> bool:
    return not str(importlib.import_module(module).__file__).endswith(".py")


def stays_in_python(path: Path) -> bool:
    """Whether the module says so, or its package does, or it is one of those that never have anything to compile."""
    packages = [folder / "__init__.py" for folder in path.parents if ROOT in folder.parents]
    return path.name in ("__init__.py", "__main__.py") or any(MARK in place.read_text() for place in (path, *packages))


@pytest.mark.skipif(WANTED is None, reason="GARDEN_FLAVOUR says which flavour is meant: pure or compiled")
def test_the_flavour_is_the_one_that_was_meant() -> None:
    assert ("compiled" if allocators.COMPILED else "pure") == WANTED


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_what_a_module_says_about_compiling_is_true(path: Path) -> None:
    name = module_name(path)
    if not name.endswith("__main__"):
        assert is_compiled(name) == (allocators.COMPILED and not stays_in_python(path))
    if MARK in path.read_text():
        # Below the docstring, where a reader looks for it, and with a reason.
        first = ast.parse(path.read_text()).body[0]
        line = path.read_text().splitlines()[first.end_lineno or 0]
        assert line.startswith(MARK.strip())
        assert line.endswith(".")


@pytest.mark.parametrize("path", [path for path in sources() if not stays_in_python(path)], ids=module_name)
def test_compiled_modules_name_the_cause_of_an_error_by_caused_by(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.cause is not None] == []


@pytest.mark.parametrize("path", sources(), ids=module_name)
def test_docstrings_can_be_read_at_run_time(path: Path) -> None:
    name = module_name(path)
    if name.endswith("__main__"):
        return
    module = importlib.import_module(name)
    tree = ast.parse(path.read_text())
    assert inspect.getdoc(module) == ast.get_docstring(tree)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and ast.get_docstring(node):
            owner = getattr(module, node.name)
            assert inspect.getdoc(owner) == ast.get_docstring(node)
            for method in node.body:
                # Python has words of its own for special methods of compiled classes.
                if isinstance(method, ast.FunctionDef) and ast.get_docstring(method) and method.name[:2] != "__":
                    assert inspect.getdoc(getattr(owner, method.name)) == ast.get_docstring(method), method.name
        elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node) and not node.decorator_list:
            assert inspect.getdoc(getattr(module, node.name)) == ast.get_docstring(node)


def public_classes() -> list[type[Any]]:
    named = [getattr(package, name) for package in (allocators, garden) for name in sorted(dir(package))]
    return [value for value in named if isinstance(value, type)]


@pytest.mark.parametrize("cls", public_classes(), ids=lambda cls: cls.__name__)
def test_public_classes_and_their_methods_have_signatures(cls: type[Any]) -> None:
    if not issubclass(cls, BaseException):
        assert "self" not in inspect.signature(cls).parameters
    for name, member in vars(cls).items():
        if not name.startswith("_") and callable(member) and not isinstance(member, type):
            inspect.signature(getattr(cls, name))


def test_a_signature_names_parameters_and_defaults() -> None:
    parameters = inspect.signature(allocators.Arena).parameters
    assert list(parameters)[:2] == ["parent", "min_align"]
    assert (parameters["min_align"].default, parameters["min_align"].kind) == (1, inspect.Parameter.KEYWORD_ONLY)
    assert list(inspect.signature(allocators.Arena.allocate).parameters) == ["self", "layout"]


@pytest.mark.parametrize("cls", public_classes(), ids=lambda cls: cls.__name__)
def test_only_classes_meant_for_it_can_be_inherited_from(cls: type[Any]) -> None:
    if cls.__name__ in OPEN or issubclass(cls, BaseException):
        derived = type("Derived", (cls,), {"extra": 1})
        assert derived.extra == 1
    elif is_compiled(cls.__module__):
        with pytest.raises(TypeError, match="interpreted classes cannot inherit from compiled"):
            type("Derived", (cls,), {})()
