"""A forget finds what was derived without the links too, and its receipt says what is left (LG-07)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

import muniment
from dump_lines import dump_of, plain, resealed
from muniment.core.ports.engine import Delete, Patch, Transaction
from muniment.core.ports.schema import ITEMS
from muniment.errors import Forgotten, InvalidInput
from muniment.handles.memory import Memory
from muniment.store.items import put_lineage, put_links, row_digest, select_items

pytestmark = pytest.mark.req("LG-07")

SAID = "My allergy is to peanuts, and the clinic is in Lisbon."
ENGINES = ("sqlite", "postgres")


def _tell(mem: Memory) -> tuple[str, str]:
    """An event from which a fact, a state, a procedure, a summary and a build were made; answers it and the build."""
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    run.observe("user", "Hello there, this is Ana speaking to you.")
    said = run.observe("user", SAID).id
    run.remember("user.allergy", "peanuts", sources=[said], quote="peanuts")
    run.patch(decisions=[{"statement": "no peanuts at the party", "evidence_id": said}])
    run.propose("user.clinic", "the clinic in Lisbon", sources=[said])
    run.summarize("Ana told of her allergy to peanuts.", sources=[said])
    build = run.compose("responder", query="What is the allergy to?")
    assert "peanuts" in build.text
    return said, build.id


def _live(mem: Memory, words: str) -> list[str]:
    engine = mem._ctx.engine
    items = engine.read("default", lambda reader: select_items(reader, (("receipt_id", "=", None),)))
    return sorted(f"{item.kind} {item.version}" for item in items if item.body is not None and words in item.body)


def _check_forgotten(mem: Memory, said: str, build: str) -> None:
    receipt = mem.forget(event=said)
    assert {"fact", "build"} <= {gone.kind for gone in receipt.erased}
    assert _live(mem, "peanuts") == []
    assert _live(mem, "clinic in Lisbon") == []
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    assert run.facts(include_all=True) == []
    with pytest.raises(Forgotten):
        mem.replay(build)
    assert "peanuts" not in run.compose("responder", query="What is the allergy to?").text
    entries = list(mem.ledger.entries(user_id="ana"))
    assert not any("peanuts" in str(entry.body) for entry in entries if entry.body is not None)
    mem.store.rebuild()  # the links of what is left
    assert mem.verify().ok


@pytest.mark.parametrize("engine", ENGINES)
def test_without_any_link_a_forget_takes_what_names_the_event(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    said, build = _tell(mem)
    for table in ("links", "lineages"):
        column = "source_id" if table == "links" else "user_id"
        mem._ctx.engine.write("default", lambda tx, t=table, c=column: tx.do(Delete(t, ((c, ">=", ""),))))  # type: ignore[misc]
    _check_forgotten(mem, said, build)


def test_links_that_were_deleted_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        said, build = _tell(mem)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM links")
        file.execute("DELETE FROM lineages")
    with muniment.open(path) as mem:
        _check_forgotten(mem, said, build)
    assert b"peanuts" not in path.read_bytes()


ODD = {
    "plain": "peanuts",
    "an escape": "one line\nand one \\ more of peanuts",
    "a quote": 'they "said" peanuts',
    "a long text": "x" * 400 + " peanuts",
}
"""What stands before an id in a body, by which it might be overlooked."""


@pytest.mark.parametrize("count", [2, 20], ids=["few", "many"])
@pytest.mark.parametrize("event_id", ["e-7", 'e "7"', "e\\7"], ids=["plain id", "quotes in it", "a backslash in it"])
@pytest.mark.parametrize("odd", ODD)
def test_without_links_however_much_was_made_of_an_event(
    make: Callable[..., Memory], odd: str, event_id: str, count: int
) -> None:
    """The entries that told of it rest on another event too, and go as those of what is gone."""
    mem = make("memory")
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    other = run.observe("user", "There was another clinic, in Porto.").id
    said = run.observe("user", SAID, id=event_id).id
    for _ in range(count):
        run.log.conflict(ODD[odd], side_a=[said], side_b=[other])
    for table, column in (("links", "source_id"), ("lineages", "user_id")):
        mem._ctx.engine.write("default", lambda tx, t=table, c=column: tx.do(Delete(t, ((c, ">=", ""),))))  # type: ignore[misc]
    receipt = mem.forget(event=said)
    assert sum(gone.kind == "conflict" for gone in receipt.erased) == count
    assert _live(mem, "peanuts") == []
    assert [entry.id for entry in mem.ledger.entries(user_id="ana") if "peanuts" in str(entry.body)] == []
    assert mem.ledger.get(other).content == "There was another clinic, in Porto."


def test_with_its_links_a_forget_takes_the_same(make: Callable[..., Memory]) -> None:
    """What the bodies add is nothing where the links are whole."""
    erased = []
    for is_linked in (True, False):
        mem = make("memory")
        said, _ = _tell(mem)
        if not is_linked:
            mem._ctx.engine.write("default", lambda tx: tx.do(Delete("links", (("source_id", ">=", ""),))))
            mem._ctx.engine.write("default", lambda tx: tx.do(Delete("lineages", (("user_id", ">=", ""),))))
        erased.append(sorted((gone.kind, gone.id) for gone in mem.forget(event=said).erased))
    assert erased[0] == erased[1]


def test_what_only_mentions_an_id_stays(make: Callable[..., Memory]) -> None:
    mem = make("memory")
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "The name of my cat is e-7, by the way.", id="e-7").id
    other = run.observe("user", "My cat is called e-7 and is quite old.").id
    run.remember("cat.name", "e-7", sources=[other])
    mem.forget(event=said)
    assert [fact.value for fact in run.facts()] == ["e-7"]
    assert run.facts()[0].sources == (other,)


def test_a_receipt_says_where_the_same_words_still_stand(make: Callable[..., Memory]) -> None:
    mem = make("memory")
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    first = run.observe("user", SAID).id
    run.observe("user", f"As I said: {SAID}")
    receipt = mem.forget(event=first)
    assert receipt.counts["left_events"] == 1
    assert "the same words still stand in 1 event not forgotten" in receipt.note
    assert SAID not in receipt.note
    again = mem.forget(user_id="ana")
    assert "left_events" not in again.counts
    assert "still stand" not in again.note


def _strip(path: Path, said: str) -> None:
    """Take out of the file which event a fact was made from: the links, and the id in its body."""
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM links")
        file.execute("UPDATE items SET body = replace(body, ?, 'evt_other') WHERE kind = 'fact'", (said,))


def _allergy(path: Path) -> str:
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1", run_id="r1")
        said = run.observe("user", SAID).id
        run.remember("user.allergy", SAID, sources=[said])
        return said


@pytest.mark.parametrize("is_sealed", [True, False], ids=["sealed anew", "of before digests"])
def test_words_left_in_an_item_that_names_no_source_are_told(tmp_path: Path, is_sealed: bool) -> None:
    """Whoever strips links and ids alike hides where the words came from; that they are there is seen all the same."""
    path = tmp_path / "store.db"
    said = _allergy(path)
    _strip(path, said)
    with muniment.open(path) as mem:
        engine = mem._ctx.engine
        where = (("kind", "=", "fact"),)
        (fact,) = engine.read("default", lambda reader: select_items(reader, where))
        digest = {"digest": row_digest(fact) if is_sealed else None, "checked": fact.checked if is_sealed else 0}
        engine.write("default", lambda tx: tx.do(Patch("items", where, digest)))
    with muniment.open(path) as mem:
        receipt = mem.forget(event=said)
        assert receipt.counts["left_items"] == 1
        assert not receipt.scrubbed
        assert "the same words still stand in 1 item not forgotten" in receipt.note


def test_an_item_that_was_altered_goes_with_what_it_may_hold(tmp_path: Path) -> None:
    """Its row is not what its digest says, so nobody can tell what it was made from: its words do not stay."""
    path = tmp_path / "store.db"
    said = _allergy(path)
    _strip(path, said)
    with muniment.open(path) as mem:
        receipt = mem.forget(event=said)
        assert "fact" in {gone.kind for gone in receipt.erased}
        assert "left_items" not in receipt.counts
        assert "no residue found; the store is damaged" in receipt.note
        assert _live(mem, "peanuts") == []


def test_a_dump_without_its_links_hides_nothing_from_a_forget(make: Callable[..., Memory]) -> None:
    """Links that the ledger gives are made again; a build without the sources that it quotes is refused."""
    here, there = make("memory"), make("memory")
    said, build = _tell(here)
    stripped = [line for line in plain(dump_of(here)) if line.get("table") != "links"]
    with pytest.raises(InvalidInput, match=f"the build '{build}' is not what its ledger gives: its link"):
        there.import_(resealed(stripped))
    there.import_(resealed([line for line in stripped if line.get("row", {}).get("kind") != "build"]))
    assert there.verify().ok
    erased = {gone.kind for gone in there.forget(event=said).erased}
    assert erased >= {"event", "fact"}
    assert _live(there, "peanuts") == []


def test_items_hold_no_words_in_columns() -> None:
    """`_live` looks at bodies alone."""
    assert [column.name for column in ITEMS.columns if column.content] == ["body"]


def _of(mem: Memory, user: str) -> dict[str, list[str]]:
    """What a user says, and what is made of it; answers the ids of each kind."""
    run = mem.run(user_id=user, session_id="s1", run_id=f"run-{user}")
    said = run.observe("user", f"{user} keeps the {user}key under the {user}stone in the garden.").id
    run.remember("user.key", f"{user}key under the {user}stone", sources=[said])
    run.patch(goal=f"find the {user}stone")
    run.compose("planner", query="where is the key?")
    items = mem._ctx.engine.read("default", lambda reader: select_items(reader, (("user_id", "=", user),)))
    ids: dict[str, list[str]] = {"said": [said]}
    for item in items:
        ids.setdefault(item.kind, []).append(item.id)
    ids["patch"] = [entry.id for entry in mem.ledger.entries(user_id=user) if entry.kind == "state_patch"]
    return ids


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
    """Of a store that somebody edited: neither a link nor a lineage takes what another user said."""
    for number, astray in enumerate(LED_ASTRAY.values()):
        mem = make(engine)
        ids = {user: _of(mem, user) for user in ("ana", "bob")}
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
        assert sum("bobstone" in entry for entry in entries) == 3
        mem.close()


LEARNT = "The refund of Quimby went to the zebra account."


def _learn(mem: Memory) -> str:
    """A run that a bank learnt from: an episode, a capsule, a fold and a log, and a second run that recalled them."""
    intent = {"domain_tag": "shop", "task_family": "refund"}
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", LEARNT).id
    run.observe_tool("pay_back", args={"to": "zebra account"}, content="the zebra account was paid", ok=True)
    run.finish(verifier_result={"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}, intent=intent)
    later = mem.run(user_id="ana", session_id="s2", run_id="r2")
    later.observe("user", "Pay the refund back.")
    assert later.learning.recall("Pay the refund back.", intent=intent).hints
    assert {"reasoning 1", "seed 1", "recall 1"} <= set(_live(mem, "zebra"))
    return said


@pytest.mark.parametrize("engine", ENGINES)
def test_without_links_a_forget_takes_what_was_learnt_from_a_run(make: Callable[..., Memory], engine: str) -> None:
    erased = []
    for is_linked in (True, False):
        mem = make(engine)
        said = _learn(mem)
        for table, column in () if is_linked else (("links", "source_id"), ("lineages", "user_id")):
            mem._ctx.engine.write("default", lambda tx, t=table, c=column: tx.do(Delete(t, ((c, ">=", ""),))))  # type: ignore[misc]
        receipt = mem.forget(event=said)
        assert "left_items" not in receipt.counts
        assert _live(mem, "zebra") == []
        assert not any("zebra" in str(entry.body) for entry in mem.ledger.entries(user_id="user:ana") if entry.body)
        erased.append(sorted(gone.kind for gone in receipt.erased))
    assert erased[0] == erased[1]


def test_what_was_learnt_from_other_runs_stays(make: Callable[..., Memory]) -> None:
    mem = make("memory")
    intent = {"domain_tag": "shop", "task_family": "refund"}
    said = []
    for number, words in enumerate(("zebra", "walrus")):
        run = mem.run(user_id="ana", session_id=f"s{number}", run_id=f"r{number}")
        said.append(run.observe("user", f"The refund of Quimby went to the {words} account.").id)
        run.finish(verifier_result={"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}, intent=intent)
    mem._ctx.engine.write("default", lambda tx: tx.do(Delete("links", (("source_id", ">=", ""),))))
    mem.forget(event=said[0])
    assert _live(mem, "zebra") == []
    assert {"reasoning 1", "event_log 1"} <= set(_live(mem, "walrus"))


@pytest.mark.parametrize("event", ["mine", "memory_kept", "run_logged"])
def test_nobody_names_anothers_item_as_made_from_their_event(make: Callable[..., Memory], event: str) -> None:
    """An entry of a caller may say anything; what it says of another's is not believed."""
    mem = make("memory")
    theirs = mem.run(user_id="bob", session_id="b1")
    theirs.observe("user", "I am allergic to peanuts, said Bob.")
    build = theirs.compose("responder", query="What is the allergy to?")
    run = mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", SAID).id
    metadata = {"event": event, "id": build.id, "sources": [said]}
    told = {"kind": "state_patch", "role": "assistant", "content": "x", "metadata": metadata}
    with suppress(InvalidInput):  # the names of our own events are refused
        run.observe_many([told])
    receipt = mem.forget(event=said)
    assert build.id not in {gone.id for gone in receipt.erased}
    assert mem.replay(build.id).text == build.text
