"""Types: as Python values for people and host packages, and as dense ids in a table for the compiler.

`Type` is an immutable description, spelled as garden spells it. `TypeTable` interns descriptions: equal types have
equal ids, so the compiler compares numbers. Ids of the scalar types are constants; 0 is "no type" (poison).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeAlias, TypeVar

from allocators import Allocator
from allocators._mypyc import mypyc_attr
from allocators.collections import Interner
from allocators.uncopyable import Uncopyable
from garden.common import WORD_SIZE

A = TypeVar("A", bound=Allocator, covariant=True)

#: Type ids. Compound types follow.
POISON: Final = 0
VOID: Final = 1
BOOL: Final = 2
INT: Final = 3
DOUBLE: Final = 4
STR: Final = 5

#: Nested records are inline, so a record that holds another one twice doubles with every line of a program.
MAX_RECORD_SIZE: Final = 1 << 20
#: Most fields of a record, those of records inside it included: empty records have no size.
MAX_RECORD_FIELDS: Final = MAX_RECORD_SIZE // WORD_SIZE
#: Instructions have 31 bits for the size of an object. Records inside an array are inline too.
MAX_ARRAY_SIZE: Final = (1 << 31) - 1

#: Records of up to this many words are copied word by word, larger ones as a block.
FEW_WORDS: Final = 4

#: Characters of a type that are shown.
MAX_SPELLING: Final = 4000


@mypyc_attr(native_class=True)
class Type:
    """A garden type.

    `name` is `Void Bool Int Double Str Array Option Record Foreign`, or `Slot` for a generic parameter. `members` are
    the types inside: of an array or option one, of a record one a field. `labels` are a record's field names, the one
    name of a foreign type, or the one name of a slot. `size` is how many bytes a value takes inside a record or an
    array: nested records are inline, all else is a word. `field_count` is how many fields a record has, those of
    records inside it included; 1 for anything else. `generic` tells whether a slot is the type or inside it.

    Types share their members, so a type may be exponentially larger written out than kept. Nothing here recurses.
    """

    __slots__ = ("_hash", "_indexes", "_offsets", "field_count", "generic", "labels", "members", "name", "size")

    def __init__(self, name: str, members: tuple[Type, ...] = (), labels: tuple[str, ...] = ()) -> None:
        self.name: Final = name
        self.members: Final = members
        self.labels: Final = labels
        self._hash: Final = hash((name, labels, members))
        self._indexes: dict[str, int] = {}
        offsets = []
        size = 0
        fields = 0
        generic = name == "Slot"
        for member in members:
            offsets.append(size)
            size += member.size
            fields += max(1, member.field_count)
            generic = generic or member.generic
        self._offsets: Final = offsets
        if name != "Record":
            size = 0 if name == "Void" else WORD_SIZE
            fields = 1
        self.field_count: Final[int] = fields
        self.size: Final[int] = size
        self.generic: Final[bool] = generic

    def field_index(self, label: str) -> int:
        """The number of a record's field, -1 where it has none of this name."""
        if not self._indexes:
            self._indexes = {known: index for index, known in enumerate(self.labels)}
        return self._indexes.get(label, -1)

    def field_offset(self, index: int) -> int:
        """Bytes from the start of a record to its field number `index`."""
        return self._offsets[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Type):
            return NotImplemented
        pairs = [(self, other)]
        # Members may be shared, so that there are far more ways to them than pairs of them.
        compared: set[tuple[int, int]] = set()
        while pairs:
            left, right = pairs.pop()
            if left is right or (id(left), id(right)) in compared:
                continue
            if left._hash != right._hash or left.name != right.name or left.labels != right.labels:
                return False
            if len(left.members) != len(right.members):
                return False
            compared.add((id(left), id(right)))
            pairs.extend(zip(left.members, right.members, strict=True))
        return True

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        """The type as garden spells it, cut after `MAX_SPELLING` characters."""
        text = _opening(self)
        # Types that are open, each with how many of its members have been written.
        open = [(self, 0)]
        while open and len(text) <= MAX_SPELLING:
            type, count = open.pop()
            if count == len(type.members):
                text += ">" if type.members or type.name == "Record" else ""
                continue
            open.append((type, count + 1))
            open.append((type.members[count], 0))
            if type.name == "Record":
                text += f"{' ' if count else ''}{type.labels[count]}: "
            text += _opening(type.members[count])
        return text if len(text) <= MAX_SPELLING else f"{text[:MAX_SPELLING]}..."

    def __reduce__(self) -> tuple[Callable[[list[_Row]], Type], tuple[list[_Row]]]:
        # As rows rather than one inside the other: pickling recurses.
        rows: list[_Row] = []
        numbers: dict[Type, int] = {}
        pending = [self]
        while pending:
            type = pending[-1]
            missing = [member for member in type.members if member not in numbers]
            if missing:
                pending.extend(missing)
                continue
            pending.pop()
            if type not in numbers:
                numbers[type] = len(rows)
                rows.append((type.name, tuple([numbers[member] for member in type.members]), type.labels))
        return _of_rows, (rows,)

    def __repr__(self) -> str:
        return f"<Type {self}>"


