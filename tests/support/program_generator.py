"""Generator: well-typed programs, made of choices, so that whoever makes the choices can shrink them.

A program is a few functions and a top level that calls them and writes what comes out. Each function may call those
before it, and in an arm that is reached with a smaller first argument also itself and the function of its pair. So all
recursion ends. The programs trap now and then, mostly by dividing by zero.

Three rules keep the text of one expression apart from the next: no expression begins with a parenthesis, a record
literal stands only where it is a whole argument, field, member or `let`, and blanks are on both sides of an operator or
on none. Within these the text need not mean the tree that was thought of: sums and products of one type have that type
however they are grouped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Names of scalar types, or ("Array", type), ("Option", type), ("Record", ((name, type), ...)).
Type = Any
#: One of the numbers from 0 up to n; 0 leads to the simplest program.
Choose = Callable[[int], int]

SCALARS = ("Int", "Double", "Bool", "Str")

_INTS = ("0", "1", "2", "7", "-1", "10", "-3", "255", "32768", "-32769", "2147483647", "2147483648", "4294967296",
         "9223372036854775807", "-9223372036854775808")  # fmt: skip
_DOUBLES = ("0.0", "1.0", "0.5", "-2.5", "3.", "-0.0", "0.1", "1000000007.0", "123456789012345678901234567890.0")
_STRINGS = ("", "a", "b", "garden", "# no: comment", "äö", "two words", "line\nend")
#: What matches compare Ints with. Recursive functions count down through the first ones.
_KEYS = ("0", "1", "2", "3", "4", "7", "-1", "10", "255", "32768", "4294967296")
_FIELDS = ("x", "y", "name", "in_")
_COMPARISONS = ("==", "<", ">", "!=", "<=", ">=")
_HEAD = 'import ("io" "str" "math" "arr" "opt" "testing")\n'


def generate(choose: Choose) -> str:
    """The text of a program."""
    return _Program(choose).text()


def spell(type: Type) -> str:
    """A type as garden spells it."""
    if isinstance(type, str):
        return type
    if type[0] == "Record":
        return f"Record<{' '.join([f'{name}: {spell(member)}' for name, member in type[1]])}>"
    return f"{type[0]}<{spell(type[1])}>"


class _Function:
    """A head: name, parameter types, result type. The first parameter of a recursive one counts down."""

    def __init__(self, name: str, parameters: list[Type], result: Type, recursive: bool) -> None:
        self.name = name
        self.parameters = parameters
        self.result = result
        self.recursive = recursive


class _Program:
    """One program that is being made."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.functions: list[_Function] = []
        self.types: list[Type] = [*SCALARS]
        self.fresh = 0

    def text(self) -> str:
        for _ in range(self.choose(3)):
            self.types.append(self.compound())
        parts = [_HEAD]
        for index in range(self.choose(4)):
            parts.extend(self.group(index))
        parts.extend(self.body([], None, 2 + self.choose(5)).lines)
        return "\n".join(parts) + "\n"

    def compound(self) -> Type:
        """A compound type of types that there are."""
        kind = self.choose(4)
        if kind == 0:
            return ("Array", self.pick(self.types))
        if kind == 1:
            return ("Option", self.pick(self.types))
        return ("Record", tuple([(name, self.pick(self.types)) for name in _FIELDS[: 1 + self.choose(len(_FIELDS))]]))

    def pick(self, things: Any) -> Any:
        return things[self.choose(len(things))]

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"

    def group(self, index: int) -> list[str]:
        """One function, or two that call each other."""
        recursive = self.choose(3) > 0
        group = []
        for member in "ab"[: 1 + (recursive and self.choose(3) == 2)]:
            # More than 32 arguments do not fit into registers.
            count = 34 + self.choose(4) if self.choose(30) == 29 else self.choose(4)
            parameters = [self.pick(self.types) for _ in range(count)]
            if recursive:
                parameters.insert(0, "Int")
            result = "Void" if self.choose(10) == 9 else self.pick(self.types)
            group.append(_Function(f"f{index}{member}", parameters, result, recursive))
        texts = [self.function(function, group) for function in group]
        self.functions.extend(group)
        return texts

    def function(self, function: _Function, group: list[_Function]) -> str:
        names = [f"p{index}" for index in range(len(function.parameters))]
        parameters = list(zip(names, function.parameters, strict=True))
        if function.recursive:
            base = self.body(parameters, function.result, self.choose(2))
            deeper = self.body(parameters, function.result, self.choose(4), group)
            guard = self.pick(("p0 < 1", "p0 <= 0", "1 > p0"))
            lines = [f"match {{ {guard} {{", *base.lines, "} {", *deeper.lines, "} }"]
        else:
            lines = self.body(parameters, function.result, self.choose(5)).lines
        head = " ".join([f"{name}:{spell(type)}" for name, type in parameters])
        result = "" if function.result == "Void" else f" {spell(function.result)}"
        return "\n".join([f"fn {function.name}({head}){result} {{", *[f"    {line}" for line in lines], "}"])

    def body(
        self, scope: list[tuple[str, Type]], result: Type | None, items: int, group: list[_Function] | None = None
    ) -> _Body:
        """A body with so many items before what it gives. None: it is the top level."""
        body = _Body(self, scope, group or [], 2)
        body.fill(items, result)
        return body


