"""What the command shows of machine code."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from garden.cli.main import main
from tests.support.engines import ENGINES

Captured = pytest.CaptureFixture[str]

FIB = str(Path(__file__).parent.parent.parent / "docs" / "examples" / "fib.garden")

pytestmark = pytest.mark.skipif("jit" not in ENGINES, reason="there is no machine code for this system")


def test_dump_llvm_shows_the_functions_of_the_program_alone(capfd: Captured) -> None:
    assert main(["dump", "llvm", FIB]) == 0
    out = capfd.readouterr().out
    assert re.findall(r"^define .*@\"([a-z.]+)\.\d", out, re.M) == ["g.fib", "g.fib", "g.entry"]
    assert out.count("{\n") == out.count("\n}") == 3


def test_dump_native_shows_their_assembly(capfd: Captured) -> None:
    assert main(["dump", "native", FIB]) == 0
    out = capfd.readouterr().out
    assert re.findall(r"^(\S+):", out, re.M)[0].startswith("g.fib")
    assert "\t.cfi" not in out


@pytest.mark.parametrize("engine", ["interpreter", "jit"])
def test_a_map_for_perf_has_every_function(engine: str, capfd: Captured) -> None:
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    try:
        assert main(["run", "--perf-map", "--engine", engine, FIB]) == 0
        rows = [line.split(" ", 2) for line in path.read_text().splitlines()]
    finally:
        path.unlink(missing_ok=True)
    assert capfd.readouterr().out == "6765\n"
    ends = [int(address, 16) + int(size, 16) for address, size, _ in rows]
    starts = [int(address, 16) for address, _, _ in rows]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    names = [name for _, _, name in rows]
    assert "garden_enter" in names
    assert any(name.startswith("g.fib") for name in names) == (engine == "jit")
