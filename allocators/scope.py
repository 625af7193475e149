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
from allocators.errors import CorruptionError, MisuseError
from allocators.protocol import Allocator, Resettable, Scoped
from allocators.reset import ResetPolicy
from allocators.uncopyable import Uncopyable

C = TypeVar("C", bound=Scoped)
K = TypeVar("K")


@mypyc_attr(native_class=True)
class Checkpoint(Uncopyable):
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
        self.key = key
        self.index: i64 = index
        self.cursor: i64 = cursor
        self.count: i64 = count
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


def checkpoint_all(adaptor: object, parents: list[Allocator]) -> Checkpoint:
    """A checkpoint of an adaptor with several parents: one of each. `MisuseError` where one of them has none."""
    points: list[Checkpoint] = []
    try:
        for parent in parents:
            points.append(checkpoint_through(adaptor, parent, 0))
    except BaseException:
        for parent, point in zip(parents, points, strict=False):
            restore_through(adaptor, parent, point)
        raise
    return Checkpoint(adaptor, points[0].key, mark=points)


def restore_all(adaptor: object, parents: list[Allocator], point: Checkpoint) -> None:
    """Take all parents back to an adaptor's checkpoint, in their order.

    Where the first refuses, nothing has changed. Any other error is raised when all have been taken back.
    """
    points = point.mark
    if point.allocator is not adaptor or not isinstance(points, list):
        raise MisuseError("the checkpoint is of another allocator")
    first: BaseException | None = None
    changed = False
    for parent, inner in zip(parents, points, strict=True):
        try:
            restore_through(adaptor, parent, inner)
        except BaseException as error:
            if not changed and refused(error):
                raise
            first = first or error
        changed = True
    if first is not None:
        raise first


def check_reset(allocator: object) -> None:
    """Raise `MisuseError` unless an allocator, and what it passes a reset on to, can be reset."""
    if not isinstance(allocator, Resettable):
        raise MisuseError(f"{allocator!r} cannot be reset")
    check = getattr(allocator, "_check_reset", None)
    if check is not None:
        check()


def reset_through(parent: object, policy: ResetPolicy | None = None) -> None:
    """Reset an adaptor's parent, by a policy if one is given. `MisuseError` where it cannot be reset.

    A policy is for chunked allocators, and those that pass it on to them; any other is reset without.
    """
    if not isinstance(parent, Resettable):
        raise MisuseError(f"{parent!r} cannot be reset")
    if policy is None or not _takes_policy(parent):
        parent.reset()
    else:
        reset: Any = parent.reset
        reset(policy)


def _takes_policy(parent: Resettable) -> bool:
    # Only a reset with a policy pays for this import.
    import inspect

    try:
        return bool(inspect.signature(parent.reset).parameters)
    except ValueError:
        # A compiled method does not say; all of ours that have a reset take a policy.
        return True


def reset_all(parents: list[Allocator], policy: ResetPolicy | None = None) -> None:
    """Reset all parents, or none where one of them cannot be. Any other error is raised when all have been reset."""
    for parent in parents:
        check_reset(parent)
    first: BaseException | None = None
    changed = False
    for parent in parents:
        try:
            reset_through(parent, policy)
        except BaseException as error:
            if not changed and refused(error):
                raise
            first = first or error
        changed = True
    if first is not None:
        raise first


def refused(error: BaseException) -> bool:
    """Whether a restore or a reset that ends with an error has changed nothing.

    That is what `MisuseError` says, but for stray writes, which are reported after the deed. All other errors come from
    giving memory back, and are raised when everything has been done.
    """
    return isinstance(error, MisuseError) and not isinstance(error, CorruptionError)


