"""Cache: machine code on disk, so that a program is compiled once and not each time it is run.

Layout: one directory, one file an image, named by its key in hexadecimal. A file is

    magic (8 bytes) | size of the content (8, little-endian) | key (32) | BLAKE2b of it all (32) | content

It is written under another name and then renamed, so that a reader sees a whole file or none, whoever writes meanwhile.
What is damaged in spite of that fails the checksum and counts as missing.

What is read here is going to be executed. So directory and files must belong to the user of the process, and nobody
else may be able to write to them; both are checked on the open descriptor, and never behind a symbolic link. Anything
else counts as missing. The checksum is not a signature: whoever can write as the user could run code anyway.

A cache is never needed. Whatever the system refuses, there is just nothing in it, and nothing gets into it.

Costs: 0.12 ms to load 60 KB, most of it for the checksum. One store in sixteen also looks at all files, and removes the
oldest while there is too much of them. This module imports next to nothing, since every start of the `garden`
command waits for it; it is no place for what is not needed to load an image.
"""
# Not compiled: every warm start loads it, and small modules load faster than compiled groups.

import os
import stat
import sys
import time

try:
    # `hashlib` has the same function, but loads OpenSSL for the others: 5 ms instead of half a millisecond.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

KEY_SIZE = 32
#: What all images together may take on disk, in bytes, before the oldest are removed.
BUDGET = 256 << 20

# The last byte is the version of this layout.
_MAGIC = b"garden\0\1"
_CHECKSUM_SIZE = 32
_HEADER_SIZE = len(_MAGIC) + 8 + KEY_SIZE + _CHECKSUM_SIZE
_HEXADECIMAL = frozenset("0123456789abcdef")
_IMAGE = ".image"
_UNFINISHED = ".unfinished"
#: After so many seconds nobody finishes a file any more.
_ABANDONED = 3600
#: Of the first bytes that keys can have, those whose stores look for what to remove: 1 in 16.
_PRUNING_BYTES = 16


def digest(*parts: bytes) -> bytes:
    """The key of what depends on these parts: different for any other parts, and for another division into parts."""
    hashed = blake2b(digest_size=KEY_SIZE)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()


def default_directory() -> str:
    """`GARDEN_CACHE_DIR`, else `garden` in `XDG_CACHE_HOME`, else in `.cache` of the user's home; may be no path."""
    chosen = os.environ.get("GARDEN_CACHE_DIR")
    if chosen:
        return _absolute(chosen)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    # The specification of the variable says that a relative path is to be ignored.
    if not os.path.isabs(caches):
        caches = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(caches, "garden")


def _absolute(path: str) -> str:
    """The absolute form of a path, or the path itself where the working directory has been removed."""
    try:
        return os.path.abspath(path)
    except OSError:
        return path


