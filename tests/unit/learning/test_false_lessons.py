"""Where nothing helps, hardly any kind of work ever has an active lesson, however many are tried and however long.

The tests are simulations with fixed seeds: of a kind of work in which candidates never run out, so that there are as
many chances to be wrong as there can be. `LessonPolicy.false_max` is the bound that they are held against.
"""

from __future__ import annotations

from math import erf, exp, sqrt
from random import Random

import pytest

from effort import SOAK
from muniment.core.policy import LessonPolicy
from muniment.learning.lesson_state import LessonState, LessonUse
from muniment.learning.lessons.arms import draw_arms, stage_of
from muniment.learning.lessons.lately import lately_of, share_of
from muniment.learning.lessons.life import Family, gave_place, next_state, started
from muniment.learning.lessons.proof import bar_of, proof_of, proven_of, trials_begun
from muniment.learning.lessons.uses import Uses
from muniment.learning.stored_memory import StoredMemory

POLICY = LessonPolicy()
BANKS = 400 if SOAK else 20
FOLDS = 200


def at(number: int) -> str:
    return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000000Z"


def candidate(id_: str, since: int) -> StoredMemory:
    learnt = {"feature": id_, "advice": "do", "with": {"n": 6, "passes": 6}, "without": {"n": 8, "passes": 2}}
    state = {"stage": "candidate", "since": at(since), "why": "it was proposed"}
    plain = {"id": id_, "kind": "tactic", "level": "user", "version": 1, "status": "active", "created_at": at(since)}
    return StoredMemory.from_wire(plain | {"record": {"learnt": learnt}, "lesson": state})


