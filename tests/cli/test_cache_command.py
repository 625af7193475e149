"""`garden cache`: what it says of the cache, and what it removes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from garden.cli.main import main
from garden.native.cache import Cache, digest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no native code there")

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """The cache that the command uses."""
    monkeypatch.setenv("GARDEN_CACHE_DIR", str(tmp_path / "cache"))
    return Cache()


def test_an_empty_cache_is_shown_and_not_made(cache: Cache, capfd: Captured) -> None:
    for words, shown in (([], "0 images, 0 bytes"), (["--clear"], "removed 0 images, 0 bytes")):
        assert main(["cache", *words]) == 0
        assert capfd.readouterr() == (f"{cache.directory}\n{shown}\n", "")
    assert not os.path.exists(cache.directory)


def test_images_are_counted_and_cleared(cache: Cache, capfd: Captured) -> None:
    cache.store(digest(b"one"), bytes(1000))
    assert main(["cache"]) == 0
    assert capfd.readouterr().out == f"{cache.directory}\n1 image, 1,080 bytes\n"
    cache.store(digest(b"two"), bytes(500))
    assert main(["cache"]) == 0
    assert capfd.readouterr().out == f"{cache.directory}\n2 images, 1,660 bytes\n"
    assert main(["cache", "--clear"]) == 0
    assert capfd.readouterr().out == f"{cache.directory}\nremoved 2 images, 1,660 bytes\n"
    assert cache.load(digest(b"one")) is None
    assert os.listdir(cache.directory) == []


@pytest.mark.parametrize("words", [[], ["--clear"]])
def test_a_directory_that_is_not_safe_is_said_to_be_unused(words: list[str], cache: Cache, capfd: Captured) -> None:
    cache.store(digest(b"one"), b"data")
    os.chmod(cache.directory, 0o777)
    assert main(["cache", *words]) == 0
    shown = f"{cache.directory}\nnot used: others may write to it, its mode is 777\n"
    assert capfd.readouterr() == (shown, "")
    assert len(os.listdir(cache.directory)) == 1


def test_the_command_loads_no_compiler(cache: Cache) -> None:
    code = "import sys; from garden.cli.main import main; main(['cache']); print(*sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parent.parent.parent,
    )
    loaded = set(printed.stdout.splitlines()[-1].split())
    assert "garden.native.cache" in loaded
    assert not {"garden.pipeline", "garden.syntax", "allocators", "ctypes", "hashlib"} & loaded
