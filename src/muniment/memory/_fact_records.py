"""The bodies of memory items: facts, procedures, insights, candidates and working states.

Richer than the packet's records, which are views of these: each part names the `state_patch` that added it and its
evidence, so that a forget can remove exactly that part. Quotes are kept as spans into their event, never as text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, Literal, NamedTuple

from muniment.contracts.packet import Fact, FactStatus, InsightItem, Procedure, ValidationState, Validity
from muniment.core.canonical import canonical_text
from muniment.core.instants import Instant, parse_rfc3339
from muniment.core.limits import remembered
from muniment.core.policy import FactPolicy
from muniment.core.record import Confidence, Count, Items, JsonObject, JsonValue, NonEmpty, Record
from muniment.core.scope import TRUST_ORDER, IdText, ScopeLevel, Trust, origin_note
from muniment.core.text.analyzer import analyze, term_hash
from muniment.errors import InvalidRecord
from muniment.memory.fact_rows import LEVELS
from muniment.store.derivation import MakingEntry
from muniment.store.items import Change, Item, Rewritten, digest_name
from muniment.store.ledger import FACT_DISPUTED, FACT_REINFORCED, FACT_REMEMBERED, FACT_RETRACTED, LedgerEntry

__all__ = [
    "FIRST_KEPT",
    "INSTRUCTION_KEYS",
    "STALE_DEPENDENCY",
    "Assertion",
    "Candidate",
    "CandidateStatus",
    "Judgement",
    "Lookup",
    "ModelQuote",
    "Objection",
    "Outcome",
    "Proposal",
    "QuoteRef",
    "Saying",
    "StoredCandidate",
    "StoredFact",
    "StoredInsight",
    "StoredProcedure",
    "StoredState",
    "Unheard",
    "fact_terms",
    "fact_without",
    "find_overridden",
    "has_less_trust",
    "hash_terms",
    "hash_words",
    "in_words",
    "is_instruction",
    "is_many_valued",
    "is_preference",
    "item_before",
    "kept_assertions",
    "left_of",
    "level_columns",
    "model_note",
    "model_quote",
    "names_value",
    "next_version",
    "project_fact",
    "resolve",
    "same_value",
    "texts_in",
    "told_origin",
    "validity_problem",
    "why_not_in_force",
    "words_of",
]


# -- candidate records ---------------------------------------------------------------------------------
#
# Candidates (MP-17): facts proposed by extraction or a caller, and their fate.


CandidateStatus = Literal["proposed", "promoted", "declined"]


class Proposal(Record):
    """A fact read from a text: its key and value, its quote, and the pattern or model that proposed it."""

    key: IdText
    value: JsonValue
    quote: NonEmpty
    """Verbatim; checked against the text before anything is made of it."""
    confidence: Confidence
    why: str


class Candidate(Record):
    """A proposed fact and its fate. `explanation` gives the reason for its status in words."""

    candidate_id: IdText
    key: IdText
    value: JsonValue
    status: CandidateStatus
    explanation: str
    sources: Items[IdText]
    quote: str | None
    """The verbatim quote it rests on; None if none was given."""
    confidence: Confidence
    trust: Trust
    reason: str | None
    """The reason it was proposed."""
    proposed_by: str
    proposed_at: str
    fact_id: IdText | None
    """The fact it became."""
    valid_to: str | None = None
    """The end of its validity; for a retracted fact, just before the retracting words."""


class Unheard(Record):
    """A speaker of role `user` whose words `extract` ignores, with the number of messages and the reason."""

    speaker: str
    messages: Count
    why: str


STALE_DEPENDENCY = "stale_dependency"
_MODEL_NOTE = re.compile(
    r"(?:^|; )read by a model \((?P<ts>[^(),]+)(?:, (?P<speaker>[^()]+))?\): (?P<text>.*?)"
    rf"(?:; {STALE_DEPENDENCY}: .*)?$",
    re.DOTALL,
)
INSTRUCTION_KEYS = "user.instruction."
"""Key prefix of standing instructions from a user to an agent; the rest of the key is the topic."""


def is_instruction(fact: Fact) -> bool:
    """True for the user's own instruction. Facts under such a key shared by an agent or tenant are ordinary facts."""
    return fact.fact_key.startswith(INSTRUCTION_KEYS) and (fact.scope_level or "user") == "user"