def _opening(type: Type) -> str:
    """What a type is spelled with up to its members."""
    if type.name == "Slot":
        return type.labels[0]
    if type.name == "Foreign":
        return f"Foreign<{type.labels[0]}>"
    return f"{type.name}<" if type.members or type.name == "Record" else type.name


def signature_text(name: str, parameters: Iterable[tuple[str, Type]], result: Type) -> str:
    """The head of a function, such as `fn add(a:Int b:Int) Int`, cut somewhat after `MAX_SPELLING` characters."""
    text = f"fn {name}("
    between = ""
    for parameter, type in parameters:
        if len(text) > MAX_SPELLING:
            return f"{text} ..."
        text += f"{between}{parameter}:{type}"
        between = " "
    return f"{text})" if result.name == "Void" else f"{text}) {result}"


#: A type as its name, the rows of its members, and its labels.
_Row: TypeAlias = tuple[str, tuple[int, ...], tuple[str, ...]]


def _of_rows(rows: list[_Row]) -> Type:
    """The type in the last row; each stands behind its members."""
    types: list[Type] = []
    for name, members, labels in rows:
        types.append(Type(name, tuple([types[member] for member in members]), labels))
    return types[-1]


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
class TypeTable(Uncopyable, Generic[A]):
    """Types as ids, interned by what they are made of: name, labels, and the ids of their members.

    That is what the allocator holds, so two types are compared without looking inside their members. The descriptions
    beside it are as many as the program has distinct types, not as it has nodes.
    """

    __slots__ = ("_keys", "_members", "_types", "_words")

    def __init__(self, allocator: A) -> None:
        self._keys: Interner[A] = Interner(allocator)
        self._types: list[Type] = []
        self._members: list[tuple[int, ...]] = []
        self._words: list[tuple[int, ...]] = []
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
        if not type.members:
            return self.compound(type.name, [], type.labels)
        # Members before what they are inside of; types may share them, so by identity.
        ids: dict[int, int] = {}
        pending = [type]
        while pending:
            top = pending[-1]
            missing = [member for member in top.members if id(member) not in ids]
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                ids[id(top)] = self.compound(top.name, [ids[id(member)] for member in top.members], top.labels)
        return ids[id(type)]

    def compound(self, name: str, members: list[int], labels: tuple[str, ...] = ()) -> int:
        """The id of the type of this name with members of these ids."""
        key = array("I", [len(members), *members]).tobytes() + " ".join([name, *labels]).encode()
        new_id = self._keys.intern(key)
        if new_id == len(self._types):
            type = Type(name, tuple([self._types[member] for member in members]), labels)
            self._types.append(type)
            self._members.append(tuple(members))
            words: tuple[int, ...] = (new_id,)
            if name == "Record":
                words = ()
                if type.size <= FEW_WORDS * WORD_SIZE:
                    for member in members:
                        words += self._words[member]
            self._words.append(words)
        return new_id

    def type(self, id: int) -> Type:
        """The description of a type id."""
        return self._types[id]

    def words(self, id: int) -> tuple[int, ...]:
        """The ids of the types of a value's words where it is laid out inline; none for more than `FEW_WORDS`."""
        return self._words[id]

    def members(self, id: int) -> tuple[int, ...]:
        """The ids of the types inside a type."""
        return self._members[id]

    def close(self) -> None:
        self._keys.close()
        self._types.clear()
        self._members.clear()
        self._words.clear()
