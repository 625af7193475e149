"""Reset policies: how much memory a chunked allocator keeps when all its blocks are dropped at once.

A policy is a value that `Arena.reset`, `BumpAlloc.reset` and `PoolAllocator.reset` take:

    arena.reset()                        as reset.NEWEST
    arena.reset(reset.NEWEST)            the current chunk, as it is; what oxc and bumpalo do
    arena.reset(reset.ALL)               the whole capacity, in one chunk; Zig's retain_capacity
    arena.reset(reset.limit(1 << 20))    the same, up to a limit; Zig's retain_with_limit
    arena.reset(reset.NONE)              nothing; Zig's free_all
    arena.reset(reset.recent_peak())     what was in use at most, and half as much again; what dvui's arena does

If the newest chunk is just what the policy wants, it stays, and the parent is not asked. Else all chunks
go, and one of the wanted size is allocated; when the parent refuses that, `reset` returns False, and the allocator is
empty and usable.

For a workload that repeats itself, NEWEST settles within a few rounds at one chunk that holds a round; ALL after one.
Both keep what one unusually large round has needed for ever. `recent_peak` lets go of it.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from operator import index as plain_int
from typing import Final, SupportsIndex

from allocators._mypyc import mypyc_attr
from allocators.errors import MisuseError
from allocators.layout import number_text


@mypyc_attr(native_class=True, allow_interpreted_subclasses=True, serializable=True)
class ResetPolicy:
    """Subclass it for a policy of your own: override `kept`."""

    #: How many rounds (from one reset to the next) of peaks `kept` looks at.
    rounds: int

    def __init__(self, rounds: int = 0) -> None:
        self.rounds = rounds

    def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
        """Bytes to keep, at most `capacity`.

        `capacity` is what all chunks hold together, `newest` what the current one holds; `peaks` are the most bytes
        that were in use at once in each of the last `rounds` rounds, the newest last.
        """
        raise NotImplementedError(f"{type(self).__name__} must define kept")


def kept_bytes(policy: ResetPolicy, capacity: int, newest: int, peak: int, peaks: list[int]) -> int:
    """How many bytes the policy keeps; `peak` is that of the round now ending, `peaks` the allocator's list of them.

    Raises `MisuseError` where the policy raises, with nothing changed.
    """
    rounds = [*peaks, peak]
    del rounds[: max(len(rounds) - policy.rounds, 0)]
    try:
        kept = max(min(plain_int(policy.kept(capacity, newest, rounds.copy())), capacity), 0)
    except Exception as error:
        raise MisuseError(f"the policy {policy!r} failed: {error!r}") from error
    peaks[:] = rounds
    return kept


@mypyc_attr(native_class=True)
class _Newest(ResetPolicy):
    def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
        return newest

    def __reduce__(self) -> str:
        return "NEWEST"

    def __repr__(self) -> str:
        return "newest"


@mypyc_attr(native_class=True)
class _Limit(ResetPolicy):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._most: Final = most

    def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
        return min(capacity, self._most)

    def __reduce__(self) -> tuple[type[_Limit], tuple[int]]:
        return _Limit, (self._most,)

    def __repr__(self) -> str:
        return f"limit({self._most})" if self._most else "none"


@mypyc_attr(native_class=True)
class _All(ResetPolicy):
    def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
        return capacity

    def __reduce__(self) -> str:
        return "ALL"

    def __repr__(self) -> str:
        return "all"


@mypyc_attr(native_class=True)
class _RecentPeak(ResetPolicy):
    def __init__(self, rounds: int, least: int) -> None:
        super().__init__(rounds)
        self._least: Final = least

    def kept(self, capacity: int, newest: int, peaks: list[int]) -> int:
        peak = max(peaks)
        return min(capacity, max(peak + peak // 2, self._least))

    def __reduce__(self) -> tuple[type[_RecentPeak], tuple[int, int]]:
        return _RecentPeak, (self.rounds, self._least)

    def __repr__(self) -> str:
        return f"recent_peak({self.rounds}, least={self._least})"


#: Keep the current chunk.
NEWEST: Final[ResetPolicy] = _Newest()
#: Keep the whole capacity.
ALL: Final[ResetPolicy] = _All()
#: Keep nothing.
NONE: Final[ResetPolicy] = _Limit(0)


def limit(most: SupportsIndex) -> ResetPolicy:
    """Keep the whole capacity, up to `most` bytes. Raises `MisuseError` for a negative limit."""
    kept = plain_int(most)
    if kept < 0:
        raise MisuseError(f"a limit must not be negative: {number_text(kept)}")
    return _Limit(kept)


def recent_peak(rounds: SupportsIndex = 1, *, least: SupportsIndex = 1 << 14) -> ResetPolicy:
    """Keep 1.5 times the peak use of the last `rounds` rounds, but at least `least` bytes, and at most the capacity.

    The half is room for rounds that differ a little: they need no memory from the parent. Raises `MisuseError` for less
    than one round.
    """
    count = plain_int(rounds)
    if count < 1:
        raise MisuseError(f"the peak of {number_text(count)} rounds is none")
    return _RecentPeak(count, plain_int(least))
