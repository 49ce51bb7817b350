"""An import takes the ledger and makes the rest again: what differs is refused by name, whatever the digest says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dump_lines import dump_of, plain, resealed
from muniment.errors import InvalidInput, MunimentError
from muniment.handles.memory import Memory

pytestmark = pytest.mark.req("LG-05")

Line = dict[str, Any]


@pytest.fixture
def lines(make: Callable[..., Memory]) -> list[Line]:
    mem = make("memory", seed="there")
    for user, city in (("ana", "Lisbon"), ("bob", "Oslo")):
        run = mem.run(user_id=user, session_id=f"s-{user}", run_id=f"run-{user}", agent_id="helper", objective="help")
        said = run.observe("user", f"I live in {city} and I like to cook at home.").id
        run.remember("user.city", city, sources=[said])
        run.remember("user.city", f"{city} centre", sources=[run.observe("user", f"I moved to {city} centre.").id])
        run.propose("user.hobby", "cooking", sources=[said])
        run.procedure("cook", {"steps": ["wash the hands", "wash the vegetables"]}, sources=[said])
        run.patch(goal=f"help {user}", decisions=[{"statement": "cook", "evidence_id": said}])
        run.summarize(f"{user} lives in {city}.", sources=[said])
        build = run.compose("responder", query="Where does the user live?")
        run.observe("assistant", f"In {city} [1].", build=build)
        run.finish()
    mem.forget(event=mem.run(user_id="ana", session_id="s-two").observe("user", "Forget this one, please, at once.").id)
    return plain(dump_of(mem))


def _items(lines: list[Line]) -> list[Line]:
    """Lines of items that were not touched by a forget."""
    touched = {line["row"]["id"] for line in lines if line.get("table") == "items" and "receipt_id" in line["row"]}
    return [line for line in lines if line.get("table") == "items" and line["row"]["id"] not in touched]


OTHER = {
    "user_id": "bob",
    "agent_id": "other",
    "session_id": "s-bob",
    "run_id": "run-bob",
    "status": "unheard-of",
    "name": "0" * 32,
    "trust": "tool",
    "created_at": "2020-01-01T00:00:00Z",
}


@pytest.mark.soak
@pytest.mark.parametrize("column", OTHER)
def test_no_column_of_an_item_can_be_changed(make: Callable[..., Memory], lines: list[Line], column: str) -> None:
    """Each column of each untouched item on its own: none is let in, and each is named."""
    here = make("memory")
    kinds = set()
    for line in _items(lines):
        row = line["row"]
        before = row.get(column)
        changed = OTHER[column] if before != OTHER[column] else "x-" + OTHER[column]
        row[column] = changed
        with pytest.raises(MunimentError) as caught:
            here.import_(resealed(lines))
        assert "line " in caught.value.message, row
        kinds.add(row["kind"])
        if before is None:
            del row[column]
        else:
            row[column] = before
    assert kinds >= {"fact", "run", "build", "receipt", "candidate", "procedure", "working_state", "answer"}
    here.import_(resealed(lines))
    assert here.verify().ok
    assert here.store.tenants() == ["default"]


@pytest.mark.parametrize("kind", ["fact", "run", "working_state", "candidate", "procedure"])
def test_a_body_that_the_ledger_does_not_give_is_refused(
    make: Callable[..., Memory], lines: list[Line], kind: str
) -> None:
    for line in _items(lines):
        row = line["row"]
        if row["kind"] == kind:
            row["body"] = row["body"][:-1] + ',"zz":1}'
            with pytest.raises(InvalidInput, match=r"is not what its ledger gives: body"):
                make("memory").import_(resealed(lines))
            return
    raise AssertionError(kind)


def test_a_fact_of_one_user_is_not_brought_in_among_anothers(make: Callable[..., Memory], lines: list[Line]) -> None:
    for line in _items(lines):
        if line["row"]["kind"] == "fact" and line["row"]["user_id"] == "ana":
            line["row"]["user_id"] = "bob"
    here = make("memory")
    with pytest.raises(InvalidInput, match=r"the fact '.*' is not what its ledger gives: user_id not as") as caught:
        here.import_(resealed(lines))
    assert caught.value.details["kind"] == "fact"
    assert here.store.tenants() == []


def test_a_link_that_leads_elsewhere_is_refused(make: Callable[..., Memory], lines: list[Line]) -> None:
    facts = {line["row"]["id"] for line in _items(lines) if line["row"]["kind"] == "fact"}
    links = [line for line in lines if line.get("table") == "links" and line["row"]["item_id"] in facts]
    assert links
    for line in links:
        before = line["row"]["source_id"]
        line["row"]["source_id"] = before + "x"
        with pytest.raises(MunimentError):
            make("memory").import_(resealed(lines))
        line["row"]["source_id"] = before


def test_links_that_are_missing_are_made_again(make: Callable[..., Memory], lines: list[Line]) -> None:
    builds = {line["row"]["id"] for line in _items(lines) if line["row"]["kind"] == "build"}
    kept = [line for line in lines if line.get("table") != "links" or line["row"]["item_id"] in builds]
    assert len(kept) < len(lines)
    here = make("memory")
    here.import_(resealed(kept))
    assert here.verify().ok
    assert dump_of(here) == resealed(lines)


def test_a_version_that_is_left_out_or_made_up_is_refused(make: Callable[..., Memory], lines: list[Line]) -> None:
    several = [line for line in _items(lines) if line["row"]["version"] == 2 and line["row"]["kind"] == "run"]
    last = several[-1]
    with pytest.raises(InvalidInput, match=r"version 2, which the ledger gives, is missing"):
        make("memory").import_(resealed([line for line in lines if line is not last]))
    forged = {"table": "items", "row": last["row"] | {"version": 3}}
    at = lines.index(last)
    with pytest.raises(InvalidInput, match=r"no entry of the ledger says so"):
        make("memory").import_(resealed([*lines[: at + 1], forged, *lines[at + 1 :]]))


@pytest.mark.parametrize("scope", [{"user_id": "ana"}, {"user_id": "ana", "session_id": "s-ana"}])
def test_parts_of_a_store_travel_as_they_did(make: Callable[..., Memory], scope: dict[str, str]) -> None:
    here, there = make("memory", seed="there"), make("memory")
    for user in ("ana", "bob"):
        for session in ("s-ana", "s-two"):
            run = here.run(user_id=user, session_id=session)
            said = run.observe("user", f"I live in a house of {session}.").id
            run.remember("user.home", f"the house of {session}", sources=[said])
            run.compose("planner", query="home")
    there.import_(dump_of(here, **scope))
    assert there.verify().ok


@pytest.mark.parametrize("kind", ["fact", "run", "working_state", "procedure", "answer", "candidate", "all of them"])
def test_items_that_a_whole_dump_lacks_are_made_from_its_ledger(
    make: Callable[..., Memory], lines: list[Line], kind: str
) -> None:
    kinds = ["fact", "run", "working_state", "procedure", "answer", "candidate"] if kind == "all of them" else [kind]
    left_out = {line["row"]["id"] for line in _items(lines) if line["row"]["kind"] in kinds}
    assert left_out
    owner = lambda line: line.get("row", {}).get("item_id") or line.get("row", {}).get("id")  # noqa: E731
    rest = [line for line in lines if line.get("table") not in ("items", "links") or owner(line) not in left_out]
    here, whole = make("sqlite"), make("sqlite", seed="whole")
    here.import_(resealed(rest))
    whole.import_(resealed(lines))
    assert here.verify().ok
    assert here.verify().lacking == 0
    assert dump_of(here) == dump_of(whole)
