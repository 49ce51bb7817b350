"""SQLite files: connections to one, checking and making it, a damaged log, and copies.

Nothing here knows what rows mean.
"""

from __future__ import annotations

import os
import random
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from muniment.core.limits import CURRENT
from muniment.errors import (
    Closed,
    InvalidInput,
    MunimentError,
    NotADatabase,
    NotFound,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageLost,
    StorageReadOnly,
    StoreDamaged,
    TooLarge,
)
from muniment.store.engines.layout import LAYOUT, LAYOUT_TABLE, check_layout, fingerprint, old_store, sqlite_tables

__all__ = [
    "APPLICATION_ID",
    "Connections",
    "FileTarget",
    "MemoryConnections",
    "begin_immediate",
    "check_file",
    "code_of",
    "connect",
    "copy_file",
    "damaged_text",
    "enter",
    "entered",
    "is_broken_text",
    "is_busy",
    "is_log_damaged",
    "is_taken_key",
    "leave",
    "patiently",
    "prepare",
    "prepare_memory",
    "read_at",
    "read_chunks",
    "refuse_damaged_log",
    "replace_file",
    "schema_number",
    "translate",
]

# -- errors -------------------------------------------------------------------------------------------
#
# Translation of SQLite's errors to those of `errors`: the one place that knows its codes.

_TAKEN = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID}
)

_LACKING = ("no such column", "no such table", "has no column named")


def code_of(error: sqlite3.Error) -> int:
    """The extended result code; 0 where Python raised without asking SQLite."""
    return getattr(error, "sqlite_errorcode", 0) or 0


