from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocators import AllocError, Arena, MetricAllocator, MisuseError, PageAlloc
from allocators.collections import Interner
from allocators.testing import Failures


@given(st.lists(st.binary(max_size=4), max_size=200))
def test_distinct_byte_strings_get_dense_ids_for_good(texts: list[bytes]) -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    model: dict[bytes, int] = {}
    with Interner(metric) as interner:
        for text in texts:
            assert interner.find(text) == model.get(text, -1)
            assert (text in interner) == (text in model)
            assert interner.intern(text) == model.setdefault(text, len(model))
        assert len(interner) == len(model)
        assert list(interner) == list(model)
        for text, id in model.items():
            assert interner.lookup(id) == text
            assert interner.find(text) == id
    assert metric.live_blocks == 0


def test_many_byte_strings() -> None:
    interner = Interner(PageAlloc())
    for number in range(5000):
        assert interner.intern(str(number).encode()) == number
    for number in range(0, 5000, 7):
        assert interner.intern(str(number).encode()) == number
    assert len(interner) == 5000


def test_an_empty_interner_owns_nothing() -> None:
    metric = MetricAllocator(PageAlloc())
    interner = Interner(metric)
    assert interner.find(b"x") == -1
    assert list(interner) == []
    interner.clear()
    interner.shrink_to_fit()
    interner.close()
    assert metric.counters.total_blocks == 0


def test_clearing_keeps_the_capacity_and_begins_at_zero() -> None:
    metric = MetricAllocator(PageAlloc())
    interner = Interner(metric)
    for number in range(100):
        interner.intern(str(number).encode())
    live = metric.live_bytes
    interner.clear()
    assert (len(interner), interner.find(b"7")) == (0, -1)
    assert [interner.intern(text) for text in (b"new", b"", b"7", b"new")] == [0, 1, 2, 0]
    assert metric.live_bytes == live
    interner.shrink_to_fit()
    assert metric.live_bytes < live
    assert list(interner) == [b"new", b"", b"7"]
    assert interner.intern(b"more") == 3


@pytest.mark.parametrize("id", [-1, 1, 100])
def test_an_id_that_nothing_has_is_refused(id: int) -> None:
    interner = Interner(PageAlloc())
    interner.intern(b"x")
    with pytest.raises(IndexError):
        interner.lookup(id)


def test_a_closed_interner_owns_nothing_and_refuses_use() -> None:
    metric = MetricAllocator(PageAlloc())
    interner = Interner(metric)
    interner.intern(b"x")
    interner.close()
    interner.close()
    assert metric.live_blocks == 0
    assert interner.find(b"x") == -1
    with pytest.raises(MisuseError):
        interner.intern(b"x")
    assert metric.live_blocks == 0


def test_running_out_of_memory_at_any_moment_changes_nothing() -> None:
    texts = [bytes([65 + number % 26]) * (number + 1) for number in range(40)]
    index = 0
    while True:
        failures = Failures(fail_at=index, times=1)
        parent = failures.allocator()
        with Interner(parent) as interner:
            done: list[bytes] = []
            for text in texts:
                try:
                    assert interner.intern(text) == len(done)
                except AllocError:
                    assert interner.find(text) == -1
                    assert interner.intern(text) == len(done)
                done.append(text)
                assert list(interner) == done
        assert parent.live_blocks == 0
        if not failures.refused:
            break
        index += 1
    assert index > 10
