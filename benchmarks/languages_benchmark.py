"""Nine small programs in garden, Lua, JavaScript, Python and C, on whatever of these is installed.

Each program is its own process and checks its result. What counts is its time less that of the same runtime's
empty program, which runs in the same rounds: so garden's time includes compiling, unless the program is in the
cache, and that of a JIT its warming up, but not what Python needs to start. The whole time and the memory are reported
as well.
"""

from __future__ import annotations

import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import garden
from benchmarks.measure import environment, optional, print_table, progress, pyplot, write_json
from benchmarks.processes import Command

SOURCES = Path(__file__).parent / "languages"
WORKLOADS = (
    "ackermann",
    "collatz",
    "fib",
    "gcd_sum",
    "keyword_table",
    "mandelbrot",
    "n_body",
    "primes_count",
    "tak",
)
EMPTY = "empty"
# The stack limit in bytes, for runtimes that recurse on the machine's stack.
STACK = 256 << 20
# Net milliseconds below this are within noise; in ratios they count as this.
FLOOR = 0.3
# Engines that run bytecode, which the cache does not have.
_OF_BYTECODE = ("interpreter", "reference")
_RAN = re.compile(r"ran in ([0-9.]+) ms")


class Runtime:
    """A way to run programs. `command` makes one of a source, and raises `CalledProcessError` where it is refused.

    Of the suffixes, the first that a workload has is its source. Only each `every`-th round runs a slow one. One that
    `reports` says itself how long a program ran, without compiling it, which it does each time.
    """

    def __init__(
        self,
        name: str,
        suffixes: Sequence[str],
        command: Callable[[Path], Command],
        *,
        version: Sequence[str] = (),
        every: int = 1,
        reports: bool = False,
    ) -> None:
        self.name = name
        self.suffixes = suffixes
        self.command = command
        self.version = version
        self.every = every
        self.reports = reports

    def source(self, workload: str) -> Path:
        """The workload in the runtime's language."""
        paths = [SOURCES / f"{workload}{suffix}" for suffix in self.suffixes]
        return next(path for path in paths if path.exists())


# By runtime and workload. A workload that a runtime fails has no entry.
Times = dict[str, dict[str, float]]


def run(
    *, rounds: int, scale: float, output: Path | None, workloads: list[str] | None, runtimes: list[str] | None
) -> None:
    """Measure, print, and write `languages.json` and `languages.svg` to `output`; a tenth of the work is fewer rounds.

    Raises `SystemExit` where a name is wrong, or, after the report, where a program failed.
    """
    rounds = max(1, round(rounds * scale))
    chosen = _chosen(WORKLOADS, workloads, "workload")
    _raise_stack_limit()
    with tempfile.TemporaryDirectory() as folder:
        missing: list[str] = []
        there = _runtimes(Path(folder), missing)
        for line in missing:
            print(line)
        usual = [name for name in there if name != "garden-reference"]
        used = [there[name] for name in _chosen(list(there), runtimes or usual, "runtime")]
        commands, failures = _commands(used, [EMPTY, *chosen])
        memory, failed = _memory(commands)
        # Without an empty program there is nothing to compare with.
        commands = {
            name: {key: command for key, command in by.items() if key in memory[name]}
            for name, by in commands.items()
            if EMPTY in memory[name]
        }
        samples, reported = _samples({runtime.name: runtime for runtime in used}, commands, rounds)
        versions = {runtime.name: _first_line(runtime.version) for runtime in used if runtime.version}
    whole = {name: {key: statistics.median(of) for key, of in by.items()} for name, by in samples.items()}
    spread = {name: {key: _spread(of) for key, of in by.items()} for name, by in samples.items()}
    net = {name: {key: whole[name][key] - by[EMPTY] for key in by if key != EMPTY} for name, by in whole.items()}
    for name, by in reported.items():
        net[name].update({key: statistics.median(of) for key, of in by.items() if key != EMPTY})
    _report(chosen, whole, net, spread, memory)
    if output is not None:
        data = {
            "environment": {**environment([optional("llvmlite", [])]), **versions},
            "rounds": rounds,
            "net_ms": _rounded(net, 3),
            "whole_ms": _rounded(whole, 3),
            "spread_ms": _rounded(spread, 3),
            "peak_mb": _rounded(memory, 1),
            "ratios": [summary.data() for summary in _summaries(net)],
        }
        write_json(output / "languages.json", data)
        _plot(output / "languages.svg", chosen, net)
    if failures or failed:
        raise SystemExit("\n".join([*failures, *failed]))


