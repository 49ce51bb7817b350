"""Filters over values that are kept: equality, nested objects, dots, `$`-operators; as LangGraph's stores read them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from muniment.errors import InvalidInput

__all__ = ["check_filter", "found_at", "matches"]

_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def check_filter(wanted: Any, path: str = "$.filter") -> None:
    """Refuse a filter that is none before anything is read."""
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise InvalidInput("a filter is an object of fields", path=path)
    for key, each in wanted.items():
        if isinstance(each, Mapping) and any(str(name).startswith("$") for name in each):
            unknown = [name for name in each if name not in (*_ORDERS, "$eq", "$ne")]
            if unknown:
                raise InvalidInput(f"Unsupported operator: {unknown[0]!s:.40}", path=f"{path}.{key:.40}")
        elif isinstance(each, Mapping):
            check_filter(each, f"{path}.{key:.40}")


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Does every key of the filter hold?"""
    return all(_holds(found_at(value, key), each) for key, each in (wanted or {}).items())


def found_at(value: Mapping[str, Any], key: str) -> Any:
    """What stands under a key or, where none is called so, under what its dots lead to."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for label in key.split("."):
        if isinstance(found, Mapping):
            found = found.get(label)
        elif isinstance(found, list) and label.isdecimal() and label.isascii() and int(label) < len(found):
            found = found[int(label)]
        else:
            return None
    return found


def _holds(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_compare(found, name, other) for name, other in wanted.items())
        return isinstance(found, Mapping) and matches(found, wanted)
    if isinstance(wanted, list | tuple):
        is_alike = isinstance(found, list | tuple) and len(found) == len(wanted)
        return is_alike and all(map(_holds, found, wanted))
    return bool(found == wanted)


def _compare(found: Any, name: str, other: Any) -> bool:
    """Numbers are ordered among numbers and texts among texts; what cannot be compared does not match."""
    if name == "$eq":
        return bool(found == other)
    if name == "$ne":
        return bool(found != other)
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    both = (found, other)
    if all(isinstance(each, int | float) for each in both) or all(isinstance(each, str) for each in both):
        return _ORDERS[name](found, other)
    return False
