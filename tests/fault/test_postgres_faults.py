"""PostgreSQL when the world fails: lost connections, no server, full pools, locks, deadlocks, forks."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from muniment.core.ports.engine import Count, Insert, Lock, Reader, Select, Transaction
from muniment.errors import (
    Closed,
    InvalidInput,
    MunimentError,
    SchemaMismatch,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageLost,
    StorageReadOnly,
)
from muniment.store.engines._postgres_opening import LostRace, translate
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from products import for_each


@pytest.fixture
def engine(postgres_dsn: str, postgres_schema: str) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema, pool_max=3, busy_timeout_s=0.5)
    yield engine
    engine.close()


@pytest.fixture
def admin(postgres_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        yield connection


def links(engine: PostgresEngine) -> int:
    return engine.read("t1", lambda reader: reader.do(Count("links")))


def add(engine: PostgresEngine, name: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))


def end_backend(admin: psycopg.Connection[Any], reader: Reader) -> None:
    pid = reader._connection.info.backend_pid  # type: ignore[attr-defined]
    assert admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,)).fetchone() == (True,)


# -- lost connections


def test_lost_in_the_middle_of_a_transaction(engine: PostgresEngine, admin: psycopg.Connection[Any]) -> None:
    add(engine, "a")

    def work(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("b", "x")]))
        end_backend(admin, transaction)
        transaction.do(Insert("links", [("c", "x")]))

    with pytest.raises(StorageLost):
        engine.write("t1", work)
    assert links(engine) == 1
    add(engine, "next")
    with engine.snapshot("t1") as view:
        assert view.do(Count("links")) == 2


def test_lost_before_the_commit(engine: PostgresEngine, admin: psycopg.Connection[Any]) -> None:
    def work(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("b", "x")]))
        end_backend(admin, transaction)

    with pytest.raises(StorageLost):
        engine.write("t1", work)
    assert links(engine) == 0


@pytest.mark.parametrize("rows", [1, 200])
def test_lost_in_a_batch(engine: PostgresEngine, admin: psycopg.Connection[Any], rows: int) -> None:
    def work(transaction: Transaction) -> None:
        end_backend(admin, transaction)
        transaction.do(Insert("links", [(f"{number}", "x") for number in range(rows)]))

    with pytest.raises(StorageLost):
        engine.write("t1", work)
    assert links(engine) == 0


def test_lost_while_reading(engine: PostgresEngine, admin: psycopg.Connection[Any]) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(f"{n}", "x") for n in range(2000)])))

    def work(reader: Reader) -> int:
        rows = reader.stream(Select("links"))
        next(rows)
        end_backend(admin, reader)
        return len(list(rows))

    with pytest.raises(StorageLost):
        engine.read("t1", work)
    with pytest.raises(StorageLost), engine.snapshot("t1") as view:
        work(view)
    assert links(engine) == 2000


def test_lost_while_idle_is_not_noticed(
    engine: PostgresEngine, admin: psycopg.Connection[Any], postgres_schema: str
) -> None:
    """Nothing was asked of the dead connection, so another one is asked instead."""
    with engine.snapshot("t1") as one, engine.snapshot("t1") as two:  # several idle connections afterwards
        kept = [one._connection.info.backend_pid, two._connection.info.backend_pid]  # type: ignore[attr-defined]
    for call in (lambda: add(engine, "a"), lambda: links(engine), lambda: engine.tenants()):
        for pid in kept:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        call()
        with engine._pool.connection() as connection:
            kept = [connection.info.backend_pid]
    assert links(engine) == 1


# -- no server, no right


@pytest.mark.timeout(60)
def test_no_server(postgres_dsn: str) -> None:
    with pytest.raises(StorageLost) as caught:
        open_engine("postgresql://somebody:s3cret@127.0.0.1:1/nowhere")
    assert caught.value.hint
    assert "s3cret" not in str(caught.value.to_dict())
    assert caught.value.__cause__ is None


@for_each(
    ("dsn", "said"),
    [
        ("postgresql://host:notaport/x", "names no host and port"),
        ("postgresql://host:70000/x", "names no host and port"),
        ("postgresql://h/x?nonsense=1", "has no option nonsense"),
        ("postgresql://h/x?partitions=4", "has no option partitions"),
        ("postgresql://u:s3%zzcret@h/x", "cannot be read"),
        ("postgresql://u:s3%00cret@h/x", "cannot be read"),
        ("postgresql://u@h/x?password=s3%zzcret", "cannot be read"),
        ("postgresql://u:s3@cret@127.0.0.1:1/x", "names no host and port"),
        ("postgresql://u:s3/cret@127.0.0.1:1/x", "names no host and port"),
        ("postgresql://u:s3cret@[::1/x", "cannot be read"),
    ],
)
def test_a_url_that_cannot_be_read(dsn: str, said: str) -> None:
    """It says what to do, and no piece of a password: the driver's words, which can hold one, are not repeated."""
    for call in (open_engine, PostgresEngine):
        with pytest.raises(InvalidInput) as caught:
            call(dsn)
        assert said in caught.value.message
        assert caught.value.path == "$.target"
        assert caught.value.hint
        told = str(caught.value.to_dict()) + caught.value.hint
        assert not [piece for piece in ("s3", "cret") if piece in told]


