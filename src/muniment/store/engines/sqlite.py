"""The engine over one SQLite file, or over a database in memory: the default. Many processes may share the file."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, ClassVar, Literal, TypeVar

from muniment.core.ports.engine import (
    Count,
    EngineInfo,
    Find,
    KeyTaken,
    Reader,
    Remove,
    Row,
    ScrubReport,
    Select,
    StoreSizes,
    Transaction,
)
from muniment.errors import InvalidInput, MunimentError, StorageReadOnly
from muniment.store.engines._sql import NestedCallGuard, Question, SqlReader, SqlTransaction, Statements, key_values
from muniment.store.engines._sqlite_files import (
    Connections,
    FileTarget,
    MemoryConnections,
    begin_immediate,
    is_broken_text,
    is_taken_key,
    prepare,
    prepare_memory,
    refuse_damaged_log,
    translate,
)
from muniment.store.engines.checks import check_tenant, shape_of
from muniment.store.engines.codec import BUCKETS, NameBook
from muniment.store.engines.layout import NAMES_TABLE, TENANTS_SHARD

__all__ = ["MemoryReader", "SqliteEngine", "SqliteReader", "SqliteTransaction", "with_marks"]

# -- transactions -------------------------------------------------------------------------------------
#
# Operations on one SQLite transaction of one tenant: how SQLite runs statements, streams and fails.

_STREAM_ROWS = 256
_STATEMENTS = Statements(mark="?")


def with_marks(data: bytes) -> str:
    """Decode a text that is not valid UTF-8, with marks."""
    return data.decode("utf-8", "replace")


class SqliteReader(SqlReader):
    def __init__(self, connection: sqlite3.Connection, tenant_id: str, location: str, book: NameBook) -> None:
        super().__init__(tenant_id, location, _STATEMENTS, book)
        self._connection = connection

    def _interrupt(self) -> None:
        self._connection.interrupt()

    def _run(self, table: str, statement: str, parameters: Any) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, parameters)
        except sqlite3.Error as error:
            raise self._failure(error, table) from error

    def _failure(self, error: sqlite3.Error, table: str) -> MunimentError | KeyTaken:
        return KeyTaken(table) if is_taken_key(error) else translate(error, self._location, is_open=True)

    def _fetch(self, table: str, statement: str, parameters: Any) -> list[Row]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            if is_broken_text(error):
                return list(self._fetch_broken(statement, parameters))
            raise self._failure(error, table) from error
        except UnicodeDecodeError:
            return list(self._fetch_broken(statement, parameters))

    def _fetch_broken(self, statement: str, parameters: Any) -> Iterator[Row]:
        """Fetch rows with a text that is not valid UTF-8: it is returned with marks, which no hash covers."""
        self._connection.text_factory = with_marks
        try:
            yield from self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise translate(error, self._location, is_open=True) from error
        finally:
            self._connection.text_factory = str

    def _streamed(self, select: Select) -> Iterator[Row]:
        question = self._question(select)
        if question is None:
            return
        rows = self._stored_rows(select.table, question)
        yield from self._decoded(shape_of(select.table), select.columns, rows)

    def _stored_rows(self, table: str, question: Question) -> Iterator[Row]:
        cursor = self._run(table, *question)
        given = 0
        try:
            while True:
                try:
                    rows = cursor.fetchmany(_STREAM_ROWS)
                except sqlite3.Error as error:
                    if is_broken_text(error):
                        yield from islice(self._fetch_broken(*question), given, None)
                        return
                    raise translate(error, self._location, is_open=True) from error
                if not rows:
                    return
                yield from rows
                given += len(rows)
        finally:
            cursor.close()


class MemoryReader(SqliteReader):
    """Holds the one connection of a store in memory while it is open."""

    can_wait: ClassVar[bool] = False


_NEW_NUMBER = f"SELECT coalesce(max(number), 0) + 1 FROM {NAMES_TABLE} WHERE shard = ?"
_NEW_NAME = f"INSERT INTO {NAMES_TABLE} (shard, number, name) VALUES (?, ?, ?)"


class SqliteTransaction(SqliteReader, SqlTransaction):
    def __init__(self, connection: sqlite3.Connection, tenant_id: str, location: str, book: NameBook) -> None:
        SqlTransaction.__init__(self, tenant_id, location, _STATEMENTS, book)
        self._connection = connection

    def _new_number(self, shard: int, name: str) -> int:
        """Return the next number: a file has one writer at a time."""
        ((number,),) = self._fetch(NAMES_TABLE, _NEW_NUMBER, (shard,))
        self._run(NAMES_TABLE, _NEW_NAME, (shard, number, name))
        return number  # type: ignore[return-value]

    def _run_many(self, table: str, statement: str, rows: Any) -> None:
        self._each(table, statement, rows)

    def _each(self, table: str, statement: str, rows: Sequence[Row]) -> int:
        """Return how many rows it changed."""
        shard = self._writing_shard
        try:
            if len(rows) == 1:
                return self._connection.execute(statement, (shard, *rows[0])).rowcount
            return self._connection.executemany(statement, ((shard, *row) for row in rows)).rowcount
        except sqlite3.Error as error:
            raise self._failure(error, table) from error

    def _remove(self, op: Remove) -> int:
        """Remove rows one by one: given a list of keys, SQLite scans all rows of the tenant."""
        shape = shape_of(op.table)
        if not shape.check_find(Find(op.table, op.by, op.keys)):
            return 0
        keys = [key_values(shape, op.by, key, self) for key in dict.fromkeys(op.keys)]
        return self._each(op.table, self._statements.remove_one(shape, tuple(op.by)), keys)

    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        """Do nothing: a file has one writer at a time, so every lock is held already."""


# -- the engine ---------------------------------------------------------------------------------------
#
# `SqliteEngine`: the port over one SQLite file in WAL mode, or over a SQLite database in memory.
#
# Writers take turns (`BEGIN IMMEDIATE`), readers see a consistent view and wait for nobody. After any failure nothing
# is half-written and the engine is usable. Knows nothing of what rows mean.

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
"""Counts entries by the last row number, since rows are only appended."""


class SqliteEngine:
    """A SQLite store in one file, or `:memory:`. `durability="normal"` survives a crash of the process, `"full"` a
    power loss too.

    A file of more than `look_bytes_max` is not searched after a forget.
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
        self._turns = NestedCallGuard()
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
        """Roll back. A full disk may have done so already; a connection that cannot is dropped, which does too."""
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
        """End a view. A reader that cannot stays in it, so `Connections.leave_reader` closes it."""
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
                connection.text_factory = with_marks  # also for an undecodable name, so that `verify` can report it
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
                from muniment.store.engines import _sqlite_residue as residue

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
        """Return the connections of this process. Forked copies are never touched again: SQLite forbids it."""
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
        """Raise for a damaged file, so that reading or writing a whole store never serves a part of it."""
        if connections.place.is_log_damaged:
            refuse_damaged_log(connections.place.path)

    def _refuse_read_only(self, connections: Connections) -> None:
        self._refuse_damaged(connections)
        if connections.place.mode != "rw":
            raise StorageReadOnly(f"{connections.place.path} was opened for reading only")
