"""A predicate: text that was parsed and type-checked, made from data, asked of a run, or compared with another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, NamedTuple

from muniment.core.canonical import digest
from muniment.core.predicates.evaluation import Truth, Types, evaluate, value_at
from muniment.core.predicates.parser import LENGTH_MAX, Places, check_condition, parse_tree
from muniment.core.predicates.schema import RUN_FEATURES, Schema
from muniment.core.predicates.tree import (
    Call,
    Compare,
    Field,
    Junction,
    Listing,
    Node,
    Not,
    Scalar,
    Value,
    joined,
    print_tree,
    sorted_tree,
    walk,
)
from muniment.errors import TooLarge

__all__ = [
    "Explanation",
    "Leaf",
    "Predicate",
    "all_hold",
    "at_least",
    "at_most",
    "conjunction",
    "contradiction",
    "denied",
    "equal",
    "holds_all",
    "one_of",
    "parse",
    "predicate_of",
    "tagged",
    "within",
]

_SHOWN_MAX = 120


class Leaf(NamedTuple):
    """One condition inside a predicate, what it came to, and what it found at each feature it reads."""

    text: str
    truth: Truth
    found: tuple[tuple[str, str], ...]


class Explanation(NamedTuple):
    """What a predicate came to, and the leaves that made it so."""

    truth: Truth
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Predicate:
    """Made by `parse` or `predicate_of`, which check it. Two are equal if their trees and features are."""

    tree: Node
    schema: Schema

    @cached_property
    def text(self) -> str:
        """The one way to write it."""
        return print_tree(self.tree)

    @cached_property
    def digest(self) -> str:
        """A hash, equal for predicates that differ only in the order or repetition of what `&&` and `||` join."""
        return digest(print_tree(sorted_tree(self.tree)).encode()).hex()

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The features it speaks of, sorted."""
        return tuple(sorted({".".join(node.path) for node in walk(self.tree) if isinstance(node, Field)}))

    @cached_property
    def conjuncts(self) -> tuple[Node, ...]:
        """The parts that must all hold."""
        return joined("&&", (self.tree,))

    @cached_property
    def _types(self) -> Types:
        paths = {node.path for node in walk(self.tree) if isinstance(node, Field)}
        return {path: found.type for path in paths if (found := self.schema.find(path)) is not None}

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.tree)

    def holds(self, features: Mapping[str, Any]) -> Truth:
        """Never raises, whatever the data; true in an `if` only where it is TRUE."""
        return evaluate(self.tree, features, self._types)

    def explain(self, features: Mapping[str, Any]) -> Explanation:
        """Which leaves made it what it is: of a conjunction the first false one, of an alternative all of them."""
        truth = self.holds(features)
        return Explanation(truth, tuple(self._leaves(self.tree, features)))

    def implies_by_parts(self, other: Predicate) -> bool:
        """Does every part of `other` stand among the parts of this one? If so, wherever this holds, that does."""
        return set(other.conjuncts) <= set(self.conjuncts)

    def _leaves(self, node: Node, features: Mapping[str, Any]) -> list[Leaf]:
        if isinstance(node, Not) and isinstance(node.operand, Junction | Not):
            return self._leaves(node.operand, features)
        truth = evaluate(node, features, self._types)
        if not isinstance(node, Junction):
            paths = dict.fromkeys(part.path for part in walk(node) if isinstance(part, Field))
            found = tuple((".".join(path), _short(value_at(path, features))) for path in paths)
            return [Leaf(print_tree(node), truth, found)]
        alike = [part for part in node.parts if evaluate(part, features, self._types) is truth]
        decisive = Truth.FALSE if node.op == "&&" else Truth.TRUE
        chosen = alike[:1] if truth is decisive else alike
        return [leaf for part in chosen for leaf in self._leaves(part, features)]


def parse(text: str, schema: Schema = RUN_FEATURES, *, path: str | None = None) -> Predicate:
    """Text into a predicate; raises `InvalidInput` with line, column and a hint. `path` is where the text stands."""
    tree, places = parse_tree(text, schema, path)
    return _checked(tree, schema, text, places, path)


def predicate_of(tree: Node, schema: Schema = RUN_FEATURES) -> Predicate:
    """A tree that was built rather than written, under the same checks."""
    text = print_tree(tree)
    return parse(text, schema)


def all_hold(predicates: Iterable[Predicate], features: Mapping[str, Any]) -> Truth:
    """A record's predicates together: all must hold; none at all hold."""
    truths = {predicate.holds(features) for predicate in predicates}
    return next((truth for truth in (Truth.FALSE, Truth.UNKNOWN) if truth in truths), Truth.TRUE)