def test_no_such_database(postgres_dsn: str) -> None:
    with pytest.raises(StorageFailure) as caught:
        PostgresEngine(psycopg.conninfo.make_conninfo(postgres_dsn, dbname="no_such_database"))
    assert caught.value.hint


def test_the_location_shows_no_secret(postgres_dsn: str, postgres_schema: str) -> None:
    dsn = psycopg.conninfo.make_conninfo(postgres_dsn, password="s3cret")
    engine = PostgresEngine(dsn, schema=postgres_schema)
    assert "s3cret" not in engine.info.location
    engine.close()


def test_a_server_that_refuses_writes(engine: PostgresEngine, postgres_dsn: str, postgres_schema: str) -> None:
    dsn = psycopg.conninfo.make_conninfo(postgres_dsn, options="-c default_transaction_read_only=on")
    reader = PostgresEngine(dsn, schema=postgres_schema)
    try:
        with pytest.raises(StorageReadOnly):
            add(reader, "a")
        assert links(reader) == 0
    finally:
        reader.close()


def test_a_store_that_was_dropped(engine: PostgresEngine, admin: psycopg.Connection[Any], postgres_schema: str) -> None:
    admin.execute("SET client_min_messages = warning")
    admin.execute(f'DROP SCHEMA "{postgres_schema}" CASCADE')
    with pytest.raises(SchemaMismatch):
        add(engine, "a")
    with pytest.raises(SchemaMismatch):
        links(engine)


@for_each(
    ("error", "kind"),
    [
        (psycopg.errors.DiskFull("x"), StorageFull),
        (psycopg.errors.TooManyConnections("x"), StorageBusy),
        (psycopg.errors.OutOfMemory("x"), StorageBusy),
        (psycopg.errors.ReadOnlySqlTransaction("x"), StorageReadOnly),
        (psycopg.errors.LockNotAvailable("x"), StorageBusy),
        (psycopg.errors.DeadlockDetected("x"), LostRace),
        (psycopg.errors.SerializationFailure("x"), LostRace),
        (psycopg.errors.AdminShutdown("x"), StorageLost),
        (psycopg.errors.CrashShutdown("x"), StorageLost),
        (psycopg.errors.CannotConnectNow("x"), StorageLost),
        (psycopg.errors.ConnectionFailure("x"), StorageLost),
        (psycopg.OperationalError("server closed the connection unexpectedly"), StorageLost),
        (psycopg.InterfaceError("the connection is closed"), StorageLost),
        (psycopg.errors.InvalidPassword("x"), StorageFailure),
        (psycopg.errors.SyntaxError("x"), StorageFailure),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.__name__,
)
def test_what_the_server_says(error: psycopg.Error, kind: type[MunimentError]) -> None:
    assert type(translate(error, "here")) is kind


# -- others in the way


def test_a_lock_held_elsewhere(engine: PostgresEngine) -> None:
    held, free = threading.Event(), threading.Event()

    def hold(transaction: Transaction) -> None:
        transaction.do(Lock(("a",)))
        held.set()
        free.wait(10)

    thread = threading.Thread(target=lambda: engine.write("t1", hold))
    thread.start()
    assert held.wait(10)
    try:
        with pytest.raises(StorageBusy):
            engine.write("t1", lambda transaction: transaction.do(Lock(("a",))))
        engine.write("t1", lambda transaction: transaction.do(Lock(("b",))))
        engine.write("t2", lambda transaction: transaction.do(Lock(("a",))))
    finally:
        free.set()
        thread.join(10)
    engine.write("t1", lambda transaction: transaction.do(Lock(("a",))))


def test_a_deadlock_is_tried_again(postgres_dsn: str, postgres_schema: str) -> None:
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema)
    meeting = threading.Barrier(2, timeout=10)
    tries: list[str] = []

    def worker(first: str, second: str) -> None:
        def work(transaction: Transaction) -> None:
            tries.append(first)
            transaction.do(Lock((first,)))
            if len(tries) <= 2:
                meeting.wait()
            transaction.do(Lock((second,)))
            transaction.do(Insert("links", [(first, second)]))

        engine.write("t1", work)

    threads = [threading.Thread(target=worker, args=pair) for pair in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert engine.read("t1", lambda reader: reader.do(Select("links"))) == [("a", "b"), ("b", "a")]
    assert len(tries) == 3
    engine.close()


def test_a_pool_that_is_used_up(postgres_dsn: str, postgres_schema: str) -> None:
    engine = PostgresEngine(postgres_dsn, schema=postgres_schema, pool_max=1, busy_timeout_s=0.3)
    with engine._pool.connection(), pytest.raises(StorageBusy):
        links(engine)
    assert links(engine) == 0
    with engine.snapshot("t1"):
        assert links(engine) == 0, "a long view has a connection of its own"
        with pytest.raises(StorageBusy), engine.snapshot("t1"):
            pytest.fail("there are no more of these than of the others")
    with engine.snapshot("t1"):
        pass
    engine.close()


def test_a_fork_gets_connections_of_its_own(engine: PostgresEngine) -> None:
    add(engine, "parent")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        failed = 1
        try:
            add(engine, "child")
            assert links(engine) == 2
            engine.close()
            with pytest.raises(Closed):
                links(engine)
            failed = 0
        finally:
            os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert links(engine) == 2
    add(engine, "parent again")
