"""Facts (MP-06…MP-09): remember by the rules, dispute, retract, and read those in force."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.contracts.packet import Fact, FactStatus
from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.policy import FactPolicy
from muniment.core.ports.engine import Lock, Reader, Transaction
from muniment.core.ports.rows import Where, by_ids
from muniment.core.ports.schema import ITEMS
from muniment.core.record import Confidence, Items, JsonValue, Record
from muniment.core.requests import Request, TextOrNone, checked
from muniment.core.scope import IdText, Scope, ScopeLevel, Trust, bank_owner, imported_note
from muniment.errors import InvalidInput
from muniment.memory._fact_records import (
    Outcome,
    Saying,
    StoredFact,
    find_overridden,
    hash_terms,
    hash_words,
    in_words,
    is_many_valued,
    is_preference,
    resolve,
    why_not_in_force,
    words_of,
)
from muniment.memory.evidence import Match, Wanted, match_text
from muniment.memory.fact_rows import LEVELS, FactRows, fact_items, level_of, owner_of_level, visible_facts
from muniment.memory.patches import (
    Decided,
    Evidence,
    MomentOrNone,
    Texts,
    Writer,
    check_open,
    cleaned,
    draft_patch,
    find_quote,
    instant_of,
    need_grant,
    own_item,
    read_evidence,
    text_of,
    texts_of,
    trust_of_evidence,
    write_patches,
)
from muniment.store.item_terms import newest_with_terms
from muniment.store.items import Item, digest_name, latest, lock_shared
from muniment.store.ledger import FACT_DISPUTED, FACT_REINFORCED, FACT_REMEMBERED, FACT_RETRACTED, EntryDraft
from muniment.store.lists.seeking import find_listed, merged, read_listed, read_named, seek

if TYPE_CHECKING:
    from muniment.store.lists.seeking import Make, Read

__all__ = [
    "FactItem",
    "FactQuery",
    "FactRequest",
    "FoundFact",
    "Planned",
    "dispute_fact",
    "fact_history",
    "facts_of_level",
    "fallen_of",
    "find_facts",
    "held_at",
    "in_force",
    "lock_fact",
    "page_facts",
    "plan_fact",
    "read_fact_items",
    "read_facts",
    "remember",
    "request_fact",
    "retract_fact",
    "view_fact",
]

QUOTED_NOTE = "confidence set by policy: the user's own words, quoted"
"""The note of a fact remembered from the user's quoted words without a confidence or note of its own."""


class FactRequest(Record):
    """A fact to be remembered, with its form validated."""

    key: IdText
    value: JsonValue
    sources: Items[IdText]
    confidence: Confidence | None = None
    scope_level: ScopeLevel = "user"
    valid_from: str | None = None
    valid_to: str | None = None
    notes: str | None = None
    depends_on: Items[IdText] = ()
    quote: str | None = None
    is_preference: bool | None = None


class Planned(NamedTuple):
    """The decision on a fact: its entry, the fact it makes or adds to, and the rule that applied."""

    draft: EntryDraft
    fact_id: str
    outcome: Outcome
    after: str


def request_fact(**given: Any) -> FactRequest:
    """Validate a caller's arguments; refuse reversed validity and missing sources."""
    plain = dict(given)
    for name in ("sources", "depends_on"):
        plain[name] = texts_of(plain.get(name, ()), f"$.{name}")
    for name in ("valid_from", "valid_to"):
        plain[name] = instant_of(plain.get(name), f"$.{name}")
    request = FactRequest.of_given(plain, "this cannot be remembered")
    if not request.sources:
        raise InvalidInput(
            "a fact needs at least one source",
            path="$.sources",
            hint="name the events that say it, such as sources=[event.id]; observe what was said first",
        )
    if request.valid_from and request.valid_to and request.valid_to < request.valid_from:
        raise InvalidInput(
            "the fact would end before it begins", path="$.valid_to", hint="give a valid_to after valid_from, or none"
        )
    if request.quote == "":
        raise InvalidInput(
            "a quote should hold some words", path="$.quote", hint="leave quote out to cite the whole event"
        )
    return request


