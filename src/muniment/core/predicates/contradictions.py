"""Conditions that can never hold together, as far as it shows in the parts of a conjunction.

It sees equality, `in`, `!=`, bounds on a number, `has` and null on one feature. What it finds is a contradiction; what
it does not find may still be one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from muniment.core.predicates.nodes import Call, Compare, Field, Listing, Node, Not, Scalar, Value
from muniment.core.predicates.predicate import Predicate

__all__ = ["contradiction"]

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
