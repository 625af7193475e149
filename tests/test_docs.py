"""Every Python example in the README and the docs runs, and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "```python" in path.read_text()
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[int, str, str | None]]:
    """Line number, code and expected output (None: not stated) of each Python block of a page."""
    text = page.read_text()
    fences = list(_FENCE.finditer(text))
    found = []
    for fence, following in zip(fences, [*fences[1:], None], strict=True):
        if fence[1] != "python":
            continue
        stated = following is not None and following[1] == "text" and not text[fence.end() : following.start()].strip()
        line = text.count("\n", 0, fence.start()) + 2
        found.append((line, fence[2], following[2] if stated and following is not None else None))
    return found


@pytest.mark.parametrize("page", PAGES, ids=[path.relative_to(ROOT).as_posix() for path in PAGES])
def test_the_examples_of_a_page_run_as_shown(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__docs__"}
    for line, code, expected in examples(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + code, str(page), "exec", dont_inherit=True), names)
        if expected is not None:
            pattern = re.escape(expected.strip()).replace(r"\.\.\.", ".*?")
            assert re.fullmatch(pattern, printed.getvalue().strip(), re.DOTALL), printed.getvalue()
