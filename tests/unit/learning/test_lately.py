"""A world that changes: what passed in the old one gives way by itself, lessons and episodes alike. Seeds fixed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from run_makers import clean, count_words
from run_makers import run as run_facts

from effort import SOAK
from muniment.contracts.learning import FoldTrigger
from muniment.core.policy import FoldPolicy, LearnPolicy, LessonPolicy
from muniment.learning.fold.planning import fold
from muniment.learning.lesson_state import LessonUse
from muniment.learning.lessons.arms import draw_arms
from muniment.learning.lessons.lately import Lately, lately_of, share_of
from muniment.learning.lessons.life import gave_place
from muniment.learning.lessons.uses import Uses
from muniment.learning.stored_memory import StoredMemory

POLICY = LessonPolicy()
INTENT = {"domain_tag": "shop", "task_family": "lookup"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL"}


def uses_of(outcomes: list[tuple[str, bool]], written: int | None = None) -> Uses:
    """Uses of one record in consecutive runs of its kind of work, oldest first."""
    plain = {"memory_id": "m", "cost": 0, "at": "2026-01-01T00:00:00Z"}
    made = [
        LessonUse.from_wire(plain | {"trace_id": f"t{place}", "arm": arm, "passed": passed})
        for place, (arm, passed) in enumerate(outcomes)
    ]
    ages = tuple(range(len(made)))[::-1]
    return Uses(tuple(made), ages, 0, len(made) if written is None else written)


def lesson(id_: str, stage: str = "trial", **more: Any) -> StoredMemory:
    state = {"stage": stage, "since": "2026-01-01T00:00:00Z", "why": "so"}
    plain = {"id": id_, "kind": "tactic", "level": "user", "version": 1, "status": "active", "record": {}}
    return StoredMemory.from_wire(plain | {"created_at": "2026-01-01T00:00:00Z", "lesson": state} | more)


# -- counts that fade ---------------------------------------------------------------------------------


def test_an_outcome_counts_half_after_a_half_life_of_runs() -> None:
    old = Uses(uses_of([("had", True)]).uses, (32,), 0, 32)
    assert lately_of(old, 16)[:5] == (0.2, 0.2, 0.0, 0.0, 0.25)
    both = lately_of(uses_of([("had", True)] * 40 + [("had", False)] * 16), 16)
    assert both.passes / both.n == pytest.approx(0.5 * (1 - 0.5**2.5) / (1 - 0.5**3.5), abs=0.02)
    assert both.uses == 56


def test_a_share_starts_as_the_policy_says_and_then_follows_what_came_of_it() -> None:
    assert share_of("trial", Lately(), POLICY) == POLICY.trial_share
    assert share_of("active", Lately(), POLICY) == 1 - POLICY.holdout_share
    good = Lately(passes=9, n=10, other_passes=2, other_n=10, uses=40)
    bad = Lately(passes=2, n=10, other_passes=9, other_n=10, uses=40)
    assert share_of("trial", good, POLICY) == 1 - POLICY.trial_holdout_share
    assert share_of("trial", bad, POLICY) == share_of("active", bad, POLICY) == POLICY.holdout_share
    even = Lately(passes=5, n=10, other_passes=5, other_n=10, uses=40)
    assert share_of("trial", even, POLICY) == pytest.approx(0.5)
    assert share_of("active", even, POLICY) == 1 - POLICY.holdout_share, "it has the benefit of the doubt"
    never = Lately(passes=5, n=20, uses=40)
    assert share_of("trial", never, POLICY) == POLICY.trial_share, "nothing to compare with"


def test_a_share_that_somebody_set_to_all_or_nothing_stays() -> None:
    assert share_of("trial", Lately(), LessonPolicy(trial_share=0)) == 0
    assert (
        share_of("active", Lately(passes=1, n=9, other_passes=3, other_n=3, uses=40), LessonPolicy(holdout_share=1))
        == 0
    )


@pytest.mark.soak
def test_of_lessons_on_trial_a_run_gets_one_at_most_and_those_without_any_are_compared_with() -> None:
    pair = [lesson("a"), lesson("b")]
    drawn = [{arm.memory_id: arm.arm for arm in draw_arms(pair, f"run{n}", POLICY)} for n in range(2000)]
    counts = [sum(each == wanted for each in drawn) for wanted in ({"a": "had"}, {"b": "had"})]
    assert counts == pytest.approx([500, 500], abs=60)
    assert sum(each == {"a": "held_out", "b": "held_out"} for each in drawn) == 2000 - sum(counts)
    better = {"a": Lately(9, 10, 4, 10, 1, 40), "b": Lately(4, 10, 4, 10, 1, 40)}
    drawn = [{arm.memory_id: arm.arm for arm in draw_arms(pair, f"run{n}", POLICY, better)} for n in range(2000)]
    first, second = (sum(each == wanted for each in drawn) for wanted in ({"a": "had"}, {"b": "had"}))
    assert first > 2 * second > 0
    assert (first + second) / 2000 == pytest.approx(1 - POLICY.trial_holdout_share, abs=0.03)
    assert draw_arms(pair, "run7", POLICY, better) == draw_arms(pair[::-1], "run7", POLICY, better)[::-1]


def test_what_was_drawn_says_how_likely_it_was() -> None:
    arms = draw_arms([lesson("a"), lesson("s", "suspended"), lesson("t", "suspended")], "run1", POLICY)
    shares = {arm.memory_id: arm.share for arm in arms}
    assert shares["s"] == shares["t"] == POLICY.suspended_share / 2
    assert shares["a"] == POLICY.trial_share


def test_what_a_person_signed_keeps_its_share_whatever_came_of_it() -> None:
    signed = lesson("p", status="pinned")
    bad = {"p": Lately(1, 20, 9, 10, 1, 60)}
    had = sum(draw_arms([signed], f"run{n}", POLICY, bad)[0].arm == "had" for n in range(1000))
    assert had / 1000 == pytest.approx(0.9, abs=0.03)


def test_a_trial_that_does_not_look_like_helping_gives_its_place_and_waits() -> None:
    move = gave_place(lesson("a"), 8, 0.2, "2026-01-02T00:00:00Z")
    assert move is not None
    assert (move.state.stage, move.reason, move.state.since) == ("candidate", "gave_place", "2026-01-02T00:00:00Z")
    assert gave_place(lesson("a"), 2, 0.2, "2026-01-02T00:00:00Z") is None, "too few runs had it"
    assert gave_place(lesson("a"), 8, 0.5, "2026-01-02T00:00:00Z") is None
    assert gave_place(lesson("a", "active"), 8, 0.2, "2026-01-02T00:00:00Z") is None


def a_run(mem: Any, number: int, way: str, passed: bool, intent: dict[str, str] = INTENT) -> tuple[str, ...]:
    """A run that recalls, looks an order up in a way, and is judged; answers what it was told."""
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", f"Find order {number}.")
    recalled = run.learning.recall(f"Find order {number}", intent=intent)
    run.observe_tool(way, args={}, content="found" if passed else "nothing", ok=True)
    run.finish(verifier_result=PASS if passed else FAIL, intent=intent)
    return tuple(recalled.text.splitlines())


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["memory", "sqlite"] if SOAK else ["memory"])
def test_after_a_drift_runs_are_told_what_passes_now(make: Any, engine: str) -> None:
    """Before it every look-up by name passes; after it only those by number do, which one run in three tries."""
    mem = make(engine)
    before = [a_run(mem, number, "by_name", passed=True) for number in range(24)]
    assert all("by_name" in line for line in before[-1]), "what passes is told while it passes"
    assert before[-1]
    told = []
    for number in range(24, 60):
        way = "by_number" if number % 3 == 0 else "by_name"
        told.append(a_run(mem, number, way, passed=way == "by_number"))
    turning = [line for line in told[10] if "by_name" in line]
    assert turning == ['- Last 8 runs like "Find order …": passed 2 of 8, none of the last 6. Did: by_name.']
    late = told[24:]
    assert [each[0].partition(":")[0] for each in late] == ["- Try by_number"] * len(late)
    fails = '- Last 8 runs like "Find order …": passed 0 of 8. Did: by_name.'
    assert sum(fails in each for each in late) >= 0.7 * len(late), "what fails now is told as such"


def test_what_holds_now_is_proposed_though_older_runs_outvote_it() -> None:
    """A hundred runs in which `first` was right, then forty in which `second` is; both are tried half of the time."""
    random, runs = Random(4), []
    for number in range(140):
        way = random.choice(("first", "second"))
        right = way == ("first" if number < 100 else "second")
        passed = random.random() < (0.9 if right else 0.2)
        runs.append(
            run_facts(f"r{number:03}", passed, ("open", way), at=f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z")
        )
    policy = LearnPolicy(fold=FoldPolicy(peers_max=200))

    def proposed(policy: LearnPolicy) -> set[str]:
        folded = fold(
            runs[-1], runs[:-1], [], FoldTrigger(kind="manual"), policy,
            now="2026-02-01T00:00:00Z", count_tokens=count_words, clean=clean,
        )  # fmt: skip
        texts = [str(each["summary"]) for each in folded.payloads.values() if "tactic_id" in each]
        return {text.partition(":")[0] for text in texts}

    whole = policy.model_copy(update={"fold": policy.fold.model_copy(update={"recent_max": 200})})
    assert proposed(whole) == {"Call first"}, "all of them together say what was right"
    assert proposed(policy) == {"Call second"}
