"""A forget in a store that somebody edited: it leaves other users alone, and its receipt does not claim too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dump_lines import dump_of, plain, resealed
from muniment.core.ports.engine import Delete, Patch, Transaction
from muniment.core.ports.rows import get, insert
from muniment.core.ports.schema import ENTRIES
from muniment.errors import InvalidInput
from muniment.handles.memory import Memory
from muniment.store.items import put_lineage, put_links, select_items

pytestmark = pytest.mark.req("LG-07")

ENGINES = ("memory", "sqlite", "postgres")


def _fill(mem: Memory, user: str) -> dict[str, list[str]]:
    """What a user says, and what is made of it; answers the ids of each kind."""
    run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}")
    said = [run.observe("user", f"{user} keeps the {user}key under the {user}stone in the garden.").id]
    run.remember("user.key", f"{user}key under the {user}stone", sources=said)
    run.patch(goal=f"find the {user}stone")
    run.compose("planner", query="where is the key?")
    said += [run.observe("user", f"{user} has {number} {user}stones.").id for number in range(3)]
    items = mem._ctx.engine.read("default", lambda reader: select_items(reader, (("user_id", "=", user),)))
    ids: dict[str, list[str]] = {"said": said}
    for item in items:
        ids.setdefault(item.kind, []).append(item.id)
    ids["patch"] = [entry.id for entry in mem.ledger.entries(user_id=user) if entry.kind == "state_patch"]
    return ids


def _live(mem: Memory, words: str) -> list[str]:
    items = mem._ctx.engine.read("default", lambda reader: select_items(reader, (("receipt_id", "=", None),)))
    return sorted(f"{item.kind} {item.version}" for item in items if item.body is not None and words in item.body)


Edit = Callable[[Transaction], object]


def _edit(mem: Memory, edit: Edit) -> None:
    mem._ctx.engine.write("default", edit)
    mem._ctx.clear_caches()


def _alter(table: str, id_: str, **values: Any) -> Edit:
    return lambda tx: tx.do(Patch(table, (("id", "=", id_),), values))


def _delete(column: str, value: str) -> Edit:
    return lambda tx: tx.do(Delete("entries", ((column, "=", value),)))


def _move(id_: str, to: str) -> Edit:
    """Give an entry to another user, behind all of theirs."""

    def edit(tx: Transaction) -> None:
        row = get(tx, ENTRIES, (id_,))
        assert row is not None
        tx.do(Delete("entries", (("id", "=", id_),)))
        insert(tx, ENTRIES, [row._replace(user_id=to, seq=90, n=90)])

    return edit


LED_ASTRAY = {
    "an event to another's fact": lambda ana, bob: (ana["said"], bob["fact"]),
    "an event to another's state": lambda ana, bob: (ana["said"], bob["working_state"]),
    "an event to another's packet": lambda ana, bob: (ana["said"], bob["build"]),
    "a fact to another's packet": lambda ana, bob: (ana["fact"], bob["build"]),
    "another's patches to a fact": lambda ana, bob: (bob["patch"], ana["fact"]),
    "another's patches to a state": lambda ana, bob: (bob["patch"], ana["working_state"]),
    "another's event to a packet": lambda ana, bob: (bob["said"], ana["build"]),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_link_between_two_users_leads_nowhere(make: Callable[..., Memory], engine: str) -> None:
    for number, astray in enumerate(LED_ASTRAY.values()):
        mem = make(engine)
        ids = {user: _fill(mem, user) for user in ("ana", "bob")}
        sources, items = astray(ids["ana"], ids["bob"])

        def edit(tx: Transaction, sources: list[str] = sources, items: list[str] = items, number: int = number) -> None:
            for item in items:
                put_links(tx, item, sources)
                if number % 2:  # and in the other form that lineage has
                    put_lineage(tx, item, "ana", sources)

        mem._ctx.engine.write("default", edit)
        receipt = mem.forget(user_id="ana") if number % 3 else mem.forget(event=ids["ana"]["said"][0])
        assert not {gone.id for gone in receipt.erased} & {id_ for held in ids["bob"].values() for id_ in held}
        assert (_live(mem, "anakey"), len(_live(mem, "bobkey"))) == ([], 2), list(LED_ASTRAY)[number]
        entries = [str(entry.body) for entry in mem.ledger.entries(user_id="bob")]
        assert sum("bobstone" in entry for entry in entries) == 6
        mem.close()


EDITS: dict[str, Callable[[dict[str, list[str]], dict[str, list[str]]], Edit]] = {
    "an event given to another": lambda ana, _: _move(ana["said"][1], "bob"),
    "an event of another's taken": lambda _, bob: _move(bob["said"][1], "ana"),
    "an event deleted": lambda ana, _: _delete("id", ana["said"][1]),
    "the last event deleted": lambda ana, _: _delete("id", ana["said"][3]),
    "a session without entries": lambda *_: _delete("user_id", "ana"),
    "the content replaced": lambda ana, _: _alter("entries", ana["said"][1], body='{"content":"other"}'),
    "emptied by hand": lambda ana, _: _alter("entries", ana["said"][1], receipt_id="rcp_forged"),
    "a fact given to another": lambda ana, _: _alter("items", ana["fact"][0], user_id="bob"),
    "a fact of another's taken": lambda _, bob: _alter("items", bob["fact"][0], user_id="ana"),
    "a fact altered": lambda ana, _: _alter("items", ana["fact"][0], body='{"value":"x"}'),
}


@pytest.mark.parametrize("how", EDITS)
def test_damage_in_scope_is_in_the_receipt(make: Callable[..., Memory], how: str) -> None:
    """Whatever was edited, nothing of another's goes, and the receipt is not complete."""
    mem = make("memory")
    ids = {user: _fill(mem, user) for user in ("ana", "bob")}
    _edit(mem, EDITS[how](ids["ana"], ids["bob"]))
    receipt = mem.forget(user_id="ana")
    assert not {gone.id for gone in receipt.erased} & {id_ for held in ids["bob"].values() for id_ in held}
    assert receipt.counts["left_damaged"] >= 1
    assert not receipt.scrubbed
    assert "the store is damaged" in receipt.note


