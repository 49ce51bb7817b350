"""Reading a database file beside SQLite without dropping its locks.

POSIX locks belong to the process and the file: closing *any* descriptor of a file drops every lock the process holds on
it, SQLite's too, and another process could then take the store for abandoned. So a descriptor opened here stays open
until no engine of this process has the file open any more.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["enter", "entered", "leave", "read_chunks", "read_start"]

Key = tuple[int, int]

_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Each system has one of them."""
_lock = threading.Lock()
_seeking = threading.Lock()
_engines: dict[Key, int] = {}
_descriptors: dict[Key, int] = {}


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
            descriptor = _descriptors.pop(key, None)
            if descriptor is not None:
                os.close(descriptor)


@contextmanager
def entered(path: str) -> Iterator[None]:
    """While the file is looked at before an engine has it open; one that is not there yet needs nothing."""
    try:
        key = enter(path)
    except (OSError, ValueError):  # what is wrong with the path is said by who opens it
        yield
        return
    try:
        yield
    finally:
        leave(key)


def read_start(path: str, count: int) -> bytes:
    """The first bytes of a file that may be open, within `entered`."""
    with _lock:
        return _read(_descriptor(path), count, 0)


def _read(descriptor: int, count: int, place: int) -> bytes:
    """The bytes from a place on. Windows reads only from where a descriptor stands, so one reads at a time there."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, count, place)
    with _seeking:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.read(descriptor, count)


def _descriptor(path: str) -> int:
    key = _key(path)
    if key not in _descriptors:
        _descriptors[key] = os.open(path, os.O_RDONLY | _FLAGS)
    return _descriptors[key]


def read_chunks(path: str, chunk_bytes: int) -> Iterator[bytes]:
    """The bytes of a database file, stretch by stretch."""
    with _lock:
        descriptor = _descriptor(path)
    place = 0
    while chunk := _read(descriptor, chunk_bytes, place):
        yield chunk
        place += len(chunk)
