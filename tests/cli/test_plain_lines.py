"""Plain command lines mean the same to both readers."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from garden.cli.main import COMMANDS, _parser, _plain_options
from garden.cli.plain import PlainParser

#: What command lines are made of: options, their values, and what stands in their way.
OPTIONS = (
    *("-O", "--alloc", "--alloc-stats", "-B", "--backtrace", "--heap-limit", "--stack-size", "--engine", "--perf-map"),
    *("--time", "-v", "--verbose", "-o", "--target", "--json", "--pass", "--nodes", "--registers", "--clear"),
)
VALUES = ("file", "-", "", "two words", "0", "1", " 1", "1_0", "x", "jit", "ir", "x86_64-linux", "run=arena(page)")
ODD = ("--", "-h", "-O1", "-Bv", "--engine=jit", "--alloc-s", "--js", "-1", "-V", "--version", "- x", "--time=1")
WITH_VALUE = ("-O", "--alloc", "--heap-limit", "--stack-size", "--engine", "-o", "--target", "--pass", "--registers")


def command_lines() -> Iterator[list[str]]:
    rng = random.Random(12)
    for number in range(6000):
        words: list[str] = []
        for _ in range(rng.randrange(5)):
            if number % 2:
                words.append(rng.choice(rng.choice((OPTIONS, VALUES, VALUES, ODD))))
            else:
                option = rng.choice(OPTIONS)
                words += [option, rng.choice(VALUES)] if option in WITH_VALUE else [option]
        words.insert(rng.randrange(len(words) + 1), "file")
        command = rng.choice(COMMANDS)
        yield [command, *(["ir"] if command == "dump" and number % 3 else []), *words]


def test_what_is_read_without_argparse_means_what_argparse_says(capsys: pytest.CaptureFixture[str]) -> None:
    parser = _parser("")
    read = dict.fromkeys(COMMANDS, 0)
    for words in command_lines():
        options = _plain_options(list(words))
        if options is None:
            continue
        expected = vars(parser.parse_args(words))
        # Of the command itself.
        del expected["version"]
        assert vars(options) == expected, words
        read[words[0]] += 1
    capsys.readouterr()
    assert all(count > 5 for command, count in read.items() if command not in ("doc", "cache")), read


def test_each_line_has_lists_of_its_own() -> None:
    first = _plain_options(["check", "--alloc", "run=page", "file"])
    assert first.alloc == ["run=page"]
    assert _plain_options(["check", "file"]).alloc == []


@pytest.mark.parametrize("description", [{"nargs": "?"}, {"action": "count"}, {"const": 1}])
def test_what_only_argparse_knows_is_left_to_it(description: dict[str, object]) -> None:
    parser = PlainParser()
    parser.add_argument("--option", **description)
    assert parser.parse([]) is None


@pytest.mark.parametrize("words", [[], ["--help"], ["check"], ["check", "-h"], ["check", "a", "b"], ["build", "file"]])
def test_help_and_mistakes_are_left_to_argparse(words: list[str]) -> None:
    assert _plain_options(words) is None
