"""Reads from a replica: nobody misses what they wrote, nobody waits for a replica that is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import muniment
from muniment.core.ports.engine import Count, Delete, Insert, Reader
from muniment.core.ports.schema import SERVER
from muniment.errors import InvalidInput, StorageLost
from muniment.store.engines._postgres_opening import replica_dsn, writable_dsn
from muniment.store.engines._postgres_replica import Replica, ReplicaSettings
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import PostgresProcess, Servers, Unavailable, fresh_schema, pooled
from products import for_each

pytestmark = pytest.mark.req("LG-11")
Pair = tuple[PostgresProcess, PostgresProcess]


@pytest.fixture
def schema(pair: Pair) -> Iterator[str]:
    with fresh_schema(pair[0].dsn) as name:
        yield name


@pytest.fixture
def paused(pair: Pair) -> Iterator[PostgresProcess]:
    """The replica, which replays nothing until it is told to."""
    replica = pair[1]
    yield replica
    replica.execute("SELECT pg_wal_replay_resume()")


def url(pair: Pair, schema: str, more: str = "") -> str:
    return f"{pair[0].dsn}?schema={schema}&replica={pair[1].address}{more}"


def replica_of(engine: Any) -> Replica:
    found = engine._replica
    assert found is not None
    return found  # type: ignore[no-any-return]


def state(engine: Any) -> str | None:
    found: str | None = engine.info.replica
    return found


def links(engine: Any) -> int:
    return int(engine.read("t1", lambda reader: reader.do(Count("links"))))


def add(engine: Any, name: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))


def where(engine: Any) -> bool:
    """Is a read answered by a server that only replays?"""

    def asked(reader: Reader) -> bool:
        ((is_replica,),) = reader._run("", "SELECT pg_is_in_recovery()", ())  # type: ignore[attr-defined]
        return bool(is_replica)

    return bool(engine.read("t1", asked))


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- where a read goes


def test_reads_go_to_the_replica_and_writes_to_the_primary(pair: Pair, schema: str) -> None:
    engine = open_engine(url(pair, schema))
    until(lambda: where(engine))
    for number in range(30):
        add(engine, str(number))
        assert links(engine) == number + 1
    assert replica_of(engine).reads["replica"] > 20
    assert state(engine) == "follows"
    with engine.snapshot("t1") as view:  # long views would be broken off by what the primary cleans up
        assert view._run("", "SELECT pg_is_in_recovery()", ()).fetchone() == (False,)  # type: ignore[attr-defined]
    assert engine.read(SERVER, lambda reader: reader._run("", "SELECT pg_is_in_recovery()", ()).fetchone()) == (False,)  # type: ignore[attr-defined]
    engine.close()


@pytest.mark.parametrize("lag", ["", "&replica_lag=3600"])
def test_a_replica_that_lags_never_hides_what_was_written(
    pair: Pair, schema: str, paused: PostgresProcess, lag: str
) -> None:
    engine = open_engine(url(pair, schema, lag))
    add(engine, "before")
    until(lambda: where(engine))
    paused.execute("SELECT pg_wal_replay_pause()")
    for number in range(5):
        add(engine, str(number))
        assert links(engine) == number + 2
    assert state(engine) == "behind"
    assert not where(engine)
    paused.execute("SELECT pg_wal_replay_resume()")
    until(lambda: where(engine))
    assert state(engine) == "follows"
    assert links(engine) == 6
    engine.close()


def test_a_read_waits_for_a_replica_that_comes_in_a_moment(pair: Pair, schema: str, paused: PostgresProcess) -> None:
    engine = PostgresEngine(pair[0].dsn, schema=schema, replica=ReplicaSettings(pair[1].dsn, wait_s=20.0))
    until(lambda: where(engine))
    paused.execute("SELECT pg_wal_replay_pause()")
    add(engine, "a")
    resuming = threading.Timer(0.3, paused.execute, ("SELECT pg_wal_replay_resume()",))
    resuming.start()
    assert where(engine)
    assert links(engine) == 1
    resuming.join()
    engine.close()


def test_what_another_process_wrote_is_seen_at_once_or_when_it_may_be_old(
    pair: Pair, schema: str, paused: PostgresProcess
) -> None:
    """Without `replica_lag` a read is as new as the primary; with it, what others wrote may be missing for so long."""
    writer = open_engine(f"{pair[0].dsn}?schema={schema}")
    new, old = open_engine(url(pair, schema)), open_engine(url(pair, schema, "&replica_lag=3600"))
    for engine in (new, old):
        until(lambda engine=engine: where(engine))  # type: ignore[misc]
    assert links(new) == links(old) == 0
    paused.execute("SELECT pg_wal_replay_pause()")
    add(writer, "a")
    assert links(new) == 1
    assert links(old) == 0
    assert state(old) == "follows"
    add(old, "b")  # its own: and with it everything that stands before it
    assert links(old) == 2
    for engine in (writer, new, old):
        engine.close()


def test_a_store_never_goes_back_in_time(pair: Pair, schema: str, paused: PostgresProcess) -> None:
    """Who was answered by the primary, or heard of a change by its mark, is not told an older state afterwards."""
    writer = open_engine(f"{pair[0].dsn}?schema={schema}")
    reader = open_engine(url(pair, schema, "&replica_lag=3600"))
    until(lambda: where(reader))
    before = reader.mark()
    paused.execute("SELECT pg_wal_replay_pause()")
    add(writer, "a")
    assert reader.mark() != before
    assert links(reader) == 1
    add(writer, "b")
    replica_of(reader).failed(StorageLost("as if it were gone for a while"))
    assert links(reader) == 2
    replica_of(reader)._away_until_s = 0.0
    assert links(reader) == 2
    writer.close()
    reader.close()


def test_a_fork_has_connections_of_its_own(pair: Pair, schema: str) -> None:
    from muniment.testing.simulator.faults import in_child

    engine = open_engine(url(pair, schema))
    until(lambda: where(engine))

    def in_the_child() -> int:
        add(engine, "child")
        return links(engine)

    assert in_child(in_the_child) == 1
    assert links(engine) == 1
    add(engine, "parent")
    assert links(engine) == 2
    engine.close()


def test_threads_that_write_and_read_side_by_side(pair: Pair, schema: str) -> None:
    engine = open_engine(url(pair, schema, "&replica_lag=60"))
    wrong: list[str] = []

    def work(name: str) -> None:
        for number in range(25):
            add(engine, f"{name}-{number}")
            mine = Count("links", (("source_id", "=", f"{name}-{number}"),))
            found = engine.read("t1", lambda reader, mine=mine: reader.do(mine))  # type: ignore[misc]
            if found != 1:
                wrong.append(f"{name}-{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert links(engine) == 100
    assert replica_of(engine).reads["replica"] > 0
    engine.close()


# -- what a forget means


def test_what_was_forgotten_is_not_told_by_a_replica_that_lags(
    pair: Pair, schema: str, paused: PostgresProcess
) -> None:
    for more in ("", "&replica_lag=3600"):
        with muniment.open(url(pair, schema, more)) as mem:
            run = mem.run(user_id="ana", session_id="s1")
            said = run.observe("user", "I moved to Zagreb in May.")
            run.observe("user", "I like tea.")
            assert run.search("Zagreb")
            paused.execute("SELECT pg_wal_replay_pause()")
            assert mem.forget(event=said.id).status == "pending"
            lagging = mem.store.scrub()
            assert (lagging.clean, lagging.due, lagging.receipts) == (False, True, 0)
            assert "1 replica has not applied it yet" in lagging.note
            assert not any("Zagreb" in hit.text for hit in run.search("Zagreb"))
            assert "Zagreb" not in str([entry.content for entry in mem.ledger.entries(user_id="ana")])
            paused.execute("SELECT pg_wal_replay_resume()")
            until(lambda mem=mem: where(mem._ctx.engine))  # type: ignore[misc]
            assert "Zagreb" not in str([entry.content for entry in mem.ledger.entries(user_id="ana")])
            again = run.observe("user", "I moved to Bergen in June.")
            mem.forget(event=again.id)
            done = mem.store.scrub()
            assert (done.clean, done.due, done.receipts) == (True, False, 2)
            assert "the replica that reads go to has applied it" in done.note


# -- a replica that is gone, and one that is none


@pytest.mark.soak
def test_a_replica_that_vanished_and_came_back(cluster: Servers, pair: Pair, schema: str) -> None:
    replica = cluster.replica(pair[0], "passing")
    engine = open_engine(f"{pair[0].dsn}?schema={schema}&replica={replica.address}")
    until(lambda: where(engine))
    replica.kill()
    for number in range(4):
        add(engine, str(number))
        assert links(engine) == number + 1
    assert state(engine) == "away"
    replica.start()
    until(lambda: where(engine))
    assert state(engine) == "follows"
    assert links(engine) == 4
    engine.close()
    replica.stop()


@pytest.mark.soak
def test_info_notices_a_replica_that_came_back(cluster: Servers, pair: Pair, schema: str) -> None:
    """Nobody reads meanwhile: asking how the replica is has it looked at again."""
    replica = cluster.replica(pair[0], "returning")
    engine = open_engine(f"{pair[0].dsn}?schema={schema}&replica={replica.address}")
    until(lambda: where(engine))
    replica.kill()
    links(engine)
    assert state(engine) == "away"
    replica.start()
    until(lambda: state(engine) == "follows", 60)
    engine.close()
    replica.stop()


def test_a_replica_that_dies_under_a_read(pair: Pair, schema: str) -> None:
    engine = open_engine(url(pair, schema))
    add(engine, "a")
    until(lambda: where(engine))
    asked: list[bool] = []

    def work(reader: Reader) -> int:
        ((is_replica, pid),) = reader._run("", "SELECT pg_is_in_recovery(), pg_backend_pid()", ())  # type: ignore[attr-defined]
        asked.append(is_replica)
        if is_replica:
            pair[1].execute("SELECT pg_terminate_backend(%s, 5000)", pid)
        return reader.do(Count("links"))

    assert engine.read("t1", work) == 1
    assert asked == [True, False]
    engine.close()


def test_a_replica_that_is_not_there_when_the_store_is_opened(pair: Pair, schema: str) -> None:
    engine = open_engine(f"{pair[0].dsn}?schema={schema}&replica=127.0.0.1:1")
    assert state(engine) == "away"
    add(engine, "a")
    assert links(engine) == 1
    engine.close()


def test_a_server_that_is_no_copy_of_the_primary(pair: Pair, cluster: Servers, schema: str) -> None:
    stranger = cluster.primary()
    with pytest.raises(InvalidInput) as caught:
        open_engine(f"{pair[0].dsn}?schema={schema}&replica={stranger.address}")
    assert caught.value.path == "$.target"
    stranger.stop()


def test_a_replica_that_was_promoted_has_a_history_of_its_own(cluster: Servers, schema: str, pair: Pair) -> None:
    replica = cluster.replica(pair[0], "rebel")
    engine = open_engine(f"{pair[0].dsn}?schema={schema}&replica={replica.address}")
    add(engine, "a")
    until(lambda: where(engine))
    replica.promote()
    replica.execute(f'DELETE FROM "{schema}".links')
    assert links(engine) == 1
    assert state(engine) == "promoted"
    engine.close()
    replica.stop()


@pytest.mark.soak
@pytest.mark.slow
def test_a_replica_that_did_not_follow_to_a_new_timeline_tells_no_lost_events(cluster: Servers) -> None:
    """It has come further than the new primary, with what was lost there: a history that is no more."""
    old = cluster.primary()
    heir, ahead = cluster.replica(old, "heir"), cluster.replica(old, "ahead")
    writer = open_engine(old.dsn)
    add(writer, "kept")
    ((kept_at,),) = old.execute("SELECT pg_current_wal_lsn()::text")
    until(lambda: heir.execute(f"SELECT pg_last_wal_replay_lsn() >= '{kept_at}'::pg_lsn") == [(True,)])
    heir.stop()
    for number in range(50):
        add(writer, f"lost-{number}")
    until(lambda: ahead.execute("SELECT count(*) FROM muniment.links") == [(51,)])
    writer.close()
    old.kill()
    heir.start()
    heir.promote()
    engine = open_engine(f"{heir.dsn}?replica={ahead.address}")
    assert links(engine) == 1
    add(engine, "new")
    assert links(engine) == 2
    assert not where(engine)
    assert state(engine) == "behind"
    engine.close()
    for server in (heir, ahead):
        server.stop()


def test_a_primary_that_is_not_there_when_the_store_is_opened(pair: Pair, schema: str) -> None:
    """The error says how to read meanwhile, and that is so."""
    primary, replica = pair
    engine = open_engine(f"{primary.dsn}?schema={schema}")
    add(engine, "a")
    engine.close()
    with pytest.raises(StorageLost) as caught:
        open_engine(f"postgresql://postgres@127.0.0.1:1/postgres?schema={schema}&replica={replica.address}")
    assert "open the replica by its own URL, with read_only=True" in caught.value.hint
    until(lambda: replica.execute(f"SELECT to_regclass('{schema}.links') IS NOT NULL") == [(True,)])
    until(lambda: replica.execute(f"SELECT count(*) FROM {schema}.links") == [(1,)])
    alone = open_engine(f"{replica.dsn}?schema={schema}", read_only=True)
    assert links(alone) == 1
    alone.close()


def test_a_replica_does_not_answer_while_the_primary_is_gone(cluster: Servers) -> None:
    """Another process may have forgotten something there since: whether the replica lags or follows, no read is served
    from it until the primary can be asked."""
    primary = cluster.primary()
    replica = cluster.replica(primary)
    settings = ReplicaSettings(replica.dsn)

    def opened() -> PostgresEngine:
        return PostgresEngine(primary.dsn, replica=settings, busy_timeout_s=1.0, connect_timeout_s=1)

    reader, other = opened(), opened()
    for number, is_paused in enumerate((True, False)):
        add(reader, f"{number}")
        until(lambda: where(reader))
        if is_paused:
            replica.execute("SELECT pg_wal_replay_pause()")
        other.write("t1", lambda tx: tx.do(Delete("links", (("item_id", "=", "x"),))))
        primary.kill()
        for _ in range(2):
            with pytest.raises(StorageLost):
                links(reader)
        primary.start()
        assert links(reader) == 0
        if is_paused:
            replica.execute("SELECT pg_wal_replay_resume()")
        until(lambda: where(reader))
        assert state(reader) == "follows"
    reader.close()
    other.close()


def test_a_write_of_which_the_position_is_not_known(pair: Pair, schema: str, paused: PostgresProcess) -> None:
    """The connection is lost right behind the commit: it is acknowledged, and the next read asks where it stands."""
    engine = open_engine(url(pair, schema, "&replica_lag=3600"))
    until(lambda: where(engine))
    paused.execute("SELECT pg_wal_replay_pause()")
    replica = replica_of(engine)
    written = replica.written

    def lost(connection: Any) -> None:
        connection.close()
        written(connection)

    replica.written = lost  # type: ignore[method-assign]
    add(engine, "a")
    assert links(engine) == 1
    engine.close()


def test_a_replica_behind_a_pooler(pair: Pair, schema: str) -> None:
    try:
        with pooled(pair[1].dsn) as before_the_replica:
            engine = open_engine(f"{pair[0].dsn}?schema={schema}&replica={quote(before_the_replica, safe='')}")
            for number in range(12):
                add(engine, str(number))
                assert links(engine) == number + 1
            until(lambda: where(engine))
            engine.close()
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_row_security_binds_reads_of_the_replica(pair: Pair, schema: str) -> None:
    engine = open_engine(url(pair, schema))
    add(engine, "a")
    until(lambda: where(engine))
    assert engine.read("t2", lambda reader: reader.do(Count("links"))) == 0

    def attack(reader: Any) -> Any:
        return reader._run("", f'SELECT count(*), current_user FROM "{schema}".links', ()).fetchone()

    assert engine.read("t2", attack) == (0, "muniment_app")
    assert engine.read("t1", attack) == (1, "muniment_app")
    engine.close()


# -- what is said in a URL


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("db2:5433", "db2", "5433"),
        ("db2", "db2", "5432"),
        ("[::1]:6000", "::1", "6000"),
        ("[::1]", "::1", "5432"),
        ("a:1,b:2", "a,b", "1,2"),
        ("postgresql://other@c:7/d", "c", "7"),
    ],
)
def test_how_a_replica_is_named(given: str, host: str, port: str) -> None:
    home = writable_dsn("postgresql://ana:s3cret@h1,h2/agents?sslmode=require", read_only=False)
    found = psycopg.conninfo.conninfo_to_dict(replica_dsn(home, given))
    assert (found["host"], found["port"]) == (host, port)
    assert "target_session_attrs" not in found
    if not given.startswith("postgresql"):
        assert (found["user"], found["password"], found["dbname"]) == ("ana", "s3cret", "agents")
        assert found["sslmode"] == "require"


@for_each(
    "more",
    ["replica=", "replica=:5432", "replica=h:port", "replica=h:70000", "replica=u:s3cret@h:1", "replica=a:1,",
     "replica=postgresql%3A%2F%2Fh%3Anotaport%2Fx", "replica=h:1&replica_lag=-1", "replica=h:1&replica_lag=nan",
     "replica=h:1&replica_lag=soon", "replica=h:1&replica_lag=1e9", "replica=h:1&replica_lag=", "replica_lag=5"],
)  # fmt: skip
def test_what_is_refused_in_a_url(more: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_engine(f"postgresql://somebody@127.0.0.1:1/nowhere?{more}")
    assert caught.value.path == "$.target"
    assert caught.value.hint
    assert "s3cret" not in str(caught.value.to_dict())


def test_a_url_of_several_hosts_means_the_one_that_takes_writes() -> None:
    several = psycopg.conninfo.conninfo_to_dict(writable_dsn("postgresql://a:1,b:2/x", read_only=False))
    assert several["target_session_attrs"] == "read-write"
    assert several["tcp_user_timeout"]
    named = writable_dsn("postgresql://a:1,b:2/x?target_session_attrs=primary&tcp_user_timeout=5", read_only=False)
    found = psycopg.conninfo.conninfo_to_dict(named)
    assert (found["target_session_attrs"], found["tcp_user_timeout"]) == ("primary", "5")
    for dsn, read_only in (("postgresql://a:1,b:2/x", True), ("postgresql://a:1/x", False)):
        assert "target_session_attrs" not in psycopg.conninfo.conninfo_to_dict(writable_dsn(dsn, read_only=read_only))
    with pytest.raises(InvalidInput):
        writable_dsn("postgresql://h/x?nonsense=1", read_only=False)


def test_a_replica_is_not_the_url_of_the_store(pair: Pair, schema: str) -> None:
    open_engine(f"{pair[0].dsn}?schema={schema}").close()
    until(lambda: bool(pair[1].execute(f"SELECT to_regclass('{schema}.layout') IS NOT NULL")[0][0]))
    with pytest.raises(InvalidInput):
        open_engine(f"{pair[1].dsn}?schema={schema}&replica={pair[1].address}", read_only=True)
    engine = open_engine(f"{pair[1].dsn}?schema={schema}", read_only=True)
    assert links(engine) == 0
    engine.close()


def test_servers_end_with_their_block() -> None:
    try:
        with Servers() as servers:
            primary = servers.primary()
            folder, process = servers.folder, primary._process
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert process is not None
    assert process.poll() is not None
    assert not os.path.exists(folder)


@pytest.mark.soak
def test_servers_of_a_killed_process_are_cleared_away() -> None:
    """By the next that starts some: nobody else knows of them."""
    lines = (
        "import time",
        "from muniment.testing.postgres import Servers",
        "servers = Servers()",
        "print(servers.primary().port, servers.folder, flush=True)",
        "time.sleep(60)",
    )
    command = [sys.executable, "-W", "ignore", "-c", "\n".join(lines)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    port, folder = process.stdout.readline().split()
    process.kill()
    process.communicate()
    dsn = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    psycopg.connect(dsn).close()
    with Servers():
        assert not os.path.exists(folder)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(dsn, connect_timeout=2)
