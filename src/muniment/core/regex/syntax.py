"""The structure of a regular expression, without the parts that no linear search can do.

Only the structure is read here: groups, alternatives, repeats, anchors. What a single character, escape or class takes
is left to `re`, from the very words of the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muniment.errors import InvalidInput, TooLarge

__all__ = ["Alternatives", "Anchor", "Atom", "Node", "Repeat", "Sequence", "parse_pattern"]

PATTERN_CHARS_MAX = 1000
DEPTH_MAX = 30
REPEAT_MAX = 1000

_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}|.)", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(?:P<(\w+)>|([ims]*)(?:-([ims]+))?:))?")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_SET_SYNTAX = re.compile(r"\[|--|&&|~~|\|\|")
_FLAG_BITS = {"i": re.IGNORECASE.value, "m": re.MULTILINE.value, "s": re.DOTALL.value}


@dataclass(frozen=True, slots=True)
class Atom:
    """Takes one character: its source as it stands in the pattern, and the flags it is under."""

    source: str
    flags: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """Takes none."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Node
    least: int
    most: int | None


Node = Atom | Anchor | Sequence | Alternatives | Repeat


def parse_pattern(source: str, ignore_case: bool = False) -> Node:
    """The tree of a pattern; raises `InvalidInput` for what is wrong or cannot be searched in linear time."""
    if len(source) > PATTERN_CHARS_MAX:
        raise TooLarge(f"a pattern of more than {PATTERN_CHARS_MAX} characters", path="$", hint="split it into several")
    flags = re.IGNORECASE.value if ignore_case else 0
    parser = _Parser(source)
    found = _FLAGS.match(source)
    if found is not None:
        flags |= sum(_FLAG_BITS[letter] for letter in set(found[1]))
        parser.at = found.end()
    node = parser.alternatives(flags, 0)
    if parser.at < len(source):
        raise parser.wrong("an unbalanced parenthesis")
    return node


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def wrong(self, what: str, hint: str | None = None) -> InvalidInput:
        return InvalidInput(f"not a regular expression we search: {what} at {self.at}", path="$", hint=hint)

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def alternatives(self, flags: int, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self.wrong(f"groups nested deeper than {DEPTH_MAX}")
        items = [self.sequence(flags, depth)]
        while self.peek() == "|":
            self.at += 1
            items.append(self.sequence(flags, depth))
        return items[0] if len(items) == 1 else Alternatives(tuple(items))

    def sequence(self, flags: int, depth: int) -> Node:
        items: list[Node] = []
        while (char := self.peek()) and char not in "|)":
            items.append(self.repeated(self.item(char, flags, depth)))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def item(self, char: str, flags: int, depth: int) -> Node:
        if char == "(":
            return self.group(flags, depth)
        if char == "[":
            return Atom(self.character_class(), flags)
        if char == "\\":
            return self.escape(flags)
        if char in "*+?":
            raise self.wrong("nothing to repeat")
        self.at += 1
        if char == "^":
            return Anchor("line_start" if flags & re.MULTILINE else "start")
        if char == "$":
            return Anchor("line_end" if flags & re.MULTILINE else "end_or_last_line")
        return Atom(char if char == "." else re.escape(char), flags)

    def group(self, flags: int, depth: int) -> Node:
        found = _GROUP.match(self.source, self.at)
        if found is None or (found[0] == "(" and self.source.startswith("(?", self.at)):
            hint = "say it as two constraints, one present and one absent: look-around and the like are not linear"
            raise self.wrong("a group of a kind that is not searched", hint)
        for letter in found[2] or "":
            flags |= _FLAG_BITS[letter]
        for letter in found[3] or "":
            flags &= ~_FLAG_BITS[letter]
        self.at = found.end()
        node = self.alternatives(flags, depth + 1)
        if self.peek() != ")":
            raise self.wrong("a group that does not end")
        self.at += 1
        return Sequence((node,)) if isinstance(node, Anchor) else node  # an anchor in a group may be repeated

    def character_class(self) -> str:
        start = self.at
        self.at += 2 if self.source.startswith("[^", start) else 1
        first = self.at
        while (char := self.peek()) != "]" or self.at == first:
            if not char:
                raise self.wrong("a class that does not end")
            if _SET_SYNTAX.match(self.source, self.at):
                raise self.wrong("a class with signs that will mean something else one day", "escape it with \\")
            self.at += len(self._escaped()) if char == "\\" else 1
        self.at += 1
        return self.source[start : self.at]

    def escape(self, flags: int) -> Node:
        taken = self._escaped()
        if taken[1].isdigit():
            raise self.wrong("a back reference", "write the text again: back references are not linear")
        self.at += len(taken)
        anchors = {"A": "start", "Z": "end", "b": "word_edge", "B": "no_word_edge"}
        if taken[1] in anchors:
            return Anchor(anchors[taken[1]])
        return Atom(taken, flags)

    def _escaped(self) -> str:
        found = _ESCAPE.match(self.source, self.at)
        if found is None:
            raise self.wrong("an escape of nothing")
        return found[0]

    def repeated(self, node: Node) -> Node:
        least, most = self.count()
        if (least, most) == (1, 1):
            return node
        if isinstance(node, Anchor):
            raise self.wrong("a repeated anchor")
        if self.peek() == "?":
            self.at += 1  # lazy or not, it matches the same texts
        if self.peek() == "+":
            raise self.wrong("a possessive repeat", "leave out the last +")
        if self.peek() in ("*", "?") or self.count() != (1, 1):
            raise self.wrong("a repeat of a repeat")
        return Repeat(node, least, most)

    def count(self) -> tuple[int, int | None]:
        char = self.peek()
        if char and char in "*+?":
            self.at += 1
            return (1 if char == "+" else 0), (1 if char == "?" else None)
        found = _COUNTED.match(self.source, self.at) if char == "{" else None
        if found is None or not (found[1] or found[3]):
            return 1, 1
        self.at = found.end()
        least = int(found[1] or 0)
        most = (int(found[3]) if found[3] else None) if found[2] else least
        if max(least, most or 0) > REPEAT_MAX:
            raise self.wrong(f"a repeat of more than {REPEAT_MAX}")
        if most is not None and most < least:
            raise self.wrong("a repeat that ends before it begins")
        return least, most
