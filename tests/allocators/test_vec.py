from __future__ import annotations

import ctypes
from array import array
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
    StackAlloc,
)
from allocators.collections import ByteBuffer, Vec

FORMATS = {
    "B": (0, 255),
    "b": (-128, 127),
    "H": (0, 65_535),
    "h": (-32_768, 32_767),
    "I": (0, 2**32 - 1),
    "i": (-(2**31), 2**31 - 1),
    "Q": (0, 2**64 - 1),
    "q": (-(2**63), 2**63 - 1),
}


@pytest.mark.parametrize("format", FORMATS)
def test_items_reach_to_the_ends_of_their_format_and_not_beyond(format: str) -> None:
    least, most = FORMATS[format]
    vec = Vec(PageAlloc(), format)
    vec.append(least)
    vec.append(most)
    assert list(vec) == [least, most]
    for beyond in (least - 1, most + 1):
        for use in (
            lambda beyond=beyond: vec.append(beyond),
            lambda beyond=beyond: vec.extend([0, beyond]),
            lambda beyond=beyond: vec.insert(0, beyond),
            lambda beyond=beyond: vec.fill(beyond, 3),
            lambda beyond=beyond: vec.__setitem__(0, beyond),
            lambda beyond=beyond: vec.__setitem__(slice(0, 2), [0, beyond]),
        ):
            with pytest.raises(ValueError):  # noqa: PT011 - its words are Python's own
                use()
    with pytest.raises(TypeError):
        vec.append(1.5)
    assert list(vec) == [least, most]


@pytest.mark.parametrize(("format", "item"), [("f", 1.5), ("d", 0.1)])
def test_floats(format: str, item: float) -> None:
    vec = Vec(PageAlloc(), format)
    vec.append(item)
    vec.extend([item, 2])
    vec.fill(item, 2)
    assert list(vec) == [item, item, 2, item, item]


def test_an_unknown_format_is_refused() -> None:
    for format in ("", "x", "qq", "P"):
        with pytest.raises(LayoutError):
            Vec(PageAlloc(), format)


def test_an_empty_vec_owns_nothing() -> None:
    metric = MetricAllocator(PageAlloc())
    vec = Vec(metric, "q")
    assert (len(vec), vec.capacity, list(vec), bytes(vec.view)) == (0, 0, [], b"")
    vec.extend([])
    vec.fill(0, 0)
    vec.shrink_to_fit()
    vec.truncate(0)
    vec.clear()
    vec.close()
    assert metric.counters.total_blocks == 0


def test_it_doubles_from_eight_items() -> None:
    metric = MetricAllocator(PageAlloc())
    vec = Vec(metric, "I")
    capacities = []
    for number in range(100):
        vec.append(number)
        if vec.capacity not in capacities:
            capacities.append(vec.capacity)
    assert capacities == [8, 16, 32, 64, 128]
    assert metric.counters.total_blocks == 1
    assert metric.counters.resizes == 4
    assert metric.live_bytes == 4 * 128


def test_room_is_reserved_behind_the_length() -> None:
    """bumpalo #330: it was measured from the capacity."""
    vec = Vec(PageAlloc(), "B", 10)
    vec.extend(bytes(5))
    vec.reserve(5)
    assert vec.capacity == 10
    vec.reserve(6)
    assert vec.capacity == 20
    vec.reserve(1000)
    assert vec.capacity == 1005
    with pytest.raises(MisuseError):
        vec.reserve(-1)


def test_a_capacity_can_be_given_and_nothing_moves_until_it_is_used_up() -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    vec = Vec(metric, "q", 100)
    address = vec.address
    vec.extend(range(100))
    assert (vec.address, metric.counters.resizes) == (address, 0)


def test_the_bytes_are_at_the_address() -> None:
    vec = Vec(PageAlloc(), "I")
    vec.extend([1, 2, 3])
    assert ctypes.string_at(vec.address, 12) == array("I", [1, 2, 3]).tobytes()


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 255)),
    st.tuples(st.just("extend"), st.lists(st.integers(0, 255), max_size=20)),
    st.tuples(st.just("insert"), st.tuples(st.integers(-30, 30), st.integers(0, 255))),
    st.tuples(st.just("insert_all"), st.tuples(st.integers(-30, 30), st.binary(max_size=9))),
    st.tuples(st.just("pop"), st.integers(-30, 30)),
    st.tuples(st.just("del"), st.tuples(st.integers(-30, 30), st.integers(-30, 30))),
    st.tuples(st.just("set"), st.tuples(st.integers(-30, 30), st.integers(0, 255))),
    st.tuples(st.just("slice"), st.tuples(st.integers(-30, 30), st.integers(-30, 30), st.integers(0, 255))),
    st.tuples(st.just("fill"), st.tuples(st.integers(0, 255), st.integers(0, 20))),
    st.tuples(st.just("truncate"), st.integers(0, 30)),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("fit"), st.none()),
    st.tuples(st.just("self"), st.integers(-30, 30)),
)


