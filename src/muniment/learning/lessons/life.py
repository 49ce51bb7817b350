"""Where a lesson stands next, by what came of it: each step with its reason. Pure; a plan carries it out.

candidate → trial where a place of its family is free; trial → candidate where another waits and it does not look like
helping. trial → active where it is proven to help, or to cost less and be as good (`proof`); → retired where runs
without it do better beyond doubt, or where the trial is over and it does not look like helping. active → suspended
where its own history drops, or runs without it do better beyond doubt. suspended → active where it helps again and was
proven once, → trial where it was not, else → retired. A conflict that a run reports suspends at once. What is pinned is
measured and never moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from muniment.core import stats as counts
from muniment.core.policy import LessonPolicy
from muniment.learning.lesson_state import LessonStage, LessonState, LessonUse
from muniment.learning.lessons.arms import stage_of
from muniment.learning.lessons.change import find_drop
from muniment.learning.lessons.effects import Effect, effect_of, tally_of
from muniment.learning.lessons.proof import bar_of, proof_of
from muniment.learning.stored_memory import StoredMemory, Tally

__all__ = [
    "ALONE",
    "CONFLICT_CODES",
    "Family",
    "Move",
    "MoveReason",
    "changed_at_of",
    "counted",
    "gave_place",
    "judged_uses",
    "left_idle",
    "next_state",
    "outlived",
    "placed",
    "places_taken",
    "started",
]

CONFLICT_CODES = frozenset(("praxis_tactic_conflict", "memory_conflict"))
"""What a verifier says of a run whose lessons contradict each other, or the task."""

MoveReason = Literal[
    "place_free",
    "effect_above",
    "costs_less",
    "trial_over",
    "pass_rate_below",
    "history_changed",
    "conflict",
    "helps_again",
    "no_help",
    "not_reached",
    "gave_place",
]
_ARM_MIN = 5
"""Runs with a lesson, and without it, below which they say nothing of it."""
_OUTLIVED_RUNS = 100
_GIVES_PLACE = 0.35
"""The chance of helping below which a trial makes room for another."""
_LEARNT_MAX = 6
"""Of the runs a lesson was learnt from, so many speak for its history: they were chosen for looking good."""


class Family(NamedTuple):
    """What was tried of a kind of work before."""

    trials: int = 0
    proven: int = 0


ALONE = Family()


class Move(NamedTuple):
    """A step in the life of a lesson."""

    state: LessonState
    reason: MoveReason


def judged_uses(memory: StoredMemory, uses: Sequence[LessonUse]) -> list[LessonUse]:
    """The uses that say how the lesson does now: none of before its history changed. Oldest first."""
    changed = None if memory.lesson is None else memory.lesson.changed_at
    return [use for use in uses if changed is None or use.at >= changed]


def placed(now: str, *, taken: int, policy: LessonPolicy, number: int = 1) -> Move | None:
    """A place on trial, where one of its family's is free; it is the so-manieth of the family that is tried."""
    if taken >= policy.trial_places:
        return None
    why = f"{taken} of {policy.trial_places} places on trial were taken"
    return Move(LessonState(stage="trial", since=now, why=why, trial=number, trial_at=now), "place_free")


def started(memory: StoredMemory, now: str, *, taken: int, policy: LessonPolicy, number: int = 1) -> Move | None:
    """A candidate put on trial; where it had given its place, its trial goes on."""
    move = placed(now, taken=taken, policy=policy, number=number) if stage_of(memory) == "candidate" else None
    state = memory.lesson
    if move is None or state is None or state.trial is None:
        return move
    return move._replace(state=move.state.model_copy(update={"trial": state.trial, "trial_at": state.trial_at}))


def counted(state: LessonState, trials: int) -> LessonState:
    """A state that says how many trials of its kind of work have begun, so that the count outlives other lessons."""
    most = max(trials, state.trial or 0, state.trials or 0)
    return state.model_copy(update={"trials": most}) if most else state