def _chosen(known: Sequence[str], names: Sequence[str] | None, kind: str) -> list[str]:
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise SystemExit(f"no {kind} {', '.join(unknown)} here; there are {', '.join(known)}")
    return [name for name in known if names is None or name in names]


def _raise_stack_limit() -> None:
    """For this process, from which all others have it."""
    _, most = resource.getrlimit(resource.RLIMIT_STACK)
    limit = STACK if most == resource.RLIM_INFINITY else min(STACK, most)
    if limit < STACK:
        print(f"the stack is limited to {limit} bytes here, so deep recursion may fail", file=sys.stderr)
    resource.setrlimit(resource.RLIMIT_STACK, (limit, most))


def _runtimes(folder: Path, missing: list[str]) -> dict[str, Runtime]:
    """What can be measured here. Executables stand in the folder; how to install what is missing is noted."""
    runtimes = _garden(folder)
    # What V8 may take of the stack, in KiB; half is left for what is not JavaScript.
    node = ["node", f"--stack-size={STACK >> 11}"]
    no_jit = {"BUN_JSC_useJIT": "0"}
    for name, suffixes, words, more, version, how in (
        ("luajit", [".lua"], ["luajit"], {}, "-v", "apt install luajit"),
        ("luajit-joff", [".lua"], ["luajit", "-joff"], {}, "-v", "apt install luajit"),
        ("lua5.4", [".lua54", ".lua"], ["lua5.4"], {}, "-v", "apt install lua5.4"),
        ("bun", [".js"], ["bun"], {}, "--version", "npm install -g bun"),
        ("bun-nojit", [".js"], ["bun"], no_jit, "--version", "npm install -g bun"),
        ("node", [".js"], node, {}, "--version", "apt install nodejs"),
    ):
        if shutil.which(words[0]) is None:
            missing.append(f"{name} is not installed, so not measured: {how}")
        else:
            runtimes.append(Runtime(name, suffixes, _given_source(words, more), version=[words[0], version]))
    runtimes.append(Runtime("cpython", [".py"], _given_source([sys.executable]), every=3))
    if shutil.which("cc") is None:
        missing.append("cc is not installed, so not measured: apt install gcc")
    else:
        compile_c = _compiled(folder, lambda path, out: ["cc", "-O2", "-o", str(out), str(path), "-lm"])
        runtimes.append(Runtime("cc", [".c"], compile_c, version=["cc", "--version"]))
    return {runtime.name: runtime for runtime in runtimes}


def _garden(folder: Path) -> list[Runtime]:
    """The engines that `garden run` offers, and executables where garden makes them."""
    # The same garden as is imported here, wherever the benchmark is run.
    words = [sys.executable, "-P", "-m", "garden"]
    where = {"PYTHONPATH": str(Path(garden.__file__).parent.parent)}

    def help_of(*command: str) -> str:
        asked = Command([*words, *command, "--help"], where)
        return subprocess.run(asked.words, env=asked.environment, capture_output=True, text=True, check=True).stdout

    listed = re.search(r"--engine \{([^}]*)\}", help_of("run"))
    engines = [] if listed is None else re.split(r",\s*", listed[1])
    runtimes = []
    for name in engines:
        reports = name in _OF_BYTECODE
        command = _given_source([*words, "run", *(["--time"] if reports else []), "--engine", name], where)
        every = 10 if name == "reference" else 1
        runtimes.append(Runtime(f"garden-{name}", [".garden"], command, every=every, reports=reports))
    if re.search(r"^ +build\b", help_of(), re.MULTILINE):
        build = _compiled(folder, lambda path, out: [*words, "build", str(path), "-o", str(out)], where)
        runtimes.append(Runtime("garden-executable", [".garden"], build))
    return runtimes


