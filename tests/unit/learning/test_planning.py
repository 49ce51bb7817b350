"""A fold: found, planned, and nothing kept by it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_makers import NOW, POLICY, clean, count_words, greedy_against_random, many_runs, run, runs_with, stored

from effort import examples
from muniment.contracts.learning import (
    ConditionalTactic,
    FoldResult,
    FoldTrigger,
    MemoryActionPlan,
    ReasoningMemory,
    ReuseStateRecord,
)
from muniment.core.canonical import canonical_bytes
from muniment.learning.fold.executing import Given, execute
from muniment.learning.fold.planning import Folded, fold
from muniment.learning.stored_memory import RunFacts, StoredMemory

END = FoldTrigger(kind="end_of_run", details="the run has ended")


def folded(run_: RunFacts, peers: list[RunFacts], existing: tuple[StoredMemory, ...] = (), **fields: Any) -> Folded:
    given: dict[str, Any] = {"trigger": END, "policy": POLICY, "now": NOW, "count_tokens": count_words, "clean": clean}
    given |= fields
    return fold(run_, peers, existing, given.pop("trigger"), given.pop("policy"), **given)


def actions(found: Folded) -> list[tuple[str, str, str]]:
    """Op, store and the beginning of the id."""
    return [(one.op, one.target_store, (one.target_ids or ("",))[0].partition("_")[0]) for one in found.plan.actions]


def memories_of(found: Folded) -> tuple[StoredMemory, ...]:
    kinds = {"memory_id": "reasoning", "state_id": "seed", "tactic_id": "tactic"}
    return tuple(
        stored(record, next(kind for name, kind in kinds.items() if name in record))
        for record in found.payloads.values()
    )


@pytest.mark.req("RC-10")
def test_a_passing_run_leaves_an_episode_a_seed_and_what_separates() -> None:
    run_, *peers = greedy_against_random()
    found = folded(run_, peers)
    assert actions(found) == [
        ("WRITE", "ReasoningBank", "mem"),
        ("WRITE", "ReuseBuffer", "seed"),
        ("WRITE", "ReuseBuffer", "tac"),
    ]
    assert found.plan.fold_id == found.result.fold_id
    assert found.result.action_plan_id == found.plan.plan_id
    assert found.result.produced.reuse_state_ids == tuple(
        name for one in found.plan.actions[1:] for name in one.target_ids or ()
    )
    assert found.result.notes == "18 runs compared, 1 features separate, 0 tactics turned"
    assert found.result.produced.rule_draft_ids == tuple(draft.draft_id for draft in found.drafts)


def test_a_failing_run_leaves_no_seed() -> None:
    assert actions(folded(run("t", False), [])) == [("WRITE", "ReasoningBank", "mem")]


def test_a_run_in_the_middle_leaves_an_episode_for_now_and_nothing_else() -> None:
    unjudged = run("t", False).model_copy(update={"verdict": None, "outcome": None})
    found = folded(unjudged, greedy_against_random(), trigger=FoldTrigger(kind="budget_hit", details="5 of 5 spent"))
    assert actions(found) == [("WRITE", "ReasoningBank", "mem")]
    assert next(iter(found.payloads.values()))["status"] == "temporary"
    assert found.drafts == ()


@pytest.mark.req("RC-11")
def test_folding_twice_gives_the_same_plan() -> None:
    run_, *peers = greedy_against_random()
    once, again = folded(run_, peers), folded(run_, peers[::-1])
    assert once.plan.to_bytes() == again.plan.to_bytes()
    assert canonical_bytes(dict(once.payloads)) == canonical_bytes(dict(again.payloads))
    other = folded(run_, peers, trigger=FoldTrigger(kind="manual", details="me"))
    assert other.plan.plan_id != once.plan.plan_id
    assert [one.target_ids for one in other.plan.actions] == [one.target_ids for one in once.plan.actions]


def test_a_tactic_that_says_the_same_is_not_written_again() -> None:
    run_, *peers = greedy_against_random()
    known = memories_of(folded(run_, peers))
    next_run = run("z", True, own_features={"strategy": "greedy"}, at="2026-05-02T00:00:00.000000Z")
    assert [one for one in actions(folded(next_run, [run_, *peers], known)) if one[2] == "tac"] == []


@pytest.mark.req("RC-13")
def test_a_tactic_whose_contrast_has_turned_is_retired() -> None:
    run_, *peers = greedy_against_random()
    known = memories_of(folded(run_, peers))
    turned = [
        *runs_with({"strategy": "greedy"}, 1, 9, "x"),
        *runs_with({"strategy": "random"}, 9, 1, "y"),
    ]
    found = folded(turned[0], turned[1:], known)
    (retired,) = [one for one in found.plan.actions if one.op == "RETIRE"]
    assert retired.reason_keys == ("contrast_turned",)
    assert retired.target_ids == tuple(one.id for one in known if one.kind == "tactic")
    assert [one for one in actions(found) if one[0] == "WRITE" and one[2] == "tac"] == [("WRITE", "ReuseBuffer", "tac")]


def test_what_was_retired_is_not_written_again() -> None:
    run_, *peers = greedy_against_random()
    known = [one.model_copy(update={"status": "retired"}) for one in memories_of(folded(run_, peers))]
    assert folded(run_, peers, tuple(known)).plan.actions == ()


def test_no_more_new_tactics_than_the_policy_says() -> None:
    runs = [
        run(f"t{place:02}", place % 2 == 0, own_features={"a": place % 2, "b": (place + place // 20) % 2})
        for place in range(40)
    ]
    few = POLICY.model_copy(update={"fold": POLICY.fold.model_copy(update={"tactics_max": 0})})
    assert [one for one in actions(folded(runs[0], runs[1:], policy=few)) if one[2] == "tac"] == []


@pytest.mark.req("RC-11")
def test_the_plan_can_be_applied_as_it_stands() -> None:
    run_, *peers = greedy_against_random()
    found = folded(run_, peers)
    applied = execute(Given(found.plan, found.payloads, {}, "user", NOW, POLICY))
    assert [one.status for one in applied.records] == ["APPLIED"] * 3
    kept = tuple(applied.changes)
    turned = [*runs_with({"strategy": "greedy"}, 1, 9, "x"), *runs_with({"strategy": "random"}, 9, 1, "y")]
    later = folded(turned[0], turned[1:], kept)
    memories = {one.id: one for one in kept}
    again = execute(Given(later.plan, later.payloads, memories, "user", NOW, POLICY))
    assert {one.status for one in again.records} == {"APPLIED"}


def test_ttls_are_the_policys() -> None:
    run_, *peers = greedy_against_random()
    assert sorted(record["ttl"] for record in folded(run_, peers).payloads.values()) == [
        "days:30",
        "days:60",
        "days:90",
    ]


@pytest.mark.soak
@settings(max_examples=examples(20), deadline=None)
@given(many_runs(), st.randoms(use_true_random=False))
def test_every_record_is_valid_bounded_and_the_same_in_any_order(runs: list[RunFacts], mixer: random.Random) -> None:
    run_, *peers = runs
    found = folded(run_, peers)
    mixer.shuffle(peers)
    again = folded(run_, peers, memories_of(found)[:0])
    assert (again.plan.to_bytes(), again.result.to_bytes()) == (found.plan.to_bytes(), found.result.to_bytes())
    assert again.payloads == found.payloads
    assert FoldResult.from_wire(found.result.to_wire()) == found.result
    assert MemoryActionPlan.from_wire(found.plan.to_wire()) == found.plan
    shapes = {"memory_id": ReasoningMemory, "state_id": ReuseStateRecord, "tactic_id": ConditionalTactic}
    for record in found.payloads.values():
        shape: Any = next(shape for name, shape in shapes.items() if name in record)
        shape.from_wire(record)
        assert len(canonical_bytes(record)) < POLICY.record_bytes_max
    assert {one.op for one in found.plan.actions} <= {"WRITE", "RETIRE"}
    assert all(one.target_store != "Rulebook" for one in found.plan.actions)
    assert {one.payload_ref for one in found.plan.actions if one.op == "WRITE"} == set(found.payloads)
