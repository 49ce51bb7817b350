"""mem0's filters: parsed into a tree, matched against a memory.

    {"user_id": "ana", "topic": {"in": ["food", "home"]}, "created_at": {"gte": "2026-01-01"}, "NOT": [{"draft": True}]}

A field is one of the memory's own (`OWN_FIELDS`), or a place in its metadata (`address.city`). Unknown operators are
refused by name. Nothing here reads a store; `marks` decides which parts the index can answer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from muniment.core.instants import parse_instant
from muniment.errors import InvalidInput
from muniment.integrations.mem0.exceptions import ValidationError
from muniment.integrations.mem0.validation import ENTITIES, entity_id

__all__ = [
    "ABSENT",
    "ANY",
    "OPERATORS",
    "OWN_FIELDS",
    "TIMES",
    "Field",
    "Group",
    "every_field",
    "matches",
    "read_filters",
]

ABSENT: Any = object()
ANY = "*"
OWN_FIELDS = {
    "id": "id",
    "memory_id": "id",
    "memory": "memory",
    "data": "memory",
    "hash": "hash",
    "user_id": "user_id",
    "agent_id": "agent_id",
    "run_id": "run_id",
    "actor_id": "actor_id",
    "role": "role",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "expiration_date": "expiration_date",
}
"""A memory's own fields outside its metadata, by their names in filters."""
TIMES = frozenset(("created_at", "updated_at", "expiration_date"))
_GROUPS: dict[str, Literal["AND", "OR", "NOT"]] = {
    "AND": "AND", "OR": "OR", "NOT": "NOT", "$and": "AND", "$or": "OR", "$not": "NOT",
}  # fmt: skip
_COMPARING = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte")
_DEPTH_MAX = 8


class Field(NamedTuple):
    """One condition on one field."""

    key: str
    operator: str
    value: Any


class Group(NamedTuple):
    """Conditions of which all (AND), one (OR) or none (NOT) hold."""

    kind: Literal["AND", "OR", "NOT"]
    parts: tuple[Field | Group, ...]


# -- reading ------------------------------------------------------------------------------------------


def read_filters(filters: Any, path: str = "$.filters", depth: int = 1) -> Group:
    """Parse a filter; raise `ValidationError` for an invalid one."""
    if not isinstance(filters, Mapping):
        raise ValidationError(f"filters must be a dict, got {type(filters).__name__}", path=path)
    if depth > _DEPTH_MAX:
        raise ValidationError(f"filters may be nested {_DEPTH_MAX} deep", path=path)
    parts: list[Field | Group] = []
    for key, value in filters.items():
        if not isinstance(key, str) or not key:
            raise ValidationError("a filter names its fields by strings", path=path)
        if key in _GROUPS:
            parts.append(_group(_GROUPS[key], value, f"{path}.{key}", depth))
        elif key == "metadata" and isinstance(value, Mapping) and not set(value) <= set(OPERATORS):
            parts += [_nested(each, f"{path}.metadata") for each in value.items()]
        else:
            parts += _fields(key, value, f"{path}.{key}")
    return Group("AND", tuple(parts))


def _nested(item: tuple[Any, Any], path: str) -> Group:
    key, value = item
    if not isinstance(key, str):
        raise ValidationError("a filter names its fields by strings", path=path)
    return Group("AND", tuple(_fields(f"metadata.{key}", value, f"{path}.{key}")))


def _group(kind: Literal["AND", "OR", "NOT"], value: Any, path: str, depth: int) -> Group:
    if not isinstance(value, list | tuple) or (kind != "AND" and not value):
        wanted = "a list of conditions" if kind == "AND" else "a non-empty list of conditions"
        raise ValidationError(f"{kind} operator requires {wanted}", path=path)
    for number, each in enumerate(value):
        if not isinstance(each, Mapping):
            raise ValidationError(
                f"{kind} filter list item at index {number} must be a dict, got {type(each).__name__}",
                path=f"{path}[{number}]",
            )
    return Group(kind, tuple(read_filters(each, f"{path}[{number}]", depth + 1) for number, each in enumerate(value)))


def _fields(key: str, value: Any, path: str) -> Iterator[Field]:
    if not isinstance(value, Mapping):
        if isinstance(value, list | tuple):
            yield _field(key, "in", list(value), path)
        else:
            yield _field(key, ANY if value == ANY else "eq", value, path)
        return
    for name, each in value.items():
        if name not in OPERATORS:
            raise ValidationError(
                f"Unsupported metadata filter operator: {name}",
                suggestion=f"one of {', '.join(OPERATORS)}; a place in the metadata is written {key}.{name}",
                path=path,
            )
        yield _field(key, ANY if name == "eq" and each == ANY else name, each, path)