class ModelQuote(NamedTuple):
    """The quote behind a fact asserted only by a model, with its speaker and time."""

    ts: str
    speaker: str | None
    """None for the user."""
    text: str


def model_note(quote: ModelQuote) -> str:
    """The note of an assertion made by a model."""
    who = "" if quote.speaker is None else f", {' '.join(re.sub(r'[()]', ' ', quote.speaker).split())}"
    return f"read by a model ({quote.ts}{who}): {quote.text}"


def model_quote(fact: Fact) -> ModelQuote | None:
    """The quote that a prompt shows instead of key and value, if only a model has asserted the fact."""
    found = _MODEL_NOTE.search(fact.notes or "")
    return None if found is None else ModelQuote(found["ts"], found["speaker"], found["text"])


class QuoteRef(Record):
    """The location of quoted words: half-open UTF-8 bytes of an event's content."""

    event_id: IdText
    start: Count
    end: Count


class Assertion(Record):
    """One assertion of a fact: the `state_patch` that added it, and the evidence it named."""

    patch: IdText
    sources: Items[IdText]
    trust: Trust
    """The lowest trust of its sources."""
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
"""A fact keeps this many of its first assertions. Of later ones, it keeps those that changed the fact."""


def kept_assertions(assertions: Sequence[Assertion]) -> tuple[Assertion, ...]:
    """The assertions that a fact keeps: the first ones, and those that decide its trust, confidence and validity.

    Any other is a repeated mention, linked to the fact without visible effect, so that the assertions of a fact may be
    folded in one by one or all at once.
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
    """A dispute or retraction of a fact."""

    patch: IdText
    sources: Items[IdText]
    reason: str | None


class StoredFact(Record):  # LG-08
    """A fact with its assertions and objections, except repeated mentions (`kept_assertions`).

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
    """The time at which a newer value replaced it."""
    superseded_by: IdText | None
    objections: Items[Objection]
    is_retracted: bool
    """True if retracted: as far as we know it was never true."""

    @property
    def best(self) -> tuple[Assertion, ...]:
        """The assertions that count: those with the highest trust."""
        trust = self.trust
        return tuple(assertion for assertion in self.assertions if assertion.trust == trust)

    @property
    def trust(self) -> Trust:
        return min((assertion.trust for assertion in self.assertions), key=TRUST_ORDER.index)

    @property
    def since(self) -> str:
        """The earliest time from which it is asserted to hold."""
        return min(assertion.since for assertion in self.best)

    @property
    def until(self) -> str | None:
        """The end of its validity, as asserted or as set by a newer value."""
        said = _last(assertion.valid_to for assertion in self.best)
        ends = [end for end in (said, self.ended_at) if end is not None]
        return min(ends) if ends else None

    def to_fact(self, fallen: tuple[str, ...] = ()) -> Fact:
        """The packet's view of the fact; `fallen` are dependencies that no longer hold.

        Its parts were checked when they were written, so the view is built without validation.
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
    """A procedure, its use count, and the item it was promoted from."""

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
    """An insight, its judgements, and the item it became."""

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
    """The end of the fact's validity."""


class StoredState(Record):
    """A run's working state, and the `state_patch` that set each of its parts."""

    state: JsonObject
    origins: dict[str, str]
    """`goal` or `slots.city` → the patch that last set it."""


# -- keys ----------------------------------------------------------------------------------------------
#
# Facts in words. Keys stay in the records; packets show sentences, and queries match them.


