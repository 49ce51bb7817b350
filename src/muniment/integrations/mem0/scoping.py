"""Owners of the ledgers that a filter asks for. Nothing else is ever read.

Users are isolated, unless a filter itself names several users or `"*"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muniment.integrations.mem0.exceptions import ValidationError
from muniment.integrations.mem0.filters import ANY, Field, Group, read_filters
from muniment.integrations.mem0.shapes import owner_of
from muniment.integrations.mem0.validation import ENTITIES, entity_id

__all__ = ["EVERYBODY", "OWNERS_MAX", "filters_given", "owners_asked"]

EVERYBODY = ANY
OWNERS_MAX = 1000
"""Maximum owners of a wildcard filter."""
_MISSING = "filters must contain at least one of: user_id, agent_id, run_id. Example: filters={'user_id': 'u1'}"


def filters_given(filters: Any, *, nested: bool = False) -> tuple[Group, frozenset[str]]:
    """Parse a filter into its tree and the owners it asks for (`EVERYBODY` for all).

    Ids must be at the top level, as in mem0's own `Memory`, or with `nested` may be within AND and OR, as on its
    platform.
    """
    if filters is not None and not isinstance(filters, Mapping):
        raise ValidationError(f"filters must be a dict, got {type(filters).__name__}", path="$.filters")
    given = dict(filters or {})
    if not nested:
        for name in ENTITIES:
            if name in given and not isinstance(given[name], Mapping | list | tuple):
                given[name] = entity_id(given[name], name)
        given = {key: value for key, value in given.items() if value is not None or key not in ENTITIES}
        if not any(name in given for name in ENTITIES):
            raise ValidationError(_MISSING, path="$.filters")
    tree = read_filters(given)
    owners = owners_asked(tree)
    if owners is None:
        raise ValidationError(_MISSING, path="$.filters")
    return tree, owners


def owners_asked(tree: Group) -> frozenset[str] | None:
    """The owners of every possible match; None if the filter names no owner."""
    if tree.kind == "NOT":
        return None
    parts = [part for part in tree.parts if isinstance(part, Group)]
    if tree.kind == "OR":
        return _together(owners_asked(part) for part in parts)
    fields = list(_own(tree))
    for name in ENTITIES:
        for field in fields:
            if field.key == name and (named := _named(field)) is not None:
                return named
    known = [owners for part in parts if (owners := owners_asked(part)) is not None]
    return min(known, key=lambda owners: (EVERYBODY in owners, len(owners))) if known else None


def _own(tree: Group) -> Iterable[Field]:
    """The conditions of a group and of its nested AND groups."""
    for part in tree.parts:
        if isinstance(part, Field):
            yield part
        elif part.kind == "AND":
            yield from _own(part)


def _named(field: Field) -> frozenset[str] | None:
    if field.operator == ANY and field.key == "user_id":
        return frozenset((EVERYBODY,))
    if field.operator == "eq" and field.value is not None:
        return frozenset((owner_of({field.key: str(field.value)}),))
    if field.operator == "in":
        return frozenset(owner_of({field.key: str(each)}) for each in field.value if each is not None)
    return None


def _together(several: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: set[str] = set()
    for owners in several:
        if owners is None:
            return None
        found |= owners
    return frozenset(found)
