from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocators import (
    AllocError,
    Arena,
    BumpAlloc,
    LayoutError,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
)
from allocators.collections import Table
from allocators.testing import Failures


def test_columns_lie_one_after_the_other_and_are_aligned() -> None:
    table = Table(PageAlloc(), "BIdH")
    for number in range(100):
        assert table.append(number, number * 2, number / 2, number * 3) == number
    assert table[7] == (7, 14, 3.5, 21)
    assert table[-1] == (99, 198, 49.5, 297)
    assert table.column(1).tolist() == [number * 2 for number in range(100)]
    assert table.numpy(2).tolist() == [number / 2 for number in range(100)]
    assert (table.numpy(0).dtype, table.numpy(1).dtype) == (numpy.uint8, numpy.uint32)
    assert list(table) == [(number, number * 2, number / 2, number * 3) for number in range(100)]


def test_its_memory_is_the_sum_of_its_columns() -> None:
    metric = MetricAllocator(PageAlloc())
    table = Table(metric, "BIq")
    table.append(1, 2, 3)
    assert (table.capacity, metric.live_bytes) == (8, 8 * 13)
    table.fill(8, 1, 2, 3)
    assert (table.capacity, metric.live_bytes) == (16, 16 * 13)
    table.truncate(3)
    table.shrink_to_fit()
    assert (table.capacity, metric.live_bytes) == (8, 8 * 13)
    table.clear()
    table.shrink_to_fit()
    assert metric.live_blocks == 0


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 255)),
    st.tuples(st.just("insert"), st.tuples(st.integers(-20, 20), st.integers(0, 255))),
    st.tuples(st.just("fill"), st.tuples(st.integers(0, 20), st.integers(0, 255))),
    st.tuples(st.just("extend"), st.lists(st.integers(0, 255), max_size=20)),
    st.tuples(st.just("set"), st.tuples(st.integers(-20, 20), st.integers(0, 255))),
    st.tuples(st.just("del"), st.integers(-20, 20)),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("truncate"), st.integers(0, 20)),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("fit"), st.none()),
)


def row_of(number: int) -> tuple[int, int, float]:
    return (number, number << 40, number / 4)


def step(table: Table[Any], model: list[tuple[int, int, float]], name: str, value: Any) -> None:
    """Do the same to a table and to a list of rows."""
    if name == "append":
        table.append(*row_of(value))
        model.append(row_of(value))
    elif name == "insert":
        table.insert(value[0], *row_of(value[1]))
        model.insert(value[0], row_of(value[1]))
    elif name == "fill":
        assert table.fill(value[0], *row_of(value[1])) == len(model)
        model.extend([row_of(value[1])] * value[0])
    elif name == "extend":
        rows = [row_of(number) for number in value]
        table.extend(bytes(value), [row[1] for row in rows], numpy.array([row[2] for row in rows], dtype="f8"))
        model.extend(rows)
    elif name in ("set", "del"):
        row = value if name == "del" else value[0]
        inside = -len(model) <= row < len(model)
        if not inside:
            with pytest.raises(IndexError):
                table[row]
            with pytest.raises(IndexError):
                del table[row]
        elif name == "del":
            del table[row]
            del model[row]
        else:
            table[row] = row_of(value[1])
            model[row] = row_of(value[1])
    elif name == "pop":
        if model:
            assert table.pop() == model.pop()
        else:
            with pytest.raises(IndexError):
                table.pop()
    elif name == "truncate":
        if value <= len(model):
            table.truncate(value)
            del model[value:]
        else:
            with pytest.raises(IndexError):
                table.truncate(value)
    elif name == "clear":
        table.clear()
        model.clear()
    else:
        table.shrink_to_fit()
        assert table.capacity == (len(model) + 7) // 8 * 8


@given(st.sampled_from([Arena, BumpAlloc]), st.lists(STEPS, max_size=30))
def test_it_behaves_as_a_list_of_rows(make: Any, steps: list[tuple[str, Any]]) -> None:
    metric = MetricAllocator(make(PageAlloc()))
    model: list[tuple[int, int, float]] = []
    with Table(metric, "Bqd") as table:
        for name, value in steps:
            step(table, model, name, value)
            assert list(table) == model
            assert len(table) == len(model) <= table.capacity
            assert [column.tolist() for column in map(table.column, range(3))] == [
                [row[index] for row in model] for index in range(3)
            ]
    assert metric.live_blocks == 0


