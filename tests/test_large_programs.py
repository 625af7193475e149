"""Programs that are too long to read: each line of them is simple, and Python knows what they give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import shapes
from shapes import Shape

from garden.bytecode import ops
from garden.bytecode.ops import op_of
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD
from tests.support.annotations import LEVELS
from tests.support.engines import ENGINES
from tests.support.program import Program

HEAD = 'import ("io" "arr" "str")\n'


def with_calls(shape: Shape, name: str, arguments: tuple[int, ...]) -> str:
    """The garden program of a shape, and calls of a function of it, which must give what the Python program gives."""
    functions: dict[str, Callable[[int], int]] = {}
    exec(shape.python, functions)
    # The argument is no constant for the compiler.
    calls = [
        f"io.println({name}(arr.get([{n}] 0))) # expect: {(functions[name](n) + 2**63) % 2**64 - 2**63}"
        for n in arguments
    ]
    return HEAD + shape.garden + "\n".join(calls)


def a_match_with_a_thousand_integers() -> str:
    return with_calls(shapes.match(1000), "f", (0, 1, 500, 1008, 1007, -1, 2000))


def a_match_with_four_hundred_strings() -> str:
    arms = "\n".join([f'word == "key {key}" {{ io.println("{key}!") {key} }}' for key in range(400)])
    return (
        f"{HEAD}fn f(word:Str) Int {{ match {{\n{arms}\n{{ -1 }} }} }}\n"
        'f(str.concat("key " str.from(399))) # expect: 399!\n'
        'f("key 0") # expect: 0!\n'
        'io.println(f("key 400")) # expect: -1'
    )


def a_match_with_three_hundred_conditions() -> str:
    arms = "\n".join([f"n * n < {key * 10} {{ {key} }}" for key in range(300)])
    asked = ((30, 91), (54, 292), (55, -1))
    calls = "\n".join([f"io.println(f({n})) # expect: {key}" for n, key in asked])
    return f"{HEAD}fn f(n:Int) Int {{ match {{\n{arms}\n{{ -1 }} }} }}\n{calls}"


def a_sum_of_a_thousand_terms() -> str:
    return with_calls(shapes.expression(1000), "f", (3,))


def a_body_of_two_thousand_lines() -> str:
    return with_calls(shapes.body(2000), "f", (5,))


def five_hundred_functions() -> str:
    return with_calls(shapes.tower(500), "f499", (0, 3, 600))


def a_thousand_calls_in_each_other() -> str:
    # The program must not be deeper than the limit.
    calls = "f(" * 990 + "0" + ")" * 990
    return f"{HEAD}fn f(n:Int) Int {{ n + 1 }}\nio.println({calls}) # expect: 990"


def matches_three_hundred_deep() -> str:
    text = "0"
    for level in range(300, 0, -1):
        text = f"match {{ n < {level} {{ {level} }} {{ {text} }} }}"
    return f"{HEAD}fn f(n:Int) Int {{ {text} }}\nio.println(f(250)) # expect: 251\nio.println(f(300)) # expect: 0"


def records_five_hundred_deep() -> str:
    literal = "{ x: " * 500 + "7" + " }" * 500
    return f"{HEAD}let r = {literal}\nio.println(r{'.x' * 500}) # expect: 7"


def arrays_three_hundred_deep() -> str:
    literal = "[" * 300 + "7" + "]" * 300
    read = "arr.get(" * 300 + "a" + " 0)" * 300
    return f"{HEAD}let a = {literal}\nio.println({read}) # expect: 7"


def an_array_of_a_thousand_records() -> str:
    members = "\n".join([f'{{ n: {index} s: "{index % 10}" }}' for index in range(1000)])
    return (
        f"{HEAD}let a = [\n{members}\n]\nio.println(arr.len(a)) # expect: 1000\n"
        "io.println(arr.get(a 999).n) # expect: 999\nio.println(arr.get(a 234).s) # expect: 4"
    )


def a_record_of_a_thousand_fields() -> str:
    fields = " ".join([f"f{index}: {index * index}" for index in range(1000)])
    return f"{HEAD}let r = {{ {fields} }}\nio.println(r.f999 - r.f998) # expect: {999**2 - 998**2}"


def a_thousand_live_values() -> str:
    lets = "\n".join([f"let v{index} = g(n + {index})" for index in range(1000)])
    total = " ".join([f"+ v{index}" for index in reversed(range(1000))])
    return (
        f"{HEAD}fn g(n:Int) Int {{ match {{ n > 9999 {{ g(n - 1) }} {{ n * n }} }} }}\n"
        f"fn f(n:Int) Int {{\n{lets}\n0 {total}\n}}\nio.println(f(1)) # expect: {sum([n * n for n in range(1, 1001)])}"
    )


def a_thousand_parameters() -> str:
    parameters = " ".join([f"p{index}:Int" for index in range(1000)])
    # All change places in every call.
    turned = " ".join([f"p{(index * 7 + 3) % 1000}" for index in range(1000)])
    values = list(range(1000))
    for _ in range(3):
        values = [values[(index * 7 + 3) % 1000] for index in range(1000)]
    picked = " + ".join([f"p{index} * {index + 1}" for index in range(0, 1000, 37)])
    total = sum([values[index] * (index + 1) for index in range(0, 1000, 37)])
    arguments = " ".join([str(index) for index in range(1000)])
    return (
        f"{HEAD}fn f(n:Int {parameters}) Int {{ match {{ n == 0 {{ {picked} }} {{ f(n - 1 {turned}) }} }} }}\n"
        f"io.println(f(3 {arguments})) # expect: {total}"
    )


def a_string_of_a_hundred_thousand_characters() -> str:
    return (
        f'{HEAD}let s = "{"ä" * 100_000}"\nio.println(str.len(s)) # expect: 200000\nio.println(s == s) # expect: true'
    )


def ten_thousand_strings() -> str:
    return (
        f"{HEAD}fn f(n:Int same:Int) Int {{ match {{ n == 10000 {{ same }}\n"
        'str.concat("n" str.from(n)) == "n777" { f(n + 1 same + 1) }\n{ f(n + 1 same) } } }\n'
        "io.println(f(0 0)) # expect: 1"
    )


PROGRAMS = [
    a_match_with_a_thousand_integers,
    a_match_with_four_hundred_strings,
    a_match_with_three_hundred_conditions,
    a_sum_of_a_thousand_terms,
    a_body_of_two_thousand_lines,
    five_hundred_functions,
    a_thousand_calls_in_each_other,
    matches_three_hundred_deep,
    records_five_hundred_deep,
    arrays_three_hundred_deep,
    an_array_of_a_thousand_records,
    a_record_of_a_thousand_fields,
    a_thousand_live_values,
    a_thousand_parameters,
    a_string_of_a_hundred_thousand_characters,
    ten_thousand_strings,
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", PROGRAMS)
def test_a_large_program(make: Callable[[], str], engine: str, level: int) -> None:
    Program(make.__name__, make()).check(engine, level)


def opcodes(text: str) -> Counter[int]:
    """How often the code of a program at -O1 has each opcode."""
    with (
        StageAllocators() as allocators,
        Compilation(Source("test", text.encode()), allocators, STANDARD) as compilation,
    ):
        return Counter([op_of(word) for word in compilation.emit().words.view])


def test_a_match_of_five_hundred_strings_that_gives_constants_is_one_lookup() -> None:
    arms = "\n".join([f'word == "kw_{key}" {{ {key * key} }}' for key in range(500)])
    found = opcodes(
        f"{HEAD}fn value(word:Str) Int {{ match {{\n{arms}\n{{ -1 }} }} }}\n"
        "fn sum(n:Int total:Int) Int { match {\n"
        'n == 0 { total }\n{ sum(n - 1 total + value(str.concat("kw_" str.from(n)))) } } }\n'
        "io.println(sum(600 0))"
    )
    assert found[ops.LOOKUP] == 1
    assert found[ops.SWITCH] == 0
    # Nothing but the loop compares.
    assert sum(found.values()) < 30


def test_a_match_of_a_thousand_dense_integers_is_one_lookup_or_one_switch() -> None:
    call = "io.println(f(arr.get([7] 0)))"
    found = opcodes(f"{HEAD}{shapes.match(1000).garden}{call}")
    assert (found[ops.LOOKUP], found[ops.SWITCH]) == (1, 0)
    arms = "\n".join([f"n == {key} {{ io.println({key}) {key} }}" for key in range(1000)])
    found = opcodes(f"{HEAD}fn f(n:Int) Int {{ match {{\n{arms}\n{{ -1 }} }} }}\n{call}")
    assert (found[ops.LOOKUP], found[ops.SWITCH]) == (0, 1)
    assert sum([count for op, count in found.items() if ops.OPS[op].name.startswith("jmp") and op != ops.JMP]) == 0
