"""The parents of an allocator."""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from allocators.protocol import Allocator


def chain(allocator: object) -> list[object]:
    """An allocator, its parent, its parent's parent, and so on, depth first where one has several.

    An allocator names its parents by the attributes `parent`, `first` and `second`, or `bins`. Each appears once.
    """
    found: list[object] = []
    todo = [allocator]
    while todo:
        current = todo.pop()
        if any([current is other for other in found]):
            continue
        found.append(current)
        below: list[object] = list(dict(getattr(current, "bins", {})).values())
        for name in ("first", "second", "parent"):
            below.append(getattr(current, name, None))
        todo.extend([other for other in reversed(below) if isinstance(other, Allocator)])
    return found
