"""Bytes left behind in the files of a SQLite store: looking for them, and rebuilding the file without them.

`traces_of` says what to look for: a needle may be cut in two by a page boundary, or half overwritten, so parts
of it count as well. After a rebuild nothing is left but live rows, so then only whole needles count.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing

from muniment.core.ports.engine import ScrubReport
from muniment.errors import StorageFailure
from muniment.store.engines._sqlite_files import FileTarget, connect, patiently, read_chunks, translate

__all__ = ["found_in", "scrub", "traces_of"]


_CHUNK_BYTES = 1 << 23
_PART_BYTES = 64
_HALF_BYTES_MIN = 16
_WORD_BYTES = 8
_FEW = 16
_CHECKPOINT_WAIT_S = 2.0
_LOG_HELD = "; a reader kept the write-ahead log from emptying"


def scrub(place: FileTarget, needles: Sequence[bytes], *, look_bytes_max: int | None) -> ScrubReport:
    """Empty the log, look, rebuild if anything is found, look again. The caller keeps other writers out.

    A file of more than so many bytes is not looked through, and is due a thorough scrub. Without a bound it is a
    thorough one, which rebuilds the file whatever is found.
    """
    deadline = time.monotonic() + place.busy_timeout_s
    try:
        with closing(connect(place, timeout_s=0)) as connection:
            emptied = _empty_log(connection, place)
            if look_bytes_max is not None and os.path.getsize(place.path) > look_bytes_max:
                return _unseen(look_bytes_max, emptied=emptied)
            if look_bytes_max is not None and not found_in(_files(place), traces_of(needles)):
                clean = emptied or bool(needles)
                note = f"no residue found{'' if emptied else _LOG_HELD}"
                return ScrubReport(clean, vacuumed=False, note=note, due=not clean)
            if not emptied:
                note = "a reader holds the write-ahead log: scrub again when it is done"
                return ScrubReport(clean=False, vacuumed=False, note=note, due=True)
            connection.execute("PRAGMA temp_store = FILE")  # a rebuild may be larger than memory
            patiently(connection, "VACUUM", deadline, place.path)
            emptied = _empty_log(connection, place)
    except sqlite3.Error as error:
        return ScrubReport(clean=False, vacuumed=False, note=str(translate(error, place.path)), due=True)
    except StorageFailure as error:
        return ScrubReport(clean=False, vacuumed=False, note=str(error), due=True)
    if found_in(_files(place), needles) or not (emptied or needles):
        note = "rebuilt; still in rows that were not forgotten" if emptied else "rebuilt; a reader holds the old log"
        return ScrubReport(clean=False, vacuumed=True, note=note, due=not emptied)
    return ScrubReport(clean=True, vacuumed=True, note="rebuilt the file", due=False)


def _unseen(look_bytes_max: int, *, emptied: bool) -> ScrubReport:
    """Of a file that is too large to be looked through while everybody waits."""
    note = (
        "the rows were overwritten; the file has more than"
        f" {look_bytes_max >> 20} MiB, and was not looked through for residue: scrub the store"
    )
    return ScrubReport(clean=False, vacuumed=False, note=f"{note}{'' if emptied else _LOG_HELD}", due=True)


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
    """Each needle, or the parts by which a cut or half overwritten one is known: halves, or stretches of 64 bytes."""
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
    """Is any of the needles in any of the files? Reads in stretches that overlap by the longest needle."""
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
    """Which of many needles may be in a chunk, in one pass over its 8-byte words whatever their number.

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
