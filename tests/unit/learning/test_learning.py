"""Learning from verified runs through the library: recall, folds, plans, undo, packets, forget."""

from __future__ import annotations

import pytest

from muniment.contracts.learning import ReasoningMemory
from muniment.contracts.runs import EventLog, TraceCapsule
from muniment.errors import Conflict, Forbidden, Forgotten, InvalidInput, InvalidRecord, MunimentError, NotFound
from products import for_each

INTENT = {"domain_tag": "math", "task_family": "countdown"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}


def one_run(mem, number, *, strategy="backward", passed=True, user_id="ana", level="user", grants=(), recalls=False):
    run = mem.run(user_id=user_id, agent_id="solver", task_type="countdown", grants=grants)
    run.observe("user", f"Reach {number} with 3, 8 and {number}.")
    if recalls:
        run.learning.recall(f"Reach {number}", intent=INTENT, state={"mode": "main"})
    run.observe_tool(strategy, content="tried it", args={"n": number})
    run.observe("assistant", f"The answer is {number}.")
    run.finish(verifier_result=PASS if passed else FAIL, intent=INTENT, features={"strategy": strategy}, level=level)
    return run


def teach(mem, **scope):
    """Runs in which one strategy passes and another fails."""
    for number in range(6):
        one_run(mem, number, strategy="backward", passed=True, **scope)
        one_run(mem, number + 50, strategy="greedy", passed=False, **scope)


def memory(memory_id="rm_1", **more):
    return {
        "schema_version": "0.5.15", "memory_id": memory_id, "kind": "episode", "created_at": "2026-01-01T00:00:00Z",
        "status": "active", "summary": "Work backwards from the target.", **more,
    }  # fmt: skip


def write(payload, store="ReasoningBank"):
    return {"op": "WRITE", "target_store": store, "payload": payload}


@pytest.mark.req("RC-12")
@pytest.mark.req("RC-27")
def test_a_finished_run_is_logged(mem):
    teach(mem)
    mem.bank(user_id="ana").add_lesson("Work backwards from the result", intent=INTENT)
    run = one_run(mem, 99, recalls=True)
    log = mem.bank(user_id="ana").event_logs(limit=1)[0]
    assert EventLog.from_wire(log.to_wire()) == log
    assert log.run.mode == "main"
    assert log.verifier.verdict == "PASS"
    assert log.memory_recall.used_ids
    assert log.praxis is None  # the lesson is a candidate until a judged run of its work ends
    one_run(mem, 100, recalls=True)
    assert log.memory_fold.action_plan_id == log.memory_actions.plan_id
    assert log.cost.tool_calls == 1
    entries = {entry.id: entry for entry in run.ledger.entries()}
    assert entries[log.x_ref].role == "user"
    assert entries[log.outputs.y_ref].role == "assistant"
    capsule = mem.bank(user_id="ana").get(f"{log.trace_id}.capsule")
    assert TraceCapsule.from_wire(capsule.record).refs.y_ref == log.outputs.y_ref


@pytest.mark.req("RC-08")
def test_another_intent_is_not_recalled_and_no_keys_is_a_fallback(mem):
    teach(mem)
    run = mem.run(user_id="ana", agent_id="solver")
    other = run.learning.recall("Reach 24", intent={"domain_tag": "law", "task_family": "brief"})
    assert other.hints == ()
    assert {each.reason for each in other.dropped} == {"intent_mismatch"}
    plain = run.learning.recall("Reach 24 with 3 and 8")
    assert plain.response.fallback_used
    assert plain.hints
    assert all(hint.source != "seed" and not hint.memory_id.startswith("seed") for hint in plain.hints)


@pytest.mark.req("RC-09")
def test_hints_stand_in_the_packets_of_planner_and_tool(mem):
    teach(mem)
    run = mem.run(user_id="ana", agent_id="solver")
    run.learning.recall("Reach 24", intent=INTENT, state={"mode": "main"})
    for purpose in ("planner", "tool"):
        build = run.compose(purpose, query="Reach 24", max_tokens=1024)
        assert build.packet.short_term.working_state.model_extra["memory_hints"]
        assert "earlier run: " in build.text
        assert mem.replay(build.id).packet_bytes == build.packet_bytes
    assert "earlier run: " not in run.compose("responder", query="Reach 24", max_tokens=1024).text


