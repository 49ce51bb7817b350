"""`SqliteEngine`: the port over one SQLite file in WAL mode, or over a SQLite database in memory.

Writers take turns (`BEGIN IMMEDIATE`), readers see a consistent view and wait for nobody. After any failure
nothing is half-written and the engine is usable. Knows nothing of what rows mean.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, TypeVar

from muniment.core.ports.engine import Count, EngineInfo, Reader, ScrubReport, StoreSizes, Transaction
from muniment.errors import InvalidInput, StorageReadOnly
from muniment.store.engines.checks import check_tenant
from muniment.store.engines.codec import BUCKETS, NameBook
from muniment.store.engines.ddl import NAMES_TABLE, TENANTS_SHARD
from muniment.store.engines.sqlite.connections import Connections, FileTarget, MemoryConnections, begin_immediate
from muniment.store.engines.sqlite.failures import translate
from muniment.store.engines.sqlite.log_damage import refuse_damaged_log
from muniment.store.engines.sqlite.opening import prepare, prepare_memory
from muniment.store.engines.sqlite.views import MemoryReader, SqliteReader, SqliteTransaction, with_marks
from muniment.store.engines.turns import Turns

__all__ = ["SqliteEngine"]

R = TypeVar("R")


_WITH_SESSIONS = (
    f"SELECT name FROM {NAMES_TABLE} AS tenant WHERE shard = {TENANTS_SHARD}"
    f" AND EXISTS (SELECT 1 FROM sessions WHERE shard = tenant.number * {BUCKETS})"
)
_LISTED = (
    f"SELECT name FROM {NAMES_TABLE} AS tenant WHERE shard = {TENANTS_SHARD}"
    f" AND EXISTS (SELECT 1 FROM tenants WHERE shard = tenant.number * {BUCKETS})"
)
_UNLISTED = f"{_WITH_SESSIONS} EXCEPT {_LISTED} ORDER BY name"
_TENANTS = f"{_LISTED} AND name > ? ORDER BY name LIMIT ?"
_ENTRIES = "SELECT coalesce(max(rowid), 0) FROM entries"
"""Rows are only appended, so that the last number is how many there are."""


class SqliteEngine:
    """One file, or `:memory:`. `durability="normal"` survives a crash of the process, `"full"` a loss of power as well.

    A file of more than `look_bytes_max` is not looked through after a forget.
    """

    is_walled_by_the_server = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Literal["normal", "full"] = "normal",
        busy_timeout_s: float = 30.0,
        read_only: bool = False,
        look_bytes_max: int = 256 << 20,
    ) -> None:
        if sqlite3.sqlite_version_info < (3, 37):
            raise InvalidInput(f"SQLite {sqlite3.sqlite_version} is too old", hint="3.37 or newer is needed")
        place = FileTarget(os.fspath(path), "ro" if read_only else "rwc", durability, busy_timeout_s)
        self._connections: Connections
        if place.path == ":memory:":
            connection, self._schema_number = prepare_memory()
            place = place._replace(mode="ro" if read_only else "rw")
            self._connections = MemoryConnections(place, connection)
        else:
            place, self._schema_number = prepare(place)
            self._connections = Connections(place)
        self._look_bytes_max = look_bytes_max
        self._forking = threading.Lock()
        self._left_behind: list[Connections] = []
        self._turns = Turns()
        self._book = NameBook()

    @property
    def info(self) -> EngineInfo:
        place = self._connections.place
        if isinstance(self._connections, MemoryConnections):
            return EngineInfo("memory", sqlite3.sqlite_version, place.path, "none", self._schema_number)
        location = os.path.abspath(place.path)
        return EngineInfo("sqlite", sqlite3.sqlite_version, location, place.durability, self._schema_number)

    @property
    def is_shared_between_processes(self) -> bool:
        return not isinstance(self._connections, MemoryConnections)

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        check_tenant(tenant_id)
        connections = self._here()
        place = connections.place
        self._refuse_read_only(connections)
        deadline = time.monotonic() + place.busy_timeout_s
        with self._turns:
            connection = connections.take_writer(deadline)
            try:
                begin_immediate(connection, deadline, place.path)
                transaction = SqliteTransaction(connection, tenant_id, place.path, self._book)
                return self._run(connections, connection, transaction, work)
            finally:
                connections.leave_writer()

    def _run(
        self,
        connections: Connections,
        connection: sqlite3.Connection,
        transaction: SqliteTransaction,
        work: Callable[[Transaction], R],
    ) -> R:
        done = False
        try:
            answer = work(transaction)
            transaction.end()
            if transaction.failure is not None:
                raise transaction.failure
            transaction.settle()
            self._commit(connection, connections.place.path)
            done = True
            connections.refuse_vanished()
            transaction.publish()
            return answer
        finally:
            if not done:
                transaction.end()
                self._roll_back(connections, connection)

    @staticmethod
    def _commit(connection: sqlite3.Connection, location: str) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate(error, location) from error

    @staticmethod
    def _roll_back(connections: Connections, connection: sqlite3.Connection) -> None:
        """A full disk may have rolled back already; a connection that cannot is given up, which rolls back too."""
        if not connection.in_transaction:
            return
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            connections.drop_writer()

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        check_tenant(tenant_id)
        with self._turns, self._view(tenant_id) as reader:
            return work(reader)

    @contextmanager
    def snapshot(self, tenant_id: str) -> Iterator[Reader]:
        check_tenant(tenant_id)
        with self._turns:
            self._refuse_damaged(self._here())
        with self._view(tenant_id, is_long=True) as reader:
            reader.do(Count("tenants"))  # the view begins with the first read
            yield reader

    @contextmanager
    def _view(self, tenant_id: str, *, is_long: bool = False) -> Iterator[SqliteReader]:
        connections = self._here()
        location = connections.place.path
        take, leave = connections.take_reader, connections.leave_reader
        if is_long:
            take, leave = connections.take_snapshot, connections.leave_snapshot
        connection = take()
        try:
            try:
                connection.execute("BEGIN")
            except sqlite3.Error as error:
                raise translate(error, location) from error
            holds_all = isinstance(connections, MemoryConnections) and not is_long
            reader = (MemoryReader if holds_all else SqliteReader)(connection, tenant_id, location, self._book)
            try:
                yield reader
            finally:
                reader.end()
                self._end_reading(connection)
        finally:
            leave(connection)

    @staticmethod
    def _end_reading(connection: sqlite3.Connection) -> None:
        """A reader that cannot end its view stays in it, and is closed for that by `Connections.leave_reader`."""
        try:
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                return

    def mark(self) -> str:
        with self._turns:
            return str(self._here().data_version())

    def tenants(self, after: str | None = None, limit: int | None = None) -> list[str]:
        return self._names(_TENANTS, (after or "", -1 if limit is None else limit))

    def unlisted_tenants(self) -> list[str]:
        self._refuse_damaged(self._here())
        return self._names(_UNLISTED)

    def _names(self, asked: str, parameters: tuple[str | int, ...] = ()) -> list[str]:
        connections = self._here()
        with self._turns:
            connection = connections.take_reader()
            try:
                connection.text_factory = with_marks  # of a name that is no text too, so that `verify` can tell of it
                return [name for (name,) in connection.execute(asked, parameters)]
            except sqlite3.Error as error:
                raise translate(error, connections.place.path) from error
            finally:
                connection.text_factory = str
                connections.leave_reader(connection)

    def is_copied(self) -> bool:
        return True

    def sizes(self) -> StoreSizes:
        connections = self._here()
        with self._turns:
            connection = connections.take_reader()
            try:
                ((entries,),) = connection.execute(_ENTRIES)
            except sqlite3.Error as error:
                raise translate(error, connections.place.path) from error
            finally:
                connections.leave_reader(connection)
        return StoreSizes(connections.size_bytes(), entries)

    def scrub(self, needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        connections = self._here()
        self._refuse_read_only(connections)
        with self._turns:
            if isinstance(connections, MemoryConnections):
                return ScrubReport(clean=True, vacuumed=False, note="the store has no files")
            connection = connections.take_writer(time.monotonic() + connections.place.busy_timeout_s)
            try:
                from muniment.store.engines.sqlite import residue

                if thorough:
                    return residue.rebuild(connections.place, needles)
                return residue.confirm(connection, connections.place, needles, look_bytes_max=self._look_bytes_max)
            finally:
                connections.leave_writer()

    def close(self) -> None:
        with self._turns, self._forking:
            if isinstance(self._connections, MemoryConnections):
                self._connections.close()
                return
            if self._connections.pid != os.getpid():  # the parent's: not ours to close
                self._left_behind.append(self._connections)
                self._connections = Connections(self._connections.place)
            self._connections.close()

    def _here(self) -> Connections:
        """The connections of this process. Those a fork copied are never touched again: SQLite forbids it."""
        if isinstance(self._connections, MemoryConnections):
            if self._connections.pid != os.getpid():
                self._connections.after_fork()
        elif self._connections.pid != os.getpid():
            with self._forking:
                if self._connections.pid != os.getpid():
                    closed = self._connections.is_closed
                    self._left_behind.append(self._connections)
                    self._connections = Connections(self._connections.place)
                    if closed:
                        self._connections.close()
        connections = self._connections
        connections.refuse_closed()
        return connections

    @staticmethod
    def _refuse_damaged(connections: Connections) -> None:
        """Whoever reads or writes the whole store is not served a part of it."""
        if connections.place.is_log_damaged:
            refuse_damaged_log(connections.place.path)

    def _refuse_read_only(self, connections: Connections) -> None:
        self._refuse_damaged(connections)
        if connections.place.mode != "rw":
            raise StorageReadOnly(f"{connections.place.path} was opened for reading only")
