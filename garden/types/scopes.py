"""Scopes: what names mean at one place of a program.

Layout: a row (symbol, name token, type, shadowed row) for every binding in scope, inner scopes last; for each symbol
the row that it means now, 0 for none; and the number of rows at which each open scope began. Declaring and finding are
one read each, and leaving a scope undoes its rows.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Table, Vec

S = TypeVar("S", bound=Allocator, covariant=True)


@mypyc_attr(native_class=True)
class Scopes(Generic[S]):
    """Bindings of symbols below `reserve`'s count. Row 0 is unused."""

    __slots__ = ("_capacity", "_marks", "_meaning", "_rows", "_shadowed", "_symbols", "_tokens", "_types")

    def __init__(self, scratch: S) -> None:
        self._meaning: Vec[S] = Vec(scratch, "I")
        self._marks: Vec[S] = Vec(scratch, "I")
        self._rows: Table[S] = Table(scratch, "IIII")
        self._capacity: i64 = 0
        self._read_columns()

    def reserve(self, symbols: i64) -> None:
        """Make room for `symbols` symbols."""
        self._meaning.fill(0, symbols)
        self._rows.append(0, 0, 0, 0)
        self._read_columns()

    def _read_columns(self) -> None:
        self._symbols, self._tokens, self._types, self._shadowed = self._rows.typed_columns
        self._capacity = self._rows.capacity

    def enter(self) -> None:
        """Open a scope inside the present one."""
        self._marks.append_i64(len(self._rows))

    def leave(self) -> None:
        """Close the innermost scope: what it declared is gone, what it shadowed is back."""
        mark: i64 = self._marks.pop_i64()
        meaning = self._meaning.items
        for row in range(len(self._rows) - 1, mark - 1, -1):
            meaning[self._symbols[row]] = self._shadowed[row]
        self._rows.truncate(mark)

    def declare(self, symbol: i64, token: i64, type: i64) -> None:
        """Let `symbol` mean a binding of this type, named by `token`, in the innermost scope."""
        row = self._rows.add()
        if row >= self._capacity:
            self._read_columns()
        meaning = self._meaning.items
        self._symbols[row] = symbol
        self._tokens[row] = token
        self._types[row] = type
        self._shadowed[row] = meaning[symbol]
        meaning[symbol] = row

    def find(self, symbol: i64) -> i64:
        """The row that `symbol` means, 0 where it means nothing."""
        row: i64 = self._meaning.items[symbol]
        return row

    def token(self, row: i64) -> i64:
        """The token that names a binding."""
        token: i64 = self._tokens[row]
        return token

    def type(self, row: i64) -> i64:
        """The type id of a binding."""
        type: i64 = self._types[row]
        return type

    def symbols(self) -> list[int]:
        """The symbols of all bindings, innermost first."""
        return [self._symbols[row] for row in range(len(self._rows) - 1, 0, -1)]

    def close(self) -> None:
        self._rows.close()
        self._marks.close()
        self._meaning.close()
