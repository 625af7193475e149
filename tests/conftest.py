"""Collects the test programs: each `.garden` file is run on each engine at each level, and has its snapshots compared.

`--bless` writes snapshots, and other committed files that tests compare, instead of comparing them. Machine code is
kept in a directory of the session's own, which all of its processes share.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import program
from tests.support.annotations import AnnotationError
from tests.support.engines import ENGINES


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write the committed files that tests compare with")


def pytest_configure(config: pytest.Config) -> None:
    # The workers of xdist inherit it.
    if not hasattr(config, "workerinput"):
        directory = tempfile.TemporaryDirectory(prefix="garden-cache-")
        config.add_cleanup(directory.cleanup)
        os.environ["GARDEN_CACHE_DIR"] = directory.name


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".garden":
        return ProgramFile.from_parent(parent, path=file_path)
    return None


@pytest.fixture(scope="module", autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt in tests, and is not ignored by what they start, even if this process does so.

    A process ignores it from its start where a shell runs it in the background, or under `nohup`.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def matches_file(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a committed file, or writes it there."""
    bless = request.config.getoption("--bless")
    return lambda path, text: program.compare(path, text, bless)


class ProgramFile(pytest.File):
    """One test program."""

    def collect(self) -> Iterator[pytest.Item]:
        loaded = program.load(self.path)
        for engine in ENGINES:
            for level in loaded.claims.levels:
                yield ProgramItem.from_parent(
                    self, name=f"{engine}-O{level}", program=loaded, engine=engine, level=level
                )
        for kind in loaded.claims.snapshots:
            yield SnapshotItem.from_parent(self, name=kind, program=loaded)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:  # type: ignore[override]
        if isinstance(excinfo.value, AnnotationError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))


class _Item(pytest.Item):
    """Something to check about a test program."""

    def __init__(self, *, program: program.Program, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.program = program

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, program.Mismatch):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.stem} {self.name}"


class ProgramItem(_Item):
    """A test program on one engine at one optimisation level."""

    def __init__(self, *, engine: str, level: int, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.engine = engine
        self.level = level

    def runtest(self) -> None:
        self.program.check(self.engine, self.level)


class SnapshotItem(_Item):
    """A snapshot of a test program."""

    def runtest(self) -> None:
        path = self.path.with_suffix(f".{self.name}")
        program.compare(path, self.program.snapshot(self.name), self.config.getoption("--bless"))