def step(vec: Vec[Any], model: list[int], name: str, value: Any) -> None:
    """Do the same to a Vec and to a list."""
    if name == "append":
        vec.append(value)
        model.append(value)
    elif name == "extend":
        vec.extend(value)
        model.extend(value)
    elif name == "insert":
        vec.insert(*value)
        model.insert(*value)
    elif name == "insert_all":
        vec.insert_all(*value)
        model[slice(value[0], value[0])] = value[1]
    elif name == "pop":
        if -len(model) <= value < len(model):
            assert vec.pop(value) == model.pop(value)
        else:
            with pytest.raises(IndexError):
                vec.pop(value)
    elif name == "del":
        del vec[value[0] : value[1]]
        del model[value[0] : value[1]]
    elif name == "set":
        if -len(model) <= value[0] < len(model):
            vec[value[0]] = value[1]
            model[value[0]] = value[1]
        else:
            with pytest.raises(IndexError):
                vec[value[0]] = value[1]
    elif name == "slice":
        start, end, item = value
        count = len(model[start:end])
        vec[start:end] = bytes([item]) * count
        model[start:end] = [item] * count
    elif name == "fill":
        vec.fill(*value)
        model.extend([value[0]] * value[1])
    elif name == "truncate":
        if value <= len(model):
            vec.truncate(value)
            del model[value:]
        else:
            with pytest.raises(IndexError):
                vec.truncate(value)
    elif name == "clear":
        vec.clear()
        model.clear()
    elif name == "fit":
        vec.shrink_to_fit()
        assert vec.capacity == len(model)
    elif name == "self":
        vec.insert_all(value, vec.view)
        model[slice(value, value)] = list(model)


@given(st.sampled_from(["arena", "bump", "page", "stack"]), st.lists(STEPS, max_size=30))
def test_it_behaves_as_a_list(parent: str, steps: list[tuple[str, Any]]) -> None:
    makers = {
        "arena": Arena,
        "bump": BumpAlloc,
        "page": lambda page: page,
        "stack": lambda _: StackAlloc(bytearray(1 << 16)),
    }
    metric = MetricAllocator(makers[parent](PageAlloc()))
    model: list[int] = []
    with Vec(metric, "B") as vec:
        for name, value in steps:
            if len(model) > 3000:
                break
            step(vec, model, name, value)
            assert list(vec) == model
            assert bytes(vec.view) == bytes(model)
            assert len(vec) == len(model) <= vec.capacity
            assert metric.live_bytes == vec.capacity
        assert vec[3:8].tolist() == model[3:8]
        assert vec[::2].tolist() == model[::2]
    assert metric.live_blocks == 0


@pytest.mark.parametrize(
    "items",
    [
        [1, 2, 3],
        (1, 2, 3),
        range(1, 4),
        iter([1, 2, 3]),
        array("q", [1, 2, 3]),
        array("i", [1, 2, 3]),
        numpy.array([1, 2, 3]),
        numpy.array([1, 2, 3], dtype="u1"),
        numpy.arange(1, 7)[::2] // 2 + 1,
        numpy.array([1, 0, 2, 0, 3, 0])[::2],
        memoryview(array("q", [1, 2, 3])),
        b"\x01\x02\x03",
    ],
    ids=lambda items: type(items).__name__,
)
def test_it_takes_any_buffer_or_iterable(items: Any) -> None:
    vec = Vec(PageAlloc(), "q")
    vec.append(0)
    if isinstance(items, numpy.ndarray) and items.dtype == "i8" and not items.flags.c_contiguous:
        assert memoryview(items).strides != (8,)
    vec.extend(items)
    assert list(vec) == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [0, 1, 16, 17, 400])
@pytest.mark.parametrize("start", [0, 3])
def test_a_vec_extends_from_another_or_from_itself(count: int, start: int) -> None:
    with Vec(PageAlloc(), "I") as source, Vec(Arena(PageAlloc()), "q") as target:
        source.extend(range(start + count))
        target.append(-1)
        target.extend_from(source, start)
        assert list(target) == [-1, *range(start, start + count)]
        source.extend_from(source, start)
        assert list(source) == [*range(start + count), *range(start, start + count)]
        source.extend_from(target, len(target) + 1)
        assert len(source) == start + 2 * count


