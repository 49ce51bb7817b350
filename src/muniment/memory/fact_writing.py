"""Facts (MP-06…MP-09): remembering by the rules, disputing, retracting, reading what stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from muniment.contracts.packet import Fact
from muniment.core.policy import FactPolicy
from muniment.core.ports.engine import Lock, Reader, Transaction
from muniment.core.record import Confidence, Items, JsonValue, Record
from muniment.core.requests import Request, TextOrNone, checked
from muniment.core.scope import IdText, Scope, ScopeLevel, Trust, imported_note
from muniment.errors import InvalidInput
from muniment.memory.fact_reading import facts_of_level, view_fact
from muniment.memory.fact_rows import LEVELS
from muniment.memory.facts.records import StoredFact
from muniment.memory.facts.rules import Outcome, Saying, is_preference, resolve
from muniment.memory.patches import (
    Decided,
    Evidence,
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
    texts_of,
    trust_of_evidence,
    write_patches,
)
from muniment.store.items import digest_name, lock_shared
from muniment.store.ledger import FACT_DISPUTED, FACT_REINFORCED, FACT_REMEMBERED, FACT_RETRACTED, EntryDraft

__all__ = [
    "FactRequest",
    "Planned",
    "dispute_fact",
    "lock_fact",
    "plan_fact",
    "remember",
    "request_fact",
    "retract_fact",
]


QUOTED_NOTE = "confidence set by policy: the user's own words, quoted"
"""The note of a fact that was remembered without a confidence, and without a note, on the user's quoted words."""


class FactRequest(Record):
    """What a caller wants remembered, checked for its form."""

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
    """What remembering comes to: the entry, the fact it makes or adds to, which rule spoke."""

    draft: EntryDraft
    fact_id: str
    outcome: Outcome
    after: str


def request_fact(**given: Any) -> FactRequest:
    """Callers' arguments as a request; reversed validity and missing sources are refused here."""
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
    """Take the key's lock, let the rules speak, and say it in an entry. `origin` is what it was promoted from."""
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
    """As sure as the caller says; else as the policy says, which is told where it went by the user's quoted words."""
    if request.confidence is not None:
        return request.confidence, request.notes
    plain: float = getattr(policy.confidence, trust)
    if trust != "user" or not is_quoted or policy.confidence.user_quote == plain:
        return plain, request.notes
    return policy.confidence.user_quote, QUOTED_NOTE if request.notes is None else request.notes


def _with_origin(notes: str | None, evidence: Sequence[Evidence]) -> str | None:
    """The notes, which begin with where it comes from that nothing was observed of here."""  # MV-02
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
    """A fact may build on others of its own level or above, never on what those it is shared with cannot see."""
    for index, id_ in enumerate(request.depends_on):
        path = f"$.depends_on[{index}]"
        level = own_item(reader, scope, "fact", id_, path).plain()["scope_level"]
        if LEVELS.index(level) < LEVELS.index(request.scope_level):
            said = f"a fact at {request.scope_level} level cannot depend on one at {level} level"
            raise InvalidInput(said, path=path, hint="depend on facts of the same level or above")


def lock_fact(tx: Transaction, scope: Scope, level: str, key: str) -> None:
    """Hold a key at a level; what users share is held as a whole first, as a forget does."""
    if level != "user":
        lock_shared(tx)
    owner = {"user": scope.user_id, "agent": scope.agent_id}.get(level, "")
    tx.do(Lock(("fact", level, owner, digest_name(key))))


# -- against a fact -----------------------------------------------------------------------------------


def dispute_fact(writer: Writer, fact_id: str, sources: Any, reason: str | None) -> Fact:
    """Someone objects: the fact is left out until it is settled."""
    return _object(writer, FACT_DISPUTED, fact_id, sources, reason, ("active", "disputed"))


def retract_fact(writer: Writer, fact_id: str, sources: Any, reason: str | None) -> Fact:
    """The fact is taken back: kept as history, never shown."""
    return _object(writer, FACT_RETRACTED, fact_id, sources, reason, ("active", "disputed"))


class ObjectionRequest(Request):
    """On what, and why, somebody objects to a fact."""

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
