"""Nothing crosses a tenant or a user: tested by trying, through every read, forget, export and import (LG-02)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.scope import EventSpan
from muniment.errors import DuplicateId, InvalidInput, NotFound, UnknownScope
from muniment.handles.memory import Memory

SECRET = "ana's own words"


@pytest.fixture
def ana(any_mem: Memory) -> Any:
    """Ana of two tenants, each with a small event and a large one, and the ids of the default tenant's."""
    for tenant in ("default", "acme"):
        run = any_mem.run(user_id="ana", session_id="s1", tenant_id=tenant, run_id=f"run-{tenant}", objective=SECRET)
        run.observe("user", f"{SECRET} {tenant}", id=f"e-{tenant}", idempotency_key="k")
        run.observe("user", f"{SECRET} {tenant}" * 5000, id=f"b-{tenant}")
    return any_mem


@pytest.mark.req("LG-02")
def test_another_tenant_finds_nothing(ana: Memory) -> None:
    attempts: list[Callable[[], Any]] = []
    for id_ in ("e-default", "b-default"):
        attempts += [
            lambda id_=id_: ana.ledger.get(id_, tenant_id="acme"),
            lambda id_=id_: ana.ledger.content(id_, tenant_id="acme"),
            lambda id_=id_: ana.ledger.resolve(id_, tenant_id="acme"),
            lambda id_=id_: ana.ledger.resolve(EventSpan(event_id=id_, quote=SECRET), tenant_id="acme"),
            lambda id_=id_: ana.forget(event=id_, tenant_id="acme"),
            lambda id_=id_: ana.forget(event=id_, user_id="ana", tenant_id="acme"),
            lambda id_=id_: ana.run(user_id="ana", tenant_id="acme").ledger.get(id_),
            lambda id_=id_: ana.run(user_id="ana", tenant_id="acme").ledger.content(id_),
            lambda id_=id_: ana.run(user_id="ana", tenant_id="acme").ledger.resolve(id_),
        ]
    for attempt in attempts:
        with pytest.raises(NotFound) as caught:
            attempt()
        assert SECRET not in str(caught.value.to_dict())
    assert all("default" not in (entry.content or "") for entry in ana.ledger.entries(user_id="ana", tenant_id="acme"))
    assert b"default" not in b"".join(ana.export(tenant_id="acme"))
    for selector in (
        {"tenant_id": "nobody", "user_id": "ana"},
        {"tenant": "nobody"},
        {"tenant_id": "nobody", "session": "s1"},
    ):
        with pytest.raises(UnknownScope):
            ana.forget(**selector)  # type: ignore[arg-type]
    with pytest.raises(UnknownScope):
        list(ana.export(tenant_id="nobody"))
    with pytest.raises(UnknownScope):
        ana.verify(tenant_id="nobody")
    assert list(ana.ledger.entries(user_id="ana", tenant_id="nobody")) == []
    assert ana.store.rebuild(tenant_id="nobody").items == 0
    assert ana.store.tenants() == ["acme", "default"]


@pytest.mark.req("LG-02")
def test_another_user_finds_nothing(ana: Memory) -> None:
    bob = ana.run(user_id="bob", session_id="s1")
    bob.observe("user", "bob's", idempotency_key="k")
    for id_ in ("e-default", "b-default"):
        for attempt in (
            lambda id_=id_: bob.ledger.get(id_),
            lambda id_=id_: bob.ledger.content(id_),
            lambda id_=id_: bob.ledger.resolve(id_),
            lambda id_=id_: bob.ledger.resolve(EventSpan(event_id=id_, quote=SECRET)),
            lambda id_=id_: ana.forget(event=id_, user_id="bob"),
        ):
            with pytest.raises(NotFound) as caught:
                attempt()
            assert SECRET not in str(caught.value.to_dict())
    assert [entry.content for entry in ana.ledger.entries(user_id="bob")] == ["", "bob's"]
    assert [entry.content for entry in ana.ledger.entries(user_id="bob", session_id="s1")] == ["", "bob's"]
    for scope in ({"user_id": "bob"}, {"user_id": "bob", "session_id": "s1"}):
        dump = b"".join(ana.export(**scope))  # type: ignore[arg-type]
        assert b"ana" not in dump
        assert b"e-default" not in dump
    with pytest.raises(UnknownScope):
        list(ana.export(user_id="bob", session_id="s2"))


