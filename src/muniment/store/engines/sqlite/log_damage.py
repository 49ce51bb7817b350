"""Commits that a damaged write-ahead log still holds and SQLite no longer reads.

After a crash SQLite replays the log up to the first frame whose checksum is wrong, and drops the rest without a word:
rightly so for a commit that was being written, which is the end of the log. A commit behind the wrong frame was
finished and acknowledged; its own checksum shows that it was written whole. Damage to the last frame of all, or to the
checksum before it, looks like an interrupted write and is not noticed.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from contextlib import closing
from typing import NoReturn

from muniment.errors import StoreDamaged
from muniment.store.engines.sqlite.connections import FileTarget, connect
from muniment.store.engines.sqlite.handles import read_at

__all__ = ["is_log_damaged", "refuse_damaged_log"]

_HEADER_BYTES, _FRAME_BYTES = 32, 24
_MAGICS = (0x377F0682, 0x377F0683)
"""Of a log whose checksums read words little-endian, or big-endian."""
_CHUNK_FRAMES = 1024
_INDEX_BYTES = 48
_SETTLE_S = 2.0
"""A live writer announces a commit so long after it wrote it, at most."""
_PAUSE_S = 0.05


def is_log_damaged(place: FileTarget) -> bool:
    """Whether the log of a file holds commits that SQLite does not recover.

    Looks through a read-only connection: the last other one to be closed would empty the log. Within `entered`.
    """
    log = f"{place.path}-wal"
    if place.mode == "immutable" or not os.path.exists(log) or not os.path.getsize(log):
        return False
    try:
        with closing(connect(place._replace(mode="ro"), timeout_s=place.busy_timeout_s)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # recovers what can be read
            return _stays_damaged(place)
    except sqlite3.Error:  # raised again by whoever opens the file, and explained there
        return False


def refuse_damaged_log(path: str) -> NoReturn:
    """Raise the error for a file whose log is damaged."""
    raise StoreDamaged(
        f"the write-ahead log of {path} is damaged: commits behind the damage are lost",
        hint="copy the file and its -wal elsewhere and restore a backup. To go on without what is lost:"
        f" sqlite3 {path} 'PRAGMA wal_checkpoint(TRUNCATE)'",
        details={"location": path},
    )


def _stays_damaged(place: FileTarget) -> bool:
    """Whether commits are lost, and nobody is just about to announce one."""
    recovered = _end_before_lost_commits(place.path)
    settle_s = min(_SETTLE_S, place.busy_timeout_s)
    deadline = time.monotonic() + settle_s
    while recovered is not None and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        before, recovered = recovered, _end_before_lost_commits(place.path)
        if recovered != before:
            deadline = time.monotonic() + settle_s
    return recovered is not None


def _end_before_lost_commits(path: str) -> int | None:
    """The number of the last frame that SQLite recovered, if a finished commit stands behind it in the log."""
    if not all(os.path.exists(path + ending) for ending in ("-wal", "-shm")):
        return None
    index = read_at(path, 2 * _INDEX_BYTES, ending="-shm")
    if index[:_INDEX_BYTES] != index[_INDEX_BYTES:] or len(index) < 2 * _INDEX_BYTES:
        return None  # somebody is writing it: they have read the log
    (recovered,) = struct.unpack_from("=I", index, 16)
    header = read_at(path, _HEADER_BYTES, ending="-wal")
    if len(header) < _HEADER_BYTES:
        return None
    if not _is_sound(header):
        is_lost = recovered == 0 and os.path.getsize(f"{path}-wal") > _HEADER_BYTES + _FRAME_BYTES
        return 0 if is_lost else None
    if index[32:40] != header[16:24]:
        return None  # begun anew since
    (page_bytes,) = struct.unpack_from(">I", header, 8)
    frame_bytes = _FRAME_BYTES + page_bytes
    place = _HEADER_BYTES + recovered * frame_bytes
    checksum = b""
    while chunk := read_at(path, _CHUNK_FRAMES * frame_bytes, place, ending="-wal"):
        for at in range(0, len(chunk) - frame_bytes + 1, frame_bytes):
            frame = chunk[at : at + frame_bytes]
            is_commit = frame[8:16] == header[16:24] and any(frame[4:8])
            if is_commit and checksum and _checksum(header, frame[:8] + frame[24:], checksum) == frame[16:24]:
                return int(recovered)
            checksum = frame[16:24]
        place += len(chunk)
    return None


def _is_sound(header: bytes) -> bool:
    """Whether the checksum of a log's header is right."""
    return struct.unpack_from(">I", header)[0] in _MAGICS and _checksum(header, header[:24]) == header[24:]


def _checksum(header: bytes, data: bytes, start: bytes = bytes(8)) -> bytes:
    """The checksum of a log with this header, of data that comes behind what has the checksum `start`."""
    one, other = struct.unpack(">2I", start)
    order = "<" if struct.unpack_from(">I", header)[0] == _MAGICS[0] else ">"
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return struct.pack(">2I", one, other)
