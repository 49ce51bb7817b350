"""Reading facts within a scope: by key, by level, as of a moment, with what they depend on checked (MP-06…MP-08)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from muniment.contracts.memory_packet import Fact
from muniment.core.policy.memory import FactPolicy
from muniment.core.ports.engine import Reader
from muniment.core.scope import Scope
from muniment.errors import InvalidInput
from muniment.memory.fact_rows import LEVELS, fact_items, visible_facts
from muniment.memory.facts.records import StoredFact
from muniment.memory.facts.rules import is_many_valued
from muniment.memory.patches import Desk, cleaned, instant_of, text_of
from muniment.store.items import Item, latest

__all__ = [
    "Standing",
    "fact_history",
    "fallen_of",
    "list_facts",
    "read_facts",
    "standing_facts",
    "standing_of",
    "view_fact",
]


class Standing(NamedTuple):
    """A fact as stored, with its row."""

    item: Item
    fact: StoredFact


def standing_facts(reader: Reader, scope: Scope, level: str, key: str | None = None) -> list[Standing]:
    """The facts of one level, of all statuses; those that were forgotten are not among them."""
    return standing_of(fact_items(reader, scope, level, key))


def standing_of(items: Iterable[Item]) -> list[Standing]:
    return [Standing(item, StoredFact.model_validate_json(item.body or "")) for item in items]


def read_facts(reader: Reader, scope: Scope, key: str | None = None) -> list[Standing]:
    """Every fact this run can see: the user's own and those inherited, nearest level first."""
    return standing_of(visible_facts(reader, scope, key))


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


def list_facts(desk: Desk, key: str | None, at: Any, *, include_all: bool) -> list[Fact]:
    """What holds now, or held at a point in time, each key by its nearest level; or everything there is."""
    moment = instant_of(at, "$.at")
    if key is not None and not isinstance(key, str):
        raise InvalidInput("key should be a string", path="$.key")
    wanted = None if key is None else cleaned(desk.ctx, key)
    now = desk.ctx.now()
    policy = desk.ctx.policy.memory.facts

    def work(reader: Reader) -> list[Fact]:
        found = read_facts(reader, desk.scope, wanted)
        if not include_all:
            is_in = _holds if moment is None else _held
            found = _nearest([each for each in found if is_in(each.fact, moment or now)], policy)
        return _viewed(reader, found, lambda each: (each.fact.key, LEVELS.index(each.fact.scope_level), *_age(each)))

    return desk.ctx.engine.read(desk.scope.tenant_id, work)


def _age(each: Standing) -> tuple[str, str]:
    return each.fact.since, each.fact.fact_id


def _viewed(reader: Reader, found: Iterable[Standing], order: Callable[[Standing], Any]) -> list[Fact]:
    known: dict[str, bool] = {}
    return [each.fact.to_fact(fallen_of(reader, each.fact, known)) for each in sorted(found, key=order)]


def _holds(fact: StoredFact, now: str) -> bool:
    """MP-07: active, and valid now; valid until exactly now is still valid."""
    starts = [assertion.valid_from for assertion in fact.best if assertion.valid_from is not None]
    end = fact.until
    return fact.status == "active" and (not starts or starts[-1] <= now) and (end is None or now <= end)


def _held(fact: StoredFact, moment: str) -> bool:
    """Was it so then, as far as we know today? What a newer value ended held until just before it."""
    if fact.is_retracted or fact.status == "disputed" or fact.since > moment:
        return False
    return (fact.ended_at is None or moment < fact.ended_at) and (fact.until is None or moment <= fact.until)


def _nearest(found: Iterable[Standing], policy: FactPolicy) -> list[Standing]:
    """Each key by its nearest level (MP-08); many-valued keys by all of them. `found` is nearest first."""
    level_of: dict[str, str] = {}
    kept = []
    for each in found:
        nearest = level_of.setdefault(each.fact.key, each.fact.scope_level)
        if nearest == each.fact.scope_level or is_many_valued(each.fact.key, policy):
            kept.append(each)
    return kept


def fact_history(desk: Desk, key: str) -> list[Fact]:
    """Everything that was ever held of a key, oldest first, of every status and level."""
    wanted = cleaned(desk.ctx, text_of(key, "$.key"))

    def work(reader: Reader) -> list[Fact]:
        found = read_facts(reader, desk.scope, wanted)
        return _viewed(reader, found, _age)

    return desk.ctx.engine.read(desk.scope.tenant_id, work)
