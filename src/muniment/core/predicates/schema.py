"""What features a predicate may speak of, and their types. Unknown names are refused when the predicate is written.

A schema is a value: `with_fields` gives a larger one. Below an open path anything may stand, of any type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from muniment.errors import InvalidInput

__all__ = ["Feature", "Schema", "Type", "nearest"]

Type = Literal["string", "number", "bool", "null", "list[string]", "list[number]", "list[any]", "map", "any"]

_DECLARABLE = ("string", "number", "bool", "list[string]", "list[number]", "list[any]", "map", "any")


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature's type and, where the contract closes it, the words it can be."""

    type: Type
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Schema:
    """Dotted paths and their features; `open` names the paths below which anything may stand."""

    features: Mapping[str, Feature]
    open: frozenset[str] = frozenset()
    _inner: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for path, feature in self.features.items():
            if feature.type not in _DECLARABLE:
                raise InvalidInput(f"{path!r} is of no known type: {feature.type!r}", hint=", ".join(_DECLARABLE))
        inner = {".".join(path.split(".")[:end]) for path in self.features for end in range(1, path.count(".") + 1)}
        object.__setattr__(self, "_inner", frozenset(inner - self.features.keys()))

    def with_fields(self, features: Mapping[str, Feature | Type], open: Iterable[str] = ()) -> Schema:
        """This schema and some features more."""
        made = {path: found if isinstance(found, Feature) else Feature(found) for path, found in features.items()}
        return replace(self, features=MappingProxyType({**self.features, **made}), open=self.open | set(open))

    def find(self, path: tuple[str, ...]) -> Feature | None:
        """The feature at a path; None where there is none."""
        dotted = ".".join(path)
        if all("." not in part for part in path):
            if (found := self.features.get(dotted)) is not None:
                return found
            if dotted in self._inner or dotted in self.open:
                return _MAP
        return _ANY if any(".".join(path[:end]) in self.open for end in range(1, len(path))) else None

    def hint_for(self, path: tuple[str, ...]) -> str:
        """What to do about a path that is not there."""
        opened = f"; what has no name here goes below {', '.join(sorted(self.open))}" if self.open else ""
        close = nearest(".".join(path), self.features) or nearest(path[-1], self._by_last_part())
        if close:
            return f"did you mean {self._by_last_part().get(close, close)}?"
        return f"predicates.features names them all{opened}"

    def _by_last_part(self) -> dict[str, str]:
        return {path.rpartition(".")[2]: path for path in reversed(list(self.features))}


_MAP, _ANY = Feature("map"), Feature("any")


def nearest(word: str, known: Iterable[str]) -> str | None:
    close = get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return close[0] if close else None
