from __future__ import annotations

import random
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocators import AllocError, Arena, LimitAllocator, MetricAllocator, MisuseError, PageAlloc
from allocators.collections import HashMap
from allocators.testing import Failures

KEYS = st.one_of(st.integers(0, 20), st.integers(0, 20).map(lambda number: number << 32), st.integers(0, 2**64 - 1))
STEPS = st.tuples(
    st.sampled_from(["set", "set", "set", "setdefault", "delete", "pop", "get", "fit", "clear"]), KEYS, KEYS
)


@given(st.lists(STEPS, max_size=120))
def test_it_behaves_as_a_dict(steps: list[tuple[str, int, int]]) -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    model: dict[int, int] = {}
    with HashMap(metric) as map:
        for name, key, value in steps:
            if name == "set":
                map[key] = value
                model[key] = value
            elif name == "setdefault":
                assert map.setdefault(key, value) == model.setdefault(key, value)
            elif name == "delete" and key in model:
                del map[key]
                del model[key]
            elif name == "delete":
                with pytest.raises(KeyError):
                    map.delete(key)
            elif name == "pop":
                assert map.pop(key, None) == model.pop(key, None)
            elif name == "fit":
                map.shrink_to_fit()
            elif name == "clear" and value > 10:
                map.clear()
                model.clear()
            assert map.get(key) == model.get(key)
            assert (key in map) == (key in model)
            assert len(map) == len(model) <= map.capacity
        assert dict(map.items()) == model
        assert sorted(map) == sorted(model)
        assert sorted(map.keys.tolist()) == sorted(model)
        for key, value in model.items():
            assert map[key] == value
    assert metric.live_blocks == 0


def test_many_entries_come_and_go() -> None:
    source = random.Random(7)
    map = HashMap(PageAlloc())
    model: dict[int, int] = {}
    for number in range(6000):
        key = source.choice((source.randrange(300), source.randrange(300) << 44, source.getrandbits(64)))
        if source.random() < 0.6:
            map.set(key, number)
            model[key] = number
        elif model:
            gone = source.choice(list(model)) if number % 50 == 0 else key
            assert map.pop(gone, None) == model.pop(gone, None)
    assert dict(map.items()) == model


def keys_of(stride: int, count: int = 3000) -> list[int]:
    return [number * stride & (2**64 - 1) for number in range(count)]


@pytest.mark.parametrize(
    "stride", [*[1 << shift for shift in range(53)], 3, 24, 48, 100, 1000, 4097, 2**32 + 1, 2**32 - 1, 10**9 + 7]
)
def test_regular_keys_do_not_crowd(stride: int) -> None:
    """Addresses are multiples of a power of two, and packed pairs differ in the upper half only."""
    map = HashMap(PageAlloc())
    keys = keys_of(stride)
    for key in keys:
        map.set(key, 1)
    slots = map._slots
    longest = run = 0
    for slot in range(len(slots)):
        run = run + 1 if slots.at(slot) >= 0 else 0
        longest = max(longest, run)
    assert longest < 200


@pytest.mark.parametrize("number", [0, 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1])
def test_keys_and_values_have_64_bits(number: int) -> None:
    map = HashMap(PageAlloc())
    map[number] = number
    assert map[number] == number
    assert map.get(number ^ 1) is None
    assert (list(map), list(map.items())) == ([number], [(number, number)])
    assert map.pop(number) == number


