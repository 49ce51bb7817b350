"""Who gets a lesson: drawn by hash of lesson and run, so that nobody can choose and every look draws the same. Pure.

What is no lesson (an episode, a rule, a seed) is always handed out, and so it is with one that a look asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from muniment.core.canonical import digest
from muniment.core.policy import LessonPolicy
from muniment.learning.lesson_state import LessonArm, LessonStage
from muniment.learning.lessons.lately import Lately, share_of
from muniment.learning.stored_memory import StoredMemory

__all__ = ["draw_arms", "fits_any_run", "is_lesson", "is_tried", "stage_of"]


def is_lesson(memory: StoredMemory) -> bool:
    return memory.kind == "tactic"


def fits_any_run(memory: StoredMemory) -> bool:
    """A person wrote it for no kind of work. Its condition says when it holds, and often only the run itself can tell
    (`when an upload is refused`). So neither words nor tools of the task keep it back; what comes of it decides.
    """
    said = memory.record.get("lesson")
    is_persons = isinstance(said, dict) and said.get("origin") == "person"
    return is_lesson(memory) and is_persons and memory.record.get("intent_key") is None


def stage_of(memory: StoredMemory) -> LessonStage:
    """Where a lesson stands. A record of an earlier version, or one that was written as it is, is active; a person's
    pin keeps it so.
    """
    if memory.status in ("retired", "pruned"):
        return "retired"
    if memory.status == "pinned" or memory.lesson is None:
        return "active"
    return memory.lesson.stage


def is_tried(memory: StoredMemory) -> bool:
    """Was it handed out as a lesson?"""
    return memory.lesson is not None and memory.lesson.stage != "candidate"


def draw_arms(
    memories: Iterable[StoredMemory], run_id: str, policy: LessonPolicy, lately: Mapping[str, Lately] | None = None
) -> tuple[LessonArm, ...]:
    """Of each lesson that would be handed to a run, whether it is; what came of them `lately` says how likely.

    Of the lessons on trial a run gets one at most, so that what says the same is not measured beside its like: the runs
    that get none are what all of them are compared with, and the others have no arm in a run that got one. Suspended
    ones share one small share.
    """
    known = lately or {}
    lessons = [memory for memory in memories if is_lesson(memory)]
    suspended = sum(stage_of(memory) == "suspended" for memory in lessons)
    shares = {memory.id: _share(memory, known, policy) for memory in lessons}
    shares |= {memory.id: policy.suspended_share / suspended for memory in lessons if stage_of(memory) == "suspended"}
    tried = _one_share({memory.id: shares[memory.id] for memory in lessons if stage_of(memory) == "trial"})
    shares |= tried
    chosen = _one_of(tried, run_id)
    arms = []
    for memory in lessons:
        stage = stage_of(memory)
        if stage == "trial" and chosen not in (None, memory.id):
            continue
        gets_it = chosen == memory.id if stage == "trial" else _drawn(memory.id, run_id) < shares[memory.id]
        share = shares[memory.id]
        if stage == "trial":  # among the runs that it has an arm in
            share /= 1 - sum(other for id_, other in tried.items() if id_ != memory.id)
        share = round(share, 6)
        arms.append(LessonArm(memory_id=memory.id, arm="had" if gets_it else "held_out", stage=stage, share=share))
    return tuple(arms)


def _share(memory: StoredMemory, known: Mapping[str, Lately], policy: LessonPolicy) -> float:
    """Of the runs that a lesson fits, how many get it if it is alone. A signature keeps all but the holdout."""
    stage = stage_of(memory)
    lately = Lately() if memory.status == "pinned" else known.get(memory.id, Lately())
    return share_of(stage, lately, policy) if stage in ("trial", "active") else 0.0


def _one_share(shares: Mapping[str, float]) -> dict[str, float]:
    """What each of several gets where a run gets one at most: together what the best of them would, the better more."""
    whole = sum(share * share for share in shares.values())
    scale = max(shares.values()) / whole if whole else 0.0
    return {id_: scale * share * share for id_, share in shares.items()}


def _one_of(shares: Mapping[str, float], run_id: str) -> str | None:
    """One of several by their shares, or none of them."""
    drawn, reached = _drawn("trial", run_id), 0.0
    for id_, share in sorted(shares.items()):
        reached += share
        if drawn < reached:
            return id_
    return None


def _drawn(memory_id: str, run_id: str) -> float:
    """From 0 to 1: the same for a lesson and a run for ever, and no other lesson's."""
    drawn = digest(f"lesson\n{memory_id}\n{run_id}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(drawn[:8], "big") / 2**64
