"""What a predicate can call. Each is total: on what it does not fit, it says UNKNOWN."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muniment.core.predicates.schema import Type

__all__ = ["FUNCTIONS", "Function", "like"]

Spend = Callable[[int], None]
"""Takes steps from the budget of the evaluation, and ends it where they are used up."""


@dataclass(frozen=True, slots=True)
class Function:
    """The types of each argument that fit, the first of which stands before the dot, and what comes of it."""

    args: tuple[tuple[Type, ...], ...]
    result: Type
    apply: Callable[..., Any]
    usage: str


_LISTS: tuple[Type, ...] = ("list[string]", "list[number]", "list[any]", "any")
_TEXT: tuple[Type, ...] = ("string", "any")


def _contains(spend: Spend, whole: Any, part: Any) -> bool | None:
    if isinstance(whole, str):
        spend(len(whole))
        return part in whole if isinstance(part, str) else None
    return member(spend, part, whole)


def member(spend: Spend, item: Any, items: Any) -> bool | None:
    """Is an item in a list? A boolean is not a number, so the types are compared as well."""
    if not isinstance(items, tuple) or isinstance(item, tuple):
        return None
    spend(len(items))
    return any(same(item, other) for other in items)


def same(mine: Any, other: Any) -> bool:
    return isinstance(mine, bool) == isinstance(other, bool) and mine == other


def _starts(spend: Spend, whole: Any, part: Any) -> bool | None:
    spend(len(part) if isinstance(part, str) else 1)
    return whole.startswith(part) if isinstance(whole, str) and isinstance(part, str) else None


def _ends(spend: Spend, whole: Any, part: Any) -> bool | None:
    spend(len(part) if isinstance(part, str) else 1)
    return whole.endswith(part) if isinstance(whole, str) and isinstance(part, str) else None


def _lower(spend: Spend, text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    spend(len(text))
    return text.lower()


def _size(spend: Spend, value: Any) -> int | None:
    spend(1)
    return len(value) if isinstance(value, str | tuple) else None


def _keyed(items: Any) -> set[tuple[bool, Any]]:
    return {(isinstance(item, bool), item) for item in items}


def _subset_of(spend: Spend, mine: Any, other: Any) -> bool | None:
    if not isinstance(mine, tuple) or not isinstance(other, tuple):
        return None
    spend(len(mine) + len(other))
    return _keyed(mine) <= _keyed(other)


def _intersects(spend: Spend, mine: Any, other: Any) -> bool | None:
    if not isinstance(mine, tuple) or not isinstance(other, tuple):
        return None
    spend(len(mine) + len(other))
    return not _keyed(mine).isdisjoint(_keyed(other))


def _like(spend: Spend, text: Any, pattern: Any) -> bool | None:
    return like(spend, text, pattern) if isinstance(text, str) and isinstance(pattern, str) else None


def like(spend: Spend, text: str, pattern: str) -> bool:
    """The whole text against a pattern in which `*` is any run of characters and `?` any one.

    The pieces between stars are looked for from left to right, the last one at the end; the first place that fits is
    as good as any later one, so nothing is tried twice.
    """
    spend(len(text) + len(pattern))
    first, *rest = pattern.split("*")
    if not _fits(text, 0, first) or (not rest and len(text) != len(first)):
        return False
    if not rest:
        return True
    *middle, last = rest
    at = len(first)
    for piece in middle:
        at = _find(spend, text, at, piece)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - len(last) >= at and _fits(text, len(text) - len(last), last)


def _fits(text: str, at: int, piece: str) -> bool:
    part = text[at : at + len(piece)]
    return len(part) == len(piece) and all(wanted in ("?", found) for wanted, found in zip(piece, part, strict=True))


def _find(spend: Spend, text: str, at: int, piece: str) -> int:
    if "?" not in piece:
        return text.find(piece, at)
    ends = len(text) - len(piece) + 1
    for place in range(at, ends):
        spend(len(piece))
        if _fits(text, place, piece):
            return place
    return -1


FUNCTIONS: dict[str, Function] = {
    "contains": Function(
        (("string", *_LISTS), ("string", "number", "bool", "any")), "bool", _contains, 'tools.contains("search")'
    ),
    "startsWith": Function((_TEXT, _TEXT), "bool", _starts, 'task_family.startsWith("code.")'),
    "endsWith": Function((_TEXT, _TEXT), "bool", _ends, 'task_family.endsWith(".fix")'),
    "like": Function((_TEXT, _TEXT), "bool", _like, 'task_family.like("code.*")'),
    "lower": Function((_TEXT,), "string", _lower, 'domain_tag.lower() == "math"'),
    "size": Function((("string", *_LISTS),), "number", _size, "size(tools) <= 3"),
    "subset_of": Function((_LISTS, _LISTS), "bool", _subset_of, 'tools.subset_of(["search", "read"])'),
    "intersects": Function((_LISTS, _LISTS), "bool", _intersects, 'tools.intersects(["search", "read"])'),
}
"""`has(path)` stands apart: it asks about a field, not about its value."""
