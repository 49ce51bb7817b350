"""Make a text, a JSON value or a turn shorter: at the ends of sentences, and never in other words.

Half a sentence can say the opposite: "I started eating fish again last". So a text is cut at the ends of sentences or
not at all. Only a value of the working state, in which a cut is marked, may end between words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from muniment.core.requests import furthest
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans
from muniment.memory.tool_results import cut_excerpt
from muniment.memory.turns import Excerpt, Turn

__all__ = ["ShownTurn", "cut_text", "cut_turn", "cut_value", "whole_turn"]

_SCAN_CHARS_MAX = 200_000
"""Further into one turn nobody looks for the best sentence."""


def cut_text(text: str, fits: Callable[[str], bool], terms: Collection[str] = ()) -> str | None:
    """The longest stretch of whole sentences around the one that shares most terms, of those that fit; else None."""
    text = text[:_SCAN_CHARS_MAX]
    spans = sentence_spans(text)
    best = next((at for at in _ranked(text, spans, frozenset(terms)) if fits(text[slice(*spans[at])])), None)
    if best is None:
        return None
    start, end = spans[best]
    last = furthest(len(spans) - best - 1, lambda more: fits(text[start : spans[best + more][1]]))
    end = spans[best + last][1]
    first = furthest(best, lambda more: fits(text[spans[best - more][0] : end]))
    return text[spans[best - first][0] : end]


def cut_value(value: Any, fits: Callable[[Any], bool]) -> Any:
    """A JSON value made shorter: text by its sentences or words, a list by its first items; None if neither helps."""
    if isinstance(value, str):
        return cut_text(value, fits) or _cut_words(value[:_SCAN_CHARS_MAX], fits)
    if isinstance(value, list) and len(value) > 1:
        kept = furthest(len(value) - 1, lambda count: count > 0 and fits(value[:count]))
        return value[:kept] if kept else None
    return None


class ShownTurn(NamedTuple):
    """A turn on a page, and how much of its text."""

    turn: Turn
    text: str
    excerpt: Excerpt | None = None
    """Of a tool's long result: the stretches that `text` is made of."""


def whole_turn(turn: Turn, terms: Collection[str] = ()) -> ShownTurn:
    """The turn as it stands where there is room for it: whole, or what there is to be shown of a very long result."""
    if turn.excerpt is None:
        return ShownTurn(turn, turn.text)
    return cut_turn(turn, lambda _: True, terms) or ShownTurn(turn, turn.text)


def cut_turn(turn: Turn, fits: Callable[[ShownTurn], bool], terms: Collection[str]) -> ShownTurn | None:
    """A turn made shorter: a message to a stretch of sentences, a tool's result to the lines that matter."""
    if turn.kind == "tool_result":
        excerpt = cut_excerpt(turn.text, turn.excerpt, lambda part: fits(ShownTurn(turn, part.text, part)), terms)
        return None if excerpt is None else ShownTurn(turn, excerpt.text, excerpt)
    text = cut_text(turn.text, lambda part: fits(ShownTurn(turn, part)), terms)
    return None if text is None else ShownTurn(turn, text)


def _ranked(text: str, spans: list[tuple[int, int]], terms: frozenset[str]) -> list[int]:
    """The sentences that share terms, most first; without any, the first sentence alone."""
    if not terms or len(spans) < 2:
        return [0] if spans else []
    shared = [len(terms & set(analyze(text[slice(*span)]))) for span in spans]
    return sorted((at for at, count in enumerate(shared) if count), key=lambda at: -shared[at]) or [0]


def _cut_words(text: str, fits: Callable[[str], bool]) -> str | None:
    """The first words; where words are not set apart, the first signs."""
    ends = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    if len(ends) < len(text) // 40:
        ends = list(range(1, len(text)))
    kept = furthest(len(ends), lambda count: count > 0 and fits(text[: ends[count - 1]]))
    return text[: ends[kept - 1]] if kept else None
