"""No test waits for a process without a limit, or leaves one behind."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.processes import child

TESTS = Path(__file__).parent


def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """The calls of functions of `subprocess`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = ast.unparse(node.func)
            if called.startswith("subprocess."):
                found.append((called, node))
    return found


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.stem)
def test_every_process_that_a_test_starts_has_a_limit(path: Path) -> None:
    for called, call in calls(path):
        if called == "subprocess.run":
            assert "timeout" in [keyword.arg for keyword in call.keywords], f"{path}:{call.lineno}"
        elif called == "subprocess.Popen":
            assert path.stem == "processes", f"{path}:{call.lineno}: what starts a process is `child`"


def test_a_child_is_gone_when_its_test_has_failed() -> None:
    with pytest.raises(KeyError), child([sys.executable, "-c", "import time; time.sleep(1000)"]) as process:
        raise KeyError
    assert process.returncode == -9


def test_a_child_that_says_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LIMIT", 0.1)
    with child([sys.executable, "-c", "import time; time.sleep(1000)"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b""
    assert process.returncode == -9