def test_a_contrast_is_drafted_and_passing_runs_are_recalled(mem):
    teach(mem)
    assert mem.bank(user_id="ana").records(kind="tactic") == []
    assert any("backward" in each.proposed_rule.body for each in mem.bank(user_id="ana").drafts())
    run = mem.run(user_id="ana", agent_id="solver")
    recalled = run.learning.recall("Reach 24", intent=INTENT, state={"mode": "main"})
    assert not recalled.response.fallback_used
    assert recalled.injection.tokens <= mem.policy.learn.injection.total_tokens_max
    assert recalled.hints
    for hint in recalled.hints:
        assert "Passed" in hint.summary
        assert hint.model_extra["parts"].keys() == {"sem", "intent", "state", "quality"}
        assert hint.reason


def test_learning_twice_is_learning_once(mem):
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "Reach 1.")
    first = run.learning.learn(PASS, intent=INTENT)
    assert run.learning.learn(PASS, intent=INTENT) == first
    run.finish()
    assert mem.learning.learn(run.run_id, PASS) == first
    assert len(mem.bank(user_id="ana").event_logs()) == 1


def test_a_run_that_ended_can_still_be_learnt_from(mem):
    run = mem.run(user_id="ana", agent_id="solver", task_type="countdown")
    run.observe("user", "Reach 1.")
    run.finish()
    learned = mem.learning.learn(run.run_id, FAIL)
    assert learned.event_log.verifier.verdict == "FAIL"
    assert "family=countdown" in learned.fold.intent_key


@pytest.mark.req("RC-11")
def test_plan_apply_record_undo(mem):
    bank = mem.bank(user_id="ana")
    plan = bank.plan([write(memory()), {"op": "PIN", "target_store": "ReasoningBank", "target_ids": ["rm_1"]}])
    assert bank.records() == []
    rehearsed = bank.apply(plan.plan_id, dry_run=True)
    assert [record.status for record in rehearsed.records] == ["SKIPPED", "SKIPPED"]
    assert bank.records() == []
    applied = bank.apply(plan.plan_id)
    assert [record.status for record in applied.records] == ["APPLIED", "APPLIED"]
    assert bank.apply(plan.plan_id).records == applied.records
    assert bank.get("rm_1").status == "pinned"
    assert bank.get("rm_1").version == 2
    undone = bank.undo(plan.plan_id)
    assert bank.undo(plan.plan_id) == undone
    assert bank.get("rm_1").status == "retired"


@pytest.mark.req("RC-11")
@pytest.mark.parametrize(
    ("actions", "code"),
    [
        ([{"op": "PRUNE", "target_store": "ReasoningBank", "target_ids": ["rm_0"]}], "pinned"),
        ([{"op": "RETIRE", "target_store": "ReasoningBank", "target_ids": ["nobody"]}], "unknown"),
        ([write(memory("rm_9", ttl="days:-1"))], "ttl"),
        ([write({"schema_version": "0.5.15", "memory_id": "rm_9"})], "invalid_record"),
    ],
)
def test_a_plan_that_may_not_be_changes_nothing(mem, actions, code):
    bank = mem.bank(user_id="ana")
    start = [write(memory("rm_0")), {"op": "PIN", "target_store": "ReasoningBank", "target_ids": ["rm_0"]}]
    bank.apply(bank.plan(start).plan_id)
    before = bank.records(include_all=True)
    plan = bank.plan([write(memory("rm_5")), *actions])
    applied = bank.apply(plan.plan_id)
    assert applied.aborted
    assert applied.records[0].error == "plan_aborted"
    assert applied.records[0].status == "SKIPPED"
    assert applied.records[1].status == "FAILED"
    assert code in applied.records[1].error
    assert bank.records(include_all=True) == before
    assert bank.plans()[-1].status == "aborted"


