"""What was derived is proven, not believed: `verify` makes it again from the ledger and names what differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Condition, Delete, Patch, Transaction
from muniment.core.ports.rows import insert
from muniment.core.ports.schema import LINKS, LinkRow
from muniment.errors import UnknownScope
from muniment.handles.memory import Memory
from muniment.store import replay
from muniment.store import verify as verifying
from muniment.store.items import latest
from stored_rows import stored_rows

pytestmark = pytest.mark.req("LG-05")

OF_ANA: tuple[Condition, ...] = (("user_id", "=", "ana"),)


def tell(mem: Memory) -> str:
    """Two users with facts, states, procedures and builds; answers a build of the first."""
    builds = []
    for user, city in (("ana", "Lisbon"), ("bob", "Oslo")):
        run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}", objective=f"help {user}")
        said = run.observe("user", f"I live in {city} and I like to cook at home.").id
        run.remember("user.city", city, sources=[said])
        run.remember("user.hobby", "cooking", sources=[said])
        run.remember("user.city", f"{city} centre", sources=[run.observe("user", f"I moved to {city} centre.").id])
        run.patch(goal=f"help {user}", decisions=[{"statement": "cook", "evidence_id": said}])
        builds.append(run.compose("responder", query="Where does the user live?").id)
    return builds[0]


EDITS = {
    "links deleted": "DELETE FROM links",
    "lineages deleted": "DELETE FROM lineages",
    "one link deleted": "DELETE FROM links WHERE item_id = (SELECT min(id) FROM items WHERE kind = word('fact'))",
    "a fact re-owned": "UPDATE items SET user_id = name('bob') WHERE kind = word('fact') AND user_id = name('ana')",
    "a fact's status": "UPDATE items SET status = word('deprecated') WHERE kind = word('fact')",
    "a fact's name": "UPDATE items SET name = 'x' WHERE kind = word('fact') AND user_id = name('ana')",
    "a fact's trust": "UPDATE items SET trust = word('external') WHERE kind = word('fact') AND user_id = name('ana')",
    "a fact's value": "UPDATE items SET body = replace(body, 'Lisbon', 'Madrid') WHERE kind = word('fact')",
    "a run's agent": "UPDATE items SET agent_id = name('bob') WHERE kind = word('run') AND user_id = name('ana')",
    "a run's session": "UPDATE items SET session_id = name('bob') WHERE kind = word('run') AND user_id = name('ana')",
    "a run's run": "UPDATE items SET run_id = name('bob') WHERE kind = word('run') AND user_id = name('ana')",
    "a version taken out": "DELETE FROM items WHERE kind = word('run') AND version = 2",
    "a build re-owned": "UPDATE items SET user_id = name('bob') WHERE kind = word('build') AND user_id = name('ana')",
    "a build's run": "UPDATE items SET run_id = name('run-bob') WHERE kind = word('build') AND user_id = name('ana')",
    "a build's packet": "UPDATE items SET body = replace(body, 'Lisbon', 'Madrid') WHERE kind = word('build')",
    "the index emptied": "DELETE FROM segments",
    "the index of another": "UPDATE segments SET data = (SELECT data FROM segments WHERE user_id = name('bob')), "
    "digest = (SELECT digest FROM segments WHERE user_id = name('bob')) WHERE user_id = name('ana')",
}


@pytest.mark.soak
@pytest.mark.parametrize("edit", EDITS)
def test_whatever_was_changed_in_what_is_derived_is_named(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        tell(mem)
        for run in ("run-ana", "run-bob"):
            mem.resume(run).run.finish()
        report = mem.verify()
        assert report.ok
        assert report.derived > 10
    with stored_rows(path) as file:
        assert file.execute(EDITS[edit]).rowcount > 0
    with muniment.open(path) as mem:
        report = mem.verify()
        assert not report.ok
        assert not report.broken
        assert all(each.reason for each in report.differing)
        assert mem.verify(quick=True).sampled


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_engine_proves(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    tell(mem)
    assert mem.verify().ok
    mem._ctx.engine.write("default", lambda tx: tx.do(Delete("links", (("source_id", ">=", ""),))))
    assert {each.kind for each in mem.verify().differing} >= {"fact", "working_state"}
    mem.store.rebuild()
    assert not [each for each in mem.verify().differing if each.kind != "build"]


def test_an_item_that_no_entry_gives_is_named(make: Callable[..., Memory]) -> None:
    from muniment.core.ports.rows import insert, select
    from muniment.core.ports.schema import ITEMS

    mem = make("memory")
    tell(mem)
    engine = mem._ctx.engine
    (fact, *_) = engine.read("default", lambda reader: select(reader, ITEMS, (("kind", "=", "fact"),)))
    engine.write("default", lambda tx: insert(tx, ITEMS, [fact._replace(id="fct_forged")]))
    assert [(each.id, each.reason) for each in mem.verify().differing] == [
        ("fct_forged", "no entry of the ledger says so")
    ]


def test_what_was_forgotten_is_no_difference(any_mem: Memory) -> None:
    tell(any_mem)
    first = next(entry for entry in any_mem.ledger.entries(user_id="ana") if entry.kind == "message")
    any_mem.forget(event=first.id)
    assert any_mem.verify().ok
    any_mem.forget(user_id="bob")
    assert any_mem.verify().ok
    any_mem.store.rebuild()
    assert any_mem.verify().ok


def test_memory_is_bounded_by_what_is_held(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two items the others are read again, and the answer is the same."""
    tell(mem)
    monkeypatch.setattr(replay, "HELD_MAX", 2)
    assert mem.verify().ok
    mem._ctx.engine.write(
        "default", lambda tx: tx.do(Patch("items", (("kind", "=", "fact"),), {"status": "deprecated"}))
    )
    assert not mem.verify().ok


