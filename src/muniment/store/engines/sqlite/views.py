"""Operations on one SQLite transaction that is bound to one tenant.

The transaction is begun and ended by `engine`; nothing here commits. Every failure leaves in the words of
`errors`, or as `KeyTaken`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from muniment.core.ports.engine import Count, Delete, Get, Insert, KeyTaken, Lock, Patch, Put, Row, Select
from muniment.errors import MunimentError
from muniment.store.engines.checks import check_key, check_rows, shape_of
from muniment.store.engines.sql import Statements
from muniment.store.engines.sqlite.failures import is_taken_key, translate
from muniment.store.engines.turns import View

__all__ = ["SqliteReader", "SqliteTransaction"]

_STREAM_ROWS = 256
_STATEMENTS = Statements(mark="?")


class SqliteReader(View):
    def __init__(self, connection: sqlite3.Connection, tenant_id: str, location: str) -> None:
        super().__init__()
        self._connection = connection
        self._tenant_id = tenant_id
        self._location = location

    def _run(self, table: str, statement: str, parameters: Any) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, parameters)
        except sqlite3.Error as error:
            raise self._failure(error, table) from error

    def _failure(self, error: sqlite3.Error, table: str) -> MunimentError | KeyTaken:
        return KeyTaken(table) if is_taken_key(error) else translate(error, self._location)

    def _fetch(self, table: str, statement: str, parameters: Any) -> list[Row]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._failure(error, table) from error

    def _get(self, op: Get) -> Row | None:
        shape = shape_of(op.table)
        check_key(shape, op.key)
        rows = self._fetch(op.table, _STATEMENTS.get(shape), (self._tenant_id, *op.key))
        return rows[0] if rows else None

    def _select(self, op: Select) -> list[Row]:
        question = self._question(op)
        return self._fetch(op.table, *question) if question else []

    def _question(self, op: Select) -> tuple[str, list[Any]] | None:
        shape = shape_of(op.table)
        shape.check_select(op)
        possible = shape.check_where(op.where)
        question = _STATEMENTS.select(shape, self._tenant_id, op)
        return question if possible else None

    def _count(self, op: Count) -> int:
        shape = shape_of(op.table)
        if not shape.check_where(op.where):
            return 0
        (count,) = self._fetch(op.table, *_STATEMENTS.count(shape, self._tenant_id, op.where))[0]
        assert isinstance(count, int)
        return count

    def _rows(self, select: Select) -> Iterator[Row]:
        question = self._question(select)
        if question is None:
            return
        cursor = self._run(select.table, *question)
        try:
            while True:
                try:
                    rows = cursor.fetchmany(_STREAM_ROWS)
                except sqlite3.Error as error:
                    raise translate(error, self._location) from error
                if not rows:
                    return
                yield from rows
        finally:
            cursor.close()

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {Get: _get, Select: _select, Count: _count}


class SqliteTransaction(SqliteReader):
    def _insert(self, op: Insert) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        self._run_many(op.table, _STATEMENTS.insert(shape), op.rows)

    def _put(self, op: Put) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        rows = shape.last_of_each_key(op.rows)
        if not shape.spec.global_key:
            self._run_many(op.table, _STATEMENTS.put(shape), rows)
            return
        for row in rows:  # a conflict with another tenant's key must be a refusal, not an update
            where = (self._tenant_id, *shape.key_of(row))
            if self._run(op.table, _STATEMENTS.overwrite(shape), (*row, *where)).rowcount == 0:
                self._run(op.table, _STATEMENTS.insert(shape), (self._tenant_id, *row))

    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        tenant_id = self._tenant_id
        try:
            if len(rows) == 1:
                self._connection.execute(statement, (tenant_id, *rows[0]))
            else:
                self._connection.executemany(statement, ((tenant_id, *row) for row in rows))
        except sqlite3.Error as error:
            raise self._failure(error, table) from error

    def _patch(self, op: Patch) -> int:
        shape = shape_of(op.table)
        if not shape.check_patch(op.where, dict(op.values)):
            return 0
        return self._run(op.table, *_STATEMENTS.patch(shape, self._tenant_id, op)).rowcount

    def _delete(self, op: Delete) -> int:
        shape = shape_of(op.table)
        if not shape.check_where(op.where, needed=True):
            return 0
        return self._run(op.table, *_STATEMENTS.delete(shape, self._tenant_id, op)).rowcount

    def _lock(self, op: Lock) -> None:
        """A file has one writer at a time, so every lock is held already."""

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **SqliteReader.ops,
        Insert: _insert,
        Put: _put,
        Patch: _patch,
        Delete: _delete,
        Lock: _lock,
    }
