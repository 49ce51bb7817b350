"""Forgetting (LG-07): afterwards no query returns it, and no search through the bytes of the store finds it."""

from __future__ import annotations

import hashlib
import itertools
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.ports.engine import Get, Insert, Patch, Row, Select, Transaction
from muniment.core.ports.schema import TABLES, Table, column_names
from muniment.errors import Forgotten, InvalidInput, NotFound, UnknownScope
from muniment.handles.derived import derivations
from muniment.handles.memory import Memory
from muniment.store.answers import CLEARED
from muniment.store.derivation import Derivation, Lookup, declare
from muniment.store.engines import _sqlite_residue
from muniment.store.engines.codec import encode_id
from muniment.store.items import Change, Item, latest, receipts_of
from muniment.store.ledger import LedgerEntry, Receipt
from muniment.testing.engine_contract import row_with
from products import for_each

Maker = Callable[..., Memory]

# Columns with text or bytes that hold nothing that was said. Whoever adds a column either marks it `content` or
# writes here why it may stay when everything else goes.
STAYS = {
    "backlog": {"user_id": "a name", "session_id": "a name"},
    "tenants": {"created_at": "when the tenant's first session began"},
    "users": {"user_id": "a name"},
    "sessions": {
        "user_id": "a name",
        "session_id": "a name",
        "head_hash": "covers content only through a salted hash",
        "head_recorded_at": "a time",
        "created_at": "a time",
    },
    "entries": {
        "id": "an id",
        "user_id": "a name",
        "agent_id": "a name",
        "session_id": "a name",
        "run_id": "an id",
        "ts": "a time",
        "recorded_at": "a time",
        "kind": "of a list",
        "role": "of a list",
        "trust": "of a list",
        "flags": "of a list",
        "content_hash": "salted, and the salt goes",
        "prev_hash": "of headers",
        "hash": "of the header",
        "receipt_id": "an id",
    },
    "blobs": {"hash": "salted, and the salt goes", "entry_id": "an id"},
    "parts": {"owner": "an id", "hash": "salted, and the salt goes", "receipt_id": "an id"},
    "proofs": {
        "user_id": "a name",
        "session_id": "a name",
        "item_id": "an id",
        "digest": "salted, and the salt goes",
        "hash": "of digests",
    },
    "items": {
        "id": "an id",
        "kind": "of a list",
        "user_id": "a name",
        "agent_id": "a name",
        "session_id": "a name",
        "run_id": "an id",
        "status": "of a list",
        "name": "a digest",
        "created_at": "a time",
        "trust": "of a list",
        "receipt_id": "an id",
        "digest": "a digest, emptied with the body",
        "owner": "a name",
        "placed_at": "a time",
    },
    "links": {"source_id": "an id", "item_id": "an id"},
    "lineages": {"item_id": "an id", "user_id": "a name", "turns": "ids"},
    "marks": {"user_id": "a name", "session_id": "a name", "evidence_id": "an id"},
    "item_terms": {"owner": "a name", "placed_at": "a time", "item_id": "an id"},
    "episodes": {"user_id": "a name", "session_id": "a name", "started_at": "a time", "ended_at": "a time"},
    "statements": {"user_id": "a name"},
    "places": {
        "entry_id": "an id",
        "user_id": "a name",
        "session_id": "a name",
        "space": "a name",
        "path": "names of namespaces or threads, dropped with the row",
        "name": "a digest, or the id of a checkpoint",
    },
    "prefixes": {"space": "a name", "prefix": "names of namespaces, dropped with the row", "entry_id": "an id"},
    "place_vectors": {"entry_id": "an id", "embedder": "a name", "digest": "a digest, dropped with the row"},
    "segments": {"user_id": "a name", "digest": "of the block, which is made again without what went"},
    "vectors": {"user_id": "a name", "embedder": "a name", "digest": "of the block, which is made again"},
    "idempotency_keys": {"user_id": "a name", "key_hash": "a digest of the key, never of content", "entry_id": "an id"},
    "works": {
        "id": "an id",
        "name": "of a list",
        "user_id": "a name",
        "status": "of a list",
        "started_at": "a time",
        "finished_at": "a time",
    },
    "leases": {"id": "an id", "tenant": "a name", "owner": "a process"},
    "replies": {"user_id": "a name", "key_hash": "a digest of the key, never of content", "created_at": "a time"},
    "rates": {"name": "of a key"},
    "keys": {"key_id": "an id", "body": "a key of the server, which is nobody's evidence"},
}


