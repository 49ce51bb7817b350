"""What one user asks for costs the same however much others have said: steps of the database are counted, not time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Find, Remove
from muniment.core.ports.schema import TABLES, Column
from muniment.handles.memory import Memory
from muniment.store import verify as verifying
from muniment.store.engines import _sqlite_files as connections
from muniment.store.engines import _sqlite_residue as residue

STEP = 10
"""Steps of SQLite's machine between two looks at it."""
OWN = tuple(f"own-{number}" for number in range(4))
SLACK = 1.15
"""An index that is a level deeper costs some steps more."""


class Steps:
    """How many steps the connections of a store have made."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, work: Callable[[], object]) -> int:
        before = self.count
        work()
        return self.count - before

    def count_one(self) -> int:
        self.count += 1
        return 0


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    counted = Steps()
    inner = connections.connect

    def connect(*args: Any, **more: Any) -> Any:
        connection = inner(*args, **more)
        connection.set_progress_handler(counted.count_one, STEP)
        return connection

    for module in (connections, residue):
        monkeypatch.setattr(module, "connect", connect)
    return counted


def tell_own(mem: Memory) -> None:
    for user in OWN:
        run = mem.run(user_id=user, session_id="s")
        run.observe_many([{"role": "user", "content": f"The ferry number {n} leaves at {n}."} for n in range(30)])
        run.observe("user", "I live in Lisbon.")
        run.extract()
        run.compose("responder", query="ferry")


def tell_others(mem: Memory, first: int, last: int) -> None:
    """Of every kind of thing: turns, facts, builds, receipts; documents of the first ten, whose names are all read."""
    for number in range(first, last):
        run = mem.run(user_id=f"other-{number:03}", session_id="s")
        run.observe_many([{"role": "user", "content": f"I live in town {number}, street {n}."} for n in range(8)])
        run.extract()
        run.compose("responder", query="where do I live")
        if number < 10:
            mem.corpus("notes", user_id=f"other-{number:03}").add(f"Notes of {number}: the ferry.", document_id="notes")
        if number % 5 == 0:
            mem.forget(event=run.observe("user", f"This is to be forgotten, number {number}.").id)


def asked(mem: Memory, user: str) -> Iterator[tuple[str, Callable[[], object]]]:
    run = mem.run(user_id=user, session_id="t")
    event = next(entry.id for entry in mem.ledger.entries(user_id=user) if entry.kind == "message")
    mem._ctx.clear_caches()
    yield "search", lambda: run.search("when does the ferry leave")
    yield "compose", lambda: run.compose("responder", query="when does the ferry leave")
    yield "export", lambda: list(mem.export(user_id=user))
    yield "forget an event", lambda: mem.forget(event=event)
    yield "forget a session", lambda: mem.forget(user_id=user, session="s")
    yield "forget a user", lambda: mem.forget(user_id=user)


@pytest.mark.req("LG-07")
def test_what_is_asked_and_forgotten_costs_no_more_for_what_others_have(tmp_path: Path, steps: Steps) -> None:
    path = tmp_path / "store.db"
    told: list[dict[str, int]] = []
    for user, (first, last) in zip(OWN, ((0, 10), (10, 60)), strict=False):
        with muniment.open(path) as mem:
            if first == 0:
                tell_own(mem)
            tell_others(mem, first, last)
        with muniment.open(path) as mem:
            told.append({name: steps.of(work) for name, work in asked(mem, user)})
    few, many = told
    assert min(few.values()) > 10  # they are counted at all
    grown = {name: (few[name], many[name]) for name in few if many[name] > SLACK * few[name] + 5}
    assert not grown


@pytest.mark.soak
def test_a_quick_verification_costs_no_more_for_a_larger_store(
    tmp_path: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LG-05: it walks a sample, and reads nothing of what is not in it."""
    monkeypatch.setattr(verifying, "SAMPLE_SESSIONS", 8)
    monkeypatch.setattr(verifying, "COUNTED_MAX", 20)
    told: list[int] = []
    with muniment.open(tmp_path / "store.db") as mem:
        for first, last in ((0, 30), (30, 300)):
            for number in range(first, last):
                run = mem.run(user_id=f"user-{number:03}", session_id="s")
                run.observe_many([{"role": "user", "content": f"Turn {n} of {number}."} for n in range(3)])
            told.append(steps.of(lambda: mem.verify(quick=True)))
            report = mem.verify(quick=True)
            assert (report.sessions, report.sessions_held, report.sessions_uncounted) == (8, 20, True)
    assert told[0] > 10
    assert told[1] <= SLACK * told[0] + 5, told


