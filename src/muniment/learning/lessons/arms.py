"""Who gets a lesson: drawn by hash of lesson and run, so that nobody can choose and every look draws the same. Pure.

What is no lesson (an episode, a rule, a seed) is always handed out, and so it is with one that a look asks for.
"""

from __future__ import annotations

from collections.abc import Iterable

from muniment.core.canonical import digest
from muniment.core.policy.learning import LessonPolicy
from muniment.learning.lesson_state import LessonArm, LessonStage
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


def draw_arms(memories: Iterable[StoredMemory], run_id: str, policy: LessonPolicy) -> tuple[LessonArm, ...]:
    """Of each lesson that would be handed to a run, whether it is. The suspended ones share one small share."""
    lessons = [memory for memory in memories if is_lesson(memory)]
    suspended = sum(stage_of(memory) == "suspended" for memory in lessons)
    shares: dict[LessonStage, float] = {
        "active": 1 - policy.holdout_share,
        "trial": policy.trial_share,
        "suspended": policy.suspended_share / max(1, suspended),
    }
    arms = []
    for memory in lessons:
        stage = stage_of(memory)
        gets_it = _drawn(memory.id, run_id) < shares.get(stage, 0.0)
        arms.append(LessonArm(memory_id=memory.id, arm="had" if gets_it else "held_out", stage=stage))
    return tuple(arms)


def _drawn(memory_id: str, run_id: str) -> float:
    """From 0 to 1: the same for a lesson and a run for ever, and no other lesson's."""
    drawn = digest(f"lesson\n{memory_id}\n{run_id}".encode("utf-8", "surrogatepass"))
    return int.from_bytes(drawn[:8], "big") / 2**64
