"""kill -9 on `muniment store partition` while others write: nothing that was acknowledged is lost, and it goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

import muniment
from muniment.errors import StorageBusy
from muniment.store.engines.postgres.layouts import Layout, is_under_way, layout_of, read_shapes

pytestmark = pytest.mark.soak

ROUNDS = int(os.environ.get("MUNIMENT_KILL_ROUNDS", "8"))
PARTITIONER = """
import sys, time
from muniment.store.engines.postgres.layouts import Layout
from muniment.store.engines.postgres.opening import Target
from muniment.store.engines.postgres.partitioning import convert
layout = Layout.checked(3, {"acme": 2})
for step in convert(Target(sys.argv[1], sys.argv[2], "", 5, 30.0, False), layout, batch_rows=40):
    print(step.done, flush=True)
"""


class Writer:
    """Writes to two tenants as long as it is let, and keeps what it was promised."""

    def __init__(self, mem: muniment.Memory) -> None:
        self._mem, self._ended = mem, threading.Event()
        self.promised: dict[tuple[str, str], dict[str, str]] = {}
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _work(self) -> None:
        number = 0
        while not self._ended.is_set():
            tenant, user = ("acme", "globex")[number % 2], ("ana", "ben", "cleo")[number % 3]
            run = self._mem.run(tenant_id=tenant, user_id=user, session_id="s1")
            try:
                said = run.observe_many([{"role": "user", "content": f"{number}/{at}"} for at in range(3)])
            except StorageBusy:
                continue
            held = self.promised.setdefault((tenant, user), {})
            held.update({entry.id: f"{number}/{at}" for at, entry in enumerate(said)})
            number += 1

    @property
    def count(self) -> int:
        return sum(map(len, list(self.promised.values())))


class Reader:
    """Reads all the while: whatever was promised before it began to read is there."""

    def __init__(self, mem: muniment.Memory, writer: Writer) -> None:
        self._mem, self._writer, self._ended = mem, writer, threading.Event()
        self.reads = 0
        self.missed: list[str] = []
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _work(self) -> None:
        while not self._ended.is_set():
            for (tenant, user), held in list(self._writer.promised.items()):
                before = set(held.copy())
                try:
                    there = {entry.id for entry in self._mem.ledger.entries(tenant_id=tenant, user_id=user)}
                except StorageBusy:
                    continue
                self.missed += before - there
                self.reads += 1


@pytest.fixture
def mem(postgres_dsn: str, postgres_schema: str) -> Iterator[muniment.Memory]:
    with muniment.open(f"{postgres_dsn}&schema={postgres_schema}") as opened:
        yield opened


def started(dsn: str, schema: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARTITIONER, dsn, schema], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.req("TM-18", "LG-06")
def test_a_conversion_is_killed_again_and_again_under_load(
    mem: muniment.Memory, postgres_dsn: str, postgres_schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(20261117)
    kills = 0
    with Writer(mem) as writer, Reader(mem, writer) as reader:
        while writer.count < 60:
            time.sleep(0.05)
        for _ in range(ROUNDS):
            process = started(postgres_dsn, postgres_schema)
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 12)):
                if not process.stdout.readline():
                    break
            time.sleep(chance.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
            kills += process.returncode == -signal.SIGKILL
            with psycopg.connect(postgres_dsn) as connection:
                assert is_under_way(connection, postgres_schema)
        before = writer.count
        done = started(postgres_dsn, postgres_schema)
        out, err = done.communicate(timeout=500)
        assert done.returncode == 0, err
        assert out.splitlines()[-1] == "finished"
        while writer.count < before + 30:  # and it writes on
            time.sleep(0.05)
    assert kills == ROUNDS
    assert reader.missed == []
    assert reader.reads > ROUNDS
    with psycopg.connect(postgres_dsn) as connection:
        assert layout_of(read_shapes(connection, postgres_schema)) == Layout.checked(3, {"acme": 2})
        assert not is_under_way(connection, postgres_schema)
    for (tenant, user), held in writer.promised.items():
        there = {entry.id: entry.content for entry in mem.ledger.entries(tenant_id=tenant, user_id=user)}
        assert held.items() <= there.items()
    report = mem.verify()
    assert report.ok, report
    with capsys.disabled():
        lost = f"{writer.count} acknowledged events, none lost; {reader.reads} reads, nothing missed"
        print(f"\n  {kills} kills of a conversion: {lost}")
