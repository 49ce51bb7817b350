"""A lesson as people see it: the sentence, when it holds, where it stands, what it rests on and what came of it.

Nothing here is kept. A lesson is read off the tactic, the draft and the rule that one contrast left, and off the runs
that had it or did without.
"""

from typing import Literal

from muniment.core.record import Absent, Count, Items, Number, Record
from muniment.core.scope import IdText, ScopeLevel
from muniment.learning.lesson_state import LessonArmName, LessonOrigin, LessonStage
from muniment.learning.stored_memory import Tally

__all__ = [
    "KeptAs",
    "KeptKind",
    "Lesson",
    "LessonChange",
    "LessonDecision",
    "LessonEffect",
    "LessonEvidence",
    "LessonGuess",
    "LessonRun",
    "LessonStory",
    "LessonWhen",
    "RunLessons",
    "SourceRun",
]

KeptKind = Literal["tactic", "rule", "draft"]
_NOTHING = Tally.model_construct()


class LessonWhen(Record):
    """When a lesson holds: in words, and as the conditions that are tested."""

    words: str
    predicates: Items[str] = ()


class LessonEvidence(Record):
    """What a lesson rests on. Above a user it names no run and no event: those are the users' own."""

    trace_ids: Items[IdText] = ()
    event_ids: Items[IdText] = ()
    run_ids: Items[IdText] = ()


class LessonGuess(Record):
    """How runs with and without it ended among those it was learnt from. It makes a candidate, and no more."""

    had: Tally
    without: Tally


class LessonEffect(Record):
    """What came of runs that had the lesson and of runs that it fitted and was left out of: one stream, newest runs."""

    had: Tally = _NOTHING
    held_out: Tally = _NOTHING
    difference: Absent[Number] = None
    """Of the pass rates, with less without; absent while one side has no run."""
    low: Absent[Number] = None
    high: Absent[Number] = None
    """Where the difference lies, in 95 of 100 such cases."""
    strata: Count = 0
    """In how many groups both sides are compared: each task that was run with it and without, and all others as one."""
    guess: Absent[LessonGuess] = None


class KeptAs(Record):
    """One of the records that a lesson is kept as."""

    kind: KeptKind
    id: IdText
    stage: LessonStage
    """Where this record stands; the lesson stands where the one furthest on does."""


class LessonRun(Record):
    """A judged run that a lesson fitted: whether it had it, and how it ended."""

    trace_id: IdText
    """Above a user, of a run that was learnt into another bank, a name that leads nowhere."""
    run_id: Absent[IdText] = None
    """Absent above a user."""
    arm: LessonArmName
    passed: bool
    cost: Number = 0
    task: Absent[str] = None
    """What it is compared within: runs of one task have the same digest. Absent above a user."""
    at: str


class SourceRun(Record):
    """A run that a lesson was learnt from."""

    trace_id: IdText
    run_id: Absent[IdText] = None
    passed: Absent[bool] = None
    """Absent where nobody judged it."""


class LessonChange(Record):
    """A step in the life of a lesson."""

    at: str
    stage: LessonStage
    before: Absent[LessonStage] = None
    """Absent where it begins."""
    why: str
    kept_as: IdText
    """The record that changed."""
    version: Count
    plan_id: Absent[IdText] = None
    """The plan that did it, which `undo` takes back; absent where the rulebook did, or the plan is gone."""


class Lesson(Record):
    """What an agent is told because of earlier runs."""

    lesson_id: IdText
    """The id of its tactic; without one, of its rule or its draft. Any id of `kept_as` finds it too."""
    text: str
    when: LessonWhen
    stage: LessonStage
    since: str
    why: str
    """Why it stands where it does."""
    signed: bool = False
    """A person has signed it: it stays active, and is measured all the same."""
    origin: LessonOrigin
    level: ScopeLevel
    created_at: str
    evidence: LessonEvidence
    effect: LessonEffect
    uses: Count = 0
    """Runs that had it, of those that are counted."""
    held_out: Count = 0
    """Runs that it fitted and was left out of, to measure it."""
    cost: Absent[Number] = None
    """What a run that had it costs on average; absent where none had it."""
    cost_without: Absent[Number] = None
    newest: Items[LessonRun] = ()
    """The runs that were counted last, newest first."""
    kept_as: Items[KeptAs] = ()


class LessonStory(Lesson):
    """A lesson with its life: every change, the runs it came from and the runs it was for."""

    history: Items[LessonChange] = ()
    """Oldest first."""
    learnt_from: Items[SourceRun] = ()
    runs: Items[LessonRun] = ()
    """All that are counted, newest first."""


class RunLessons(Record):
    """What a run had to do with lessons, by their ids."""

    had: Items[IdText] = ()
    """Those that it was told."""
    held_out: Items[IdText] = ()
    """Those that fitted and were left out of it, to measure them."""
    made: Items[IdText] = ()
    """Those that were learnt first when it was learnt from."""


class LessonDecision(Record):
    """What came of a signature or of a drop."""

    lesson: Lesson
    """As it stands now."""
    plan_id: Absent[IdText] = None
    """The plan that did it: `undo` takes it back. Absent where all was so already, or it is kept as a rule alone."""
    report_id: Absent[IdText] = None
    """The report of the rulebook, where a rule was promoted or retired; `rollback` takes that back."""
