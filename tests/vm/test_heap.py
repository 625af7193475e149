"""The heap: words behind real addresses, interned strings, foreign objects, and limits."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest

from allocators import AllocError, Layout, LimitAllocator, PageAlloc
from allocators.collections import Vec
from garden.errors import Trap
from garden.vm import heap as heap_module
from garden.vm.heap import MAX_STR_BYTES, Heap


def test_objects_are_fresh_aligned_and_apart(ledger: Any) -> None:
    heap = Heap(ledger)
    sizes = [0, 1, 7, 8, 9, 24, 1000, 70_000, 16, 200_000, 8]
    objects = [(heap.alloc(size), size) for size in sizes]
    for address, size in objects:
        assert address > 0
        assert address % 8 == 0
        for offset in range(0, size, 8):
            heap.store(address + offset, address ^ offset)
    for address, size in objects:
        for offset in range(0, size, 8):
            assert heap.load(address + offset) == address ^ offset
    heap.close()


def test_addresses_are_real(ledger: Any) -> None:
    heap = Heap(ledger)
    address = heap.alloc(16)
    heap.store(address + 8, -42)
    assert ctypes.c_int64.from_address(address + 8).value == -42
    heap.close()


def test_used_and_allocations_count_what_the_program_has_made(ledger: Any) -> None:
    heap = Heap(ledger)
    assert (heap.used, heap.allocations) == (0, 0)
    expected = 0
    for count, size in enumerate([8, 1, 0, 100_000, 24, 60_000, 8], 1):
        heap.alloc(size)
        expected += (size + 7) // 8 * 8
        assert (heap.used, heap.allocations) == (expected, count)
    heap.intern(b"123456789")
    assert (heap.used, heap.allocations) == (expected + 24, 8)
    heap.intern(b"123456789")
    assert (heap.used, heap.allocations) == (expected + 24, 8)
    heap.reset()
    assert (heap.used, heap.allocations) == (0, 0)
    heap.close()


def test_others_may_bump_the_cursor(ledger: Any) -> None:
    heap = Heap(ledger)
    first = heap.alloc(8)
    taken = heap.cursor
    heap.cursor += 24
    assert taken == first + 8
    assert heap.alloc(8) == first + 32
    assert heap.used == 40
    heap.close()


def test_chunks_double_and_large_objects_get_their_own(ledger: Any) -> None:
    heap = Heap(ledger)
    small = heap.alloc(8)
    large = heap.alloc(1 << 20)
    assert heap.alloc(8) == small + 8, "a large object does not end the current chunk"
    assert not small <= large < small + (1 << 16)
    before = ledger.live
    for _ in range(1 << 12):
        heap.alloc(1 << 10)
    # 64 KiB + 128 KiB + ... + 4 MiB hold 4 MiB of objects.
    assert ledger.live - before == 6
    heap.close()


@pytest.mark.parametrize("size", [-8, -1000, 1 << 40, 1 << 70])
def test_an_impossible_size_is_out_of_memory(ledger: Any, size: int) -> None:
    heap = Heap(ledger)
    with pytest.raises(Trap, match="T0003"):
        heap.alloc(size)
    assert heap.allocations == 0
    heap.close()


def test_the_limit_counts_chunks_and_the_string_table(ledger: Any) -> None:
    heap = Heap(ledger, limit=200_000)

    def fill(make: Callable[[], object]) -> None:
        for _ in range(100_000):
            make()

    with pytest.raises(Trap, match="T0003"):
        fill(lambda: heap.alloc(1000))
    assert 190_000 < heap.used <= heap.taken <= 200_000
    heap.reset()
    with pytest.raises(Trap, match="T0003"):
        fill(lambda: heap.intern(b"%d" % heap.allocations))
    assert heap.allocations > 2000
    assert heap.taken <= 200_000
    heap.close()


def test_a_failing_allocator_is_out_of_memory_and_changes_nothing(ledger: Any) -> None:
    heap = Heap(ledger)
    ledger.fail_at = ledger.requests + 1
    with pytest.raises(Trap, match="T0003"):
        heap.alloc(8)
    assert (heap.used, heap.taken) == (0, 0)
    for number in range(2):
        ledger.fail_at = ledger.requests + 1 + number
        with pytest.raises(Trap, match="T0003"):
            heap.intern(b"text")
    assert heap.str_bytes(heap.intern(b"text")) == b"text"
    heap.close()


def test_loads_and_stores_reach_nothing_but_objects(ledger: Any) -> None:
    heap = Heap(ledger)
    foreign = PageAlloc().allocate(Layout(4096))
    address = heap.alloc(8)
    size = heap.end - address
    for bad in (0, 1, 16, foreign.address, address - 8, address + size, address + 4, -1, 1 << 64, -(1 << 64)):
        with pytest.raises(Trap, match="T0005"):
            heap.load(bad)
        with pytest.raises(Trap, match="T0005"):
            heap.store(bad, 1)
    heap.close()


def test_a_stretch_of_words_is_a_view(ledger: Any) -> None:
    heap = Heap(ledger)
    address = heap.alloc(32)
    view = heap.words(address + 8, 3)
    view[:] = memoryview(b"\1\0\0\0\0\0\0\0" * 3).cast("q")
    assert [heap.load(address + offset) for offset in (8, 16, 24)] == [1, 1, 1]
    assert len(heap.words(0, 0)) == 0
    for bad, count in ((address + 4, 1), (address, -1), (address, 1 << 40), (address, 1 << 70), (0, 1)):
        with pytest.raises(Trap, match="T0005"):
            heap.words(bad, count)
    heap.close()


def test_equal_strings_are_one_word(ledger: Any) -> None:
    heap = Heap(ledger)
    texts = [b"", b"a", b"b", b"ab", b"ba", b"1234567", b"12345678", b"123456789", "grün".encode(), b"\0", b"\0\0"]
    words = [heap.intern(text) for text in texts]
    assert len(set(words)) == len(texts)
    assert [heap.intern(bytes(bytearray(text))) for text in texts] == words
    assert [heap.str_bytes(word) for word in words] == texts
    assert [heap.str_length(word) for word in words] == [len(text) for text in texts]
    assert heap.str_text(words[8]) == "grün"
    heap.close()


def test_many_strings_are_all_found_again(ledger: Any) -> None:
    heap = Heap(ledger)
    words = {number: heap.intern(b"key %d" % number) for number in range(20_000)}
    for number in random.Random(1).sample(range(20_000), 2_000):
        assert heap.intern(b"key %d" % number) == words[number]
        assert heap.str_bytes(words[number]) == b"key %d" % number
    heap.close()


def test_strings_of_one_hash_are_told_apart(ledger: Any) -> None:
    # Two texts of one length and one CRC-32.
    left, right = b"plumless", b"buckeroo"
    assert heap_module.hash_bytes(left) == heap_module.hash_bytes(right)
    heap = Heap(ledger)
    words = [heap.intern(left), heap.intern(right)]
    assert words[0] != words[1]
    assert [heap.str_bytes(word) for word in words] == [left, right]
    assert [heap.intern(left), heap.intern(right)] == words
    heap.close()


def test_a_str_is_laid_out_as_in_the_constants(ledger: Any) -> None:
    heap = Heap(ledger)
    heap.store(heap.alloc(64), -1)
    heap.reset()
    for _ in range(8):
        heap.store(heap.alloc(8), -1)
    heap.reset()
    address = heap.intern(b"abcdefghi")
    assert list(heap.words(address + 8, 2)) == [int.from_bytes(b"abcdefgh", "little"), ord("i")]
    assert heap.load(address) & 0xFFFFFFFF == 9
    assert heap.load(address) >> 32 & 0xFFFFFFFF == heap_module.hash_bytes(b"abcdefghi")
    heap.close()


def test_parts_of_a_str_are_copied_out(ledger: Any) -> None:
    heap = Heap(ledger)
    address = heap.intern(b"abcdef")
    assert heap.str_bytes(address, 2, 4) == b"cd"
    assert heap.str_bytes(address, 6) == b""
    for start, end in ((-1, 2), (3, 2), (0, 7), (7, -1)):
        with pytest.raises(Trap, match="T0005"):
            heap.str_bytes(address, start, end)
    heap.close()


def test_a_word_that_is_no_str_traps(ledger: Any) -> None:
    heap = Heap(ledger)
    address = heap.alloc(8)
    heap.store(address, 1 << 31)
    for bad in (address, 0, 1):
        with pytest.raises(Trap, match="T0005"):
            heap.str_text(bad)
    heap.close()


def test_a_trap_names_the_refusal_that_caused_it() -> None:
    heap = Heap(LimitAllocator(PageAlloc(), 1 << 16))
    with pytest.raises(Trap, match="T0003") as caught:
        heap.alloc(1 << 17)
    assert isinstance(caught.value.__cause__, AllocError)
    heap.close()


def test_a_str_has_a_largest_size(ledger: Any) -> None:
    heap = Heap(ledger)
    with pytest.raises(Trap, match="T0003"):
        heap.intern(bytes(MAX_STR_BYTES + 1))
    heap.close()


def constants(texts: list[str]) -> tuple[Vec[PageAlloc], list[int]]:
    strings: Vec[PageAlloc] = Vec(PageAlloc(), "Q")
    offsets = []
    for text in texts:
        data = text.encode()
        offsets.append(8 * len(strings))
        strings.append(len(data) | heap_module.hash_bytes(data) << 32)
        padded = data.ljust((len(data) + 7) & -8, b"\0")
        strings.extend([int.from_bytes(padded[at : at + 8], "little") for at in range(0, len(padded), 8)])
    return strings, [strings.address + offset for offset in offsets]


def test_constant_strings_keep_their_addresses_through_resets(ledger: Any) -> None:
    texts = ["", "one", "a somewhat longer text", *[f"constant {number}" for number in range(500)]]
    strings, addresses = constants(texts)
    heap = Heap(ledger, strings.view)
    for _ in range(3):
        assert [heap.intern(text.encode()) for text in texts] == addresses
        assert (heap.used, heap.allocations) == (0, 0)
        made = [heap.intern(b"made %d" % number) for number in range(1000)]
        assert not set(made) & set(addresses)
        heap.reset()
        with pytest.raises(Trap, match="T0005"):
            # Not the address before them: the system may have put a chunk there.
            heap.str_text(8)
    heap.close()
    strings.close()


def test_foreign_objects_are_the_same_object_again_until_reset(ledger: Any) -> None:
    heap = Heap(ledger)
    objects = [object(), [], [], None]
    words = [heap.foreign_word(thing) for thing in objects]
    assert len(set(words)) == len(objects)
    assert [heap.foreign_word(thing) for thing in objects] == words
    assert all(heap.foreign_object(word) is thing for word, thing in zip(words, objects, strict=True))
    heap.reset()
    for word in (0, -1, words[0], 99):
        with pytest.raises(Trap, match="T0005"):
            heap.foreign_object(word)
    heap.close()


def test_reset_keeps_one_chunk(ledger: Any) -> None:
    heap = Heap(ledger)
    for _ in range(300):
        heap.alloc(1000)
    heap.alloc(1 << 20)
    heap.reset()
    assert ledger.live == 1
    address = heap.alloc(8)
    heap.store(address, 5)
    assert heap.load(address) == 5
    heap.close()


def test_a_closed_heap_has_nothing(ledger: Any) -> None:
    strings, addresses = constants(["text"])
    heap = Heap(ledger, strings.view)
    address = heap.alloc(8)
    heap.close()
    heap.close()
    for gone in (address, addresses[0]):
        with pytest.raises(Trap, match="T0005"):
            heap.load(gone)
    strings.close()


def test_a_heap_that_cannot_intern_its_constants_owns_nothing(ledger: Any) -> None:
    strings, _ = constants(["text"])
    ledger.fail_at = 1
    with pytest.raises(AllocError):
        Heap(ledger, strings.view)
    strings.close()
