"""Processes that tests start: each is killed when its test is done with it, however that ends."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds that a process may take, many times what any needs.
LIMIT = 120


@contextmanager
def child(command: list[Any], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process for a `with` block, killed at its end, or after `LIMIT` seconds: nobody waits for it longer."""
    process = subprocess.Popen(command, **options)
    timer = threading.Timer(LIMIT, process.kill)
    timer.daemon = True
    timer.start()
    try:
        with process:
            try:
                yield process
            finally:
                process.kill()
    finally:
        timer.cancel()
