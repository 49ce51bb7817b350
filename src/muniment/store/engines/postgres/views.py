"""Operations on one PostgreSQL transaction of one tenant: how PostgreSQL runs statements, streams, locks and fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar, cast

import psycopg

from muniment.core.ports.engine import Insert, KeyTaken, Row, Select
from muniment.errors import MunimentError
from muniment.store.engines.checks import Shape, check_rows, shape_of
from muniment.store.engines.postgres.failures import translate
from muniment.store.engines.postgres.opening import Connection, lock_number
from muniment.store.engines.sql import Statements, quoted
from muniment.store.engines.sql_views import SqlReader, SqlTransaction

__all__ = ["COPY_ROWS_MIN", "PostgresReader", "PostgresTransaction"]

_STREAM_ROWS = 500
_FEW = _STREAM_ROWS + 1
_CANCEL_WAIT_S = 5.0
_numbers = count(1)
COPY_ROWS_MIN = 1000
"""Rows from which on COPY takes less of either side's processor than an INSERT for each."""
_COPIED = {"text": "text", "int": "int8", "bytes": "bytea"}


class PostgresReader(SqlReader):
    def __init__(
        self, connection: Connection, tenant_id: str, *, statements: Statements, schema: str, location: str
    ) -> None:
        super().__init__(tenant_id, location, statements)
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._schema = schema

    def _interrupt(self) -> None:
        """Asks the server over a connection of its own; where that is not reached, the statement ends by itself."""
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=_CANCEL_WAIT_S)

    def _run(self, table: str, statement: str, parameters: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return self._cursor.execute(statement, parameters)
        except psycopg.Error as error:
            raise self._failed(error, table) from error

    def _failed(self, error: psycopg.Error, table: str) -> MunimentError | KeyTaken:
        if isinstance(error, psycopg.errors.UniqueViolation):
            return KeyTaken(table)
        return translate(error, self._location)

    def _fetch(self, table: str, statement: str, parameters: Sequence[Any]) -> list[Row]:
        return cast("list[Row]", self._run(table, statement, parameters).fetchall())

    def _rows(self, select: Select) -> Iterator[Row]:
        """Few rows come with the answer. Where there are more, a cursor of the server begins again: it costs four more
        questions, and most streams are short."""
        question = self._question(select)
        if question is None:
            return
        few = self._select(replace(select, limit=_FEW if select.limit is None else min(select.limit, _FEW)))
        if len(few) < _FEW:
            yield from few
            return
        del few  # not kept beside what the cursor brings
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


class PostgresTransaction(PostgresReader, SqlTransaction):
    def _insert(self, op: Insert) -> None:
        if len(op.rows) < COPY_ROWS_MIN or not self._may_copy():
            super()._insert(op)
            return
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        try:
            self._copy(shape, op.rows)
        except psycopg.Error as error:
            raise self._failed(error, op.table) from error

    def _may_copy(self) -> bool:
        """COPY goes by a table of the transaction's own: the right to make one is everybody's, unless it was taken."""
        asked = "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
        return bool(self._fetch("", asked, ())[0][0])

    def _copy(self, shape: Shape, rows: Sequence[Row]) -> None:
        """The server refuses COPY into a table with row-level security. So rows go into one that nobody else sees, and
        from there where they belong, through the policy. It ends with the transaction: a pooler finds nothing of it."""
        table, held = self._statements.table(shape), f"pg_temp.{quoted(f'muniment_copy_{next(_numbers)}')}"
        names = ", ".join(map(quoted, ("tenant_id", *shape.names)))
        cursor, tenant_id = self._cursor, self._tenant_id
        cursor.execute(f"CREATE TEMPORARY TABLE {held} (LIKE {table}) ON COMMIT DROP")
        with cursor.copy(f"COPY {held} ({names}) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["text", *(_COPIED[column.type] for column in shape.spec.columns)])
            for row in rows:
                copy.write_row((tenant_id, *row))
        cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {held}")
        cursor.execute(f"DROP TABLE {held}")

    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        """Pipelined by psycopg, and measured as the fastest way for fewer rows than are copied: arrays through unnest
        are slower for a thousand and much slower for fifty."""
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

    def _lock(self, names: Sequence[tuple[str, ...]]) -> None:
        numbers = [lock_number("lock", self._schema, self._tenant_id, *parts) for parts in names]
        if len(numbers) == 1:
            self._run("", "SELECT pg_advisory_xact_lock(%s)", (numbers[0],))
        elif numbers:  # a function in a SELECT over one list is called for its values as they stand
            asked = "SELECT pg_advisory_xact_lock(each) FROM unnest(%s::bigint[]) AS given(each)"
            self._run("", asked, (numbers,))

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {**SqlTransaction.ops, Insert: _insert}