def _checked(tree: Node, schema: Schema, source: str, places: Places, path: str | None) -> Predicate:
    check_condition(tree, schema, source, places, path)
    predicate = Predicate(tree, schema)
    if len(predicate.text) > LENGTH_MAX:
        raise TooLarge(f"a predicate of {len(predicate.text)} characters", path=path, hint=f"at most {LENGTH_MAX}")
    return predicate


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, int) and value.bit_length() > 1024:
        return "a very large number"
    if isinstance(value, Mapping):
        return "a group of features"
    if isinstance(value, list | tuple):
        return _cut(
            f"[{', '.join(_short(item) if not isinstance(item, list | tuple) else '[…]' for item in value[:8])}"
            f"{', …' if len(value) > 8 else ''}]"
        )
    return _cut(repr(value[:_SHOWN_MAX]) if isinstance(value, str) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


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
    """The conjunction of conditions, sorted and each once, so that the same conditions make the same predicate."""
    parts = [part for _, part in sorted({print_tree(part): part for part in joined("&&", conditions)}.items())]
    if len(parts) == 1:
        return predicate_of(parts[0], schema)
    return predicate_of(Junction("&&", tuple(parts)) if parts else Value(True), schema)


def _field(path: str) -> Field:
    return Field(tuple(path.split(".")))


def _listing(values: Iterable[Scalar]) -> Listing:
    """The values in one order: text sorted, numbers after it."""
    items = {Value(_whole(value)) for value in values}
    return Listing(tuple(sorted(items, key=lambda item: (type(item.value).__name__, item.value))))


def _whole(value: Scalar) -> Scalar:
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


_Key = tuple[bool, Scalar]
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass
class _Known:
    """What the parts so far say of one feature. None: nothing said."""

    allowed: set[_Key] | None = None
    refused: set[_Key] = field(default_factory=set)
    low: tuple[float, bool] = (-inf, False)  # the bound, and whether it is excluded itself
    high: tuple[float, bool] = (inf, False)
    absent: bool = False
    present: bool = False

    @property
    def is_empty(self) -> bool:
        if self.absent and self.present:
            return True
        if self.low[0] > self.high[0] or (self.low[0] == self.high[0] and (self.low[1] or self.high[1])):
            return True
        return self.allowed is not None and not any(
            key not in self.refused and self._in_bounds(key) for key in self.allowed
        )

    def _in_bounds(self, key: _Key) -> bool:
        value = key[1]
        if isinstance(value, bool) or not isinstance(value, int | float):
            return (self.low, self.high) == ((-inf, False), (inf, False))
        above = value > self.low[0] or (value == self.low[0] and not self.low[1])
        return above and (value < self.high[0] or (value == self.high[0] and not self.high[1]))


def contradiction(predicate: Predicate) -> str | None:
    """The feature about which its parts contradict each other; None where none is found."""
    known: dict[tuple[str, ...], _Known] = {}
    for part in predicate.conjuncts:
        if isinstance(part, Value) and part.value is False:
            return "false"
        subject = _note(part, known)
        if subject is not None and known[subject].is_empty:
            return ".".join(subject)
    return None


def _note(part: Node, known: dict[tuple[str, ...], _Known]) -> tuple[str, ...] | None:
    """Takes down what a part says, and says of which feature."""
    match part:
        case Compare("in", Field(path), Listing(items)):
            _allow(known.setdefault(path, _Known()), {_key(item) for item in items})
        case Compare(op, Field(path), Value() as value) if op in _MIRRORED:
            _compare(known.setdefault(path, _Known()), op, value)
        case Compare(op, Value() as value, Field(path)) if op in _MIRRORED:
            _compare(known.setdefault(path, _Known()), _MIRRORED[op], value)
        case Call("has", (Field(path),)):
            known.setdefault(path, _Known()).present = True
        case Not(Call("has", (Field(path),))):
            known.setdefault(path, _Known()).absent = True
        case _:
            return None
    return path


def _compare(about: _Known, op: str, literal: Value) -> None:
    value = literal.value
    if value is None:
        about.absent, about.present = about.absent or op == "==", about.present or op == "!="
        return
    about.present = True  # of what is not there no comparison is true
    if op == "==":
        _allow(about, {_key(literal)})
    elif op == "!=":
        about.refused.add(_key(literal))
    elif isinstance(value, int | float):
        if op in (">", ">="):
            about.low = max(about.low, (value, op == ">"))
        else:
            about.high = min(about.high, (value, op == "<"), key=lambda bound: (bound[0], not bound[1]))


def _allow(about: _Known, keys: set[_Key]) -> None:
    about.present = True
    about.allowed = keys if about.allowed is None else about.allowed & keys


def _key(literal: Value) -> _Key:
    return isinstance(literal.value, bool), literal.value
