"""The watched parent: just aligned, full of junk, guarded, and particular about what it gets back."""

from __future__ import annotations

import ctypes

import pytest

from allocators import AllocError, Block, Layout, MisuseError
from allocators.testing import ConformanceError, Instrumented


def test_addresses_are_aligned_to_what_was_asked_for_and_nothing_more() -> None:
    parent = Instrumented()
    for exponent in range(13):
        align = 1 << exponent
        for size in (0, 1, 100):
            assert parent.allocate(Layout(size, align)).address % (2 * align) == align


def test_fresh_memory_is_junk_unless_zeroed() -> None:
    parent = Instrumented()
    assert any(parent.allocate(Layout(100, 1)).view)
    assert not any(parent.allocate_zeroed(Layout(100, 1)).view)
    block = parent.allocate(Layout(4, 1))
    block.view[:] = b"abcd"
    block = parent.grow_zeroed(block, Layout(4, 1), Layout(8, 1))
    assert bytes(block.view) == b"abcd" + bytes(4)


def test_blocks_can_be_larger_than_asked_for() -> None:
    parent = Instrumented(over_size=24)
    block = parent.allocate(Layout(100, 8))
    assert block.size == 124
    parent.deallocate(block, Layout(110, 8))
    assert parent.live_blocks == 0


def test_every_call_is_recorded() -> None:
    parent = Instrumented()
    block = parent.allocate(Layout(1, 1))
    block = parent.grow(block, Layout(1, 1), Layout(2, 2))
    address = block.address
    parent.deallocate(block, Layout(2, 2))
    calls = [(call.method, call.old, call.new) for call in parent.calls]
    assert calls == [
        ("allocate", None, Layout(1, 1)),
        ("grow", Layout(1, 1), Layout(2, 2)),
        ("deallocate", Layout(2, 2), None),
    ]
    assert parent.calls[-1].address == address


def test_a_wrong_layout_is_found_when_the_block_comes_back() -> None:
    parent = Instrumented()
    block = parent.allocate(Layout(16, 8))
    for wrong in (Layout(8, 8), Layout(17, 8), Layout(16, 4)):
        with pytest.raises(ConformanceError, match="that the parent gave for"):
            parent.deallocate(block, wrong)
    with pytest.raises(ConformanceError, match="never gave"):
        parent.deallocate(Instrumented().allocate(Layout(16, 8)), Layout(16, 8))
    with pytest.raises(ConformanceError, match="never gave"):
        parent.deallocate(Block(block.address + 1, 8, block.region), Layout(8, 8))
    parent.deallocate(block, Layout(16, 8))
    with pytest.raises(MisuseError):
        parent.deallocate(block, Layout(16, 8))


@pytest.mark.parametrize("offset", [-1, -16, 100, 115])
def test_a_byte_written_outside_a_block_is_found(offset: int) -> None:
    parent = Instrumented()
    block = parent.allocate(Layout(100, 8))
    ctypes.c_ubyte.from_address(block.address + offset).value = 0
    with pytest.raises(ConformanceError, match="outside"):
        parent.deallocate(block, Layout(100, 8))


def test_more_than_the_limit_is_refused() -> None:
    parent = Instrumented(limit=1000)
    parent.allocate(Layout(1000, 8))
    for layout in (Layout(1001, 8), Layout(1, 1024), Layout((1 << 63) - 1, 1)):
        with pytest.raises(AllocError):
            parent.allocate(layout)
    assert parent.live_bytes == 1000


def test_closing_revokes_everything() -> None:
    parent = Instrumented()
    block = parent.allocate(Layout(10, 1))
    parent.close()
    assert block.released
    assert parent.closed
    assert parent.live_blocks == 0