def test_a_row_that_does_not_fit_changes_nothing() -> None:
    table = Table(PageAlloc(), "Bq")
    table.append(1, 2)
    for use in (
        lambda: table.append(256, 0),
        lambda: table.append(0, 1 << 63),
        lambda: table.append(1),
        lambda: table.append(1, 2, 3),
        lambda: table.insert(0, 1, 1 << 63),
        lambda: table.fill(2, -1, 0),
        lambda: table.__setitem__(0, (9, 1 << 63)),
        lambda: table.__setitem__(0, (9,)),
        lambda: table.extend([1, 2], [1, 1 << 63]),
        lambda: table.extend([1, 2], [1]),
        lambda: table.extend([1, 2]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - some of its words are Python's own
            use()
        assert list(table) == [(1, 2)]
    with pytest.raises(TypeError):
        table.append("x", 1)  # type: ignore[arg-type]
    assert list(table) == [(1, 2)]


def test_extending_by_its_own_columns_is_right() -> None:
    table = Table(Arena(PageAlloc()), "Iq")
    for number in range(8):
        table.append(number, -number)
    table.extend(table.column(0), table.numpy(1))
    assert list(table) == [(number, -number) for number in range(8)] * 2


def test_add_makes_room_for_a_row() -> None:
    table = Table(PageAlloc(), "Iq")
    assert [table.add() for _ in range(10)] == list(range(10))
    table.columns[1][9] = -5
    assert table[9][1] == -5


def test_a_capacity_can_be_given() -> None:
    metric = MetricAllocator(PageAlloc())
    table = Table(metric, "Iq", 20)
    assert table.capacity == 24
    for number in range(24):
        table.append(number, number)
    assert metric.counters.resizes == 0
    table.reserve(1)
    assert table.capacity == 48


@pytest.mark.parametrize("formats", ["", "x", "Bx"])
def test_unknown_columns_are_refused(formats: str) -> None:
    with pytest.raises(LayoutError):
        Table(PageAlloc(), formats)


def test_a_closed_table_has_given_its_memory_back_and_refuses_use() -> None:
    metric = MetricAllocator(PageAlloc())
    table = Table(metric, "Iq")
    table.append(1, 2)
    table.close()
    table.close()
    assert metric.live_blocks == 0
    for use in (
        lambda: table.append(1, 2),
        table.add,
        lambda: table.insert(0, 1, 2),
        lambda: table.fill(1, 1, 2),
        lambda: table.extend([1], [2]),
        lambda: table.reserve(1),
        lambda: table.column(0),
        lambda: table.numpy(0),
        lambda: iter(table),
    ):
        with pytest.raises(MisuseError, match="closed"):
            use()
    with pytest.raises(IndexError):
        table[0]


def test_running_out_of_memory_changes_nothing() -> None:
    limited = LimitAllocator(Arena(PageAlloc()), 12 * 16)
    table = Table(limited, "Iq")
    rows = [(number, -number) for number in range(16)]
    for row in rows:
        table.append(*row)
    for use in (
        lambda: table.append(1, 2),
        table.add,
        lambda: table.insert(0, 1, 2),
        lambda: table.fill(1, 1, 2),
        lambda: table.extend([1], [2]),
        lambda: table.reserve(1),
    ):
        with pytest.raises(AllocError):
            use()
        assert list(table) == rows
        assert table.capacity == 16
    with pytest.raises(AllocError):
        Table(limited, "I", 1)
    table.close()
    assert limited.live_blocks == 0


def test_a_refused_shrink_leaves_every_column_in_its_place() -> None:
    failures = Failures()
    table = Table(failures.allocator(), "BIqd")
    rows = [(number, number * 2, -number, number / 2) for number in range(40)]
    for row in rows:
        table.append(*row)
    table.truncate(20)
    failures.refuse()
    with pytest.raises(AllocError):
        table.shrink_to_fit()
    assert table.capacity == 64
    assert list(table) == rows[:20]
    table.shrink_to_fit()
    assert table.capacity == 24
    assert list(table) == rows[:20]


def test_misuse_is_refused() -> None:
    table = Table(PageAlloc(), "I")
    for use in (lambda: table.reserve(-1), lambda: table.fill(-1, 0)):
        with pytest.raises(MisuseError):
            use()
