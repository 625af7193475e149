"""Cache: machine code on disk, so that a program is compiled only once.

Layout: one directory with one file per entry, named by its key in hexadecimal, and `.image` or `.program`. An image is

    magic (8 bytes) | size of the content (8, little-endian) | key (32) | BLAKE2b of it all (32) | content

A program is an executable as the system runs it, so that nothing needs to read or copy it. Images and programs have
names of their own, so one key may have both.

A file is written under a temporary name and then renamed, so that a reader sees all of it or nothing. A damaged image
fails its checksum and counts as missing. A program has no checksum: it is synced before it is renamed, so that a crash
of the system cannot leave a part of it.

The content will be executed. So the directory and its files must belong to the user of the process and be writable by
nobody else; both are checked on the open descriptor, without following symbolic links. Anything else counts as missing.
The checksum is not a signature: a process that can write as the user can run code anyway.

The cache is optional. If the system refuses an operation, it acts as an empty cache.

Costs: 0.12 ms to load 60 KB, most of it for the checksum. One store in sixteen also scans all files, and removes the
oldest while they exceed the budget.
"""
# Not compiled: it is not worth the time that compiling takes.

import os
import stat
import sys
import time

from garden.interrupts import raised_by_handler

try:
    # `hashlib` has the same function, but loads OpenSSL for the others: 5 ms instead of half a millisecond.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

KEY_SIZE = 32
#: The budget: bytes on disk for all images, beyond which the oldest are removed.
BUDGET = 256 << 20

# The last byte is the version of this layout.
_MAGIC = b"garden\0\1"
_CHECKSUM_SIZE = 32
_HEADER_SIZE = len(_MAGIC) + 8 + KEY_SIZE + _CHECKSUM_SIZE
_HEXADECIMAL = frozenset("0123456789abcdef")
_IMAGE = ".image"
_PROGRAM = ".program"
_UNFINISHED = ".unfinished"
#: Seconds after which an unfinished file is abandoned.
_ABANDONED = 3600
#: Of the first bytes that keys can have, those whose stores look for what to remove: 1 in 16.
_PRUNING_BYTES = 16


def digest(*parts: bytes) -> bytes:
    """The key for these parts: it differs for other parts, and for another division into parts."""
    hashed = blake2b(digest_size=KEY_SIZE)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))
        hashed.update(part)
    return hashed.digest()


def default_directory() -> str:
    """`GARDEN_CACHE_DIR`, else `garden` in `XDG_CACHE_HOME`, else in `.cache` of the user's home; may be empty."""
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
        """The image stored under a key of `KEY_SIZE` bytes; None if there is none that can be trusted."""
        name = _name(key, _IMAGE)
        try:
            directory = self._open()
            try:
                stored = _read(directory, name, self.budget)
            finally:
                os.close(directory)
        except OSError as error:
            if raised_by_handler(error):
                raise
            return None
        content = stored[_HEADER_SIZE:]
        return content if stored[:_HEADER_SIZE] == _header(key, content) else None

    def store(self, key: bytes, data: bytes) -> bool:
        """Store an image under a key of `KEY_SIZE` bytes, replacing an earlier one. Returns whether that succeeded."""
        return self._store(_name(key, _IMAGE), _header(key, data) + data)

    def store_program(self, key: bytes, executable: bytes) -> bool:
        """Store the file of an executable as `store` does an image. `open_program` finds it."""
        return self._store(_name(key, _PROGRAM), executable)

    def open_program(self, key: bytes) -> int | None:
        """A descriptor, for `os.execve`, of the executable stored under a key; None if there is none to be trusted.

        It is open for reading, and closed on exec.
        """
        name = _name(key, _PROGRAM)
        try:
            directory = self._open()
            try:
                return _open_file(directory, name, self.budget)[0]
            finally:
                os.close(directory)
        except OSError as error:
            if raised_by_handler(error):
                raise
            return None

    def _store(self, name: str, stored: bytes) -> bool:
        if len(stored) > self.budget:
            return False
        try:
            self._make()
            directory = self._open()
            try:
                _write(directory, name, stored)
                if int(name[:2], 16) < _PRUNING_BYTES:
                    self._prune(directory)
            finally:
                os.close(directory)
        except OSError as error:
            if raised_by_handler(error):
                raise
            return False
        return True

    def entries(self) -> list[tuple[bytes, int]]:
        """Key and size on disk in bytes of each image and program, the least recently used first."""
        return [(bytes.fromhex(name[: 2 * KEY_SIZE]), size) for _, size, name in self._files() if _is_finished(name)]

    def clear(self) -> tuple[int, int]:
        """Remove everything; returns the number and bytes of the images and programs removed."""
        count = total = 0
        try:
            directory = self._open()
            try:
                for _, size, name in _files(directory):
                    if _remove(directory, name) and _is_finished(name):
                        count += 1
                        total += size
            finally:
                os.close(directory)
        except OSError as error:
            if raised_by_handler(error):
                raise
        return count, total

    def problem(self) -> str | None:
        """Why the directory cannot be used; None if it can, or does not exist yet."""
        try:
            os.close(self._open())
        except FileNotFoundError:
            return None
        except OSError as error:
            if raised_by_handler(error):
                raise
            return error.strerror or str(error)
        return None

    def _make(self) -> None:
        """Make the directory if needed, accessible only to the user."""
        if os.path.isabs(self.directory):
            os.makedirs(os.path.dirname(self.directory), 0o700, exist_ok=True)
            try:
                os.mkdir(self.directory, 0o700)
            except FileExistsError:
                pass

    def _open(self) -> int:
        """A descriptor of the directory. OSError unless it exists and is the user's alone."""
        if sys.platform == "win32":
            raise OSError("there is no native code on Windows")
        if not os.path.isabs(self.directory):
            unknown = self.directory.startswith("~")
            raise OSError("the user has no home directory" if unknown else "the working directory has been removed")
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _check_owner(os.fstat(directory))
        except BaseException:
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
        except OSError as error:
            if raised_by_handler(error):
                raise
            return []

    def _prune(self, directory: int) -> None:
        """Remove the least recently used files while they exceed the budget, and abandoned ones."""
        try:
            files = _files(directory)
        except OSError as error:
            if raised_by_handler(error):
                raise
            return
        total = sum([size for _, size, _ in files])
        abandoned = time.time() - _ABANDONED
        for used, size, name in files:
            if total > self.budget or (used < abandoned and not _is_finished(name)):
                _remove(directory, name)
                total -= size

    def __repr__(self) -> str:
        return f"<Cache in {self.directory}>"


