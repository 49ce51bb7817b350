"""Shortening of answers: a part of a long text, the first items of a list. Pure."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from muniment.core.canonical import canonical_text
from muniment.core.record import Record

__all__ = ["Excerpt", "excerpt", "fitting", "shortened"]

R = TypeVar("R", bound=Record)

_WORD = re.compile(r"\w+")
_BEFORE = 80
"""Characters shown before the first query word."""
_SHORT = 3
"""Words of at most this many letters say little about where to look."""


class Excerpt(NamedTuple):
    """A part of a text, and its position."""

    text: str
    start: int
    end: int


def excerpt(text: str, query: str, chars_max: int) -> Excerpt:
    """A short text unchanged; else the part of that length with the most query words, the first of several."""
    if len(text) <= chars_max:
        return Excerpt(text, 0, len(text))
    wanted = {word for word in _WORD.findall(query.casefold()) if len(word) > _SHORT}
    start = max(0, _densest(text, wanted, chars_max - _BEFORE) - _BEFORE)
    start = min(start, len(text) - chars_max)
    return Excerpt(text[start : start + chars_max], start, start + chars_max)


def _densest(text: str, wanted: set[str], width: int) -> int:
    """The start of the part of this width with the most query words; 0 if there are none."""
    inside: deque[tuple[int, str]] = deque()
    counts: Counter[str] = Counter()
    best, most = 0, 0
    for match in _WORD.finditer(text):
        word = match.group().casefold()
        if word not in wanted:
            continue
        inside.append((match.start(), word))
        counts[word] += 1
        while len(inside) > 1 and inside[0][0] < match.end() - width:  # a word may be longer than the part
            _, gone = inside.popleft()
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
        if len(counts) > most:
            best, most = inside[0][0], len(counts)
    return best


def shortened(text: str, chars_max: int) -> str:
    """The beginning of a text, with an ellipsis if it was cut."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def fitting(records: Sequence[R], chars_max: int) -> tuple[R, ...]:
    """The first records that fit in this many characters of JSON; at least one, if there are any."""
    kept: list[R] = []
    left = chars_max
    for each in records:
        left -= len(canonical_text(each.to_wire())) + 1
        if left < 0 and kept:
            break
        kept.append(each)
    return tuple(kept)
