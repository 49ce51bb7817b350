"""Recalled records weighed: what history counts, and how many of each store come first."""

from __future__ import annotations

import pytest

from muniment.core.policy import LearnPolicy
from muniment.learning.hints import Recallable, RecallQuestion, best_of, history_of, quality_of, weigh
from muniment.learning.stored_memory import StoredMemory, Tally

NOW = "2026-01-02T00:00:00Z"
POLICY = LearnPolicy()


def memory(id_="rm_1", kind="reasoning", *, uses=(0, 0), **record):
    passes, n = uses
    return StoredMemory(
        id=id_,
        kind=kind,
        level="user",
        version=1,
        record={"summary": "words", **record},
        status="active",
        created_at=NOW,
        with_tally=Tally(n=n, passes=passes),
    )


def weighed(*candidates):
    return weigh(
        candidates, RecallQuestion(now=NOW, intent_key="intent|domain=d", state_key="state|mode=main"), POLICY
    )[0]


def test_what_an_episode_tells_of_counts_also_after_it_was_used():
    assert history_of(memory(tags=["fail"], pass_p_hat=1.0, uses=(1, 1))).passes == 1
    assert history_of(memory(tags=["fail"], pass_p_hat=1.0, uses=(1, 1))).n == 2
    assert history_of(memory(tags=["pass"])).passes == 1
    assert history_of(memory(pass_p_hat=0.0)).n == 1
    assert history_of(memory()).n == 0


@pytest.mark.req("RC-08")
def test_a_passing_run_is_worth_more_than_a_failing_one_and_proof_more_than_either():
    values = [
        quality_of(each, POLICY, NOW)[0]
        for each in (memory(tags=["fail"]), memory(), memory(tags=["pass"]), memory(tags=["pass"], uses=(9, 9)))
    ]
    assert values == sorted(set(values))


@pytest.mark.req("RC-08")
def test_episodes_leave_room_for_tactics():
    episodes = [Recallable(memory(f"rm_{number}", tags=["pass"]), "ReasoningBank", 1.0) for number in range(8)]
    tactics = [Recallable(memory(f"tac_{number}", "tactic"), "ReuseBuffer", 0.0) for number in range(3)]
    ordered = weighed(*episodes, *tactics)
    assert [each.candidate.source for each in ordered[:8]] == ["ReasoningBank"] * 8
    first = best_of(ordered, 5)
    assert [each.candidate.memory.id for each in first] == ["rm_0", "rm_1", "rm_2", "tac_0", "tac_1"]
    assert [each.score for each in first] == sorted((each.score for each in first), reverse=True)
    assert best_of(ordered, 1) == ordered[:1]
    assert best_of(weighed(*episodes), 5) == weighed(*episodes)[:5]
