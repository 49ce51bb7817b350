"""Effects within strata, the test of change, who gets a lesson, and where it goes: pure figures, seeds fixed."""

from __future__ import annotations

from random import Random

import pytest

from effort import SOAK
from muniment.core.policy import LessonPolicy
from muniment.core.stats import Tally
from muniment.learning.lesson_state import LessonState, LessonUse
from muniment.learning.lessons.arms import draw_arms, stage_of
from muniment.learning.lessons.change import find_drop
from muniment.learning.lessons.effects import effect_of
from muniment.learning.lessons.lately import lately_of
from muniment.learning.lessons.life import (
    Family,
    changed_at_of,
    gave_place,
    left_idle,
    next_state,
    outlived,
    started,
)
from muniment.learning.lessons.uses import Uses
from muniment.learning.stored_memory import StoredMemory

POLICY = LessonPolicy()
LIVES = 20 if SOAK else 10
"""Of lessons, each with a seed of its own."""


def at(number: int) -> str:
    return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z"


def lesson(stage="trial", *, id_="tac_1", status="active", learnt=(8, 10), since=0, changed=None) -> StoredMemory:
    record = {"learnt": {"feature": "x", "advice": "do", "with": {"n": learnt[1], "passes": learnt[0]}}}
    state = {"stage": stage, "since": at(since), "why": "so"} | ({} if changed is None else {"changed_at": at(changed)})
    return StoredMemory.from_wire(
        {
            "id": id_, "kind": "tactic", "level": "user", "version": 1, "status": status, "created_at": at(0),
            "record": record if learnt[1] else {}, "lesson": state,
        }
    )  # fmt: skip


def use(
    number: int, arm: str, passed: bool, *, task: str | None = None, cost: float = 1, share: float = 0.5
) -> LessonUse:
    plain = {"memory_id": "tac_1", "trace_id": f"t{number}", "arm": arm, "passed": passed, "cost": cost, "share": share}
    return LessonUse.from_wire(plain | {"at": at(number)} | ({} if task is None else {"task": task}))


def life(seed: int, runs: int, rates, *, drift=None, lie=0.1, stage="trial", learnt=(8, 10)):
    """A lesson lived through: pass rates with it and without, perhaps others after so many runs, and a verifier that
    lies now and then. Answers it, the stages it came to, and how often each run would pass.
    """
    random, memory = Random(seed), lesson(stage, id_=f"tac_{seed}", learnt=learnt)
    uses, steps, passing = [], [], []
    for number in range(1, runs + 1):
        rates = drift[1] if drift is not None and number > drift[0] else rates
        lately = {memory.id: lately_of(Uses(tuple(uses), tuple(range(len(uses)))[::-1]), POLICY.half_life_runs)}
        drawn = draw_arms([memory], f"run{number}", POLICY, lately)
        arm = "held_out" if stage_of(memory) == "retired" else drawn[0].arm
        passing.append(rates[arm == "held_out"])
        if stage_of(memory) == "retired":
            continue
        passed = (random.random() < passing[-1]) != (random.random() < lie)
        uses.append(use(number, arm, passed, share=drawn[0].share))
        move = next_state(memory, uses[-POLICY.uses_max :], POLICY, at(number))
        if move is not None:
            status = "retired" if move.state.stage == "retired" else "active"
            memory = memory.model_copy(update={"lesson": move.state, "status": status})
            steps.append((number, move.state.stage, move.reason))
    return memory, steps, passing


# -- effects ------------------------------------------------------------------------------------------


