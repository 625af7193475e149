"""`python -m benchmarks.superinstructions`: choose the superinstructions of the interpreter, and print them.

The programs in `training` are run in an interpreter that counts, for each word of code, how often it is executed, and
how often it jumps. All programs weigh the same. What a run of instructions would save is estimated as the dispatches
that it does without, and the waits: for the target of a jump inside the run, and for registers whose values are known.

The choice is greedy. The run that saves most is taken, and what runs inside it is not counted again; then the next,
until a run would save too little. Candidates are all runs that enough of the programs execute. The beginnings of
functions that stand in `GUARDS` are taken before.

The small programs of the tests are not among them: what they execute is mostly their top level, once. Nor is anything
that is a workload of the benchmark across languages in another size.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy

from allocators import PageAlloc
from garden.bytecode import ops as bytecode
from garden.bytecode.superinstructions import (
    AHEAD,
    CODES,
    FIRST,
    GUARDS,
    OPCODE,
    OTHER,
    SAME,
    Run,
    Step,
    is_conditional,
    leaves,
    parse,
    preference,
    tests_of,
    written,
)
from garden.native.codegen import interpreter
from garden.native.codegen.interpreter import Handler
from garden.native.codegen.module import RuntimeFunctions
from garden.native.image.load import Image
from garden.native.run.interpreter_machine import InterpreterMachine
from garden.native.run.jit import externals
from garden.native.target import compile_text, host_target
from garden.pipeline import Compilation, StageAllocators
from garden.source import Source
from garden.std import STANDARD

#: None of these is reported anywhere: what is chosen on a program looks better there than it is.
TRAINING = tuple(sorted((Path(__file__).parent / "training").glob("*.garden")))

# What is saved, in dispatches, where a jump stays in the run, and where the value of an operand is known.
WAIT_FOR_TARGET = 1.0
WAIT_FOR_VALUE = 0.25
# What is chosen: so many runs beside the guards at most, of so many words at most, that save such a part of all
# dispatches at least, and that so many programs execute.
MOST = CODES - FIRST - len(GUARDS)
LONGEST = 6
LEAST = 0.001
PROGRAMS = 2
# Jumps further than this count as leaving the run.
LONGEST_SKIP = 4


class CountingHandler(Handler):
    """A handler that counts: at the address in the global `counters`, two words for each word of code."""

    def text(self, name: str) -> str:
        # The word that the last frame returns to is not among the code.
        if self.run[0].code != bytecode.HALT:
            self._tally(0)
        return super().text(name)

    def _target(self) -> str:
        self._tally(1)
        return super()._target()

    def _tally(self, which: int) -> None:
        here = self.value("ptrtoint ptr %pc to i64")
        first = self.value("ptrtoint ptr %code to i64")
        offset = self.value(f"mul i64 {self.value(f'sub i64 {here}, {first}')}, 2")
        counters = self.value("load ptr, ptr @counters")
        counter = self.beyond(self.beyond(counters, "i8", offset), "i64", which)
        more = self.value(f"add i64 {self.value(f'load i64, ptr {counter}')}, 1")
        self.line(f"store i64 {more}, ptr {counter}")


class Profile(NamedTuple):
    """The words of a program, and of each, how often it is executed, and the part of that in which it jumps."""

    words: list[int]
    counts: list[float]
    jumps: list[float]


def profile(path: Path, object: bytes) -> Profile:
    """Run a program; counts are parts of all instructions that it executes."""
    source = Source(path.name, path.read_bytes())
    with StageAllocators() as allocators, Compilation(source, allocators, STANDARD) as compilation:
        code = compilation.emit()
        words: list[int] = code.words.view.tolist()
        image = Image(object, PageAlloc(), externals())
        counters = (ctypes.c_int64 * (2 * len(words)))()
        ctypes.c_void_p.from_address(image.address("counters")).value = ctypes.addressof(counters)
        with InterpreterMachine(code, image, allocators["run"]) as machine:
            machine.run()
    executed, jumped = counters[::2], counters[1::2]
    total = sum(executed)
    return Profile(
        words,
        [count / total for count in executed],
        [part / max(1, count) for part, count in zip(jumped, executed, strict=True)],
    )


def run_at(words: Sequence[int], index: int, length: int) -> Run | None:
    """A run of `length` words, with what is known of it; None if it would be none."""
    codes = [word & 0xFF for word in words[index : index + length]]
    if len(codes) < length:
        return None
    steps: list[Step] = []
    writers: dict[int, int] = {}
    ahead: dict[int, dict[int, int]] = {}
    for place, code in enumerate(codes):
        word = words[index + place]
        if place in ahead:
            writers = ahead.pop(place)
        elif place and leaves(codes[place - 1]):
            return None
        if code in (bytecode.HALT, bytecode.SWITCH):
            return None
        entry = bytecode.OPS[code]
        registers = [word >> 8 * position & 0xFF for position in (1, 2, 3)]
        back = [
            place - writers[register] if kind == bytecode.SOURCE and register in writers else 0
            for kind, register in zip((entry.a, entry.b, entry.c), registers, strict=True)
        ]
        skip = (word >> 32) - index - place if is_conditional(code) else 0
        end = place + skip
        if not (2 <= skip <= LONGEST_SKIP and end <= length and leaves(codes[end - 1]) and not ahead):
            skip = 0
        else:
            ahead[end] = dict(writers)
        for position in written(code):
            writers.pop(registers[position - 1], None)
        if entry.a == bytecode.DEST and registers[0] not in [registers[position - 1] for position in written(code)[1:]]:
            writers[registers[0]] = place
        steps.append(Step(code, skip, (back[0], back[1], back[2])))
    return tuple(steps)


def matches(words: Sequence[int], index: int, run: Run) -> bool:
    """Whether a run begins at a word."""
    if index + len(run) > len(words):
        return False

    def byte(offset: int) -> int:
        return words[index + offset // 8] >> 8 * (offset % 8) & 0xFF

    for kind, x, y in tests_of(run):
        if kind == OPCODE:
            holds = byte(x) == y
        elif kind == SAME:
            holds = byte(x) == byte(y)
        elif kind == OTHER:
            holds = byte(x) != byte(y)
        else:
            assert kind == AHEAD
            holds = words[index + x // 8] >> 32 == index + y
        if not holds:
            return False
    return True


def assigned(profile: Profile, runs: Sequence[Run]) -> list[Run]:
    """The run that begins at each word, as the interpreter finds it: the best one that matches."""
    by_code: dict[int, list[Run]] = {}
    for run in sorted(runs, key=preference, reverse=True):
        by_code.setdefault(run[0].code, []).append(run)
    found = []
    for index, word in enumerate(profile.words):
        fitting = [run for run in by_code.get(word & 0xFF, ()) if matches(profile.words, index, run)]
        found.append(fitting[0] if fitting else (Step(word & 0xFF),))
    return found


def cost(profile: Profile, runs: Sequence[Run]) -> float:
    """What executing a program costs with these runs, in dispatches, as a part of what its instructions are.

    How often each word is dispatched follows from where control continues from each run, and how often; where a call
    returns to is dispatched as often as the call is executed.
    """
    words, counts, jumps = profile
    size = len(words)
    ways = numpy.zeros((size, size))
    costs = numpy.zeros(size)
    entries = numpy.zeros(size)
    for index, run in enumerate(assigned(profile, runs)):
        code = words[index] & 0xFF
        if code in (bytecode.CALL, bytecode.SYS):
            entries[index + 1] += counts[index]
        if not counts[index]:
            continue
        # How often each word of the run is reached, and what follows it.
        parts = [1.0] + [0.0] * len(run)
        costs[index] = 1.0
        for place, step in enumerate(run):
            part = parts[place]
            word = words[index + place]
            costs[index] -= part * WAIT_FOR_VALUE * sum([1 for back in step.back if back])
            if is_conditional(step.code):
                taken = part * jumps[index + place]
                if step.skip:
                    parts[place + step.skip] += taken
                else:
                    ways[index, word >> 32] += taken
                    costs[index] += taken * WAIT_FOR_TARGET
                parts[place + 1] += part - taken
            elif step.code in (bytecode.JMP, bytecode.TAIL, bytecode.CALL):
                ways[index, word >> 32] += part
            elif not leaves(step.code):
                parts[place + 1] += part
        if parts[-1]:
            ways[index, index + len(run)] += parts[-1]
    dispatched = numpy.linalg.solve(numpy.eye(size) - ways.T, entries)
    return float(dispatched @ costs)


def candidates(profiles: Sequence[Profile], longest: int, least: float) -> set[Run]:
    """All runs of words that are executed at least so often."""
    found = set()
    for profile in profiles:
        for index, count in enumerate(profile.counts):
            for length in range(2, longest + 1):
                run = run_at(profile.words, index, length) if count >= least else None
                if run is not None:
                    found.add(run)
    return found


def occurs(run: Run, profile: Profile) -> bool:
    """Whether a program executes a run."""
    return any([count and matches(profile.words, index, run) for index, count in enumerate(profile.counts)])


def choose(
    profiles: Sequence[Profile],
    *,
    most: int = MOST,
    longest: int = LONGEST,
    least: float = LEAST,
    programs: int = PROGRAMS,
) -> list[tuple[Run, float]]:
    """At most `most` runs beside `GUARDS` that so many programs execute, each with what it saves, at least `least`."""
    runs = [parse(guard) for guard in GUARDS]
    costs = [cost(profile, runs) for profile in profiles]
    pending: dict[Run, list[int]] = {}
    for run in sorted(candidates(profiles, longest, least)):
        numbers = [number for number, profile in enumerate(profiles) if occurs(run, profile)]
        if len(numbers) >= programs:
            pending[run] = numbers
    # A run that is taken makes others save less, hardly ever more: what one has saved before bounds what it saves now.
    bounds = [(-float(len(profiles)), number, run) for number, run in enumerate(pending)]
    chosen: list[tuple[Run, float]] = []
    while len(chosen) < most and bounds and -bounds[0][0] > least * len(profiles):
        _, number, run = heapq.heappop(bounds)
        with_run = costs.copy()
        for place in pending[run]:
            with_run[place] = cost(profiles[place], [*runs, run])
        gain = sum(costs) - sum(with_run)
        if bounds and gain < -bounds[0][0]:
            heapq.heappush(bounds, (-gain, number, run))
        elif gain > least * len(profiles):
            runs.append(run)
            costs = with_run
            chosen.append((run, gain / len(profiles)))
    return chosen


def show(run: Run) -> str:
    """How a run is written."""
    words = []
    for step in run:
        known = ",".join([f"{name}={count}" for name, count in zip(("a", "b", "c"), step.back, strict=True) if count])
        skip = f"+{step.skip}" if step.skip else ""
        words.append(bytecode.OPS[step.code].name + skip + (f"({known})" if known else ""))
    return " ".join(words)


def training_profiles(target: str) -> dict[str, Profile]:
    """What the training programs execute, by name."""
    with patch.object(interpreter, "Handler", CountingHandler):
        text = interpreter.interpreter_text(target, RuntimeFunctions(target), ())
    object = compile_text(f"{text}@counters = hidden global ptr null\n", target)
    return {path.stem: profile(path, object) for path in TRAINING}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.superinstructions", description=__doc__)
    parser.add_argument("--most", type=int, default=MOST, help="how many beside the guards")
    parser.add_argument("--longest", type=int, default=LONGEST, help="how many words in one")
    parser.add_argument("--least", type=float, default=LEAST, help="the part of all dispatches that one must save")
    parser.add_argument("--programs", type=int, default=PROGRAMS, help="how many programs must execute one")
    options = parser.parse_args()
    target = host_target()
    if target is None:
        raise SystemExit("there is no native code for this system")
    profiles = list(training_profiles(target).values())
    for run, gain in choose(profiles, **vars(options)):
        print(f'    "{show(run)}",  # {gain:.3f}')


if __name__ == "__main__":
    main()
