"""Collects the test programs: each `.garden` file under tests/programs is run at each optimisation level."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import program
import pytest


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".garden":
        return ProgramFile.from_parent(parent, path=file_path)
    return None


class ProgramFile(pytest.File):
    """One test program."""

    def collect(self) -> Iterator[pytest.Item]:
        loaded = program.load(self.path)
        for level in loaded.levels:
            yield ProgramItem.from_parent(self, name=f"O{level}", program=loaded, level=level)


class ProgramItem(pytest.Item):
    """One test program at one optimisation level."""

    def __init__(self, *, program: program.Program, level: int, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.program = program
        self.level = level

    def runtest(self) -> None:
        self.program.run(self.level)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, AssertionError):
            return f"{self.path} at -O{self.level}:\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.stem} at -O{self.level}"
