"""Fingerprint: identifies a build of this package, for cache keys.

It covers name, size and modification time of every file of the package, so that an edit in a source tree counts like an
upgrade. Reading all files would take too long for a warm start.
"""
# Not compiled: every warm start loads it, and small modules load faster than compiled groups.

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_ROOT: Final = os.path.dirname(os.path.dirname(__file__))


def fingerprint() -> bytes:
    """Bytes that differ if the files of the package differ."""
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
