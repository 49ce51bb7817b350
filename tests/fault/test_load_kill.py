"""kill -9 of `muniment ingest --bulk` at moments of each of its parts: run again, nothing is lost, nothing is twice."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muniment
from deployments import FreshStore, on
from effort import one_in
from warm_commands import start_command

EVENTS, USERS = 7_000, 24
MOMENTS = ("checking", "a portion", "two portions", "the index")


def _write_file(path: Path) -> None:
    chance = random.Random(11)
    with path.open("w") as out:
        for number in range(EVENTS):
            user = chance.randrange(USERS)
            event = {
                "user_id": f"u{user}",
                "session_id": f"s{user}-{number % 2}",
                "role": ("user", "assistant")[number % 2],
                "content": f"Turn {number}: the ferry to Bergen leaves at {number % 24}.",
                "ts": f"2026-03-{1 + number * 27 // EVENTS:02d}T10:00:00Z",
            }
            out.write(json.dumps(event) + "\n")


def _words(file: Path, db: str) -> list[str]:
    return ["ingest", "--bulk", str(file), "--db", db, "--json"]


def _kill_at(
    place: str | None, words: list[str], moment: str, counts: Callable[[], tuple[int, int]], delay_s: float
) -> bool:
    """Start a load and kill it at a moment of its work; False where it was over before."""
    process = start_command(place, *words)
    reached: Callable[[int, int], bool] = {
        "checking": lambda entries, waiting: True,
        "a portion": lambda entries, waiting: entries > 0,
        "two portions": lambda entries, waiting: entries > EVENTS // 2,
        "the index": lambda entries, waiting: entries > EVENTS,
    }[moment]
    try:
        deadline = time.monotonic() + 240
        while process.poll() is None and not reached(*counts()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
    finally:
        process.wait(60)
    return process.returncode == -signal.SIGKILL


def _check_rounds(
    place: str | None, db: str, file: Path, counts: Callable[[], tuple[int, int]], moments: Sequence[str]
) -> None:
    chance, killed = random.Random(5), 0
    for moment in moments:
        killed += _kill_at(place, _words(file, db), moment, counts, chance.uniform(0, 0.2))
        if counts()[0]:
            with muniment.open(db) as mem:
                assert mem.verify().ok, moment
    assert killed >= len(moments) - 1
    command = [sys.executable, "-m", "muniment", *_words(file, db)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert (report["events"], report["waiting"]) == (EVENTS, 0)
    assert report["written"] + report["already_present"] == EVENTS
    with muniment.open(db) as mem:
        said = Counter(
            entry.content
            for user in range(USERS)
            for entry in mem.ledger.entries(user_id=f"u{user}")
            if entry.kind == "message"
        )
        assert len(said) == EVENTS
        assert set(said.values()) == {1}
        assert mem.verify().ok
        assert mem.run(user_id="u7").search("ferry to Bergen")


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("BL-02")
@on("sqlite")
def test_a_load_is_killed(fresh_store: FreshStore, tmp_path: Path, warm_place: str | None) -> None:
    """Into a server at each moment under a soak; in every run while a portion is written and while the index is."""
    file = tmp_path / "events.jsonl"
    _write_file(file)
    with fresh_store() as store:
        if not store.dsn:
            counts = partial(_counts_of_file, Path(store.target))
            _check_rounds(warm_place, store.target, file, counts, MOMENTS)
            return
        import psycopg

        muniment.open(store.target).close()
        with psycopg.connect(store.dsn, autocommit=True) as admin:
            of_schema = partial(_counts_of_schema, admin, store.schema)
            _check_rounds(warm_place, store.target, file, of_schema, one_in(2, MOMENTS, start=1))


def _counts_of_file(db: Path) -> tuple[int, int]:
    """How many entries there are, and how many events wait for the index."""
    if not db.exists():
        return 0, 0
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    try:
        (entries,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        (waiting,) = connection.execute("SELECT coalesce(sum(tail - indexed), 0) FROM users").fetchone()
    except sqlite3.OperationalError:  # it is being made
        return 0, 0
    finally:
        connection.close()
    return entries, waiting


def _counts_of_schema(admin: Any, schema: str) -> tuple[int, int]:
    row = admin.execute(
        f"SELECT (SELECT count(*) FROM {schema}.entries), (SELECT coalesce(sum(tail - indexed), 0) FROM {schema}.users)"
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
