"""What a dump says was forgotten is taken only where the dump itself bears it out, whatever the digest says."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dump_lines import dump_of, plain, resealed
from muniment.errors import MunimentError
from muniment.handles.memory import Memory

pytestmark = pytest.mark.req("LG-05", "LG-07")

Line = dict[str, Any]
Edit = Callable[[list[Line]], list[Line]]


@pytest.fixture
def lines(make: Callable[..., Memory]) -> list[Line]:
    """A store in which an event was forgotten, with what was made of it, and most was not."""
    mem = make("memory", seed="there")
    for user, city in (("ana", "Lisbon"), ("bob", "Oslo")):
        run = mem.run(user_id=user, session_id=f"s-{user}", run_id=f"run-{user}")
        first = run.observe("user", f"I live in {city} and I like to cook.").id
        fact = run.remember("user.city", city, sources=[first])
        run.remember("user.hobby", "cooking", sources=[first])
        run.remember("user.city", city, sources=[run.observe("user", f"Yes, I live in {city}.").id])
        run.memory.dispute(fact.fact_id, sources=[run.observe("user", "Or do I?").id])
        run.compose("responder", query="Where does the user live?")
        later = run.observe("user", "I have a cat called Minka, and a dog.").id
        run.remember("user.pet", "cat", sources=[later, first])
        mem.forget(event=later)
    return plain(dump_of(mem))


def _rows(lines: list[Line], table: str, kind: str | None = None) -> list[Line]:
    rows = [line["row"] for line in lines if line.get("table") == table]
    return [row for row in rows if kind is None or row["kind"] == kind]


def _with_body(row: Line, change: Callable[[Line], None]) -> None:
    body = json.loads(row["body"])
    change(body)
    row["body"] = json.dumps(body, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _receipt(lines: list[Line]) -> Line:
    return _rows(lines, "items", "receipt")[-1]


def _live_event(lines: list[Line]) -> Line:
    return next(row for row in _rows(lines, "entries", "message") if "receipt_id" not in row)


def _laundered(lines: list[Line]) -> list[Line]:
    """A fact of several versions whose first is said to be forgotten, so that the last may say anything."""
    facts = [row for row in _rows(lines, "items", "fact") if "receipt_id" not in row]
    several = next(row["id"] for row in facts if row["version"] > 1)
    versions = [row for row in facts if row["id"] == several]
    del versions[0]["body"]
    versions[0]["receipt_id"] = _receipt(lines)["id"]
    versions[-1]["body"] = versions[-1]["body"].replace("Lisbon", "Paris").replace("Oslo", "Paris")
    return lines


def _emptied(kind: str) -> Edit:
    """Every version of an item that was not forgotten comes without its content."""

    def edit(lines: list[Line]) -> list[Line]:
        wanted = next(row["id"] for row in _rows(lines, "items", kind) if "receipt_id" not in row)
        for row in _rows(lines, "items", kind):
            if row["id"] == wanted:
                del row["body"]
                row["receipt_id"] = _receipt(lines)["id"]
        return lines

    return edit


def _lists(event: Callable[[list[Line]], Line]) -> Edit:
    """The last version of a receipt lists one event more."""

    def edit(lines: list[Line]) -> list[Line]:
        more = {"hash": event(lines)["hash"], "id": event(lines)["id"], "kind": "event"}
        _with_body(_receipt(lines), lambda body: body["erased"].append(more))
        return lines

    return edit


def _asked_elsewhere(lines: list[Line]) -> list[Line]:
    _with_body(_receipt(lines), lambda body: body["selector"].update(tenant_id="other"))
    return lines


def _marks(change: Callable[[list[Line]], None]) -> Edit:
    def edit(lines: list[Line]) -> list[Line]:
        change(_rows(lines, "marks"))
        return lines

    return edit


def _swap_marks(marks: list[Line]) -> None:
    marks[0]["evidence_id"], marks[1]["evidence_id"] = marks[1]["evidence_id"], marks[0]["evidence_id"]


def _without_marks(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.get("table") != "marks"]


def _without_last_mark(lines: list[Line]) -> list[Line]:
    last = max(place for place, line in enumerate(lines) if line.get("table") == "marks")
    return [line for place, line in enumerate(lines) if place != last]


def _began_elsewhen(lines: list[Line]) -> list[Line]:
    first, second = _rows(lines, "sessions")[:2]
    first["created_at"] = second["created_at"]
    return lines


EDITS: dict[str, tuple[Edit, str]] = {
    "a fact laundered by a version that was forgotten": (_laundered, "its sources still stand"),
    "a fact that nobody forgot": (_emptied("fact"), "was not forgotten"),
    "a run that nobody forgot": (_emptied("run"), "was not forgotten"),
    "a build that nobody forgot": (_emptied("build"), "was not forgotten"),
    "a receipt that lists what stands": (_lists(_live_event), "which was not forgotten"),
    "a receipt that lists what never was": (
        _lists(lambda _: {"hash": "0" * 64, "id": "evt_" + "1" * 32}),
        "which was not forgotten",
    ),
    "a receipt of another tenant": (_asked_elsewhere, "asked for in another tenant"),
    "marks swapped": (_marks(_swap_marks), "was given to"),
    "no marks": (_without_marks, "which a build gave, is missing"),
    "a mark fewer": (_without_last_mark, "which a build gave, is missing"),
    "a session that began at another time": (_began_elsewhen, "its session began at another time"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_a_dump_says_was_forgotten_is_held_against_it(
    make: Callable[..., Memory], lines: list[Line], name: str
) -> None:
    edit, said = EDITS[name]
    before = [json.dumps(line) for line in lines]
    altered = edit(lines)
    assert [json.dumps(line) for line in altered] != before
    here = make("memory")
    with pytest.raises(MunimentError, match=said) as caught:
        here.import_(resealed(altered))
    assert caught.value.hint
    assert here.store.tenants() == []


@pytest.mark.parametrize("scope", [{}, {"user_id": "ana"}, {"user_id": "ana", "session_id": "s-ana"}])
def test_dumps_of_stores_that_forgot_come_in_as_before(make: Callable[..., Memory], scope: dict[str, str]) -> None:
    """Forgets of an event, a fact, a session and a user, one after the other, and a dump after each."""
    there = make("memory", seed="there")
    for user in ("ana", "bob"):
        run = there.run(user_id=user, session_id=f"s-{user}", run_id=f"run-{user}")
        events = [run.observe("user", f"{user} said number {number}, and something else.").id for number in range(4)]
        facts = [run.remember(f"user.n{at}", f"value {at}", sources=[event]) for at, event in enumerate(events)]
        run.remember("user.all", "all of it", sources=events)
        run.patch(goal="one", decisions=[{"statement": "all", "evidence_id": events[0]}])
        run.patch(goal="two")
        run.compose("responder", query="What did I say?")
        other = there.run(user_id=user, session_id="s-other")
        other.observe("user", "Something in another session.")
        there.forget(event=events[0])
        there.forget(fact=facts[1].fact_id)
        there.forget(user_id=user, session="s-other")
        dump = dump_of(there, **scope)
        here = make("memory")
        here.import_(dump)
        assert here.verify().ok
        assert dump_of(here, **scope) == dump
    there.forget(user_id="bob")
    dump = dump_of(there, **scope)
    here = make("memory")
    here.import_(dump)
    assert here.verify().ok
    assert dump_of(here, **scope) == dump
