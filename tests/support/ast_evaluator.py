"""Evaluator: what a program does, found out by walking its AST: the yardstick for the compiler and the machines.

It shares the parser with them and nothing else, and is written for being obviously right: a garden value is a Python
value (int, float, bool, str, list, dict by field name; an option is a tuple of at most one), a scope is a dict, and
arithmetic is Python's, brought to 64 bits. Types are not looked at, as a checked program needs none.

Every step is a generator that yields the steps that it needs, and `_drive` keeps their stack, so that a program's depth
costs no Python frames. A step that ends with another one is replaced by it, so tail calls take no room either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from garden.syntax import ast as kind
from garden.syntax import tokens as token_kind
from garden.syntax.ast import SIGNATURE_PARAMETERS, Ast

Step = Generator["Step | _Instead", Any, Any]
Scope = dict[str, Any]

MIN = -(2**63)
MAX = 2**63 - 1

_EXACT = Context(prec=1100)


class Trapped(Exception):
    """The program ends with a trap; `offset` is where in the source."""

    def __init__(self, code: str, offset: int = -1) -> None:
        super().__init__(code)
        self.code = code
        self.offset = offset


class OutOfSteps(Exception):
    """The program takes longer than it may."""


class Unsupported(Exception):
    """The program does what depends on more than its source."""


class _Instead:
    """A step that takes the place of the one that yields it."""

    def __init__(self, step: Step) -> None:
        self.step = step


class Evaluator:
    """One run of a program. `output` is what it has written so far."""

    def __init__(self, ast: Ast[Any], max_steps: int = 10**7) -> None:
        self.output = ""
        self._ast = ast
        self._steps = max_steps
        self._functions: dict[str, int] = {}
        for node in ast.list_at(ast.roots):
            if ast.kinds[node] == kind.FN:
                self._functions.setdefault(ast.name(ast.token[node]), node)

    def run(self) -> Any:
        """Run the program and return its value, None if it has none. Raises `Trapped`."""
        return self._drive(self._items(self._ast.roots, {}))

    def _drive(self, step: Step) -> Any:
        stack = [step]
        value = None
        while stack:
            self._steps -= 1
            if self._steps < 0:
                raise OutOfSteps
            try:
                following = stack[-1].send(value)
            except StopIteration as done:
                stack.pop()
                value = done.value
                continue
            value = None
            if isinstance(following, _Instead):
                stack.pop()
                following = following.step
            stack.append(following)
        return value

    def _items(self, items: int, scope: Scope) -> Step:
        """A body, in a scope that it may add to. Declarations are no part of it."""
        ast = self._ast
        nodes = [n for n in ast.list_at(items) if ast.kinds[n] not in (kind.FN, kind.IMPORT, kind.EXTERN)]
        for node in nodes[:-1]:
            yield self._value(node, scope)
        if nodes:
            yield _Instead(self._value(nodes[-1], scope))

    def _value(self, node: int, scope: Scope) -> Step:
        """An item or an expression."""
        ast = self._ast
        form = ast.kinds[node]
        token = ast.token[node]
        left, right = ast.a[node], ast.b[node]
        if form == kind.INT:
            return int(ast.text(token))
        if form == kind.DOUBLE:
            return float(ast.text(token))
        if form == kind.STRING:
            return ast.text(token)[1:-1].decode()
        if form in (kind.TRUE, kind.FALSE):
            return form == kind.TRUE
        if form == kind.IDENT:
            return scope[ast.name(token)]
        if form == kind.LET:
            scope[ast.name(token)] = yield self._value(left, scope)
            return None
        if form == kind.BINARY:
            first = yield self._value(left, scope)
            second = yield self._value(right, scope)
            return self._binary(token, first, second)
        if form == kind.UNARY:
            operand = yield self._value(left, scope)
            if ast.tokens.kinds[token] == token_kind.PLUS:
                return operand
            return -operand if isinstance(operand, float) else wrap(-operand)
        if form == kind.CAST:
            operand = yield self._value(left, scope)
            return cast(operand, ast.text(ast.token[right]).decode())
        if form == kind.FIELD:
            record = yield self._value(left, scope)
            return record[ast.name(token)]
        if form == kind.ARRAY:
            return (yield self._values(list(ast.list_at(left)), scope))
        if form == kind.RECORD:
            fields = ast.list_at(left)
            values = yield self._values(list(fields[1::2]), scope)
            return dict(zip([ast.name(name) for name in fields[::2]], values, strict=True))
        if form == kind.MATCH:
            arms = ast.list_at(left)
            for index in range(0, len(arms), 2):
                if (yield self._value(arms[index], scope)):
                    yield _Instead(self._items(arms[index + 1], dict(scope)))
            yield _Instead(self._items(right, dict(scope)))
        assert form == kind.CALL
        arguments = yield self._values(list(ast.list_at(right)), scope)
        yield _Instead(self._call(left, arguments))

    def _values(self, nodes: list[int], scope: Scope) -> Step:
        values = []
        for node in nodes:
            values.append((yield self._value(node, scope)))
        return values

    def _binary(self, token: int, first: Any, second: Any) -> Any:
        ast = self._ast
        operator = ast.text(token).decode()
        if operator in ("/", "%") and second == 0:
            raise Trapped("T0001", ast.tokens.starts[token])
        return _OPERATORS[operator](first, second)

    def _call(self, target: int, arguments: list[Any]) -> Step:
        ast = self._ast
        token = ast.token[target]
        name = ast.name(token)
        if ast.kinds[target] == kind.IDENT:
            node = self._functions[name]
            parameters = ast.list_at(ast.extra.data[ast.a[node] + SIGNATURE_PARAMETERS])
            names = [ast.name(parameter) for parameter in parameters[::2]]
            yield _Instead(self._items(ast.b[node], dict(zip(names, arguments, strict=True))))
        path = f"{ast.name(ast.token[ast.a[target]])}.{name}"
        if path in ("io.println", "io.print"):
            self.output += text(arguments[0]) + ("\n" if name == "println" else "")
            return None
        if path not in _HOST:
            raise Unsupported(path)
        try:
            return _HOST[path](*arguments)
        except Trapped as trap:
            trap.offset = ast.tokens.starts[token]
            raise


def wrap(value: int) -> int:
    """An integer brought to 64 bits, in two's complement."""
    return (value - MIN) % 2**64 + MIN


