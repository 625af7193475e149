"""The cache: what was stored comes back whole, and nothing that somebody else could have written."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from garden.native.cache import KEY_SIZE, Cache, default_directory, digest
from tests.support.processes import child

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no native code there")

KEY = digest(b"a program")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(str(tmp_path / "cache"))


def file_of(cache: Cache, key: bytes = KEY) -> Path:
    """The file of an image that is in the cache."""
    (path,) = Path(cache.directory).glob(f"{key.hex()}*")
    return path


def key_with(first_byte: int, number: int) -> bytes:
    return bytes([first_byte]) + number.to_bytes(KEY_SIZE - 1, "big")


@pytest.mark.parametrize("size", [0, 1, 61_000])
def test_what_was_stored_is_loaded(cache: Cache, size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert cache.load(KEY) is None
    assert cache.store(KEY, data)
    assert cache.load(KEY) == data
    assert Cache(cache.directory).load(KEY) == data
    assert cache.load(digest(b"another")) is None


def test_storing_again_replaces(cache: Cache) -> None:
    for data in (b"long and first", b"second", b""):
        assert cache.store(KEY, data)
        assert cache.load(KEY) == data
    assert len(cache.entries()) == 1


def program_in(cache: Cache, key: bytes = KEY) -> bytes | None:
    """The content of the program under a key."""
    file = cache.open_program(key)
    if file is None:
        return None
    assert not os.get_inheritable(file)
    with open(file, "rb") as opened:
        return opened.read()


def test_a_program_is_a_file_that_the_system_can_execute(cache: Cache) -> None:
    script = f"#!{sys.executable}\nprint('executed')\n".encode()
    assert program_in(cache) is None
    assert cache.store_program(KEY, script)
    assert program_in(cache) == script
    (path,) = Path(cache.directory).iterdir()
    assert path.name == f"{KEY.hex()}.program"
    assert path.stat().st_mode & 0o777 == 0o700
    assert subprocess.run([path], capture_output=True, check=True, timeout=60).stdout == b"executed\n"
    assert cache.store_program(KEY, b"new")
    assert program_in(cache) == b"new"


def test_one_key_may_have_an_image_and_a_program(cache: Cache) -> None:
    cache.store(KEY, b"image")
    assert program_in(cache) is None
    cache.store_program(KEY, b"program")
    assert (cache.load(KEY), program_in(cache)) == (b"image", b"program")
    assert [key for key, _ in cache.entries()] == [KEY, KEY]
    assert cache.clear()[0] == 2
    assert (cache.load(KEY), program_in(cache)) == (None, None)
    assert os.listdir(cache.directory) == []


def test_a_program_that_others_could_have_written_counts_as_missing(cache: Cache, tmp_path: Path) -> None:
    cache.store_program(KEY, b"program")
    path = Path(cache.directory) / f"{KEY.hex()}.program"
    for mode in (0o777, 0o720, 0o702):
        path.chmod(mode)
        assert program_in(cache) is None
    path.chmod(0o700)
    assert program_in(cache) == b"program"
    os.chmod(cache.directory, 0o777)
    assert program_in(cache) is None
    os.chmod(cache.directory, 0o700)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert program_in(cache) is None
    path.unlink()
    os.mkfifo(path, 0o700)
    assert program_in(cache) is None


def test_the_key_is_a_digest(cache: Cache) -> None:
    uses = (
        cache.load,
        lambda key: cache.store(key, b""),
        cache.open_program,
        lambda key: cache.store_program(key, b""),
    )
    for use in uses:
        with pytest.raises(ValueError, match="32 bytes, not 3"):
            use(b"key")


def test_a_digest_tells_parts_and_their_borders_apart() -> None:
    parts = [(), (b"",), (b"", b""), (b"ab",), (b"a", b"b"), (b"b", b"a"), (b"ab", b""), (bytes(8),)]
    assert len({digest(*several) for several in parts}) == len(parts)
    assert len(KEY) == KEY_SIZE
    assert digest(b"a program") == KEY


def test_only_the_user_can_read_what_is_kept(cache: Cache) -> None:
    old = os.umask(0)
    try:
        cache.store(KEY, b"data")
    finally:
        os.umask(old)
    assert os.stat(cache.directory).st_mode & 0o777 == 0o700
    assert file_of(cache).stat().st_mode & 0o777 == 0o600


def test_every_damaged_byte_makes_a_file_count_as_missing(cache: Cache) -> None:
    cache.store(KEY, b"some content")
    path = file_of(cache)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.load(KEY) is None
        path.write_bytes(whole[:at])
        assert cache.load(KEY) is None
    path.write_bytes(whole + b"\0")
    assert cache.load(KEY) is None
    path.write_bytes(whole)
    assert cache.load(KEY) == b"some content"


def test_an_image_under_the_name_of_another_counts_as_missing(cache: Cache) -> None:
    cache.store(KEY, b"mine")
    other = digest(b"another")
    file_of(cache).rename(Path(cache.directory) / file_of(cache).name.replace(KEY.hex(), other.hex()))
    assert cache.load(other) is None


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_write_to_counts_as_missing(cache: Cache, mode: int) -> None:
    cache.store(KEY, b"data")
    file_of(cache).chmod(mode)
    assert cache.load(KEY) is None
    file_of(cache).chmod(0o644)
    assert cache.load(KEY) == b"data"


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o1777])
def test_a_directory_that_others_can_write_to_is_not_used(cache: Cache, mode: int) -> None:
    cache.store(KEY, b"data")
    os.chmod(cache.directory, mode)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, b"data")
    assert cache.entries() == []
    assert cache.clear() == (0, 0)
    assert "others may write to it" in (cache.problem() or "")
    os.chmod(cache.directory, 0o755)
    assert cache.problem() is None
    assert cache.load(KEY) == b"data"


def test_what_belongs_to_another_user_is_not_used(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(KEY, b"data")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, b"other")
    assert cache.clear() == (0, 0)
    assert cache.problem() == f"it belongs to user {user}, not to {user + 1}"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give files away")
def test_a_file_of_another_user_counts_as_missing(cache: Cache) -> None:
    cache.store(KEY, b"data")
    os.chown(file_of(cache), 12345, -1)
    assert cache.load(KEY) is None


def test_symbolic_links_are_not_followed(cache: Cache, tmp_path: Path) -> None:
    cache.store(KEY, b"data")
    path = file_of(cache)
    moved = tmp_path / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)
    assert cache.load(KEY) is None
    linked = tmp_path / "linked"
    linked.symlink_to(cache.directory)
    moved.replace(path)
    assert cache.load(KEY) == b"data"
    assert Cache(str(linked)).load(KEY) is None
    assert not Cache(str(linked)).store(KEY, b"data")


def test_storing_replaces_a_link_and_leaves_its_target_alone(cache: Cache, tmp_path: Path) -> None:
    cache.store(KEY, b"data")
    target = tmp_path / "precious"
    target.write_text("precious")
    path = file_of(cache)
    path.unlink()
    path.symlink_to(target)
    assert cache.store(KEY, b"new")
    assert cache.load(KEY) == b"new"
    assert target.read_text() == "precious"


@pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
def test_what_is_no_file_counts_as_missing_and_is_not_waited_for(cache: Cache, make: str) -> None:
    cache.store(KEY, b"data")
    path = file_of(cache)
    path.unlink()
    getattr(os, make)(path)
    path.chmod(0o700)
    assert cache.load(KEY) is None
    assert cache.entries() == []
    assert cache.clear() == (0, 0)


def test_where_no_directory_can_be_made_nothing_is_kept(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    for directory in (in_the_way, in_the_way / "below"):
        cache = Cache(str(directory))
        assert not cache.store(KEY, b"data")
        assert cache.load(KEY) is None
        assert cache.entries() == []
        assert cache.clear() == (0, 0)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root can write everywhere")
def test_an_unwritable_directory_can_still_be_read(cache: Cache) -> None:
    cache.store(KEY, b"data")
    os.chmod(cache.directory, 0o500)
    assert cache.load(KEY) == b"data"
    assert not cache.store(KEY, b"new")
    assert cache.load(KEY) == b"data"
    assert cache.clear() == (0, 0)
    os.chmod(cache.directory, 0o700)


@pytest.mark.parametrize("call", ["write", "open", "replace", "mkdir", "fstat", "scandir"])
def test_no_refusal_of_the_system_is_a_failure(cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        assert cache.store(key_with(0, 0), b"data") == (call == "scandir")
        assert cache.load(KEY) is None
        assert cache.entries() == []
        assert cache.clear() == (0, 0)
    if os.path.exists(cache.directory):
        assert len(os.listdir(cache.directory)) == (call == "scandir")
    assert cache.store(KEY, b"data")
    assert cache.load(KEY) == b"data"


def test_a_write_that_stops_halfway_is_continued(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:7])))
    assert cache.store(KEY, b"more than seven bytes")
    assert cache.load(KEY) == b"more than seven bytes"


def test_images_are_listed_and_cleared_and_other_files_stay(cache: Cache) -> None:
    assert (cache.entries(), cache.clear(), cache.problem()) == ([], (0, 0), None)
    keys = [digest(bytes([number])) for number in range(5)]
    for number, key in enumerate(keys):
        cache.store(key, bytes(100 * number))
        os.utime(file_of(cache, key), (1000 + number, 1000))
    others = [
        Path(cache.directory) / name for name in ("README", "x.image", f"{KEY.hex()}0.image", f"{KEY.hex()}.imag")
    ]
    for path in others:
        path.write_text("")
    sizes = [file_of(cache, key).stat().st_size for key in keys]
    assert cache.entries() == list(zip(keys, sizes, strict=True))
    assert cache.clear() == (5, sum(sizes))
    assert cache.entries() == []
    assert sorted(os.listdir(cache.directory)) == sorted(path.name for path in others)
    assert cache.store(KEY, b"data")


def test_the_images_used_least_recently_make_room_for_new_ones(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    cache.budget = 10_000
    keys = [key_with(200, number) for number in range(20)]
    for number, key in enumerate(keys):
        assert cache.store(key, bytes(1000))
        # Number 3 was written first of all, and read last.
        os.utime(file_of(cache, key), (5000, 0) if number == 3 else (100 + number, 100 + number))
    assert len(cache.entries()) == 20
    pruning = key_with(0, 0)
    assert cache.store(pruning, bytes(1000))
    kept = {key for key, _ in cache.entries()}
    assert kept == {pruning, keys[3], *keys[-7:]}
    assert sum(size for _, size in cache.entries()) <= 10_000


def test_more_than_the_budget_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "cache"))
    cache.budget = 1000
    assert not cache.store(KEY, bytes(1000))
    assert not os.path.exists(cache.directory)
    Cache(cache.directory).store(KEY, bytes(1000))
    assert cache.load(KEY) is None


def test_what_a_writer_left_behind_is_removed_when_it_is_old(cache: Cache) -> None:
    cache.store(KEY, b"data")
    for name, age in (("old", 7200), ("young", 60)):
        left = Path(cache.directory) / f"{KEY.hex()}.image.{name}.unfinished"
        left.write_text("")
        os.utime(left, (time.time() - age,) * 2)
    assert len(cache.entries()) == 1
    cache.store(key_with(0, 0), b"data")
    names = os.listdir(cache.directory)
    assert [name for name in names if "unfinished" in name] == [f"{KEY.hex()}.image.young.unfinished"]
    assert cache.clear()[0] == 2
    assert os.listdir(cache.directory) == []


def test_the_directory_is_found_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("GARDEN_CACHE_DIR", raising=False)
    assert default_directory() == "/home/somebody/.cache/garden"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_directory() == "/home/somebody/.cache/garden"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert default_directory() == "/caches/garden"
    monkeypatch.setenv("GARDEN_CACHE_DIR", "")
    assert default_directory() == "/caches/garden"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GARDEN_CACHE_DIR", "here")
    assert default_directory() == str(tmp_path / "here")
    assert Cache().directory == str(tmp_path / "here")


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_CACHE_HOME", "GARDEN_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(tmp_path)
    cache = Cache()
    assert not cache.store(KEY, b"data")
    assert cache.load(KEY) is None
    assert cache.problem() == "the user has no home directory"
    assert os.listdir(tmp_path) == []


WRITER = """
import sys
from garden.native.cache import Cache, digest

