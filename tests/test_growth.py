"""What compiling takes grows with the length of the source, and not faster: in memory and in code, at two sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from allocators import MetricAllocator
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

HEAD = 'import ("io" "arr" "opt" "str")\n'

#: Small enough that doubling tables do not hide what they hold.
SIZE = 1024


def repeated(line: Callable[[int], str], between: str = "\n") -> Callable[[int], str]:
    return lambda size: between.join([line(number) for number in range(size)])


def doubled_records(size: int) -> str:
    """A record of 1 MiB, and copies of it."""
    lines = [f"let r{level} = {{ a: r{level - 1} b: r{level - 1} }}" for level in range(1, 16)]
    return "let r0 = { a: 1 b: 2 }\n" + "\n".join(lines) + f"\nlet all = [{'r15 ' * size}]"


def array_of(member: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: f"let all = [{repeated(member, ' ')(size)}]"


def record_and_reads(size: int) -> str:
    fields = repeated(lambda n: f"f{n}: {n}", " ")(size)
    return f"let r = {{ {fields} }}\n" + repeated(lambda n: f"io.println(r.f{n})")(size)


def match_on(condition: str) -> Callable[[int], str]:
    def program(size: int) -> str:
        arms = repeated(lambda n: f"{condition.format(n=n)} {{ {n * 7} }}", " ")(size)
        return f"fn f(x:Int y:Str) Int {{ match {{ {arms} {{ 0 }} }} }}\nio.println(f(3 str.from(4)))"

    return program


def nested(opening: str, inner: str, closing: str) -> Callable[[int], str]:
    return lambda size: f"fn f(x:Int) Int {{ x }}\nlet a = {opening * size}{inner}{closing * size}"


def parameters(size: int) -> str:
    head = repeated(lambda n: f"p{n}:Int", " ")(size)
    total = repeated(lambda n: f"p{n}", " + ")(size)
    return f"fn f({head}) Int {{ {total} }}\nio.println(f({repeated(str, ' ')(size)}))"


def live_values(size: int) -> str:
    lets = repeated(lambda n: f"let v{n} = g(x + {n})")(size)
    total = repeated(lambda n: f"v{n}", " + ")(size)
    functions = "fn g(x:Int) Int { match { x == 0 { 1 } { g(x - 1) } } }\n"
    return f"{functions}fn f(x:Int) Int {{ {lets} {total} }}\nf(3)"


PROGRAMS: dict[str, Callable[[int], str]] = {
    "records that double": doubled_records,
    "copies of a record": lambda size: "let r = { a: 1 b: 2 c: 3 }\n" + f"let all = [{'r ' * size}]",
    "records without words": lambda size: f"let e = {{}}\nlet r = {{ a: e b: e }}\nlet all = [{'r ' * size}]",
    "an option of records": repeated(lambda n: f"let o{n} = opt.some({{ a: {n} b: 2 c: 3 d: 4 e: 5 }})"),
    "records in records": nested("{ n: 1 r: ", "2", " }"),
    "a large record": record_and_reads,
    "doubles": array_of(lambda n: f"{n}.5"),
    "ints with low halves of zeros": array_of(lambda n: str(n << 32)),
    "strings": array_of(lambda n: f'"text {n}"'),
    "arrays in arrays": nested("[", "1", "]"),
    "calls in calls": nested("f(", "1", ")"),
    "a match of ints": match_on("x == {n}"),
    "a match of far ints": match_on("x == {n}000003"),
    "a match of strings": match_on('y == "{n}"'),
    "a match of conditions": match_on("x * x < {n}"),
    "functions": repeated(lambda n: f"fn f{n}(x:Int) Int {{ x * {n} }}"),
    "a chain of functions": lambda size: (
        "fn f0(x:Int) Int { x }\n"
        + "\n".join([f"fn f{n}(x:Int) Int {{ f{n - 1}(x + {n}) + f{n - 1}(x) }}" for n in range(1, size)])
    ),
    "parameters": parameters,
    "live values": live_values,
    "a long line": repeated(lambda n: f"let v{n} = {n}", " "),
    "a long name": lambda size: f"let {'a' * size} = 1",
    "a long string": lambda size: f'io.println("{"é" * size}")',
    "comments": repeated(lambda n: f"# a comment of {n}"),
}


def taken(text: str) -> dict[str, int]:
    """Bytes that each stage asks for, and the sizes of what they make."""
    with StageAllocators() as plain:
        allocators = plain.metered()
        with Compilation(Source("test", f"{HEAD}{text}".encode()), allocators, STANDARD) as compilation:
            found = {"instructions": compilation.lower().value_count, "words": len(compilation.emit().words)}
        for stage, metric in allocators.items():
            assert isinstance(metric, MetricAllocator)
            found[stage] = metric.counters.total_bytes
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_twice_the_source_takes_about_twice_as_much(name: str) -> None:
    small, large = taken(PROGRAMS[name](SIZE)), taken(PROGRAMS[name](2 * SIZE))
    for what, amount in large.items():
        # Tables double at different sizes, which evens out over more than one doubling.
        assert amount < 3 * small[what] + 4096, what


def test_what_is_taken_for_a_byte_of_source_is_limited() -> None:
    for name, program in PROGRAMS.items():
        text = program(SIZE)
        found = taken(text)
        assert found["instructions"] < 16 * len(text), name
        assert sum([amount for what, amount in found.items() if what not in ("instructions", "words")]) < 2000 * len(
            HEAD + text
        ), name
