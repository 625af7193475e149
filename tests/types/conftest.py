"""Programs that the type checker has checked, as fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.checked import Checked, check_text


@pytest.fixture
def check() -> Callable[[str], Checked]:
    """Checks a program and gives it closed, as `Checked`."""
    return check_text


@pytest.fixture
def clean() -> Callable[[str], Checked]:
    """The same, for a program that must be right."""

    def check_clean(text: str) -> Checked:
        checked = check_text(text)
        assert not checked.rendered, "\n".join(checked.rendered)
        return checked

    return check_clean


@pytest.fixture
def code() -> Callable[[str], str]:
    """The one mistake of a program, as its code and the text under it."""

    def check_code(text: str) -> str:
        checked = check_text(text)
        assert len(checked.codes) == 1, "\n".join(checked.rendered)
        return f"{checked.codes[0]} {checked.marked[0]}"

    return check_code
