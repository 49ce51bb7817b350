"""A store with much in it: a long run, many runs, many users, long texts, and a talk of years ago.

In every run it is as long as it takes to go past what a page holds and what the server looks at for one; under a soak
as long as stores get.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.effort import SOAK

import muniment

__all__ = ["ENTRIES", "RUNS", "USERS", "Lengths", "tell"]

ENTRIES = 50_502 if SOAK else 2_202
RUNS = 20_500 if SOAK else 130
USERS = 300 if SOAK else 40
REST = 100_000 - ENTRIES if SOAK else 0
AT_ONCE = 2000
LONG = "\n".join(f"line {number}: the report about harbour {number}" for number in range(2400))
ARGUMENT = "x" * 4000
ANSWER = "Kim lives in Lisbon [1], by the sea. The harbour is closed [77]."


class Lengths(NamedTuple):
    path: Path
    last: str
    """The last entry of the long run."""
    near_end: str
    long_text: str
    answer: str
    build: str
    silent: str
    """A packet of a run in which nothing was said."""
    moved: str
    """A packet that told a fact which changed since."""


def tell(folder: Path) -> Lengths:
    path = folder / "lengths.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="big", session_id="long", run_id="run_long", objective="A long talk")
        written = []
        for first in range(2, ENTRIES + 1, AT_ONCE):  # the first entry says that the run began
            numbers = range(first, min(first + AT_ONCE, ENTRIES + 1))
            written = run.observe_many(
                [{"role": "user", "content": f"Message {number} tells of gate {number % 31}."} for number in numbers]
            )
        rest = mem.run(user_id="big", session_id="rest", run_id="run_rest")
        for first in range(0, REST, AT_ONCE):
            rest.observe_many([{"role": "user", "content": f"Note {first + at}"} for at in range(AT_ONCE)])
        for number in range(RUNS):
            each = mem.run(
                user_id="many", session_id=f"s{number}", run_id=f"run_{number:05}", objective=f"Task {number}"
            )
            each.observe("user", f"thing {number}")
        for number in range(USERS):
            mem.run(user_id=f"visitor-{number:03}", session_id="s", run_id=f"visit_{number}").observe("user", "hello")
        old = mem.run(user_id="kim", session_id="old", run_id="run_2023", objective="Brought in from elsewhere")
        old.observe("user", "I moved to Lisbon in the spring.", ts="2023-05-04T10:00:00Z", speaker="Kim")
        long = old.observe("user", LONG, ts="2023-05-04T10:05:00Z", speaker="Kim")
        old.observe_tool("lookup", args={"token": ARGUMENT}, content="found", ts="2023-05-04T10:06:00Z")
        build = old.compose("responder", query="Where does Kim live?", max_tokens=400)
        answer = old.observe("assistant", ANSWER, ts="2023-05-04T10:07:00Z", build=build)
        silent = mem.run(user_id="kim", session_id="silent", run_id="run_silent").compose(
            "planner", query="What is there to do?", max_tokens=300
        )
        moved = _waiting(mem)
    return Lengths(path, written[-1].id, written[-40].id, long.id, answer.id, build.id, silent.id, moved)


def _waiting(mem: muniment.Memory) -> str:
    """What waits for a person: a dispute and a candidate; and a fact that changed after a packet had told it."""
    run = mem.run(user_id="lea", session_id="home", run_id="run_lea")
    before = run.observe("user", "I live in Oslo.")
    run.remember("user.city", "Oslo", sources=[before.id])
    build = run.compose("responder", query="Where does Lea live?", max_tokens=400)
    after = run.observe("user", "I live in Bergen now.")
    run.remember("user.city", "Bergen", sources=[after.id])
    tea = run.remember("user.drink", "green tea", sources=[after.id])
    run.memory.dispute(tea.fact_id, reason="she never said so")
    run.propose("user.diet", "vegetarian", sources=[after.id])
    return build.id