def _given_source(words: Sequence[str], more: dict[str, str] | None = None) -> Callable[[Path], Command]:
    """A command that is given the source."""
    return lambda path: Command([*words, str(path)], more)


def _compiled(
    folder: Path, words: Callable[[Path, Path], list[str]], more: dict[str, str] | None = None
) -> Callable[[Path], Command]:
    """A command that is compiled before the rounds, by the words that make a file of a source."""

    def command(path: Path) -> Command:
        out = folder / f"{path.stem}{path.suffix}.out"
        compiler = Command(words(path, out), more)
        subprocess.run(compiler.words, env=compiler.environment, check=True)
        return Command([str(out)])

    return command


def _commands(runtimes: Sequence[Runtime], workloads: Sequence[str]) -> tuple[dict[str, dict[str, Command]], list[str]]:
    """The commands of each runtime, and what is said of those that cannot be compiled."""
    commands: dict[str, dict[str, Command]] = {}
    failures = []
    for runtime in runtimes:
        for workload in workloads:
            try:
                commands.setdefault(runtime.name, {})[workload] = runtime.command(runtime.source(workload))
            except subprocess.CalledProcessError:
                failures.append(f"{runtime.name} does not compile {workload}")
    return commands, failures


def _memory(commands: dict[str, dict[str, Command]]) -> tuple[Times, list[str]]:
    """The peak memory of each command in MB, once its caches are warm; and what is said of those that fail.

    The second run of a garden program leaves its machine code.
    """
    memory: Times = {name: {} for name in commands}
    failures = []
    schedule = [(name, workload) for name, by in commands.items() for workload in by]
    for done, (name, workload) in enumerate(schedule):
        try:
            for _ in range(3):
                memory[name][workload] = commands[name][workload].peak_bytes() / 1e6
        except ChildProcessError as error:
            failures.append(f"{name} fails {workload}: {error}")
        progress(done + 1, len(schedule))
    return memory, failures


# By runtime and workload, milliseconds of each run.
_Samples = dict[str, dict[str, list[float]]]


def _samples(
    runtimes: dict[str, Runtime], commands: dict[str, dict[str, Command]], rounds: int
) -> tuple[_Samples, _Samples]:
    """Whole times, and those that runtimes report. A round runs a workload on all runtimes before the next workload."""
    samples: _Samples = {name: {key: [] for key in by} for name, by in commands.items()}
    reported: _Samples = {name: {key: [] for key in by} for name, by in commands.items() if runtimes[name].reports}
    schedule = [
        (name, workload)
        for number in range(rounds)
        for workload in (EMPTY, *WORKLOADS)
        for name in commands
        if workload in commands[name] and number % runtimes[name].every == 0
    ]
    for done, (name, workload) in enumerate(schedule):
        command = commands[name][workload]
        if name in reported:
            seconds, milliseconds = command.reported(_RAN)
            reported[name][workload].append(milliseconds)
        else:
            seconds = command.seconds()
        samples[name][workload].append(seconds * 1e3)
        progress(done + 1, len(schedule))
    return samples, reported