cache = Cache(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for turn in range(150):
    for number in range(4):
        assert cache.store(digest(bytes([number])), sys.argv[2].encode() * (1000 * (number + 1) + turn))
"""


def test_whoever_writes_meanwhile_a_reader_sees_one_whole_image(cache: Cache) -> None:
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                child(
                    [sys.executable, "-c", WRITER, cache.directory, letter],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    cwd=ROOT,
                    text=True,
                )
            )
            for letter in "ab"
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("\n")
            writer.stdin.flush()
        seen = set()
        while any([writer.poll() is None for writer in writers]):
            for number in range(4):
                data = cache.load(digest(bytes([number])))
                if data is not None:
                    seen.add(data[:1])
                    assert data in (b"a" * len(data), b"b" * len(data))
                    assert 0 <= len(data) - 1000 * (number + 1) < 150
        for writer in writers:
            writer.communicate()
            assert writer.returncode == 0
    assert seen
    # Whoever was last, nothing is left of what was on its way.
    assert sorted(os.listdir(cache.directory)) == sorted(f"{key.hex()}.image" for key, _ in cache.entries())
    assert len(cache.entries()) == 4


def test_loading_the_module_imports_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import garden.native.cache; print(*set(sys.modules) - before)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    assert not {"hashlib", "pathlib", "tempfile", "json", "random", "shutil"} & set(printed.stdout.split())
