"""Checkpoints and scopes: give back at once everything that was allocated since some moment.

A bump-like allocator hands out blocks through a *lease* of its memory. `checkpoint` puts the lease aside and continues
with a fresh one; `restore` closes every lease made since and takes up the old one. So all blocks of the scope are
revoked in one step, whatever their number, and none of the older ones.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final, Generic, TypeVar

from allocators._mypyc import i64, mypyc_attr
from allocators.block import Lease
from allocators.errors import CorruptionError, MisuseError
from allocators.protocol import Allocator, Resettable, Scoped
from allocators.reset import ResetPolicy
from allocators.uncopyable import Uncopyable

C = TypeVar("C", bound=Scoped)
K = TypeVar("K")


@mypyc_attr(native_class=True)
class Checkpoint(Uncopyable):
    """A moment of one allocator. Opaque: made by `checkpoint`, used up by `restore`.

    Each allocator that has checkpoints has its own class of them, with what it must remember.
    """

    __slots__ = ("allocator",)

    def __init__(self, allocator: object) -> None:
        self.allocator: Final = allocator


@mypyc_attr(native_class=True)
class LeaseCheckpoint(Checkpoint):
    """A moment of an allocator that hands out blocks through `lease`, which stands at `index` among those put aside."""

    __slots__ = ("index", "lease", "used")

    def __init__(self, allocator: object, lease: Lease) -> None:
        super().__init__(allocator)
        self.lease = lease
        self.index: i64 = 0
        #: Whether it has been restored: its lease lives on, and may be put aside again for a later checkpoint.
        self.used = False


@mypyc_attr(native_class=True)
class AdaptorCheckpoint(Checkpoint):
    """The parent's checkpoint, and a number of the adaptor's own."""

    __slots__ = ("inner", "number")

    def __init__(self, adaptor: object, inner: Checkpoint, number: int) -> None:
        super().__init__(adaptor)
        self.inner: Final = inner
        self.number: Final[i64] = number


@mypyc_attr(native_class=True)
class JointCheckpoint(Checkpoint):
    """One checkpoint of each parent."""

    __slots__ = ("points",)

    def __init__(self, adaptor: object, points: list[Checkpoint]) -> None:
        super().__init__(adaptor)
        self.points: Final = points


def _not_ours() -> MisuseError:
    return MisuseError("the checkpoint is of another allocator")


def _checkpoint_of(parent: object) -> Checkpoint:
    if not isinstance(parent, Scoped):
        raise MisuseError(f"{parent!r} has no checkpoints")
    return parent.checkpoint()


def checkpoint_through(adaptor: object, parent: object, number: int) -> AdaptorCheckpoint:
    """An adaptor's checkpoint: its parent's, and its own number. `MisuseError` if the parent has none."""
    return AdaptorCheckpoint(adaptor, _checkpoint_of(parent), number)


def number_of(adaptor: object, point: Checkpoint) -> int:
    """The number in an adaptor's checkpoint. `MisuseError` for that of another allocator."""
    if not isinstance(point, AdaptorCheckpoint) or point.allocator is not adaptor:
        raise _not_ours()
    return point.number


def restore_through(adaptor: object, parent: object, point: Checkpoint) -> None:
    """Take the parent back to the checkpoint inside an adaptor's."""
    if not isinstance(point, AdaptorCheckpoint) or point.allocator is not adaptor or not isinstance(parent, Scoped):
        raise _not_ours()
    parent.restore(point.inner)


def checkpoint_all(adaptor: object, parents: list[Allocator]) -> JointCheckpoint:
    """A checkpoint of an adaptor with several parents: one of each. `MisuseError` where one of them has none."""
    points: list[Checkpoint] = []
    try:
        for parent in parents:
            points.append(_checkpoint_of(parent))
    except BaseException:
        for parent, point in zip(parents, points, strict=False):
            _restore(parent, point)
        raise
    return JointCheckpoint(adaptor, points)


def _restore(parent: object, point: Checkpoint) -> None:
    assert isinstance(parent, Scoped)
    parent.restore(point)


def restore_all(adaptor: object, parents: list[Allocator], point: Checkpoint) -> None:
    """Take all parents back to an adaptor's checkpoint, in their order.

    Where the first refuses, nothing has changed. Any other error is raised when all have been taken back.
    """
    if not isinstance(point, JointCheckpoint) or point.allocator is not adaptor:
        raise _not_ours()
    first: BaseException | None = None
    changed = False
    for parent, inner in zip(parents, point.points, strict=True):
        try:
            _restore(parent, inner)
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

    That is what `MisuseError` says unless it is `done`, but for stray writes, which are reported afterwards. All
    other errors come from giving memory back, and are raised when everything has been done.
    """
    return isinstance(error, MisuseError) and not error.done and not isinstance(error, CorruptionError)


@mypyc_attr(native_class=True)
class Leases:
    """The leases of one allocator that are put `aside`, oldest first; the allocator itself has the current one."""

    __slots__ = ("aside",)

    def __init__(self) -> None:
        self.aside: list[Lease] = []

    def put_aside(self, point: LeaseCheckpoint) -> None:
        """Keep the lease of a new checkpoint for later."""
        point.index = len(self.aside)
        self.aside.append(point.lease)

    def cut(self, allocator: object, point: Checkpoint) -> list[Lease]:
        """Use a checkpoint up: returns its lease and those made since, which are not put aside any more.

        Raises `MisuseError` unless the checkpoint is of this allocator and no restore has gone back further.
        """
        aside = self.aside
        if (
            not isinstance(point, LeaseCheckpoint)
            or point.allocator is not allocator
            or point.used
            or point.index >= len(aside)
            or aside[point.index] is not point.lease
        ):
            raise MisuseError("the checkpoint is of another allocator, or what it remembers is gone already")
        since = aside[point.index :]
        del aside[point.index :]
        point.used = True
        return since

    def taken_and_dead(self, current: Lease) -> tuple[int, int]:
        """Bytes of blocks that occupy memory, and how many of those are dead, over all leases."""
        taken: int = current.taken
        dead: int = current.dead
        for lease in self.aside:
            taken += lease.taken
            dead += lease.dead
        return taken, dead

    def close(self) -> None:
        """Close every lease that is put aside."""
        for lease in self.aside:
            lease.close()
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
