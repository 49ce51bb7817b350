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
from muniment.store.engines.codec import NameBook
from muniment.store.engines.ddl import NAMES_TABLE
from muniment.store.engines.postgres.failures import LostRace, translate
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
        self,
        connection: Connection,
        tenant_id: str,
        *,
        statements: Statements,
        schema: str,
        location: str,
        book: NameBook,
        shard: int | None,
    ) -> None:
        """`shard` is the tenant's, if the transaction began with it."""
        super().__init__(tenant_id, location, statements, book)
        self._own_shard = shard
        self._connection = connection
        self._cursor = connection.cursor(binary=True)
        self._schema = schema

    def _enter(self, shard: int) -> None:
        """Name the shard to the server, whose row-level security goes by it, for this transaction."""
        super()._enter(shard)
        self._run("", "SELECT set_config('muniment.shard', %s, true)", (str(shard),))

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

    def _streamed(self, select: Select) -> Iterator[Row]:
        """Few rows come with the answer. Where there are more, a cursor of the server begins again: it costs four more
        questions, and most streams are short."""
        question = self._question(select)
        if question is None:
            return
        few = self._fetched(replace(select, limit=_FEW if select.limit is None else min(select.limit, _FEW)))
        if len(few) < _FEW:
            yield from few
            return
        del few  # not kept along with what the cursor brings
        decode = self._decoder(shape_of(select.table), select.columns)
        cursor = self._connection.cursor(name=f"muniment_{next(_numbers)}")
        cursor.itersize = _STREAM_ROWS
        try:
            cursor.execute(question[0], question[1], binary=True)
            yield from cursor if decode is None else map(decode, cursor)
        except psycopg.Error as error:
            raise self._failed(error, select.table) from error
        finally:
            with suppress(psycopg.Error):  # the transaction is over or failed, and the cursor gone with it
                cursor.close()


class PostgresTransaction(PostgresReader, SqlTransaction):
    def __init__(self, connection: Connection, tenant_id: str, **context: Any) -> None:
        PostgresReader.__init__(self, connection, tenant_id, **context)

    def _new_number(self, shard: int, name: str) -> int:
        """The server's next number, unless another transaction gives the name one first."""
        new = self._fetch(NAMES_TABLE, self._statements.new_name, (shard, name))
        found = new or self._fetch(NAMES_TABLE, self._statements.name_number, (shard, name))
        if not found:
            raise LostRace(f"another transaction was naming {name!r:.80}")
        return found[0][0]  # type: ignore[return-value]

    def _insert(self, op: Insert) -> None:
        if len(op.rows) < COPY_ROWS_MIN or not self._may_copy():
            super()._insert(op)
            return
        shape = shape_of(op.table)
        check_rows(shape, op.rows)
        rows = self._encoded(shape, op.rows)
        try:
            self._copy(shape, rows)
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
        names = ", ".join(map(quoted, ("shard", *shape.names)))
        cursor, shard = self._cursor, self._writing_shard
        cursor.execute(f"CREATE TEMPORARY TABLE {held} (LIKE {table}) ON COMMIT DROP")
        with cursor.copy(f"COPY {held} ({names}) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", *(_COPIED[stored] for stored in shape.stored.values())])
            for row in rows:
                copy.write_row((shard, *row))
        cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {held}")
        cursor.execute(f"DROP TABLE {held}")

    def _run_many(self, table: str, statement: str, rows: Sequence[Row]) -> None:
        """Pipelined by psycopg, and measured as the fastest way for fewer rows than are copied: arrays through unnest
        are slower for a thousand and much slower for fifty."""
        shard = self._writing_shard
        if len(rows) == 1:
            self._run(table, statement, (shard, *rows[0]))
            return
        failure: psycopg.Error | None = None
        try:
            with self._connection.pipeline():
                try:  # caught inside, because psycopg logs a warning when an error leaves a pipeline
                    self._cursor.executemany(statement, [(shard, *row) for row in rows])
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
