"""Host packages: what a program can import, as data.

A host function is a Python callable with a garden signature. It takes and returns Python values: `Int` is int, `Double`
float, `Bool` bool, `Str` str, `Array` list, `Record` dict by field name, `Option` the value or None, `Foreign` any
object, `Void` None. Where it is declared with `machine`, its first argument is the running machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from allocators._mypyc import mypyc_attr
from garden.types.types import Type


@mypyc_attr(native_class=True)
class HostFunction:
    """One function of a package; several may share a name, and the argument types then choose.

    `pure`: equal arguments give equal results and nothing else happens, so that a call may be folded or dropped.
    """

    __slots__ = ("doc", "implementation", "machine", "name", "package", "parameters", "pure", "result")

    def __init__(
        self,
        package: str,
        name: str,
        parameters: tuple[tuple[str, Type], ...],
        result: Type,
        implementation: Callable[..., Any],
        *,
        pure: bool = False,
        machine: bool = False,
        doc: str = "",
    ) -> None:
        self.package: Final = package
        self.name: Final = name
        self.parameters: Final = parameters
        self.result: Final = result
        self.implementation: Final = implementation
        self.pure: Final = pure
        self.machine: Final = machine
        self.doc: Final = doc

    @property
    def path(self) -> str:
        """Package path and name, such as `unsafe/runtime.used`."""
        return f"{self.package}.{self.name}"

    def __str__(self) -> str:
        parameters = " ".join([f"{name}:{type}" for name, type in self.parameters])
        result = "" if self.result.name == "Void" else f" {self.result}"
        return f"fn {self.name}({parameters}){result}"


@mypyc_attr(native_class=True)
class Package:
    """Host functions under one import path, such as `unsafe/runtime`; programs call it by the last part of it."""

    __slots__ = ("doc", "functions", "path")

    def __init__(self, path: str, doc: str, functions: list[HostFunction]) -> None:
        self.path: Final = path
        self.doc: Final = doc
        self.functions: Final = functions

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]
