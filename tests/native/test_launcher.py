"""The launcher becomes a cached program where all is well, and Python wherever it is not."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from garden.cli.main import COMMANDS, _parser
from garden.native.cache import default_directory
from garden.native.executable.aot import write_executable
from garden.native.executable.launcher import launcher
from garden.native.target import AARCH64, X86_64
from tests.support.executables import HOST, Builder, emulator, needs_native
from tests.support.processes import child

pytest.importorskip("llvmlite")
pytestmark = needs_native

BUILD_ID = "0123456789abcdef" * 4
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
#: Stands in for Python: says what a process begins with, and ends in its own way.
SCRIPT = """\
#!/bin/sh
echo python
tr '\\0' '\\n' < /proc/$$/cmdline
echo environment
tr '\\0' '\\n' < /proc/$$/environ
grep '^Sig[BI]' /proc/self/status
pwd
cd /proc/$$/fd && echo *
exit 7
"""
SOURCE = b'import "io"\nio.println("from the cache")\n'
ENDLESS = 'import "io"\nfn f(n:Int) { io.println(n) f(n + 1) }\nf(0)\n'


def key(name: str, source: bytes, level: int = 1, target: str | None = HOST, build_id: str = BUILD_ID) -> str:
    """The key of a program, as `docs/internals/native.md` says it."""
    hashed = blake2b(digest_size=32)
    parts = (b"executable", str(target).encode(), b"%d" % level, build_id.encode(), os.fsencode(name), source)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.hexdigest()


class Place:
    """A folder with the launcher and what stands in for Python in `bin`, and a cache."""

    def __init__(self, folder: Path, launchers: dict[str, Path], program: Path) -> None:
        self.folder = folder
        self.program = program
        self.cache = folder / "cache"
        self.cache.mkdir(mode=0o700)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.launchers = launchers
        self.garden = self.bin / "garden"
        shutil.copy(launchers[str(HOST)], self.garden)
        self.python = self.bin / "python"
        self.python.write_text(SCRIPT)
        self.python.chmod(0o755)
        self.source = folder / "program.garden"
        self.source.write_bytes(SOURCE)
        self.environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GARDEN_CACHE_DIR": str(self.cache)}

    def keep(self, name: str | Path | None = None, source: bytes = SOURCE, **more: Any) -> Path:
        """Have the executable in the cache, whatever the source says, and return its path there."""
        path = self.cache / f"{key(str(name or self.source), source, **more)}.program"
        shutil.copy(self.program, path)
        path.chmod(0o700)
        return path

    def run(self, *words: str | Path, command: str | Path | None = None, **options: Any) -> str:
        """What the launcher becomes: `program` or `python`."""
        done = self.process(*words, command=command, **options)
        if done.stdout == b"from the cache\n" and done.returncode == 0:
            return "program"
        assert done.stdout.startswith(b"python\n"), done
        assert done.returncode == 7
        return "python"

    def process(
        self, *words: str | Path, command: str | Path | None = None, **options: Any
    ) -> subprocess.CompletedProcess[bytes]:
        options.setdefault("env", self.environment)
        return subprocess.run([command or self.garden, *words], capture_output=True, timeout=60, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], Path]:
    """A launcher for each target, and the executable of a program."""
    folder = tmp_path_factory.mktemp("launchers")
    found = {}
    for target in (X86_64, AARCH64):
        found[target] = folder / target
        write_executable(str(found[target]), launcher(target, BUILD_ID.encode(), PYTHON))
    return found, Builder(folder).build(SOURCE.decode())


@pytest.fixture
def place(tmp_path: Path, made: tuple[dict[str, Path], Path]) -> Place:
    return Place(tmp_path, *made)


# Command lines.


@pytest.mark.parametrize(
    "words",
    [
        ["run", "FILE"],
        ["FILE"],
        ["run", "-O1", "FILE"],
        ["FILE", "-O1"],
        ["-O0", "FILE", "-O1"],
        ["run", "--engine", "auto", "FILE", "--engine", "jit"],
    ],
)
def test_a_plain_run_becomes_the_program(place: Place, words: list[str]) -> None:
    words = [word.replace("FILE", str(place.source)) for word in words]
    assert place.run(*words) == "python"
    place.keep()
    assert place.run(*words) == "program"


#: What command lines are made of.
WORDS = ("run", "build", "FILE", "-O0", "-O1", "--engine", "auto", "jit", "reference", "-B", "--", "-", "")


def command_lines() -> Iterator[tuple[str, ...]]:
    """All short ones, and some longer ones."""
    for length in range(3):
        yield from product(WORDS, repeat=length)
    rng = random.Random(11)
    plain = (("-O0",), ("-O1",), ("--engine", "auto"), ("--engine", "jit"))
    for _ in range(400):
        parts = [
            ("FILE",),
            *rng.choices(plain, k=rng.randrange(4)),
            *[rng.choices(WORDS) for _ in range(rng.randrange(2))],
        ]
        rng.shuffle(parts)
        yield ("run", *[word for part in parts for word in part])


def test_command_lines_mean_the_same_as_to_the_parser_in_python(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.keep()
    parser = _parser("")
    became = 0
    for line in command_lines():
        words = [word.replace("FILE", str(place.source)) for word in line]
        try:
            given = parser.parse_args(words if words and words[0] in COMMANDS else ["run", *words])
            plain = given.command == "run" and (given.file, given.level) == (str(place.source), 1)
            plain = plain and given.engine in ("auto", "jit") and not given.backtrace
        except SystemExit:
            plain = False
        # What comes behind `--` is for Python.
        plain = plain and "--" not in words
        assert place.run(*words) == ("program" if plain else "python"), words
        became += plain
    capsys.readouterr()
    assert became > 50


def test_each_level_has_its_own_program(place: Place) -> None:
    place.keep(level=0)
    assert place.run("run", place.source) == "python"
    assert place.run("run", "-O0", place.source) == "program"
    assert place.run("run", "-O0", place.source, "-O1") == "python"


@pytest.mark.parametrize(
    "words",
    [
        [],
        [""],
        ["run"],
        ["run", ""],
        ["run", "-"],
        ["run", "FILE", "FILE"],
        ["run", "FILE", ""],
        ["run", "FILE", "-O2"],
        ["run", "FILE", "-O"],
        ["run", "-O01", "FILE"],
        ["run", "FILE", "--engine"],
        ["run", "FILE", "--engine", "jit1"],
        ["run", "--engine", "reference", "FILE"],
        ["run", "--engine", "interpreter", "FILE"],
        ["run", "--engine=jit", "FILE"],
        ["run", "-B", "FILE"],
        ["run", "--time", "FILE"],
        ["run", "FILE", "--heap-limit", "1M"],
        ["run", "--", "FILE"],
        ["runs", "FILE"],
        ["run", "run", "FILE"],
        ["build", "FILE", "-o", "out"],
        ["check", "FILE"],
        ["dump", "ir", "FILE"],
        ["doc"],
        ["cache", "--clear"],
        ["--help"],
        ["-V"],
    ],
)
def test_every_other_command_line_is_for_python(place: Place, words: list[str]) -> None:
    place.keep()
    words = [word.replace("FILE", str(place.source)) for word in words]
    done = place.process(*words)
    assert done.returncode == 7
    said = done.stdout.decode().split("environment\n")[0]
    assert said == "\n".join(["python", "/bin/sh", str(place.python), "-P", "-c", "import garden.__main__", *words, ""])


def test_files_named_like_commands_are_for_python_unless_run(place: Place) -> None:
    for name in ("build", "check", "dump", "doc"):
        (place.folder / name).write_bytes(SOURCE)
        place.keep(name)
        assert place.run(name, cwd=place.folder) == "python"
        assert place.run("run", name, cwd=place.folder) == "program"


def test_python_is_given_what_the_launcher_was_given(place: Place) -> None:
    words = ["x" * 100_000, "", "\udcff\n ", "-c", *["word"] * 2000]
    environment = {**place.environment, "A": "", "long": "y" * 100_000, "bytes": "\udcfe"}
    with open(place.source, "rb") as file:
        for pass_fds in ((), (file.fileno(),)):
            options: dict[str, Any] = {"env": environment, "pass_fds": pass_fds, "cwd": place.folder}
            launched = place.process(*words, **options)
            direct = subprocess.run(
                [place.python, "-P", "-m", "garden", *words], capture_output=True, timeout=60, **options
            )
            assert launched.stdout == direct.stdout
            assert launched.returncode == 7


def test_the_program_has_the_environment_and_the_descriptors(place: Place, tmp_path: Path) -> None:
    path = place.keep()
    shutil.copy(Builder(tmp_path).build(ENDLESS), path)
    with (
        open(os.devnull) as file,
        child(
            [place.garden, "run", place.source],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=place.environment,
            pass_fds=(file.fileno(),),
        ) as process,
    ):
        assert process.stdout.readline() == b"0\n"
        facts = Path(f"/proc/{process.pid}")
        environment = "".join([f"{name}={value}\0" for name, value in place.environment.items()])
        assert (facts / "environ").read_text() == environment
        assert (facts / "cmdline").read_text() == "garden\0"
        assert {int(name) for name in os.listdir(facts / "fd")} == {0, 1, 2, file.fileno()}
        assert (facts / "exe").resolve() == path
        process.stdout.close()
        # What a shell has for a program whose reader has gone.
        assert process.wait(60) == 141


# Keys.


def test_the_key_covers_every_byte_of_source_and_name(place: Place) -> None:
    # All remainders of the blocks of the hash.
    kept = place.keep()
    for size in range(270):
        text = bytes([size % 251]) * size
        place.source.write_bytes(text)
        path = place.cache / f"{key(str(place.source), text)}.program"
        os.link(kept, path)
        assert place.run("run", place.source) == "program", size
        path.unlink()
        assert place.run("run", place.source) == "python", size


def test_other_names_and_other_builds_are_other_programs(place: Place) -> None:
    place.keep(build_id="0" * 64)
    place.keep("program.garden")
    assert place.run("run", place.source) == "python"
    assert place.run("run", "./program.garden", cwd=place.folder) == "python"
    assert place.run("run", "program.garden", cwd=place.folder) == "program"


@pytest.mark.parametrize("rest", [b"", b"1\n", SOURCE * 100])
def test_a_byte_order_mark_is_no_part_of_the_source(place: Place, rest: bytes) -> None:
    place.source.write_bytes(b"\xef\xbb\xbf" + rest)
    place.keep(source=b"\xef\xbb\xbf" + rest)
    assert place.run("run", place.source) == "python"
    place.keep(source=rest)
    assert place.run("run", place.source) == "program"


def test_names_may_be_any_bytes(place: Place) -> None:
    for name in ("ä b\n", "\udcff\udcfe", "n" * 200):
        (place.folder / name).write_bytes(SOURCE)
        place.keep(name)
        assert place.run("run", name, cwd=place.folder) == "program"


# What is in the cache.


def damage(place: Place, kept: Path, what: str) -> None:
    """Make an entry, or the cache, what it must not be."""
    content = kept.read_bytes()
    if what == "a link":
        kept.rename(place.folder / "elsewhere")
        kept.symlink_to(place.folder / "elsewhere")
    elif what == "writable by others":
        kept.chmod(0o702)
    elif what == "writable by a group":
        kept.chmod(0o720)
    elif what == "a named pipe":
        kept.unlink()
        os.mkfifo(kept, 0o700)
    elif what == "a folder":
        kept.unlink()
        kept.mkdir(0o700)
    elif what == "empty":
        kept.write_bytes(b"")
    elif what == "cut":
        kept.write_bytes(content[:-1])
    elif what == "a header":
        kept.write_bytes(content[:232])
    elif what == "longer":
        kept.write_bytes(content + b"\0")
    elif what == "not executable":
        kept.chmod(0o600)
    elif what == "no executable":
        kept.write_bytes(b"#!" + content[2:])
    elif what == "a cache that is a link":
        place.cache.rename(place.folder / "real")
        place.cache.symlink_to(place.folder / "real")
    elif what == "a cache that others may write":
        place.cache.chmod(0o703)
    elif what == "a cache that a group may write":
        place.cache.chmod(0o770)
    elif what == "a cache that is a file":
        shutil.rmtree(place.cache)
        place.cache.write_bytes(content)
    elif what == "no cache":
        shutil.rmtree(place.cache)
    elif what == "somebody else's":
        os.chown(kept, 1234, -1)
    else:
        assert what == "somebody else's cache"
        os.chown(place.cache, 1234, -1)


DAMAGES = [
    *("a link", "writable by others", "writable by a group", "a named pipe", "a folder", "empty", "cut", "a header"),
    *("longer", "not executable", "no executable", "a cache that is a link", "a cache that others may write"),
    *("a cache that a group may write", "a cache that is a file", "no cache"),
    *("somebody else's", "somebody else's cache"),
]


@pytest.mark.parametrize("what", DAMAGES)
def test_what_cannot_be_trusted_is_not_executed(place: Place, what: str) -> None:
    if what.startswith("somebody") and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    kept = place.keep()
    assert place.run("run", place.source) == "program"
    damage(place, kept, what)
    assert place.run("run", place.source) == "python"


def test_a_cache_behind_a_link_further_up_is_the_cache(place: Place) -> None:
    place.keep()
    (place.folder / "link").symlink_to(place.folder)
    place.environment["GARDEN_CACHE_DIR"] = str(place.folder / "link" / "cache")
    assert place.run("run", place.source) == "program"


# Where the cache is.


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"GARDEN_CACHE_DIR": "/cache", "XDG_CACHE_HOME": "/other", "HOME": "/other"}, "cache"),
        ({"GARDEN_CACHE_DIR": "/cache//"}, "cache"),
        ({"GARDEN_CACHE_DIR": "", "XDG_CACHE_HOME": "/caches", "HOME": "/other"}, "caches/garden"),
        ({"XDG_CACHE_HOME": "/caches/"}, "caches/garden"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home"}, "home/.cache/garden"),
        ({"XDG_CACHE_HOME": "caches", "HOME": "/home/"}, "home/.cache/garden"),
        ({"XDG_CACHE_HOMES": "/caches", "HOME": "/home"}, "home/.cache/garden"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    place: Place, variables: dict[str, str], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = place.keep()
    directory = place.folder / where
    directory.mkdir(0o700, parents=True, exist_ok=True)
    if kept.parent != directory:
        kept.rename(directory / kept.name)
    environment = {"PATH": os.environ["PATH"]}
    for name, value in variables.items():
        environment[name] = f"{place.folder}{value}" if value.startswith("/") else value
    assert place.run("run", place.source, env=environment) == "program"
    (directory / kept.name).unlink()
    assert place.run("run", place.source, env=environment) == "python"
    # Python puts it there.
    for name in ("GARDEN_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_directory() == str(directory)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"HOME": ""},
        {"HOME": "home"},
        {"GARDEN_CACHE_DIR": "cache"},
        {"GARDEN_CACHE_DIR": "/"},
        {"GARDEN_CACHE_DIR": "PLACE/bin/../cache"},
        {"GARDEN_CACHE_DIR": "PLACE/./cache"},
        {"GARDEN_CACHE_DIR": "PLACE//cache"},
        {"GARDEN_CACHE_DIR": "PLACE/cache/."},
        {"GARDEN_CACHE_DIR": "PLACE/cache" + "/" * 4000},
        {"GARDEN_CACHE_DIR": "/x" * 3000},
        {"GARDEN_CACHE_DIR": "PLACE/cache", "PYTHONPATH": "elsewhere"},
    ],
)
def test_an_uncertain_place_or_another_garden_is_for_python(place: Place, variables: dict[str, str]) -> None:
    place.keep()
    environment = {name: value.replace("PLACE", str(place.folder)) for name, value in variables.items()}
    environment["PATH"] = os.environ["PATH"]
    assert place.run("run", place.source, env=environment, cwd=place.folder) == "python"


# Programs that are no files.


def test_what_is_no_regular_file_is_not_even_opened(place: Place) -> None:
    pipe = place.folder / "pipe"
    os.mkfifo(pipe)
    place.keep(pipe, b"")
    assert place.run("run", pipe) == "python"
    for name in (str(place.folder), "/dev/null", str(place.folder / "none"), "n" * 5000, f"{place.source}/x"):
        place.keep(name, b"") if len(name) < 5000 else None
        assert place.run("run", name) == "python"


def test_a_program_may_be_behind_a_link(place: Place) -> None:
    link = place.folder / "link"
    link.symlink_to(place.source)
    place.keep(link)
    assert place.run("run", link) == "program"


def test_a_file_that_is_redirected_can_be_read_again(place: Place) -> None:
    place.keep("/dev/stdin")
    with place.source.open("rb") as file:
        assert place.run("run", "/dev/stdin", stdin=file) == "program"
    with place.source.open("rb") as file:
        assert place.run("run", "-", stdin=file) == "python"
        assert file.tell() == 0


def test_huge_files_and_those_of_no_size_are_for_python(place: Place) -> None:
    limit = 1 << 24
    for size, what in ((limit, "program"), (limit + 1, "python")):
        text = SOURCE.ljust(size, b"\n")
        place.source.write_bytes(text)
        place.keep(source=text)
        assert place.run("run", place.source) == what
    with place.source.open("r+b") as file:
        file.truncate(1 << 40)
    assert place.run("run", place.source) == "python"
    # It says that it is empty, and is not.
    place.keep("/proc/version", b"")
    place.keep("/proc/version", Path("/proc/version").read_bytes())
    assert place.run("run", "/proc/version") == "python"


def test_a_file_that_cannot_be_read_is_for_python(place: Place) -> None:
    place.keep()
    place.source.chmod(0)
    if os.geteuid() == 0:
        assert place.run("run", place.source) == "program"
    else:
        assert place.run("run", place.source) == "python"


# Where the launcher is, and Python.


def test_python_is_found_beside_the_launcher_however_it_is_called(place: Place) -> None:
    (place.folder / "links").mkdir()
    (place.folder / "links" / "garden").symlink_to("../bin/garden")
    (place.folder / "links" / "other").symlink_to("garden")
    path = {**place.environment, "PATH": f"{place.folder}/links:{os.environ['PATH']}"}
    for command, options in [
        (place.folder / "links" / "garden", {}),
        (place.folder / "links" / "other", {}),
        ("bin/garden", {"cwd": place.folder}),
        ("./garden", {"cwd": place.bin}),
        ("garden", {"env": path}),
    ]:
        done = place.process("run", "x", command=command, **options)
        assert done.stdout.split(b"\n")[2] == os.fsencode(place.python), done


def test_an_environment_may_be_moved(place: Place) -> None:
    place.keep()
    moved = place.folder / "moved"
    place.bin.rename(moved)
    assert place.run("run", place.source, command=moved / "garden") == "program"
    done = place.process("run", "x", command=moved / "garden")
    assert done.stdout.split(b"\n")[2] == os.fsencode(moved / "python")


def test_python_of_the_right_version_comes_first(place: Place) -> None:
    shutil.copy(place.python, place.bin / PYTHON)
    assert place.process("-V").stdout.split(b"\n")[2] == os.fsencode(place.bin / PYTHON)


def test_python_may_be_on_the_path(place: Place) -> None:
    elsewhere = place.folder / "else where"
    elsewhere.mkdir()
    place.python.rename(elsewhere / PYTHON)
    (place.folder / PYTHON).write_text("#!/bin/sh\nexit 1\n")
    (place.folder / PYTHON).chmod(0o755)
    paths = ["", ".", "relative", "/" + "x" * 5000, str(place.folder / "none"), str(elsewhere), "/bin"]
    environment = {**place.environment, "PATH": ":".join(paths)}
    done = place.process("-V", env=environment, cwd=place.folder)
    assert done.stdout.split(b"\n")[2] == os.fsencode(elsewhere / PYTHON)
    for path in ({}, {"PATH": ""}, {"PATH": "::"}, {"PATH": f".:{place.folder}/none"}):
        done = place.process("-V", env=path, cwd=place.folder)
        assert (done.returncode, done.stdout) == (127, b"")
        assert done.stderr == f"garden: cannot find {PYTHON}\n".encode()


#: Starts a command with no arguments at all, or with standard streams closed, as their numbers say.
STARTER = """\
import ctypes, os, sys
libc = ctypes.CDLL(None)
command, how, *words = map(os.fsencode, sys.argv[1:])
for number in how.decode() if how.isdigit() else "":
    os.close(int(number))