@pytest.mark.parametrize("count", [1, 30])
def test_where_an_item_of_another_vec_does_not_fit_nothing_is_added(count: int) -> None:
    with Vec(PageAlloc(), "q") as source, Vec(PageAlloc(), "B") as target:
        source.extend([*range(count), 256])
        target.append(7)
        with pytest.raises(ValueError):  # noqa: PT011 - its words are Python's own
            target.extend_from(source)
        with pytest.raises(MisuseError, match="negative"):
            target.extend_from(source, -1)
        assert list(target) == [7]


def test_extending_by_its_own_bytes_is_right_however_they_are_looked_at() -> None:
    for look in (
        lambda vec: vec.view,
        lambda vec: vec.data[: len(vec)],
        lambda vec: vec.numpy(),
        lambda vec: numpy.asarray(vec.view)[:],
        lambda vec: vec.view.toreadonly(),
    ):
        for parent in (Arena(PageAlloc()), BumpAlloc(PageAlloc()), PageAlloc(), StackAlloc(bytearray(1 << 12))):
            vec = Vec(parent, "i")
            vec.extend(range(8))
            vec.extend(look(vec))
            vec.insert_all(3, look(vec))
            want = [*range(8)] * 2
            assert list(vec) == want[:3] + want + want[3:]


def test_views_and_numpy_arrays_share_the_memory() -> None:
    vec = Vec(PageAlloc(), "d")
    vec.extend([1.0, 2.0, 3.0])
    numbers = vec.numpy()
    assert numbers.dtype == numpy.float64
    numbers *= 2
    assert list(vec) == [2.0, 4.0, 6.0]
    vec.view[0] = 9
    assert numbers[0] == 9
    assert vec[1:].tolist() == [4.0, 6.0]
    assert len(Vec(PageAlloc(), "d").numpy()) == 0


def test_growing_while_a_numpy_array_looks_leaves_the_array_its_bytes() -> None:
    vec = Vec(PageAlloc(), "q")
    vec.extend(range(10))
    before = vec.numpy()
    vec.extend(range(10_000))
    assert before.tolist() == list(range(10))
    assert list(vec.view[:12]) == [*range(10), 0, 1]


def test_data_is_replaced_and_released_whenever_the_memory_changes() -> None:
    vec = Vec(PageAlloc(), "q")
    for use in (lambda: vec.append(1), lambda: vec.reserve(5000), vec.shrink_to_fit, vec.close):
        before = vec.data
        use()
        assert vec.data is not before
        with pytest.raises(ValueError, match="released"):
            before[0] = 1


def test_iteration_goes_on_over_what_is_added_meanwhile_as_a_lists_does() -> None:
    vec = Vec(Arena(PageAlloc()), "q")
    vec.extend([1, 2, 3])
    seen = []
    for item in vec:
        seen.append(item)
        if item < 100:
            vec.append(item * 10)
    assert seen == [1, 2, 3, 10, 20, 30, 100, 200, 300]
    assert 30 in vec
    assert 31 not in vec


def test_a_copy_is_apart_and_just_as_large_as_it_must_be() -> None:
    metric = MetricAllocator(PageAlloc())
    vec = Vec(metric, "H")
    vec.extend(range(9))
    copy = vec.copy()
    copy[0] = 99
    assert (list(vec)[:2], list(copy)[:2]) == ([0, 1], [99, 1])
    assert (copy.capacity, copy.format, copy.allocator) == (9, "H", metric)
    assert len(Vec(metric, "H").copy()) == 0


def test_a_slice_takes_just_as_many_items_and_a_deleted_one_is_in_a_row() -> None:
    vec = Vec(PageAlloc(), "B")
    vec.extend(b"abcdef")
    with pytest.raises(ValueError, match="2 items cannot take the place of 3"):
        vec[0:3] = b"xy"
    with pytest.raises(MisuseError):
        del vec[::2]
    vec[::2] = b"XYZ"
    vec[1:4] = vec[0:3]
    assert bytes(vec.view) == b"XXbYZf"
    del vec[-1]
    del vec[4:2]
    assert bytes(vec.view) == b"XXbYZ"


