"""Residual bytes in the files of a SQLite store: emptying the log, searching for them, rebuilding the file.

A forget overwrites rows in place (`secure_delete`), and tables with content never move a row to another page
(`engines.layout`). So nothing is left once the write-ahead log is empty, and no file has to be read. Needles are for
bytes that may have moved, and for tests: one may be cut in two by a page boundary, or half overwritten, so parts of it
count as well (`traces_of`). After a rebuild only live rows are left, so then only whole needles count.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress

from muniment.core.ports.engine import ScrubReport
from muniment.errors import StorageFailure
from muniment.store.engines._sqlite_files import FileTarget, connect, patiently, read_chunks, translate

__all__ = ["confirm", "found_in", "rebuild", "traces_of"]


_CHUNK_BYTES = 1 << 23
_PART_BYTES = 64
_HALF_BYTES_MIN = 16
_WORD_BYTES = 8
_FEW = 16
_CHECKPOINT_WAIT_S = 2.0
_READ_LOCKS = range(123, 128)
"""The bytes of the shared-memory file that SQLite's readers of the log lock."""


def confirm(
    connection: sqlite3.Connection, place: FileTarget, needles: Sequence[bytes], *, look_bytes_max: int
) -> ScrubReport:
    """Empty the log into the file after a forget, where rows were overwritten. The caller keeps other writers out.

    Given needles, it searches for them and rebuilds the file if it finds one; but a file of more than `look_bytes_max`
    is left to a thorough scrub.
    """
    try:
        if not _empty_log(connection, place):
            return _held(place)
        if not needles:
            return ScrubReport(clean=True, vacuumed=False, note="the rows were overwritten and the log emptied")
        if os.path.getsize(place.path) > look_bytes_max:
            note = (
                "the rows were overwritten; the file has more than"
                f" {look_bytes_max >> 20} MiB, and was not looked through for residue: scrub the store"
            )
            return ScrubReport(clean=False, vacuumed=False, note=note, due=True)
        if not found_in(_files(place), traces_of(needles)):
            return ScrubReport(clean=True, vacuumed=False, note="no residue found")
    except (sqlite3.Error, StorageFailure) as error:
        return _failed(error, place)
    return rebuild(place, needles)


def rebuild(place: FileTarget, needles: Sequence[bytes] = ()) -> ScrubReport:
    """Rewrite the file with only live rows, and search for the needles. The caller keeps other writers out."""
    deadline = time.monotonic() + place.busy_timeout_s
    try:
        with closing(connect(place, timeout_s=0)) as connection:
            if not _empty_log(connection, place):
                return _held(place)
            connection.execute("PRAGMA temp_store = FILE")  # a rebuild may be larger than memory
            patiently(connection, "VACUUM", deadline, place.path)
            if not _empty_log(connection, place):
                return _held(place)._replace(vacuumed=True)
    except (sqlite3.Error, StorageFailure) as error:
        return _failed(error, place)
    if found_in(_files(place), needles):
        return ScrubReport(clean=False, vacuumed=True, note="rebuilt; still in rows that were not forgotten")
    return ScrubReport(clean=True, vacuumed=True, note="rebuilt the file")


def _held(place: FileTarget) -> ScrubReport:
    readers = ", ".join(_readers(f"{place.path}-shm")) or "a reader"
    note = f"{readers} holds the write-ahead log open: scrub the store when that is done"
    return ScrubReport(clean=False, vacuumed=False, note=note, due=True)


def _failed(error: sqlite3.Error | StorageFailure, place: FileTarget) -> ScrubReport:
    why = str(translate(error, place.path) if isinstance(error, sqlite3.Error) else error)
    return ScrubReport(clean=False, vacuumed=False, note=why, due=True)


