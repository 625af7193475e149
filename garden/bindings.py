"""Bindings: typed Python functions as functions that garden programs can import.

The annotations of a function are its garden signature:

* `int`, `float`, `bool`, `str`: `Int`, `Double`, `Bool`, `Str`
* `None`, as a result: `Void`
* `list[T]`: `Array<T>`
* `T | None`: `Option<T>`
* a dataclass: a `Record` of its fields, in their order; each must be a parameter of the class
* any other class: `Foreign` of its name, which programs can only pass on
* a `TypeVar`: a slot, for which each call chooses a type

Anything else raises a TypeError at registration that names the parameter.

Costs: a record argument is converted to a dict, then to an instance. Functions without dataclasses or foreign classes
in their signature are called directly.
"""
# Not compiled: it inspects annotations, and inherits from a native class.

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from garden.host import HostFunction, declare
from garden.host import Package as HostPackage
from garden.syntax.tokens import KEYWORDS
from garden.types.types import Array, Bool, Double, Foreign, Int, Option, Record, Slot, Str, Type, Void
from garden.vm.values import construct

F = TypeVar("F", bound=Callable[..., Any])

_SCALARS: Final[dict[object, Type]] = {int: Int, float: Double, bool: Bool, str: Str}
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_UNIONS: Final = (Union, UnionType)
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Package(HostPackage):
    """A package of Python functions. Programs import it by its path and call it by the last part of the path.

    Raises ValueError for a path that no program could import and call, TypeError if it is not a str.
    """

    def __init__(self, path: str, doc: str = "") -> None:
        if not isinstance(path, str):
            raise TypeError(f"an import path is a str, not {path!r}")
        for name in path.split("/"):
            _require_name(name)
        super().__init__(path, doc, [])

    @overload
    def function(self, implementation: F) -> F: ...
    @overload
    def function(self, *, name: str = "", pure: bool = False) -> Callable[[F], F]: ...
    def function(
        self, implementation: Callable[..., Any] | None = None, *, name: str = "", pure: bool = False
    ) -> Callable[..., Any]:
        """A decorator that adds a Python function, by its own or another name, and returns it unchanged.

        Functions with different parameters may share a name. `pure` says that equal arguments give equal results and
        nothing else happens, so that a call may be dropped, or made while compiling. Raises TypeError for a signature
        that garden cannot express, ValueError for a name that is taken or cannot be called.
        """

        def add(implementation: F) -> F:
            function = host_function(self.path, implementation, name=name, pure=pure)
            types = [type for _, type in function.parameters]
            for other in self.functions:
                if other.name == function.name and [type for _, type in other.parameters] == types:
                    raise ValueError(f"{self.path} has `{other}` already")
            self.functions.append(function)
            return implementation

        return add if implementation is None else add(implementation)


def host_function(
    package: str, implementation: Callable[..., Any], *, name: str = "", pure: bool = False
) -> HostFunction:
    """The host function of a typed Python function, for the package at a path; its docstring is the `doc`.

    Raises as `Package.function` does.
    """
    if not inspect.isroutine(implementation) or inspect.iscoroutinefunction(implementation):
        raise TypeError(f"{package}: want a function, with `def` and annotations, not {implementation!r}")
    name = name or implementation.__name__
    _require_name(name)
    where = f"{package}.{name}"
    hints = _hints(implementation)
    parameters = []
    try:
        signature = inspect.signature(implementation)
    except ValueError as error:
        # Some builtin functions have no signature.
        raise TypeError(f"{where}: {error}") from error
    for parameter in signature.parameters.values():
        if parameter.kind not in _POSITIONAL:
            raise TypeError(f"{where}: parameter {parameter.name} cannot be passed by position")
        parameters.append((parameter.name, _annotated(hints, parameter.name, f"{where}: parameter {parameter.name}")))
    result = Void if hints.get("return") is NoneType else _annotated(hints, "return", f"{where}: the result")
    if result.generic and not any(type.generic for _, type in parameters):
        raise TypeError(f"{where}: the result is {result}, which no parameter determines")
    adapted = _adapted(where, implementation, [hints[name] for name, _ in parameters], hints["return"])
    return declare(package, name, *parameters, result=result, pure=pure)(adapted)


