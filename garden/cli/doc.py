"""`garden doc`: the documentation of the standard packages.

A query is a package (`str`, `unsafe/runtime`, or `runtime`, as programs call it), a function of one (`str.len`), or the
name of a function wherever it is (`len`). Without one, the packages are listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allocators.report.table import table
from allocators.spelling import closest
from garden.cli.report import fail
from garden.output import write_stdout
from garden.std import STANDARD

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from garden.host import HostFunction, Package


def doc(options: argparse.Namespace) -> int:
    """Print the requested documentation."""
    try:
        write_stdout(describe(STANDARD, options.query).encode())
    except LookupError as error:
        return fail(str(error), 1)
    return 0


def describe(packages: Mapping[str, Package], query: str | None = None) -> str:
    """The documentation of all packages, one package, or one function. LookupError if no such name exists."""
    if query is None:
        rows = [(path, packages[path].doc) for path in sorted(packages)]
        return table(rows, text=True) + "\n" if rows else ""
    known = _packages_named(packages, query)
    if known:
        return "\n".join([_package(package) for package in known])
    base, _, name = query.rpartition(".")
    found = []
    for package in _packages_named(packages, base) if base else packages.values():
        overloads = [function for function in package.functions if function.name == name]
        if overloads:
            found.append(_overloads(package, overloads))
    if not found:
        raise LookupError(_unknown(packages, query))
    return "\n".join(found)


def _packages_named(packages: Mapping[str, Package], name: str) -> list[Package]:
    """The package with that path, else those that programs call by that name."""
    if name in packages:
        return [packages[name]]
    return [package for package in packages.values() if package.name == name]


def _package(package: Package) -> str:
    functions = [_function(function) for function in package.functions]
    return "\n".join([f'{package.doc}\n\nimport "{package.path}"\n', *functions])


def _overloads(package: Package, functions: list[HostFunction]) -> str:
    call = f"{package.name}.{functions[0].name}"
    return "\n".join([f'{call}, with import "{package.path}"\n', *[_function(function) for function in functions]])


def _function(function: HostFunction) -> str:
    lines = [str(function), *[f"    {line}" for line in function.doc.splitlines()]]
    return "\n".join(lines) + "\n"


def _unknown(packages: Mapping[str, Package], query: str) -> str:
    names = [*packages, *[package.name for package in packages.values()]]
    for package in packages.values():
        for function in package.functions:
            names.extend([f"{package.path}.{function.name}", f"{package.name}.{function.name}", function.name])
    near = closest(query, names)
    return f"there is no package or function `{query}`" + (f", did you mean `{near}`?" if near else "")
