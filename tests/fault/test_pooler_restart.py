"""PgBouncer is killed and started again under load: writers go on by themselves, nothing is lost, nothing is twice."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from failover_writer import Acks, check, write

import muniment
from deployments import url_of
from muniment.testing.postgres import pooled

WRITERS = ("t1", "t2", "t3")
ROUNDS = 3


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "nobody goes on"
        time.sleep(0.02)


def _kill_pooler(port: int) -> None:
    """The one that listens there, without a word to its clients."""
    (found,) = (
        child
        for child in psutil.Process().children()
        if child.name() == "pgbouncer" and any(each.laddr.port == port for each in child.net_connections("tcp"))
    )
    found.kill()
    found.wait(10)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("LG-06")
def test_a_pooler_is_killed_under_load(postgres_dsn: str, kept_postgres_schema: str, tmp_path: Path) -> None:
    acks = Acks(tmp_path / "acks")
    over = threading.Event()
    with ExitStack() as poolers:
        dsn = poolers.enter_context(pooled(postgres_dsn))
        port = int(dsn.rpartition(":")[2].partition("/")[0])
        target = url_of(dsn, kept_postgres_schema)
        muniment.open(target).close()
        descriptor = os.open(acks.path, os.O_WRONLY | os.O_APPEND)
        poolers.callback(os.close, descriptor)
        threads = [
            threading.Thread(target=write, args=(target, descriptor, name, "normal", over.is_set)) for name in WRITERS
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in range(ROUNDS):
                before = {name: acks.count(name) for name in WRITERS}
                _until(lambda before=before: all(acks.count(name) >= before[name] + 5 for name in WRITERS))  # type: ignore[misc]
                _kill_pooler(port)
                time.sleep(0.3)
                poolers.enter_context(pooled(postgres_dsn, port=port))
            before = {name: acks.count(name) for name in WRITERS}
            _until(lambda: all(acks.count(name) >= before[name] + 5 for name in WRITERS))
        finally:
            over.set()
            for thread in threads:
                thread.join(60)
    told = acks.lines()
    assert not [line for line in told if "missed" in line]
    assert sum("failed" in line for line in told) >= ROUNDS, "nobody noticed: it was not under load"
    assert {line["failed"] for line in told if "failed" in line} <= {"storage_lost", "storage_busy"}
    check(url_of(postgres_dsn, kept_postgres_schema), acks, lost=0)
