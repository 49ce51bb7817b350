"""The numbers of one process, in cells: doubles in memory, or in a file that other processes may read at any time.

A file of numbers is mapped into memory, so that what was counted is there for the others at once, and stays counted
when its process is killed. Beside it lies a file of labels, to which a line is added for each new set of them before
its first number is. A number is written whole: eight bytes at a place that eight divides.
"""

from __future__ import annotations

import json
import mmap
import os
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from muniment.core.outside.posix import fcntl

__all__ = ["CELLS_MAX", "Cells", "Counted", "is_alive", "read_counted"]

CELLS_MAX = 1 << 15
"""A set of labels takes one cell, or one for each bucket: some thousands in all, by what labels can be."""
_BYTES = 8
LABELS, NUMBERS = ".labels", ".numbers"


class Counted(NamedTuple):
    """A set of labels and its numbers."""

    name: str
    labels: tuple[str, ...]
    numbers: tuple[float, ...]


class Cells:
    """The cells of this process. One thread adds to a number; any may take new ones, or read."""

    def __init__(self, place: Path | None = None) -> None:
        """`place` is the name of the two files without their endings; without one, the numbers are this process's."""
        self._lines: list[tuple[str, tuple[str, ...], int, int]] = []
        self._used = 0
        self._lock = threading.Lock()
        self._labels: Any = None
        self._mapped: mmap.mmap | None = None
        self.numbers: Any = array("d", bytes(_BYTES * CELLS_MAX))
        if place is not None:
            self._labels = place.with_name(place.name + LABELS).open("ab", buffering=0)
            file = os.open(place.with_name(place.name + NUMBERS), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX)  # until this process ends, however it ends
            os.ftruncate(file, _BYTES * CELLS_MAX)
            self._mapped = mmap.mmap(file, _BYTES * CELLS_MAX)  # which keeps the file open, and so its lock
            os.close(file)
            self.numbers = memoryview(self._mapped).cast("d")

    def take(self, name: str, labels: tuple[str, ...] = (), count: int = 1) -> int | None:
        """The place of the first of `count` new cells; None where there are no more."""
        with self._lock:
            if self._used + count > CELLS_MAX:
                return None
            at = self._used
            self._used += count
            if self._labels is not None:
                self._labels.write(json.dumps([name, labels, at, count]).encode() + b"\n")
            self._lines.append((name, labels, at, count))
            return at

    def close(self) -> None:
        """Let go of the files, which stay: from here on this process counts as ended."""
        if self._mapped is not None:
            shared, self.numbers = self.numbers, array("d", self.numbers)
            shared.release()
            self._mapped.close()
            self._labels.close()
            self._mapped = self._labels = None

    def counted(self) -> Iterator[Counted]:
        """All that was counted."""
        for name, labels, at, count in tuple(self._lines):
            yield Counted(name, labels, tuple(self.numbers[at : at + count]))


def read_counted(place: Path) -> list[Counted]:
    """What another process has counted so far."""
    numbers = memoryview(place.with_name(place.name + NUMBERS).read_bytes()).cast("d")
    found = []
    for line in place.with_name(place.name + LABELS).read_bytes().split(b"\n")[:-1]:
        name, labels, at, count = json.loads(line)
        found.append(Counted(name, tuple(labels), tuple(numbers[at : at + count])))
    return found


def is_alive(place: Path) -> bool:
    """Does the process of these files still run? It holds a lock that the system takes back when it ends."""
    file = os.open(place.with_name(place.name + NUMBERS), os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
