"""Whatever is handed to the embedding API, what it raises is what its documentation says."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import pytest

import garden
from garden.engine import Engine
from garden.errors import CompileError, Trap
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

HUGE = 10**5000


def shown(value: object) -> str:
    """For the name of a test: pytest cannot print every int."""
    return "huge" if value in (HUGE, {"heap_limit": -HUGE}) else ascii(value)


PROGRAM = """
fn int(a:Int) Int { a }
fn text(a:Str) Int { 1 }
fn flag(a:Bool) Int { 1 }
fn number(a:Double) Int { 1 }
fn many(a:Array<Int>) Int { 1 }
fn perhaps(a:Option<Int>) Int { 1 }
fn record(a:Record<x: Int>) Int { a.x }
1
"""


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_an_int_too_long_to_be_printed_is_refused_as_any_other(engine: str) -> None:
    with Engine(engine=engine) as embedded:
        program = embedded.compile(PROGRAM)
        for name, value in (
            ("int", HUGE),
            ("int", -HUGE),
            ("many", [HUGE]),
            ("perhaps", HUGE),
            ("record", {"x": HUGE}),
        ):
            with pytest.raises(OverflowError, match=r"2\*\*16609 or more is not an Int of 64 bits"):
                program[name](value)
        with pytest.raises(OverflowError):
            program["number"](HUGE)
        for name, value in (("text", HUGE), ("flag", HUGE), ("many", HUGE), ("record", HUGE), ("record", {HUGE: 1})):
            with pytest.raises(TypeError, match=r"got (2\*\*16609 or more|a dict with a huge int in it)"):
                program[name](value)
        assert program["int"](3) == 3


@pytest.mark.parametrize("result", [HUGE, 1 << 63, None, "x", 1.5], ids=shown)
def test_a_host_function_with_a_wrong_result_is_a_type_error(result: object) -> None:
    with Engine() as engine:

        @engine.function
        def wrong() -> int:
            return result  # type: ignore[return-value]

        with pytest.raises(TypeError, match="wrong has returned a wrong value"):
            engine.compile('import "host" host.wrong()').run()


@pytest.mark.parametrize("name", [5, None, b"int", HUGE, [], "\ud800", "", "nosuch"], ids=shown)
def test_what_names_no_function_is_a_key_error(name: Any) -> None:
    with garden.compile(PROGRAM) as program:
        with pytest.raises(KeyError):
            program[name]
        assert name not in program


def test_a_lone_surrogate_is_a_mistake_in_the_program() -> None:
    with pytest.raises(CompileError) as caught:
        garden.compile('let a = 1\nlet b = "\ud800"')
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["E0100"]
    assert "<string>:2:10" in str(caught.value)


@pytest.mark.parametrize("program", [None, b"1", 5, HUGE, bytearray(b"1"), ["1"]], ids=shown)
def test_a_program_that_is_no_text_is_a_type_error(program: Any) -> None:
    with pytest.raises(TypeError, match="a program is a str or a Source"):
        garden.compile(program)


@pytest.mark.parametrize(("name", "text"), [("x", None), ("x", "1"), ("x", bytearray(b"1")), (5, b"1"), (None, b"1")])
def test_a_source_takes_a_name_and_bytes(name: Any, text: Any) -> None:
    with pytest.raises(TypeError, match="a source takes a str and bytes"):
        Source(name, text)


@pytest.mark.parametrize("level", [-1, 2, None, "1", HUGE], ids=shown)
def test_an_unknown_level_is_a_value_error(level: Any) -> None:
    with pytest.raises(ValueError, match="the levels of optimisation are 0 and 1"):
        Engine(level=level)
    with StageAllocators() as stages, pytest.raises(ValueError, match="the levels of optimisation are 0 and 1"):
        Compilation(Source("x", b"1"), stages, STANDARD, level=level)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"heap_limit": -1}, ValueError),
        ({"heap_limit": -HUGE}, ValueError),
        ({"heap_limit": "1"}, TypeError),
        ({"frame_limit": -1}, ValueError),
        ({"frame_limit": 1.5}, TypeError),
        ({"stack_size": -1}, ValueError),
        ({"stack_size": "1"}, TypeError),
        ({"spill": bytearray(8)}, TypeError),
        ({"write": None}, TypeError),
        ({"engine": "fast"}, ValueError),
        ({"packages": 5}, TypeError),
        ({"packages": "math"}, TypeError),
        ({"packages": [3]}, TypeError),
    ],
    ids=shown,
)
def test_an_engine_looks_at_its_options_when_it_is_made(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Engine(**options)


@pytest.mark.parametrize("allocators", [5, "page", {"parse": 5}, {"native": object()}])
def test_allocators_that_are_none_are_a_type_error(allocators: Any) -> None:
    with pytest.raises(TypeError, match="want a"):
        Engine(allocators=allocators).compile("1")


def typed(a: int) -> int:
    return a


class Callee:
    def __call__(self, a: int) -> int:
        return a


async def later(a: int) -> int:
    return a


@pytest.mark.parametrize("implementation", [functools.partial(typed), Callee(), Callee, int, 5, "typed", later])
def test_only_a_function_can_be_registered(implementation: Any) -> None:
    package = garden.Package("p")
    for register in (package.function, package.function(name="f")):
        with pytest.raises(TypeError, match="p: want a function"):
            register(implementation)
    assert package.functions == []


def annotated(annotation: object) -> Callable[..., int]:
    def function(a):  # type: ignore[no-untyped-def]
        return 1

    function.__annotations__ = {"a": annotation, "return": int}
    return function


@pytest.mark.parametrize(
    "annotation",
    ["nosuch", "1+", "int.x", "'\ud800'", "1/0", list, list[int, int], 5, dict[str, int], int | None | str],  # type: ignore[misc]
    ids=shown,
)
def test_an_annotation_that_is_no_type_of_garden_is_a_type_error(annotation: object) -> None:
    with pytest.raises(TypeError):
        garden.Package("p").function(annotated(annotation))


def test_a_builtin_function_without_a_signature_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="no signature"):
        garden.Package("p").function(max)


@dataclasses.dataclass
class Computed:
    x: int
    y: int = dataclasses.field(init=False)


@dataclasses.dataclass
class Inherited(Computed):
    pass


@dataclasses.dataclass
class Wanting:
    x: int
    z: dataclasses.InitVar[int]


@dataclasses.dataclass(init=False)
class Handmade:
    x: int

    def __init__(self) -> None:
        self.x = 1


@pytest.mark.parametrize("record", [Computed, Inherited, Wanting, Handmade])
def test_a_dataclass_that_its_fields_do_not_make_is_a_type_error(record: type[Any]) -> None:
    with pytest.raises(TypeError, match=f"{record.__name__} cannot be made of its fields"):
        garden.Package("p").function(annotated(record))
    with pytest.raises(TypeError, match=f"{record.__name__} cannot be made of its fields"):
        garden.Package("p").function(annotated(list[record]))  # type: ignore[valid-type]


@pytest.mark.parametrize("path", [5, None, b"p", "", "a//b", "\ud800", "match"], ids=shown)
def test_a_path_that_no_program_can_import_is_refused(path: Any) -> None:
    with pytest.raises(ValueError if isinstance(path, str) else TypeError):
        garden.Package(path)


def test_a_trap_with_a_code_of_its_own_comes_out_of_the_run() -> None:
    with Engine() as engine:

        @engine.function
        def stop() -> int:
            raise Trap("MINE", "no more")

        with pytest.raises(Trap, match="MINE: no more"):
            engine.compile('import "host" host.stop()').run()