_SENTENCES = {
    "user.name": "Is called {}",
    "user.location": "Lives in {}",
    "user.allergy": "Allergic to {}",
    "user.allergies": "Allergic to {}",
    "user.employer": "Works for {}",
    "user.job": "Works as {}",
}
"""Sentence templates of the built-in keys."""
_NAMES = re.compile(r"\w+(?:[._-]\w+)*")
"""Names with punctuation inside, as most keys have."""


def in_words(key: str, value: str) -> str:
    """Render `user.location` and `Berlin` as `Lives in Berlin`; any other key as words: `office.opening_hours` as
    `Office opening hours: 9 to 5`.
    """
    if key in _SENTENCES:
        return _SENTENCES[key].format(value)
    if _NAMES.fullmatch(key):
        key = re.sub(r"[._-]+", " ", key.removeprefix("user.").removeprefix("person.")).strip() or key
    return f"{key[:1].upper()}{key[1:]}: {value}"


def told_origin(notes: str | None) -> str:
    """The note on origin shown after the value of a fact without locally observed evidence."""  # MV-02
    said = origin_note(notes)
    return "" if said is None else f" ({said})"


# -- rules ---------------------------------------------------------------------------------------------
#
# How a new value for a key affects the existing facts of that key, by the rules of the policy.


Effect = Literal["new", "reinforces", "coexists", "disputes", "history", "supersedes"]


@dataclass(frozen=True, slots=True)
class Saying:
    """A new value for a key, as input to the rules."""

    key: str
    value: Any
    trust: Trust
    since: str
    until: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision: the rule that applied, the new value's status, the fact it adds to, the facts it ends."""

    effect: Effect
    status: FactStatus
    adds_to: str | None = None
    ends: tuple[str, ...] = ()
    ended_at: str | None = None
    against: str | None = None
    """The active fact it contradicts or replaces."""


def resolve(saying: Saying, standing: Sequence[StoredFact], policy: FactPolicy) -> Outcome:
    """Apply the rules in order: same value, many-valued key, lower trust, older, newer (0002)."""
    active = [fact for fact in standing if fact.status == "active"]
    same = [fact for fact in active if same_value(fact.value, saying.value) and _still_holds(fact, saying)]
    if same:
        return Outcome("reinforces", "active", adds_to=same[0].fact_id)
    if not active:
        return Outcome("new", "active")
    if is_many_valued(saying.key, policy):
        return Outcome("coexists", "active")
    current = max(active, key=lambda fact: (fact.since, fact.fact_id))
    holds = _still_holds(current, saying)
    if holds and policy.lower_trust_disputes and has_less_trust(saying.trust, current.trust):
        twin = next((fact for fact in standing if fact.status == "disputed" and _is_twin(fact, saying)), None)
        return Outcome("disputes", "disputed", adds_to=twin.fact_id if twin else None, against=current.fact_id)
    if holds and saying.since < current.since:
        return Outcome("history", "deprecated", ended_at=current.since, against=current.fact_id)
    return Outcome(
        "supersedes",
        "active",
        ends=tuple(fact.fact_id for fact in active),
        ended_at=saying.since,
        against=current.fact_id,
    )


OutOfForce = Literal["deprecated", "disputed", "not_yet_valid", "expired"]


def why_not_in_force(fact: Fact, now: str) -> OutOfForce | None:
    """The reason a fact does not hold now; None if it does, unless facts of other levels override it (MP-07)."""
    return fact.status if fact.status != "active" else validity_problem(fact, parse_rfc3339(now))


def validity_problem(fact: Fact, now: Instant | None) -> Literal["not_yet_valid", "expired"] | None:
    """Compare instants, not strings; "until exactly now" is still valid. An unreadable bound makes the fact invalid."""
    validity = fact.validity
    if validity is None or now is None:
        return None
    if validity.valid_from is not None:
        start = parse_rfc3339(validity.valid_from)
        if start is None or start > now:
            return "not_yet_valid"
    if validity.valid_to is not None:
        end = parse_rfc3339(validity.valid_to)
        if end is None or end < now:
            return "expired"
    return None