def test_a_quick_one_walks_a_sample_and_says_so(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        mem.run(user_id="ana", session_id=f"s{number:02}").observe("user", f"turn {number}")
    monkeypatch.setattr(verifying, "SAMPLE_SESSIONS", 4)
    quick: Any = mem.verify(quick=True)
    assert (quick.sampled, quick.sessions, quick.derived) == (True, 4, 0)
    whole = mem.verify()
    assert (whole.sampled, whole.sessions) == (False, 12)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_store_whose_policy_indexes_no_turns_is_sound(make: Callable[..., Memory], engine: str) -> None:
    """What its index holds of a time when the policy was another one is checked all the same."""
    mem = make(engine, policy={"ledger": {"index_turns": False}})
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "I live in Lisbon.")
    run.observe_many([{"role": "user", "content": f"Turn {number}."} for number in range(3)])
    assert mem.verify().ok
    mem.store.rebuild()
    run.observe("user", "I moved to Oslo.")
    assert mem.verify().ok
    mem._ctx.engine.write("default", lambda tx: tx.do(Patch("segments", (("user_id", "=", "ana"),), {"data": b"x"})))
    assert [each.kind for each in mem.verify().differing] == ["index"]


def test_receipts_say_whose_they_are_themselves(mem: Memory) -> None:
    tell(mem)
    receipt = mem.forget(user_id="bob")
    assert mem.verify().ok
    where = (("id", "=", receipt.receipt_id), ("version", "=", 2))
    forged = {"user_id": "ana", "status": "done", "trust": "tool", "created_at": "2020-01-01T00:00:00.000000Z"}
    for column, value in forged.items():
        stored: Any = mem._ctx.engine.read("default", lambda reader: latest(reader, receipt.receipt_id))
        mem._ctx.engine.write("default", lambda tx: tx.do(Patch("items", where, {column: value})))  # noqa: B023
        assert [each.id for each in mem.verify().differing] == [receipt.receipt_id]
        mem._ctx.engine.write(
            "default",
            lambda tx: tx.do(Patch("items", where, {column: getattr(stored, column)})),  # noqa: B023
        )
    assert mem.verify().ok


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_tenant_whose_row_was_taken_out_is_named_when_it_is_asked_for(
    make: Callable[..., Memory], engine: str
) -> None:
    """Under row security the list of tenants is all that is seen of them; asked for by name, each is looked at."""
    mem = make(engine)
    mem.run(user_id="ana", session_id="s1", tenant_id="t7").observe("user", "I live in Lisbon.")
    mem._ctx.engine.write("t7", lambda tx: tx.do(Delete("tenants", (("created_at", ">=", ""),))))
    report = mem.verify(tenant_id="t7")
    assert [(each.kind, each.id, each.reason) for each in report.differing] == [("tenant", "t7", "its row is missing")]
    with pytest.raises(UnknownScope):
        mem.verify(tenant_id="t8")


COUNTS: dict[str, Callable[[Transaction], object]] = {
    "too few": lambda tx: tx.do(Patch("users", OF_ANA, {"tail": 3})),
    "none": lambda tx: tx.do(Delete("users", OF_ANA)),
    "more covered than there are": lambda tx: tx.do(Patch("users", OF_ANA, {"indexed": 10_000})),
    "fewer than none covered": lambda tx: tx.do(Patch("users", OF_ANA, {"embedded": -1})),
}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("what", COUNTS)
def test_users_whose_entries_are_not_those_that_were_counted_are_named(
    make: Callable[..., Memory], engine: str, what: str
) -> None:
    mem = make(engine)
    tell(mem)
    assert mem.verify().ok
    mem._ctx.engine.write("default", COUNTS[what])
    assert ("user", "ana") in {(each.kind, each.id) for each in mem.verify().differing}


@pytest.mark.parametrize("number", [0, -1, 10_000])
def test_a_gap_in_the_numbers_of_a_user_s_entries_is_named(tmp_path: Path, number: int) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        tell(mem)
    with stored_rows(tmp_path / "store.db") as file:
        file.execute("UPDATE entries SET n = ? WHERE n = 2 AND user_id = name('ana')", (number,))
    with muniment.open(tmp_path / "store.db") as mem:
        assert ("user", "ana") in {(each.kind, each.id) for each in mem.verify().differing}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_links_that_the_ledger_does_not_give_are_named_and_taken_out(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    tell(mem)
    facts = mem.run(user_id="ana", session_id="s1", run_id="run-ana").facts()
    said = next(entry.id for entry in mem.ledger.entries(user_id="bob"))
    links = [LinkRow(said, fact.fact_id) for fact in facts]
    mem._ctx.engine.write("default", lambda tx: insert(tx, LINKS, links))
    assert {each.id for each in mem.verify().differing} >= {fact.fact_id for fact in facts}
    mem.store.rebuild()
    assert mem.verify().ok
