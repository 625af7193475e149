"""ArenaPool: arenas to be used and given back, by one thread at a time each.

A stack of idle arenas behind a lock; the one given back last is taken first. An arena is reset before the lock is
taken, so threads wait for each other only for the moment of a push or a pop. As oxc's AllocatorPool.

All arenas share one parent, behind a `LockedAllocator`, since a chunk can be wanted by several threads at once.

What an idle arena keeps is for the reset policy to say: with the default, all of them end up with a chunk that holds
the largest job. `reset.limit(n)` and `reset.recent_peak()` avoid that.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Generic, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.adaptors.locked import LockedAllocator
from allocators.arena import Arena
from allocators.fork import fork_safe_lock
from allocators.protocol import Allocator, MisuseError
from allocators.reset import NEWEST, ResetPolicy

A = TypeVar("A", bound=Allocator)


@mypyc_attr(native_class=True)
class TakenArena(Generic[A]):
    """An arena out of a pool, until `give_back` or the end of the `with` block, which revokes all its blocks."""

    __slots__ = ("_arena", "_pool")

    def __init__(self, pool: ArenaPool[A], arena: Arena[LockedAllocator[A]]) -> None:
        self._pool: Final = pool
        self._arena: Arena[LockedAllocator[A]] | None = arena

    @property
    def arena(self) -> Arena[LockedAllocator[A]]:
        """The arena. Raises `MisuseError` once it was given back."""
        arena = self._arena
        if arena is None:
            raise MisuseError("the arena has been given back to its pool")
        return arena

    def give_back(self) -> None:
        """Reset the arena and put it back into its pool; doing so twice is harmless."""
        arena = self._arena
        self._arena = None
        if arena is not None:
            self._pool._put_back(arena)

    def __enter__(self) -> Arena[LockedAllocator[A]]:
        return self.arena

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()


@mypyc_attr(native_class=True)
class ArenaPool(Generic[A]):
    """Arenas over `parent`, made when needed; `min_align` and `capacity` are theirs.

    `policy`: how each is reset when it comes back. `most`: how many there may be at once, taken and idle; `take` waits
    where they are all taken. By default there is no limit.
    """

    __slots__ = ("_capacity", "_changed", "_closed", "_idle", "_made", "_min_align", "_most", "_parent", "_policy")

    def __init__(
        self,
        parent: A,
        *,
        min_align: int = 1,
        capacity: int = 0,
        policy: ResetPolicy = NEWEST,
        most: int | None = None,
    ) -> None:
        if most is not None and most < 1:
            raise MisuseError(f"a pool of at most {most} arenas has none")
        self._parent: Final[LockedAllocator[A]] = LockedAllocator(parent)
        self._min_align: Final = min_align
        self._capacity: Final = capacity
        self._policy: Final = policy
        self._most: Final = most
        #: Guards what follows, and tells those who wait that an arena came back or the pool was closed.
        self._changed: Final = threading.Condition(fork_safe_lock())
        self._idle: list[Arena[LockedAllocator[A]]] = []
        self._made = 0
        self._closed = False

    @property
    def parent(self) -> A:
        return self._parent.parent

    @property
    def idle(self) -> int:
        """Number of arenas that wait in the pool."""
        return len(self._idle)

    @property
    def taken(self) -> int:
        """Number of arenas that are in use."""
        return self._made - len(self._idle)

    def take(self, timeout: float | None = None) -> TakenArena[A]:
        """An idle arena, or a new one; waits for one if there are `most` already.

        Raises TimeoutError after `timeout` seconds of waiting, `MisuseError` once the pool is closed, and `AllocError`
        where a new arena cannot get its `capacity`.
        """
        with self._changed:
            if not self._changed.wait_for(self._available, timeout):
                raise TimeoutError(f"all {self._made} arenas were in use for {timeout} seconds")
            if self._closed:
                raise MisuseError("the pool of arenas is closed")
            if self._idle:
                return TakenArena(self, self._idle.pop())
            self._made += 1
        try:
            return TakenArena(self, Arena(self._parent, min_align=self._min_align, capacity=self._capacity))
        except BaseException:
            self._lose()
            raise

    def _available(self) -> bool:
        return self._closed or bool(self._idle) or self._most is None or self._made < self._most

    def _put_back(self, arena: Arena[LockedAllocator[A]]) -> None:
        try:
            arena.reset(self._policy)
        except BaseException:
            self._lose()
            raise
        with self._changed:
            if not self._closed:
                self._idle.append(arena)
                self._changed.notify()
                return
            self._made -= 1
        arena.close()

    def _lose(self) -> None:
        """One arena less."""
        with self._changed:
            self._made -= 1
            self._changed.notify()

    def close(self) -> None:
        """Close all idle arenas; one that is still taken is closed when it comes back. Closing twice is harmless.

        The parent is closed by nobody but its owner: taken arenas still need it.
        """
        with self._changed:
            self._closed = True
            idle = self._idle
            self._idle = []
            self._made -= len(idle)
            self._changed.notify_all()
        for arena in idle:
            arena.close()

    def __enter__(self) -> ArenaPool[A]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ArenaPool of {self._made} arenas, {len(self._idle)} idle, over {self.parent!r}>"
