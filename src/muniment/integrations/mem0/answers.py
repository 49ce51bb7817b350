"""Requests to several owners at once, merged. One owner is the usual case."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from muniment.integrations.mem0.exceptions import UnsupportedError
from muniment.integrations.mem0.scoping import EVERYBODY, OWNERS_MAX
from muniment.integrations.mem0.searching import Search, newest_memories, search_owner

if TYPE_CHECKING:
    from muniment.integrations.mem0.filters import Group
    from muniment.integrations.mem0.memories import Memories, Shown

__all__ = ["list_memories", "owners_of", "search_memories"]


def owners_of(memories: Memories, owners: frozenset[str]) -> list[str]:
    """The owners by name; for a wildcard, all owners in the store."""
    if EVERYBODY not in owners:
        return sorted(owners)
    found = list(islice(memories.owners(), OWNERS_MAX + 1))
    if len(found) > OWNERS_MAX:
        raise UnsupportedError(
            f'"*" would look at more than {OWNERS_MAX} users one after the other',
            suggestion='name the users: {"user_id": {"in": […]}} within AND, or ask for one at a time',
            path="$.filters.user_id",
        )
    return found


def search_memories(memories: Memories, owners: frozenset[str], asked: Search) -> list[dict[str, Any]]:
    """The best memories of all owners, best first."""
    found = [shown for owner in owners_of(memories, owners) for shown in search_owner(memories, owner, asked)]
    return sorted(found, key=lambda shown: -shown["score"])[: asked.top]


def list_memories(
    memories: Memories, owners: frozenset[str], tree: Group, limit: int | None, *, show_expired: bool
) -> list[dict[str, Any]]:
    """Memories that match a filter, owner by owner: the newest up to a limit, or all of them."""
    if limit == 0:
        return []
    several: Iterator[Shown] = chain.from_iterable(
        memories.walk(owner, tree, show_expired=show_expired)
        if limit is None
        else newest_memories(memories, owner, tree, limit, show_expired=show_expired)
        for owner in owners_of(memories, owners)
    )
    return [shown.memory for shown in islice(several, limit)]
