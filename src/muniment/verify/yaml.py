"""The one reader of YAML: plain data, bounded, and the same on every machine.

Only what JSON can say is read. Anchors, aliases and tags are refused (a few of them can stand for gigabytes), so are
duplicate keys, several documents, deep nesting and long texts. A plain `no`, `on` or `2024-01-01` is a string: only
`true`, `false`, `null`, `~` and JSON's numbers are anything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from muniment.core.canonical import MAX_INT_DIGITS, child_path
from muniment.errors import InvalidInput, MissingDependency, TooLarge

__all__ = ["YAML_CHARS_MAX", "YAML_DEPTH_MAX", "parse_yaml"]

YAML_CHARS_MAX = 256 * 1024
YAML_DEPTH_MAX = 32

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


def parse_yaml(text: str, *, chars_max: int = YAML_CHARS_MAX) -> Any:
    """One YAML document as plain data; every refusal is an `InvalidInput` that says where."""
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
    reader = _Reader(events)
    name = reader.next("$")
    while name in ("StreamStartEvent", "DocumentStartEvent"):
        name = reader.next("$")
    if name == "StreamEndEvent":
        return None
    value = reader.value("$", 0)
    if reader.next("$") != "DocumentEndEvent" or reader.next("$") != "StreamEndEvent":
        raise InvalidInput("more than one YAML document", path="$", hint="keep one of them")
    return value


class _Reader:
    """Values out of events, refusing as they come: nothing is built that would have to be refused."""

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
        """The value that the current event begins."""
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
    if event.style is not None:  # quoted or a block: a string, whatever it looks like
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