def events_of(users: int, first: int, last: int, more: str = "") -> Iterator[dict[str, Any]]:
    """A log in the order of time: every user says something in turn."""
    for turn in range(first, last):
        for number in range(users):
            text = f"Turn {turn} of {number}{more}."
            yield {"user_id": f"u{number:04}", "session_id": f"u{number:04}-s", "role": "user", "content": text}


@pytest.mark.soak
def test_a_load_of_many_sessions_that_go_on_costs_no_more_for_a_larger_store(tmp_path: Path, steps: Steps) -> None:
    """With 512 keys and more SQLite read whole tables for a filter before it looked for the keys; with four it walked
    through a tenant's rows to remove them.
    """
    told: dict[str, list[int]] = {"load": [], "index": []}
    for others in (0, 6_000):  # each in a store of its own: what one has said before is indexed along
        with muniment.open(tmp_path / f"{others}.db") as mem:
            mem.store.load(events_of(520, 0, 1))
            mem.store.load(
                {"user_id": f"other-{n % 40}", "session_id": f"o{n % 40}", "role": "user", "content": f"Other {n}."}
                for n in range(others)
            )
            further = list(events_of(520, 1, 2))
            told["load"].append(steps.of(partial(mem.store.load, further, index=False)))
            told["index"].append(steps.of(mem.store.index))
    for name, (few, many) in told.items():
        assert few > 10
        assert many <= SLACK * few + 5, (name, few, many)


def _do(op: Any, view: Any) -> Any:
    return view.do(op)


def _key(column: Column, n: int) -> Any:
    if column.form == "instant":
        return f"2026-01-01T00:00:00.{n:06}Z"
    return {"int": 1, "text": f"x{n}", "bytes": b"x"}[column.type]


def test_keys_lead_to_their_rows_in_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many keys are asked for or removed, SQLite reads no table and walks through no tenant for them."""
    said: list[str] = []
    inner = connections.connect

    def connect(*args: Any, **more: Any) -> Any:
        connection = inner(*args, **more)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr(connections, "connect", connect)
    odd: list[tuple[str, str]] = []
    asked = 0
    with muniment.open(tmp_path / "store.db") as mem, closing(sqlite3.connect(tmp_path / "store.db")) as plans:
        engine = mem._ctx.engine
        for table in TABLES:
            for by in {tuple(table.key), *map(tuple, table.unique)} - {()}:
                columns = [next(column for column in table.columns if column.name == name) for name in by]
                for size in (1, 4, 64, 512):
                    keys = [tuple(_key(column, n) for column in columns) for n in range(size)]
                    said.clear()
                    engine.read("t", partial(_do, Find(table.name, by, keys)))
                    engine.write("t", partial(_do, Remove(table.name, by, keys)))
                    for text in {each for each in said if each.startswith(("WITH", "DELETE"))}:
                        asked += 1
                        for *_, step in plans.execute(f"EXPLAIN QUERY PLAN {text}"):
                            is_whole = step.count("=?") == len(by) + 1
                            if "BLOOM" in step or (table.name in step.split() and not is_whole):
                                odd.append((text[:60], step))
    assert asked > 100
    assert not odd
