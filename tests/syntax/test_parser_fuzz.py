"""Random programs: whatever the bytes, there are tables that keep their promises, or diagnostics, and no exception."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from garden.diagnostics import CODES
from garden.syntax import tokens
from tests.support.parsed import EXAMPLE, parse, parse_clean

_WORDS = [text for kind, text in tokens.SPELLINGS.items() if kind >= tokens.LPAREN]
_WORDS += ["x", "f", "f(", "x.y", "1", "2.5", '"s"', "#! doc\n", "# c\n", "let x = ", "fn f() {", "match { ", "-1", ","]
_PIECES = EXAMPLE.split(" ")

#: On a busy machine a single example may take long.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(text: str | bytes) -> None:
    """Parse, which checks the tree; check the diagnostics; and take programs without mistakes for a round trip."""
    parsed = parse(text)
    size = len(text if isinstance(text, bytes) else text.encode())
    starts = []
    for diagnostic in parsed.diagnostics:
        assert diagnostic.code in CODES
        assert diagnostic.code < "E03"
        assert 0 <= diagnostic.start <= diagnostic.start + diagnostic.length <= size
        starts.append(diagnostic.start)
    assert starts == sorted(starts)
    if not parsed.diagnostics:
        again = parse_clean(parsed.unparsed)
        assert again.tree == parsed.tree
        assert again.unparsed == parsed.unparsed


@patient
@given(st.binary(max_size=60))
def test_random_bytes(data: bytes) -> None:
    check(data)


@patient
@given(st.text(max_size=60))
def test_random_text(text: str) -> None:
    check(text)


@settings(patient, max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(_WORDS), st.sampled_from([" ", "", "\n"])), max_size=40))
def test_random_tokens(words: list[tuple[str, str]]) -> None:
    check("".join([word + blank for word, blank in words]))


@settings(patient, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(_PIECES) - 1),
            st.integers(0, 3),
            st.lists(st.sampled_from(_WORDS) | st.sampled_from(_PIECES), max_size=3),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_programs_with_random_changes(changes: list[tuple[int, int, list[str]]]) -> None:
    pieces = list(_PIECES)
    for index, removed, inserted in changes:
        pieces[index : index + removed] = inserted
    check(" ".join(pieces))


@patient
@given(st.integers(0, len(EXAMPLE)), st.integers(0, len(EXAMPLE)))
def test_parts_of_a_program(first: int, second: int) -> None:
    check(EXAMPLE[min(first, second) : max(first, second)])


@patient
@given(st.integers(0, len(EXAMPLE) - 1), st.integers(0, 255))
def test_a_program_with_one_byte_changed(index: int, byte: int) -> None:
    data = bytearray(EXAMPLE.encode())
    data[index] = byte
    check(bytes(data))
