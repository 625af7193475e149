"""StackAlloc: blocks and words, last in, first out."""

from __future__ import annotations

from array import array

import pytest

from allocators import AllocError, Layout, MisuseError, Region, StackAlloc


def stack(size: int, *, strict: bool = False) -> StackAlloc:
    """A stack of exactly `size` bytes."""
    whole = Region.of(bytearray(size + 16))
    return StackAlloc(whole.part(whole.address + (-whole.address % 16), size), strict=strict)


def test_frees_in_reverse_order_leave_nothing_behind() -> None:
    subject = stack(1024)
    requests = [Layout(1, 1), Layout(8, 64), Layout(100, 1), Layout(3, 256), Layout(16, 16)]
    used = []
    blocks = []
    for layout in requests:
        used.append(subject.used_bytes)
        blocks.append(subject.allocate(layout))
    for block, layout, before in zip(reversed(blocks), reversed(requests), reversed(used), strict=True):
        subject.deallocate(block, layout)
        assert subject.used_bytes == before


def test_sizes_round_up_to_16() -> None:
    subject = stack(64)
    first = subject.allocate(Layout(1, 1))
    second = subject.allocate(Layout(8, 16))
    assert (second.address - first.address, subject.used_bytes) == (16, 32)
    assert (first.size, second.size) == (1, 8)


def test_the_bytes_of_a_block_below_the_top_come_back_when_all_above_has_gone() -> None:
    subject = stack(64)
    for _round in range(10):
        six = subject.allocate(Layout(6, 1))
        two = subject.allocate(Layout(2, 1))
        subject.deallocate(six, Layout(6, 1))
        assert subject.used_bytes == 32
        subject.deallocate(two, Layout(2, 1))
        assert subject.used_bytes == 0


def test_a_strict_stack_names_the_block_that_must_go_first() -> None:
    subject = stack(256, strict=True)
    first = subject.allocate(Layout(8, 8))
    second = subject.allocate(Layout(8, 8))
    with pytest.raises(MisuseError, match=f"{second.address:#x} must be freed before"):
        subject.deallocate(first, Layout(8, 8))
    with pytest.raises(MisuseError, match=f"{second.address:#x} must be freed before"):
        subject.grow(first, Layout(8, 8), Layout(100, 8))
    assert subject.used_bytes == 32
    subject.push(7)
    with pytest.raises(MisuseError, match="1 words must be popped"):
        subject.deallocate(second, Layout(8, 8))
    subject.pop()
    subject.deallocate(second, Layout(8, 8))
    subject.deallocate(first, Layout(8, 8))
    assert subject.used_bytes == 0


def test_a_strict_stack_realigns_its_top_block_without_a_second_copy() -> None:
    subject = stack(512, strict=True)
    subject.allocate(Layout(16, 16))
    block = subject.allocate(Layout(16, 16))
    block.view[:] = bytes(range(16))
    for size, align in ((40, 64), (100, 1), (20, 128)):
        old = Layout(block.size, 1)
        resize = subject.grow if size > old.size else subject.shrink
        block = resize(block, old, Layout(size, align))
        assert block.address % align == 0
        assert bytes(block.view[:16]) == bytes(range(16))
    subject.deallocate(block, Layout(20, 128))
    assert subject.used_bytes == 16


def test_the_top_block_grows_to_the_end_of_the_buffer() -> None:
    subject = stack(104)
    block = subject.allocate(Layout(20, 8))
    block = subject.grow(block, Layout(20, 8), Layout(104, 8))
    assert subject.used_bytes == 104
    with pytest.raises(AllocError) as caught:
        subject.grow(block, Layout(104, 8), Layout(105, 8))
    assert (caught.value.limit, caught.value.in_use) == (104, 104)
    assert not block.released


def test_words_are_exact_and_come_back_in_reverse() -> None:
    subject = stack(64)
    for word in (1, -1, (1 << 63) - 1, -(1 << 63)):
        subject.push(word)
    assert subject.depth == 4
    assert [subject.pop() for _ in range(4)] == [-(1 << 63), (1 << 63) - 1, -1, 1]
    with pytest.raises(IndexError):
        subject.pop()
    with pytest.raises(ValueError, match=r".*"):
        subject.push(1 << 63)
    assert subject.depth == 0


def test_a_group_is_pushed_whole_or_not_at_all() -> None:
    subject = stack(40)
    subject.push_all([1, 2, 3])
    with pytest.raises(AllocError):
        subject.push_all([4, 5, 6])
    with pytest.raises(ValueError, match=r".*"):
        subject.push_all([4, 1 << 63])
    assert subject.depth == 3
    assert subject.pop_all(2) == [3, 2]
    with pytest.raises(IndexError):
        subject.pop_all(2)
    assert subject.depth == 1
    subject.push_all([7, 8, 9, 10])
    with pytest.raises(AllocError):
        subject.push(11)
    assert [subject.peek(below) for below in range(5)] == [10, 9, 8, 7, 1]
    subject.poke(4, 99)
    assert subject.peek(4) == 99


