"""`PostgresEngine`: the port over one schema of a PostgreSQL server.

Every transaction begins by naming its tenant to the server, for that transaction alone; row-level security does the
rest (LG-02). Role and limits are set with it and end with it too: a session holds no state, so that a pooler may give
each transaction another one. Writers of one tenant that must be serialized use `Lock`; others run side by side. Nothing
here knows what rows mean.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any, ClassVar, TypeVar, cast

import psycopg
import psycopg_pool

from muniment.core.ports.engine import (
    NOT_SCRUBBED,
    Durability,
    EngineInfo,
    Insert,
    KeyTaken,
    Reader,
    Row,
    ScrubReport,
    Select,
    StoreSizes,
    Transaction,
)
from muniment.core.ports.schema import SERVER
from muniment.errors import Closed, InvalidInput, MunimentError, StorageFailure, StorageLost, StorageReadOnly
from muniment.store.engines._postgres_opening import (
    Connection,
    LostRace,
    NoAnswer,
    NoConnection,
    Ready,
    Target,
    commit_confirmed,
    connect,
    has_several_hosts,
    lock_number,
    prepare,
    translate,
    writable_dsn,
)
from muniment.store.engines._postgres_replica import Pool, Replica, ReplicaSettings
from muniment.store.engines._sql import NestedCallGuard, SqlReader, SqlTransaction, Statements, quoted
from muniment.store.engines.checks import TENANT_ANY, Shape, check_rows, check_tenant, shape_of
from muniment.store.engines.codec import BUCKETS, NameBook, shard_of
from muniment.store.engines.layout import NAMES_TABLE, TENANTS_SHARD

__all__ = ["COPY_ROWS_MIN", "POOL_MAX", "PostgresEngine", "PostgresReader", "PostgresTransaction", "check_name"]

# -- transactions -------------------------------------------------------------------------------------
#
# Operations on one PostgreSQL transaction of one tenant: how PostgreSQL runs statements, streams, locks and fails.

_STREAM_ROWS = 500
_FEW = _STREAM_ROWS + 1
_CANCEL_WAIT_S = 5.0
_numbers = count(1)
COPY_ROWS_MIN = 1000
"""Number of rows from which COPY costs both sides less processor time than INSERTs."""
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
        """Name the shard to the server, whose row-level security uses it, for this transaction."""
        super()._enter(shard)
        self._run("", "SELECT set_config('muniment.shard', %s, true)", (str(shard),))

    def _interrupt(self) -> None:
        """Cancel through a separate connection; if that fails, the statement ends by itself."""
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
        """Stream rows. Few come with the answer; for more, a server cursor starts over: it costs four more queries, and
        most streams are short.
        """
        question = self._question(select)
        if question is None:
            return
        few = self._fetched(replace(select, limit=_FEW if select.limit is None else min(select.limit, _FEW)))
        if len(few) < _FEW:
            yield from few
            return
        del few  # not kept while the cursor is read
        cursor = self._connection.cursor(name=f"muniment_{next(_numbers)}")
        cursor.itersize = _STREAM_ROWS
        try:
            cursor.execute(question[0], question[1], binary=True)
            yield from self._decoded(shape_of(select.table), select.columns, cursor)
        except psycopg.Error as error:
            raise self._failed(error, select.table) from error
        finally:
            with suppress(psycopg.Error):  # the transaction is over or failed, and the cursor gone with it
                cursor.close()


class PostgresTransaction(PostgresReader, SqlTransaction):
    def __init__(self, connection: Connection, tenant_id: str, **context: Any) -> None:
        PostgresReader.__init__(self, connection, tenant_id, **context)

    def _new_number(self, shard: int, name: str) -> int:
        """Return the server's next number, unless another transaction numbers the name first."""
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
        """Return whether COPY is possible: it needs a temporary table, which anyone may make unless the right was
        revoked.
        """
        asked = "SELECT has_database_privilege(current_database(), 'TEMPORARY')"
        return bool(self._fetch("", asked, ())[0][0])

    def _copy(self, shape: Shape, rows: Sequence[Row]) -> None:
        """Copy rows into a temporary table, as the server refuses COPY under row-level security, and insert them from
        there through the policy. The table ends with the transaction, so a pooler never sees it.
        """
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
        """Run rows pipelined by psycopg, measured as the fastest way below the COPY threshold: arrays through unnest
        are slower for a thousand rows and much slower for fifty.
        """
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
        elif numbers:  # a function in a SELECT over one list is called for its values in order
            asked = "SELECT pg_advisory_xact_lock(each) FROM unnest(%s::bigint[]) AS given(each)"
            self._run("", asked, (numbers,))

    ops: ClassVar[dict[type[Any], Callable[[Any, Any], Any]]] = {**SqlTransaction.ops, Insert: _insert}