class Cache:
    """Images by key, in `directory`, which is made when the first is stored.

    `budget` is what all images together may take on disk, in bytes, before the oldest are removed.
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = default_directory() if directory is None else _absolute(directory)
        self.budget = BUDGET

    def load(self, key: bytes) -> bytes | None:
        """What was stored under a key of `KEY_SIZE` bytes; None where there is nothing, or nothing to be trusted."""
        name = _name(key)
        try:
            directory = self._open()
            try:
                stored = _read(directory, name, self.budget)
            finally:
                os.close(directory)
        except OSError:
            return None
        content = stored[_HEADER_SIZE:]
        return content if stored[:_HEADER_SIZE] == _header(key, content) else None

    def store(self, key: bytes, data: bytes) -> bool:
        """Keep data under a key of `KEY_SIZE` bytes, in place of what was there. Whether that was possible."""
        name = _name(key)
        stored = _header(key, data) + data
        if len(stored) > self.budget:
            return False
        try:
            self._make()
            directory = self._open()
            try:
                _write(directory, name, stored)
                if key[0] < _PRUNING_BYTES:
                    self._prune(directory)
            finally:
                os.close(directory)
        except OSError:
            return False
        return True

    def entries(self) -> list[tuple[bytes, int]]:
        """Key and bytes on disk of each image, the one that was used least recently first."""
        return [(bytes.fromhex(name[: -len(_IMAGE)]), size) for _, size, name in self._files() if _is_image(name)]

    def clear(self) -> tuple[int, int]:
        """Remove all images; the number and the bytes of those that could be removed."""
        count = total = 0
        try:
            directory = self._open()
            try:
                for _, size, name in _files(directory):
                    if _remove(directory, name) and _is_image(name):
                        count += 1
                        total += size
            finally:
                os.close(directory)
        except OSError:
            pass
        return count, total

    def problem(self) -> str | None:
        """Why nothing is kept in the directory; None where it can be used, or does not exist yet."""
        try:
            os.close(self._open())
        except FileNotFoundError:
            return None
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _make(self) -> None:
        """Make the directory where there is none, for nobody but the user."""
        if os.path.isabs(self.directory):
            os.makedirs(os.path.dirname(self.directory), 0o700, exist_ok=True)
            try:
                os.mkdir(self.directory, 0o700)
            except FileExistsError:
                pass

    def _open(self) -> int:
        """A descriptor of the directory. OSError where there is none, or not one that is the user's alone."""
        if sys.platform == "win32":
            raise OSError("there is no native code on Windows")
        if not os.path.isabs(self.directory):
            unknown = self.directory.startswith("~")
            raise OSError("the user has no home directory" if unknown else "the working directory has been removed")
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _check_owner(os.fstat(directory))
        except OSError:
            os.close(directory)
            raise
        return directory

    def _files(self) -> list[tuple[float, int, str]]:
        try:
            directory = self._open()
            try:
                return _files(directory)
            finally:
                os.close(directory)
        except OSError:
            return []

    def _prune(self, directory: int) -> None:
        """Remove what was not used for longest while there is more than the budget, and what writers left behind."""
        try:
            files = _files(directory)
        except OSError:
            return
        total = sum([size for _, size, _ in files])
        abandoned = time.time() - _ABANDONED
        for used, size, name in files:
            if total > self.budget or (used < abandoned and not _is_image(name)):
                _remove(directory, name)
                total -= size

    def __repr__(self) -> str:
        return f"<Cache in {self.directory}>"


def _name(key: bytes) -> str:
    if len(key) != KEY_SIZE:
        raise ValueError(f"a key has {KEY_SIZE} bytes, not {len(key)}")
    return key.hex() + _IMAGE


def _is_image(name: str) -> bool:
    """Whether one of our files is an image, and not one that somebody was writing."""
    return name.endswith(_IMAGE)


def _is_ours(name: str) -> bool:
    key = name[: 2 * KEY_SIZE]
    rest = name[2 * KEY_SIZE :]
    ours = rest == _IMAGE or (rest.startswith(_IMAGE) and rest.endswith(_UNFINISHED))
    return ours and len(key) == 2 * KEY_SIZE and _HEXADECIMAL.issuperset(key)


def _header(key: bytes, content: bytes) -> bytes:
    start = _MAGIC + len(content).to_bytes(8, "little") + key
    # Keyed by the rest of the header, so that the checksum is one of that too.
    return start + blake2b(content, key=start, digest_size=_CHECKSUM_SIZE).digest()


def _check_owner(status: os.stat_result) -> None:
    """Raise OSError unless a file or directory belongs to the user, and nobody else may write to it."""
    if status.st_uid != os.geteuid():
        raise OSError(f"it belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"others may write to it, its mode is {stat.S_IMODE(status.st_mode):o}")


def _read(directory: int, name: str, limit: int) -> bytes:
    """All bytes of a regular file. OSError where there is none that is to be trusted, or where it is larger."""
    # Without O_NONBLOCK, a named pipe would wait for somebody to write into it.
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(file)
        _check_owner(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise OSError("not a file of ours")
        pieces = []
        left = status.st_size
        while left:
            piece = os.read(file, left)
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(file)


def _write(directory: int, name: str, stored: bytes) -> None:
    """Make a file all at once. Nothing is synced: what a crash of the system damages, the checksum finds out."""
    unfinished = f"{name}.{os.urandom(8).hex()}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(unfinished, flags, 0o600, dir_fd=directory)
    try:
        try:
            left = memoryview(stored)
            while left:
                left = left[os.write(file, left) :]
        finally:
            os.close(file)
        os.replace(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        _remove(directory, unfinished)
        raise


def _files(directory: int) -> list[tuple[float, int, str]]:
    """Last use, size in bytes and name of each of our files, the one that was used least recently first."""
    files = []
    with os.scandir(directory) as found:
        for entry in found:
            name = entry.name
            if not _is_ours(name):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                # Somebody else has removed it.
                continue
            if stat.S_ISREG(status.st_mode):
                # Most systems update the time of access once a day, or when it is older than that of the last change.
                files.append((max(status.st_atime, status.st_mtime), status.st_size, name))
    files.sort()
    return files


def _remove(directory: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True
