"""The bodies of the memory items: what a fact, a procedure, an insight, a candidate or a working state is made of.

Richer than the packet's records, which are views of these: each part says which `state_patch` brought it and on what
evidence, so that a forget can take exactly that part away. Quotes are kept as spans into their event, never as text.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from muniment.contracts.packet import Fact, FactStatus, InsightItem, Procedure, ValidationState, Validity
from muniment.core.record import Confidence, Count, Items, JsonObject, JsonValue, Record
from muniment.core.scope import TRUST_ORDER, IdText, ScopeLevel, Trust
from muniment.memory.facts.candidate_records import CandidateStatus

__all__ = [
    "FIRST_KEPT",
    "INSTRUCTION_KEYS",
    "STALE_DEPENDENCY",
    "Assertion",
    "Judgement",
    "ModelQuote",
    "Objection",
    "QuoteRef",
    "StoredCandidate",
    "StoredFact",
    "StoredInsight",
    "StoredProcedure",
    "StoredState",
    "is_instruction",
    "kept_assertions",
    "model_note",
    "model_quote",
]

STALE_DEPENDENCY = "stale_dependency"
_MODEL_NOTE = re.compile(
    r"(?:^|; )read by a model \((?P<ts>[^(),]+)(?:, (?P<speaker>[^()]+))?\): (?P<text>.*?)"
    rf"(?:; {STALE_DEPENDENCY}: .*)?$",
    re.DOTALL,
)
INSTRUCTION_KEYS = "user.instruction."
"""What the key begins with of what a user asks an agent to do from then on; behind it stands what it is about."""


def is_instruction(fact: Fact) -> bool:
    """Is it the user's own instruction? What an agent or a tenant shares under such a key is a fact like any other."""
    return fact.fact_key.startswith(INSTRUCTION_KEYS) and (fact.scope_level or "user") == "user"


class ModelQuote(NamedTuple):
    """The words that a fact rests on which a model alone has read, and who said them when."""

    ts: str
    speaker: str | None
    """None of the user."""
    text: str


def model_note(quote: ModelQuote) -> str:
    """The note of an assertion that a model made."""
    who = "" if quote.speaker is None else f", {' '.join(re.sub(r'[()]', ' ', quote.speaker).split())}"
    return f"read by a model ({quote.ts}{who}): {quote.text}"


def model_quote(fact: Fact) -> ModelQuote | None:
    """The quote that a prompt shows instead of a fact's key and value, if nobody but a model has asserted them."""
    found = _MODEL_NOTE.search(fact.notes or "")
    return None if found is None else ModelQuote(found["ts"], found["speaker"], found["text"])


class QuoteRef(Record):
    """Where quoted words stand: half-open UTF-8 bytes of an event's content."""

    event_id: IdText
    start: Count
    end: Count


class Assertion(Record):
    """One saying of a fact: the `state_patch` that brought it, and the evidence it named."""

    patch: IdText
    sources: Items[IdText]
    trust: Trust
    """The lowest of its sources."""
    since: str
    """`valid_from`, or the time of its newest source."""
    confidence: Confidence
    notes: str | None
    valid_from: str | None
    valid_to: str | None
    quote: QuoteRef | None
    origin: IdText | None
    """The insight or candidate it was promoted from."""


FIRST_KEPT = 8
"""A fact names this many of those who said it first. Of later ones, it names those that changed what it says."""


def kept_assertions(assertions: Sequence[Assertion]) -> tuple[Assertion, ...]:
    """The assertions that a fact holds: the first ones, and those that decide its trust, confidence and validity.

    Any other is a repeated mention. It is linked to the fact and changes nothing that can be seen, so that the
    assertions of a fact may be taken in one by one or all at once.
    """
    trust = min((each.trust for each in assertions), key=TRUST_ORDER.index)
    best = [at for at, each in enumerate(assertions) if each.trust == trust]
    kept = {*range(min(FIRST_KEPT, len(assertions))), best[0]}
    kept.add(max(best, key=lambda at: (assertions[at].confidence, -at)))
    kept.add(min(best, key=lambda at: (assertions[at].since, at)))
    for name in ("valid_from", "valid_to", "notes"):
        said, last = None, best[0]
        for at in best:
            if getattr(assertions[at], name) not in (None, said):
                said, last = getattr(assertions[at], name), at
        kept.add(last)
    return tuple(assertions[at] for at in sorted(kept))


