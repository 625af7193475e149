"""What a compilation reports can be copied and pickled; what it holds refuses."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

import garden
from garden.engine import Engine
from garden.errors import CompileError, EngineError, ImageError, Trap
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD
from garden.types.types import Array, Foreign, Int, Option, Record, Slot, Str, Type, Void

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())

INVALID = "let a = b\nlet c = 1 + true"


#: What another process evaluates; it cannot import this module.
RUN = "__import__('garden').compile(text, name='job.garden').run()"
TYPE = "__import__('garden').compile(text).result"


@each_way
def test_a_copy_of_a_compile_error_has_its_diagnostics(way: Callable[[Any], Any]) -> None:
    with pytest.raises(CompileError) as caught:
        garden.compile(INVALID)
    error = caught.value
    twin = way(error)
    assert type(twin) is CompileError
    assert str(twin) == str(error)
    shown = [diagnostic.as_dict(twin.source) for diagnostic in twin.diagnostics]
    assert shown == [diagnostic.as_dict(error.source) for diagnostic in error.diagnostics]
    assert len(shown) == 2
    assert twin.source.text == INVALID.encode()


@each_way
def test_a_copy_of_a_trap_knows_where_it_happened(way: Callable[[Any], Any]) -> None:
    with Engine(backtrace=True) as engine, pytest.raises(Trap) as caught:
        engine.compile("fn f(n:Int) Int { 1 / n }\nf(0)").run()
    trap = caught.value
    assert trap.backtrace
    twin = way(trap)
    assert (twin.code, twin.message, twin.offset, twin.backtrace) == (
        trap.code,
        trap.message,
        trap.offset,
        trap.backtrace,
    )
    assert str(twin) == str(trap)
    assert twin.__notes__ == trap.__notes__


@each_way
@pytest.mark.parametrize("error", [ImageError("a"), EngineError("b")])
def test_a_copy_of_a_plain_error_says_the_same(error: Exception, way: Callable[[Any], Any]) -> None:
    assert (type(way(error)), str(way(error))) == (type(error), str(error))


def test_a_process_pool_hands_compile_errors_and_traps_through() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(eval, RUN, {"text": "1 + 1"}).result(120) == 2
        with pytest.raises(CompileError) as wrong:
            pool.submit(eval, RUN, {"text": INVALID}).result(120)
        assert [diagnostic.code for diagnostic in wrong.value.diagnostics] == ["E0301", "E0308"]
        assert "job.garden:1:9: E0301" in str(wrong.value)
        with pytest.raises(Trap) as trapped:
            pool.submit(eval, RUN, {"text": "let a = 0 1 / a"}).result(120)
        assert trapped.value.code == "T0001"
        assert pool.submit(eval, TYPE, {"text": "[1 2]"}).result(120) == Array(Int)


@each_way
@pytest.mark.parametrize(
    "type",
    [Void, Int, Option(Array(Str)), Record(a=Int, b=Record(c=Int), d=Record(c=Int)), Foreign("File"), Slot("T")],
    ids=str,
)
def test_a_copy_of_a_type_is_equal_to_it(type: Type, way: Callable[[Any], Any]) -> None:
    twin = way(type)
    assert twin == type
    assert hash(twin) == hash(type)
    assert str(twin) == str(type)
    assert (twin.size, twin.generic) == (type.size, type.generic)


@each_way
def test_types_copy_however_deep_they_are_and_whatever_they_share(way: Callable[[Any], Any]) -> None:
    deep = Int
    for _ in range(20_000):
        deep = Array(deep)
    assert way(deep) == deep
    wide = Int
    for _ in range(60):
        wide = Record(left=wide, right=wide)
    assert way(wide) == wide


@each_way
def test_a_copy_of_a_source_finds_the_same_positions(way: Callable[[Any], Any]) -> None:
    source = Source("a.garden", b"one\ntwo\n")
    twin = way(source)
    assert (twin.name, twin.text, twin.position(5)) == (source.name, source.text, source.position(5))


class Thing:
    """For a package."""


@each_way
def test_what_holds_programs_refuses_to_be_copied(way: Callable[[Any], Any]) -> None:
    package = garden.Package("things")

    @package.function
    def made() -> Thing:
        return Thing()

    with Engine([package, *STANDARD.values()]) as engine, engine.compile("fn f() Int { 1 } f()") as program:
        compilation = Compilation(program.source, StageAllocators(), STANDARD)
        things = [
            engine,
            program,
            program["f"],
            program.compilation,
            program.allocators,
            compilation.parse(),
            compilation.check(),
            compilation.check().types,
            compilation.lower(),
            compilation.emit(),
            package,
            package.functions[0],
            STANDARD["math"],
        ]
        for thing in things:
            with pytest.raises(TypeError, match=rf"^cannot copy or pickle '{type(thing).__name__}': "):
                way(thing)
        compilation.close()
        compilation.allocators.close()
