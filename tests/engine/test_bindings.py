"""Typed Python functions as functions of garden."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

import garden
from garden.bindings import garden_type, host_function

T = TypeVar("T")
N = TypeVar("N", bound=int)


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Path:
    name: str
    points: list[Point]
    next: Point | None


@dataclass
class Endless:
    inside: Endless | None


class Canvas:
    def __init__(self) -> None:
        self.drawn: list[Any] = []


class Screen(Canvas):
    pass


@pytest.fixture
def engine() -> Iterator[garden.Engine]:
    with garden.Engine() as engine:
        yield engine


@pytest.mark.parametrize(
    ("annotation", "spelling"),
    [
        (int, "Int"),
        (float, "Double"),
        (bool, "Bool"),
        (str, "Str"),
        (list[int], "Array<Int>"),
        (list[list[str]], "Array<Array<Str>>"),
        (int | None, "Option<Int>"),
        (Point | None, "Option<Record<x: Double y: Double>>"),
        (Point, "Record<x: Double y: Double>"),
        (
            Path,
            "Record<name: Str points: Array<Record<x: Double y: Double>> next: Option<Record<x: Double y: Double>>>",
        ),
        (Canvas, "Foreign<Canvas>"),
        (list[Canvas | None], "Array<Option<Foreign<Canvas>>>"),
        (T, "T"),
    ],
)
def test_annotations_are_garden_types(annotation: Any, spelling: str) -> None:
    assert str(garden_type(annotation)) == spelling


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (list, "garden has no type for list"),
        (dict[str, int], "garden has no type for dict[str, int]"),
        (bytes, "garden has no type for bytes"),
        (int | str, "garden has no type for int | str"),
        (Any, "garden has no type for Any"),
        (Sequence, "garden has no type for Sequence"),
        (object, "garden has no type for object"),
        (type(None), "garden has no type for NoneType"),
        (list[type(None)], "garden has no type for NoneType"),
        ([int], "garden has no type for [<class 'int'>]"),
        (N, "garden has no type for N"),
        (Endless, "Endless contains itself"),
    ],
)
def test_other_annotations_are_type_errors(annotation: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        garden_type(annotation)
    assert str(caught.value) == message


def test_a_python_function_is_called_with_python_values(engine: garden.Engine) -> None:
    @engine.function
    def describe(n: int, x: float, on: bool, words: list[str], maybe: int | None) -> str:
        """Everything in a row."""
        return f"{n} {x} {on} {words} {maybe}"

    program = engine.compile('import ("host" "opt")\nhost.describe(1 2.5 true ["a" "b"] opt.some(7))')
    assert program.run() == "1 2.5 True ['a', 'b'] 7"
    assert describe(1, 2.0, False, [], None) == "1 2.0 False [] None"


def test_records_are_dataclass_instances_for_the_function(engine: garden.Engine) -> None:
    seen = []

    @engine.function
    def far(path: Path) -> Point:
        seen.append(path)
        return max(path.points, key=lambda point: point.x)

    source = 'import ("host" "opt")\nlet p = {x: 1.0 y: 2.0}\nhost.far({name: "p" points: [p p] next: opt.some(p)})'
    assert engine.compile(source).run(into=Point) == Point(1.0, 2.0)
    assert seen == [Path("p", [Point(1.0, 2.0), Point(1.0, 2.0)], Point(1.0, 2.0))]


def test_a_function_returns_none_or_a_value(engine: garden.Engine) -> None:
    @engine.function
    def half(n: int) -> int | None:
        return n // 2 if n % 2 == 0 else None

    program = engine.compile('import ("host" "opt")\nfn half(n:Int) Int { opt.or(host.half(n) 0 - 1) }')
    assert [program["half"](n) for n in (8, 7)] == [4, -1]


def test_foreign_objects_pass_through_a_program(engine: garden.Engine) -> None:
    screen = Screen()

    @engine.function
    def open_screen() -> Canvas:
        return screen

    @engine.function
    def draw(canvas: Canvas, text: str) -> None:
        canvas.drawn.append(text)

    program = engine.compile(
        'import "host"\nfn twice(c:Foreign<Canvas>) { host.draw(c "a") host.draw(c "b") }\ntwice(host.open_screen())'
    )
    assert program.run() is None
    program["twice"](screen)
    assert screen.drawn == ["a", "b", "a", "b"]


def test_an_object_of_another_class_is_a_type_error(engine: garden.Engine) -> None:
    @engine.function
    def draw(canvas: Canvas | None) -> Canvas:
        return canvas  # type: ignore[return-value]

    program = engine.compile('import "host"\nfn draw(c:Option<Foreign<Canvas>>) Foreign<Canvas> { host.draw(c) }')
    assert isinstance(program["draw"](Screen()), Screen)
    for wrong in ("text", None):
        with pytest.raises(TypeError, match=r"host\.draw wants a Canvas, got"):
            program["draw"](wrong)


def test_a_type_variable_stands_for_any_type(engine: garden.Engine) -> None:
    @engine.function
    def last(members: list[T]) -> T | None:
        return members[-1] if members else None

    program = engine.compile('import ("host" "opt")\n{n: opt.or(host.last([1 2]) 0) s: opt.or(host.last(["x"]) "")}')
    assert program.run() == {"n": 2, "s": "x"}


def test_functions_of_one_name_are_told_apart_by_their_parameters() -> None:
    shows = garden.Package("ui/show", "Shows things.")

    @shows.function(name="show")
    def show_int(n: int) -> str:
        return f"int {n}"

    @shows.function(name="show")
    def show_str(text: str) -> str:
        return f"str {text}"

    with pytest.raises(ValueError, match=r"ui/show has `fn show\(n:Int\) Str` already"):
        shows.function(name="show")(show_int)
    with garden.Engine([shows]) as engine:
        assert engine.compile('import "ui/show"\n[show.show(1) show.show("x")]').run() == ["int 1", "str x"]


def test_a_function_has_its_docstring_as_documentation() -> None:
    def area(w: float, h: float) -> float:
        """Width times height.

        Both in metres.
        """
        return w * h

    function = host_function("shapes", area)
    assert (str(function), function.path) == ("fn area(w:Double h:Double) Double", "shapes.area")
    assert function.doc == "Width times height.\n\nBoth in metres."
    assert not function.pure


def test_a_bound_method_can_be_a_function(engine: garden.Engine) -> None:
    class Counter:
        count = 0

        def add(self, n: int) -> int:
            self.count += n
            return self.count

    engine.function(Counter().add)
    program = engine.compile('import "host"\nhost.add(2) host.add(3)')
    assert [program.run(), program.run()] == [5, 10]


def test_a_pure_function_may_be_called_while_compiling(engine: garden.Engine) -> None:
    calls = []

    @engine.function(pure=True)
    def square(n: int) -> int:
        calls.append(n)
        return n * n

    program = engine.compile('import "host"\nhost.square(12)')
    assert calls == [12]
    assert program.run() == 144
    assert calls == [12]


def test_functions_added_later_are_for_programs_compiled_later(engine: garden.Engine) -> None:
    package = engine.register(garden.Package("late"))
    program = engine.compile('import "late"\n1')
    package.function(name="one")(constant)
    assert engine.compile('import "late"\nlate.one()').run() == 1
    assert program.run() == 1


def constant() -> int:
    return 1


def no_parameter_annotation(n) -> int:  # type: ignore[no-untyped-def]
    return int(n)


def no_result_annotation(n: int):  # type: ignore[no-untyped-def]
    return n


def wrong_parameter(n: int, data: bytes) -> None: ...
def none_parameter(n: None) -> None: ...
def wrong_result() -> dict[str, int]: ...  # type: ignore[empty-body]
def variadic(*numbers: int) -> None: ...
def keyword(*, n: int) -> None: ...
def unknown_annotation(n: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def undetermined(n: int) -> list[T]: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_parameter_annotation, "p.no_parameter_annotation: parameter n has no annotation"),
        (no_result_annotation, "p.no_result_annotation: the result has no annotation"),
        (wrong_parameter, "p.wrong_parameter: parameter data: garden has no type for bytes"),
        (none_parameter, "p.none_parameter: parameter n: garden has no type for NoneType"),
        (wrong_result, "p.wrong_result: the result: garden has no type for dict[str, int]"),
        (variadic, "p.variadic: parameter numbers cannot be passed by position"),
        (keyword, "p.keyword: parameter n cannot be passed by position"),
        (unknown_annotation, "unknown_annotation: annotations are read at the top of the module: name 'Nowhere' is"),
        (undetermined, "p.undetermined: the result is Array<T>, which no parameter determines"),
    ],
)
def test_functions_without_a_garden_signature_are_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        garden.Package("p").function(function)
    assert str(caught.value).startswith(message)


def with_parameters(count: int) -> Callable[..., Any]:
    """A function that adds up so many Ints."""
    names = [f"n{index}" for index in range(count)]
    made: dict[str, Callable[..., Any]] = {}
    exec(f"def add({', '.join([f'{name}: int' for name in names])}) -> int:\n    return {' + '.join(names)}", made)
    return made["add"]


def test_a_host_function_has_at_most_255_parameters(engine: garden.Engine) -> None:
    engine.function(with_parameters(255))
    program = engine.compile(f'import "host"\nhost.add({" ".join([str(n) for n in range(255)])})')
    assert program.run() == sum(range(255))
    with pytest.raises(TypeError, match=r"^p\.add: 256 parameters, a host function has at most 255$"):
        garden.Package("p").function(with_parameters(256))


def test_a_declared_function_of_more_parameters_cannot_be_called_either(engine: garden.Engine) -> None:
    parameters = " ".join([f"n{index}:Int" for index in range(300)])
    with pytest.raises(garden.CompileError, match="declared but not implemented"):
        engine.compile(f'extern "p" {{ fn add({parameters}) Int }}\np.add({"1 " * 300})')


def test_names_that_programs_cannot_write_are_refused() -> None:
    for path in ("", "a b", "1st", "a//b", "match", "unsafe/let"):
        with pytest.raises(ValueError, match=r"no garden identifier|keyword of garden"):
            garden.Package(path)
    for name in ("Grüße", "match", "with-dash"):
        with pytest.raises(ValueError, match=r"no garden identifier|keyword of garden"):
            garden.Package("p").function(name=name)(constant)


@pytest.mark.parametrize("error", [ValueError("no"), KeyError("k"), StopIteration(1), MemoryError(), SystemExit(3)])
def test_an_exception_of_a_function_ends_the_run_as_it_is(error: BaseException) -> None:
    output = bytearray()
    with garden.Engine(write=output.extend) as engine:
        failing = True

        @engine.function
        def fail() -> int:
            if failing:
                raise error
            return 7

        program = engine.compile('import ("host" "io")\nfn f() Int { host.fail() + 1 }\nio.print("before ")\nf()')
        for run in (program.run, program["f"]):
            with pytest.raises(type(error)) as caught:
                run()
            assert caught.value is error
        failing = False
        assert (program.run(), program["f"]()) == (8, 8)
    assert output == b"before before "


def test_a_wrong_result_is_a_type_error_that_names_the_function(engine: garden.Engine) -> None:
    @engine.function
    def lie() -> int:
        return "text"  # type: ignore[return-value]

    with pytest.raises(TypeError, match=r"host\.lie has returned a wrong value: want Int, got 'text'"):
        engine.compile('import "host"\nhost.lie()').run()


def test_the_host_package_may_be_ones_own() -> None:
    own = garden.Package("host", "Mine.")
    with garden.Engine([own]) as engine:
        engine.function(constant)
        assert [function.name for function in own.functions] == ["constant"]
        assert engine.compile('import "host"\nhost.constant()').run() == 1
