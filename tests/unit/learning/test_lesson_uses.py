"""Lessons in a store: counted in rows, held out, moved by plans; right after a forget, a rebuild, an import."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from random import Random
from typing import Any

import pytest

from muniment.core.ports.engine import Count
from muniment.learning.records import Tally
from muniment.learning.uses import uses_of

INTENT = {"domain_tag": "shop", "task_family": "lookup"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
ALWAYS = {"learn": {"lessons": {"holdout_share": 0, "trial_share": 1, "suspended_share": 1}}}
NEVER = {"learn": {"lessons": {"holdout_share": 1}}}


def tactic(tactic_id: str = "tac_1", **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.5.15", "tactic_id": tactic_id, "created_at": "2026-01-01T00:00:00Z", "status": "active",
        "summary": "Look the order up by number.", "intent_key": "intent|domain=shop|family=lookup",
        "injection": {"mode": "inline", "content": "Look the order up by number."}, **more,
    }  # fmt: skip


def write(bank, payload: dict[str, Any]) -> None:
    plan = bank.plan([{"op": "WRITE", "target_store": "ReuseBuffer", "payload": payload}])
    assert not bank.apply(plan.plan_id).aborted


def a_run(mem, number: int, result: dict[str, Any] | None, **options: Any):
    """A run that recalls, and is judged."""
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", f"Find order {number}.")
    recalled = run.learning.recall(f"Find order {number}", intent=INTENT, **options)
    run.observe("assistant", "Here it is.")
    if result is not None:
        run.finish(verifier_result=result, intent=INTENT)
    return run, recalled


def rows(mem, kind: str) -> int:
    where = (("kind", "=", kind),)
    return mem._ctx.engine.read("default", lambda reader: reader.do(Count("items", where=where)))


def tallies(mem) -> dict[str, tuple[Tally, Tally, int]]:
    records = mem.bank(user_id="ana").records(include_all=True)
    return {each.id: (each.with_tally, each.without_tally, each.streak) for each in records}


# -- counting -----------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-13")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_what_came_of_runs_is_counted_and_nothing_is_versioned(make, engine: str) -> None:
    mem = make(engine, policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    write(bank, tactic())
    for number in range(6):
        a_run(mem, number, PASS if number < 2 else FAIL)
    held = bank.get("tac_1")
    assert (held.version, rows(mem, "tactic")) == (1, 1)
    assert (held.with_tally.n, held.with_tally.passes, held.streak) == (6, 2, 4)
    assert held.record["metrics"] == {"pass_p_hat": 2 / 6, "avg_cost": 0, "use_n": 6, "fail_n": 4}
    assert rows(mem, "reasoning") == 6, "each run's episode, once"
    assert rows(mem, "lesson_use") == 6, "one small row for a run, whatever it recalled"
    episodes = [each for each in bank.records(kind="reasoning") if each.with_tally.n]
    assert episodes
    assert all(each.version == 1 for each in episodes)
    listed = {each.id: each for each in bank.records()}
    assert listed["tac_1"] == held
    assert mem.verify().ok


def test_only_judged_runs_count_and_each_once(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    write(bank, tactic())
    run, recalled = a_run(mem, 1, None)
    run.learning.fold("manual", verifier_result=FAIL, intent=INTENT)
    run.observe("assistant", "Once more.")
    run.finish(verifier_result=PASS, intent=INTENT)
    assert mem.learning.learn(run.run_id, PASS)
    assert bank.get("tac_1").with_tally == Tally(n=1, passes=1)
    other, recalled = a_run(mem, 2, None)
    other.learning.used(recalled, [])  # it says it used nothing, which says nothing of what was drawn for it
    other.finish(verifier_result=FAIL, intent=INTENT)
    assert bank.get("tac_1").with_tally == Tally(n=2, passes=1)


def test_tallies_are_right_after_a_forget_a_rebuild_and_an_import(make, tmp_path) -> None:
    mem, other = make(policy=ALWAYS), make(policy=ALWAYS, seed="other")
    write(mem.bank(user_id="ana"), tactic())
    alone = {"sources": ["ReuseBuffer"]}  # a run that was handed the words of another falls with it
    runs = [a_run(mem, number, (PASS, FAIL)[number % 2], **alone)[0] for number in range(5)]
    mem.forget(event=next(iter(runs[1].ledger.entries())).id)
    assert mem.bank(user_id="ana").get("tac_1").with_tally == Tally(n=4, passes=3)
    before = tallies(mem)
    assert mem.store.rebuild().repaired == ()
    assert tallies(mem) == before
    (tmp_path / "dump.jsonl").write_bytes(b"".join(mem.export(user_id="ana")))
    other.import_(tmp_path / "dump.jsonl")
    assert tallies(other) == before
    assert mem.verify().ok
    assert other.verify().ok
    mem.forget(user_id="ana")
    assert rows(mem, "lesson_use") == 0 or mem.bank(user_id="ana").records(include_all=True) == []


@pytest.mark.soak
def test_a_row_that_was_altered_is_found(make, tmp_path) -> None:
    mem = make("sqlite", policy=ALWAYS)
    write(mem.bank(user_id="ana"), tactic())
    a_run(mem, 1, PASS)
    (path,) = (tmp_path / "store").glob("*.db")
    turned = "update items set body = replace(body, '\"passed\":true', '\"passed\":false') where kind = 'lesson_use'"
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(turned).rowcount == 1
    assert not mem.verify().ok
    assert mem.store.rebuild().repaired
    assert mem.verify().ok
    assert mem.bank(user_id="ana").get("tac_1").with_tally.passes == 1


def test_tallies_of_earlier_versions_are_a_start(make) -> None:
    from muniment.learning.banks import find_memory, lock_bank, memory_drafts, write_bank

    mem = make(policy=ALWAYS)
    write(mem.bank(user_id="ana"), tactic())
    ctx, owner = mem._ctx, "bank:user:ana"

    def as_it_was(tx) -> None:
        lock_bank(tx, owner)
        held = find_memory(tx, (owner,), "tac_1").memory
        counted = held.model_copy(update={"version": 2, "with_tally": Tally(n=9, passes=7), "streak": 1})
        write_bank(ctx, tx, "default", owner, memory_drafts([counted], {"tac_1": held}))

    ctx.engine.write("default", as_it_was)
    a_run(mem, 1, FAIL)
    held = mem.bank(user_id="ana").get("tac_1")
    assert (held.with_tally.n, held.with_tally.passes, held.streak) == (10, 7, 2)


def test_what_was_merged_keeps_the_uses_of_what_it_was_merged_from(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    write(bank, tactic("tac_1"))
    a_run(mem, 1, PASS)
    write(bank, tactic("tac_2", summary="Look it up by its number."))
    merge = {"op": "MERGE", "target_store": "ReuseBuffer", "target_ids": ["tac_1", "tac_2"], "payload": tactic("tac_3")}
    assert not bank.apply(bank.plan([merge]).plan_id).aborted
    a_run(mem, 2, FAIL)
    assert (bank.get("tac_3").with_tally.n, bank.get("tac_3").with_tally.passes) == (2, 1)


# -- holding out --------------------------------------------------------------------------------------


@pytest.mark.req("TM-15")
def test_a_lesson_that_is_held_out_is_told_and_counted_as_such(make) -> None:
    mem = make(policy=NEVER)
    bank = mem.bank(user_id="ana")
    write(bank, tactic())
    _, recalled = a_run(mem, 1, PASS)
    assert recalled.held_out == ("tac_1",)
    assert "by number" not in recalled.text
    assert "tac_1" not in [hint.memory_id for hint in recalled.hints]
    assert (bank.get("tac_1").with_tally.n, bank.get("tac_1").without_tally) == (0, Tally(n=1, passes=1))
    held = bank.get("tac_1")
    uses = mem._ctx.engine.read("default", lambda reader: uses_of(reader, "bank:user:ana", [held], 10)["tac_1"])
    assert [(use.arm, use.passed, use.stage) for use in uses] == [("held_out", True, "active")]
    assert uses[0].task
    other, first = a_run(mem, 2, None)
    second = other.learning.recall("Find order 2", intent=INTENT)
    assert first.arms == second.arms, "each look of a run draws the same"


def test_a_look_draws_no_arm(make) -> None:
    mem = make(policy=NEVER)
    write(mem.bank(user_id="ana"), tactic())
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", "Find order 1.")
    seen = run.learning.recall("Find order 1", intent=INTENT, keep=False)
    assert [hint.memory_id for hint in seen.hints] == ["tac_1"]
    assert seen.arms == ()


@pytest.mark.soak
def test_about_one_in_ten_does_without_an_active_lesson(make) -> None:
    mem = make()
    write(mem.bank(user_id="ana"), tactic())
    drawn = [a_run(mem, number, None)[1] for number in range(60)]
    assert 1 <= sum(bool(each.held_out) for each in drawn) <= 14
    assert all(("by number" in each.text) != bool(each.held_out) for each in drawn)


# -- stages -------------------------------------------------------------------------------------------


def test_a_lesson_is_written_as_a_candidate_reaches_no_prompt_and_is_put_on_trial_by_a_fold(make) -> None:
    mem = make(policy={"learn": {"lessons": {"trial_share": 1}}})
    bank = mem.bank(user_id="ana")
    for name in ("tac_1", "tac_2"):
        write(bank, tactic(name, lesson={"origin": "model", "event_ids": []}))
    assert {bank.get(name).lesson.stage for name in ("tac_1", "tac_2")} == {"candidate"}
    _, recalled = a_run(mem, 1, PASS)
    assert not recalled.arms
    assert ("tac_1", "candidate") in [tuple(each) for each in recalled.dropped]
    assert [bank.get(name).lesson.stage for name in ("tac_1", "tac_2")] == ["trial", "candidate"]
    action = bank.plans()[-1].plan.actions[-1]
    assert action.reason_keys == ("lesson", "trial", "place_free")
    bank.undo(bank.plans()[-1].plan.plan_id)
    assert bank.get("tac_1").lesson.stage == "candidate"


def test_a_lesson_of_no_kind_of_work_is_tried_by_any_run(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    unbound = {key: value for key, value in tactic(lesson={"origin": "person"}).items() if key != "intent_key"}
    write(bank, unbound)
    a_run(mem, 1, PASS)
    assert bank.get("tac_1").lesson.stage == "trial"
    _, recalled = a_run(mem, 2, PASS)
    assert [arm.memory_id for arm in recalled.arms] == ["tac_1"]
    assert bank.get("tac_1").with_tally.n == 1


@pytest.mark.soak
@pytest.mark.parametrize(
    ("when", "sees"),
    [
        ("an upload is refused", [True, True]),
        ('task_family == "lookup"', [True, False]),
        ('x_features.size == "large"', [False, True]),
    ],
)
def test_what_a_person_wrote_for_any_work_is_held_by_its_condition_alone(make, when: str, sees: list[bool]) -> None:
    """Often only the run can tell whether a condition in words holds, so no word in common is asked for."""
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    added = bank.add_lesson("Ask for the limit first", when=when)
    a_run(mem, 1, PASS)  # it gets its place on trial
    tried = []
    for told in ({"intent": INTENT}, {"features": {"size": "large"}}):
        run = mem.run(user_id="ana", agent_id="clerk")
        run.observe("user", "Paint the boat.")
        tried.append(added.lesson_id in [arm.memory_id for arm in run.learning.recall("Paint the boat", **told).arms])
    assert tried == sees
    other = mem.run(user_id="bo", agent_id="clerk").learning.recall("Ask for the limit", features={"size": "large"})
    assert added.lesson_id not in [hint.memory_id for hint in other.hints]
    only = mem.run(user_id="ana", agent_id="clerk")
    assert only.learning.recall("Paint", intent=INTENT, sources=["Rulebook"]).arms == ()


def test_what_nobody_wrote_for_any_work_must_be_like_the_task(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    unbound = {key: value for key, value in tactic(lesson={"origin": "model"}).items() if key != "intent_key"}
    write(bank, unbound)
    a_run(mem, 1, PASS)
    assert bank.get("tac_1").lesson.stage == "trial"
    run = mem.run(user_id="ana", agent_id="clerk")
    assert run.learning.recall("Paint the boat", intent=INTENT).arms == ()


def test_no_plan_moves_a_lesson_by_its_own_word(make) -> None:
    mem = make()
    bank = mem.bank(user_id="ana")
    write(bank, tactic(lesson={"origin": "model"}))
    state = {"stage": "active", "since": "2026-01-01T00:00:00Z", "why": "I say so"}
    step = {"op": "WRITE", "target_store": "ReuseBuffer", "target_ids": ["tac_1"], "payload_ref": "tac_1@1"}
    done = bank.apply(bank.plan([step | {"lesson": state, "reason_keys": ["lesson", "active"]}]).plan_id)
    assert done.aborted
    assert done.records[0].error.startswith("unknown_payload")
    write(bank, tactic(lesson={"origin": "model", "stage": "active"}))
    assert bank.get("tac_1").lesson.stage == "candidate"


def test_a_lesson_that_comes_to_say_something_else_starts_again(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    write(bank, tactic(lesson={"origin": "model"}))
    a_run(mem, 1, PASS)
    assert bank.get("tac_1").lesson.stage == "trial"
    write(bank, tactic(lesson={"origin": "model"}))
    assert bank.get("tac_1").lesson.stage == "trial", "it says the same"
    write(bank, tactic(lesson={"origin": "model"}, injection={"mode": "inline", "content": "Refund everything."}))
    assert bank.get("tac_1").lesson.stage == "candidate"


def test_a_conflict_suspends_and_an_undo_brings_it_back(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(user_id="ana")
    write(bank, tactic())
    a_run(mem, 1, FAIL | {"reason_codes": ["praxis_tactic_conflict"]})
    held = bank.get("tac_1")
    assert (held.status, held.lesson.stage, held.reason_keys) == (
        "active",
        "suspended",
        ("lesson", "suspended", "conflict"),
    )
    bank.undo(bank.plans()[-1].plan.plan_id)
    assert bank.get("tac_1").lesson is None
    assert bank.get("tac_1").with_tally.n == 1, "what was counted is no part of a plan"


@pytest.mark.soak
def test_a_pin_signs_and_a_retirement_drops(make) -> None:
    mem = make()
    bank = mem.bank(user_id="ana")
    write(bank, tactic(lesson={"origin": "person"}))
    pin = {"op": "PIN", "target_store": "ReuseBuffer", "target_ids": ["tac_1"]}
    bank.apply(bank.plan([pin]).plan_id)
    drawn = [a_run(mem, number, FAIL)[1] for number in range(30)]
    assert sum("by number" in each.text for each in drawn) >= 20
    assert any(each.held_out for each in drawn), "what is signed is measured all the same"
    assert bank.get("tac_1").status == "pinned"
    bank.apply(bank.plan([pin | {"op": "RETIRE"}]).plan_id)
    assert (bank.get("tac_1").status, bank.get("tac_1").lesson.stage) == ("retired", "retired")


# -- a world that changes -----------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("TM-15")
def test_after_a_drift_the_default_runner_unlearns_and_learns_anew(make) -> None:
    mem, random = make(seed="drift"), Random(3)
    world: dict[str, Any] = {"best": "b"}

    def agent(task: Any) -> dict[str, Any]:
        told = [re.match(r"(?:On trial: )?Use way=(\w)", hint.summary or "") for hint in task.hints]
        way = next((found[1] for found in told if found), None) or random.choice("abcd")
        world["passed"] = random.random() < (0.9 if way == world["best"] else 0.15)
        return {"text": "done", "features": {"way": way}}

    def verifier(_output: Any, _task: Any) -> bool:
        return world["passed"] != (random.random() < 0.05)

    runner = mem.runner(agent, verifier, user_id="ana", agent_id="clerk")
    passed = []
    for number in range(190):
        world["best"] = "b" if number < 80 else "d"
        runner.run(f"Find order {random.randrange(9999)}.", intent=INTENT)
        passed.append(world["passed"])
    alone = (0.9 + 3 * 0.15) / 4
    assert sum(passed[50:80]) / 30 > alone + 0.2, "it had learnt"
    assert sum(passed[110:140]) / 30 >= alone - 0.1, "back within thirty runs"
    assert sum(passed[150:190]) / 40 > alone + 0.1, "above within eighty"
    lessons = mem.bank(user_id="ana").records(kind="tactic", include_all=True)
    old = [each for each in lessons if each.record["summary"].startswith("Use way=b")]
    assert old
    assert all(each.lesson.stage in ("suspended", "retired") for each in old)
    reasons = {
        key
        for plan in mem.bank(user_id="ana").plans()
        for action in plan.plan.actions
        for key in action.reason_keys or ()
    }
    assert "history_changed" in reasons
    assert mem.verify().ok