@mypyc_attr(native_class=True)
class Keys:
    """The keys of one allocator that are put `aside`, oldest first; the current one is in the allocator's own hands."""

    __slots__ = ("aside",)

    def __init__(self) -> None:
        self.aside: list[Region] = []

    def put_aside(self, key: Region) -> int:
        """Keep a key for later; returns where it stands."""
        self.aside.append(key)
        return len(self.aside) - 1

    def check(self, allocator: object, point: Checkpoint) -> None:
        """Raise `MisuseError` unless the checkpoint is of this allocator and has not been passed by a restore."""
        aside = self.aside
        if (
            point.allocator is not allocator
            or point.used
            or point.index >= len(aside)
            or aside[point.index] is not point.key
        ):
            raise MisuseError("the checkpoint is of another allocator, or what it remembers is gone already")

    def cut(self, allocator: object, point: Checkpoint) -> list[Region]:
        """Use a checkpoint up: returns its key and those made since, which are not put aside any more.

        Raises `MisuseError` as `check` does.
        """
        self.check(allocator, point)
        since = self.aside[point.index :]
        del self.aside[point.index :]
        point.used = True
        return since

    def take_up(self, point: Checkpoint) -> Region:
        """Close every key made since a checkpoint, and return its own."""
        index: int = point.index
        for key in self.aside[index + 1 :]:
            key.close()
        del self.aside[index:]
        point.used = True
        return point.key

    def taken_and_dead(self, current: Region) -> tuple[int, int]:
        """Bytes of blocks that occupy memory, and how many of those are dead, over all keys."""
        taken: int = current.taken
        dead: int = current.dead
        for key in self.aside:
            taken += key.taken
            dead += key.dead
        return taken, dead

    def close(self) -> None:
        """Close every key that is put aside."""
        for key in self.aside:
            key.close()
        self.aside.clear()


@mypyc_attr(native_class=True)
class Scope(Uncopyable, Generic[C]):
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
class Ledger(Generic[K]):
    """What an allocator must know when it goes back: which live blocks were made since each checkpoint.

    Blocks are told apart by a key that has only blocks of one age: for an adaptor the region that its parent handed
    them out through, for one that never has two blocks at an address the address. Kept only while a checkpoint is open,
    so it costs nothing outside scopes.
    """

    __slots__ = ("_pages", "open")

    def __init__(self) -> None:
        # For each checkpoint, by key: how many blocks and bytes.
        self._pages: list[dict[K, tuple[int, int]]] = []
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

    def added(self, key: K, size: int) -> None:
        """A block was allocated."""
        self._enter(self._pages[-1], key, 1, size)

    def _enter(self, page: dict[K, tuple[int, int]], key: K, more_blocks: int, more_bytes: int) -> None:
        blocks, total = page.get(key, (0, 0))
        if blocks + more_blocks == 0:
            # A key must not outlive its blocks.
            page.pop(key, None)
        else:
            page[key] = (blocks + more_blocks, total + more_bytes)

    def removed(self, key: K, size: int) -> dict[K, tuple[int, int]] | None:
        """A block was deallocated. Returns its page for `put_back`, None if it is from before all checkpoints."""
        for page in reversed(self._pages):
            if key in page:
                self._enter(page, key, -1, -size)
                return page
        return None

    def put_back(self, page: dict[K, tuple[int, int]] | None, key: K, size: int) -> None:
        """A block could not be deallocated after all: it is as old as it was."""
        if page is not None:
            self._enter(page, key, 1, size)

    def resized(self, key: K, size: int, new_key: K, new_size: int) -> None:
        """A block changed its size. With the key that it had it is as old as it was, else it is a new one."""
        if new_key is key:
            for page in reversed(self._pages):
                if key in page:
                    self._enter(page, key, 0, new_size - size)
                    return
        else:
            self.removed(key, size)
            self.added(new_key, new_size)

    def since(self, number: int) -> list[K]:
        """The keys of the blocks that were made since a checkpoint and are still live."""
        return [key for page in self._pages[number:] for key in page]

    def end(self, number: int) -> tuple[int, int]:
        """The parent went back to a checkpoint: how many blocks and bytes have gone that were live till then."""
        return in_all(self.detach(number))

    def detach(self, number: int) -> list[dict[K, tuple[int, int]]]:
        """Take out the pages of the checkpoints from a number on, for `attach`."""
        pages = self._pages[number:]
        del self._pages[number:]
        self.open = bool(self._pages)
        return pages

    def attach(self, pages: list[dict[K, tuple[int, int]]]) -> None:
        """Put back what `detach` has taken out."""
        self._pages += pages
        self.open = bool(self._pages)

    def clear(self) -> None:
        """Everything is gone, and every checkpoint with it."""
        self._pages.clear()
        self.open = False


def in_all(pages: list[dict[K, tuple[int, int]]]) -> tuple[int, int]:
    """How many blocks and bytes stand on pages of a ledger."""
    all_blocks = 0
    all_bytes = 0
    for page in pages:
        for blocks, total in page.values():
            all_blocks += blocks
            all_bytes += total
    return all_blocks, all_bytes
