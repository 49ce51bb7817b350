"""The life of a lesson: selection for runs, outcomes, and stage changes (TM-15). Pure.

Whether a run gets a lesson is decided by a hash of both, so it is unbiased and repeatable. A run gets one lesson of a
family, besides signed ones. One lesson of a family is on trial at a time. Its trial is decided by the same sequential
comparison as canaries: it can be checked after every run, with an error rate of one lesson in twenty.

candidate → trial, if no other of its family is on trial; trial → active, if runs with it pass more often; → retired, if
they pass less often, or the trial ended without a result. active → suspended, if its newest window passes less often
than runs without it and its own earlier runs; suspended → active or retired, by the same comparison. A conflict
reported by a run suspends it at once. Signed lessons are measured and never moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from muniment.core.canonical import digest
from muniment.core.policy import LessonPolicy
from muniment.core.stats import Comparison
from muniment.learning.keys import read_intent_key
from muniment.learning.records import LessonArm, LessonStage, LessonState, LessonUse, StoredMemory

__all__ = [
    "CONFLICT_CODES",
    "Move",
    "MoveReason",
    "draw_arms",
    "fits_any_run",
    "is_lesson",
    "left_idle",
    "next_state",
    "stage_of",
    "started",
]

CONFLICT_CODES = frozenset(("praxis_tactic_conflict", "memory_conflict"))
"""Reason codes of runs whose lessons contradict each other, or the task."""
MoveReason = Literal[
    "place_free",
    "effect_above",
    "pass_rate_below",
    "no_help",
    "conflict",
    "helps_again",
    "history_changed",
    "not_reached",
]
_IDLE_RUNS_MAX = 60
_TRIAL_USES_MAX, _SUSPENDED_USES_MAX = 120, 12
"""An undecided trial is retired after this many runs; a suspended lesson after this many runs with it."""
_WINDOW_USES = 30
"""The window of newest runs with an active lesson that can suspend it."""
_ORDER: tuple[LessonStage, ...] = ("trial", "active", "suspended")
_SIDES = {"had": "candidate", "held_out": "baseline"}


class Move(NamedTuple):
    """A step in the life of a lesson."""

    state: LessonState
    reason: MoveReason


# -- arms ---------------------------------------------------------------------------------------------


def is_lesson(memory: StoredMemory) -> bool:
    return memory.kind == "tactic"


def fits_any_run(memory: StoredMemory) -> bool:
    """Return whether a person wrote it without a kind of work. Often only the run itself shows whether its condition
    holds (`when an upload is refused`), so words and tools of the task do not exclude it.
    """
    said = memory.record.get("lesson")
    is_persons = isinstance(said, dict) and said.get("origin") == "person"
    return is_lesson(memory) and is_persons and memory.record.get("intent_key") is None


def stage_of(memory: StoredMemory) -> LessonStage:
    """The stage of a lesson. Records of version 0.1, and directly written ones, are active; a pin keeps them so."""
    if memory.status in ("retired", "pruned"):
        return "retired"
    if memory.status == "pinned" or memory.lesson is None:
        return "active"
    return memory.lesson.stage


def draw_arms(memories: Iterable[StoredMemory], run_id: str, policy: LessonPolicy) -> tuple[LessonArm, ...]:
    """Draw arms for the lessons that would be given to a run: every signed one, and others up to the first it gets.

    This happens per family of a bank. The lesson on trial is drawn first, so that it is compared with runs that have
    the active ones; lessons after the one given have no arm in this run.
    """
    arms = []
    served: set[tuple[str, str | None]] = set()
    lessons = [memory for memory in memories if is_lesson(memory) and stage_of(memory) in _ORDER]
    for memory in sorted(lessons, key=lambda memory: _ORDER.index(stage_of(memory))):
        family = memory.level, _family_of(memory)
        is_signed = memory.status == "pinned"
        if is_signed or family not in served:
            arms.append(_arm(memory, run_id, policy))
            served |= {family} if arms[-1].arm == "had" and not is_signed else set()
    return tuple(arms)


def _family_of(memory: StoredMemory) -> str | None:
    key = memory.record.get("intent_key")
    parts = read_intent_key(key) if isinstance(key, str) else None
    return str(key) if parts is None else parts.task_family or parts.domain_tag


def _arm(memory: StoredMemory, run_id: str, policy: LessonPolicy) -> LessonArm:
    stage = stage_of(memory)
    shares = {"trial": policy.trial_share, "suspended": policy.suspended_share}
    share = shares.get(stage, 1 - policy.holdout_share)
    drawn = digest(f"lesson\n{memory.id}\n{run_id}".encode("utf-8", "surrogatepass"))
    gets_it = int.from_bytes(drawn[:8], "big") / 2**64 < share
    return LessonArm(memory_id=memory.id, arm="had" if gets_it else "held_out", stage=stage, share=round(share, 6))


# -- next stages --------------------------------------------------------------------------------------


def started(family: Iterable[StoredMemory], now: str) -> tuple[str, Move] | None:
    """Start the trial of the longest-waiting candidate of a family; None if another is on trial or none waits."""
    listed = list(family)
    waiting = [memory for memory in listed if stage_of(memory) == "candidate"]
    if not waiting or any(stage_of(memory) == "trial" for memory in listed):
        return None
    first = min(
        waiting, key=lambda memory: (memory.created_at if memory.lesson is None else memory.lesson.since, memory.id)
    )
    return first.id, Move(LessonState(stage="trial", since=now, why="no other of its family is on trial"), "place_free")


def left_idle(memory: StoredMemory, runs: int, now: str) -> Move | None:
    """End a trial whose condition held in none of the last runs of its family, to free its place."""
    if stage_of(memory) != "trial" or runs < _IDLE_RUNS_MAX:
        return None
    return _moved("retired", now, "not_reached", f"it came first in none of the last {runs} runs of its family")


def next_state(
    memory: StoredMemory, uses: Sequence[LessonUse], policy: LessonPolicy, now: str, *, conflict: bool = False
) -> Move | None:
    """The next stage of a lesson that was given or held out; None if it stays. `uses` are its own, in order."""
    stage = stage_of(memory)
    if memory.status == "pinned" or stage in ("candidate", "retired"):
        return None
    if conflict and stage != "suspended":
        return _moved("suspended", now, "conflict", "a run reported a conflict")
    since = "" if memory.lesson is None else memory.lesson.since
    newer = [use for use in uses if use.at >= since]
    if stage == "active":
        return _after_window(uses, policy, now)
    return _after_trial(newer, policy, now, is_back=stage == "suspended")


def _after_trial(uses: Sequence[LessonUse], policy: LessonPolicy, now: str, *, is_back: bool) -> Move | None:
    compared = Comparison(policy.margin, policy.alpha)
    for use in uses:
        compared = compared.add(_SIDES[use.arm], use.passed)  # type: ignore[arg-type]
    words = _words(uses)
    if compared.decision == "better":
        return _moved("active", now, "helps_again" if is_back else "effect_above", words)
    if compared.decision == "harmful":
        return _moved("retired", now, "pass_rate_below", words)
    had = sum(use.arm == "had" for use in uses)
    is_over = had >= _SUSPENDED_USES_MAX if is_back else len(uses) >= _TRIAL_USES_MAX
    return _moved("retired", now, "no_help", words) if is_over else None


def _after_window(uses: Sequence[LessonUse], policy: LessonPolicy, now: str) -> Move | None:
    """Suspend if the newest runs with it pass less often than runs without it and its own earlier runs."""
    window = [use for use in uses if use.arm == "had"][-_WINDOW_USES:]
    known = {use.trace_id for use in window}
    others = [use for use in uses if use.trace_id not in known]
    compared = Comparison(policy.margin, policy.alpha)
    for mine, other in zip(reversed(window), reversed(others), strict=False):
        compared = compared.add_pair(mine.passed, other.passed)
    if "worse" not in compared.claims:
        return None
    passes = sum(use.passed for use in window)
    why = (
        f"passed {passes} of the last {len(window)} with it, {sum(use.passed for use in others)} of {len(others)} else"
    )
    return _moved("suspended", now, "history_changed", why)


def _words(uses: Sequence[LessonUse]) -> str:
    """`passed 9 of 12 with it, 3 of 11 held out`."""
    sides = [[use.passed for use in uses if use.arm == arm] for arm in ("had", "held_out")]
    had, held_out = (f"{sum(side)} of {len(side)}" for side in sides)
    return f"passed {had} with it, {held_out} held out"


def _moved(stage: LessonStage, now: str, reason: MoveReason, why: str) -> Move:
    return Move(LessonState(stage=stage, since=now, why=why), reason)