def _first_line(words: Sequence[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return (done.stdout or done.stderr).splitlines()[0]


def _spread(values: Sequence[float]) -> float:
    """Half the distance between the quartiles."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, method="inclusive")
    return (high - low) / 2


def _rounded(times: Times, digits: int) -> Times:
    return {name: {key: round(value, digits) for key, value in by.items()} for name, by in times.items()}


class _Summary:
    """How a garden engine compares with what else there is, over the workloads that both have."""

    def __init__(self, engine: str, other: str, ratios: dict[str, float]) -> None:
        self.engine = engine
        self.other = other
        self.mean = statistics.geometric_mean(ratios.values())
        self.worst = max(ratios, key=lambda workload: ratios[workload])
        self.worst_ratio = ratios[self.worst]

    def text(self) -> str:
        """For the table."""
        return f"{self.mean:.2f} ({self.worst_ratio:.2f} {self.worst})"

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "engine": self.engine,
            "to": self.other,
            "geometric_mean": round(self.mean, 3),
            "worst": round(self.worst_ratio, 3),
            "worst_workload": self.worst,
        }


def _summaries(net: Times) -> list[_Summary]:
    """Each garden engine over each rival, and over the faster of LuaJIT and Bun at each workload."""
    rivals: Times = {name: net[name] for name in ("luajit-joff", "luajit", "bun", "cc") if name in net}
    if "luajit" in net and "bun" in net:
        both = net["luajit"].keys() & net["bun"].keys()
        rivals["faster of luajit, bun"] = {name: min(net["luajit"][name], net["bun"][name]) for name in both}
    summaries = []
    for engine in net:
        if not engine.startswith("garden-"):
            continue
        for other, times in rivals.items():
            shared = [name for name in WORKLOADS if name in net[engine] and name in times]
            if shared:
                ratios = {name: max(net[engine][name], FLOOR) / max(times[name], FLOOR) for name in shared}
                summaries.append(_Summary(engine, other, ratios))
    return summaries


def _report(workloads: Sequence[str], whole: Times, net: Times, spread: Times, memory: Times) -> None:
    names = list(whole)

    def rows(keys: Sequence[str], cell: Callable[[str, str], str]) -> list[list[str]]:
        return [[key, *[cell(name, key) if key in whole[name] else "failed" for name in names]] for key in keys]

    def net_cell(name: str, key: str) -> str:
        value = net[name][key]
        return f"<{FLOOR}" if value < FLOOR else f"{value:.1f}"

    print("net ms: a program less the empty one of the same runtime")
    print_table(["", *names], rows(workloads, net_cell))
    summaries = _summaries(net)
    if summaries:
        print(f"\nratios of net times: geometric mean (the worst, where); below {FLOOR} ms is noise, counts as {FLOOR}")
        by_engine: dict[str, dict[str, str]] = {}
        for summary in summaries:
            by_engine.setdefault(summary.engine, {})[summary.other] = summary.text()
        others = list(dict.fromkeys(summary.other for summary in summaries))
        print_table(
            ["", *[f"to {other}" for other in others]],
            [[engine, *[texts.get(other, "-") for other in others]] for engine, texts in by_engine.items()],
        )
    print("\nms of the whole process, start included")
    spreads = ["spread of empty", *[f"{spread[name][EMPTY]:.1f}" for name in names]]
    print_table(["", *names], [*rows([EMPTY, *workloads], lambda name, key: f"{whole[name][key]:.1f}"), spreads])
    print("\npeak MB resident")
    print_table(["", *names], rows([EMPTY, *workloads], lambda name, key: f"{memory[name][key]:.1f}"))


def _plot(path: Path, workloads: Sequence[str], net: Times) -> None:
    plots = pyplot()
    if plots is None:
        return
    figure, axes = plots.subplots(figsize=(8, 5))
    for name, times in net.items():
        ours = name.startswith("garden-")
        there = [workload for workload in workloads if workload in times]
        values = [max(times[workload], FLOOR) for workload in there]
        axes.plot(there, values, "o" if ours else "x", label=name)
    axes.set_yscale("log")
    axes.set_ylabel("net ms")
    axes.tick_params(axis="x", rotation=30)
    axes.legend(fontsize=8, ncols=2)
    axes.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