def bytes_of(folder: Path) -> bytes:
    """Every file of the store: database, log, shared memory, whatever else lies there.

    Read by another process: to close a file that SQLite has open in this one would drop its locks.
    """
    return subprocess.run(
        ["find", folder, "-type", "f", "-exec", "cat", "{}", ";"], stdout=subprocess.PIPE, check=True
    ).stdout


def everything(mem: Memory, tenant_id: str = "default") -> str:
    """All that any table answers."""

    def rows(reader: Any) -> list[Row]:
        return [row for spec in TABLES for row in reader.do(Select(spec.name))]

    return repr(mem._ctx.engine.read(tenant_id, rows))


def markers(seed: str, count: int = 1) -> list[str]:
    """Random words nobody says, every second one Chinese."""
    chance = random.Random(seed)
    return [
        "mk" + "".join(chance.choices("0123456789abcdef", k=24))
        if number % 2 == 0
        else "标记" + "".join(chr(chance.randrange(0x4E00, 0x9FA5)) for _ in range(12))
        for number in range(count)
    ]


# -- the registry


@pytest.mark.req("LG-07")
@for_each("spec", TABLES, ids=lambda spec: spec.name)
def test_every_table_says_what_a_forget_does_to_it(spec: Table) -> None:
    content = [column for column in spec.columns if column.content]
    plain = {column.name for column in spec.columns if not column.content and column.type in ("text", "bytes")}
    assert plain == set(STAYS.get(spec.name, {})), "decide whether the new column holds content, then write it down"
    assert spec.forget in ("erase", "drop", "keep", "reindex", "clear")
    if spec.forget == "keep":
        assert not content
        return
    indexed = {name for path in (spec.key, *spec.unique, *spec.indexes) for name in path}
    assert not indexed & {column.name for column in content}, "an index cell that moves leaves its bytes behind"
    if spec.forget == "reindex":
        return
    if spec.forget == "clear":
        assert spec.name in CLEARED
        assert all(column.nullable for column in content)
        return
    assert spec.subject in column_names(spec)
    if spec.forget == "erase":
        assert all(column.nullable for column in content)
        assert content, "nothing to erase"


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("how", ["event", "user_id", "session", "tenant"])
def test_no_content_column_of_any_table_survives(tmp_path: Path, how: str) -> None:
    """A marker in every content column of every table that has a subject, found by that subject alone."""
    words = iter(markers(how, 100))
    used: list[bytes] = []

    def marked(column: Any) -> str | bytes:
        word = next(words)
        used.append(word.encode())
        return word.encode() if column.type == "bytes" else f'{{"content":"{word}"}}' if column.name == "body" else word

    with muniment.open(tmp_path / "store.db") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        said = run.observe("user", "the subject")
        mem.run(user_id="bob", session_id="s2").observe("user", "bob stays", id="bob")
        tables = 0

        def plant(tx: Transaction) -> None:
            nonlocal tables
            for spec in TABLES:
                if spec.subject is None and spec.forget != "clear":
                    continue
                tables += 1
                values = {column.name: marked(column) for column in spec.columns if column.content}
                if spec.subject is None:
                    tx.do(Insert(spec.name, [row_with(spec.name, user_id="ana", **values)]))
                    continue
                if spec.name == "entries":
                    tx.do(Patch("entries", (("id", "=", said.id),), values))
                else:
                    tx.do(Insert(spec.name, [row_with(spec.name, **{spec.subject: said.id}, **values)]))

        mem._ctx.engine.write("default", plant)
        assert tables >= 4
        assert all(word in bytes_of(tmp_path) for word in used)
        selector = {"event": said.id, "user_id": "ana", "session": "s1", "tenant": "default"}[how]
        receipt = mem.forget(**{how: selector})  # type: ignore[arg-type]
        assert "the store is damaged" in receipt.note, "the planted rows are nobody's"
        left = everything(mem)
        for word in used:
            assert word.decode() not in left
            assert word not in bytes_of(tmp_path), word.decode()
        if how != "tenant":
            assert mem.ledger.content("bob") == "bob stays"
    for word in used:
        assert word not in bytes_of(tmp_path)


