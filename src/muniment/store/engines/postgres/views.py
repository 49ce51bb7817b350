"""Operations on one PostgreSQL transaction that is bound to one tenant.

The transaction is begun and ended by `engine`; nothing here commits. Every failure leaves in the words of
`errors`, or as `KeyTaken`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, ClassVar, cast

import psycopg

from muniment.core.ports.engine import Count, Delete, Get, Insert, KeyTaken, Lock, Patch, Put, Row, Select
from muniment.errors import MunimentError
from muniment.store.engines.checks import check_key, check_rows, shape_of
from muniment.store.engines.postgres.failures import translate
from muniment.store.engines.postgres.opening import Connection, lock_number
from muniment.store.engines.sql import Statements
from muniment.store.engines.turns import View

__all__ = ["PostgresReader", "PostgresTransaction"]

_STREAM_ROWS = 500
_numbers = count(1)


class PostgresReader(View):
    def __init__(
        self, connection: Connection, tenant_id: str, *, statements: Statements, schema: str, location: str
    ) -> None:
        super().__init__()
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._tenant_id = tenant_id
        self._statements = statements
        self._schema = schema
        self._location = location

    def _run(self, table: str, statement: str, parameters: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return self._cursor.execute(statement, parameters)
        except psycopg.Error as error:
            raise self._failed(error, table) from error

    def _failed(self, error: psycopg.Error, table: str) -> MunimentError | KeyTaken:
        if isinstance(error, psycopg.errors.UniqueViolation):
            return KeyTaken(table)
        return translate(error, self._location)

    def _get(self, op: Get) -> Row | None:
        shape = shape_of(op.table)
        check_key(shape, op.key)
        return self._run(op.table, self._statements.get(shape), (self._tenant_id, *op.key)).fetchone()

    def _select(self, op: Select) -> list[Row]:
        question = self._question(op)
        return cast("list[Row]", self._run(op.table, *question).fetchall()) if question else []

    def _question(self, op: Select) -> tuple[str, list[Any]] | None:
        shape = shape_of(op.table)
        shape.check_select(op)
        possible = shape.check_where(op.where)
        question = self._statements.select(shape, self._tenant_id, op)
        return question if possible else None

    def _count(self, op: Count) -> int:
        shape = shape_of(op.table)
        if not shape.check_where(op.where):
            return 0
        row = self._run(op.table, *self._statements.count(shape, self._tenant_id, op.where)).fetchone()
        assert row is not None
        return int(row[0])

    def _rows(self, select: Select) -> Iterator[Row]:
        question = self._question(select)
        if question is None:
            return
        cursor = self._connection.cursor(name=f"muniment_{next(_numbers)}")
        cursor.itersize = _STREAM_ROWS
        try:
            cursor.execute(question[0], question[1], binary=True)
            yield from cursor
        except psycopg.Error as error:
            raise self._failed(error, select.table) from error
        finally:
            with suppress(psycopg.Error):  # the transaction is over or failed, and the cursor gone with it
                cursor.close()

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {Get: _get, Select: _select, Count: _count}


class PostgresTransaction(PostgresReader):
    def _insert(self, op: Insert) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        self._run_many(op.table, self._statements.insert(shape), op.rows)

    def _put(self, op: Put) -> None:
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        rows = shape.last_of_each_key(op.rows)
        if not shape.spec.global_key:
            self._run_many(op.table, self._statements.put(shape), rows)
            return
        for row in rows:  # a conflict with another tenant's key must be a refusal, not an update
            where = (self._tenant_id, *shape.key_of(row))
            if self._run(op.table, self._statements.overwrite(shape), (*row, *where)).rowcount == 0:
                self._run(op.table, self._statements.insert(shape), (self._tenant_id, *row))

    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        """Pipelined by psycopg, and measured as the fastest way: COPY does not work under row-level security,
        and arrays through unnest are slower for a thousand rows and much slower for fifty."""
        tenant_id = self._tenant_id
        if len(rows) == 1:
            self._run(table, statement, (tenant_id, *rows[0]))
            return
        failure: psycopg.Error | None = None
        try:
            with self._connection.pipeline():
                try:  # caught inside, because psycopg logs a warning when an error leaves a pipeline
                    self._cursor.executemany(statement, [(tenant_id, *row) for row in rows])
                except psycopg.Error as error:
                    failure = error
        except psycopg.Error as error:
            failure = failure or error
        if failure is not None:
            raise self._failed(failure, table) from failure

    def _patch(self, op: Patch) -> int:
        shape = shape_of(op.table)
        if not shape.check_patch(op.where, dict(op.values)):
            return 0
        return self._run(op.table, *self._statements.patch(shape, self._tenant_id, op)).rowcount

    def _delete(self, op: Delete) -> int:
        shape = shape_of(op.table)
        if not shape.check_where(op.where, needed=True):
            return 0
        return self._run(op.table, *self._statements.delete(shape, self._tenant_id, op)).rowcount

    def _lock(self, op: Lock) -> None:
        number = lock_number("lock", self._schema, self._tenant_id, *op.parts)
        self._run("", "SELECT pg_advisory_xact_lock(%s)", (number,))

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {
        **PostgresReader.ops,
        Insert: _insert,
        Put: _put,
        Patch: _patch,
        Delete: _delete,
        Lock: _lock,
    }
