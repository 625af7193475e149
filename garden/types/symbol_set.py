"""SymbolSet: a set of symbols that empties in constant time, for finding duplicate names."""

from __future__ import annotations

from typing import Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Vec

S = TypeVar("S", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class SymbolSet(Generic[S]):
    """For each symbol the round in which it was added last; emptying the set begins the next round."""

    __slots__ = ("_round", "_rounds")

    def __init__(self, scratch: S) -> None:
        self._rounds: Vec[S] = Vec(scratch, "I")
        self._round: i64 = 1

    def reserve(self, symbols: i64) -> None:
        """Make room for `symbols` symbols."""
        self._rounds.fill(0, symbols)

    def clear(self) -> None:
        self._round += 1

    def add(self, symbol: i64) -> bool:
        """Add a symbol; returns whether it is new."""
        if self._rounds.items[symbol] == self._round:
            return False
        self._rounds.items[symbol] = self._round
        return True

    def __contains__(self, symbol: i64) -> bool:
        return symbol < len(self._rounds) and bool(self._rounds.items[symbol] == self._round)

    def close(self) -> None:
        self._rounds.close()
