"""Conditions made from data, as folding makes them: quoted and checked like written ones, never pasted as text."""

from __future__ import annotations

from collections.abc import Iterable

from muniment.core.predicates.features import RUN_FEATURES
from muniment.core.predicates.nodes import Call, Compare, Field, Junction, Listing, Node, Not, Scalar, Value, joined
from muniment.core.predicates.predicate import Predicate, predicate_of
from muniment.core.predicates.printing import print_tree
from muniment.core.predicates.schema import Schema

__all__ = ["at_least", "at_most", "conjunction", "denied", "equal", "holds_all", "one_of", "tagged", "within"]


def equal(path: str, value: Scalar) -> Node:
    """`run.mode == "main"`."""
    return Compare("==", _field(path), Value(value))


def one_of(path: str, values: Iterable[Scalar]) -> Node:
    """`task_family in ["a", "b"]`; of a single value, `==`."""
    several = _listing(values)
    return Compare("in", _field(path), several) if len(several.items) != 1 else equal(path, several.items[0].value)


def within(path: str, values: Iterable[Scalar]) -> Node:
    """`tools.subset_of(["a", "b"])`: nothing but these."""
    return Call("subset_of", (_field(path), _listing(values)))


def holds_all(path: str, values: Iterable[Scalar]) -> Node:
    """`["a", "b"].subset_of(tools)`: all of these, and perhaps others; of a single value, `in`."""
    several = _listing(values)
    if len(several.items) == 1:
        return Compare("in", several.items[0], _field(path))
    return Call("subset_of", (several, _field(path)))


def at_most(path: str, number: float) -> Node:
    return Compare("<=", _field(path), Value(_whole(number)))


def at_least(path: str, number: float) -> Node:
    return Compare(">=", _field(path), Value(_whole(number)))


def tagged(tag: str) -> Node:
    return Compare("in", Value(tag), Field(("tags",)))


def denied(condition: Node) -> Node:
    return Not(condition)


def conjunction(conditions: Iterable[Node], schema: Schema = RUN_FEATURES) -> Predicate:
    """All of them, sorted and each once, so that the same conditions make the same predicate."""
    parts = [part for _, part in sorted({print_tree(part): part for part in joined("&&", conditions)}.items())]
    if len(parts) == 1:
        return predicate_of(parts[0], schema)
    return predicate_of(Junction("&&", tuple(parts)) if parts else Value(True), schema)


def _field(path: str) -> Field:
    return Field(tuple(path.split(".")))


def _listing(values: Iterable[Scalar]) -> Listing:
    """In one order: text sorted, numbers after it."""
    items = {Value(_whole(value)) for value in values}
    return Listing(tuple(sorted(items, key=lambda item: (type(item.value).__name__, item.value))))


def _whole(value: Scalar) -> Scalar:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
