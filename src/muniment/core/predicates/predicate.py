"""A predicate: text that was parsed and type-checked, ready to be asked of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from muniment.core.hashing import digest
from muniment.core.predicates.checking import check_condition
from muniment.core.predicates.evaluation import Truth, Types, evaluate, shown
from muniment.core.predicates.features import RUN_FEATURES
from muniment.core.predicates.nodes import Field, Junction, Node, Not, joined, walk
from muniment.core.predicates.parser import LENGTH_MAX, Places, parse_tree
from muniment.core.predicates.printing import print_tree, sorted_tree
from muniment.core.predicates.schema import Schema
from muniment.errors import TooLarge

__all__ = ["Explanation", "Leaf", "Predicate", "all_hold", "parse", "predicate_of"]

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
        """The same for predicates that differ only in the order or repetition of what `&&` and `||` join."""
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
            found = tuple((".".join(path), _short(shown(path, features))) for path in paths)
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
