"""Traces in four formats, and what is wrong with those that are wrong."""

from __future__ import annotations

import pytest

from allocators import Layout
from allocators.errors import TraceError
from allocators.trace.format import HEADER, NO_ID, Operation, read_trace

Step = tuple[str, int, Layout]


def steps(text: str, **options: object) -> list[Step]:
    operations = read_trace(text.splitlines(), **options)  # type: ignore[arg-type]
    return [(operation.kind, operation.id, operation.layout) for operation in operations]


def test_our_own_format_has_every_operation() -> None:
    text = f"""{HEADER}
# a comment
a 0 64 16

z 1 8 8
g 0 128 16
G 0 256 32
s 0 8 8
! g 1000000 8
c
a 2 1 1
r 0
f 1
x
"""
    assert steps(text) == [
        ("a", 0, Layout(64, 16)),
        ("z", 1, Layout(8, 8)),
        ("g", 0, Layout(128, 16)),
        ("G", 0, Layout(256, 32)),
        ("s", 0, Layout(8, 8)),
        ("!", NO_ID, Layout(1000000, 8)),
        ("c", NO_ID, Layout(0, 1)),
        ("a", 2, Layout(1, 1)),
        ("r", 0, Layout(0, 1)),
        ("f", 1, Layout(0, 1)),
        ("x", NO_ID, Layout(0, 1)),
    ]


def test_wee_frees_by_the_index_of_the_allocation() -> None:
    text = "Alloc(552),\nAlloc(0),\nFree(1),\nAlloc(7)\nFree(2),\n"
    assert steps(text, align=16) == [
        ("a", 0, Layout(552, 16)),
        ("a", 1, Layout(0, 16)),
        ("f", 1, Layout(0, 1)),
        ("a", 2, Layout(7, 16)),
        ("f", 2, Layout(0, 1)),
    ]


@pytest.mark.parametrize("header", ["3\n6\n", "20000\n3\n6\n1\n"])
def test_rep_has_two_headers_frees_null_and_reallocates_the_unknown(header: str) -> None:
    text = header + "a 0 100\nr 0 200\nr 1 50\nf -1\nf 0\nr 0 8\n"
    assert steps(text) == [
        ("a", 0, Layout(100, 8)),
        ("realloc", 0, Layout(200, 8)),
        ("a", 1, Layout(50, 8)),
        ("f", 0, Layout(0, 1)),
        ("a", 0, Layout(8, 8)),
    ]


def test_rmm_logs_have_named_columns_and_reuse_addresses() -> None:
    text = """Thread,Time,Action,Pointer,Size,Stream
1,12:00:00.000001,allocate,0x7f0,1024,0x0
1,12:00:00.000002,allocate failure,0x0,99999,0x0
1,12:00:00.000003,allocate,0x0,0,0x0
2,12:00:00.000004,allocate,0x0,0,0x0
1,12:00:00.000005,free,0x7f0,1024,0x0
1,12:00:00.000006,allocate,7f0,8,0x0
1,12:00:00.000007,deallocate,0x0,0,0x0
"""
    assert steps(text) == [
        ("a", 0, Layout(1024, 8)),
        ("!", NO_ID, Layout(99999, 8)),
        ("a", 1, Layout(0, 8)),
        ("a", 2, Layout(0, 8)),
        ("f", 0, Layout(0, 1)),
        ("a", 3, Layout(8, 8)),
        ("f", 2, Layout(0, 1)),
    ]
    reordered = "Size,Action,Pointer\n8,allocate,0x10\n8,free,0x10\n"
    assert steps(reordered) == [("a", 0, Layout(8, 8)), ("f", 0, Layout(0, 1))]


