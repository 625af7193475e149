"""Plain command lines, read without argparse, which takes as long to load as the whole front end.

The options are described once, by calls of `add_argument`, which argparse and `PlainParser` both take. This one reads
what is spelt in full, with each value in a word of its own. Anything else (help, mistakes, abbreviations, `-O1`,
`--engine=jit`, `--`) it leaves to argparse. What it does read, argparse reads in the same way.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

#: What `add_argument` may be told of an option. argparse alone knows the rest.
_KNOWN: Final = {"action", "choices", "default", "dest", "help", "metavar", "required", "type"}
_ACTIONS: Final = ("store", "store_true", "append")


class _NotPlain(Exception):
    """Only argparse can tell what a command line means."""


class PlainParser:
    """The options of one command."""

    def __init__(self) -> None:
        self._options: Final[dict[str, dict[str, Any]]] = {}
        self._positionals: Final[list[dict[str, Any]]] = []
        self._values: Final[dict[str, Any]] = {}
        self._required: Final[set[str]] = set()
        self._is_known = True

    def add_argument(self, *flags: str, **description: Any) -> None:
        """Describe an option, or a positional argument, as for argparse."""
        name = next((flag for flag in flags if flag.startswith("--")), flags[0])
        action = description.setdefault("action", "store")
        self._is_known = self._is_known and description.keys() <= _KNOWN and action in _ACTIONS
        dest = description.setdefault("dest", name.lstrip("-").replace("-", "_"))
        if not flags[0].startswith("-"):
            self._positionals.append(description)
            return
        self._options.update(dict.fromkeys(flags, description))
        self._values[dest] = False if action == "store_true" else description.get("default")
        if description.get("required"):
            self._required.add(dest)

    def parse(self, words: list[str]) -> SimpleNamespace | None:
        """The values of all options and arguments; None where argparse must read the words."""
        try:
            return self._parse(words) if self._is_known else None
        except _NotPlain:
            return None

    def _parse(self, words: list[str]) -> SimpleNamespace:
        values = dict(self._values)
        missing = set(self._required)
        positionals = iter(self._positionals)
        rest = iter(words)
        for word in rest:
            if _is_value(word):
                description = next(positionals, None)
            else:
                description = self._options.get(word)
                if description is not None and description["action"] != "store_true":
                    word = next(rest, "-?")
            if description is None:
                raise _NotPlain
            dest = description["dest"]
            if description["action"] == "store_true":
                values[dest] = True
            elif description["action"] == "append":
                values[dest] = [*values[dest], _value(description, word)]
            else:
                values[dest] = _value(description, word)
            missing.discard(dest)
        if missing or next(positionals, None) is not None:
            raise _NotPlain
        return SimpleNamespace(**values)


def _is_value(word: str) -> bool:
    """Whether a word is certainly no option."""
    return word == "-" or not word.startswith("-")


def _value(description: dict[str, Any], word: str) -> Any:
    """What a word means as the value of an option."""
    if not _is_value(word):
        raise _NotPlain
    try:
        value = description.get("type", str)(word)
    except ValueError:
        raise _NotPlain from None
    if value not in description.get("choices", (value,)):
        raise _NotPlain
    return value
