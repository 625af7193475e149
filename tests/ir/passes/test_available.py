"""The map of what is available, against a dict, and the trees of blocks."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from allocators import Arena, MetricAllocator, PageAlloc
from garden.ir.parser import close_parsed, parse_ir
from garden.ir.passes.available import Available, Trees, hash_of
from garden.ir.passes.counts import Counts
from garden.semantics import word_of


@pytest.mark.parametrize("seed", range(4))
def test_what_was_added_is_there_until_it_is_forgotten(seed: int) -> None:
    random = Random(seed)
    memory = MetricAllocator(Arena(PageAlloc()))
    available = Available(memory)
    model: list[tuple[tuple[int, int, int, int], int]] = []
    marks = [0]
    assert available.get(1, 2, 3, 4) == 0
    for step in range(1, 4000):
        key = (random.randrange(4) << 40, random.randrange(30), random.randrange(30), random.choice((0, -1, 1 << 62)))
        known = dict(reversed(model)).get(key, 0) if step % 7 == 0 else None
        if known is not None:
            assert available.get(*key) == known
        chance = random.random()
        if chance < 0.01:
            marks.append(len(available))
        elif chance < 0.02:
            mark = marks.pop() if len(marks) > 1 else 0
            available.forget(mark)
            del model[mark:]
        else:
            before = len(available)
            found = available.add(*key, step)
            if found == 0:
                model.append((key, step))
            assert len(available) == before + (found == 0) == len(model)
    for key, value in model:
        assert available.get(*key) == value
    available.close()
    assert memory.live_blocks == 0


def half_words(number: int) -> int:
    return number << 32 if number < 1 << 31 else (number << 32) - (1 << 64)


@pytest.mark.parametrize(
    "key",
    [
        lambda n: (1, 0, 0, half_words(n)),
        lambda n: (1, 0, 0, word_of(n / 2)),
        lambda n: (1, 0, 0, word_of(1 + n * 2.0**-52)),
        lambda n: (n << 32, 0, 0, 0),
        lambda n: (n << 8, n, 0, 0),
        lambda n: (1, n, n, 0),
        lambda n: (1, n << 16, 0, 0),
        lambda n: (1, n % 64, n // 64, n << 3),
    ],
)
def test_no_pattern_of_keys_needs_many_probes(key: Callable[[int], tuple[int, int, int, int]]) -> None:
    # Where n hashes meet by chance, some n * n / 2 / 2**20 pairs have their low 20 bits in common.
    count = 4000
    seen = len({hash_of(*key(number)) & 0xFFFFF for number in range(count)})
    assert seen > count - 4 * count * count / 2**21


def test_a_tree_has_the_blocks_that_one_edge_leads_to() -> None:
    text = """
        fn f1(%v0) {
            b0(%v0:Bool):
                br %v0, b1, b4
            b1:
                br %v0, b2, b3
            b2:
                jmp b5
            b3:
                ret
            b4:
                br %v0, b5, b5
            b5:
                br %v0, b6, b7
            b6:
                jmp b7
            b7:
                ret
        }
        fn f2() {
            b0:
                ret
        }"""
    memory = MetricAllocator(Arena(PageAlloc()))
    ir = parse_ir(text, memory)
    counts = Counts(ir, memory)
    trees = Trees(ir, counts)
    seen = []
    while trees.advance():
        seen.append((trees.block - 1, trees.mark))
        trees.descend(trees.block, 0, 0)
    # By block, and the block that it knows all of, counted from 1.
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 2), (4, 1), (5, 0), (6, 6), (7, 0), (8, 0)]
    trees.close()
    counts.close()
    close_parsed(ir)
    assert memory.live_blocks == 0