@pytest.mark.req("TM-15")
def test_an_effect_is_the_difference_within_tasks_not_between_them() -> None:
    uses = []
    for number in range(40):  # the easy task is mostly run with it, the hard one mostly without: it does nothing
        easy = number % 2 == 0
        arm = "had" if (number // 2) % 5 != 0 else "held_out"
        arm = arm if easy else {"had": "held_out", "held_out": "had"}[arm]
        uses.append(use(number, arm, easy, task="easy" if easy else "hard"))
    effect = effect_of(uses, POLICY)
    assert effect.had.passes / effect.had.n - effect.held_out.passes / effect.held_out.n == pytest.approx(0.6)
    assert effect.difference == pytest.approx(0)
    assert effect.bounds(0.95).lower < 0 < effect.bounds(0.95).upper


def test_newer_uses_weigh_more() -> None:
    old = [use(number, ("had", "held_out")[number % 2], number % 2 == 0) for number in range(100)]
    new = [use(number, ("had", "held_out")[number % 2], number % 2 == 1) for number in range(100, 160)]
    assert effect_of(old, POLICY).difference == pytest.approx(1)
    both = effect_of([*old, *new], LessonPolicy(half_life_uses=20))
    assert both.difference is not None
    assert both.difference < -0.5
    assert (both.had.n, both.had.passes) == (80, 50), "each counted once, whatever it weighs"


def test_nothing_is_known_while_an_arm_is_empty() -> None:
    effect = effect_of([use(number, "had", True) for number in range(9)], POLICY)
    assert (effect.difference, tuple(effect.bounds(0.95))) == (None, (-1.0, 1.0))


@pytest.mark.soak
def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random, inside = Random(5), 0
    for _ in range(300):
        uses = []
        for number in range(80):
            task, arm = random.randrange(6), random.choice(("had", "held_out"))
            rate = 0.2 + 0.1 * task + (0.2 if arm == "had" else 0)
            uses.append(use(number, arm, random.random() < rate, task=f"task{task}"))
        bounds = effect_of(uses, LessonPolicy(half_life_uses=1e9)).bounds(0.9)
        inside += bounds.lower <= 0.2 <= bounds.upper
    assert 0.86 <= inside / 300 <= 0.97


def test_as_good_and_cheaper_is_worth_keeping() -> None:
    uses = [use(n, ("had", "held_out")[n % 2], True, cost=(4, 9)[n % 2] + n % 3) for n in range(100)]
    move = next_state(lesson(), uses, POLICY, at(150))
    assert move is not None
    assert (move.state.stage, move.reason) == ("active", "costs_less")


# -- change -------------------------------------------------------------------------------------------


def test_a_drop_is_found_where_it_was() -> None:
    outcomes = [number % 5 != 0 for number in range(40)] + [False] * 8
    found = find_drop(outcomes, POLICY.change_threshold)
    assert found is not None
    assert 38 <= found.place <= 41
    assert found.after.passes <= 1


def test_a_rise_is_no_drop_and_short_histories_say_nothing() -> None:
    assert find_drop([False] * 20 + [True] * 20, 2.0) is None
    assert find_drop([True] * 3 + [False] * 9, POLICY.change_threshold) is None
    assert find_drop([False] * 9, 2.0, Tally(6, 6)) is not None, "what is known from elsewhere is history too"


@pytest.mark.soak
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_a_rate_that_stays_is_seldom_told_to_have_changed(rate: float) -> None:
    random, alarms = Random(7), 0
    for _ in range(60):
        outcomes = [random.random() < rate for _ in range(150)]
        looks = range(10, 151, 5)
        alarms += any(find_drop(outcomes[:look], POLICY.change_threshold) for look in looks)
    assert alarms <= 6


# -- arms ---------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize(("stage", "share"), [("active", 0.9), ("trial", 0.5), ("suspended", 0.1), ("candidate", 0.0)])
def test_each_stage_has_its_share_and_each_look_draws_the_same(stage: str, share: float) -> None:
    memory = lesson(stage)
    had = [draw_arms([memory], f"run{number}", POLICY)[0].arm == "had" for number in range(2000)]
    assert sum(had) / 2000 == pytest.approx(share, abs=0.03)
    assert had == [draw_arms([memory], f"run{number}", POLICY)[0].arm == "had" for number in range(2000)]


def test_suspended_lessons_share_one_share() -> None:
    three = [lesson("suspended", id_=f"tac_{number}") for number in range(3)]
    some = [any(arm.arm == "had" for arm in draw_arms(three, f"run{number}", POLICY)) for number in range(2000)]
    assert sum(some) / 2000 == pytest.approx(0.1, abs=0.03)


# -- life ---------------------------------------------------------------------------------------------


def test_a_candidate_waits_for_a_place() -> None:
    assert started(lesson("candidate"), at(9), taken=POLICY.trial_places, policy=POLICY) is None
    move = started(lesson("candidate"), at(9), taken=0, policy=POLICY)
    assert move is not None
    assert (move.state.stage, move.state.since) == ("trial", at(9))
    assert started(lesson("active"), at(9), taken=0, policy=POLICY) is None


def test_a_trial_that_nobody_comes_to_gives_its_place_back() -> None:
    assert left_idle(lesson("trial"), POLICY.trial_idle_max - 1, POLICY, at(9)) is None
    move = left_idle(lesson("trial"), POLICY.trial_idle_max, POLICY, at(9))
    assert move is not None
    assert (move.state.stage, move.reason) == ("retired", "not_reached")
    assert left_idle(lesson("active"), 10_000, POLICY, at(9)) is None


@pytest.mark.req("RC-13")
@pytest.mark.parametrize("stage", ["trial", "active"])
def test_a_reported_conflict_suspends_at_once(stage: str) -> None:
    move = next_state(lesson(stage), [use(1, "had", False)], POLICY, at(2), conflict=True)
    assert move is not None
    assert (move.state.stage, move.reason) == ("suspended", "conflict")


def test_what_is_pinned_is_never_moved() -> None:
    uses = [use(number, "had", False) for number in range(60)]
    assert next_state(lesson("active", status="pinned"), uses, POLICY, at(99), conflict=True) is None


@pytest.mark.soak
@pytest.mark.req("RC-13")
def test_a_useful_lesson_becomes_active_and_stays_under_a_verifier_that_lies() -> None:
    lives = [life(seed, 200, (0.85, 0.4)) for seed in range(LIVES)]
    assert sum(stage_of(memory) == "active" for memory, _, _ in lives) >= 0.9 * LIVES
    suspended = sum(any(stage == "suspended" for _, stage, _ in steps) for _, steps, _ in lives)
    assert suspended <= 0.15 * LIVES


@pytest.mark.soak
@pytest.mark.req("TM-15")
@pytest.mark.req("RC-13")
def test_a_harmful_lesson_goes_and_soon() -> None:
    lives = [life(seed, 150, (0.15, 0.6)) for seed in range(20)]
    assert all(stage_of(memory) == "retired" for memory, _, _ in lives)
    assert sorted(steps[0][0] for _, steps, _ in lives)[10] <= 30


@pytest.mark.soak
def test_one_that_does_nothing_is_seldom_kept() -> None:
    lives = [life(seed, 200, (0.4, 0.4)) for seed in range(LIVES)]
    assert sum(stage_of(memory) == "active" for memory, _, _ in lives) <= 0.25 * LIVES


@pytest.mark.soak
@pytest.mark.parametrize("after", [(0.05, 0.4), (0.2, 0.4)])
def test_after_a_drift_it_is_back_at_the_rate_without_within_thirty_runs(after: tuple[float, float]) -> None:
    lives = [life(seed, 160, (0.85, 0.4), drift=(100, after)) for seed in range(LIVES)]
    late = [sum(passing[130:160]) / 30 for _, _, passing in lives]
    assert sum(late) / len(late) >= 0.4 - 0.04
    assert sum(stage_of(memory) == "active" for memory, _, _ in lives) <= 0.1 * LIVES


def test_one_suspended_by_mistake_comes_back() -> None:
    uses = [use(number, "had" if number % 5 == 0 else "held_out", number % 5 == 0) for number in range(10, 60)]
    proven = lesson("suspended", since=5, changed=3)
    proven = proven.model_copy(update={"lesson": proven.lesson.model_copy(update={"proven": True})})
    move = next_state(proven, uses, POLICY, at(99))
    assert move is not None
    assert (move.state.stage, move.reason, move.state.changed_at) == ("active", "helps_again", at(5))


def test_one_that_was_never_proven_comes_back_to_be_tried() -> None:
    uses = [use(number, "had" if number % 5 == 0 else "held_out", number % 5 == 0) for number in range(10, 60)]
    move = next_state(lesson("suspended", since=5, changed=3), uses, POLICY, at(99))
    assert move is not None
    assert (move.state.stage, move.reason, move.state.proven) == ("trial", "helps_again", None)
    assert (move.state.trial, move.state.trial_at) == (1, at(99)), "what brought it back proves nothing a second time"


def test_one_that_gave_its_place_goes_on_with_its_trial() -> None:
    first = started(lesson("candidate"), at(9), taken=0, policy=POLICY, number=4)
    tried = lesson().model_copy(update={"lesson": first.state})
    waits = gave_place(tried, 8, 0.2, at(20))
    assert (waits.state.stage, waits.state.trial, waits.state.trial_at) == ("candidate", 4, at(9))
    again = started(lesson().model_copy(update={"lesson": waits.state}), at(30), taken=0, policy=POLICY, number=7)
    assert (again.state.stage, again.state.trial, again.state.trial_at) == ("trial", 4, at(9))


def test_a_bet_whose_beginning_is_lost_is_begun_anew() -> None:
    state = LessonState(stage="trial", since=at(0), why="so", trial=2, trial_at=at(0))
    memory = lesson().model_copy(update={"lesson": state})
    uses = [use(number, ("had", "held_out")[number % 2], number % 2 == 0) for number in range(10, 60)]
    whole = next_state(memory, uses, POLICY, at(99), family=Family(5))
    assert (whole.state.stage, whole.reason) == ("active", "effect_above")
    cut = next_state(memory, uses, POLICY, at(99), family=Family(5), oldest=at(10))
    assert (cut.state.stage, cut.reason, cut.state.trial, cut.state.trial_at) == ("trial", "trial_over", 6, at(99))


def test_the_world_has_changed_for_a_family_until_its_lesson_comes_back() -> None:
    assert changed_at_of([lesson("active", changed=7), lesson("trial")]) is None
    assert changed_at_of([lesson("suspended", changed=7), lesson("retired", status="retired", changed=4)]) == at(7)


def test_what_ended_before_the_world_changed_may_be_proposed_again() -> None:
    ended = lesson("retired", id_="old", status="retired", since=20)
    assert outlived([ended], [at(30)] * 10) == frozenset()
    assert outlived([ended], [at(30)] * 100) == {"old"}
    assert outlived([ended, lesson("suspended", id_="new", since=60, changed=50)], []) == {"old"}


def test_a_record_of_an_earlier_version_is_active() -> None:
    plain = lesson().to_wire()
    assert stage_of(StoredMemory.from_wire({key: value for key, value in plain.items() if key != "lesson"})) == "active"
    assert stage_of(lesson("trial", status="pinned")) == "active"
    assert stage_of(lesson("active", status="retired")) == "retired"
    assert LessonState.from_wire(plain["lesson"]).stage == "trial"
