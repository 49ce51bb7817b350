"""Projections can be thrown away: rebuild makes them again, to the byte, from the ledger alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import Delete, Insert, Patch, Select, Transaction
from muniment.errors import StoreDamaged
from muniment.handles.memory import Memory
from muniment.testing.engine_contract import row_with

DAMAGE: dict[str, Callable[[Transaction], Any]] = {
    "items dropped": lambda tx: tx.do(Delete("items", (("kind", "=", "run"),))),
    "one version dropped": lambda tx: tx.do(Delete("items", (("version", "=", 2),))),
    "bodies altered": lambda tx: tx.do(Patch("items", (("kind", "=", "run"),), {"body": "{}"})),
    "bodies lost": lambda tx: tx.do(Patch("items", (("id", "=", "r1"),), {"body": None})),
    "status altered": lambda tx: tx.do(Patch("items", (("kind", "=", "run"),), {"status": "open"})),
    "kind altered": lambda tx: tx.do(Patch("items", (("id", "=", "r1"),), {"kind": "other"})),
    "trust raised": lambda tx: tx.do(Patch("items", (("id", "=", "r2"),), {"trust": "external"})),
    "moved to another user": lambda tx: tx.do(Patch("items", (("id", "=", "r2"),), {"user_id": "eve"})),
    "links dropped": lambda tx: tx.do(Delete("links", (("item_id", ">=", ""),))),
    "a run nobody started": lambda tx: tx.do(
        Insert(
            "items", [row_with("items", id="ghost", version=1, kind="run", trust="user", body="{}", receipt_id=None)]
        )
    ),
}


def exported(mem: Memory) -> bytes | None:
    """The dump of a store; None where it is refused, since an item is not as it was written."""
    try:
        return b"".join(mem.export())
    except StoreDamaged:
        return None


@pytest.mark.soak
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_dropped_or_altered_comes_back_the_same(any_mem: Memory, damage: str) -> None:
    for number, user in enumerate(("ana", "bob", "ana"), 1):
        run = any_mem.run(user_id=user, session_id="s1", run_id=f"r{number}", objective=f"objective {number}")
        run.observe("user", "x")
        if number != 3:
            run.finish("NO_EVIDENCE")
    whole = b"".join(any_mem.export())
    untouched = any_mem.store.rebuild()
    assert (untouched.items, untouched.repaired) == (3, ())
    any_mem._ctx.engine.write("default", DAMAGE[damage])
    assert exported(any_mem) != whole
    report = any_mem.store.rebuild()
    assert b"".join(any_mem.export()) == whole
    assert report.repaired
    assert any_mem.store.rebuild().repaired == ()
    assert any_mem.verify().ok


def test_what_a_forget_touched_stays_as_the_forget_left_it(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="secret objective")
    run.observe("user", "x")
    opening = next(iter(run.ledger.entries()))
    mem.forget(event=opening.id)
    mem.run(user_id="bob", run_id="r2").observe("user", "x")
    mem.forget(user_id="bob")
    before = b"".join(mem.export())
    assert mem.store.rebuild().repaired == ()
    assert b"".join(mem.export()) == before
    assert b"secret objective" not in before


def test_rebuilding_one_tenant_leaves_the_other(mem: Memory) -> None:
    for tenant in ("default", "acme"):
        mem.run(user_id="ana", tenant_id=tenant, run_id=f"r-{tenant}").observe("user", "x")
        mem._ctx.engine.write(tenant, lambda tx: tx.do(Patch("items", (("kind", "=", "run"),), {"body": "{}"})))
    assert mem.store.rebuild(tenant_id="acme").repaired == ("r-acme",)
    (item,) = mem._ctx.engine.read("default", lambda reader: reader.do(Select("items")))
    assert item[11] == "{}"


def test_an_entry_that_only_looks_like_a_runs_does_not_stop_a_rebuild(mem: Memory) -> None:
    """Brought by an import, say: the ledger is right, but what it says about a run makes no sense."""
    from muniment.store.append import append
    from muniment.store.ledger import EntryDraft

    run = mem.run(user_id="ana", run_id="r1", objective="mine")
    run.observe("user", "x")
    for metadata in (
        {"event": "run_finished"},
        {"event": "run_finished", "stop_reason": 5},
        {"event": "run_started", "task_type": 5},
    ):
        append(
            mem._ctx, run.scope, [EntryDraft(kind="system", role="system", content="", metadata=metadata)], run._opening
        )
    assert mem.store.rebuild().repaired == ()
    assert run.state().objective == "mine"  # type: ignore[union-attr]
    assert not run.state().is_finished  # type: ignore[union-attr]