pointers = ctypes.c_char_p * (len(words) + 2)
arguments = pointers() if how == b"none" else pointers(command, *words)
environment = [b"%s=%s" % item for item in os.environb.items()]
libc.execve(command, arguments, (ctypes.c_char_p * (len(environment) + 1))(*environment))
"""


def started(place: Place, command: Path, how: str, *words: str | Path) -> tuple[int, bytes, bytes]:
    starter = [sys.executable, "-c", STARTER, str(command), how, *map(str, words)]
    done = subprocess.run(starter, capture_output=True, timeout=60, env=place.environment)
    return done.returncode, done.stdout, done.stderr


def test_a_process_may_have_no_arguments(place: Place) -> None:
    place.keep()
    status, output, _ = started(place, place.garden, "none")
    assert status == 7
    # Newer systems add an empty one.
    assert output.split(b"environment\n")[0].split(b"\n")[3:6] == [b"-P", b"-c", b"import garden.__main__"]


@pytest.mark.parametrize("closed", ["0", "1", "2", "01", "12", "012"])
def test_streams_that_are_closed_stay_closed(place: Place, closed: str) -> None:
    place.keep()
    assert started(place, place.garden, closed, "run", place.source) == started(place, place.program, closed)
    direct = started(place, place.python, closed, "-P", "-m", "garden", "-V")
    assert started(place, place.garden, closed, "-V") == direct


# The other machine.


@pytest.mark.skipif(HOST == AARCH64, reason="that is this machine")
def test_the_launcher_for_aarch64_does_the_same_in_an_emulator(place: Place) -> None:
    words = [*emulator(AARCH64), "-strace", str(place.launchers[AARCH64])]
    shutil.copy(place.launchers[AARCH64], place.garden)
    words[-1] = str(place.garden)

    def tries(*more: str | Path) -> bool:
        """Whether it wants to become a program. Emulators may be unable to, and then it becomes Python."""
        done = subprocess.run([*words, *more], capture_output=True, timeout=60, env=place.environment)
        tried = b"execveat(" in done.stderr
        if tried and done.returncode == 0:
            assert done.stdout == b"from the cache\n"
        else:
            assert done.returncode == 7
            said = done.stdout.split(b"environment\n")[0].decode()
            expected = ["python", "/bin/sh", str(place.python), "-P", "-m", "garden", *map(str, more), ""]
            assert said == "\n".join(expected)
        return tried

    assert not tries("run", place.source)
    place.keep()
    assert not tries("run", place.source)
    kept = place.keep(target=AARCH64)
    assert tries("run", place.source)
    assert not tries("check", place.source)
    for what in ("a cache that others may write", "a cache that is a link"):
        damage(place, kept, what)
        assert not tries("run", place.source)
        shutil.rmtree(place.cache) if not place.cache.is_symlink() else place.cache.unlink()
        place.cache.mkdir(0o700)
        kept = place.keep(target=AARCH64)
    for what in ("a link", "writable by others", "cut", "a named pipe"):
        assert tries("run", place.source)
        damage(place, kept, what)
        assert not tries("run", place.source)
        kept.unlink()
        place.keep(target=AARCH64)
    for size in (0, 1, 127, 128, 129, 255, 256, 300):
        place.source.write_bytes(b"x" * size)
        assert not tries("run", place.source)
        place.keep(source=b"x" * size, target=AARCH64)
        assert tries("run", place.source)


def test_a_launcher_is_the_same_whenever_it_is_made(made: tuple[dict[str, Path], Path]) -> None:
    for target, path in made[0].items():
        assert launcher(target, BUILD_ID.encode(), PYTHON) == path.read_bytes()
        assert launcher(target, BUILD_ID[::-1].encode(), PYTHON) != path.read_bytes()
