"""Prebuilt: what machine code needs that no program has a part in, so that most starts need no LLVM.

An installed package has it for its machine in files beside this module, made by `setup.py`. In a source tree, and for
other machines, each is made when it is first needed, and cached. It is of no matter which LLVM has made an object: it
calls nothing but its like, as C does.
"""
# Not compiled: it is not worth the time that compiling takes.

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from garden.native.cache import digest
from garden.native.fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Callable

    from garden.native.cache import Cache


def prebuilt(name: str, target: str, cache: Cache | None, make: Callable[[], bytes]) -> bytes:
    """What has a name for a target: the installed one, else that in the cache, else what `make` makes."""
    product = _installed(name, target)
    if product is not None:
        return product
    key = digest(name.encode(), target.encode(), fingerprint())
    product = None if cache is None else cache.load(key)
    if product is None:
        product = make()
        if cache is not None:
            cache.store(key, product)
    return product


def is_installed(name: str, target: str) -> bool:
    """Whether the package has it."""
    return os.path.exists(_path(name, target))


def file_name(name: str, target: str) -> str:
    """The file with it, beside this module."""
    return f"{name}.{target}"


def _path(name: str, target: str) -> str:
    return os.path.join(os.path.dirname(__file__), file_name(name, target))


def _installed(name: str, target: str) -> bytes | None:
    try:
        file = os.open(_path(name, target), os.O_RDONLY)
    except OSError:
        return None
    with open(file, "rb", buffering=0) as opened:
        return opened.read()
