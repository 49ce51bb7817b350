"""Reading a database file beside SQLite without dropping its locks.

POSIX locks belong to the process and the file: closing *any* descriptor of a file drops every lock the process holds on
it, SQLite's too, and another process could then take the store for abandoned. So a descriptor opened here stays open
until no engine of this process has the file open any more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["enter", "entered", "leave", "read_at", "read_chunks"]

Key = tuple[int, int]

_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Each system has one of them."""
_lock = threading.Lock()
_seeking = threading.Lock()
_engines: dict[Key, int] = {}
_descriptors: dict[Key, dict[Key, int]] = {}
"""By the database, the descriptors of it and of its log files."""


def _key(path: str) -> Key:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def enter(path: str) -> Key:
    """An engine of this process has opened the file."""
    with _lock:
        key = _key(path)
        _engines[key] = _engines.get(key, 0) + 1
        return key


def leave(key: Key) -> None:
    """An engine has closed all its connections to the file."""
    with _lock:
        _engines[key] = _engines.get(key, 1) - 1
        if _engines[key] <= 0:
            del _engines[key]
            for descriptor in _descriptors.pop(key, {}).values():
                os.close(descriptor)


@contextmanager
def entered(path: str, *, create: bool = False) -> Iterator[None]:
    """While the file is looked at before an engine has it open; one that is not there yet needs nothing.

    `create`: a missing one is created first, for its owner alone. SQLite gives its log files the same mode.
    """
    made = _create_private(path) if create else None
    try:
        key = enter(path)
    except (OSError, ValueError):  # what is wrong with the path is said by who opens it
        yield
        return
    if made is not None:
        with _lock:
            _descriptors.setdefault(key, {})[key] = made
    try:
        yield
    finally:
        leave(key)


def _create_private(path: str) -> int | None:
    with suppress(OSError, ValueError):
        return os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    return None


def read_at(path: str, count: int, place: int = 0, *, ending: str = "") -> bytes:
    """Bytes of a database that may be open, or of its log file of this ending, within `entered`."""
    with _lock:
        descriptor = _descriptor(path, ending)
    return _read(descriptor, count, place)


def _read(descriptor: int, count: int, place: int) -> bytes:
    """The bytes from a place on. Windows reads only from where a descriptor stands, so one reads at a time there."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, place)
    with _seeking:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.read(descriptor, count)


def _descriptor(path: str, ending: str) -> int:
    held = _descriptors.setdefault(_key(path), {})
    key = _key(path + ending)
    if key not in held:
        held[key] = os.open(path + ending, os.O_RDONLY | _FLAGS)
    return held[key]


def read_chunks(path: str, chunk_bytes: int, *, ending: str = "") -> Iterator[bytes]:
    """The bytes of a database file, or of its log file of this ending, in chunks."""
    with _lock:
        descriptor = _descriptor(path, ending)
    place = 0
    while chunk := _read(descriptor, chunk_bytes, place):
        yield chunk
        place += len(chunk)