def remember(writer: Writer, request: FactRequest) -> Fact:
    need_grant(writer, request.scope_level)
    fact_id = writer.ctx.ids.new("fct")
    made: list[str] = []

    def decide(tx: Transaction) -> Decided:
        evidence = read_evidence(tx, writer.scope, request.sources)
        planned = plan_fact(tx, writer, request, fact_id, evidence)
        made[:] = [planned.fact_id]
        return Decided([planned.draft], planned.after)

    return write_patches(writer, decide, lambda reader: view_fact(reader, made[0]))


def plan_fact(
    tx: Transaction,
    writer: Writer,
    request: FactRequest,
    fact_id: str,
    evidence: Sequence[Evidence],
    origin: str | None = None,
    *,
    is_supposed: bool = False,
) -> Planned:
    """Take the key's lock, apply the rules, and draft the entry. `origin` is the item it was promoted from."""
    ctx, scope, policy = writer.ctx, writer.scope, writer.ctx.policy.memory.facts
    key = cleaned(ctx, request.key)
    value = cleaned(ctx, request.value, key)
    _check_dependencies(tx, scope, request)
    quote = find_quote(tx, scope, request.quote, evidence)
    trust = trust_of_evidence(evidence, is_supposed=is_supposed)
    since = request.valid_from or max(each.ts for each in evidence)
    lock_fact(tx, scope, request.scope_level, key)
    standing = facts_of_level(tx, scope, request.scope_level, key, ("active", "disputed"))
    saying = Saying(key, value, trust, since, request.valid_to)
    outcome = resolve(saying, [each.fact for each in standing], policy)
    confidence, notes = _confidence(request, policy, trust, is_quoted=quote is not None and not is_supposed)
    notes = _with_origin(notes, evidence)
    said: dict[str, Any] = {
        "id": outcome.adds_to or fact_id,
        "sources": list(request.sources),
        "from": origin,
        "depends_on": list(request.depends_on),
        "assertion": {
            "since": since,
            "confidence": confidence,
            "notes": notes,
            "valid_from": request.valid_from,
            "valid_to": request.valid_to,
            "quote": None if quote is None else quote.to_wire(),
        },
    }
    event = FACT_REINFORCED
    if outcome.adds_to is None:
        event = FACT_REMEMBERED
        said |= _new_fact(request, key, value, outcome, policy)
    touched = {*outcome.ends, outcome.adds_to}
    after = max((each.item.created_at for each in standing if each.item.id in touched), default="")
    return Planned(draft_patch(event, trust, said), outcome.adds_to or fact_id, outcome, after)


def _confidence(request: FactRequest, policy: FactPolicy, trust: Trust, *, is_quoted: bool) -> tuple[float, str | None]:
    """The caller's confidence, or the policy's; a note records if the policy relied on the user's quoted words."""
    if request.confidence is not None:
        return request.confidence, request.notes
    plain: float = getattr(policy.confidence, trust)
    if trust != "user" or not is_quoted or policy.confidence.user_quote == plain:
        return plain, request.notes
    return policy.confidence.user_quote, QUOTED_NOTE if request.notes is None else request.notes


def _with_origin(notes: str | None, evidence: Sequence[Evidence]) -> str | None:
    """The notes, prefixed with the origin of evidence that was not observed here."""  # MV-02
    systems = dict.fromkeys(each.imported_from for each in evidence)
    if not systems or None in systems:
        return notes
    origin = imported_note(" and ".join(sorted(filter(None, systems))))
    return origin if notes is None else notes if notes.startswith(origin) else f"{origin}; {notes}"


def _new_fact(request: FactRequest, key: str, value: Any, outcome: Outcome, policy: FactPolicy) -> dict[str, Any]:
    is_past = outcome.effect == "history"
    chosen = request.is_preference
    return {
        "effect": outcome.effect,
        "key": key,
        "value": value,
        "status": outcome.status,
        "scope_level": request.scope_level,
        "is_preference": is_preference(key, policy) if chosen is None else chosen,
        "ends": dict.fromkeys(outcome.ends, outcome.ended_at),
        "ended_at": outcome.ended_at if is_past else None,
        "superseded_by": outcome.against if is_past else None,
    }


