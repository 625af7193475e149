"""Calling the functions of a program by name, with Python values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import garden
from garden.types.types import Array, Int, Option, Str

SOURCE = """
fn int(x:Int) Int { x }
fn double(x:Double) Double { x }
fn bool(x:Bool) Bool { x }
fn str(x:Str) Str { x }
fn array(x:Array<Str>) Array<Str> { x }
fn option(x:Option<Int>) Option<Int> { x }
fn record(x:Record<name: Str at: Record<x: Double y: Double>>) Record<name: Str at: Record<x: Double y: Double>> { x }
fn records(x:Array<Record<x: Double y: Double>>) Array<Record<x: Double y: Double>> { x }
fn foreign(x:Foreign<Thing>) Foreign<Thing> { x }
fn nothing() { }

#! Adds two numbers.
#! They may be negative.
fn add(left:Int right:Int) Int { left + right }
fn twice(n:Int) Int { add(n n) }
"""


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Place:
    name: str
    at: Point


class Thing:
    pass


THING = Thing()


@pytest.fixture(params=[0, 1], ids=["O0", "O1"])
def program(request: pytest.FixtureRequest) -> Iterator[garden.Program]:
    with garden.compile(SOURCE, name="functions.garden", level=request.param) as program:
        yield program


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int", -(1 << 63)),
        ("int", (1 << 63) - 1),
        ("double", -0.5),
        ("bool", True),
        ("bool", False),
        ("str", ""),
        ("str", "Ünïcode"),
        ("array", []),
        ("array", ["a", "b", "a"]),
        ("option", None),
        ("option", 0),
        ("record", {"name": "home", "at": {"x": 1.0, "y": 2.0}}),
        ("foreign", THING),
    ],
)
def test_values_go_in_and_come_back(program: garden.Program, name: str, value: object) -> None:
    returned = program[name](value)
    assert (returned, type(returned)) == (value, type(value))


def test_a_foreign_object_comes_back_as_itself(program: garden.Program) -> None:
    assert program["foreign"](THING) is THING


def test_an_int_passes_as_a_double(program: garden.Program) -> None:
    assert repr(program["double"](2)) == "2.0"


def test_a_function_without_a_result_returns_none(program: garden.Program) -> None:
    assert program["nothing"]() is None


def test_dataclasses_pass_as_records_and_come_back_where_they_are_asked_for(program: garden.Program) -> None:
    place = Place("home", Point(1.0, 2.0))
    assert program["record"](place) == {"name": "home", "at": {"x": 1.0, "y": 2.0}}
    assert program.function("record", into=Place)(place) == place
    points = [Point(0.0, 1.0), {"x": 2.0, "y": 3.0}]
    assert program.function("records", into=list[Point])(points) == [Point(0.0, 1.0), Point(2.0, 3.0)]


def test_the_value_of_a_program_can_become_a_dataclass() -> None:
    with garden.compile("{x: 1.0 y: 2.0}") as program:
        assert program.run(into=Point) == Point(1.0, 2.0)


def test_functions_that_were_inlined_can_be_called(program: garden.Program) -> None:
    assert (program["add"](2, 3), program["twice"](4)) == (5, 8)


def test_more_arguments_than_registers_can_be_passed() -> None:
    parameters = " ".join([f"p{index}:Int" for index in range(80)])
    with garden.compile(f"fn last({parameters}) Int {{ p79 - p63 + p0 }}") as program:
        assert program["last"](*range(100, 180)) == 179 - 163 + 100


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("add", (1,), "`fn add(left:Int right:Int) Int` takes 2 arguments, not 1"),
        ("int", (1, 2), "`fn int(x:Int) Int` takes 1 argument, not 2"),
        ("add", (1, "2"), "add: parameter right:Int: want Int, got '2'"),
        ("int", (True,), "int: parameter x:Int: want Int, got True"),
        ("double", ("1",), "double: parameter x:Double: want Double, got '1'"),
        ("bool", (1,), "bool: parameter x:Bool: want Bool, got 1"),
        ("str", (b"bytes",), "str: parameter x:Str: want Str, got b'bytes'"),
        ("array", ("text",), "array: parameter x:Array<Str>: want Array<Str>, got 'text'"),
        ("array", (["a", 1],), "array: parameter x:Array<Str>: want Str, got 1"),
        ("option", ("x",), "option: parameter x:Option<Int>: want Int, got 'x'"),
        ("records", ([{"x": 1.0}],), "records: parameter x:Array<Record<x: Double y: Double>>: want Record<"),
    ],
)
def test_wrong_arguments_are_type_errors_that_say_what_is_wanted(
    program: garden.Program, name: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        program[name](*arguments)
    assert str(caught.value).startswith(message)
    assert program["add"](1, 2) == 3


def test_values_of_the_right_type_may_still_be_impossible(program: garden.Program) -> None:
    with pytest.raises(OverflowError, match="int: parameter x:Int: 9223372036854775808 is not an Int of 64 bits"):
        program["int"](1 << 63)
    with pytest.raises(ValueError, match=r"str: parameter x:Str: .* surrogates not allowed"):
        program["str"]("\ud800")


def test_an_unknown_name_is_a_key_error_that_says_what_was_meant(program: garden.Program) -> None:
    with pytest.raises(KeyError) as caught:
        program["recrod"]
    assert caught.value.args[0] == "functions.garden has no function `recrod`, did you mean `record`?"
    with pytest.raises(KeyError) as caught:
        program["zzz"]
    assert caught.value.args[0] == "functions.garden has no function `zzz`"
    assert "recrod" not in program
    assert "record" in program


def test_parameters_and_variables_are_no_functions() -> None:
    with garden.compile("let value = 1\nfn f(parameter:Int) Int { parameter }") as program:
        assert list(program.functions) == ["f"]
        for name in ("value", "parameter"):
            with pytest.raises(KeyError):
                program[name]


def test_functions_have_names_signatures_and_documentation(program: garden.Program) -> None:
    assert [str(function) for function in program.functions.values()][-4:] == [
        "fn foreign(x:Foreign<Thing>) Foreign<Thing>",
        "fn nothing()",
        "fn add(left:Int right:Int) Int",
        "fn twice(n:Int) Int",
    ]
    assert list(program.functions)[:2] == ["int", "double"]
    add = program["add"]
    assert (add.name, add.parameters, add.result) == ("add", (("left", Int), ("right", Int)), Int)
    assert add.doc == "Adds two numbers.\nThey may be negative."
    assert repr(add) == "<Function fn add(left:Int right:Int) Int>"
    assert program["array"].parameters == (("x", Array(Str)),)
    assert program["option"].result == Option(Int)
    assert program["twice"].doc == ""


def test_every_call_begins_in_a_fresh_state() -> None:
    source = (
        'import ("str" "unsafe/runtime")\nfn used(text:Str) Int { str.len(str.concat(text text)) + runtime.used() }'
    )
    with garden.compile(source) as program:
        used = program["used"]
        assert {used("some text") for _ in range(5)} == {used("some text")}
