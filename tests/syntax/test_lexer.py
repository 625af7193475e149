"""The lexer: what becomes which token, and what is reported."""

from __future__ import annotations

import pytest

from allocators import PageAlloc
from allocators.collections import Interner
from garden.diagnostics import Diagnostic
from garden.source import Source
from garden.syntax import tokens
from garden.syntax.lexer import Lexer
from tests.support.parsed import marked, parse


def words(text: str) -> list[str]:
    """Kind and text of every token but the last, without positions."""
    lines = parse(text).tokens.splitlines()
    assert lines[-1].endswith(" end of file")
    return [line.partition(" ")[2] for line in lines[:-1]]


def mistakes(text: str | bytes) -> list[str]:
    """What the lexer alone reports, as code and the text under it."""
    diagnostics: list[Diagnostic] = []
    source = Source("test", text.encode() if isinstance(text, str) else text)
    with PageAlloc() as allocator:
        Lexer(allocator, diagnostics).lex(source, Interner(allocator)).close()
    return [f"{diagnostic.code} {marked(source, diagnostic)}" for diagnostic in diagnostics]


def test_every_fixed_token_is_lexed_as_its_kind() -> None:
    spellings = {kind: text for kind, text in tokens.SPELLINGS.items() if kind >= tokens.LPAREN}
    diagnostics: list[Diagnostic] = []
    source = Source("test", " ".join(spellings.values()).encode())
    with PageAlloc() as allocator:
        lexed = Lexer(allocator, diagnostics).lex(source, Interner(allocator))
        assert list(lexed.kind_bytes()) == [tokens.NONE, *spellings, tokens.EOF]
    assert not diagnostics


def test_a_source_of_every_kind_of_token() -> None:
    assert parse('let x_1=-2.50 #! doc\n"a\nb" true').tokens.splitlines() == [
        "1:1 keyword let",
        "1:5 identifier x_1",
        "1:8 mark =",
        "1:9 mark -",
        "1:10 double 2.50",
        "1:15 doc comment #! doc",
        '2:1 string "a\\nb"',
        "3:4 keyword true",
        "3:8 end of file",
    ]


