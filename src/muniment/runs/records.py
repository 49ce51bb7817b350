"""Records of a run: claims backed by evidence, conflicts, failures, questions, its log.

The contract's own shapes are in `contracts.snapshot`; these add our extra keys, which it allows: the entry that made a
record and the one that last changed it, so that every record is backed by the ledger (CS-02).
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
    """A claim of a run, with all its entries: applied in order, they reproduce this claim."""

    claim_id: IdText
    status: ClaimStatus
    made_by: IdText
    between: Items[IdText]
    """The entries after the first and before the last, in order."""
    changed_by: IdText
    depends_on: Items[IdText]
    """Claims it rests on: when one is retracted, it becomes a candidate again."""
    reason: Absent[str] = None
    """The reason it was retracted or became a candidate again."""
    refuted_by: Absent[Items[EvidencePointer]] = None
    """The evidence for its retraction, if any."""

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """The entries that made and changed it, in order, deduplicated."""
        return tuple(dict.fromkeys((self.made_by, *self.between, self.changed_by)))


class RunConflict(ClaimConflict):
    """A conflict of a run. A settled one is kept, since past doubts are part of the record."""

    conflict_id: IdText
    status: Literal["open", "settled"]
    claim_ids: Items[IdText]
    made_by: IdText
    changed_by: IdText
    resolution: Absent[str] = None

    @property
    def entry_ids(self) -> tuple[str, ...]:
        """The entries that made and changed it, in order, deduplicated."""
        return tuple(dict.fromkeys((self.made_by, self.changed_by)))


class CountedFailure(RunFailure):
    """A failure by its fingerprint, with its number of occurrences."""

    fingerprint: IdText
    count: Count
    first_by: IdText
    last_by: IdText


class OpenQuestion(Record):
    """A question without an answer yet. A log holds the open ones."""

    question_id: IdText
    text: str
    opened_by: IdText
    status: Literal["open", "closed"]
    answer: Absent[str] = None
    """The answer that closed it, if given."""


class Spent(Record):
    """Resources that a run has used so far."""

    events: Count
    steps: Count
    counted_events: Count
    tool_calls: Count
    tokens: Count


class RunLog(Record):  # CS-12
    """A run as folded from its entries, up to `seq`: the same from a snapshot and its tail as from the start."""

    run_id: IdText
    objective: str
    done_definition: ObjectOrText
    budgets: JsonObject
    """Limits as given when the run started, by name."""
    seq: Count
    """The last entry folded in."""
    spent: Spent
    step: Count
    """The number of the current step; 0 before the first."""
    phase: str | None
    """The last phase that ended within it."""
    last_action: str | None
    """The signature of the last action."""
    repeats: Count
    """The number of times in a row it was taken."""
    loops: Count
    claims: Items[RunClaim]
    """In the order they were made; likewise the other lists."""
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
