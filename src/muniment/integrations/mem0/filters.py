"""Filters over a memory's metadata, with mem0's operators: eq, ne, in, nin, gt, gte, lt, lte, contains, icontains,
`"*"` for any value, and AND, OR, NOT over lists of filters.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["matches"]

_ABSENT = object()


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(found: Any, wanted: Any) -> bool:
        both = (found, wanted)
        is_comparable = all(isinstance(each, int | float) for each in both) or all(isinstance(e, str) for e in both)
        return is_comparable and compare(found, wanted)

    return holds


def _contains(found: Any, wanted: Any) -> bool:
    return isinstance(found, str | list) and wanted in found


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "in": lambda found, wanted: found in wanted,
    "nin": lambda found, wanted: found not in wanted,
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "contains": _contains,
    "icontains": lambda found, wanted: isinstance(found, str) and str(wanted).casefold() in found.casefold(),
}


def matches(said: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Does every condition hold? An unknown operator is an error, not a miss."""
    return all(_holds(said, key, condition) for key, condition in wanted.items())


def _holds(said: Mapping[str, Any], key: str, condition: Any) -> bool:
    if key == "AND":
        return all(matches(said, each) for each in condition)
    if key == "OR":
        return any(matches(said, each) for each in condition)
    if key == "NOT":
        return not any(matches(said, each) for each in condition)
    found = said.get(key, _ABSENT)
    if condition == "*":
        return found is not _ABSENT
    if not isinstance(condition, Mapping):
        return bool(found == condition)
    unknown = sorted(set(condition) - set(_OPERATORS))
    if unknown:
        raise ValueError(f"Unsupported metadata filter operator: {unknown[0]}")
    return found is not _ABSENT and all(_OPERATORS[name](found, each) for name, each in condition.items())