class Work:
    """A kind of work, run by run, as `lesson_moving` has it: two places on trial, and always somebody who waits."""

    def __init__(self, seed: object, policy: LessonPolicy = POLICY, useful: tuple[str, ...] = ()) -> None:
        self.random, self.policy, self.useful = Random(f"work {seed}"), policy, useful
        self.lessons: dict[str, StoredMemory] = {}
        self.uses: dict[str, list[tuple[int, LessonUse]]] = {}
        self.ever_active: dict[str, int] = {}
        self.number = 0

    def found(self, id_: str) -> Uses:
        first = self.number - self.policy.uses_max
        held = [(number, use) for number, use in self.uses.get(id_, ()) if number > first]
        ages = tuple(self.number - number for number, _ in held)
        return Uses(tuple(use for _, use in held), ages, oldest=at(first + 1) if first > 0 else "")

    def run(self, rate: float, with_useful: float, cost: float = 1.0) -> None:
        """One run: arms are drawn, it passes or not, and everything is moved by it."""
        self.number += 1
        now, policy = at(self.number), self.policy
        standing = [each for each in self.lessons.values() if stage_of(each) in ("trial", "active", "suspended")]
        found = {each.id: self.found(each.id) for each in standing}
        lately = {id_: lately_of(each, policy.half_life_runs) for id_, each in found.items()}
        arms = draw_arms(standing, f"run {self.random.random()}", policy, lately)
        helped = any(arm.arm == "had" and arm.memory_id in self.useful for arm in arms)
        passed = self.random.random() < (with_useful if helped else rate)
        family = Family(trials_begun(self.lessons.values()), proven_of(self.lessons.values()))
        for arm in arms:
            plain = {"memory_id": arm.memory_id, "trace_id": f"t{self.number}", "arm": arm.arm, "passed": passed}
            plain |= {"cost": cost * self.random.random(), "at": now, "stage": arm.stage, "share": arm.share}
            use = LessonUse.from_wire(plain)
            self.uses.setdefault(arm.memory_id, []).append((self.number, use))
            mine = (*found[arm.memory_id].uses, use)
            oldest = found[arm.memory_id].oldest
            move = next_state(self.lessons[arm.memory_id], mine, policy, now, family=family, oldest=oldest)
            if move is not None:
                self.stand(arm.memory_id, move.state)
        self.fill(now)

    def stand(self, id_: str, state: LessonState) -> None:
        status = "retired" if state.stage == "retired" else "active"
        self.lessons[id_] = self.lessons[id_].model_copy(update={"lesson": state, "status": status})
        if state.stage == "active":
            self.ever_active.setdefault(id_, self.number)

    def fill(self, now: str) -> None:
        """One always waits: trials that do not look like helping give their place, and it takes what is free."""
        policy = self.policy
        for each in [each for each in self.lessons.values() if stage_of(each) == "trial"]:
            found = self.found(each.id)
            share = share_of("trial", lately_of(found, policy.half_life_runs), policy)
            move = gave_place(each, sum(use.arm == "had" for use in found.uses), share, now)
            if move is not None:
                self.stand(each.id, move.state)
        waiting = sorted(
            (each for each in self.lessons.values() if stage_of(each) == "candidate"),
            key=lambda each: each.lesson.since,
        )
        while sum(each.lesson.trial is None for each in waiting) < policy.trial_places:
            made = candidate(self.useful[0] if self.useful and not self.lessons else f"tac {len(self.lessons)}", 0)
            self.lessons[made.id] = made
            waiting.insert(0, made)
        for each in waiting:
            taken = sum(stage_of(other) == "trial" for other in self.lessons.values())
            number = trials_begun(self.lessons.values()) + 1
            move = started(each, now, taken=taken, policy=policy, number=number)
            if move is not None:
                self.stand(each.id, move.state)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is handed a lesson may be decided by anything that is known before; the exact chance takes long."""

    def chance(passes: float, n: float, other_passes: float, other_n: float) -> float:
        mean, other = (passes + 1) / (n + 2), (other_passes + 1) / (other_n + 2)
        spread = sqrt(mean * (1 - mean) / (n + 3) + other * (1 - other) / (other_n + 3))
        return 0.5 * (1 + erf((mean - other) / spread / sqrt(2)))

    monkeypatch.setattr("muniment.learning.lessons.lately.chance_of", chance)


def within(found: int, of: int, bound: float) -> bool:
    """Whether a share of so many is no more than the bound, as far as so few can tell (two deviations)."""
    return found <= of * bound + 2 * sqrt(of * bound * (1 - bound))


@pytest.mark.soak
@pytest.mark.req("TM-15")
@pytest.mark.parametrize(("rate", "later"), [(0.7, 0.25), *([(0.15, 0.15), (0.5, 0.5), (0.9, 0.9)] if SOAK else [])])
def test_where_nothing_helps_hardly_any_kind_of_work_ever_has_an_active_lesson(rate: float, later: float) -> None:
    """No effect at all, 200 folds; also where the world changes half way, so that every rate does."""
    wrong = 0
    for seed in range(BANKS):
        work = Work(f"{rate} {seed}")
        for number in range(FOLDS):
            now = rate if number < FOLDS // 2 else later
            work.run(now, now)
        wrong += bool(work.ever_active)
        assert trials_begun(work.lessons.values()) >= 3, "many were tried"
    assert within(wrong, BANKS, POLICY.false_max)


def test_a_policy_that_allows_no_mistake_believes_nothing() -> None:
    for seed in range(3):
        work = Work(seed, LessonPolicy(false_max=0.0), useful=("good",))
        for _ in range(60):
            work.run(0.1, 0.95)
        assert not work.ever_active


@pytest.mark.soak
def test_one_that_helps_is_found_among_those_that_do_not() -> None:
    when, wrong = [], 0
    for seed in range(6):
        work = Work(seed, useful=("good",))
        for _ in range(FOLDS):
            work.run(0.35, 0.9)
        when.append(work.ever_active.get("good", FOLDS))
        wrong += len(work.ever_active) - ("good" in work.ever_active)
    assert sorted(when)[3] <= 80, when
    assert sum(each < FOLDS for each in when) >= 5
    assert wrong <= 3


# -- the bet itself -----------------------------------------------------------------------------------


def uses_of(random: Random, count: int, rates: tuple[float, float], share: float = 0.5) -> list[LessonUse]:
    found = []
    for number in range(count):
        arm = "had" if random.random() < share else "held_out"
        plain = {"memory_id": "m", "trace_id": f"t{number}", "arm": arm, "at": at(number), "share": share}
        passed = random.random() < rates[arm == "held_out"]
        found.append(LessonUse.from_wire(plain | {"passed": passed, "cost": random.random()}))
    return found


@pytest.mark.soak
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_bet_is_fair_where_a_lesson_does_nothing(share: float) -> None:
    random, memory, ever = Random(3), candidate("m", 0), 0
    for _ in range(100):
        rate = random.random()
        bar = bar_of(1, 0, POLICY)
        ever += proof_of(memory, uses_of(random, 80, (rate, rate), share), bar).passes >= bar
    assert within(ever, 100, POLICY.false_max * 0.25)


def test_a_bet_is_won_where_it_helps_and_not_where_it_hurts() -> None:
    memory, bar = candidate("m", 0), bar_of(1, 0, POLICY)
    won = [proof_of(memory, uses_of(Random(seed), 80, (0.85, 0.4)), bar).helps(bar) for seed in range(20)]
    assert sum(won) >= 18
    lost = [proof_of(memory, uses_of(Random(seed), 80, (0.4, 0.85)), bar).helps(bar) for seed in range(20)]
    assert not any(lost)


def first_good_then_bad(good: int, bad: int) -> list[LessonUse]:
    """Runs with it pass and others fail, and then the other way round."""
    plain = {"memory_id": "m", "share": 0.5, "cost": 1}
    return [
        LessonUse.from_wire(
            plain
            | {"trace_id": f"t{number}", "arm": arm, "at": at(number), "passed": (arm == "had") == (number < good)}
        )
        for number in range(good + bad)
        for arm in (("had", "held_out")[number % 2],)
    ]


def test_a_stake_counts_as_it_stands_where_the_bar_falls_and_is_left_where_it_came_to_its_own() -> None:
    memory, own, later = candidate("m", 0), bar_of(6, 0, POLICY), bar_of(6, 8, POLICY)
    short = first_good_then_bad(8, 0)
    stood = proof_of(memory, short, own)
    assert stood.helps(later)
    assert not stood.helps(own)
    assert not proof_of(memory, first_good_then_bad(8, 12), own).helps(later), "it has lost what it had"
    assert proof_of(memory, first_good_then_bad(30, 12), own).helps(own), "it had come to the bar, and bet no more"
    assert not proof_of(memory, first_good_then_bad(30, 60)).helps(own), "where it bets on, it has lost"


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_the_stake_is_fair_at_any_moment_that_others_choose(share: float) -> None:
    """Its mean is one at most when another lesson is proven, as far as a simulation can tell."""
    random, memory, stakes = Random(5), candidate("m", 0), []
    for _ in range(400):
        uses = uses_of(random, random.randrange(1, 30), (0.5, 0.5), share)
        stakes.append(exp(proof_of(memory, uses, bar_of(3, 0, POLICY)).passes))
    mean = sum(stakes) / len(stakes)
    deviation = sqrt(sum((each - mean) ** 2 for each in stakes)) / len(stakes)
    assert mean <= 1 + 3 * deviation


def test_an_outcome_whose_arm_was_not_drawn_proves_nothing() -> None:
    memory, uses = candidate("m", 0), uses_of(Random(1), 60, (1.0, 0.0))
    assert proof_of(memory, uses).passes > 5
    for share in (None, 0.0, 1.0):
        silent = [use.model_copy(update={"share": share}) for use in uses]
        assert proof_of(memory, silent) == (0.0, 0.0)


def test_the_shares_of_all_trials_are_one_whole() -> None:
    whole = sum(exp(-bar_of(number, 0, POLICY)) for number in range(1, 20_000))
    assert whole == pytest.approx(POLICY.false_max, rel=1e-3)
    assert bar_of(4, 1, POLICY) < bar_of(4, 0, POLICY) < bar_of(5, 0, POLICY)
    assert bar_of(1, 10_000, POLICY) == 0.0
