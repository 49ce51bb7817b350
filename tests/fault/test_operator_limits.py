"""Limits that an operator sets: time for statements and transactions, connections. Each is told as what it is.

Nothing of a call that met one is there, and the next call is answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import psycopg
import pytest

from muniment.core.ports.engine import Count, Insert, Reader, Select, Transaction
from muniment.errors import StorageBusy, StorageFailure, StorageLost
from muniment.store.engines.postgres import COPY_ROWS_MIN, PostgresEngine, PostgresTransaction
from muniment.testing.postgres import pooled

pytestmark = pytest.mark.req("LG-06")


def with_option(dsn: str, **settings: str) -> str:
    told = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return psycopg.conninfo.make_conninfo(dsn, options=told)


@pytest.fixture
def engine(postgres_dsn: str, kept_postgres_schema: str) -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_dsn, schema=kept_postgres_schema)
    yield made
    made.close()


def add(engine: Any, *names: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x") for name in names])))


def links(engine: Any) -> int:
    return int(engine.read("t1", lambda reader: reader.do(Count("links"))))


def stand(view: Reader) -> int:
    """Something is asked, and then nothing for longer than the server allows."""
    found = view.do(Count("links"))
    time.sleep(0.5)
    return found


@pytest.mark.soak
@pytest.mark.parametrize("limit", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_transaction_that_is_ended_by_the_server(
    engine: PostgresEngine, postgres_dsn: str, kept_postgres_schema: str, limit: str
) -> None:
    """Between two statements, before the commit, in the middle of a stream, in a view: the limit is named."""
    add(engine, *(f"{number}" for number in range(1500)))
    limited = PostgresEngine(with_option(postgres_dsn, **{limit: "200ms"}), schema=kept_postgres_schema)

    def write_on(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("a", "y")]))
        stand(transaction)
        transaction.do(Insert("links", [("b", "y")]))

    def write_and_stand(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("a", "y")]))
        stand(transaction)

    def stream(reader: Reader) -> int:
        rows = reader.stream(Select("links"))
        next(rows)
        stand(reader)
        return len(list(rows))

    def view() -> int:
        with limited.snapshot("t1") as reader:
            return stream(reader)

    calls = (
        lambda: limited.write("t1", write_on),
        lambda: limited.write("t1", write_and_stand),
        lambda: limited.read("t1", stream),
        lambda: limited.read("t1", stand),
        view,
    )
    for call in calls:
        with pytest.raises(StorageLost) as caught:
            call()
        assert limit in caught.value.hint
        assert links(limited) == 1500
    limited.close()


def test_a_statement_that_may_take_no_longer(
    engine: PostgresEngine, postgres_dsn: str, kept_postgres_schema: str
) -> None:
    limited = PostgresEngine(with_option(postgres_dsn, statement_timeout="150ms"), schema=kept_postgres_schema)

    def work(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("a", "y")]))
        transaction._run("", "SELECT pg_sleep(5)", ())  # type: ignore[attr-defined]

    with pytest.raises(StorageBusy) as caught:
        limited.write("t1", work)
    assert "statement_timeout" in caught.value.hint
    assert links(limited) == 0
    limited.close()


# -- connections


def test_a_server_that_takes_no_more_connections(
    engine: PostgresEngine, postgres_dsn: str, kept_postgres_schema: str
) -> None:
    """A store that is open, and one that is about to be opened: the server is up, and its limit is named."""
    with psycopg.connect(postgres_dsn, autocommit=True) as admin, ExitStack() as limits:
        admin.execute("CREATE ROLE muniment_two LOGIN CONNECTION LIMIT 2 NOSUPERUSER IN ROLE muniment_app")
        limits.callback(admin.execute, "DROP ROLE muniment_two")
        dsn = psycopg.conninfo.make_conninfo(postgres_dsn, user="muniment_two")
        limited = PostgresEngine(dsn, schema=kept_postgres_schema, busy_timeout_s=0.4)
        limits.callback(limited.close)
        limited._pool.wait(20)  # it has its one connection; who asked for one would have it open another
        with ExitStack() as held:
            deadline = time.monotonic() + 120
            while True:  # a connection that was closed is counted for a moment longer
                assert time.monotonic() < deadline
                with suppress(psycopg.OperationalError):
                    held.enter_context(psycopg.connect(dsn))
                    break
            other = held.enter_context(ThreadPoolExecutor(1))
            calls: list[Callable[[], object]] = [
                lambda: limited.read("t1", lambda _: other.submit(links, limited).result()),  # it has one connection
                lambda: held.enter_context(limited.snapshot("t1")),  # long views have their own
                lambda: PostgresEngine(dsn, schema=kept_postgres_schema),
            ]
            for call in (calls[0], *calls):  # the second time, the attempt that failed has not been repeated yet
                with pytest.raises(StorageBusy) as caught:
                    call()
                assert "max_connections" in caught.value.hint
        _until_free(limited)


def _until_free(engine: PostgresEngine) -> None:
    until = time.monotonic() + 120
    while True:
        try:
            assert links(engine) == 0
            return
        except StorageFailure:
            assert time.monotonic() < until


def test_streams_that_were_left_half_way(postgres_dsn: str, kept_postgres_schema: str) -> None:
    """Whoever keeps them keeps the connections of long views: the next of these is told so, and no other call waits."""
    made = PostgresEngine(postgres_dsn, schema=kept_postgres_schema, pool_max=2, busy_timeout_s=0.3)
    add(made, *(f"{number}" for number in range(1500)))
    with ExitStack() as views:
        kept = [views.enter_context(made.snapshot("t1")).stream(Select("links")) for _ in range(2)]
        for rows in kept:
            next(rows)
        with pytest.raises(StorageBusy) as caught:
            views.enter_context(made.snapshot("t1"))
        assert "pool_size" in caught.value.hint
        add(made, "more")
        assert links(made) == 1501
        assert sum(1 for _ in kept[0]) == 1499
    with made.snapshot("t1") as view:
        assert sum(1 for _ in view.stream(Select("links"))) == 1501
    made.close()


# -- many rows in one statement


class LostBeforeTheInsert:
    """A cursor whose server process ends before rows go from the table of the copy to where they belong."""

    def __init__(self, cursor: Any, admin: psycopg.Connection[Any]) -> None:
        self._cursor, self._admin = cursor, admin
        self.copy = cursor.copy

    def execute(self, statement: str, *more: Any) -> Any:
        if statement.startswith("INSERT INTO"):
            ((pid,),) = self._cursor.execute("SELECT pg_backend_pid()").fetchall()
            assert self._admin.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,)).fetchone() == (True,)
        return self._cursor.execute(statement, *more)


def test_a_connection_that_is_lost_between_the_copy_and_its_insert(
    postgres_dsn: str, kept_postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Straight and behind a pooler: nothing is there, nor the table of the copy, and the same rows can be written."""
    whole = PostgresTransaction._copy
    of_copies = "SELECT count(*) FROM pg_class WHERE relname LIKE 'muniment_copy_%'"
    with pooled(postgres_dsn, connections=1) as behind, psycopg.connect(postgres_dsn, autocommit=True) as admin:
        for dsn in (postgres_dsn, behind):
            made = PostgresEngine(dsn, schema=kept_postgres_schema)
            before = links(made)

            def broken(transaction: Any, shape: Any, copied: Any) -> None:
                transaction._cursor = LostBeforeTheInsert(transaction._cursor, admin)
                whole(transaction, shape, copied)

            many = [f"{len(dsn)}-{number}" for number in range(COPY_ROWS_MIN)]
            monkeypatch.setattr(PostgresTransaction, "_copy", broken)
            with pytest.raises(StorageLost):
                add(made, *many)
            monkeypatch.setattr(PostgresTransaction, "_copy", whole)
            assert links(made) == before
            add(made, *many)
            assert links(made) == before + len(many)
            assert admin.execute(of_copies).fetchone() == (0,)
            made.close()