# -- the engine ---------------------------------------------------------------------------------------

R = TypeVar("R")

_CENSUS = "SET LOCAL muniment.census = 'on'"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_SIZES = """
SELECT
  (SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
   WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'm')),
  (SELECT coalesce(sum(n_live_tup), 0) FROM pg_stat_all_tables
   WHERE relid = to_regclass(%s))
"""
"""The server's estimates, so that no table is scanned."""
_TENANTS = f"""
SELECT name FROM {{names}} AS tenant
WHERE shard = {TENANTS_SHARD} AND name > %s AND EXISTS (SELECT FROM {{tenants}} WHERE shard = tenant.number * {BUCKETS})
ORDER BY name LIMIT %s
"""
_UNLISTED = f"""
SELECT name FROM {{names}} AS tenant
WHERE shard = {TENANTS_SHARD} AND EXISTS (SELECT FROM {{sessions}} WHERE shard = tenant.number * {BUCKETS})
AND NOT EXISTS (SELECT FROM {{tenants}} WHERE shard = tenant.number * {BUCKETS})
ORDER BY name
"""
_HISTORY = """
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) END
"""
"""The server's timeline, which changes when a standby is promoted; nothing for a standby."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_TRIES = 6
_PREPARE_AFTER = 5
"""Number of times a statement is sent before the server prepares it."""
POOL_MAX = 8
_REPLICA_WAIT_S = 1.0
"""Wait for a connection to the replica; after that the primary is asked."""
_POKE_S = 0.01
_ALONE = "open the replica by its own URL, with read_only=True"
_APPLIED = {
    True: "the replica that reads go to has applied it",
    False: "the replica that reads go to has not applied it yet: reads go to the primary until it has",
    None: "the replica that reads go to cannot be asked whether it has applied it",
}


class _Moved(StorageReadOnly):
    """The server became a standby; the call is retried on its successor."""


def check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidInput(f"not a name for a schema or role: {name!r}", hint="a-z, 0-9 and _ only")


def _try_again(pool: Pool) -> None:
    """Make the pool reconnect while callers wait: it gives up after some seconds, and tries again only for a new
    caller, so that those already waiting would miss a server that is back.
    """
    if pool.get_stats().get("requests_waiting", 0):
        with suppress(psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed):
            pool.putconn(pool.getconn(timeout=_POKE_S))


class PostgresEngine:
    """One schema of one database. The pool grows from `pool_min` to `pool_max` connections on demand.

    With a `replica`, reads are answered there, writes and long views by the primary.
    """

    is_shared_between_processes = True
    is_walled_by_the_server = True

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "muniment",
        app_role: str = "muniment_app",
        pool_min: int = 1,
        pool_max: int = POOL_MAX,
        durability: Durability = "normal",
        read_only: bool = False,
        replica: ReplicaSettings | None = None,
        connect_timeout_s: int = 5,
        busy_timeout_s: float = 30.0,
    ) -> None:
        for name in (schema, app_role):
            check_name(name)
        dsn = writable_dsn(dsn, read_only=read_only)
        self._target = Target(dsn, schema, app_role, connect_timeout_s, busy_timeout_s, read_only)
        self._durability: Durability = durability
        self._pool_sizes = (pool_min, pool_max)
        self._patience_s = max(busy_timeout_s, connect_timeout_s)
        self._has_several_hosts = has_several_hosts(dsn)
        self._replica_settings = replica
        self._ready = self._prepare()
        self._said = self._said_first()
        self._statements = Statements(mark="%s", schema=schema, arrays=True)
        self._turns = NestedCallGuard()
        self._book = NameBook()
        self._closed = False
        self._forking = threading.Lock()
        self._left_behind: list[Pool | Replica] = []
        self._pid = os.getpid()
        self._replica = self._open_replica()
        self._looking: threading.Thread | None = None
        """The last check of a replica that did not follow."""
        self._pool = self._open_home_pool()
        self._long_pool: Pool | None = None

    @property
    def info(self) -> EngineInfo:
        ready = self._ready
        replica = None if self._replica is None else self._replica.state
        if replica not in (None, "follows"):
            self._look_again()
        return EngineInfo("postgres", ready.version, ready.location, self._durability, ready.schema_number, replica)

    @property
    def schema(self) -> str:
        return self._target.schema

    # -- the port

    def write(self, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        check_tenant(tenant_id)
        if self._target.read_only:
            raise StorageReadOnly(f"{self._ready.location} was opened for reading only")
        with self._turns:
            pool = self._here()
            for tried in range(1, _TRIES + 1):
                try:
                    return self._try(pool, tenant_id, work)
                except (LostRace, _Moved):
                    if tried == _TRIES:
                        raise
                    time.sleep(0.002 * 2**tried * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    def _try(self, pool: Pool, tenant_id: str, work: Callable[[Transaction], R]) -> R:
        connection, shard = self._begin(pool, _WRITE, tenant_id)
        transaction = PostgresTransaction(connection, tenant_id, shard=shard, **self._context)
        done = False
        try:
            answer = work(transaction)
            transaction.end()
            if transaction.failure is not None:
                raise transaction.failure
            transaction.settle()
            self._commit_write(connection)
            done = True
            transaction.publish()
            if self._replica is not None:
                self._replica.written(connection)
            return answer
        except StorageReadOnly as error:
            raise self._moved(pool, connection, error) from error
        finally:
            if not done:
                transaction.end()
            self._give_back(pool, connection, done)

    def read(self, tenant_id: str, work: Callable[[Reader], R]) -> R:
        check_tenant(tenant_id)
        with self._turns:
            self._here()
            replica = None if tenant_id == SERVER else self._replica  # leases and keys are read where they are written
            pool = None if replica is None else replica.pool()
            if replica is not None and pool is not None:
                try:
                    with self._view(tenant_id, pool, replica.check) as reader:
                        answer = work(reader)
                    replica.answered()
                    replica.reads["replica"] += 1
                    return answer
                except StorageFailure as error:
                    replica.failed(error)  # the primary answers instead
            with self._view(tenant_id) as reader:
                answer = work(reader)
            if replica is not None:
                replica.passed()
            return answer

    @contextmanager
    def snapshot(self, tenant_id: str) -> Iterator[Reader]:
        check_tenant(tenant_id)
        with self._turns:
            self._here()
        with self._view(tenant_id, self._apart()) as reader:
            yield reader

    def mark(self) -> str:
        """Return what a transaction starting now would see: the server's own snapshot of commits."""
        with self._turns, self._view(TENANT_ANY) as reader:
            ((seen,),) = reader._run("mark", "SELECT pg_current_snapshot()::text", ())
            if self._replica is not None:
                self._replica.expire()  # the next reader must see what moved the mark
            return str(seen)

    def tenants(self, after: str | None = None, limit: int | None = None) -> list[str]:
        with self._turns, self._view(TENANT_ANY) as reader:
            return [name for (name,) in reader._run("tenants", self._named(_TENANTS), (after or "", limit))]

    def unlisted_tenants(self) -> list[str]:
        with self._turns, self._view(TENANT_ANY) as reader:
            reader._run("sessions", _CENSUS, ())
            return [name for (name,) in reader._run("sessions", self._named(_UNLISTED), ())]

    def _named(self, asked: str) -> str:
        prefix = f'"{self._target.schema}"'
        return asked.format(**{name: f"{prefix}.{name}" for name in (NAMES_TABLE, "sessions", "tenants")})

    def is_copied(self) -> bool:
        with self._turns:
            self._here()
        return self._replica is None or self._replica.catches_up()

    def sizes(self) -> StoreSizes:
        """Return the server's own estimate, some seconds old."""
        with self._turns, self._view(TENANT_ANY) as reader:
            schema = self._target.schema
            ledger = f'"{schema}".entries'
            ((size_bytes, entries),) = reader._run("sizes", _SIZES, (schema, ledger))
            return StoreSizes(int(size_bytes), int(entries))

    def scrub(self, needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        """Rebuild the tables that hold content if `thorough`; otherwise report that this is due and touch nothing."""
        del needles
        if self._target.read_only:
            raise StorageReadOnly(f"{self._ready.location} was opened for reading only")
        with self._turns:
            self._here()
        if not thorough:
            return NOT_SCRUBBED
        from muniment.store.engines._postgres_residue import scrub

        with connect(self._target) as connection:
            ready = self._ready
            report = scrub(connection, self.schema, ready.location, is_pooled=ready.is_pooled)
            if self._replica is None:
                return report
            self._replica.written(connection)
            applied = self._replica.has_applied()
            return report._replace(clean=report.clean and applied is True, note=f"{report.note}; {_APPLIED[applied]}")

    def close(self) -> None:
        with self._turns, self._forking:
            if self._pid == os.getpid() and not self._closed:
                self._pool.close()
                if self._long_pool is not None:
                    self._long_pool.close()
                if self._replica is not None:
                    if self._looking is not None:
                        self._looking.join()
                    self._replica.close()
            self._closed = True

    # -- connections

    def _prepare(self) -> Ready:
        target = self._target
        try:
            return prepare(target, is_confirmed=self._durability == "replicated" and not target.read_only)
        except StorageLost as error:
            if self._replica_settings is None:
                raise
            hint = f"{error.hint} A store is opened at its primary; to read meanwhile, {_ALONE}"
            raise StorageLost(error.message, hint=hint, details=error.details) from None

    @property
    def _context(self) -> dict[str, Any]:
        target, ready = self._target, self._ready
        return {
            "statements": self._statements,
            "schema": target.schema,
            "location": ready.location,
            "book": self._book,
        }

    def _open_home_pool(self, *, is_long: bool = False) -> Pool:
        ready, timeout_s = self._ready, self._target.busy_timeout_s
        sizes = (0, self._pool_sizes[1]) if is_long else self._pool_sizes
        return self._open_pool(self._target.dsn, ready.is_pooled, role=ready.role, timeout_s=timeout_s, sizes=sizes)

    def _apart(self) -> Pool:
        """Return the pool for long views alone: a slow export, or one that waits for a bucket, must not block other
        readers and writers. Connections open on demand and close when idle.
        """
        with self._forking:
            if self._long_pool is None and not self._closed:
                self._long_pool = self._open_home_pool(is_long=True)
            return self._long_pool or self._pool

    def _open_replica(self) -> Replica | None:
        if self._replica_settings is None:
            return None
        return Replica(self._replica_settings, self._target, self._open_replica_pool)

    def _look_again(self) -> None:
        """Check a replica that did not follow, in the background: reads would do so, but there may be none for hours.

        One check at a time. The caller gets the last known state, and does not wait for servers.
        """
        with self._forking:
            if self._closed or self._pid != os.getpid() or (self._looking is not None and self._looking.is_alive()):
                return
            self._looking = threading.Thread(target=self._look, name="muniment-replica", daemon=True)
            self._looking.start()

    def _look(self) -> None:
        replica = self._replica
        assert replica is not None
        pool = replica.pool()
        if pool is None:
            return
        try:
            with self._view(TENANT_ANY, pool, replica.check):
                pass
            replica.answered()
        except StorageFailure as error:
            replica.failed(error)

    def _open_replica_pool(self, dsn: str, is_pooled: bool) -> Pool:
        """Open the replica's pool. Each transaction names the role, which may not be replicated yet."""
        timeout_s = min(_REPLICA_WAIT_S, self._target.busy_timeout_s)
        return self._open_pool(dsn, is_pooled, role=None, timeout_s=timeout_s, sizes=self._pool_sizes, is_replica=True)

    def _open_pool(
        self,
        dsn: str,
        is_pooled: bool,
        *,
        role: str | None,
        timeout_s: float,
        sizes: tuple[int, int],
        is_replica: bool = False,
    ) -> Pool:
        smallest, largest = sizes

        def configure(connection: Connection) -> None:
            """Bind the session itself too, where it is ours alone, so that it is bound outside of transactions."""
            if role is not None and not is_pooled:
                connection.execute(f'SET ROLE "{role}"')
            if is_replica:  # the primary can be asked instead
                connection.patience_s = self._patience_s

        pool: Pool = psycopg_pool.ConnectionPool(
            dsn,
            connection_class=Connection,
            kwargs={
                "autocommit": True,  # every BEGIN is explicit
                "connect_timeout": self._target.connect_timeout_s,
                "application_name": "muniment",
                "prepare_threshold": None if is_pooled else _PREPARE_AFTER,
            },
            min_size=smallest,
            max_size=largest,
            open=False,
            configure=configure,
            timeout=timeout_s,
            reconnect_timeout=self._target.connect_timeout_s,
            reconnect_failed=_try_again,
            name=f"{'replica of ' if is_replica else ''}muniment-{self._target.schema}",
        )
        pool.open()
        return pool

    def _said_first(self) -> tuple[str, ...]:
        """Return the settings sent with each transaction's BEGIN, which end with it."""
        settings = {"lock_timeout": f"{self._target.busy_timeout_s * 1000:.0f}ms"}
        if self._durability != "normal":
            settings["synchronous_commit"] = "on" if self._durability == "full" else "remote_apply"
        told = [f"SET LOCAL {name} = '{value}'" for name, value in settings.items()]
        if self._ready.role is not None:
            told.append(f'SET LOCAL ROLE "{self._ready.role}"')
        return ("SET LOCAL muniment.tenant = %s", "SET LOCAL muniment.shard = %s", *told)

    def _here(self) -> Pool:
        """Return the pool of this process: a forked copy has no threads and shares its parent's sockets."""
        if self._pid != os.getpid():
            with self._forking:
                if self._pid != os.getpid():
                    held = (self._pool, self._replica, self._long_pool)
                    self._left_behind += [each for each in held if each is not None]
                    self._long_pool = None
                    if not self._closed:
                        self._replica = self._open_replica()
                        self._pool = self._open_home_pool()
                    self._pid = os.getpid()
        if self._closed:
            raise Closed("the store has been closed")
        return self._pool

    def _take(self, pool: Pool) -> Connection:
        failed_before = pool.get_stats().get("connections_errors", 0)
        try:
            return pool.getconn()
        except psycopg_pool.PoolClosed as error:
            raise Closed("the store has been closed") from error
        except psycopg_pool.PoolTimeout as error:
            stats = pool.get_stats()
            is_short = stats.get("pool_size", 0) < pool.max_size  # an attempt that failed may be waiting to be repeated
            if is_short or stats.get("connections_errors", 0) > failed_before:
                raise self._refusal(pool) from error
            raise NoConnection(
                f"all {pool.max_size} connections to {self._ready.location} are in use",
                hint="try again; close views and streams that were left half way, or raise pool_size in the URL",
            ) from error

    def _refusal(self, pool: Pool) -> StorageFailure:
        """Return why no connection was made. A pool does not report it, so the server is asked once more."""
        lost = StorageLost(f"cannot reach {self._ready.location}", hint="is the server up?")
        if pool is not self._pool and pool is not self._long_pool:
            return lost  # a replica: the primary answers
        try:
            connect(self._target).close()
        except StorageLost:
            return lost
        except StorageFailure as error:
            return error
        return NoConnection(f"no connection to {self._ready.location} was made in time", hint="try again")

    def _begin(
        self, pool: Pool, beginning: str, tenant_id: str, check: Callable[[Connection], None] | None = None
    ) -> tuple[Connection, int | None]:
        """Begin on a live connection; returns it, and the shard of the tenant if it was named to the server.

        A connection that died while idle is dropped: nothing was sent on it yet.
        """
        for _ in range(pool.max_size + 1):
            connection = self._take(pool)
            begun = False
            try:
                if check is not None:
                    check(connection)
                with connection.patient(self._patience_s):
                    shard = self._say(psycopg.ClientCursor(connection), beginning, tenant_id)
                begun = True
                return connection, shard
            except psycopg.Error as error:
                if isinstance(error, NoAnswer) or not (connection.broken or connection.closed):
                    raise translate(error, self._ready.location) from error
            finally:
                if not begun:
                    pool.putconn(connection)
        raise StorageLost(f"the connection to {self._ready.location} breaks again and again", hint="is the server up?")

    def _say(self, cursor: psycopg.ClientCursor[tuple[Any, ...]], beginning: str, tenant_id: str) -> int | None:
        """Send the settings in one message. Returns the shard of the tenant if it is known, and was named to the
        server.
        """
        number = self._book.number(TENANTS_SHARD, tenant_id)
        shard = None if number is None else shard_of(number)
        said = f"{beginning}; {'; '.join(self._said)}; {_HISTORY}"
        cursor.execute(said, (tenant_id, "" if shard is None else str(shard)))
        while cursor.nextset():
            pass
        ((history,),) = cursor.fetchall()
        if history and not self._book.bind(history):
            return None  # the cached names came from another server
        return shard

    def _commit_write(self, connection: Connection) -> None:
        self._check_commit(connection)
        commit_confirmed(
            connection,
            self._ready.location,
            self._target.busy_timeout_s,
            required=self._durability == "replicated",
        )

    def _check_commit(self, connection: Connection) -> None:
        if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            raise StorageFailure(
                "the transaction has failed and cannot be committed"
            )  # COMMIT would roll back in silence

    def _commit(self, connection: Connection) -> None:
        self._check_commit(connection)
        try:
            connection.commit()
        except psycopg.Error as error:
            raise translate(error, self._ready.location) from error

    def _give_back(self, pool: Pool, connection: Connection, done: bool) -> None:
        """Return a connection to the pool; one that cannot be rolled back is closed, which rolls it back."""
        try:
            if not done and not connection.closed:
                connection.rollback()  # not execute("ROLLBACK"): this also drops what an aborted batch prepared
        except psycopg.Error:
            connection.close()
        finally:
            pool.putconn(connection)

    def _moved(self, pool: Pool, connection: Connection, error: StorageReadOnly) -> StorageReadOnly:
        """Drop the connections of a host that no longer accepts writes, and look for another."""
        if not self._has_several_hosts:
            return error
        connection.close()
        pool.drain()
        if self._long_pool is not None:
            self._long_pool.drain()
        if self._replica is not None:
            self._replica.moved()
        return _Moved(error.message, hint=error.hint, details=error.details)

    @contextmanager
    def _view(
        self, tenant_id: str, pool: Pool | None = None, check: Callable[[Connection], None] | None = None
    ) -> Iterator[PostgresReader]:
        pool = pool or self._here()
        connection, shard = self._begin(pool, _READ, tenant_id, check)
        reader = PostgresReader(connection, tenant_id, shard=shard, **self._context)
        done = False
        try:
            yield reader
            reader.end()
            if reader.failure is None:
                self._commit(connection)
                done = True
        finally:
            if not done:
                reader.end()
            self._give_back(pool, connection, done)
