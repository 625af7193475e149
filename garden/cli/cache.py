"""`garden cache`: where machine code is cached, how much of it there is, and how to clear it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from garden.native.cache import Cache
from garden.output import write_stdout

if TYPE_CHECKING:
    import argparse


def cache(options: argparse.Namespace) -> int:
    """Print the directory, and the number and bytes of its images or, with `--clear`, of those removed."""
    images = Cache()
    problem = images.problem()
    if problem is not None:
        figures = f"not used: {problem}"
    elif options.clear:
        figures = f"removed {_amount(*images.clear())}"
    else:
        sizes = [size for _, size in images.entries()]
        figures = _amount(len(sizes), sum(sizes))
    write_stdout(f"{images.directory}\n{figures}\n".encode(errors="surrogateescape"))
    return 0


def _amount(count: int, size: int) -> str:
    return f"{count:,} {'image' if count == 1 else 'images'}, {size:,} bytes"
