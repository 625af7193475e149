"""The embedding API: compiling, running, limits, output, and giving the memory back."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest

import garden
from allocators import Allocator, MetricAllocator, PageAlloc, StackAlloc
from allocators.testing import check_every_failure
from allocators.testing.instrumented import Failures
from garden.pipeline import SCRATCH, STAGES

FIB = "fn fib(n:Int) Int { match { n < 2 { n } { fib(n - 1) + fib(n - 2) } } }\n"


def metered() -> dict[str, MetricAllocator[PageAlloc]]:
    return {stage: MetricAllocator(PageAlloc()) for stage in (*STAGES, SCRATCH)}


def live(allocators: dict[str, MetricAllocator[PageAlloc]]) -> dict[str, tuple[int, int]]:
    """Bytes and blocks of the stages that have any."""
    return {stage: (a.live_bytes, a.live_blocks) for stage, a in allocators.items() if a.live_blocks or a.live_bytes}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("40 + 2", 42),
        ("1.5", 1.5),
        ("1 < 2", True),
        ('"Blüte"', "Blüte"),
        ("[1 2 3]", [1, 2, 3]),
        ("{x: 1 y: {z: true}}", {"x": 1, "y": {"z": True}}),
        ('import "opt"\nopt.some("text")', "text"),
        ('import "opt"\nopt.none(1)', None),
        ("let x = 1", None),
        ("", None),
        ("7\nfn f() Int { 1 }", 7),
        ('import "io"\nio.print("")', None),
    ],
)
@pytest.mark.parametrize("level", [0, 1])
def test_a_run_gives_the_value_of_the_last_item(source: str, value: object, level: int) -> None:
    with garden.Engine(level=level) as engine:
        result = engine.compile(source).run()
    assert (result, type(result)) == (value, type(value))


def test_every_run_begins_in_a_fresh_state() -> None:
    source = 'import ("str" "unsafe/runtime")\nstr.concat("a" str.from(1))\nruntime.used()'
    with garden.compile(source, level=0) as program:
        first = program.run()
        assert first > 0
        assert [program.run() for _ in range(5)] == [first] * 5


def test_an_invalid_program_raises_all_its_diagnostics_in_source_order() -> None:
    with garden.Engine() as engine, pytest.raises(garden.CompileError) as caught:
        engine.compile('let a = 1 + "x"\nlet b = nothing\n', name="bad.garden")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["E0308", "E0301"]
    assert caught.value.source.name == "bad.garden"
    assert "bad.garden:2:9: E0301" in str(caught.value)


def test_an_invalid_program_leaves_nothing_behind() -> None:
    allocators = metered()
    engine = garden.Engine(allocators=allocators)
    for source in ("let a = ", "nothing", "99999999999999999999"):
        with pytest.raises(garden.CompileError):
            engine.compile(source)
    assert live(allocators) == {}


def test_a_source_brings_its_own_name() -> None:
    with garden.Engine() as engine:
        program = engine.compile(garden.Source("own.garden", b"1"), name="other")
        assert (program.source.name, repr(program)) == ("own.garden", "<Program own.garden>")


def test_traps_say_where_they_happened_and_the_program_runs_on() -> None:
    with garden.compile("fn inverse(n:Int) Int {\n\t10 / n\n}\n", name="t.garden") as program:
        inverse = program["inverse"]
        with pytest.raises(garden.Trap) as caught:
            inverse(0)
        assert (caught.value.code, program.source.position(caught.value.offset)) == ("T0001", (2, 5))
        assert caught.value.__notes__ == ["t.garden:2:5: T0001: division by zero\n\t10 / n\n\t   ~"]
        assert inverse(5) == 2


def test_traps_carry_a_backtrace_where_it_was_asked_for() -> None:
    source = "fn inner(n:Int) Int { 1 / n }\nfn outer(n:Int) Int { inner(n) + 1 }\nouter(0)"
    with garden.Engine(level=0, backtrace=True) as engine, pytest.raises(garden.Trap) as caught:
        engine.compile(source).run()
    assert caught.value.backtrace == ("entry", "outer", "inner")


def test_the_heap_limit_ends_a_run() -> None:
    with garden.Engine(heap_limit=1 << 17) as engine:
        program = engine.compile('import "arr"\nfn many(n:Int) Int { arr.len(arr.range(0 n)) }')
        with pytest.raises(garden.Trap, match="T0003"):
            program["many"](1 << 20)
        assert program["many"](10) == 10


def test_the_frame_limit_ends_a_run() -> None:
    with garden.Engine(frame_limit=100) as engine:
        program = engine.compile("fn down(n:Int) Int { match { n == 0 { 0 } { 1 + down(n - 1) } } }")
        with pytest.raises(garden.Trap, match="T0002"):
            program["down"](1000)
        assert program["down"](50) == 50


def test_the_spill_stack_is_the_one_of_the_caller() -> None:
    small = StackAlloc(bytearray(64))
    with garden.Engine(spill=small) as engine:
        program = engine.compile(FIB)
        with pytest.raises(garden.Trap, match="T0002"):
            program["fib"](20)
        assert program["fib"](2) == 1
    with garden.Engine(spill=StackAlloc(bytearray(1 << 12))) as engine:
        assert engine.compile(FIB)["fib"](10) == 55


def test_output_goes_where_the_engine_says() -> None:
    output = bytearray()
    with garden.Engine(write=output.extend) as engine:
        program = engine.compile('import "io"\nfn hello(name:Str) { io.println(name) }\nio.println("grüezi")')
        program.run()
        program["hello"]("you")
    assert output.decode() == "grüezi\nyou\n"


def test_output_goes_to_standard_output_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    with garden.compile('import "io"\nio.println("plain")') as program:
        program.run()
    assert capsys.readouterr().out == "plain\n"


def test_without_packages_nothing_can_be_imported() -> None:
    with garden.Engine([]) as engine:
        assert engine.compile("1 + 1").run() == 2
        with pytest.raises(garden.CompileError) as caught:
            engine.compile('import "io"')
    assert caught.value.diagnostics[0].code == "E0303"


def test_two_packages_of_one_path_are_refused() -> None:
    engine = garden.Engine()
    package = garden.Package("sensors")
    assert engine.register(package) is package
    assert engine.register(package) is package
    with pytest.raises(ValueError, match="'sensors'"):
        engine.register(garden.Package("sensors"))
    with pytest.raises(ValueError, match="'io'"):
        engine.register(garden.Package("io"))


def test_closing_a_program_gives_back_every_byte_of_every_stage() -> None:
    allocators = metered()
    with garden.Engine(allocators=allocators) as engine:
        program = engine.compile('import "str"\n' + FIB + 'str.concat("fib " str.from(fib(10)))')
        assert program.run() == "fib 55"
        assert set(live(allocators)) >= {"parse", "check", "run"}
        program.close()
        assert live(allocators) == {}
        assert all(allocators[stage].counters.total_bytes for stage in ("parse", "check", "lower", "run"))


def test_closing_an_engine_closes_its_programs() -> None:
    allocators = metered()
    engine = garden.Engine(allocators=allocators)
    programs = [engine.compile(FIB) for _ in range(3)]
    for program in programs:
        program["fib"](3)
    programs[1].close()
    assert repr(engine) == f"<Engine of {len(garden.STANDARD)} packages and 2 open programs>"
    engine.close()
    engine.close()
    assert live(allocators) == {}
    assert engine.compile("1").run() == 1
    engine.close()


def test_closing_a_program_leaves_those_beside_it_alone() -> None:
    with garden.Engine(allocators=metered()) as engine:
        first = engine.compile(FIB)
        with engine.compile(FIB) as second:
            assert second["fib"](5) == 5
        assert first["fib"](6) == 8


def test_a_closed_program_refuses_to_run() -> None:
    with garden.compile(FIB, name="gone.garden") as program:
        fib = program["fib"]
    program.close()
    for use in (program.run, lambda: fib(1), lambda: program["fib"], lambda: program.functions):
        with pytest.raises(ValueError, match=r"gone\.garden is closed"):
            use()
    assert str(fib) == "fn fib(n:Int) Int"


def test_stage_allocators_can_be_given_whole() -> None:
    with garden.StageAllocators() as plain:
        allocators = plain.metered()
        with garden.compile("1 + 1", allocators=allocators) as program:
            assert program.allocators is allocators
            assert program.run() == 2
        assert [metric.live_bytes for _, metric in allocators.items()] == [0] * 8
        assert garden.compile("2", allocators=allocators).run() == 2


def test_stages_that_were_given_no_allocator_get_one_of_their_own() -> None:
    metric = MetricAllocator(PageAlloc())
    with garden.compile("1 + 1", allocators={"parse": metric}) as program:
        assert program.allocators["parse"] is metric
        assert program.run() == 2
    assert metric.counters.total_bytes > 0
    assert metric.live_bytes == 0


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown stage 'pares'"):
        garden.compile("1", allocators={"pares": PageAlloc()})


def test_every_failing_allocation_leaves_nothing_behind() -> None:
    source = 'import "str"\n' + FIB + 'str.concat("fib " str.from(fib(3)))'

    def make(failures: Failures) -> dict[str, Allocator]:
        return {stage: failures.allocator() for stage in (*STAGES, SCRATCH)}

    def use(allocators: dict[str, Allocator]) -> None:
        with garden.Engine(allocators=allocators) as engine:
            try:
                program = engine.compile(source)
                assert program.run() == "fib 2"
                assert program["fib"](7) == 13
            except garden.Trap as trap:
                # In a running program, to be out of memory is a trap: of the heap, or of the stack.
                if trap.code in ("T0002", "T0003"):
                    raise MemoryError from trap
                raise

    assert check_every_failure(use, make, at_most=120) > 100


def test_a_stage_that_is_out_of_memory_says_so_and_the_engine_goes_on() -> None:
    allocators = metered()
    failing = Failures(0)
    engine = garden.Engine(allocators={**allocators, "check": failing.allocator()})
    with pytest.raises(MemoryError):
        engine.compile("1")
    assert live(allocators) == {}


def test_a_program_cannot_run_inside_itself() -> None:
    with garden.Engine() as engine:
        programs: list[garden.Program] = []

        @engine.function
        def again(n: int) -> int:
            return int(programs[0]["f"](n))

        programs.append(engine.compile('import "host"\nfn f(n:Int) Int { host.again(n) }'))
        with pytest.raises(garden.GardenError, match="is running already"):
            programs[0]["f"](1)


def test_a_program_cannot_be_closed_while_it_runs() -> None:
    with garden.Engine() as engine:
        programs: list[garden.Program] = []

        @engine.function
        def close() -> None:
            programs[0].close()

        programs.append(engine.compile('import "host"\nhost.close()'))
        with pytest.raises(garden.GardenError, match="cannot be closed"):
            programs[0].run()
        assert programs[0].functions == {}


def test_a_program_can_compile_and_run_another() -> None:
    with garden.Engine(allocators=metered()) as engine:

        @engine.function
        def evaluate(text: str) -> int:
            with engine.compile(text) as inner:
                return int(inner.run())

        program = engine.compile(
            'import ("host" "str")\nlet text = str.concat("6 " str.concat("* " "7"))\nhost.evaluate(text) + 1'
        )
        assert program.run() == 43


def test_the_place_of_a_trap_is_that_in_the_program_that_it_comes_from() -> None:
    with garden.Engine() as engine:
        inner = engine.compile("fn f(n:Int) Int { 1 / n }", name="inner.garden")

        @engine.function
        def call(n: int) -> int:
            return int(inner["f"](n))

        outer = engine.compile('import "host"\n\n\nhost.call(0)', name="outer.garden")
        with pytest.raises(garden.Trap) as caught:
            outer.run()
        assert [note.split(": ")[0] for note in caught.value.__notes__] == ["inner.garden:1:21"]


def test_a_spill_stack_serves_one_run_at_a_time() -> None:
    with garden.Engine(spill=StackAlloc(bytearray(1 << 12))) as engine:
        inner = engine.compile(FIB)

        @engine.function
        def call() -> int:
            return int(inner["fib"](3))

        outer = engine.compile('import "host"\nhost.call()')
        with pytest.raises(garden.GardenError, match="spill stack"):
            outer.run()
        assert inner["fib"](3) == 2


def in_threads(*tasks: Callable[[], Any]) -> list[Any]:
    """The results of tasks that begin together, each in a thread of its own."""
    results: list[Any] = [None] * len(tasks)
    barrier = Barrier(len(tasks))

    def work(index: int) -> None:
        barrier.wait()
        try:
            results[index] = tasks[index]()
        except BaseException as error:
            results[index] = error

    threads = [Thread(target=work, args=(index,)) for index in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_two_engines_in_two_threads_do_not_interfere() -> None:
    def rounds(factor: int) -> list[object]:
        output = bytearray()
        allocators = metered()
        found: list[object] = []
        with garden.Engine(allocators=allocators, write=output.extend) as engine:

            @engine.function
            def scale(n: int) -> int:
                return factor * n

            source = f'import ("io" "host" "str")\n{FIB}io.print(str.from({factor}))\nhost.scale(fib(10))'
            for _ in range(10):
                with engine.compile(source) as program:
                    found.append(program.run())
                    found.append(program["fib"](9))
        assert live(allocators) == {}
        return [found, output.decode()]

    assert in_threads(lambda: rounds(3), lambda: rounds(5)) == [
        [[165, 34] * 10, "3" * 10],
        [[275, 34] * 10, "5" * 10],
    ]


def test_threads_that_share_an_engine_wait_for_each_other() -> None:
    with garden.Engine(allocators=metered()) as engine:
        program = engine.compile(FIB)

        def shared() -> list[object]:
            return [program["fib"](n) for n in range(8)]

        def other() -> list[object]:
            return [engine.compile(f"{n} + 1").run() for n in range(8)]

        assert in_threads(shared, other, shared) == [
            [0, 1, 1, 2, 3, 5, 8, 13],
            [1, 2, 3, 4, 5, 6, 7, 8],
            [0, 1, 1, 2, 3, 5, 8, 13],
        ]


def test_each_stage_can_be_had_by_itself() -> None:
    with (
        garden.StageAllocators() as allocators,
        garden.Compilation(garden.Source("s", b"1 + 2"), allocators, garden.STANDARD) as compilation,
    ):
        assert len(compilation.parse().tokens) > 3
        assert compilation.check().functions is not None
        assert compilation.lower().function_count == 2
        assert len(compilation.emit().words) > 0