def find_overridden(facts: Iterable[Fact], is_many_valued: Callable[[str], bool]) -> dict[str, Fact]:
    """By id, the facts overridden by a nearer scope level, and the overriding fact (MP-08).

    A many-valued key keeps the facts of all levels. The input is the facts in force.
    """
    facts = list(facts)
    nearest: dict[str, Fact] = {}
    for fact in facts:
        held = nearest.setdefault(fact.fact_key, fact)
        if _distance(fact) < _distance(held):
            nearest[fact.fact_key] = fact
    return {
        fact.fact_id: nearest[fact.fact_key]
        for fact in facts
        if _distance(fact) > _distance(nearest[fact.fact_key]) and not is_many_valued(fact.fact_key)
    }


def _distance(fact: Fact) -> int:
    return LEVELS.index(fact.scope_level or "user")


def _still_holds(fact: StoredFact, saying: Saying) -> bool:
    """False for a fact that ended before the new value begins: it neither conflicts with it nor repeats it."""
    return fact.until is None or fact.until >= saying.since


def _is_twin(fact: StoredFact, saying: Saying) -> bool:
    return fact.trust == saying.trust and same_value(fact.value, saying.value)


def same_value(one: Any, other: Any) -> bool:
    """True if equal as JSON; strings may also differ in case, width or white space."""
    if isinstance(one, str) and isinstance(other, str):
        return _folded_text(one) == _folded_text(other)
    return canonical_text(one) == canonical_text(other)


def names_value(name: str, value: Any) -> bool:
    """True if one names the other, as `Portland` does `Portland, Oregon`; otherwise only for equal values."""
    if not isinstance(value, str):
        return False
    one, other = _folded_text(name).removeprefix("the "), _folded_text(value).removeprefix("the ")
    return one == other or one.partition(",")[0] == other or one == other.partition(",")[0]


def _folded_text(text: str) -> str:
    """Normalise and casefold a text, with single spaces between words."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def has_less_trust(one: Trust, other: Trust) -> bool:
    return TRUST_ORDER.index(one) > TRUST_ORDER.index(other)


def is_many_valued(key: str, policy: FactPolicy) -> bool:
    return _any_of(policy.many_valued).match(key) is not None


def is_preference(key: str, policy: FactPolicy) -> bool:
    return _any_of(policy.preferences).match(key) is not None


@remembered(64)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")


# -- projection ----------------------------------------------------------------------------------------
#
# Facts from `state_patch` entries, and facts with some of their sources removed. Pure: entries hold all decisions.


Lookup = Callable[[str], Item | None]
Revise = Callable[[StoredFact, LedgerEntry], StoredFact]


def project_fact(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The new fact or new version of one, and the end of the facts it replaces."""
    event = entry.metadata.get("event")
    try:
        if event == FACT_REMEMBERED:
            return _remembered(entry, lookup)
        revise = _REVISIONS.get(event) if isinstance(event, str) else None
        return [] if revise is None else _revised(entry, lookup, revise)
    except InvalidRecord:  # not written by one of our runs, so no fact
        return []


