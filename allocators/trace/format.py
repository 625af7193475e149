"""Trace formats: recorded allocator operations, in this package's own format and three common ones.

The own format is text: the line `allocators trace 1`, then one operation per line. Blocks are numbered 0, 1, 2, ... in
order of allocation; sizes and alignments are in bytes.

    a ID SIZE ALIGN     allocate
    z ID SIZE ALIGN     allocate_zeroed
    f ID                deallocate
    g ID SIZE ALIGN     grow to SIZE
    G ID SIZE ALIGN     grow_zeroed
    s ID SIZE ALIGN     shrink
    x                   reset: ends every block
    c                   checkpoint; open ones are numbered 0, 1, ... from the oldest
    r NUMBER            restore to that checkpoint: ends the blocks made since
    ! OP SIZE ALIGN     operation OP failed: out of memory
    # ...               a comment; empty lines are ignored too

The others: wee_alloc's `.trace` (`Alloc(64),` and `Free(3),`, where 3 is the fourth allocation of the file), the malloc
lab's `.rep` (a header of two or four numbers, then `a id size`, `r id size`, `f id`; `f -1` frees null, and `r` of an
unknown id allocates), and the CSV logs of RMM. None of them records alignments.

Traces are read lazily, one line at a time; only one number is kept for each live block.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from allocators.errors import LayoutError, TraceError
from allocators.layout import Layout

#: First line of the own format.
HEADER: Final = "allocators trace 1"

# Operations, by their letter in the own format.
ALLOCATE: Final = "a"
ALLOCATE_ZEROED: Final = "z"
DEALLOCATE: Final = "f"
GROW: Final = "g"
GROW_ZEROED: Final = "G"
SHRINK: Final = "s"
RESET: Final = "x"
CHECKPOINT: Final = "c"
RESTORE: Final = "r"
FAILURE: Final = "!"
#: Grow or shrink, for formats that do not distinguish them.
RESIZE: Final = "realloc"

FORMATS: Final = ("allocators", "wee", "rep", "rmm")

#: The id for operations without a block.
NO_ID: Final = -1


class Operation:
    """One step of a trace: its kind (a letter above, or `RESIZE`), the block id, and the layout.

    For `RESTORE` the id is the number of the checkpoint; operations without a layout have an empty one.
    """

    __slots__ = ("id", "kind", "layout")

    def __init__(self, kind: str, id: int = NO_ID, layout: Layout | None = None) -> None:
        self.kind: Final = kind
        self.id: Final = id
        self.layout: Final = Layout(0, 1) if layout is None else layout

    def __repr__(self) -> str:
        return f"<Operation {self.kind} {self.id} {self.layout!r}>"


def read_trace(lines: Iterable[str], *, name: str = "trace", format: str = "", align: int = 8) -> Iterator[Operation]:
    """The operations of a trace in any of `FORMATS`, detected from its first line unless `format` is given.

    `align` is the alignment of every block in formats without alignments. Raises `TraceError` at the first line that is
    malformed or refers to a block that is not live.
    """
    reader = _Reader(lines, name, align)
    if not format:
        format = _format_of(reader)
    if format == "allocators":
        return _read_own(reader)
    if format == "wee":
        return _read_wee(reader)
    if format == "rep":
        return _read_rep(reader)
    if format == "rmm":
        return _read_rmm(reader)
    raise ValueError(f"unknown trace format {format!r}, want one of {', '.join(FORMATS)}")


class _Reader:
    """Reads numbered lines and tracks the live blocks."""

    def __init__(self, lines: Iterable[str], name: str, align: int) -> None:
        self._lines = iter(lines)
        self._pushed_back: str | None = None
        self._name = name
        self._align = align
        self.line = 0
        #: By id: the number of open checkpoints when the block was made.
        self.live: dict[int, int] = {}
        self.checkpoints = 0

    def next(self) -> str | None:
        """The next line that is neither empty nor a comment, stripped; None at the end."""
        if self._pushed_back is not None:
            text = self._pushed_back
            self._pushed_back = None
            return text
        for line in self._lines:
            self.line += 1
            text = line.strip()
            if text and not text.startswith("#"):
                return text
        return None

    def push_back(self, text: str) -> None:
        """Make `next` return this line again."""
        self._pushed_back = text

    def error(self, message: str) -> TraceError:
        return TraceError(self._name, max(self.line, 1), message)

    def number(self, text: str, what: str, base: int = 10) -> int:
        try:
            number = int(text, base)
        except ValueError:
            shown = repr(text if len(text) <= 40 else f"{text[:40]}...")
            raise self.error(f"{what} must be a number, not {shown}") from None
        if number < 0:
            raise self.error(f"{what} must not be negative: {number}")
        return number

    def layout(self, size: int, align: int | None = None) -> Layout:
        try:
            return Layout(size, self._align if align is None else align)
        except LayoutError as error:
            raise self.error(str(error)) from None

    def allocate(self, id: int, layout: Layout, kind: str = ALLOCATE) -> Operation:
        if id in self.live:
            raise self.error(f"block {id} is allocated while it is live")
        self.live[id] = self.checkpoints
        return Operation(kind, id, layout)

    def deallocate(self, id: int) -> Operation:
        self.check_live(id, "freed")
        del self.live[id]
        return Operation(DEALLOCATE, id)

    def check_live(self, id: int, done: str) -> None:
        if id not in self.live:
            raise self.error(f"block {id} is {done} but is not live")

    def restore(self, number: int) -> Operation:
        if number >= self.checkpoints:
            raise self.error(f"checkpoint {number} is restored, but {self.checkpoints} are open")
        self.checkpoints = number
        for id, depth in list(self.live.items()):
            if depth > number:
                del self.live[id]
        return Operation(RESTORE, number)


def _format_of(reader: _Reader) -> str:
    first = reader.next()
    if first is None:
        raise reader.error("the trace is empty")
    reader.push_back(first)
    if first == HEADER:
        return "allocators"
    if first.startswith(("Alloc(", "Free(")):
        return "wee"
    if first.isdecimal():
        return "rep"
    if set(first.split(",")) >= _RMM_COLUMNS:
        return "rmm"
    raise reader.error(f"no known trace format begins with {first[:40]!r}")


def _read_own(reader: _Reader) -> Iterator[Operation]:
    if reader.next() != HEADER:
        raise reader.error(f"the first line must be {HEADER!r}")
    while True:
        text = reader.next()
        if text is None:
            return
        words = text.split()
        kind = words[0]
        want = _WORDS.get(kind)
        if want is None:
            raise reader.error(f"unknown operation {kind!r}, want one of {' '.join(_WORDS)}")
        if len(words) != want:
            raise reader.error(f"{kind!r} wants {want - 1} arguments, not {len(words) - 1}")
        if kind == FAILURE:
            if words[1] not in _WITH_LAYOUT:
                raise reader.error(f"{words[1]!r} cannot be refused, only {' '.join(_WITH_LAYOUT)}")
            yield Operation(FAILURE, NO_ID, _own_layout(reader, words))
        elif kind in _WITH_LAYOUT:
            id = reader.number(words[1], "the id of a block")
            layout = _own_layout(reader, words)
            if kind in (ALLOCATE, ALLOCATE_ZEROED):
                yield reader.allocate(id, layout, kind)
            else:
                reader.check_live(id, "resized")
                yield Operation(kind, id, layout)
        elif kind == DEALLOCATE:
            yield reader.deallocate(reader.number(words[1], "the id of a block"))
        elif kind == RESTORE:
            yield reader.restore(reader.number(words[1], "the number of a checkpoint"))
        else:
            if kind == CHECKPOINT:
                reader.checkpoints += 1
            else:
                reader.live.clear()
                reader.checkpoints = 0
            yield Operation(kind)


def _own_layout(reader: _Reader, words: list[str]) -> Layout:
    return reader.layout(reader.number(words[2], "a size"), reader.number(words[3], "an alignment"))


_WITH_LAYOUT: Final = (ALLOCATE, ALLOCATE_ZEROED, GROW, GROW_ZEROED, SHRINK)
# Number of words in a line, by its first word.
_WORDS: Final = {
    ALLOCATE: 4,
    ALLOCATE_ZEROED: 4,
    DEALLOCATE: 2,
    GROW: 4,
    GROW_ZEROED: 4,
    SHRINK: 4,
    RESET: 1,
    CHECKPOINT: 1,
    RESTORE: 2,
    FAILURE: 4,
}


def _read_wee(reader: _Reader) -> Iterator[Operation]:
    allocations = 0
    while True:
        text = reader.next()
        if text is None:
            return
        name, separator, rest = text.rstrip(",").partition("(")
        if not separator or not rest.endswith(")") or name not in ("Alloc", "Free"):
            raise reader.error(f"want Alloc(size) or Free(index), not {text!r}")
        number = reader.number(rest[:-1], "a size" if name == "Alloc" else "the index of an allocation")
        if name == "Alloc":
            yield reader.allocate(allocations, reader.layout(number))
            allocations += 1
        elif number >= allocations:
            raise reader.error(f"allocation {number} is freed, but only {allocations} have been made")
        else:
            yield reader.deallocate(number)


def _read_rep(reader: _Reader) -> Iterator[Operation]:
    header = []
    text = reader.next()
    while text is not None and text.isdecimal():
        header.append(reader.number(text, "the header"))
        text = reader.next()
    if len(header) not in (2, 4):
        raise reader.error(f"want a header of two numbers (ids, operations) or four, not {len(header)}")
    promised = header[1] if len(header) == 2 else header[2]
    operations = 0
    while text is not None:
        operations += 1
        words = text.split()
        kind = words[0]
        if kind not in ("a", "r", "f") or len(words) != (2 if kind == "f" else 3):
            raise reader.error(f"want 'a id size', 'r id size' or 'f id', not {text!r}")
        if kind == "f":
            if words[1] != "-1":
                yield reader.deallocate(reader.number(words[1], "an id"))
        else:
            id = reader.number(words[1], "an id")
            layout = reader.layout(reader.number(words[2], "a size"))
            if kind == "a" or id not in reader.live:
                yield reader.allocate(id, layout)
            else:
                yield Operation(RESIZE, id, layout)
        text = reader.next()
    if operations != promised:
        raise reader.error(f"the header promises {promised} operations, but there are {operations}")


_RMM_COLUMNS: Final = frozenset({"Action", "Pointer", "Size"})


def _read_rmm(reader: _Reader) -> Iterator[Operation]:
    columns = (reader.next() or "").split(",")
    if not set(columns) >= _RMM_COLUMNS:
        raise reader.error("the first line must name the columns Action, Pointer and Size")
    action_at = columns.index("Action")
    pointer_at = columns.index("Pointer")
    size_at = columns.index("Size")
    # Live blocks of size zero can share an address.
    ids: dict[int, list[int]] = {}
    allocations = 0
    while True:
        text = reader.next()
        if text is None:
            return
        fields = text.split(",")
        if len(fields) != len(columns):
            raise reader.error(f"want {len(columns)} fields, not {len(fields)}")
        action = fields[action_at]
        layout = reader.layout(reader.number(fields[size_at], "a size"))
        if action == "allocate failure":
            yield Operation(FAILURE, NO_ID, layout)
            continue
        pointer = reader.number(fields[pointer_at], "a pointer", 16)
        same = ids.get(pointer)
        if action == "allocate":
            ids.setdefault(pointer, []).append(allocations)
            yield reader.allocate(allocations, layout)
            allocations += 1
        elif action not in ("free", "deallocate"):
            raise reader.error(f"unknown action {action!r}, want allocate, free or allocate failure")
        elif not same:
            raise reader.error(f"{fields[pointer_at]} is freed but is not live")
        else:
            id = same.pop()
            if not same:
                del ids[pointer]
            yield reader.deallocate(id)
