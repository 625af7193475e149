"""Specs: compositions of allocators as text: `metric(limit(64M, arena(page, min_align=8)))`.

    spec    = name [ "(" [ argument { "," argument } ] ")" ]
    argument = [ option "=" ] ( spec | size | number | "true" | "false" )

Sizes are in bytes and may end in K, M, G or T. `parse_spec` builds the allocator that a spec describes, and the `repr`
of an allocator is its spec. The parser, the error messages and the documentation all use one table, `ENTRIES`.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from allocators.adaptors.binning import BinningAllocator
from allocators.adaptors.callback import RetryAllocator
from allocators.adaptors.debug import DebugAllocator
from allocators.adaptors.failing import FailingAllocator
from allocators.adaptors.fallback import FallbackAllocator
from allocators.adaptors.limit import LimitAllocator
from allocators.adaptors.locked import LockedAllocator
from allocators.adaptors.metric import MetricAllocator
from allocators.arena import Arena
from allocators.block import Region
from allocators.bump import BumpAlloc
from allocators.errors import SpecError
from allocators.layout import Layout
from allocators.page import PageAlloc
from allocators.pool import PoolAllocator
from allocators.protocol import Allocator
from allocators.sizes import parse_size
from allocators.spelling import closest
from allocators.stack import StackAlloc
from allocators.trace.call_sites import CallSiteAllocator
from allocators.trace.tracemalloc_export import TracemallocAllocator
from allocators.trace.tracing import TracingAllocator

#: How deep specs may nest.
DEPTH_LIMIT: Final = 100


class Parameter:
    """A parameter of an allocator: positional if it has no default, else named."""

    __slots__ = ("default", "kind", "name")

    def __init__(self, name: str, kind: str, default: str = "") -> None:
        #: One of "allocator", "size", "number", "flag".
        self.kind: Final = kind
        self.name: Final = name
        #: As written in a spec; empty if the parameter is required.
        self.default: Final = default


class Entry:
    """An allocator that specs can name. `make` takes positional parameters and named options, as the spec does."""

    __slots__ = ("make", "name", "options", "places", "summary")

    def __init__(self, name: str, make: Callable[..., Allocator], summary: str, *parameters: Parameter) -> None:
        self.name: Final = name
        self.make: Final = make
        self.summary: Final = summary
        self.places: Final = [parameter for parameter in parameters if not parameter.default]
        self.options: Final = {parameter.name: parameter for parameter in parameters if parameter.default}

    @property
    def usage(self) -> str:
        """Its syntax, with the defaults of its options."""
        parts = [parameter.name for parameter in self.places]
        parts += [f"{name}={parameter.default}" for name, parameter in self.options.items()]
        return f"{self.name}({', '.join(parts)})" if parts else self.name


def _stack(size: int, *, strict: bool = False) -> StackAlloc:
    return StackAlloc(_buffer(size), strict=strict)


def _fixed(size: int, *, min_align: int = 1) -> Arena[PageAlloc]:
    return Arena.over(_buffer(size), PageAlloc(), min_align=min_align)


def _limit(size: int, parent: Allocator) -> LimitAllocator[Allocator]:
    return LimitAllocator(parent, size)


def _pool(
    size: int, parent: Allocator, *, align: int = 8, capacity: int = 0, growable: bool = True
) -> PoolAllocator[Allocator]:
    return PoolAllocator(parent, size, align, capacity=capacity, growable=growable)


def _buffer(size: int) -> Region:
    """A private buffer for an allocator, unmapped with the last view of it."""
    block = PageAlloc().allocate(Layout(size, 16))
    return block.region.part(block.address, size)


_PARENT: Final = Parameter("parent", "allocator")

ENTRIES: Final = (
    Entry("page", PageAlloc, "whole pages from the operating system"),
    Entry(
        "arena",
        Arena,
        "bumps down through chunks of its parent, like oxc's arena",
        _PARENT,
        Parameter("min_align", "number", "1"),
        Parameter("capacity", "size", "0"),
        Parameter("rounded_grow", "flag", "false"),
    ),
    Entry(
        "fixed",
        _fixed,
        "an arena of one chunk, in a private buffer of that size",
        Parameter("size", "size"),
        Parameter("min_align", "number", "1"),
    ),
    Entry(
        "bump",
        BumpAlloc,
        "bumps up through chunks of its parent",
        _PARENT,
        Parameter("first_chunk", "size", "64K"),
        Parameter("largest_chunk", "size", "16M"),
    ),
    Entry(
        "stack",
        _stack,
        "last in, first out, in a private buffer of that size",
        Parameter("size", "size"),
        Parameter("strict", "flag", "false"),
    ),
    Entry("metric", MetricAllocator, "counts the blocks and bytes of its parent", _PARENT),
    Entry(
        "limit",
        _limit,
        "limits the bytes in use",
        Parameter("size", "size"),
        _PARENT,
    ),
    Entry(
        "pool",
        _pool,
        "blocks of one size, reused in any order",
        Parameter("size", "size"),
        _PARENT,
        Parameter("align", "number", "8"),
        Parameter("capacity", "number", "0"),
        Parameter("growable", "flag", "true"),
    ),
    Entry(
        "binning",
        BinningAllocator,
        "pools for small sizes, its parent for larger ones",
        _PARENT,
        Parameter("smallest", "size", "16"),
        Parameter("largest", "size", "1K"),
    ),
    Entry(
        "fallback",
        FallbackAllocator,
        "the first allocator, or the second when the first refuses",
        Parameter("first", "allocator"),
        Parameter("second", "allocator"),
    ),
    Entry(
        "debug",
        DebugAllocator,
        "finds overruns, double frees and leaks",
        _PARENT,
        Parameter("depth", "number", "8"),
        Parameter("canary", "size", "16"),
        Parameter("quarantine", "size", "1M"),
        Parameter("raise_leaks", "flag", "true"),
    ),
    Entry(
        "fail",
        FailingAllocator,
        "fails on purpose",
        _PARENT,
        Parameter("fail_index", "number", "none"),
        Parameter("resize_fail_index", "number", "none"),
        Parameter("every", "number", "none"),
        Parameter("times", "number", "none"),
    ),
    Entry("retry", RetryAllocator, "collects garbage and tries again when its parent refuses", _PARENT),
    Entry("tracing", TracingAllocator, "records every operation", _PARENT),
    Entry("call_sites", CallSiteAllocator, "counts by source line", _PARENT),
    Entry("tracemalloc", TracemallocAllocator, "shows its blocks to tracemalloc", _PARENT),
    Entry("locked", LockedAllocator, "admits one thread at a time", _PARENT),
)

_BY_NAME: Final = {entry.name: entry for entry in ENTRIES}


def parse_spec(spec: str) -> Allocator:
    """Build the allocator that a spec describes. Raises `SpecError` if it is malformed.

    Raises `AllocError` if a buffer that is allocated immediately, such as that of `stack`, is too large.
    """
    parser = _Parser(spec)
    allocator = parser.allocator(0)
    parser.expect_end()
    return allocator


def spec_table() -> str:
    """Every allocator that a spec can name: its syntax with defaults and, on the next line, what it does."""
    return "\n".join(f"{entry.usage}\n    {entry.summary}" for entry in ENTRIES)


class _Token:
    """`kind` is "word" (a name or a number), one of "(", ")", ",", "=", or "end"."""

    __slots__ = ("at", "kind", "text")

    def __init__(self, kind: str, text: str, at: int) -> None:
        self.kind: Final = kind
        self.text: Final = text
        self.at: Final = at


class _Parser:
    """Recursive descent with one token of lookahead."""

    def __init__(self, spec: str) -> None:
        self._spec = spec
        self._tokens = self._tokenize(spec)
        self._next = 0

    def _tokenize(self, spec: str) -> list[_Token]:
        tokens = []
        at = 0
        while at < len(spec):
            match = _TOKEN.match(spec, at)
            if match is None:
                raise SpecError(f"{spec[at]!r} cannot stand in a spec", spec, at, 1)
            text = match.group()
            if not text.isspace():
                tokens.append(_Token("word" if text[0] not in "(),=" else text, text, at))
            at = match.end()
        tokens.append(_Token("end", "", len(spec)))
        return tokens

    def _error(self, message: str, token: _Token) -> SpecError:
        return SpecError(message, self._spec, token.at, len(token.text))

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, kind: str, what: str) -> _Token:
        token = self._tokens[self._next]
        if token.kind != kind:
            found = repr(token.text) if token.text else "the end"
            raise self._error(f"want {what}, not {found}", token)
        self._next += 1
        return token

    def expect_end(self) -> None:
        self._take("end", "nothing more after it")

    def allocator(self, depth: int) -> Allocator:
        name = self._take("word", "the name of an allocator")
        entry = _BY_NAME.get(name.text)
        if entry is None:
            raise self._error(f"unknown allocator {name.text!r}{_suggestion(name.text, list(_BY_NAME))}", name)
        if depth > DEPTH_LIMIT:
            raise self._error(f"nested more than {DEPTH_LIMIT} deep", name)
        places: list[object] = []
        options: dict[str, object] = {}
        if self._peek().kind == "(":
            self._arguments(entry, places, options, depth)
        if len(places) < len(entry.places):
            missing = entry.places[len(places)]
            raise self._error(f"{name.text} wants {_article(missing)}: {entry.usage}", name)
        try:
            return entry.make(*places, **options)
        except ValueError as error:
            raise self._error(str(error), name) from error

    def _arguments(self, entry: Entry, places: list[object], options: dict[str, object], depth: int) -> None:
        self._take("(", "'('")
        while self._peek().kind != ")":
            if places or options:
                self._take(",", "',' or ')'")
            first = self._peek()
            if first.kind in (")", "end"):
                raise self._error("want an argument after ','", first)
            if self._tokens[min(self._next + 1, len(self._tokens) - 1)].kind == "=":
                self._next += 2
                option = entry.options.get(first.text)
                if option is None:
                    hint = _suggestion(first.text, list(entry.options)) if entry.options else ", and no other"
                    raise self._error(f"{entry.name} has no option {first.text!r}{hint}", first)
                if first.text in options:
                    raise self._error(f"{first.text} is given twice", first)
                options[first.text] = self._value(option, depth)
            elif options:
                raise self._error("an argument without a name cannot follow one with a name", first)
            elif len(places) == len(entry.places):
                raise self._error(f"too many arguments, want {entry.usage}", first)
            else:
                places.append(self._value(entry.places[len(places)], depth))
        self._take(")", "')'")

    def _value(self, parameter: Parameter, depth: int) -> object:
        if parameter.kind == "allocator":
            token = self._peek()
            if token.text[:1].isdigit():
                raise self._error(f"want an allocator for {parameter.name}, not {token.text!r}", token)
            return self.allocator(depth + 1)
        token = self._take("word", _article(parameter))
        if parameter.kind == "flag":
            value = _FLAGS.get(token.text.lower())
            if value is None:
                raise self._error(f"{parameter.name} is true or false, not {token.text!r}", token)
            return value
        if parameter.default == _NONE and token.text.lower() == _NONE:
            return None
        try:
            return parse_size(token.text)
        except ValueError as error:
            raise self._error(f"{parameter.name}: {error}", token) from None


_TOKEN: Final = re.compile(r"\s+|[(),=]|[A-Za-z0-9_.-]+")
#: The default of an optional number.
_NONE: Final = "none"
_FLAGS: Final[dict[str, Any]] = {"true": True, "false": False}


def _article(parameter: Parameter) -> str:
    kind = parameter.kind
    return f"{'an' if kind[0] == 'a' else 'a'} {kind} for {parameter.name}"


def _suggestion(name: str, known: Sequence[str]) -> str:
    near = closest(name, list(known))
    return f", did you mean {near!r}?" if near else f", want one of {', '.join(known)}"
