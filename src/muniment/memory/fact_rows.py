"""Raw rows of facts within a scope: a scope without facts need not load the modules that interpret them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from muniment.core.ports.engine import Condition, Reader
from muniment.core.scope import bank_owner
from muniment.store.items import Item, digest_name, newest_items, select_items

if TYPE_CHECKING:
    from muniment.core.scope import Scope, ScopeLevel

__all__ = ["LEVELS", "FactRows", "fact_items", "level_of", "newest_facts", "owner_of_level", "visible_facts"]

LEVELS: tuple[ScopeLevel, ...] = ("user", "agent", "tenant")
"""Nearest first: the user's facts override the agent's, which override the tenant's (MP-08)."""


HELD_MAX = 30
"""For a level with more facts, a query reads only some: the newest, and those that share words with it."""
NEWEST_MAX = {"active": 30, "disputed": 5, "deprecated": 5}


class FactRows(NamedTuple):
    """The facts read from one level before a query is considered."""

    level: ScopeLevel
    items: list[Item]
    is_whole: bool
    """True if there are no others."""


def newest_facts(reader: Reader, scope: Scope) -> list[FactRows]:
    """The newest facts of each non-empty level: all of them, or the most recent of each status."""
    found = []
    for level in LEVELS:
        of_level: tuple[Condition, ...] = (
            ("kind", "=", "fact"),
            ("owner", "=", owner_of_level(scope, level)),
            ("newest", "=", 1),
        )
        order = ("status", "placed_at", "id")
        items = select_items(reader, of_level, order=order, limit=HELD_MAX + 1)
        is_whole = len(items) <= HELD_MAX
        if not is_whole:
            items = []
            for status, most in NEWEST_MAX.items():
                of_status: tuple[Condition, ...] = (*of_level, ("status", "=", status))
                items += select_items(reader, of_status, order=order[1:], descending=True, limit=most)
        if items:
            found.append(FactRows(level, items, is_whole))
    return found


def owner_of_level(scope: Scope, level: ScopeLevel) -> str:
    """The owner whose list holds the facts of a level."""
    return scope.user_id if level == "user" else bank_owner(scope, level)


def level_of(scope: Scope, level: str) -> tuple[Condition, ...]:
    """The conditions that select a level's items."""
    if level == "user":
        return (("user_id", "=", scope.user_id),)
    return ("user_id", "=", None), ("agent_id", "=", scope.agent_id if level == "agent" else None)


def fact_items(
    reader: Reader, scope: Scope, level: str, key: str | None = None, statuses: tuple[str, ...] = ()
) -> list[Item]:
    """The facts of one level, of all statuses or of some, without forgotten ones."""
    where: tuple[Condition, ...] = (("kind", "in", ("fact",)), *level_of(scope, level), ("newest", "=", 1))
    where += () if key is None else (("name", "=", digest_name(key)),)
    where += (("status", "in", statuses),) if statuses else ()
    return newest_items(reader, where)


def visible_facts(reader: Reader, scope: Scope, key: str | None = None) -> list[Item]:
    """Every fact this run can see: the user's own and those inherited, nearest level first."""
    return [item for level in LEVELS for item in fact_items(reader, scope, level, key)]
