"""ConstantPool: what a program's instructions refer to in the constant area, each thing once.

Ints and Doubles that do not fit an instruction are found again by their eight bytes. Strings are symbols already, so a
table by symbol finds them. The address of a string is known only when all strings are laid out, since the area grows:
until `finish` a constant that is one holds the word that the string starts at in `Code.strings`.

Tables are dense, from the smallest key to the greatest. For Str the keys are addresses, so the strings of a table
should lie close together: they do, unless other code has mentioned some of them before. `worth_a_table` decides.
"""

from __future__ import annotations

from typing import Final

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Interner, Vec
from garden.bytecode.code import Code
from garden.bytecode.ops import TABLE_DEFAULT, TABLE_FIRST, TABLE_SLOTS
from garden.common import WORD_SIZE
from garden.strings import append_string

#: A table may have this many slots, and this many more for each key.
_SPARE_SLOTS: Final = 64
_SLOTS_PER_KEY: Final = 16


@mypyc_attr(native_class=True)
class ConstantPool:
    """Fills `Code.constants` and `Code.strings`. `scratch` holds what is needed to find things again."""

    __slots__ = ("_addresses", "_code", "_places", "_starts", "_string_places", "_wide")

    def __init__(self, code: Code[Allocator], scratch: Allocator) -> None:
        self._code: Final = code
        self._wide: Interner[Allocator] = Interner(scratch)
        self._places: Vec[Allocator] = Vec(scratch, "I")  # index in the constant area by id in `_wide`
        self._starts: Vec[Allocator] = Vec(scratch, "I")  # by symbol: word in `Code.strings` + 1, or 0
        self._string_places: Vec[Allocator] = Vec(scratch, "I")  # by symbol: index in the constant area + 1, or 0
        # Pairs: the first of some constants that are addresses, how many.
        self._addresses: Vec[Allocator] = Vec(scratch, "I")

    def prepare(self) -> None:
        """Take the memory for the symbols of the program."""
        symbols = len(self._code.checked.ast.symbols)
        self._starts.fill_zero(symbols)
        self._string_places.fill_zero(symbols)

    def wide(self, value: int) -> i64:
        """The index of a constant word."""
        id = self._wide.intern(value.to_bytes(WORD_SIZE, "little", signed=True))
        if id == len(self._places):
            constants = self._code.constants
            self._places.append_i64(len(constants))
            constants.append(value)
        return self._places.items[id]

    def string(self, symbol: i64) -> i64:
        """The index of the constant that is the address of a symbol's text."""
        place = self._string_places.items[symbol]
        if place == 0:
            constants = self._code.constants
            place = len(constants) + 1
            self._add_addresses(place - 1, 1)
            constants.append_i64(self.string_start(symbol))
            self._string_places.items[symbol] = place
        return place - 1

    def string_start(self, symbol: i64) -> i64:
        """The word in `Code.strings` at which a symbol's text is laid out."""
        start = self._starts.items[symbol]
        if start == 0:
            text = self._code.checked.ast.symbols.lookup(symbol)
            start = append_string(self._code.strings, text) + 1
            self._starts.items[symbol] = start
        return start - 1

    def _add_addresses(self, place: i64, count: i64) -> None:
        """Make `count` constants from `place` on addresses."""
        self._addresses.append_i64(place)
        self._addresses.append_i64(count)

    def table_word(self, value: i64, is_str: bool) -> i64:
        """What stands for a key or value in a table until `finish`: the word, or where the text of a symbol starts."""
        return self.string_start(value) if is_str else value

    def worth_a_table(self, first: int, last: int, keys: int) -> bool:
        """Whether a table for `keys` keys between these two is dense enough."""
        return last - first < _SPARE_SLOTS + _SLOTS_PER_KEY * keys

    def add_table(self, first: int, last: int, default: int, str_keys: bool, str_values: bool) -> i64:
        """Add a table from key `first` to `last` with the default in all slots, and return its index.

        Keys and values are given as `table_word` has them.
        """
        constants = self._code.constants
        table: i64 = len(constants)
        count = last - first + 1
        constants.reserve(TABLE_SLOTS + count)
        constants.append(1 if str_keys else 0)
        constants.append(first)
        constants.append(count)
        constants.fill(default, 1 + count)
        if str_keys:
            self._add_addresses(table + TABLE_FIRST, 1)
        if str_values:
            self._add_addresses(table + TABLE_DEFAULT, 1 + count)
        return table

    def set_slot(self, table: i64, slot: i64, value: i64) -> None:
        self._code.constants.items[table + TABLE_SLOTS + slot] = value

    def finish(self) -> None:
        """Turn places in `Code.strings` into addresses. Nothing may be added afterwards."""
        address = self._code.strings.address
        constants = self._code.constants.items
        addresses = self._addresses.items
        for index in range(0, len(self._addresses), 2):
            place = addresses[index]
            for item in range(place, place + addresses[index + 1]):
                constants[item] = address + WORD_SIZE * constants[item]

    def close(self) -> None:
        self._addresses.close()
        self._string_places.close()
        self._starts.close()
        self._places.close()
        self._wide.close()