def is_busy(error: sqlite3.Error) -> bool:
    return code_of(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_taken_key(error: sqlite3.Error) -> bool:
    return code_of(error) in _TAKEN


def is_broken_text(error: sqlite3.Error) -> bool:
    return "Could not decode to UTF-8" in str(error)


def _lacks_name(error: sqlite3.Error) -> bool:
    """Return whether a table or column that every store has is missing: then the file's schema is damaged."""
    return code_of(error) == sqlite3.SQLITE_ERROR and any(words in str(error) for words in _LACKING)


def damaged_text(location: str) -> StoreDamaged:
    """The error for a text that is no UTF-8."""
    return StoreDamaged(f"a text in {location} is damaged", details={"location": location})


def translate(error: sqlite3.Error, location: str, *, is_open: bool = False) -> MunimentError:
    """Translate a SQLite error. With `is_open`, a malformed file means a damaged store."""
    code = code_of(error)
    details = {"location": location, "sqlite": f"{getattr(error, 'sqlite_errorname', '')} {error}".strip()}
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # the write-ahead index could not grow
        return StorageFull(f"no space left for {location}", details=details)
    if _lacks_name(error):
        code = sqlite3.SQLITE_CORRUPT
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageBusy(f"another writer holds {location}", hint="try again", details=details)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return StorageReadOnly(
                f"{location} cannot be written",
                hint="check the permissions of the file and its folder, and whether the disk is mounted read-only",
                details=details,
            )
        case sqlite3.SQLITE_FULL:
            return StorageFull(f"no space left for {location}", hint="free space, then try again", details=details)
        case sqlite3.SQLITE_CORRUPT if is_open:
            return StoreDamaged(f"the file {location} is damaged", details=details)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return NotADatabase(
                f"{location} is no SQLite database, or a damaged one", hint="restore a backup", details=details
            )
        case sqlite3.SQLITE_TOOBIG:
            return TooLarge("a value is larger than SQLite can hold", details=details)
        case _:
            if "closed database" in str(error):
                return Closed("the store has been closed")
            if is_broken_text(error):
                return damaged_text(location)
            return StorageFailure(f"SQLite failed on {location}: {error}", details=details)


# -- open files ---------------------------------------------------------------------------------------
#
# Reading a database file alongside SQLite without dropping its locks.
#
# POSIX locks belong to the process and the file: closing *any* descriptor of a file drops every lock the process holds
# on it, SQLite's too, and another process could then take the store for abandoned. So a descriptor opened here stays
# open until no engine of this process has the file open any more.

Key = tuple[int, int]

_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags that exist on only some systems."""
_lock = threading.Lock()
_seeking = threading.Lock()
_engines: dict[Key, int] = {}
_descriptors: dict[Key, dict[Key, int]] = {}
"""By database, the descriptors of it and of its log files."""


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
    """Hold the file while it is examined before an engine opens it; a missing one needs nothing.

    `create`: a missing file is created first, readable by its owner alone. SQLite gives its log files the same mode.
    """
    made = _create_private(path) if create else None
    try:
        key = enter(path)
    except (OSError, ValueError):  # opening the path reports its fault
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
    """Read bytes of a database that may be open, or of its log file with this ending, within `entered`."""
    with _lock:
        descriptor = _descriptor(path, ending)
    return _read(descriptor, count, place)


def _read(descriptor: int, count: int, place: int) -> bytes:
    """Read bytes at an offset. Windows reads only at a descriptor's current position, so reads take turns there."""
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
    """Read a database file, or its log file with this ending, in chunks."""
    with _lock:
        descriptor = _descriptor(path, ending)
    place = 0
    while chunk := _read(descriptor, chunk_bytes, place):
        yield chunk
        place += len(chunk)


# -- connections --------------------------------------------------------------------------------------
#
# Connections to one SQLite file: set-up, waiting, sharing between threads, and forks.
#
# One writer behind a lock and a few idle readers. Knows nothing of tables.

_IDLE_READERS_MAX = 8
_LOG_BYTES = 4 * 1024 * 1024
"""Size of the write-ahead log at which its pages are moved into the file."""
_SLEEP_FIRST_S, _SLEEP_LAST_S = 0.0002, 0.004


_Identity = tuple[int, int]
"""A file's device and inode, which identify it under a reused name."""


def _identity(path: str) -> _Identity | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class FileTarget(NamedTuple):
    """The file's path and how it may be opened."""

    path: str
    mode: Literal["rwc", "rw", "ro", "immutable"]
    durability: Literal["normal", "full"]
    busy_timeout_s: float
    is_log_damaged: bool = False
    """Commits are lost; the remaining rows can be read one by one."""

    @property
    def uri(self) -> str:
        how = "immutable=1" if self.mode == "immutable" else f"mode={self.mode}"
        return f"{Path(os.path.abspath(self.path)).as_uri()}?{how}"


def connect(place: FileTarget, *, timeout_s: float) -> sqlite3.Connection:
    """No implicit transactions; `timeout_s` is SQLite's own waiting, which is too coarse for writers."""
    connection = sqlite3.connect(
        place.uri,
        uri=True,
        timeout=place.busy_timeout_s,  # the first look at a file may meet one that is just being made
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    ready = False
    try:
        # No mmap_size: a file cut short by another process would end this one with SIGBUS.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA synchronous = {'FULL' if place.durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_BYTES // page_bytes}")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(f"PRAGMA busy_timeout = {timeout_s * 1000:.0f}")
        ready = True
    finally:
        if not ready:
            connection.close()
    return connection


def patiently(connection: sqlite3.Connection, statement: str, deadline: float, location: str) -> sqlite3.Cursor:
    """Run a statement that may find the file busy, retrying every few milliseconds until the deadline.

    SQLite's own busy handler sleeps up to 100 ms between tries; with writers of a millisecond that starves.
    """
    sleep_s = _SLEEP_FIRST_S
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise translate(error, location) from error
        if (cancellation := CURRENT.get()) is not None:
            cancellation.check()
        time.sleep(sleep_s * random.uniform(0.5, 1.5))
        sleep_s = min(sleep_s * 1.5, _SLEEP_LAST_S)


def begin_immediate(connection: sqlite3.Connection, deadline: float, location: str) -> None:
    patiently(connection, "BEGIN IMMEDIATE", deadline, location)


class Connections:
    """The connections of one process to one file."""

    def __init__(self, place: FileTarget) -> None:
        self.place = place
        self.pid = os.getpid()
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._guard = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._watcher: sqlite3.Connection | None = None
        self._reading = 0
        self._key = enter(place.path)
        self._path = os.path.abspath(place.path)
        self._file = _identity(self._path)
        self._log: _Identity | None = None
        self.is_closed = False

    def take_writer(self, deadline: float) -> sqlite3.Connection:
        """Take the one writer, for one thread at a time, until `leave_writer`."""
        if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise StorageBusy(f"another thread holds {self.place.path}", hint="try again")
        taken = False
        try:
            self.refuse_closed()
            if self._writer is None:
                self.refuse_vanished()  # before opening a connection, which may reach another file
                self._writer, self._log = connect(self.place, timeout_s=0), None
            self.refuse_vanished()
            taken = True
            return self._writer
        except sqlite3.Error as error:
            raise translate(error, self.place.path) from error
        finally:
            if not taken:
                self._lock.release()

    def refuse_vanished(self) -> None:
        """Refuse a removed, renamed or replaced file: SQLite would go on writing to it, and the writes be lost."""
        file, log = _identity(self._path), _identity(f"{self._path}-wal")
        if file is None or file != self._file or (self._log is not None and log != self._log):
            raise StorageLost(
                f"{self.place.path} was removed or replaced while it was open: this write is not kept",
                hint="put the file back, or close the store and open what stands there now",
                details={"location": self.place.path},
            )
        self._log = log

    def leave_writer(self) -> None:
        self._lock.release()

    def drop_writer(self) -> None:
        """Drop a connection that cannot even roll back: the next writer gets a new one."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def take_reader(self) -> sqlite3.Connection:
        """Take an exclusive reader until `leave_reader`."""
        with self._guard:
            self.refuse_closed()
            self._reading += 1
            if self._idle:
                return self._idle.pop()
        taken = False
        try:
            connection = self._new_reader()
            taken = True
            return connection
        finally:
            if not taken:
                self._end_reading()

    def leave_reader(self, connection: sqlite3.Connection) -> None:
        """Take a reader back without a transaction, or close it."""
        with self._guard:
            if not self.is_closed and not connection.in_transaction and len(self._idle) < _IDLE_READERS_MAX:
                self._idle.append(connection)
                self._reading -= 1
                return
        connection.close()
        self._end_reading()

    def take_snapshot(self) -> sqlite3.Connection:
        """Take a reader for a long view, until `leave_snapshot`."""
        return self.take_reader()

    def leave_snapshot(self, connection: sqlite3.Connection) -> None:
        self.leave_reader(connection)

    def _new_reader(self) -> sqlite3.Connection:
        try:
            return connect(self.place, timeout_s=self.place.busy_timeout_s)
        except sqlite3.Error as error:
            raise translate(error, self.place.path) from error

    def _end_reading(self) -> None:
        with self._guard:
            self._reading -= 1
            if self.is_closed and not self._reading:
                leave(self._key)

    def size_bytes(self) -> int:
        return sum(os.path.getsize(file) for file in (self._path, f"{self._path}-wal") if os.path.exists(file))

    def data_version(self) -> int:
        """Return SQLite's count of others' commits, seen by a connection used for nothing else."""
        with self._guard:
            self.refuse_closed()
            if self._watcher is None:
                self._watcher = self._new_reader()
            try:
                return int(self._watcher.execute("PRAGMA data_version").fetchone()[0])
            except sqlite3.Error as error:
                raise translate(error, self.place.path) from error

    def refuse_closed(self) -> None:
        if self.is_closed:
            raise Closed("the store has been closed")

    def close(self) -> None:
        """Close all connections. Waits for a running write; readers in use are closed on return."""
        with self._lock:
            with self._guard:
                if self.is_closed:
                    return
                self.is_closed = True
                idle, self._idle = self._idle, []
                if self._watcher is not None:
                    idle.append(self._watcher)
            for connection in idle:
                connection.close()
            self.drop_writer()
            with self._guard:
                if not self._reading:
                    leave(self._key)


class MemoryConnections(Connections):
    """A database in memory: one connection behind a lock, for readers and writers alike.

    A long view is a copy, so that it stays unchanged and blocks nobody. A fork copies the store.
    """

    def __init__(self, place: FileTarget, connection: sqlite3.Connection) -> None:
        self.place = place
        self.pid = os.getpid()
        self.is_closed = False
        self._lock = threading.Lock()
        self._connection = connection

    def take_writer(self, deadline: float) -> sqlite3.Connection:
        if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise StorageBusy("another thread holds the store in memory", hint="try again")
        if self.is_closed:
            self._lock.release()
            self.refuse_closed()
        return self._connection

    def refuse_vanished(self) -> None:
        pass

    def drop_writer(self) -> None:
        """Drop the connection, and with it the store."""
        self.is_closed = True
        self._connection.close()

    def take_reader(self) -> sqlite3.Connection:
        return self.take_writer(time.monotonic() + threading.TIMEOUT_MAX / 2)

    def leave_reader(self, connection: sqlite3.Connection) -> None:
        del connection
        self._lock.release()

    def take_snapshot(self) -> sqlite3.Connection:
        copy = connect_memory()
        connection = self.take_reader()
        try:
            connection.backup(copy)
        finally:
            self.leave_reader(connection)
        return copy

    def leave_snapshot(self, connection: sqlite3.Connection) -> None:
        connection.close()

    def size_bytes(self) -> int:
        return 0

    def data_version(self) -> int:
        """Count changes made on the one connection; under the lock each is committed or undone."""
        with self._lock:
            self.refuse_closed()
            return self._connection.total_changes

    def after_fork(self) -> None:
        """Keep the child's own copy, unless another thread was changing it at the fork."""
        if not self._lock.acquire(blocking=False):
            raise StorageLost(
                "another thread held the store in memory when this process was forked",
                hint="fork before threads use the store, or open a file",
            )
        self._lock.release()
        self.pid = os.getpid()

    def close(self) -> None:
        with self._lock:
            if not self.is_closed:
                self.drop_writer()


def connect_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


# -- a damaged log ------------------------------------------------------------------------------------
#
# Commits that a damaged write-ahead log still holds and SQLite no longer reads.
#
# After a crash SQLite replays the log up to the first frame whose checksum is wrong, and drops the rest without a word:
# rightly so for a commit that was being written, which is the end of the log. A commit behind the wrong frame was
# finished and acknowledged; its own checksum shows that it was written whole. Damage to the last frame of all, or to
# the checksum before it, looks like an interrupted write and is not noticed.

_HEADER_BYTES, _FRAME_BYTES = 32, 24
_MAGICS = (0x377F0682, 0x377F0683)
"""Magic numbers of a log whose checksums read words little-endian, or big-endian."""
_CHUNK_FRAMES = 1024
_INDEX_BYTES = 48
_SETTLE_S = 2.0
"""Longest time between a live writer's writing a commit and announcing it."""
_PAUSE_S = 0.05


def is_log_damaged(place: FileTarget) -> bool:
    """Return whether the log of a file holds commits that SQLite does not recover.

    Looks through a read-only connection, as closing a last writable one would empty the log. Within `entered`.
    """
    log = f"{place.path}-wal"
    if place.mode == "immutable" or not os.path.exists(log) or not os.path.getsize(log):
        return False
    try:
        with closing(connect(place._replace(mode="ro"), timeout_s=place.busy_timeout_s)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # recovers the readable part
            return _stays_damaged(place)
    except sqlite3.Error:  # opening the file raises it again, with an explanation
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
    """Return whether commits are lost, and not merely about to be announced."""
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
    """Return the last frame that SQLite recovered, if a finished commit follows it in the log."""
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
    """Return whether the checksum of a log's header is right."""
    return struct.unpack_from(">I", header)[0] in _MAGICS and _checksum(header, header[:24]) == header[24:]


def _checksum(header: bytes, data: bytes, start: bytes = bytes(8)) -> bytes:
    """Return the checksum of a log with this header, of data that follows data with the checksum `start`."""
    one, other = struct.unpack(">2I", start)
    order = "<" if struct.unpack_from(">I", header)[0] == _MAGICS[0] else ">"
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + other) & 0xFFFFFFFF
        other = (other + second + one) & 0xFFFFFFFF
    return struct.pack(">2I", one, other)


# -- opening ------------------------------------------------------------------------------------------
#
# Opening a SQLite file: identifying it, and making the tables of a new one.
#
# Refuses before it writes: a file that is something else is never touched. Safe for many processes that open the same
# new file at once. Holds no connection afterwards.

APPLICATION_ID = 0x6D756E69  # "muni"
PAGE_BYTES = 2048
"""Page size of a new file. Each commit writes whole pages of several b-trees to the log, most of them for one small
cell, so that SQLite's own 4096 cost more; in pages of 1024, an entry of 280 bytes leaves a seventh empty. Existing
files keep their size.
"""
_MAGIC = b"SQLite format 3\0"
_making = threading.Lock()
_empty: list[sqlite3.Connection] = []


def prepare(place: FileTarget) -> tuple[FileTarget, int]:
    """Check the file and make its tables if it is new; returns how to open it, and the number of its layout."""
    with entered(place.path, create=place.mode == "rwc"):
        try:
            return _prepare(place)
        except UnicodeDecodeError:  # Python cannot decode SQLite's message about a damaged schema
            raise damaged_text(place.path) from None


def prepare_memory() -> tuple[sqlite3.Connection, int]:
    """Return an empty store in memory, copied from one that is made once in each process."""
    connection = connect_memory()
    with _making:
        if not _empty:
            made = connect_memory()
            made.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            made.execute("BEGIN")
            _make_tables(made)
            made.execute("COMMIT")
            _empty.append(made)
        _empty[0].backup(connection)
    return connection, LAYOUT


def _prepare(place: FileTarget) -> tuple[FileTarget, int]:
    check_file(place)
    if is_log_damaged(place):  # writing, and even closing a connection that may write, would overwrite the log
        place = place._replace(mode="ro", is_log_damaged=True)
    deadline = time.monotonic() + place.busy_timeout_s
    try:
        with closing(connect(place, timeout_s=min(1.0, place.busy_timeout_s))) as connection:
            number = _check_or_make(connection, place, deadline)
        return (place._replace(mode="rw") if place.mode == "rwc" else place), number
    except sqlite3.Error as error:
        if code_of(error) & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise translate(error, place.path) from error
        if not os.path.exists(place.path):
            raise translate(error, place.path) from error
    return _prepare_immutable(place._replace(mode="immutable"), deadline)


def _prepare_immutable(place: FileTarget, deadline: float) -> tuple[FileTarget, int]:
    """Prepare a file in a read-only folder: no write-ahead log can be opened there, but a closed store can be read."""
    log = place.path + "-wal"
    if os.path.exists(log) and os.path.getsize(log) > 0:
        raise StorageFailure(
            f"{place.path} has a write-ahead log that cannot be read from a folder without write access",
            hint="open it once where it can be written, or copy the file with its -wal elsewhere",
        )
    try:
        with closing(connect(place, timeout_s=min(1.0, place.busy_timeout_s))) as connection:
            return place, _check_or_make(connection, place, deadline)
    except sqlite3.Error as error:
        raise translate(error, place.path) from error


def check_file(place: FileTarget) -> None:
    path = place.path
    if os.path.isdir(path):
        raise NotADatabase(f"{path} is a folder", hint="name a file in it")
    if not os.path.exists(path):
        if place.mode != "rwc":
            raise NotFound(f"there is no store at {path}", hint="check the path; reading makes no new store")
        parent = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(parent):
            raise InvalidInput(f"there is no folder {parent}", hint="make the folder first", details={"path": path})
        return
    if not os.path.isfile(path):
        raise NotADatabase(f"{path} is no ordinary file")
    try:
        start = read_at(path, len(_MAGIC))
    except OSError as error:
        raise StorageFailure(f"{path} cannot be read: {error.strerror}") from error
    # SQLite itself would take a short file of anything for an empty database and overwrite it.
    if start and start != _MAGIC:
        raise NotADatabase(f"{path} is no SQLite database", hint="name another file")


def _check_or_make(connection: sqlite3.Connection, place: FileTarget, deadline: float) -> int:
    if _is_made(connection, place, deadline):
        return LAYOUT
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    mode = patiently(connection, "PRAGMA journal_mode = WAL", deadline, place.path).fetchone()[0]
    if mode != "wal":
        raise StorageFailure(
            f"{place.path} cannot have a write-ahead log (journal mode {mode})",
            hint="put the store on a local disk",
        )
    begin_immediate(connection, deadline, place.path)
    if not _is_made(connection, place, deadline):  # another process may have been first
        _make_tables(connection)
    connection.execute("COMMIT")
    return LAYOUT


def _is_made(connection: sqlite3.Connection, place: FileTarget, deadline: float) -> bool:
    """Return whether the file has our tables already; refuses one of another program, layout or version."""
    asked = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    names = {name for (name,) in patiently(connection, asked, deadline, place.path)}
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if not names and application_id in (0, APPLICATION_ID):
        if place.mode != "rwc":
            raise NotADatabase(f"{place.path} is empty", hint="open it for writing to make a store of it")
        return False
    if application_id == APPLICATION_ID and LAYOUT_TABLE in names:
        check_layout(connection.execute(f"SELECT number, fingerprint FROM {LAYOUT_TABLE}").fetchall(), place.path)
        return True
    if application_id == APPLICATION_ID and "migrations" in names:
        raise old_store(place.path)
    raise NotADatabase(
        f"{place.path} is a SQLite database of another program",
        hint="name another file: muniment keeps its store in a file of its own",
        details={"tables": sorted(names)[:10]},
    )


def _make_tables(connection: sqlite3.Connection) -> None:
    for statement in sqlite_tables():
        connection.execute(statement)
    connection.execute(f"INSERT INTO {LAYOUT_TABLE} (number, fingerprint) VALUES (?, ?)", (LAYOUT, fingerprint()))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


# -- copies -------------------------------------------------------------------------------------------
#
# A SQLite store as a file: copied while it is in use, and put back in its place.
#
# A copy is the store at one moment, of any schema: it is neither migrated nor read. It appears under its
# name only when it is complete. Knows nothing of what rows mean.

_WAIT_S = 30.0
_BESIDE = ("-wal", "-shm")
_NUMBER = f"SELECT max(number) FROM {LAYOUT_TABLE}"


def schema_number(path: str) -> int:
    """Return the number of the store's layout; refuses anything but a muniment store."""
    place = FileTarget(path, "ro", "normal", _WAIT_S)
    with entered(path):
        check_file(place)
        if is_log_damaged(place):
            refuse_damaged_log(path)
        with closing(_connected(place)) as connection:
            return _number(connection, path)


def _connected(place: FileTarget) -> sqlite3.Connection:
    try:
        return connect(place, timeout_s=place.busy_timeout_s)
    except sqlite3.Error as error:
        raise translate(error, place.path) from error


def _number(connection: sqlite3.Connection, path: str) -> int:
    try:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        if application_id != APPLICATION_ID:
            raise NotADatabase(f"{path} is no store of muniment's", hint="name another file")
        (number,) = connection.execute(_NUMBER).fetchone()
        return int(number)
    except sqlite3.Error as error:
        raise translate(error, path) from error


def copy_file(source: str, target: str) -> int:
    """Copy a store, while others read and write it, into a new file; returns the schema number of the copy."""
    if os.path.exists(target):
        raise InvalidInput(f"there is a file {target} already", path="$.file", hint="name a new file for the copy")
    schema_number(source)
    part = f"{target}.part"
    try:
        number = _copied(source, part)
        for ending in _BESIDE:
            _remove(part + ending)
        _sync(part)
        os.rename(part, target)
        return number
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {error.strerror or error}", path="$.file") from None
    finally:
        _remove(part)


def _copied(source: str, part: str) -> int:
    """Copy all pages at one moment: page by page, the copy of a busy store would keep restarting."""
    _remove(part)
    try:
        with (
            entered(source),
            entered(part, create=True),
            closing(_connected(FileTarget(source, "ro", "normal", _WAIT_S))) as live,
            closing(sqlite3.connect(part, isolation_level=None)) as copy,
        ):
            live.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, whole; a store that is opened has its log again
            return _number(copy, part)
    except sqlite3.Error as error:
        raise translate(error, source) from error


def replace_file(copy: str, target: str) -> str | None:
    """Replace a closed store with a copy; returns where the old store is kept."""
    schema_number(copy)
    kept = None
    if os.path.exists(target):
        _close_log(target)
        kept = _free_name(f"{target}.replaced")
        os.rename(target, kept)
    for ending in _BESIDE:
        _remove(target + ending)
    copy_file(copy, target)
    return kept


def _close_log(path: str) -> None:
    """Bring the log into the file. SQLite does so only where no other connection is open."""
    try:
        with entered(path), closing(connect(FileTarget(path, "rw", "full", 1.0), timeout_s=1.0)) as connection:
            (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.Error as error:
        if not is_busy(error):
            raise translate(error, path) from error
        mode = "wal"
    if mode != "delete":
        raise StorageBusy(f"{path} is in use", hint="stop the server, and whatever else has it open")


def _free_name(name: str) -> str:
    number = 1
    while os.path.exists(f"{name}-{number}"):
        number += 1
    return f"{name}-{number}"


def _sync(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)
