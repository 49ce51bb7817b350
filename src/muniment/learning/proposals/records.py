"""What whoever writes lessons is shown of two runs, what is proposed, and what came of each proposal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from muniment.core.record import Absent, Count, Items, Record

__all__ = [
    "FATES",
    "REASONS",
    "Advice",
    "LessonAnswer",
    "LessonProposal",
    "LessonQuestion",
    "LessonReport",
    "LessonWriter",
    "ProposedLesson",
    "Refusal",
    "ShownEvent",
    "ShownRun",
]

Advice = Literal["do", "avoid"]
Refusal = Literal[
    "malformed", "too_many", "too_long", "secret", "orders", "no_evidence", "unknown_event", "not_in_evidence",
    "nobody_called_it", "repeats_an_event", "says_nothing", "no_condition", "forbids_solution", "no_contrast",
    "tried_before", "of_one_task",
]  # fmt: skip
REASONS: Mapping[Refusal, str] = {
    "malformed": "it is no lesson of the form that was asked for",
    "too_many": "more was proposed than one run teaches",
    "too_long": "it is longer than a lesson may be",
    "secret": "it holds a secret",
    "orders": "it is worded as orders to whoever runs the agent",
    "no_evidence": "it cites no event",
    "unknown_event": "it cites an event of no run that was shown",
    "not_in_evidence": "it names what does not stand in the events it cites",
    "nobody_called_it": "it says to call what no run called",
    "repeats_an_event": "it repeats what an event says instead of saying what to do",
    "says_nothing": "nothing in it is about the events it cites",
    "no_condition": "it says neither when it holds nor for which kind of work",
    "forbids_solution": "it warns of what a run did that passed",
    "no_contrast": "it warns of what a run did, and no run is known that did otherwise and passed",
    "tried_before": "what says the same was tried and retired",
    "of_one_task": "it names what only this task is about, so no other run has a use for it",
}
FATES = ("written", "merged", "refused")


class ShownEvent(NamedTuple):
    """An event as it is shown: its own words, cut and without secrets."""

    id: str
    who: Literal["user", "agent", "tool", "other"]
    tool: str | None = None
    """What the agent called, where it is a call."""
    args: str = ""
    ok: bool | None = None
    text: str = ""

    @property
    def words(self) -> str:
        """All that a lesson may take from it."""
        return "\n".join(part for part in (self.tool or "", self.args, self.text) if part)


class ShownRun(NamedTuple):
    """A run as it is shown."""

    trace_id: str
    passed: bool
    reasons: tuple[str, ...]
    """Codes and broken constraints, as the verifier named them."""
    events: tuple[ShownEvent, ...]

    @property
    def calls(self) -> tuple[ShownEvent, ...]:
        return tuple(event for event in self.events if event.tool is not None)


class LessonQuestion(NamedTuple):
    """A judged run, and the nearest one that went the other way."""

    run: ShownRun
    other: ShownRun | None = None
    lessons_max: int = 3

    @property
    def runs(self) -> tuple[ShownRun, ...]:
        return (self.run,) if self.other is None else (self.run, self.other)


class LessonProposal(NamedTuple):
    """What somebody says is to be learnt."""

    text: str
    when: str
    event_ids: tuple[str, ...]
    advice: Advice = "do"


class LessonAnswer(NamedTuple):
    """What came of one call: proposals, how many more were none, and the tokens, where the model's server counts."""

    proposals: tuple[LessonProposal, ...]
    malformed: int = 0
    tokens_in: int | None = None
    tokens_out: int | None = None
    said: str = ""
    """The answer itself, to be counted where its server does not count."""


class LessonWriter(Protocol):
    """Writes lessons. Raises a `ModelFailure` where the call fails."""

    @property
    def name(self) -> str:
        """What stands beside its lessons."""
        ...

    def write(self, question: LessonQuestion, tokens_max: int, /) -> LessonAnswer:
        """What the runs teach, in an answer of so many tokens."""
        ...


class ProposedLesson(Record):
    """One proposal and its fate."""

    text: str
    """Empty where it held what may not be kept."""
    when: str
    event_ids: Items[str]
    """As they were cited, known or not."""
    advice: Advice
    fate: Literal["written", "merged", "refused"]
    code: Absent[str] = None
    """Why it was refused."""
    why: Absent[str] = None
    """That in words, with what is wrong in it."""
    lesson_id: Absent[str] = None
    """The lesson it is, or was merged into; of a refusal, the one that was retired."""


class LessonReport(Record):
    """What a model made of a run: what it took, what it proposed, what failed."""

    report_id: str
    trace_id: str
    other_trace_id: Absent[str] = None
    """The run that went the other way, where there was one."""
    writer: str
    created_at: str
    calls: Count
    tokens_in: Count
    tokens_out: Count
    is_estimated: bool
    """Whether tokens were counted by the store, since the model's server did not say."""
    malformed: Count = 0
    """Parts of the answer that were no proposal."""
    failed: Absent[str] = None
    """The code of what went wrong, where there was no answer to read."""
    why: Absent[str] = None
    proposals: Items[ProposedLesson] = ()
