"""Checkpoints and scopes: give back at once everything that was allocated since some moment.

A bump-like allocator hands out blocks through a *key*, a Region over its memory. `checkpoint` puts the key aside and
goes on with a fresh one; `restore` closes every key made since and takes up the old one. So all blocks of the scope
are revoked in one step, whatever their number, and none of the older ones.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.block import Region
from allocators.protocol import MisuseError, Resettable, Scoped
from allocators.reset import ResetPolicy

C = TypeVar("C", bound=Scoped)


@mypyc_attr(native_class=True)
class Checkpoint:
    """A moment of one allocator. Opaque: made by `checkpoint`, used up by `restore`.

    `key` stands at `index` among the keys put aside; `cursor`, `count` and `mark` are what the allocator wants to know
    besides. An adaptor's checkpoint has its parent's as `inner`.
    """

    __slots__ = ("allocator", "count", "cursor", "index", "inner", "key", "mark", "used")

    def __init__(
        self,
        allocator: object,
        key: Region,
        *,
        index: int = 0,
        cursor: int = 0,
        count: int = 0,
        mark: object = None,
        inner: Checkpoint | None = None,
    ) -> None:
        self.allocator: Final = allocator
        self.key: Final = key
        self.index: Final[i64] = index
        self.cursor: Final[i64] = cursor
        self.count: Final[i64] = count
        self.mark: Final = mark
        self.inner: Final = inner
        #: Whether it has been restored: its key lives on, and may be put aside again for a later checkpoint.
        self.used = False


def checkpoint_through(adaptor: object, parent: object, count: int) -> Checkpoint:
    """An adaptor's checkpoint: its parent's, and a number of its own. `MisuseError` where the parent has none."""
    if not isinstance(parent, Scoped):
        raise MisuseError(f"{parent!r} has no checkpoints")
    inner = parent.checkpoint()
    return Checkpoint(adaptor, inner.key, count=count, inner=inner)


def restore_through(adaptor: object, parent: object, point: Checkpoint) -> None:
    """Take the parent back to the checkpoint inside an adaptor's."""
    inner = point.inner
    if point.allocator is not adaptor or inner is None or not isinstance(parent, Scoped):
        raise MisuseError("the checkpoint is of another allocator")
    parent.restore(inner)


def reset_through(parent: object, policy: ResetPolicy | None = None) -> None:
    """Reset an adaptor's parent, by a policy if one is given. `MisuseError` where it cannot be reset."""
    if not isinstance(parent, Resettable):
        raise MisuseError(f"{parent!r} cannot be reset")
    if policy is None:
        parent.reset()
    else:
        # Only chunked allocators, and adaptors over them, take a policy.
        reset: Any = parent.reset
        reset(policy)


@mypyc_attr(native_class=True)
class Keys:
    """The keys of one allocator that are put aside, oldest first; the current one is in the allocator's own hands."""

    __slots__ = ("_aside",)

    def __init__(self) -> None:
        self._aside: list[Region] = []

    def put_aside(self, key: Region) -> int:
        """Keep a key for later; returns where it stands."""
        self._aside.append(key)
        return len(self._aside) - 1

    def check(self, allocator: object, point: Checkpoint) -> None:
        """Raise `MisuseError` unless the checkpoint is of this allocator and has not been passed by a restore."""
        aside = self._aside
        if (
            point.allocator is not allocator
            or point.used
            or point.index >= len(aside)
            or aside[point.index] is not point.key
        ):
            raise MisuseError("the checkpoint is of another allocator, or what it remembers is gone already")

    def take_up(self, point: Checkpoint) -> Region:
        """Close every key made since a checkpoint, and return its own."""
        index: int = point.index
        for key in self._aside[index + 1 :]:
            key.close()
        del self._aside[index:]
        point.used = True
        return point.key

    def taken_and_dead(self, current: Region) -> tuple[int, int]:
        """Bytes of blocks that occupy memory, and how many of those are dead, over all keys."""
        taken: int = current.taken
        dead: int = current.dead
        for key in self._aside:
            taken += key.taken
            dead += key.dead
        return taken, dead

    def close(self) -> None:
        """Close every key that is put aside."""
        for key in self._aside:
            key.close()
        self._aside.clear()


@mypyc_attr(native_class=True)
class Scope(Generic[C]):
    """`with allocator.scope():` gives back at its end what was allocated inside, and revokes those blocks."""

    __slots__ = ("_allocator", "_point")

    def __init__(self, allocator: C) -> None:
        self._allocator: Final = allocator
        self._point: Checkpoint | None = None

    def __enter__(self) -> C:
        if self._point is not None:
            raise MisuseError("a scope is entered once at a time")
        self._point = self._allocator.checkpoint()
        return self._allocator

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        point = self._point
        self._point = None
        if point is not None:
            self._allocator.restore(point)


@mypyc_attr(native_class=True)
class Ledger:
    """What an adaptor must know when its parent goes back: which live blocks were made since each checkpoint.

    Kept only while a checkpoint is open, so it costs nothing outside scopes.
    """

    __slots__ = ("_pages", "open")

    def __init__(self) -> None:
        # For each checkpoint, by address: how many blocks and bytes. Blocks of size zero can share an address.
        self._pages: list[dict[int, tuple[int, int]]] = []
        #: Whether any checkpoint is open.
        self.open = False

    @property
    def depth(self) -> int:
        """Number of open checkpoints, which is the number of the next one."""
        return len(self._pages)

    def begin(self) -> None:
        """A checkpoint was taken."""
        self._pages.append({})
        self.open = True

    def added(self, address: int, size: int) -> None:
        """A block was allocated."""
        page = self._pages[-1]
        blocks, total = page.get(address, (0, 0))
        page[address] = (blocks + 1, total + size)

    def removed(self, address: int, size: int) -> None:
        """A block was deallocated, perhaps one from before all checkpoints."""
        for page in reversed(self._pages):
            blocks, total = page.get(address, (0, 0))
            if blocks > 0 and total >= size:
                page[address] = (blocks - 1, total - size)
                return

    def resized(self, address: int, size: int, new_address: int, new_size: int, in_place: bool) -> None:
        """A block changed its size. Where it has not left its place it is as old as it was, else it is a new one."""
        for page in reversed(self._pages):
            blocks, total = page.get(address, (0, 0))
            if blocks > 0 and total >= size:
                page[address] = (blocks - 1, total - size)
                if in_place:
                    blocks, total = page.get(new_address, (0, 0))
                    page[new_address] = (blocks + 1, total + new_size)
                    return
                break
        if not in_place:
            self.added(new_address, new_size)

    def end(self, number: int) -> tuple[int, int]:
        """The parent went back to a checkpoint: how many blocks and bytes have gone that were live till then."""
        gone_blocks = 0
        gone_bytes = 0
        for page in self._pages[number:]:
            for blocks, total in page.values():
                gone_blocks += blocks
                gone_bytes += total
        del self._pages[number:]
        self.open = bool(self._pages)
        return gone_blocks, gone_bytes

    def clear(self) -> None:
        """Everything is gone, and every checkpoint with it."""
        self._pages.clear()
        self.open = False
