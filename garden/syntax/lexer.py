"""The lexer: source bytes to a table of tokens, in one pass.

A loop over the bytes with a table of 256 byte classes, because that is fastest in both flavours: compiled, finding a
token costs some 25 ns where a regular expression costs 400, and uncompiled the two are equal. Identifiers, strings and
doc comments are interned. A bounded dictionary of the words met first, keywords included, spares most identifiers the
way to the interner.

The lexer never gives up: it reports what it cannot read and continues after it. In place of a malformed number or an
unterminated string it leaves a token of that kind, so that the parser has nothing to complain about. Only a source
that is no UTF-8 has no tokens at all but `EOF`.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from allocators import Allocator
from allocators._mypyc import i64, mypyc_attr
from allocators.collections import Interner
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax.tokens import (
    ASSIGN,
    BANG,
    DOC,
    DOUBLE,
    EOF,
    EQ,
    GE,
    GT,
    IDENT,
    IMPORT,
    INT,
    KEYWORDS,
    LE,
    LPAREN,
    LT,
    NE,
    SPELLINGS,
    STRING,
    Tokens,
)

A = TypeVar("A", bound=Allocator, covariant=True)

# Classes of bytes. Letters and digits come first: a word continues while the class is at most _DIGIT.
_LETTER: Final = 0
_DIGIT: Final = 1
_BLANK: Final = 2
_MARK: Final = 3
_QUOTE: Final = 4
_HASH: Final = 5
_UNKNOWN: Final = 6

_DOT: Final = 0x2E
_EQUALS: Final = 0x3D
_BANG: Final = 0x21
#: Bytes from here on are those of characters outside of ASCII.
_NOT_ASCII: Final = 0x80

#: How many words, and of at most how many bytes, are remembered beside the interner.
_KNOWN_WORDS: Final = 1024
_KNOWN_WORD_BYTES: Final = 32
#: In the dictionary of known words, what identifiers map to: their symbol plus this. Keywords map to their kind.
_SYMBOLS: Final = 256


def _byte_classes() -> bytes:
    classes = bytearray([_UNKNOWN]) * 256
    for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_":
        classes[byte] = _LETTER
    for byte in b"0123456789":
        classes[byte] = _DIGIT
    for byte in b" \t\r\n":
        classes[byte] = _BLANK
    for kind, spelling in SPELLINGS.items():
        if LPAREN <= kind < IMPORT:
            classes[ord(spelling[0])] = _MARK
    classes[ord('"')] = _QUOTE
    classes[ord("#")] = _HASH
    return bytes(classes)


def _mark_kinds() -> bytes:
    kinds = bytearray(128)
    for kind, spelling in SPELLINGS.items():
        if LPAREN <= kind < IMPORT and len(spelling) == 1:
            kinds[ord(spelling)] = kind
    return bytes(kinds)


_CLASSES: Final = _byte_classes()
#: The kind of every mark of one byte.
_MARKS: Final = _mark_kinds()
#: The kind of the mark that each of these becomes when `=` follows.
_BEFORE_EQUALS: Final[dict[int, int]] = {ASSIGN: EQ, BANG: NE, LT: LE, GT: GE}

_HELPS: Final[dict[str, str]] = {
    ",": "blanks separate arguments, members and fields",
    ";": "nothing needs to end an expression",
    "'": 'strings stand between `"`',
}


@mypyc_attr(native_class=True)
class Lexer(Generic[A]):
    """Makes tokens over `allocator`, and appends what is wrong to `diagnostics`."""

    __slots__ = ("allocator", "diagnostics")

    def __init__(self, allocator: A, diagnostics: list[Diagnostic]) -> None:
        self.allocator: Final[A] = allocator
        self.diagnostics: Final = diagnostics

    def lex(self, source: Source, symbols: Interner[Allocator]) -> Tokens[A]:
        """The tokens of `source`; their texts go to `symbols`. Raises `AllocError`, and then keeps no memory."""
        tokens = Tokens(self.allocator)
        try:
            if self._is_utf8(source.text):
                self._scan(source.text, tokens, symbols)
            end = len(source.text)
            tokens.add(EOF, end, end, 0)
        except BaseException:
            tokens.close()
            raise
        return tokens

    def _is_utf8(self, text: bytes) -> bool:
        if text.isascii():
            return True
        try:
            text.decode()
        except UnicodeDecodeError as error:
            self._report("E0100", f"the source is not valid UTF-8: {error.reason}", error.start, error.end)
            return False
        return True

    def _scan(self, text: bytes, tokens: Tokens[A], symbols: Interner[Allocator]) -> None:
        known = dict(KEYWORDS)
        length: i64 = len(text)
        position: i64 = 0
        while position < length:
            start = position
            form: i64 = _CLASSES[text[start]]
            position = start + 1
            if form == _BLANK:
                while position < length and _CLASSES[text[position]] == _BLANK:
                    position += 1
            elif form == _LETTER:
                while position < length and _CLASSES[text[position]] <= _DIGIT:
                    position += 1
                if position < length and text[position] >= _NOT_ASCII:
                    behind = self._foreign_name(text, start, tokens, symbols)
                    if behind > start:
                        position = behind
                        continue
                word = text[start:position]
                found: i64 = known.get(word, -1)
                if found < 0:
                    found = symbols.intern(word) + _SYMBOLS
                    if position - start <= _KNOWN_WORD_BYTES and len(known) < _KNOWN_WORDS:
                        known[word] = found
                if found < _SYMBOLS:
                    tokens.add(found, start, position, 0)
                else:
                    tokens.add(IDENT, start, position, found - _SYMBOLS)
            elif form == _MARK:
                kind: i64 = _MARKS[text[start]]
                if position < length and text[position] == _EQUALS and kind in _BEFORE_EQUALS:
                    kind = _BEFORE_EQUALS[kind]
                    position += 1
                tokens.add(kind, start, position, 0)
            elif form == _DIGIT:
                position = self._number(text, start, tokens)
            elif form == _QUOTE:
                position = self._string(text, start, tokens, symbols)
            elif form == _HASH:
                end: i64 = text.find(b"\n", start)
                if end < 0:
                    end = length
                if position < end and text[position] == _BANG:
                    tokens.add(DOC, start, end, symbols.intern(_doc_text(text[start:end])))
                position = end
            else:
                position = self._foreign_name(text, start, tokens, symbols)
                if position == start:
                    position = self._unknown(text, start)

    def _number(self, text: bytes, start: i64, tokens: Tokens[A]) -> i64:
        """Add the number that starts here, and return its end. A dot before a name is not part of a number."""
        length: i64 = len(text)
        position = start
        dots: i64 = 0
        # Where the second dot stands: what comes before it is a number.
        valid: i64 = -1
        while position < length:
            if text[position] == _DOT:
                if position + 1 < length and _CLASSES[text[position + 1]] == _LETTER:
                    break
                dots += 1
                if dots == 2:
                    valid = position
            elif _CLASSES[text[position]] != _DIGIT:
                break
            position += 1
        if dots > 1:
            number = text[start:position].decode()
            self._report("E0103", f"`{number}` is not a number: it has {dots} dots", start, position)
            tokens.add(DOUBLE, start, valid, 0)
        else:
            tokens.add(DOUBLE if dots else INT, start, position, 0)
        return position

    def _string(self, text: bytes, start: i64, tokens: Tokens[A], symbols: Interner[Allocator]) -> i64:
        """Add the string that starts here, and return its end: without a closing quote that is the end of the line."""
        quote: i64 = text.find(b'"', start + 1)
        if quote >= 0:
            tokens.add(STRING, start, quote + 1, symbols.intern(text[start + 1 : quote]))
            return quote + 1
        end: i64 = text.find(b"\n", start)
        if end < 0:
            end = len(text)
        self._report("E0102", "unterminated string", start, end, label='no `"` follows')
        tokens.add(STRING, start, end, symbols.intern(text[start + 1 : end]))
        return end

    def _foreign_name(self, text: bytes, start: i64, tokens: Tokens[A], symbols: Interner[Allocator]) -> i64:
        """Report and add the name that starts here with letters from outside of ASCII, and return its end.

        If there is none, that is `start`.
        """
        length: i64 = len(text)
        position = start
        is_ascii = True
        while position < length:
            byte: i64 = text[position]
            if byte >= _NOT_ASCII:
                after: i64 = position + (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
                if not ("_" + text[position:after].decode()).isidentifier():
                    break
                is_ascii = False
                position = after
            elif _CLASSES[byte] <= _DIGIT:
                position += 1
            else:
                break
        if is_ascii:
            return start
        help = "names consist of ASCII letters, digits and `_`"
        name = text[start:position]
        self._report("E0101", f"unknown characters in the name `{name.decode()}`", start, position, help=help)
        tokens.add(IDENT, start, position, symbols.intern(name))
        return position

    def _unknown(self, text: bytes, start: i64) -> i64:
        """Report the characters from here on that begin no token, as one, and return where they end."""
        length: i64 = len(text)
        position = start
        while position < length and _CLASSES[text[position]] == _UNKNOWN:
            position += 1
        unknown = text[start:position].decode()
        shown = unknown if unknown.isprintable() else ascii(unknown)[1:-1]
        noun = "character" if len(unknown) == 1 else "characters"
        help = _HELPS.get(unknown)
        self._report("E0101", f"unknown {noun} `{shown}`", start, position, help=help)
        return position

    def _report(self, code: str, message: str, start: int, end: int, label: str = "", help: str | None = None) -> None:
        helps = () if help is None else (help,)
        self.diagnostics.append(Diagnostic(code, message, start, end - start, label=label, helps=helps))


def _doc_text(comment: bytes) -> bytes:
    """What a doc comment says: without `#!`, one space after it, and the carriage return of a CRLF line end."""
    return comment[2:].removeprefix(b" ").rstrip(b"\r")
