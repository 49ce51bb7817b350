"""The rows of facts within a scope, as they lie: who finds none need load nothing of what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.core.ports.engine import Condition, Reader
from muniment.store.items import Item, digest_name, newest_items

if TYPE_CHECKING:
    from muniment.core.scope import Scope, ScopeLevel

__all__ = ["LEVELS", "fact_items", "level_of", "visible_facts"]

LEVELS: tuple[ScopeLevel, ...] = ("user", "agent", "tenant")
"""Nearest first: the user's overrides the agent's overrides the tenant's (MP-08)."""


def level_of(scope: Scope, level: str) -> tuple[Condition, ...]:
    """Whose items those of a level are."""
    if level == "user":
        return (("user_id", "=", scope.user_id),)
    return ("user_id", "=", None), ("agent_id", "=", scope.agent_id if level == "agent" else None)


def fact_items(reader: Reader, scope: Scope, level: str, key: str | None = None) -> list[Item]:
    """The facts of one level, of all statuses; those that were forgotten are not among them."""
    named: tuple[Condition, ...] = () if key is None else (("name", "=", digest_name(key)),)
    return newest_items(reader, (("kind", "in", ("fact",)), *level_of(scope, level), *named, ("newest", "=", 1)))


def visible_facts(reader: Reader, scope: Scope, key: str | None = None) -> list[Item]:
    """Every fact this run can see: the user's own and those inherited, nearest level first."""
    return [item for level in LEVELS for item in fact_items(reader, scope, level, key)]
