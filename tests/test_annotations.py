"""What the annotations of test programs mean, and that a mistake in one is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.annotations import AnnotationError, Annotations, comments
from tests.support.program import Mismatch, Program, compare, load_page


def wrong(text: str) -> list[str]:
    """What a program, called `p`, does not do as claimed, at -O1."""
    try:
        Program("p", text).check("reference", 1)
    except Mismatch as mismatch:
        return str(mismatch).split("\n")
    return []


# Comments.


def test_comments_stand_outside_of_strings() -> None:
    text = 'let a = "# one" # two\n# three\nlet b = "\n# four\n" # five'
    assert list(comments(text)) == [(1, "# two"), (2, "# three"), (5, "# five")]


def test_a_string_that_is_not_closed_hides_comments_to_its_line_end() -> None:
    assert list(comments('let a = "# one\n# two')) == [(2, "# two")]


# Annotations.


def test_directives_come_before_code() -> None:
    claims = Annotations("p", "#@ opt: 1\n#@ heap-limit: 4096\n# prose\n#@ backtrace: entry f\n#@ snapshot: ir\n1")
    assert claims.levels == (1,)
    assert claims.heap_limit == 4096
    assert claims.backtrace == ("entry", "f")
    assert claims.snapshots == ("ir",)


def test_a_comment_behind_code_is_about_its_line() -> None:
    claims = Annotations("p", '1\n2 # error: 3 [E0301] "part"\n3 # error: [E0302]')
    assert [(claim.line, str(claim)) for claim in claims.errors] == [(2, '3 [E0301] "part"'), (3, "[E0302]")]


def test_a_comment_of_its_own_is_about_the_next_code() -> None:
    claims = Annotations("p", "1\n# error: [E0301]\n# error: [E0302]\n\n# prose\n2")
    assert [(claim.line, claim.code) for claim in claims.errors] == [(6, "E0301"), (6, "E0302")]


def test_a_doc_comment_is_code() -> None:
    claims = Annotations("p", "# error: [E0207]\n#! expect: nothing\n1")
    assert claims.errors[0].line == 2
    assert not claims.output


def test_expected_output_keeps_its_blanks() -> None:
    claims = Annotations("p", "1 # expect:  a \n2 # expect:\n3 # expect: \n4 # expect: # expect: b")
    assert [claim.text for claim in claims.output] == [" a ", "", "", "# expect: b"]


@pytest.mark.parametrize(
    "text",
    [
        "1 # exepct: 7",
        "1 # Expect: 7",
        "1 # expect 7",
        "1 # expect:7",
        "1 # a remark",
        "1 #expcet: 7",
        "# error [E0301]\n1",
        "# runtime_error: [T0001]\n1",
        "# errors: [E0301]\n1",
        "1 # error: E0301",
        "1 # error: [E301]",
        "1 # error: [E0301] part",
        "1 # error: x [E0301]",
        "1 # runtime-error: [T0001]\n2 # runtime-error: [T0001]",
        "1 # value: 1\n2 # value: 2",
        "#@ mode check\n1",
        "#@ mode: chekc\n1",
        "#@ opt: 2\n1",
        "#@ opt: 0 1\n1",
        "#@ opt:\n1",
        "#@ heap-limit: 1M\n1",
        "#@ backtrace:\n1",
        "#@ snapshot: llvm\n1",
        "#@ speed: 1\n1",
        "#@ opt: 1\n#@ opt: 1\n1",
        "1\n#@ opt: 1",
        "1 #@ opt: 1",
        "1 # expect: 1\n2 # error: [E0301]",
        "#@ mode: check\n1 # expect: 1",
        "1 / 0 # runtime-error: [T0001]\n2 # value: 2",
    ],
)
def test_a_mistake_in_an_annotation_is_an_error(text: str) -> None:
    with pytest.raises(AnnotationError, match="p"):
        Annotations("p", text)


@pytest.mark.parametrize("text", ["# prose with: a colon\n1", "# Prose\n1", "#\n1", "##### : \n1", "# https://x.y\n1"])
def test_other_comments_are_prose(text: str) -> None:
    Annotations("p", text)


# Runs.

IO = 'import "io"\n'


def test_a_program_that_does_what_it_claims() -> None:
    assert wrong(IO + "io.println(1) # expect: 1\n1 / 0 # runtime-error: 3 [T0001]") == []
    assert wrong("let a = b # error: 9 [E0301]") == []
    assert wrong("1 + 1 # value: 2") == []


def test_output_that_differs() -> None:
    assert wrong(IO + "io.println(1) # expect: 2") == ["p:2: expected '2', got '1'"]


def test_output_that_is_not_claimed() -> None:
    assert wrong(IO + "io.println(1)") == ["p:1: not claimed: '1'"]
    assert wrong(IO + "io.println(1) # expect: 1\nio.print(2)") == ["p:2: not claimed: '2'"]


def test_output_that_does_not_come() -> None:
    assert wrong(IO + "io.println(1) # expect: 1\n# expect: 2\n") == ["p:4: not written: '2'"]


def test_diagnostics_that_are_not_claimed() -> None:
    assert wrong("let a = b") == ["p:1:9: not claimed: E0301: there is no `b` here"]


@pytest.mark.parametrize(
    "claim", ["8 [E0301]", "[E0302]", '[E0301] "nothing like that"', "[E0301]\nlet b = 1 # error: [E0301]"]
)
def test_diagnostics_that_differ(claim: str) -> None:
    assert wrong(f"let a = x # error: {claim}")


def test_two_diagnostics_need_two_claims() -> None:
    assert len(wrong("let a = b + c # error: [E0301]")) == 1


def test_traps_that_differ() -> None:
    assert wrong("1 / 0") == ["p:1:3: not claimed: T0001: division by zero"]
    assert wrong("1 / 0 # runtime-error: [T0004]")[0].endswith("division by zero, but [T0004] on line 1")
    assert wrong("1 / 0 # runtime-error: 4 [T0001]")
    assert wrong("1 / 1 # runtime-error: [T0001]") == ["p:1: claimed, and did not happen: [T0001]"]


def test_a_backtrace_that_differs() -> None:
    assert wrong("#@ backtrace: main\n1 / 0 # runtime-error: [T0001]") == ["p:2: the active functions are entry"]


def test_a_value_that_differs() -> None:
    assert wrong("1 + 1 # value: 3") == ["p:1: the value is 2"]


def test_every_mismatch_is_told() -> None:
    assert len(wrong(IO + "io.println(1) # expect: 2\n# expect: 3\n1 / 0")) == 3


def test_only_checking_stops_before_literals_are_read() -> None:
    assert wrong("#@ mode: check\n99999999999999999999") == []


# Files.


def test_a_file_is_compared_or_written(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with pytest.raises(Mismatch, match="bless"):
        compare(path, "a\nb\n", bless=False)
    compare(path, "a\nb\n", bless=True)
    compare(path, "a\nb\n", bless=False)
    with pytest.raises(Mismatch, match=r"\+c"):
        compare(path, "a\nc\n", bless=False)


def test_blocks_below_a_heading_are_one_program(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n## One\n\n```garden\nlet a = 1\n```\n\nText.\n\n```text\n# no heading\n```\n\n"
        "```garden\na # value: 1\n```\n\n## None\n\n```python\nimport io\n```\n\n"
        "### Two\n\n```garden\nb # error: [E0301]\n```\n"
    )
    programs = load_page(page)
    assert [heading for heading, _ in programs] == ["One", "Two"]
    for _, program in programs:
        program.check("reference", 0)
    assert programs[1][1].claims.errors[0].line == 28


def test_a_block_above_every_heading_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```garden\n1\n```\n")
    with pytest.raises(AnnotationError, match=r"page\.md:2"):
        load_page(page)