def _remembered(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    said = entry.metadata
    assertion = assertion_of(entry)
    fact = StoredFact.from_wire(
        {
            "fact_id": said.get("id"),
            "key": said.get("key"),
            "value": said.get("value"),
            "status": said.get("status"),
            "scope_level": said.get("scope_level"),
            "assertions": [assertion.to_wire()],
            "is_preference": said.get("is_preference"),
            "depends_on": said.get("depends_on"),
            "ended_at": said.get("ended_at"),
            "superseded_by": said.get("superseded_by"),
            "objections": [],
            "is_retracted": False,
        }
    )
    ended = said.get("ends")
    changes = [] if not isinstance(ended, dict) else _ended(entry, ended, fact.fact_id, lookup)
    origin = () if assertion.origin is None else (assertion.origin,)
    return [*changes, _change(fact, entry, (*assertion.sources, *fact.depends_on, *origin))]


def _ended(entry: LedgerEntry, ended: dict[str, Any], by: str, lookup: Lookup) -> list[Change]:
    """The facts that a newer value ends: deprecated, and invalid from then on."""
    changes = []
    for id_, at in ended.items():
        item = lookup(id_)
        if item is not None and item.body is not None:
            fact = StoredFact.from_wire(item.plain())
            end = fact.model_copy(update={"status": "deprecated", "ended_at": at, "superseded_by": by})
            changes.append(_change(end, entry, ()))
    return changes


def _revised(entry: LedgerEntry, lookup: Lookup, revise: Revise) -> list[Change]:
    id_ = entry.metadata.get("id")
    item = lookup(id_) if isinstance(id_, str) else None
    if item is None or item.body is None:
        return []
    fact = StoredFact.from_wire(item.plain())
    revised = revise(fact, entry)
    said = entry.metadata
    sources = (*texts_in(said.get("sources")), *texts_in([said.get("from")]), *texts_in(said.get("depends_on")))
    return [_change(revised, entry, sources, is_mention=revised == fact)]


def _reinforced(fact: StoredFact, entry: LedgerEntry) -> StoredFact:
    assertions = kept_assertions((*fact.assertions, assertion_of(entry)))
    depends_on = tuple(dict.fromkeys((*fact.depends_on, *texts_in(entry.metadata.get("depends_on")))))
    return fact.model_copy(update={"assertions": assertions, "depends_on": depends_on})


def _disputed(fact: StoredFact, entry: LedgerEntry) -> StoredFact:
    return fact.model_copy(update={"status": "disputed", "objections": (*fact.objections, _objection(entry))})


def _retracted(fact: StoredFact, entry: LedgerEntry) -> StoredFact:
    gone = {"status": "deprecated", "is_retracted": True}
    return fact.model_copy(update=gone | {"objections": (*fact.objections, _objection(entry))})


_REVISIONS: dict[str, Revise] = {
    FACT_REINFORCED: _reinforced,
    FACT_DISPUTED: _disputed,
    FACT_RETRACTED: _retracted,
}


def assertion_of(entry: MakingEntry) -> Assertion:
    """The assertion that an entry makes; raises `InvalidRecord` if it was not written by one of our runs."""
    said = entry.metadata.get("assertion")
    plain: dict[str, Any] = said if isinstance(said, dict) else {}
    here = {"patch": entry.id, "trust": entry.trust}
    return Assertion.from_wire(
        plain | here | {"sources": entry.metadata.get("sources"), "origin": entry.metadata.get("from")}
    )


def _objection(entry: LedgerEntry) -> Objection:
    said = entry.metadata
    return Objection.from_wire({"patch": entry.id, "sources": said.get("sources"), "reason": said.get("reason")})


def item_before(entry: LedgerEntry, lookup: Lookup, kind: str) -> Item | None:
    """The item that an entry changes, if it still exists."""
    id_ = entry.metadata.get("id")
    item = lookup(id_) if isinstance(id_, str) else None
    return item if item is not None and item.kind == kind and item.body is not None else None


def next_version(
    item: Item, entry: LedgerEntry, body: dict[str, Any], status: str, trust: Trust, sources: Iterable[str]
) -> Change:
    """The next version of an item, in the same place."""
    return Change(
        id=item.id,
        kind=item.kind,
        status=status,
        body=body,
        created_at=entry.recorded_at,
        trust=trust,
        sources=(*sources, entry.id),
        name=item.name,
        user_id=item.user_id,
        agent_id=item.agent_id,
        session_id=item.session_id,
        run_id=item.run_id,
    )


def texts_in(values: Any) -> tuple[str, ...]:
    """The strings of a list; empty if an entry from elsewhere holds something else."""
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _change(fact: StoredFact, entry: LedgerEntry, sources: Iterable[str], *, is_mention: bool = False) -> Change:
    return Change(
        id=fact.fact_id,
        kind="fact",
        status=fact.status,
        body=fact.to_wire(),
        created_at=entry.recorded_at,
        trust=fact.trust,
        sources=(*sources, entry.id),
        name=digest_name(fact.key),
        is_mention=is_mention,
        **level_columns(entry, fact.scope_level),
    )


def level_columns(entry: LedgerEntry, level: str) -> dict[str, Any]:
    """The owner columns of an item: the user, everyone with this agent, or the whole tenant."""
    if level == "user":
        return {"user_id": entry.scope.user_id}
    return {"agent_id": entry.scope.agent_id} if level == "agent" else {}


TERMS_MAX = 64
"""Maximum number of indexed words of a fact."""


def fact_terms(item: Item) -> frozenset[int]:
    """Hashed words of a fact's key and sentence; empty once it is deprecated."""
    if item.status == "deprecated":
        return frozenset()
    fact = StoredFact.from_wire(item.plain())
    return hash_words(f"{fact.key} {in_words(fact.key, words_of(fact.value))}")


def hash_words(text: str) -> frozenset[int]:
    """The hashed terms of a text, as indexed for items."""
    return frozenset(list(hash_terms(analyze(text.replace(".", " ").replace("_", " "))))[:TERMS_MAX])


def hash_terms(terms: Iterable[str]) -> dict[int, None]:
    """Hash analysed words for the item index, each once and in order."""
    return dict.fromkeys(term_hash(term) >> 1 for term in terms)


def words_of(value: Any) -> str:
    """The words of a value, for matching."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return " ".join(f"{key} {words_of(part)}" for key, part in value.items())
    return " ".join(map(words_of, value)) if isinstance(value, list) else canonical_text(value)


# -- forgetting ---------------------------------------------------------------------------------------


def left_of(sources: Iterable[str], lost: frozenset[str]) -> tuple[str, ...]:
    return tuple(source for source in sources if source not in lost)


def fact_without(item: Item, lost: frozenset[str], patches: Sequence[MakingEntry] = ()) -> Rewritten | None:
    """The fact without lost sources. It survives while one assertion keeps at least one source; else it is erased.

    `patches` are all that made the fact, in order: repeated mentions among them replace lost assertions.
    """
    fact = StoredFact.from_wire(item.plain())
    assertions = []
    for assertion in _all_assertions(fact, patches):
        sources = left_of(assertion.sources, lost)
        if not sources or assertion.patch in lost or assertion.origin in lost:
            continue
        quote = None if assertion.quote is None or assertion.quote.event_id in lost else assertion.quote
        assertions.append(assertion.model_copy(update={"sources": sources, "quote": quote}))
    if not assertions:
        return None
    objections = tuple(
        each.model_copy(update={"sources": left_of(each.sources, lost)})
        for each in fact.objections
        if each.patch not in lost and (not each.sources or left_of(each.sources, lost))
    )
    taken_over_by = None if fact.superseded_by in lost else fact.superseded_by
    kept = fact.model_copy(
        update={
            "assertions": kept_assertions(assertions),
            "objections": objections,
            "superseded_by": taken_over_by,
        }
    )
    return Rewritten(kept.to_wire(), kept.status, kept.trust)


def _all_assertions(fact: StoredFact, patches: Iterable[MakingEntry]) -> list[Assertion]:
    """Every assertion of a fact, repeated mentions included, in order."""
    if len(fact.assertions) < FIRST_KEPT:
        return list(fact.assertions)
    held = {assertion.patch: assertion for assertion in fact.assertions}
    said: list[Assertion] = []
    for patch in patches:
        if patch.id in held:
            said.append(held.pop(patch.id))
        elif patch.metadata.get("event") in (FACT_REMEMBERED, FACT_REINFORCED):
            with suppress(InvalidRecord):
                said.append(assertion_of(patch))
    return [*held.values(), *said]