def _readers(path: str) -> list[str]:
    """Return the processes with a read lock on the log, where the system reports them: Linux lists locks by inode."""
    found: dict[int, None] = {}
    with suppress(OSError, ValueError, IndexError):
        inode = os.stat(path).st_ino
        with open("/proc/locks", encoding="ascii") as locks:
            for line in locks:
                # "1: POSIX  ADVISORY  READ 4321 fd:01:123456 124 124"; a waiting lock has "->" behind its number
                _, kind, _, _, pid, file, first, _ = line.replace("->", "").split()
                if kind == "POSIX" and int(file.rpartition(":")[2]) == inode and int(first) in _READ_LOCKS:
                    found[int(pid)] = None
    return ["this process" if pid == os.getpid() else f"process {pid}" for pid in found if pid > 0]


def _empty_log(connection: sqlite3.Connection, place: FileTarget) -> bool:
    deadline = time.monotonic() + min(_CHECKPOINT_WAIT_S, place.busy_timeout_s)
    while True:
        busy, _, _ = patiently(connection, "PRAGMA wal_checkpoint(TRUNCATE)", deadline, place.path).fetchone()
        if not busy or time.monotonic() >= deadline:
            return not busy
        time.sleep(0.01)


def _files(place: FileTarget) -> list[tuple[str, str]]:
    """The database and its log, as paths and endings."""
    return [(place.path, ending) for ending in ("", "-wal") if os.path.exists(place.path + ending)]


def traces_of(needles: Iterable[bytes]) -> list[bytes]:
    """Return each needle, or the parts that identify a cut or half overwritten one: halves, or runs of 64 bytes."""
    traces: dict[bytes, None] = {}
    for needle in needles:
        if len(needle) > _PART_BYTES:
            parts = [needle[at : at + _PART_BYTES] for at in range(0, len(needle) - _PART_BYTES, _PART_BYTES)]
            traces.update(dict.fromkeys([*parts, needle[-_PART_BYTES:]]))
        elif len(needle) >= 2 * _HALF_BYTES_MIN:
            middle = len(needle) // 2
            traces.update(dict.fromkeys([needle[:middle], needle[middle:]]))
        elif needle:
            traces[needle] = None
    return list(traces)


def found_in(files: Iterable[tuple[str, str]], needles: Sequence[bytes]) -> bool:
    """Return whether any file contains any of the needles. Reads in stretches that overlap by the longest needle."""
    wanted = [needle for needle in needles if needle]
    if not wanted:
        return False
    overlap = max(map(len, wanted)) + _WORD_BYTES
    overlap += -overlap % _WORD_BYTES
    sieve = _Sieve(wanted) if len(wanted) > _FEW else None
    for path, ending in files:
        tail = b""
        for fresh in read_chunks(path, _CHUNK_BYTES, ending=ending):
            chunk = tail + fresh
            if any(needle in chunk for needle in (sieve.candidates(chunk) if sieve else wanted)):
                return True
            tail = chunk[-overlap:]
    return False


class _Sieve:
    """A filter for the needles that may be in a chunk, in one pass over its 8-byte words whatever their number.

    Wherever a needle of 15 bytes or more lies, one aligned word falls wholly into its first 15 bytes, and that
    word is one of eight. Shorter needles are always candidates.
    """

    def __init__(self, needles: Sequence[bytes]) -> None:
        whole = 2 * _WORD_BYTES - 1
        self._short = [needle for needle in needles if len(needle) < whole]
        self._by_word: dict[int, list[bytes]] = {}
        for needle in needles:
            if len(needle) >= whole:
                for at in range(_WORD_BYTES):
                    word = memoryview(needle[at : at + _WORD_BYTES]).cast("Q")[0]
                    self._by_word.setdefault(word, []).append(needle)

    def candidates(self, chunk: bytes) -> set[bytes]:
        words = memoryview(chunk)[: len(chunk) - len(chunk) % _WORD_BYTES].cast("Q")
        hits = self._by_word.keys() & set(words)
        return {*self._short, *[needle for hit in hits for needle in self._by_word[hit]]}