def test_words_and_blocks_mix_and_words_never_reach_into_a_block() -> None:
    subject = stack(256)
    subject.push(1)
    block = subject.allocate(Layout(16, 16))
    with pytest.raises(IndexError):
        subject.pop()
    subject.push(2)
    assert subject.pop() == 2
    subject.deallocate(block, Layout(16, 16))
    assert subject.pop() == 1


def test_inside_a_scope_what_was_there_before_stays() -> None:
    subject = stack(512)
    subject.push_all([1, 2])
    older = subject.allocate(Layout(16, 16))
    subject.push(3)
    before = subject.used_bytes
    with subject.scope():
        with pytest.raises(IndexError):
            subject.pop()
        inner = subject.allocate(Layout(32, 16))
        subject.deallocate(older, Layout(16, 16))
        subject.push(4)
    assert inner.released
    assert subject.used_bytes == before
    assert subject.pop() == 3
    assert subject.allocate(Layout(16, 16)).address == older.address


def test_a_block_freed_in_a_scope_comes_back_when_that_ends() -> None:
    subject = stack(512, strict=True)
    older = [subject.allocate(Layout(16, 16)) for _ in range(2)]
    with subject.scope(), subject.scope():
        subject.deallocate(older[1], Layout(16, 16))
        subject.deallocate(older[0], Layout(16, 16))
        assert subject.used_bytes == 32
    assert subject.used_bytes == 0


def test_the_waste_tells_blocks_from_what_is_lost() -> None:
    stack = StackAlloc(Region.of(bytearray(1024)))
    first = stack.allocate(Layout(20, 8))
    stack.push_all([1, 2, 3])
    second = stack.allocate(Layout(40, 64))
    third = stack.allocate(Layout(1, 1))
    used = stack.used_bytes
    waste = stack.waste()
    assert waste.live == 20 + 3 * 8 + 40 + 1
    assert (waste.dead, waste.abandoned, waste.overhead, waste.slack) == (0, 0, 0, 0)
    assert waste.padding == used - waste.live
    assert waste.tail == stack.capacity - used
    assert waste.total == stack.capacity
    # Below the top, what is freed or given up has not come back.
    stack.shrink(first, Layout(20, 8), Layout(5, 8))
    assert (stack.waste().live, stack.waste().dead) == (waste.live - 15, 15)
    stack.deallocate(second, Layout(40, 64))
    after = stack.waste()
    assert after.live == 5 + 3 * 8 + 1
    assert after.dead + after.padding == used - after.live
    assert after.dead >= 15 + 40
    stack.deallocate(third, Layout(1, 1))
    assert stack.waste().live == stack.used_bytes - stack.waste().padding - 15 == 5 + 3 * 8
    stack.close()
    assert stack.waste().total == 0


def test_what_is_not_on_the_stack_cannot_shrink() -> None:
    stack = StackAlloc(bytearray(256))
    stack.allocate(Layout(8, 8))
    other = StackAlloc(bytearray(256)).allocate(Layout(8, 8))
    with pytest.raises(MisuseError, match="not on this stack"):
        stack.shrink(other, Layout(8, 8), Layout(4, 8))
    assert not other.released


def test_a_closed_stack_lets_go_of_its_buffer() -> None:
    buffer = bytearray(64)
    subject = StackAlloc(buffer)
    block = subject.allocate(Layout(8, 8))
    with pytest.raises(BufferError):
        buffer.append(0)
    subject.close()
    subject.close()
    assert block.released
    buffer.append(0)
    with pytest.raises(AllocError):
        subject.allocate(Layout(1, 1))
    with pytest.raises(AllocError):
        subject.push(1)


def test_the_region_of_a_caller_stays_open() -> None:
    region = Region.of(bytearray(64))
    StackAlloc(region).close()
    assert not region.closed


def test_any_writable_buffer_serves() -> None:
    numbers = array("d", [0.0] * 100)
    subject = StackAlloc(numbers)
    subject.allocate(Layout(8, 8)).cast("d")[:] = array("d", [2.5])
    assert 2.5 in numbers
    with pytest.raises(MisuseError):
        StackAlloc(bytes(100))
    empty = StackAlloc(bytearray())
    with pytest.raises(AllocError):
        empty.push(1)


def test_freeing_many_blocks_oldest_first_is_not_quadratic() -> None:
    subject = stack(16 * 20_000)
    blocks = [subject.allocate(Layout(16, 16)) for _ in range(20_000)]
    for block in blocks:
        subject.deallocate(block, Layout(16, 16))
    assert subject.used_bytes == 0
