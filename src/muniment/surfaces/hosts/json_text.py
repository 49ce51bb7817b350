"""JSON edited in place: comments, order, indentation and line ends are preserved.

Comments and trailing commas are accepted, as in editors. New parts are added at the end, in the indentation of their
neighbours; a removed part takes its comma and its line with it, and nothing else changes. A text that cannot be parsed
whole is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from muniment.errors import InvalidInput

__all__ = ["Node", "parse", "with_element", "with_member", "without_elements", "without_member"]

_DEPTH_MAX = 200
_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
_INDENT = re.compile(r"\n([ \t]+)\S")


class Node(NamedTuple):
    """A value with its position; for an object its members, for an array its elements, each with its own position."""

    value: Any
    start: int
    end: int
    parts: tuple[Part, ...] = ()
    has_comma: bool = False
    """True if a comma follows the last part."""


class Part(NamedTuple):
    """A member of an object, from its key on, or an element of an array."""

    key: str
    start: int
    node: Node


def parse(text: str) -> Node:
    """Parse a document; an empty one is an empty object without a position."""
    start = _skip(text, 0)
    if start == len(text):
        return Node({}, start, start)
    node = _value(text, start, 0)
    end = _skip(text, node.end)
    if end != len(text):
        raise _unreadable(text, end)
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _unreadable(text: str, at: int) -> InvalidInput:
    line = text.count("\n", 0, at) + 1
    return InvalidInput(f"it is not JSON: something unexpected in line {line}", path="$")


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEPTH_MAX:
        raise InvalidInput(f"it is nested deeper than {_DEPTH_MAX}", path="$")
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _group(text, at, depth)
    found = (_STRING if opening == '"' else _SCALAR).match(text, at)
    if found is None:
        raise _unreadable(text, at)
    try:
        return Node(json.loads(found.group()), at, found.end())
    except ValueError:
        raise _unreadable(text, at) from None


def _group(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    closing = "}" if is_object else "]"
    parts: list[Part] = []
    has_comma = False
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        if parts and not has_comma:
            raise _unreadable(text, at)
        part = _part(text, at, depth, is_object)
        parts.append(part)
        at = _skip(text, part.node.end)
        has_comma = text[at : at + 1] == ","
        at = _skip(text, at + 1) if has_comma else at
    value: Any = {part.key: part.node.value for part in parts} if is_object else [part.node.value for part in parts]
    if is_object and len(value) != len(parts):
        raise InvalidInput("it has a name twice in one object", path="$")
    return Node(value, start, at + 1, tuple(parts), has_comma)


def _part(text: str, at: int, depth: int, is_object: bool) -> Part:
    if not is_object:
        return Part("", at, _value(text, at, depth + 1))
    named = _STRING.match(text, at)
    colon = _skip(text, named.end()) if named else at
    if named is None or text[colon : colon + 1] != ":":
        raise _unreadable(text, at)
    try:
        key = json.loads(named.group())
    except ValueError:
        raise _unreadable(text, at) from None
    return Part(key, at, _value(text, _skip(text, colon + 1), depth + 1))


# -- adding -------------------------------------------------------------------------------------------


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Set a member at a path; missing objects on the way are created."""
    node = parse(text)
    if node.start == node.end:
        text = f"{text}{{}}\n" if text.strip() else "{}\n"
        node = parse(text)
    for index, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise InvalidInput("an object is expected there", path="$." + ".".join(path[:index]))
        below = _named(node, name)
        if below is None:
            whole = value
            for further in reversed(path[index + 1 :]):
                whole = {further: whole}
            return _put(text, node, name, whole)
        node = below.node
    raise InvalidInput("something stands there already", path="$." + ".".join(path))


def with_element(text: str, path: Sequence[str], value: Any) -> str:
    """Append an element to the array at a path, creating it if missing."""
    node: Node | None = parse(text)
    for name in path:
        below = _named(node, name) if node is not None and isinstance(node.value, dict) else None
        node = None if below is None else below.node
    if node is None:
        return with_member(text, path, [value])
    if not isinstance(node.value, list):
        raise InvalidInput("a list is expected there", path="$." + ".".join(path))
    return _put(text, node, None, value)


def _named(node: Node, name: str) -> Part | None:
    return next((part for part in node.parts if part.key == name), None)


def _put(text: str, node: Node, key: str | None, value: Any) -> str:
    """Append a part to an object or array."""
    unit = found.group(1) if (found := _INDENT.search(text)) else "  "
    newline = "\r\n" if "\r\n" in text else "\n"
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    close = node.end - 1
    if node.parts and "\n" not in text[node.start : node.end]:
        at = node.parts[-1].node.end
        said = f", {name}{json.dumps(value, ensure_ascii=False)}"
        return text[:at] + said + text[close if node.has_comma else at :]
    margin = _margin(text, node.parts[0].start) if node.parts else _margin(text, node.start) + unit
    whole = json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline + margin)
    if not node.parts:
        inside = text[node.start + 1 : close].rstrip()
        end = newline + _margin(text, node.start)
        return text[: node.start + 1] + inside + newline + margin + name + whole + end + text[close:]
    last = node.parts[-1].node.end
    behind = text[last:close]
    kept = len(behind.rstrip())
    comma, further = ("", ",") if node.has_comma else (",", "")
    said = text[:last] + comma + behind[:kept] + newline + margin + name + whole + further
    return said + (behind[kept:] or newline + _margin(text, node.start)) + text[close:]


def _margin(text: str, at: int) -> str:
    """The leading white space of the line."""
    start = text.rfind("\n", 0, at) + 1
    end = start
    while end < at and text[end] in " \t":
        end += 1
    return text[start:end]


# -- removing -----------------------------------------------------------------------------------------


def without_member(text: str, path: Sequence[str]) -> str:
    """Remove a member; unchanged if there is none."""
    node = parse(text)
    for name in path[:-1]:
        below = _named(node, name) if isinstance(node.value, dict) else None
        if below is None:
            return text
        node = below.node
    part = _named(node, path[-1]) if isinstance(node.value, dict) else None
    return text if part is None else _taken(text, node, node.parts.index(part))


def without_elements(text: str, path: Sequence[str], is_ours: Callable[[Any], bool]) -> str:
    """Remove our elements from an array."""
    while True:
        node: Node | None = parse(text)
        for name in path:
            below = _named(node, name) if node is not None and isinstance(node.value, dict) else None
            node = None if below is None else below.node
        if node is None or not isinstance(node.value, list):
            return text
        ours = [index for index, value in enumerate(node.value) if is_ours(value)]
        if not ours:
            return text
        text = _taken(text, node, ours[-1])


def _taken(text: str, node: Node, index: int) -> str:
    part = node.parts[index]
    if len(node.parts) == 1:
        inside = text[node.start + 1 : part.start] + text[part.node.end : node.end - 1].lstrip(",")
        return text[: node.start + 1] + (inside if inside.strip() else "") + text[node.end - 1 :]
    if index + 1 < len(node.parts):
        until = node.parts[index + 1].start
        left = text[part.node.end : until].replace(",", "", 1).strip()  # a comment in between stays
        return text[: part.start] + (left + text[part.node.end : until][-1:] if left else "") + text[until:]
    before = node.parts[index - 1].node.end
    between = text[before : part.start]
    kept = between.strip() if node.has_comma else between.replace(",", "", 1).strip()
    kept = between.rstrip() if kept not in ("", ",") and node.has_comma else kept
    if kept in ("", ","):
        return text[:before] + text[part.node.end :]
    return text[:before] + between.replace(",", "", 1).rstrip() + text[part.node.end :]
