"""Whatever is given to the compiler, it ends with a program or with diagnostics, and a program with a value or a trap.

With GARDEN_LONG=1 in the environment a million inputs are tried, other ones each time.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from allocators import MetricAllocator
from garden.bytecode.code import Code
from garden.diagnostics import CODES
from garden.errors import CompileError, Trap
from garden.pipeline import Compilation, StageAllocators
from garden.run_options import RunOptions
from garden.source import Source
from garden.vm.machine import ReferenceMachine
from tests.support.packages import PACKAGES

LONG = os.environ.get("GARDEN_LONG") == "1"
INPUTS = 1_000_000 if LONG else 1_000
#: Seconds that a small input may take, with plenty to spare for a busy computer.
COMPILE_SECONDS = 60.0
#: Seconds after which a program is interrupted, as it may be a loop.
RUN_SECONDS = 0.2

CORPUS = [path.read_bytes() for path in sorted((Path(__file__).parent.parent / "programs").rglob("*.garden"))]
SMALL = [text for text in CORPUS if len(text) < 3_000]
WORDS = (
    b"let fn match import extern as true false Int Str Double Bool Void Array< Record< Option< Foreign< "
    b"( ) { } [ ] < > <= >= == != = + - * / % . : ? ! , ; ' \" # #! \n -1 0 9223372036854775807 1.5 x f io.println str."
).split(b" ")

Change = Callable[[random.Random, bytes], bytes]


def cut(choices: random.Random, text: bytes) -> bytes:
    return text[: choices.randrange(len(text) + 1)]


def delete(choices: random.Random, text: bytes) -> bytes:
    start = choices.randrange(len(text) + 1)
    return text[:start] + text[start + choices.randrange(1, 20) :]


def flip(choices: random.Random, text: bytes) -> bytes:
    start = choices.randrange(len(text) + 1)
    return text[:start] + bytes([choices.randrange(256)]) + text[start + 1 :]


def insert(choices: random.Random, text: bytes) -> bytes:
    start = choices.randrange(len(text) + 1)
    return text[:start] + b" " + choices.choice(WORDS) + b" " + text[start:]


def repeat(choices: random.Random, text: bytes) -> bytes:
    start = choices.randrange(len(text) + 1)
    return text[:start] + text[start : start + 30] * choices.randrange(1, 6) + text[start:]


def swap(choices: random.Random, text: bytes) -> bytes:
    words = text.split(b" ")
    first, second = choices.randrange(len(words)), choices.randrange(len(words))
    words[first], words[second] = words[second], words[first]
    return b" ".join(words)


def splice(choices: random.Random, text: bytes) -> bytes:
    return cut(choices, text) + choices.choice(SMALL)[choices.randrange(200) :]


CHANGES: tuple[Change, ...] = (cut, delete, flip, insert, repeat, swap, splice)


def hostile(seed: int) -> bytes:
    """An input: noise, words in a row, or a program with changes."""
    choices = random.Random(seed)
    kind = choices.randrange(10)
    if kind == 0:
        return choices.randbytes(choices.randrange(200))
    if kind == 1:
        return b" ".join(choices.choices(WORDS, k=choices.randrange(100)))
    text = choices.choice(SMALL)
    for _ in range(choices.choice((1, 1, 2, 5))):
        text = choices.choice(CHANGES)(choices, text)
    return text


@contextmanager
def alarm(seconds: float, error: type[BaseException]) -> Iterator[None]:
    """Raise an exception in the block when it takes longer; systems without timers let it."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def survive(text: bytes, level: int) -> None:
    """Compile an input, and run it if it is a program."""
    source = Source("hostile", text)
    with StageAllocators() as plain:
        allocators = plain.metered()
        with Compilation(source, allocators, PACKAGES, level=level) as compilation:
            try:
                with alarm(COMPILE_SECONDS, TimeoutError):
                    code = compilation.emit()
            except CompileError as error:
                check_diagnostics(error)
            else:
                if hasattr(signal, "setitimer"):
                    run(code, allocators)
        live = [metric.live_bytes for _, metric in allocators.items() if isinstance(metric, MetricAllocator)]
        assert not any(live), "bytes are live at the end"


def run(code: Code[Any], allocators: StageAllocators) -> None:
    trap: Trap | None = None
    with ReferenceMachine(
        code, allocators["run"], RunOptions(write=len, heap_limit=1 << 22, frame_limit=1_000)
    ) as machine:
        try:
            with alarm(RUN_SECONDS, KeyboardInterrupt):
                machine.run()
        except Trap as caught:
            trap = caught
    assert trap is None or (trap.code in CODES and trap.offset >= 0)


def check_diagnostics(error: CompileError) -> None:
    """What is reported lies in the source, and can be shown."""
    assert error.diagnostics
    text = error.source.text
    for diagnostic in error.diagnostics:
        assert 0 <= diagnostic.start <= diagnostic.start + diagnostic.length <= len(text)
        assert diagnostic.render(error.source)


@pytest.mark.parametrize("part", range(10))
def test_hostile_input_is_survived(part: int) -> None:
    first = time.time_ns() if LONG else 0
    for index in range(part, INPUTS, 10):
        text = hostile(first + index)
        try:
            survive(text, index // 10 % 2)
        except BaseException as error:
            error.add_note(f"input: {text!r}")
            raise


@pytest.mark.parametrize("text", SMALL if LONG else [text for text in SMALL if len(text) < 500][::25])
def test_every_beginning_of_a_program_is_survived(text: bytes) -> None:
    for end in range(len(text)):
        survive(text[:end], 1)