def test_undo_is_refused_where_somebody_changed_it_since(mem):
    bank = mem.bank(user_id="ana")
    first = bank.plan([write(memory())])
    bank.apply(first.plan_id)
    second = bank.plan([write(memory(summary="Another thing."))])
    bank.apply(second.plan_id)
    with pytest.raises(Conflict, match="rm_1"):
        bank.undo(first.plan_id)
    bank.undo(second.plan_id)
    assert ReasoningMemory.from_wire(bank.get("rm_1").record).summary == "Work backwards from the target."


@pytest.mark.soak
@pytest.mark.req("TM-15")
def test_harmful_tactics_are_retired_by_their_numbers(mem):
    teach(mem)
    bank = mem.bank(user_id="ana")
    good = next(each for each in bank.records(kind="tactic") if "Use" in each.record["summary"])
    assert good.lesson.stage == "trial"
    stages = []
    for number in range(100, 250):  # what it says does not work any more
        run = mem.run(user_id="ana", agent_id="solver", task_type="countdown")
        run.observe("user", f"Reach {number} with 3, 8 and {number}.")
        told = (
            good.id in run.learning.recall(f"Reach {number}", intent=INTENT, state={"mode": "main"}).injection.used_ids
        )
        run.observe_tool("backward" if told else "forward", content="tried it", args={"n": number})
        run.finish(verifier_result=FAIL if told else PASS, intent=INTENT)
        stages.append((bank.get(good.id).lesson.stage, told))
        if stages[-1][0] == "retired":
            break
    assert bank.get(good.id).status == "retired"
    assert sum(told for _, told in stages) <= 12
    last = bank.plans()[-1].plan.actions[-1]
    assert (last.op, last.reason_keys[0]) == ("RETIRE", "praxis")


@pytest.mark.req("RC-05")
def test_levels_need_grants_and_are_seen_below(mem):
    with pytest.raises(Forbidden):
        one_run(mem, 1, level="agent")
    teach(mem, level="agent", grants=("agent",))
    other = mem.run(user_id="bo", agent_id="solver")
    assert other.learning.recall("Reach 5", intent=INTENT).hints
    elsewhere = mem.run(user_id="bo", agent_id="writer")
    assert not elsewhere.learning.recall("Reach 5", intent=INTENT).hints


def test_no_words_go_above_the_user(mem):
    one_run(mem, 424_242, level="tenant", grants=("tenant",))
    kept = mem.bank().records(include_all=True)
    assert kept
    assert not any("424242" in str(each.record) for each in kept)


@pytest.mark.soak
def test_nothing_crosses_users(mem):
    teach(mem)
    assert not mem.run(user_id="bo", agent_id="solver").learning.recall("Reach 5", intent=INTENT).hints
    plan = mem.bank(user_id="ana").plan([write(memory())])
    with pytest.raises(NotFound):
        mem.bank(user_id="bo").apply(plan.plan_id)


@pytest.mark.parametrize("selector", ["user", "event"])
def test_forget_reaches_what_was_learnt(mem, selector):
    teach(mem)
    teach(mem, level="tenant", grants=("tenant",), user_id="ana")
    run = one_run(mem, 7_777_777)
    event = next(entry.id for entry in run.ledger.entries() if "7777777" in (entry.content or ""))
    trace = mem.bank(user_id="ana").event_logs(limit=1)[0].trace_id
    mem.forget(event=event) if selector == "event" else mem.forget(user_id="ana")
    for bank in (mem.bank(user_id="ana"), mem.bank()):
        assert not any("7777777" in str(each.record) for each in bank.records(include_all=True))
        assert all(log.trace_id != trace for log in bank.event_logs())
    if selector == "user":
        assert mem.bank().records(include_all=True) == []
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


def test_a_build_with_a_forgotten_hint_is_gone(mem):
    teach(mem)
    run = mem.run(user_id="ana", agent_id="solver")
    recalled = run.learning.recall("Reach 24", intent=INTENT)
    build = run.compose("planner", query="Reach 24")
    traces = {trace for hint in recalled.hints for trace in hint.trace_ids or ()}
    log = next(each for each in mem.bank(user_id="ana").event_logs() if each.trace_id in traces)
    mem.forget(event=log.x_ref)
    with pytest.raises(Forgotten):
        mem.replay(build.id)