def test_indices_outside_are_refused() -> None:
    vec = Vec(PageAlloc(), "B")
    for use in (vec.pop, lambda: vec[0], lambda: vec.pop(0), lambda: vec.__delitem__(0), lambda: vec.truncate(1)):
        with pytest.raises(IndexError):
            use()
    vec.append(7)
    for use in (lambda: vec[1], lambda: vec[-2], lambda: vec.pop(1), lambda: vec.truncate(2), lambda: vec.truncate(-1)):
        with pytest.raises(IndexError):
            use()
    with pytest.raises(MisuseError):
        vec.fill(0, -1)
    assert list(vec) == [7]


def test_a_closed_vec_has_given_its_memory_back_and_refuses_use() -> None:
    metric = MetricAllocator(PageAlloc())
    vec = Vec(metric, "q")
    vec.extend(range(100))
    vec.close()
    vec.close()
    assert metric.live_blocks == 0
    assert (len(vec), vec.capacity) == (0, 0)
    for use in (
        lambda: vec.append(1),
        lambda: vec.extend([1]),
        lambda: vec.insert(0, 1),
        lambda: vec.fill(1, 1),
        lambda: vec.reserve(1),
        lambda: vec.view,
        lambda: vec.numpy(),
        lambda: vec[0:1],
        lambda: vec.copy(),
        lambda: iter(vec),
    ):
        with pytest.raises(MisuseError, match="closed"):
            use()


def test_closing_after_a_scope_or_a_reset_has_ended_the_memory_is_harmless() -> None:
    metric = MetricAllocator(Arena(PageAlloc()))
    with metric.scope():
        vec = Vec(metric, "q")
        vec.append(1)
    vec.close()
    vec = Vec(metric, "q")
    vec.append(1)
    metric.reset()
    with pytest.raises(MisuseError):
        vec.reserve(100)
    vec.close()
    assert metric.live_blocks == 0


def test_running_out_of_memory_changes_nothing() -> None:
    limited = LimitAllocator(Arena(PageAlloc()), 8 * 16)
    vec = Vec(limited, "q")
    vec.extend(range(16))
    vec_views = list(vec)
    for use in (
        lambda: vec.append(1),
        lambda: vec.extend([1]),
        lambda: vec.extend(vec.view),
        lambda: vec.insert(0, 1),
        lambda: vec.fill(1, 1),
        lambda: vec.reserve(1),
        lambda: vec.copy(),
    ):
        with pytest.raises(AllocError):
            use()
        assert list(vec) == vec_views
        assert vec.capacity == 16
    assert vec.pop() == 15
    vec.append(99)
    assert vec[15] == 99
    with pytest.raises(AllocError):
        Vec(limited, "q", 1)
    vec.close()
    assert limited.live_blocks == 0


def test_a_byte_buffer_speaks_in_bytes() -> None:
    metric = MetricAllocator(PageAlloc())
    with ByteBuffer(metric) as buffer:
        assert buffer.write(b"hello") == 0
        assert buffer.write(bytearray(b" world")) == 5
        buffer.write_byte(33)
        assert bytes(buffer) == b"hello world!"
        assert buffer.slice(6, 11) == b"world"
        assert (buffer[0], bytes(buffer[-6:])) == (104, b"world!")
        buffer[0] = 72
        buffer[6:11] = b"WORLD"
        buffer.insert(5, b",")
        assert bytes(buffer) == b"Hello, WORLD!"
        del buffer[5]
        del buffer[5:11]
        assert bytes(buffer) == b"Hello!"
        buffer.fill(46, 3)
        assert list(buffer)[-4:] == [33, 46, 46, 46]
        assert buffer.numpy().tobytes() == b"Hello!..."
        with pytest.raises(ValueError):  # noqa: PT011 - its words are Python's own
            buffer.write_byte(256)
        buffer.reserve(1000)
        assert buffer.vec.capacity == 1009
        buffer.truncate(5)
        buffer.shrink_to_fit()
        assert metric.live_bytes == 5
        assert bytes(buffer.view) == b"Hello"
        buffer.clear()
        assert (len(buffer), bytes(buffer)) == (0, b"")
    assert metric.live_blocks == 0
    with pytest.raises(MisuseError):
        buffer.write(b"x")


def test_a_byte_buffer_takes_a_capacity_and_its_own_bytes() -> None:
    buffer = ByteBuffer(PageAlloc(), 4)
    assert buffer.vec.capacity == 4
    buffer.write(b"abcd")
    buffer.write(buffer.view)
    buffer.insert(2, buffer[0:4])
    assert bytes(buffer) == b"ababcdcdabcd"