def _name(key: bytes, kind: str) -> str:
    if len(key) != KEY_SIZE:
        raise ValueError(f"a key has {KEY_SIZE} bytes, not {len(key)}")
    return key.hex() + kind


def _is_finished(name: str) -> bool:
    """Whether a file of ours is an image or a program, not an unfinished one."""
    return name.endswith((_IMAGE, _PROGRAM))


def _is_ours(name: str) -> bool:
    key = name[: 2 * KEY_SIZE]
    rest = name[2 * KEY_SIZE :]
    ours = rest in (_IMAGE, _PROGRAM) or (rest.startswith((_IMAGE, _PROGRAM)) and rest.endswith(_UNFINISHED))
    return ours and len(key) == 2 * KEY_SIZE and _HEXADECIMAL.issuperset(key)


def _header(key: bytes, content: bytes) -> bytes:
    start = _MAGIC + len(content).to_bytes(8, "little") + key
    # Keyed by the rest of the header, so that the checksum covers it too.
    return start + blake2b(content, key=start, digest_size=_CHECKSUM_SIZE).digest()


def _check_owner(status: os.stat_result) -> None:
    """Raise OSError unless a file or directory belongs to the user, and nobody else may write to it."""
    if status.st_uid != os.geteuid():
        raise OSError(f"it belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"others may write to it, its mode is {stat.S_IMODE(status.st_mode):o}")


def _open_file(directory: int, name: str, limit: int) -> tuple[int, int]:
    """Descriptor and size of a regular file. OSError if it is missing, cannot be trusted, or is too large."""
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        status = os.fstat(file)
        _check_owner(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise OSError("not a file of ours")
    except BaseException:
        os.close(file)
        raise
    return file, status.st_size


def _read(directory: int, name: str, limit: int) -> bytes:
    """All bytes of a regular file. OSError as for `_open_file`."""
    file, left = _open_file(directory, name, limit)
    try:
        pieces = []
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
    """Write a file atomically. An image is not synced: its checksum detects damage by a crash of the system."""
    is_program = name.endswith(_PROGRAM)
    unfinished = f"{name}.{os.urandom(8).hex()}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(unfinished, flags, 0o700 if is_program else 0o600, dir_fd=directory)
    try:
        try:
            left = memoryview(stored)
            while left:
                left = left[os.write(file, left) :]
            if is_program:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(unfinished, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        _remove(directory, unfinished)
        raise


def _files(directory: int) -> list[tuple[float, int, str]]:
    """Last use, size in bytes and name of each of our files, the least recently used first."""
    files = []
    with os.scandir(directory) as found:
        for entry in found:
            name = entry.name
            if not _is_ours(name):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                # Another process removed it.
                continue
            if stat.S_ISREG(status.st_mode):
                # Most systems update the time of access once a day, or when it is older than that of the last change.
                files.append((max(status.st_atime, status.st_mtime), status.st_size, name))
    files.sort()
    return files


def _remove(directory: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError as error:
        if raised_by_handler(error):
            raise
        return False
    return True
