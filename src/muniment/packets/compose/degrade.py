"""Shorter, never other words: cut a text at sentences, else at words, to what fits (MP-05, MP-14)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans

__all__ = ["Fits", "cut_text", "cut_value"]

Fits = Callable[[str], bool]

_SCAN_CHARS_MAX = 200_000
"""Further into one turn nobody looks for the best sentence."""


def cut_text(text: str, fits: Fits, terms: Collection[str] = ()) -> str | None:
    """The longest stretch of whole sentences around the one that shares most terms; else its first words; else None."""
    text = text[:_SCAN_CHARS_MAX]
    spans = sentence_spans(text)
    if not spans:
        return None
    best = _best(text, spans, frozenset(terms))
    start, end = spans[best]
    if not fits(text[start:end]):
        return _cut_words(text[start:end], fits)
    last = _furthest(len(spans) - best - 1, lambda more: fits(text[start : spans[best + more][1]]))
    end = spans[best + last][1]
    first = _furthest(best, lambda more: fits(text[spans[best - more][0] : end]))
    return text[spans[best - first][0] : end]


def cut_value(value: Any, fits: Callable[[Any], bool]) -> Any:
    """A JSON value made shorter: text by `cut_text`, a list by its first items; None where neither helps."""
    if isinstance(value, str):
        return cut_text(value, fits)
    if isinstance(value, list) and len(value) > 1:
        kept = _furthest(len(value) - 1, lambda count: count > 0 and fits(value[:count]))
        return value[:kept] if kept else None
    return None


def _best(text: str, spans: list[tuple[int, int]], terms: frozenset[str]) -> int:
    if not terms or len(spans) == 1:
        return 0
    return max(range(len(spans)), key=lambda at: (len(terms & set(analyze(text[slice(*spans[at])]))), -at))


def _cut_words(text: str, fits: Fits) -> str | None:
    """The first words; where words are not set apart, the first signs."""
    ends = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    if len(ends) < len(text) // 40:
        ends = list(range(1, len(text)))
    kept = _furthest(len(ends), lambda count: count > 0 and fits(text[: ends[count - 1]]))
    return text[: ends[kept - 1]] if kept else None


def _furthest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest count up to `most` found to hold by halving; what is returned, unless 0, was seen to hold."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