def test_working_set_is_a_stack_that_folds_when_it_grows(mem):
    run = mem.run(user_id="ana", agent_id="solver")
    run.learning.note(facts=["the target is 24"], constraints=["each number once"])
    run.learning.push_working_set(ttl="hours:6", decisions=["try division first"])
    stack, records = run.learning.working_set()
    assert stack.stack == tuple(record.ws_id for record in records)
    assert len(records) == 2
    assert run.learning.pop_working_set().status == "retired"
    small = run.learning.note(facts=[f"a long fact, number {number}: {'x' * 80}" for number in range(200)])
    assert small.constraints == ("each number once",)
    assert len(small.facts) < 200
    with pytest.raises(InvalidInput):
        run.learning.note(opinions=["no"])
    with pytest.raises(InvalidInput):
        run.learning.push_working_set(ttl="weeks:2")


@pytest.mark.soak
def test_stores_stay_within_their_size(make):
    mem = make("memory", policy={"learn": {"eviction": {"reasoning_max": 4, "seeds_max": 3}}})
    for number in range(12):
        one_run(mem, number)
    bank = mem.bank(user_id="ana")
    assert len(bank.records(kind="reasoning")) <= 4
    assert len(bank.records(kind="seed")) <= 3
    assert len(bank.records(kind="reasoning", include_all=True)) == 12


@pytest.mark.req("RC-21")
def test_seeds_are_chosen_by_puct_and_told(mem):
    teach(mem)
    meta, terms = mem.bank(user_id="ana").select_seed()
    assert meta.selected_state_id == terms[0].state_id
    assert meta.puct.T_total == 0
    buffer = mem.bank(user_id="ana").reuse_buffer()
    assert {seed.state_id for seed in buffer.seed_entries} == {term.state_id for term in terms}


def test_runner_learns_and_a_crash_is_an_outcome(mem):
    def agent(task):
        if "boom" in task.task:
            raise ValueError("no")
        return {"text": f"done: {task.task}", "features": {"style": "plain"}}

    runner = mem.runner(agent, lambda output, task: output.text.startswith("done"), user_id="ana")
    assert runner.run("Say it.", intent=INTENT).passed
    crashed = runner.run("boom", intent=INTENT)
    assert not crashed.passed
    assert crashed.result.reason_codes == ("tool_failure",)
    assert len(mem.bank(user_id="ana").event_logs()) == 2


@for_each(
    "call",
    [
        lambda run: run.learning.recall(7),
        lambda run: run.learning.recall("x", intent={"nonsense": 1}),
        lambda run: run.learning.recall("x", sources=["Nowhere"]),
        lambda run: run.learning.recall("x", top_k=0),
        lambda run: run.learning.learn({"verdict": "MAYBE"}),
        lambda run: run.learning.learn(PASS, features={"a": [1]}),
        lambda run: run.learning.learn(PASS, bucket_key="nonsense"),
        lambda run: run.learning.learn(PASS, level="world"),
        lambda run: run.finish(verifier_result=PASS, nonsense=1),
        lambda run: run.finish(intent=INTENT),
        lambda run: run.learning.fold("whenever"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(mem, call):
    run = mem.run(user_id="ana", agent_id="solver")
    run.observe("user", "hello")
    before = len(list(run.ledger.entries()))
    with pytest.raises((InvalidInput, InvalidRecord)) as caught:
        call(run)
    assert caught.value.hint or caught.value.path
    assert len(list(run.ledger.entries())) == before
    assert mem.bank(user_id="ana").event_logs() == []


@pytest.mark.soak
def test_export_and_import_bring_the_bank(make, tmp_path):
    mem, other = make("memory"), make("memory", seed="other")
    teach(mem)
    (tmp_path / "dump.jsonl").write_bytes(b"".join(mem.export(user_id="ana")))
    other.import_(tmp_path / "dump.jsonl")
    assert other.bank(user_id="ana").records() == mem.bank(user_id="ana").records()


def test_errors_are_ours(mem):
    with pytest.raises(MunimentError):
        mem.bank(user_id="ana").get("nobody")
