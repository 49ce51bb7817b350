"""Constraint files: YAML or plain data to frozen constraints, with every mistake named at its place.

register:                               # optional: your own keys and codes
  keys: {"STYLE:VOICE": how it should sound}
  reasons: {style_drift: it no longer sounds like us}
constraints:                            # or just the list
  - words: {max: 300}
  - json_only
  - contains: Kind regards
  - forbidden_words: [synergy, leverage]
    severity: minor
    key: STYLE:VOICE

YAML is parsed by our own reader: bounded plain data limited to JSON's types, identical on every machine. Anchors,
aliases and tags (which can expand to gigabytes), duplicate keys, several documents, deep nesting and long texts are
refused. A plain `no`, `on` or `2024-01-01` is a string: only `true`, `false`, `null`, `~` and JSON's numbers are
anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from muniment.core.canonical import MAX_INT_DIGITS, child_path
from muniment.core.limits import checkpoint
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidInput, InvalidRecord, Issue, MissingDependency, TooLarge
from muniment.verify._constraint import KINDS, Constraint
from muniment.verify.constraints import DEFAULT_REGISTRY
from muniment.verify.taxonomy import Registry

CONSTRAINTS_MAX = 1000
_NESTING_MAX = 4
_GENERAL = ("key", "severity", "reason")


@dataclass(frozen=True, slots=True)
class ConstraintSet:
    """Constraints, and the registry their keys and reasons were checked against."""

    constraints: tuple[Constraint, ...]
    registry: Registry = DEFAULT_REGISTRY


def read_constraints(text: str, registry: Registry = DEFAULT_REGISTRY) -> ConstraintSet:
    """Read a constraint file in YAML, of which JSON is a subset."""
    return parse_constraints(parse_yaml(text), registry)


def parse_constraints(data: Any, registry: Registry = DEFAULT_REGISTRY) -> ConstraintSet:
    """Convert plain data to constraints; raise `InvalidRecord` listing every error."""
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
    """Convert a constraint to its form in a file."""
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
    """Converts plain data to constraints, collecting errors and reading on."""

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
        """Read the value after a kind's name as the kind's fields."""
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
        """Return the constraint, noting an unregistered key or reason as an error."""
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


# -- YAML ----------------------------------------------------------------------------------------------

YAML_CHARS_MAX = 256 * 1024
YAML_DEPTH_MAX = 32

_NUMBER = lazy_pattern(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


def parse_yaml(text: str, *, chars_max: int = YAML_CHARS_MAX) -> Any:
    """Parse one YAML document as plain data; raise `InvalidInput` with the place of an error."""
    if len(text) > chars_max:
        raise TooLarge(f"a YAML text of {len(text)} characters is over the limit of {chars_max}", hint="split the file")
    try:
        import yaml  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingDependency("reading YAML needs PyYAML", hint="pip install pyyaml, or write JSON") from None
    try:
        return _document(iter(yaml.parse(text, Loader=yaml.SafeLoader)))
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "characters that YAML does not allow"
        raise InvalidInput(f"not YAML: {problem}{_at(getattr(error, 'problem_mark', None))}", path="$") from None


def _document(events: Iterator[Any]) -> Any:
    reader = _YamlReader(events)
    name = reader.next("$")
    while name in ("StreamStartEvent", "DocumentStartEvent"):
        name = reader.next("$")
    if name == "StreamEndEvent":
        return None
    value = reader.value("$", 0)
    if reader.next("$") != "DocumentEndEvent" or reader.next("$") != "StreamEndEvent":
        raise InvalidInput("more than one YAML document", path="$", hint="keep one of them")
    return value


class _YamlReader:
    """Builds values from events, checking limits first, so that nothing oversized is ever built."""

    def __init__(self, events: Iterator[Any]) -> None:
        self.events = events
        self.event: Any = None

    def next(self, path: str) -> str:
        self.event = next(self.events)
        name = type(self.event).__name__
        if name == "AliasEvent" or getattr(self.event, "anchor", None) is not None:
            raise InvalidInput(f"anchors and aliases are refused{self.place()}", path=path, hint="write it out")
        if getattr(self.event, "tag", None) not in (None, "!"):
            raise InvalidInput(f"the tag {self.event.tag!r} is refused{self.place()}", path=path, hint="leave it out")
        return name

    def place(self) -> str:
        return _at(self.event.start_mark)

    def value(self, path: str, depth: int) -> Any:
        """Read the value that begins at the current event."""
        name = type(self.event).__name__
        if name == "ScalarEvent":
            return _scalar(self.event, path)
        if depth >= YAML_DEPTH_MAX:
            raise InvalidInput(f"nested deeper than {YAML_DEPTH_MAX} levels{self.place()}", path=path)
        if name == "SequenceStartEvent":
            items: list[Any] = []
            while self.next(path) != "SequenceEndEvent":
                items.append(self.value(child_path(path, len(items)), depth + 1))
            return items
        made: dict[str, Any] = {}
        while self.next(path) != "MappingEndEvent":
            key = self.key(made, path)
            self.next(child_path(path, key))
            made[key] = self.value(child_path(path, key), depth + 1)
        return made

    def key(self, made: dict[str, Any], path: str) -> str:
        if type(self.event).__name__ != "ScalarEvent":
            raise InvalidInput(f"a key that is not a word{self.place()}", path=path, hint="quote it")
        key: str = self.event.value
        if key in made:
            raise InvalidInput(f"the key {key!r} stands twice{self.place()}", path=child_path(path, key))
        return key


def _scalar(event: Any, path: str) -> Any:
    text: str = event.value
    if event.style is not None:  # quoted or a block: always a string
        return text
    if text in _WORDS:
        return _WORDS[text]
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    if len(text) > MAX_INT_DIGITS:
        raise InvalidInput("a number of too many digits", path=path)
    number = float(text) if found[1] or found[2] else int(text)
    if number - number != 0:
        raise InvalidInput(f"{text} is out of range", path=path)
    return number


def _at(mark: Any) -> str:
    return "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
