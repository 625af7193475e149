"""Host packages: what a program can import, as data.

A host function is a Python callable with a garden signature. It takes and returns Python values: `Int` is int, `Double`
float, `Bool` bool, `Str` str, `Array` list, `Record` dict by field name, `Option` the value or None, `Foreign` any
object, `Void` None. Where it is declared with `machine`, its first argument is the running machine (a
`garden.vm.runtime.Runtime`).

A function declared with `words` takes and returns the words that the machine has instead, which costs no conversion:
its arguments are the machine, the HostFunction itself, for the types of the call, and one word a parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from allocators._mypyc import mypyc_attr
from allocators.uncopyable import Uncopyable
from garden.types.types import Type, Void, signature_text

#: The instruction that calls the host has eight bits for the number of arguments.
MAX_HOST_PARAMETERS: Final = 255


def missing(*arguments: Any) -> None:
    """Stands in for the implementation of a function that a program declares `extern` and no package has."""
    raise NotImplementedError


@mypyc_attr(native_class=True)
class HostFunction(Uncopyable):
    """One function of a package; several may share a name, and the argument types then choose.

    `pure`: equal arguments give equal results and nothing else happens, so that a call may be dropped, and folded
    unless it needs the machine. `words` implies `machine`. `native` is the name of what does the same in machine
    code, empty where nothing does.

    Raises TypeError for more than `MAX_HOST_PARAMETERS` parameters, unless it is only declared.
    """

    __slots__ = (
        "doc",
        "implementation",
        "machine",
        "name",
        "native",
        "package",
        "parameters",
        "pure",
        "result",
        "words",
    )

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
        words: bool = False,
        native: str = "",
        doc: str = "",
    ) -> None:
        if len(parameters) > MAX_HOST_PARAMETERS and implementation is not missing:
            raise TypeError(
                f"{package}.{name}: {len(parameters)} parameters, a host function has at most {MAX_HOST_PARAMETERS}"
            )
        self.package: Final = package
        self.name: Final = name
        self.parameters: Final = parameters
        self.result: Final = result
        self.implementation: Final = implementation
        self.pure: Final = pure
        self.machine: Final = machine or words
        self.words: Final = words
        self.native: Final = native
        self.doc: Final = doc

    @property
    def generic(self) -> bool:
        """Whether it has slots among its types."""
        return self.result.generic or any([type.generic for _, type in self.parameters])

    def with_types(self, parameters: list[Type], result: Type) -> HostFunction:
        """The same function for parameters and a result of these types: what a call of a generic function calls."""
        return HostFunction(
            self.package,
            self.name,
            tuple([(name, type) for (name, _), type in zip(self.parameters, parameters, strict=True)]),
            result,
            self.implementation,
            pure=self.pure,
            machine=self.machine,
            words=self.words,
            native=self.native,
            doc=self.doc,
        )

    @property
    def implemented(self) -> bool:
        """Whether it can be called, not only declared."""
        return self.implementation is not missing

    @property
    def path(self) -> str:
        """Package path and name, such as `unsafe/runtime.used`."""
        return f"{self.package}.{self.name}"

    @property
    def signature(self) -> str:
        """The function for people: cut where that would be very long."""
        return signature_text(self.name, self.parameters, self.result)

    def __str__(self) -> str:
        parameters = " ".join([f"{name}:{type}" for name, type in self.parameters])
        result = "" if self.result.name == "Void" else f" {self.result}"
        return f"fn {self.name}({parameters}){result}"


def declare(
    package: str,
    name: str,
    *parameters: tuple[str, Type],
    result: Type = Void,
    pure: bool = False,
    machine: bool = False,
    words: bool = False,
    native: str = "",
) -> Callable[[Callable[..., Any]], HostFunction]:
    """A decorator that makes a HostFunction of a Python function, whose docstring becomes its `doc`."""

    def decorate(implementation: Callable[..., Any]) -> HostFunction:
        doc = "\n".join([line.strip() for line in (implementation.__doc__ or "").strip().splitlines()])
        return HostFunction(
            package,
            name,
            parameters,
            result,
            implementation,
            pure=pure,
            machine=machine,
            words=words,
            native=native,
            doc=doc,
        )

    return decorate


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True)
class Package(Uncopyable):
    """Host functions under one import path, such as `unsafe/runtime`; programs call it by the last part of it."""

    __slots__ = ("doc", "functions", "path")

    def __init__(self, path: str, doc: str, functions: list[HostFunction]) -> None:
        self.path: Final = path
        self.doc: Final = doc
        self.functions: Final = functions

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]
