"""Fingerprint: identifies a build of this package, for cache keys.

An installed package has one in a file, a hash of its sources that the build has made (`setup.py`). In a source tree it
covers name, size and modification time of every file, so that an edit counts like an upgrade: reading all files would
take too long for a start.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
from typing import Final

_ROOT: Final = os.path.dirname(os.path.dirname(__file__))
#: The file, beside this module.
BUILD_ID: Final = "build_id"


def fingerprint() -> bytes:
    """Bytes that differ if the files of the package differ."""
    try:
        file = os.open(os.path.join(os.path.dirname(__file__), BUILD_ID), os.O_RDONLY)
    except OSError:
        return _of_files()
    try:
        return os.read(file, 1 << 10)
    finally:
        os.close(file)


def _of_files() -> bytes:
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