def _check_dependencies(reader: Reader, scope: Scope, request: FactRequest) -> None:
    """Check that a fact depends only on facts of its own level or above, which all its readers can see."""
    for index, id_ in enumerate(request.depends_on):
        path = f"$.depends_on[{index}]"
        level = own_item(reader, scope, "fact", id_, path).plain()["scope_level"]
        if LEVELS.index(level) < LEVELS.index(request.scope_level):
            said = f"a fact at {request.scope_level} level cannot depend on one at {level} level"
            raise InvalidInput(said, path=path, hint="depend on facts of the same level or above")


def lock_fact(tx: Transaction, scope: Scope, level: str, key: str) -> None:
    """Lock a key at a level; for shared levels, lock the whole level first, as a forget does."""
    if level != "user":
        lock_shared(tx)
    owner = {"user": scope.user_id, "agent": scope.agent_id}.get(level, "")
    tx.do(Lock(("fact", level, owner, digest_name(key))))


# -- objections ---------------------------------------------------------------------------------------


def dispute_fact(writer: Writer, fact_id: str, sources: Any, reason: str | None) -> Fact:
    """Dispute a fact; it is left out until the dispute is settled."""
    return _object(writer, FACT_DISPUTED, fact_id, sources, reason, ("active", "disputed"))


def retract_fact(writer: Writer, fact_id: str, sources: Any, reason: str | None) -> Fact:
    """Retract a fact; it is kept as history and never shown."""
    return _object(writer, FACT_RETRACTED, fact_id, sources, reason, ("active", "disputed"))


class ObjectionRequest(Request):
    """An objection to a fact: its sources and reason."""

    sources: Texts
    reason: TextOrNone


def _object(
    writer: Writer, event: str, fact_id: str, sources: Any, reason: str | None, statuses: tuple[str, ...]
) -> Fact:
    named = checked(ObjectionRequest, sources=sources, reason=reason).sources
    doing = "disputed" if event == FACT_DISPUTED else "retracted"

    def decide(tx: Transaction) -> Decided:
        seen = StoredFact.from_wire(own_item(tx, writer.scope, "fact", fact_id, "$.fact_id").plain())
        need_grant(writer, seen.scope_level)
        lock_fact(tx, writer.scope, seen.scope_level, seen.key)
        item = own_item(tx, writer.scope, "fact", fact_id, "$.fact_id")
        check_open(item, statuses, doing)
        trust = trust_of_evidence(read_evidence(tx, writer.scope, named))
        said = {"id": item.id, "sources": list(named), "reason": reason}
        return Decided([draft_patch(event, trust, said)], item.created_at)

    return write_patches(writer, decide, lambda reader: view_fact(reader, fact_id))


# -- fact reading --------------------------------------------------------------------------------------
#
# Read facts within a scope: by key, by level, as of a moment, with their dependencies checked (MP-06…MP-08).


class FactItem(NamedTuple):
    """A fact as stored, with its row."""

    item: Item
    fact: StoredFact


class FoundFact(NamedTuple):
    """A fact of any status, as one query sees it."""

    item: Item
    stored: StoredFact
    fact: Fact
    match: Match
    is_stale: bool
    """True if it depends on a fact that no longer holds."""


def find_facts(
    reader: Reader,
    scope: Scope,
    rows: Sequence[FactRows],
    wanted: Wanted,
    policy: FactPolicy,
    *,
    words: str = "",
    only_matching: bool = False,
) -> list[FoundFact]:
    """The facts of every status and level that a query may need, best match first, then newest.

    `rows` are the `newest_facts`. From a level with more, facts that share words with the query or with `words`, and
    the user's instructions, are read too, or only these: the cost does not depend on the number of facts.
    """
    read = read_fact_items(item for each in rows for item in each.items if each.is_whole or not only_matching)
    cut = [each.level for each in rows if not each.is_whole]
    if cut:
        known_ids = {each.item.id for each in read}
        read += read_fact_items(_matching(reader, scope, cut, wanted, words, known_ids))
        read += read_fact_items(_nearer(reader, scope, cut, read, policy))
    known: dict[str, bool] = {}
    found = []
    for item, stored in read:
        fallen = fallen_of(reader, stored, known)
        match = match_fact(wanted, stored.key, stored.value)
        found.append(FoundFact(item, stored, stored.to_fact(fallen), match, bool(fallen)))
    found.sort(key=lambda each: (each.item.created_at, each.item.id), reverse=True)
    return sorted(found, key=lambda each: -each.match.score)


