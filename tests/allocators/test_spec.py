"""Specs: text to allocator and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocators import Allocator, AllocError, Arena, Layout, MetricAllocator, PageAlloc, StackAlloc
from allocators.errors import SpecError
from allocators.sizes import parse_size, size_text
from allocators.spec import ENTRIES, parse_spec, spec_table

#: A spec for each entry that says more than its defaults.
EXAMPLES = {
    "page": "page",
    "arena": "arena(page, min_align=8, capacity=1K, rounded_grow=true)",
    "fixed": "fixed(64K, min_align=16)",
    "bump": "bump(page, first_chunk=1K, largest_chunk=1M)",
    "stack": "stack(1000, strict=true)",
    "metric": "metric(page)",
    "limit": "limit(64M, page)",
    "pool": "pool(48, page, align=16, capacity=10, growable=false)",
    "binning": "binning(page, smallest=8, largest=2K)",
    "fallback": "fallback(stack(4K), page)",
    "debug": "debug(page, depth=2, canary=32, quarantine=0, raise_leaks=false)",
    "fail": "fail(page, fail_index=100, resize_fail_index=7, every=5, times=2)",
    "retry": "retry(page)",
    "tracing": "tracing(page)",
    "call_sites": "call_sites(page)",
    "tracemalloc": "tracemalloc(page)",
    "locked": "locked(page)",
}


@pytest.mark.parametrize("name", [entry.name for entry in ENTRIES])
def test_the_repr_of_an_allocator_is_its_spec(name: str) -> None:
    spec = EXAMPLES[name]
    allocator = parse_spec(spec)
    assert isinstance(allocator, Allocator)
    assert repr(allocator) == spec
    allocator.deallocate(allocator.allocate(Layout(8, 8)), Layout(8, 8))


def test_a_deep_composition_comes_back_as_it_was() -> None:
    spec = "metric(limit(64M, arena(fallback(stack(4K), bump(page)), min_align=8)))"
    assert repr(parse_spec(spec)) == spec
    metric = parse_spec(spec)
    assert isinstance(metric, MetricAllocator)
    assert isinstance(metric.parent.parent, Arena)
    assert metric.parent.parent.min_align == 8


def test_defaults_are_not_printed_and_white_space_does_not_matter() -> None:
    assert repr(parse_spec(" arena ( page , min_align = 1,\trounded_grow=FALSE ) ")) == "arena(page)"
    assert repr(parse_spec("page()")) == "page"
    assert repr(parse_spec("fail(page, every=none)")) == "fail(page)"


def test_a_stack_has_a_buffer_of_its_own_of_just_that_size() -> None:
    stack = parse_spec("stack(64K)")
    assert isinstance(stack, StackAlloc)
    assert stack.capacity == 64 * 1024
    with pytest.raises(AllocError):
        stack.allocate(Layout(64 * 1024 + 1, 1))
    stack.allocate(Layout(64 * 1024, 1)).view[-1] = 1
    assert parse_spec("stack(0)").capacity == 0  # type: ignore[attr-defined]


def test_a_fixed_arena_never_asks_for_more() -> None:
    arena = parse_spec("fixed(1K)")
    arena.allocate(Layout(1024 - 48, 1))
    with pytest.raises(AllocError):
        arena.allocate(Layout(1, 1))


@pytest.mark.parametrize(
    ("spec", "message", "at", "length"),
    [
        ("", "want the name of an allocator, not the end", 0, 0),
        ("arean(page)", "unknown allocator 'arean', did you mean 'arena'?", 0, 5),
        ("metric(arena(pag))", "unknown allocator 'pag', did you mean 'page'?", 13, 3),
        ("xyz", "unknown allocator 'xyz', want one of page, arena, ", 0, 3),
        ("arena(page", "want ',' or ')', not the end", 10, 0),
        ("arena(page))", "want nothing more after it, not ')'", 11, 1),
        ("page page", "want nothing more after it, not 'page'", 5, 4),
        ("arena", "arena wants an allocator for parent: arena(parent, ", 0, 5),
        ("limit(64M)", "limit wants an allocator for parent: limit(size, parent)", 0, 5),
        ("arena(64K)", "want an allocator for parent, not '64K'", 6, 3),
        ("stack(page)", "size: want a number of bytes such as 4096, 64K or 2M, not 'page'", 6, 4),
        ("stack(-1)", "size: want a number of bytes such as 4096, 64K or 2M, not '-1'", 6, 2),
        ("stack(1.5K)", "size: want a number of bytes such as 4096, 64K or 2M, not '1.5K'", 6, 4),
        ("arena(page, 8)", "too many arguments, want arena(parent, ", 12, 1),
        ("arena(page,)", "want an argument after ','", 11, 1),
        ("arena(page, min_algn=8)", "arena has no option 'min_algn', did you mean 'min_align'?", 12, 8),
        ("page(x=1)", "page has no option 'x', and no other", 5, 1),
        ("arena(page, min_align=8, min_align=8)", "min_align is given twice", 25, 9),
        ("arena(min_align=8, page)", "an argument without a name cannot follow one with a name", 19, 4),
        ("arena(page, min_align=)", "want a number for min_align, not ')'", 22, 1),
        ("arena(page, rounded_grow=yes)", "rounded_grow is true or false, not 'yes'", 25, 3),
        ("metric(arena(page, min_align=3))", "min_align must be 1, 2, 4, 8 or 16, not 3", 7, 5),
        ("a+b", "'+' cannot stand in a spec", 1, 1),
        ("metric(" * 200, "nested more than 100 deep", 707, 6),
    ],
)
def test_a_wrong_spec_points_at_the_place(spec: str, message: str, at: int, length: int) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(spec)
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.message.startswith(message)
    assert (error.at, error.length) == (at, length)
    lines = str(error).split("\n")
    assert lines[1] == "  " + spec
    assert lines[2] == "  " + " " * at + "^" * max(length, 1)


def test_the_caret_stays_in_place_below_white_space() -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec("metric(\n\tarean(page))")
    _message, spec, caret = str(caught.value).split("\n")
    assert spec[caret.index("^") :].startswith("arean")


def test_the_table_shows_every_allocator_with_its_defaults() -> None:
    table = spec_table()
    for entry in ENTRIES:
        assert entry.usage in table
        assert entry.summary in table
    assert "arena(parent, min_align=1, capacity=0, rounded_grow=false)" in table


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_the_defaults_of_the_table_are_those_of_the_allocator(entry: object) -> None:
    name = entry.name  # type: ignore[attr-defined]
    required = {"stack": "4K", "fixed": "4K", "limit": "1M, page", "pool": "64, page", "fallback": "stack(4K), page"}
    inner = "" if name == "page" else required.get(name, "page")
    written = [f"{option}={parameter.default}" for option, parameter in entry.options.items()]  # type: ignore[attr-defined]
    plain = f"{name}({inner})" if inner else name
    assert repr(parse_spec(f"{name}({', '.join([part for part in (inner, *written) if part])})")) == plain


@given(st.integers(0, 1 << 62))
def test_sizes_come_back_as_they_were(size: int) -> None:
    assert parse_size(size_text(size)) == size


@pytest.mark.parametrize(("text", "size"), [("0", 0), ("4096", 4096), ("64k", 65536), ("2M", 1 << 21), ("1G", 1 << 30)])
def test_sizes_have_binary_suffixes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5", "0x10", "1KB", "1 K", "²"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="want a number of bytes"):
        parse_size(text)


def test_one_pages_object_is_shared_by_nobody() -> None:
    first, second = parse_spec("page"), parse_spec("page")
    assert isinstance(first, PageAlloc)
    first.allocate(Layout(1, 1))
    assert second.allocated_bytes == 0  # type: ignore[attr-defined]
