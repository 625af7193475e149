"""The programs of the benchmark of languages are all there, and garden's compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "languages"
# The workloads of the tests, which are smaller, and the program that does nothing.
NAMES = sorted([*[path.stem for path in (Path(__file__).parent / "programs" / "workloads").glob("*.garden")], "empty"])


@pytest.mark.parametrize("suffix", [".garden", ".lua", ".js", ".py", ".c"])
def test_each_workload_is_there_in_each_language(suffix: str) -> None:
    assert sorted(path.stem for path in PROGRAMS.glob(f"*{suffix}")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_compiles(name: str) -> None:
    path = PROGRAMS / f"{name}.garden"
    with (
        StageAllocators() as allocators,
        Compilation(Source(path.name, path.read_bytes()), allocators, STANDARD) as compilation,
    ):
        compilation.check()
        assert compilation.diagnostics == []
        assert len(compilation.emit().words) > 0
