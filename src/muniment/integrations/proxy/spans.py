"""Insert a packet into the JSON of a request, leaving all else as written: numbers, escapes, the order of keys and the
white space. The text is never reserialised; insertions go between two of its characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from muniment.integrations.wrapping.placing import Insertion

__all__ = ["Span", "find_span", "spliced"]

_DECODER = json.JSONDecoder()
_SPACES = " \t\n\r"


class Span(NamedTuple):
    """Position of a value in a text."""

    start: int
    end: int


def spliced(text: str, insertion: Insertion) -> str:
    """The text with the packet inserted. The text is JSON that was already parsed, and contains the path."""
    *steps, last = insertion.path
    holder = find_span(text, tuple(steps))
    if insertion.how == "as_item":
        assert isinstance(last, int)
        return _with_item(text, holder, last, _written(insertion.value))
    assert isinstance(last, str)
    held = next((span for key, span in _members(text, holder.start) if key == last), None)
    if held is None:
        return _with_member(text, holder, last, _written(insertion.value))
    match insertion.how:
        case "before_text":
            return _put(text, held.start + 1, _written(insertion.value)[1:-1])
        case "after_text":
            return _put(text, held.end - 1, _written(insertion.value)[1:-1])
        case "as_blocks":
            own = f'[{{"type":"text","text":{text[held.start : held.end]}}},{_written(insertion.value)}]'
            return f"{text[: held.start]}{own}{text[held.end :]}"
        case _:
            return f"{text[: held.start]}{_written(insertion.value)}{text[held.end :]}"


def find_span(text: str, path: tuple[str | int, ...]) -> Span:
    """Position of the value at a path; raises `KeyError` if there is none."""
    start = _skip(text, 0)
    span = Span(start, _DECODER.raw_decode(text, start)[1])
    for step in path:
        if isinstance(step, str):
            span = dict(_members(text, span.start))[step]
        else:
            span = next(each for at, each in enumerate(_elements(text, span.start)) if at == step)
    return span


def _members(text: str, at: int) -> Iterator[tuple[str, Span]]:
    """The keys of the object that begins here, with the positions of their values."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        end = _DECODER.raw_decode(text, start)[1]
        yield key, Span(start, end)
        at = _next(text, end)


def _elements(text: str, at: int) -> Iterator[Span]:
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        yield Span(at, end)
        at = _next(text, end)


def _next(text: str, at: int) -> int:
    """Position after a value: where the next one begins, or the closing bracket."""
    at = _skip(text, at)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACES:
        at += 1
    return at


def _with_item(text: str, holder: Span, place: int, item: str) -> str:
    last = None
    for at, span in enumerate(_elements(text, holder.start)):
        if at == place:
            return _put(text, span.start, f"{item},")
        last = span
    return _put(text, holder.start + 1, item) if last is None else _put(text, last.end, f",{item}")


def _with_member(text: str, holder: Span, key: str, value: str) -> str:
    """Insert a member after the others, so that the preceding text is unchanged."""
    last = None
    for _, span in _members(text, holder.start):
        last = span
    member = f"{_written(key)}:{value}"
    return _put(text, holder.start + 1, member) if last is None else _put(text, last.end, f",{member}")


def _put(text: str, at: int, more: str) -> str:
    return f"{text[:at]}{more}{text[at:]}"


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
