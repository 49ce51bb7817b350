"""What is asked of the values of a store: a page of those that fit, a page of namespaces, whichever door asks.

It orders what `search` and `Values` read; it writes nothing but what a search compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.memory.kept.filters import matches
from muniment.memory.kept.search import Texts, best, newest
from muniment.memory.kept.values import KeptValue, Labels, Values, micros

if TYPE_CHECKING:
    from muniment.memory.kept.features import Features

__all__ = ["PathMatch", "Wanted", "find_values", "list_namespaces"]


class Wanted(NamedTuple):
    """Which values are asked for: below a prefix, those that fit a filter, a page of them."""

    labels: Labels
    query: str | None
    filter: Mapping[str, Any] | None
    offset: int
    limit: int
    vector: Sequence[float] | None = None
    """What the query comes to, where its asker embedded it."""


class PathMatch(NamedTuple):
    """How a namespace begins, or ends; `*` is any label."""

    path: Labels
    is_suffix: bool


def find_values(
    values: Values, wanted: Wanted, features: Features, texts_of: Texts | None, now: datetime
) -> list[tuple[KeptValue, float | None]]:
    """What answers the query, best first; where that is fewer than asked for, other values follow unscored.

    Without `texts_of` nothing is made that a search could compare: `Unread` is raised where it is missing.
    """
    at, end = micros(now), wanted.offset + wanted.limit

    def is_wanted(value: KeptValue) -> bool:
        return at <= value.expires and matches(value.value, wanted.filter)

    found: list[tuple[KeptValue, float | None]] = []
    seen: set[str] = set()
    if wanted.query:
        query = wanted.query if wanted.vector is None else wanted.vector
        ranked = best(values, wanted.labels, query, features, texts_of, end)
        for value, score in ranked.answering:
            seen.add(value.entry_id)
            if is_wanted(value):
                found.append((value, score))
                if len(found) == end:
                    break
        if len(seen) == ranked.total:  # all that stands there answered
            return found[wanted.offset : end]
    if len(found) < end:
        others = (value for value in newest(values, wanted.labels, end, seen) if is_wanted(value))
        found += ((value, None) for value in islice(others, end - len(found)))
    return found[wanted.offset : end]


def list_namespaces(
    values: Values, conditions: Sequence[PathMatch], max_depth: int | None, offset: int, limit: int, now: datetime
) -> list[Labels]:
    """The namespaces that fit every condition, in order, each cut to a depth and told once."""
    found = values.namespaces(_fixed_prefix(conditions), now)
    fitting = (each for each in found if all(_fits(each, condition) for condition in conditions))
    cut = fitting if max_depth is None else (each[:max_depth] for each in fitting)
    return list(islice(_each_once(cut), offset, offset + limit))


def _fixed_prefix(conditions: Iterable[PathMatch]) -> Labels:
    """The labels that every namespace asked for begins with."""
    for condition in conditions:
        if not condition.is_suffix:
            path = condition.path
            return path[: path.index("*")] if "*" in path else path
    return ()


def _fits(namespace: Labels, condition: PathMatch) -> bool:
    if len(namespace) < len(condition.path):
        return False
    turn: Callable[[Sequence[str]], Iterable[str]] = reversed if condition.is_suffix else iter
    return all(wanted in ("*", label) for label, wanted in zip(turn(namespace), turn(condition.path), strict=False))


def _each_once(namespaces: Iterable[Labels]) -> Iterator[Labels]:
    """They come in order, so that those that are alike stand side by side."""
    last: Labels | None = None
    for each in namespaces:
        if each != last:
            yield each
        last = each
