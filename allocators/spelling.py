"""Spelling: suggests the name that was probably meant."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from typing import Final

#: Longer names are not compared: the cost is the product of the lengths.
MAX_LENGTH: Final = 48


def closest(name: str, candidates: list[str]) -> str:
    """The candidate nearest to `name`, the first of equals; empty if none is near.

    A candidate is near if it takes no more edits than a third of the name's characters, or one edit.
    """
    best = ""
    allowed = max(1, len(name) // 3)
    if len(name) > MAX_LENGTH:
        return best
    for candidate in candidates:
        if candidate != name and abs(len(candidate) - len(name)) <= allowed:
            edits = distance(name, candidate)
            if edits <= allowed and edits < max(len(name), len(candidate)):
                best = candidate
                if edits == 1:
                    break
                allowed = edits - 1
    return best


def distance(left: str, right: str) -> int:
    """The number of insertions, deletions, replacements and swaps of neighbours that turn `left` into `right`.

    The optimal string alignment distance: no part is edited twice.
    """
    before: list[int] = []
    above = list(range(len(right) + 1))
    for row in range(1, len(left) + 1):
        current = [row]
        for column in range(1, len(right) + 1):
            same = left[row - 1] == right[column - 1]
            edits = min(above[column] + 1, current[column - 1] + 1, above[column - 1] + (0 if same else 1))
            if row > 1 and column > 1 and left[row - 1] == right[column - 2] and left[row - 2] == right[column - 1]:
                edits = min(edits, before[column - 2] + 1)
            current.append(edits)
        before = above
        above = current
    return above[len(right)]