def test_an_empty_source_is_only_its_end() -> None:
    assert parse("").tokens == "1:1 end of file\n"
    assert parse(" \t\r\n# nothing").tokens == "2:10 end of file\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("007", ["integer 007"]),
        ("0.5", ["double 0.5"]),
        ("3.", ["double 3."]),
        (".5", ["mark .", "integer 5"]),
        ("1.x", ["integer 1", "mark .", "identifier x"]),
        ("1._", ["integer 1", "mark .", "identifier _"]),
        ("1.5.x", ["double 1.5", "mark .", "identifier x"]),
        ("3..x", ["double 3.", "mark .", "identifier x"]),
        ("1. 5", ["double 1.", "integer 5"]),
        ("1x", ["integer 1", "identifier x"]),
        ("1-2", ["integer 1", "mark -", "integer 2"]),
        ("1e5", ["integer 1", "identifier e5"]),
        ("0x1F", ["integer 0", "identifier x1F"]),
        ("1_000", ["integer 1", "identifier _000"]),
    ],
)
def test_numbers(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("==", ["mark =="]),
        ("= =", ["mark =", "mark ="]),
        ("===", ["mark ==", "mark ="]),
        ("<==", ["mark <=", "mark ="]),
        ("!=!", ["mark !=", "mark !"]),
        ("->=", ["mark -", "mark >="]),
        ("+=", ["mark +", "mark ="]),
        (">>", ["mark >", "mark >"]),
    ],
)
def test_the_longest_mark_wins(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_keywords_end_where_identifiers_go_on() -> None:
    assert words("let lets Int Ints _fn fn") == [
        "keyword let",
        "identifier lets",
        "type Int",
        "identifier Ints",
        "identifier _fn",
        "keyword fn",
    ]


def test_strings_have_no_escapes() -> None:
    assert words('"a\\" "äß €"') == ['string "a\\\\"', 'string "äß €"']


def test_comments_go_to_the_end_of_the_line_and_start_nothing_in_strings() -> None:
    assert words('a # b " \n"# c" d#e') == ["identifier a", 'string "# c"', "identifier d"]


def test_doc_comments_lose_one_space_and_a_carriage_return() -> None:
    parsed = parse("#!  two \r\n#!\n#!none\nlet x = 1")
    assert parsed.tree.splitlines()[:3] == ["#!  two ", "#!", "#! none"]


def test_equal_texts_have_equal_symbols() -> None:
    long = "x" * 100
    source = Source("test", f'a b a "a" {long} "b" {long} #!a\n#! a'.encode())
    with PageAlloc() as allocator:
        symbols = Interner(allocator)
        lexed = Lexer(allocator, []).lex(source, symbols)
        ids = [lexed.symbols[row] for row in range(1, len(lexed) - 1)]
        assert ids == [0, 1, 0, 0, 2, 1, 2, 0, 0]
        assert symbols.lookup(2) == long.encode()


def test_more_words_than_are_remembered_get_their_own_symbols() -> None:
    names = [f"name_{index}" for index in range(3000)]
    source = Source("test", " ".join(names + names).encode())
    with PageAlloc() as allocator:
        symbols = Interner(allocator)
        lexed = Lexer(allocator, []).lex(source, symbols)
        assert [lexed.symbols[row] for row in range(1, len(lexed) - 1)] == [*range(3000), *range(3000)]
        assert symbols.lookup(2999) == b"name_2999"


def test_unknown_characters_are_skipped_run_by_run() -> None:
    assert mistakes("a , b; && 'c' €€ @") == [
        "E0101 ,",
        "E0101 ;",
        "E0101 &&",
        "E0101 '",
        "E0101 '",
        "E0101 €€",
        "E0101 @",
    ]
    assert words("a,b") == ["identifier a", "identifier b"]


def test_a_name_with_letters_outside_ascii_is_one_error_and_still_a_name() -> None:
    assert mistakes("größe + ä漢_1 é") == ["E0101 größe", "E0101 ä漢_1", "E0101 é"]
    assert words("größe+ä") == ["identifier größe", "mark +", "identifier ä"]
    assert mistakes("a€ 🌱b") == ["E0101 €", "E0101 🌱"]
    assert words("a€ 🌱b") == ["identifier a", "identifier b"]


def test_a_comma_gets_help() -> None:
    (rendered,) = parse("f(1, 2)").rendered
    assert rendered == (
        "test:1:4: E0101: unknown character `,`\nf(1, 2)\n   ~\nhelp: blanks separate arguments, members and fields"
    )


def test_control_characters_are_shown_escaped() -> None:
    (diagnostic,) = parse("\x00").diagnostics
    assert diagnostic.message == "unknown character `\\x00`"


def test_a_number_with_two_dots_is_one_mistake_and_still_a_number() -> None:
    assert parse("let x = 1.2.3 + 4..5").mistakes == ["E0103 1.2.3", "E0103 4..5"]
    assert mistakes("1.2.3.x") == ["E0103 1.2.3"]


def test_an_unterminated_string_ends_with_its_line() -> None:
    parsed = parse('let x = "abc\nlet y = 1')
    assert parsed.mistakes == ['E0102 "abc']
    assert parsed.roots == ["let", "let"]


def test_a_quote_that_nothing_follows_is_unterminated() -> None:
    assert parse('"a" "').mistakes == ['E0102 "']


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (b"\xff", 0),
        (b'let x = "\xc3"', 9),
        (b"# \xe2\x82", 2),
        (b"let x = 1 \xc0\x80", 10),
        (b"\xed\xa0\x80", 0),
    ],
)
def test_a_source_that_is_no_utf8_has_one_mistake_and_no_tokens(text: bytes, offset: int) -> None:
    parsed = parse(text)
    (diagnostic,) = parsed.diagnostics
    assert diagnostic.code == "E0100"
    assert diagnostic.start == offset
    assert parsed.roots == []
    assert len(parsed.tokens.splitlines()) == 1


def test_a_byte_order_mark_is_no_part_of_the_program() -> None:
    parsed = parse(b"\xef\xbb\xbflet x = )")
    assert parsed.tokens.splitlines()[0] == "1:1 keyword let"
    assert parsed.rendered[0].startswith("test:1:9: E0203")


def test_columns_count_characters() -> None:
    assert parse('"äö" "€"\n\t"ß" x').tokens.splitlines() == [
        '1:1 string "äö"',
        '1:6 string "€"',
        '2:2 string "ß"',
        "2:6 identifier x",
        "2:7 end of file",
    ]
