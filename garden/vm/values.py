"""Values: between the words of a running program and Python values, by type.

| type | Python value |
| --- | --- |
| Void | None (to a word: anything, and the word is 0) |
| Bool | bool |
| Int | int; outside 64 bits OverflowError |
| Double | float; to a word also int |
| Str | str |
| `Array<T>` | list; to a word any sequence but str and bytes |
| `Option<T>` | None or the value; an option inside an option loses which of the two was None |
| Record | dict by field name, or an instance of a dataclass that is asked for; to a word either |
| Foreign | any object |

A value of another Python type raises TypeError. Nothing here recurses on garden types, which may nest deeply.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_type_hints

from allocators import Allocator
from allocators.layout import number_text
from garden.semantics import MAX_INT, MIN_INT, double_of, word_of
from garden.types.types import Type
from garden.vm.heap import Heap

#: A value that is yet to be written: its type, itself, and the address.
_Task = tuple[Type, Any, int]
#: A value that is yet to be read: its type, its word, and the container and key that it belongs to.
_Place = tuple[Type, int, Any, Any]


def to_word(heap: Heap[Allocator], type: Type, value: object) -> int:
    """The word of a Python value; strings and all that is compound go to the heap.

    Raises TypeError, OverflowError, or UnicodeEncodeError for lone surrogates, where the value is not of the type, and
    `Trap` T0003 where the heap is full.
    """
    pending: list[_Task] = []
    word = _word(heap, type, value, pending)
    while pending:
        inner, part, address = pending.pop()
        _write(heap, inner, part, address, pending)
    return word


def _word(heap: Heap[Allocator], type: Type, value: Any, pending: list[_Task]) -> int:
    """The word of a value, whose insides are left to `pending`."""
    name = type.name
    if name == "Int":
        if not isinstance(value, int) or isinstance(value, bool):
            raise _mismatch(type, value)
        if not MIN_INT <= value <= MAX_INT:
            raise OverflowError(f"{number_text(value)} is not an Int of 64 bits")
        return value
    if name == "Str":
        if not isinstance(value, str):
            raise _mismatch(type, value)
        return heap.intern(value.encode())
    if name == "Double":
        if not isinstance(value, (float, int)) or isinstance(value, bool):
            raise _mismatch(type, value)
        return word_of(float(value))
    if name == "Bool":
        if not isinstance(value, bool):
            raise _mismatch(type, value)
        return 1 if value else 0
    if name == "Void":
        return 0
    if name == "Foreign":
        return heap.foreign_word(value)
    if name == "Record":
        address = heap.alloc(type.size)
        pending.append((type, value, address))
        return address
    if name != "Option" and name != "Array":
        raise TypeError(f"{type} is no type that values have")
    inner = type.members[0]
    if name == "Option":
        if value is None:
            return 0
        address = heap.alloc(inner.size)
        pending.append((inner, value, address))
        return address
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray, memoryview)):
        raise _mismatch(type, value)
    count = len(value)
    address = heap.alloc(8 + count * inner.size)
    heap.store(address, count)
    for index in range(count):
        _put(heap, inner, value[index], address + 8 + index * inner.size, pending)
    return address


def _put(heap: Heap[Allocator], type: Type, value: Any, address: int, pending: list[_Task]) -> None:
    """Lay a value out at an address, at once where it has no insides."""
    if type.members:
        pending.append((type, value, address))
    else:
        _write(heap, type, value, address, pending)


def _write(heap: Heap[Allocator], type: Type, value: Any, address: int, pending: list[_Task]) -> None:
    """Lay a value out at an address, its insides later."""
    if type.size == 0:
        return
    if type.name != "Record":
        heap.store(address, _word(heap, type, value, pending))
        return
    labels = type.labels
    fields = value if isinstance(value, Mapping) else _fields(type, value)
    if len(fields) != len(labels):
        raise _mismatch(type, value)
    for index, label in enumerate(labels):
        if label not in fields:
            raise _mismatch(type, value)
        _put(heap, type.members[index], fields[label], address + type.field_offset(index), pending)


def _fields(type: Type, value: Any) -> Mapping[str, Any]:
    """The fields of a record that a dataclass instance has; it may have more."""
    if not hasattr(value, "__dataclass_fields__") or isinstance(value, _CLASS):
        raise _mismatch(type, value)
    return {label: getattr(value, label) for label in type.labels if hasattr(value, label)}


def from_word(heap: Heap[Allocator], type: Type, word: int, into: object = None) -> Any:
    """The Python value of a word.

    An array or record that occurs more than once in the value is one Python object, as it is one in the program.
    `into` is a dataclass for records to become instances of, or an annotation with one, such as `list[Point]`; records
    inside follow the annotations of its fields. `Trap` T0005 where a word is not what its type says.
    """
    root: list[Any] = [None]
    seen: dict[tuple[int, int], Any] = {}
    pending: list[_Place] = [(type, word, root, 0)]
    while pending:
        inner, part, container, key = pending.pop()
        name = inner.name
        if name == "Option":
            if part:
                _read(heap, inner.members[0], part, container, key, pending)
        elif name == "Array" or name == "Record":
            identity = (id(inner), part)
            known = seen.get(identity)
            if known is None:
                known = _array(heap, inner, part, pending) if name == "Array" else _record(heap, inner, part, pending)
                seen[identity] = known
            container[key] = known
        else:
            container[key] = _scalar(heap, inner, part)
    return root[0] if into is None else construct(into, root[0])


def _scalar(heap: Heap[Allocator], type: Type, word: int) -> Any:
    name = type.name
    if name == "Int":
        return word
    if name == "Str":
        return heap.str_text(word)
    if name == "Double":
        return double_of(word)
    if name == "Bool":
        return word != 0
    if name == "Foreign":
        return heap.foreign_object(word)
    if name != "Void":
        raise TypeError(f"{type} is no type that values have")
    return None


def _array(heap: Heap[Allocator], type: Type, address: int, pending: list[_Place]) -> list[Any]:
    member = type.members[0]
    count = heap.load(address)
    # Looks whether so many are there, before a list of that length is made.
    words = heap.words(address + 8, count * member.size >> 3)
    if member.name == "Int":
        return words.tolist()
    array: list[Any] = [None] * count
    for index in range(count):
        _read(heap, member, address + 8 + index * member.size, array, index, pending)
    return array


def _record(heap: Heap[Allocator], type: Type, address: int, pending: list[_Place]) -> dict[str, Any]:
    record: dict[str, Any] = dict.fromkeys(type.labels)
    for index, label in enumerate(type.labels):
        _read(heap, type.members[index], address + type.field_offset(index), record, label, pending)
    return record


def _read(heap: Heap[Allocator], type: Type, address: int, container: Any, key: Any, pending: list[_Place]) -> None:
    """Put the value that is laid out at an address where it belongs, its insides later."""
    name = type.name
    if name == "Record":
        pending.append((type, address, container, key))
    elif name == "Array" or name == "Option":
        pending.append((type, heap.load(address), container, key))
    elif type.size:
        container[key] = _scalar(heap, type, heap.load(address))


def construct(annotation: Any, value: Any) -> Any:
    """Make dataclass instances of the dicts in a value, as an annotation says; what it does not speak of stays."""
    if isinstance(value, list):
        members = get_args(annotation)
        return [construct(members[0], member) for member in value] if members else value
    if not isinstance(value, dict):
        return value
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, _CLASS) and hasattr(candidate, "__dataclass_fields__"):
            hints = get_type_hints(candidate)
            return candidate(**{label: construct(hints.get(label), field) for label, field in value.items()})
    return value


def _mismatch(type: Type, value: object) -> TypeError:
    try:
        shown = reprlib.repr(value)
    except ValueError:
        # Python refuses to print ints of any length.
        shown = number_text(value) if isinstance(value, int) else f"a {value.__class__.__name__} with a huge int in it"
    return TypeError(f"want {type}, got {shown}")


_CLASS: Final = type
