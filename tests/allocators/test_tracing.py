from __future__ import annotations

import io
import re

import pytest

from allocators import (
    AllocError,
    Arena,
    BumpAlloc,
    FailingAllocator,
    Layout,
    LimitAllocator,
    MetricAllocator,
    MisuseError,
    PageAlloc,
    Trace,
    TracingAllocator,
)
from allocators.collections import Vec
from allocators.testing import Failures
from allocators.trace.format import read_trace
from allocators.trace.replay import Replay


def program(allocator: TracingAllocator[Arena[PageAlloc]]) -> None:
    """Every operation once or more."""
    first = allocator.allocate(Layout(100, 8))
    second = allocator.allocate_zeroed(Layout(64, 16))
    empty = allocator.allocate(Layout(0, 1))
    first = allocator.grow(first, Layout(100, 8), Layout(200, 8))
    first = allocator.grow_zeroed(first, Layout(200, 8), Layout(300, 16))
    second = allocator.shrink(second, Layout(64, 16), Layout(10, 2))
    point = allocator.checkpoint()
    allocator.allocate(Layout(50, 1))
    with allocator.scope():
        allocator.allocate(Layout(60, 1))
    allocator.restore(point)
    allocator.deallocate(empty, Layout(0, 1))
    allocator.deallocate(first, Layout(300, 16))
    allocator.reset()
    allocator.deallocate(allocator.allocate(Layout(1, 1)), Layout(1, 1))


TEXT = """\
allocators trace 1
a 0 100 8
z 1 64 16
a 2 0 1
g 0 200 8
G 0 300 16
s 1 10 2
c
a 3 50 1
c
a 4 60 1
r 1
r 0
f 2
f 0
x
a 5 1 1
f 5
"""


def test_the_trace_says_what_was_asked_for_in_order() -> None:
    tracing = TracingAllocator(Arena(PageAlloc()))
    program(tracing)
    assert tracing.trace.text() == TEXT


def test_a_file_gets_the_same_lines_as_they_come() -> None:
    file = io.StringIO()
    tracing = TracingAllocator(Arena(PageAlloc()), file=file)
    tracing.allocate(Layout(100, 8))
    assert file.getvalue() == "allocators trace 1\na 0 100 8\n"
    file = io.StringIO()
    tracing = TracingAllocator(Arena(PageAlloc()), file=file)
    program(tracing)
    tracing.close()
    assert file.getvalue() == TEXT
    with pytest.raises(MisuseError, match="in a file"):
        _ = tracing.trace
    with pytest.raises(MisuseError):
        TracingAllocator(PageAlloc(), file=file, trace=Trace())


def test_a_trace_can_be_read_and_replayed_and_gives_the_same_trace_again() -> None:
    tracing = TracingAllocator(Arena(PageAlloc()))
    program(tracing)
    again = TracingAllocator(Arena(PageAlloc()))
    replay = Replay(again)
    replay.run(read_trace(tracing.trace.text().splitlines()))
    assert again.trace.text() == TEXT
    on_another = Replay(MetricAllocator(BumpAlloc(PageAlloc())))
    on_another.run(read_trace(TEXT.splitlines()))
    assert on_another.operations == len(TEXT.splitlines()) - 1
    assert on_another.metric.live_blocks == 0


def test_refused_requests_are_in_the_trace() -> None:
    tracing = TracingAllocator(FailingAllocator(PageAlloc(), fail_index=1))
    block = tracing.allocate(Layout(10, 1))
    for use in (
        lambda: tracing.allocate(Layout(11, 2)),
        lambda: tracing.allocate_zeroed(Layout(12, 4)),
        lambda: tracing.grow(block, Layout(10, 1), Layout(13, 8)),
        lambda: tracing.grow_zeroed(block, Layout(10, 1), Layout(14, 16)),
        lambda: tracing.shrink(block, Layout(10, 1), Layout(9, 1)),
    ):
        with pytest.raises(AllocError):
            use()
    tracing.deallocate(block, Layout(10, 1))
    assert tracing.trace.text().splitlines()[2:] == ["! a 11 2", "! z 12 4", "! g 13 8", "! G 14 16", "! s 9 1", "f 0"]


def test_misuse_is_not_in_the_trace() -> None:
    tracing = TracingAllocator(PageAlloc())
    block = tracing.allocate(Layout(10, 1))
    with pytest.raises(MisuseError):
        tracing.deallocate(block, Layout(11, 1))
    with pytest.raises(MisuseError):
        tracing.grow(block, Layout(10, 1), Layout(5, 1))
    with pytest.raises(MisuseError):
        tracing.checkpoint()
    tracing.deallocate(block, Layout(10, 1))
    with pytest.raises(MisuseError):
        tracing.deallocate(block, Layout(10, 1))
    assert tracing.trace.text().splitlines()[1:] == ["a 0 10 1", "f 0"]


