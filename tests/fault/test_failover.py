"""The primary is killed under load and a replica takes over: what was acknowledged is there, once, and chains hold.

Three servers, writers in threads and in processes of their own. They are told of several hosts and of nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from failover_writer import Acks, check, write

import muniment
from muniment.core.ports.engine import Count, Insert
from muniment.errors import StorageFailure, StorageLost
from muniment.store.engines.codec import encode_id
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import PostgresProcess, Servers

pytestmark = pytest.mark.req("LG-06", "LG-11")
WRITER = Path(__file__).with_name("failover_writer.py")


def until(holds: Callable[[], Any], seconds: float = 90.0) -> Any:
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.02)
    return found


def url_of(*servers: PostgresProcess, more: str = "") -> str:
    return f"postgresql://postgres@{','.join(server.address for server in servers)}/postgres{more}"


@contextmanager
def writing(acks: Acks, durability: str, targets: dict[str, str]) -> Iterator[None]:
    """Writers by name: those whose names begin with `p` are processes, the others threads."""
    over = threading.Event()
    descriptor = os.open(acks.path, os.O_WRONLY | os.O_APPEND)
    failures: list[BaseException] = []

    def run(target: str, name: str) -> None:
        try:
            write(target, descriptor, name, durability, over.is_set)
        except BaseException as error:
            failures.append(error)
            raise

    command = [sys.executable, str(WRITER)]
    processes = [
        subprocess.Popen([*command, target, str(acks.path), name, durability], stdin=subprocess.PIPE)
        for name, target in targets.items()
        if name.startswith("p")
    ]
    threads = [
        threading.Thread(target=run, args=(target, name))
        for name, target in targets.items()
        if not name.startswith("p")
    ]
    for thread in threads:
        thread.start()
    try:
        yield
        over.set()
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
        assert [process.wait(60) for process in processes] == [0] * len(processes)
    finally:
        over.set()
        for process in processes:
            process.kill()
            process.wait()
        for thread in threads:
            thread.join(60)
        os.close(descriptor)
    assert not failures


def furthest(replicas: list[PostgresProcess]) -> PostgresProcess:
    """The replica that was sent most, which is the one to be promoted; what it has not replayed yet, it will first."""
    asked = "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint"
    return max(replicas, key=lambda replica: replica.execute(asked))


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_primary_is_killed_under_load(cluster: Servers, tmp_path: Path) -> None:
    names = {"synchronous_standby_names": "ANY 1 (one, two)"}
    primary = cluster.primary(**names)
    replicas = [cluster.replica(primary, name, **names) for name in ("one", "two")]
    until(lambda: primary.execute("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == [(2,)])
    several = url_of(primary, *replicas)
    reading = url_of(primary, *replicas, more=f"?replica={','.join(replica.address for replica in replicas)}")
    muniment.open(several, durability="replicated").close()
    targets = {"t1": several, "t2": reading, "p1": several, "p2": reading}
    acks = Acks(tmp_path / "acks")
    with writing(acks, "replicated", targets):
        until(lambda: all(acks.count(name) >= 10 for name in targets))
        primary.kill()
        heir = furthest(replicas)
        other = next(replica for replica in replicas if replica is not heir)
        heir.promote()
        other.configure(primary_conninfo=f"host=127.0.0.1 port={heir.port} user=postgres")
        before = {name: acks.count(name) for name in targets}
        until(lambda: all(acks.count(name) >= before[name] + 10 for name in targets))
    told = acks.lines()
    assert not [line for line in told if "missed" in line]
    assert any("failed" in line for line in told), "nobody noticed: the primary was not under load"
    check(several, acks, lost=0)
    for server in (heir, other):
        server.stop()


@pytest.mark.soak
@pytest.mark.slow
def test_without_a_synchronous_replica_the_last_of_them_may_be_lost_and_the_store_holds(
    cluster: Servers, tmp_path: Path
) -> None:
    """What the replica had not been sent is gone, though it was acknowledged; what is left verifies, and goes on."""
    primary = cluster.primary()
    replica = cluster.replica(primary)
    target = url_of(primary, replica)
    muniment.open(target).close()
    acks = Acks(tmp_path / "acks")
    with writing(acks, "normal", {"t1": target, "p1": target}):
        until(lambda: all(acks.count(name) >= 10 for name in ("t1", "p1")))
        replica.kill()  # from here on it misses all of it
        sent = len(acks.acknowledged())
        until(lambda: len(acks.acknowledged()) >= sent + 10)
        primary.kill()
        lost = len(acks.acknowledged()) - sent
        replica.start()
        replica.promote()
        before = {name: acks.count(name) for name in ("t1", "p1")}
        until(lambda: all(acks.count(name) >= before[name] + 10 for name in ("t1", "p1")))
    check(target, acks, lost=lost + 10)
    with muniment.open(target) as mem:
        there = {entry.id for entry in mem.ledger.entries(user_id="ana")}
    assert set(acks.acknowledged().values()) - there, "the test does not show what it is for"
    replica.stop()


def add(engine: Any, name: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))


def test_a_server_that_took_over_and_waits_for_nobody_is_refused(cluster: Servers) -> None:
    """Whoever asked for two copies is not told that there are two where there is one."""
    primary = cluster.primary(synchronous_standby_names="only")
    replica = cluster.replica(primary, "only")
    engine = open_engine(url_of(primary, replica), durability="replicated")
    add(engine, "a")
    primary.kill()
    replica.promote()

    def refused() -> StorageFailure | None:
        try:
            add(engine, "b")
        except StorageLost:
            return None  # of the connection that broke, or of a server that is not up yet
        except StorageFailure as error:
            return error
        pytest.fail("acknowledged, and one server has it")

    error = until(refused)
    assert "synchronous_standby_names" in error.hint
    assert replica.execute("SELECT source_id FROM muniment.links") == [(encode_id("a"),)]
    engine.close()
    replica.stop()


@pytest.mark.soak
def test_who_waits_gets_the_server_when_it_is_back(cluster: Servers) -> None:
    """Nobody else asks meanwhile: a pool that gave its attempts up would leave them waiting for nothing."""
    primary = cluster.primary()
    engine = PostgresEngine(primary.dsn, connect_timeout_s=1, busy_timeout_s=40.0, pool_max=2)

    came: list[str] = []

    def add(name: str) -> None:
        engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))
        came.append(name)

    add("before")
    came.clear()
    primary.kill()
    waiting = [threading.Thread(target=add, args=(name,), daemon=True) for name in ("a", "b", "c")]
    for each in waiting:
        each.start()
    time.sleep(6)  # the pool gives up after a second
    assert not came
    primary.start()
    for each in waiting:
        each.join(20)
    assert sorted(came) == ["a", "b", "c"]
    assert engine.read("t1", lambda reader: reader.do(Count("links"))) == 4
    engine.close()
    primary.stop()
