"""Fork-safe locks.

A fork copies all memory but only the calling thread. If another thread is in the middle of an operation, the child
inherits a lock that is held for ever and data that is half changed. So the forking thread acquires every lock first,
and both processes release them afterwards: a fork waits for the operations in progress.

It never waits for one lock while it holds others for the fork, so the order in which other threads acquire them does
not matter. A thread that forks while it already holds such a lock can deadlock with a thread that waits for that lock.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

_locks: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
#: The locks that each thread holds for a fork.
_taken: Final[dict[int, list[Any]]] = {}


def fork_safe_lock() -> Any:
    """A reentrant lock that no other thread holds when the process forks."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _take_all() -> None:
    awaited = None
    while True:
        taken = []
        if awaited is not None:
            awaited.acquire()
            taken.append(awaited)
            awaited = None
        for lock in list(_locks):
            if not lock.acquire(blocking=False):
                awaited = lock
                break
            taken.append(lock)
        if awaited is None:
            _taken[threading.get_ident()] = taken
            return
        for lock in taken:
            lock.release()


def _let_go() -> None:
    for lock in _taken.pop(threading.get_ident(), []):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_let_go, after_in_child=_let_go)
