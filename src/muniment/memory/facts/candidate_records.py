"""Candidates (MP-17): what extraction or a caller proposes as a fact, and what became of it."""

from typing import Literal

from muniment.core.record import Confidence, Count, Items, JsonValue, NonEmpty, Record
from muniment.core.scope import IdText, Trust

__all__ = ["Candidate", "CandidateStatus", "Proposal", "Unheard"]

CandidateStatus = Literal["proposed", "promoted", "declined"]


class Proposal(Record):
    """What a text seems to say: a fact, the words it says it with, and which pattern or model read it so."""

    key: IdText
    value: JsonValue
    quote: NonEmpty
    """Verbatim; checked against the text before anything is made of it."""
    confidence: Confidence
    why: str


class Candidate(Record):
    """A proposed fact and its fate. `explanation` says in words why it stands where it stands."""

    candidate_id: IdText
    key: IdText
    value: JsonValue
    status: CandidateStatus
    explanation: str
    sources: Items[IdText]
    quote: str | None
    """The words it rests on, verbatim; None where none were given."""
    confidence: Confidence
    trust: Trust
    reason: str | None
    """Why it was proposed."""
    proposed_by: str
    proposed_at: str
    fact_id: IdText | None
    """The fact it became."""
    valid_to: str | None = None
    """Until when it is said to hold: of a fact that was taken back, just before the words that take it back."""


class Unheard(Record):
    """A speaker of role `user` whose words `extract` leaves aside, with how many messages, and why."""

    speaker: str
    messages: Count
    why: str
