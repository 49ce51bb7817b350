"""Where a lesson stands, as a memory carries it and as a run's recall tells of it."""

from typing import Literal

from muniment.core.record import Absent, Record
from muniment.core.scope import IdText

__all__ = ["LessonArm", "LessonArmName", "LessonOrigin", "LessonStage", "LessonState"]

LessonStage = Literal["candidate", "trial", "active", "suspended", "retired"]
LessonOrigin = Literal["contrast", "model", "person"]
"""Who wrote it: runs that were compared, a model, a person."""
LessonArmName = Literal["had", "held_out"]


class LessonState(Record):
    """Where a lesson stands between its proposal and its end."""

    stage: LessonStage
    since: str
    why: str
    """In a few words, with the figures that moved it: `passed 9 of 12 with it, 3 of 11 without`."""
    changed_at: Absent[str] = None
    """Where its history was found to change: uses before it say nothing of how it does now."""


class LessonArm(Record):
    """What a recall did with a lesson that fitted its run."""

    memory_id: IdText
    arm: LessonArmName
    stage: LessonStage
