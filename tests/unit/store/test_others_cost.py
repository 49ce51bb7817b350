"""What one user asks for costs the same however much others have said: steps of the database are counted, not time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.handles.memory import Memory
from muniment.store import verifying
from muniment.store.engines.sqlite import connections, residue

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
