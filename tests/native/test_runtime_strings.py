"""Strings in the native runtime do what `str` and the heap do in Python, and leave the heap the same."""

from __future__ import annotations

import random
from binascii import crc32
from collections.abc import Iterator

import pytest

from allocators import PageAlloc
from allocators.collections import Vec
from garden.errors import Trap
from garden.strings import append_string
from garden.types.types import Bool, Double, Int, Str
from garden.vm.heap import MAX_STR_BYTES
from tests.support.reference import ReferenceRuntime, Twins

#: Characters of one to four bytes, few enough to repeat themselves.
ALPHABET = "aab\u00e9\u20ac\U0001f600"


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    twins = Twins()
    yield twins
    twins.close()


@pytest.fixture(scope="module")
def runtime() -> Iterator[ReferenceRuntime]:
    runtime = ReferenceRuntime()
    yield runtime
    runtime.close()


def text(rng: random.Random, most: int) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randrange(most)))


@pytest.mark.parametrize("length", [*range(18), 31, 32, 33, 100])
def test_the_hash_is_that_of_the_heap(runtime: ReferenceRuntime, length: int) -> None:
    data = bytes(random.Random(length).choices(range(1, 128), k=length))
    text = runtime.heap.intern(data) + 8
    runtime.push()
    assert runtime("hash", 0xFFFFFFFF, text, length) ^ 0xFFFFFFFF == crc32(data)
    # Also where it does not begin at a word.
    assert runtime("hash", 0xFFFFFFFF, text + length // 3, length - length // 3) ^ 0xFFFFFFFF == crc32(
        data[length // 3 :]
    )


@pytest.mark.parametrize(("data", "count"), [(b"a", 2), (b"ab", 3), (b"abcdefghi", 1000), (b"xyz" * 50, 77)])
def test_the_hash_of_a_repeated_text_is_computed_without_repeating_it(
    runtime: ReferenceRuntime, data: bytes, count: int
) -> None:
    shift = runtime("power", 1 << 23, len(data), 1 << 31)
    assert runtime("hash_repeated", crc32(data), shift, count, 0) == crc32(data * count)


def test_texts_are_joined(twins: Twins) -> None:
    rng = random.Random(1)
    for left, right in (("", ""), ("", "a"), ("a", ""), ("abcd", "efgh"), ("abcd", "efghi"), ("a" * 16, "b" * 16)):
        twins("str.concat", [Str, Str], left, right)
    for _ in range(200):
        twins("str.concat", [Str, Str], text(rng, 8), text(rng, 30))


def test_joining_again_gives_the_same_str_and_costs_nothing(runtime: ReferenceRuntime) -> None:
    for left, right in ((b"ab", b"c"), (b"0123456789", b"abcdefghij")):
        words = (runtime.heap.intern(left), runtime.heap.intern(right))
        runtime.push()
        joined = runtime("str_concat", *words)
        before = runtime.heap.used
        assert runtime("str_concat", *words) == joined == runtime.heap.intern(left + right)
        assert runtime.heap.used == before


def test_what_was_joined_is_found_however_it_was_made(runtime: ReferenceRuntime) -> None:
    whole = runtime.heap.intern(b"the quick brown fox")
    runtime.push()
    for cut in range(1, 19):
        left = runtime("str_slice", whole, 0, cut)
        right = runtime("str_slice", whole, cut, 19)
        assert runtime("str_concat", left, right) == whole


def test_a_text_that_would_be_too_long_traps(twins: Twins) -> None:
    half = "a" * 1000
    count = MAX_STR_BYTES // 1000
    assert twins("str.repeat", [Str, Int], half, count + 1).startswith("T0003: str.repeat")
    assert twins("str.repeat", [Str, Int], half, 1 << 62).startswith("T0003: str.repeat")


def test_a_text_that_would_become_too_long_is_not_looked_at(runtime: ReferenceRuntime) -> None:
    # Its header claims more bytes than there are.
    claim = runtime.heap.alloc(16)
    runtime.heap.store(claim, MAX_STR_BYTES)
    other = runtime.heap.intern(b"another")
    runtime.push()
    with pytest.raises(Trap, match=f"T0003: a Str has at most {MAX_STR_BYTES} bytes, not {MAX_STR_BYTES + 7}"):
        runtime("str_concat", claim, other)


@pytest.mark.parametrize("count", [-1, 0, 1, 2, 3, 7, 8, 9, 100, 1000])
@pytest.mark.parametrize("once", ["", "a", "ab", "\u20ac", "abcdefg", "abcdefgh", "abcdefghi", "0123456789" * 3])
def test_texts_are_repeated(twins: Twins, once: str, count: int) -> None:
    for _ in range(2):
        twins("str.repeat", [Str, Int], once, count)


def test_bytes_are_read(twins: Twins) -> None:
    for index in (-(1 << 63), -1, 0, 1, 5, 6, 7, (1 << 63) - 1):
        twins("str.get", [Str, Int], "a\u20acbc", index)
    twins("str.get", [Str, Int], "", 0)
    twins("str.len", [Str], "a\u20acbc")
    twins("str.len", [Str], "")


@pytest.mark.parametrize("whole", ["", "a", "abcdefgh", "abcdefghijk", "x\u00e9\u20ac\U0001f600y"])
def test_slices_are_texts_of_their_own(twins: Twins, whole: str) -> None:
    length = len(whole.encode())
    for start in range(-1, length + 2):
        for end in range(-1, length + 2):
            twins("str.slice", [Str, Int, Int], whole, start, end)


def test_slices_far_outside_trap(twins: Twins) -> None:
    edges = (-(1 << 63), -1, 0, 3, 4, (1 << 63) - 1)
    for start in edges:
        for end in edges:
            twins("str.slice", [Str, Int, Int], "abc", start, end)


def test_texts_are_found_in_texts(twins: Twins) -> None:
    rng = random.Random(2)
    for hay, needle in (("", ""), ("a", ""), ("", "a"), ("abc", "abcd"), ("abcdefgh", "h"), ("abcdefghi", "i")):
        twins("str.contains", [Str, Str], hay, needle)
    for _ in range(300):
        hay = text(rng, 60)
        start = rng.randrange(len(hay) + 1)
        needle = hay[start : start + rng.randrange(20)]
        assert twins("str.contains", [Str, Str], hay, needle)
        twins("str.contains", [Str, Str], hay, needle + rng.choice(ALPHABET))
        twins("str.contains", [Str, Str], hay, text(rng, 4))


@pytest.mark.parametrize("alphabet", ["ab", "abc"])
def test_repetitive_texts_are_found_in_both_ways(runtime: ReferenceRuntime, alphabet: str) -> None:
    rng = random.Random(3)
    found = 0
    for _ in range(200):
        base = "".join(rng.choices(alphabet, k=rng.randrange(1, 5)))
        needle = (base * rng.randrange(1, 12))[rng.randrange(3) :] or "a"
        if rng.random() < 0.5:
            index = rng.randrange(len(needle))
            needle = needle[:index] + rng.choice(alphabet) + needle[index + 1 :]
        parts = [base, base * 3, needle[:-1], needle[1:], rng.choice(alphabet)]
        hay = "".join(rng.choices(parts, k=rng.randrange(1, 14))) + "a" * len(needle)
        places = len(hay) - len(needle) + 1
        at, wanted = [runtime.heap.intern(word.encode()) + 8 for word in (hay, needle)]
        runtime.push()
        ends = ord(needle[0]) | ord(needle[-1]) << 8
        answers = {
            runtime("search_repetitive", at, places, wanted, len(needle)),
            runtime("search", at, places, wanted, len(needle), ends, rng.choice((-1, 20, 1 << 20))),
        }
        assert answers == {int(needle in hay)}
        found += needle in hay
    assert 20 < found < 180


def test_looking_for_a_text_takes_linear_time(runtime: ReferenceRuntime) -> None:
    steps = []
    for size in (200, 400):
        hay = runtime.heap.intern(b"a" * size * 2)
        needle = runtime.heap.intern(b"a" * (size // 2) + b"b" + b"a" * (size // 2))
        runtime.push()
        before = runtime.loads
        assert runtime("str_contains", hay, needle) == 0
        steps.append(runtime.loads - before)
    assert steps[1] < 2.5 * steps[0]


def test_numbers_become_texts(twins: Twins) -> None:
    for n in (0, 1, 9, 10, 99, 100, 10**8 - 1, 10**8, 10**16 - 1, 10**16, (1 << 63) - 1):
        for number in (n, -n, n + 1 if n < (1 << 63) - 1 else -n - 1):
            twins("str.from", [Int], number)
    rng = random.Random(4)
    for digits in range(1, 19):
        for _ in range(10):
            number = rng.randrange(10**digits)
            twins("str.from", [Int], number)
            twins("str.from", [Int], -number)
    for x in (0.0, -0.0, 0.1, -1e300, 5e-324):
        twins("str.from", [Double], x)
    for truth in (True, False):
        twins("str.from", [Bool], truth)


def test_all_numbers_of_four_digits_are_right(runtime: ReferenceRuntime) -> None:
    for n in range(5_000):
        expected = bytes([int(digit) for digit in f"{n:04}{9_999 - n:04}"])
        assert runtime("digits", n * 10_000 + 9_999 - n) == int.from_bytes(expected, "little")


def test_the_table_grows_as_in_python() -> None:
    twins = Twins()
    for n in range(600):
        twins("str.from", [Int], n * 7919)
    assert twins.native.heap.string_table[1:] == twins.heap.string_table[1:]
    assert twins.native.heap.taken == twins.heap.taken
    twins.close()


def test_constant_strings_are_found() -> None:
    strings = Vec(PageAlloc(), "Q")
    append_string(strings, b"7")
    append_string(strings, b"true")
    constants = memoryview(bytearray(strings.view)).cast("q")
    strings.close()
    runtime = ReferenceRuntime(strings=constants)
    assert runtime("str_from_int", 7) == runtime.constants[0]
    assert runtime("str_from_bool", 1) == runtime.constants[0] + 16
    assert (runtime.heap.used, runtime.heap.allocations) == (0, 0)
    runtime.close()


def test_texts_go_on_in_the_next_chunk() -> None:
    twins = Twins()
    # Too long for the first chunk, so it gets one of its own.
    twins("str.repeat", [Str, Int], "ab", 35_000)
    line = "0123456789" * 100
    for n in range(80):
        twins("str.concat", [Str, Str], line, f"{n}")
    twins("str.from", [Int], 7)
    # Three chunks and the table.
    assert len(twins.native.blocks.live) == 4
    twins.close()


def test_the_limit_of_memory_is_the_same() -> None:
    twins = Twins(limit=1 << 17)
    assert twins("str.repeat", [Str, Int], "a", 1 << 17).startswith("T0003")
    twins("str.repeat", [Str, Int], "b", 1 << 10)
    twins.close()
