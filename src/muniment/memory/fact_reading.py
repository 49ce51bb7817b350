"""Reading facts within a scope: by key, by level, as of a moment, with what they depend on checked (MP-06…MP-08)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from muniment.contracts.packet import Fact, FactStatus
from muniment.core.policy import FactPolicy
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import Where, by_ids
from muniment.core.ports.schema import ITEMS
from muniment.core.requests import Request, TextOrNone
from muniment.core.scope import Scope, ScopeLevel
from muniment.memory.fact_rows import LEVELS, FactRows, fact_items, owner_of_level, visible_facts
from muniment.memory.facts.keys import in_words
from muniment.memory.facts.projection import hash_terms, hash_words, words_of
from muniment.memory.facts.records import StoredFact
from muniment.memory.facts.rules import find_overridden, is_many_valued, why_not_in_force
from muniment.memory.patches import MomentOrNone, Writer, cleaned, text_of
from muniment.memory.reasons import Match, Wanted, match_text
from muniment.store.item_terms import newest_with_terms
from muniment.store.items import Item, latest

__all__ = [
    "FactItem",
    "FactQuery",
    "FoundFact",
    "fact_history",
    "facts_of_level",
    "fallen_of",
    "find_facts",
    "held_at",
    "in_force",
    "read_fact_items",
    "read_facts",
    "view_fact",
]


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
    """It depends on a fact that no longer stands."""


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

    `rows` are the `newest_facts`. Of a level that has more, those that share words with the query or with `words`, and
    the user's instructions, are read too, or these alone: how many facts there are does not matter.
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
"""Of a longer query, no more terms are looked up."""
MATCHING_MAX = 50
"""Facts of a level that are read because they share words with a query."""
INSTRUCTIONS_MAX = 20
_INSTRUCTION = "instruction"


def _matching(
    reader: Reader, scope: Scope, levels: Sequence[ScopeLevel], wanted: Wanted, words: str, known_ids: Container[str]
) -> Iterator[Item]:
    """The facts of some levels that share most with a query, and the newest instructions, but for those known."""
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
    """The active facts of these levels that may override some of those that were read, and were not read yet."""
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
    """How well a fact answers, by the words of its key and of the sentence that it reads as."""
    return match_text(wanted, f"{key} {in_words(key, words_of(value))}")


def in_force(found: Iterable[FoundFact], now: str, policy: FactPolicy) -> list[FoundFact]:
    """The facts that hold now: active, valid, and of the nearest level that has one (MP-07, MP-08)."""
    held = [each for each in found if why_not_in_force(each.fact, now) is None]
    overridden = find_overridden((each.fact for each in held), lambda key: is_many_valued(key, policy))
    return [each for each in held if each.fact.fact_id not in overridden]


def facts_of_level(
    reader: Reader, scope: Scope, level: str, key: str | None = None, statuses: tuple[FactStatus, ...] = ()
) -> list[FactItem]:
    """The facts of one level, of all statuses or of some; those that were forgotten are not among them."""
    return read_fact_items(fact_items(reader, scope, level, key, statuses))


def read_fact_items(items: Iterable[Item]) -> list[FactItem]:
    return [_read_fact(item) for item in items]


def _read_fact(item: Item) -> FactItem:
    """A fact that is as it was written."""
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
    """Which of the facts that it depends on no longer stand, themselves or through what they depend on."""
    return tuple(id_ for id_ in fact.depends_on if not _stands(reader, id_, known))


def _stands(reader: Reader, fact_id: str, known: dict[str, bool]) -> bool:
    if fact_id not in known:
        known[fact_id] = True  # facts that depend on each other in a ring do not fall by that alone
        item = latest(reader, fact_id)
        if item is None or item.body is None or item.status != "active":
            known[fact_id] = False
        else:
            known[fact_id] = not fallen_of(reader, StoredFact.from_wire(item.plain()), known)
    return known[fact_id]


class FactQuery(Request):
    """Which facts are asked for: of a key, at a point in time."""

    key: TextOrNone
    at: MomentOrNone


def fact_history(writer: Writer, key: str) -> list[Fact]:
    """Everything that was ever held of a key, of every status and level, by when it began to hold."""
    wanted = cleaned(writer.ctx, text_of(key, "$.key"))

    def work(reader: Reader) -> list[Fact]:
        known: dict[str, bool] = {}
        found = sorted(read_facts(reader, writer.scope, wanted), key=lambda each: (each.fact.since, each.fact.fact_id))
        return [each.fact.to_fact(fallen_of(reader, each.fact, known)) for each in found]

    return writer.ctx.engine.read(writer.scope.tenant_id, work)


def held_at(fact: StoredFact, moment: str | None, now: str) -> bool:
    """Whether a fact holds now, or held at a moment."""
    return _holds(fact, now) if moment is None else _held(fact, moment)


def _holds(fact: StoredFact, now: str) -> bool:
    return fact.status == "active" and why_not_in_force(fact.to_fact(), now) is None


def _held(fact: StoredFact, moment: str) -> bool:
    """Was it so then, as far as we know today? What a newer value ended held until just before it."""
    if fact.is_retracted or fact.status == "disputed" or fact.since > moment:
        return False
    return (fact.ended_at is None or moment < fact.ended_at) and (fact.until is None or moment <= fact.until)
