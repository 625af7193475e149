"""How long the `garden` command takes to start: an empty program, beside Python itself and other languages.

And what a program that runs for seconds takes when it is new, beside its machine code that is there already.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import garden
from benchmarks.measure import environment, print_table, progress, write_flavour
from benchmarks.processes import Command

SOURCES = Path(__file__).parent / "languages"
PYTHON = "python -c pass"
_TIMES = 100
_LONG = f"""
fn repeat(n:Int sum:Int) Int {{ match {{ n == 0 {{ sum }} {{ repeat(n - 1 sum + tak(18 12 6)) }} }} }}
repeat({_TIMES} 0)
"""
OTHERS = (
    ("luajit", ".lua", "apt install luajit"),
    ("bun", ".js", "npm install -g bun"),
    ("node", ".js", "apt install nodejs"),
)


class Start:
    """A command to start. `before` is called before each start, and gives what to run."""

    def __init__(self, name: str, before: Callable[[], Command]) -> None:
        self.name = name
        self.before = before
        self.samples: list[tuple[float, float]] = []

    def sample(self) -> None:
        self.samples.append(self.before().times())

    def medians(self) -> tuple[float, float]:
        """Milliseconds that pass, and milliseconds of processor time."""
        elapsed, busy = zip(*self.samples, strict=True)
        return statistics.median(elapsed) * 1e3, statistics.median(busy) * 1e3


def run(*, rounds: int, scale: float, output: Path | None) -> None:
    """Measure, print, and write `startup.json` to `output`; a tenth of the work is fewer rounds."""
    rounds = max(1, round(rounds * scale))
    with tempfile.TemporaryDirectory() as folder:
        starts = _starts(Path(folder))
        for start in starts:
            # Caches are filled, those of the system too: the second run of a program leaves machine code.
            for _ in range(3):
                start.sample()
            start.samples.clear()
        for number in range(rounds):
            for start in starts:
                start.sample()
            progress(number + 1, rounds)
    base, base_busy = starts[0].medians()
    rows = []
    figures: dict[str, dict[str, float]] = {}
    for start in starts:
        elapsed, busy = start.medians()
        ratios = (elapsed / base, busy / base_busy)
        rows.append((start.name, f"{elapsed:.1f}", f"{ratios[0]:.2f}", f"{busy:.1f}", f"{ratios[1]:.2f}"))
        figures[start.name] = {"ms": round(elapsed, 2), "processor_ms": round(busy, 2)}
    print(f"ms of an empty program, and ratio to `{PYTHON}`")
    print_table(("", "elapsed", "ratio", "processor", "ratio"), rows)
    with tempfile.TemporaryDirectory() as folder:
        known, new = _long(Path(folder), max(1, rounds // 8))
    figures["a long program, known"] = {"ms": round(known, 1)}
    figures["a long program, new"] = {"ms": round(new, 1)}
    print(f"\nms of tak(18 12 6) {_TIMES} times: {known:.0f} where it is known, {new:.0f} where it is new")
    print(f"{new - 1.3 * known:.0f} ms more than 1.3 times the first")
    if output is not None:
        data: dict[str, Any] = {"environment": environment(), "rounds": rounds, "starts": figures}
        write_flavour(output / "startup.json", data)


def _long(folder: Path, rounds: int) -> tuple[float, float]:
    """The medians, in ms, of a program that runs for seconds: of known ones, and of new ones."""
    where, run = _command(folder)
    function = (SOURCES / "tak.garden").read_text().partition("testing.assert")[0]
    path = folder / "long.garden"
    samples: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        path.write_text(f"# {number}\n{function}\n{_LONG}")
        for is_known in (False, True):
            samples[is_known].append(Command([*run, "run", str(path)], where).times()[0])
            progress(2 * number + is_known + 1, 2 * rounds)
    return statistics.median(samples[True]) * 1e3, statistics.median(samples[False]) * 1e3


def _command(folder: Path) -> tuple[dict[str, str], list[str]]:
    """The environment and the words of the command as it is installed, or of the module where it is not."""
    # The same garden as is imported here, wherever the benchmark is run.
    root = Path(garden.__file__).parent.parent
    installed = root == Path(sysconfig.get_path("purelib"))
    where = {"GARDEN_CACHE_DIR": str(folder / "cache"), **({} if installed else {"PYTHONPATH": str(root)})}
    script = Path(sys.executable).with_name("garden")
    return where, [str(script)] if installed and script.exists() else [sys.executable, "-P", "-m", "garden"]


def _starts(folder: Path) -> list[Start]:
    where, run = _command(folder)
    program = SOURCES / "empty.garden"

    def always(*words: str) -> Callable[[], Command]:
        command = Command(words, where)
        return lambda: command

    def of_new_text() -> Command:
        new.write_text(f"# {next(number)}\n")
        return Command([*run, "run", str(new)], where)

    def without_cache() -> Command:
        shutil.rmtree(folder / "cache of one run", ignore_errors=True)
        return Command([*run, "run", str(program)], {**where, "GARDEN_CACHE_DIR": str(folder / "cache of one run")})

    new = folder / "new.garden"
    number = count()
    starts = [Start(PYTHON, always(sys.executable, "-c", "pass"))]
    starts += [
        Start("garden run", always(*run, "run", str(program))),
        Start("garden run, another program each time", of_new_text),
        Start("garden run, empty cache", without_cache),
        Start("garden check", always(*run, "check", str(program))),
        Start("garden run --engine interpreter", always(*run, "run", "--engine", "interpreter", str(program))),
        Start("python -m garden run", always(sys.executable, "-P", "-m", "garden", "run", str(program))),
    ]
    native = folder / "executable"
    built = Command([*run, "build", str(program), "-o", str(native)], where)
    if subprocess.run(built.words, env=built.environment).returncode == 0:
        starts.append(Start("what garden build makes", always(str(native))))
    for name, suffix, how in OTHERS:
        if shutil.which(name) is None:
            print(f"{name} is not installed, so not measured: {how}")
        else:
            starts.append(Start(name, always(name, str(SOURCES / f"empty{suffix}"))))
    return starts
