"""A tree against the features of a run: true, false or unknown, in a bounded number of steps; and what it can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import fmod, isfinite
from typing import Any

from muniment.core.predicates.schema import Type
from muniment.core.predicates.tree import Call, Compare, Field, Junction, Node, Not, Value

__all__ = ["FUNCTIONS", "STEPS_MAX", "Function", "Truth", "Types", "evaluate", "like", "value_at"]

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


STEPS_MAX = 100_000
"""What one evaluation may spend: one for each part, and one for each item or character that a part looks at."""

Types = Mapping[tuple[str, ...], Type]
"""The declared type of each feature that a tree reads."""

_BITS_MAX = 1023  # what a double can hold


class Truth(Enum):
    """Three values; only TRUE is true in an `if`."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"

    def __bool__(self) -> bool:
        return self is Truth.TRUE

    @classmethod
    def of(cls, value: object) -> Truth:
        return cls.TRUE if value is True else cls.FALSE if value is False else cls.UNKNOWN


class _Spent(Exception):
    """The steps are used up."""


def evaluate(node: Node, features: Mapping[str, Any], types: Types, steps: int = STEPS_MAX) -> Truth:
    try:
        return Truth.of(_Evaluation(features, types, steps).value(node))
    except _Spent:
        return Truth.UNKNOWN


def value_at(path: tuple[str, ...], features: Mapping[str, Any]) -> Any:
    """What stands at a path; None where nothing does."""
    here: Any = features
    for key in path:
        if type(here) is not dict and not isinstance(here, Mapping):
            return None
        here = here.get(key)
    return here


class _Evaluation:
    """None is unknown throughout: null is no value here."""

    def __init__(self, features: Mapping[str, Any], types: Types, steps: int) -> None:
        self.features = features
        self.types = types
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _Spent

    def value(self, node: Node) -> Any:
        self.left -= 1
        if self.left < 0:
            raise _Spent
        if isinstance(node, Compare):
            return self.compare(node.op, node.left, node.right)
        if isinstance(node, Field):
            return self.read(node.path)
        if isinstance(node, Value):
            return node.value
        if isinstance(node, Junction):
            return self.junction(node.parts, decided_by=node.op == "||")
        if isinstance(node, Call):
            return self.call(node.name, node.args)
        if isinstance(node, Not):
            held = self.value(node.operand)
            return not held if isinstance(held, bool) else None
        return tuple([item.value for item in node.items])

    def call(self, name: str, args: tuple[Node, ...]) -> Any:
        if name == "has":
            return self.is_there(args[0])
        values = [self.value(arg) for arg in args]
        return None if None in values else FUNCTIONS[name].apply(self.spend, *values)

    def junction(self, parts: tuple[Node, ...], decided_by: bool) -> bool | None:
        result: bool | None = not decided_by
        for part in parts:
            held: object = self.value(part)
            if held is decided_by:
                return decided_by
            if not isinstance(held, bool):
                result = None
        return result

    def compare(self, op: str, left: Node, right: Node) -> Any:
        if op in ("==", "!=") and _NULL in (left, right):
            return self.is_there(left if right == _NULL else right) == (op == "!=")
        mine, other = self.value(left), self.value(right)
        if mine is None or other is None:
            return None
        if op == "in":
            return member(self.spend, mine, other)
        if op in ("==", "!="):
            return self.equal(mine, other) == (op == "==")
        return _ordered(op, mine, other) if op in _ORDERS else _computed(op, mine, other)

    def is_there(self, field: Node) -> bool:
        return isinstance(field, Field) and value_at(field.path, self.features) is not None

    def equal(self, mine: Any, other: Any) -> bool:
        if isinstance(mine, tuple) and isinstance(other, tuple):
            self.spend(min(len(mine), len(other)))
            return len(mine) == len(other) and all(map(same, mine, other))
        return same(mine, other)

    def read(self, path: tuple[str, ...]) -> Any:
        value = self.plain(value_at(path, self.features))
        return value if value is not None and _is(value, self.types[path]) else None

    def plain(self, value: Any) -> Any:
        """Data as a value of the language; None for what is none."""
        if isinstance(value, list | tuple):
            self.spend(len(value))
            items = tuple([None if isinstance(item, list | tuple) else self.plain(item) for item in value])
            return None if None in items else items
        if isinstance(value, str | bool):
            return value
        if isinstance(value, int):
            return value if value.bit_length() <= _BITS_MAX else None
        return value if isinstance(value, float) and isfinite(value) else None


_NULL = Value(None)
_ORDERS = ("<", "<=", ">", ">=")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is(value: Any, type: Type) -> bool:
    if type == "string":
        return isinstance(value, str)
    if type == "number":
        return _is_number(value)
    if type == "bool":
        return isinstance(value, bool)
    if type == "list[string]":
        return isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    if type == "list[number]":
        return isinstance(value, tuple) and all(map(_is_number, value))
    return type == "any" or (type == "list[any]" and isinstance(value, tuple))


def _ordered(op: str, mine: Any, other: Any) -> bool | None:
    if not (isinstance(mine, str) and isinstance(other, str)) and not (_is_number(mine) and _is_number(other)):
        return None
    if op in ("<", ">="):
        return bool(mine < other) == (op == "<")
    return bool(mine > other) == (op == ">")


def _computed(op: str, mine: Any, other: Any) -> float | None:
    if not _is_number(mine) or not _is_number(other):
        return None
    a, b = float(mine), float(other)
    if op in ("/", "%") and b == 0:
        return None
    result = a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a / b if op == "/" else fmod(a, b)
    return result if isfinite(result) else None