def left_idle(memory: StoredMemory, runs: int, policy: LessonPolicy, now: str) -> Move | None:
    """The end of a trial that nobody came to: others fit the runs of its family better, and it holds a place."""
    if stage_of(memory) != "trial" or runs < policy.trial_idle_max:
        return None
    return _moved(memory, "retired", now, "not_reached", f"it came first in none of the last {runs} runs of its family")


def gave_place(memory: StoredMemory, had: int, chance: float, now: str) -> Move | None:
    """A lesson on trial that does not look like helping makes room for one that waits, and waits itself."""
    if stage_of(memory) != "trial" or had < _ARM_MIN or chance >= _GIVES_PLACE:
        return None
    why = f"another waited, and the chance that it helps was {chance:.2f} by what came of it lately"
    return _moved(memory, "candidate", now, "gave_place", why)


def places_taken(memories: Sequence[StoredMemory]) -> int:
    return sum(stage_of(memory) == "trial" for memory in memories)


def changed_at_of(memories: Iterable[StoredMemory]) -> str | None:
    """When the world of these lessons last changed: where one of them dropped and has not come back."""
    states = [
        each.lesson for each in memories if each.lesson is not None and stage_of(each) in ("suspended", "retired")
    ]
    return max((state.changed_at for state in states if state.changed_at is not None), default=None)


def outlived(memories: Iterable[StoredMemory], runs: Sequence[str]) -> frozenset[str]:
    """Ids of lessons whose end says nothing any more: the world has changed since, or so many runs came after it.

    What they said may be proposed anew, as another lesson. `runs` are the instants of the runs it would be learnt from.
    """
    listed = list(memories)
    changed = changed_at_of(listed) or ""
    ended = [each for each in listed if each.lesson is not None and each.lesson.stage == "retired"]
    return frozenset(
        each.id
        for each in ended
        if each.lesson is not None
        and (each.lesson.since < changed or sum(at > each.lesson.since for at in runs) >= _OUTLIVED_RUNS)
    )


def next_state(
    memory: StoredMemory,
    uses: Sequence[LessonUse],
    policy: LessonPolicy,
    now: str,
    *,
    conflict: bool = False,
    family: Family = ALONE,
    oldest: str = "",
) -> Move | None:
    """The next step of a lesson that was handed out or held out; None where it stays. `uses` are its own, in order.

    `family` is what was tried and proven of its kind of work; of before `oldest` no use is among them.
    """
    stage = stage_of(memory)
    if memory.status == "pinned" or stage in ("candidate", "retired"):
        return None
    known = judged_uses(memory, uses)
    if conflict and stage != "suspended":
        return _moved(memory, "suspended", now, "conflict", "a run reported a conflict")
    match stage:
        case "trial":
            move = _after_trial(memory, known, policy, now, family, oldest)
            return move or _dropped(memory, known, policy, now)
        case "active":
            return _dropped(memory, known, policy, now) or _outdone(memory, effect_of(known, policy), policy, now)
        case _:
            return _after_pause(memory, known, policy, now, family)


def _moved(
    memory: StoredMemory,
    stage: LessonStage,
    now: str,
    reason: MoveReason,
    why: str,
    changed: str | None = None,
    **more: Any,
) -> Move:
    """`changed`: the first instant that still says something of it. That it was tried and proven goes on with it."""
    state = memory.lesson
    said: dict[str, Any] = {"stage": stage, "since": now, "why": why, "changed_at": changed}
    if state is not None:
        proven = state.proven or (True if state.stage == "active" else None)  # earlier versions did not say so
        said |= {"trial": state.trial, "trial_at": state.trial_at, "trials": state.trials, "proven": proven}
    return Move(_state(said | more), reason)


def _state(said: Mapping[str, Any]) -> LessonState:
    return LessonState.model_validate({name: value for name, value in said.items() if value is not None})


