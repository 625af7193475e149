"""Which name was meant."""

from __future__ import annotations

import pytest

from allocators.spelling import MAX_LENGTH, closest, distance


@pytest.mark.parametrize(
    ("left", "right", "edits"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("abc", "ab", 1),
        ("abc", "xabc", 1),
        ("abc", "axc", 1),
        ("abcd", "acbd", 1),
        ("kitten", "sitting", 3),
        ("ca", "abc", 3),
    ],
)
def test_distance_counts_edits_and_swaps(left, right, edits):
    assert distance(left, right) == edits
    assert distance(right, left) == edits


def test_the_nearest_candidate_is_found():
    assert closest("pritnln", ["print", "println", "flush"]) == "println"
    assert closest("totals", ["total", "totalk"]) == "total"


def test_nothing_is_suggested_where_nothing_is_near():
    assert closest("x", ["y", "z"]) == ""
    assert closest("area", ["shape", "are_they_equal"]) == ""
    assert closest("same", ["same"]) == ""
    assert closest("a" * (MAX_LENGTH + 1), ["a" * MAX_LENGTH]) == ""
