"""Programs as processes of their own: how long they take, and how much memory. For Linux."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Sequence
from time import perf_counter

# From <sys/prctl.h>.
_SET_CHILD_SUBREAPER = 36
# Prints the id of a process that runs the words once a line comes from standard input.
_FORK = 'exec 3<&0; { read -r line <&3; exec "$@" 3<&-; } > /dev/null 2>&1 & echo $!'


class Command:
    """A program to run as its own process: words of the command line, and what to add to the environment."""

    def __init__(self, words: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self.words = list(words)
        self.environment = {**os.environ, **(environment or {})}

    def seconds(self) -> float:
        """Run the program, without input and output, from its start until its end. Raises `ChildProcessError`."""
        return self.times()[0]

    def times(self) -> tuple[float, float]:
        """The same; seconds that have passed, and seconds of processor time, the system's included."""
        silent = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1)]
        start = perf_counter()
        process = os.posix_spawnp(self.words[0], self.words, self.environment, file_actions=silent)
        _, status, usage = os.wait4(process, 0)
        elapsed = perf_counter() - start
        self._check(status)
        return elapsed, usage.ru_utime + usage.ru_stime

    def reported(self, pattern: re.Pattern[str]) -> tuple[float, float]:
        """Run the program; the seconds that have passed, and the number that it says on standard error.

        The number is the first group of the pattern. Raises `ChildProcessError`.
        """
        start = perf_counter()
        done = subprocess.run(
            self.words,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        elapsed = perf_counter() - start
        found = pattern.search(done.stderr)
        if done.returncode != 0 or found is None:
            raise ChildProcessError(f"exit code {done.returncode}: {' '.join(self.words)}")
        return elapsed, float(found[1])

    def peak_bytes(self) -> int:
        """Run the program; the most memory it had resident. Raises `ChildProcessError`.

        Linux counts the memory of the process that starts a program as its own, and Python is larger than many of them.
        So a shell forks it, and leaves it to us. The program waits until then, as the shell would reap it itself.
        """
        if ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError("cannot adopt orphans")
        gate, opener = os.pipe()
        try:
            shell = ["/bin/sh", "-c", _FORK, "sh", *self.words]
            done = subprocess.run(shell, env=self.environment, stdin=gate, stdout=subprocess.PIPE, check=True)
            os.write(opener, b"\n")
            _, status, usage = os.wait4(int(done.stdout), 0)
        finally:
            os.close(gate)
            os.close(opener)
        self._check(status)
        return usage.ru_maxrss * 1024

    def _check(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            raise ChildProcessError(f"exit code {code}: {' '.join(self.words)}")
