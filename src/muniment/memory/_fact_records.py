"""The bodies of the memory items: what a fact, a procedure, an insight, a candidate or a working state is made of.

Richer than the packet's records, which are views of these: each part says which `state_patch` brought it and on what
evidence, so that a forget can take exactly that part away. Quotes are kept as spans into their event, never as text.
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
# Candidates (MP-17): what extraction or a caller proposes as a fact, and what became of it.


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


# -- keys ----------------------------------------------------------------------------------------------
#
# Facts in words: keys stay in the records; a page reads like a sentence, and a query matches one.


_SENTENCES = {
    "user.name": "Is called {}",
    "user.location": "Lives in {}",
    "user.allergy": "Allergic to {}",
    "user.allergies": "Allergic to {}",
    "user.employer": "Works for {}",
    "user.job": "Works as {}",
}
"""The keys that are made here without a caller, and how one says them."""
_NAMES = re.compile(r"\w+(?:[._-]\w+)*")
"""Names with signs between them, as keys mostly are."""


def in_words(key: str, value: str) -> str:
    """`user.location` and `Berlin` as `Lives in Berlin`; any other key as words: `office.opening_hours` as
    `Office opening hours: 9 to 5`."""
    if key in _SENTENCES:
        return _SENTENCES[key].format(value)
    if _NAMES.fullmatch(key):
        key = re.sub(r"[._-]+", " ", key.removeprefix("user.").removeprefix("person.")).strip() or key
    return f"{key[:1].upper()}{key[1:]}: {value}"


def told_origin(notes: str | None) -> str:
    """Where a fact comes from that rests on nothing that was observed here, behind its value."""  # MV-02
    said = origin_note(notes)
    return "" if said is None else f" ({said})"


# -- rules ---------------------------------------------------------------------------------------------
#
# What a new saying about a key does to the facts that stand for it, by the rules of the policy.


Effect = Literal["new", "reinforces", "coexists", "disputes", "history", "supersedes"]


@dataclass(frozen=True, slots=True)
class Saying:
    """A new value for a key, as the rules need it."""

    key: str
    value: Any
    trust: Trust
    since: str
    until: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be done: which rule spoke, the status of the saying, the fact it adds to, the facts it ends."""

    effect: Effect
    status: FactStatus
    adds_to: str | None = None
    ends: tuple[str, ...] = ()
    ended_at: str | None = None
    against: str | None = None
    """The active fact it disagrees with or takes over from."""


def resolve(saying: Saying, standing: Sequence[StoredFact], policy: FactPolicy) -> Outcome:
    """The rules in their order: same value, many-valued key, lower trust, older, newer (0002)."""
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
    """Why a fact does not hold now; None if it does, as far as facts of other levels do not override it (MP-07)."""
    return fact.status if fact.status != "active" else validity_problem(fact, parse_rfc3339(now))


def validity_problem(fact: Fact, now: Instant | None) -> Literal["not_yet_valid", "expired"] | None:
    """Instants are compared, not strings; until exactly now is still valid. What cannot be read does not hold."""
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
    """By id, the facts that a nearer scope level overrides, and the fact that does (MP-08).

    A key of many values holds those of all levels. The facts are those in force.
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
    """A fact that ended before the saying begins does not stand in its way, nor is it the same saying again."""
    return fact.until is None or fact.until >= saying.since


def _is_twin(fact: StoredFact, saying: Saying) -> bool:
    return fact.trust == saying.trust and same_value(fact.value, saying.value)


def same_value(one: Any, other: Any) -> bool:
    """Equal as JSON; texts also where they differ only in case, width or white space."""
    if isinstance(one, str) and isinstance(other, str):
        return _folded_text(one) == _folded_text(other)
    return canonical_text(one) == canonical_text(other)


def names_value(name: str, value: Any) -> bool:
    """`Portland` names `Portland, Oregon`, and the other way round; else only the same value does."""
    if not isinstance(value, str):
        return False
    one, other = _folded_text(name).removeprefix("the "), _folded_text(value).removeprefix("the ")
    return one == other or one.partition(",")[0] == other or one == other.partition(",")[0]


def _folded_text(text: str) -> str:
    """A text in one form: letters normalised and folded, single blanks between words."""
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
# Facts from `state_patch` entries, and what is left of a fact without some of its sources. Pure: entries say all.


Lookup = Callable[[str], Item | None]
Revise = Callable[[StoredFact, LedgerEntry], StoredFact]


def project_fact(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """The new fact or the new version of one, and the end of the facts it takes over from."""
    event = entry.metadata.get("event")
    try:
        if event == FACT_REMEMBERED:
            return _remembered(entry, lookup)
        revise = _REVISIONS.get(event) if isinstance(event, str) else None
        return [] if revise is None else _revised(entry, lookup, revise)
    except InvalidRecord:  # not written by a run of ours: it says nothing about a fact
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
    """The facts that a newer value ends: deprecated, and no longer valid from then on."""
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
    """What an entry says for a fact; raises `InvalidRecord` if it was not written by a run of ours."""
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
    """The item that an entry changes, where it is still there."""
    id_ = entry.metadata.get("id")
    item = lookup(id_) if isinstance(id_, str) else None
    return item if item is not None and item.kind == kind and item.body is not None else None


def next_version(
    item: Item, entry: LedgerEntry, body: dict[str, Any], status: str, trust: Trust, sources: Iterable[str]
) -> Change:
    """The next version of an item, where it was."""
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
    """The texts of a list; nothing, where an entry from elsewhere holds something else."""
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
    """Whose item it is: the user's, everyone's with this agent, or the whole tenant's."""
    if level == "user":
        return {"user_id": entry.scope.user_id}
    return {"agent_id": entry.scope.agent_id} if level == "agent" else {}


TERMS_MAX = 64
"""A fact is found by so many of its words at most."""


def fact_terms(item: Item) -> frozenset[int]:
    """The words of a fact's key and of the sentence that it reads as, hashed; none once it is deprecated."""
    if item.status == "deprecated":
        return frozenset()
    fact = StoredFact.from_wire(item.plain())
    return hash_words(f"{fact.key} {in_words(fact.key, words_of(fact.value))}")


def hash_words(text: str) -> frozenset[int]:
    """The terms of a text as an index of items holds them."""
    return frozenset(list(hash_terms(analyze(text.replace(".", " ").replace("_", " "))))[:TERMS_MAX])


def hash_terms(terms: Iterable[str]) -> dict[int, None]:
    """Analysed words as an index of items holds them, each once and in order."""
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
    """A fact stands while one of its assertions does, with at least one of its sources; else it is erased.

    `patches` are all that made the fact, in order: repeated mentions among them take the place of what is lost.
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
    """Everything that was said for a fact, repeated mentions included, in order."""
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
