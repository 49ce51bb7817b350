"""Facts from `state_patch` entries, and what is left of a fact without some of its sources. Pure: entries say all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from muniment.core.canonical import canonical_text
from muniment.core.scope import Trust
from muniment.core.text.analyzer import analyze, term_hash
from muniment.errors import InvalidRecord
from muniment.memory.facts.keys import in_words
from muniment.memory.facts.records import FIRST_KEPT, Assertion, Objection, StoredFact, kept_assertions
from muniment.store.derivation import MakingEntry
from muniment.store.items import Change, Item, Rewritten, digest_name
from muniment.store.ledger import FACT_DISPUTED, FACT_REINFORCED, FACT_REMEMBERED, FACT_RETRACTED, LedgerEntry

__all__ = [
    "Lookup",
    "fact_terms",
    "fact_without",
    "hash_terms",
    "hash_words",
    "item_before",
    "left_of",
    "level_columns",
    "next_version",
    "project_fact",
    "texts_in",
    "words_of",
]

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