OWN = HEADER + "\n"
RMM = "Action,Pointer,Size\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the trace is empty"),
        ("# only\n\n# comments\n", 3, "the trace is empty"),
        ("hello\n", 1, "no known trace format begins with 'hello'"),
        (OWN + "q 1\n", 2, "unknown operation 'q'"),
        (OWN + "a 0 8\n", 2, "'a' wants 3 arguments, not 2"),
        (OWN + "a 0 x 8\n", 2, "a size must be a number, not 'x'"),
        (OWN + "a 0 8 3\n", 2, "alignment must be a power of two"),
        (OWN + "a 0 99999999999999999999 8\n", 2, "exceeds 2**63 - 1"),
        (OWN + "a 0 8 8\n\n# b\na 0 8 8\n", 5, "block 0 is allocated while it is live"),
        (OWN + "a 0 8 8\nf 0\nf 0\n", 4, "block 0 is freed but is not live"),
        (OWN + "g 7 8 8\n", 2, "block 7 is resized but is not live"),
        (OWN + "a -1 8 8\n", 2, "the id of a block must not be negative: -1"),
        (OWN + "c\nr 1\n", 3, "checkpoint 1 is restored, but 1 are open"),
        (OWN + "c\na 0 8 8\nr 0\nf 0\n", 5, "block 0 is freed but is not live"),
        (OWN + "a 0 8 8\nx\nf 0\n", 4, "block 0 is freed but is not live"),
        (OWN + "! f 8 8\n", 2, "'f' cannot be refused"),
        ("Alloc(8),\nFree(1),\n", 2, "allocation 1 is freed, but only 1 have been made"),
        ("Alloc(8),\nFree(0),\nFree(0),\n", 3, "block 0 is freed but is not live"),
        ("Alloc(8),\nRealloc(8),\n", 2, "want Alloc(size) or Free(index), not 'Realloc(8),'"),
        ("Alloc(8),\nAlloc(8,\n", 2, "want Alloc(size) or Free(index)"),
        ("Alloc(),\n", 1, "a size must be a number, not ''"),
        ("1\na 0 8\n", 2, "want a header of two numbers (ids, operations) or four, not 1"),
        ("1\n2\n3\na 0 8\n", 4, "want a header of two numbers (ids, operations) or four, not 3"),
        ("1\n3\na 0 8\nf 0\n", 4, "the header promises 3 operations, but there are 2"),
        ("1\n2\na 0 8\nb 0\n", 4, "want 'a id size', 'r id size' or 'f id', not 'b 0'"),
        ("1\n2\na 0\nf 0\n", 3, "want 'a id size', 'r id size' or 'f id', not 'a 0'"),
        ("1\n2\na 0 8\nf 1\n", 4, "block 1 is freed but is not live"),
        ("1\n2\na 0 8\na 0 8\n", 4, "block 0 is allocated while it is live"),
        (RMM + "allocate,0x10\n", 2, "want 3 fields, not 2"),
        (RMM + "allocate,zz,8\n", 2, "a pointer must be a number, not 'zz'"),
        (RMM + "free,0x10,8\n", 2, "0x10 is freed but is not live"),
        (RMM + "reserve,0x10,8\n", 2, "unknown action 'reserve'"),
    ],
)
def test_a_malformed_trace_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        steps(text, name="file.trace")
    assert caught.value.line == line
    assert str(caught.value).startswith(f"file.trace:{line}: ")
    assert message in str(caught.value)


def test_a_format_can_be_named_and_is_then_insisted_on() -> None:
    assert steps("Alloc(8),\n", format="wee") == [("a", 0, Layout(8, 8))]
    for format in ("allocators", "rep", "rmm"):
        with pytest.raises(TraceError):
            steps("Alloc(8),\n", format=format)
    with pytest.raises(ValueError, match="unknown trace format"):
        steps("Alloc(8),\n", format="svg")


def test_reading_is_lazy() -> None:
    class Endless:
        def __iter__(self) -> Endless:
            return self

        def __next__(self) -> str:
            return "Alloc(8),\n"

    operations = read_trace(Endless())
    assert [next(operations).id for _ in range(3)] == [0, 1, 2]


def test_an_operation_shows_itself() -> None:
    assert repr(Operation("a", 3, Layout(8, 16))) == "<Operation a 3 Layout(size=8, align=16)>"