def _hints(annotated: Any) -> dict[str, Any]:
    try:
        return get_type_hints(annotated)
    except NameError as error:
        raise TypeError(f"{annotated.__qualname__}: annotations are read at the top of the module: {error}") from error
    except Exception as error:
        # An annotation can be any expression, so evaluating it can raise anything.
        raise TypeError(f"{annotated.__qualname__}: an annotation cannot be read: {error}") from error


def _annotated(hints: dict[str, Any], name: str, where: str) -> Type:
    if name not in hints:
        raise TypeError(f"{where} has no annotation")
    try:
        return garden_type(hints[name])
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from error


def _require_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no garden identifier")
    if name.encode() in KEYWORDS:
        raise ValueError(f"`{name}` is a keyword of garden")


def garden_type(annotation: Any, _inside: tuple[object, ...] = ()) -> Type:
    """The garden type for an annotation; TypeError if there is none."""
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is list and len(arguments) == 1:
        return Array(garden_type(arguments[0], _inside))
    if origin in _UNIONS:
        inner = [argument for argument in arguments if argument is not NoneType]
        if len(inner) == 1:
            return Option(garden_type(inner[0], _inside))
    elif isinstance(annotation, TypeVar):
        if annotation.__bound__ is None and not annotation.__constraints__:
            return Slot(annotation.__name__)
    elif isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    elif _is_record(annotation):
        if annotation in _inside:
            raise TypeError(f"{annotation.__name__} contains itself")
        hints = _hints(annotation)
        _require_fields_are_parameters(annotation)
        return Record(
            **{field.name: garden_type(hints[field.name], (*_inside, annotation)) for field in fields(annotation)}
        )
    elif _is_foreign(annotation):
        return Foreign(annotation.__name__)
    raise TypeError(f"garden has no type for {annotation if origin else getattr(annotation, '__name__', annotation)}")


def _require_fields_are_parameters(record: Any) -> None:
    """Raise TypeError if instances of a dataclass cannot be made from its fields."""
    try:
        inspect.signature(record).bind(**{field.name: None for field in fields(record)})
    except TypeError as error:
        raise TypeError(f"{record.__name__} cannot be made of its fields: {error}") from error


def _is_record(annotation: Any) -> bool:
    return isinstance(annotation, type) and is_dataclass(annotation)


def _is_foreign(annotation: Any) -> bool:
    """Whether it is a class that is neither a builtin value type nor an abstract one such as Sequence."""
    if not isinstance(annotation, type) or annotation is object or _is_record(annotation):
        return False
    if annotation.__module__ in ("typing", "collections.abc"):
        return False
    return all(base is object or base.__module__ != "builtins" for base in annotation.__mro__)


def _adapted(where: str, implementation: Callable[..., Any], annotations: list[Any], result: Any) -> Callable[..., Any]:
    """The function as the machine calls it: converts dicts of the machine to instances and back.

    Garden knows a foreign type by name only, so the class of an object is checked here.
    """
    if all(_is_plain(annotation) for annotation in (*annotations, result)):
        return implementation

    @functools.wraps(implementation)
    def adapted(*arguments: Any) -> Any:
        instances = []
        for annotation, argument in zip(annotations, arguments, strict=True):
            _require_instance(where, annotation, argument)
            instances.append(construct(annotation, argument))
        returned = implementation(*instances)
        _require_instance(where, result, returned)
        return returned

    return adapted


def _is_plain(annotation: Any) -> bool:
    """Whether it contains neither a dataclass nor a foreign class."""
    if _is_record(annotation) or _is_foreign(annotation):
        return False
    return all(_is_plain(argument) for argument in get_args(annotation))


def _require_instance(where: str, annotation: Any, value: Any) -> None:
    """Raise TypeError if the annotation is a foreign class (or None) and the value is not an instance."""
    classes = get_args(annotation) if get_origin(annotation) in _UNIONS else (annotation,)
    foreign = [candidate for candidate in classes if _is_foreign(candidate)]
    if foreign and not isinstance(value, classes):
        raise TypeError(f"{where} wants a {foreign[0].__name__}, got {value!r}")
