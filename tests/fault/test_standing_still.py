"""Servers that stand still: they answer nothing, their connections do not break, and no keepalive notices it.

Reads go on where another server can answer them; what cannot be done is told after a while, and nothing of it is there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muniment.core.ports.engine import Count, Insert, Select
from muniment.errors import StorageLost
from muniment.store.engines import _postgres_replica as replicas
from muniment.store.engines._postgres_opening import Connection
from muniment.store.engines._postgres_replica import Replica, ReplicaSettings
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import PostgresProcess, Servers, fresh_schema

pytestmark = pytest.mark.req("LG-06", "LG-11")
Pair = tuple[PostgresProcess, PostgresProcess]
PATIENCE_S = 1


@pytest.fixture(scope="module")
def servers(cluster: Servers) -> Iterator[Pair]:
    primary = cluster.primary()
    replica = cluster.replica(primary)
    yield primary, replica
    for server in (replica, primary):
        server.stop()


@pytest.fixture
def engine(servers: Pair) -> Iterator[PostgresEngine]:
    primary, replica = servers
    with fresh_schema(primary.dsn) as schema:
        made = PostgresEngine(
            primary.dsn,
            schema=schema,
            busy_timeout_s=PATIENCE_S,
            connect_timeout_s=PATIENCE_S,
            replica=ReplicaSettings(replica.dsn, wait_s=5.0),
        )
        add(made, "before")
        assert links(made) == 1
        assert made.info.replica == "follows"
        yield made
        made.close()


def add(engine: Any, name: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))


def links(engine: Any) -> int:
    return int(engine.read("t1", lambda reader: reader.do(Count("links"))))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answered(call: Callable[[], Any]) -> Any:
    """What a call answers or raises; it must do one of them, and would have waited for ever."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(call())
        except StorageLost as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(25)
    assert came, "it waits, and nobody breaks it off"
    return came[0]


@pytest.mark.soak
def test_a_replica_that_stands_still_keeps_no_read_waiting(
    engine: PostgresEngine, servers: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked once, and left alone until its rest has ended."""
    asked: list[Replica] = []
    check = Replica.check

    def counted(self: Replica, connection: Connection) -> None:
        asked.append(self)
        check(self, connection)

    monkeypatch.setattr(Replica, "check", counted)
    monkeypatch.setattr(replicas, "_REST_S", 3_600.0)
    assert links(engine) == 1  # answered by the replica: its next rest is as long as that
    with servers[1].standing_still():
        assert answered(lambda: links(engine)) == 1
        assert engine.info.replica == "away"
        add(engine, "meanwhile")
        asked.clear()
        for _ in range(20):
            assert answered(lambda: links(engine)) == 2
        assert asked == []

    replica = engine._replica
    assert replica is not None
    replica._away_until_s = 0.0  # the rest ends
    replica._rest_s = 0.1
    until(lambda: links(engine) == 2 and engine.info.replica == "follows")


def test_a_replica_that_stops_in_the_middle_of_a_read(engine: PostgresEngine, servers: Pair) -> None:
    """What was read there so far is left, and the whole is read from the primary."""
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(f"{n}", "y") for n in range(2000)])))
    asked = []

    def work(reader: Any) -> int:
        rows = reader.stream(Select("links"))
        next(rows)
        asked.append(reader)
        if len(asked) > 1:
            return 1 + sum(1 for _ in rows)
        with servers[1].standing_still():
            return 1 + sum(1 for _ in rows)

    assert answered(lambda: engine.read("t1", work)) == 2001
    assert len(asked) == 2


@pytest.mark.soak
def test_a_primary_that_stands_still_keeps_nobody_waiting(engine: PostgresEngine, servers: Pair) -> None:
    with servers[0].standing_still():
        for act in (lambda: links(engine), lambda: add(engine, "lost")):
            error = answered(act)
            assert isinstance(error, StorageLost)
            assert "said nothing" in error.message
            assert error.hint
    until(lambda: links(engine) == 1 and engine.info.replica == "follows")
    add(engine, "after")
    assert engine.read("t1", lambda reader: reader.do(Select("links"))) == [("after", "x"), ("before", "x")]


@pytest.mark.soak
def test_a_primary_that_says_no_more_after_a_commit(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written, and acknowledged: only how far a replica has to come is not known, so the primary is asked."""
    slow = "SELECT pg_walfile_name(pg_current_wal_lsn()), 0::bigint, pg_sleep(60)::text"
    with monkeypatch.context() as patched:
        patched.setattr(replicas, "_POSITION", slow)
        answered(lambda: add(engine, "last"))
    assert answered(lambda: links(engine)) == 2