@pytest.mark.parametrize("number", [-1, 2**64, 2**70])
def test_numbers_beyond_64_bits_are_refused_and_change_nothing(number: int) -> None:
    map = HashMap(PageAlloc())
    map[5] = 6
    for use in (
        lambda: map.set(number, 0),
        lambda: map.set(7, number),
        lambda: map.set(5, number),
        lambda: map.setdefault(7, number),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - its words are Python's own
            use()
        assert dict(map.items()) == {5: 6}
    assert number not in map
    assert 7 not in map


def test_missing_keys() -> None:
    map = HashMap(PageAlloc())
    for filled in (False, True):
        if filled:
            map[1] = 2
        assert map.get(5) is None
        assert map.get(5, -1) == -1
        assert map.pop(5, 7) == 7
        for use in (lambda: map[5], lambda: map.pop(5), lambda: map.delete(5), lambda: map.__delitem__(5)):
            with pytest.raises(KeyError) as caught:
                use()
            assert caught.value.args == (5,)
    with pytest.raises(TypeError):
        map.pop(5, 1, 2)


def test_entries_are_in_the_order_of_insertion_until_one_is_deleted() -> None:
    map = HashMap(PageAlloc())
    map.update([(30, 1), (10, 2), (20, 3), (10, 4)])
    assert list(map.items()) == [(30, 1), (10, 4), (20, 3)]
    map.delete(30)
    assert list(map.items()) == [(20, 3), (10, 4)]
    map.delete(10)
    assert list(map.items()) == [(20, 3)]


def test_keys_and_values_are_views_and_numpy_arrays_without_a_copy() -> None:
    map = HashMap(PageAlloc())
    for number in range(100):
        map[number] = number * 2
    keys, values = map.numpy()
    assert keys.dtype == values.dtype == numpy.uint64
    assert (keys * 2 == values).all()
    map.values[50] = 7
    assert map[50] == values[50] == 7
    assert map.keys.tolist() == list(range(100))


def test_a_change_of_size_during_iteration_is_told() -> None:
    map = HashMap(PageAlloc())
    map.update([(1, 1), (2, 2), (3, 3)])
    for change in (lambda: map.set(4, 4), lambda: map.delete(1), map.clear):
        for start in (lambda: iter(map), map.items):
            map.clear()
            map.update([(1, 1), (2, 2), (3, 3)])
            entries = start()
            next(entries)
            change()
            with pytest.raises(RuntimeError, match="changed its size"):
                next(entries)
    map.update([(1, 1), (2, 2), (3, 3)])
    for key in map:
        map[key] = 100
    assert set(map.values) == {100}


def test_growing_shrinking_and_clearing_keep_or_give_back_the_memory() -> None:
    metric = MetricAllocator(PageAlloc())
    map = HashMap(metric)
    assert (map.capacity, metric.live_blocks) == (0, 0)
    for number in range(1000):
        map[number] = number
    assert map.capacity >= 1000
    live = metric.live_bytes
    map.clear()
    assert (len(map), metric.live_bytes, map.get(5)) == (0, live, None)
    for number in range(10):
        map[number] = number
    map.shrink_to_fit()
    assert metric.live_bytes == 16 * 16 + 32 * 4
    assert dict(map.items()) == {number: number for number in range(10)}
    map.clear()
    map.shrink_to_fit()
    assert metric.live_blocks == 0
    map[1] = 2
    assert map[1] == 2


def test_reserved_room_is_enough() -> None:
    for make in (lambda metric: HashMap(metric, 1000), _reserved):
        metric = MetricAllocator(PageAlloc())
        map = make(metric)
        requests = metric.counters.total_blocks + metric.counters.resizes
        for number in range(1000):
            map[number * 7] = number
        assert metric.counters.total_blocks + metric.counters.resizes == requests
    with pytest.raises(MisuseError):
        map.reserve(-1)


def _reserved(metric: MetricAllocator[PageAlloc]) -> HashMap[Any]:
    map = HashMap(metric)
    map.reserve(1000)
    return map


def test_a_closed_map_has_given_its_memory_back_and_refuses_use() -> None:
    metric = MetricAllocator(PageAlloc())
    map = HashMap(metric)
    map[1] = 2
    map.close()
    map.close()
    assert (metric.live_blocks, len(map), map.get(1)) == (0, 0, None)
    for use in (
        lambda: map.set(1, 2),
        lambda: map.reserve(1),
        lambda: map.keys,
        lambda: map.values,
        lambda: iter(map),
        map.items,
    ):
        with pytest.raises(MisuseError, match="closed"):
            use()
    assert metric.live_blocks == 0


def test_running_out_of_memory_at_any_moment_changes_nothing() -> None:
    index = 0
    while True:
        failures = Failures(fail_at=index, times=1)
        parent = failures.allocator()
        with HashMap(parent) as map:
            model: dict[int, int] = {}
            for number in range(70):
                try:
                    map[number * 3] = number
                except AllocError:
                    assert dict(map.items()) == model
                    assert number * 3 not in map
                    map[number * 3] = number
                model[number * 3] = number
            for number in range(60):
                map.delete(number * 3)
                del model[number * 3]
            try:
                map.shrink_to_fit()
            except AllocError:
                assert dict(map.items()) == model
                map[1] = model[1] = 1
            assert dict(map.items()) == model
            assert all(map[key] == value for key, value in model.items())
        assert parent.live_blocks == 0
        if not failures.refused:
            break
        index += 1
    assert index > 6


def test_a_map_that_cannot_get_its_capacity_leaves_nothing_behind() -> None:
    limited = LimitAllocator(PageAlloc(), 2000)
    with pytest.raises(AllocError):
        HashMap(limited, 100)
    assert limited.live_blocks == 0
