"""The index fields of a memory, and the part of a filter that the index can answer.

Each memory lists its fields (`memory._index`): a marker, its agent, run and speaker, and every short value of its
metadata with its path. A filter becomes conditions on those, wide enough to lose nothing: matches are checked against
the whole filter afterwards. Events written by others list no fields, and always match.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from muniment.core.instants import format_instant
from muniment.integrations.mem0.filters import OWN_FIELDS, Field, Group
from muniment.memory._index import FIELD_CHARS_MAX, FIELDS_MAX

__all__ = ["fields_of", "within_of"]

_MEMORY, _UPDATE = "mem0", "mem0:update"
_MARKED = ("agent_id", "run_id", "actor_id")
"""The memory's own fields that are listed; the index already has roles and times."""

Conditions = dict[str, Any]


def fields_of(memory: Mapping[str, Any], *, is_update: bool = False) -> list[str]:
    """The fields of a memory in its returned shape; none at all if there would be too many."""
    found = [_MEMORY, *([_UPDATE] if is_update else ())]
    for name in _MARKED:
        if memory.get(name) is not None:
            found += _marks(name, memory[name])
    for key, value in (memory.get("metadata") or {}).items():
        found += _marks(f"metadata.{key}", value)
    found = [each for each in dict.fromkeys(found) if len(each) <= FIELD_CHARS_MAX]
    return found if len(found) <= FIELDS_MAX else []


def _marks(path: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    yield path
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _marks(f"{path}.{key}", each)
    else:
        for each in value if isinstance(value, list | tuple) else (value,):
            if (mark := _mark(path, each)) is not None:
                yield mark


def _mark(path: str, value: Any) -> str | None:
    """The field of a value at a path; None for a list, an object or a long value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # equal numbers are one field
    if not isinstance(value, str | int | float | bool):
        return None
    mark = f"{path}={json.dumps(value, ensure_ascii=False)}"
    return mark if len(mark) <= FIELD_CHARS_MAX else None


def within_of(tree: Group) -> Conditions | None:
    """Search conditions that include every match of a filter; None if there are none."""
    found = _conditions(tree)
    return None if found is None else {"any_of": [found, {"none_of": [{"fields": [_MEMORY]}]}]}


def _conditions(tree: Field | Group) -> Conditions | None:
    if isinstance(tree, Field):
        return _condition(tree)
    if tree.kind == "NOT":
        return None
    parts = [_conditions(part) for part in tree.parts]
    told = [part for part in parts if part is not None]
    if tree.kind == "OR":
        return {"any_of": told} if len(told) == len(parts) else None
    return {"all_of": told} if told else None


def _condition(field: Field) -> Conditions | None:
    key, name, value = field
    if key == "role" and name in ("eq", "in"):
        return {"roles": [str(each) for each in (value if name == "in" else [value])]}
    if key == "created_at" and name in ("gt", "gte", "lt", "lte"):
        bound = "since" if name.startswith("g") else "until"  # an update is newer than the memory it replaces
        return {"any_of": [{bound: format_instant(value)}, {"fields": [_UPDATE]}]}
    path = key if key in _MARKED else None if key in OWN_FIELDS or key == "metadata" else _place(key)
    if path is None or (name == "eq" and value is None):
        return None
    if name in ("eq", "in"):
        marks = [_mark(path, each) for each in (value if name == "in" else [value])]
        if None not in marks:
            return {"any_of": [{"fields": [mark]} for mark in marks]}
    return {"fields": [path]} if len(path) <= FIELD_CHARS_MAX else None


def _place(key: str) -> str:
    return key if key.startswith("metadata.") else f"metadata.{key}"
