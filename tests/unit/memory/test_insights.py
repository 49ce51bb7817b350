"""Insights (MP-12) and procedures (MP-10): their life, their end, their promotion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.contracts.packet import Fact, Procedure
from muniment.core.outside.system import TickingClock
from muniment.core.policy import FactPolicy
from muniment.errors import Conflict, Forbidden, InvalidInput, MunimentError, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.packets.gather import load_stores
from muniment.packets.pool import InsightCandidate, ProcedureCandidate
from products import for_each

Counts = Callable[[Memory], dict[str, int]]


def insights(mem: Memory, run: Run) -> list[InsightCandidate]:
    return mem._ctx.engine.read(
        run.scope.tenant_id, lambda reader: list(load_stores(reader, run.scope, FactPolicy()).insights)
    )


def procedures(mem: Memory, run: Run) -> list[ProcedureCandidate]:
    return mem._ctx.engine.read(
        run.scope.tenant_id, lambda reader: list(load_stores(reader, run.scope, FactPolicy()).procedures)
    )


# -- insights -----------------------------------------------------------------------------------------


@pytest.mark.req("MP-12")
def test_an_insight_starts_as_a_supposition_and_is_judged_on_evidence(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe("user", "no steak for me")
    made = run.insight(
        "hypothesis", "she may be vegetarian", sources=[said.id], trigger="synthesis", tests_suggested=["ask her"]
    )
    assert made.to_wire() == {
        "id": made.id,
        "type": "hypothesis",
        "statement": "she may be vegetarian",
        "trigger": "synthesis",
        "confidence": 0.3,
        "validation_state": "unvalidated",
        "tests_suggested": ["ask her"],
        "expires_at": "run_end",
        "sources": [said.id],
    }
    assert run.memory.judge_insight(made.id, "testing", reason="asked").validation_state == "testing"
    yes = run.observe("user", "yes, I am vegetarian")
    assert run.memory.judge_insight(made.id, "validated", sources=[yes.id]).validation_state == "validated"
    (found,) = insights(any_mem, run)
    assert found.insight.validation_state == "validated"
    assert found.trust == "assistant"  # a supposition, whoever gave the evidence
    assert not found.run_is_finished


@pytest.mark.req("MP-12")
@pytest.mark.parametrize("state", ["validated", "rejected", "true", None])
def test_no_insight_is_born_validated(mem: Memory, counts: Counts, state: Any) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    before = counts(mem)
    with pytest.raises(MunimentError):
        run.insight("pattern", "x", sources=[said.id], validation_state=state)
    assert counts(mem) == before
    assert run.insight("pattern", "x", validation_state="testing").validation_state == "testing"


@pytest.mark.req("MP-12")
def test_validating_takes_evidence_and_rejecting_is_final(mem: Memory, counts: Counts) -> None:
    run, other = mem.run(user_id="ana"), mem.run(user_id="bob")
    said, theirs = run.observe("user", "x"), other.observe("user", "x")
    made = run.insight("strategy", "ask first")
    before = counts(mem)
    with pytest.raises(InvalidInput):
        run.memory.judge_insight(made.id, "validated")
    with pytest.raises(NotFound):
        run.memory.judge_insight(made.id, "validated", sources=[theirs.id])
    with pytest.raises(NotFound):
        other.memory.judge_insight(made.id, "rejected")
    with pytest.raises(MunimentError):
        run.memory.judge_insight(made.id, "proven", sources=[said.id])  # type: ignore[arg-type]
    supposed = next(entry for entry in run.ledger.entries() if entry.kind == "state_patch")
    with pytest.raises(InvalidInput):  # its own writing is no evidence for it
        run.memory.judge_insight(made.id, "validated", sources=[supposed.id])
    assert counts(mem) == before
    run.memory.judge_insight(made.id, "rejected", reason="wrong")
    for state in ("unvalidated", "testing", "validated"):
        with pytest.raises(Conflict):
            run.memory.judge_insight(made.id, state, sources=[said.id])  # type: ignore[arg-type]
    with pytest.raises(Conflict):
        run.memory.promote_insight(made.id, key="k")


@pytest.mark.req("MP-12")
def test_promotion_only_from_validated_with_all_its_evidence(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said, shown = run.observe("user", "no steak"), run.observe("user", "I am vegetarian")
    made = run.insight("hypothesis", "vegetarian", sources=[said.id])
    for state in (None, "testing"):
        if state is not None:
            run.memory.judge_insight(made.id, "testing")
        with pytest.raises(Conflict):
            run.memory.promote_insight(made.id, key="user.diet")
        with pytest.raises(Conflict):
            run.memory.promote_insight(made.id, task_type="cooking")
    run.memory.judge_insight(made.id, "validated", sources=[shown.id])
    for bad in ({}, {"key": "a", "task_type": "b"}, {"key": ""}, {"task_type": ""}, {"key": "a", "scope_level": "x"}):
        with pytest.raises(MunimentError):
            run.memory.promote_insight(made.id, **bad)  # type: ignore[arg-type]
    with pytest.raises(Forbidden):
        run.memory.promote_insight(made.id, key="user.diet", scope_level="tenant")
    fact = run.memory.promote_insight(made.id, key="user.diet")
    assert isinstance(fact, Fact)
    assert (fact.value, fact.sources) == ("vegetarian", (said.id, shown.id))
    with pytest.raises(Conflict):
        run.memory.promote_insight(made.id, task_type="cooking")
    assert any_mem.store.rebuild().repaired == ()


@pytest.mark.req("MP-12", "LG-08")
def test_a_promoted_insight_does_not_overrule_what_the_user_said(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "I eat everything")
    run.remember("user.diet", "everything", sources=[said.id])
    made = run.insight("hypothesis", "vegetarian", sources=[said.id])
    run.memory.judge_insight(made.id, "validated", sources=[said.id])
    fact = run.memory.promote_insight(made.id, key="user.diet")
    assert isinstance(fact, Fact)
    assert fact.status == "disputed"
    assert [each.value for each in run.facts("user.diet")] == ["everything"]


def test_an_insight_becomes_a_procedure(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    said = run.observe("user", "always confirm")
    made = run.insight("strategy", "confirm the date first")
    run.memory.judge_insight(made.id, "validated", sources=[said.id])
    procedure = run.memory.promote_insight(made.id, task_type="booking")
    assert isinstance(procedure, Procedure)
    assert procedure.content == {"statement": "confirm the date first"}
    assert procedure.sources == (said.id,)


@pytest.mark.req("MP-12")
def test_run_end_comes_with_the_run_even_from_another_process(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with muniment.open(path) as here, muniment.open(path) as there:
        run = here.run(user_id="ana", session_id="s1")
        said = run.observe("user", "x")
        ends = run.insight("hypothesis", "ends", sources=[said.id])
        stays = run.insight("hypothesis", "stays", expires_at="2999-01-01")
        there.run(user_id="ana", session_id="s1", run_id=run.run_id).finish()
        later = here.run(user_id="ana", session_id="s2")
        found = {each.insight.id: each for each in insights(here, later)}
        assert found[ends.id].run_is_finished
        assert found[stays.id].insight.expires_at == "2999-01-01T00:00:00.000000Z"
        with pytest.raises(Conflict):
            later.memory.judge_insight(ends.id, "validated", sources=[said.id])
        assert later.memory.judge_insight(stays.id, "validated", sources=[said.id]).validation_state == "validated"
        assert isinstance(later.memory.promote_insight(stays.id, key="k"), Fact)
        assert here.store.rebuild().repaired == ()


@pytest.mark.req("MP-12")
def test_an_instant_is_the_end_too(make: Callable[..., Memory]) -> None:
    clock = TickingClock(datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=0))
    mem = make(clock=clock)
    run = mem.run(user_id="ana")
    said = run.observe("user", "x")
    made = run.insight("hypothesis", "x", expires_at=datetime(2026, 1, 2, tzinfo=UTC))
    clock.set(datetime(2026, 1, 2, tzinfo=UTC))
    run.memory.judge_insight(made.id, "validated", sources=[said.id])
    clock.set(datetime(2026, 1, 2, 0, 0, 1, tzinfo=UTC))
    with pytest.raises(Conflict):
        run.memory.promote_insight(made.id, key="k")


@for_each(
    "wrong",
    [
        {"type_": "fact"},
        {"type_": None},
        {"statement": 5},
        {"statement": None},
        {"sources": ["evt_none"]},
        {"sources": "evt"},
        {"trigger": "mood"},
        {"confidence": 2},
        {"confidence": float("inf")},
        {"tests_suggested": "ask"},
        {"expires_at": "whenever"},
        {"expires_at": 5},
    ],
)
def test_bad_insights_write_nothing(mem: Memory, counts: Counts, wrong: dict[str, Any]) -> None:
    run = mem.run(user_id="ana")
    run.observe("user", "x")
    before = counts(mem)
    given: dict[str, Any] = {"type_": "hypothesis", "statement": "x"} | wrong
    with pytest.raises(MunimentError):
        run.insight(**given)
    assert counts(mem) == before


@pytest.mark.req("LG-02")
def test_insights_are_the_users_own(mem: Memory) -> None:
    run = mem.run(user_id="ana")
    run.insight("hypothesis", "x")
    assert insights(mem, mem.run(user_id="bob")) == []
    assert insights(mem, mem.run(user_id="ana", agent_id="other")) == []
    assert insights(mem, mem.run(user_id="ana", tenant_id="acme")) == []
    assert len(insights(mem, mem.run(user_id="ana"))) == 1


# -- procedures ---------------------------------------------------------------------------------------


@pytest.mark.req("MP-10")
def test_procedures_by_priority_then_usage(any_mem: Memory) -> None:
    run = any_mem.run(user_id="ana")
    said = run.observe("user", "always ask first")
    low = run.procedure("booking", {"steps": ["a"]}, sources=[said.id])
    used = run.procedure("booking", {"steps": ["b"]})
    high = run.procedure("booking", {"steps": ["c"]}, priority=5, applicability={"role": "host"})
    retired = run.procedure("booking", {"steps": ["d"]}, priority=9)
    run.memory.use_procedures([used.procedure_id])
    run.memory.use_procedures([used.procedure_id, low.procedure_id])
    run.memory.retire_procedure(retired.procedure_id)
    found = procedures(any_mem, run)
    assert [each.procedure.procedure_id for each in found] == [high.procedure_id, used.procedure_id, low.procedure_id]
    assert [each.usage for each in found] == [0, 2, 1]
    assert [each.trust for each in found] == ["assistant", "assistant", "user"]
    assert high.applicability == {"role": "host"}
    with pytest.raises(Conflict):
        run.memory.retire_procedure(retired.procedure_id)
    assert any_mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-02", "MP-08")
def test_procedures_are_inherited_and_walled(mem: Memory) -> None:
    admin = mem.run(user_id="admin", grants=("tenant",))
    shared = admin.procedure("booking", {"steps": []}, scope_level="tenant")
    ana, bob = mem.run(user_id="ana"), mem.run(user_id="bob")
    mine = ana.procedure("booking", {"steps": [1]})
    assert [each.procedure.procedure_id for each in procedures(mem, bob)] == [shared.procedure_id]
    assert {each.procedure.procedure_id for each in procedures(mem, ana)} == {shared.procedure_id, mine.procedure_id}
    for call in (
        lambda: bob.memory.retire_procedure(mine.procedure_id),
        lambda: bob.memory.use_procedures([mine.procedure_id]),
    ):
        with pytest.raises(NotFound):
            call()
    with pytest.raises(Forbidden):
        bob.memory.retire_procedure(shared.procedure_id)
    with pytest.raises(Forbidden):
        bob.procedure("booking", {}, scope_level="agent")


@for_each(
    "wrong",
    [
        {"task_type": ""},
        {"task_type": 5},
        {"content": "steps"},
        {"content": None},
        {"content": {"x": float("nan")}},
        {"priority": 1.5},
        {"priority": "high"},
        {"sources": ["evt_none"]},
        {"applicability": []},
        {"scope_level": "planet"},
    ],
)
def test_bad_procedures_write_nothing(mem: Memory, counts: Counts, wrong: dict[str, Any]) -> None:
    run = mem.run(user_id="ana")
    run.observe("user", "x")
    before = counts(mem)
    given: dict[str, Any] = {"task_type": "booking", "content": {}} | wrong
    with pytest.raises(MunimentError):
        run.procedure(given.pop("task_type"), given.pop("content"), **given)
    assert counts(mem) == before
