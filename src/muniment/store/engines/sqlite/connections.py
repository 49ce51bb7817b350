"""Connections to one SQLite file: how they are set up, waited for, shared between threads, left behind by a fork.

One writer behind a lock and a few idle readers. Knows nothing of tables.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Literal, NamedTuple

from muniment.core.limits import CURRENT
from muniment.errors import Closed, StorageBusy, StorageLost
from muniment.store.engines.sqlite.failures import is_busy, translate
from muniment.store.engines.sqlite.handles import enter, leave

__all__ = ["Connections", "FileTarget", "MemoryConnections", "begin_immediate", "connect", "patiently"]

_IDLE_READERS_MAX = 8
_LOG_BYTES = 4 * 1024 * 1024
"""So much is in the write-ahead log when its pages are brought into the file."""
_SLEEP_FIRST_S, _SLEEP_LAST_S = 0.0002, 0.004


_Identity = tuple[int, int]
"""A file's device and number: another file of the same name has others."""


def _identity(path: str) -> _Identity | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class FileTarget(NamedTuple):
    """Where the file is and how it may be opened."""

    path: str
    mode: Literal["rwc", "rw", "ro", "immutable"]
    durability: Literal["normal", "full"]
    busy_timeout_s: float
    is_log_damaged: bool = False
    """Commits are lost; what is left can be read, one by one."""

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
    """Run a statement that may find the file busy, asking again every few milliseconds until the deadline.

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
        """The one writer, for one thread at a time, until `leave_writer`."""
        if not self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            raise StorageBusy(f"another thread holds {self.place.path}", hint="try again")
        taken = False
        try:
            self.refuse_closed()
            if self._writer is None:
                self.refuse_vanished()  # before one is opened, which may be another file
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
        """SQLite goes on writing to a file that somebody removed, renamed or replaced, and what it takes is lost."""
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
        """For a connection that cannot even roll back: the next writer gets a new one."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def take_reader(self) -> sqlite3.Connection:
        """A connection of one's own, until `leave_reader`."""
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
        """A reader for a long view, until `leave_snapshot`."""
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
        """SQLite's own count of what others committed, seen by a connection that does nothing else."""
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
        """Waits for a running write; readers in use are closed when they come back."""
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

    A long view is a copy, so that it stays as it was and holds up nobody. A fork copies the store.
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
        """A store in memory is gone with its connection."""
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
        """Every change is made on the one connection, which counts them; under the lock each is committed or undone."""
        with self._lock:
            self.refuse_closed()
            return self._connection.total_changes

    def after_fork(self) -> None:
        """The child has a copy of its own, unless another thread was changing it at that moment."""
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
