"""Recalled records filtered, ranked and cut to a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.policy import LearnPolicy
from muniment.learning._hints import (
    BELOW_FLOOR,
    FAILED,
    SAME,
    Recallable,
    RecallQuestion,
    choose,
    hand_out,
    history_of,
    quality_of,
    weigh,
)
from muniment.learning.records import StoredMemory, Tally

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
        quality_of(each, NOW)[0]
        for each in (memory(tags=["fail"]), memory(), memory(tags=["pass"]), memory(tags=["pass"], uses=(9, 9)))
    ]
    assert values == sorted(set(values))


# -- order --------------------------------------------------------------------------------------------

BOOKING = RecallQuestion(now=NOW, intent_key="intent|domain=air|family=booking")


def run_of(name: str, *tools: str, passed: bool = True, **more: Any) -> StoredMemory:
    steps = [{"tool": tool} for tool in tools]
    record = {
        "request": "Book a seat",
        "outcome": "passed" if passed else "failed",
        "steps": steps,
        "tags": ["pass" if passed else "fail"],
        "intent_key": "intent|domain=air|family=booking",
        **more,
    }
    return StoredMemory.model_validate(
        {"id": name, "kind": "reasoning", "level": "user", "version": 1, "record": record, "status": "active",
         "created_at": f"2026-01-01T00:{name[1:]:0>2}:00Z", "sources": (f"trc_{name}",)}
    )  # fmt: skip


def chosen(*memories: StoredMemory, asked: RecallQuestion = BOOKING, similarity: float = 0.5) -> Any:
    found = [
        Recallable(each, "ReuseBuffer" if each.kind == "tactic" else "ReasoningBank", similarity, similarity)
        for each in memories
    ]
    return choose(weigh(found, asked, POLICY)[0])


def handed(*memories: StoredMemory, **more: Any) -> Any:
    return hand_out(chosen(*memories, **more)[0], 5, None, POLICY, lambda text: len(text.split())).injection


@pytest.mark.req("RC-08")
def test_the_last_passes_of_the_family_come_first_newest_first_and_whole() -> None:
    runs = [run_of(f"m{place}", f"tool_{place}") for place in range(10, 17)]
    lines = handed(*runs).text.splitlines()
    assert lines == [f"- Asked: Book a seat. Passed. Did: tool_{place}." for place in (16, 15, 14, 13, 12)]


def test_lessons_come_before_runs() -> None:
    lesson = memory("tac_1", "tactic", injection={"content": "Call book."}, intent_key=BOOKING.intent_key)
    assert handed(run_of("m10", "book"), lesson).used_ids == ("tac_1", "m10")


@pytest.mark.req("RC-08")
def test_without_a_family_the_score_decides() -> None:
    asked = RecallQuestion(now=NOW, intent_key="intent|domain=air")
    near = Recallable(run_of("m10", "book", intent_key="intent|domain=air"), "ReasoningBank", 0.9)
    far = Recallable(run_of("m20", "pay", intent_key="intent|domain=air"), "ReasoningBank", 0.3)
    kept = weigh([far, near], asked, POLICY)[0]
    assert [each.candidate.memory.id for each in kept] == ["m10", "m20"]
    for each in kept:
        weights = POLICY.weights
        assert set(each.parts) == {"sem", "intent", "state", "quality"}
        total = sum(getattr(weights, name) * value for name, value in each.parts.items())
        assert each.score == pytest.approx(total, abs=1e-5)


def test_failures_are_left_out_where_a_run_passed_and_two_are_shown_where_none_did() -> None:
    kept, dropped = chosen(run_of("m1", "book"), run_of("m2", "pay", passed=False))
    assert [each.candidate.memory.id for each in kept] == ["m1"]
    assert [(each.memory_id, each.reason) for each in dropped] == [("m2", FAILED)]
    failures = [run_of(f"m{place}", f"tool_{place}", passed=False) for place in range(3)]
    assert len(chosen(*failures)[0]) == 2


def test_a_line_is_shown_once() -> None:
    kept, dropped = chosen(run_of("m10", "book"), run_of("m11", "book"))
    assert [each.candidate.memory.id for each in kept] == ["m11"]
    assert dropped == [("m10", f"{SAME}m11")]


@pytest.mark.req("RC-09")
def test_a_run_is_shown_whole_or_by_its_steps_or_not_at_all() -> None:
    long = run_of("m10", *(f"step_{'x' * 40}_{part}" for part in range(6)), request="word " * 300)
    injection = handed(long)
    assert injection.overflow[0]["action"] == "compacted"
    assert "word" not in injection.text
    assert "step_" in injection.text


@pytest.mark.req("RC-08")
def test_a_record_that_is_like_the_task_in_nothing_is_below_the_floor() -> None:
    other = run_of("m1", "sail", intent_key="intent|family=ships")
    asked = RecallQuestion(now=NOW)
    near, far = (Recallable(other, "ReasoningBank", 1.0, chance) for chance in (POLICY.fit_min, 0.2))
    assert weigh([near], asked, POLICY)[1] == []
    assert weigh([far], asked, POLICY)[1] == [("m1", BELOW_FLOOR)]
    assert weigh([far], asked, POLICY.model_copy(update={"fit_min": 0.0}))[1] == []
    assert weigh([far], RecallQuestion(now=NOW, intent_key="intent|family=ships"), POLICY)[1] == []
