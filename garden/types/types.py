"""Types: as Python values for people and host packages, and as dense ids in a table for the compiler.

`Type` is an immutable description, spelled as garden spells it. `TypeTable` interns descriptions: equal types have
equal ids, so the compiler compares numbers. Ids of the scalar types are constants; 0 is "no type" (poison).
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Interner

A = TypeVar("A", bound=Allocator, covariant=True)

#: Type ids. Compound types follow.
POISON: Final = 0
VOID: Final = 1
BOOL: Final = 2
INT: Final = 3
DOUBLE: Final = 4
STR: Final = 5

WORD_SIZE: Final = 8


@mypyc_attr(native_class=True)
class Type:
    """A garden type.

    `name` is `Void Bool Int Double Str Array Option Record Foreign`, or `Slot` for a generic parameter. `members` are
    the types inside: of an array or option one, of a record one a field. `labels` are a record's field names, the one
    name of a foreign type, or the one name of a slot.
    """

    __slots__ = ("labels", "members", "name")

    def __init__(self, name: str, members: tuple[Type, ...] = (), labels: tuple[str, ...] = ()) -> None:
        self.name: Final = name
        self.members: Final = members
        self.labels: Final = labels

    @property
    def size(self) -> int:
        """Bytes that a value takes inside a record or an array: nested records are inline, all else is a word."""
        if self.name == "Record":
            total = 0
            for member in self.members:
                total += member.size
            return total
        return 0 if self.name == "Void" else WORD_SIZE

    def field_offset(self, index: int) -> int:
        """Bytes from the start of a record to its field number `index`."""
        total = 0
        for member in self.members[:index]:
            total += member.size
        return total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type):
            return NotImplemented
        return self.name == other.name and self.labels == other.labels and self.members == other.members

    def __hash__(self) -> int:
        return hash((self.name, self.labels, self.members))

    def __str__(self) -> str:
        if self.name == "Record":
            fields = [f"{label}: {member}" for label, member in zip(self.labels, self.members, strict=True)]
            return f"Record<{' '.join(fields)}>"
        if self.name == "Slot":
            return self.labels[0]
        if self.name == "Foreign":
            return f"Foreign<{self.labels[0]}>"
        if self.members:
            return f"{self.name}<{self.members[0]}>"
        return self.name

    def __repr__(self) -> str:
        return f"<Type {self}>"


Void: Final = Type("Void")
Bool: Final = Type("Bool")
Int: Final = Type("Int")
Double: Final = Type("Double")
Str: Final = Type("Str")


def Array(member: Type) -> Type:
    return Type("Array", (member,))


def Option(inside: Type) -> Type:
    return Type("Option", (inside,))


def Record(**fields: Type) -> Type:
    return Type("Record", tuple(fields.values()), tuple(fields))


def Foreign(name: str) -> Type:
    return Type("Foreign", (), (name,))


def Slot(name: str) -> Type:
    return Type("Slot", (), (name,))


@mypyc_attr(native_class=True)
class TypeTable(Generic[A]):
    """Types as ids, interned by their spelling.

    The spelling of a type determines it, so the allocator holds the spellings; the descriptions behind them are as
    many as the program has distinct types, not as it has nodes.
    """

    __slots__ = ("_spellings", "_types")

    def __init__(self, allocator: A) -> None:
        self._spellings: Interner[A] = Interner(allocator)
        self._types: list[Type] = []
        try:
            for type in (Type("?"), Void, Bool, Int, Double, Str):
                self.intern(type)
        except MemoryError:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._types)

    def intern(self, type: Type) -> int:
        """The id of a type, a new one where the type is new."""
        prefix = "'" if type.name == "Slot" else ""
        id = self._spellings.intern(f"{prefix}{type}".encode())
        if id == len(self._types):
            self._types.append(type)
        return id

    def type(self, id: int) -> Type:
        """The description of a type id."""
        return self._types[id]

    def close(self) -> None:
        self._spellings.close()
        self._types.clear()