class Objection(Record):
    """Someone disputed or retracted a fact."""

    patch: IdText
    sources: Items[IdText]
    reason: str | None


class StoredFact(Record):  # LG-08
    """A fact with what was said for and against it, but for repeated mentions (`kept_assertions`).

    Several assertions may support it. Its trust is that of the best of them, and only assertions of that trust count
    among its sources: so evidence of lower trust can neither raise its confidence nor drag its trust down.
    """

    fact_id: IdText
    key: IdText
    value: JsonValue
    status: FactStatus
    scope_level: ScopeLevel
    assertions: Items[Assertion]
    is_preference: bool
    depends_on: Items[IdText]
    ended_at: str | None
    """When a newer value took over."""
    superseded_by: IdText | None
    objections: Items[Objection]
    is_retracted: bool
    """Taken back: it was never true, as far as we know."""

    @property
    def best(self) -> tuple[Assertion, ...]:
        """The assertions that count: those of the highest trust."""
        trust = self.trust
        return tuple(assertion for assertion in self.assertions if assertion.trust == trust)

    @property
    def trust(self) -> Trust:
        return min((assertion.trust for assertion in self.assertions), key=TRUST_ORDER.index)

    @property
    def since(self) -> str:
        """The earliest time from which it is said to hold."""
        return min(assertion.since for assertion in self.best)

    @property
    def until(self) -> str | None:
        """The end of its validity: as said, or as a newer value has it."""
        said = _last(assertion.valid_to for assertion in self.best)
        ends = [end for end in (said, self.ended_at) if end is not None]
        return min(ends) if ends else None

    def to_fact(self, fallen: tuple[str, ...] = ()) -> Fact:
        """The packet's view of it; `fallen` are facts it depends on that no longer stand.

        Its parts were checked when they were written, so the view is put together without checking them again.
        """
        best = self.best
        start, end = _last(assertion.valid_from for assertion in best), self.until
        noted = [assertion.notes for assertion in best]
        others = [note for note in noted if note is None or _MODEL_NOTE.search(note) is None]
        notes = [said for said in (_last(others or noted),) if said]
        if fallen:
            notes.append(f"{STALE_DEPENDENCY}: depends on {', '.join(fallen)}, which no longer stands")
        parts: dict[str, Any] = {
            "fact_id": self.fact_id,
            "fact_key": self.key,
            "value": self.value,
            "status": self.status,
            "confidence": max(assertion.confidence for assertion in best),
            "sources": tuple(dict.fromkeys(source for assertion in best for source in assertion.sources)),
            "scope_level": self.scope_level,
        }
        said = (("valid_from", start), ("valid_to", end))
        bounds: dict[str, Any] = {name: bound for name, bound in said if bound is not None}
        if bounds:
            parts["validity"] = Validity.model_construct(**bounds)
        if notes:
            parts["notes"] = "; ".join(notes)
        return Fact.model_construct(**parts)


def _last(values: Iterable[str | None]) -> str | None:
    found = [value for value in values if value is not None]
    return found[-1] if found else None


class StoredProcedure(Record):
    """A procedure, how often it was used, and what it was promoted from."""

    procedure: Procedure
    scope_level: ScopeLevel
    patch: IdText
    origin: IdText | None
    usage: Count
    is_retired: bool


class Judgement(Record):
    """One step in an insight's life."""

    patch: IdText
    state: ValidationState
    sources: Items[IdText]
    reason: str | None


class StoredInsight(Record):
    """An insight, how it was judged, and what it became."""

    insight: InsightItem
    patch: IdText
    run_id: IdText
    judgements: Items[Judgement]
    promoted_to: IdText | None


class StoredCandidate(Record):
    """A candidate; its quote as a span."""

    patch: IdText
    candidate_id: IdText
    key: IdText
    value: JsonValue
    status: CandidateStatus
    explanation: str
    sources: Items[IdText]
    quote: QuoteRef | None
    confidence: Confidence
    trust: Trust
    reason: str | None
    proposed_by: str
    proposed_at: str
    fact_id: IdText | None
    decided_by: IdText | None
    """The `state_patch` of a later decision."""
    valid_to: str | None = None
    """Until when the fact is said to hold."""


class StoredState(Record):
    """A run's working state, and which `state_patch` each of its parts came from."""

    state: JsonObject
    origins: dict[str, str]
    """`goal` or `slots.city` → the patch that set it last."""
