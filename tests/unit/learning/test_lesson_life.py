"""The life of a lesson: drawn by hash, one trial a family, decided by a comparison, suspended by its newest window."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from muniment.core.policy import LessonPolicy
from muniment.learning._trials import draw_arms, left_idle, next_state, stage_of, started
from muniment.learning.records import LessonUse, StoredMemory
from products import for_each

POLICY = LessonPolicy()
NOW, LATER = "2026-01-01T00:00:00.000000Z", "2026-03-01T00:00:00.000000Z"


def lesson(id_: str, stage: str = "trial", since: str = NOW, **more: Any) -> StoredMemory:
    state = {"stage": stage, "since": since, "why": "so"}
    plain = {"id": id_, "kind": "tactic", "level": "user", "version": 1, "status": "active", "record": {}}
    return StoredMemory.from_wire(plain | {"created_at": since, "lesson": state} | more)


def uses_of(*outcomes: tuple[str, bool]) -> list[LessonUse]:
    return [
        LessonUse(memory_id="m", trace_id=f"t{place}", arm=arm, passed=passed, at=LATER)  # type: ignore[arg-type]
        for place, (arm, passed) in enumerate(outcomes)
    ]


def drawn(random: Random, had: float, held_out: float, count: int, share: float = 0.5) -> list[LessonUse]:
    arms = ["had" if random.random() < share else "held_out" for _ in range(count)]
    return uses_of(*((arm, random.random() < (had if arm == "had" else held_out)) for arm in arms))


# -- who gets one -------------------------------------------------------------------------------------


@pytest.mark.req("TM-15")
def test_half_of_the_runs_get_a_lesson_on_trial_and_one_in_ten_does_without_an_active_one() -> None:
    for stage, share in (("trial", 0.5), ("active", 0.9), ("suspended", 0.1)):
        arms = [draw_arms([lesson("l", stage)], f"r{number}", POLICY)[0] for number in range(2000)]
        assert sum(arm.arm == "had" for arm in arms) / len(arms) == pytest.approx(share, abs=0.04)
        assert {(arm.stage, arm.share) for arm in arms} == {(stage, share)}
    assert draw_arms([lesson("l")], "r1", POLICY) == draw_arms([lesson("l")], "r1", POLICY)


@pytest.mark.req("TM-15")
def test_a_run_gets_one_lesson_at_most_besides_those_that_are_signed() -> None:
    lessons = [
        lesson("a", "active"),
        lesson("t", "trial"),
        lesson("s", "suspended"),
        lesson("p", "active", status="pinned"),
    ]
    for number in range(200):
        arms = draw_arms(lessons, f"r{number}", POLICY)
        had = [arm.memory_id for arm in arms if arm.arm == "had"]
        assert len([id_ for id_ in had if id_ != "p"]) <= 1
        assert {"t", "p"} <= {arm.memory_id for arm in arms}
        assert "a" not in had or {arm.memory_id: arm.arm for arm in arms}["t"] == "held_out"
    assert draw_arms([lesson("c", "candidate")], "r", POLICY) == ()


# -- where it goes ------------------------------------------------------------------------------------


def test_one_lesson_of_a_family_is_on_trial_the_one_that_waits_longest() -> None:
    waiting = [lesson("b", "candidate", LATER), lesson("a", "candidate")]
    begun = started(waiting, LATER)
    assert begun is not None
    assert (begun[0], begun[1].state.stage, begun[1].reason) == ("a", "trial", "place_free")
    assert started([*waiting, lesson("t")], LATER) is None
    assert started([lesson("x", "active")], LATER) is None


@pytest.mark.req("TM-15")
def test_a_lesson_that_helps_becomes_active_and_one_that_hurts_is_retired() -> None:
    good, bad = drawn(Random(1), 0.95, 0.3, 100), drawn(Random(2), 0.2, 0.9, 100)
    helped, hurt = (next_state(lesson("m"), uses, POLICY, LATER) for uses in (good, bad))
    assert helped is not None
    assert hurt is not None
    assert (helped.state.stage, helped.reason) == ("active", "effect_above")
    assert helped.state.why.startswith("passed ")
    assert (hurt.state.stage, hurt.reason) == ("retired", "pass_rate_below")


@pytest.mark.req("TM-15")
def test_luck_alone_seldom_makes_a_lesson_active_however_often_one_looks() -> None:
    wrong = 0
    for seed in range(60):
        uses = drawn(Random(f"luck {seed}"), 0.5, 0.5, 119)
        moves = (next_state(lesson("m"), uses[:count], POLICY, LATER) for count in range(10, len(uses), 10))
        wrong += any(move is not None and move.state.stage == "active" for move in moves)
    assert wrong <= 6


def test_a_trial_that_shows_nothing_is_over_and_one_that_nobody_comes_to_too() -> None:
    move = next_state(lesson("m"), drawn(Random(3), 0.5, 0.5, 120), POLICY, LATER)
    assert move is not None
    assert (move.state.stage, move.reason) == ("retired", "no_help")
    assert left_idle(lesson("m"), 59, LATER) is None
    idle = left_idle(lesson("m"), 60, LATER)
    assert idle is not None
    assert idle.reason == "not_reached"


@pytest.mark.req("TM-15")
def test_an_active_lesson_is_suspended_by_its_newest_window() -> None:
    good = [("had" if place % 10 else "held_out", place % 10 > 0) for place in range(80)]
    assert next_state(lesson("m", "active"), uses_of(*good), POLICY, LATER) is None
    turned = [("had" if place % 10 else "held_out", place % 10 == 0) for place in range(34)]
    move = next_state(lesson("m", "active"), uses_of(*good, *turned), POLICY, LATER)
    assert move is not None
    assert (move.state.stage, move.reason) == ("suspended", "history_changed")
    assert "of the last 30 with it" in move.state.why


def test_a_suspended_lesson_comes_back_by_helping_or_is_retired() -> None:
    back = uses_of(*[("had", True), ("held_out", False)] * 11)
    gone = uses_of(*[("had", True), ("held_out", True)] * 12)
    helped, ended = (next_state(lesson("m", "suspended"), uses, POLICY, LATER) for uses in (back, gone))
    assert helped is not None
    assert ended is not None
    assert (helped.state.stage, helped.reason) == ("active", "helps_again")
    assert (ended.state.stage, ended.reason) == ("retired", "no_help")


@for_each("stage", ["trial", "active"])
def test_a_conflict_suspends_at_once_but_not_what_is_signed(stage: str) -> None:
    move = next_state(lesson("m", stage), [], POLICY, LATER, conflict=True)
    assert move is not None
    assert (move.state.stage, move.reason) == ("suspended", "conflict")
    signed = lesson("m", stage, status="pinned")
    assert next_state(signed, drawn(Random(2), 0.2, 0.9, 100), POLICY, LATER, conflict=True) is None
    assert stage_of(signed) == "active"
