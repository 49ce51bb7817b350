"""What a run did, in records: claims with a duty of evidence, conflicts, failures, questions, its log.

The contract's own shapes are in `contracts.snapshot`; these add what we keep besides, as the extra keys it allows:
which entry made a thing and which changed it last, so that nothing stands that the ledger does not hold (CS-02).
"""

from typing import Literal

from muniment.contracts.snapshot import Claim, ClaimConflict, EvidencePointer, RunFailure, SourceCoverage
from muniment.core.record import Absent, Count, Items, JsonObject, ObjectOrText, Record
from muniment.core.scope import IdText

__all__ = [
    "CLAIM_STATUSES",
    "ClaimStatus",
    "CountedFailure",
    "OpenQuestion",
    "RunClaim",
    "RunConflict",
    "RunLog",
    "Spent",
]

ClaimStatus = Literal["candidate", "verified", "retracted"]
CLAIM_STATUSES: tuple[ClaimStatus, ...] = ("candidate", "verified", "retracted")


class RunClaim(Claim):  # CS-02
    """A claim of a run, with every entry that spoke of it: taken in turn, they make this claim again."""

    claim_id: IdText
    status: ClaimStatus
    made_by: IdText
    between: Items[IdText]
    """The entries after the first and before the last, in order."""
    changed_by: IdText
    depends_on: Items[IdText]
    """Claims it rests on: when one is retracted, it falls back to a candidate."""
    reason: Absent[str] = None
    """Why it was retracted or fell back."""
    refuted_by: Absent[Items[EvidencePointer]] = None
    """The evidence on which it was retracted, where any was given."""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """The entries that made and changed it, in order, each once."""
        return tuple(dict.fromkeys((self.made_by, *self.between, self.changed_by)))


class RunConflict(ClaimConflict):
    """A conflict of a run. A settled one stays: what was once in doubt is part of what is known."""

    conflict_id: IdText
    status: Literal["open", "settled"]
    claim_ids: Items[IdText]
    made_by: IdText
    changed_by: IdText
    resolution: Absent[str] = None

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """The entries that made and changed it, in order, each once."""
        return tuple(dict.fromkeys((self.made_by, self.changed_by)))


class CountedFailure(RunFailure):
    """A failure by its fingerprint, and how often it was met."""

    fingerprint: IdText
    count: Count
    first_by: IdText
    last_by: IdText


class OpenQuestion(Record):
    """Something the run does not know yet. A log holds those that are open."""

    question_id: IdText
    text: str
    opened_by: IdText
    status: Literal["open", "closed"]
    answer: Absent[str] = None
    """What closed it, where that was said."""


class Spent(Record):
    """What a run has used up so far."""

    events: Count
    steps: Count
    counted_events: Count
    tool_calls: Count
    tokens: Count


class RunLog(Record):  # CS-12
    """A run as its entries tell it, up to `seq`: the same from a snapshot and its tail as from the start."""

    run_id: IdText
    objective: str
    done_definition: ObjectOrText
    budgets: JsonObject
    """Limits as given when the run started, by name."""
    seq: Count
    """The last entry that was folded in."""
    spent: Spent
    step: Count
    """The number of the current step; 0 before the first."""
    phase: str | None
    """The phase that ended last within it."""
    last_action: str | None
    """The signature of the last action."""
    repeats: Count
    """How many times in a row it was taken."""
    loops: Count
    claims: Items[RunClaim]
    """In the order they were made; likewise the others."""
    conflicts: Items[RunConflict]
    failures: Items[CountedFailure]
    open_questions: Items[OpenQuestion]
    next_actions: Items[str]
    coverage: SourceCoverage
    manifest_ids: Items[IdText]
    """The latest, oldest first."""
    sequence: Count
    """The number of the last snapshot; 0 before the first."""
    counted_since: Items[Count]
    """The `seq` of each counted event since that snapshot."""
    steps_since: Items[Count]
    """The `seq` with which each step since that snapshot began."""
