"""Banks found by what they hold, looks that write nothing, what was learnt read again: on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.errors import Forbidden, Forgotten, NotFound
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.handles.runner import AgentTask
from muniment.verify.outputs import Output

INTENT = {"domain_tag": "shop", "task_family": "lookup"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["tool_misroute"]}


def work(mem: Memory, way: str, **scope: Any) -> Run:
    run = mem.run(user_id="ana", agent_id="clerk", **scope)
    run.observe("user", "Find the order.")
    run.observe_tool(way, content="tried")
    return run


def teach(mem: Memory) -> None:
    for _ in range(3):
        for way, result in (("by_name", FAIL), ("by_number", PASS)):
            work(mem, way).finish(verifier_result=result, intent=INTENT, features={"way": way})


@pytest.mark.soak
def test_a_look_writes_nothing(any_mem: Memory, counts: Callable[[Memory], dict[str, int]]) -> None:
    teach(any_mem)
    run = any_mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", "Find the order.")
    before = counts(any_mem)
    looked = run.learning.recall("Find the order.", intent=INTENT, keep=False)
    assert looked.hints
    assert counts(any_mem) == before
    kept = run.learning.recall("Find the order.", intent=INTENT)
    ids = [hint.memory_id for hint in kept.hints]
    assert {hint.memory_id for hint in looked.hints} - {*kept.held_out} <= {*ids}  # a look draws no arm
    assert counts(any_mem) != before
    fold = run.finish(verifier_result=PASS)
    assert fold.intent_key == kept.request.intent_key


@pytest.mark.soak
def test_a_bank_is_found_by_what_it_holds(any_mem: Memory) -> None:
    teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    assert (bank.name, any_mem.bank(agent_id="a:b").name, any_mem.bank().name) == ("user:ana", "agent:a:b", "tenant")
    for id_ in (
        bank.records(kind="tactic")[0].id,
        bank.plans()[0].plan.plan_id,
        bank.drafts()[0].draft_id,
        bank.event_logs()[0].trace_id,
    ):
        assert any_mem.learning.bank_of(id_).name == "user:ana"
    held = any_mem.bank(agent_id="a:b").plan([])
    assert any_mem.learning.bank_of(held.plan_id).get_plan(held.plan_id).plan == held
    run = work(any_mem, "by_name")
    for nothing in (run.run_id, next(iter(run.ledger.entries())).id, "nobody"):
        with pytest.raises(NotFound):
            any_mem.learning.bank_of(nothing)
    with pytest.raises(NotFound):
        any_mem.learning.bank_of(held.plan_id, tenant_id="acme")
    with pytest.raises(NotFound):
        bank.get_plan(held.plan_id)


def test_what_was_learnt_can_be_read_again_until_it_is_forgotten(any_mem: Memory) -> None:
    run = work(any_mem, "by_name")
    assert run.learning.learned() is None
    learned = run.learning.learn(PASS, intent=INTENT)
    run.finish()
    assert run.learning.learned() == learned
    any_mem.forget(event=next(entry.id for entry in run.ledger.entries() if entry.role == "user"))
    with pytest.raises(Forgotten):
        run.learning.learned()


@pytest.mark.req("RC-18")
def test_drafts_are_proposals_in_order_and_go_with_their_runs(any_mem: Memory) -> None:
    teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    drafts = bank.drafts()
    assert drafts
    assert all(draft.source_trace_ids and draft.proposed_rule.body for draft in drafts)
    assert bank.records("Rulebook", include_all=True) == []
    any_mem.forget(user_id="ana")
    assert bank.drafts() == []


@pytest.mark.req("RC-05")
def test_an_ended_run_is_learnt_above_its_user_with_a_grant(any_mem: Memory) -> None:
    run = work(any_mem, "by_number")
    run.finish()
    with pytest.raises(Forbidden):
        any_mem.learning.learn(run.run_id, PASS, level="agent")
    learned = any_mem.learning.learn(run.run_id, PASS, level="agent", grants=["agent"], intent=INTENT)
    assert any_mem.learning.bank_of(learned.event_log.trace_id).name == "agent:clerk"


@pytest.mark.req("RC-05")
def test_a_runner_without_the_grant_does_not_call_the_agent(any_mem: Memory) -> None:
    called: list[str] = []

    def agent(task: AgentTask) -> str:
        called.append(task.task)
        return "found"

    def verifier(_output: Output, _task: str) -> bool:
        return True

    with pytest.raises(Forbidden):
        any_mem.runner(agent, verifier, {"level": "agent"}, user_id="ana").run("Find it.")
    assert (called, any_mem.runs(user_id="ana")) == ([], [])
    done = any_mem.runner(agent, verifier, {"level": "agent"}, user_id="ana", grants=["agent"]).run("Find it.")
    assert any_mem.learning.bank_of(done.learned.event_log.trace_id).name == "agent:agent"
