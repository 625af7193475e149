"""Backtrace: from pcs to the names of functions, for every engine that executes bytecode."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from allocators import Allocator
from garden.bytecode.code import Code


def function_names(code: Code[Allocator], pcs: Iterable[int]) -> tuple[str, ...]:
    """The names of the functions that these pcs are in; those that are in none are left out."""
    functions = code.functions
    symbols = code.checked.ast.symbols
    names = functions.column(0)
    ends = functions.column(2)
    rows = sorted(range(1, len(functions)), key=functions.column(1).__getitem__)
    firsts = [functions.column(1)[row] for row in rows]
    # What a run starts with is a call of it.
    entry = code.words.data[code.entry] >> 32
    known: dict[int, str] = {}
    trace = []
    for pc in pcs:
        index = bisect_right(firsts, pc) - 1
        # What calls the entry is in no function.
        if index >= 0 and pc < ends[rows[index]]:
            row = rows[index]
            name = known.get(row)
            if name is None:
                name = "entry" if firsts[index] == entry else symbols.lookup(names[row]).decode()
                known[row] = name
            trace.append(name)
    return tuple(trace)