@pytest.mark.parametrize("how", ["the content replaced", "emptied by hand"])
def test_a_damaged_event_can_be_forgotten(make: Callable[..., Memory], how: str) -> None:
    mem = make("memory")
    ids = {user: _fill(mem, user) for user in ("ana", "bob")}
    _edit(mem, EDITS[how](ids["ana"], ids["bob"]))
    receipt = mem.forget(event=ids["ana"]["said"][1])
    assert ids["ana"]["said"][1] in {gone.id for gone in receipt.erased}
    assert (receipt.counts["left_damaged"], receipt.scrubbed) == (1, False)


def test_an_altered_item_goes_with_its_event(make: Callable[..., Memory]) -> None:
    """Nothing says what it was made from but its evidence, so its words do not stay."""
    mem = make("memory")
    ids = {user: _fill(mem, user) for user in ("ana", "bob")}
    _edit(mem, _alter("items", ids["ana"]["fact"][0], body='{"value":"anakey"}'))
    receipt = mem.forget(event=ids["ana"]["said"][0])
    assert ids["ana"]["fact"][0] in {gone.id for gone in receipt.erased}
    assert not receipt.scrubbed
    assert _live(mem, "anakey") == []


def test_what_only_mentions_an_id_stays(make: Callable[..., Memory]) -> None:
    mem = make("memory")
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "The name of my cat is e-7, by the way.", id="e-7").id
    other = run.observe("user", "My cat is called e-7 and is quite old.").id
    run.remember("cat.name", "e-7", sources=[other])
    mem.forget(event=said)
    assert [fact.value for fact in run.facts()] == ["e-7"]
    assert run.facts()[0].sources == (other,)


def test_a_dump_without_its_links_hides_nothing_from_a_forget(make: Callable[..., Memory]) -> None:
    """Links that the ledger gives are made again; a build without the sources that it quotes is refused."""
    here, there = make("memory"), make("memory")
    ids = _fill(here, "ana")
    (build,) = ids["build"]
    stripped = [line for line in plain(dump_of(here)) if line.get("table") != "links"]
    with pytest.raises(InvalidInput, match=f"the build '{build}' is not what its ledger gives: its link"):
        there.import_(resealed(stripped))
    there.import_(resealed([line for line in stripped if line.get("row", {}).get("kind") != "build"]))
    assert there.verify().ok
    erased = {gone.kind for gone in there.forget(event=ids["said"][0]).erased}
    assert erased >= {"event", "fact"}
    assert _live(there, "anakey") == []
