"""Bad hours of servers that copy each other: nothing is acknowledged that is not there, and errors say what to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import muniment
from muniment.core.outside.system import SystemIds, system_clock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Count, Durability, Insert, Transaction
from muniment.errors import ClockWentBack, InvalidInput, StorageBusy, StorageLost, StorageReadOnly
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines._postgres_replica import ReplicaSettings
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import PostgresProcess, Servers, fresh_schema

Pair = tuple[PostgresProcess, PostgresProcess]


@pytest.fixture
def schema(pair: Pair) -> Iterator[str]:
    with fresh_schema(pair[0].dsn) as name:
        yield name


def add(engine: Any, name: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))


def links(engine: Any) -> int:
    return int(engine.read("t1", lambda reader: reader.do(Count("links"))))


# -- durability="replicated"


@pytest.mark.req("LG-11")
def test_a_server_that_waits_for_nobody_cannot_promise_copies(pair: Pair, schema: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_engine(f"{pair[0].dsn}?schema={schema}", durability="replicated")
    assert caught.value.path == "$.durability"
    assert "synchronous_standby_names" in caught.value.hint
    assert pair[0].execute(f"SELECT to_regnamespace('{schema}')") == [(None,)]


def test_what_has_no_replica_cannot_promise_one(tmp_path: Any) -> None:
    for target in (":memory:", str(tmp_path / "store.db"), tmp_path / "store.db"):
        with pytest.raises(InvalidInput) as caught:
            open_engine(target, durability="replicated")
        assert caught.value.path == "$.durability"
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidInput) as caught:
        open_engine(":memory:", durability="twice")
    assert "replicated" in caught.value.message


@pytest.mark.soak
@pytest.mark.req("LG-11", "LG-06")
@pytest.mark.parametrize("durability", ["replicated", "normal"])
def test_nothing_is_acknowledged_while_no_replica_confirms_it(cluster: Servers, durability: Durability) -> None:
    """Nor is a repeat, which finds the event on the primary. When the replica is back, it is answered, once.

    A server that waits for replicas by itself does so for everybody; then a repeat is answered by what it finds.
    """
    primary = cluster.primary()
    replica = cluster.replica(primary, "second")
    primary.configure(synchronous_standby_names="second")
    dsn = primary.dsn
    engine = PostgresEngine(dsn, durability=durability, busy_timeout_s=1.0)
    assert engine.info.durability == durability
    mem = Memory(new_context(engine=engine, policy=Policy(), clock=system_clock, ids=SystemIds()))
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "before", idempotency_key="k0")
    if durability == "normal":  # a standby that has confirmed has it in its log, and may apply it a moment later
        _wait_for(replica, primary)
    assert replica.execute("SELECT count(*) FROM muniment.entries WHERE kind = 'message'") == [(1,)]
    replica.kill()
    for _ in range(2 if durability == "replicated" else 1):
        with pytest.raises(StorageLost) as caught:
            run.observe("user", "alone", idempotency_key="k1")
        assert "no replica has confirmed" in caught.value.message
        assert "idempotency" in caught.value.hint
    replica.start()
    first = run.observe("user", "alone", idempotency_key="k1")
    if durability == "normal":
        _wait_for(replica, primary)
    assert replica.execute("SELECT count(*) FROM muniment.entries WHERE id = %s", first.id) == [(1,)]
    assert [entry.content for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"] == [
        "before",
        "alone",
    ]
    assert mem.verify().ok
    mem.close()
    for server in (replica, primary):
        server.stop()


@pytest.mark.soak
@pytest.mark.req("LG-06", "LG-11")
def test_a_server_that_is_told_to_wait_for_a_replica_while_the_store_is_open(cluster: Servers) -> None:
    """An operator names a standby, or a successor does by whom the old primary waited for nobody, and it is not there:
    the wait has an end, and the next writers do not stand behind it."""
    primary = cluster.primary()
    engine = PostgresEngine(primary.dsn, busy_timeout_s=1.0)
    add(engine, "before")
    primary.configure(synchronous_standby_names="nobody")
    came: list[StorageLost] = []
    written: list[str] = []

    def write(name: str) -> None:
        for number in range(5000):  # the server hears of it a moment later
            written.append(f"{name}{number}")
            try:
                add(engine, f"{name}{number}")
            except StorageLost as error:
                came.append(error)
                return

    writers = [threading.Thread(target=write, args=(name,), daemon=True) for name in ("first", "second")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert ["no replica has confirmed" in error.message for error in came] == [True, True]
    primary.configure(synchronous_standby_names="")
    add(engine, "after")
    assert links(engine) == len(written) + 2
    engine.close()
    primary.stop()


def _wait_for(replica: PostgresProcess, primary: PostgresProcess) -> None:
    """Until the replica has applied what the primary has written."""
    ((written,),) = primary.execute("SELECT pg_current_wal_lsn()::text")
    deadline = time.monotonic() + 120
    while replica.execute(f"SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn") != [(True,)]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- servers that stop taking writes


@pytest.mark.req("LG-06")
def test_a_server_that_goes_read_only_in_mid_transaction(pair: Pair, schema: str) -> None:
    engine = open_engine(f"{pair[0].dsn}?schema={schema}")

    def work(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("a", "x")]))
        transaction._run("", "SET TRANSACTION READ ONLY", ())  # type: ignore[attr-defined]
        transaction.do(Insert("links", [("b", "x")]))

    with pytest.raises(StorageReadOnly) as caught:
        engine.write("t1", work)
    assert caught.value.hint
    assert links(engine) == 0
    add(engine, "c")
    assert links(engine) == 1
    engine.close()


@pytest.mark.soak
def test_of_several_hosts_another_is_asked_when_one_takes_no_writes_any_more(cluster: Servers) -> None:
    """Demoted without its connections being cut: the pool lets go of it, and the caller notices nothing."""
    old = cluster.primary()
    new = cluster.replica(old)
    engine = open_engine(f"postgresql://postgres@{old.address},{new.address}/postgres")
    add(engine, "a")
    old.configure(default_transaction_read_only="on")
    new.promote()
    add(engine, "b")
    assert links(engine) == 2
    assert new.execute("SELECT count(*) FROM muniment.links") == [(2,)]
    assert old.execute("SELECT count(*) FROM muniment.links") == [(1,)]
    engine.close()
    alone = open_engine(f"postgresql://postgres@{old.address}/postgres")
    with pytest.raises(StorageReadOnly):
        add(alone, "c")
    alone.close()
    for server in (new, old):
        server.stop()


# -- pools


def test_a_pool_that_is_used_up_on_either_side(pair: Pair, schema: str) -> None:
    settings = ReplicaSettings(pair[1].dsn, wait_s=5.0)
    engine = PostgresEngine(pair[0].dsn, schema=schema, pool_max=1, busy_timeout_s=0.5, replica=settings)
    add(engine, "a")
    with engine.snapshot("t1"):  # the one connection to the primary for long views
        assert links(engine) == 1
        add(engine, "b")
        with pytest.raises(StorageBusy) as caught, engine.snapshot("t1"):
            pass
        assert caught.value.hint
    entered, leave = threading.Event(), threading.Event()

    def hold(reader: Any) -> None:
        entered.set()
        leave.wait(20)

    holder = threading.Thread(target=lambda: engine.read("t1", hold))
    holder.start()
    assert entered.wait(20)
    assert links(engine) == 2  # the replica's one connection is held: the primary answers
    leave.set()
    holder.join()
    assert links(engine) == 2
    engine.close()


# -- clocks


def test_clocks_that_disagree_change_no_order(pair: Pair, schema: str) -> None:
    """Clocks that are minutes apart: events stand as they were written, by their chain and not by a clock."""
    target = f"{pair[0].dsn}?schema={schema}&replica={pair[1].address}"
    with (
        muniment.open(target) as right,
        muniment.open(target, clock=lambda: system_clock() - timedelta(minutes=4)) as behind,
        muniment.open(target, clock=lambda: system_clock() - timedelta(hours=1)) as lost,
    ):
        said = [f"number {number}" for number in range(12)]
        for number, content in enumerate(said):
            (right, behind)[number % 2].run(user_id="ana", session_id="s1").observe("user", content)
        with pytest.raises(ClockWentBack) as caught:
            lost.run(user_id="ana", session_id="s1").observe("user", "an hour ago")
        assert "clock" in caught.value.hint
        for mem in (right, behind, lost):
            entries = [entry for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"]
            assert [entry.content for entry in entries] == said
            assert [entry.seq for entry in entries] == sorted(entry.seq for entry in entries)
            assert mem.verify().ok
