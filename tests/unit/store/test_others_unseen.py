"""What is another's stays unseen, and what was taken away is seen: positions, idempotency keys, others' dumps."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dump_lines import dump_of, plain, resealed
from muniment.core.ports.engine import Delete, Transaction
from muniment.core.ports.rows import insert, select
from muniment.core.ports.schema import IDEMPOTENCY_KEYS
from muniment.errors import MunimentError, StoreDamaged
from muniment.handles.memory import Memory

Maker = Callable[..., Memory]
ENGINES = ("sqlite", "postgres")


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_position_does_not_move_when_another_user_forgets(make: Maker, engine: str) -> None:
    mem = make(engine)
    events = {
        user: [mem.run(user_id=user, session_id="s1").observe("user", f"{user} says {n} words").id for n in range(5)]
        for user in ("ana", "bob")
    }
    at = mem.ledger.changes(user_id="ana").position
    mem.forget(event=events["bob"][0])
    later = mem.ledger.changes(user_id="ana", after=at)
    assert (later.is_empty, later.position) == (True, at)
    mem.forget(user_id="bob", session="s1")
    assert mem.ledger.changes(user_id="ana").position == at
    own = mem.forget(event=events["ana"][1])
    told = mem.ledger.changes(user_id="ana", after=at)
    assert (told.receipts, told.position == at) == ((own.receipt_id,), False)
    assert mem.ledger.changes(user_id="ana").position == told.position
    mem.forget(tenant="default")  # concerns everybody
    assert len(mem.ledger.changes(user_id="ana", after=told.position).receipts) == 1
    assert mem.ledger.changes(user_id="ana", after=told.position).position != told.position


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("whose", ["an event", "a user's event", "a document", "a fact"])
def test_no_number_of_forgets_of_others_moves_a_position(
    make: Maker, monkeypatch: pytest.MonkeyPatch, engine: str, whose: str
) -> None:
    """Those that were remembered by a position are not pushed out by others', whoever keeps the position."""
    for module in ("positions", "changes"):
        monkeypatch.setattr(f"muniment.store.{module}.SEEN_MAX", 4)
    mem = make(engine)
    run = {user: mem.run(user_id=user, session_id="s1") for user in ("ana", "bob")}
    own = [run["ana"].observe("user", f"ana says {n} words").id for n in range(3)]
    first = mem.forget(event=own[0])
    read: list[bool] = []
    at = mem.ledger.changes(user_id="ana").position
    for number in range(6):
        said = run["bob"].observe("user", f"bob says {number} words and more").id
        if whose == "a document":
            mem.corpus("notes").add(f"Notes on {number} teas.", document_id=f"d{number}")
            mem.corpus("notes").forget(f"d{number}")
        elif whose == "a fact":
            mem.forget(fact=run["bob"].remember(f"user.k{number}", "tea", sources=[said]).fact_id)
        else:
            mem.forget(event=said, user_id="bob" if whose == "a user's event" else None)
        later = mem.ledger.changes(user_id="ana", after=at)
        read.append(later.position == at and later.is_empty and mem.ledger.changes(user_id="ana").position == at)
    assert all(read), read
    second = mem.forget(event=own[1])
    told = mem.ledger.changes(user_id="ana", after=at)
    assert (told.receipts, told.reset) == ((second.receipt_id,), False)
    assert first.receipt_id not in told.receipts
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_receipts_of_before_there_were_lists_are_told_once(
    make: Maker, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    """As are those that concern several users: they stand in one list, however long that is."""
    for module in ("positions", "changes"):
        monkeypatch.setattr(f"muniment.store.{module}.SEEN_MAX", 8)
    mem = make(engine)
    run = {user: mem.run(user_id=user, session_id="s1") for user in ("ana", "bob")}

    def forgets(user: str) -> str:
        return mem.forget(event=run[user].observe("user", f"{user} says some words").id).receipt_id

    with monkeypatch.context() as before:
        before.setattr("muniment.store.forget.receipts_of", lambda _: None)
        own = [forgets(user) for user in ("bob", "ana", "bob", "bob", "ana", "bob", "bob")][1]
        at = mem.ledger.changes(user_id="ana").position
        for _ in range(2):
            later = mem.ledger.changes(user_id="ana", after=at)
            assert (later.is_empty, later.position) == (True, at)
        new = forgets("ana")
        told = mem.ledger.changes(user_id="ana", after=at)
        assert (told.receipts, told.reset) == ((new,), False)
    after = [forgets(user) for user in ("bob", "ana", "bob")][1]
    then = mem.ledger.changes(user_id="ana", after=told.position)
    assert (then.receipts, then.reset) == ((after,), False)
    assert mem.ledger.changes(user_id="ana", after=then.position).is_empty
    assert own not in (*told.receipts, *then.receipts)
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("LG-05", "LG-06")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("edit", ["deleted", "named otherwise", "given to another event"])
def test_an_idempotency_key_that_is_deleted_or_altered_is_missed(make: Maker, engine: str, edit: str) -> None:
    mem = make(engine)
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    unkeyed = run.observe("user", "said without a key")
    keyed = run.observe("user", "said under a key", idempotency_key="k1")
    run.observe_many([{"role": "user", "content": f"turn {n}", "idempotency_key": f"m{n}"} for n in range(3)])
    mem.run(user_id="bob", session_id="s1").observe("user", "said by another", idempotency_key="k1")
    assert run.observe("user", "said under a key", idempotency_key="k1").id == keyed.id
    assert mem.verify().ok
    lines = dump_of(mem)
    own = (("entry_id", "=", keyed.id),)
    (row,) = mem._ctx.engine.read("default", lambda reader: select(reader, IDEMPOTENCY_KEYS, own))
    altered = row._replace(key_hash=b"0" * 32) if edit == "named otherwise" else row._replace(entry_id=unkeyed.id)

    def damage(tx: Transaction) -> None:
        tx.do(Delete("idempotency_keys", own))
        if edit != "deleted":
            insert(tx, IDEMPOTENCY_KEYS, [altered])

    mem._ctx.engine.write("default", damage)
    (fault,) = mem.verify().differing
    assert (fault.kind, fault.id, fault.reason) == ("idempotency", "ana", "an idempotency key is missing or altered")
    with pytest.raises(StoreDamaged, match="idempotency key"):
        dump_of(mem)
    copy = make(engine, seed="copy")
    copy.import_(lines)
    assert copy.verify().ok
    copy.forget(event=keyed.id)
    assert copy.verify().ok


@pytest.mark.req("LG-06")
def test_two_stores_that_used_a_key_each_are_one_whole(make: Maker) -> None:
    one, other = make("memory", seed="one"), make("memory", seed="other")
    for mem, session in ((one, "s1"), (other, "s2")):
        mem.run(user_id="ana", session_id=session).observe("user", f"said in {session}", idempotency_key="same")
    other.import_(dump_of(one))
    assert other.verify().ok


@pytest.mark.req("LG-02", "LG-08")
def test_a_dump_of_another_tenant_is_refused_however_it_is_renamed(make: Maker) -> None:
    """Whole, in part, or mixed among the target's own lines; the digest is right each time."""
    source, target = make("memory", seed="a"), make("memory", seed="b")
    for mem, tenant in ((source, "acme"), (target, "umbrella")):
        run = mem.run(tenant_id=tenant, user_id="ana", session_id=f"s-{tenant}", run_id=f"r-{tenant}")
        said = run.observe("user", f"the vault of {tenant} is blue", idempotency_key="k")
        run.remember("user.vault", "blue", sources=[said.id])
        run.compose("planner", query="vault?")
    theirs, ours = plain(dump_of(source, tenant_id="acme")), plain(dump_of(target, tenant_id="umbrella"))

    def renamed(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [json.loads(json.dumps(line).replace("acme", "umbrella")) for line in lines]

    header = ours[0]
    mixed = [
        [header, *theirs[1:]],
        renamed(theirs),
        [header, *sorted([*theirs[1:-1], *ours[1:-1]], key=lambda line: _order(line)), ours[-1]],
        [header, *sorted([*renamed(theirs[1:-1]), *ours[1:-1]], key=lambda line: _order(line)), ours[-1]],
        [header, *[line for line in renamed(theirs)[1:-1] if line["table"] in ("sessions", "entries")], ours[-1]],
        [*ours[:-1], *[line for line in renamed(theirs)[1:-1] if line["table"] in ("items", "links")], ours[-1]],
    ]
    before = dump_of(target, tenant_id="umbrella")
    for lines in mixed:
        with pytest.raises(MunimentError) as caught:
            target.import_(resealed(lines))
        assert caught.value.code in ("chain_broken", "invalid_dump", "store_damaged", "conflict", "invalid_input")
        assert caught.value.message
        assert dump_of(target, tenant_id="umbrella") == before


def _order(line: dict[str, Any]) -> int:
    tables = ("sessions", "entries", "blobs", "items", "links", "parts", "marks", "idempotency")
    return tables.index(line["table"])


@pytest.mark.req("LG-08")
def test_an_import_says_that_proofs_were_made_anew(make: Maker) -> None:
    source, target = make("memory", seed="a"), make("memory", seed="b")
    run = source.run(user_id="ana", session_id="s1")
    gone = run.observe("user", "the vault is blue")
    run.compose("planner", query="vault?")
    source.forget(event=gone.id)
    report = target.import_(dump_of(source))
    assert report.proven == 3  # the build, and the receipt before and after the files were scrubbed
    assert "proofs" not in report.written
    assert target.verify().ok
    assert target.import_(dump_of(source)).proven == 0
