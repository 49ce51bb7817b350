"""Where a lesson stands, as a memory carries it and as a run's recall tells of it."""

from typing import Literal

from muniment.core.record import Absent, Count, Number, Record
from muniment.core.scope import IdText

__all__ = ["LessonArm", "LessonArmName", "LessonOrigin", "LessonStage", "LessonState", "LessonUse"]

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
    trial: Absent[Count] = None
    trial_at: Absent[str] = None
    trials: Absent[Count] = None
    proven: Absent[bool] = None
    """These five stand in records of version 0.2, and are not read."""


class LessonArm(Record):
    """What a recall did with a lesson that fitted its run."""

    memory_id: IdText
    arm: LessonArmName
    stage: LessonStage
    share: Absent[Number] = None
    """How likely it was to be handed to this run, by what came of it before; of one on trial, among the runs that got
    no other one on trial."""


class LessonUse(Record):
    """One judged run that a learned record fitted: whether it had it, and what came of it. No words."""

    memory_id: IdText
    trace_id: IdText
    arm: LessonArmName
    """Of what is no lesson, an episode or a seed, always `had`."""
    passed: bool
    cost: Number = 0
    at: str
    stage: Absent[LessonStage] = None
    """Where the lesson stood when the run recalled; absent of what is no lesson."""
    share: Absent[Number] = None
    """How likely it was to be handed to this run, where it was drawn; absent of what is no lesson."""
    trial: Absent[Count] = None
    """The number of the lesson's trial, where it has one."""
    task: Absent[str] = None
    """The stratum: a digest of the task, the same for runs of the same task in a tenant."""