def _after_trial(
    memory: StoredMemory, known: Sequence[LessonUse], policy: LessonPolicy, now: str, family: Family, oldest: str
) -> Move | None:
    state = memory.lesson
    begun = "" if state is None else state.trial_at or state.since  # earlier versions did not say when
    tried = [use for use in known if use.at >= begun]
    effect, arms = effect_of(known, policy), [tally_of(tried, arm).n for arm in ("had", "held_out")]
    if sum(arms) < policy.trial_uses_min or min(arms) < _ARM_MIN:
        return None
    number = (None if state is None else state.trial) or max(1, family.trials)
    words, proof = effect.words, proof_of(memory, tried, bar_of(number, 0, policy))
    bar = bar_of(number, family.proven, policy)
    is_cut = begun < oldest  # a bet of which the beginning is lost is none
    if proof.helps(bar) and not is_cut:
        return _moved(memory, "active", now, "effect_above", words, proven=True)
    if effect.bounds(policy.doubt).upper < 0:
        return _moved(memory, "retired", now, "pass_rate_below", words)
    if effect.bounds(policy.confidence).lower > -policy.margin and proof.costs_less(bar) and not is_cut:
        return _moved(memory, "active", now, "costs_less", f"{words}, at less cost", proven=True)
    if sum(arms) >= policy.trial_uses_max and effect.bounds(policy.hope).lower <= 0:
        return _moved(memory, "retired", now, "no_help", words)
    if not is_cut:
        return None
    anew: dict[str, Any] = {"trial": family.trials + 1, "trial_at": now}
    return _moved(memory, "trial", now, "trial_over", f"{words}, which proves nothing yet", **anew)


def _outdone(memory: StoredMemory, effect: Effect, policy: LessonPolicy, now: str) -> Move | None:
    if effect.held_out.n < _ARM_MIN or effect.bounds(policy.doubt).upper >= 0:
        return None
    return _moved(memory, "suspended", now, "pass_rate_below", effect.words)


def _dropped(memory: StoredMemory, uses: Sequence[LessonUse], policy: LessonPolicy, now: str) -> Move | None:
    had = [use for use in uses if use.arm == "had"]
    found = find_drop([use.passed for use in had], policy.change_threshold, _known_before(memory))
    if found is None:
        return None
    return _moved(memory, "suspended", now, "history_changed", found.words, had[found.place].at)


def _known_before(memory: StoredMemory) -> counts.Tally:
    """What runs that did as it says came to before it was handed out; nothing once its history has changed."""
    if memory.lesson is not None and memory.lesson.changed_at is not None:
        return counts.Tally()
    start = memory.with_tally
    learnt: Any = memory.record.get("learnt")
    if not start.n and isinstance(learnt, Mapping):
        side = learnt.get("without" if learnt.get("advice") == "avoid" else "with")
        start = Tally.from_wire(side) if isinstance(side, Mapping) else start
    n = min(start.n, _LEARNT_MAX)
    return counts.Tally(round(n * start.passes / start.n), n) if n else counts.Tally()


def _after_pause(
    memory: StoredMemory, uses: Sequence[LessonUse], policy: LessonPolicy, now: str, family: Family
) -> Move | None:
    state = memory.lesson
    since, changed = ("", None) if state is None else (state.since, state.changed_at)
    effect = effect_of([use for use in uses if use.at >= since], policy)
    if effect.had.n < policy.suspended_uses_min or effect.difference is None:
        return None
    fair, words = effect.bounds(policy.hope), effect.words
    if fair.lower > 0:  # what was before its pause is not held against it again
        if state is not None and not state.proven:
            anew: dict[str, Any] = {"trial": family.trials + 1, "trial_at": now}
            return _moved(memory, "trial", now, "helps_again", words, since or None, **anew)
        return _moved(memory, "active", now, "helps_again", words, since or None)
    if fair.upper < 0 or effect.had.n >= policy.suspended_uses_max:
        return _moved(memory, "retired", now, "no_help", words, changed)
    return None
