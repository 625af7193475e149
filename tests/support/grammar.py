"""The grammar of `docs/language/grammar.md`, and a recogniser that knows nothing but what stands there.

It reads the page as a parsing expression grammar: choices in order, options and repetitions greedy, as the page says.
What the page says in words stands here once more, as functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "language" / "grammar.md"

_SYMBOL = re.compile(r'\s*("[^"]+"|\?.+?\?(?=\s|$)|[a-z_]+|[|=()\[\]{}])')


class Expression(NamedTuple):
    """`what` is text, words, production, choice, row, option or repetition."""

    what: str
    text: str = ""
    parts: tuple[Expression, ...] = ()


def productions(section: str) -> dict[str, str]:
    """The productions below a heading of the page: by name, their right sides."""
    page = PAGE.read_text()
    (block,) = re.findall(rf"^## {section}\n.*?```ebnf\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    return dict(line.split(" = ", 1) for line in block.splitlines())


class _Reader:
    """Reads the right side of a production."""

    def __init__(self, text: str) -> None:
        self.symbols = []
        position = 0
        while position < len(text):
            found = _SYMBOL.match(text, position)
            assert found, f"unreadable: {text[position:]}"
            self.symbols.append(found[1])
            position = found.end()
        self.at = 0

    def read(self) -> Expression:
        expression = self._choice()
        assert self.at == len(self.symbols), self.symbols[self.at :]
        return expression

    def _choice(self) -> Expression:
        rows = [self._row()]
        while self.at < len(self.symbols) and self.symbols[self.at] == "|":
            self.at += 1
            rows.append(self._row())
        return rows[0] if len(rows) == 1 else Expression("choice", "", tuple(rows))

    def _row(self) -> Expression:
        parts = []
        while self.at < len(self.symbols) and self.symbols[self.at] not in "|)]}":
            parts.append(self._part())
        assert parts
        return parts[0] if len(parts) == 1 else Expression("row", "", tuple(parts))

    def _part(self) -> Expression:
        symbol = self.symbols[self.at]
        self.at += 1
        if symbol[0] == '"':
            return Expression("text", symbol[1:-1])
        if symbol[0] == "?":
            return Expression("words", symbol[1:-1].strip())
        if symbol in "([{":
            inside = self._choice()
            assert self.symbols[self.at] == ")]}"["([{".index(symbol)]
            self.at += 1
            if symbol == "(":
                return inside
            return Expression("option" if symbol == "[" else "repetition", "", (inside,))
        return Expression("production", symbol)


class Derivation(NamedTuple):
    """Where a match ends, and the matches of productions that it consists of."""

    end: int
    parts: tuple[tuple[str, Derivation], ...]


class Grammar:
    """Some sections of the page over some input.

    `literal(text, at)` and the functions in `words` (by what the page says), and in `terminals` (by the names of
    productions of other sections), tell how much of the input at a place is that: a number of units, or -1.
    """

    def __init__(
        self,
        sections: Sequence[str],
        literal: Callable[[str, int], int],
        words: dict[str, Callable[[int], int]],
        terminals: dict[str, Callable[[int], int]],
    ) -> None:
        self.productions = {
            name: _Reader(text).read() for section in sections for name, text in productions(section).items()
        }
        self.literal = literal
        self.words = words
        self.terminals = terminals
        self._known: dict[tuple[str, int], Derivation | None] = {}

    def match(self, name: str, at: int) -> Derivation | None:
        """What the production matches at a place, if it does."""
        key = name, at
        if key not in self._known:
            if name in self.terminals:
                self._known[key] = self._units(at, self.terminals[name](at))
            else:
                # Left recursion would come back here, and fail.
                self._known[key] = None
                self._known[key] = self._match(self.productions[name], at)
        return self._known[key]

    def _units(self, at: int, count: int) -> Derivation | None:
        return None if count < 0 else Derivation(at + count, ())

    def _match(self, expression: Expression, at: int) -> Derivation | None:
        what, text, parts = expression
        if what == "text":
            return self._units(at, self.literal(text, at))
        if what == "words":
            return self._units(at, self.words[text](at))
        if what == "production":
            found = self.match(text, at)
            return None if found is None else Derivation(found.end, ((text, found),))
        if what == "choice":
            for part in parts:
                found = self._match(part, at)
                if found is not None:
                    return found
            return None
        used: list[tuple[str, Derivation]] = []
        if what == "row":
            for part in parts:
                found = self._match(part, at)
                if found is None:
                    return None
                at = found.end
                used.extend(found.parts)
            return Derivation(at, tuple(used))
        # An option or a repetition.
        while True:
            found = self._match(parts[0], at)
            if found is None or found.end == at:
                break
            at = found.end
            used.extend(found.parts)
            if what == "option":
                break
        return Derivation(at, tuple(used))


def used(name: str, derivation: Derivation) -> Iterator[str]:
    """The productions in a derivation."""
    pending = [(name, derivation)]
    while pending:
        name, derivation = pending.pop()
        yield name
        pending.extend(derivation.parts)


class Token(NamedTuple):
    kind: str
    start: int
    end: int


class Characters:
    """The characters of a program as the page divides them: bytes, each as the character of that number."""

    def __init__(self, source: bytes) -> None:
        self.text = source.decode("latin-1")
        self.used: set[str] = set()
        reader = _Reader(productions("Tokens")["keyword"]).read()
        self.keywords = {part.text for part in reader.parts}
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
        self.grammar = Grammar(
            ["Tokens"],
            lambda text, at: len(text) if self.text.startswith(text, at) else -1,
            {
                "A to Z, a to z, or _": lambda at: self._one(at, letters),
                "0 to 9": lambda at: self._one(at, "0123456789"),
                '"': lambda at: self._one(at, '"'),
                "a space, a tab, a carriage return or a line feed": lambda at: self._one(at, " \t\r\n"),
                "any character but a quote": lambda at: self._but(at, '"'),
                "any character but a line feed": lambda at: self._but(at, "\n"),
                'no "!" here': lambda at: -1 if self._one(at, "!") == 1 else 0,
                "no letter here": lambda at: -1 if self._one(at, letters) == 1 else 0,
                'no "." here, except before a letter': lambda at: (
                    -1 if self._one(at, ".") == 1 and self._one(at + 1, letters) != 1 else 0
                ),
                "a word that is no keyword": self._name,
            },
            {},
        )

    def _one(self, at: int, characters: str) -> int:
        return 1 if at < len(self.text) and self.text[at] in characters else -1

    def _but(self, at: int, characters: str) -> int:
        return 1 if at < len(self.text) and self.text[at] not in characters else -1

    def _name(self, at: int) -> int:
        word = self.grammar.match("word", at)
        return -1 if word is None or self.text[at : word.end] in self.keywords else word.end - at

    def tokens(self) -> list[Token] | None:
        """The tokens, if the page has a reading of all characters."""
        found = []
        at = 0
        while at < len(self.text):
            for name in ("blank", "comment", "token"):
                derivation = self.grammar.match(name, at)
                if derivation is not None:
                    break
            else:
                return None
            self.used.update(used(name, derivation))
            if name == "token":
                kind = derivation.parts[0][0]
                text = self.text[at : derivation.end]
                if kind == "word":
                    kind = "keyword" if text in self.keywords else "name"
                    self.used.add(kind)
                found.append(Token(kind, at, derivation.end))
            at = derivation.end
        return found


class Program:
    """A program as the page reads its tokens: `derivation` is None where it has no reading."""

    def __init__(self, source: bytes, tokens: Sequence[Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.in_extern = self._extern()
        words = {
            "a sign that begins no expression": self._addition,
            'no "{" here': lambda at: -1 if self._is(at, "{") == 1 else 0,
            "a name inside `extern`": lambda at: 1 if at in self.in_extern and self._kind(at, "name") == 1 else -1,
        }
        kinds = {
            kind: lambda at, kind=kind: self._kind(at, kind) for kind in ("name", "integer", "double", "string", "doc")
        }
        grammar = Grammar(["Programs", "Expressions", "Types"], lambda text, at: self._is(at, text), words, kinds)
        self.derivation = grammar.match("program", 0)
        if self.derivation is not None and self.derivation.end < len(tokens):
            self.derivation = None

    def _extern(self) -> set[int]:
        """The tokens between the braces of an `extern`."""
        inside: set[int] = set()
        opened = -1
        for at in range(len(self.tokens)):
            if self._is(at, "extern") == 1:
                opened = at
            elif self._is(at, "}") == 1:
                if opened >= 0:
                    inside.update(range(opened, at))
                opened = -1
        return inside

    def _text(self, at: int) -> bytes:
        return self.source[self.tokens[at].start : self.tokens[at].end]

    def _is(self, at: int, text: str) -> int:
        fixed = at < len(self.tokens) and self.tokens[at].kind in ("keyword", "mark")
        return 1 if fixed and self._text(at) == text.encode() else -1

    def _kind(self, at: int, kind: str) -> int:
        return 1 if at < len(self.tokens) and self.tokens[at].kind == kind else -1

    def _addition(self, at: int) -> int:
        if self._is(at, "+") < 0 and self._is(at, "-") < 0:
            return -1
        before = self.source[self.tokens[at].start - 1 : self.tokens[at].start]
        behind = self.source[self.tokens[at].end : self.tokens[at].end + 1]
        begins = before in (b" ", b"\t", b"\r", b"\n") and behind not in (b"", b" ", b"\t", b"\r", b"\n")
        return -1 if begins else 1