@pytest.mark.req("LG-07")
def test_what_was_made_from_words_is_emptied_with_them(any_mem: Memory) -> None:
    """Mutation: a forget leaves the digest of an item's name, so that whoever guesses a key can confirm it."""
    emptied = [(spec, column.name) for spec in TABLES for column in spec.columns if column.cleared]
    assert [(spec.name, name) for spec, name in emptied] == [("items", "name"), ("items", "digest")]
    run = any_mem.run(user_id="ana", session_id="s1")
    said = run.observe("user", "I live in Berlin.")
    fact = run.remember("user.city", "Berlin", sources=[said.id])

    def rows(reader: Any) -> list[Any]:
        return reader.do(Select("items", where=(("id", "=", fact.fact_id),), columns=("name", "receipt_id", "digest")))

    before = any_mem._ctx.engine.read("default", rows)
    assert before
    assert all(None not in (name, digest) for name, _, digest in before)
    receipt = any_mem.forget(event=said.id)
    after = any_mem._ctx.engine.read("default", rows)
    assert [row[:2] for row in after] == [(None, receipt.receipt_id)] * len(before)
    assert not {row[2] for row in after} & {row[2] for row in before}, "the digest is of what is left"


# -- what a forget does


@pytest.mark.req("LG-07")
def test_an_event_goes_and_its_place_stays(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1")
    said = [
        run.observe("user", word, idempotency_key=word, metadata={"w": word}, tags=[word])
        for word in ("one", "two", "three")
    ]
    large = run.observe("user", "large" * 20_000)
    receipt = any_mem.forget(event=said[1].id)
    gone = any_mem.ledger.get(said[1].id)
    assert gone.is_forgotten
    assert (gone.content, gone.tags, gone.metadata, gone.receipt_id) == (None, (), {}, receipt.receipt_id)
    assert (gone.hash, gone.content_hash, gone.prev_hash, gone.ts) == (
        said[1].hash,
        said[1].content_hash,
        said[1].prev_hash,
        said[1].ts,
    )
    assert {"entries": 1, "idempotency_keys": 1}.items() <= receipt.counts.items()
    assert receipt.to_wire() | {"note": "", "scrubbed": True, "counts": {}} == {
        "receipt_id": receipt.receipt_id,
        "tenant_id": "default",
        "requested_at": receipt.requested_at,
        "selector": {"tenant_id": "default", "event": said[1].id},
        "erased": [{"kind": "event", "id": said[1].id, "hash": said[1].hash}],
        "counts": {},
        "scrubbed": True,
        "note": "",
        "concerns": receipts_of("ana"),
    }
    for read in (any_mem.ledger.content, any_mem.ledger.resolve, run.ledger.content, run.ledger.resolve):
        with pytest.raises(Forgotten) as caught:
            read(said[1].id)
        assert caught.value.details["receipt_id"] == receipt.receipt_id
    assert [entry.content for entry in run.ledger.entries()] == ["", "one", None, "three", None]
    assert "two" not in everything(any_mem)
    blob_receipt = any_mem.forget(event=large.id)
    assert {"entries": 1, "blobs": 1}.items() <= blob_receipt.counts.items()
    assert "largelarge" not in everything(any_mem)
    report = any_mem.verify()
    assert (report.ok, report.forgotten) == (True, 2)
    run.observe("user", "and it goes on")
    assert any_mem.verify().ok


@pytest.mark.req("LG-07")
def test_receipts_are_stored_and_hold_no_content(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", objective="the objective")
    run.observe("user", "the words")
    receipt = any_mem.forget(user_id="ana")
    item = any_mem._ctx.engine.read("default", lambda reader: latest(reader, receipt.receipt_id))
    assert item is not None
    assert Receipt.from_wire(item.plain()) == receipt
    assert {(one.kind, one.id) for one in receipt.erased} == {
        ("run", run.run_id),
        *(("event", entry.id) for entry in run.ledger.entries()),
    }
    assert receipt.selector == {"tenant_id": "default", "user_id": "ana"}
    assert "the words" not in str(receipt.to_wire())
    assert "the objective" not in everything(any_mem)


@pytest.mark.req("LG-07")
def test_session_user_and_tenant_take_what_is_theirs_and_no_more(any_mem: Memory) -> None:
    for user, session, tenant in itertools.product(("ana", "bob"), ("s1", "s2"), ("default", "acme")):
        any_mem.run(user_id=user, session_id=session, tenant_id=tenant).observe("user", f"{user}-{session}-{tenant}")

    def left() -> set[str]:
        return {
            entry.content
            for user, tenant in itertools.product(("ana", "bob"), ("default", "acme"))
            for entry in any_mem.ledger.entries(user_id=user, tenant_id=tenant)
            if entry.content
        }

    everyone = left()
    assert len(everyone) == 8
    any_mem.forget(session="s1", user_id="ana")
    assert everyone - left() == {"ana-s1-default"}
    any_mem.forget(user_id="bob")
    assert everyone - left() == {"ana-s1-default", "bob-s1-default", "bob-s2-default"}
    any_mem.forget(tenant="default")
    assert left() == {word for word in everyone if word.endswith("acme")}
    any_mem.forget(user_id="ana", tenant_id="acme")
    assert left() == {"bob-s1-acme", "bob-s2-acme"}
    assert any_mem.verify().ok


@pytest.mark.req("LG-07")
def test_what_cannot_be_forgotten(mem: Memory) -> None:
    for user in ("ana", "bob"):
        mem.run(user_id=user, session_id="s1").observe("user", "x", id=f"e-{user}")
    with pytest.raises(InvalidInput) as caught:
        mem.forget(session="s1")
    assert caught.value.path == "$.user_id"
    for selector in ({"user_id": "no"}, {"session": "no"}, {"tenant": "no"}, {"session": "s1", "user_id": "no"}):
        with pytest.raises(UnknownScope):
            mem.forget(**selector)  # type: ignore[arg-type]
    for selector in ({"event": "no"}, {"event": "e-ana", "user_id": "bob"}, {"fact": "e-ana"}, {"fact": "no"}):
        with pytest.raises(NotFound):
            mem.forget(**selector)  # type: ignore[arg-type]
    assert mem.verify().forgotten == 0


@pytest.mark.req("LG-07")
def test_forgetting_twice_erases_nothing_twice(mem: Memory) -> None:
    said = mem.run(user_id="ana", session_id="s1").observe("user", "x")
    first = mem.forget(event=said.id)
    second = mem.forget(event=said.id)
    third = mem.forget(user_id="ana")
    assert (second.erased, second.counts) == ((), {})
    assert said.id not in {one.id for one in third.erased}
    assert mem.ledger.get(said.id).receipt_id == first.receipt_id
    fourth = mem.forget(user_id="ana")
    assert fourth.erased == ()


@pytest.mark.req("LG-07")
def test_the_run_goes_on_after_its_opening_entry_went(any_mem: Memory) -> None:
    run = any_mem.run(
        user_id="ana", session_id="s1", objective="secret aim", task_type="secret kind", done_definition={"x": "secret"}
    )
    run.observe("user", "x")
    any_mem.forget(event=next(iter(run.ledger.entries())).id)
    state = run.state()
    assert state is not None
    assert (state.objective, state.done_definition, state.task_type) == (None, None, "generic")
    assert "secret" not in everything(any_mem)
    run.observe("user", "y")
    assert run.finish().is_finished
    assert any_mem.verify().ok
    assert any_mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("how", ["session", "user_id", "tenant"])
def test_the_run_goes_on_after_all_of_it_went(any_mem: Memory, how: str) -> None:
    run = any_mem.run(user_id="ana", session_id="s1", objective="secret aim")
    run.observe("user", "x")
    any_mem.forget(**{how: {"session": "s1", "user_id": "ana", "tenant": "default"}[how]})  # type: ignore[arg-type]
    assert run.state() is None
    again = any_mem.run(**run.scope.to_wire())
    said = again.observe("user", "new words")
    assert said.seq == 3
    state = again.finish("HUMAN_REQUESTED")
    assert (state.stop_reason, state.objective) == ("HUMAN_REQUESTED", None)
    assert run.state() == state
    assert any_mem.ledger.content(said.id) == "new words"
    assert any_mem.verify().ok


# -- what was derived


def _note(entry: LedgerEntry, _lookup: Lookup) -> list[Change]:
    return [_change(f"note-{entry.id}", "note", {"text": entry.content}, entry, (entry.id,))]


def _digest(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    before = lookup("digest")
    parts = before.plain()["parts"] if before is not None and before.body is not None else {}
    return [_change("digest", "digest", {"parts": parts | {entry.id: entry.content}}, entry, (entry.id,))]


def _copy(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Knows the digest alone: no link leads from the entry to it."""
    digest = lookup("digest")
    assert digest is not None
    text = " ".join(map(str, digest.plain()["parts"].values()))
    return [_change("copy", "copy", {"text": text}, entry, ("digest",))]


def _echo(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    return [_change(f"echo-{entry.id}", "echo", {"text": entry.content}, entry, (f"note-{entry.id}",))]


def _change(id_: str, kind: str, body: dict[str, Any], entry: LedgerEntry, sources: tuple[str, ...]) -> Change:
    return Change(
        id=id_,
        kind=kind,
        status="active",
        body=body,
        created_at=entry.recorded_at,
        trust=entry.trust,
        sources=sources,
        user_id=entry.scope.user_id,
        session_id=entry.scope.session_id,
    )


def _digest_without(item: Item, lost: frozenset[str]) -> dict[str, Any] | None:
    parts = {source: text for source, text in item.plain()["parts"].items() if source not in lost}
    return {"parts": parts} if parts else None


def _gone(_item: Item, _lost: frozenset[str]) -> dict[str, Any] | None:
    return None


MESSAGES = frozenset({"message"})
DERIVED = derivations() | declare(
    Derivation("note", without=_gone, listens=MESSAGES, project=_note),  # type: ignore[arg-type]
    Derivation("digest", without=_digest_without, listens=MESSAGES, project=_digest),  # type: ignore[arg-type]
    Derivation("copy", without=_gone, listens=MESSAGES, project=_copy),  # type: ignore[arg-type]
    Derivation("echo", without=_gone, listens=MESSAGES, project=_echo),  # type: ignore[arg-type]
)


@pytest.fixture(params=["sqlite", "postgres"])
def deriving(request: pytest.FixtureRequest, make: Maker) -> Memory:
    return make(request.param, derivations=DERIVED)


def body_of(mem: Memory, item_id: str) -> dict[str, Any] | None:
    item = mem._ctx.engine.read("default", lambda reader: latest(reader, item_id))
    return None if item is None or item.body is None else item.plain()


@pytest.mark.req("LG-07")
def test_what_was_derived_is_erased_or_rewritten_however_far_away(deriving: Memory) -> None:
    run = deriving.run(user_id="ana", session_id="s1")
    one, two = run.observe("user", "alpha-word"), run.observe("user", "beta-word")
    assert body_of(deriving, "copy") == {"text": "alpha-word beta-word"}
    receipt = deriving.forget(event=one.id)
    assert "alpha-word" not in everything(deriving)
    assert body_of(deriving, "digest") == {"parts": {two.id: "beta-word"}}, "it can stand, without the lost part"
    assert body_of(deriving, f"note-{two.id}") == {"text": "beta-word"}
    assert body_of(deriving, f"note-{one.id}") is None
    assert body_of(deriving, f"echo-{one.id}") is None, "derived from an item that was erased"
    assert body_of(deriving, "copy") is None, "derived from an item that was rewritten"
    assert {(gone.kind, gone.id) for gone in receipt.erased} == {
        ("event", one.id),
        ("note", f"note-{one.id}"),
        ("echo", f"echo-{one.id}"),
        ("copy", "copy"),
    }
    deriving.forget(event=two.id)
    assert body_of(deriving, "digest") is None
    assert "beta-word" not in everything(deriving)
    assert deriving.verify().ok
    assert deriving.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
def test_an_erased_item_says_which_receipt_erased_it(deriving: Memory) -> None:
    run = deriving.run(user_id="ana", session_id="s1")
    said = run.observe("user", "alpha-word")
    receipt = deriving.forget(event=said.id)
    item = deriving._ctx.engine.read("default", lambda reader: latest(reader, f"note-{said.id}"))
    assert item is not None
    with pytest.raises(Forgotten) as caught:
        item.plain()
    assert caught.value.details["receipt_id"] == receipt.receipt_id


@pytest.mark.req("LG-07")
def test_an_item_of_a_kind_nobody_declares_any_more_is_erased(make: Maker, tmp_path: Path) -> None:
    mem = make("sqlite", derivations=DERIVED)
    said = mem.run(user_id="ana", session_id="s1").observe("user", "alpha-word")
    with muniment.open(mem.info.location) as plain:
        plain.forget(event=said.id)
        assert "alpha-word" not in everything(plain)


@pytest.mark.req("LG-07")
def test_forgetting_a_derived_item_leaves_its_source(deriving: Memory) -> None:
    from muniment.store.forget import Selector, forget

    run = deriving.run(user_id="ana", session_id="s1")
    said = run.observe("user", "alpha-word")
    receipt = forget(deriving._ctx, "default", Selector(item=("note", f"note-{said.id}")))
    assert {gone.id for gone in receipt.erased} == {f"note-{said.id}", f"echo-{said.id}"}
    assert deriving.ledger.content(said.id) == "alpha-word"


# -- the bytes


def store_of_many(folder: Path, events: int, users: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Events of several users, interleaved, in all parts of a body, some in blobs. User → markers, user → ids."""
    said: dict[str, list[str]] = {f"u{number}": markers(f"user {number}", events // users) for number in range(users)}
    ids: dict[str, list[str]] = {user: [] for user in said}
    with muniment.open(folder / "store.db", clock=TickingClock()) as mem:
        runs = {user: mem.run(user_id=user, session_id="s") for user in said}
        for number in range(0, events // users, 5):
            for user, run in runs.items():
                batch = []
                for word in said[user][number : number + 5]:
                    shape = len(ids[user]) + len(batch)
                    event: dict[str, Any] = {"role": "user", "content": word}
                    if shape % 7 == 1:
                        event = {
                            "role": "user",
                            "content": "",
                            "metadata": {"deep": [{"x": word}]},
                            "idempotency_key": word,
                        }
                    elif shape % 7 == 2:
                        event = {"role": "user", "content": "", "tags": [word], "speaker": word}
                    elif shape % 7 == 3:
                        event["content"] = f"{word} " + "filler " * (shape % 900)
                    elif shape % 97 == 4:
                        event["content"] = f"{word} " * 3000
                    elif shape % 7 == 5:
                        event |= {"role": "tool", "tool": {"name": "t", "ok": True, "args": {"q": word}}}
                    batch.append(event)
                ids[user] += [entry.id for entry in run.observe_many(batch)]
    return said, ids


@pytest.mark.req("LG-07")
def test_three_thousand_events_of_which_one_user_goes(tmp_path: Path) -> None:
    said, ids = store_of_many(tmp_path, 3000, 6)
    before = bytes_of(tmp_path)
    assert all(word.encode() in before for words in said.values() for word in words[:40])
    with muniment.open(tmp_path / "store.db") as mem:
        contents = {id_: mem.ledger.content(id_) for id_ in ids["u2"]}
        receipt = mem.forget(user_id="u2")
        assert receipt.status == "complete"
        assert len(receipt.erased) == 500 + 2
        after = bytes_of(tmp_path)
        assert mem.verify().ok
        for user in ("u0", "u1", "u3"):
            read = repr(
                [
                    (entry.body, mem.ledger.content(entry.id))
                    for entry in mem.ledger.entries(user_id=user)
                    if entry.kind != "system"
                ]
            )
            assert all(word in read for word in said[user])
    for data in (after, bytes_of(tmp_path)):
        found = set(re.findall(rb"mk[0-9a-f]{24}", data))
        assert not found & {word.encode() for word in said["u2"]}
        assert len(found) >= 5 * 240, "of others' words, all but those that lie across two pages"
        assert not [word for word in said["u2"] if not word.isascii() and word.encode() in data]
        for text in [*contents.values()][:80]:
            if text:
                assert hashlib.sha256(text.encode()).digest() not in data
                assert hashlib.sha256(text.encode()).hexdigest().encode() not in data
        for word in said["u2"][1::7]:  # used as idempotency keys
            assert hashlib.sha256(word.encode()).digest() not in data


@pytest.mark.req("LG-07")
def test_one_event_after_the_other_leaves_no_bytes_either(tmp_path: Path) -> None:
    """Short bodies, whose tombstones are longer than they were: rows grow, pages split, cells move."""
    with muniment.open(tmp_path / "store.db") as mem:
        run = mem.run(user_id="ana", session_id="s")
        words = [f"m{number:05d}k" for number in range(600)]
        entries = run.observe_many([{"role": "user", "content": word} for word in words])
        for entry in entries[::3]:
            assert mem.forget(event=entry.id).scrubbed
        data = bytes_of(tmp_path)
        found = set(re.findall(rb"m\d{5}k", data))
        assert found == {word.encode() for at, word in enumerate(words) if at % 3}
        assert mem.verify().ok


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("seed", range(2))
def test_forgets_among_other_work_leave_no_bytes(tmp_path: Path, seed: int) -> None:
    """No forget looks through the file or rebuilds it: rows are overwritten where they lie."""
    chance = random.Random(seed)
    live: dict[str, tuple[str, str]] = {}
    gone: list[bytes] = []

    def word() -> str:
        return f"zq{chance.randbytes(chance.choice((4, 5, 12))).hex()}qz"

    with muniment.open(tmp_path / "store.db") as mem:
        runs = {user: mem.run(user_id=user, session_id="s", run_id=f"run-{user}") for user in ("ana", "bob", "eve")}
        for step in range(150):
            user, run = chance.choice(list(runs.items()))
            if step < 5 or chance.random() < 0.45:
                words = [word() for _ in range(chance.choice((1, 1, 3, 20)))]
                bodies = [f"{each} " * chance.choice((1, 1, 2, 40, 900)) for each in words]
                entries = run.observe_many([{"role": "user", "content": body} for body in bodies])
                live |= {entry.id: (user, each) for entry, each in zip(entries, words, strict=True)}
            elif chance.random() < 0.5:
                said = chance.choice([id_ for id_, (owner, _) in live.items() if owner == user] or [None])
                if said is not None:
                    run.remember(f"word.{chance.randrange(5)}", live[said][1], sources=[said])
                run.patch(goal=word())
                run.compose("responder", query=chance.choice(list(live.values()))[1])
            else:
                said = chance.choice(list(live))
                salt = mem._ctx.engine.read("default", lambda reader, id_=said: reader.do(Get("entries", (id_,))))[15]  # type: ignore[misc]
                receipt = mem.forget(event=said)
                assert receipt.note == "the rows were overwritten and the log emptied"
                gone += [salt, live.pop(said)[1].encode()]
        data = bytes_of(tmp_path)
        assert len(gone) > 20
        assert not [each for each in gone if each in data]
        assert mem.verify().ok


@pytest.mark.req("LG-07")
def test_objectives_leave_no_bytes_after_a_rebuild_moved_them(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        words = markers("objectives", 300)
        for number, word in enumerate(words):
            run = mem.run(
                user_id=f"u{number % 3}",
                session_id=f"s{number}",
                run_id=f"r{number:03d}",
                objective=f"{word} {'.' * (number % 200)}",
            )
            run.finish()
        mem._ctx.engine.write(
            "default",
            lambda tx: [tx.do(Patch("items", (("id", "=", f"r{n:03d}"),), {"status": "x"})) for n in range(0, 300, 2)],
        )
        assert len(mem.store.rebuild().repaired) == 150
        mem.forget(user_id="u1")
        data = bytes_of(tmp_path)
        left = [word for number, word in enumerate(words) if number % 3 == 1 and word.encode() in data]
        assert left == []


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN")
print(db.execute("SELECT count(*) FROM entries").fetchone()[0], flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def soon_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds the log open in these tests keeps holding it: nothing is won by waiting for them."""
    monkeypatch.setattr(_sqlite_residue, "_CHECKPOINT_WAIT_S", 0.1)


@pytest.fixture
def reader(tmp_path: Path, soon_given_up: None) -> Iterator[Callable[[], Callable[[], None]]]:
    """`hold = reader()`: another process with a view from before; `hold()` lets it go."""
    held: list[subprocess.Popen[str]] = []

    def start() -> Callable[[], None]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / "store.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        held.append(process)
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        return lambda: process.communicate("\n", timeout=30) and None

    yield start
    for process in held:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.req("LG-07")
def test_a_receipt_is_truthful_while_another_process_still_reads_the_old_state(
    tmp_path: Path, reader: Callable[[], Callable[[], None]]
) -> None:
    word = markers("held")[0]
    with muniment.open(tmp_path / "store.db") as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe_many([{"role": "user", "content": f"{word} {number}"} for number in range(200)])
        let_go = reader()
        receipt = mem.forget(user_id="ana")
        assert word not in everything(mem)
        assert word.encode() in bytes_of(tmp_path), "else this test tests nothing"
        assert (receipt.scrubbed, receipt.status) == (False, "pending")
        assert re.search(r"(process \d+|a reader) holds the write-ahead log open", receipt.note)
        stored = mem._ctx.engine.read("default", lambda tx: latest(tx, receipt.receipt_id))
        assert stored is not None
        assert stored.plain()["scrubbed"] is False
        let_go()


@pytest.mark.req("LG-07")
def test_the_next_forget_cleans_up_behind_a_reader_that_left(
    tmp_path: Path, reader: Callable[[], Callable[[], None]]
) -> None:
    word = markers("left")[0]
    with muniment.open(tmp_path / "store.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe("user", word)
        other = mem.run(user_id="bob", session_id="s2").observe("user", "x")
        let_go = reader()
        mem.forget(user_id="ana")
        let_go()
        assert mem.forget(event=other.id).scrubbed
        assert word.encode() not in bytes_of(tmp_path)


@pytest.mark.req("LG-07")
def test_a_scrub_settles_the_receipts_that_waited_for_a_reader(
    tmp_path: Path, reader: Callable[[], Callable[[], None]]
) -> None:
    word = markers("settled")[0]
    with muniment.open(tmp_path / "store.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe_many([{"role": "user", "content": word}] * 50)
        let_go = reader()
        receipt = mem.forget(user_id="ana")
        assert not receipt.scrubbed
        held = mem.store.scrub()
        assert (held.due, held.receipts) == (True, 0)
        assert "holds the write-ahead log open" in held.note
        let_go()
        done = mem.store.scrub()
        assert (done.clean, done.due, done.receipts) == (True, False, 1)
        assert word.encode() not in bytes_of(tmp_path)
        stored = mem._ctx.engine.read("default", lambda tx: latest(tx, receipt.receipt_id))
        assert stored is not None
        assert stored.plain() == receipt.to_wire() | {"scrubbed": True, "note": done.note}
        assert mem.store.scrub().receipts == 0


@pytest.mark.req("LG-07")
def test_asking_again_while_the_reader_is_still_there_is_answered_truthfully(
    tmp_path: Path, reader: Callable[[], Callable[[], None]]
) -> None:
    word = markers("again")[0]
    with muniment.open(tmp_path / "store.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe_many([{"role": "user", "content": word}] * 50)
        reader()
        assert not mem.forget(user_id="ana").scrubbed
        assert word.encode() in bytes_of(tmp_path)
        assert not mem.forget(user_id="ana").scrubbed


@pytest.mark.req("LG-07")
def test_a_receipt_is_truthful_while_an_export_of_this_process_is_under_way(
    tmp_path: Path, soon_given_up: None
) -> None:
    word = markers("export")[0]
    with muniment.open(tmp_path / "store.db") as mem:
        mem.run(user_id="ana", session_id="s1").observe_many(
            [{"role": "user", "content": f"{word} {n}"} for n in range(2000)]
        )
        export = mem.export()
        next(export)
        receipt = mem.forget(user_id="ana")
        assert receipt.scrubbed == (word.encode() not in bytes_of(tmp_path))
        assert word.encode() in b"".join(export), "the view stays as it was"
        mem.run(user_id="bob").observe("user", "x")
        mem.forget(user_id="bob")
        assert word.encode() not in bytes_of(tmp_path)


@pytest.mark.req("LG-07")
def test_what_is_kept_says_nothing_about_what_was_there(tmp_path: Path) -> None:
    """Someone who guesses the content cannot confirm it: no hash that stays is of the content without the salt."""
    with muniment.open(tmp_path / "store.db", ids=CountingIds()) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        small = run.observe("user", "yes", idempotency_key="yes")
        large = run.observe("user", "no" * 40_000)
        kept = [
            mem._ctx.engine.read("default", lambda tx, id_=id_: tx.do(Get("entries", (id_,))))
            for id_ in (small.id, large.id)
        ]
        mem.forget(user_id="ana")
    data = bytes_of(tmp_path)
    for guess in ("yes", '{"content":"yes"}', "no" * 40_000):
        for digest in (hashlib.sha256(guess.encode()), hashlib.sha1(guess.encode()), hashlib.md5(guess.encode())):
            assert digest.digest() not in data
            assert digest.hexdigest().encode() not in data
    for row in kept:
        assert row is not None
        assert row[15] not in data, "the salt is gone"
        assert row[14] in data, "the hash is not"
    with closing(sqlite3.connect(tmp_path / "store.db")) as db:
        assert db.execute("SELECT count(*) FROM entries WHERE body IS NOT NULL OR salt IS NOT NULL").fetchone() == (0,)


@pytest.mark.req("LG-05", "LG-07")
def test_a_faked_forget_is_found(tmp_path: Path) -> None:
    """Emptying an entry by hand needs a receipt: one that is made up is counted, and the index still has the words; one
    of something else is refused."""
    path = tmp_path / "store.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        kept, gone = run.observe("user", "keep me"), run.observe("user", "forget me")
        mem.store.index()
        receipt = mem.forget(event=gone.id)
        assert (mem.verify().ok, mem.verify().unreceipted) == (True, 0)
        for receipt_id, ok, unreceipted in (("rcp_invented", False, 1), (receipt.receipt_id, False, 0)):
            with closing(sqlite3.connect(path)) as db, db:
                db.execute(
                    "UPDATE entries SET body = NULL, salt = NULL, receipt_id = ? WHERE id = ?",
                    (encode_id(receipt_id), encode_id(kept.id)),
                )
            report = mem.verify()
            assert (report.ok, report.unreceipted) == (ok, unreceipted)
            if receipt_id == "rcp_invented":
                assert [each.kind for each in report.differing] == ["index"]
        assert report.broken[0].reason == "its receipt does not list it"