def _field(key: str, name: str, value: Any, path: str) -> Field:
    if name in ("in", "nin") and (isinstance(value, str) or not isinstance(value, list | tuple)):
        raise ValidationError(f"the operator {name} of {key} takes a list", path=path)
    if key in ENTITIES and name in ("eq", "in"):
        value = [entity_id(each, key) for each in value] if name == "in" else entity_id(value, key)
    if key in TIMES and name in _COMPARING and not (name == "eq" and value is None):
        moments = [_instant(each) for each in (value if name in ("in", "nin") else [value])]
        if None in moments:
            raise ValidationError(f"{key} is compared with a point in time, such as 2026-05-01T12:00:00Z", path=path)
        value = moments if name in ("in", "nin") else moments[0]
    return Field(key, name, value)


def every_field(tree: Group) -> Iterator[Field]:
    """All conditions of a tree."""
    for part in tree.parts:
        if isinstance(part, Field):
            yield part
        else:
            yield from every_field(part)


# -- holding against a memory -------------------------------------------------------------------------


def matches(tree: Field | Group, memory: Mapping[str, Any]) -> bool:
    """True if a memory, in its returned shape, matches the filter."""
    if isinstance(tree, Field):
        found = _found(memory, tree.key)
        if tree.operator == "eq" and tree.value is None:
            return found is ABSENT or found is None
        if found is ABSENT or found is None:
            return False
        return tree.operator == ANY or OPERATORS[tree.operator](_timed(tree.key, found), tree.value)
    held = (matches(part, memory) for part in tree.parts)
    return all(held) if tree.kind == "AND" else any(held) if tree.kind == "OR" else not any(held)


def _found(memory: Mapping[str, Any], key: str) -> Any:
    if key in OWN_FIELDS:
        return memory.get(OWN_FIELDS[key], ABSENT)
    place: Any = memory.get("metadata") or {}
    if key == "metadata":
        return place
    return _at(place, key.removeprefix("metadata.") if key not in place else key)


def _at(place: Any, path: str) -> Any:
    """The value in metadata at a dotted path; a key that itself contains the dots goes first."""
    if not isinstance(place, Mapping):
        return ABSENT
    if path in place:
        return place[path]
    head, dot, rest = path.partition(".")
    return _at(place[head], rest) if dot and head in place else ABSENT


def _timed(key: str, found: Any) -> Any:
    """Parse a timestamp of the memory for comparison; return other values unchanged."""
    moment = _instant(found) if key in TIMES else None
    return found if moment is None else moment


def _instant(value: Any) -> datetime | None:
    if not isinstance(value, str | datetime):
        return None
    try:
        return parse_instant(value)
    except InvalidInput:
        return None


def _equal(found: Any, wanted: Any) -> bool:
    """Compare values; a list equals a value if one of its elements does, as in mem0's stores."""
    if isinstance(found, list | tuple) and not isinstance(wanted, list | tuple):
        return any(_equal(each, wanted) for each in found)
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Order numbers as numbers, timestamps as timestamps, other texts as texts; incomparable values do not match."""

    def holds(found: Any, wanted: Any) -> bool:
        both = (found, wanted)
        if all(isinstance(each, int | float) and not isinstance(each, bool) for each in both):
            return compare(found, wanted)
        moments = _instant(found), _instant(wanted)
        if None not in moments:
            return compare(*moments)
        return all(isinstance(each, str) for each in both) and compare(found, wanted)

    return holds


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(found, str):
        return isinstance(wanted, str) and wanted in found
    if isinstance(found, Mapping):
        return isinstance(wanted, Mapping) and all(key in found and found[key] == wanted[key] for key in wanted)
    return isinstance(found, list | tuple) and any(_equal(each, wanted) for each in found)


def _icontains(found: Any, wanted: Any) -> bool:
    held = [found] if isinstance(found, str) else found if isinstance(found, list | tuple) else []
    return isinstance(wanted, str) and any(isinstance(e, str) and wanted.casefold() in e.casefold() for e in held)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "ne": lambda found, wanted: not _equal(found, wanted),
    "in": lambda found, wanted: any(_equal(found, each) for each in wanted),
    "nin": lambda found, wanted: not any(_equal(found, each) for each in wanted),
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "contains": _contains,
    "icontains": _icontains,
}
"""Operators of a condition, besides the wildcard `"*"`, which requires the field to exist."""
