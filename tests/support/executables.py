"""Executables for tests: made, written, and run, here or in an emulator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from garden.native.cache import Cache
from garden.native.executable import aot
from garden.native.target import AARCH64, host_target
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

HOST = host_target()
needs_native = pytest.mark.skipif(HOST is None, reason="there is no native code for this machine")


class Builder:
    """Makes executables in a folder. The runtime is translated once for all of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = Cache(str(folder / "cache"))
        self._count = 0

    def build(self, source: str | Source, target: str | None = HOST, level: int = 1, **limits: Any) -> Path:
        """The file of an executable. Raises `CompileError`."""
        if isinstance(source, str):
            source = Source("program.garden", source.encode())
        assert target is not None
        with StageAllocators() as allocators, Compilation(source, allocators, STANDARD, level=level) as compilation:
            content = aot.build(compilation, target, cache=self._cache, **limits)
        self._count += 1
        path = self._folder / f"program{self._count}"
        aot.write_executable(str(path), content)
        return path


def emulator(target: str) -> list[str]:
    """The words before the command line of an executable for a target; without them, the test is skipped."""
    if target == HOST:
        return []
    found = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static") if target == AARCH64 else None
    if found is None:
        pytest.skip(f"there is no emulator for {target}")
    return [found]


def run(path: Path, target: str | None = HOST, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run an executable to its end."""
    assert target is not None
    return subprocess.run([*emulator(target), str(path)], capture_output=True, timeout=60, **options)
