"""kill -9 and SIGSTOP of processes that share the upkeep of one store: others end it, and the bytes are those of one.

Each round loads events that wait for their index, starts several `muniment store upkeep`, and kills or stops some of
them at moments by chance. What is left is done by one more, which waits for no longer than a lease lasts.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import muniment
from deployments import url_of
from effort import SOAK
from upkeep_room import SameSalts, leases, load, made, tail

ROUNDS = 12 if SOAK else 2
WORKERS = 3
USERS, TURNS = 24, 40


def _started(db: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "muniment", "store", "upkeep", "--db", db, "--lease-seconds", "1", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)


def _round(db: str, chance: random.Random) -> tuple[int, int]:
    """One round; answers how many died in it, and how many were held up and came back."""
    with muniment.open(db, ids=SameSalts()) as mem:
        load(mem, USERS, TURNS)
        workers = [_started(db) for _ in range(WORKERS)]
        try:
            all_of_it = tail(mem)
            deadline = time.monotonic() + 120
            while tail(mem) == all_of_it and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.1))
            workers[0].send_signal(signal.SIGKILL)
            workers[1].send_signal(signal.SIGSTOP)
            time.sleep(1.5)
            workers[1].send_signal(signal.SIGCONT)
            told = [worker.communicate(timeout=120)[0] for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait(60)
        died = sum(worker.returncode == -signal.SIGKILL for worker in workers)
        last = _started(db)
        told.append(last.communicate(timeout=120)[0])
        assert last.returncode == 0
        reports = [json.loads(each) for each in told if each]
        assert sum(report["index"] for report in reports) <= USERS * TURNS
        assert tail(mem) == 0
        assert leases(mem) == []
        assert mem.verify().ok
    return died, sum(report["lost"] for report in reports)


def _segments(db: str) -> list[object]:
    with muniment.open(db) as mem:
        return made(mem)["segments"]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("UK-01", "UK-02")
def test_processes_at_one_file_are_killed_and_stopped(tmp_path: Path) -> None:
    chance = random.Random(7)
    for number in range(ROUNDS):
        alone = str(tmp_path / f"alone{number}.db")
        with muniment.open(alone, ids=SameSalts()) as mem:
            load(mem, USERS, TURNS)
            assert mem.store.upkeep().index == USERS * TURNS
        shared = str(tmp_path / f"{number}.db")
        _round(shared, chance)
        assert _segments(shared) == _segments(alone)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("UK-01", "UK-02")
def test_processes_at_one_server_are_killed_and_stopped(
    tmp_path: Path, postgres_dsn: str, postgres_schema: str
) -> None:
    alone = str(tmp_path / "alone.db")
    with muniment.open(alone, ids=SameSalts()) as mem:
        load(mem, USERS, TURNS)
        assert mem.store.upkeep().index == USERS * TURNS
    db = url_of(postgres_dsn, postgres_schema)
    _round(db, random.Random(3))
    assert _segments(db) == _segments(alone)