@pytest.mark.req("LG-02")
def test_a_session_of_two_users_is_exported_or_forgotten_only_by_saying_whose(ana: Memory) -> None:
    ana.run(user_id="bob", session_id="s1").observe("user", "bob's")
    for attempt in (lambda: list(ana.export(session_id="s1")), lambda: ana.forget(session="s1")):
        with pytest.raises(InvalidInput) as caught:
            attempt()
        assert caught.value.path == "$.user_id"
    ana.forget(session="s1", user_id="bob")
    assert ana.ledger.content("e-default") == f"{SECRET} default"
    ana.run(user_id="cleo", session_id="only hers").observe("user", "cleo's")
    dump = b"".join(ana.export(session_id="only hers"))
    assert b"cleo's" in dump
    assert b'"scope":{"session_id":"only hers","user_id":"cleo"}' in dump
    assert b"ana" not in dump


@pytest.mark.req("LG-02")
def test_forgetting_in_one_scope_leaves_the_others(ana: Memory) -> None:
    ana.run(user_id="bob", session_id="s1").observe("user", "bob's", id="e-bob")
    ana.forget(user_id="ana")
    assert ana.ledger.content("e-bob") == "bob's"
    assert ana.ledger.content("e-acme", tenant_id="acme") == f"{SECRET} acme"
    assert ana.ledger.content("b-acme", tenant_id="acme") == f"{SECRET} acme" * 5000
    ana.forget(tenant="default")
    assert ana.ledger.content("e-acme", tenant_id="acme") == f"{SECRET} acme"
    assert ana.verify().ok


@pytest.mark.req("LG-02", "X-09")
def test_a_run_that_another_user_took_meanwhile_shows_nothing_of_theirs(mem: Memory) -> None:
    eve = mem.run(user_id="eve", session_id="s", run_id="r1")
    mem.run(user_id="ana", session_id="s", run_id="r1", objective=SECRET).observe("user", "x")
    for attempt in (eve.finish, lambda: eve.observe("user", "y")):
        with pytest.raises(DuplicateId) as caught:
            attempt()
        assert SECRET not in str(caught.value.to_dict())
    assert list(eve.ledger.entries()) == []
    assert eve.state() is None


@pytest.mark.req("LG-02", "X-09")
def test_a_log_that_another_user_began_meanwhile_shows_nothing_of_theirs(mem: Memory) -> None:
    eve = mem.run(user_id="eve", session_id="s", run_id="r1")
    ana = mem.run(user_id="ana", session_id="s", run_id="r1", objective=SECRET)
    said, asked = ana.observe("user", SECRET), ana.observe("user", f"{SECRET}?")
    ana.log.claim(SECRET, evidence=[said.id])
    ana.log.conflict(SECRET, side_a=[said.id], side_b=[asked.id])
    ana.log.failure("TOOL_ERROR", where="here", why=SECRET, evidence=[said.id])
    ana.log.question(f"{SECRET}?")
    ana.log.compact()
    for told in (eve.log.claims, eve.log.conflicts, eve.log.failures, eve.log.questions, eve.verifications):
        assert list(told()) == []
    assert SECRET not in str(eve.log.read())
    assert eve.log.budgets() == mem.run(user_id="eve", session_id="s").log.budgets()


@pytest.mark.req("LG-02")
def test_a_dump_is_imported_into_its_own_tenant_and_no_other(ana: Memory, make: Any) -> None:
    lines = list(ana.export(tenant_id="acme", user_id="ana"))
    there = make("sqlite")
    there.import_(lambda: lines)
    assert there.store.tenants() == ["acme"]
    with pytest.raises(NotFound):
        there.ledger.get("e-acme")
    assert there.ledger.content("e-acme", tenant_id="acme") == f"{SECRET} acme"
