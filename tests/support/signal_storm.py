"""Lets a signal with a handler that raises come at random moments of everything that an engine does.

Run as a program of its own: `signal_storm.py ENGINE ROUNDS SEED`. It fails where something but that exception comes
out, where the engine cannot be used afterwards, and where files or memory are left behind.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import garden
from allocators import COMPILED
from garden.errors import Trap

#: More than a run leaves behind that was not interrupted: freed memory that libc and Python keep.
MOST_LEFT = 48 << 20
MOST_LOST = 3

#: A multiplier that makes every product need all 64 bits.
LARGE = 6364136223846793005

FOLDED = "".join(
    [
        f"fn f{index}(n:Int) Int {{ n * {LARGE} + {LARGE} * {LARGE - index} / {index + 1} % {1 << 61} - -{LARGE} }}\n"
        for index in range(40)
    ]
)

LOOPS = f"""import ("io" "host" "str")
fn spin(n:Int x:Int) Int {{ match {{ n == 0 {{ x }} {{ spin(n + 1 x * {LARGE} + 1442695040888963407) }} }} }}
fn divide(n:Int x:Int) Int {{ match {{ n == 0 {{ x }} {{ divide(n + 1 x / 3 % {1 << 62} + {LARGE}) }} }} }}
fn talk(n:Int) Int {{ match {{ n == 0 {{ 1 }} {{ io.println(n * {LARGE}) talk(n + 1) }} }} }}
fn ask(n:Int) Int {{ match {{ n == 0 {{ 1 }} {{ ask(host.up(n)) }} }} }}
fn climb(n:Int) Int {{ match {{ n == 0 {{ 1 }} {{ climb(n - 1) + climb(n - 1) }} }} }}
fn texts(n:Int) Int {{ match {{ n == 0 {{ 1 }} {{ texts(n + str.len(str.concat(str.from(n) "a"))) }} }} }}
"""


class Late(Exception):
    """What the handler raises."""


def ring(number: int, frame: object) -> None:
    raise Late(number)


def is_late(error: BaseException | None) -> bool:
    """Whether the handler has raised an exception, or it was raised on the way of that one.

    Interpreted, an allocator may be interrupted within an operation, and refuse the next one, which is to clean up.
    """
    while error is not None and not isinstance(error, Late) and not COMPILED:
        error = error.__cause__ or error.__context__
    return isinstance(error, Late)


def up(n: int) -> int:
    return n + 1


def storm(engine: garden.Engine, rounds: int, chance: random.Random) -> int:
    """How many of the rounds the signal has ended."""
    program = engine.compile(LOOPS)

    def again() -> None:
        engine.compile(FOLDED).close()

    began = time.monotonic()
    again()
    seconds = time.monotonic() - began
    jobs: list[tuple[Callable[[], object], float]] = [(again, 1.2 * seconds)] * 3
    jobs += [
        (lambda: program["spin"](1, 5), 0.02),
        (lambda: program["divide"](1, 5), 0.02),
        (lambda: program["talk"](1), 0.02),
        (lambda: program["ask"](1), 0.02),
        (lambda: program["climb"](60), 0.02),
        (lambda: program["texts"](1), 0.004),
    ]
    ended = 0
    for turn in range(rounds):
        job, most = jobs[turn % len(jobs)]
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-6, most))
                job()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as error:
            if is_late(error):
                ended += 1
                # While the exception, and with it every frame that it came through, is still there.
                assert program["climb"](5) == 32
            elif not isinstance(error, Trap) or error.code != "T0003":
                # The texts may have filled the heap before.
                raise
    return ended


def memory() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def main(name: str, rounds: int, seed: int) -> None:
    signal.signal(signal.SIGALRM, ring)
    files = memory_before = 0
    # The first time, everything is loaded.
    for turn in range(2):
        engine = garden.Engine(engine=name, heap_limit=1 << 22, write=lambda data: None)
        engine.function(up)
        ended = storm(engine, rounds if turn else 9, random.Random(seed))
        engine.close()
        gc.collect()
        if turn == 0:
            files, memory_before = len(os.listdir("/proc/self/fd")), memory()
    # A signal that comes within `os.open` loses the descriptor, as it does in any Python program.
    assert len(os.listdir("/proc/self/fd")) - files <= MOST_LOST
    assert memory() - memory_before < MOST_LEFT, (memory_before, memory())
    cache = Path(os.environ["GARDEN_CACHE_DIR"])
    assert not [path for path in cache.rglob("*") if path.suffix not in (".image", ".program") and path.is_file()], (
        list(cache.rglob("*"))
    )
    print(f"{ended} of {rounds}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
