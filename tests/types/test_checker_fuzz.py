"""Programs by chance: wrong ones never make the checker raise, right ones are typed throughout."""

from __future__ import annotations

import random
from typing import ClassVar

from garden.syntax.tokens import KEYWORDS
from tests.support.checked import check_text

_TOKENS = [*KEYWORDS, *b'( ) [ ] { } < > + - * / % = == != <= >= : . a b f io str "io" "str" 1 2.5 x'.split()]


def test_no_sequence_of_tokens_makes_it_raise():
    chance = random.Random(1)
    for _ in range(300):
        check_text(b" ".join(chance.choices(_TOKENS, k=chance.randint(1, 60))).decode())


class Programs:
    """Programs by chance that parse, and of which some parts fit together."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def program(self) -> str:
        items = ['import ("io" "str" "opt" "math")', 'extern "gfx" { fn id(v:T) T fn draw(x:Int) }']
        items += [self.function(name) for name in "fgh"]
        items += [self.item(3) for _ in range(8)]
        self.chance.shuffle(items)
        return "\n".join(items)

    def function(self, name: str) -> str:
        parameters = " ".join([f"{parameter}:{self.type(2)}" for parameter in "abc"[: self.chance.randint(0, 3)]])
        return f"fn {name}({parameters}) {self.type(1)} {{ {self.body(3)} }}"

    def type(self, depth: int) -> str:
        return self.chance.choice(
            [
                "Int",
                "Int",
                "Double",
                "Str",
                "Bool",
                "Void",
                f"Array<{self.type(depth - 1)}>" if depth else "Int",
                f"Option<{self.type(depth - 1)}>" if depth else "Str",
                f"Record<x:{self.type(depth - 1)} y:Int>" if depth else "Bool",
                "Foreign<Thing>",
            ]
        )

    def body(self, depth: int) -> str:
        return " ".join([self.item(depth) for _ in range(self.chance.randint(0, 3))])

    def item(self, depth: int) -> str:
        if self.chance.random() < 0.4:
            return f"let {self.chance.choice('abcxy')} = {self.expression(depth)}"
        return self.expression(depth)

    def expression(self, depth: int) -> str:
        if depth <= 0:
            return self.chance.choice(["1", "2", "2.5", '"s"', "true", "a", "b", "c", "x", "{}", "[1 2]"])
        part = self.expression
        less = depth - 1
        match self.chance.randint(0, 11):
            case 0 | 1 | 2:
                operator = self.chance.choice(["+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">="])
                return f"({part(less)} {operator} {part(less)})"
            case 3:
                return f"({part(less)} as {self.type(1)})"
            case 4:
                return f"[{part(less)} {part(less)}]"
            case 5:
                return f"{{x: {part(less)} y: {part(less)}}}"
            case 6:
                return f"({part(less)}).x"
            case 7:
                return f"match {{ {part(less)} {{ {self.body(less)} }} {{ {self.body(less)} }} }}".replace(
                    "{ {", "{ 1 {"
                )
            case 8 | 9:
                arguments = " ".join([part(less) for _ in range(self.chance.randint(0, 3))])
                return f"{self.chance.choice('fgh')}({arguments})"
            case 10:
                callee = self.chance.choice(["io.println", "str.from", "opt.some", "opt.pair", "gfx.id", "math.abs"])
                return f"{callee}({part(less)})"
            case _:
                return self.expression(0)


def test_no_program_makes_it_raise():
    for seed in range(150):
        text = Programs(seed).program()
        for diagnostic in check_text(text).diagnostics:
            assert 0 <= diagnostic.start <= diagnostic.start + diagnostic.length <= len(text.encode())


class RightPrograms:
    """Values by chance, each of the type that is asked for."""

    _LITERALS: ClassVar = {"Int": "7", "Double": "2.5", "Bool": "true", "Str": '"s"'}

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def value(self, type: str, depth: int) -> str:
        if depth == 0:
            return self.chance.choice([self._LITERALS[type], f"a_{type}"])
        less = depth - 1
        other = self.chance.choice(list(self._LITERALS))
        choices = [
            f"r.v_{type}",
            f"{{x: {self.value(other, less)} y: {self.value(type, less)}}}.y",
            f"f_{other}_{type}({self.value(other, less)} {self.value(type, less)})",
            f"opt.same({self.value(type, less)} {self.value(type, less)})",
            f"gfx.first([{self.value(type, less)} {self.value(type, less)}])",
        ]
        two = [self.value(type, less), self.value(type, less)]
        if type in ("Int", "Double"):
            choices.append(f"gfx.id({two[0]} {self.chance.choice('+-*/')} {two[1]})")
            choices.append(f"gfx.id(-{two[0]})")
            choices.append(f"gfx.id({self.value('Int' if type == 'Double' else 'Bool', less)} as {type})")
        elif type == "Str":
            choices.append(f"str.concat({two[0]} {two[1]})")
            choices.append(f"str.from({self.value(self.chance.choice(['Int', 'Double']), less)})")
        else:
            same = self.chance.choice(["Int", "Str", "Bool"])
            choices.append(
                f"gfx.id({self.value(same, less)} {self.chance.choice(['==', '!='])} {self.value(same, less)})"
            )
            number = self.chance.choice(["Int", "Double"])
            order = self.chance.choice(["<", "<=", ">", ">="])
            choices.append(f"gfx.id({self.value(number, less)} {order} {self.value(number, less)})")
        return self.chance.choice(choices)

    def item(self, type: str) -> str:
        match = f"match {{ gfx.id({self.value('Bool', 2)}) {{ {self.value(type, 2)} }} {{ {self.value(type, 1)} }} }}"
        return self.chance.choice([self.value(type, 3), match])

    def program(self) -> str:
        """Every type has a `let`, a field of a record, and a function for every type of a first argument."""
        types = list(self._LITERALS)
        lets = "".join([f"let a_{type} = {self._LITERALS[type]}\n" for type in types])
        lets += f"let r = {{{' '.join([f'v_{type}: a_{type}' for type in types])}}}\n"
        text = 'import ("str" "opt") extern "gfx" { fn first(a:Array<T>) T fn id(v:T) T }\n'
        for first in types:
            for type in types:
                text += f"fn f_{first}_{type}(a:{first} b:{type}) {type} {{\n{lets}{self.item(type)}\n}}\n"
        for type in types:
            text += f"let b_{type} = {self.item(type)}\n"
        return lets + text


def test_right_programs_have_no_mistakes_and_are_typed_throughout():
    for seed in range(25):
        text = RightPrograms(seed).program()
        checked = check_text(text)
        assert not checked.rendered, text + "\n".join(checked.rendered)
        assert "?" not in checked.nodes
        types = checked.types.splitlines()
        assert all(line.split(": ")[0] == f"b_{line.split(': ')[1]}" for line in types if line.startswith("b_"))
