"""Facts that a run can see, a page at a time, in the order in which they were first written.

Not by their keys: a key is a word, and no index of the store holds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.listing import ListQuery, Placed, matches
from muniment.core.requests import checked
from muniment.core.scope import bank_owner
from muniment.memory.fact_reading import FactItem, FactQuery, facts_of_level, fallen_of, held_at, read_fact_items
from muniment.memory.fact_rows import LEVELS, level_of
from muniment.memory.facts.rules import is_many_valued
from muniment.memory.patches import cleaned
from muniment.store.items import digest_name
from muniment.store.lists.seeking import find_listed, merged, read_listed, read_named, seek

if TYPE_CHECKING:
    from muniment.contracts.packet import Fact
    from muniment.core.ports.engine import Reader
    from muniment.memory.patches import Writer
    from muniment.store.items import Item
    from muniment.store.lists.seeking import Make, Read

__all__ = ["page_facts"]


def page_facts(
    writer: Writer, key: str | None, at: Any, asked: ListQuery, *, include_all: bool
) -> Iterator[Placed[Fact]]:
    """What holds now, or held at a point in time, each key by its nearest level; or everything there is."""
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
