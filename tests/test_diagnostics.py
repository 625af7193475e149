"""Where in a source something is, and how a diagnostic is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from garden.diagnostics import MAX_SHOWN, Diagnostic
from garden.errors import MAX_SHOWN as MAX_MESSAGES
from garden.errors import CompileError
from garden.source import Source


def naive_position(text: str, index: int) -> tuple[int, int]:
    before = text[:index]
    return before.count("\n") + 1, index - before.rfind("\n")


@given(st.text("aä🌱\n\t", max_size=40), st.lists(st.integers(0, 40), max_size=8))
def test_positions_count_lines_and_characters_in_any_order(text: str, indices: list[int]) -> None:
    source = Source("test", text.encode())
    for index in indices:
        index = min(index, len(text))
        assert source.position(len(text[:index].encode())) == naive_position(text, index)


@given(st.binary(max_size=20), st.lists(st.integers(-2, 25), max_size=8))
def test_positions_of_noise_do_not_depend_on_what_was_asked_before(text: bytes, offsets: list[int]) -> None:
    asked = Source("test", text)
    for offset in offsets:
        assert asked.position(offset) == Source("test", text).position(offset)


def shown(text: str, start: int, length: int = 1, **parts: object) -> list[str]:
    diagnostic = Diagnostic("E0301", "message", start, length, **parts)  # type: ignore[arg-type]
    return diagnostic.render(Source("p", text.encode())).split("\n")


def test_a_diagnostic_shows_its_line_with_what_is_meant() -> None:
    assert shown("one\nlet two\n", 8, 3, label="this", notes=("a", "b"), helps=("c",)) == [
        "p:2:5: E0301: message",
        "let two",
        "    ~~~ this",
        "note: a",
        "note: b",
        "help: c",
    ]


def test_the_underline_counts_characters_and_keeps_tabs() -> None:
    assert shown("\täö x", 6)[1:] == ["\täö x", "\t   ~"]
    assert shown("äöü", 0, 6)[1:] == ["äöü", "~~~"]


def test_what_goes_on_in_the_next_line_is_underlined_to_the_end_of_the_line() -> None:
    assert shown('a "b\nc" d', 2, 5)[1:] == ['a "b', "  ~~"]


def test_the_end_of_the_file_has_a_mark() -> None:
    assert shown("abc\n", 4, 0) == ["p:2:1: E0301: message", "", "~"]


def test_a_long_line_is_cut_around_the_mistake() -> None:
    start, middle, end = (shown("a" * 5000 + "x" + "b" * 5000, at) for at in (10, 5000, 10000))
    assert start[1] == "a" * MAX_SHOWN + "..."
    assert start[2] == " " * 10 + "~"
    assert middle[0].startswith("p:1:5001:")
    assert middle[1][middle[2].index("~")] == "x"
    assert middle[1].startswith("...a")
    assert middle[1].endswith("b...")
    assert end[1] == "..." + "b" * MAX_SHOWN
    assert end[2] == " " * (MAX_SHOWN + 2) + "~"


def test_a_line_is_not_cut_inside_a_character() -> None:
    for extra in range(4):
        excerpt = shown("a" * extra + "🌱" * 500, extra + 4 * 250, 4)[1]
        assert "\ufffd" not in excerpt
        assert len(excerpt) < MAX_SHOWN


def test_a_long_mark_is_cut_with_its_line() -> None:
    line, mark = shown("x" * 5000, 0, 5000)[1:]
    assert len(mark) == MAX_SHOWN == len(line) - 3


def test_an_error_shows_the_first_of_many_diagnostics() -> None:
    diagnostics = [Diagnostic("E0301", "message", 0, 1) for _ in range(MAX_MESSAGES + 5)]
    source = Source("p", b"x")
    lines = str(CompileError(source, diagnostics)).split("\n")
    assert len(lines) == 3 * MAX_MESSAGES + 1
    assert lines[-1] == "and 5 more"
    assert "more" not in str(CompileError(source, diagnostics[:MAX_MESSAGES]))
