"""check_every_failure gives one of three verdicts, or the number of requests that were survived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from allocators import Allocator, AllocError, Arena, Block, Layout, MetricAllocator
from allocators.collections import ByteBuffer, Interner, Vec
from allocators.testing import (
    ConformanceError,
    Failures,
    LeakedBlocks,
    NondeterministicAllocations,
    SwallowedFailure,
    check_every_failure,
)

EIGHT = Layout(8, 8)


def three_blocks(allocator: Allocator) -> None:
    """Copes with every failure."""
    blocks: list[Block] = []
    try:
        for _block in range(3):
            blocks.append(allocator.allocate(EIGHT))
    finally:
        for block in reversed(blocks):
            allocator.deallocate(block, EIGHT)


def test_a_function_that_cleans_up_passes_and_its_requests_are_counted() -> None:
    assert check_every_failure(three_blocks) == 3


def test_a_function_that_carries_on_has_swallowed_the_failure() -> None:
    def careless(allocator: Allocator) -> None:
        try:
            three_blocks(allocator)
        except MemoryError:
            pass

    with pytest.raises(SwallowedFailure, match="request 0 of 3 refused"):
        check_every_failure(careless)


def test_trying_again_with_less_does_not_help() -> None:
    def stubborn(allocator: Allocator) -> None:
        try:
            three_blocks(allocator)
        except MemoryError:
            three_blocks(allocator)

    assert check_every_failure(stubborn) == 3


def test_what_is_left_behind_is_named_with_its_place() -> None:
    def leaky(allocator: Allocator) -> None:
        first = allocator.allocate(Layout(123, 8))
        second = allocator.allocate(EIGHT)
        allocator.deallocate(second, EIGHT)
        allocator.deallocate(first, Layout(123, 8))

    with pytest.raises(LeakedBlocks, match=r"request 1 of 2 .*123 bytes aligned to 8, from .*test_every_failure\.py"):
        check_every_failure(leaky)


def test_a_leak_without_any_failure_is_told_too() -> None:
    with pytest.raises(LeakedBlocks, match="without any failure"):
        check_every_failure(lambda allocator: allocator.allocate(EIGHT))


def test_a_function_that_asks_for_less_the_second_time_is_not_deterministic() -> None:
    runs: Iterator[int] = iter((3, 0, 0, 0))

    def moody(allocator: Allocator) -> None:
        for _block in range(next(runs)):
            allocator.deallocate(allocator.allocate(EIGHT), EIGHT)

    with pytest.raises(NondeterministicAllocations, match="made only 0 requests"):
        check_every_failure(moody)


def test_other_exceptions_pass_through_with_a_note() -> None:
    def wrong(allocator: Allocator) -> None:
        try:
            three_blocks(allocator)
        except MemoryError:
            raise KeyError("oops") from None

    with pytest.raises(KeyError) as caught:
        check_every_failure(wrong)
    assert caught.value.__notes__ == ["with request 0 of 3 refused"]


def test_the_three_verdicts_are_conformance_errors() -> None:
    for verdict in (SwallowedFailure, NondeterministicAllocations, LeakedBlocks):
        assert issubclass(verdict, ConformanceError)


def test_growing_and_shrinking_are_requests_too() -> None:
    def resizing(allocator: Allocator) -> None:
        block, layout = allocator.allocate(EIGHT), EIGHT
        try:
            for size in (16, 4):
                new = Layout(size, 8)
                resize = allocator.grow if size > layout.size else allocator.shrink
                block, layout = resize(block, layout, new), new
        finally:
            allocator.deallocate(block, layout)

    assert check_every_failure(resizing) == 3


def test_several_allocators_share_one_count() -> None:
    calls: list[None] = []

    def both(stages: dict[str, Any]) -> None:
        calls.append(None)
        three_blocks(stages["parse"])
        three_blocks(stages["check"])

    def make(failures: Failures) -> dict[str, Any]:
        return {"parse": failures.allocator(), "check": MetricAllocator(failures.allocator())}

    assert check_every_failure(both, make) == 6
    assert len(calls) == 7


def test_an_allocator_on_top_is_closed_by_the_function() -> None:
    def in_an_arena(arena: Arena[Any]) -> None:
        with arena, Vec(arena, "q") as numbers:
            numbers.extend(range(100_000))
            numbers.append(1)

    assert check_every_failure(in_an_arena, lambda failures: Arena(failures.allocator())) >= 2


def test_the_number_of_runs_can_be_limited() -> None:
    runs: list[None] = []

    def many(allocator: Allocator) -> None:
        runs.append(None)
        for _block in range(100):
            allocator.deallocate(allocator.allocate(EIGHT), EIGHT)

    assert check_every_failure(many, at_most=7) == 100
    assert len(runs) == 8


def test_the_containers_survive_every_failure() -> None:
    def fill(allocator: Allocator) -> None:
        with Vec(allocator, "q") as numbers, ByteBuffer(allocator) as text, Interner(allocator) as names:
            for number in range(40):
                numbers.append(number)
                text.write(b"x" * number)
                assert names.intern(b"name %d" % number) == number
            numbers.shrink_to_fit()
            assert list(numbers) == list(range(40))

    assert check_every_failure(fill) > 10


def test_failures_can_be_switched_on_and_off() -> None:
    failures = Failures()
    allocator = failures.allocator()
    failures.refuse(2, after=1)
    verdicts = []
    for _request in range(5):
        try:
            allocator.deallocate(allocator.allocate(EIGHT), EIGHT)
            verdicts.append(True)
        except AllocError:
            verdicts.append(False)
    assert verdicts == [True, False, False, True, True]
    assert (failures.requests, failures.refused) == (5, 2)
    failures.refuse(None)
    with pytest.raises(AllocError):
        allocator.allocate(EIGHT)
    failures.allow()
    assert failures.leaks == []
    allocator.allocate(EIGHT)
    assert len(failures.leaks) == 1