TERMS_ASKED_MAX = 40
"""Maximum number of query terms looked up."""
MATCHING_MAX = 50
"""Maximum number of a level's facts read because they share words with a query."""
INSTRUCTIONS_MAX = 20
_INSTRUCTION = "instruction"


def _matching(
    reader: Reader, scope: Scope, levels: Sequence[ScopeLevel], wanted: Wanted, words: str, known_ids: Container[str]
) -> Iterator[Item]:
    """The facts of some levels that share most with a query, and the newest instructions, except known ones."""
    terms = hash_terms(wanted.terms)
    terms |= dict.fromkeys(sorted(hash_words(words)))
    terms |= hash_terms(term for _, group in wanted.kinds for term in sorted(group))
    for level in levels:
        owner = owner_of_level(scope, level)
        ids = newest_with_terms(reader, owner, list(terms)[:TERMS_ASKED_MAX], MATCHING_MAX)
        if level == "user":
            ids += newest_with_terms(reader, owner, hash_words(_INSTRUCTION), INSTRUCTIONS_MAX)
        wanted_ids = [id_ for id_ in dict.fromkeys(ids) if id_ not in known_ids]
        own: Where = (("kind", "=", "fact"), ("owner", "=", owner), ("newest", "=", 1))
        yield from by_ids(reader, ITEMS, wanted_ids, where=own, into=Item)


def _nearer(
    reader: Reader, scope: Scope, levels: Sequence[ScopeLevel], read: Sequence[FactItem], policy: FactPolicy
) -> Iterator[Item]:
    """Unread active facts of these levels that may override some of those read."""
    known_ids = {each.item.id for each in read}
    for level in levels:
        keys = dict.fromkeys(
            each.fact.key for each in read if LEVELS.index(each.fact.scope_level) > LEVELS.index(level)
        )
        for key in keys:
            if not is_many_valued(key, policy):
                held = fact_items(reader, scope, level, key, ("active",))
                yield from (item for item in held if item.id not in known_ids)


def match_fact(wanted: Wanted, key: str, value: Any) -> Match:
    """Match a fact against a query, by the words of its key and of its sentence."""
    return match_text(wanted, f"{key} {in_words(key, words_of(value))}")


def in_force(found: Iterable[FoundFact], now: str, policy: FactPolicy) -> list[FoundFact]:
    """The facts that hold now: active, valid, and of the nearest level that has one (MP-07, MP-08)."""
    held = [each for each in found if why_not_in_force(each.fact, now) is None]
    overridden = find_overridden((each.fact for each in held), lambda key: is_many_valued(key, policy))
    return [each for each in held if each.fact.fact_id not in overridden]


def facts_of_level(
    reader: Reader, scope: Scope, level: str, key: str | None = None, statuses: tuple[FactStatus, ...] = ()
) -> list[FactItem]:
    """The facts of one level, of all statuses or of some, without forgotten ones."""
    return read_fact_items(fact_items(reader, scope, level, key, statuses))


def read_fact_items(items: Iterable[Item]) -> list[FactItem]:
    return [_read_fact(item) for item in items]


def _read_fact(item: Item) -> FactItem:
    """Parse a stored fact."""
    item.check()
    return FactItem(item, StoredFact.model_validate_json(item.body or ""))


def read_facts(reader: Reader, scope: Scope, key: str | None = None) -> list[FactItem]:
    """Every fact this run can see: the user's own and those inherited, nearest level first."""
    return read_fact_items(visible_facts(reader, scope, key))


def view_fact(reader: Reader, fact_id: str) -> Fact:
    item = latest(reader, fact_id)
    assert item is not None
    fact = StoredFact.from_wire(item.plain())
    return fact.to_fact(fallen_of(reader, fact, {}))


def fallen_of(reader: Reader, fact: StoredFact, known: dict[str, bool]) -> tuple[str, ...]:
    """Its dependencies that no longer hold, directly or through their own dependencies."""
    return tuple(id_ for id_ in fact.depends_on if not _stands(reader, id_, known))


