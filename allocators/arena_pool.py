"""ArenaPool: arenas to be used and given back, by one thread at a time each.

A stack of idle arenas; the one given back last is taken first. Its parts change by single steps that Python does whole,
so there is no lock to wait for, and a finaliser may give an arena back at any moment. As oxc's AllocatorPool.

All arenas share one parent, behind a `LockedAllocator`, since a chunk can be wanted by several threads at once.

An arena that comes back is reset, and another one continues with the chunk it kept: whoever still holds the old
one cannot reach the next user's memory, it raises `MisuseError` from then on.

What an idle arena keeps is for the reset policy to say: with the default, all of them end up with a chunk that holds
the largest job. `reset.limit(n)` and `reset.recent_peak()` avoid that.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections import deque
from contextlib import suppress
from operator import index as plain_int
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final, Generic, SupportsIndex, TypeVar

from allocators._mypyc import mypyc_attr
from allocators.adaptors.locked import LockedAllocator
from allocators.arena import Arena
from allocators.closing import Closing
from allocators.errors import MisuseError
from allocators.layout import number_text
from allocators.protocol import Allocator
from allocators.reset import NEWEST, ResetPolicy
from allocators.uncopyable import Uncopyable

A = TypeVar("A", bound=Allocator)

#: The largest limit on the arenas of a pool, which keeps a word for each.
MOST_ARENAS: Final = 1 << 20


@mypyc_attr(native_class=True)
class TakenArena(Uncopyable, Generic[A]):
    """An arena out of a pool, until `give_back` or the end of the `with` block, which revokes all its blocks.

    Where the last reference to it is dropped before that, the arena goes back as well.
    """

    __slots__ = ("_arena", "_pool")

    def __init__(self, pool: ArenaPool[A], arena: Arena[LockedAllocator[A]]) -> None:
        self._pool: Final = pool
        self._arena: Arena[LockedAllocator[A]] | None = arena

    @property
    def arena(self) -> Arena[LockedAllocator[A]]:
        """The arena. Raises `MisuseError` once it was given back, and so does the arena itself."""
        arena = self._arena
        if arena is None:
            raise MisuseError("the arena has been given back to its pool")
        return arena

    def give_back(self) -> None:
        """Reset the arena and put it back into its pool; doing so twice is harmless.

        It is back whatever the parent or the policy raises; the first exception is raised at the end.
        """
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

    def __del__(self) -> None:
        if hasattr(self, "_arena"):
            self.give_back()


@mypyc_attr(native_class=True)
class ArenaPool(Closing, Generic[A]):
    """Arenas over `parent`, made when needed; `min_align` and `capacity` are theirs.

    `policy`: how each is reset when it comes back. `most`: how many there may be at once, taken and idle; `take` waits
    where they are all taken. By default there is no limit.
    """

    __slots__ = ("_capacity", "_closed", "_idle", "_min_align", "_most", "_parent", "_policy", "_taken", "_turns")

    def __init__(
        self,
        parent: A,
        *,
        min_align: SupportsIndex = 1,
        capacity: SupportsIndex = 0,
        policy: ResetPolicy = NEWEST,
        most: SupportsIndex | None = None,
    ) -> None:
        limit = None if most is None else plain_int(most)
        if limit is not None and not 1 <= limit <= MOST_ARENAS:
            raise MisuseError(f"a pool can be limited to 1 up to {MOST_ARENAS} arenas, not to {number_text(limit)}")
        self._parent: Final[LockedAllocator[A]] = LockedAllocator(parent)
        self._min_align: Final = plain_int(min_align)
        self._capacity: Final = plain_int(capacity)
        self._policy: Final = policy
        self._most: Final = limit
        #: The arenas that wait, the one given back last at the end, and those in use.
        self._idle: Final[deque[Arena[LockedAllocator[A]]]] = deque()
        self._taken: Final[set[Arena[LockedAllocator[A]]]] = set()
        #: An item for each arena that may be taken, of a pool with a limit. Unlike a condition, a finaliser may use it.
        self._turns: Final[SimpleQueue[None]] = SimpleQueue()
        for _turn in range(limit or 0):
            self._turns.put(None)
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
        return len(self._taken)

    def take(self, timeout: float | None = None) -> TakenArena[A]:
        """An idle arena, or a new one; waits for one if there are `most` already.

        Raises TimeoutError after `timeout` seconds of waiting, `MisuseError` once the pool is closed, and `AllocError`
        where a new arena cannot get its `capacity`.
        """
        self._wait(timeout)
        arena: Arena[LockedAllocator[A]] | None = None
        try:
            if self._closed:
                raise MisuseError("the pool of arenas is closed")
            arena = self._idle_arena()
            if arena is None:
                arena = Arena(self._parent, min_align=self._min_align, capacity=self._capacity)
            taken = TakenArena(self, arena)
        except BaseException:
            if arena is not None:
                self._idle.append(arena)
            self._signal()
            raise
        # From here on an exception drops `taken`, which gives the arena back.
        self._taken.add(arena)
        return taken

    def _wait(self, timeout: float | None) -> None:
        """Wait until an arena may be taken."""
        if self._most is not None:
            try:
                self._turns.get(timeout=timeout)
            except Empty:
                raise TimeoutError(f"all {self._most} arenas were in use for {timeout} seconds") from None

    def _signal(self) -> None:
        """Let the next one take an arena."""
        if self._most is not None:
            self._turns.put(None)

    def _idle_arena(self) -> Arena[LockedAllocator[A]] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _put_back(self, arena: Arena[LockedAllocator[A]]) -> None:
        first: BaseException | None = None
        try:
            arena.reset(self._policy)
        except BaseException as error:
            first = error
            # The policy may have raised, before anything was given back.
            with suppress(BaseException):
                arena.close()
        self._taken.discard(arena)
        self._idle.append(arena._succeed())
        self._signal()
        if self._closed:
            self._close_idle(first)
        elif first is not None:
            raise first

    def _close_idle(self, first: BaseException | None = None) -> None:
        """Close all idle arenas, and then raise the first exception."""
        while (arena := self._idle_arena()) is not None:
            try:
                arena.close()
            except BaseException as error:
                first = first or error
        if first is not None:
            raise first

    def close(self) -> None:
        """Close all idle arenas; one that is still taken is closed when it comes back. Closing twice is harmless.

        Only the owner closes the parent: taken arenas still need it.
        """
        self._closed = True
        # A waiter wakes, and wakes the next one.
        self._signal()
        self._close_idle()

    def __repr__(self) -> str:
        return f"<ArenaPool of {self.taken + self.idle} arenas, {self.idle} idle, over {self._parent!r}>"