class _Body:
    """The lines of a body, and what is known in it.

    `group`: the functions that can be called with one less than `p0`.
    """

    def __init__(self, program: _Program, scope: list[tuple[str, Type]], group: list[_Function], depth: int) -> None:
        self.program = program
        self.scope = list(scope)
        self.group = group
        self.depth = depth
        self.lines: list[str] = []
        self._pick = program.pick
        self._choose = program.choose
        self._calls = 2

    def fill(self, items: int, result: Type | None) -> None:
        for _ in range(items):
            self._item()
        if result is None:
            for name, type in self.scope[-8:]:
                self._write(name, type)
        elif result == "Void":
            before, behind = self._pick((("let last = ", ""), ("io.println(", ")")))
            self.lines.append(f"{before}{self._atom('Int')}{behind}")
        else:
            self.lines.append(self.whole(result, self._choose(3)))

    def _item(self) -> None:
        kind = self._choose(12)
        if kind < 6:
            self._let(self._pick(self.program.types), 3)
        elif kind < 8:
            self.lines.append(f"io.println({self.expression(self._pick(SCALARS), 2)})")
        elif kind == 8:
            # A call whose result nobody wants, if there is one.
            type = self._pick([*self.program.types, "Void"])
            self.lines.append(self._call(type, 2) or ("" if type == "Void" else self.whole(type, 2)))
        elif kind == 9:
            self._let(self._pick(self.program.types), 0, self._match)
        elif kind == 10:
            self.lines.append(f"testing.assert({self._pick(('true', '', '', '')) or self._bool(1)} == true)")
        else:
            self._pressure()

    def _let(self, type: Type, depth: int, make: Callable[[Type], str] | None = None) -> str:
        value = make(type) if make is not None else self.whole(type, depth)
        # Now and then an earlier name, which is shadowed.
        name = self._pick(self.scope)[0] if self.scope and self._choose(10) == 9 else self.program.name()
        if name == "p0":
            name = self.program.name()
        self.lines.append(f"let {name} = {value}")
        self.scope = [(other, kept) for other, kept in self.scope if other != name]
        self.scope.append((name, type))
        return name

    def _pressure(self) -> None:
        """More values at once than there are registers, now and then."""
        count = 70 if self._choose(6) == 5 else 8
        seed = self.expression("Int", 1)
        first = self.program.name()
        self.lines.append(f"let {first} = {seed}")
        names = []
        for index in range(count):
            names.append(self.program.name())
            self.lines.append(f"let {names[-1]} = {first} * {index + 3} - {index}")
        self.scope.append((first, "Int"))
        self.lines.append(f"let {self.program.name()} = {self._atom('Int')}")
        total = self.program.name()
        self.lines.append(f"let {total} = {' + '.join(names[::-1])}")
        self.scope.append((total, "Int"))

    def _write(self, text: str, type: Type) -> None:
        """Lines that write a value, all of it."""
        if type in SCALARS:
            self.lines.append(f"io.println({text})")
        elif type[0] == "Record":
            for name, member in type[1]:
                self._write(f"{text}.{name}", member)
        elif type[0] == "Option":
            self.lines.append(f"io.println(opt.is_some({text}))")
            if type[1] in SCALARS:
                self.lines.append(f"io.println(opt.or({text} {self._atom(type[1])}))")
        else:
            self.lines.append(f"io.println(arr.len({text}))")
            if type[1] in SCALARS:
                self.lines.append(f"io.println(arr.get({text} 0))")

    # Expressions. A whole one may be a record literal.

    def whole(self, type: Type, depth: int) -> str:
        if type[0] == "Record" and self._choose(3) == 0:
            fields = [f"{name}: {self.whole(member, depth - 1)}" for name, member in type[1]]
            return f"{{ {' '.join(fields)} }}"
        return self.expression(type, depth)

    def expression(self, type: Type, depth: int) -> str:
        if depth <= 0:
            return self._atom(type)
        if self._choose(5) == 4:
            called = self._call(type, depth)
            if called:
                return called
        if type == "Int":
            return self._number("Int", ("+", "-", "*", "/", "%"), depth)
        if type == "Double":
            return self._number("Double", ("+", "-", "*", "/"), depth)
        if type == "Bool":
            return self._bool(depth)
        if type == "Str":
            return self._str(depth)
        if type[0] == "Array":
            members = [self.whole(type[1], depth - 1) for _ in range(1 + self._choose(3))]
            return f"[{' '.join(members)}]"
        if type[0] == "Option":
            return f"opt.{self._pick(('some', 'none'))}({self.whole(type[1], depth - 1)})"
        return self._atom(type)

    def _atom(self, type: Type) -> str:
        """A name, a field, or something small."""
        known = [name for name, other in self.scope if other == type]
        for name, other in self.scope:
            if other[0] == "Record":
                known.extend([f"{name}.{field}" for field, member in other[1] if member == type])
        if known and self._choose(4) > 0:
            return str(self._pick(known[::-1]))
        if type == "Int":
            return str(self._pick(_INTS))
        if type == "Double":
            return str(self._pick(_DOUBLES))
        if type == "Bool":
            return str(self._pick(("false", "true")))
        if type == "Str":
            return f'"{self._pick(_STRINGS)}"'
        if type[0] == "Array":
            return f"[{self._atom(type[1])}]"
        if type[0] == "Option":
            return f"opt.some({self._atom(type[1])})"
        name = self.program.name()
        fields = [f"{field}: {self._atom(member)}" for field, member in type[1]]
        self.lines.append(f"let {name} = {{ {' '.join(fields)} }}")
        self.scope.append((name, type))
        return name

    def _call(self, type: Type, depth: int) -> str:
        """A call of a function of the program that gives this type; empty where there is none."""
        deeper = [function for function in self.group if function.result == type]
        earlier = [function for function in self.program.functions if function.result == type]
        if self._calls == 0 or not deeper + earlier:
            return ""
        self._calls -= 1
        function = self._pick(deeper + earlier)
        arguments = []
        for index, parameter in enumerate(function.parameters):
            if function.recursive and index == 0:
                arguments.append("p0 - 1" if function in deeper else str(self._choose(5)))
            else:
                arguments.append(self.whole(parameter, depth - 1 if len(function.parameters) < 8 else 0))
        return f"{function.name}({' '.join(arguments)})"

    def _operator(self, operator: str) -> str:
        return operator if self._choose(3) == 2 else f" {operator} "

    def _number(self, type: Type, operators: tuple[str, ...], depth: int) -> str:
        kind = self._choose(8)
        if kind == 0:
            return self._atom(type)
        if kind == 1:
            return f"-{self._operand(type, depth - 1)}"
        if kind == 2:
            return self._special(type, depth - 1)
        text = self._operand(type, depth - 1)
        for _ in range(1 + self._choose(3)):
            operator = self._pick(operators)
            right = self._operand(type, depth - 1)
            if operator in "/%" and self._choose(8) < 7:
                # Not zero, most often.
                right = self._pick(("2", "3", "-1", "8") if type == "Int" else ("2.0", "0.25", "-3.0"))
            elif self._choose(4) == 3:
                right = f"({self.expression(type, depth - 1)})"
            text += self._operator(operator) + right
        return text

    def _operand(self, type: Type, depth: int) -> str:
        """What can stand on either side of an operator."""
        kind = self._choose(6)
        if kind == 5 and depth > 0:
            return self._special(type, depth)
        if kind == 4:
            source = self._pick(("Bool", "Double") if type == "Int" else ("Int",))
            return f"{self._unsigned(source)} as {type}"
        return self._atom(type)

    def _unsigned(self, type: Type) -> str:
        atom = self._atom(type)
        return "7" if atom == _INTS[-1] else atom.lstrip("-")

    def _special(self, type: Type, depth: int) -> str:
        """A call of a standard function that gives a number."""
        shared = ("abs", "round", "min", "max", "clamp", "or", "unwrap", "sum", "get", "sqrt", "len", "size", "byte")
        name = self._pick(shared[:9] + (shared[9:10] if type == "Double" else shared[10:]))
        one = self.whole(type, depth)
        if name in ("abs", "round", "sqrt"):
            return f"math.{name}({one})"
        if name in ("min", "max"):
            return f"math.{name}({one} {self.expression(type, depth)})"
        if name == "clamp":
            low, high = ("-10", "100") if type == "Int" else ("-1.5", "1000.0")
            return f"math.clamp({one} {low} {high})"
        if name == "or":
            return f"opt.or({self.expression(('Option', type), depth)} {one})"
        if name == "unwrap":
            return f"opt.unwrap(opt.some({one}))"
        if name == "sum":
            return f"arr.sum({self.expression(('Array', type), depth)})"
        if name == "get":
            index = "0" if self._choose(6) else self.expression("Int", depth)
            return f"arr.get({self.expression(('Array', type), depth)} {index})"
        if name == "len":
            return f"str.len({self.expression('Str', depth)})"
        if name == "size":
            return f"arr.len({self.expression(('Array', self._pick(self.program.types)), depth)})"
        return f'str.get(str.concat("x" {self.expression("Str", depth)}) 0)'

    def _bool(self, depth: int) -> str:
        kind = self._choose(8)
        if kind == 0:
            return self._atom("Bool")
        if kind == 1:
            return f"str.contains({self.expression('Str', depth - 1)} {self._atom('Str')})"
        if kind == 2:
            return f"opt.is_some({self.expression(('Option', self._pick(self.program.types)), depth - 1)})"
        if kind == 3:
            return f"{self._unsigned('Int')} as Bool"
        type = self._pick(("Int", "Double", "Str", "Bool", "Int"))
        operators = {"Int": _COMPARISONS, "Double": ("<", ">", "<=", ">=")}.get(type, ("==", "!="))
        operator = self._operator(self._pick(operators))
        if type == "Bool":
            return f"{self._bool(0)}{operator}({self._bool(depth - 1)})"
        return f"{self.expression(type, depth - 1)}{operator}{self.expression(type, depth - 1)}"

    def _str(self, depth: int) -> str:
        kind = self._choose(7)
        if kind == 0:
            return self._atom("Str")
        if kind < 3:
            return f"str.concat({self.expression('Str', depth - 1)} {self.expression('Str', depth - 1)})"
        if kind == 3:
            return f"str.repeat({self.expression('Str', depth - 1)} {self._pick(('2', '0', '3', '1', '-1'))})"
        if kind == 4:
            text = self.program.name()
            self.lines.append(f"let {text} = {self.expression('Str', depth - 1)}")
            self.scope.append((text, "Str"))
            return f"str.slice({text} {self._pick(('0', '0', '0', '1'))} str.len({text}))"
        return f"str.from({self.expression(self._pick(('Int', 'Double', 'Bool')), depth - 1)})"

    # Matches.

    def _match(self, type: Type) -> str:
        arms = []
        default = self._arm(type)
        if self._choose(2):
            # On one subject: a chain that may become a switch.
            subject_type = self._pick(("Int", "Str"))
            subject = "p0" if subject_type == "Int" and self.group else self._atom(subject_type)
            keys = _KEYS if subject_type == "Int" else [f'"{text}"' for text in _STRINGS]
            shared = self._choose(3) == 2
            for _ in range(self._choose(7)):
                body = f"{{ {self._constant(type)} }}" if shared and type in SCALARS else self._arm(type)
                arms.append(f"{subject} == {self._pick(keys)} {body}")
        else:
            arms.extend([f"{self._bool(2)} {self._arm(type)}" for _ in range(self._choose(3))])
        arms.insert(len(arms) - self._choose(len(arms) + 1), default)
        return f"match {{ {' '.join(arms)} }}"

    def _constant(self, type: Type) -> str:
        scope, self.scope = self.scope, []
        text = self._atom(type)
        self.scope = scope
        return text

    def _arm(self, type: Type) -> str:
        if self.depth == 0:
            return f"{{ {self._constant(type)} }}"
        arm = _Body(self.program, self.scope, self.group, self.depth - 1)
        arm._calls = min(1, self._calls)
        arm.fill(self._choose(3), type)
        return "{ " + "\n".join(arm.lines) + " }"
