"""Locks that are safe to fork with.

A fork copies all memory, but only the thread that asks for it. If another thread is in the middle of an operation, the
child has its lock held for ever, around data that is half changed. So the forking thread takes every lock first, and
both sides let go of them afterwards: a fork waits for the operations under way.

It never waits for one lock while it holds others that it took for the fork, so it does not matter in which order other
threads take them. But a thread that forks while it holds such a lock itself can wait for ever for one that wants it.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Final

_locks: Final[weakref.WeakSet[Any]] = weakref.WeakSet()
#: By thread, what it has taken for a fork.
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
