"""Links whose two ends are of different users. Nothing of one user is made from what another said, so such a link was
edited, and a forget does not follow it (LG-07).

What a row says of its owner may be edited too. So a link between two users is believed where the body of its one end
names the other. What is nobody's own, a tenant's fact or an agent's bank, is made from anybody's turns. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from muniment.core.canonical import canonical_text
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ENTRIES, ITEMS, LinkRow
from muniment.core.scope import holder_of, is_reserved

__all__ = ["Followed", "are_one_holder_s", "followed"]


_NONE: Mapping[str, str] = MappingProxyType({})


class Followed(NamedTuple):
    """Links that a forget may follow, and those that lead from one user to another."""

    links: list[LinkRow]
    foreign: list[LinkRow]


class _Owned(NamedTuple):
    id: str
    user_id: str | None


class _Body(NamedTuple):
    body: str | None


def followed(reader: Reader, links: Sequence[LinkRow], absent: Mapping[str, str] = _NONE) -> Followed:
    """Tell links within one user's memory, or with what is shared, from those between two users.

    `absent`: under whose names ends would stand that have no row here.
    """
    holders = _holders(reader, sorted({end for link in links for end in link}))
    holders |= {id_: {_holder(owner)} for id_, owner in absent.items()}
    found = Followed([], [])
    for link in links:
        one, other = (holders.get(end, {None}) for end in link)
        is_own = None in one or None in other or not one.isdisjoint(other)
        (found.links if is_own or _is_named(reader, link) else found.foreign).append(link)
    return found


def are_one_holder_s(one: str | None, other: str | None) -> bool:
    """Whether two owners are the same user's, or one of them is nobody's own."""
    holders = {_holder(one), _holder(other)}
    return None in holders or len(holders) == 1


def _holder(owner: str | None) -> str | None:
    return owner if owner is None or not is_reserved(owner) else holder_of(owner)


def _holders(reader: Reader, ids: Sequence[str]) -> dict[str, set[str | None]]:
    """By the id of an entry or item, the users whose own it is by its rows."""
    found: dict[str, set[str | None]] = {}
    for spec in (ENTRIES, ITEMS):
        for row in by_ids(reader, spec, ids, into=_Owned):
            found.setdefault(row.id, set()).add(_holder(row.user_id))
    return found


def _is_named(reader: Reader, link: LinkRow) -> bool:
    """Whether a version of the item names its source, or the source names the item."""
    for spec, id_, named in ((ITEMS, link.item_id, link.source_id), (ENTRIES, link.source_id, link.item_id)):
        wanted = canonical_text(named)
        rows = select(reader, spec, (("id", "=", id_),), into=_Body)
        if any(row.body is not None and wanted in row.body for row in rows):
            return True
    return False