def _stands(reader: Reader, fact_id: str, known: dict[str, bool]) -> bool:
    if fact_id not in known:
        known[fact_id] = True  # a dependency cycle alone does not invalidate its facts
        item = latest(reader, fact_id)
        if item is None or item.body is None or item.status != "active":
            known[fact_id] = False
        else:
            known[fact_id] = not fallen_of(reader, StoredFact.from_wire(item.plain()), known)
    return known[fact_id]


class FactQuery(Request):
    """A query for facts of a key, at a point in time."""

    key: TextOrNone
    at: MomentOrNone


def fact_history(writer: Writer, key: str) -> list[Fact]:
    """Every fact ever recorded for a key, of every status and level, by start of validity."""
    wanted = cleaned(writer.ctx, text_of(key, "$.key"))

    def work(reader: Reader) -> list[Fact]:
        known: dict[str, bool] = {}
        found = sorted(read_facts(reader, writer.scope, wanted), key=lambda each: (each.fact.since, each.fact.fact_id))
        return [each.fact.to_fact(fallen_of(reader, each.fact, known)) for each in found]

    return writer.ctx.engine.read(writer.scope.tenant_id, work)


def held_at(fact: StoredFact, moment: str | None, now: str) -> bool:
    """True if a fact holds now, or held at a moment."""
    return _holds(fact, now) if moment is None else _held(fact, moment)


def _holds(fact: StoredFact, now: str) -> bool:
    return fact.status == "active" and why_not_in_force(fact.to_fact(), now) is None


def _held(fact: StoredFact, moment: str) -> bool:
    """True if it held then, as far as we know today. A value ended by a newer one held until just before it."""
    if fact.is_retracted or fact.status == "disputed" or fact.since > moment:
        return False
    return (fact.ended_at is None or moment < fact.ended_at) and (fact.until is None or moment <= fact.until)


# -- facts ---------------------------------------------------------------------------------------------
#
# Facts visible to a run, paged in the order in which they were first written. Not by key: a key is a word, and no index
# of the store holds words.


def page_facts(
    writer: Writer, key: str | None, at: Any, asked: ListQuery, *, include_all: bool
) -> Iterator[Placed[Fact]]:
    """The facts that hold now or at a point in time, each key by its nearest level; or all facts."""
    moment = checked(FactQuery, key=key, at=at).at
    wanted = None if key is None else cleaned(writer.ctx, key)
    scope, now = writer.scope, writer.ctx.now()
    policy = writer.ctx.policy.memory.facts

    def is_in(each: FactItem) -> bool:
        return include_all or held_at(each.fact, moment, now)

    def is_nearest(reader: Reader, each: FactItem) -> bool:
        if include_all or is_many_valued(each.fact.key, policy):
            return True
        nearer = LEVELS[: LEVELS.index(each.fact.scope_level)]
        return not any(
            is_in(other) for level in nearer for other in facts_of_level(reader, scope, level, each.fact.key)
        )

    def make(reader: Reader, items: Sequence[Item]) -> list[Fact | None]:
        known: dict[str, bool] = {}
        shown: list[Fact | None] = []
        for each in read_fact_items(items):
            is_shown = is_in(each) and _holds_words(each, asked) and is_nearest(reader, each)
            shown.append(each.fact.to_fact(fallen_of(reader, each.fact, known)) if is_shown else None)
        return shown

    if wanted is not None:
        reads = [_named(writer, level, wanted, make) for level in LEVELS]
    else:
        status = None if include_all or moment is not None else "active"
        reads = [read_listed("fact", _owner(writer, level), make, asked, status) for level in LEVELS]

    def find(reader: Reader, fact_id: str) -> Placed[Fact] | None:
        found = (find_listed(("fact",), _owner(writer, level), make)(reader, fact_id) for level in LEVELS)
        return next((each for each in found if each is not None), None)

    return seek(writer.ctx, scope.tenant_id, merged(*reads), asked, None if wanted is not None else find)


def _owner(writer: Writer, level: Any) -> str:
    return writer.scope.user_id if level == "user" else bank_owner(writer.scope, level)


def _named(writer: Writer, level: str, key: str, make: Make[Fact]) -> Read[Fact]:
    return read_named("fact", level_of(writer.scope, level), digest_name(key), make)


def _holds_words(each: FactItem, asked: ListQuery) -> bool:
    return asked.q is None or matches(asked.q, each.fact.key, each.item.body)
