"""Fingerprint: what tells one build of this package from another, for the keys of what it has made.

It covers the name, size and time of change of every file of the package, so that an edit in a source tree counts as
much as an upgrade. Reading them all would take longer than a warm start may.
"""
# Not compiled: every warm start loads it, and small modules load faster than compiled groups.

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ROOT: Final = os.path.dirname(os.path.dirname(__file__))


def fingerprint() -> bytes:
    """Bytes that differ where the files of the package differ."""
    found: list[str] = []
    pending = [_ROOT]
    while pending:
        folder = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        pending.append(entry.path)
                else:
                    status = entry.stat()
                    found.append(f"{entry.path[len(_ROOT) :]} {status.st_size} {status.st_mtime_ns}")
    found.sort()
    return "\n".join(found).encode()
