"""Constraint files: YAML or plain data to frozen constraints, with every mistake named at its place.

register:                               # optional: words of your own (RC-02)
  keys: {"STYLE:VOICE": how it should sound}
  reasons: {style_drift: it no longer sounds like us}
constraints:                            # or just the list
  - words: {max: 300}
  - json_only
  - contains: Kind regards
  - forbidden_words: [synergy, leverage]
    severity: minor
    key: STYLE:VOICE
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from muniment.core.canonical import child_path
from muniment.core.limits import checkpoint
from muniment.errors import InvalidInput, InvalidRecord, Issue
from muniment.verify.static.base import Constraint
from muniment.verify.static.constraints import KINDS
from muniment.verify.taxonomy import DEFAULT_REGISTRY, Registry
from muniment.verify.yaml import parse_yaml

__all__ = ["CONSTRAINTS_MAX", "ConstraintSet", "parse_constraints", "read_constraints", "to_plain"]

CONSTRAINTS_MAX = 1000
_NESTING_MAX = 4
_GENERAL = ("key", "severity", "reason")


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """Constraints, and the registry that their keys and reasons were checked against."""

    constraints: tuple[Constraint, ...]
    registry: Registry = DEFAULT_REGISTRY


def read_constraints(text: str, registry: Registry = DEFAULT_REGISTRY) -> ConstraintSet:
    """A constraint file, in YAML (JSON is YAML)."""
    return parse_constraints(parse_yaml(text), registry)


def parse_constraints(data: Any, registry: Registry = DEFAULT_REGISTRY) -> ConstraintSet:
    """Plain data to constraints; raises `InvalidRecord` with everything that is wrong."""
    path = "$"
    if isinstance(data, Mapping) and ("constraints" in data or "register" in data):
        unknown = [name for name in data if name not in ("constraints", "register")]
        if unknown:
            issue = Issue(child_path(path, unknown[0]), "an unknown key; a file has constraints and register")
            raise InvalidRecord("not a constraint file", [issue])
        registry = _registered(data.get("register"), registry)
        data, path = data.get("constraints"), "$.constraints"
    reader = _Reader(registry)
    found = tuple(reader.each(data, path, 0))
    if reader.issues:
        raise InvalidRecord("not a constraint file", reader.issues, hint=_hint(reader.issues))
    return ConstraintSet(found, registry)


def to_plain(constraint: Constraint) -> dict[str, Any]:
    """A constraint as it stands in a file."""
    fields = constraint.to_wire()
    if "constraints" in fields:
        fields["constraints"] = [to_plain(each) for each in constraint.constraints]  # type: ignore[attr-defined]
    return {constraint.NAME: fields}


def _registered(data: Any, registry: Registry) -> Registry:
    words = data if data is not None else {}
    if not isinstance(words, Mapping) or set(words) - {"keys", "reasons"}:
        raise InvalidRecord("not a constraint file", [Issue("$.register", "wanted an object of keys and reasons")])
    for group in ("keys", "reasons"):
        named = words.get(group) or {}
        if not isinstance(named, Mapping) or not all(isinstance(says, str) for says in named.values()):
            issue = Issue(f"$.register.{group}", "wanted names with what they say")
            raise InvalidRecord("not a constraint file", [issue])
        for name, says in named.items():
            if group == "keys":
                registry = registry.with_key(name, says, "optional")
            else:
                registry = registry.with_reason(name, says)
    return registry


class _Reader:
    """Plain data to constraints; what is wrong is noted, and the rest read all the same."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.issues: list[Issue] = []

    def wrong(self, path: str, message: str, code: str = "invalid") -> None:
        self.issues.append(Issue(path, message, code))

    def each(self, data: Any, path: str, depth: int) -> list[Constraint]:
        if not isinstance(data, list | tuple) or not data:
            self.wrong(path, "wanted a list of constraints")
            return []
        if len(data) > CONSTRAINTS_MAX or depth > _NESTING_MAX:
            self.wrong(path, f"more than {CONSTRAINTS_MAX} constraints, or nested deeper than {_NESTING_MAX}")
            return []
        made = [self.one(item, child_path(path, index), depth) for index, item in enumerate(data)]
        return [constraint for constraint in made if constraint is not None]

    def one(self, item: Any, path: str, depth: int) -> Constraint | None:
        checkpoint()
        if isinstance(item, Constraint):
            return self.registered(item, path)
        if isinstance(item, str):
            item = {item: None}
        if not isinstance(item, Mapping):
            self.wrong(path, "wanted a constraint, such as `words: {max: 300}`")
            return None
        names = [str(name) for name in item if name not in _GENERAL]
        if len(names) != 1:
            self.wrong(path, f"wanted one constraint, found {', '.join(names) or 'none'}")
            return None
        name, here = names[0], child_path(path, names[0])
        kind = KINDS.get(name)
        if kind is None:
            close = get_close_matches(name, KINDS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            self.wrong(here, f"no constraint is called {name!r}{hint}", "unknown_constraint")
            return None
        general = {key: item[key] for key in _GENERAL if key in item}
        fields = self.fields(kind, item[name], here, depth)
        made = None if fields is None else self.made(kind, {**general, **fields}, here)
        return None if made is None else self.registered(made, here)

    def fields(self, kind: type[Constraint], value: Any, path: str, depth: int) -> dict[str, Any] | None:
        """What stands after the name, as the kind's fields."""
        if value is None:
            return {}
        if kind.NAME in ("any_of", "none_of"):
            rest = dict(value) if isinstance(value, Mapping) else {"constraints": value}
            parts = self.each(rest.pop("constraints", None), path, depth + 1)
            return {**rest, "constraints": parts} if parts else None
        if kind.NAME == "json_schema" and isinstance(value, Mapping) and "schema" not in value:
            return {"schema": dict(value)}
        if isinstance(value, Mapping):
            return {str(key): part for key, part in value.items()}
        if kind.SHORT is None:
            self.wrong(path, f"{kind.NAME} wants its fields by name: {', '.join(_names(kind))}")
            return None
        wants_list = "tuple" in str(kind.model_fields[kind.SHORT].annotation)
        return {kind.SHORT: [value] if wants_list and not isinstance(value, list) else value}

    def made(self, kind: type[Constraint], fields: dict[str, Any], path: str) -> Constraint | None:
        try:
            return kind(**fields)
        except InvalidRecord as error:
            for issue in error.issues:
                message = issue.message
                if issue.code == "extra_forbidden":
                    name = issue.path.removeprefix("$.")
                    close = get_close_matches(name, [*_names(kind), *_GENERAL], n=1)
                    message = f"{kind.NAME} has no {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
                self.wrong(path + issue.path[1:], message, issue.code)
            return None

    def registered(self, constraint: Constraint, path: str) -> Constraint:
        """The constraint; a key or reason that is not registered is noted."""
        try:
            self.registry.check_key(constraint.violated_key, child_path(path, "key"))
            self.registry.check_reason(constraint.violated_reason, child_path(path, "reason"))
        except InvalidInput as error:
            hint = f"; {error.hint}" if error.hint else ""
            self.wrong(error.path or path, f"{error.message}{hint}", "unregistered")
        return constraint


def _names(kind: type[Constraint]) -> list[str]:
    return [field.alias or name for name, field in kind.model_fields.items() if name not in _GENERAL]


def _hint(issues: list[Issue]) -> str:
    if any(issue.code == "unknown_constraint" for issue in issues):
        return f"the constraints are {', '.join(KINDS)}"
    return "each issue names its path; a file is a list such as `- words: {max: 300}`"