def test_rmm_lines_have_its_columns() -> None:
    tracing = TracingAllocator(PageAlloc())
    block = tracing.allocate(Layout(100, 8))
    address = block.address
    tracing.deallocate(block, Layout(100, 8))
    header, allocated, freed = tracing.trace.rmm_csv().splitlines()
    assert header == "Thread,Time,Action,Pointer,Size,Stream"
    assert re.fullmatch(rf"\d+,\d\d:\d\d:\d\d\.\d{{6}},allocate,{address:#x},100,0x0", allocated)
    assert re.fullmatch(rf"\d+,\d\d:\d\d:\d\d\.\d{{6}},free,{address:#x},100,0x0", freed)


def test_rmm_lines_balance_though_rmm_knows_neither_resizes_nor_scopes() -> None:
    arena = Arena(PageAlloc())
    tracing = TracingAllocator(LimitAllocator(arena, 10_000))
    with pytest.raises(AllocError):
        tracing.allocate(Layout(20_000, 1))
    program(tracing)  # type: ignore[arg-type]
    live: dict[str, list[int]] = {}
    failures = 0
    for line in tracing.trace.rmm_csv().splitlines()[1:]:
        _thread, _time, action, pointer, size, _stream = line.split(",")
        if action == "allocate":
            live.setdefault(pointer, []).append(int(size))
        elif action == "free":
            live[pointer].remove(int(size))
        else:
            assert (action, pointer, size) == ("allocate failure", "0x0", "20000")
            failures += 1
    assert failures == 1
    assert not any(live.values())
    replay = Replay(PageAlloc())
    replay.run(read_trace(tracing.trace.rmm_csv().splitlines()))
    assert replay.metric.live_blocks == 0


def test_a_block_resized_where_it_is_frees_and_allocates_in_rmm_lines() -> None:
    tracing = TracingAllocator(BumpAlloc(PageAlloc()))
    block = tracing.allocate(Layout(10, 1))
    block = tracing.grow(block, Layout(10, 1), Layout(20, 1))
    tracing.allocate(Layout(1, 1))
    tracing.grow(block, Layout(20, 1), Layout(30, 1))
    actions = [line.split(",")[2:5] for line in tracing.trace.rmm_lines()][1:]
    assert [(action, size) for action, _pointer, size in actions] == [
        ("allocate", "10"),
        ("free", "10"),
        ("allocate", "20"),
        ("allocate", "1"),
        ("allocate", "30"),
        ("free", "20"),
    ]


def test_the_record_is_in_memory_of_an_allocator_and_given_back() -> None:
    metric = MetricAllocator(PageAlloc())
    with Trace(metric) as trace:
        tracing = TracingAllocator(Arena(PageAlloc()), trace=trace)
        program(tracing)
        assert metric.live_bytes > 0
        tracing.close()
        assert trace.text() == TEXT
    assert metric.live_blocks == 0


def test_an_operation_that_cannot_be_recorded_is_refused_and_not_done() -> None:
    failures = Failures(fail_at=0)
    metric = MetricAllocator(Arena(PageAlloc()))
    tracing = TracingAllocator(metric, trace=Trace(failures.allocator()))
    with pytest.raises(AllocError):
        tracing.allocate(Layout(10, 1))
    assert metric.counters.total_blocks == 0
    failures.allow()
    blocks = [tracing.allocate(Layout(10, 1)) for _ in range(8)]
    failures.refuse(None)
    for use in (
        lambda: tracing.deallocate(blocks[0], Layout(10, 1)),
        lambda: tracing.grow(blocks[0], Layout(10, 1), Layout(20, 1)),
        tracing.checkpoint,
        tracing.reset,
    ):
        with pytest.raises(AllocError):
            use()
    assert metric.live_blocks == tracing.live_blocks == 8
    assert not any(block.released for block in blocks)


def test_what_a_container_does_can_be_seen() -> None:
    tracing = TracingAllocator(Arena(PageAlloc()))
    with Vec(tracing, "I") as vec:
        vec.extend(range(9))
        vec.extend(range(9))
        vec.truncate(1)
        vec.shrink_to_fit()
    assert tracing.trace.text().splitlines()[1:] == ["a 0 36 4", "g 0 72 4", "s 0 4 4", "f 0"]


def test_two_runs_of_a_program_have_one_trace() -> None:
    def run() -> str:
        tracing = TracingAllocator(Arena(PageAlloc()))
        program(tracing)
        return tracing.trace.text()

    assert run() == run()
