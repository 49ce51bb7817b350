"""Operations on one SQLite transaction of one tenant: how SQLite runs statements, streams and fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

from muniment.core.ports.engine import Find, KeyTaken, Remove, Row, Select
from muniment.errors import MunimentError
from muniment.store.engines.checks import shape_of
from muniment.store.engines.codec import NameBook
from muniment.store.engines.ddl import NAMES_TABLE
from muniment.store.engines.sql import Question, Statements, key_values
from muniment.store.engines.sql_views import SqlReader, SqlTransaction
from muniment.store.engines.sqlite.failures import is_broken_text, is_taken_key, translate

__all__ = ["MemoryReader", "SqliteReader", "SqliteTransaction", "with_marks"]

_STREAM_ROWS = 256
_STATEMENTS = Statements(mark="?")


def with_marks(data: bytes) -> str:
    """A text of which some bytes are no UTF-8."""
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
        """Rows of which a text is no UTF-8: it comes with marks in place of what is none, which no hash is of."""
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
        decode = self._decoder(shape_of(select.table), select.columns)
        rows = self._stored_rows(select.table, question)
        yield from rows if decode is None else map(decode, rows)

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
        """The next one: a file has one writer at a time."""
        ((number,),) = self._fetch(NAMES_TABLE, _NEW_NUMBER, (shard,))
        self._run(NAMES_TABLE, _NEW_NAME, (shard, number, name))
        return number  # type: ignore[return-value]

    def _run_many(self, table: str, statement: str, rows: Any) -> None:
        self._each(table, statement, rows)

    def _each(self, table: str, statement: str, rows: Sequence[Row]) -> int:
        """How many rows it changed."""
        shard = self._writing_shard
        try:
            if len(rows) == 1:
                return self._connection.execute(statement, (shard, *rows[0])).rowcount
            return self._connection.executemany(statement, ((shard, *row) for row in rows)).rowcount
        except sqlite3.Error as error:
            raise self._failure(error, table) from error

    def _remove(self, op: Remove) -> int:
        """One by one: given a list of keys, SQLite walks through all rows of the tenant."""
        shape = shape_of(op.table)
        if not shape.check_find(Find(op.table, op.by, op.keys)):
            return 0
        keys = [key_values(shape, op.by, key, self) for key in dict.fromkeys(op.keys)]
        return self._each(op.table, self._statements.remove_one(shape, tuple(op.by)), keys)

    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        """A file has one writer at a time, so every lock is held already."""