def cast(value: Any, target: str) -> Any:
    if target == "Double":
        return float(value)
    if target == "Bool":
        return value != 0
    if not isinstance(value, float):
        return int(value)
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return MAX if value > 0 else MIN
    return max(MIN, min(MAX, math.trunc(value)))


def text(value: Any) -> str:
    """What `str.from` makes of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(first: Any, second: Any) -> Any:
        result = operation(first, second)
        return result if isinstance(first, float) else wrap(result)

    return apply


def _quotient(first: Any, second: Any) -> Any:
    if isinstance(first, float):
        return first / second
    # Python rounds down, garden towards zero.
    return -(-first // second) if (first < 0) != (second < 0) else first // second


def _remainder(first: int, second: int) -> int:
    return first - second * int(_quotient(first, second))


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _arithmetic(lambda first, second: first + second),
    "-": _arithmetic(lambda first, second: first - second),
    "*": _arithmetic(lambda first, second: first * second),
    "/": _arithmetic(_quotient),
    "%": _arithmetic(_remainder),
    "==": lambda first, second: first == second,
    "!=": lambda first, second: first != second,
    "<": lambda first, second: first < second,
    ">": lambda first, second: first > second,
    "<=": lambda first, second: first <= second,
    ">=": lambda first, second: first >= second,
}


def _require(condition: bool, code: str) -> None:
    if not condition:
        raise Trapped(code)


def _abs(value: Any) -> Any:
    return math.fabs(value) if isinstance(value, float) else wrap(abs(value))


def _round(value: Any) -> Any:
    if isinstance(value, int) or not math.isfinite(value):
        return value
    whole = float(Decimal(value).to_integral_value(ROUND_HALF_UP, _EXACT))
    return math.copysign(whole, value)


def _extreme(larger: bool) -> Callable[[Any, Any], Any]:
    def choose(first: Any, second: Any) -> Any:
        if first != first or second != second:
            return second if first != first else first
        # Of two zeros the negative one is the smaller.
        ordered = sorted((first, second), key=lambda value: (value, math.copysign(1.0, value)))
        return ordered[larger]

    return choose


def _clamp(value: Any, low: Any, high: Any) -> Any:
    _require(low <= high, "T0006")
    return low if value < low else high if value > high else value


def _repeat(value: str, count: int) -> str:
    _require(count >= 0, "T0006")
    _require(len(value.encode()) * count < 2**28, "T0003")
    return value * count


def _byte(value: str, index: int) -> int:
    data = value.encode()
    _require(0 <= index < len(data), "T0005")
    return data[index]


def _slice(value: str, start: int, end: int) -> str:
    data = value.encode()
    _require(0 <= start <= end <= len(data), "T0005")
    try:
        data[:start].decode()
        return data[start:end].decode()
    except UnicodeDecodeError:
        raise Trapped("T0006") from None


def _member(array: list[Any], index: int) -> Any:
    _require(0 <= index < len(array), "T0005")
    return array[index]


def _sum(array: list[Any]) -> Any:
    if not array or isinstance(array[0], int):
        return wrap(sum(array))
    total = 0.0
    for member in array:
        total += member
    return total


def _unwrap(option: tuple[Any, ...]) -> Any:
    _require(option != (), "T0006")
    return option[0]


#: The standard functions that give a value. Their traps are completed by the caller.
_HOST: dict[str, Callable[..., Any]] = {
    "math.abs": _abs,
    "math.round": _round,
    "math.min": _extreme(False),
    "math.max": _extreme(True),
    "math.clamp": _clamp,
    "math.sqrt": lambda value: math.nan if value < 0 else math.sqrt(value),
    "str.contains": lambda hay, needle: needle in hay,
    "str.repeat": _repeat,
    "str.concat": lambda first, second: first + second,
    "str.len": lambda value: len(value.encode()),
    "str.get": _byte,
    "str.slice": _slice,
    "str.from": text,
    "arr.len": len,
    "arr.get": _member,
    "arr.range": lambda start, end: list(range(start, end)),
    "arr.sum": _sum,
    "opt.some": lambda value: (value,),
    "opt.none": lambda like: (),
    "opt.is_some": lambda option: option != (),
    "opt.is_none": lambda option: option == (),
    "opt.unwrap": _unwrap,
    "opt.or": lambda option, otherwise: option[0] if option else otherwise,
    "testing.assert": lambda truth: _require(truth, "T0004"),
}
